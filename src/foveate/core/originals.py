"""Originals: the outline of a message whose content a view does not show, and a way to read the rest.

An open conversation would otherwise hold every result that it ever shrank. The outline has the same parts, with `…` in
place of the texts, arguments and media that edits replace or hide. The edits show the same content on the outline as on
the message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from .edits import Path
from .messages import Content, Media, Message, Part, Text, ToolCall, ToolResult
from .results import headline_of, is_action_result
from .stamps import Stamp

__all__ = ["Original", "ReadOriginal", "outline_of"]

_SAVED_MIN = 1_024
"""Characters that an outline leaves out at least."""
_OMITTED = "…"
"""The text of a part that an outline leaves out."""


class ReadOriginal(Protocol):
    """Reads messages of one conversation."""

    def __call__(self, position: int, id: str, /) -> Message:
        """Return the message at a position; an empty message if it is erased. Raises StoreError."""
        ...


class Original:
    """A message of which only the outline is in memory."""

    __slots__ = ("_read", "outline")

    def __init__(self, outline: Message, read: Callable[[], Message]) -> None:
        self._read = read
        self.outline = outline
        """The message without the texts and media that the view does not show."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Original) and self.outline == other.outline

    def __hash__(self) -> int:
        return hash(self.outline)

    def message(self) -> Message:
        """Return the whole message. Reads the store. Raises StoreError."""
        return self._read()

    def converted(self, form: Callable[[Message], Message]) -> Original:
        """Return the same original in another form."""
        read = self._read
        return Original(form(self.outline), lambda: form(read()))


def outline_of(message: Message, stamp: Stamp, hidden: Collection[Path]) -> Message | None:
    """Return the message without the texts and media at these paths; None if that saves less than 1,024 characters.

    The user's own words stay: they decide which message is the newest input. The headline of an action's result stays:
    it says whether the action failed.
    """
    saved = 0
    has_headline = is_action_result(message, stamp)

    def emptied(part: Part, path: Path) -> Part:
        nonlocal saved
        match part:
            case Text(text=text):
                head = headline_of(message) if has_headline and path == (0,) else ""
                saved += len(text) - len(head)
                return Text(head + _OMITTED if text.strip() else "")
            case Media():
                saved += len(part.data)
                return Media(part.mime, part.source, "", part.name)
            case ToolCall():
                saved += len(part.arguments)
                return ToolCall(part.call_id, part.name, "{}", part.extra)
            case ToolResult():
                content = tuple(_content(emptied(inner, (*path, i)), inner) for i, inner in enumerate(part.content))
                return ToolResult(part.call_id, content, part.state, part.name, part.extra)
        return part

    def outlined(part: Part, path: Path) -> Part:
        if stamp.origin == "user" and not stamp.is_added(path):
            return part
        if () in hidden or path in hidden:
            return emptied(part, path)
        if isinstance(part, ToolResult):
            content = tuple(_content(outlined(inner, (*path, i)), inner) for i, inner in enumerate(part.content))
            return ToolResult(part.call_id, content, part.state, part.name, part.extra)
        return part

    parts = tuple(outlined(part, (index,)) for index, part in enumerate(message.parts))
    return Message(message.role, parts, message.name, message.extra) if saved >= _SAVED_MIN else None


def _content(part: Part, old: Content) -> Content:
    return part if isinstance(part, Text | Media) else old
