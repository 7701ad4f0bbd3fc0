"""Erasing what a conversation must not hold any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ports import Erasure, Finding
from .session import Session

if TYPE_CHECKING:
    from ..core.retention import Ages
    from .retention import RetentionReport

__all__ = ["Privacy"]


class Privacy:
    """Erasing what a conversation must not hold any more: `chat.privacy`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def erase(self, handle: str | int, *, reason: str = "", who: str = "") -> Erasure:
        """Erase what the named messages say, for good, with everything that was made of it in every fork that shares
        it: placeholders, summaries, expanded copies, snapshots, words in the index, steps of agents' runs.

        The history keeps their places and hashes, so `verify` still proves the rest. The view shows `[erased]` where an
        answer is required. If a summary was made of them, the other originals of its span are shown again if they fit.
        `reason` and `who` are kept, without a word of what was erased. Erasing again changes nothing.

        Not erased: other messages that quote it, other conversations, backups, data at providers. The file may hold its
        bytes until `vacuum`. Raises UnknownHandle, BadInput for a part of a message, and StoreError if a record is too
        old to be changed; nothing is erased then.
        """
        with self._session.lock:
            return self._session.erase(handle, reason, who)

    def apply_retention(
        self, ages: Ages, *, reason: str = "age", who: str = "", dry_run: bool = False
    ) -> RetentionReport:
        """Erase what was kept long enough, as `erase` does; report how much, by kind.

        `ages`: `{"tool results": "90 days and 200 turns", "media": "30 days"}`, or values of `Age`. Messages that the
        view shows wait until it does not, and so do pinned messages, system prompts and the user's last input, unless a
        rule says otherwise (`"90 days, even pinned"`); summaries stay. So the view does not change by a byte.
        `dry_run`: only report. It may be interrupted at any point; the next call continues. Raises BadSetting, and
        ConflictError if other writers keep changing the view.
        """
        with self._session.lock:
            return self._session.apply_retention(ages, reason, who, dry_run)

    def erasures(self) -> list[Erasure]:
        """Return what was erased in this conversation and its forks, in order."""
        with self._session.lock:
            return self._session.state.store.erasures(self._session.head)

    def residue(self) -> tuple[int, list[Finding]]:
        """Return the number of erased messages, and everything left that was made of them; normally nothing."""
        with self._session.lock:
            return self._session.state.store.find_residue(self._session.head)
