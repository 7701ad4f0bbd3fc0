"""An answer of Amazon Bedrock, whose stream consists of frames, on its way to the client."""

from __future__ import annotations

from .answer import Answer, IsOurs
from .event_frames import Frame, FrameSplitter, write_chunk, write_exception
from .events import EventSplitter

__all__ = ["FramedAnswer"]

_WAITING_MAX = 2
"""Frames whose events the client may still get: the two at the end of a message wait for each other."""


class FramedAnswer(Answer):
    """An `Answer` in frames. Inside, their events are server-sent events, and the client gets frames again.

    A frame whose event the client gets as it came keeps its bytes.
    """

    def __init__(self, format: str, is_ours: IsOurs | None) -> None:
        """See `Answer`."""
        super().__init__(format, is_ours)
        self._frames = FrameSplitter()
        self._waiting: list[Frame] = []

    def feed(self, piece: bytes) -> bytes:
        """See `Answer`."""
        shown: list[bytes] = []
        for frame in self._frames.feed(piece):
            if self._beginning.is_over:
                del self._waiting[:-_WAITING_MAX]
            self._waiting.append(frame)
            shown.append(self._framed(super().feed(frame.event)))
        return b"".join(shown)

    def _framed(self, events: bytes) -> bytes:
        """Return server-sent events for the client in frames."""
        if self._waiting and self._waiting[-1].event == events:  # As most.
            raw = self._waiting[-1].raw
            self._waiting.clear()
            return raw
        shown: list[bytes] = []
        for event in EventSplitter().feed(events):
            place = next((at for at, frame in enumerate(self._waiting) if frame.event == event.raw), -1)
            shown.append(self._waiting[place].raw if place >= 0 else write_chunk(event.content))
            del self._waiting[: place + 1]
        return b"".join(shown)

    def rest(self) -> bytes:
        """See `Answer`. The client also gets a frame that was cut, which is an error for it."""
        held = self._framed(super().rest())
        return held if self.asks_only_us else held + self._frames.rest()

    def close(self) -> bytes:
        """See `Answer`."""
        return self._framed(super().close())

    def replace_with_next(self) -> None:
        """See `Answer`."""
        super().replace_with_next()
        self._frames, self._waiting = FrameSplitter(), []

    def failure(self, status: int, content: bytes) -> bytes:
        """See `Answer`."""
        return write_exception(status, content)
