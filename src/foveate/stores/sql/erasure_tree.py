"""A tree of forks as an erasure reads it from SQL rows, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator

from ...core import ids, wire
from ...core.edits import Record
from ...core.ids import redacted_record, redacted_stamp
from ...core.messages import Message
from ...core.runs import AgentRun, AgentRunStep
from ...ports import Head
from ..codec import DamagedBody, unpack
from ..derived_data import Place, Row
from ..lineage import Lineage, decode
from . import statements as sql
from .driver import Session
from .rows import UNREADABLE, are_bytes, body_of, damaged_row, key, link_at, record_at, with_body
from .runs import read_runs, read_steps

__all__ = ["SqlTree", "hash_of"]

_ROWS = 1000
"""Rows read at a time."""


class SqlTree:
    """The `derived_data.Tree` of one transaction. Raises Damaged if a row cannot be read."""

    def __init__(self, session: Session, head: Head) -> None:
        self._session, self.head = session, head
        tree = session.rows(sql.FAMILIES, (head.tenant, head.root))
        self._families = {branch: decode(lineage) for branch, lineage in tree}

    def branches(self) -> dict[int, Lineage]:
        return self._families

    def rows(self, branch: int, first: int = 1, last: int = 2**62) -> Iterator[Row]:
        before = first - 1
        while rows := self._session.rows(sql.FACTS, (*key(self.head, branch), before, _ROWS)):
            for position, id, stamp, has_body in rows:
                if position > last:
                    return
                try:
                    yield Row(position, id.hex(), wire.decode_stamp(stamp), bool(has_body))
                except (AttributeError, TypeError, *UNREADABLE) as error:
                    raise damaged_row(self.head, f"message {position}") from error
            before = rows[-1][0]

    def large(self) -> Iterator[tuple[Place, bytes]]:
        """Yield all rows of the tree with large bodies, and the hashes of these."""
        for branch in self._families:
            yield from self.large_of(branch, 0)

    def large_of(self, branch: int, before: int) -> Iterator[tuple[Place, bytes]]:
        while rows := self._session.rows(sql.LARGE_BODIES, (*key(self.head, branch), before, _ROWS)):
            yield from ((Place(branch, position), hash) for position, hash in rows)
            before = rows[-1][0]

    def message(self, place: Place) -> Message | None:
        where = *with_body(self.head, place.branch), place.position, place.position
        for row in self._session.rows(sql.MESSAGES, where):
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
                    raise damaged_row(self.head, f"record {first}") from error
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

    def has_redacted_seal(self, place: Place) -> bool:
        """Return whether the seal of a row was computed from the redacted form of its stamp."""
        family = self._families[place.branch]
        branch = Head(self.head.tenant, self.head.name, self.head.root, place.branch)
        _, parent = link_at(self._session, branch, family, place.position - 1)
        (row,) = self._session.rows(sql.MESSAGES, (*with_body(branch), place.position, place.position))
        seal: str = row[2].hex()
        return ids.seal(parent, row[1].hex(), redacted_stamp(wire.decode_stamp(row[3]))) == seal

    def redacted_id(self, branch: int, record: Record) -> bytes | None:
        """Return the id of this redacted record; None if the stored id was not computed from its redacted form."""
        family = self._families[branch]
        own = Head(self.head.tenant, self.head.name, self.head.root, branch)
        parent, _ = record_at(self._session, own, family, record.first - 1)
        rows = self._session.rows(sql.RECORDS, (*key(own), record.first, record.first))
        id = bytes.fromhex(ids.record_id(parent, redacted_record(record)))
        return id if [stored for _, stored, _ in rows] == [id] else None


def hash_of(head: Head, position: int, digest: object, stored: object) -> str:
    """Return the hash of the body in a row, even if the body itself is damaged."""
    try:
        return body_of(digest, stored)[1]
    except DamagedBody as error:
        if isinstance(digest, bytes):
            return digest.hex()
        raise damaged_row(head, f"message {position}") from error
