"""The lock of a conversation, and calls of users' code that may have to be awaited.

A conversation's own code is synchronous. Only a user's summarizer or plugin may be async: its awaitable is awaited on
the event loop of the async operation that is running. A synchronous operation cannot await it.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Protocol
from weakref import WeakSet

from ..errors import BadSetting, FoveateError
from ..ports import Job

__all__ = ["Caller", "Operation", "OperationCancelled", "SessionLock"]

_POLL = 0.02
"""Seconds between looks at whether a thread waits for itself."""


class OperationCancelled(BaseException):
    """The task that awaited the operation was cancelled. Ends the operation between two calls of the store."""


class Operation(Protocol):
    """One operation of an async conversation, which runs in a worker thread."""

    is_cancelled: bool

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Await on the event loop, and return the result to the worker thread."""
        ...

    def call(self, function: Callable[[], Any]) -> Any:
        """Call a function in the thread of the event loop."""
        ...

    def blocks_this_thread(self) -> bool:
        """Return whether the operation waits for the event loop that runs in the calling thread."""
        ...


class Caller:
    """Calls users' code for one conversation."""

    operation: Operation | None = None
    """The async operation that holds the conversation's lock."""

    def check_cancelled(self) -> None:
        """Raise OperationCancelled if the operation was cancelled."""
        if self.operation is not None and self.operation.is_cancelled:
            raise OperationCancelled

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function, and await what it returns if that can and must be awaited."""
        value = function(*arguments)
        if self.operation is not None and inspect.isawaitable(value):
            return self.operation.wait(value)
        return value

    def begin(self, background: Callable[[Callable[[], object]], Job], call: Callable[[], object]) -> Job:
        """Begin a job in the background: in the thread of the event loop, if there is one."""
        if self.operation is None:
            return background(call)
        job: Job = self.operation.call(lambda: background(call))
        return job

    def wait_for(self, job: Job) -> None:
        """Wait until a job has ended, or until its patience ends."""
        value = self.call(job.wait)
        if inspect.iscoroutine(value):  # The job's event loop runs in another thread.
            block = getattr(job, "block", None)
            value.close()
            if block is not None:
                block()


class SessionLock:
    """A reentrant lock for threads and for operations of event loops.

    A thread whose event loop has to do something for the operation that holds the lock would wait for itself; it gets
    BadSetting instead.

    An exception that is none of foveate's own may break off an operation anywhere, as Ctrl-C does. A change in memory
    may be half done then, so the next operation reads the conversation again first.
    """

    def __init__(self, caller: Caller, read_again: Callable[[], None]) -> None:
        self._lock = threading.RLock()
        self._caller, self._read_again = caller, read_again
        self.is_broken_off = False
        """Whether the last operation was broken off, and nothing was read since."""
        _locks.add(self)

    def __enter__(self) -> None:
        while not self.try_acquire(_POLL):
            operation = self._caller.operation
            if operation is not None and operation.blocks_this_thread():
                raise BadSetting(
                    "This conversation waits for a summarizer or a plugin of the event loop in this thread. Await the "
                    "methods of its async side here, or call the sync ones in another thread."
                )
        try:
            self.recover()
        except BaseException:
            self.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, FoveateError | OperationCancelled):
            self.is_broken_off = True
        self.release()

    def recover(self) -> None:
        """Read the conversation again if the last operation was broken off. The caller holds the lock."""
        if self.is_broken_off:
            self._read_again()
            self.is_broken_off = False

    def try_acquire(self, seconds: float) -> bool:
        """Acquire the lock if that is possible within `seconds`; the caller then calls `release`."""
        is_nested = self._is_owned()
        try:
            return self._lock.acquire(timeout=seconds)
        except BaseException:  # Ctrl-C may come between the acquisition and its result.
            if self._is_owned() and not is_nested:
                self._lock.release()
            raise

    def _is_owned(self) -> bool:
        """Return whether this thread holds the lock, by the method with which `threading.Condition` asks."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()

    def reset_after_fork(self) -> None:
        """Break off the operation of another thread: in a forked process it does not run, and never ends."""
        if self.try_acquire(0):
            self.release()
            return
        self._lock, self._caller.operation, self.is_broken_off = threading.RLock(), None, True


_locks: WeakSet[SessionLock] = WeakSet()


def _reset_after_fork() -> None:
    for lock in list(_locks):
        lock.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
