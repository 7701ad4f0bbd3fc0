"""Streamed replies: iterators over their pieces, and the part that has arrived."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator

from ..core.messages import Message, Part, Reasoning, Text, ToolCall
from .models import Delta, StreamEnd

__all__ = ["AsyncReplyStream", "JoinedPieces", "ReplyStream"]


class ReplyStream:
    """A streamed reply: an iterator over its pieces."""

    def __init__(self, pieces: Generator[Delta | StreamEnd], partial: Callable[[], object]) -> None:
        self._pieces = pieces
        self.partial = partial
        """Returns the reply as far as it has arrived, for `Conversation.record(..., interrupted=True)`."""

    def __iter__(self) -> ReplyStream:
        return self

    def __next__(self) -> Delta | StreamEnd:
        return next(self._pieces)

    def close(self) -> None:
        """End the request."""
        self._pieces.close()


class AsyncReplyStream:
    """A streamed reply of an async model: an asynchronous iterator over its pieces."""

    def __init__(self, pieces: AsyncGenerator[Delta | StreamEnd], partial: Callable[[], object]) -> None:
        self._pieces = pieces
        self.partial = partial
        """Returns the reply as far as it has arrived, for `Conversation.record(..., interrupted=True)`."""

    def __aiter__(self) -> AsyncReplyStream:
        return self

    async def __anext__(self) -> Delta | StreamEnd:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """End the request."""
        await self._pieces.aclose()


class JoinedPieces:
    """The pieces of a reply that have arrived, joined to a message, for models whose events no gatherer reads."""

    def __init__(self, format: str) -> None:
        """`format`: name of the model's wire format."""
        self._format = format
        self._pieces: list[Delta] = []

    def add(self, piece: Delta | StreamEnd) -> None:
        """Add the next piece of the stream."""
        if isinstance(piece, Delta):
            self._pieces.append(piece)

    def partial(self) -> Message | None:
        """Return the message as far as it has arrived; None if nothing has."""
        if not self._pieces:
            return None
        reasoning, text, arguments = (self._joined(kind) for kind in ("reasoning", "text", "call"))
        name = next((piece.name for piece in self._pieces if piece.name), "")
        parts: list[Part] = [Reasoning(reasoning, format=self._format)] if reasoning else []
        parts += [Text(text)] if text else []
        parts += [ToolCall("", name, arguments)] if name or arguments else []
        return Message("assistant", tuple(parts))

    def _joined(self, kind: str) -> str:
        return "".join(piece.text for piece in self._pieces if piece.kind == kind)
