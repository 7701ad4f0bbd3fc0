"""The figures of a row that people are shown: what each is called, how it is written, what it means.

A list of data. Which of them a table has, and how it is drawn, is said in `report.py` and by whoever draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from .numbers import count, decimals, dollars, percent

__all__ = ["COLUMNS", "GROUPS", "WORDS", "CallFigures", "Column", "EditFigures", "Replayed", "Row", "columns_for"]


# MODULEDOC """What one replay yields: a row of figures, and the course of every simulated call for charts.
#
# The figures are defined in `docs/replay.md`; the words are the same in the table, the JSON and the HTML report.
# """
class CallFigures(Struct, frozen=True):
    """One simulated model call."""

    turn: int
    """Number of the call, from 1."""
    message: int
    """Position of the recorded assistant message it stands before."""
    tokens: int
    """Of the whole view."""
    cached: int
    """Of the longest unchanged leading run of rendered messages since the previous call."""
    cost: float
    """In tokens of base input price."""
    system: int = 0
    user: int = 0
    assistant: int = 0
    results_full: int = 0
    results_shrunk: int = 0
    placeholders: int = 0
    summaries: int = 0
    """Tokens of the view by what they are; their sum is `tokens`."""
    milliseconds: float = 0.0
    """CPU time of the turn: append what came since the last call, plan, commit, check, render."""
    misses: int = 0
    """Things the recorded call used that could not be read in the view any more."""
    cost_unmanaged: float = 0.0
    """What the same call would have cost with everything sent. 0 on every call: not told."""


class EditFigures(Struct, frozen=True):
    """One committed plan."""

    turn: int
    edits: int
    tokens_before: int
    tokens_after: int
    first_position: int
    """The earliest message it touched."""
    policies: str
    """Names of the policies that asked for it, joined by commas."""


class Row(Struct, frozen=True):
    """The figures of one transcript under one policy: one line of `--json`."""

    transcript: str
    policy: str
    messages: int
    calls: int
    input_tokens: int
    peak_tokens: int
    cost: float
    cost_unmanaged: float
    cost_ratio: float
    cost_all_in: float
    """Relative to sending everything: what the recording would have cost, all misses mended by expansions."""
    expansions: int
    edits: int
    prefix_rewrites: int
    references: int
    recall_visible: float | None
    said_references: int
    said_visible: float | None
    quoted_lines: int
    quoted_visible: float | None
    recall_reachable: float | None
    illegal_views: int
    lost_messages: int
    ms_per_turn_p50: float
    ms_per_turn_p99: float
    model_calls: int = 0
    """Calls made by the policy itself (summaries)."""
    over_budget: int = 0
    """Calls whose view was over the budget: always 0 unless management is off."""
    window: int = 0
    provider: str = ""
    model: str = ""
    money: float | None = None
    """US dollars, where the model's prices are known."""
    money_unmanaged: float | None = None
    kept_apart: dict[str, int] = {}
    """What the recording holds beside its main conversation, by kind."""


class Replayed(Struct, frozen=True):
    """Everything one replay of one transcript under one policy yields."""

    row: Row
    calls: tuple[CallFigures, ...]
    edits: tuple[EditFigures, ...]
    refusals: tuple[str, ...] = ()
    """What the second checker said of illegal views, the first few."""


GROUPS = ("What it costs", "What stays readable", "What was done", "Whether it works")
_COSTS, _READABLE, _DONE, _WORKS = GROUPS


class Column(Struct, frozen=True):
    """One figure."""

    title: str
    cell: Callable[[Row], str]
    group: str
    """One of GROUPS: what kind of figure it is."""
    shown: Literal["always", "wide", "money"]
    """Whether it is always there, only in a wide table, or only where some row knows its money."""
    meaning: str
    """What the figure says, in a sentence or two."""


def columns_for(rows: Sequence[Row], *, wide: bool = False) -> tuple[Column, ...]:
    """The columns that a table of these rows has, in their order."""
    money = any(row.money is not None for row in rows)
    shown = {"always": True, "wide": wide, "money": money}
    return tuple(column for column in COLUMNS if shown[column.shown])


def _relative(row: Row, ratio: float) -> str:
    return percent(ratio if row.cost_unmanaged else None)


COLUMNS = (
    Column(
        "cost",
        lambda row: _relative(row, row.cost_ratio),
        _COSTS,
        "always",
        "What the recording's model calls would have cost in input, relative to sending everything each time. "
        "A call pays the read price for the longest unchanged beginning of the request since the previous "
        "call, and the write price for the rest.",
    ),
    Column(
        "all-in",
        lambda row: _relative(row, row.cost_all_in),
        _COSTS,
        "always",
        "The same when everything that a call used but could no longer read is fetched back first: one extra "
        "request for each (two where no handle says what to ask for), and the full original written at the end, "
        "where it stays. Nobody can look good by forgetting.",
    ),
    Column(
        "money", lambda row: dollars(row.money), _COSTS, "money", "The cost in US dollars, at the model's list prices."
    ),
    Column(
        "unmanaged",
        lambda row: dollars(row.money_unmanaged),
        _COSTS,
        "money",
        "What sending everything each time would have cost, in US dollars.",
    ),
    Column("peak tokens", lambda row: count(row.peak_tokens), _COSTS, "always", "The largest view of all calls."),
    Column(
        "recall",
        lambda row: percent(row.recall_visible),
        _READABLE,
        "always",
        "Of the identifiers (paths, names, hashes) that a tool call used and that had come only from earlier "
        "tool results, the share still readable in the view from which the call was made.",
    ),
    Column(
        "quoted",
        lambda row: percent(row.quoted_visible),
        _READABLE,
        "always",
        "Of the whole lines that a call repeats from earlier tool results alone, the share still readable "
        "word for word. An edit of a file needs the lines that it replaces.",
    ),
    Column(
        "edits",
        lambda row: count(row.edits),
        _DONE,
        "always",
        "How often the view was changed, by one edit or many at once. The history itself never changes.",
    ),
    Column("model calls", lambda row: count(row.calls), _DONE, "wide", "Calls of the recording, simulated one by one."),
    Column("summaries", lambda row: count(row.model_calls), _DONE, "wide", "Model calls that the policy itself made."),
    Column(
        "input tokens",
        lambda row: count(row.input_tokens),
        _COSTS,
        "wide",
        "Tokens of the views of all calls together.",
    ),
    Column(
        "prefix rewrites",
        lambda row: count(row.prefix_rewrites),
        _DONE,
        "wide",
        "Calls whose request did not begin with the whole of the previous one, so that the cache was written "
        "anew in part.",
    ),
    Column(
        "said",
        lambda row: percent(row.said_visible),
        _READABLE,
        "wide",
        "As recall, for identifiers that had come only from the system prompt, the user or the model.",
    ),
    Column(
        "reachable",
        lambda row: percent(row.recall_reachable),
        _READABLE,
        "wide",
        "As recall, counting also what came back when a handle shown in the view was expanded.",
    ),
    Column(
        "expansions", lambda row: count(row.expansions), _READABLE, "wide", "How often all-in fetches something back."
    ),
    Column(
        "ms p50 / p99",
        lambda row: f"{decimals(row.ms_per_turn_p50)} / {decimals(row.ms_per_turn_p99)}",
        _WORKS,
        "wide",
        "Processor time of a turn in milliseconds (append what is new, plan, commit, check, render): the "
        "middle one, and the one that 99 of 100 stay below.",
    ),
    Column(
        "illegal views",
        lambda row: count(row.illegal_views),
        _WORKS,
        "wide",
        "Requests that the provider would refuse, by a second checker, written apart from the first.",
    ),
)

WORDS = (
    (
        "token",
        "An estimate, the same everywhere: a quarter of a text's characters, rounded up, and four for each message.",
    ),
    (
        "view",
        "What the model sees at one call: the history, changed by edits.",
    ),
    ("shrunk", "A tool result of which only a part is shown."),
    (
        "placeholder",
        "A short text that stands for a tool result, and names the handle that brings it back.",
    ),
    (
        "sending everything",
        "The whole history goes along with every call, and each finds the one before it in the cache.",
    ),
)
"""Words of the report that are not columns, and what they mean."""
