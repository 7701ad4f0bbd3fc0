"""An act: what an agent does, as a generator that never waits itself, and the two ways to perform it.

An act yields events, which go to whoever listens, and wishes, whose answers come back to it. `perform` grants wishes in
the thread it runs in; `perform_async` awaits what can be awaited. So there is one agent, for programs with and without
asyncio. Knows nothing of models, tools and conversations.
"""

from __future__ import annotations

import inspect
import queue
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any, TypeVar

from msgspec import Struct

from ..errors import BadSetting
from ..ports import Delta, Whole
from .events import AgentEvent, Said, Thought

__all__ = ["Act", "Begin", "Do", "Finished", "Hear", "Next", "Wish", "perform", "perform_async"]

T = TypeVar("T")


class Do(Struct, frozen=True):
    """Call this, and answer with what it returns, awaited if it can be. What it raises is raised in the act."""

    what: Callable[[], object]
    is_slow: bool = False
    """Whether it may wait for long before it returns: then asyncio calls it in a thread."""


class Hear(Struct, frozen=True):
    """Follow a stream (`ports.StreamingModel.stream`), tell its pieces as events, answer with the whole response."""

    what: Callable[[], Iterator[Delta | Whole] | AsyncIterator[Delta | Whole]]


class Begin(Struct, frozen=True):
    """Begin calls that go on beside each other, `at_most` at a time, in their order. Answered at once, with None.

    Each may take `timeout` seconds from its own beginning (None: as long as it likes); one that takes longer has failed
    with TimeoutError, and what it returns after all is dropped. Calls of a batch before that have not ended are given
    up.
    """

    calls: tuple[Callable[[], object], ...]
    at_most: int = 8
    timeout: float | None = None


class Next(Struct, frozen=True):
    """Wait for the next call of the batch to end, and answer with a Finished. Asked once for each call."""


class Finished(Struct, frozen=True):
    """How one call of a batch ended."""

    index: int
    """Its place in the batch, from 0."""
    value: object
    error: BaseException | None
    seconds: float


Wish = Do | Hear | Begin | Next
Act = Generator[Wish | AgentEvent, Any, T]


def perform(act: Act[T]) -> Generator[AgentEvent, None, T]:
    """Perform an act in this thread: a generator of its events that returns what it returns.

    Closing it early closes the act, which may still do what its `finally` says. Raises BadSetting where something must
    be awaited.
    """
    batch = _Threads()
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
                        given = _now(what())
                    case Hear(what):
                        given = yield from _heard(what())
                    case Begin():
                        batch.abandon()
                        batch = _Threads(wished)
                    case Next():
                        given = batch.next()
                    case event:
                        yield event
            except GeneratorExit:
                raise
            except BaseException as error:
                step, given = act.throw, error
    finally:
        batch.abandon()
        _finish(act)


async def perform_async(act: Act[object]) -> AsyncIterator[AgentEvent]:
    """The same for asyncio. What waits in a thread's way (a sync model or tool) is called in a thread of its own."""
    batch: _Tasks | None = None
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
                        given = await (_called(what) if is_slow else _later(what()))
                    case Hear(what):
                        async for piece in _pieces(what()):
                            if isinstance(piece, Whole):
                                given = piece
                            elif (event := _event(piece)) is not None:
                                yield event
                        given = _whole(given)
                    case Begin():
                        if batch:
                            batch.abandon()
                        batch = _Tasks(wished)
                    case Next():
                        assert batch is not None, "Next is wished after Begin."
                        given = await batch.next()
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


def _now(value: object) -> object:
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise BadSetting("This must be awaited, which only an agent with asyncio can do: build the async one.")
    return value


def _heard(pieces: object) -> Generator[AgentEvent, None, object]:
    if not isinstance(pieces, Iterator):
        raise BadSetting("This model streams for asyncio: build the async agent, or hand in a sync client.")
    whole = None
    try:
        for piece in pieces:
            if isinstance(piece, Whole):
                whole = piece
            elif (event := _event(piece)) is not None:
                yield event
    finally:
        if isinstance(pieces, Generator):
            pieces.close()
    return _whole(whole)


def _event(piece: Delta | Whole) -> AgentEvent | None:
    match piece:
        case Delta("text", text) if text:
            return Said(text)
        case Delta("reasoning", text) if text:
            return Thought(text)
    return None


def _whole(last: Whole | None) -> object:
    if last is None:
        raise ConnectionError("The stream ended before the answer was whole.")
    return last.response


def _finish(act: Act[Any]) -> None:
    """Let a closed act do what it does at its end: its wishes are granted, its events are heard by nobody."""
    try:
        wished = act.throw(GeneratorExit)
        while True:
            try:
                given = _now(wished.what()) if isinstance(wished, Do) else None
            except Exception as error:
                wished = act.throw(error)
            else:
                wished = act.send(given)
    except (StopIteration, GeneratorExit):
        pass


class _Threads:
    """A batch of calls, each in a thread of its own."""

    def __init__(self, batch: Begin = Begin(())) -> None:  # noqa: B008
        self._calls, self._at_most, self._timeout = batch.calls, max(1, batch.at_most), batch.timeout
        self._ended: queue.SimpleQueue[Finished] = queue.SimpleQueue()
        self._open: dict[int, float] = {}
        """When each call began that has not ended."""
        self._begun = 0
        self._fill()

    def _fill(self) -> None:
        while len(self._open) < self._at_most and self._begun < len(self._calls):
            index = self._begun
            self._begun += 1
            self._open[index] = time.monotonic()
            threading.Thread(target=self._run, args=(index, self._calls[index]), daemon=True).start()

    def _run(self, index: int, call: Callable[[], object]) -> None:
        begun = time.monotonic()
        try:
            value = _now(call())
        except BaseException as error:
            self._ended.put(Finished(index, None, error, time.monotonic() - begun))
        else:
            self._ended.put(Finished(index, value, None, time.monotonic() - begun))

    def next(self) -> Finished:
        while True:
            first = min(self._open, key=self._open.__getitem__)
            left = None if self._timeout is None else self._open[first] + self._timeout - time.monotonic()
            try:
                ended = self._ended.get(timeout=None if left is None else max(left, 0))
            except queue.Empty:
                assert self._timeout is not None
                ended = Finished(
                    first, None, TimeoutError(f"no answer within {self._timeout:g} seconds"), self._timeout
                )
            if ended.index in self._open:  # Else it was given up before.
                del self._open[ended.index]
                self._fill()
                return ended

    def abandon(self) -> None:
        """Begin no more of them. A thread cannot be stopped: what runs goes on, and nobody hears of it."""
        self._begun = len(self._calls)
        self._open.clear()


# ------------------------------------------------------------------------------------------------------ with asyncio


async def _later(value: object) -> object:
    return await value if inspect.isawaitable(value) else value


async def _called(call: Callable[[], object]) -> object:
    """What a call returns: in this thread if it is a coroutine function, else in one of its own."""
    import asyncio

    if inspect.iscoroutinefunction(call):
        return await call()
    return await _later(await asyncio.to_thread(call))


async def _pieces(pieces: object) -> AsyncIterator[Delta | Whole]:
    import asyncio

    if isinstance(pieces, AsyncIterator):
        try:
            async for piece in pieces:
                yield piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
        return
    assert isinstance(pieces, Iterator), "A stream is an iterator."
    while (one := await asyncio.to_thread(next, pieces, None)) is not None:
        yield one


async def _finish_async(act: Act[Any]) -> None:
    """See `_finish`."""
    try:
        wished = act.throw(GeneratorExit)
        while True:
            try:
                given = await _later(wished.what()) if isinstance(wished, Do) else None
            except Exception as error:
                wished = act.throw(error)
            else:
                wished = act.send(given)
    except (StopIteration, GeneratorExit):
        pass


class _Tasks:
    """A batch of calls, each in a task of its own."""

    def __init__(self, batch: Begin) -> None:
        import asyncio

        self._timeout = batch.timeout
        self._free = asyncio.Semaphore(max(1, batch.at_most))
        self._ended: asyncio.Queue[Finished] = asyncio.Queue()
        self._tasks = [asyncio.ensure_future(self._run(index, call)) for index, call in enumerate(batch.calls)]

    async def _run(self, index: int, call: Callable[[], object]) -> None:
        import asyncio

        async with self._free:
            begun = time.monotonic()
            value: object = None
            error: BaseException | None = None
            try:
                value = await asyncio.wait_for(_called(call), self._timeout)
            except TimeoutError as raised:
                is_ours = self._timeout is not None and time.monotonic() - begun >= self._timeout
                error = TimeoutError(f"no answer within {self._timeout:g} seconds") if is_ours else raised
            except Exception as raised:
                error = raised
            await self._ended.put(Finished(index, value, error, time.monotonic() - begun))

    async def next(self) -> Finished:
        return await self._ended.get()

    def abandon(self) -> None:
        for task in self._tasks:
            task.cancel()
