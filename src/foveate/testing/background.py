"""A background that runs its calls on request, to test a conversation during a summary."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["CrankedJob", "HandCranked"]


class CrankedJob:
    """A call that runs on request, in the thread of the caller."""

    def __init__(self, call: Callable[[], object], *, hangs: bool) -> None:
        self._call, self._hangs = call, hangs
        self._answer: object = None
        self._error: Exception | None = None
        self._is_done = False
        self.is_cancelled = False
        """Whether the conversation no longer wants the result."""
        self.waits = 0
        """How often the conversation waited for this call."""

    def run(self) -> None:
        """Run the call, unless it ran already or was cancelled."""
        if self._is_done or self.is_cancelled:
            return
        try:
            self._answer = self._call()
        except Exception as error:
            self._error = error
        self._is_done = True

    def done(self) -> bool:
        """Return whether the call has run."""
        return self._is_done

    def result(self) -> object:
        """Return the result of the call, or raise its exception."""
        if self._error:
            raise self._error
        return self._answer

    def wait(self) -> None:
        """Run the call as if it had ended in time; if it hangs, return at once like a timeout."""
        self.waits += 1
        if not self._hangs:
            self.run()

    def cancel(self) -> None:
        """Cancel the call."""
        self.is_cancelled = True


class HandCranked:
    """Keeps each call until `crank` runs it. A call that starts while `hangs` is true does not run when the
    conversation waits for it. `eager`: see `foveate.ports.Background`.

    >>> background = HandCranked()
    >>> job = background(lambda: "In short.")
    >>> job.done(), background.crank(), job.result()
    (False, 1, 'In short.')
    """

    def __init__(self, *, hangs: bool = False, eager: bool = False) -> None:
        self.hangs, self.eager = hangs, eager
        self.jobs: list[CrankedJob] = []
        """All calls, oldest first."""

    def __call__(self, call: Callable[[], object]) -> CrankedJob:
        """Store a call."""
        self.jobs.append(CrankedJob(call, hangs=self.hangs))
        return self.jobs[-1]

    @property
    def waiting(self) -> list[CrankedJob]:
        """Return the calls that neither ran nor were cancelled."""
        return [job for job in self.jobs if not job.done() and not job.is_cancelled]

    @property
    def waits(self) -> int:
        """Return how often the conversation waited."""
        return sum(job.waits for job in self.jobs)

    def crank(self) -> int:
        """Run the waiting calls, and return their number."""
        waiting = self.waiting
        for job in waiting:
            job.run()
        return len(waiting)
