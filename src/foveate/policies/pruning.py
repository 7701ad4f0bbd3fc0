"""Pruning: clear old tool outputs behind a protected window, many at once.

From the newest message back, the first `protect` tokens are protected, with the message in which they end. Older
finished outputs are cleared, but only if that frees more than `minimum` tokens. So edits are rare, and most
calls leave the cached prefix valid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import ClassVar, Literal

from msgspec import Struct

from ..core.edits import Edit
from ..core.growing import Growing, Selected, selecting
from ..core.planner import Policy
from ..core.sizes import MESSAGE_TOKENS
from ..core.view import Entry, View
from ..errors import BadSetting
from .kinds import check_kinds
from .placeholders import CLEARED, is_longer, is_whole, replacement
from .placeholders import placeholder as fill
from .span_selection import check_token_windows, count_older, window_tokens
from .tool_kinds import CallClassifier, classify_results, create_classifier, create_name_filter

__all__ = ["MINIMUM", "PART_MAX", "PROTECT", "prune_tool_outputs"]

PROTECT = 40_000
"""Newest tokens that are never pruned."""
MINIMUM = 20_000
"""Tokens. The policy acts only if it frees more."""
PART_MAX = 50_000
"""Tokens that one message counts for at most, since estimates of huge outputs may be far too high."""


@check_kinds
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
    """Return a policy that clears old tool outputs.

    `protect`: newest tokens that are protected, as a number (int) or as a share of the usable tokens (float below 1.0),
    so that one setting fits every window. `minimum`: tokens that clearing must free. `part_max`: maximum number of
    tokens that one message counts for. `protect_counts`: messages that fill the protected window, all or only tool
    outputs. `protect_current_turn`: protect everything after the last user input; off by default, since in a long run
    this is the whole run. `protect_reads`: the same as `protect` for results that show a file, if it is more, since an
    edit needs the lines that it replaces; `tool_kinds.READS` lists the tools. `placeholder`: template for a cleared
    output.

    Outputs of `protected_tools`, unfinished outputs and outputs that were expanded for the coming call stay. Names of
    tools may be patterns such as `memory_*`. Raises BadSetting for values out of range.
    """
    check_token_windows("prune_tool_outputs", protect=protect, protect_reads=protect_reads)
    for name, value in (("minimum", minimum), ("part_max", part_max)):
        if value < 0:
            raise BadSetting(f"{name} of prune_tool_outputs is {value}. Set it to 0 or more.")
    is_protected = create_name_filter(protected_tools)
    return _Prune(
        protect,
        minimum,
        part_max,
        protect_counts != "all",
        protect_current_turn,
        protect_reads,
        placeholder,
        selecting(lambda entry: _may_prune(entry) and not is_protected(entry.tool)),
        create_classifier(),
    )


class _Prune(Struct, frozen=True):
    """The policy of `prune_tool_outputs`."""

    before_calls_only: ClassVar[bool] = True
    """Whether it is left out of plans behind a reply: the next call plans again before it sends anything."""
    protect: int | float
    minimum: int
    part_max: int
    results_only: bool
    protect_current_turn: bool
    protect_reads: int | float | None
    placeholder: str
    candidates: Growing[Selected]
    classifier: CallClassifier

    def idle_note(self, usable: int, *, has_summarizer: bool) -> str:
        """Return why the policy cannot act with so many usable tokens; "" if it can. Read when opening."""
        if isinstance(self.protect, float) or self.protect + self.minimum < usable:
            return ""
        return (
            f"prune cannot act: it protects {self.protect:,} tokens and then frees more than {self.minimum:,}, and "
            f"{usable:,} tokens of the window are usable. Set protect and minimum lower, or protect to a share."
        )

    def __call__(self, view: View) -> Iterator[Edit]:
        window = window_tokens(self.protect, view)
        candidates = self.candidates.of(view)
        old = [view.entries[index] for index in candidates.before(self._count_older(view, window))]
        if self.protect_current_turn:
            old = [entry for entry in old if entry.position < view.last_input]
        if self.protect_reads is not None and old:
            oldest = len(candidates.before(self._count_older(view, window_tokens(self.protect_reads, view))))
            reads = {entry.id for entry, _, call in classify_results(view, self.classifier) if call.kind == "read"}
            old = [*old[:oldest], *(entry for entry in old[oldest:] if entry.id not in reads)]
        due = [entry for entry in old if entry.renewed < view.turn and _shrinks(entry, self.placeholder)]
        if sum(min(entry.tokens, self.part_max) for entry in due) > self.minimum:
            for entry in due:
                reason = f"older than the newest {window:,} tokens"
                yield replacement(entry, fill(self.placeholder, entry), "prune", reason)

    def _count_older(self, view: View, window: int) -> int:
        return count_older(view, window, part_max=self.part_max, results_only=self.results_only)


def _may_prune(entry: Entry) -> bool:
    result = entry.outlined_result
    is_finished = result is not None and result.state != "interrupted"
    return entry.is_result and is_whole(entry) and is_finished and not entry.is_pinned()


def _shrinks(entry: Entry, placeholder: str) -> bool:
    # A quick check first: an entry with more tokens than the template has characters is longer than the placeholder.
    is_long = entry.tokens > len(placeholder) + MESSAGE_TOKENS and entry.kind == "message"
    return is_long or is_longer(entry, fill(placeholder, entry))
