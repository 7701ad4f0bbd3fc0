"""LlamaIndex: its memory with a limit of tokens, in SQLite."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory


class Library:
    NAME = "LlamaIndex"
    NEEDS = ("llama-index-core", "aiosqlite")
    USES = "`Memory` with a limit of tokens, `sqlite+aiosqlite`"
    LACKS = "drops the oldest messages"

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._loop = asyncio.Runner()
        url = f"sqlite+aiosqlite:///{folder}/llamaindex.db"
        self._memory = Memory.from_defaults(session_id="bench", token_limit=window, async_database_uri=url)

    def convert(self, messages: list[dict[str, Any]]) -> list[ChatMessage]:
        return [
            ChatMessage(
                role=message["role"],
                content=message.get("content"),
                additional_kwargs={key: message[key] for key in ("tool_calls", "tool_call_id") if key in message},
            )
            for message in messages
        ]

    def append(self, messages: list[ChatMessage]) -> None:
        self._loop.run(self._memory.aput_messages(messages))

    def request(self) -> list[ChatMessage]:
        return self._loop.run(self._memory.aget())

    def calls(self, request: list[ChatMessage]) -> tuple[int, list[str], list[str]]:
        extras = [message.additional_kwargs for message in request]
        calls = [call["id"] for extra in extras for call in extra.get("tool_calls") or ()]
        return len(request), calls, [extra["tool_call_id"] for extra in extras if "tool_call_id" in extra]

    def close(self) -> None:
        self._loop.close()
