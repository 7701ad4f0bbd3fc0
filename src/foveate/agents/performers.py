"""Performers: they run routines (`effects.py`), with and without asyncio, and carry out their effects."""

from __future__ import annotations

import inspect
import queue
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import aclosing, suppress
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from msgspec import Struct

from ..errors import BadSetting
from ..ports import Delta, StreamEnd
from .concurrency import (
    SLICE,
    StartCalls,
    TaskBatch,
    ThreadBatch,
    call_async,
    call_in_thread,
    require_value,
    resolve,
    start_thread,
)
from .effects import (
    Begin,
    Call,
    ConsumerGone,
    EndedEffect,
    NextCall,
    NextEnded,
    Operation,
    Routine,
    Sleep,
    Stream,
)
from .events import AgentEvent, Outcome, ReasoningDelta, RunEnded, SubAgentEvent, TextDelta

if TYPE_CHECKING:
    import asyncio

__all__ = ["outcome_of", "outcome_of_async", "perform", "perform_async"]

T = TypeVar("T")
_EFFECTS_MAX = 100
"""Effects that a routine may yield when it cleans up."""


def perform(routine: Routine[T]) -> Generator[AgentEvent, None, T]:
    """Run a routine in the current thread: yield its events, and return its return value.

    Closing the generator early raises ConsumerGone in the routine. Raises BadSetting if something must be awaited.
    """
    batches: WeakSet[ThreadBatch] = WeakSet()
    reports: queue.SimpleQueue[_Report] = queue.SimpleQueue()
    try:
        advance, value = routine.send, None
        while True:
            try:
                effect = advance(value)
            except StopIteration as done:
                outcome: T = done.value
                return outcome
            advance, value = routine.send, None
            try:
                match effect:
                    case Call(function):
                        value = require_value(function())
                    case Stream():
                        value = yield from _follow(_begun(effect), effect)
                    case StartCalls():
                        batches.add(value := ThreadBatch(effect))
                    case NextCall(batch):
                        value = batch.next()
                    case Sleep(seconds):
                        sleep(seconds)
                    case Begin(inner):
                        value = _ThreadOperation(inner, reports)
                    case NextEnded():
                        value = yield from _next_ended(reports)
                    case event:
                        yield event
            except GeneratorExit:
                raise
            except BaseException as error:
                advance, value = routine.throw, error
    finally:
        for batch in batches:
            batch.abandon()
        _finish(routine)


async def perform_async(routine: Routine[object]) -> AsyncGenerator[AgentEvent, None]:
    """Run a routine in asyncio. Functions that may block for long (sync models and tools) run in threads.

    Cancelling the consumer cancels the current effect, which raises CancelledError in the routine. The calls with which
    it then cleans up are carried out to their end: a cancel scope of AnyIO, as web frameworks have, cancels each one.
    """
    import asyncio

    batches: WeakSet[TaskBatch] = WeakSet()
    reports: asyncio.Queue[_Report] = asyncio.Queue()
    is_stopped = False
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
                    case Call(function, False) if is_stopped:
                        value = await _completed(function)
                    case Call(function, is_slow):
                        value = await (call_async(function) if is_slow else resolve(function()))
                    case Stream():
                        async with aclosing(_pieces(_begun(effect))) as pieces:
                            async for piece in pieces:
                                if isinstance(piece, StreamEnd):
                                    value = piece
                                elif (event := _event(piece, effect)) is not None:
                                    yield event
                        value = _response(value)
                    case StartCalls():
                        batches.add(value := TaskBatch(effect))
                    case NextCall(batch):
                        assert isinstance(batch, TaskBatch), "This driver starts batches of tasks."
                        value = await batch.next()
                    case Sleep(seconds):
                        await asyncio.sleep(seconds)
                    case Begin(inner):
                        value = _TaskOperation(inner, reports)
                    case NextEnded():
                        while not isinstance(value, EndedEffect):
                            report = await reports.get()
                            if isinstance(report, EndedEffect):
                                value = report
                            elif not report.operation.is_abandoned:
                                yield report.event
                    case event:
                        yield event
            except GeneratorExit:
                raise
            except BaseException as error:
                is_stopped |= isinstance(error, asyncio.CancelledError)
                advance, value = routine.throw, error
    finally:
        for batch in batches:
            batch.abandon()
        await _finish_async(routine)


def outcome_of(events: Iterable[AgentEvent]) -> Outcome:
    """Run an agent to its end, and return the outcome. `events`: those of the run."""
    last: AgentEvent | None = None
    for event in events:
        last = event
    assert isinstance(last, RunEnded), "A run ends with RunEnded, or raises."
    return last.outcome


async def outcome_of_async(events: AsyncGenerator[AgentEvent, None]) -> Outcome:
    """Do the same in asyncio."""
    last: AgentEvent | None = None
    async with aclosing(events):
        async for event in events:
            last = event
    assert isinstance(last, RunEnded), "A run ends with RunEnded, or raises."
    return last.outcome


# ------------------------------------------------------------------------------------------------------- background


class _BackgroundEvent(Struct, frozen=True):
    operation: Operation
    event: AgentEvent


_Report = _BackgroundEvent | EndedEffect


class _ThreadOperation(Operation):
    def __init__(self, effect: Call | Stream | NextCall | Sleep, reports: queue.SimpleQueue[_Report]) -> None:
        self._effect, self._reports = effect, reports
        start_thread(self._run)

    def _run(self) -> None:
        try:
            ended = EndedEffect(self, self._carry_out(), None)
        except BaseException as error:
            ended = EndedEffect(self, None, error)
        self._reports.put(ended)

    def _carry_out(self) -> object:
        match self._effect:
            case Call(function):
                return require_value(function())
            case Stream() as stream:
                events = _follow(_begun(stream), stream)
                while not self.is_abandoned:
                    try:
                        self._reports.put(_BackgroundEvent(self, next(events)))
                    except StopIteration as done:
                        return done.value
                events.close()
                return None
            case NextCall(batch):
                assert isinstance(batch, ThreadBatch), "`perform` starts batches of threads."
                return batch.next()
            case Sleep(seconds):
                sleep(seconds)
                return None


def _next_ended(reports: queue.SimpleQueue[_Report]) -> Generator[AgentEvent, None, EndedEffect]:
    while True:
        with suppress(queue.Empty):  # In slices, as in `ThreadBatch.next`.
            report = reports.get(timeout=SLICE)
            if isinstance(report, EndedEffect):
                return report
            if not report.operation.is_abandoned:
                yield report.event


class _TaskOperation(Operation):
    def __init__(self, effect: Call | Stream | NextCall | Sleep, reports: asyncio.Queue[_Report]) -> None:
        import asyncio

        self._effect, self._reports = effect, reports
        self._task = asyncio.ensure_future(self._run())

    def abandon(self) -> None:
        super().abandon()
        self._task.cancel()

    async def _run(self) -> None:
        import asyncio

        try:
            ended = EndedEffect(self, await self._carry_out(), None)
        except asyncio.CancelledError as error:
            if self.is_abandoned:
                raise
            ended = EndedEffect(self, None, RuntimeError(f"it was cancelled from within: {error}".rstrip(": ")))
        except BaseException as error:  # In a task, SystemExit would end the loop.
            ended = EndedEffect(self, None, error)
        self._reports.put_nowait(ended)

    async def _carry_out(self) -> object:
        import asyncio

        match self._effect:
            case Call(function):
                return await call_async(function)
            case Stream() as stream:
                last = None
                async with aclosing(_pieces(_begun(stream))) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, StreamEnd):
                            last = piece
                        elif (event := _event(piece, stream)) is not None:
                            self._reports.put_nowait(_BackgroundEvent(self, event))
                return _response(last)
            case NextCall(batch):
                assert isinstance(batch, TaskBatch), "`perform_async` starts batches of tasks."
                return await batch.next()
            case Sleep(seconds):
                await asyncio.sleep(seconds)
                return None


# ------------------------------------------------------------------------------------------------------------- streams


def _begun(stream: Stream) -> object:
    pieces = stream.function()
    if stream.partial is not None:
        stream.partial.begin(pieces)
    return pieces


def _follow(pieces: object, stream: Stream) -> Generator[AgentEvent, None, object]:
    if not isinstance(pieces, Iterator):
        raise BadSetting("This model streams for asyncio only. Build the async agent, or pass a sync client.")
    whole = None
    try:
        for piece in pieces:
            if isinstance(piece, StreamEnd):
                whole = piece
            elif (event := _event(piece, stream)) is not None:
                yield event
    finally:
        if (close := getattr(pieces, "close", None)) is not None:
            close()
    return _response(whole)


async def _pieces(pieces: object) -> AsyncGenerator[Delta | StreamEnd, None]:
    if isinstance(pieces, AsyncIterator):
        try:
            async for piece in pieces:
                yield piece
        finally:
            if (close := getattr(pieces, "aclose", None)) is not None:
                await close()
        return
    if not isinstance(pieces, Iterator):
        raise BadSetting(f"A model's stream must be an iterator, not {type(pieces).__name__}.")
    try:
        while isinstance(item := await call_in_thread(lambda: next(pieces, None)), Delta | StreamEnd):
            yield item
    finally:
        if (close := getattr(pieces, "close", None)) is not None:
            with suppress(ValueError):  # A thread still waits for its next piece. The generator ends after that.
                close()


def _event(piece: Delta | StreamEnd, stream: Stream) -> AgentEvent | None:
    if stream.partial is not None:
        stream.partial.add(piece)
    match piece:
        case Delta("text", text) if text:
            event: AgentEvent = TextDelta(text)
        case Delta("reasoning", text) if text:
            event = ReasoningDelta(text)
        case _:
            return None
    for agent, step in reversed(stream.path):
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
                value = await _completed(effect.function) if isinstance(effect, Call) else None
            except GeneratorExit:  # The event loop ends, and awaits nothing more.
                _abandon(routine)
                raise
            except BaseException as error:
                effect = routine.throw(error)
            else:
                effect = routine.send(value)
    except (StopIteration, ConsumerGone):
        pass


async def _completed(function: Callable[[], object]) -> object:
    """Call a function and await its value to the end, however often the current task is cancelled."""
    import asyncio

    value = function()
    if not inspect.isawaitable(value):
        return value
    task = asyncio.ensure_future(value)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task.result()


def _abandon(routine: Routine[Any]) -> None:
    """Close a routine without carrying out its effects: each one that it still yields is an error of `close`."""
    for _ in range(_EFFECTS_MAX):
        with suppress(RuntimeError):
            routine.close()
            return
