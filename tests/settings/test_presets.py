"""Presets: the shipped ones, files, and presets that extend others."""

from __future__ import annotations

from pathlib import Path

import pytest

import foveate
from foveate.policies import DEFAULT_PRESET, FLOOR, PRESET_NAMES, check_compatible, load_policies, presets
from foveate.policies.presets import SHIPPED, load_preset
from foveate.policies.presets.descriptions import DESCRIPTIONS
from foveate.policies.presets.mechanisms import MECHANISMS
from foveate.testing import BodyChecker, agent_run

FOLDER = Path(presets.__file__).parent


def test_every_shipped_file_is_known_and_described():
    assert sorted(path.stem for path in FOLDER.glob("*.toml")) == sorted(SHIPPED)
    assert all(load_preset(name).description.endswith(".") for name in SHIPPED)
    assert DEFAULT_PRESET in PRESET_NAMES


@pytest.mark.parametrize("name", [name.replace("-N", "-5") for name in PRESET_NAMES])
def test_every_shipped_preset_returns_policies(loaded, name):
    settings = loaded(policy=name)
    policies, floor = load_policies(name)
    assert len(settings.policies) == len(policies) == len(settings.steps)
    assert settings.floor() == floor == (() if name == "off" else FLOOR)
    assert {one.source for key, one in settings.values.items() if "." in key} <= {f"preset {name}", "default"}


def test_the_mechanisms_run_in_the_order_of_the_pipeline():
    text = "retain, expire, supersede, dedupe, pins, prune, filter, fold, shrink, defer, recap, checkpoint, compact"
    assert ", ".join(MECHANISMS) == text


def test_every_mechanism_has_readable_arguments():
    assert {name: list(one.fields) for name, one in MECHANISMS.items() if not one.fields} == {}


def test_every_setting_of_every_mechanism_has_a_description():
    described = {name: dict(DESCRIPTIONS[name]).keys() for name in MECHANISMS}
    assert described == {name: one.fields.keys() for name, one in MECHANISMS.items()}


def test_the_preset_recap_follows_its_document(loaded):
    values = loaded(policy="recap").values
    text = {name.partition(".")[2]: one.value for name, one in values.items() if name.startswith("recap.")}
    assert text == {
        "enabled": True,
        "min_preserved_assistant_messages": 3,
        "batch_size": 4,
        "recap_prefix": "recap -",
        "keep_first_user": False,
        "hide_users": True,
        "as_note": False,
        "template": "{recap}",
        "note": '[Earlier: {recap}; expand("{handle}")]',
        "compact": None,
    }
    foveate.policies.recap_batches(**text)


@pytest.mark.parametrize("name", ["balanced", "coding", "frugal"])
def test_recommended_presets_shrink_and_defer(loaded, name):
    assert loaded(policy=name).steps == ("defer(supersede, fold, shrink)", "compact")


def test_browser_shrinks_old_pages_at_once_and_keeps_reads(loaded):
    settings = loaded(policy="browser")
    assert settings.steps == ("supersede", "prune", "compact")
    text = {name: settings.values[f"supersede.{name}"].value for name in ("keep", "reads", "writes", "asks")}
    assert text == {"keep": 1, "reads": (), "writes": (), "asks": ()}
    assert settings.values["supersede.looks"].value
    assert "{handle}" in settings.values["prune.placeholder"].value


@pytest.mark.parametrize("name", ["balanced", "coding", "frugal", "browser"])
def test_recommended_presets_summarise_without_a_model(loaded, name):
    settings = loaded(policy=name)
    check_compatible(settings.policies, has_summarizer=settings["summarizer"] == "digest")
    assert settings.values["compact.keep_recent"].value == 0.3
    assert loaded(policy=name, summarizer=len)["summarizer"] is len


def test_prune_and_compact_uses_the_exact_strings_of_its_document(loaded):
    values = {key: item.value for key, item in loaded(policy="prune-and-compact").values.items()}
    words = {
        "prune.placeholder": "[Old tool result content cleared]",
        "prune.protect": 40_000,
        "prune.minimum": 20_000,
    }
    assert {key: values[key] for key in words} == words


def test_a_preset_is_read_from_a_file(loaded):
    loaded.write("conf/mine.toml", 'description = "Mine."\n\n[filter]\nkeep = 2\n')
    for expected in ({"policy": "conf/mine.toml"}, {"policy": str(loaded.folder / "conf" / "mine.toml")}):
        settings = loaded(**expected)
        assert (settings.description, settings.mechanisms) == ("Mine.", ("filter",))
    assert settings.values["filter.keep"].source.endswith("conf/mine.toml, line 4: filter.keep")
    assert loaded('policy = "conf/mine.toml"').mechanisms == ("filter",)
    assert loaded("", {"FOVEATE_POLICY": "conf/mine.toml"}).mechanisms == ("filter",)


def test_a_preset_extends_a_shipped_one(loaded):
    loaded.write("mine.toml", 'extends = "prune"\n[prune]\nminimum = 5\n[filter]\nkeep = 3\n')
    values = loaded(policy="mine.toml").values
    assert (values["prune.minimum"].value, values["prune.minimum"].source) == (
        5,
        "preset mine.toml, line 3: prune.minimum",
    )
    assert values["prune.enabled"].source == "preset mine.toml, line 2: prune"
    loaded.write("mine.toml", 'extends = "keep-last-4"\n')
    assert loaded(policy="mine.toml").values["filter.keep"].source == "preset keep-last-4"


def test_a_path_in_extends_starts_at_its_file(loaded):
    loaded.write("a/base.toml", "[prune]\nprotect = 1\n")
    loaded.write("a/b/mid.toml", 'extends = "../base.toml"\n[prune]\nminimum = 2\n')
    loaded.write("mine.toml", 'extends = "a/b/mid.toml"\n[prune]\npart_max = 3\n')
    values = loaded(policy="mine.toml").values
    assert [values[f"prune.{key}"].value for key in ("protect", "minimum", "part_max")] == [1, 2, 3]


def test_a_table_switches_on_what_the_extended_preset_disabled(loaded):
    loaded.write("off.toml", 'extends = "prune"\nfloor = false\n[prune]\nenabled = false\nprotect = 9\n')
    loaded.write("on.toml", 'extends = "off.toml"\nfloor = true\n[prune]\n')
    assert (loaded(policy="off.toml").mechanisms, loaded(policy="off.toml").floor()) == ((), ())
    again = loaded(policy="on.toml")
    assert (again.mechanisms, again.floor(), again.values["prune.protect"].value) == (("prune",), FLOOR, 9)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"mine.toml": 'extends = "nope"\n'},
            "Preset mine.toml, line 1: extends is 'nope'. There is no policy 'nope'.",
        ),
        ({"mine.toml": 'extends = "no.toml"\n'}, "line 1: extends is 'no.toml'. There is no file no.toml."),
        ({"mine.toml": "extends = 5\n"}, "Preset mine.toml, line 1: extends is 5; allowed: a text."),
        ({"mine.toml": "description = 5\n"}, "Preset mine.toml, line 1: description is 5; allowed: a text."),
        ({"mine.toml": 'extends = "mine.toml"\n'}, "extends itself: mine.toml extends mine.toml."),
        ({"mine.toml": 'extends = "x/../mine.toml"\n', "x/y": ""}, "extends itself: mine.toml extends mine.toml."),
        (
            {"mine.toml": 'extends = "b.toml"\n', "b.toml": 'extends = "mine.toml"\n'},
            "extends itself: mine.toml extends b.toml extends mine.toml.",
        ),
        (
            {"mine.toml": 'extends = "b.toml"\n', "b.toml": "[prune]\nprotekt = 3\n"},
            "Preset mine.toml, line 1: extends is 'b.toml'. Preset b.toml, line 2: prune.protekt: there is no setting",
        ),
        ({"mine.toml": "window = 5\n"}, "a preset does not set this; write it into foveate.toml"),
    ],
)
def test_a_preset_with_a_fault_is_named(loaded, files, expected):
    for name, content in files.items():
        loaded.write(name, content)
    assert expected in loaded.refused(policy="mine.toml")


def test_a_file_named_without_its_ending_is_suggested(loaded):
    loaded.write("mine.toml", "[prune]\n")
    assert loaded.refused(policy="mine") == (
        "There is no policy 'mine', but a file mine.toml: name it with its ending."
    )


@pytest.mark.parametrize(
    "name", ["", " ", "keep-last-0", "keep-last-", "keep-last--1", "keep-last-" + "9" * 5_000, "PRUNE"]
)
def test_an_unknown_preset_is_refused(loaded, name):
    assert "There is no policy" in loaded.refused(policy=name)


def test_a_preset_is_read_again_at_each_load(loaded):
    """A changed file counts at the next load."""
    loaded.write("mine.toml", "[filter]\nkeep = 2\n")
    before = loaded(policy="mine.toml")
    loaded.write("mine.toml", "[filter]\nkeep = 3\n")
    assert (before.values["filter.keep"].value, loaded(policy="mine.toml").values["filter.keep"].value) == (2, 3)


def test_a_conversation_runs_under_a_preset_file(loaded, monkeypatch):
    loaded.write("mine.toml", '[filter]\nkeep = 1\nplaceholder = "[gone]"\n')
    monkeypatch.chdir(loaded.folder)
    chat = foveate.open_conversation("c", window=100_000, policy="mine.toml")
    for n in range(2):
        chat.append([foveate.testing.call(f"c{n}"), foveate.testing.answer(f"c{n}", "x" * 400)])
    assert [entry.message.text for entry in chat.prepare() if entry.is_result] == ["[gone]", "x" * 400]


@pytest.mark.parametrize("name", [name.replace("-N", "-5") for name in PRESET_NAMES if name != "off"])
@pytest.mark.parametrize("provider", [pytest.param("openai", marks=pytest.mark.slow), "anthropic"])
def test_views_are_legal_fit_and_settle_under_every_preset(name, provider):
    chat = foveate.open_conversation(
        "run", format=provider, window=12_000, policy=name, summarizer=lambda request: "What was done so far."
    )
    checker = BodyChecker(chat.format.name)
    for message in agent_run(40, seed=3):
        if message.role == "assistant":
            view = chat.prepare()
            assert not checker.check(chat.format.body(view, profile=chat._agent.profile))
            assert view.tokens <= view.budget.usable
            assert not chat.plan().edits
            chat.record(message)
        else:
            chat.append(message)
    assert len(chat.history()) == len(agent_run(40, seed=3))
