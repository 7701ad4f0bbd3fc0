"""A file with a line of JSON for each message, and the whole list as JSON for each request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from peer import parts_of


class Library:
    NAME = "json"
    NEEDS = ()
    USES = "a line a message, flushed; the bytes of each request"
    LACKS = "does not wait for the disk, does not shrink"
    IS_LIMIT = True

    def __init__(self, folder: str, window: int, newest: int) -> None:
        path = Path(folder, "messages.jsonl")
        self._messages = [self.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        self._file = path.open("ab")

    def dumps(self, value: object) -> bytes:
        return json.dumps(value, ensure_ascii=False).encode()

    def loads(self, line: bytes) -> Any:
        return json.loads(line)

    def convert(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return messages

    def append(self, messages: list[dict[str, Any]]) -> None:
        self._messages += messages
        self._file.write(b"".join([self.dumps(message) + b"\n" for message in messages]))
        self._file.flush()

    def request(self) -> bytes:
        return self.dumps({"messages": self._messages})

    def calls(self, request: bytes) -> tuple[int, list[str], list[str]]:
        return parts_of(self.loads(request)["messages"])

    def close(self) -> None:
        self._file.close()
