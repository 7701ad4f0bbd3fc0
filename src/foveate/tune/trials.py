"""Trials: replays of recordings with changed settings, run by an engine and remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from msgspec import Struct

from ..errors import BadSetting
from ..replay.corpus import Failure
from ..replay.engines import Engine, WorkerLost
from ..replay.recordings import read_recording
from ..replay.recordings.recording import Recording
from ..replay.result import Row
from ..replay.run import replay
from .frontier import clairvoyant_cost
from .space import Point, Space

__all__ = ["Job", "TimeIsUp", "Trials"]


class TimeIsUp(Exception):
    """The time of the search is over. Trials that are done are remembered."""


class Job(Struct, frozen=True):
    """The part of a trial that is the same for all of a search."""

    policy: str
    format: str | None
    lenient: bool
    options: dict[str, Any]
    """Keywords of `replay`: window, provider and prices."""


class _Task(Struct, frozen=True):
    path: str
    job: Job
    settings: dict[str, Any]
    is_first: bool
    """Whether this is the trial of the preset itself, which reports the limit too."""


class _Outcome(Struct, frozen=True):
    row: Row | None = None
    tip: str = ""
    limit: float = 0.0
    problem: str = ""


class Trials:
    """The figures of every point and recording that was tried."""

    def __init__(
        self,
        space: Space,
        job: Job,
        engine: Engine,
        *,
        is_over: Callable[[], bool],
        progress: Callable[[int], object] | None = None,
    ) -> None:
        """Create an empty memory. `is_over`: whether to stop. `progress`: called with the number of replays done."""
        self._space, self._job, self._engine, self._is_over, self._progress = space, job, engine, is_over, progress
        self._rows: dict[tuple[Point, str], Row | None] = {}
        self._points: dict[Point, None] = {}
        self.limits: dict[str, float] = {}
        """By path: the clairvoyant cost of the recording, in tokens of base input price."""
        self.tips: dict[str, str] = {}
        """By path: the id of the recording's newest message. Copies of a recording have the same."""
        self.failures: list[Failure] = []
        """Recordings that cannot be replayed under the preset itself, and copies of others."""

    def __len__(self) -> int:
        """Return the number of replays."""
        return len(self._rows)

    def run(self, points: Iterable[Point], paths: Iterable[str]) -> None:
        """Replay these recordings with the settings of these points, but for those that are remembered.

        Raises TimeIsUp if the time ends before the replays do, and BadSetting for a setting that no recording accepts.
        """
        chosen = list(dict.fromkeys(points))
        # The longest first, so that no worker starts a long one at the end.
        order = sorted(paths, key=lambda path: -self._cost(path))
        wanted = [(point, path) for path in order for point in chosen if (point, path) not in self._rows]
        self._points.update(dict.fromkeys(point for point, _ in wanted))
        start = self._space.start
        tasks = [_Task(path, self._job, self._space.settings(point), point == start) for point, path in wanted]
        if tasks and self._is_over():
            raise TimeIsUp
        running = self._engine.map(_work, tasks)
        try:
            for done, (index, outcome) in enumerate(running, 1):
                point, path = wanted[index]
                if isinstance(outcome, WorkerLost):
                    outcome = _Outcome(problem="The process that replayed it was killed (too little memory?).")
                self._remember(point, path, outcome)
                if done < len(tasks) and self._is_over():
                    raise TimeIsUp
        finally:
            running.close()  # type: ignore[attr-defined]  # Every engine's map is a generator.

    def rows(self, point: Point, paths: Iterable[str]) -> list[Row] | None:
        """Return the figures of a point on these recordings, or None if one is missing or could not be replayed."""
        rows = [self._rows.get((point, path)) for path in paths]
        known = [row for row in rows if row is not None]
        return known if len(known) == len(rows) else None

    def points(self) -> list[Point]:
        """Return all points that were tried, in the order in which they were asked for."""
        return list(self._points)

    def _cost(self, path: str) -> float:
        """Return the size of a recording; 0 if it is not known yet."""
        row = self._rows.get((self._space.start, path))
        return row.cost_unmanaged if row is not None else 0.0

    def _remember(self, point: Point, path: str, outcome: _Outcome) -> None:
        self._rows[point, path] = outcome.row
        if point == self._space.start:
            self.limits[path], self.tips[path] = outcome.limit, outcome.tip
            if outcome.row is None:
                self.failures.append(Failure(path, "", outcome.problem))
        if self._progress:
            self._progress(len(self._rows))


def _work(task: _Task) -> _Outcome:
    """Replay one recording. A module-level function, so that another process can run it."""
    job = task.job
    try:
        recording = _recording(task.path, job.format, job.lenient)
        result = replay(recording, policy=job.policy, settings=task.settings or None, **job.options)
    except BadSetting:
        raise
    except Exception as error:
        return _Outcome(problem=str(error) or type(error).__name__)
    messages = [entry.message for entry in recording.messages]
    limit = clairvoyant_cost(messages, job.options["prices"]) if task.is_first else 0.0
    return _Outcome(result.row, result.tip, limit)


@lru_cache(maxsize=2)
def _recording(path: str, format: str | None, lenient: bool) -> Recording:
    """Read a recording, or return one of the two that this process read last."""
    return read_recording(path, format=format, lenient=lenient)
