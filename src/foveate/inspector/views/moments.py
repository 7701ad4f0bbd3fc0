"""Views of one open conversation at its calls, with what a page shows of them. The newest are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock
from weakref import WeakKeyDictionary

from msgspec import Struct

from ...conversation import Conversation
from ...conversation.journal_search import records_between
from ...conversation.session import Session
from ...core.edits import Record
from ...core.messages import ToolCall
from ...core.snapshots import Cover
from ...core.view import View
from .entries import EntryRow, GapRow, RowPlace, appended_row, edit_numbers, places_of, rows_of
from .places import Place

__all__ = ["Moment", "Moments", "erased_positions", "moments_of"]

_KEPT = 6
"""Views that are kept for each conversation."""
_NEIGHBOURS = 64
"""Edits between two numbers that are read together."""
_CALL_IS_NEAR = 60
"""Messages before others among which the calls of their results are looked for."""


class Moment(Struct, frozen=True):
    """The view of one call."""

    turn: int
    """The number of the call."""
    is_next: bool
    """Whether this is the coming call, without the edits of its plan."""
    view: View
    """The view."""
    covers: list[Cover]
    """The hidden and summarized ranges."""
    places: list[RowPlace]
    """Its rows, in order."""
    place: Place
    """The end of the conversation when it was read."""


class Moments:
    """The views of one open conversation."""

    def __init__(self, chat: Conversation) -> None:
        self._session = chat._session
        self._known: OrderedDict[tuple[object, ...], Moment] = OrderedDict()
        self._lock = Lock()

    def at(self, turn: int | None = None) -> Moment | None:
        """Return the view of a call; None for the coming one. Returns None if folding it would take long.

        Raises BadInput if there was no such call.
        """
        session = self._session
        with session.lock:
            state, head = session.state, session.head
            state.follow_head()
            newest = state.next_turn()
            if turn is not None and turn < newest and not session.past.is_near(turn):
                return None
            key = (head.root, head.branch, head.position, head.number, head.erased, turn)
            with self._lock:
                moment = self._known.pop(key, None)
            if moment is None:
                if turn is None or turn == newest:
                    view, covers, last = state.view(), state.projection.covers(), head.position
                else:
                    (view, covers), last = session.past.look_at(turn), 0
                places = places_of(view, last)
                moment = Moment(view.turn, view.turn == newest, view, covers, places, Place.of(head))
        with self._lock:
            self._known[key] = moment
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return moment

    def rows(self, moment: Moment, places: Sequence[RowPlace]) -> list[EntryRow | GapRow]:
        """Return the rows at these places, with the reasons that the journal has."""
        records = self._records(edit_numbers(moment.view, places, moment.covers))
        return rows_of(moment.view, places, records, moment.covers)

    def appended(self, first: int, last: int) -> list[EntryRow]:
        """Return the messages from position `first` to `last` as they were appended."""
        session = self._session
        with session.lock:
            entries = session.history(max(1, first - _CALL_IS_NEAR), last)
            erased = erased_positions(session, first, last)
        calls: dict[str, ToolCall] = {}
        rows: list[EntryRow] = []
        for entry in entries:
            if entry.position >= first:
                rows.append(appended_row(entry, calls, is_erased=entry.position in erased))
            calls.update({call.call_id: call for call in entry.message.calls})
        return rows

    def _records(self, numbers: Iterable[int]) -> list[Record]:
        """Return the records with these edits."""
        store, head = self._session.state.database, self._session.head
        records: dict[int, Record] = {}
        group: list[int] = []
        for number in [*sorted(numbers), None]:
            if group and (number is None or number - group[-1] > _NEIGHBOURS):
                records |= {record.first: record for record in records_between(store, head, group[0], group[-1])}
                group = []
            if number is not None:
                group.append(number)
        return list(records.values())


def erased_positions(session: Session, first: int, last: int) -> frozenset[int]:
    """Return the positions of the erased messages between two positions."""
    if not session.head.erased:
        return frozenset()
    stamps = session.state.database.stamps(session.head, first, last)
    return frozenset(row.position for row in stamps if not row.size)


_moments: WeakKeyDictionary[Conversation, Moments] = WeakKeyDictionary()
_moments_lock = Lock()


def moments_of(chat: Conversation) -> Moments:
    """Return the views of an open conversation. They live as long as the conversation is open."""
    with _moments_lock:
        if chat not in _moments:
            _moments[chat] = Moments(chat)
        return _moments[chat]
