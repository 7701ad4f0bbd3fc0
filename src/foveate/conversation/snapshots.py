"""Snapshots of one conversation: when they are saved, and how the next opening resumes from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from ..core.entry_facts import restore_entry_facts, saved_entry_facts
from ..core.projection import Projection
from ..core.saved_bodies import SavedBodies
from ..core.saved_views import SavedView, decode_view, encode_view, key_of
from ..core.snapshots import Snapshot
from ..errors import StoreError
from ..ports import Database
from ..ports.formats import RenderedCache
from ..version import __version__

if TYPE_CHECKING:
    from .state import State

__all__ = ["INTERVAL", "SnapshotKeeper"]

INTERVAL = 256
"""Messages and edits after which a snapshot is due, at least."""
_CLOSING_INTERVAL = 64
"""Messages and edits after which closing saves a snapshot, at least."""
_CLOSING_SHARE = 8
"""Closing saves a snapshot if this part of the view is new, so that a save costs a fixed time for each new message."""
_SAVED_MAX = 20_000
"""Messages of the longest view that is saved. A longer one fits no window, so the next plan changes it."""


class SnapshotKeeper:
    """Saves what one conversation shows, and resumes from it."""

    def __init__(self) -> None:
        self.has_written = False
        """Whether this process wrote something."""
        self._saved = 0  # position + number at the last snapshot

    # --------------------------------------------------------------------------------------------------- resuming

    def resume(self, state: State) -> Projection | None:
        """Return the projection of the newest snapshot; None if there is none."""
        self._saved = 0
        found = state.store.snapshot(state.head)
        snapshot = Snapshot.decode(found[2]) if found else None
        return None if snapshot is None else self._resume(state, snapshot, _saved_view(state, snapshot))

    def _resume(self, state: State, snapshot: Snapshot, view: SavedView | None) -> Projection:
        visible = snapshot.positions()
        if 0 < snapshot.position == state.head.position and visible[-1:] != [snapshot.position]:
            state.loader.check_tip()
        wanted = visible
        if view is not None:
            wanted = [at for at, saved in zip(visible, view.messages, strict=True) if saved.packed is None]
        rows = state.loader.rows_at(wanted)
        projection = Projection.resume(snapshot, rows, state.profile, state.counter, state.originals, view)
        self._saved = snapshot.position + snapshot.number
        if view and view.key:
            entries = projection.entries()
            state.restore_facts(entries, view.facts, is_plain=view.is_plain)
            restore_entry_facts(view.entry_facts, entries)
            if view.rules:
                state.checker.restore(view.rules, entries)
            if view.bodies.pieces and (memo := _memo(state)):
                memo.restore(view.bodies, entries, state.profile)
        return projection

    # ----------------------------------------------------------------------------------------------------- saving

    def save_at_close(self, state: State) -> None:
        """Save a snapshot if this conversation wrote much since the last one, so that the next opening is fast.

        A failure costs time at the next opening, and no data.
        """
        projection = state.projection
        seen = projection.position + projection.number
        if self.has_written and seen - self._saved >= max(_CLOSING_INTERVAL, len(projection) // _CLOSING_SHARE):
            self.save_quietly(state, projection)

    def is_due(self, projection: Projection) -> bool:
        """Return whether much is new since the last snapshot."""
        seen = projection.position + projection.number
        return seen - self._saved >= max(INTERVAL, len(projection))

    def save_quietly(self, state: State, projection: Projection) -> None:
        """Save what took long to read. This may fail: a reader may lack the right to write."""
        twin = projection.copy()
        twin.forget()
        snapshot = twin.snapshot()
        try:
            _save(state, state.database, snapshot, projection)
        except StoreError:
            return
        self._saved = snapshot.position + snapshot.number

    def save(self, state: State, *, has_view: bool = True) -> None:
        """Save the projection, so that the next process that opens this reads only what is visible.

        `has_view`: whether what it shows is saved too, so that the process reads no messages.
        """
        state.projection.forget()
        snapshot = state.projection.snapshot()
        _save(state, state.store, snapshot, state.projection if has_view else None)
        self._saved = snapshot.position + snapshot.number


def _saved_view(state: State, snapshot: Snapshot) -> SavedView | None:
    """Return what the view of a snapshot shows, as far as it was saved and fits the model.

    Its messages are proven by the hash of the blob, and the newest one by the tip of the chain.
    """
    pieces = state.store.saved_view(state.head, snapshot.position, snapshot.number)
    view = decode_view(pieces, _view_key(state)) if pieces else None
    if view is None or not view.messages:
        return None
    visible = snapshot.positions()
    is_tip = visible[-1:] == [state.head.position]
    if len(view.messages) != len(visible) or (is_tip and view.messages[-1].id != state.head.tip):
        return None
    return view


def _view_key(state: State) -> str:
    name = getattr(state.counter, "name", "")
    counter = name if isinstance(name, str) else ""
    return key_of(__version__, state.format.name, state.model.name, counter, state.profile)


def _encoded_view(state: State, projection: Projection) -> list[bytes]:
    """Return what a projection shows, to be saved with its snapshot."""
    entries, memo = projection.entries(), _memo(state)
    bodies = memo.saved(entries, state.profile) if memo else SavedBodies()
    view = projection.saved_view(_view_key(state), bodies)
    if view.key:
        view = structs.replace(
            view,
            rules=state.checker.saved(entries),
            facts=state.marks.saved(entries),
            is_plain=state.is_known_plain(entries),
            entry_facts=saved_entry_facts(entries),
        )
    return encode_view(view)


def _memo(state: State) -> RenderedCache | None:
    """Return the wire messages that the format keeps; None if it keeps none."""
    return getattr(state.format, "memo", None)


def _save(state: State, store: Database, snapshot: Snapshot, shown: Projection | None) -> None:
    view = _encoded_view(state, shown) if shown is not None and len(shown) <= _SAVED_MAX else ()
    store.save_snapshot(state.head, snapshot.position, snapshot.number, snapshot.encode(), view)
