"""Pydantic AI: the table of its chat example, and the newest messages as a processor of the history."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)


class Library:
    NAME = "Pydantic AI"
    NEEDS = ("pydantic-ai-slim",)
    USES = "`ModelMessagesTypeAdapter` in the table of its chat example, the newest messages"
    LACKS = "no store on disk of its own; counts messages, not tokens; may part a call from its result"

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._newest, self._names = newest, dict[str, str]()
        self._table = sqlite3.connect(f"{folder}/pydantic.db", isolation_level=None)
        self._table.execute("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, message_list TEXT)")
        self._messages: list[ModelMessage] = []
        for (body,) in self._table.execute("SELECT message_list FROM messages ORDER BY id"):
            self._messages += ModelMessagesTypeAdapter.validate_json(body)

    def convert(self, messages: list[dict[str, Any]]) -> list[ModelMessage]:
        return [self._converted(message) for message in messages]

    def _converted(self, message: dict[str, Any]) -> ModelMessage:
        text = message.get("content") or ""
        if message["role"] == "user":
            return ModelRequest(parts=[UserPromptPart(text)])
        if message["role"] == "tool":
            call = message["tool_call_id"]
            return ModelRequest(parts=[ToolReturnPart(self._names.get(call, "tool"), text, call)])
        calls = message.get("tool_calls") or ()
        self._names.update({call["id"]: call["function"]["name"] for call in calls})
        parts = [
            ToolCallPart(call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"])
            for call in calls
        ]
        return ModelResponse(parts=[*([TextPart(text)] if text else []), *parts])

    def append(self, messages: list[ModelMessage]) -> None:
        body = ModelMessagesTypeAdapter.dump_json(messages)
        self._table.execute("INSERT INTO messages (message_list) VALUES (?)", (body,))
        self._messages += messages

    def request(self) -> list[ModelMessage]:
        return self._messages[-self._newest :]

    def calls(self, request: list[ModelMessage]) -> tuple[int, list[str], list[str]]:
        parts = [part for message in request for part in message.parts]
        calls = [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]
        return len(request), calls, [part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)]

    def close(self) -> None:
        self._table.close()
