"""What one replay yields: a row of figures, and the course of every simulated call for charts.

The figures are defined in `docs/replay.md`; the words are the same in the table, the JSON and the HTML report.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["CallFigures", "EditFigures", "Replayed", "Row"]


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
