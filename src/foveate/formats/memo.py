"""Cache of the wire messages of the newest view.

An unchanged entry is the same object in every view, so identity decides: a known group of entries keeps its wire
message and its bytes, and a new view costs only the changed groups. The format passes in `cut`, which ends a group, and
`write`.
"""

from __future__ import annotations

import gc
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from msgspec import Struct, to_builtins

from ..core.profiles import Profile
from ..core.saved_bodies import GroupPlace, SavedBodies, SavedGroup, join_bodies
from ..core.saved_views import LARGE
from ..core.view import Entry
from ..ports import Rendered
from .json import decode, encode

__all__ = ["Cut", "Memo", "Write", "paused_collector"]

Cut = Callable[[Sequence[Entry], int, Profile], int]
"""Returns the end of the group of entries that begins at a position. It may look at the entry after the group."""

Write = Callable[[tuple[Entry, ...], int, Profile], list[tuple[dict[str, Any], tuple[Entry, ...]]]]
"""Returns the wire messages of the group that begins at a position, each with the entries it shows."""


_STALE_MAX = 4
"""Groups that are kept although the newest view does not show them: two views may alternate."""


_NOT_DECODED = (None,)


class _Group(Struct, eq=False, gc=False):
    entries: tuple[Entry, ...]
    first: bool
    """Whether the group began the view. A group there may be written differently."""
    shown: tuple[tuple[Entry, ...], ...]
    """The entries that each of its wire messages shows."""
    wires: tuple[dict[str, Any] | None, ...]
    """None where only the bytes are held: a program that sends bytes needs no dicts."""
    rendered: tuple[Rendered, ...] | None = None
    """The same as bytes, once they were asked for: most programs pass dicts to an SDK."""


def _rendered(group: _Group) -> tuple[Rendered, ...]:
    if group.rendered is not None:
        return group.rendered
    pairs = zip(group.wires, group.shown, strict=True)
    # The encoder reserves more memory than the bytes need; a copy of them does not.
    return tuple([Rendered(bytes(memoryview(encode(wire))), shown) for wire, shown in pairs])


class Memo:
    """The wire messages of one conversation's newest view."""

    def __init__(self, cut: Cut, write: Write) -> None:
        self._cut, self._write = cut, write
        self._forget()

    def _forget(self, profile: Profile | None = None) -> None:
        self._profile = profile
        self._entries: tuple[Entry, ...] = ()
        self._groups: list[_Group] = []
        self._ends = array("l")  # The end of each group among the entries.
        self._sizes = array("l")  # The number of wire messages up to the end of each group.
        self._stale: list[_Group] = []  # Groups of the views before that the newest one does not show.
        self._wires: list[dict[str, Any] | None] = []
        self._undecoded = 0  # How many of the first groups may lack wire messages.
        self._needs_wires = False  # Whether wire messages were asked for; else only their bytes are held.
        self._rendered: list[Rendered] = []
        self._bodies: list[bytes] = []
        self._rendered_groups = 0  # Groups that are in the two lists.
        self._saved: SavedBodies | None = None  # The first group stands for all of these, until they are unpacked.
        self._packed_wires = self._packed_pieces = 0  # Their wire messages, and their pieces among the bodies.

    @property
    def wires(self) -> list[dict[str, Any]]:
        """Return the wire messages. They are templates: copy them before handing them out to be changed."""
        self._needs_wires = True
        self._unpack()
        for number in range(self._undecoded):
            group, end = self._groups[number], self._sizes[number]
            if None in group.wires:
                group.wires = tuple([decode(each.body) for each in _rendered(group)])
                self._wires[end - len(group.wires) : end] = group.wires
        self._undecoded = 0
        return cast("list[dict[str, Any]]", self._wires)

    def copies(self, start: int = 0) -> list[dict[str, Any]]:
        """Return copies of the wire messages from `start` on, which the caller may change. They share their strings.

        Thousands of new containers would start the garbage collector again and again, and none of them is garbage, so
        it pauses.
        """
        wires = self.wires[start:]
        with paused_collector():
            copies: list[dict[str, Any]] = to_builtins(wires)
            return copies

    @property
    def rendered(self) -> list[Rendered]:
        """Return the wire messages as bytes, with their entries. Do not change the list."""
        self._unpack()
        self._render()
        return self._rendered

    @property
    def bodies(self) -> list[bytes]:
        """Return the wire messages as bytes. Do not change the list."""
        self._unpack()
        self._render()
        return self._bodies

    @property
    def pieces(self) -> list[bytes]:
        """Return the same, but those of a saved view in pieces of many, with commas. Do not change the list."""
        self._render()
        return self._bodies

    def _render(self) -> None:
        for number, group in enumerate(self._groups[self._rendered_groups :], self._rendered_groups):
            group.rendered = rendered = _rendered(group)
            self._rendered.extend(rendered)
            self._bodies.extend([each.body for each in rendered])
            self._rendered_groups = number + 1
            if not self._needs_wires and number >= self._undecoded:
                self._drop_wires(number)

    def _drop_wires(self, number: int) -> None:
        """Hold only the bytes of a group's wire messages, since a program asks for dicts or for bytes."""
        group, end = self._groups[number], self._sizes[number]
        group.wires = _NOT_DECODED * len(group.wires)
        self._wires[end - len(group.wires) : end] = group.wires
        self._undecoded = number + 1

    def saved(self, entries: tuple[Entry, ...], profile: Profile) -> SavedBodies:
        """Return the wire messages at the beginning of a view that are known and cannot change, to be saved."""
        if profile != self._profile:
            return SavedBodies()
        self._unpack()
        return join_bodies(map(_saved, self._groups[: bisect_left(self._ends, self._same(entries))]))

    def restore(self, saved: SavedBodies, entries: tuple[Entry, ...], profile: Profile) -> None:
        """Continue with the wire messages that were saved. `entries`: a view that begins with their entries."""
        self._forget(profile)
        end = wires = 0
        for piece, text in zip(saved.pieces, saved.texts, strict=True):
            start, end = end, end + piece.entries
            wires += piece.wires
            if piece.wires:
                self._bodies.append(text)
            else:
                rendered = _rendered(self._group({}, entries[start:end], start, profile))
                self._bodies += [each.body for each in rendered]
                wires += len(rendered)
        packed = entries[:end]
        self._groups, self._ends, self._sizes = [_Group(packed, True, (), ())], array("l", [end]), array("l", [wires])
        # With the next entry, on which the last group depends. A new tuple, because there may be no other entry.
        self._entries = (*packed, *entries[end : end + 1])
        self._wires = [None] * wires
        self._undecoded = self._rendered_groups = 1
        self._saved, self._packed_wires, self._packed_pieces = saved, wires, len(self._bodies)

    def _unpack(self) -> None:
        """Cut the wire messages that were saved into those of each group."""
        if self._saved is None:
            return
        packed = self._groups[0].entries
        groups: list[_Group] = []
        rendered: list[Rendered] = []
        ends, sizes = array("l"), array("l")
        end = 0
        for place in self._saved.places():
            start, end = end, end + place.group.size
            group = self._unpacked(place, self._saved.texts[place.piece], packed[start:end], start)
            groups.append(group)
            rendered += group.rendered or ()
            ends.append(end)
            sizes.append(len(rendered))
        self._groups[:1], self._ends[:1], self._sizes[:1] = groups, ends, sizes
        self._wires[: self._packed_wires] = [wire for group in groups for wire in group.wires]
        self._rendered[:0] = rendered
        self._bodies[: self._packed_pieces] = [each.body for each in rendered]
        self._undecoded += len(groups) - 1
        self._rendered_groups += len(groups) - 1
        self._saved, self._packed_wires, self._packed_pieces = None, 0, 0

    def _unpacked(self, place: GroupPlace, text: bytes, entries: tuple[Entry, ...], start: int) -> _Group:
        """Return the group at a place of the wire messages that were saved."""
        saved = place.group
        if not saved.lengths and self._profile is not None:
            group = self._group({}, entries, start, self._profile)
            group.rendered = _rendered(group)
            return group
        at = place.start
        shown = tuple([tuple([entries[index] for index in each]) for each in saved.shown]) or (entries,)
        rendered = []
        for length, own in zip(saved.lengths, shown, strict=True):
            rendered.append(Rendered(text[at : at + length], own))
            at += length + 1
        return _Group(entries, start == 0, shown, _NOT_DECODED * len(rendered), tuple(rendered))

    def update(self, entries: tuple[Entry, ...], profile: Profile) -> None:
        """Move on to these entries."""
        if profile != self._profile:
            self._forget(profile)
        if entries is self._entries:
            return
        same = self._same(entries)
        if self._saved is not None and same <= self._ends[0]:
            self._unpack()
        dropped = self._keep(same)
        known = {id(group.entries[0]): group for group in (*self._stale, *dropped)}
        size = len(entries)
        start = self._ends[-1] if self._ends else 0
        # If a message cannot be written, only the complete groups before it remain.
        self._entries = entries[:start]
        while start < size:
            end = self._cut(entries, start, profile)
            self._add(self._group(known, entries[start:end], start, profile), end)
            start = end
        self._entries = entries
        self._stale = list(known.values())[-_STALE_MAX:]

    def _same(self, entries: tuple[Entry, ...]) -> int:
        """Return how many leading entries are those of the view before."""
        old = self._entries
        if entries[: len(old)] == old:  # Compares identities; a hundred times faster than the loop.
            return len(old)
        for number, (before, now) in enumerate(zip(old, entries, strict=False)):
            if before is not now:
                return number
        return min(len(old), len(entries))

    def _keep(self, same: int) -> list[_Group]:
        """Keep the groups that cannot have changed, and return the others. A group also depends on the next entry."""
        kept = bisect_left(self._ends, same)
        wires = self._sizes[kept - 1] if kept else 0
        dropped = self._groups[kept:]
        del self._groups[kept:], self._ends[kept:], self._sizes[kept:]
        self._undecoded = min(self._undecoded, kept)
        self._rendered_groups = min(self._rendered_groups, kept)
        del self._wires[wires:], self._rendered[wires - self._packed_wires :]
        del self._bodies[wires - self._packed_wires + self._packed_pieces :]
        return dropped

    def _group(self, known: dict[int, _Group], entries: tuple[Entry, ...], start: int, profile: Profile) -> _Group:
        """Return the group of these entries. `known`: earlier groups by their first entry; the one used is removed."""
        group = known.get(id(entries[0]))
        if group is not None and group.entries == entries and group.first == (start == 0):
            return known.pop(id(entries[0]))
        written = self._write(entries, start, profile)
        shown = tuple([entries if shown == entries else shown for _, shown in written])
        return _Group(entries, start == 0, shown, tuple([wire for wire, _ in written]))

    def _add(self, group: _Group, end: int) -> None:
        self._groups.append(group)
        self._ends.append(end)
        self._wires.extend(group.wires)
        self._sizes.append(len(self._wires))
        if None in group.wires:
            self._undecoded = len(self._groups)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the garbage collector in this block, if it is on."""
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


def _saved(group: _Group) -> tuple[SavedGroup, tuple[bytes, ...]]:
    """Return a group to be saved, with its bodies."""
    size = len(group.entries)
    if any(entry.bytes >= LARGE for entry in group.entries):
        return SavedGroup(size, ()), ()
    bodies = tuple([each.body for each in _rendered(group)])
    lengths = tuple(map(len, bodies))
    if len(bodies) == 1 and group.shown[0] == group.entries:
        return SavedGroup(size, lengths), bodies
    places = {id(entry): place for place, entry in enumerate(group.entries)}
    return SavedGroup(
        size, lengths, tuple([tuple([places[id(entry)] for entry in each]) for each in group.shown])
    ), bodies
