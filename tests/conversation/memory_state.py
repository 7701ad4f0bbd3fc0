"""Everything that an open conversation knows and shows, as values that can be compared.

The tests compare a conversation that was used step by step with one that was opened again from the same store. Facts
that only the first one can know are left out: an unanswered call, its time, and summaries in the background.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from foveate import BadInput, Conversation, FoveateError
from foveate.core.plain_handles import plain_entries
from foveate.core.projection import Projection
from foveate.core.slots import Slot
from foveate.core.view import Entry, View
from foveate.ports import Head

__all__ = ["Unsaved", "differences", "fields_in_memory", "known", "projected"]

_MEMOS = ("_base", "_forms", "packed")
"""What a place shows, kept once it was worked out, and a form of its message."""


class Unsaved:
    """A store that returns no snapshots, so that a conversation is folded from its beginning."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def snapshot(self, head: Head) -> None:
        return None


def known(chat: Conversation) -> dict[str, Any]:
    """Return the values that a conversation holds, and its answers to questions."""
    projection, view = chat._session.state.projection, chat.view
    return {
        **projected(projection),
        "head": chat._agent.head,
        "budget": chat.budget,
        "view": _seen(view),
        "shown": [_entry(entry) for entry in view],
        "explained": {entry.handle: chat.explain(entry.handle) for entry in view if entry.position},
        "context": chat.context().kinds,
        "totals": structs.asdict(chat.totals()),
        "mends": chat.fixes(),
        "plan": _planned(chat),
    }


def projected(projection: Projection) -> dict[str, Any]:
    """Return the values of a projection. Both sides first forget all they may, because a save decides what is
    forgotten.
    """
    twin = projection.copy()
    twin.forget()
    return {
        "entries": [_entry(entry) for entry in projection.entries()],
        "withheld": [_entry(entry) for entry in projection.withheld()],
        "slots": [_slot(slot) for slot in twin._slots],
        "held": sorted(twin._slots.by_id),
        "by id": [id for id, slot in twin._slots.by_id.items() if slot not in twin._slots or slot.id != id],
        "retained": list(twin._slots.retained),
        "covers": twin._hidden.covers,
        "gone": twin._hidden.gone,
        "forgotten": twin._hidden.newest_forgotten,
        "edited": twin._edited,
        "void": twin._void,
        "facts": twin.facts,
        "tasks": list(twin.tasks.items()),
        "interrupted at": twin._interrupted_at,
        "position": twin.position,
        "number": twin.number,
    }


def fields_in_memory(chat: Conversation) -> tuple[str, ...]:
    """Return the names of the values that another process cannot know.

    These depend on a call that this process began, if it is not the newest answered one, on a measured prompt after the
    point to which the conversation departed, and on a request that did not offer `expand` before a text named it.
    """
    state, facts = chat._session.state, chat._session.state.projection.facts
    is_alone = state.calls._turn > facts.turn or any(time != facts.replied for time in state.calls._times.values())
    has_measured = not state.limits.budget().unmeasured and not facts.measured
    entries = state.projection.entries()
    is_plain = plain_entries(entries, state.counter) != entries
    has_offered = is_plain and state.own_offer not in (None, state.projection.offers_expand)
    called, measured = ("explained", "plan", "view"), ("budget", "context", "explained", "plan", "view")
    offered = ("shown", "context", "explained", "plan", "view")
    return (
        *(called if is_alone else ()),
        *(measured if has_measured else ()),
        *(offered if has_offered else ()),
    )


def differences(
    one: dict[str, Any], other: dict[str, Any], *, without: tuple[str, ...] = ()
) -> dict[str, tuple[Any, Any]]:
    """Return the values that differ, by name; of lists and dicts only the differing items."""
    return {name: _apart(one[name], other[name]) for name in one if name not in without and one[name] != other[name]}


def _apart(mine: Any, theirs: Any) -> tuple[Any, Any]:
    match mine, theirs:
        case dict(), dict():
            same = {key for key in mine.keys() & theirs.keys() if mine[key] == theirs[key]}
            return {k: v for k, v in mine.items() if k not in same}, {k: v for k, v in theirs.items() if k not in same}
        case list(), list() if len(mine) == len(theirs):
            pairs = [pair for pair in zip(mine, theirs, strict=True) if pair[0] != pair[1]]
            return [one for one, _ in pairs], [other for _, other in pairs]
        case _:
            return mine, theirs


def _planned(chat: Conversation) -> Any:
    try:
        plan = chat.plan()
    except (FoveateError, BadInput) as error:
        return str(error)
    return plan.edits, _seen(plan.before), _seen(plan.after), plan.is_tight, len(plan.open_requests)


def _seen(view: View) -> dict[str, Any]:
    return {
        "entries": [_entry(entry) for entry in view],
        "withheld": [_entry(entry) for entry in view.withheld],
        "budget": view.budget,
        "tasks": view.tasks,
        "retained": view.retained,
        "turn": view.turn,
        "sizes": (view.tokens, view.bytes, view.images),
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in Entry.__struct_fields__ if name != "_memo"}


def _slot(slot: Slot) -> dict[str, Any]:
    return {name: getattr(slot, name) for name in (*Slot.__struct_fields__, "message") if name not in _MEMOS}
