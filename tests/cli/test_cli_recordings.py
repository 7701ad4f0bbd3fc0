"""Recordings that `foveate replay` finds: sessions on this computer, folders, standard input, compressed files."""

from __future__ import annotations

import gzip
import io
import json
import os
from types import SimpleNamespace

import pytest

from foveate.cli import recordings as command
from foveate.stores.zstd import find_module

CHAT = b'{"role": "user", "content": "hi"}\n{"role": "assistant", "content": "ho"}\n'


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder with two sessions of Claude Code and one of Codex; the newest is `new`."""
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("COPILOT_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for age, name in enumerate((".codex/sessions/1/old", ".claude/projects/p/mid", ".claude/projects/p/new")):
        path = tmp_path / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CHAT + b'{"role": "user", "content": "%d"}\n' % age)
        os.utime(path, (1_000 + age, 1_000 + age))
    return tmp_path


def test_without_a_file_the_sessions_on_this_computer_are_listed(run, home):
    code, out, err = run("replay")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["1", "Claude", "Code"],
        ["2", "Claude", "Code"],
        ["3", "Codex", lines[3].split()[2]],
    ]
    assert "foveate replay --last" in out
    code, out, err = run("replay", "--json")
    assert [json.loads(line)["client"] for line in out.splitlines()] == ["claude-code", "claude-code", "codex"]


def test_without_a_session_the_error_names_the_folders(run, home, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    code, out, err = run("replay")
    assert (code, out) == (2, "")
    assert "there is no session of Claude Code, Codex, OpenCode, pi, Gemini CLI, Copilot CLI in" in err
    assert err.endswith("Name a file or a folder: foveate replay session.jsonl\n")


def test_recent_replays_the_newest_sessions(run, home):
    code, out, _ = run("replay", "--recent", 2, "--json", "--jobs", 1)
    assert (code, [json.loads(line)["transcript"] for line in out.splitlines()]) == (0, ["new", "mid"])
    assert run("replay", "--recent", 0)[0] == 2


@pytest.mark.parametrize(
    ("answers", "chosen"), [([""], ["new"]), (["9", "x", "2-3"], ["mid", "old"]), (["all"], ["new", "mid", "old"])]
)
def test_a_person_at_a_terminal_chooses_sessions(home, monkeypatch, capsys, answers, chosen):
    monkeypatch.setattr(command.sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(command.sys.stdout, "isatty", lambda: True, raising=False)
    given = iter(answers)
    monkeypatch.setattr("builtins.input", lambda prompt: next(given))
    paths = command.choose_sessions(command.sessions_here(), as_json=False)
    assert [path.stem for path in paths] == chosen


def test_a_folder_stands_for_the_recordings_in_it(run, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.jsonl").write_bytes(CHAT)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(CHAT + CHAT))
    (tmp_path / "c.jsonl.zst").write_bytes(find_module().compress(CHAT * 3))
    (tmp_path / "package.json").write_text('{"name": "x"}')
    code, out, err = run("replay", tmp_path, "--json", "--jobs", 1)
    assert (code, [json.loads(line)["transcript"] for line in out.splitlines()]) == (0, ["b.jsonl", "c.jsonl", "a"])
    assert err == f"foveate: Left out 1 JSON file without a recording in {tmp_path}: package.json\n"
    for number in range(4):
        (tmp_path / "deep" / f"b{number}.json").write_text("not JSON")
    _, _, err = run("replay", tmp_path / "deep", "--json", "--jobs", 1)
    assert err.endswith(
        f"Left out 4 JSON files without a recording in {tmp_path / 'deep'}: b0.json, b1.json, b2.json, ...\n"
    )
    (tmp_path / "empty").mkdir()
    code, _, err = run("replay", tmp_path / "empty")
    assert (code, "holds no recording. Name a file" in err) == (2, True)


def test_a_session_in_several_files_counts_once(run, tmp_path):
    messages = [json.loads(line) for line in CHAT.splitlines()]
    (tmp_path / "a.jsonl").write_bytes(CHAT)
    (tmp_path / "b.jsonl").write_bytes(CHAT.replace(b"ho", b"hello"))
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(CHAT))
    (tmp_path / "a.json").write_text(json.dumps({"messages": messages}, indent=1))
    code, out, err = run("replay", tmp_path, "--compare", "off,prune", "--jobs", 1)
    assert code == 0
    assert out.startswith("2 recordings  4 messages, 2 model calls")
    assert err.splitlines() == [
        "foveate: a.jsonl has the same messages as a.json. It is left out.",
        "foveate: c.jsonl.gz has the same messages as a.json. It is left out.",
    ]


def test_standard_input_is_a_recording(run, monkeypatch):
    monkeypatch.setattr(command.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(CHAT), isatty=lambda: False))
    code, out, err = run("replay", "-", "--json")
    assert (code, err, json.loads(out)["transcript"]) == (0, "", "stdin")
    monkeypatch.setattr(command.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"so it goes"), isatty=lambda: False))
    code, _, err = run("replay", "-")
    assert (code, err.startswith("foveate: stdin: not a known format. It holds text")) == (2, True)


def test_several_recordings_have_a_line_each(run, home):
    _, out, _ = run("replay", "--recent", 3, "--jobs", 1)
    assert "3 recordings" in out
    assert [line.split()[0] for line in out.splitlines()[2:6]] == ["recording", "new", "mid", "old"]
    assert "of 3 recordings 0 cost less than sending everything, 3 the same, 0 more" in out
