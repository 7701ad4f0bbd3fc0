"""Reading of streamed answers: server-sent events, and errors among them.

Source: the WHATWG's HTML standard, section "Server-sent events"; the errors are those of the providers' streams, 2026.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import msgspec

from ..errors import BadMessage, BrokenStream
from ..ports import Delta
from .blocks import as_dict

__all__ = ["BytesReader", "EventGatherer", "EventReader", "StreamGatherer", "error_in_stream"]


_JSON = msgspec.json.Decoder()
_USUAL = re.compile(rb"(?:event: ([^\n]*)\n)?data: ([^\n]*)\n\n")
"""An event with at most a name and one line of data, as providers write it, in bytes without a carriage return.

A pattern that excludes two characters takes four times as long.
"""


class EventGatherer(Protocol):
    """Gathers the events of one provider's stream."""

    def add(self, event: dict[str, Any]) -> list[Delta]:
        """Add an event, which the gatherer may keep and change, and return the pieces in it."""
        ...

    def whole(self) -> dict[str, Any] | None:
        """Return the whole response; None while it is incomplete."""
        ...

    def partial(self) -> dict[str, Any] | None:
        """Return the response as far as it has arrived; None if nothing has."""
        ...


class BytesReader(Protocol):
    """Splits the bytes of a stream into events."""

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the data of each event that these bytes complete."""
        ...


class EventReader:
    """Splits the bytes of a stream into the data of its server-sent events."""

    def __init__(self) -> None:
        self._line: list[bytes] = []  # The pieces of the line that is not complete yet.
        self._data: list[bytes] = []  # The data lines of the event that is not complete yet.
        self._name = b""
        self._after_return = False
        self._is_first = True

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the data of each event that these bytes complete. The bytes may be cut at any place."""
        if self._after_return and piece:
            piece, self._after_return = piece.removeprefix(b"\n"), False
        at = 0
        if not (self._line or self._data or self._name) and b"\r" not in piece:
            while (usual := _USUAL.match(piece, at)) is not None:
                name, data = usual.groups()
                at, self._is_first = usual.end(), False
                yield name.decode(errors="replace") if name else "", data
        yield from self._feed_lines(piece[at:] if at else piece)

    def _feed_lines(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        for line in piece.splitlines(keepends=True):
            text = line.rstrip(b"\r\n")
            if not (self._line or self._is_first) and len(text) + 1 == len(line) and line[-1] == 10:  # As most lines.
                yield from self._read(text)
                continue
            self._line.append(text)
            if len(text) == len(line):
                return  # The line goes on in the next piece.
            self._after_return = line.endswith(b"\r")
            whole, self._line = b"".join(self._line), []
            if self._is_first:
                whole, self._is_first = whole.removeprefix(b"\xef\xbb\xbf"), False
            yield from self._read(whole)

    def _read(self, line: bytes) -> Iterator[tuple[str, bytes]]:
        if not line:
            data, name, self._data, self._name = self._data, self._name, [], b""
            if data:
                yield name.decode(errors="replace"), b"\n".join(data)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value


class StreamGatherer:
    """Gathers a stream of events or of bytes. It implements the protocol `Gatherer`."""

    def __init__(self, events: EventGatherer, reader: BytesReader | None = None) -> None:
        """Create a gatherer that passes decoded events on to `events`. `reader`: default, of server-sent events."""
        self._events = events
        self._reader = reader or EventReader()

    def feed(self, piece: object) -> list[Delta]:
        """Take the next piece of the stream: an event, or bytes. See `Gatherer.feed`."""
        if isinstance(piece, str):
            piece = piece.encode(errors="replace")
        events: Iterable[dict[str, Any]]
        events = self._decoded(bytes(piece)) if isinstance(piece, bytes | bytearray | memoryview) else [_fields(piece)]
        deltas: list[Delta] = []
        for event in events:
            if event.get("type") == "error" or event.get("error"):
                raise error_in_stream(event.get("error") or event)
            try:
                deltas += self._events.add(event)
            except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
                raise _malformed(f"{event!r:.200}") from error
        return deltas

    def _decoded(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that these bytes complete, with few calls for each: there are many."""
        for name, data in self._reader.feed(piece):
            if data.strip() == b"[DONE]":
                continue
            try:
                event = _JSON.decode(data)
            except (ValueError, RecursionError):
                event = None
            yield event if type(event) is dict and name != "error" else _decoded(name, data)

    def whole(self) -> dict[str, Any] | None:
        """Return the whole response; None while it is incomplete."""
        return self._events.whole()

    def partial(self) -> dict[str, Any] | None:
        """Return the response as far as it has arrived; None if nothing has. See `Gatherer.partial`."""
        return self._events.partial()


def _fields(event: object) -> dict[str, Any]:
    """Return the fields of an event as a dict that may be changed, without those that were never set."""
    if isinstance(event, Mapping):
        return copy.deepcopy(dict(event))
    try:
        return as_dict(event, "event")
    except BadMessage:
        raise BadMessage(
            f"A piece of a stream is a {type(event).__name__}. Pass an event (a dict or the SDK's object), or bytes."
        ) from None


def _decoded(name: str, data: bytes) -> dict[str, Any]:
    try:
        event = _JSON.decode(data)
    except UnicodeDecodeError:
        return _decoded(name, data.decode(errors="replace").encode())
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise _malformed(repr(data[:200])[1:])
    return {"type": "error", **event} if name == "error" else event


def _malformed(event: str) -> BrokenStream:
    return BrokenStream(
        f"The stream has a malformed event: {event}. Check that the format is the server's, then send the request "
        "again. Nothing of the answer was recorded."
    )


def error_in_stream(error: object) -> BrokenStream:
    """Return the error that the server reported in the place of the rest of its answer."""
    if isinstance(error, Mapping):
        kind = error.get("code") or error.get("type") or error.get("status")
        text = ": ".join(str(each) for each in (kind, error.get("message")) if each and each != "error")
    else:
        text = str(error)
    return BrokenStream(
        f"The server ended the stream with an error: {text[:500] or 'it gives no reason'}. Nothing of the answer was "
        "recorded; send the request again."
    )
