"""Calls that go on beside each other, in threads or in tasks, each for as long as it may take.

What acts wish for by `Begin` and `Next` (`acts.py`). Knows nothing of what is called.
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

__all__ = ["Begin", "Finished", "Tasks", "Threads", "TookTooLong", "called", "later", "now", "threaded"]


class TookTooLong(TimeoutError):
    """A call of a batch did not end within its time. It may still go on, unheard. `seconds`: what it was given."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"no answer within {seconds:g} seconds")


class Begin(Struct, frozen=True):
    """Begin calls that go on beside each other, `at_most` at a time, in their order. Answered at once, with None.

    Each may take `timeout` seconds from its own beginning (None: as long as it likes); one that takes longer has failed
    with TookTooLong, and what it returns after all is dropped. Calls of a batch before that have not ended are given
    up: tasks are cancelled, and threads, which cannot be stopped, are left to themselves.
    """

    calls: tuple[Callable[[], object], ...]
    at_most: int = 8
    timeout: float | None = None
    timeouts: tuple[float | None, ...] = ()
    """One for each call, instead of `timeout`."""

    def seconds(self, index: int) -> float | None:
        """How long the call at this place may take."""
        return self.timeouts[index] if self.timeouts else self.timeout


class Finished(Struct, frozen=True):
    """How one call of a batch ended."""

    index: int
    """Its place in the batch, from 0."""
    value: object
    error: BaseException | None
    seconds: float


class Threads:
    """A batch of calls, each in a thread of its own."""

    def __init__(self, batch: Begin = Begin(())) -> None:  # noqa: B008
        self._batch = batch
        self._ended: queue.SimpleQueue[Finished] = queue.SimpleQueue()
        self._open: dict[int, float | None] = {}
        """When each call has to end that has not ended; None: whenever it likes."""
        self._begun = 0
        self._fill()

    def _fill(self) -> None:
        while len(self._open) < max(1, self._batch.at_most) and self._begun < len(self._batch.calls):
            index = self._begun
            self._begun += 1
            seconds = self._batch.seconds(index)
            self._open[index] = None if seconds is None else time.monotonic() + seconds
            _in_thread(self._run, index)

    def _run(self, index: int) -> None:
        begun = time.monotonic()
        try:
            value = now(self._batch.calls[index]())
        except BaseException as error:
            self._ended.put(Finished(index, None, error, time.monotonic() - begun))
        else:
            self._ended.put(Finished(index, value, None, time.monotonic() - begun))

    def next(self) -> Finished:
        assert self._open, "Next is wished once for each call of the batch."
        while True:
            times = {index: end for index, end in self._open.items() if end is not None}
            first = min(times, key=times.__getitem__, default=-1)
            try:
                ended = self._ended.get(timeout=max(times[first] - time.monotonic(), 0) if times else None)
            except queue.Empty:
                seconds = self._batch.seconds(first) or 0.0
                ended = Finished(first, None, TookTooLong(seconds), seconds)
            if ended.index in self._open:  # Else it was given up before.
                del self._open[ended.index]
                self._fill()
                return ended

    def abandon(self) -> None:
        """Begin no more of them. A thread cannot be stopped: what runs goes on, and nobody hears of it."""
        self._begun = len(self._batch.calls)
        self._open.clear()


def _in_thread(call: Callable[..., object], *arguments: object) -> None:
    """Call this in a new thread, in the context of this one. A daemon: one that hangs keeps no program from its end."""
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(call, *arguments), daemon=True).start()


def now(value: object) -> object:
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise BadSetting("This must be awaited, which only an agent with asyncio can do: build the async one.")
    return value


async def called(call: Callable[[], object]) -> object:
    """What a call returns: in this thread if it is a coroutine function, else in one of its own."""
    if inspect.iscoroutinefunction(call):
        return await call()
    return await later(await threaded(call))


def threaded(call: Callable[[], object]) -> asyncio.Future[object]:
    """The result of a call in a thread of its own.

    Not in the pool of the loop: it has few threads, the store needs them too, and calls that hang would take them all.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def tell(value: object, error: BaseException | None) -> None:
        if future.done():  # Nobody waits for it any more.
            if inspect.iscoroutine(value):
                value.close()
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def run() -> None:
        value: object = None
        error: BaseException | None = None
        try:
            value = call()
        except StopIteration as raised:  # A future cannot raise it.
            error = RuntimeError("StopIteration was raised")
            error.__cause__ = raised
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # The loop was closed in between.
            loop.call_soon_threadsafe(tell, value, error)

    _in_thread(run)
    return future


async def later(value: object) -> object:
    return await value if inspect.isawaitable(value) else value


class Tasks:
    """A batch of calls, each in a task of its own."""

    def __init__(self, batch: Begin) -> None:
        import asyncio

        self._batch = batch
        self._free = asyncio.Semaphore(max(1, batch.at_most))
        self._ended: asyncio.Queue[Finished] = asyncio.Queue()
        self._tasks = [asyncio.ensure_future(self._run(index)) for index in range(len(batch.calls))]

    async def _run(self, index: int) -> None:
        import asyncio

        async with self._free:
            begun, seconds = time.monotonic(), self._batch.seconds(index)
            task = asyncio.ensure_future(_guarded(self._batch.calls[index]))
            try:
                # Not `wait_for`, which waits on for a task that will not be cancelled.
                await asyncio.wait({task}, timeout=seconds)
            finally:
                if not task.done():
                    task.cancel()
            took = time.monotonic() - begun
            if not task.done():
                ended = Finished(index, None, TookTooLong(seconds or 0.0), took)
            elif task.cancelled():
                ended = Finished(index, None, RuntimeError("it was cancelled from within"), took)
            else:
                value, error = task.result()
                ended = Finished(index, value, error, took)
            self._ended.put_nowait(ended)

    async def next(self) -> Finished:
        return await self._ended.get()

    def abandon(self) -> None:
        for task in self._tasks:
            task.cancel()


async def _guarded(call: Callable[[], object]) -> tuple[object, BaseException | None]:
    """What a call returned or raised. A tool that asks to end the program ends the call; a task would end the loop."""
    import asyncio

    try:
        return await called(call), None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return None, error
