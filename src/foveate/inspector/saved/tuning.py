"""HTML report of a search for parameters: the frontier as a chart, the changed parameters, and the preset.

One self-contained file, as the report of replays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from ...core.plurals import plural
from ...replay.charts import Label
from ...replay.numbers import count, percent, ticks
from ...tune import Trial, Tuned, preset_text
from ...tune.report import sentences, share_text, value_text
from .files import self_contained

__all__ = ["page"]

_FARTHEST = 1.25
"""Trials that cost more than this multiple of the preset are not drawn, unless they are on the frontier."""
_MARGIN = 0.08
"""Share of an axis that stays free at each end."""
_LEAST_RANGE = 0.01
"""The range of an axis on which all points are the same."""
_FAR = 3
"""A limit that is farther below the points than this multiple of their range is drawn below a break of the axis.
Otherwise the points would lie on one line.
"""
_BREAK = 0.25
"""Share of the points' range that a broken axis adds for the limit."""


class _Scale(Struct, frozen=True):
    """An axis from `low` to `high`."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return the place of a value, in percent of the axis."""
        return round(100 * (value - self.low) / (self.high - self.low), 2)

    def labels(self) -> list[Label]:
        """Return round percentages on the axis."""
        steps = ticks(self.high - self.low, 5)
        step = steps[1] if len(steps) > 1 else self.high - self.low
        first = int(self.low / step) + 1
        values = [number * step for number in range(first, int(self.high / step + 1e-9) + 1)]
        text = percent if step >= 0.01 else share_text
        return [Label(self.at(value), text(value)) for value in values if value >= self.low]


def page(tuned: Tuned, *, created: str = "") -> str:
    """Return the report as HTML text. `created` is its time."""
    return self_contained(
        "tuning.html.j2",
        css=("style.css", "report.css", "tuning.css"),
        js=(),
        title=f"Parameters of {tuned.policy}",
        created=created,
        facts=[
            plural(tuned.recordings, "recording"),
            f"window of {count(tuned.window)} tokens",
            plural(tuned.parameters, "parameter"),
            plural(tuned.replays, "replay"),
            f"seed {tuned.seed}",
        ],
        sentences=sentences(tuned),
        chart=_chart(tuned),
        rows=_rows(tuned),
        changes=[(name, value_text(old), value_text(new)) for name, old, new in tuned.best.changes],
        policy_name=tuned.policy,
        text=preset_text(tuned) if tuned.is_better else "",
        failures=[f"{failure.path}: {failure.error}" for failure in tuned.failures],
    )


def _chart(tuned: Tuned) -> dict[str, Any]:
    """Return the places of all points, of the frontier's steps and of the limit, in percent of the plot."""
    near = tuned.preset.all_in * _FARTHEST
    drawn = [trial for trial in tuned.trials if trial.all_in <= near or trial in tuned.frontier]
    x = _scale([trial.readable for trial in drawn] + [tuned.keep_readable], most=1.0)
    costs = [trial.all_in for trial in drawn]
    reach = max(costs) - min(costs) or _LEAST_RANGE
    is_far = min(costs) - tuned.limit > _FAR * reach
    y = _scale([min(costs) - _BREAK * reach if is_far else tuned.limit, *costs])
    limit = y.low + _MARGIN * (y.high - y.low) / 2 if is_far else tuned.limit
    steps = [(x.at(trial.readable), 100 - y.at(trial.all_in)) for trial in tuned.frontier]
    lines = []
    for (left, low), (right, high) in pairwise(steps):
        lines += [(left, low, left, high), (left, high, right, high)]
    return {
        "x": x.labels(),
        "y": [label for label in y.labels() if not is_far or label.at > y.at(min(costs) - _BREAK * reach)],
        "limit": round(100 - y.at(limit), 2),
        "limit_text": share_text(tuned.limit) + (", far below: the axis is broken here" if is_far else ""),
        "keep": x.at(tuned.keep_readable),
        "lines": lines,
        "points": [
            {
                "x": x.at(trial.readable),
                "y": round(100 - y.at(trial.all_in), 2),
                "kind": _kind(tuned, trial),
                "title": f"{_name(tuned, trial)}: {share_text(trial.all_in)} all-in, "
                f"{share_text(trial.readable)} readable",
            }
            for trial in sorted(drawn, key=lambda trial: _ORDER.index(_kind(tuned, trial)))
        ],
    }


_ORDER = ("other", "edge", "preset", "best")
"""Kinds of points, the one that is painted over all others last."""


def _kind(tuned: Tuned, trial: Trial) -> str:
    if tuned.is_better and trial.settings == tuned.best.settings:
        return "best"
    if not trial.settings:
        return "preset"
    return "edge" if trial in tuned.frontier else "other"


def _scale(values: Sequence[float], most: float | None = None) -> _Scale:
    """Return an axis with all values and some room; it ends at `most` if that is given."""
    low, high = min(values), max(values) if most is None else most
    room = (high - low or _LEAST_RANGE) * _MARGIN
    return _Scale(max(0.0, low - room), high if most is not None else high + room)


def _rows(tuned: Tuned) -> list[dict[str, Any]]:
    """Return the lines of the table: the preset, the best settings and the frontier."""
    shown = [tuned.preset, *([tuned.best] if tuned.is_better else []), *tuned.frontier]
    unique = {_name(tuned, trial): trial for trial in shown}
    return [
        {
            "kind": _kind(tuned, trial),
            "name": name,
            "cells": [share_text(trial.all_in), share_text(trial.readable)]
            + [percent(share) for share in (row.cost_ratio, row.recall_visible, row.said_visible, row.quoted_visible)],
        }
        for name, trial in unique.items()
        for row in [trial.row]
    ]


def _name(tuned: Tuned, trial: Trial) -> str:
    if not trial.settings:
        return f"{tuned.policy}, unchanged"
    return ", ".join(f"{name} = {value_text(new)}" for name, _, new in trial.changes)
