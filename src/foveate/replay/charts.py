"""Geometry of the report's charts: figures to coordinates and SVG paths.

A chart is as wide as its transcript has calls, 1000 units high, and stretched to the available room. Labels are placed
in percent of that room, so that text keeps its size on a phone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from .numbers import brief, count, ticks
from .result import CallFigures, EditFigures

__all__ = [
    "HEIGHT",
    "KINDS",
    "Column",
    "Label",
    "Mark",
    "columns",
    "layers",
    "marks",
    "rising_line",
    "spread",
    "x_labels",
    "y_labels",
]

HEIGHT = 1000
"""Height of every chart, in units."""

KINDS = ("system", "user", "assistant", "summaries", "placeholders", "results_shrunk", "results_full")
"""Kinds of content from the bottom of the stack to its top: stable ones first, changing ones last."""


class Column(Struct, frozen=True):
    """One step of a chart: a call, or the largest of several neighbours if there are too many to draw."""

    left: int
    right: int
    """It covers the calls after `left`, up to and including `right`."""
    call: CallFigures
    spent: float
    """Cost of all calls up to `right`."""
    whole: float
    """Cost of the same calls if everything is sent."""


class Label(Struct, frozen=True):
    """A label on an axis: its position in percent, and its text."""

    at: float
    text: str


class Mark(Struct, frozen=True):
    """A committed plan under a chart."""

    x: float
    height: int
    """From the square root of the tokens that it freed; 1000 for the largest."""
    turn: int
    edits: int
    tokens_before: int
    tokens_after: int
    policies: str


def columns(calls: Sequence[CallFigures], most: int = 360) -> tuple[Column, ...]:
    """Return the steps of a chart, at most `most`."""
    width = -(-len(calls) // most) or 1
    steps: list[Column] = []
    spent = whole = 0.0
    for left in range(0, len(calls), width):
        run = calls[left : left + width]
        spent += sum(call.cost for call in run)
        whole += sum(call.cost_unmanaged for call in run)
        steps.append(Column(left, left + len(run), max(run, key=lambda call: call.tokens), spent, whole))
    return tuple(steps)


def layers(steps: Sequence[Column], top: float) -> dict[str, str]:
    """Return an SVG path for each kind that occurs, largest first, from the ground to the top of its layer.

    Painted over one another in this order, they form the stack.
    """
    paths: dict[str, str] = {}
    for index in range(len(KINDS), 0, -1):
        if any(getattr(step.call, KINDS[index - 1]) for step in steps):
            heights = [sum(getattr(step.call, kind) for kind in KINDS[:index]) for step in steps]
            paths[KINDS[index - 1]] = _skyline(steps, [_y(height, top) for height in heights])
    return paths


def rising_line(steps: Sequence[Column], values: Iterable[float], top: float) -> str:
    """Return an SVG path of a growing sum: a value for the end of each step."""
    return f"M0 {HEIGHT}" + "".join(
        f"L{step.right} {_y(value, top)}" for step, value in zip(steps, values, strict=True)
    )


def marks(edits: Iterable[EditFigures]) -> tuple[Mark, ...]:
    """Return the marks of committed plans."""
    plans = tuple(edits)
    greatest = max((_freed(plan) for plan in plans), default=0) or 1
    return tuple(
        Mark(
            plan.turn - 0.5,
            max(220, round(HEIGHT * (_freed(plan) / greatest) ** 0.5)),
            plan.turn,
            plan.edits,
            plan.tokens_before,
            plan.tokens_after,
            plan.policies,
        )
        for plan in plans
    )


def y_labels(top: float) -> tuple[Label, ...]:
    """Return round numbers for an axis of tokens."""
    return tuple(Label(round(100 * tick / top, 2), brief(tick)) for tick in ticks(top)) if top else ()


def x_labels(calls: int) -> tuple[Label, ...]:
    """Return round numbers of calls for an axis; each label is at the middle of its call."""
    whole = [int(tick) for tick in ticks(calls, 6) if tick == int(tick)]
    return tuple(Label(round(100 * (tick - 0.5) / calls, 2), count(tick)) for tick in whole if tick) if calls else ()


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return the same heights (in percent), moved as little as necessary to keep `gap` between neighbours, in order."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = [0.0] * len(places)
    floor = 0.0
    for index in order:
        moved[index] = floor = max(places[index], floor)
        floor += gap
    ceiling = 100.0
    for index in reversed(order):
        moved[index] = ceiling = min(moved[index], ceiling)
        ceiling -= gap
    return moved


def _skyline(steps: Sequence[Column], heights: Sequence[int]) -> str:
    """Return a closed path of level steps. Neighbours of the same level are drawn as one."""
    path = f"M0 {HEIGHT}"
    level: int | None = None
    for step, height in zip(steps, heights, strict=True):
        if height != level:
            path += f"{f'H{step.left}' if step.left else ''}V{height}"
            level = height
    return f"{path}H{steps[-1].right}V{HEIGHT}Z" if steps else path


def _y(value: float, top: float) -> int:
    return HEIGHT - round(HEIGHT * value / top) if top else HEIGHT


def _freed(plan: EditFigures) -> int:
    return max(0, plan.tokens_before - plan.tokens_after)
