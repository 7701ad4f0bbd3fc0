"""The messages of a request as JSON: the caller's own items where the view shows them unchanged, and ours elsewhere.

A program that sends JSON itself, such as a proxy, keeps the bytes of its own items: signatures, cache marks, unknown
fields and the order of keys survive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..core.profiles import Profile
from ..core.view import Entry, View
from ..ports import Format

__all__ = ["RequestItem", "RequestItems", "items_of"]


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
    """Tokens of all messages so far, each once, as in `Totals`; 0 if there is no list of the caller."""


class _Written(NamedTuple):
    """The wire messages of some entries that follow each other. The last entry keeps it (`Entry.remember`).

    It refers to the entries before that one only: no collector frees a cycle of entries.
    """

    before: tuple[Entry, ...]
    profile: Profile
    rendered: tuple[tuple[bytes, tuple[int, ...]], ...]
    """The JSON of each message, and the indices of its entries."""


def items_of(view: View, format: Format, profile: Profile) -> tuple[RequestItem, ...]:
    """Return the messages that a request with this view has.

    Entries that show no item of the caller's list unchanged are written in the format, those that follow each other
    together. Messages without entries show the media of tool results: they wait until the last result of their call.
    """
    items: list[RequestItem] = []
    waiting: list[RequestItem] = []
    for item in _in_order(view, format, profile):
        if not item.places and not item.entries:
            waiting.append(item)
            continue
        if waiting and item.entries[0].message.role != "tool":
            items += waiting
            waiting = []
        items.append(item)
    return (*items, *waiting)


def _in_order(view: View, format: Format, profile: Profile) -> Iterator[RequestItem]:
    run: list[Entry] = []
    before: Entry | None = None  # the entry before the run
    for places, entries in view.by_item():
        if not places:
            run += entries
            continue
        if run:
            yield from _written(view, before, run, format, profile)
            run = []
        before = entries[-1]
        yield RequestItem(places, entries=entries, last=places[-1])
    if run:
        yield from _written(view, before, run, format, profile)


def _written(
    view: View, before: Entry | None, run: list[Entry], format: Format, profile: Profile
) -> Iterator[RequestItem]:
    """Write entries that follow each other. `before`: the entry before them."""
    memo: _Written | None = run[-1].recall("request")
    entries = tuple(run)
    if memo is None or memo.before != entries[:-1] or memo.profile is not profile:
        # A system message at the beginning of a request is a system prompt, which some formats write otherwise.
        is_inside = before is not None and run[0].message.role == "system"
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
        for position in range(max(entry.last, entry.position), entry.position - 1, -1):
            place = places.get(position)
            if place is not None:
                return place.items[-1]
    return -1
