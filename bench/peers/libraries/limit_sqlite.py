"""A table with the JSON of each message: the least that a durable store does."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from peer import parts_of


class Library:
    NAME = "sqlite3"
    NEEDS = ()
    USES = "an INSERT a message (WAL, `synchronous=full`), and the list"
    LACKS = "does not shrink"
    IS_LIMIT = True

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._table = sqlite3.connect(f"{folder}/messages.db", isolation_level=None)
        self._table.executescript(
            "PRAGMA journal_mode = wal; PRAGMA synchronous = full;"
            "CREATE TABLE IF NOT EXISTS message (number INTEGER PRIMARY KEY, body TEXT)"
        )
        rows = self._table.execute("SELECT body FROM message ORDER BY number")
        self._messages = [json.loads(body) for (body,) in rows]

    def convert(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return messages

    def append(self, messages: list[dict[str, Any]]) -> None:
        self._messages += messages
        self._table.execute("BEGIN")
        rows = [(json.dumps(message, ensure_ascii=False),) for message in messages]
        self._table.executemany("INSERT INTO message (body) VALUES (?)", rows)
        self._table.execute("COMMIT")

    def request(self) -> list[dict[str, Any]]:
        return self._messages

    def calls(self, request: list[dict[str, Any]]) -> tuple[int, list[str], list[str]]:
        return parts_of(request)

    def close(self) -> None:
        self._table.close()
