"""Calls in tasks of a running event loop. Separate from `threads.py`, since asyncio is slow to import.

A call may block, so it runs in a thread; an awaitable that it returns is awaited in the loop.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import BadSetting
from .threads import PATIENCE, ThreadJob, Threads

__all__ = ["LoopLock", "TaskJob", "Tasks", "finished", "running_loop"]


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of this thread. Raises BadSetting if none runs, or another library's, such as trio's."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError as error:
        raise BadSetting(
            "No event loop of asyncio runs in this thread, and the async side of a conversation needs one. Start it by "
            "asyncio.run; with trio, call the sync side in a thread (trio.to_thread.run_sync)."
        ) from error


class Tasks:
    """A background for conversations of asyncio; outside of an event loop it uses threads.

    `patience`: seconds to wait for a summary without which the view does not fit. `eager`: see
    `foveate.ports.Background`.
    """

    def __init__(self, patience: float = PATIENCE, *, eager: bool = False) -> None:
        self.eager = eager
        self.patience = patience

    @classmethod
    def like(cls, threads: Threads) -> Tasks:
        """Return a background with the options of another."""
        return cls(threads.patience, eager=threads.eager)

    def __call__(self, call: Callable[[], object]) -> TaskJob | ThreadJob:
        """Begin the call."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return ThreadJob(call, patience=self.patience, awaits=False)
        return TaskJob(call, self.patience)


class TaskJob:
    """One call in a task. Must be made in a running event loop."""

    def __init__(self, call: Callable[[], object], patience: float) -> None:
        self._patience = patience
        self._answer: object = None
        self._error: Exception | None = RuntimeError("the task was cancelled")
        self._ended = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run(call), name="foveate-summary")
        self._task.add_done_callback(lambda _: self._ended.set())

    async def _run(self, call: Callable[[], object]) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            with suppress(RuntimeError):  # The loop may be closed by then.
                loop.call_soon_threadsafe(ended.set)

        job = ThreadJob(call, then=notify)
        try:
            await ended.wait()
        except asyncio.CancelledError:
            job.cancel()
            raise
        try:
            answer = job.result()
            self._answer = await answer if inspect.isawaitable(answer) else answer
            self._error = None
        except Exception as error:
            self._error = error

    def done(self) -> bool:
        """Return whether the task has ended, was cancelled, or will never end because its loop was closed."""
        return self._task.done() or self._loop.is_closed()

    def result(self) -> object:
        """Return what the call returned, or raise what it raised."""
        if self._error:
            raise self._error
        return self._answer

    async def wait(self) -> None:
        """Wait for the task to end, for `patience` seconds at most. The waiting may be cancelled; the task goes on."""
        if asyncio.get_running_loop() is self._loop:
            await asyncio.wait([self._task], timeout=self._patience)
        elif not self.done():  # A task cannot be awaited in another loop.
            await asyncio.to_thread(self._ended.wait, self._patience)

    def block(self) -> None:
        """Wait in a thread other than that of the event loop."""
        with suppress(RuntimeError):
            if asyncio.get_running_loop() is self._loop:
                return
        self._ended.wait(self._patience)

    def cancel(self) -> asyncio.Task[None]:
        """Cancel the task, and return it: it ends when what it awaits has ended."""
        try:
            is_own_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_own_loop = False
        if is_own_loop:
            self._task.cancel()
        else:
            with suppress(RuntimeError):  # The loop may be closed.
                self._loop.call_soon_threadsafe(self._task.cancel)
        return self._task


class LoopLock:
    """A lock for the tasks of each event loop. Tasks of different loops do not wait for each other here."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def _own(self) -> asyncio.Lock:
        with self._guard:
            return self._locks.setdefault(running_loop(), asyncio.Lock())

    async def __aenter__(self) -> None:
        await self._own().acquire()

    async def __aexit__(self, *exc: object) -> None:
        self._own().release()


async def finished(work: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait for a call of the store to end, even if the task is cancelled meanwhile; return the cancellation.

    A thread cannot be stopped. A task that left it would let the next one begin before the result of a write is known.
    """
    cancelled = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled
