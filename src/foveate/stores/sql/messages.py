"""Messages of the SQL store: appended in turn, read by position, located by id.

The first attempt of an append states the tip that it expects. If another writer was first, the append locks the row of
the branch, which puts it into the database's queue, and reads the changes in the same round trip; the write after that
cannot fail. A branch with recent contention is locked at once. So a single writer waits for the database as rarely as
possible, and one of many no more often.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import structs

from ...core import wire
from ...core.stamps import StampRow
from ...errors import NoSuchConversation
from ...ports import Changes, Head, StoredMessage
from .. import lineage
from ..checks import append_conflict, check_not_behind, check_rows
from ..codec import pack, pack_outline
from . import statements as sql
from .driver import Driver, Row, Session
from .rows import (
    UNREADABLE,
    ask_as_owner,
    branch_in,
    change_as_owner,
    changes_query,
    check_changes,
    current,
    damaged_row,
    key,
    message_values,
    messages_after,
    read_branch,
    read_messages,
    records_after,
    stamp_in,
    with_body,
)

__all__ = ["Messages"]

Make = Callable[[Changes], Sequence[StoredMessage]]

_ID = re.compile(r"[0-9a-f]{40}")
_LOCATE_MAX = 200
"""Ids looked up by one statement."""
_BEHIND_MAX = 512
"""Messages, or records, that an append may be behind: others wait while it reads them."""
_ALL = 2**62
_CALM = 16
"""Appends in a row without contention, after which a branch is not locked at once any more."""
_CROWDED_MAX = 10_000
"""Branches with contention that are remembered."""


class Messages:
    """Appends and reads messages."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._place = driver, driver.place
        self._crowded: dict[tuple[str, int, int], int] = {}
        """Branches with recent contention, and for how many more appends they count as such."""

    def extend(self, head: Head, make: Make, owner: str) -> Changes:
        rows = make(Changes(head))  # As if no other writer came first: most appends need no more.
        check_rows(head, rows)
        if not rows:
            return self.changes(head)
        packed = {row.body_hash: pack(row.body) for row in rows if row.body and not row.is_released}
        append = _Append(head, make, _Rows(head, rows, packed), packed, owner, self._place)

        def work(session: Session) -> Changes:
            is_crowded = key(head) in self._crowded
            if not is_crowded and (changes := append.at_expected_tip(session)):
                return changes
            changes = append.behind_others(session, checks_owner=is_crowded)
            self._note_contention(key(head), changes.head.position > head.position + len(rows))
            return changes

        return self._driver.write(work)

    def changes(self, head: Head) -> Changes:
        name_key = head.tenant, lineage.root_of(head.tenant, head.name), head.name

        def work(session: Session) -> Changes:
            named, branch, rows, records = session.ask(
                (sql.FIND, name_key), (sql.BRANCH, key(head)), *changes_query(head, _ALL, _ALL)
            )
            if not named:
                raise NoSuchConversation(head.name, self._place, head.tenant)
            if named[0] != (head.root, head.branch):
                moved = Head(head.tenant, head.name, *named[0])
                return Changes(read_branch(session, moved, self._place)[0])
            now, _ = branch_in(head, branch, self._place)
            check_not_behind(head, now)
            return Changes(now) if now.erased != head.erased else _changes(head, now, rows, records)

        return self._driver.read(work)

    def messages(self, head: Head, first: int, last: int) -> list[StoredMessage]:
        return self._read(head, [(first, last)])

    def get_many(self, head: Head, positions: Sequence[int]) -> list[StoredMessage]:
        return self._read(head, list(lineage.spans(positions)))

    def locate(self, head: Head, ids: Sequence[str]) -> dict[str, int]:
        wanted = {bytes.fromhex(id): id for id in ids if _ID.fullmatch(id)}
        prefixes = sorted({id[:8] for id in wanted})

        def work(session: Session) -> dict[str, int]:
            _, family = current(session, head, self._place)
            ranges = list(lineage.position_ranges(family, head.branch, 1, head.position))
            positions = {}
            for start in range(0, len(prefixes), _LOCATE_MAX):
                some = prefixes[start : start + _LOCATE_MAX]
                for id, branch, position in session.rows(sql.locate(len(some)), (head.tenant, head.root, *some)):
                    is_visible = any(part.branch == branch and part.first <= position <= part.last for part in ranges)
                    if is_visible and id in wanted:
                        positions[wanted[id]] = position
            return positions

        return self._driver.read(work)

    def stamps(self, head: Head, first: int, last: int) -> list[StampRow]:
        def work(session: Session) -> list[StampRow]:
            _, family = read_branch(session, head, self._place)
            return [
                StampRow(position, id.hex(), wire.decode_stamp(stamp), size)
                for part in lineage.position_ranges(family, head.branch, max(first, 1), min(last, head.position))
                for position, id, stamp, size in session.rows(sql.STAMPS, (*with_body(head, part.branch), *part[1:]))
            ]

        try:
            return self._driver.read(work)
        except (AttributeError, TypeError, *UNREADABLE) as error:
            raise damaged_row(head, f"one of the messages {first} to {last}") from error

    def _read(self, head: Head, spans: Sequence[tuple[int, int]]) -> list[StoredMessage]:
        def work(session: Session) -> list[StoredMessage]:
            _, family = current(session, head, self._place)
            messages: list[StoredMessage] = []
            for first, last in spans:
                clipped = max(first, 1), min(last, head.position)
                if clipped[0] <= clipped[1]:
                    messages.extend(read_messages(session, head, family, *clipped))
            return messages

        return self._driver.read(work)

    def _note_contention(self, branch: tuple[str, int, int], is_crowded: bool) -> None:
        left = _CALM if is_crowded else self._crowded.get(branch, 0) - 1
        if left > 0:
            if len(self._crowded) >= _CROWDED_MAX:
                self._crowded.clear()
            self._crowded[branch] = left
        else:
            self._crowded.pop(branch, None)


class _Rows(NamedTuple):
    """Rows that follow a head, ready to be inserted."""

    head: Head
    rows: Sequence[StoredMessage]
    packed: dict[str, bytes]
    """The stored form of their bodies, by hash; without those of erased and released messages."""

    @property
    def end(self) -> tuple[int, bytes, bytes, int]:
        last = self.rows[-1]
        return last.position, bytes.fromhex(last.id), bytes.fromhex(last.seal), last.stamp.time

    def insert(self, session: Session) -> None:
        values = [message_values(self.head, row, self._stored(row)) for row in self.rows]
        # Sorted, so that two writers of a tree never wait for each other.
        if bodies := sorted(body for _, body in values if body):
            session.each(sql.ADD_BODY, bodies)
        session.each(sql.ADD_MESSAGE, [message for message, _ in values])

    def _stored(self, row: StoredMessage) -> bytes:
        if row.is_released:  # Only an import brings these.
            return pack_outline(row.body)
        return self.packed[row.body_hash] if row.body else b""

    def head_after(self, head: Head) -> Head:
        """Return the head of the branch after these rows."""
        last = self.rows[-1]
        return structs.replace(head, position=last.position, tip=last.id, seal=last.seal)


class _Append(NamedTuple):
    """One append, in one transaction."""

    head: Head
    make: Make
    prepared: _Rows
    packed: dict[str, bytes]
    owner: str
    """The owner that must hold the lock on the branch; "" if none must."""
    place: str

    def at_expected_tip(self, session: Session) -> Changes | None:
        """Append the prepared rows if the branch is still as the head says; else return None."""
        head, prepared = self.head, self.prepared
        chains = head.position, bytes.fromhex(head.tip), bytes.fromhex(head.seal), head.number
        expected = head.name, *chains, bytes.fromhex(head.record), head.erased
        advance = sql.ADVANCE, (*prepared.end, *key(head), *expected)
        if not change_as_owner(session, head, self.owner, self.place, advance):
            return None
        prepared.insert(session)
        return Changes(prepared.head_after(head), lambda: [*prepared.rows])

    def behind_others(self, session: Session, *, checks_owner: bool) -> Changes:
        """Lock the branch, and append wherever its tip is. `checks_owner`: whether the lock was not checked yet."""
        head, owner = self.head, self.owner if checks_owner else ""
        limit = _BEHIND_MAX + 1
        hold = sql.LOCK_BRANCH, key(head)
        branch, rows, records = ask_as_owner(session, head, owner, self.place, hold, *changes_query(head, limit, limit))
        now, _ = branch_in(head, branch, self.place)
        if now.name != head.name or max(len(rows), len(records)) > _BEHIND_MAX:
            raise append_conflict(head, now)
        before = _changes(head, now, rows, records)
        prepared = self.prepared
        if (now.tip, now.seal) != (head.tip, head.seal):
            prepared = self._prepare(now, self.make(before))
        session.rows(sql.PUT_TIP, (*prepared.end, *key(head)))
        prepared.insert(session)
        after = prepared.head_after(now)
        return Changes(after) if now.erased != head.erased else before.with_rows(after, prepared.rows)

    def _prepare(self, now: Head, rows: Sequence[StoredMessage]) -> _Rows:
        check_rows(now, rows)
        packed = {
            row.body_hash: self.packed[row.body_hash] if row.body_hash in self.packed else pack(row.body)
            for row in rows
            if row.body and not row.is_released
        }
        return _Rows(now, rows, packed)


def _changes(head: Head, now: Head, rows: Sequence[Row], records: Sequence[Row]) -> Changes:
    check_changes(head, now, rows, records)
    return Changes(
        now,
        partial(messages_after, head, rows),
        partial(records_after, head, records),
        lambda: stamp_in(head, rows[-1]) if rows else None,
    )
