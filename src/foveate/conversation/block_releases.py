"""Releases of plugins' blocks: those that had all their calls and are hidden leave the store by their age."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..core import wire
from ..core.edits import CALLER, Hide, Path, Target, paths_overlap
from ..core.enrich import transient_paths
from ..core.originals import released_form
from ..core.retention import Age
from ..core.stamps import StampRow
from ..core.view import Entry
from ..ports import StoredMessage
from .releases import last_shared
from .state import State
from .withheld import WithheldOriginals

__all__ = ["BlockReleases", "DueBlocks"]

_ROWS = 1000
"""Stamps read at a time."""
_BODIES = 100
"""Messages read at a time, and released by one record."""
_POLICY = "retain"
"""The policy that hid the blocks, and the author of these edits for `explain`."""


class DueBlocks(NamedTuple):
    """Blocks of one message to release."""

    row: StoredMessage
    paths: list[Path]
    saved: int
    """Bytes, before compression."""


class BlockReleases:
    """Finds and releases the blocks of one conversation that are over their age."""

    def __init__(self, state: State, ages: Sequence[Age]) -> None:
        self._state = state
        self._ages = [age for age in ages if age.kind == "plugin_blocks"]
        self.forked = 0
        """Messages whose blocks wait, because a fork shares them."""

    def find(self) -> list[DueBlocks]:
        """Return the blocks over their age that no view can show again by itself, by message. Changes nothing."""
        state, due = self._state, list[DueBlocks]()
        self.forked = 0
        if not self._ages:
            return due
        entries = (*state.projection.entries(), *state.projection.withheld())
        held = {entry.position: entry for entry in entries if entry.outline is not None}
        shared = max((last for _, last in last_shared(state.store.branches(state.head), state.head.branch)), default=0)
        over = [row.position for row in self._over_age()]
        removed = WithheldOriginals(state)
        for start in range(0, len(over), _BODIES):
            rows = state.store.get_many(state.head, over[start : start + _BODIES])
            by_caller = removed.removed(rows)  # The caller's list may show them again.
            for row in rows:
                blocks = None if row.id in by_caller else self._blocks(row, held.get(row.position))
                if blocks and row.position <= shared:
                    self.forked += 1
                elif blocks:
                    due.append(blocks)
        return due

    def release(self, due: Sequence[DueBlocks]) -> None:
        """Release these blocks. Raises ConflictError if another writer came first."""
        state = self._state
        for start in range(0, len(due), _BODIES):
            edits = [
                Hide(Target(message.row.id, path), _POLICY, "released: its calls are over", keeps_original=False)
                for message in due[start : start + _BODIES]
                for path in message.paths
            ]
            view = state.view()
            state.commit(edits, "retention", view, view)

    def _over_age(self) -> Iterator[StampRow]:
        """Yield the messages with blocks that had all their calls and are over their age."""
        state, now = self._state, self._state.clock()
        turn = state.next_turn()
        newest, latest = state.projection.facts.retained(turn), state.projection.facts.turn
        for first in range(1, state.head.position + 1, _ROWS):
            for row in state.store.stamps(state.head, first, first + _ROWS - 1):
                kept, stamp = row.stamp.retention, row.stamp
                if kept is None or not row.size or stamp.turn + 1 >= turn:
                    continue
                age = newest - kept.sequence
                has_over = any(part.plugin and part.calls is not None and part.calls <= age for part in kept.parts)
                if has_over and any(rule.is_over(latest - stamp.turn, now - stamp.time) for rule in self._ages):
                    yield row

    def _blocks(self, row: StoredMessage, entry: Entry | None) -> DueBlocks | None:
        """Return the hidden blocks of a message that had all their calls; None if there is nothing to release."""
        if not row.body or row.stamp.retention is None:
            return None
        message, kept = wire.decode_message(row.body), row.stamp.retention
        age = self._state.projection.facts.retained(self._state.next_turn()) - kept.sequence
        paths = [
            path
            for path in sorted(transient_paths(message, row.stamp))
            if (kept.parts[path[-1]].calls or 0) <= age and (entry is None or _hides(entry, path))
        ]
        outline = released_form(message, row.stamp, paths)
        if outline is message:
            return None
        return DueBlocks(row, paths, max(0, len(row.body) - len(wire.encode_message(outline))))


def _hides(entry: Entry, path: Path) -> bool:
    """Return whether an edit that is not the caller's hides the part at a path."""
    by = [policy for shrunk, policy in zip(entry.shrunk, entry.shrunk_by, strict=True) if paths_overlap(shrunk, path)]
    return bool(by) and CALLER not in by and not entry.is_pinned(path)
