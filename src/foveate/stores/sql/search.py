"""Search in the SQL store, which keeps its word index up to date.

An append does not touch the index. For each branch a mark says up to which position it is indexed, and by which version
of the keys. Small steps, each a transaction, catch up after commits and before a search. A lost step is repeated: it
costs time, never data. If the index cannot be written, for example because the disk is full, a search reads the rest of
the messages itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from ...errors import Damaged, StoreError
from ...ports import Head, SearchHit
from .. import lineage
from ..codec import DamagedBody
from ..lineage import Lineage, Range
from ..postings import PackedPiece, pack_piece
from ..ranking import find
from ..words import KEYS_VERSION, TEXT_MAX, keys_of, text_of
from . import statements as sql
from .driver import Driver, Session
from .rows import body_or_empty, key, read_branch, with_body
from .words import WordReader, add_words, block_end, drop_words

__all__ = ["Search"]

_log = logging.getLogger(__name__)

_ROWS = 64
"""Messages read at a time."""
_BYTES_AT_COMMIT = 32_000
"""Bytes of messages, at most the searched part of each, after which a step ends: about five milliseconds."""
_BYTES_AT_SEARCH = 1_000_000
"""The same at a search, whose caller waits for all steps. A step ends with its block too."""
_BEHIND = 16
"""Messages that the index may be behind before a commit runs a step, so that a step does enough work."""
_KNOWN_MAX = 10_000
"""Branches whose mark is remembered."""


class _Batch(NamedTuple):
    """Messages of one branch that are to be indexed."""

    part: Range
    """Their branch, the first of them, and the last position to index in this branch."""
    mark: tuple[int, int] | None
    """The mark of the branch when they were read."""
    rows: list[tuple[int, bytes]]
    """Positions and bodies."""
    state: tuple[int, int]
    """The newest erasure and the newest edit of the branch when they were read."""


class Search:
    """Finds messages by their words."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._place = driver, driver.place
        self._known: dict[tuple[str, int, int], int] = {}
        """Up to which position branches are indexed, at least."""

    def search(self, head: Head, query: str, limit: int) -> list[SearchHit]:
        self._require()
        try:
            return self._search_indexed(head, query, limit)
        except DamagedBody:
            _log.warning("the word index of %r is damaged, and is built again", head.name)
            self._driver.write(lambda session: self._drop(session, head))
        return self._search_indexed(head, query, limit)

    def _search_indexed(self, head: Head, query: str, limit: int) -> list[SearchHit]:
        is_indexed = True
        try:
            for _ in self.catch_up(head):
                pass
        except Damaged:
            raise
        except StoreError as error:
            _log.warning(
                "the word index of %r cannot be updated, so its newest messages are read: %s", head.name, error
            )
            is_indexed = False
        return self._driver.read(lambda session: self._search(session, head, query, limit, is_indexed))

    def catch_up(self, head: Head) -> Iterator[int]:
        """Index the messages of a conversation up to `head`, in steps; yield the messages of each step.

        Raises StoreError. It may be interrupted after any step, and continues there.
        """
        self._require()
        while (done := self._step(head, _BYTES_AT_SEARCH, at_once=True)) is not None:
            yield done

    def keep_up(self, head: Head) -> None:
        """Run one step after a commit if it is worth it. Errors are logged: the commit stays a success."""
        if not self._driver.has_index or head.position - self._known.get(key(head), 0) < _BEHIND:
            return
        try:
            self._step(head, _BYTES_AT_COMMIT, at_once=False)
        except Exception:
            _log.debug("the word index of %r stays behind", head.name, exc_info=True)

    def forget(self) -> None:
        """Forget the known marks, since some were removed."""
        self._known.clear()

    def _require(self) -> None:
        if not self._driver.has_index:
            raise StoreError(
                f"{self._place} has no word index: it was opened with search off. Open it with search, or read the "
                f"history instead."
            )

    def _search(self, session: Session, head: Head, query: str, limit: int, is_indexed: bool) -> list[SearchHit]:
        ranges = self._ranges(session, head)
        parts = [
            (part._replace(last=min(part.last, mark[0])), key(head, part.branch))
            for part in ranges
            if (mark := _mark(session, head, part)) and mark[1] == KEYS_VERSION
        ]
        more = () if is_indexed else self._read_unindexed(session, head, ranges)
        return find(_Index(WordReader(session, parts, more), session, head, ranges), query, head.position, limit)

    def _read_unindexed(self, session: Session, head: Head, ranges: Sequence[Range]) -> list[PackedPiece]:
        """Return pieces of the messages that are not indexed."""
        pieces: list[PackedPiece] = []
        for part in ranges:
            mark = _mark(session, head, part)
            first = max(part.first, mark[0] + 1) if mark and mark[1] == KEYS_VERSION else part.first
            while first <= part.last:
                last = min(part.last, block_end(first))
                rows = _bodies(session, head, part._replace(last=last), first, _BYTES_AT_SEARCH)
                texts = {position: keys_of(text_of(body)) for position, body in rows}
                pieces.append(
                    PackedPiece(first, pack_piece([texts.get(at, ()) for at in range(first, rows[-1][0] + 1)]))
                )
                first = rows[-1][0] + 1
        return pieces

    def _step(self, head: Head, most: int, *, at_once: bool) -> int | None:
        """Index some messages of this conversation. Return their number; None if all are indexed.

        `at_once`: whether to divide a block when it is complete.
        """
        batch = self._driver.read(lambda session: self._next_batch(session, head, most))
        if batch is None:
            self._remember(key(head), head.position)
            return None
        texts = [(position, keys_of(text_of(body))) for position, body in batch.rows]
        is_added = self._driver.write(lambda session: self._add(session, head, batch, texts, at_once=at_once))
        if batch.part.branch == head.branch and is_added:
            self._remember(key(head), texts[-1][0])
        return len(texts) if is_added else 0

    def _next_batch(self, session: Session, head: Head, most: int) -> _Batch | None:
        """Return some messages of the first range with unindexed ones, from the first of them; None if there are none.

        A batch ends with its block.
        """
        for part in self._ranges(session, head):
            mark = _mark(session, head, part)
            first = mark[0] + 1 if mark and mark[1] == KEYS_VERSION else part.first
            if first <= part.last:
                lender = Head(head.tenant, head.name, head.root, part.branch)
                now = read_branch(session, lender, self._place)[0]
                part = part._replace(first=first, last=min(part.last, block_end(first)))
                return _Batch(part, mark, _bodies(session, head, part, first, most), (now.erased, now.number))
        return None

    def _add(
        self, session: Session, head: Head, batch: _Batch, texts: Sequence[tuple[int, set[str]]], *, at_once: bool
    ) -> bool:
        """Add these messages to the index; return whether they were added."""
        branch = key(head, batch.part.branch)
        if session.rows(sql.LOCK_IF_NOT_ERASED, (*branch, batch.state[0])) != [(batch.state[1],)]:
            return False  # Some of them may have been erased or released since they were read.
        if _mark(session, head, batch.part) != batch.mark:
            return False  # Another process was first, or dropped the index.
        last = texts[-1][0]
        if batch.mark and batch.mark[1] == KEYS_VERSION:
            session.rows(sql.MOVE_MARK, (last, *branch))
        else:
            drop_words(session, branch)  # Of another version, if there are any.
            session.rows(sql.ADD_MARK, (*branch, last, KEYS_VERSION))
        add_words(session, branch, texts, batch.part.first, at_once=at_once)
        return True

    def _drop(self, session: Session, head: Head) -> None:
        for part in self._ranges(session, head):
            drop_words(session, key(head, part.branch))
        self.forget()

    def _ranges(self, session: Session, head: Head) -> list[Range]:
        family: Lineage = read_branch(session, head, self._place)[1]
        return list(lineage.position_ranges(family, head.branch, 1, head.position))

    def _remember(self, branch: tuple[str, int, int], position: int) -> None:
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[branch] = max(position, self._known.get(branch, 0))


class _Index:
    """The words of one conversation in one transaction: a `ranking.Index`."""

    def __init__(self, reader: WordReader, session: Session, head: Head, ranges: Sequence[Range]) -> None:
        self.positions, self.keys_from = reader.positions, reader.keys_from
        self._session, self._head, self._ranges = session, head, ranges

    def texts(self, positions: Sequence[int]) -> dict[int, str]:
        branches = [
            (at, next(part.branch for part in self._ranges if part.first <= at <= part.last)) for at in positions
        ]
        # One query each, by their key: for many positions at once a planner may read the whole tree.
        asked = [(sql.MESSAGES, (*with_body(self._head, branch), at, at)) for at, branch in branches]
        rows = [row for rows in self._session.ask(*asked) for row in rows] if asked else []
        return {row[0]: text for row in rows if (text := text_of(body_or_empty(row[4], row[5])))}


def _mark(session: Session, head: Head, part: Range) -> tuple[int, int] | None:
    """Return the position up to which a branch is indexed, and the version of its keys."""
    for position, version in session.rows(sql.MARK, key(head, part.branch)):
        return position, version
    return None


def _bodies(session: Session, head: Head, part: Range, first: int, most: int) -> list[tuple[int, bytes]]:
    """Return messages from a position on with their bodies, up to so many bytes but at least one.

    A damaged body is b"": readers and `verify` report it, and a search for other messages must not fail.
    """
    rows: list[tuple[int, bytes]] = []
    size = 0
    for begin in count(first, _ROWS):
        end = min(begin + _ROWS - 1, part.last)
        where = *with_body(head, part.branch), begin, end
        for position, _, _, _, digest, stored in session.rows(sql.MESSAGES, where):
            body = body_or_empty(digest, stored)
            rows.append((position, body))
            size += min(len(body), TEXT_MAX)
            if size >= most:
                return rows
        if end == part.last:
            break
    return rows or [(part.last, b"")]
