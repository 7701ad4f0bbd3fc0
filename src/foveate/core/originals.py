"""Originals: the outline of a message whose content a view does not show, and a way to read the rest.

An open conversation would otherwise hold every result that it ever shrank. The outline has the same parts, with `…` in
place of the texts, arguments and media that edits replace or hide. The edits show the same content on the outline as on
the message. If an original is released, the store keeps such an outline too, with `[released]` in these places.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from .edits import Path
from .messages import Content, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from .results import headline_of, is_action_result
from .stamps import Stamp

__all__ = ["RELEASED", "Original", "ReadOriginal", "content_paths", "outline_of", "released_form"]

_SAVED_MIN = 1_024
"""Characters that an outline leaves out at least."""
_OMITTED = "…"
"""The text of a part that an outline leaves out."""
RELEASED = "[released]"
"""The text in place of content that left the store."""


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
        self.outline: Message = outline
        """The message without the texts and media that the view does not show."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Original) and self.outline == other.outline

    def __hash__(self) -> int:
        return hash(self.outline)

    def __reduce__(self) -> tuple[Callable[[Message], Message], tuple[Message]]:
        """Pickle the whole message, which reads the store: another process may not have the store."""
        return _unpickled, (self.message(),)

    def __deepcopy__(self, memo: object) -> Original:
        return self

    def message(self) -> Message:
        """Return the whole message. Reads the store. Raises StoreError."""
        return self._read()

    def converted(self, form: Callable[[Message], Message]) -> Original:
        """Return the same original in another form."""
        read = self._read
        return Original(form(self.outline), lambda: form(read()))


def _unpickled(message: Message) -> Message:
    return message


def content_paths(message: Message) -> list[Path]:
    """Return the paths of the parts of a message, and of the content of its result in place of the result."""
    paths: list[Path] = []
    for index, part in enumerate(message.parts):
        if isinstance(part, ToolResult):
            paths += [(index, inner) for inner in range(len(part.content))]
        else:
            paths.append((index,))
    return paths


def outline_of(message: Message, stamp: Stamp, hidden: Collection[Path]) -> Message | None:
    """Return the message without the texts and media at these paths; None if that saves less than 1,024 characters.

    The user's own words stay: they decide which message is the newest input. The headline of an action's result stays:
    it says whether the action failed.
    """
    outline = _Outline(message, stamp, hidden, _OMITTED)
    return outline.message if outline.saved >= _SAVED_MIN else None


def released_form(message: Message, stamp: Stamp, paths: Collection[Path]) -> Message:
    """Return what the store keeps of a message whose content at these paths is released; the message if nothing is.

    The same texts stay as in `outline_of`. The form of an outline, or of a released form, is the same again.
    """
    released = _Outline(message, stamp, paths, RELEASED).message
    return message if released == message else released


class _Outline:
    """A message with `text` in place of the content at some paths."""

    def __init__(self, message: Message, stamp: Stamp, paths: Collection[Path], text: str) -> None:
        self._old, self._stamp, self._paths, self._text = message, stamp, paths, text
        self._has_headline = is_action_result(message, stamp)
        self.saved = 0
        """Characters that are left out."""
        parts = tuple(self._outlined(part, (index,)) for index, part in enumerate(message.parts))
        self.message = Message(message.role, parts, message.name, message.extra)

    def _outlined(self, part: Part, path: Path) -> Part:
        if self._stamp.origin == "user" and not self._stamp.is_added(path):
            return part
        if () in self._paths or path in self._paths:
            return self._emptied(part, path)
        if isinstance(part, ToolResult):
            content = tuple(_content(self._outlined(inner, (*path, i)), inner) for i, inner in enumerate(part.content))
            return ToolResult(part.call_id, content, part.state, part.name, part.extra)
        return part

    def _emptied(self, part: Part, path: Path) -> Part:
        match part:
            case Text(text=text):
                head = headline_of(self._old) if self._has_headline and path == (0,) else ""
                self.saved += len(text) - len(head)
                return Text(head + self._text if text.strip() else "")
            case Media():
                self.saved += len(part.data)
                # Media without data cannot be sent, and earlier views show what is stored.
                return Text(RELEASED) if self._text == RELEASED else Media(part.mime, part.source, "", part.name)
            case Opaque() if len(path) > 1 and self._text == RELEASED:
                return Text(RELEASED)
            case Reasoning() if () in self._paths and self._text == RELEASED:
                return Text("")  # It cannot be sent without its text. No edit shows it next to other content.
            case ToolCall():
                self.saved += len(part.arguments)
                return ToolCall(part.call_id, part.name, "{}", part.extra)
            case ToolResult():
                content = tuple(
                    _content(self._emptied(inner, (*path, i)), inner) for i, inner in enumerate(part.content)
                )
                return ToolResult(part.call_id, content, part.state, part.name, part.extra)
        return part


def _content(part: Part, old: Content) -> Content:
    return part if isinstance(part, Text | Media) else old
