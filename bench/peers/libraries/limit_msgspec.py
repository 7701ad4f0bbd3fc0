"""The same files and requests as `limit_json.py`, written and read by msgspec."""

from __future__ import annotations

from typing import Any

import msgspec
from libraries.limit_json import Library as Json


class Library(Json):
    NAME = "msgspec"
    NEEDS = ("msgspec",)
    USES = "a line a message, flushed; the bytes of each request"
    LACKS = "does not wait for the disk, does not shrink"
    IS_LIMIT = True

    def dumps(self, value: object) -> bytes:
        return msgspec.json.encode(value)

    def loads(self, line: bytes) -> Any:
        return msgspec.json.decode(line)
