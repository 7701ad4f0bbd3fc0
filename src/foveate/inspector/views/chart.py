"""The charts of a conversation: tokens of each call by kind, commits as marks, and cost. Pure geometry.

All charts of a page share the axis of calls. Each is 1000 units high and as wide as it shows calls, and is stretched to
the room there is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from ...replay import charts
from ...replay.charts import HEIGHT, Label
from ...replay.numbers import brief, count, dollars, ticks
from ...replay.result import CallFigures
from .timeline import CommitFigures, Figures

__all__ = ["Chart", "chart_of"]

_STEPS = 420
"""Steps of a chart, at most."""
_LINE_IS_NEAR = 1.7
"""A line for the window is drawn if the largest view, times this, reaches it."""
_MARKS = 240
"""Marks of commits, at most: the largest ones."""


class Line(Struct, frozen=True):
    """A level across the chart of tokens."""

    name: str
    at: float
    """Height in percent."""
    tokens: int


class Mark(Struct, frozen=True):
    """A commit under the chart of tokens."""

    x: float
    height: int
    turn: int
    title: str


class Chart(Struct, frozen=True):
    """The geometry and the figures that the templates and scripts draw."""

    first: int
    """Index of the first call that is shown, from 0."""
    last: int
    """Index after the last call that is shown."""
    total: int
    """The number of all calls."""
    first_turn: int
    last_turn: int
    layers: dict[str, str]
    """A path for each kind of content, painted over one another."""
    billed: str
    """A path of the billed prompts; "" if none is known."""
    lines: tuple[Line, ...]
    tokens_y: tuple[Label, ...]
    marks: tuple[Mark, ...]
    costs: str
    """A path of the cost of each call."""
    costs_unmanaged: str
    """A path of the cost of each call if it sent everything."""
    cost_y: tuple[Label, ...]
    spent: str
    """A path of the cost so far."""
    spent_unmanaged: str
    """A path of the cost so far of sending everything."""
    spent_y: tuple[Label, ...]
    spent_ends: tuple[tuple[str, str, float], ...]
    """Name, amount and height in percent of the end of each line."""
    x: tuple[Label, ...]
    selected: float | None
    """The middle of the selected call, in percent."""
    unit: str
    """The unit of the costs: `dollars` or `tokens`."""
    data: dict[str, Any]
    """Figures of each step, for the box at the pointer."""

    @property
    def width(self) -> int:
        """Return the number of calls that are shown."""
        return self.last - self.first


def chart_of(
    figures: Figures, *, first: int = 0, last: int | None = None, turn: int | None = None, window: int, usable: int
) -> Chart | None:
    """Return the charts of the calls with index `first` to `last` - 1; None without calls.

    `turn`: the selected call. `window`, `usable`: of the conversation now, in tokens; 0 if it has no window.
    """
    total = len(figures)
    last = total if last is None else min(last, total)
    first = max(0, min(first, last - 1))
    if last <= first:
        return None
    unit = "dollars" if figures.is_known("dollars", first, last) else "tokens"
    names = ("dollars", "dollars_unmanaged") if unit == "dollars" else ("cost", "cost_unmanaged")
    width = -(-(last - first) // _STEPS) or 1
    bounds = [*range(first, last, width), last]
    picked = [figures.largest(low, high) for low, high in _pairs(bounds)]
    spent, whole = (figures.running(name, bounds) for name in names)
    steps = [
        charts.Column(low - first, high - first, figures.call(index), spent[number], whole[number])
        for number, ((low, high), index) in enumerate(zip(_pairs(bounds), picked, strict=True))
    ]
    billed = [figures.billed_prompt(low, high) for low, high in _pairs(bounds)]
    peak = max(max(step.call.tokens for step in steps), *[tokens or 0 for tokens in billed])
    is_near = bool(window) and peak * _LINE_IS_NEAR >= window
    top = max(peak, window if is_near else 0) * 1.08 or 1.0
    costs = [_mean(figures.amounts(name), bounds) for name in names]
    cost_top = max((*costs[0], *costs[1])) * 1.08 or 1.0
    spent_top = max(spent[-1], whole[-1]) * 1.08 or 1.0
    turns = figures.column("turn")
    chosen = None if turn is None else figures.index_of(turn)
    places = charts.spread([100 * spent[-1] / spent_top, 100 * whole[-1] / spent_top], 17)
    money: Callable[[float], str] = dollars if unit == "dollars" else brief
    return Chart(
        first=first,
        last=last,
        total=total,
        first_turn=turns[first],
        last_turn=turns[last - 1],
        layers=charts.layers(steps, top),
        billed=_level_path(steps, billed, top),
        lines=_lines(window, usable, top) if is_near else (),
        tokens_y=charts.y_labels(top),
        marks=_marks(figures.commits_between(first, last), turns, first),
        costs=_bars(steps, costs[0], cost_top),
        costs_unmanaged=_level_path(steps, costs[1], cost_top),
        cost_y=_money_labels(cost_top, unit, 2),
        spent=charts.rising_line(steps, spent, spent_top),
        spent_unmanaged=charts.rising_line(steps, whole, spent_top),
        spent_y=_money_labels(spent_top, unit, 2),
        spent_ends=(("as shown", money(spent[-1]), places[0]), ("everything sent", money(whole[-1]), places[1])),
        x=_turn_labels(turns, first, last),
        selected=None if chosen is None or not first <= chosen < last else _percent(chosen - first + 0.5, last - first),
        unit=unit,
        data=_data(figures, steps, picked, billed, unit, names, spent, whole),
    )


def _pairs(bounds: Sequence[int]) -> list[tuple[int, int]]:
    return list(pairwise(bounds))


def _mean(amounts: Sequence[float], bounds: Sequence[int]) -> list[float]:
    return [sum(amounts[low:high]) / (high - low) for low, high in _pairs(bounds)]


def _percent(value: float, whole: float) -> float:
    return round(100 * value / whole, 3)


def _lines(window: int, usable: int, top: float) -> tuple[Line, ...]:
    lines = [Line("window", _percent(window, top), window)]
    if 0 < usable < window:
        lines.append(Line("usable", _percent(usable, top), usable))
    return tuple(lines)


def _marks(commits: Sequence[CommitFigures], turns: Sequence[int], first: int) -> tuple[Mark, ...]:
    """Return the marks of commits; the height is the square root of the tokens that each freed."""
    chosen = sorted(commits, key=_freed, reverse=True)[:_MARKS]
    greatest = max((_freed(commit) for commit in chosen), default=0) or 1
    return tuple(
        Mark(
            commit.call - first + 0.5,
            max(240, round(HEIGHT * (_freed(commit) / greatest) ** 0.5)),
            turns[commit.call],
            f"turn {count(turns[commit.call])}: {commit.policies}, {count(commit.tokens_before)} → "
            f"{count(commit.tokens_after)} tokens",
        )
        for commit in sorted(chosen, key=lambda commit: commit.first)
    )


def _freed(commit: CommitFigures) -> int:
    return max(0, commit.tokens_before - commit.tokens_after)


def _y(value: float, top: float) -> int:
    return HEIGHT - round(HEIGHT * value / top)


def _bars(steps: Sequence[charts.Column], values: Sequence[float], top: float) -> str:
    """Return a closed path of one bar for each step."""
    path = f"M0 {HEIGHT}"
    for step, value in zip(steps, values, strict=True):
        path += f"V{_y(value, top)}H{step.right}"
    return f"{path}V{HEIGHT}Z"


def _level_path(steps: Sequence[charts.Column], values: Sequence[float | None], top: float) -> str:
    """Return an open path of level pieces, with holes where a value is not known."""
    path, is_open = "", False
    for step, value in zip(steps, values, strict=True):
        if value is None:
            is_open = False
            continue
        y = _y(value, top)
        path += f"V{y}H{step.right}" if is_open else f"M{step.left} {y}H{step.right}"
        is_open = True
    return path


def _turn_labels(turns: Sequence[int], first: int, last: int) -> tuple[Label, ...]:
    """Return round numbers of turns for the axis, each at the middle of its call."""
    low, high = turns[first], turns[last - 1]
    step = next((tick for tick in ticks(max(high - low, 1), 6) if tick), 1)
    labels = []
    for number in range(int(-(-low // step) * step), high + 1, max(1, int(step))):
        index = bisect_left(turns, number, first, last)
        if number and index < last and turns[index] == number:
            labels.append(Label(_percent(index - first + 0.5, last - first), count(number)))
    return tuple(labels)


def _money_labels(top: float, unit: str, wanted: int) -> tuple[Label, ...]:
    sign = "$" if unit == "dollars" else ""
    return tuple(Label(_percent(tick, top), f"{sign}{brief(tick)}" if tick else "0") for tick in ticks(top, wanted))


def _data(
    figures: Figures,
    steps: Sequence[charts.Column],
    picked: Sequence[int],
    billed: Sequence[int | None],
    unit: str,
    names: tuple[str, str],
    spent: Sequence[float],
    whole: Sequence[float],
) -> dict[str, Any]:
    """Return the figures of the box at the pointer: numbers only, one for each step."""
    calls: list[CallFigures] = [step.call for step in steps]
    turns = figures.column("turn")
    costs, unmanaged = (figures.amounts(name) for name in names)
    return {
        "right": [step.right for step in steps],
        "turn": [turns[index] for index in picked],
        "message": [call.message for call in calls],
        "shown": [figures.column("shown")[index] for index in picked],
        "tokens": [call.tokens for call in calls],
        "whole": [figures.column("whole")[index] for index in picked],
        "cached": [call.cached for call in calls],
        "billed": list(billed),
        "kinds": [[kind, [getattr(call, kind) for call in calls]] for kind in reversed(charts.KINDS)],
        "unit": unit,
        "cost": [_short(costs[index]) for index in picked],
        "cost_whole": [_short(unmanaged[index]) for index in picked],
        "spent": [_short(amount) for amount in spent],
        "spent_whole": [_short(amount) for amount in whole],
    }


def _short(amount: float) -> float:
    return float(f"{amount:.6g}")
