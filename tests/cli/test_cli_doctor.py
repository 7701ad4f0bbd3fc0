"""`foveate doctor`: what is installed, the state of the store, and the recordings of agent programs."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing

import pytest

from foveate import open_conversation
from foveate.cli import doctor as command
from foveate.cli.chat import options
from foveate.stores.sql.migrate import migrations


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


# ---------------------------------------------------------------------------------------------------------- data folder


@pytest.fixture
def data(home):
    """Create the data folder with a store of one conversation, and return the file."""
    folder = home / ".local" / "share" / "foveate"
    folder.mkdir(parents=True)
    with open_conversation("trip", store=f"sqlite:///{folder}/chats.db", window=8_000) as chat:
        chat.append([{"role": "user", "content": "Where is the harbour?"}])
    return folder / "chats.db"


@pytest.fixture(autouse=True)
def on_linux(monkeypatch):
    monkeypatch.setattr(options.sys, "platform", "linux")


def test_doctor_reports_the_data_folder_and_its_store(run, data):
    before = data.read_bytes()
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    assert f"\nData folder: writable ({data.parent}).\n" in out
    assert f"\nStore in it: writable, schema {migrations()[-1].version}, 1 conversation (chats.db).\n" in out
    assert data.read_bytes() == before


def test_doctor_creates_no_data_folder(run, home):
    code, out, _ = run("doctor")
    assert (code, list(home.iterdir())) == (0, [])
    assert f"\nData folder: not created yet ({home}/.local/share/foveate).\n" in out
    assert "Store in it" not in out


def test_doctor_reports_a_data_folder_without_a_store(run, data):
    data.unlink()
    code, out, _ = run("doctor")
    assert (code, list(data.parent.iterdir())) == (0, [])
    assert "\nStore in it: not created yet (chats.db).\n" in out


def test_doctor_names_an_older_schema_and_leaves_it(run, data):
    with closing(sqlite3.connect(data)) as connection, connection:
        connection.execute("DELETE FROM migration WHERE version > 3")
    code, out, _ = run("doctor")
    assert code == 0
    assert "\nStore in it: writable, schema 3, which is upgraded when it is written (chats.db).\n" in out
    with closing(sqlite3.connect(data)) as connection:
        assert connection.execute("SELECT max(version) FROM migration").fetchone() == (3,)


@pytest.mark.parametrize("content", [b"no database", b""])
def test_doctor_reports_a_store_in_the_data_folder_that_is_unusable(run, data, content):
    data.write_bytes(content)
    code, out, _ = run("doctor")
    assert code == 1
    assert "\nStore in it: unusable (chats.db).\n  " in out
    assert data.read_bytes() == content


def test_doctor_reports_what_this_user_may_not_write(run, data, monkeypatch):
    """For a superuser all files are writable, so the answer is replaced."""
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: mode != os.W_OK and access(path, mode, **more))
    code, out, _ = run("doctor")
    assert code == 0
    assert f"\nData folder: read-only ({data.parent}).\n" in out
    assert "\nStore in it: read-only, schema " in out


def test_doctor_reports_a_data_folder_that_cannot_be_created(run, home, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode, **_: not mode & os.W_OK)
    code, out, _ = run("doctor")
    assert (code, list(home.iterdir())) == (0, [])
    assert f"\nData folder: missing, and cannot be created ({home}/.local/share/foveate).\n" in out
    assert "Store in it" not in out


def test_doctor_reports_a_data_folder_that_is_a_file(run, home):
    (home / ".local" / "share").mkdir(parents=True)
    (home / ".local" / "share" / "foveate").write_text("a file")
    code, out, _ = run("doctor")
    assert code == 1
    assert "\nData folder: unusable (" in out
