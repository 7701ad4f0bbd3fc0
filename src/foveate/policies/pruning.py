"""Clear old tool outputs behind a protected window, in batches that are worth a rewritten prefix.

Looking back from the newest message, the first `protect` tokens are safe, and so is the message in which they end.
Of what is older, finished tool outputs are cleared, but only if that frees more than `minimum` tokens. Both limits
keep the prefix stable: nothing is cleared while the frontier creeps, much is cleared at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from ..core.edits import Edit
from ..core.planner import Policy
from ..core.sizes import MESSAGE_TOKENS
from ..core.view import Entry, View
from ..errors import BadSetting
from .placeholders import CLEARED, is_whole, outgrows, replacement
from .placeholders import placeholder as fill
from .span_selection import older_than, tokens_of_share
from .tool_kinds import deed_reader, results_with_deeds

__all__ = ["MINIMUM", "PART_MAX", "PROTECT", "prune_tool_outputs"]

PROTECT = 40_000
"""Newest tokens that are never pruned."""
MINIMUM = 20_000
"""Pruning happens only if it frees more than this many tokens."""
PART_MAX = 50_000
"""No part counts for more tokens than this, against wild estimates of huge outputs."""


def prune_tool_outputs(
    *,
    protect: int | float = PROTECT,
    minimum: int = MINIMUM,
    part_max: int = PART_MAX,
    protected_tools: Collection[str] = ("skill",),
    protect_counts: Literal["all", "tool_outputs"] = "all",
    protect_current_turn: bool = False,
    protect_reads: int | float | None = None,
    placeholder: str = CLEARED,
) -> Policy:
    """A policy that clears old tool outputs.

    `protect`: newest tokens that are safe, as a number (int) or as a share of the usable tokens (float, below 1.0), so
    that one setting suits every window. `protect_counts`: what fills the protected window, everything or tool outputs
    alone. `protect_current_turn`: spare all that came after the last user input; off by default, since in long agent
    runs that is everything. `protect_reads`: the same as `protect` for results that show a file, where that is more: an
    edit needs the lines that it replaces. What shows a file is told by the tool's name and arguments (`deeds.READS`).
    Outputs of `protected_tools`, unfinished ones and those that were expanded for the coming call are spared.
    Raises BadSetting for negative numbers, and for shares of 1.0 or more.
    """
    if min(protect, minimum, part_max, protect_reads or 0) < 0:
        raise BadSetting("prune_tool_outputs needs protect, protect_reads, minimum and part_max of 0 or more.")
    if any(isinstance(share, float) and not share < 1 for share in (protect, protect_reads)):
        raise BadSetting(
            "prune_tool_outputs needs protect and protect_reads as tokens (whole numbers) or as shares of the usable "
            f"ones below 1.0, not {protect} and {protect_reads}."
        )
    if isinstance(protected_tools, str):
        raise BadSetting(f"protected_tools is a list of names, such as [{protected_tools!r}], not a text.")
    spared, deed_of = frozenset(protected_tools), deed_reader()

    def policy(view: View) -> Iterator[Edit]:
        everything = protect_counts == "all"
        safe = tokens_of_share(protect, view)
        old = list(view.entries[: older_than(view, safe, part_max=part_max, everything=everything)])
        if protect_current_turn:
            old = [entry for entry in old if entry.position < view.last_input]
        if protect_reads is not None and old:
            window = tokens_of_share(protect_reads, view)
            oldest = older_than(view, window, part_max=part_max, everything=everything)
            reads = {entry.id for entry, _, deed in results_with_deeds(view, deed_of) if deed.kind == "read"}
            old = [*old[:oldest], *(entry for entry in old[oldest:] if entry.id not in reads)]
        whole = [entry for entry in old if entry.is_result and is_whole(entry)]
        due = [entry for entry in whole if _is_prunable(entry, spared, view.turn) and _shrinks(entry, placeholder)]
        if sum(min(entry.tokens, part_max) for entry in due) > minimum:
            for entry in due:
                reason = f"older than the newest {safe:,} tokens"
                yield replacement(entry, fill(placeholder, entry), "prune", reason)

    return policy


def _is_prunable(entry: Entry, spared: frozenset[str], turn: int) -> bool:
    result = entry.result
    is_finished = result is not None and result.state != "interrupted"
    return is_finished and not entry.is_pinned() and entry.renewed < turn and entry.tool not in spared


def _shrinks(entry: Entry, placeholder: str) -> bool:
    # Characters, not tokens: far above what the placeholder can come to, so most need not be looked at closely.
    is_long = entry.tokens > len(placeholder) + MESSAGE_TOKENS and entry.kind == "message"
    return is_long or outgrows(entry, fill(placeholder, entry))
