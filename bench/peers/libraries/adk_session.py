"""Google's ADK: its SQLite sessions, and the contents that its flow sends to a model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from google.adk.events import Event
from google.adk.flows.llm_flows.context import _contents
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types


class Library:
    NAME = "Google ADK"
    NEEDS = ("google-adk", "aiosqlite")
    USES = "`SqliteSessionService`, the contents of a request"
    LACKS = "does not shrink without a model"

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._loop, self._names = asyncio.Runner(), dict[str, str]()
        self._service = SqliteSessionService(f"{folder}/adk.db")
        named = {"app_name": "bench", "user_id": "bench", "session_id": "bench"}
        found = self._loop.run(self._service.get_session(**named))
        self._session = found or self._loop.run(self._service.create_session(**named))

    def convert(self, messages: list[dict[str, Any]]) -> list[Event]:
        return [self._converted(message) for message in messages]

    def _converted(self, message: dict[str, Any]) -> Event:
        text, call = message.get("content") or "", message.get("tool_call_id")
        if call:
            answer = types.FunctionResponse(id=call, name=self._names.get(call, "tool"), response={"result": text})
            return self._event("bench", "user", [types.Part(function_response=answer)])
        if message["role"] == "user":
            return self._event("user", "user", [types.Part(text=text)])
        parts = [types.Part(text=text)] if text else []
        for made in message.get("tool_calls") or ():
            function = made["function"]
            self._names[made["id"]] = function["name"]
            arguments = json.loads(function["arguments"])
            called = types.FunctionCall(id=made["id"], name=function["name"], args=arguments)
            parts.append(types.Part(function_call=called))
        return self._event("bench", "model", parts)

    def _event(self, author: str, role: str, parts: list[types.Part]) -> Event:
        return Event(author=author, invocation_id="run", content=types.Content(role=role, parts=parts))

    def append(self, messages: list[Event]) -> None:
        for event in messages:
            self._loop.run(self._service.append_event(self._session, event))

    def request(self) -> list[types.Content]:
        return _contents._get_contents(None, self._session.events, "bench", preserve_function_call_ids=True)

    def calls(self, request: list[types.Content]) -> tuple[int, list[str], list[str]]:
        parts = [part for content in request for part in content.parts or ()]
        calls = [str(part.function_call.id) for part in parts if part.function_call]
        return len(request), calls, [str(part.function_response.id) for part in parts if part.function_response]

    def close(self) -> None:
        self._loop.run(self._service.close())
        self._loop.close()
