"""The search of one group of recordings: probes of single parameters, then combinations of those that helped.

Replaying everything for every idea would take hours. So each round measures its candidates on an eighth of the
recordings, the better ones on three eighths, and the best few on all (successive halving).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random

from .frontier import all_in, readable
from .space import Point, Space
from .trials import Trials

__all__ = ["Score", "Search", "score"]

Score = tuple[float, float]
"""How far a point is below the wanted share of readable content, and its cost. Smaller is better."""

_PARTS = (1 / 8, 3 / 8, 1.0)
"""Shares of the recordings on which the stages of a round measure."""
_KEPT = (8, 3)
"""How many candidates reach the second and the third stage, besides the cheapest and the most readable one."""
_LEAST = 2
"""The smallest number of recordings of a stage."""
_PROPOSED = 16
"""Candidates of each round after the first."""
_PROBE = 2
"""Steps of a probe: twice and half the preset's value."""
_TOGETHER = (2, 3, 5, 8)
"""How many of the best moves the first candidates of a round make together."""
_CHANGE = 0.0002
"""The smallest saving that is worth a changed parameter, as a share of the cost of sending everything."""
_DRAWN = 20
"""Attempts to draw one new candidate."""

_Move = tuple[int, int]
"""The index of a parameter, and a direction: -1 or 1."""


def score(trials: Trials, space: Space, point: Point, paths: Sequence[str], least: float) -> Score:
    """Return the score of a point on these recordings, which must have been tried. `least`: the share that must stay
    readable.
    """
    rows = trials.rows(point, paths)
    if rows is None:  # A recording that the preset can replay cannot be replayed with this point.
        return (math.inf, math.inf)
    changes = sum(index != start for index, start in zip(point, space.start, strict=True))
    return (max(0.0, least - readable(rows)), all_in(rows) + _CHANGE * changes)


class Search:
    """A search for the best point of a group of recordings. It sees no other recordings."""

    def __init__(self, space: Space, trials: Trials, paths: Sequence[str], least: float, random: Random) -> None:
        """Create a search. `paths`: recordings, the most expensive first. `least`: as for `score`."""
        self._space, self._trials, self._least, self._random = space, trials, least, random
        self.paths = _spread(paths, random)
        """The recordings in the order in which the stages take them."""
        self.best = space.start
        """The best point so far."""
        self._gains: dict[_Move, float] = {}
        self._tried = {space.start}
        self._round = 0

    def run_round(self) -> bool:
        """Measure one round of candidates. Returns whether it found a better point. Raises TimeIsUp."""
        self._round += 1
        candidates = list(self._probes() if self._round == 1 else self._proposals())
        self._tried.update(candidates)
        before = self.best
        for stage, part in enumerate(_PARTS):
            paths = self.paths[: max(_LEAST, math.ceil(part * len(self.paths)))]
            self._trials.run([self.best, *candidates], paths)
            if stage == 0 and self._round == 1:
                self._learn(candidates, paths)
            if stage < len(_KEPT):
                candidates = self._select(candidates, paths, _KEPT[stage])
        self.best = min([self.best, *candidates], key=lambda point: self._score(point, self.paths))
        return self.best != before

    def _score(self, point: Point, paths: Sequence[str]) -> Score:
        return score(self._trials, self._space, point, paths, self._least)

    def _probes(self) -> Iterator[Point]:
        """Yield points with one changed parameter, those first that the preset sets."""
        order = list(range(len(self._space.parameters)))
        self._random.shuffle(order)
        for at in sorted(order, key=lambda at: not self._space.parameters[at].is_set):
            for steps in (-_PROBE, _PROBE):
                point = self._space.moved(self._space.start, at, steps)
                if point != self._space.start and self._space.is_allowed(point):
                    yield point

    def _learn(self, probes: Sequence[Point], paths: Sequence[str]) -> None:
        """Note what each probe gained. Parameters whose probes change no figure are not tried again."""
        start = self._score(self._space.start, paths)
        for point in probes:
            short, cost = self._score(point, paths)
            at = next(at for at, index in enumerate(point) if index != self._space.start[at])
            if math.isfinite(cost) and (short, cost - _CHANGE) != start:
                direction = 1 if point[at] > self._space.start[at] else -1
                self._gains[at, direction] = (start[0] - short) + (start[1] - cost)

    def _select(self, candidates: Sequence[Point], paths: Sequence[str], number: int) -> list[Point]:
        """Return the candidates that are worth more replays: the best ones that beat the best point, and two extremes.

        The extremes, the cheapest and the most readable one, give the frontier its ends.
        """
        best = self._score(self.best, paths)
        figures = {point: rows for point in candidates if (rows := self._trials.rows(point, paths)) is not None}
        ranked = sorted(figures, key=lambda point: self._score(point, paths))
        chosen = [point for point in ranked if self._score(point, paths) < best][:number]
        if figures:
            chosen.append(min(figures, key=lambda point: all_in(figures[point])))
            chosen.append(max(figures, key=lambda point: (readable(figures[point]), -all_in(figures[point]))))
        return list(dict.fromkeys(chosen))

    def _proposals(self) -> Iterator[Point]:
        """Yield new points near the best one: the best moves together, then random moves, better ones more often."""
        new: set[Point] = set()
        moves = sorted(self._gains, key=lambda move: -self._gains[move])
        if not moves:
            return
        helpful = [move for move in moves if self._gains[move] > 0]
        together = [self._moved(helpful[:number], _PROBE) for number in _TOGETHER[: len(helpful)]]
        # A move that did not help alone may help with others, so it keeps a small weight.
        floor = max(self._gains[moves[0]], _CHANGE) / 20
        weights = [max(self._gains[move], floor) for move in moves]
        drawn = 0
        while len(new) < _PROPOSED and drawn < _DRAWN * _PROPOSED:
            if together:
                point = together.pop(0)
            else:
                drawn += 1
                number = self._random.choice((1, 2, 2, 3, 4))
                point = self._moved(self._random.choices(moves, weights, k=number))
            if point not in self._tried | new and self._space.is_allowed(point):
                new.add(point)
                yield point

    def _moved(self, moves: Sequence[_Move], steps: int = 0) -> Point:
        """Return the best point with these moves, each by `steps` values (0: one to three at random)."""
        point = self.best
        for at, direction in moves:
            point = self._space.moved(point, at, direction * (steps or self._random.choice((1, 1, 2, 3))))
        return point


def _spread(paths: Sequence[str], random: Random) -> list[str]:
    """Order recordings so that every beginning of the order holds large and small ones alike."""
    width = round(1 / _PARTS[0])
    offsets = list(range(width))
    random.shuffle(offsets)
    return [path for offset in offsets for path in paths[offset::width]]
