"""Many records at once, as an import brings them: one transaction, where `commit` makes one of each."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from ...core.journal import Record
from ...ports import Head
from ..checks import check_record, stale_plan
from ..codec import Codec, pack
from . import statements as sql
from .driver import Driver, Session
from .rows import key, read_branch

__all__ = ["SqlBulk"]


class SqlBulk:
    """The part of the SQL store that takes in a journal."""

    _driver: Driver
    _codec: Codec

    def commit_all(self, head: Head, records: Sequence[tuple[str, Record]]) -> Head:
        rows, end = [], head
        for id, record in records:
            body = pack(check_record(end, record, id), self._codec)
            rows.append((*key(head), record.first, bytes.fromhex(id), body))
            end = structs.replace(end, number=record.last, record=id)

        def work(session: Session) -> Head:
            expected = head.name, head.number, bytes.fromhex(head.record), head.erased
            found = session.rows(sql.COMMIT, (end.number, bytes.fromhex(end.record), *key(head), *expected))
            if not found:
                raise stale_plan(head, read_branch(session, head, self._driver.place)[0])
            session.each(sql.ADD_RECORD, rows)
            position, tip, seal = found[0]
            return structs.replace(end, position=position, tip=tip.hex(), seal=seal.hex())

        return self._driver.write(work) if rows else head
