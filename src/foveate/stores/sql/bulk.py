"""What an import brings: many records of a journal in one transaction, and what was erased elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from ...core.journal import Record
from ...ports import Erased, Head
from ..checks import check_erased, check_record, stale_plan
from ..codec import Codec, pack
from . import statements as sql
from .driver import Driver, Session
from .rows import key, read_branch

__all__ = ["SqlBulk"]


class SqlBulk:
    """The part of the SQL store that imports use."""

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

    def keep_erasure(self, head: Head, erased: Erased) -> None:
        check_erased(erased)

        def work(session: Session) -> None:
            tree = head.tenant, head.root
            session.rows(sql.HOLD_TREE, tree)
            session.rows(sql.HOLD_BRANCHES, tree)
            read_branch(session, head, self._driver.place)
            if erased.number == session.rows(sql.LAST_ERASURE, tree)[0][0] + 1:
                session.rows(sql.ADD_ERASURE, (*tree, *structs.astuple(erased)))
                session.rows(sql.SAY_ERASED, (erased.number, *tree))

        self._driver.write(work)
