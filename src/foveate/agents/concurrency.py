"""Calls that run in parallel, in threads or in tasks, each with its own time limit.

`performers.py` carries out `StartCalls` and `NextCall` with these batches.
"""

from __future__ import annotations

import contextvars
import inspect
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from ..errors import BadSetting

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "SLICE",
    "CallTimeout",
    "FinishedCall",
    "StartCalls",
    "TaskBatch",
    "ThreadBatch",
    "call_async",
    "call_in_thread",
    "require_value",
    "resolve",
    "start_thread",
]


class CallTimeout(TimeoutError):
    """A call of a batch exceeded its time limit. It may still run; its result is dropped. `seconds`: the limit."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"no answer within {seconds:g} seconds")


class StartCalls(Struct, frozen=True):
    """Start a batch of calls in their order, `max_parallel` at a time. The result, the batch, comes at once.

    A call that exceeds its time limit fails with CallTimeout. A batch that is abandoned (`abandon`, or the end of the
    routine) starts no more calls: its tasks are cancelled, and its threads, which cannot be stopped, run on without
    effect.
    """

    calls: tuple[Callable[[], object], ...]
    max_parallel: int = 8
    timeout: float | None = None
    """Seconds of each call, from its start. None: no limit."""
    timeouts: tuple[float | None, ...] = ()
    """One for each call, instead of `timeout`."""

    def seconds(self, index: int) -> float | None:
        """Return the time limit of one call."""
        return self.timeouts[index] if self.timeouts else self.timeout


class FinishedCall(Struct, frozen=True):
    """How one call of a batch ended."""

    index: int
    """Its place in the batch, from 0."""
    value: object
    """Its return value."""
    error: BaseException | None
    """The error that it raised."""
    seconds: float
    """How long it took."""


SLICE = 0.5
"""Seconds of one wait. A Ctrl-C that arrives just before a wait begins does not interrupt it, so no wait is endless."""


class ThreadBatch:
    """A batch of calls, each in its own thread."""

    def __init__(self, batch: StartCalls) -> None:
        self._batch = batch
        self._ended: queue.SimpleQueue[FinishedCall] = queue.SimpleQueue()
        self._open: dict[int, float | None] = {}
        """The deadline of each call that has started and not ended. None: no deadline."""
        self._started = 0
        self._lock = threading.Lock()  # One thread may wait for a call while another one abandons the batch.
        self._fill()

    def _fill(self) -> None:
        with self._lock:
            while len(self._open) < max(1, self._batch.max_parallel) and self._started < len(self._batch.calls):
                index = self._started
                self._started += 1
                seconds = self._batch.seconds(index)
                self._open[index] = None if seconds is None else time.monotonic() + seconds
                start_thread(self._run, index)

    def _run(self, index: int) -> None:
        start = time.monotonic()
        try:
            value = require_value(self._batch.calls[index]())
        except BaseException as error:
            self._ended.put(FinishedCall(index, None, error, time.monotonic() - start))
        else:
            self._ended.put(FinishedCall(index, value, None, time.monotonic() - start))

    def next(self) -> FinishedCall:
        """Wait until another call ends or exceeds its time limit."""
        while self._open:
            deadlines = {index: end for index, end in list(self._open.items()) if end is not None}
            first = min(deadlines, key=deadlines.__getitem__, default=-1)
            left = max(deadlines[first] - time.monotonic(), 0) if deadlines else SLICE
            try:
                ended = self._ended.get(timeout=min(left, SLICE))
            except queue.Empty:
                if not deadlines or left > SLICE:
                    continue
                seconds = self._batch.seconds(first) or 0.0
                ended = FinishedCall(first, None, CallTimeout(seconds), seconds)
            if ended.index in self._open:  # Skip calls that timed out before.
                self._open.pop(ended.index, None)
                self._fill()
                return ended
        raise RuntimeError("The batch has no open calls: all have been reported, or it was abandoned.")

    def abandon(self) -> None:
        """Start no more calls, and ignore those that run: a thread cannot be stopped."""
        with self._lock:
            self._started = len(self._batch.calls)
            self._open.clear()


def start_thread(call: Callable[..., object], *arguments: object) -> None:
    """Call this in a daemon thread with a copy of the current context. A thread that hangs does not block the exit."""
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(call, *arguments), daemon=True).start()


def require_value(value: object) -> object:
    """Return the value. Raise BadSetting if it must be awaited."""
    if inspect.isawaitable(value):
        _drop(value)
        raise BadSetting("This must be awaited, and only an async agent can do that. Build the async agent.")
    return value


async def resolve(value: object) -> object:
    """Return the value, awaited if it is an awaitable."""
    return await value if inspect.isawaitable(value) else value


async def call_async(call: Callable[[], object]) -> object:
    """Await a coroutine function; call any other function in its own thread."""
    if inspect.iscoroutinefunction(call):
        return await call()
    called = call_in_thread(call)
    try:
        value = await called
    except BaseException:
        if called.done() and not called.cancelled() and called.exception() is None:
            _drop(called.result())  # The task was cancelled just after the call had ended.
        raise
    return await resolve(value)


def _drop(value: object) -> None:
    """Close a coroutine that is not awaited."""
    if inspect.iscoroutine(value):
        value.close()


def call_in_thread(call: Callable[[], object]) -> asyncio.Future[object]:
    """Return the result of a call in its own thread.

    The loop's thread pool is not used: it is small, the store needs it too, and calls that hang would fill it.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def deliver(value: object, error: BaseException | None) -> None:
        if future.done():  # It was cancelled.
            _drop(value)
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def run() -> None:
        value: object = None
        error: BaseException | None = None
        try:
            value = call()
        except StopIteration as raised:  # A future cannot raise StopIteration.
            error = RuntimeError("StopIteration was raised")
            error.__cause__ = raised
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # The loop may be closed by now.
            loop.call_soon_threadsafe(deliver, value, error)

    start_thread(run)
    return future


class TaskBatch:
    """A batch of calls, each in its own task."""

    def __init__(self, batch: StartCalls) -> None:
        import asyncio

        self._batch = batch
        self._free = asyncio.Semaphore(max(1, batch.max_parallel))
        self._ended: asyncio.Queue[FinishedCall] = asyncio.Queue()
        self._tasks = [asyncio.ensure_future(self._run(index)) for index in range(len(batch.calls))]

    async def _run(self, index: int) -> None:
        import asyncio

        async with self._free:
            start, seconds = time.monotonic(), self._batch.seconds(index)
            task = asyncio.ensure_future(_run_guarded(self._batch.calls[index]))
            try:
                # `wait_for` would keep waiting for a task that ignores its cancellation.
                await asyncio.wait({task}, timeout=seconds)
            finally:
                if not task.done():
                    task.cancel()
            took = time.monotonic() - start
            if not task.done():
                ended = FinishedCall(index, None, CallTimeout(seconds or 0.0), took)
            elif task.cancelled():
                ended = FinishedCall(index, None, RuntimeError("it was cancelled from within"), took)
            else:
                value, error = task.result()
                ended = FinishedCall(index, value, error, took)
            self._ended.put_nowait(ended)

    async def next(self) -> FinishedCall:
        """Wait until another call ends or exceeds its time limit."""
        return await self._ended.get()

    def abandon(self) -> None:
        """Cancel all calls."""
        for task in self._tasks:
            task.cancel()


async def _run_guarded(call: Callable[[], object]) -> tuple[object, BaseException | None]:
    """Return a call's value or its error. Even SystemExit ends only the call; in a task it would end the loop."""
    import asyncio

    try:
        return await call_async(call), None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return None, error
