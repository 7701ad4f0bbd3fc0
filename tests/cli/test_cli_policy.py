"""`foveate policy`: effective settings with their sources, and wrong settings."""

from __future__ import annotations

import json
import re

import pytest

from foveate.policies import PRESET_NAMES


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", [[], ["show"], ["list"]])
def test_help_is_plain_text_with_an_example(run, command):
    code, out, err = run("policy", *command, "--help")
    assert (code, err) == (0, "")
    assert "Usage: foveate policy" in out
    assert not command or f"Example: foveate policy {command[0]}" in out


def test_policy_list_names_every_preset(run):
    code, out, err = run("policy", "list")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if line][1:] == list(PRESET_NAMES)
    rows = [json.loads(line) for line in run("policy", "list", "--json")[1].splitlines()]
    assert [row["policy"] for row in rows] == list(PRESET_NAMES)
    assert rows[PRESET_NAMES.index("keep-last-N")] == {
        "policy": "keep-last-N",
        "mechanisms": ["filter"],
        "description": "The newest N tool results stay whole.",
    }
    assert "The newest 5 tool results stay whole." in rows[PRESET_NAMES.index("checkpoint")]["description"]


def test_policy_show_prints_values_with_sources(run, here, monkeypatch):
    (here / "foveate.toml").write_text('policy = "mine.toml"\nwindow = 100_000\n[filter]\nbatch = 2\n')
    (here / "mine.toml").write_text('description = "Mine."\n[filter]\nkeep = 3\n')
    monkeypatch.setenv("FOVEATE_TENANT", "acme")
    monkeypatch.setenv("FOVEATE_PRUNE_ENABLED", "no")
    code, out, err = run("policy", "show")
    assert (code, err) == (0, "")
    lines = [" ".join("  ".join(re.split(r" {2,}", line)[:3]).split()) for line in out.splitlines()]
    lines = [line for line in lines if not (line.startswith("filter.") and line.endswith(" default"))]
    assert lines == [
        "policy mine.toml Mine.",
        "",
        "setting value source",
        'policy "mine.toml" foveate.toml, line 1: policy',
        "floor true default",
        'store "memory:" default',
        'format "openai" default',
        'model "" default',
        "window 100000 foveate.toml, line 2: window",
        "reserve - default",
        'tenant "acme" environment FOVEATE_TENANT',
        'summarizer "" default',
        "expand - default",
        'expand_where "auto" default',
        "prune.enabled false environment FOVEATE_PRUNE_ENABLED",
        "filter.enabled true preset mine.toml, line 2: filter",
        "filter.keep 3 preset mine.toml, line 3: filter.keep",
        "filter.batch 2 foveate.toml, line 4: filter.batch",
        "",
        "Runs in this order: filter, the hard floor.",
    ]


def test_policy_show_lists_values_without_effect(run, here, monkeypatch):
    (here / "foveate.toml").write_text("[recap]\nbatch_size = 2\n")
    monkeypatch.setenv("FOVEATE_PRUNE_PROTECT", "5")
    out = run("policy", "show", "keep-last-3")[1]
    assert [" ".join(line.split()) for line in out.splitlines()][-4:-1] == [
        "without effect value source",
        "recap.batch_size 2 foveate.toml, line 2: recap.batch_size",
        "prune.protect 5 environment FOVEATE_PRUNE_PROTECT",
    ]
    assert "No policy runs." in run("policy", "show", "off")[1]


def test_the_same_as_json(run):
    code, out, err = run("policy", "show", "keep-last-3", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert {name: facts[name] for name in ("policy", "description", "mechanisms", "floor", "unused")} == {
        "policy": "keep-last-3",
        "description": "The newest 3 tool results stay whole.",
        "mechanisms": ["filter"],
        "floor": True,
        "unused": [],
    }
    meaning = "Newest tool results that stay whole; 0: all"
    assert {"name": "filter.keep", "value": 3, "source": "preset keep-last-3", "meaning": meaning} in facts["settings"]
    meaning = "The model's window in tokens"
    assert {"name": "window", "value": None, "source": "default", "meaning": meaning} in facts["settings"]


@pytest.mark.parametrize(
    ("name", "toml", "expected"),
    [
        ("prnue", "", "foveate: There is no policy 'prnue'. Did you mean prune? Known: off, none, keep-last-N, prune"),
        ("mine.toml", "", "foveate: There is no file mine.toml."),
        (
            "prune",
            "[prune]\nprotect = true\n",
            "foveate: foveate.toml, line 2: prune.protect is true; allowed: a",
        ),
        ("prune", "windw = 5\n", "foveate: foveate.toml, line 1: windw: there is no setting of that name."),
        (".", "", "foveate: There is no policy '.'."),
        ("./", "", "foveate: ./ is a folder; name a TOML file."),
    ],
)
def test_wrong_arguments_are_refused(run, here, name, toml, expected):
    (here / "foveate.toml").write_text(toml)
    code, out, err = run("policy", "show", name)
    assert (code, out) == (2, "")
    assert err.startswith(expected)


def test_policy_file_cannot_control_the_terminal(run, here):
    toml = 'description = "a\\u001b[2Jb[bold]"\n[filter]\nkeep = 1\nplaceholder = "\\u001b]0;x"\n'
    (here / "mine.toml").write_text(toml)
    out = run("policy", "show", "mine.toml")[1]
    assert "\x1b" not in out
    assert "b[bold]" in out


# ---------------------------------------------------------------------------------------------------- other commands


def test_replay_takes_policy_files_and_settings(run, here, recording, monkeypatch):
    (here / "mine.toml").write_text("[filter]\nkeep = 1\n")
    monkeypatch.setenv("FOVEATE_POLICY", "keep-last-2")
    compared = run("replay", recording, "--compare", "none,mine.toml,keep-last-1", "--json")[1]
    rows = {row["policy"]: row for row in map(json.loads, compared.splitlines())}
    assert list(rows) == ["none", "mine.toml", "keep-last-1"]
    assert rows["mine.toml"]["cost"] == rows["keep-last-1"]["cost"] < rows["none"]["cost"]
    (chosen,) = [json.loads(line) for line in run("replay", recording, "--json")[1].splitlines()]
    assert chosen["policy"] == "keep-last-2"
    assert "under keep-last-2" in run("show", recording)[1]
    assert "under mine.toml" in run("show", recording, "--policy", "mine.toml")[1]


def test_environment_tunes_a_replay_but_not_none(run, recording, monkeypatch):
    monkeypatch.setenv("FOVEATE_PRUNE_PROTECT", "100")
    monkeypatch.setenv("FOVEATE_PRUNE_MINIMUM", "100")
    rows = map(json.loads, run("replay", recording, "--compare", "none,prune,keep-last-9", "--json")[1].splitlines())
    assert {row["policy"]: bool(row["edits"]) for row in rows} == {"none": False, "prune": True, "keep-last-9": False}


@pytest.mark.parametrize("command", ["replay", "show"])
def test_wrong_settings_are_refused_first(run, here, recording, monkeypatch, command):
    monkeypatch.setenv("FOVEATE_PRUNE_PROTEKT", "100")
    code, out, err = run(command, recording)
    assert (code, out) == (2, "")
    assert "Did you mean FOVEATE_PRUNE_PROTECT?" in err


def test_policy_show_hides_the_password(run, here, monkeypatch):
    monkeypatch.setenv("FOVEATE_STORE", "postgresql://ann:secret@host/db?sslpassword=secret")
    for options in ((), ("--json",)):
        shown = run("policy", "show", *options)[1]
        assert ("ann:***@host" in shown, "secret" in shown) == (True, False)
    monkeypatch.setenv("FOVEATE_STORE", "postgresql+x://ann:secret@host/db")
    code, _, expected = run("policy", "show")
    assert (code != 0, "ann:***@host" in expected, "secret" in expected) == (True, True, False)
