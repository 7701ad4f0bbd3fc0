"""The order of precedence, and the source of each value."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from foveate.core.edits import Replace
from foveate.policies import DEFAULT_PRESET, FLOOR
from foveate.settings import FILE
from foveate.testing import agent_run

LEVELS = ("preset", "file", "environment", "keyword")


def said_on(level: str, value: int) -> dict[str, Any]:
    """`prune.protect` on one level."""
    return {
        "preset": {"preset": f"[prune]\nprotect = {value}\n"},
        "file": {"toml": f"[prune]\nprotect = {value}\n"},
        "environment": {"environ": {"FOVEATE_PRUNE_PROTECT": str(value)}},
        "keyword": {"settings": {"prune": {"protect": value}}},
    }[level]


@pytest.mark.parametrize(("lower", "higher"), list(combinations(LEVELS, 2)))
def test_the_higher_of_two_levels_counts(loaded, lower, higher):
    expected = {**said_on(lower, 111), **said_on(higher, 222)}
    loaded.write("mine.toml", expected.pop("preset", "[prune]\n"))
    protect = loaded(policy="mine.toml", **expected).values["prune.protect"]
    sources = {
        "file": "foveate.toml, line 2: prune.protect",
        "environment": "environment FOVEATE_PRUNE_PROTECT",
        "keyword": 'keyword settings["prune"]["protect"]',
    }
    assert (protect.value, protect.source) == (222, sources[higher])


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_overrides_the_default(loaded, level):
    expected = said_on(level, 111)
    loaded.write("mine.toml", expected.pop("preset", "[prune]\n"))
    values = loaded(policy="mine.toml", **expected).values
    assert values["prune.protect"].value == 111
    assert (values["prune.minimum"].value, values["prune.minimum"].source) == (20_000, "default")


@pytest.mark.parametrize(
    ("name", "lower", "middle", "higher"),
    [
        ("policy", "none", "off", "keep-last-3"),
        ("store", "sqlite:///a.db", "sqlite:///b.db", "memory:"),
        ("format", "anthropic", "openai", "openai_chat"),
        ("model", "a", "b", "c"),
        ("window", 1_000, 2_000, 3_000),
        ("reserve", 0, 1, 2),
        ("tenant", "a", "b", "c"),
    ],
)
def test_general_settings_follow_the_same_order(loaded, name, lower, middle, higher):
    loaded.write(FILE, f"\n{name} = {lower!r}\n")
    environ = {f"FOVEATE_{name.upper()}": str(middle)}
    answers = [loaded(), loaded(environ=environ), loaded(environ=environ, **{name: higher})]
    assert [(one.values[name].value, one.values[name].source) for one in answers] == [
        (lower, f"foveate.toml, line 2: {name}"),
        (middle, f"environment FOVEATE_{name.upper()}"),
        (higher, f"keyword {name}="),
    ]


def test_defaults_count_without_settings(loaded):
    values = loaded().values
    assert {one.source for one in values.values()} == {"default", f"preset {DEFAULT_PRESET}"}
    assert {name: one.value for name, one in values.items() if one.source != "default"} == {
        "summarizer": "digest",
        "supersede.enabled": True,
        "fold.enabled": True,
        "fold.protect": 0.02,
        "fold.by_worth": True,
        "shrink.enabled": True,
        "shrink.protect_said": 0.03,
        "shrink.by_worth": True,
        "defer.enabled": True,
        "defer.patience": 2.5,
        "defer.partly": True,
        "compact.enabled": True,
        "compact.keep_recent": 0.3,
    }
    general = {name: one.value for name, one in values.items() if "." not in name}
    assert general == {
        "policy": "balanced",
        "floor": True,
        "store": "memory:",
        "format": "openai",
        "model": "",
        "window": None,
        "reserve": None,
        "expand": None,
        "expand_where": "auto",
        "tenant": "",
        "summarizer": "digest",
    }


def test_loading_without_a_folder_reads_no_file(loaded):
    loaded.write(FILE, "window = 5_000\n")
    from foveate.settings import load

    assert load(environ={}).values["window"].value is None


# ------------------------------------------------------------------------------------------------------- on and off


def test_any_level_can_switch_a_mechanism_off(loaded):
    off = "[prune]\nenabled = false\n"
    loaded.write("mine.toml", f'extends = "prune"\n{off}')
    by = [
        loaded(policy="mine.toml"),
        loaded(environ={"FOVEATE_PRUNE_ENABLED": "No"}, policy="prune"),
        loaded(settings={"prune": {"enabled": False}}, policy="prune"),
        loaded(off, policy="prune"),
    ]
    assert [(one.mechanisms, one.policies, one.floor()) for one in by] == [((), (), FLOOR)] * 4
    assert by[-1].values["prune.enabled"].source == "foveate.toml, line 2: prune.enabled"


def test_a_table_above_the_preset_switches_its_mechanism_on(loaded):
    assert loaded("[filter]\nkeep = 2\n").mechanisms == ("supersede", "filter", "fold", "shrink", "defer", "compact")
    assert loaded('policy = "none"\n[filter]\nkeep = 2\n').mechanisms == ("filter",)
    environ = {"FOVEATE_POLICY": "recap", "FOVEATE_FILTER_KEEP": "2"}
    assert loaded("", environ).mechanisms == ("filter", "recap")
    assert loaded("", settings={"recap": {}}, policy="prune").mechanisms == ("prune", "recap")
    recap = loaded("[recap]\n").values["recap.enabled"]
    assert (recap.value, recap.source) == (True, "foveate.toml, line 1: recap")
    assert loaded("[expire.tools.grep]\n").values["expire.enabled"].source == "foveate.toml, line 1: expire"


def test_a_table_below_the_preset_only_tunes_its_mechanism(loaded):
    loaded.write(FILE, "[prune]\nprotect = 7\n[recap]\nbatch_size = 2\n")
    chosen = loaded(policy="prune")
    assert (chosen.mechanisms, chosen.values["prune.protect"].value) == (("prune",), 7)
    assert {name: (one.value, one.source) for name, one in chosen.unused.items()} == {
        "recap.batch_size": (2, "foveate.toml, line 4: recap.batch_size")
    }
    assert loaded(policy="keep-last-3", environ={"FOVEATE_PRUNE_PROTECT": "9"}).mechanisms == ("filter",)


def test_enabled_switches_on_from_a_lower_level(loaded):
    switched = loaded(environ={"FOVEATE_RECAP_ENABLED": "yes"}, policy="keep-last-3")
    assert switched.mechanisms == ("filter", "recap")


def test_plugins_switch_retain_on_unless_it_is_set(loaded):
    on = loaded(has_plugins=True, policy="prune")
    assert (on.mechanisms, on.values["retain.enabled"].source) == (("retain", "prune"), "keyword plugins=")
    assert loaded(has_plugins=True, policy="none").mechanisms == ("retain",)
    assert loaded(has_plugins=True, policy="off").mechanisms == ()
    assert loaded(has_plugins=True, environ={"FOVEATE_RETAIN_ENABLED": "off"}, policy="prune").mechanisms == ("prune",)
    assert loaded(has_plugins=True, policy="retain").values["retain.enabled"].source == "preset retain"


@pytest.mark.parametrize(("name", "floor"), [("off", ()), ("none", FLOOR)])
def test_off_and_none_override_tables_on_lower_levels(loaded, name, floor):
    loaded.write(FILE, "floor = true\n[prune]\nenabled = true\n")
    quiet = loaded(environ={"FOVEATE_RECAP_ENABLED": "on", "FOVEATE_WINDOW": "7700"}, policy=name)
    assert (quiet.policies, quiet.floor(), quiet["window"]) == ((), floor, 7_700)
    assert loaded(policy=name, settings={"prune": {}}).mechanisms == ("prune",)


def test_any_level_can_switch_the_floor_off(loaded):
    loaded.write("mine.toml", "floor = false\n[prune]\n")
    by = [
        loaded(policy="mine.toml"),
        loaded(environ={"FOVEATE_FLOOR": "0"}),
        loaded(settings={"floor": False}),
        loaded(policy=[lambda view: ()], settings={"floor": False}),
        loaded("floor = false\n"),
    ]
    assert [one.floor() for one in by] == [()] * 5
    assert loaded(settings={"floor": True}).floor() == FLOOR


def test_mechanisms_never_run_in_the_order_of_a_file(loaded):
    loaded.write("mine.toml", "[recap]\n[filter]\nkeep = 3\n[prune]\n")
    assert loaded(policy="mine.toml").mechanisms == ("prune", "filter", "recap")


# ------------------------------------------------------------------------------------------------ values of a program


def test_policies_of_a_program_replace_the_preset(loaded):
    def mine(view: Any) -> Any:
        return ()

    one, several = loaded("[prune]\nprotect = 5\n", policy=mine), loaded(policy=[mine, mine])
    assert (one.policies, one.floor(), one.mechanisms) == ((mine,), FLOOR, ())
    assert several.policies == (mine, mine)
    assert list(one.unused) == ["prune.protect"]


def test_a_keyword_accepts_objects(loaded, lending):
    message = lending(loaded(settings={"lend": {"count": sum, "tools": {"grep": {"turns": 2}}}}))
    assert message["count"] is sum
    assert message["tools"]["grep"].turns == 2


def test_any_collection_is_accepted_as_a_list(loaded):
    for names in ({"a"}, ("a",), ["a"], frozenset("a"), {"a": 1}.keys()):
        assert loaded(settings={"prune": {"protected_tools": names}}).values["prune.protected_tools"].value == ("a",)


# ---------------------------------------------------------------------------------------------------------- tables


def test_tables_are_merged_value_by_value_over_all_levels(loaded, lending):
    loaded.write("base.toml", '[lend.tools.grep]\nturns = 1\nmode = "compact"\n[lend.tools.ls]\nturns = 9\n')
    loaded.write("mine.toml", 'extends = "base.toml"\n[lend.tools.grep]\nturns = 2\n')
    settings = loaded(
        'policy = "mine.toml"\n[lend.tools]\ngrep.length = 80\n[lend.names]\nx = 1\n',
        settings={"lend": {"tools": {"cat": {"turns": None}}}},
    )
    message = lending(settings)
    assert {name: (one.turns, one.mode, one.length) for name, one in message["tools"].items()} == {
        "grep": (2, "compact", 80),
        "ls": (9, None, None),
        "cat": (None, None, None),
    }
    assert message["names"] == {"x": 1}
    sources = {name: one.source for name, one in settings.values.items() if name.startswith("lend.tools.grep")}
    assert sources == {
        "lend.tools.grep.turns": "preset mine.toml, line 3: lend.tools.grep.turns",
        "lend.tools.grep.mode": "preset base.toml, line 3: lend.tools.grep.mode",
        "lend.tools.grep.length": "foveate.toml, line 3: lend.tools.grep.length",
    }


def test_settings_reach_the_policies(loaded):
    """The values change what the policies do, not only the table of settings."""
    import foveate

    for protect, cleared in (("2000", True), ("900_000", False)):
        environ = {"FOVEATE_PRUNE_PROTECT": protect, "FOVEATE_PRUNE_MINIMUM": "100"}
        chat = foveate.open_conversation("c", window=100_000, policy=loaded(environ=environ, policy="prune").policies)
        chat.append(agent_run(20, seed=3))
        assert any(isinstance(edit, Replace) for edit in chat.plan().edits) is cleared
