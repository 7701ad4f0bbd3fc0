"""Sessions in the data folder of OpenCode: one file for each message and part, or a SQLite database.

Older versions write `storage/session/PROJECT/SESSION.json`, `storage/message/SESSION/MESSAGE.json` and
`storage/part/MESSAGE/PART.json`; newer ones the tables `session`, `message` and `part` of `opencode.db`, whose columns
`data` hold the same objects without their ids. Both become the document that `opencode export` writes. Source:
`packages/opencode/src/storage` and `session/session.sql.ts` of anomalyco/opencode, 2026. Nothing is written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...errors import BadTranscript
from .recording import as_object

__all__ = ["StoredSession", "choose", "document_of", "is_database", "is_stored", "sessions_in", "stored_document"]


class StoredSession(NamedTuple):
    """One session of a database, without its content."""

    name: str
    time: int
    """The last change in milliseconds since 1970."""
    size: int
    """Bytes of its messages and parts."""
    folder: str
    """The folder in which it began."""


def is_database(path: str) -> bool:
    """Return whether this is a database of OpenCode."""
    try:
        if not Path(path).is_file():  # Opening a pipe would wait for its writer.
            return False
        with open(path, "rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                return False
        with closing(_connect(path)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            columns = {row[1] for row in database.execute("PRAGMA table_info(part)")}
    except (OSError, ValueError, sqlite3.Error):
        return False
    return {"session", "message", "part"} <= tables and {"message_id", "data"} <= columns


def sessions_in(path: str) -> list[StoredSession]:
    """Return the sessions of a database that have messages, without those of sub-agents, newest first.

    Raises BadTranscript if the database cannot be read.
    """
    query = """
        SELECT s.id, s.time_updated, s.directory,
               (SELECT coalesce(sum(length(p.data)), 0) FROM part p WHERE p.session_id = s.id)
        FROM session s WHERE s.parent_id IS NULL AND EXISTS (SELECT 1 FROM message m WHERE m.session_id = s.id)
        ORDER BY s.time_updated DESC, s.id
    """
    return [
        StoredSession(str(name), int(time or 0), int(size), str(folder or ""))
        for name, time, folder, size in _rows(path, query)
    ]


def choose(path: str, wanted: str) -> list[str]:
    """Return the names of the sessions to read: all, or the one with this name or number (1 is the newest)."""
    names = [session.name for session in sessions_in(path)]
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return [names[int(wanted) - 1]]
    if wanted and not _rows(path, "SELECT id FROM session WHERE id = ?", wanted):
        problem = "there is no such session."
        raise BadTranscript(f"{path}#{wanted}", 0, problem, f"Name one of 1 to {len(names):,}, or its id.")
    if not names and not wanted:
        raise BadTranscript(path, 0, "it holds no session with messages.")
    return [wanted] if wanted else names


def document_of(path: str, name: str) -> dict[str, Any]:
    """Return a session of a database as OpenCode exports it. Raises BadTranscript if it cannot be read."""
    info: dict[str, Any] = {"id": name}
    for (revert,) in _rows(path, "SELECT revert FROM session WHERE id = ?", name):
        info["revert"] = _decoded(revert)
    parts: dict[str, list[dict[str, Any]]] = {}
    for message, data in _rows(path, "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY id", name):
        parts.setdefault(message, []).append(_decoded(data))
    rows = _rows(path, "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", name)
    messages = [{"info": _decoded(data) | {"id": key}, "parts": parts.get(key, [])} for key, data in rows]
    return {"info": info, "messages": messages}


def is_stored(document: Any) -> bool:
    """Return whether this is the head of a session whose messages are in files of their own."""
    return (
        isinstance(document, dict)
        and str(document.get("id", "")).startswith("ses_")
        and "projectID" in document
        and "messages" not in document
    )


def stored_document(path: Path, info: dict[str, Any]) -> dict[str, Any]:
    """Return the session whose head is the file `path`, with its messages. Unreadable messages are left out."""
    storage, name = path.parent.parent.parent, str(info.get("id", ""))
    heads = [(head, _file(head)) for head in sorted((storage / "message" / name).glob("*.json"))]
    messages = [
        {"info": found | {"id": head.stem}, "parts": list(_parts(storage / "part" / head.stem))}
        for head, found in heads
        if found
    ]
    return {"info": info, "messages": sorted(messages, key=_created)}


def _created(message: dict[str, Any]) -> tuple[float, str]:
    info = message["info"]
    time = as_object(info.get("time")).get("created")
    return (time if isinstance(time, int | float) else 0.0), str(info.get("id"))


def _parts(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("*.json")):
        if part := _file(file):
            yield part


def _file(path: Path) -> dict[str, Any]:
    try:
        return as_object(msgspec.json.decode(path.read_bytes()))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _decoded(data: object) -> dict[str, Any]:
    try:
        return as_object(msgspec.json.decode(data)) if isinstance(data, str | bytes) else {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _rows(path: str, query: str, *values: str) -> list[tuple[Any, ...]]:
    try:
        with closing(_connect(path)) as database:
            return database.execute(query, values).fetchall()
    except sqlite3.Error as error:
        raise BadTranscript(path, 0, f"SQLite cannot read it ({error}).") from error


def _connect(path: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
