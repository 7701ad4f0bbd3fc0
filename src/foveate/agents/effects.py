"""Effects: what an agent wants to have done, as values.

An agent is written once, for programs with and without asyncio. Its code is a *routine*: a generator that yields

- effects, such as `Call(store.load)` or `Sleep(0.5)`. They are carried out, and their result is sent back;
- events, such as `TextDelta("Hel")`. They are passed on to the program that runs the agent.

    def ask(model: Model) -> Routine[str]:
        response = yield Call(lambda: model.complete(BODY))  # an effect: `response` is its result
        yield TextDelta("Done.")                             # an event: the program receives it
        return str(response)

`perform` in `performers.py` carries out effects in the current thread, `perform_async` awaits what can be awaited. An
effect that fails raises its error at the `yield`. A routine calls another one with `yield from`, and several at once
with `parallel.in_parallel`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any, TypeVar

from msgspec import Struct

from ..ports import Delta, StreamEnd
from ..ports.reply_streams import JoinedPieces
from .concurrency import CallTimeout, FinishedCall, StartCalls, TaskBatch, ThreadBatch
from .events import AgentEvent

__all__ = [
    "Begin",
    "Call",
    "CallTimeout",
    "ConsumerGone",
    "Effect",
    "EndedEffect",
    "FinishedCall",
    "NextCall",
    "NextEnded",
    "Operation",
    "PartialReply",
    "Routine",
    "Sleep",
    "StartCalls",
    "Stream",
]

T = TypeVar("T")


class ConsumerGone(BaseException):
    """Raised in a routine when its consumer stops listening. The routine may still yield effects while it cleans up.

    It is not GeneratorExit, because a generator that is being closed cannot yield.
    """


class Call(Struct, frozen=True):
    """Call a function. The result is its return value, awaited if that is an awaitable."""

    function: Callable[[], object]
    is_slow: bool = False
    """Whether it may block for long. `perform_async` calls it in a thread then."""
    asks_user: bool = False
    """Whether a person answers. Such calls are made one at a time, in the thread of the consumer if they are not
    awaited.
    """


class PartialReply:
    """The part of a streamed reply that has arrived, for a routine whose stream is stopped."""

    def __init__(self, format: str) -> None:
        """`format`: name of the model's wire format."""
        self._format = format
        self._stream: object = None
        self._pieces = JoinedPieces(format)

    def begin(self, stream: object) -> None:
        """Follow a new stream."""
        self._stream, self._pieces = stream, JoinedPieces(self._format)

    def add(self, piece: Delta | StreamEnd) -> None:
        """Add the next piece of the stream."""
        self._pieces.add(piece)

    def reply(self) -> object:
        """Return what has arrived, for `Conversation.record(..., interrupted=True)`; None if nothing has."""
        if (partial := getattr(self._stream, "partial", None)) is not None:
            return partial()
        return self._pieces.partial()


class Stream(Struct, frozen=True):
    """Follow a model's stream (`ports.StreamingModel.stream`), and emit its pieces as events.

    The result is the whole response.
    """

    function: Callable[[], Iterator[Delta | StreamEnd] | AsyncIterator[Delta | StreamEnd]]
    path: tuple[tuple[str, str], ...] = ()
    """Names and steps of the sub-agents that the stream belongs to, the outermost first."""
    partial: PartialReply | None = None
    """Receives each piece before its event is emitted."""


class NextCall(Struct, frozen=True):
    """Wait until another call of a batch ends. The result is a FinishedCall. Yield it once for each call."""

    batch: ThreadBatch | TaskBatch
    """The result of `StartCalls`."""


class Sleep(Struct, frozen=True):
    """Wait."""

    seconds: float


class Begin(Struct, frozen=True):
    """Begin an effect in the background. The result, an Operation, comes at once; `NextEnded` reports its end."""

    effect: Call | Stream | NextCall | Sleep


class NextEnded(Struct, frozen=True):
    """Wait until another effect that was begun ends. The result is an EndedEffect. Events of streams pass meanwhile."""


class Operation:
    """An effect in the background."""

    is_abandoned = False
    """Whether its result no longer matters."""

    def abandon(self) -> None:
        """Drop its result and further events. A task is cancelled; a thread runs on without effect."""
        self.is_abandoned = True


class EndedEffect(Struct, frozen=True):
    """How an effect that was begun ended."""

    operation: Operation
    value: object
    """Its result."""
    error: BaseException | None
    """The error that it raised."""


Effect = Call | Stream | StartCalls | NextCall | Sleep | Begin | NextEnded
Routine = Generator[Effect | AgentEvent, Any, T]
