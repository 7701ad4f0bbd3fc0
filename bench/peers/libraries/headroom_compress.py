"""headroom: its compression of a list of messages."""

from __future__ import annotations

from typing import Any

from headroom import compress
from peer import parts_of


class Library:
    NAME = "headroom"
    NEEDS = ("headroom-ai",)
    USES = "`compress` of the whole list before each call"
    LACKS = "stores nothing; does not keep to the window; looks at the whole list each time"
    KEEPS = False

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._window = window
        self._messages: list[dict[str, Any]] = []

    def convert(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return messages

    def append(self, messages: list[dict[str, Any]]) -> None:
        self._messages += messages

    def request(self) -> list[dict[str, Any]]:
        return compress(self._messages, model_limit=self._window).messages

    def calls(self, request: list[dict[str, Any]]) -> tuple[int, list[str], list[str]]:
        return parts_of(request)

    def close(self) -> None:
        pass
