"""One tool result of a replay before and after a policy made it shorter."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..core.scripts import beginning_of
from ..core.view import Entry
from .result import ReplayResult

__all__ = ["Example", "example_of"]

_LINES = 40
"""Most lines of each text."""
_WIDTH = 160
"""Most characters of each line."""
_FITTING = range(300, 4_000)
"""Tokens of originals that a reader can take in. Others are chosen only if there are none of these."""
_READABLE = 6
"""Lines of a shortened text from which a reader sees what it keeps."""


class Example(Struct, frozen=True):
    """A result as it was first shown, and as a later call saw it."""

    policy: str
    tool: str
    """The name of the tool; "" if it is not recorded."""
    handle: str
    call: int
    """The number of the call that first saw it shortened."""
    before: str
    """The beginning of the original, at most 40 lines."""
    after: str
    """The beginning of the shortened text, at most 40 lines."""
    tokens_before: int
    tokens_after: int


def example_of(replays: Sequence[ReplayResult]) -> Example | None:
    """Return the result that says most about what a policy does, or None without views or without a shortened result.

    It prefers originals that fit on a page, then texts that still say something, then the largest saving.
    """
    best: tuple[tuple[bool, int, int], Example] | None = None
    for replay in replays:
        originals: dict[str, Entry] = {}
        for call, change in enumerate(replay.views.changes if replay.views else (), 1):
            for entry in change.added:
                if entry.message.result is None or entry.span:
                    continue
                original = originals.setdefault(entry.id, entry)
                if not entry.edits or original.edits or entry.tokens >= original.tokens:
                    continue
                rank = (
                    original.tokens in _FITTING,
                    min(entry.message.result.text.count("\n"), _READABLE),
                    original.tokens - entry.tokens,
                )
                if best is None or rank > best[0]:
                    best = rank, _example(replay.row.policy, original, entry, call)
    return best[1] if best else None


def _example(policy: str, original: Entry, entry: Entry, call: int) -> Example:
    before, after = original.message.result, entry.message.result
    return Example(
        policy,
        entry.tool,
        entry.handle,
        call,
        _cut(before.text if before else ""),
        _cut(after.text if after else ""),
        original.tokens,
        entry.tokens,
    )


def _cut(text: str) -> str:
    lines = text.rstrip().split("\n")
    kept = [line if len(line) <= _WIDTH else f"{beginning_of(line, _WIDTH - 1)}…" for line in lines[:_LINES]]
    if len(lines) > _LINES:
        kept.append(f"… {len(lines) - _LINES:,} more lines")
    return "\n".join(kept)
