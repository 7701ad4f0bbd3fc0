"""The record of everything that changed a conversation, and checks of it."""

from __future__ import annotations

from ..core.edits import Record
from ..core.events import Event
from ..core.receipts import Receipt
from ..core.runs import AgentRun, AgentRunStep
from ..ports import Finding
from . import validate
from .session import RepairReport, Session

__all__ = ["Journal"]


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
