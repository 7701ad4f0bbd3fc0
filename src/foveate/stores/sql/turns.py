"""Writers that come at once take turns: how the SQL store appends where the tip is by then, and what came since.

The first attempt states what it expects to find, as every write does. Where another was first, the writer holds the
branch's row, which puts it into the database's queue, and asks in the same breath for what it does not know; what it
then writes cannot be refused. A branch where that happened lately is held at once. So a writer alone waits for its
database as often as it must, and one among many no oftener.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import structs

from ...errors import NoSuchConversation
from ...ports import Appended, Head, Tail
from .. import lineage
from ..checks import append_conflict, check_held, check_rows
from ..codec import Codec, pack
from ..tails import Beyond
from . import statements as sql
from .driver import Driver, Row, Session
from .rows import (
    branch_in,
    check_beyond,
    key,
    message_values,
    messages_after,
    read_branch,
    records_after,
    stamp_in,
    with_body,
)
from .runs import asked_by

__all__ = ["SqlTurns", "beyond"]

Make = Callable[[Tail], Sequence[Appended]]

_BEHIND_MAX = 512
"""Messages, and records, that a writer may lie behind and still take its turn: others wait while it reads them."""
_ALL = 2**62
_CALM = 16
"""Turns in a row in which nobody was first, after which a branch is not held at once any more."""
_CROWDED_MAX = 10_000
"""Branches that are remembered for having many writers."""


class SqlTurns:
    """The part of the SQL store that appends in turn."""

    _driver: Driver
    _codec: Codec
    _crowded: dict[tuple[str, int, int], int]
    """Branches with many writers, and for how many turns they are taken for such."""

    def extend(self, head: Head, make: Make, *, owner: str = "") -> Tail:
        rows = make(Beyond(head))  # As if nobody came first: then nothing is done while others wait.
        check_rows(head, rows)
        packed = {row.body_hash: pack(row.body, self._codec) for row in rows}
        if not rows:
            return self.tail(head)
        turn = _Turn(head, make, _Rows(head, rows, packed), packed, self._codec, owner, self._driver.place)

        def work(session: Session) -> Tail:
            is_crowded = key(head) in self._crowded
            if not is_crowded and (tail := turn.first(session)):
                return tail
            tail = turn.held(session, is_asked=is_crowded)
            self._remember(key(head), tail.head.position > head.position + len(rows))
            return tail

        return self._driver.write(work)

    def tail(self, head: Head) -> Tail:
        home = head.tenant, lineage.root_of(head.tenant, head.name), head.name

        def work(session: Session) -> Tail:
            named, found, rows, records = session.ask(
                (sql.FIND, home), (sql.BRANCH, key(head)), *beyond(head, _ALL, _ALL)
            )
            if not named:
                raise NoSuchConversation(head.name, self._driver.place)
            if named[0] != (head.root, head.branch):
                moved = Head(head.tenant, head.name, *named[0])
                return Beyond(read_branch(session, moved, self._driver.place)[0])
            now, _ = branch_in(head, found, self._driver.place)
            check_held(head, now)
            return Beyond(now) if now.erased != head.erased else _read(head, now, rows, records)

        return self._driver.read(work)

    def _remember(self, branch: tuple[str, int, int], is_crowded: bool) -> None:
        left = _CALM if is_crowded else self._crowded.get(branch, 0) - 1
        if left > 0:
            if len(self._crowded) >= _CROWDED_MAX:
                self._crowded.clear()
            self._crowded[branch] = left
        else:
            self._crowded.pop(branch, None)


class _Rows(NamedTuple):
    """Rows that follow a head, and what to insert of them."""

    head: Head
    rows: Sequence[Appended]
    packed: dict[str, bytes]
    """Their bodies as they are stored, by hash."""

    @property
    def end(self) -> tuple[int, bytes, bytes]:
        last = self.rows[-1]
        return last.position, bytes.fromhex(last.id), bytes.fromhex(last.seal)

    def insert(self, session: Session) -> None:
        values = [message_values(self.head, row, self.packed[row.body_hash]) for row in self.rows]
        if bodies := sorted(body for _, body in values if body):
            session.each(sql.ADD_BODY, bodies)
        session.each(sql.ADD_MESSAGE, [message for message, _ in values])

    def tip_of(self, head: Head) -> Head:
        """The head once they are there."""
        last = self.rows[-1]
        return structs.replace(head, position=last.position, tip=last.id, seal=last.seal)


class _Turn(NamedTuple):
    """One append that takes its turn."""

    head: Head
    make: Make
    prepared: _Rows
    packed: dict[str, bytes]
    codec: Codec
    owner: str
    """Who has to have the claim on the branch; "": nobody."""
    place: str

    def first(self, session: Session) -> Tail | None:
        """Written at once, if nobody was first."""
        head, made = self.head, self.prepared
        expected = head.name, head.position, bytes.fromhex(head.tip), bytes.fromhex(head.seal)
        advance = sql.ADVANCE, (*made.end, *key(head), *expected)
        (found,) = asked_by(session, head, self.owner, self.place, advance)
        if not found:
            return None
        made.insert(session)
        number, record, erased = found[0]
        now = structs.replace(made.tip_of(head), number=number, record=record.hex(), erased=erased)
        check_held(head, now)
        records: list[Row] = []
        if (number, now.record) != (head.number, head.record):
            rows, records = session.ask(*beyond(head, 1, _ALL))
            check_beyond(head, now, rows, records)
        if erased != head.erased:
            return Beyond(now)
        return Beyond(now, lambda: [*made.rows], partial(records_after, head, records))

    def held(self, session: Session, *, is_asked: bool) -> Tail:
        """Written behind whoever was first. `is_asked`: whether it has to be asked yet who has the claim."""
        head, owner = self.head, self.owner if is_asked else ""
        hold = sql.HOLD_BRANCH, key(head)
        found, rows, records = asked_by(
            session, head, owner, self.place, hold, *beyond(head, _BEHIND_MAX + 1, _BEHIND_MAX + 1)
        )
        now, _ = branch_in(head, found, self.place)
        if now.name != head.name or max(len(rows), len(records)) > _BEHIND_MAX:
            raise append_conflict(head, now)
        before = _read(head, now, rows, records)
        made = self.prepared
        if (now.tip, now.seal) != (head.tip, head.seal):
            made = self._made(now, self.make(before))
        session.rows(sql.PUT_TIP, (*made.end, *key(head)))
        made.insert(session)
        after = made.tip_of(now)
        return Beyond(after) if now.erased != head.erased else before.with_rows(after, made.rows)

    def _made(self, now: Head, rows: Sequence[Appended]) -> _Rows:
        check_rows(now, rows)
        packed = {
            row.body_hash: self.packed[row.body_hash] if row.body_hash in self.packed else pack(row.body, self.codec)
            for row in rows
        }
        return _Rows(now, rows, packed)


def beyond(head: Head, messages: int, records: int) -> tuple[tuple[str, Row], tuple[str, Row]]:
    """What to ask for so many messages and records beyond a head: it lies behind any fork, so they are of its own
    branch.
    """
    return (
        (sql.NEXT_MESSAGES, (*with_body(head), head.position, messages)),
        (sql.NEXT_RECORDS, (*key(head), head.number, records)),
    )


def _read(head: Head, now: Head, rows: Sequence[Row], records: Sequence[Row]) -> Beyond:
    check_beyond(head, now, rows, records)
    return Beyond(
        now,
        partial(messages_after, head, rows),
        partial(records_after, head, records),
        lambda: stamp_in(head, rows[-1]) if rows else None,
    )
