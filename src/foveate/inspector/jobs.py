"""Jobs: work for a page that takes long, in the background, with its progress, and a way to cancel it."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any, Literal

from ..errors import FoveateError

__all__ = ["Cancelled", "Job", "Jobs", "Progress"]

Progress = Callable[[int, int], object]
"""Takes what is done and what there is to do. Raises Cancelled if a person cancelled the job."""

_WAITING_MAX = 16
"""Jobs that may wait; the oldest of more is cancelled."""
_KEPT = 16
"""Finished jobs whose results stay in memory."""


class Cancelled(Exception):
    """A person cancelled the job."""


class Job:
    """One piece of work. A page reads its attributes at any time."""

    def __init__(self, owner: str, run: Callable[[Progress], Any]) -> None:
        self.id = secrets.token_urlsafe(12)
        """Its name in addresses."""
        self.owner = owner
        """The tenant that started it."""
        self.status: Literal["waiting", "running", "done", "failed", "cancelled"] = "waiting"
        """How far it is."""
        self.done = self.total = 0
        """Steps that are done, and all steps; 0 while they are unknown."""
        self.result: Any = None
        """The result when it is done."""
        self.failure: Exception | None = None
        """The exception when it failed."""
        self.error = ""
        """The reason in words."""
        self._run = run
        self._finished = threading.Event()
        self._cancelled = False

    @property
    def is_finished(self) -> bool:
        """Return whether it ended: done, failed or cancelled."""
        return self._finished.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until it ended, at most this long. Returns whether it ended."""
        return self._finished.wait(seconds)

    def cancel(self) -> None:
        """Stop it at its next step. A job that ended stays as it is."""
        self._cancelled = True
        if self.status == "waiting":
            self._end("cancelled")

    def work(self) -> None:
        """Do the work in this thread."""
        if self._cancelled:
            return self._end("cancelled")
        self.status = "running"
        try:
            self.result = self._run(self._report)
        except Cancelled:
            self._end("cancelled")
        except Exception as error:
            self.failure = error
            self.error = str(error) if isinstance(error, FoveateError) else f"{type(error).__name__}: {error}"
            self._end("failed")
        else:
            self._end("done")

    def _report(self, done: int, total: int) -> None:
        if self._cancelled:
            raise Cancelled
        self.done, self.total = done, total

    def _end(self, status: Literal["done", "failed", "cancelled"]) -> None:
        if not self._finished.is_set():
            self.status = status
            self._run = _nothing
            self._finished.set()


class Jobs:
    """The jobs of one application. One thread does them in order, because they all need the processor."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_key: OrderedDict[Hashable, Job] = OrderedDict()
        self._queue: deque[Job] = deque()
        self._is_working = False

    def start(self, owner: str, key: Hashable, run: Callable[[Progress], Any], *, again: str = "") -> Job:
        """Return the job with this key, or start it.

        `owner`: the tenant. `key`: everything that the result depends on. `run`: takes a Progress, returns the result.
        `again`: the id of a failed or cancelled job to start again. A page that is loaded again starts nothing twice.
        """
        with self._lock:
            job = self._by_key.pop((owner, key), None)
            if job is None or (job.id == again and job.status in ("failed", "cancelled")):
                job = Job(owner, run)
                self._queue.append(job)
            self._by_key[owner, key] = job
            self._limit()
            if not self._is_working:
                self._is_working = True
                threading.Thread(target=self._work, name="foveate-inspector-jobs", daemon=True).start()
        return job

    def find(self, owner: str, id: str) -> Job | None:
        """Return the job of this tenant with this id, or None."""
        with self._lock:
            return next((job for job in self._by_key.values() if job.owner == owner and job.id == id), None)

    def close(self) -> None:
        """Cancel all jobs."""
        with self._lock:
            for job in self._by_key.values():
                job.cancel()
            self._by_key.clear()

    def _limit(self) -> None:
        waiting = [job for job in self._queue if job.status == "waiting"]
        for job in waiting[:-_WAITING_MAX]:
            job.cancel()
        finished = [key for key, job in self._by_key.items() if job.is_finished]
        for key in finished[:-_KEPT]:
            del self._by_key[key]

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._is_working = False
                    return
                job = self._queue.popleft()
            job.work()


def _nothing(progress: Progress) -> None:
    """Stand for the work of a job that ended, so that what it needs leaves the memory."""
