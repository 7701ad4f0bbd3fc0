"""Keep the newest tool results whole and show a placeholder for the others.

Assistant messages, calls and ids stay as they are, and no message is removed. The frontier moves with every new
result, so on a warm cache this rewrites some of the prefix each time; `batch` lets it move only every so many
results.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.edits import Edit
from ..core.planner import Policy
from ..core.view import View
from ..errors import BadSetting
from .placeholders import OMITTED, fill, is_whole, outgrows, replacement

__all__ = ["filter_tool_results"]


def filter_tool_results(*, keep: int, batch: int = 1, placeholder: str = OMITTED) -> Policy:
    """A policy that keeps the newest `keep` tool results whole (0: all of them).

    `batch`: results are replaced only once at least so many are due (default 1: at once). A result that is no
    longer than its placeholder stays, and so does one that was expanded for the coming call. Raises BadSetting for
    negative numbers.
    """
    if keep < 0 or batch < 1:
        raise BadSetting(f"filter_tool_results needs keep >= 0 and batch >= 1, not keep={keep} and batch={batch}.")
    name = f"keep-last-{keep}"
    reason = f"older than the newest {keep} results"

    def policy(view: View) -> Iterator[Edit]:
        results = [entry for entry in view.entries if entry.is_result]
        old = results[: len(results) - keep] if keep and len(results) > keep else []
        due = [entry for entry in old if is_whole(entry) and not entry.pinned and entry.renewed < view.turn]
        texts = {entry.handle: fill(placeholder, entry) for entry in due}
        due = [entry for entry in due if outgrows(entry, texts[entry.handle])]
        if len(due) >= batch:
            for entry in due:
                yield replacement(entry, texts[entry.handle], name, reason)

    return policy
