"""Cache of the wire messages of the newest view.

An unchanged entry is the same object in every view, so identity decides: a known group of entries keeps its wire
message and its bytes, and a new view costs only the changed groups. The format passes in `cut`, which ends a group, and
`write`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from ..core.profiles import Profile
from ..core.view import Entry
from ..ports import Rendered
from .json import encode

__all__ = ["Cut", "Memo", "Write"]

Cut = Callable[[Sequence[Entry], int, Profile], int]
"""Returns the end of the group of entries that begins at a position. It may look at the entry after the group."""

Write = Callable[[tuple[Entry, ...], int, Profile], list[tuple[dict[str, Any], tuple[Entry, ...]]]]
"""Returns the wire messages of the group that begins at a position, each with the entries it shows."""


_STALE_MAX = 4
"""Groups that are kept although the newest view does not show them: two views may alternate."""


class _Group(Struct, frozen=True, eq=False):
    entries: tuple[Entry, ...]
    first: bool
    """Whether the group began the view. A group there may be written differently."""
    wires: tuple[dict[str, Any], ...]
    rendered: tuple[Rendered, ...]


class Memo:
    """The wire messages of one conversation's newest view."""

    def __init__(self, cut: Cut, write: Write) -> None:
        self._cut, self._write = cut, write
        self._forget()

    def _forget(self, profile: Profile | None = None) -> None:
        self._profile = profile
        self._entries: tuple[Entry, ...] = ()
        self._groups: list[_Group] = []
        self._ends: list[int] = []  # The end of each group among the entries.
        self._sizes: list[int] = []  # The number of wire messages up to the end of each group.
        self._known: dict[int, _Group] = {}  # By the identity of the first entry; the group keeps that entry alive.
        self.wires: list[dict[str, Any]] = []
        """Templates: copy them before handing them out."""
        self.rendered: list[Rendered] = []
        self.bodies: list[bytes] = []

    def update(self, entries: tuple[Entry, ...], profile: Profile) -> None:
        """Update `wires`, `rendered` and `bodies` for these entries."""
        if profile != self._profile:
            self._forget(profile)
        if entries is self._entries:
            return
        self._keep(self._same(entries))
        size = len(entries)
        start = self._ends[-1] if self._ends else 0
        # If a message cannot be written, only the complete groups before it remain.
        self._entries = entries[:start]
        while start < size:
            end = self._cut(entries, start, profile)
            self._add(self._group(entries[start:end], start, profile), end)
            start = end
        self._entries = entries
        if len(self._known) > len(self._groups) + _STALE_MAX:
            self._known = {id(group.entries[0]): group for group in self._groups}

    def _same(self, entries: tuple[Entry, ...]) -> int:
        """Return how many leading entries are those of the view before."""
        old = self._entries
        if entries[: len(old)] == old:  # Compares identities; a hundred times faster than the loop.
            return len(old)
        for number, (before, now) in enumerate(zip(old, entries, strict=False)):
            if before is not now:
                return number
        return min(len(old), len(entries))

    def _keep(self, same: int) -> None:
        """Keep the groups that cannot have changed. A group also depends on the entry after it."""
        kept = bisect_left(self._ends, same)
        wires = self._sizes[kept - 1] if kept else 0
        del self._groups[kept:], self._ends[kept:], self._sizes[kept:]
        del self.wires[wires:], self.rendered[wires:], self.bodies[wires:]

    def _group(self, entries: tuple[Entry, ...], start: int, profile: Profile) -> _Group:
        group = self._known.get(id(entries[0]))
        if group is None or group.entries != entries or group.first != (start == 0):
            written = self._write(entries, start, profile)
            rendered = tuple([Rendered(encode(wire), shown) for wire, shown in written])
            group = _Group(entries, start == 0, tuple([wire for wire, _ in written]), rendered)
            self._known[id(entries[0])] = group
        return group

    def _add(self, group: _Group, end: int) -> None:
        self._groups.append(group)
        self._ends.append(end)
        self.wires.extend(group.wires)
        self.rendered.extend(group.rendered)
        self.bodies.extend([each.body for each in group.rendered])
        self._sizes.append(len(self.wires))
