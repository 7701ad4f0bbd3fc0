"""The least that a program holds: a list."""

from __future__ import annotations

from typing import Any

from peer import parts_of


class Library:
    NAME = "a list"
    NEEDS = ()
    USES = "`append`, and the list itself"
    LACKS = "stores nothing, does not shrink"
    IS_LIMIT = True
    KEEPS = False

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._messages: list[dict[str, Any]] = []

    def convert(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return messages

    def append(self, messages: list[dict[str, Any]]) -> None:
        self._messages += messages

    def request(self) -> list[dict[str, Any]]:
        return self._messages

    def calls(self, request: list[dict[str, Any]]) -> tuple[int, list[str], list[str]]:
        return parts_of(request)

    def close(self) -> None:
        pass
