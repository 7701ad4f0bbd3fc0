"""The journal of the SQL store: records of edits, and saved views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import structs

from ...core import ids
from ...core.edits import Record
from ...errors import MissingExtra
from ...ports import Head
from ..checks import check_not_behind, check_point, check_record, commit_conflict
from ..codec import DamagedBody, pack, pack_pieces, pack_quickly, unpack
from . import statements as sql
from .driver import Driver, Session
from .rows import are_bytes, changes_query, check_changes, current, key, read_branch, read_records

__all__ = ["Journal"]


class Journal:
    """Commits and reads records of edits; saves views."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._place = driver, driver.place

    def commit(self, head: Head, record: Record, record_id: str) -> Head:
        return self._driver.write(self.committing(head, record, record_id))

    def committing(self, head: Head, record: Record, record_id: str) -> Callable[[Session], Head]:
        """Return the work of a transaction that commits a record."""
        stored = pack(check_record(head, record, record_id))
        id = bytes.fromhex(record_id)

        def work(session: Session) -> Head:
            expected = head.name, head.number, bytes.fromhex(head.record), head.erased
            rows = session.rows(sql.COMMIT, (record.last, id, *key(head), *expected))
            if not rows:
                raise commit_conflict(head, current(session, head, self._place)[0])
            position, tip, seal = rows[0][0], rows[0][1].hex(), rows[0][2].hex()
            now = structs.replace(head, position=position, tip=tip, seal=seal)
            check_not_behind(head, now)
            if (position, tip) != (head.position, head.tip):  # Check that the branch still runs through the head.
                check_changes(head, now, *session.ask(*changes_query(head, 1, 1)))
            session.rows(sql.ADD_RECORD, (*key(head), record.first, id, stored))
            return structs.replace(now, number=record.last, record=record_id)

        return work

    def commit_all(self, head: Head, records: Sequence[tuple[str, Record]]) -> Head:
        rows, end = [], head
        for id, record in records:
            body = pack(check_record(end, record, id))
            rows.append((*key(head), record.first, bytes.fromhex(id), body))
            end = structs.replace(end, number=record.last, record=id)

        def work(session: Session) -> Head:
            expected = head.name, head.number, bytes.fromhex(head.record), head.erased
            committed = session.rows(sql.COMMIT, (end.number, bytes.fromhex(end.record), *key(head), *expected))
            if not committed:
                raise commit_conflict(head, read_branch(session, head, self._place)[0])
            session.each(sql.ADD_RECORD, rows)
            position, tip, seal = committed[0]
            return structs.replace(end, position=position, tip=tip.hex(), seal=seal.hex())

        return self._driver.write(work) if rows else head

    def records(self, head: Head, after: int) -> list[tuple[str, Record]]:
        def work(session: Session) -> list[tuple[str, Record]]:
            _, family = current(session, head, self._place)
            return list(read_records(session, head, family, max(after, 0)))

        return self._driver.read(work)

    def snapshot(self, head: Head) -> tuple[int, int, bytes] | None:
        def work(session: Session) -> tuple[int, int, bytes] | None:
            _, family = current(session, head, self._place)
            newest = None
            for branch, last, last_edit in [*family, (head.branch, head.position, head.number)]:
                for position, number, digest, stored in session.rows(sql.SNAPSHOT, key(head, branch)):
                    is_before = position <= min(last, head.position) and number <= min(last_edit, head.number)
                    if is_before and (newest is None or newest[:2] <= (position, number)):
                        body = _intact(digest, stored)
                        newest = newest if body is None else (position, number, body)
            return newest

        return self._driver.read(work)

    def saved_view(self, head: Head, position: int, number: int) -> Iterator[bytes]:
        def work(session: Session) -> tuple[Any, Any] | None:
            _, family = current(session, head, self._place)
            for branch in [head.branch, *(shared.branch for shared in reversed(family))]:
                for digest, stored in session.rows(sql.SAVED_VIEW, (*key(head, branch), position, number)):
                    if stored is not None:
                        return digest, stored
            return None

        row = self._driver.read(work)
        return unpack_pieces(*row) if row else iter(())

    def save_snapshot(self, head: Head, position: int, number: int, body: bytes, view: Sequence[bytes] = ()) -> None:
        check_point(head, position, number)
        stored = bytes.fromhex(ids.body_hash(body)), pack_quickly(body)
        packed = pack_pieces(view) if view else None
        shown = (bytes.fromhex(ids.body_hash(packed)), packed) if packed else (None, None)

        def work(session: Session) -> None:
            current(session, head, self._place)
            # After an erasure, the snapshot may contain text that was erased since.
            if session.rows(sql.LOCK_IF_NOT_ERASED, (*key(head), head.erased)):
                session.rows(sql.SAVE_SNAPSHOT, (*key(head), position, number, *stored, *shown))

        self._driver.write(work)


def _intact(digest: Any, stored: Any) -> bytes | None:
    """Return the bytes of a snapshot; None if they are damaged, since a lost snapshot costs no data."""
    if not are_bytes(digest, stored):
        return None
    try:
        body = unpack(stored)
    except DamagedBody:
        return None
    return body if ids.body_hash(body) == digest.hex() else None


def unpack_pieces(digest: Any, stored: Any) -> Iterator[bytes]:
    """Yield the pieces of a saved view; none if they are damaged, or packed with zstd and it is not installed.

    The hash is that of the stored bytes, which are a tenth of the view.
    """
    if not are_bytes(digest, stored) or ids.body_hash(stored) != digest.hex():
        return
    with suppress(DamagedBody, MissingExtra, msgspec.MsgspecError):
        for piece in msgspec.msgpack.decode(stored, type=list[memoryview]):  # Bytes would be copies.
            yield unpack(piece)
