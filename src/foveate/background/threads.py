"""Calls in threads of their own, which nobody has to wait for: not even the end of the process does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from inspect import iscoroutine

__all__ = ["PATIENCE", "ThreadJob", "Threads"]

PATIENCE = 60.0
"""Seconds that a conversation waits for a summary, where its budget leaves it no choice."""


class Threads:
    """A background for conversations that are not awaited.

    `patience`: seconds to wait where there is no choice. `eager`: see `foveate.ports.Background`.
    Summaries are rare, so each gets a thread of its own, one that a hanging call of a model cannot take from another.
    """

    def __init__(self, patience: float = PATIENCE, *, eager: bool = False) -> None:
        self.eager = eager
        self._patience = patience

    def __call__(self, call: Callable[[], object]) -> ThreadJob:
        """Begin the call; a coroutine that it returns is closed, since nobody can await it here."""
        return ThreadJob(call, patience=self._patience, awaits=False)


class ThreadJob:
    """One call in a thread. `then`: called in that thread when it has ended. `awaits`: somebody will await a coroutine
    that it returns, unless the job is cancelled.
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
        self._ended = threading.Event()  # or cancelled: whoever waits waits no longer
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
        """Whether the call has ended."""
        return self._is_done

    def result(self) -> object:
        """What it returned, or what it raised is raised."""
        if self._error:
            raise self._error
        return self._answer

    def wait(self) -> None:
        """Wait for it to end, but not longer than there is patience."""
        self._ended.wait(self._patience)

    def cancel(self) -> None:
        """A thread cannot be stopped: it is left to itself, and what it returns is thrown away."""
        with self._lock:
            self._is_wanted = False
            if self._is_done:
                self._close()
        self._ended.set()
