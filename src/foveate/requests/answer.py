"""An answer on its way to the client: what the provider sends goes on as it came, but for calls of `expand`.

A splice of the answer's format decides what the client gets. It makes one answer of several: one for each reply that
only asked to expand something, and the last one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import msgspec

from ..errors import FoveateError
from ..formats import gather
from ..ports import Gatherer
from .events import Beginning, EventSplitter, StreamEvent, error_in

__all__ = ["Answer", "IsOurs", "Splice"]

_log = logging.getLogger("foveate")

IsOurs = Callable[[str], bool]
"""Returns whether the conversation answers the calls of a tool."""


class Splice(Protocol):
    """Makes one answer for the client of several answers of the provider, in one format."""

    asks_only_us: bool
    """Whether the newest answer ended, and all its calls are for the conversation."""
    is_changed: bool
    """Whether the client gets something else than the newest answer of the provider."""

    def passing(self, piece: bytes, start: int) -> int:
        """Return where the whole events end that begin at `start`, pass as they are, and are not read.

        `piece`: has no carriage return. Returns `start` if there are no such events.
        """
        ...

    def add(self, event: StreamEvent) -> bytes:
        """Return what the client gets for an event of the newest answer. Raises KeyError, TypeError or the like for
        an event that it cannot read."""
        ...

    def receive(self, reply: dict[str, Any]) -> None:
        """Take a whole answer."""
        ...

    def joined(self) -> dict[str, Any]:
        """Return the whole answer for the client."""
        ...

    def close(self) -> bytes:
        """Return the events that the client's stream waits for, if the newest answer ended and nothing continues it."""
        ...

    def continue_with_next(self) -> None:
        """Take the next answer as the continuation of this one."""
        ...

    def failure(self, error: dict[str, Any]) -> bytes:
        """Return the event that reports an error to the client. `error`: the provider's answer."""
        ...


class Answer:
    """The answer to one request of a client."""

    def __init__(self, format: str, is_ours: IsOurs | None) -> None:
        """`is_ours`: None if the request does not offer the tool `expand`. The answer then passes as it is."""
        self._format = format
        self._splice = _splices_of(format)(is_ours) if is_ours is not None else None
        self._gatherer: Gatherer | None = None
        self._pieces: list[bytes] = []  # of a stream, not gathered yet
        self._splitter: EventSplitter | None = None
        self._reply: dict[str, Any] | None = None
        self._is_unreadable = False
        self._beginning = Beginning()
        self._error = b""

    @property
    def error(self) -> bytes:
        """The error that the newest answer is, in JSON; b"" if it is none."""
        return self._error or self._beginning.error

    @property
    def asks_only_us(self) -> bool:
        """Return whether the newest answer only asks to expand something, so that the client gets none of its calls."""
        return self._splice is not None and self._splice.asks_only_us

    def reply(self) -> dict[str, Any] | None:
        """Return the newest answer, whole, for `Conversation.record`; None if it is not complete."""
        self._gather()
        if self._gatherer is not None:
            try:
                whole = self._gatherer.whole()
                return self._gatherer.partial() if whole is None and self.asks_only_us else whole
            except FoveateError as error:
                _log.warning("A streamed reply was not recorded: %s", error)
                return None
        return self._reply

    # ---------------------------------------------------------------------------------------------------- whole answers

    def receive(self, content: bytes) -> bytes | None:
        """Take a whole answer. Return it if the client gets it as it is; None if the client gets `joined`."""
        try:
            reply = json.loads(content)
        except (ValueError, RecursionError):
            reply = None
        self._reply = reply if isinstance(reply, dict) else None
        self._error = error_in(reply)
        if self._splice is None or self._reply is None:
            return content
        try:
            self._splice.receive(self._reply)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):  # Another shape than the API's.
            return content
        return None if self._splice.is_changed else content

    def joined(self) -> bytes:
        """Return the whole answer for the client, made of all the provider's answers."""
        return msgspec.json.encode(self._splice.joined()) if self._splice is not None else b""

    # ---------------------------------------------------------------------------------------------------------- streams

    def feed(self, piece: bytes) -> bytes:
        """Return what the client gets for a piece of a stream."""
        self._pieces.append(piece)
        return self._spliced(piece if self._beginning.is_over else self._beginning.feed(piece))

    def _spliced(self, piece: bytes) -> bytes:
        if self._splice is None or not piece:
            return piece
        if self._splitter is None:
            self._splitter = EventSplitter()
        size, is_plain = len(piece), b"\r" not in piece
        end = self._splice.passing(piece, 0) if is_plain and self._splitter.is_between else 0
        if end == size:
            return piece  # As most pieces: splitting them takes longer.
        shown = [piece[:end]]
        while end < size:
            start, end = end, piece.find(b"\n\n", end) + 2
            end = end if end > 1 else size
            shown += [self._passed(self._splice, event) for event in self._splitter.feed(piece[start:end])]
            if end < size and is_plain and self._splitter.is_between:
                start, end = end, self._splice.passing(piece, end)
                shown.append(piece[start:end])
        return b"".join(shown)

    def _gather(self) -> None:
        """Read the pieces that arrived since the last time, at once: each piece alone takes longer."""
        content, self._pieces = b"".join(self._pieces), []
        if not content or self._is_unreadable:
            return
        if self._gatherer is None:
            self._gatherer = gather(self._format)
        try:
            self._gatherer.feed(content)
        except FoveateError as error:
            self._gatherer, self._is_unreadable = None, True
            _log.warning("A streamed reply was not recorded: %s", error)

    def _passed(self, splice: Splice, event: StreamEvent) -> bytes:
        try:
            return splice.add(event)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):  # Another shape than the API's.
            return event.raw

    def rest(self) -> bytes:
        """Return what the client gets for the last event of a stream that ended without a blank line, or for an error
        in place of an answer."""
        held = self._spliced(self._beginning.rest())
        event = self._splitter.rest() if self._splitter is not None else None
        return held if event is None or self._splice is None else held + self._passed(self._splice, event)

    def close(self) -> bytes:
        """Return the events that end the client's stream, if no other answer continues it."""
        return self._splice.close() if self._splice is not None else b""

    def continue_with_next(self) -> None:
        """Take the next answer of the provider as the continuation of this one."""
        self.replace_with_next()
        if self._splice is not None:
            self._splice.continue_with_next()

    def replace_with_next(self) -> None:
        """Take the next answer of the provider in place of this one, of which the client got nothing."""
        self._gatherer = self._splitter = self._reply = None
        self._pieces, self._is_unreadable = [], False
        self._beginning, self._error = Beginning(), b""

    def failure(self, status: int, content: bytes) -> bytes:
        """Return the event that ends the client's stream with an error of the provider."""
        try:
            error = json.loads(content)
        except ValueError:
            error = None
        if not isinstance(error, dict) or not isinstance(error.get("error"), dict):
            text = content.decode(errors="replace")[:1000] or f"The provider answered with status {status}."
            error = {"type": "error", "error": {"type": "api_error", "message": text}}
        splice = self._splice or _splices_of(self._format)(lambda name: False)
        return splice.failure(error)


@cache  # Each import statement takes a microsecond, also of a module that is loaded.
def _splices_of(format: str) -> Callable[[IsOurs], Splice]:
    match format:
        case "anthropic":
            from .splice_anthropic import AnthropicSplice

            return AnthropicSplice
        case "openai":
            from .splice_chat import ChatSplice

            return ChatSplice
        case "gemini":
            from .splice_gemini import GeminiSplice

            return GeminiSplice
        case _:
            from .splice_responses import ResponsesSplice

            return ResponsesSplice
