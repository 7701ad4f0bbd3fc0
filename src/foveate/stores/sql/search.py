"""Search in the SQL store, and the word index behind it.

An append does not touch the index. For each branch a mark says up to which position it is indexed. Small steps, each a
transaction, catch up after commits and before a search. A lost step is repeated: it costs time, never data. If the
index cannot be written, for example because the disk is full, a search reads the rest of the messages itself.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import count

from ...errors import Damaged, StoreError
from ...ports import Head, SearchHit
from .. import lineage
from ..codec import DamagedBody
from ..lineage import Lineage, Range
from ..words import TEXT_MAX, Term, Words, best_hits, contains, terms, words_of
from . import statements as sql
from .driver import Driver, Section, Session, WordIndex
from .rows import body_of, key, read_branch, with_body

__all__ = ["Search"]

_log = logging.getLogger(__name__)

_ROWS = 64
"""Messages read at a time."""
_BYTES_AT_COMMIT = 32_000
"""Bytes of messages, at most the searched part of each, after which a step ends: about five milliseconds."""
_BYTES_AT_SEARCH = 256_000
"""The same at a search, whose caller waits for all steps: some tens of milliseconds in which no other can write."""
_BEHIND = 16
"""Messages that the index may be behind before a commit runs a step, so that a step does enough work."""
_KNOWN_MAX = 10_000
"""Branches whose mark is remembered."""


class Search:
    """Finds messages by their words. `words`: the word index; None if the database has none."""

    def __init__(self, driver: Driver, words: WordIndex | None) -> None:
        self._driver, self._words, self._place = driver, words, driver.place
        self._known: dict[tuple[str, int, int], int] = {}
        """Up to which position branches are indexed, at least."""

    def search(self, head: Head, query: str, limit: int) -> list[SearchHit]:
        words = self._words
        if words is None:
            raise StoreError(
                f"{self._place} has no word index: it was opened with search off, or its SQLite was built without "
                f"FTS5. Read the history instead."
            )
        wanted, is_indexed = terms(query), True
        try:
            while wanted and self._step(head, words, _BYTES_AT_SEARCH):
                pass
        except Damaged:
            raise
        except StoreError as error:
            _log.warning(
                "the word index of %r cannot be updated, so its newest messages are read: %s", head.name, error
            )
            is_indexed = False
        return self._driver.read(lambda session: self._search(session, words, head, wanted, limit, is_indexed))

    def keep_up(self, head: Head) -> None:
        """Run one step after a commit if it is worth it. Errors are logged: the commit stays a success."""
        if self._words is None or head.position - self._known.get(key(head), 0) < _BEHIND:
            return
        try:
            self._step(head, self._words, _BYTES_AT_COMMIT)
        except Exception:
            _log.debug("the word index of %r stays behind", head.name, exc_info=True)

    def forget(self) -> None:
        """Forget the known marks, since the index was emptied."""
        self._known.clear()

    def _search(
        self, session: Session, words: WordIndex, head: Head, wanted: Sequence[Term], limit: int, is_indexed: bool
    ) -> list[SearchHit]:
        ranges = self._ranges(session, head)
        sections = [(part, mark[1]) for part in reversed(ranges) if (mark := _mark(session, head, part))]
        unindexed = {} if is_indexed else self._read_unindexed(session, head, ranges, wanted)

        def holding(some: Sequence[Term], most: int) -> list[int]:
            positions: list[int] = []
            for part, section in sections:
                if len(positions) < most:
                    room = most - len(positions)
                    positions += words.find(session, section, part.first, part.last, some, room)
            if unindexed:
                positions += [at for at, text in unindexed.items() if all(contains(text, term) for term in some)]
                positions = sorted(set(positions), reverse=True)[:most]
            return positions

        def with_bodies(positions: Sequence[int]) -> set[int]:
            branches = {
                position: next(part.branch for part in ranges if part.first <= position <= part.last)
                for position in positions
            }
            # One query each, by their key: for many positions at once a planner may read the whole tree.
            queries = [(sql.HAS_BODY, (*with_body(head, branch), at, at)) for at, branch in branches.items()]
            return {position for rows in session.ask(*queries) for (position,) in rows}

        return best_hits(wanted, limit, head.position, holding, with_bodies)

    def _read_unindexed(
        self, session: Session, head: Head, ranges: Sequence[Range], wanted: Sequence[Term]
    ) -> dict[int, Words]:
        """Return the words of the messages that are not indexed and contain a word of the query, by position."""
        query = {word for term in wanted for word in term}
        texts: dict[int, Words] = {}
        for part in ranges:
            mark = _mark(session, head, part)
            first = max(part.first, mark[0] + 1) if mark else part.first
            while first <= part.last:
                rows = _bodies(session, head, part, first, _BYTES_AT_SEARCH)
                for position, body in rows:
                    text = words_of(body)
                    if not query.isdisjoint(text.words) or not query.isdisjoint(text.humps):
                        texts[position] = text
                first = rows[-1][0] + 1
        return texts

    def _step(self, head: Head, words: WordIndex, most: int) -> bool:
        """Index some messages of this conversation. Return False if all are indexed."""
        batch = self._driver.read(lambda session: self._next_batch(session, head, most))
        if batch is None:
            self._remember(key(head), head.position)
            return False
        part, is_new, rows, state = batch
        texts = [(position, words_of(body)) for position, body in rows]
        is_added = self._driver.write(lambda session: self._add(session, words, head, part, is_new, texts, state))
        if part.branch == head.branch and is_added:
            self._remember(key(head), texts[-1][0])
        return True

    def _next_batch(
        self, session: Session, head: Head, most: int
    ) -> tuple[Range, bool, list[tuple[int, bytes]], tuple[int, int]] | None:
        """Return the first range with unindexed messages, from the first of them; whether none of it is indexed; some
        of these messages; and the newest erasure and the newest edit at that moment.
        """
        for part in self._ranges(session, head):
            mark = _mark(session, head, part)
            indexed = mark[0] if mark else part.first - 1
            if indexed < part.last:
                lender = Head(head.tenant, head.name, head.root, part.branch)
                now = read_branch(session, lender, self._place)[0]
                rows = _bodies(session, head, part, indexed + 1, most)
                return part._replace(first=indexed + 1), mark is None, rows, (now.erased, now.number)
        return None

    def _add(
        self,
        session: Session,
        words: WordIndex,
        head: Head,
        part: Range,
        is_new: bool,
        rows: Sequence[tuple[int, Words]],
        state: tuple[int, int],
    ) -> bool:
        """Add these messages to the index; return whether they were added."""
        last = rows[-1][0]
        if session.rows(sql.LOCK_IF_NOT_ERASED, (*key(head, part.branch), state[0])) != [(state[1],)]:
            return False  # Some of them may have been erased or released since they were read.
        branch = key(head, part.branch)
        mark = _mark(session, head, part)
        if (mark is None) != is_new:
            return False  # Another process was first, or emptied the index.
        if mark is None:
            section = Section(*branch, words.place(session, *branch))
            session.rows(sql.ADD_MARK, (*branch, last, section.place))
        else:
            indexed, section = mark
            if indexed != part.first - 1:
                return False  # Another process was first.
            session.rows(sql.MOVE_MARK, (last, *branch))
        words.add(session, section, rows)
        return True

    def _ranges(self, session: Session, head: Head) -> list[Range]:
        family: Lineage = read_branch(session, head, self._place)[1]
        return list(lineage.position_ranges(family, head.branch, 1, head.position))

    def _remember(self, branch: tuple[str, int, int], position: int) -> None:
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[branch] = max(position, self._known.get(branch, 0))


def _mark(session: Session, head: Head, part: Range) -> tuple[int, Section] | None:
    """Return the position up to which a branch is indexed, and its section of the index."""
    for position, place in session.rows(sql.MARK, key(head, part.branch)):
        return position, Section(*key(head, part.branch), place)
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
            try:
                body = body_of(digest, stored)[0]
            except DamagedBody:
                body = b""
            rows.append((position, body))
            size += min(len(body), TEXT_MAX)
            if size >= most:
                return rows
        if end == part.last:
            break
    return rows or [(part.last, b"")]
