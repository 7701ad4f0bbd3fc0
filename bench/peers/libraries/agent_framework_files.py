"""Microsoft's Agent Framework: its history in files, and its compaction by the context window."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import Content, ContextWindowCompactionStrategy, FileHistoryProvider, Message, apply_compaction


class Library:
    NAME = "Agent Framework"
    NEEDS = ("agent-framework-core", "msgspec")
    USES = "`FileHistoryProvider` (JSON Lines), `ContextWindowCompactionStrategy`"
    LACKS = "drops the oldest groups; a save reads the whole file, and does not wait for the disk"

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._loop = asyncio.Runner()
        self._history = FileHistoryProvider(folder)
        reserve = min(16_384, window // 8)
        self._strategy = ContextWindowCompactionStrategy(max_context_window_tokens=window, max_output_tokens=reserve)
        self._messages: list[Message] = self._loop.run(self._history.get_messages("bench"))

    def convert(self, messages: list[dict[str, Any]]) -> list[Message]:
        return [self._converted(message) for message in messages]

    def _converted(self, message: dict[str, Any]) -> Message:
        text = message.get("content") or ""
        if message["role"] == "tool":
            return Message("tool", [Content.from_function_result(message["tool_call_id"], result=text)])
        calls = [
            Content.from_function_call(call["id"], call["function"]["name"], arguments=call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ]
        return Message(message["role"], [*([Content.from_text(text)] if text else []), *calls])

    def append(self, messages: list[Message]) -> None:
        self._loop.run(self._history.save_messages("bench", messages))
        self._messages += messages

    def request(self) -> list[Message]:
        return self._loop.run(apply_compaction(self._messages, strategy=self._strategy))

    def calls(self, request: list[Message]) -> tuple[int, list[str], list[str]]:
        contents = [content for message in request for content in message.contents]
        calls = [str(content.call_id) for content in contents if content.type == "function_call"]
        return len(request), calls, [str(content.call_id) for content in contents if content.type == "function_result"]

    def close(self) -> None:
        self._loop.close()
