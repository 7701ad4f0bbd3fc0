"""Tuning: searches the parameters of a preset on recordings, and checks what was found on recordings it did not see.

The recordings are split into two halves. A search of each half sees no recording of the other one, and its result is
measured there. So the gain to expect is not that of a preset which was fitted to the recordings that judge it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from time import monotonic
from typing import Literal

from ..core.call_context import Prices
from ..errors import BadSetting
from ..replay.corpus import Failure, sum_rows
from ..replay.engines import Engine, open_engine
from ..replay.measure import DEFAULT_PRICES
from ..settings import load
from .frontier import all_in, non_dominated, readable
from .result import Ending, HeldOut, Trial, Tuned
from .search import Search, score
from .space import Point, Space, changes_between, space_of
from .trials import Job, TimeIsUp, Trials

__all__ = ["LEAST_RECORDINGS", "tune"]

LEAST_RECORDINGS = 4
"""With fewer recordings no half has two, and the result would follow a single session."""

_FOR_ALL = 0.04
"""Share of the time in which recordings must have been replayed under the preset. Others are left out: the first round
takes up to twenty times as long, and without a complete round there is no result.
"""
_FOR_ENDS = 0.15
"""Share of the time that is reserved for measuring the frontier."""
_ROUNDS = 8
_IDLE_ROUNDS = 2
"""The search ends after so many rounds in a row without a better point in either half."""
_TOLERANCE = 0.01
"""How much less than the preset may stay readable, unless the caller names a share."""
_LEAST_GAIN = 0.01
"""The smallest gain that is worth a preset."""
_FRONTIER = 6
"""How many points of each half's frontier are measured on all recordings."""
_FEW_FOLDERS = 4
"""With fewer folders, the halves are split by recording."""


def tune(
    paths: Iterable[str | os.PathLike[str]],
    *,
    policy: str,
    window: int = 200_000,
    provider: str = "openai",
    prices: Prices = DEFAULT_PRICES,
    keep_readable: float | None = None,
    minutes: float | None = None,
    seed: int = 0,
    jobs: int | None = None,
    engine: Engine | Literal["local", "ray"] = "local",
    format: str | None = None,
    lenient: bool = False,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    clock: Callable[[], float] = monotonic,
    progress: Callable[[int, float, str], object] | None = None,
) -> Tuned:
    """Search the parameters of a preset for the lowest all-in cost on these recordings.

    `policy` is the name of a preset or the path of a TOML file. `window` is in tokens; `provider` and `prices` are as
    for `replay`. `keep_readable` is the share (0 to 1) of what calls use that their views must show; the default is
    that of the preset less 0.01. `minutes` limits the time: without it the search makes all of its rounds. `jobs` and
    `engine` say where replays run, `format` and `lenient` how recordings are read. `environ` and `folder` (default:
    `os.environ` and the current folder) hold settings that take precedence over a preset; the search leaves these
    alone. `clock` returns seconds. The result depends on the seed and the recordings alone, unless the time is
    too short for the search. `progress` is called after each replay with the number of replays, the elapsed share of
    the time, and the stage.

    Ctrl-C ends the search with the best result so far, unless the preset itself is not measured yet. Raises BadSetting
    for fewer than four recordings, for a preset without parameters, and for values out of range.
    """
    files = list(dict.fromkeys(os.fspath(path) for path in paths))
    if len(files) < LEAST_RECORDINGS:
        raise BadSetting(
            f"Tuning needs at least {LEAST_RECORDINGS} recordings, not {len(files)}: a preset that fits so few "
            "sessions fits no other. Name more, or compare presets with foveate replay --compare."
        )
    if keep_readable is not None and not 0 <= keep_readable <= 1:
        raise BadSetting(f"keep_readable is {keep_readable}. Set it to a share from 0 to 1, such as 0.95.")
    if minutes is not None and not 0 < minutes < math.inf:
        raise BadSetting(f"minutes is {minutes}. Set it to a number above 0.")
    settings = load(policy=policy, environ=os.environ if environ is None else environ, folder=folder or Path())
    space = space_of(settings.layer)
    if not space.parameters:
        raise BadSetting(f"Policy {policy!r} has no parameters to search. Choose another preset, such as balanced.")
    seconds = math.inf if minutes is None else minutes * 60
    began = clock()
    watch = _Watch(lambda: (clock() - began) / seconds)
    workers = open_engine(engine, jobs)
    trials = Trials(
        space,
        Job(policy, format, lenient, {"window": window, "provider": provider, "prices": prices}),
        workers,
        is_over=watch.is_over,
        progress=progress and (lambda done: progress(done, min(watch.elapsed(), 1.0), watch.stage)),
    )
    try:
        tuning = _Tuning(space, trials, watch, files, keep_readable, seed)
        ending = tuning.run()
    finally:
        if workers is not engine:
            workers.close()
    return tuning.result(policy, window, ending)


class _Watch:
    """The time of a search, as a share of the limit."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self.elapsed = elapsed
        self.until = 1.0
        """The share at which the present stage ends."""
        self.stage = ""

    def begin(self, stage: str, until: float) -> None:
        self.stage, self.until = stage, until

    def is_over(self) -> bool:
        return self.elapsed() >= self.until


class _Tuning:
    """State of a search over both halves."""

    def __init__(
        self, space: Space, trials: Trials, watch: _Watch, files: Sequence[str], keep: float | None, seed: int
    ) -> None:
        self._space, self._trials, self._watch, self._seed = space, trials, watch, seed
        self._files, self._keep = files, keep
        self._paths: list[str] = []  # the recordings of the search, the most expensive first
        self._halves: list[Search] = []
        self._checked: tuple[Point, ...] = ()  # the best points of the halves, measured on all recordings
        self._least = 0.0
        self._rounds = 0

    def run(self) -> Ending:
        """Search until nothing better is found. Raises BadSetting if too few recordings can be replayed."""
        self._measure_preset()
        ending: Ending = "complete"
        try:
            try:
                self._search()
            except TimeIsUp:
                ending = "time"
            self._measure_frontier()
        except TimeIsUp:
            ending = "time"
        except KeyboardInterrupt:
            ending = "interrupted"
        return ending

    def result(self, policy: str, window: int, ending: Ending) -> Tuned:
        """Return what was found."""
        points = [self._space.start, *(p for p in self._trials.points() if p != self._space.start)]
        trials = {point: trial for point in points if (trial := self._trial(point)) is not None}
        preset = trials[self._space.start]
        whole = preset.row.cost_unmanaged
        clairvoyant = sum([self._trials.limits[path] for path in self._paths]) / whole if whole else 1.0
        return Tuned(
            policy=policy,
            window=window,
            recordings=len(self._paths),
            left_out=len(self._files) - len(self._paths) - len(self._trials.failures),
            failures=tuple(sorted(self._trials.failures, key=lambda failure: failure.path)),
            preset=preset,
            best=self._best(trials),
            trials=tuple(trials.values()),
            frontier=tuple(non_dominated(list(trials.values()), lambda trial: (trial.all_in, trial.readable))),
            held_out=self._held_out(),
            limit=min([clairvoyant, *(trial.all_in for trial in trials.values())]),
            keep_readable=self._least,
            parameters=len(self._space.parameters),
            rounds=self._rounds,
            replays=len(self._trials),
            ending=ending,
            seed=self._seed,
        )

    def _measure_preset(self) -> None:
        """Replay the recordings under the preset, in random order, as many as there is time for; split them."""
        random = Random(self._seed)
        order = random.sample(self._files, len(self._files))
        self._watch.begin("the preset itself", _FOR_ALL)
        start = self._space.start
        try:
            # The least number of recordings is measured in any case.
            self._watch.until = math.inf
            begun = 0
            while begun < len(order) and (missing := LEAST_RECORDINGS - self._usable(order[:begun])) > 0:
                self._trials.run([start], order[begun : begun + missing])
                begun += missing
            self._watch.until = _FOR_ALL
            self._trials.run([start], order[begun:])
        except TimeIsUp:
            pass
        costs = {path: rows[0].cost_unmanaged for path in order if (rows := self._trials.rows(start, [path]))}
        originals: dict[str, str] = {}
        for path in sorted(costs):
            original = originals.setdefault(self._trials.tips[path], path)
            if original != path:  # Its original may be in the other half.
                self._trials.failures.append(Failure(path, "", f"It has the same messages as {original}."))
                del costs[path]
        self._trials.failures += [Failure(path, "", "It has no model call.") for path in costs if not costs[path]]
        self._paths = sorted((path for path in costs if costs[path]), key=lambda path: (-costs[path], path))
        if len(self._paths) < LEAST_RECORDINGS:
            failures = sorted(self._trials.failures, key=lambda failure: failure.path)
            problems = "".join(f" {failure}" for failure in failures[:3])
            raise BadSetting(
                f"Only {len(self._paths)} of {len(self._files)} recordings can be used, and tuning needs at least "
                f"{LEAST_RECORDINGS} with model calls. Name more recordings.{problems}"
            )
        shown = readable(self._trials.rows(start, self._paths) or [])
        self._least = self._keep if self._keep is not None else max(0.0, shown - _TOLERANCE)
        for number, half in enumerate(_split(self._paths, costs, random)):
            least = self._keep
            if least is None:
                least = max(0.0, readable(self._trials.rows(start, half) or []) - _TOLERANCE)
            self._halves.append(Search(self._space, self._trials, half, least, Random(f"{self._seed} {number}")))

    def _usable(self, paths: Iterable[str]) -> int:
        """Return how many of these recordings have a model call and were replayed, each copy counted once."""
        rows = {path: rows[0] for path in paths if (rows := self._trials.rows(self._space.start, [path]))}
        return len({self._trials.tips[path] for path, row in rows.items() if row.cost_unmanaged})

    def _search(self) -> None:
        """Search both halves round by round. After each round, measure each half's best point on the other half."""
        idle = 0
        while self._rounds < _ROUNDS and idle < _IDLE_ROUNDS:
            self._watch.begin(f"round {self._rounds + 1}", 1.0 - _FOR_ENDS)
            found = [half.run_round() for half in self._halves]
            first, second = self._halves
            self._watch.begin(f"round {self._rounds + 1}, cross-check", 1.0)
            self._trials.run([first.best], second.paths)
            self._trials.run([second.best], first.paths)
            self._checked = (first.best, second.best)
            self._rounds += 1
            idle = 0 if any(found) else idle + 1

    def _measure_frontier(self) -> None:
        """Measure the points on the frontier of each half on all recordings."""
        self._watch.begin("the frontier", 1.0)
        for half in self._halves:
            figures = {
                point: (all_in(rows), readable(rows))
                for point in self._trials.points()
                if (rows := self._trials.rows(point, half.paths)) is not None
            }
            frontier = non_dominated(list(figures), figures.__getitem__)
            stride = max(1, math.ceil(len(frontier) / _FRONTIER))
            for point in frontier[::stride]:
                self._trials.run([point], self._paths)

    def _best(self, trials: Mapping[Point, Trial]) -> Trial:
        """Return the best trial, or the preset if the cross-check does not promise enough."""
        preset = trials[self._space.start]
        check = self._held_out()
        if check is None:
            return preset
        best = min(trials, key=lambda point: score(self._trials, self._space, point, self._paths, self._least))
        short_now, short_then = (max(0.0, self._least - share) for share in (check.readable, check.readable_preset))
        saves = check.gain >= max(_LEAST_GAIN, check.error) and trials[best].all_in <= preset.all_in
        keeps = self._least - trials[best].readable <= _TOLERANCE and short_now <= short_then + _TOLERANCE
        repairs = short_then - short_now >= _TOLERANCE  # The caller wants more readable content than the preset keeps.
        return trials[best] if (saves and keeps) or repairs else preset

    def _held_out(self) -> HeldOut | None:
        """Return the figures of each half under the best point of the other one."""
        if not self._checked:
            return None
        first = set(self._halves[0].paths)
        pairs = [
            (preset, rows)
            for path in self._paths
            for point in [self._checked[1] if path in first else self._checked[0]]
            for preset in self._trials.rows(self._space.start, [path]) or []
            for rows in [self._trials.rows(point, [path])]
        ]
        if any(rows is None for _, rows in pairs):
            return None
        before = [preset for preset, _ in pairs]
        now = [row for _, rows in pairs for row in rows or []]
        saved = [
            old.cost_all_in * old.cost_unmanaged - new.cost_all_in * new.cost_unmanaged
            for old, new in zip(before, now, strict=True)
        ]
        whole = sum([old.cost_all_in * old.cost_unmanaged for old in before])
        mean = sum(saved) / len(saved)
        spread = sum([(gain - mean) ** 2 for gain in saved]) * len(saved) / (len(saved) - 1)
        return HeldOut(
            all_in=all_in(now),
            all_in_preset=all_in(before),
            readable=readable(now),
            readable_preset=readable(before),
            gain=sum(saved) / whole,
            error=math.sqrt(spread) / whole,
            better=sum(gain > 1e-9 for gain in saved),
            worse=sum(gain < -1e-9 for gain in saved),
        )

    def _trial(self, point: Point) -> Trial | None:
        rows = self._trials.rows(point, self._paths)
        if rows is None:
            return None
        changes = tuple(changes_between(self._space, point))
        return Trial(self._space.settings(point), changes, all_in(rows), readable(rows), sum_rows(rows))


def _split(paths: Sequence[str], costs: Mapping[str, float], random: Random) -> tuple[list[str], list[str]]:
    """Split recordings into two halves of about the same cost, the recordings of a folder together.

    They are split one by one if there are few folders, or if one folder is larger than all others together.
    """
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(os.path.dirname(path), []).append(path)
    largest = max(sum(costs[path] for path in group) for group in groups.values())
    if len(groups) < _FEW_FOLDERS or largest > sum(costs.values()) / 2:
        groups = {path: [path] for path in paths}
    order = list(groups.values())
    random.shuffle(order)
    order.sort(key=lambda group: -sum(costs[path] for path in group))
    halves: tuple[list[str], list[str]] = ([], [])
    for group in order:
        lighter = min(halves, key=lambda half: sum(costs[path] for path in half))
        lighter.extend(group)
    # One huge recording may outweigh all others, but each half needs two.
    for half, other in (halves, halves[::-1]):
        while len(half) < LEAST_RECORDINGS // 2:
            half.append(other.pop())
    return sorted(halves[0], key=paths.index), sorted(halves[1], key=paths.index)
