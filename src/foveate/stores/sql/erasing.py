"""Erasing on the SQL store: the tree as it is read from rows, and the one transaction that erases.

What has to be reached is found in `erasing.py`. The tree is held while that is done, so that nobody adds to it in
between; whoever read before it is told by the number of the newest erasure, which is kept with every branch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ...core import ids, wire
from ...core.journal import Record
from ...core.messages import Message
from ...core.outlines import outline_of_record, outline_of_stamp
from ...core.runs import AgentRun, AgentRunStep
from ...errors import Damaged, StoreError
from ...ports import Erased, Finding, Head
from ..checks import check_span, check_words, too_early
from ..codec import (
    Codec,
    DamagedBody,
    pack,
    unpack,
)
from ..erasing import (
    Place,
    Reach,
    Seen,
    counted,
    left_over,
    named,
    reach,
)
from ..lineage import Lineage, decode, position_ranges
from ..words import Said, said
from . import statements as sql
from .driver import Driver, Session
from .rows import (
    UNREADABLE,
    are_bytes,
    body_of,
    key,
    link_at,
    read_branch,
    read_messages,
    record_at,
)
from .runs import SqlRuns, read_runs, read_steps
from .search import Searching

__all__ = ["SqlErasing"]

_ROWS = 1000
"""Rows read at a time."""


class SqlErasing(SqlRuns):
    """The part of the SQL store that erases, and proves it."""

    _driver: Driver
    _codec: Codec
    _searching: Searching | None

    def erase(
        self, head: Head, first: int, last: int, *, runs: bool = False, who: str = "", reason: str = "", time: int = 0
    ) -> Erased:
        check_span(head, first, last)
        check_words("erasure", who=who, reason=reason)

        def work(session: Session) -> Erased:
            session.scrub()
            session.rows(sql.HOLD_TREE, (head.tenant, head.root))
            session.rows(sql.HOLD_BRANCHES, (head.tenant, head.root))
            now, family = read_branch(session, head, self._driver.place)
            rows = read_messages(session, now, family, first, last) if last else ()
            tree = _SqlTree(session, now)
            found = reach(tree, {row.id for row in rows}, runs_of=now.name if runs else None)
            marked = _marked(session, now, found.bodies)
            if found.is_done and not marked:
                return Erased(0)
            number = session.rows(sql.LAST_ERASURE, (head.tenant, head.root))[0][0] + 1
            done = counted(found, Erased(number, time, who, reason, now.name, named(first, last)))
            self._remove_words(session, now, marked)
            self._write(session, tree, found)
            session.rows(sql.SAY_ERASED, (number, head.tenant, head.root))
            counts = done.messages, done.edits, done.runs, done.steps
            session.rows(
                sql.ADD_ERASURE, (head.tenant, head.root, number, time, who, reason, now.name, done.handles, *counts)
            )
            return done

        done = self._driver.write(work)
        if self._searching:
            self._searching.forget()
        return done

    def erasures(self, head: Head) -> list[Erased]:
        def work(session: Session) -> list[Erased]:
            read_branch(session, head, self._driver.place)
            return [Erased(*row) for row in session.rows(sql.ERASURES, (head.tenant, head.root))]

        return self._driver.read(work)

    def leftovers(self, head: Head) -> tuple[int, list[Finding]]:
        def work(session: Session) -> tuple[int, list[Finding]]:
            now, family = read_branch(session, head, self._driver.place)
            gone: dict[str, Place] = {}
            tree = _SqlTree(session, now)
            for part in position_ranges(family, now.branch, 1, now.position):
                for seen in tree.rows(part.branch, part.first, part.last):
                    if not seen.has_body:
                        gone[seen.id] = Place(part.branch, seen.position)
            found = left_over(reach(tree, gone, answers=False)) if gone else []
            return len(gone), [*found, *self._words_left(session, now, gone.values())]

        return self._driver.read(work)

    def vacuum(self) -> None:
        def work(session: Session) -> None:
            for tenant, root in session.rows(sql.TREES_WITH_BODIES):
                session.rows(sql.HOLD_TREE, (tenant, root))
                session.rows(sql.HOLD_BRANCHES, (tenant, root))
                session.rows(sql.DROP_BODIES, (tenant, root, tenant, root))

        self._driver.write(work)
        self._driver.vacuum()

    # --------------------------------------------------------------------------------------------------- helpers

    def _write(self, session: Session, tree: _SqlTree, found: Reach) -> None:
        head = tree.head
        for place, stamp in found.stamps.items():
            if not tree.has_outline(place):
                raise too_early(head, f"The application's facts of message {place.position} were")
            session.rows(sql.ERASE_STAMP, (wire.encode_stamp(stamp), *key(head, place.branch), place.position))
        for place in found.bodies:
            (row,) = session.rows(sql.MESSAGES, (*key(head, place.branch), place.position, place.position))
            digest = bytes.fromhex(_hash_of(head, row[0], row[4], row[5]))
            session.rows(sql.ERASE_MESSAGE, (digest, b"", *key(head, place.branch), place.position))
        for branch, record in found.records:
            if not tree.is_outlined(branch, record):
                raise too_early(head, f"Record {record.first} of the journal was")
            body = pack(wire.encode_record(record), self._codec)
            session.rows(sql.ERASE_RECORD, (body, *key(head, branch), record.first))
        session.rows(sql.DROP_BODIES, (head.tenant, head.root, head.tenant, head.root))
        session.rows(sql.DROP_SNAPSHOTS, (head.tenant, head.root))
        for run in found.runs:
            session.rows(sql.PUT_RUN, self._run_values(head, run))
        for step in found.steps:
            session.rows(sql.PUT_STEP, self._step_values(head, step))

    def _remove_words(self, session: Session, head: Head, marked: Sequence[tuple[int, Place]]) -> None:
        if not marked:
            return
        words = self._driver.words
        if words is None:
            raise StoreError(
                f"{self._driver.place} has an index with words of these messages, and was opened without it. Open it "
                f"with search, then erase. Nothing was erased."
            )
        rows: list[tuple[int, int, Said]] = []
        for place, where in marked:
            (row,) = session.rows(sql.MESSAGES, (*key(head, where.branch), where.position, where.position))
            rows.append((place, where.position, said(body_of(row[4], row[5])[0])))
        if not words.remove(session, rows):
            words.clear(session)
            session.rows(sql.DROP_MARKS)

    def _words_left(self, session: Session, head: Head, places: Collection[Place]) -> Iterator[Finding]:
        if self._driver.words is None:
            return
        asked = {(place, where.position) for place, where in _marked(session, head, places)}
        for _, position in sorted(self._driver.words.holding(session, sorted(asked)) if asked else ()):
            yield Finding(f"message {position}", "it was erased, and the index of words still has words of it")


def _marked(session: Session, head: Head, places: Collection[Place]) -> list[tuple[int, Place]]:
    """Of these messages those that the index of words has come to, each with the index's place of its branch."""
    marks: dict[int, tuple[int, int]] = {}
    for branch in {place.branch for place in places}:
        found = session.rows(sql.MARK, key(head, branch))
        marks[branch] = (found[0][0], found[0][1]) if found else (0, 0)
    return [(marks[place.branch][1], place) for place in places if place.position <= marks[place.branch][0]]


class _SqlTree:
    """The Tree of one transaction. Raises Damaged where a row cannot be read."""

    def __init__(self, session: Session, head: Head) -> None:
        self._session, self.head = session, head
        tree = session.rows(sql.FAMILIES, (head.tenant, head.root))
        self._families = {branch: decode(lineage) for branch, lineage in tree}

    def branches(self) -> dict[int, Lineage]:
        return self._families

    def rows(self, branch: int, first: int = 1, last: int = 2**62) -> Iterator[Seen]:
        before = first - 1
        while rows := self._session.rows(sql.FACTS, (*key(self.head, branch), before, _ROWS)):
            for position, id, stamp, has_body in rows:
                if position > last:
                    return
                try:
                    yield Seen(position, id.hex(), wire.decode_stamp(stamp), bool(has_body))
                except (AttributeError, TypeError, *UNREADABLE) as error:
                    raise _damaged(self.head, f"message {position}") from error
            before = rows[-1][0]

    def said(self, place: Place) -> Message | None:
        for row in self._session.rows(sql.MESSAGES, (*key(self.head, place.branch), place.position, place.position)):
            try:
                body = body_of(row[4], row[5])[0]
                return wire.decode_message(body) if body else None
            except (DamagedBody, *UNREADABLE):
                return None
        return None

    def records(self, branch: int) -> Iterator[Record]:
        before = 0
        while rows := self._session.rows(sql.ALL_RECORDS, (*key(self.head, branch), before, _ROWS)):
            for first, stored in rows:
                try:
                    yield wire.decode_record(unpack(stored))
                except (DamagedBody, TypeError, *UNREADABLE) as error:
                    raise _damaged(self.head, f"record {first}") from error
            before = rows[-1][0]

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        for branch, stored in self._session.rows(sql.SNAPSHOTS, (self.head.tenant, self.head.root)):
            try:
                yield branch, unpack(stored) if are_bytes(stored) else b""
            except DamagedBody:
                yield branch, b""

    def runs(self) -> list[AgentRun]:
        return read_runs(self._session, self.head)

    def steps(self, run: str) -> list[AgentRunStep]:
        return read_steps(self._session, self.head, run, 0)

    def has_outline(self, place: Place) -> bool:
        """Whether the seal of a row is made of its stamp's outline."""
        family = self._families[place.branch]
        branch = Head(self.head.tenant, self.head.name, self.head.root, place.branch)
        _, parent = link_at(self._session, branch, family, place.position - 1)
        (row,) = self._session.rows(sql.MESSAGES, (*key(branch), place.position, place.position))
        seal: str = row[2].hex()
        return ids.seal(parent, row[1].hex(), outline_of_stamp(wire.decode_stamp(row[3]))) == seal

    def is_outlined(self, branch: int, record: Record) -> bool:
        """Whether the id of this record, erased already, is made of its outline."""
        family = self._families[branch]
        own = Head(self.head.tenant, self.head.name, self.head.root, branch)
        parent, _ = record_at(self._session, own, family, record.first - 1)
        rows = self._session.rows(sql.RECORDS, (*key(own), record.first, record.first))
        return any(ids.record_id(parent, outline_of_record(record)) == id.hex() for _, id, _ in rows)


def _hash_of(head: Head, position: int, digest: object, stored: object) -> str:
    try:
        return body_of(digest, stored)[1]
    except DamagedBody as error:
        if isinstance(digest, bytes):
            return digest.hex()
        raise _damaged(head, f"message {position}") from error


def _damaged(head: Head, what: str) -> Damaged:
    return Damaged(f"{what.capitalize()} of {head.name!r}, or of a fork of it, is damaged. Run `verify`.")
