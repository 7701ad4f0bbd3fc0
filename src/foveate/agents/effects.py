"""Effects: what an agent wants to have done, as values, and two ways to carry them out.

An agent is written once, for programs with and without asyncio. Its code is a *routine*: a generator that yields

- effects, such as `Call(store.load)` or `Sleep(0.5)`. They are carried out, and their result is sent back;
- events, such as `TextDelta("Hel")`. They are passed on to the program that runs the agent.

    def ask(model: Model) -> Routine[str]:
        response = yield Call(lambda: model.complete(BODY))  # an effect: `response` is its result
        yield TextDelta("Done.")                             # an event: the program receives it
        return str(response)

`perform` carries out effects in the current thread, `perform_async` awaits what can be awaited. An effect that fails
raises its error at the `yield`. A routine calls another one with `yield from`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, suppress
from time import sleep
from typing import Any, TypeVar

from msgspec import Struct

from ..errors import BadSetting
from ..ports import Delta, StreamEnd
from .concurrency import (
    CallTimeout,
    FinishedCall,
    StartCalls,
    TaskBatch,
    ThreadBatch,
    call_async,
    call_in_thread,
    require_value,
    resolve,
)
from .events import AgentEvent, ReasoningDelta, SubAgentEvent, TextDelta

__all__ = [
    "Call",
    "CallTimeout",
    "ConsumerGone",
    "Effect",
    "FinishedCall",
    "NextCall",
    "Routine",
    "Sleep",
    "StartCalls",
    "Stream",
    "perform",
    "perform_async",
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


class Stream(Struct, frozen=True):
    """Follow a model's stream (`ports.StreamingModel.stream`), and emit its pieces as events.

    The result is the whole response.
    """

    function: Callable[[], Iterator[Delta | StreamEnd] | AsyncIterator[Delta | StreamEnd]]
    path: tuple[tuple[str, str], ...] = ()
    """Names and steps of the sub-agents that the stream belongs to, the outermost first."""


class NextCall(Struct, frozen=True):
    """Wait until another call of the batch ends. The result is a FinishedCall. Yield it once for each call."""


class Sleep(Struct, frozen=True):
    """Wait."""

    seconds: float


Effect = Call | Stream | StartCalls | NextCall | Sleep
Routine = Generator[Effect | AgentEvent, Any, T]


def perform(routine: Routine[T]) -> Generator[AgentEvent, None, T]:
    """Run a routine in the current thread: yield its events, and return its return value.

    Closing the generator early raises ConsumerGone in the routine. Raises BadSetting if something must be awaited.
    """
    batch = ThreadBatch()
    try:
        advance, value = routine.send, None
        while True:
            try:
                effect = advance(value)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            advance, value = routine.send, None
            try:
                match effect:
                    case Call(function):
                        value = require_value(function())
                    case Stream(function, path):
                        value = yield from _follow(function(), path)
                    case StartCalls():
                        batch.abandon()
                        batch = ThreadBatch(effect)
                    case NextCall():
                        value = batch.next()
                    case Sleep(seconds):
                        sleep(seconds)
                    case event:
                        yield event
            except GeneratorExit:
                raise
            except BaseException as error:
                advance, value = routine.throw, error
    finally:
        batch.abandon()
        _finish(routine)


async def perform_async(routine: Routine[object]) -> AsyncGenerator[AgentEvent, None]:
    """Run a routine in asyncio. Functions that may block for long (sync models and tools) run in threads.

    Cancelling the consumer cancels the current effect, which raises CancelledError in the routine.
    """
    import asyncio

    batch: TaskBatch | None = None
    try:
        advance: Callable[[Any], Any] = routine.send
        value: Any = None
        while True:
            try:
                effect = advance(value)
            except StopIteration:
                return
            advance, value = routine.send, None
            try:
                match effect:
                    case Call(function, is_slow):
                        value = await (call_async(function) if is_slow else resolve(function()))
                    case Stream(function, path):
                        async with aclosing(_pieces(function())) as pieces:
                            async for piece in pieces:
                                if isinstance(piece, StreamEnd):
                                    value = piece
                                elif (event := _event(piece, path)) is not None:
                                    yield event
                        value = _response(value)
                    case StartCalls():
                        if batch:
                            batch.abandon()
                        batch = TaskBatch(effect)
                    case NextCall():
                        assert batch is not None, "A routine yields StartCalls before NextCall."
                        value = await batch.next()
                    case Sleep(seconds):
                        await asyncio.sleep(seconds)
                    case event:
                        yield event
            except GeneratorExit:
                raise
            except BaseException as error:
                advance, value = routine.throw, error
    finally:
        if batch:
            batch.abandon()
        await _finish_async(routine)


# ------------------------------------------------------------------------------------------------------------- streams


def _follow(pieces: object, path: tuple[tuple[str, str], ...]) -> Generator[AgentEvent, None, object]:
    if not isinstance(pieces, Iterator):
        raise BadSetting("This model streams for asyncio only. Build the async agent, or pass a sync client.")
    whole = None
    try:
        for piece in pieces:
            if isinstance(piece, StreamEnd):
                whole = piece
            elif (event := _event(piece, path)) is not None:
                yield event
    finally:
        if isinstance(pieces, Generator):
            pieces.close()
    return _response(whole)


async def _pieces(pieces: object) -> AsyncGenerator[Delta | StreamEnd, None]:
    if isinstance(pieces, AsyncIterator):
        try:
            async for piece in pieces:
                yield piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
        return
    if not isinstance(pieces, Iterator):
        raise BadSetting(f"A model's stream must be an iterator, not {type(pieces).__name__}.")
    try:
        while isinstance(item := await call_in_thread(lambda: next(pieces, None)), Delta | StreamEnd):
            yield item
    finally:
        if isinstance(pieces, Generator):
            with suppress(ValueError):  # A thread still waits for its next piece. The generator ends after that.
                pieces.close()


def _event(piece: Delta | StreamEnd, path: tuple[tuple[str, str], ...]) -> AgentEvent | None:
    match piece:
        case Delta("text", text) if text:
            event: AgentEvent = TextDelta(text)
        case Delta("reasoning", text) if text:
            event = ReasoningDelta(text)
        case _:
            return None
    for agent, step in reversed(path):
        event = SubAgentEvent(agent, step, event)
    return event


def _response(last: StreamEnd | None) -> object:
    if last is None:
        raise ConnectionError("The stream ended before the answer was complete.")
    return last.response


# ------------------------------------------------------------------------------------------------------------- the end


def _finish(routine: Routine[Any]) -> None:
    """Let a routine clean up after its consumer is gone: carry out its calls, and drop its events."""
    try:
        effect = routine.throw(ConsumerGone)
        while True:
            try:
                value = require_value(effect.function()) if isinstance(effect, Call) else None
            except BaseException as error:
                effect = routine.throw(error)
            else:
                effect = routine.send(value)
    except (StopIteration, ConsumerGone):
        pass


async def _finish_async(routine: Routine[Any]) -> None:
    """Do the same in asyncio."""
    try:
        effect = routine.throw(ConsumerGone)
        while True:
            try:
                value = await resolve(effect.function()) if isinstance(effect, Call) else None
            except BaseException as error:
                effect = routine.throw(error)
            else:
                effect = routine.send(value)
    except (StopIteration, ConsumerGone):
        pass
