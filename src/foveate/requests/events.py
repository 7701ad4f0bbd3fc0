"""Server-sent events of an answer, each with its bytes as they came."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec

__all__ = ["Beginning", "EventSplitter", "StreamEvent", "error_in", "write_event"]

_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_USUAL = re.compile(rb"(?:event: ([^\r\n]*)\n)?data: ([^\r\n]*)\n\n")
"""An event with at most a name and one line of data, as providers write it."""
_JSON = msgspec.json.Decoder()


class StreamEvent:
    """One event of a stream."""

    def __init__(self, raw: bytes, name: str, content: bytes) -> None:
        self.raw = raw
        """Its bytes, with the blank line at its end."""
        self.name = name
        """Its name; "" if it has none."""
        self.content = content
        """The bytes of its data."""

    @cached_property
    def data(self) -> dict[str, Any] | None:
        """Its data; None if it is no JSON object, as in a comment or in `[DONE]`."""
        try:
            data = _JSON.decode(self.content)
        except (ValueError, RecursionError):
            return None
        return data if isinstance(data, dict) else None

    @property
    def is_done(self) -> bool:
        """Return whether it is the `[DONE]` at the end of a stream of OpenAI."""
        return self.raw.strip().endswith(b"data: [DONE]") and self.data is None


class EventSplitter:
    """Splits the bytes of a stream, cut at any place, into its events. All bytes come back in order."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._looked = 0  # bytes in which no event ends

    @property
    def is_between(self) -> bool:
        """Return whether no event is incomplete."""
        return not self._rest

    def feed(self, piece: bytes) -> Iterator[StreamEvent]:
        """Yield the events that these bytes complete."""
        self._rest += piece
        start = 0
        while (end := _EVENT_END.search(self._rest, max(start, self._looked - 3))) is not None:
            yield _event(bytes(self._rest[start : end.end()]))
            start = self._looked = end.end()
        del self._rest[:start]
        self._looked = len(self._rest)

    def rest(self) -> StreamEvent | None:
        """Return the event that the stream ended in, and forget it. Some servers leave out the last blank line.

        None if there is none, or if it was cut: clients drop such an event. Google ends a stream that fails with an
        error in JSON, which is in no event. It counts as the data of one.
        """
        raw = bytes(self._rest)
        event = StreamEvent(raw, "", raw) if raw.lstrip().startswith(b"{") else _event(raw)
        self._rest.clear()
        self._looked = 0
        is_whole = event.data is not None or event.is_done or raw == b"\n"  # The last byte of a blank line `\r\n`.
        return event if is_whole else None


class Beginning:
    """The beginning of a stream. Its first event waits until it is whole, because it may be an error in place of an
    answer. Comments, which keep a connection alive, do not wait.
    """

    def __init__(self) -> None:
        self._splitter = EventSplitter()
        self._held = b""
        self.is_over = False
        """Whether the first event is known, and is no error."""
        self.error = b""
        """The error that the first event reports, in JSON; otherwise b"". All that follows it is held as well."""

    def feed(self, piece: bytes) -> bytes:
        """Return the bytes that do not wait any longer."""
        self._held += piece
        if self.error:
            return b""
        shown = b""
        for event in self._splitter.feed(piece):
            if not (event.name or event.content):  # A comment.
                shown, self._held = shown + event.raw, self._held[len(event.raw) :]
                continue
            self.error = error_in(event.data) or (event.content if event.name == "error" else b"")
            return shown if self.error else shown + self.rest()
        return shown

    def rest(self) -> bytes:
        """Return the bytes that wait, and hold no others back."""
        held, self._held, self.is_over = self._held, b"", True
        return held


def error_in(answer: object) -> bytes:
    """Return the error, in JSON, in the data of an answer or an event that has one and no reply; otherwise b"".

    Other numbers in the answer, such as its time, say nothing of the error.
    """
    error = answer.get("error") if isinstance(answer, dict) and not answer.get("choices") else None
    return msgspec.json.encode({"error": error}) if error else b""


def write_event(data: dict[str, Any], name: str = "") -> bytes:
    """Return the bytes of an event."""
    head = b"event: " + name.encode() + b"\n" if name else b""
    return head + b"data: " + msgspec.json.encode(data) + b"\n\n"


def _event(raw: bytes) -> StreamEvent:
    if usual := _USUAL.fullmatch(raw):
        name, content = usual.groups()
        return StreamEvent(raw, name.decode(errors="replace") if name else "", content)
    name, lines = b"", []
    for line in raw.splitlines():
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            lines.append(value)
        elif field == b"event":
            name = value
    return StreamEvent(raw, name.decode(errors="replace"), b"\n".join(lines))
