"""HTML report of replays: one self-contained file to open, mail or print.

The figures of the policies come first. Jinja escapes every text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...core.plurals import plural
from ...replay import charts
from ...replay.examples import example_of
from ...replay.numbers import count, percent
from ...replay.report import (
    client_sentence,
    closing_sentence,
    comparison_sentence,
    group_by_transcript,
    idle_sentence,
    loss_sentence,
    month_sentence,
    notes_of_rows,
    window_sentence,
)
from ...replay.result import GROUPS, KIND_NAMES, TERMS, ReplayResult, Row, columns_for
from .files import self_contained
from .viewer import viewer_of

__all__ = ["detail_of", "page"]

VIEWS_LIMIT = 2_000_000
"""Bytes of the messages in the views of a report, about. It shows several policies, and the figures matter most."""
DETAILS = 4
"""How many of many transcripts are shown call by call."""
LISTED = 200
"""How many of many transcripts have a line in the overview."""
FARTHEST = 2.0
"""The largest value on the overview's axis; a number replaces larger ones."""


def page(
    replays: Sequence[ReplayResult],
    totals: Sequence[Row] = (),
    *,
    created: str = "",
    prices: tuple[float, float] | None = (0.1, 1.25),
    failures: Sequence[str] = (),
    limit: int = VIEWS_LIMIT,
) -> str:
    """Return the whole report as HTML text. The views of each call follow the figures if the replays kept them.

    `totals` has a row for each policy over all transcripts, and is required for several. `created` is the time of the
    report, `prices` the assumed prices of reading and writing a cached token (None: those of each model), `failures`
    the recordings that could not be replayed. `limit`: bytes of the messages in the views, about.
    """
    transcripts = list(group_by_transcript(replays))
    summary = tuple(totals) if len(transcripts) != 1 else tuple(replay.row for replay in transcripts[0])
    styles = _styles(summary)
    many = len(transcripts) > 1
    largest = sorted(transcripts, key=lambda group: -group[0].row.input_tokens)[: DETAILS if many else 1]
    main = min(summary, key=lambda row: row.cost_all_in).policy if summary else ""
    viewer = None if many else viewer_of(replays, limit=limit, is_folded=True)
    return self_contained(
        "report.html.j2",
        css=("style.css", "content.css", "rows.css", "report.css") if viewer else ("style.css", "report.css"),
        js=("report.js", "viewer.js") if viewer else ("report.js",),
        viewer=viewer,
        headline=_plain(comparison_sentence(summary)),
        window=_plain(window_sentence(replays)),
        title=f"{count(len(transcripts))} recordings" if many else summary[0].transcript if summary else "Nothing",
        facts=_facts([group[0].row for group in transcripts], prices),
        apart=notes_of_rows(group[0].row for group in transcripts),
        created=created,
        many=many,
        cards=_cards(summary),
        styles=styles,
        example=None if many else example_of(replays),
        table=_table(summary),
        sentences=[
            (row.policy, text.removeprefix(f"`{row.policy}`"))
            for row in summary
            for text in (
                *(closing_sentence(row), idle_sentence(row), loss_sentence(row)),
                *(client_sentence(row), month_sentence(row)),
            )
            if text
        ],
        refusals=[(r.row.transcript, r.row.policy, text) for r in replays for text in r.refusals],
        failures=failures,
        overview=_overview(transcripts, main) if many else None,
        details=[detail_of(group) for group in largest],
        words=TERMS,
        kinds=KIND_NAMES,
    )


_COLOURS = 6
_COLOUR_OF = {"balanced": 2, "prune": 1, "coding": 0, "frugal": 3, "checkpoint": 4, "none": 5}
"""Presets with a colour of their own, the same in every report."""


def _styles(rows: Sequence[Row]) -> dict[str, str]:
    """Return the class for the colour of each policy; sending everything is grey."""
    styles = {row.policy: "p-all" if _sends_everything(row) else "" for row in rows}
    styles |= {name: f"p{_COLOUR_OF[name]}" for name in styles if not styles[name] and name in _COLOUR_OF}
    free = [style for number in range(_COLOURS) if (style := f"p{number}") not in styles.values()] or ["p0"]
    others = [name for name, style in styles.items() if not style]
    return styles | {name: free[place % len(free)] for place, name in enumerate(others)}


def _sends_everything(row: Row) -> bool:
    return row.policy in ("none", "off") and not row.edits


def _plain(sentence: str) -> str:
    """Return a sentence without marks of code, and with percentages that do not break."""
    return sentence.replace("`", "").replace(" %", "\N{NO-BREAK SPACE}%")


def _facts(rows: Sequence[Row], prices: tuple[float, float] | None) -> list[str]:
    def common(values: set[Any]) -> Any:
        return next(iter(values)) if len(values) == 1 else None

    window, provider, model = (
        common({getattr(row, field) for row in rows}) for field in ("window", "provider", "model")
    )
    return [
        plural(sum(row.messages for row in rows), "message"),
        plural(sum(row.calls for row in rows), "model call"),
        *([f"window of {count(window)} tokens"] if window else []),
        *([f"rules of {provider}"] if provider else []),
        *([model] if model else []),
        f"cached input read at {prices[0]:g}, written at {prices[1]:g} of the base price"
        if prices
        else "cached input at the prices of each model",
    ]


def _cards(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the main figures, each with a bar; all bars have the same scale."""
    reach = max([1.0, *(max(row.cost_ratio, row.cost_all_in) for row in rows)])
    return [
        {
            "row": row,
            "known": bool(row.cost_unmanaged),
            "cost": round(100 * row.cost_ratio / reach, 2),
            "all_in": round(100 * max(0.0, row.cost_all_in - row.cost_ratio) / reach, 2),
            "whole": round(100 / reach, 2),
        }
        for row in rows
    ]


class _Line(Struct, frozen=True):
    """A figure and its value under each policy."""

    title: str
    meaning: str
    cells: tuple[str, ...]


def _table(rows: Sequence[Row]) -> dict[str, Any]:
    """Return all figures, policies in columns, figures grouped by kind."""
    columns = columns_for(rows, wide=True)
    kinds = [
        (group, [_Line(c.title, c.meaning, tuple(c.cell(row) for row in rows)) for c in columns if c.group == group])
        for group in GROUPS
    ]
    return {"policies": [row.policy for row in rows], "kinds": kinds}


def detail_of(group: Sequence[ReplayResult]) -> dict[str, Any]:
    """Return the charts of one transcript under its policies, for `charts.html.j2`."""
    peak = max((call.tokens for replay in group for call in replay.calls), default=0)
    window = group[0].row.window
    near = bool(window) and peak * 1.7 >= window
    top = max(peak, window if near else 0) * 1.06
    calls = max(len(replay.calls) for replay in group)
    steps = [charts.columns(replay.calls) for replay in group]
    cost_top = max([group[0].row.cost_unmanaged, *(run[-1].spent for run in steps if run)]) * 1.06
    occur = {kind for run in steps for kind in charts.KINDS if any(getattr(step.call, kind) for step in run)}
    return {
        "row": group[0].row,
        "kinds": [kind for kind in charts.KINDS if kind in occur],
        "calls": calls,
        "x": charts.x_labels(calls),
        "tokens_y": charts.y_labels(top),
        "window": {"at": round(100 * window / top, 2), "tokens": window} if near else None,
        "stacks": [
            {
                "row": replay.row,
                "layers": charts.layers(run, top),
                "marks": charts.marks(replay.edits),
                "data": _hover(run, replay),
            }
            for replay, run in zip(group, steps, strict=True)
        ],
        "cost": _cost_chart(group, steps, cost_top),
    }


def _cost_chart(group: Sequence[ReplayResult], steps: Sequence[Sequence[charts.Column]], top: float) -> dict[str, Any]:
    """Return the chart of the cost so far: a line for each policy, and one for sending everything."""
    lines = [
        (replay.row.policy, charts.rising_line(run, [step.spent for step in run], top))
        for replay, run in zip(group, steps, strict=True)
    ]
    ends = [(replay.row.policy, run[-1].spent) for replay, run in zip(group, steps, strict=True) if run]
    unmanaged = [step.whole for step in steps[0]]
    if any(unmanaged) and not any(_sends_everything(replay.row) for replay in group):
        lines.insert(0, ("", charts.rising_line(steps[0], unmanaged, top)))
        ends.append(("", unmanaged[-1]))
    places = charts.spread([100 * spent / top for _, spent in ends], 9) if top else []
    return {
        "y": charts.y_labels(top),
        "lines": lines,
        "ends": [
            {"policy": policy, "name": policy or "sending everything", "at": round(at, 2), "spent": spent}
            for (policy, spent), at in zip(ends, places, strict=False)
        ],
    }


def _hover(steps: Sequence[charts.Column], replay: ReplayResult) -> dict[str, Any]:
    """Return the data of the boxes at the pointer: numbers only, a row for each step."""
    plans = {plan.turn: plan for plan in replay.edits}
    plans_of_steps = [
        [plan for turn in range(step.left + 1, step.right + 1) if (plan := plans.get(turn))] for step in steps
    ]
    return {
        "right": [step.right for step in steps],
        "turn": [step.call.turn for step in steps],
        "message": [step.call.message for step in steps],
        "tokens": [step.call.tokens for step in steps],
        "cached": [step.call.cached for step in steps],
        "kinds": [[kind, [getattr(step.call, kind) for step in steps]] for kind in reversed(charts.KINDS)],
        "edits": [
            [sum(plan.edits for plan in run), run[0].tokens_before, run[-1].tokens_after] if run else 0
            for run in plans_of_steps
        ],
    }


def _overview(transcripts: Sequence[Sequence[ReplayResult]], main: str) -> dict[str, Any]:
    """Return the overview: a line for each transcript, the cheapest under the main policy first."""

    def ratio(group: Sequence[ReplayResult]) -> float:
        return next((replay.row.cost_ratio for replay in group if replay.row.policy == main), 1.0)

    def flat(policy: str) -> bool:
        rows = [replay.row for group in transcripts for replay in group if replay.row.policy == policy]
        return all(abs(row.cost_ratio - 1) < 0.005 and abs(row.cost_all_in - 1) < 0.005 for row in rows)

    policies = list(dict.fromkeys(replay.row.policy for group in transcripts for replay in group))
    level = [policy for policy in policies if flat(policy) and len(policies) > 1]
    kept = sorted(sorted(transcripts, key=lambda group: -group[0].row.input_tokens)[:LISTED], key=ratio)
    rows = [[replay.row for replay in group if replay.row.policy not in level] for group in kept]
    reach = max([1.0, *(min(FARTHEST, max(row.cost_ratio, row.cost_all_in)) for group in rows for row in group)]) * 1.02
    return {
        "main": main,
        "level": level,
        "left_out": len(transcripts) - len(kept),
        "lanes": len(policies) - len(level),
        "x": [
            charts.Label(round(100 * tick / reach, 2), _plain(percent(tick)))
            for tick in (0, 0.25, 0.5, 0.75, 1, 1.5, 2)
            if tick <= reach
        ],
        "rows": [
            {
                "name": group[0].row.transcript,
                "calls": group[0].row.calls,
                "lanes": [_lane(row, reach) for row in lanes],
            }
            for group, lanes in zip(kept, rows, strict=True)
        ],
    }


def _lane(row: Row, reach: float) -> Mapping[str, Any]:
    """Return the positions of one policy's two figures in the overview."""
    cost, all_in = (round(100 * min(value / reach, 1), 2) for value in (row.cost_ratio, row.cost_all_in))
    beyond = max(row.cost_ratio, row.cost_all_in) > reach
    return {"policy": row.policy, "row": row, "cost": cost, "all_in": all_in, "beyond": beyond}
