"""What imports need: many records of a journal in one transaction, what was erased elsewhere, and a way to take away
what an import did not finish.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from ...core.edits import Record
from ...errors import StoreError
from ...ports import Erased, Head
from ..checks import check_erased, check_prefix, check_record, commit_conflict
from ..codec import Codec, pack
from ..lineage import root_of
from . import statements as sql
from .driver import Driver, Session
from .rows import key, read_branch
from .search import Searching

__all__ = ["SqlBulk"]

_TABLES = (*("message", "body", "record", "snapshot", "indexed", "run", "step", "erasure", "claim", "branch", "tree"),)
"""Whose rows lie in a tree."""
_DISCARD = "DELETE FROM {} WHERE tenant = ? AND root = ?"
_MARKED = "SELECT branch FROM indexed WHERE tenant = ? AND root = ?"


class SqlBulk:
    """The part of the SQL store that imports use."""

    _driver: Driver
    _codec: Codec
    _searching: Searching | None

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
                raise commit_conflict(head, read_branch(session, head, self._driver.place)[0])
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

    def discard(self, head: Head, prefix: str) -> None:
        def work(session: Session) -> None:
            tree = head.tenant, head.root
            session.scrub()
            session.rows(sql.HOLD_TREE, tree)
            session.rows(sql.HOLD_BRANCHES, tree)
            read_branch(session, head, self._driver.place)
            names = [name for _, name in session.rows(sql.TREE, tree)]
            check_prefix(prefix, names)
            if session.rows(_MARKED, tree):
                self._forget_words(session)
            for name in sorted(names):
                session.rows(sql.DROP_NAME, (head.tenant, root_of(head.tenant, name), name))
            for table in _TABLES:
                session.rows(_DISCARD.format(table), tree)

        self._driver.write(work)
        if self._searching:
            self._searching.forget()

    def _forget_words(self, session: Session) -> None:
        """Somebody searched in what was not finished: the whole index goes, and is made again where it is asked."""
        if self._driver.words is None:
            raise StoreError(
                f"{self._driver.place} has an index with words of this tree, and was opened without it. Open it with "
                f"search. Nothing was taken away."
            )
        self._driver.words.clear(session)
        session.rows(sql.DROP_MARKS)
