"""Calls in daemon threads that nothing waits for, not even the end of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from inspect import iscoroutine

__all__ = ["PATIENCE", "ThreadJob", "Threads"]

PATIENCE = 60.0
"""Seconds that a conversation waits for a summary without which its view does not fit."""


class Threads:
    """A background for synchronous conversations.

    `patience`: seconds to wait for a summary without which the view does not fit. `eager`: see
    `foveate.ports.Background`. Summaries are rare, so each has its own thread, and a model that hangs blocks no other.
    """

    def __init__(self, patience: float = PATIENCE, *, eager: bool = False) -> None:
        self.eager = eager
        """Whether it takes every summary that the view can wait for."""
        self.patience = patience
        """Seconds to wait for a summary without which the view does not fit."""

    def __call__(self, call: Callable[[], object]) -> ThreadJob:
        """Begin the call. A coroutine that it returns is closed, since no task can await it here."""
        return ThreadJob(call, patience=self.patience, awaits=False)


class ThreadJob:
    """One call in a thread.

    `then`: called in that thread when it has ended. `awaits`: a coroutine that the call returns is awaited by the
    caller, unless the job is cancelled.
    """

    def __init__(
        self,
        call: Callable[[], object],
        *,
        patience: float = PATIENCE,
        awaits: bool = True,
        then: Callable[[], object] | None = None,
    ) -> None:
        self._call, self._patience, self._then = call, patience, then
        self._ended = threading.Event()  # Also set when the job is cancelled, so that waiting ends.
        self._lock = threading.Lock()
        self._is_done = False
        self._is_wanted = awaits
        self._answer: object = None
        self._error: Exception | None = None
        threading.Thread(target=copy_context().run, args=(self._run,), name="foveate-summary", daemon=True).start()

    def _run(self) -> None:
        try:
            self._answer = self._call()
        except Exception as error:
            self._error = error
        except BaseException as error:  # It was meant for this thread, and must not end another one.
            self._error = RuntimeError(f"the thread ended with {error!r}")
        with self._lock:
            self._is_done = True
            if not self._is_wanted:
                self._close()
        self._ended.set()
        if self._then:
            self._then()

    def _close(self) -> None:
        if iscoroutine(self._answer):
            self._answer.close()

    def done(self) -> bool:
        """Return whether the call has ended."""
        return self._is_done

    def result(self) -> object:
        """Return what the call returned, or raise what it raised."""
        if self._error:
            raise self._error
        return self._answer

    def wait(self) -> None:
        """Wait for the call to end, for `patience` seconds at most."""
        self._ended.wait(self._patience)

    def cancel(self) -> None:
        """Abandon the thread, which cannot be stopped, and drop its result."""
        with self._lock:
            self._is_wanted = False
            if self._is_done:
                self._close()
        self._ended.set()
