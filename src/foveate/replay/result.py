"""Result of a replay: figures, simulated calls, and the columns of the report.

`docs/guides/replay.md` defines the figures. Table, JSON and HTML report use the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from .numbers import count, decimals, dollars, percent
from .views import ViewLog

__all__ = [
    "COLUMNS",
    "GROUPS",
    "KIND_NAMES",
    "TERMS",
    "CallFigures",
    "Column",
    "EditFigures",
    "ReplayResult",
    "Row",
    "columns_for",
]

KIND_NAMES = {
    "system": "system prompt",
    "user": "user",
    "assistant": "assistant",
    "summaries": "folds and summaries",
    "placeholders": "placeholders",
    "results_shrunk": "tool results, shrunk",
    "results_full": "tool results, whole",
}
"""The kinds of content of `CallFigures` with their names for people."""


class CallFigures(Struct, frozen=True):
    """One simulated model call."""

    turn: int
    """The number of the call, from 1."""
    message: int
    """The position of the recorded assistant message after it."""
    tokens: int
    """Of the whole view."""
    cached: int
    """Of the longest unchanged beginning of the rendered messages since the previous call."""
    cost: float
    """In tokens of base input price."""
    system: int = 0
    """Tokens of system prompts in the view."""
    user: int = 0
    """Tokens of the user's messages."""
    assistant: int = 0
    """Tokens of the model's messages."""
    results_full: int = 0
    """Tokens of results that are whole."""
    results_shrunk: int = 0
    """Tokens of results that are digests."""
    placeholders: int = 0
    """Tokens of notes that stand for results."""
    summaries: int = 0
    """Tokens of summaries. The kinds of content together are `tokens`."""
    milliseconds: float = 0.0
    """CPU time of the turn: append new messages, plan, commit, check, render."""
    misses: int = 0
    """The number of things that the recorded call used and the view no longer shows."""
    cost_unmanaged: float = 0.0
    """The cost of the same call with the whole history. 0 on every call means unknown."""
    tokens_unmanaged: int = 0
    """Tokens of the same call with the whole history."""


class EditFigures(Struct, frozen=True):
    """One committed plan."""

    turn: int
    """The number of the call before which the plan was made."""
    edits: int
    """How many edits it had."""
    tokens_before: int
    """Tokens of the view before it."""
    tokens_after: int
    """Tokens of the view after it."""
    first_position: int
    """The earliest message that it edited."""
    policies: str
    """Names of the policies that requested it, separated by commas."""


class Row(Struct, frozen=True):
    """The figures of one transcript under one policy: one line of `--json`."""

    transcript: str
    """The name of the recording."""
    policy: str
    """The name of the policy."""
    messages: int
    """Messages of the recording."""
    calls: int
    """Model calls that were replayed."""
    input_tokens: int
    """Tokens of the views of all calls together."""
    peak_tokens: int
    """Tokens of the largest view."""
    cost: float
    """Cost of all requests, in tokens at the base input price."""
    cost_unmanaged: float
    """The same with the whole history in each request."""
    cost_ratio: float
    """`cost` as a share of `cost_unmanaged`."""
    cost_all_in: float
    """Relative to sending everything: the cost if an expansion fetches every miss."""
    expansions: int
    """Fetches of content that a call used and could no longer read."""
    edits: int
    """Calls before which the view changed. Each change has one or more edits."""
    prefix_rewrites: int
    """Requests whose beginning changed, so that the provider's cache missed."""
    references: int
    """Identifiers that a recorded call used and that came only from earlier tool results."""
    recall_visible: float | None
    """Share of these that the view still showed."""
    said_references: int
    """The same for identifiers that came only from the system prompt, the user or the model."""
    said_visible: float | None
    """Share of these that the view still showed."""
    quoted_lines: int
    """Whole lines that a recorded call repeats and that came only from earlier tool results."""
    quoted_visible: float | None
    """Share of these that the view still showed."""
    recall_reachable: float | None
    """Share of the references that the view showed or a handle led to."""
    illegal_views: int
    """Requests that a provider would have refused."""
    lost_messages: int
    """Messages of the recording that the history does not have."""
    ms_per_turn_p50: float
    """CPU time of a turn in milliseconds: the median."""
    ms_per_turn_p99: float
    """CPU time of a turn in milliseconds: the 99th percentile."""
    model_calls: int = 0
    """Model calls of the policy itself (summaries)."""
    over_budget: int = 0
    """Calls whose view was over the budget; always 0 unless management is off."""
    window: int = 0
    """The window of the replay, in tokens."""
    provider: str = ""
    """The format whose rules and cache counted."""
    model: str = ""
    """The model that the recording names; "" if none."""
    money: float | None = None
    """US dollars with the summaries, if the model's prices are known. The model's answers are not counted."""
    money_unmanaged: float | None = None
    """The price of sending everything, in US dollars; None if unknown."""
    kept_apart: dict[str, int] = {}
    """Counts of lines outside the main conversation, by kind."""
    compactions: int = 0
    """How often the recorded client compacted the conversation itself."""
    cost_recorded: float | None = None
    """The cost of the client's own requests, with its compactions; None if it made none."""
    money_recorded: float | None = None
    """The same in US dollars."""
    began: int | None = None
    """The time of the first message in milliseconds since 1970, if recorded."""
    ended: int | None = None
    """The time of the last message."""


class ReplayResult(Struct, frozen=True):
    """The result of one replay of one transcript under one policy."""

    row: Row
    """The figures of the whole replay."""
    calls: tuple[CallFigures, ...]
    """The figures of each call."""
    edits: tuple[EditFigures, ...]
    """The figures of each plan."""
    refusals: tuple[str, ...] = ()
    """The second checker's first findings."""
    views: ViewLog | None = None
    """The view of each call, if the replay recorded them."""
    tip: str = ""
    """Id of the newest message. It is the same for recordings with the same messages."""


GROUPS = ("Cost", "Readable content", "Activity", "Checks")
_COSTS, _READABLE, _ACTIVITY, _CHECKS = GROUPS


class Column(Struct, frozen=True):
    """One figure."""

    title: str
    cell: Callable[[Row], str]
    group: str
    """The kind of figure, one of GROUPS."""
    shown: Literal["always", "wide", "money"]
    """When the column is shown: always, in a wide table, or if some row has a price."""
    meaning: str
    """An explanation, in a sentence or two."""


def columns_for(rows: Sequence[Row], *, wide: bool = False) -> tuple[Column, ...]:
    """Return the columns for a table of these rows, in order."""
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
        "Input cost of the recording's model calls, relative to sending everything each time. "
        "A call pays the read price for the longest unchanged beginning of the request since the previous "
        "call, and the write price for the rest. After a pause longer than the lifetime of the cache it pays the write "
        "price for all of it.",
    ),
    Column(
        "all-in",
        lambda row: _relative(row, row.cost_all_in),
        _COSTS,
        "always",
        "The cost if everything that a call used but could no longer read is fetched back first. Each fetch takes one "
        "more request (two if no handle shows what to expand) and writes the full original at the end, where it "
        "stays. So a policy gains nothing by hiding content that is needed later.",
    ),
    Column(
        "money",
        lambda row: dollars(row.money),
        _COSTS,
        "money",
        "The cost in US dollars, at the model's list prices. The model's answers are not counted: they are the same "
        "under every policy.",
    ),
    Column(
        "unmanaged",
        lambda row: dollars(row.money_unmanaged),
        _COSTS,
        "money",
        "The cost of sending everything each time, in US dollars.",
    ),
    Column("peak tokens", lambda row: count(row.peak_tokens), _COSTS, "always", "The largest view of all calls."),
    Column(
        "recall",
        lambda row: percent(row.recall_visible),
        _READABLE,
        "always",
        "Identifiers (paths, names, hashes) that a tool call used and that came only from earlier tool results: the "
        "share that was still readable in the view of that call.",
    ),
    Column(
        "quoted",
        lambda row: percent(row.quoted_visible),
        _READABLE,
        "always",
        "Whole lines that a call repeats and that came only from earlier tool results: the share that was still "
        "readable word for word. To edit a file, a model needs the lines that it replaces.",
    ),
    Column(
        "edits",
        lambda row: count(row.edits),
        _ACTIVITY,
        "always",
        "The number of changes of the view, each with one or more edits. The history itself never changes.",
    ),
    Column(
        "model calls",
        lambda row: count(row.calls),
        _ACTIVITY,
        "wide",
        "Calls of the recording. The replay simulates each.",
    ),
    Column("summaries", lambda row: count(row.model_calls), _ACTIVITY, "wide", "Model calls of the policy itself."),
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
        _ACTIVITY,
        "wide",
        "Calls whose request did not begin with the whole previous request, so that part of it was written again.",
    ),
    Column(
        "said",
        lambda row: percent(row.said_visible),
        _READABLE,
        "wide",
        "Like recall, for identifiers that came only from the system prompt, the user or the model.",
    ),
    Column(
        "reachable",
        lambda row: percent(row.recall_reachable),
        _READABLE,
        "wide",
        "Like recall, but content that a handle in the view can expand counts too.",
    ),
    Column("expansions", lambda row: count(row.expansions), _READABLE, "wide", "The number of fetches in all-in."),
    Column(
        "ms p50 / p99",
        lambda row: f"{decimals(row.ms_per_turn_p50)} / {decimals(row.ms_per_turn_p99)}",
        _CHECKS,
        "wide",
        "Processor time of a turn in milliseconds (append new messages, plan, commit, check, render): the "
        "median, and the 99th percentile.",
    ),
    Column(
        "illegal views",
        lambda row: count(row.illegal_views),
        _CHECKS,
        "wide",
        "Requests that the provider would refuse, according to an independent second checker.",
    ),
)

TERMS = (
    (
        "token",
        "An estimate, the same everywhere: a quarter of a text's characters, rounded up, and four for each message.",
    ),
    (
        "view",
        "The content that the model sees at one call: the history, changed by edits.",
    ),
    ("shrunk", "A tool result that is shown only in part."),
    (
        "placeholder",
        "A short text that stands for a tool result, and names the handle that expands it.",
    ),
    (
        "sending everything",
        "Every call carries the whole history, and finds the previous call in the cache.",
    ),
)
"""Terms of the report that are not columns, with their meaning."""
