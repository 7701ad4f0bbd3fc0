"""The messages of a request as JSON: the caller's own items where the view shows them unchanged, and ours elsewhere.

A program that sends JSON itself, such as a proxy, keeps the bytes of its own items: signatures, cache marks, unknown
fields and the order of keys survive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..core.growing import shared_length
from ..core.profiles import Profile
from ..core.view import Entry, ListPlace, View
from ..ports import Format

__all__ = ["ItemWriter", "RequestItem", "RequestItems"]


class RequestItem(Struct, frozen=True):
    """A part of a request's list of messages."""

    places: range = range(0)
    """Indices of the caller's own items to send as they are; empty: `body` is sent."""
    body: bytes = b""
    """The JSON of one message that foveate wrote; empty: the caller's own items are sent."""
    entries: tuple[Entry, ...] = ()
    """The entries of the view that it shows."""
    last: int = -1
    """Index of the newest item of the caller's list that it shows or stands for; -1: it stands for none."""


class RequestItems(Struct, frozen=True):
    """The list of messages of a request."""

    items: tuple[RequestItem, ...]
    """The messages, in order."""
    is_edited: bool
    """Whether an earlier request may have shown something else than the caller's list."""
    tokens_history: int = 0
    """Tokens of all messages that the caller did not remove, each once; 0 if there is no list of the caller."""


class _Written(NamedTuple):
    """The wire messages of some entries that follow each other. The last entry keeps it (`Entry.remember`).

    It refers to the entries before that one only: no collector frees a cycle of entries.
    """

    before: tuple[Entry, ...]
    profile: Profile
    rendered: tuple[tuple[bytes, tuple[int, ...]], ...]
    """The JSON of each message, and the indices of its entries."""


class _Known(NamedTuple):
    """The list of the last request, and what it was made of."""

    entries: tuple[Entry, ...]
    places: Mapping[int, ListPlace]
    profile: Profile
    items: tuple[RequestItem, ...]
    ends: list[tuple[int, int]]
    """Places at which later entries change nothing of the list before: how many entries, and how many items."""


class ItemWriter:
    """Writes the lists of one conversation's requests. Most lists begin as the one before, and that part is kept."""

    def __init__(self, format: Format) -> None:
        self._format = format
        self._known: _Known | None = None

    def forget(self) -> None:
        """Drop what is kept for speed."""
        self._known = None

    def items(self, view: View, profile: Profile) -> tuple[RequestItem, ...]:
        """Return the messages that a request with this view has.

        Entries that show no item of the caller's list unchanged are written in the format, those that follow each other
        together. Messages without entries show the media of tool results: they wait until the last result of their
        call.
        """
        known, ends = self._known, [(0, 0)]
        items: list[RequestItem] = []
        if known is not None and known.profile is profile:
            same, ends = _same_entries(known, view), known.ends
            while ends[-1][0] > same:
                ends.pop()
            items += known.items[: ends[-1][1]]
        count = ends[-1][0]
        before = view.entries[count - 1] if count else None  # the entry before the run
        opening = next((entry for entry in reversed(view.entries[:count]) if not _is_result(entry)), None)
        waiting: list[RequestItem] = []
        run: list[Entry] = []

        def write_run() -> None:
            nonlocal waiting
            for item in _written(view, opening if _is_result(run[0]) else before, run, self._format, profile):
                if not item.entries:
                    waiting.append(item)
                    continue
                if waiting and item.entries[0].message.role != "tool":
                    items.extend(waiting)
                    waiting = []
                items.append(item)
            run.clear()

        for places, entries in replace(view, entries=view.entries[count:]).by_item():
            count += len(entries)
            if not places:
                run += entries
                continue
            if run:
                write_run()
            if waiting and entries[0].message.role != "tool":
                items += waiting
                waiting = []
            before = entries[-1]
            opening = opening if _is_result(before) else before  # that with the calls of a run of results
            items.append(RequestItem(places, entries=entries, last=places[-1]))
            if not waiting:
                ends.append((count, len(items)))
        if run:
            write_run()
        written = (*items, *waiting)
        self._known = _Known(view.entries, view.list_places, profile, written, ends)
        return written


def _same_entries(known: _Known, view: View) -> int:
    """Return how many entries at the beginning are the same, and have the same places in the caller's list."""
    same = shared_length(known.entries, view.entries)
    before, places = known.places, view.list_places
    if places is not before:
        changed = places.keys() - before.keys()
        if not before.items() <= places.items():  # Most lists only grow.
            changed |= {position for position, place in before.items() if places.get(position) != place}
        first = min(changed, default=0)
        while changed and same and not 0 < _last_position(view.entries[same - 1]) < first:
            same -= 1
    return same


def _last_position(entry: Entry) -> int:
    """Return the position of the last message that an entry shows; 0 for a stand-in for no message."""
    return max(entry.last, entry.position)


def _is_result(entry: Entry) -> bool:
    return entry.message.role == "tool"


def _written(
    view: View, before: Entry | None, run: list[Entry], format: Format, profile: Profile
) -> Iterator[RequestItem]:
    """Write entries that follow each other. `before`: the entry before them; that with the calls, before results."""
    memo: _Written | None = run[-1].recall("request")
    entries = tuple(run)
    if memo is None or memo.before != entries[:-1] or memo.profile is not profile:
        # A system message at the beginning of a request is a system prompt, which some formats write otherwise. Gemini
        # wants the name of the function in a result, and an id only if the call has one.
        is_inside = before is not None and run[0].message.role in ("system", "tool")
        shown = (before, *entries) if is_inside and before is not None else entries
        wires = [(each.body, each.entries) for each in format.rendered(replace(view, entries=shown), profile=profile)]
        own = {id(entry): index for index, entry in enumerate(entries)}
        rendered = tuple(
            (body, tuple(own[id(entry)] for entry in those))
            for body, those in wires
            if all(id(entry) in own for entry in those)
        )
        memo = _Written(entries[:-1], profile, rendered)
        run[-1].remember("request", memo)
    for body, indices in memo.rendered:
        shown_entries = tuple([entries[index] for index in indices])
        yield RequestItem(body=body, entries=shown_entries, last=_last_place(view, shown_entries))


def _last_place(view: View, entries: tuple[Entry, ...]) -> int:
    """Return the index of the newest item of the caller's list that these entries stand for; -1 if there is none."""
    places = view.list_places
    for entry in entries:
        for position in range(entry.last, entry.position - 1, -1):
            place = places.get(position)
            if place is not None:
                return place.items[-1]
    return -1
