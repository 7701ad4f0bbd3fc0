"""Agno: its sessions in SQLite, and the newest messages of a session."""

from __future__ import annotations

from typing import Any

from agno.db.base import SessionType
from agno.db.sqlite import SqliteDb
from agno.models.message import Message
from agno.run.agent import RunOutput
from agno.run.base import RunStatus
from agno.session import AgentSession


class Library:
    NAME = "Agno"
    NEEDS = ("agno", "sqlalchemy", "greenlet")
    USES = "`SqliteDb`, a run for each call and its result, `num_history_messages`"
    LACKS = "counts messages, not tokens; drops the oldest; saves a run at its end"

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._newest = newest
        self._db = SqliteDb(db_file=f"{folder}/agno.db")
        found = self._db.get_session("bench", SessionType.AGENT)
        self._session: Any = found or AgentSession(session_id="bench", agent_id="bench", session_data={}, runs=[])
        if not found:
            self._db.upsert_session(self._session)
        self._open: list[Message] = []

    def convert(self, messages: list[dict[str, Any]]) -> list[Message]:
        return [Message(**message) for message in messages]

    def append(self, messages: list[Message]) -> None:
        for message in messages:
            self._open.append(message)
            if message.role == "tool":
                self._save()

    def _save(self) -> None:
        number, messages, self._open = len(self._session.runs), self._open, []
        names = {"run_id": f"run-{number}", "agent_id": "bench", "session_id": "bench"}
        run = RunOutput(**names, messages=messages, status=RunStatus.completed)
        self._session.upsert_run(run)
        self._db.upsert_run(run, "bench", run_index=number)
        self._db.upsert_session(self._session)

    def request(self) -> list[Message]:
        return [*self._session.get_messages(limit=self._newest), *self._open]

    def calls(self, request: list[Message]) -> tuple[int, list[str], list[str]]:
        calls = [call["id"] for message in request for call in message.tool_calls or ()]
        return len(request), calls, [str(message.tool_call_id) for message in request if message.role == "tool"]

    def close(self) -> None:
        if self._open:
            self._save()
        self._db.db_engine.dispose()
