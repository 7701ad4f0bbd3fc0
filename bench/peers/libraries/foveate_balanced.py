"""foveate with its default policy."""

from __future__ import annotations

from typing import Any

from peer import parts_of

from foveate import Message, open_conversation
from foveate.formats import get_format


class Library:
    NAME = "foveate"
    NEEDS = ("foveate",)
    USES = "a conversation with the default policy, `prompt(shared=True)`"
    LACKS = ""
    POLICY = "balanced"

    def __init__(self, folder: str, window: int, newest: int) -> None:
        store = f"sqlite:///{folder}/foveate.db"
        self._chat = open_conversation("bench", store=store, format="openai", window=window, policy=self.POLICY)

    def convert(self, messages: list[dict[str, Any]]) -> list[Message]:
        format = get_format("openai")
        return [parsed for message in messages for parsed in format.parse(message)]

    def append(self, messages: list[Message]) -> None:
        if len(messages) == 1 and messages[0].role == "assistant":
            self._chat.record(messages[0])
        else:
            self._chat.append(messages)

    def request(self) -> dict[str, Any]:
        return self._chat.prompt(shared=True)

    def calls(self, request: dict[str, Any]) -> tuple[int, list[str], list[str]]:
        return parts_of(request["messages"])

    def close(self) -> None:
        self._chat.close()
