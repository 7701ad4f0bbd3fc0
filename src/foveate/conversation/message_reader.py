"""Reads messages in any form that programs append: values, wire messages, JSON, and lists of these."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ..core.messages import Message, Part, ToolResult, is_author
from ..core.metadata import is_metadata
from ..core.stored_form import stored_message
from ..core.wire import plain_message
from ..errors import BadMessage
from ..ports import Format
from . import validate
from .append import NO_OWN_FACTS, OwnFacts
from .list_items import ReadMessage, error_in_list, item_ranges

__all__ = ["MessageReader", "check_results"]

_JSON = msgspec.json.Decoder()
_DEPTH = 2
"""Lists in lists that are read as messages: tools often return a list each."""


class MessageReader:
    """Reads the messages of one conversation."""

    def __init__(self, format: Format) -> None:
        self._format = format

    def read(self, value: object, depth: int = 0) -> list[ReadMessage]:
        """Return the messages in a value, each with the `metadata` of its wire message.

        No provider takes it as a key of a message.
        """
        if isinstance(value, Message):
            return [ReadMessage(stored_message(value))]
        if isinstance(value, Part):
            maker = "tool_result(call_id, text)" if isinstance(value, ToolResult) else "user(text, media)"
            kind = type(value).__name__
            raise BadMessage(f"{kind} is a part of a message, not a message. Pass one, such as foveate.{maker}.")
        if isinstance(value, bytes):
            value = _decoded_json(value)
        if isinstance(value, list | tuple) and not _is_blocks(value):
            if depth > _DEPTH:
                raise BadMessage("The messages are lists in lists in lists. Pass one list of messages.")
            if _is_pair(value):
                raise BadMessage(
                    f"A pair of the author {value[0]!r} and a text is no message. Pass an object with a role, such as "
                    '{"role": "user", "content": "Hello"}.'
                )
            return list(self._read_list(value, depth))
        metadata = ""
        if isinstance(value, Mapping) and is_metadata(value.get("metadata")):
            metadata = validate.metadata(value["metadata"])
            value = {key: value[key] for key in value if key != "metadata"}
        own_facts = OwnFacts(metadata) if metadata else NO_OWN_FACTS
        return [ReadMessage(plain_message(message), own_facts) for message in self._format.parse(value)]

    def _read_list(self, values: Sequence[object], depth: int) -> Iterator[ReadMessage]:
        items = self._format.group(values)
        for item, places in zip(items, item_ranges(values, items), strict=True):
            try:
                yield from self.read(item, depth + 1)
            except BadMessage as error:
                raise error_in_list(error, places.start) from error


def _decoded_json(value: bytes) -> object:
    """Return the value of a message that is JSON."""
    try:
        return _JSON.decode(value)  # In a third of the time.
    except msgspec.MsgspecError:  # It refuses half of a surrogate pair, and numbers that are not finite.
        pass
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"A message in bytes is no JSON: {error}. It begins with {value[:60]!r}.") from None


def _is_blocks(value: Sequence[object]) -> bool:
    """Return whether a list is the blocks of one message (tool results), not a list of messages."""
    return bool(value) and all(
        isinstance(item, Mapping) and "role" not in item and "type" in item and not is_author(item["type"])
        for item in value
    )


def _is_pair(value: Sequence[object]) -> bool:
    """Return whether this is an author and a text, as some libraries write a message, not two texts of the user."""
    return len(value) == 2 and is_author(value[0]) and isinstance(value[1], str)


def check_results(messages: Sequence[Message]) -> None:
    """Raise BadMessage if a result of a tool is not alone in a message of its role."""
    for message in messages:
        if message.role == "tool" and (len(message.parts) != 1 or message.result is None):
            raise BadMessage("A message of role tool holds exactly one ToolResult; append one message per result.")
        if message.role != "tool" and ToolResult in map(type, message.parts):
            raise BadMessage(f"A ToolResult belongs in a message of role tool, not {message.role}.")
