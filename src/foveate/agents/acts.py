"""An act: what an agent does, as a generator that never waits itself, and the two ways to perform it.

An act yields events, which go to whoever listens, and wishes, whose answers come back to it. `perform` grants wishes in
the thread it runs in; `perform_async` awaits what can be awaited. So there is one agent, for programs with and without
asyncio. Knows nothing of models, tools and conversations.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, suppress
from time import sleep
from typing import Any, TypeVar

from msgspec import Struct

from ..errors import BadSetting
from ..ports import Delta, Whole
from .batches import Begin, Finished, Tasks, Threads, TookTooLong, called, later, now, threaded
from .events import AgentEvent, ReasoningDelta, SubAgentEvent, TextDelta

__all__ = [
    "Act",
    "Begin",
    "Do",
    "Finished",
    "Hear",
    "Left",
    "Next",
    "Pause",
    "TookTooLong",
    "Wish",
    "perform",
    "perform_async",
]

T = TypeVar("T")


class Left(BaseException):
    """Raised in an act when whoever listened has gone away. It still may wish for what its end takes, unheard.

    No GeneratorExit: a generator that is closed within another cannot wish for anything any more.
    """


class Do(Struct, frozen=True):
    """Call this, and answer with what it returns, awaited if it can be. What it raises is raised in the act."""

    what: Callable[[], object]
    is_slow: bool = False
    """Whether it may wait for long before it returns: then asyncio calls it in a thread."""


class Hear(Struct, frozen=True):
    """Follow a stream (`ports.StreamingModel.stream`), tell its pieces as events, answer with the whole response."""

    what: Callable[[], Iterator[Delta | Whole] | AsyncIterator[Delta | Whole]]
    inside: tuple[tuple[str, str], ...] = ()
    """Whose stream it is, where that is a sub-agent's: names and steps, the outermost first."""


class Next(Struct, frozen=True):
    """Wait for the next call of the batch to end, and answer with a Finished. Wished once for each call."""


class Pause(Struct, frozen=True):
    """Wait for so many seconds."""

    seconds: float


Wish = Do | Hear | Begin | Next | Pause
Act = Generator[Wish | AgentEvent, Any, T]


def perform(act: Act[T]) -> Generator[AgentEvent, None, T]:
    """Perform an act in this thread: a generator of its events that returns what it returns.

    Closing it early closes the act, which may still do what its `finally` says. Raises BadSetting where something must
    be awaited.
    """
    batch = Threads()
    try:
        step, given = act.send, None
        while True:
            try:
                wished = step(given)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            step, given = act.send, None
            try:
                match wished:
                    case Do(what):
                        given = now(what())
                    case Hear(what, inside):
                        given = yield from _heard(what(), inside)
                    case Begin():
                        batch.abandon()
                        batch = Threads(wished)
                    case Next():
                        given = batch.next()
                    case Pause(seconds):
                        sleep(seconds)
                    case event:
                        yield event
            except GeneratorExit:
                raise
            except BaseException as error:
                step, given = act.throw, error
    finally:
        batch.abandon()
        _finish(act)


async def perform_async(act: Act[object]) -> AsyncGenerator[AgentEvent, None]:
    """The same for asyncio. What waits in a thread's way (a sync model or tool) is called in a thread of its own.

    Cancelling whoever iterates cancels what is awaited, and the act hears of it as of any error.
    """
    import asyncio

    batch: Tasks | None = None
    try:
        step: Callable[[Any], Any] = act.send
        given: Any = None
        while True:
            try:
                wished = step(given)
            except StopIteration:
                return
            step, given = act.send, None
            try:
                match wished:
                    case Do(what, is_slow):
                        given = await (called(what) if is_slow else later(what()))
                    case Hear(what, inside):
                        async with aclosing(_pieces(what())) as pieces:
                            async for piece in pieces:
                                if isinstance(piece, Whole):
                                    given = piece
                                elif (event := _event(piece, inside)) is not None:
                                    yield event
                        given = _whole(given)
                    case Begin():
                        if batch:
                            batch.abandon()
                        batch = Tasks(wished)
                    case Next():
                        assert batch is not None, "Next is wished after Begin."
                        given = await batch.next()
                    case Pause(seconds):
                        await asyncio.sleep(seconds)
                    case event:
                        yield event
            except GeneratorExit:
                raise
            except BaseException as error:
                step, given = act.throw, error
    finally:
        if batch:
            batch.abandon()
        await _finish_async(act)


# --------------------------------------------------------------------------------------------------- without asyncio


def _heard(pieces: object, inside: tuple[tuple[str, str], ...]) -> Generator[AgentEvent, None, object]:
    if not isinstance(pieces, Iterator):
        raise BadSetting("This model streams for asyncio: build the async agent, or hand in a sync client.")
    whole = None
    try:
        for piece in pieces:
            if isinstance(piece, Whole):
                whole = piece
            elif (event := _event(piece, inside)) is not None:
                yield event
    finally:
        if isinstance(pieces, Generator):
            pieces.close()
    return _whole(whole)


def _event(piece: Delta | Whole, inside: tuple[tuple[str, str], ...]) -> AgentEvent | None:
    match piece:
        case Delta("text", text) if text:
            event: AgentEvent = TextDelta(text)
        case Delta("reasoning", text) if text:
            event = ReasoningDelta(text)
        case _:
            return None
    for agent, step in reversed(inside):
        event = SubAgentEvent(agent, step, event)
    return event


def _whole(last: Whole | None) -> object:
    if last is None:
        raise ConnectionError("The stream ended before the answer was whole.")
    return last.response


def _finish(act: Act[Any]) -> None:
    """Let a closed act do what it does at its end: its wishes are granted, its events are heard by nobody."""
    try:
        wished = act.throw(Left)
        while True:
            try:
                given = now(wished.what()) if isinstance(wished, Do) else None
            except BaseException as error:
                wished = act.throw(error)
            else:
                wished = act.send(given)
    except (StopIteration, Left):
        pass


# ------------------------------------------------------------------------------------------------------ with asyncio


async def _pieces(pieces: object) -> AsyncGenerator[Delta | Whole, None]:
    if isinstance(pieces, AsyncIterator):
        try:
            async for piece in pieces:
                yield piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
        return
    if not isinstance(pieces, Iterator):
        raise BadSetting(f"A model's stream is an iterator, not {type(pieces).__name__}.")
    try:
        while isinstance(one := await threaded(lambda: next(pieces, None)), Delta | Whole):
            yield one
    finally:
        if isinstance(pieces, Generator):
            with suppress(ValueError):  # It waits in its thread for the next piece, and is let go of after that.
                pieces.close()


async def _finish_async(act: Act[Any]) -> None:
    """See `_finish`."""
    try:
        wished = act.throw(Left)
        while True:
            try:
                given = await later(wished.what()) if isinstance(wished, Do) else None
            except BaseException as error:
                wished = act.throw(error)
            else:
                wished = act.send(given)
    except (StopIteration, Left):
        pass
