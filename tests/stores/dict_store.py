"""A store of twelve methods in a dictionary: an example of a minimal store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import NamedTuple

from msgspec.structs import replace

from foveate.core import ids
from foveate.core.edits import Record
from foveate.errors import BadSetting, NoSuchConversation, StoreError
from foveate.ports import Changes, Finding, Head, StoredMessage
from foveate.stores.checks import (
    check_keys,
    check_not_behind,
    check_point,
    check_record,
    check_rows,
    commit_conflict,
    name_taken,
    rolled_back,
)
from foveate.stores.lineage import root_of


class Talk(NamedTuple):
    """One conversation. A fork copies the lists of its parent."""

    root: int
    branch: int
    rows: list[StoredMessage]
    journal: list[tuple[str, Record]]


class DictStore:
    """Implements `ports.Store` and no capability."""

    def __init__(self) -> None:
        self._talks: dict[tuple[str, str], Talk] = {}
        self._lock = RLock()
        self._is_open = True

    def open(self, tenant: str, name: str, *, create: bool = True) -> Head:
        check_keys(tenant, name)
        if not create and (tenant, name) not in self._talks:
            raise NoSuchConversation(name, "this dictionary")
        self._talks.setdefault((tenant, name), Talk(root_of(tenant, name), 1, [], []))
        return self._head(tenant, name)

    def extend(self, head: Head, make: Callable[[Changes], Sequence[StoredMessage]], *, owner: str = "") -> Changes:
        rows = make(Changes(head))
        check_rows(head, rows)
        if not rows:
            return self.changes(head)
        with self._lock:
            before = self.changes(head)
            if (before.head.tip, before.head.seal) != (head.tip, head.seal):
                rows = make(before)
                check_rows(before.head, rows)
            self._talk(head).rows.extend(rows)
            return before.with_rows(self._head(head.tenant, head.name), rows)

    def changes(self, head: Head) -> Changes:
        with self._lock:
            talk, now = self._current(head)
            tip = talk.rows[head.position - 1].id if head.position else ids.NO_PARENT
            record = next((id for id, record in talk.journal if record.last == head.number), "")
            if (tip, record) != (head.tip, head.record):
                raise rolled_back(head, now)
            rows, records = talk.rows[head.position :], [(i, r) for i, r in talk.journal if r.first > head.number]
            return Changes(now, lambda: rows, lambda: records)

    def commit(self, head: Head, record: Record, record_id: str) -> Head:
        check_record(head, record, record_id)
        with self._lock:
            talk, now = self._current(head)
            if (now.number, now.record) != (head.number, head.record):
                raise commit_conflict(head, now)
            self.changes(head)
            talk.journal.append((record_id, record))
            return self._head(head.tenant, head.name)

    def messages(self, head: Head, first: int, last: int) -> list[StoredMessage]:
        return self._current(head)[0].rows[max(first, 1) - 1 : max(min(last, head.position), 0)]

    def get_many(self, head: Head, positions: Sequence[int]) -> list[StoredMessage]:
        rows = self._current(head)[0].rows
        return [rows[position - 1] for position in sorted(set(positions)) if 1 <= position <= head.position]

    def locate(self, head: Head, ids: Sequence[str]) -> dict[str, int]:
        positions = {row.id: row.position for row in self.messages(head, 1, head.position)}
        return {id: positions[id] for id in ids if id in positions}

    def records(self, head: Head, after: int = 0) -> list[tuple[str, Record]]:
        return [(id, record) for id, record in self._current(head)[0].journal if after < record.first <= head.number]

    def fork(self, head: Head, name: str, position: int, number: int) -> Head:
        check_keys(head.tenant, name)
        check_point(head, position, number)
        with self._lock:
            talk, _ = self._current(head)
            journal = [(id, record) for id, record in talk.journal if record.last <= number]
            if (journal[-1][1].last if journal else 0) != number:
                raise BadSetting(f"Edit {number} of {head.name!r} is in the middle of a record.")
            if (head.tenant, name) in self._talks:
                raise name_taken(name)
            self._talks[head.tenant, name] = Talk(talk.root, len(self._talks) + 1, talk.rows[:position], journal)
            return self._head(head.tenant, name)

    def names(self, tenant: str) -> list[str]:
        return sorted(name for owner, name in self._talks if owner == tenant)

    def verify(self, head: Head) -> list[Finding]:
        talk, now = self._current(head)
        start = replace(now, position=0, tip="", seal="")
        try:
            check_rows(start, talk.rows)
        except Exception as error:
            return [Finding("messages", str(error))]
        return []

    def close(self) -> None:
        self._is_open = False

    def _talk(self, head: Head) -> Talk:
        if not self._is_open:
            raise StoreError("This store was closed. Open it again.")
        if (head.tenant, head.name) not in self._talks:
            raise NoSuchConversation(head.name, "this dictionary")
        talk = self._talks[head.tenant, head.name]
        if (talk.root, talk.branch) != (head.root, head.branch):
            raise NoSuchConversation(head.name, "this dictionary")
        return talk

    def _current(self, head: Head) -> tuple[Talk, Head]:
        talk, now = self._talk(head), self._head(head.tenant, head.name)
        check_not_behind(head, now)
        return talk, now

    def _head(self, tenant: str, name: str) -> Head:
        talk = self._talks[tenant, name]
        row = talk.rows[-1] if talk.rows else None
        id, record = talk.journal[-1] if talk.journal else ("", None)
        ends = (row.position, row.id, row.seal) if row else (0, "", "")
        return Head(tenant, name, talk.root, talk.branch, *ends, record.last if record else 0, id)
