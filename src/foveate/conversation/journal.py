"""The record of everything that changed a conversation, checks of it, and erasing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.edits import Record
from ..core.events import Event
from ..core.receipts import Receipt
from ..core.runs import AgentRun, AgentRunStep
from ..ports import Erasure, Finding
from . import validate
from .session import RepairReport, Session

if TYPE_CHECKING:
    from ..core.retention import Ages
    from .retention import RetentionReport

__all__ = ["Journal", "Privacy"]


class Journal:
    """The record of everything that changed a conversation, and checks of it: `chat.journal`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def records(self) -> list[Record]:
        """Return every commit, in order."""
        with self._session.lock:
            return self._session.records()

    def receipts(self, after: int = 0) -> list[Receipt]:
        """Return what each plan and each edit on request did, from the first edit after number `after` on."""
        with self._session.lock:
            return self._session.receipts(after)

    def events(self, since: int = 0) -> list[Event]:
        """Return everything that happened, in order of time, from `since` (milliseconds since 1970) on."""
        with self._session.lock:
            return self._session.events(since)

    def verify(self) -> list[Finding]:
        """Hash everything stored of this conversation again; return what is wrong, and where."""
        with self._session.lock:
            return self._session.state.store.verify(self._session.head)

    def repair(self) -> RepairReport:
        """Return a legal copy of the view as a request body, and the changes it needed. The history stays as it is."""
        with self._session.lock:
            return self._session.repair()

    def runs(self) -> list[AgentRun]:
        """Return the agents' runs in this conversation, oldest first."""
        with self._session.lock:
            head = self._session.head
            return [run for run in self._session.state.store.runs(head) if run.conversation == head.name]

    def steps(self, run: str, after: int = 0) -> list[AgentRunStep]:
        """Return the steps of the run with this id, in order, those with numbers above `after`."""
        run, after = validate.text("run", run), validate.integer("after= (the number of a step)", after)
        with self._session.lock:
            return self._session.state.store.steps(self._session.head, run, after)


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
