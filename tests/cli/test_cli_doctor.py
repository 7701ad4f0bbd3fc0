"""`foveate doctor`: what is installed, the state of the store, and the recordings of agent programs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from foveate import open_conversation
from foveate.cli import doctor as command


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Give the command an empty home folder, and no keys or settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "FOVEATE_STORE", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("CODEX_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR", "GEMINI_CLI_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def database(home):
    with open_conversation("trip", store="sqlite:///chat.db", window=8_000) as chat:
        chat.append([{"role": "user", "content": "Where is the harbour?"}])
    return home / "chat.db"


def test_doctor_reports_a_sound_store_and_no_recordings(run, database):
    before = database.read_bytes()
    code, out, err = run("doctor", "--store", database)
    assert (code, err) == (0, "")
    assert f"Store: sound, 1 conversation, 1 message (sqlite:///{database})." in out
    assert "Keys in the environment: none." in out
    assert "There are no recordings of Claude Code, Codex," in out
    assert database.read_bytes() == before


def test_doctor_reports_damage_with_exit_code_1(run, database):
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute("UPDATE message SET body = x'00'").rowcount == 1
    code, out, _ = run("doctor", "--store", database)
    assert code == 1
    assert "Store: damaged, 1 conversation, 1 message" in out
    assert "\n  trip: " in out


def test_doctor_reports_a_store_that_cannot_be_opened(run, home):
    (home / "junk.db").write_text("no database")
    code, out, _ = run("doctor", "--store", "junk.db")
    assert code == 1
    assert "Store: unusable (sqlite:///junk.db)." in out
    assert "junk.db is not a SQLite database" in out


def test_doctor_creates_no_store(run, home):
    code, out, _ = run("doctor", "--store", "none.db")
    assert (code, list(home.iterdir())) == (0, [])
    assert "Store: not created yet (sqlite:///none.db)." in out


def test_doctor_lists_recordings_and_keys_but_shows_no_key(run, home, monkeypatch):
    folder = home / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "one.jsonl").write_text("{}\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    _, out, _ = run("doctor")
    assert "Keys in the environment: anthropic." in out
    assert "secret" not in out
    assert ["Claude", "Code", "1", str(folder.parent)] in [line.split() for line in out.splitlines()]
    facts = json.loads(run("doctor", "--json")[1])
    assert facts["keys"] == ["anthropic"]
    assert facts["store"] == {
        "url": "memory:",
        "state": "in memory",
        "conversations": 0,
        "messages": 0,
        "findings": [],
    }
    assert facts["clients"][0] == {"name": "Claude Code", "folder": str(folder.parent), "sessions": 1}


def test_doctor_names_missing_packages_with_their_extra(run, monkeypatch):
    version = command._version
    monkeypatch.setattr(command, "_version", lambda package: "" if package == "regex" else version(package))
    _, out, _ = run("doctor")
    assert 'Missing: regex. To add that: pip install "foveate[expand]"' in out
    extras = json.loads(run("doctor", "--json")[1])["extras"]
    assert "expand" in [extra["name"] for extra in extras if extra["missing"]]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [("python_version >= '3.12' and ", None), ("python_version < '3.2' and ", False), ("", True)],
)
def test_conditions_on_the_version_of_python_count(condition, holds):
    import sys

    assert command._applies(condition) is (sys.version_info >= (3, 12) if holds is None else holds)
