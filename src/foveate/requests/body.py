"""The body of a request, read once for all who look at it."""

from __future__ import annotations

from functools import cached_property

import msgspec
from msgspec import Raw

from .apis import Api

__all__ = ["RequestBody"]

_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_LIST = msgspec.json.Decoder(list[Raw])


class RequestBody:
    """A JSON object, whose values are decoded only by those who need them."""

    def __init__(self, api: Api, content: bytes) -> None:
        """Raises MsgspecError (a ValueError) if `content` is no JSON object."""
        self.content = content
        """The bytes as they came."""
        self.fields: dict[str, Raw] = _FIELDS.decode(content)
        """The values by key, not decoded."""
        self._messages = api.messages

    @cached_property
    def items(self) -> list[Raw] | None:
        """The items of the list of messages, not decoded; None if a text stands in its place.

        Raises KeyError if there are no messages, and MsgspecError if they are neither a list nor a text.
        """
        raw = self.fields[self._messages]
        return None if bytes(memoryview(raw)[:1]) == b'"' else _LIST.decode(raw)
