"""The sessions of agent programs on this computer."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from foveate.replay.recordings import read_recording
from foveate.replay.recordings.session_folders import (
    CLIENTS,
    Client,
    client_sessions,
    project_of,
    session_files,
    session_folder,
)

FILES: dict[Client, tuple[str, dict[str, Any], str]] = {
    "claude-code": (".claude/projects/-me-app/5f0c.jsonl", {"cwd": "/me/app"}, "/me/app"),
    "codex": (".codex/sessions/2026/rollout-1.jsonl", {"payload": {"cwd": "/me/app"}}, "/me/app"),
    "opencode": (
        ".local/share/opencode/storage/session/p/ses_1.json",
        {"id": "ses_1", "projectID": "p", "directory": "/me/app"},
        "/me/app",
    ),
    "pi": (".pi/agent/sessions/--me-app--/1.jsonl", {"type": "session", "cwd": "/me/app"}, "/me/app"),
    "gemini": (".gemini/tmp/app/chats/session-1.jsonl", {"sessionId": "s", "projectHash": "h"}, "app"),
    "copilot": (
        ".copilot/session-state/s1/events.jsonl",
        {"type": "session.start", "data": {"context": {"cwd": "/me/app"}}},
        "/me/app",
    ),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for age, (name, line, _) in enumerate(FILES.values()):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(line) + "\n")
        os.utime(path, (1_000 + age, 1_000 + age))
    return tmp_path


def test_the_sessions_of_every_client_are_found_newest_first(home: Path) -> None:
    assert set(FILES) == set(CLIENTS)
    found = client_sessions({}, home)
    assert [(client, file.path) for client, file in found] == [
        (client, home / FILES[client][0]) for client in reversed(FILES)
    ]
    assert [project_of(file.path, client) for client, file in found] == [FILES[client][2] for client, _ in found]


@pytest.mark.parametrize(
    ("client", "variable", "below"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "projects"),
        ("codex", "CODEX_HOME", "sessions"),
        ("opencode", "XDG_DATA_HOME", "opencode"),
        ("pi", "PI_CODING_AGENT_DIR", "sessions"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/tmp"),
        ("copilot", "COPILOT_HOME", "session-state"),
    ],
)
def test_a_variable_of_the_client_moves_its_folder(client: Client, variable: str, below: str) -> None:
    assert session_folder(client, {variable: "/elsewhere"}, Path("/home/me")) == Path("/elsewhere") / below
    assert session_folder(client, {}, Path("/home/me")).is_relative_to("/home/me")


def test_files_of_sub_agents_and_hashed_projects_have_no_entry(home: Path) -> None:
    chats = home / ".gemini/tmp" / ("0" * 64) / "chats"
    (chats / "s").mkdir(parents=True)
    (chats / "s" / "a.jsonl").write_text("{}\n")
    (chats / "session-2.json").write_text("{}\n")
    (home / ".claude/projects/-me-app/agent-1.jsonl").write_text("{}\n")
    names = {file.path.name for file in session_files(home / ".gemini/tmp", "gemini")}
    assert names == {"session-1.jsonl", "session-2.json"}
    assert project_of(chats / "session-2.json", "gemini") == ""
    assert len(session_files(home / ".claude/projects")) == 1


def test_sessions_in_the_database_of_opencode_are_found(home: Path) -> None:
    folder = home / ".local/share/opencode"
    with closing(sqlite3.connect(folder / "opencode.db")) as database, database:
        database.execute("CREATE TABLE session (id, parent_id, directory, revert, time_updated)")
        database.execute("CREATE TABLE message (id, session_id, time_created, data)")
        database.execute("CREATE TABLE part (id, message_id, session_id, data)")
        for name, parent in (("ses_1", None), ("ses_2", None), ("ses_3", "ses_2")):
            database.execute("INSERT INTO session VALUES (?, ?, '/me/shop', NULL, 7)", (name, parent))
            data = json.dumps({"role": "user"})
            database.execute("INSERT INTO message VALUES (?, ?, 1, ?)", (f"m{name}", name, data))
            part = json.dumps({"type": "text", "text": "Hi."})
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (f"p{name}", f"m{name}", name, part))
    found = session_files(folder, "opencode")
    assert [file.path.name for file in found] == ["opencode.db#ses_1", "opencode.db#ses_2"]
    assert (found[0].time, project_of(found[0].path, "opencode")) == (7_000_000, "/me/shop")
    assert read_recording(found[0].path).messages[0].message.text == "Hi."
