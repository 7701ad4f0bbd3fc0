"""Calls in tasks of a running event loop. Apart from `threads.py`, since asyncio is slow to import.

A call may block, so it is made in a thread; what it returns is awaited in the loop.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..errors import BadSetting
from .threads import PATIENCE, ThreadJob

__all__ = ["OneLoop", "TaskJob", "Tasks", "finished"]


class Tasks:
    """A background for conversations that are awaited.

    `patience`: seconds to wait where there is no choice. `eager`: see `foveate.ports.Background`.
    """

    def __init__(self, patience: float = PATIENCE, *, eager: bool = False) -> None:
        self.eager = eager
        self._patience = patience

    def __call__(self, call: Callable[[], object]) -> TaskJob:
        """Begin the call. Must be called in a running event loop."""
        return TaskJob(call, self._patience)


class TaskJob:
    """One call in a task."""

    def __init__(self, call: Callable[[], object], patience: float) -> None:
        self._patience = patience
        self._answer: object = None
        self._error: Exception | None = RuntimeError("the task was cancelled")
        self._task = asyncio.get_running_loop().create_task(self._run(call), name="foveate-summary")

    async def _run(self, call: Callable[[], object]) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # The loop may be closed by then.
                loop.call_soon_threadsafe(ended.set)

        job = ThreadJob(call, then=tell)
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
        """Whether the task has ended, or was cancelled."""
        return self._task.done()

    def result(self) -> object:
        """What the call returned, or what it raised is raised."""
        if self._error:
            raise self._error
        return self._answer

    async def wait(self) -> None:
        """Wait for it to end, but not longer than there is patience. Whoever waits may be cancelled; it goes on."""
        await asyncio.wait([self._task], timeout=self._patience)

    def cancel(self) -> asyncio.Task[None]:
        """Cancel the task, and return it: it has ended when what it awaits has."""
        self._task.cancel()
        return self._task


class OneLoop:
    """One thing after the other, by tasks of one event loop; when nothing is under way, another may come.

    Raises BadSetting where something is under way in another loop: one that was closed never ends it, and of the end of
    one that runs nobody would hear here.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()
        if self._lock.locked() and self._loop is not loop:
            raise BadSetting(
                "Something is under way with this conversation in another event loop, or was when that was closed, and "
                "nobody can wait for it here. Use it in one loop, or open the conversation again in this one."
            )
        if self._loop is not loop:
            self._lock = asyncio.Lock()  # It stays with the loop in which somebody waited for it first.
        await self._lock.acquire()
        self._loop = loop

    async def __aexit__(self, *exc: object) -> None:
        self._lock.release()


async def finished(work: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait for a call of the store to end, even if the task is cancelled meanwhile; the cancellation is returned.

    A thread cannot be stopped: a task that left it behind would let the next one begin before what was written is
    known, or take a connection from under it.
    """
    cancelled = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled
