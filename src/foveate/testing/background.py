"""A background that is cranked by hand, to test what a conversation does while a summary is being written."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["CrankedJob", "HandCranked"]


class CrankedJob:
    """A call that is made when somebody says so, in their own thread."""

    def __init__(self, call: Callable[[], object], *, hangs: bool) -> None:
        self._call, self._hangs = call, hangs
        self._answer: object = None
        self._error: Exception | None = None
        self._is_done = self.is_cancelled = False
        self.waits = 0
        """How often the conversation waited for it."""

    def run(self) -> None:
        """Make the call, if it was neither made nor cancelled."""
        if self._is_done or self.is_cancelled:
            return
        try:
            self._answer = self._call()
        except Exception as error:
            self._error = error
        self._is_done = True

    def done(self) -> bool:
        """Whether the call was made."""
        return self._is_done

    def result(self) -> object:
        """What it returned, or what it raised is raised."""
        if self._error:
            raise self._error
        return self._answer

    def wait(self) -> None:
        """Make the call, as if it had ended in time; if it hangs, lose patience at once."""
        self.waits += 1
        if not self._hangs:
            self.run()

    def cancel(self) -> None:
        """It will not be made any more."""
        self.is_cancelled = True


class HandCranked:
    """Keeps each call until `crank` is called. Those that are begun while `hangs` is true end only by `crank`, and not
    though somebody waits for them. `eager`: see `foveate.ports.Background`.

    >>> background = HandCranked()
    >>> job = background(lambda: "In short.")
    >>> job.done(), background.crank(), job.result()
    (False, 1, 'In short.')
    """

    def __init__(self, *, hangs: bool = False, eager: bool = False) -> None:
        self.hangs, self.eager = hangs, eager
        self.jobs: list[CrankedJob] = []
        """All that was begun, oldest first."""

    def __call__(self, call: Callable[[], object]) -> CrankedJob:
        """Keep a call."""
        self.jobs.append(CrankedJob(call, hangs=self.hangs))
        return self.jobs[-1]

    @property
    def waiting(self) -> list[CrankedJob]:
        """Those that were neither made nor cancelled."""
        return [job for job in self.jobs if not job.done() and not job.is_cancelled]

    @property
    def waits(self) -> int:
        """How often the conversation waited."""
        return sum(job.waits for job in self.jobs)

    def crank(self) -> int:
        """Make the calls that are waiting, and return how many there were."""
        waiting = self.waiting
        for job in waiting:
            job.run()
        return len(waiting)
