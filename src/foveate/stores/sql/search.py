"""`search` on the SQL store, and the index of words behind it, which follows the messages at a distance.

Appending does not touch the index. A watermark for each branch says up to which message it has come; it catches up in
small steps, each a transaction of its own, after commits of edits and at a search. A step that is lost is done again:
that loses time, never data. What a database's own index looks like it does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ...ports import Found, Head
from .. import lineage
from ..codec import DamagedBody
from ..lineage import Lineage, Range
from ..ranking import best
from ..words import SAID_MAX, Said, Term, said, terms
from . import statements as sql
from .driver import Driver, Section, Session, WordIndex
from .rows import body_of, key, read_branch, with_body

__all__ = ["Searching"]

_ROWS = 64
"""Messages read at a time."""
_BYTES_AT_COMMIT = 32_000
"""Bytes of messages, or of what is searched of them, after which a step ends: about five milliseconds."""
_BYTES_AT_SEARCH = 256_000
"""The same where somebody waits for all of it: some tens of milliseconds, in which no other can write."""
_BEHIND = 16
"""Messages that the index may lie behind before a commit lets it catch up, so that few steps do much each."""
_KNOWN_MAX = 10_000
"""Branches whose watermark is remembered."""


class Searching:
    """Finds messages by their words, for one SqlStore."""

    def __init__(self, driver: Driver, words: WordIndex) -> None:
        self._driver, self._words = driver, words
        self._known: dict[tuple[str, int, int], int] = {}
        """How far branches are indexed, at least."""

    def search(self, head: Head, query: str, limit: int) -> list[Found]:
        """See `Store.search`."""
        asked = terms(query)
        while asked and self._step(head, _BYTES_AT_SEARCH):
            pass
        return self._driver.read(lambda session: self._search(session, head, asked, limit))

    def keep_up(self, head: Head) -> None:
        """Do one step, if it is worth it."""
        if head.position - self._known.get(key(head), 0) >= _BEHIND:
            self._step(head, _BYTES_AT_COMMIT)

    def _search(self, session: Session, head: Head, asked: Sequence[Term], limit: int) -> list[Found]:
        parts = self._parts(session, head)
        sections = [(part, mark[1]) for part in reversed(parts) if (mark := _mark(session, head, part))]

        def holding(some: Sequence[Term], most: int) -> list[int]:
            found: list[int] = []
            for part, section in sections:
                if len(found) < most:
                    room = most - len(found)
                    found += self._words.find(session, section, part.first, part.last, some, room)
            return found

        def there(positions: Sequence[int]) -> set[int]:
            of = {
                position: next(part.branch for part in parts if part.first <= position <= part.last)
                for position in positions
            }
            # One by one, as their key has them: a planner that is asked for many may read all of a tree for them.
            looks = [(sql.HAS_BODY, (*with_body(head, branch), at, at)) for at, branch in of.items()]
            return {position for rows in session.ask(*looks) for (position,) in rows}

        return best(asked, limit, head.position, holding, there)

    def _step(self, head: Head, most: int) -> bool:
        """Index some messages that this conversation sees and the index does not. False: there are none."""
        found = self._driver.read(lambda session: self._behind(session, head, most))
        if found is None:
            self._remember(key(head), head.position)
            return False
        part, is_new, rows, erased = found
        cut = [(position, said(body)) for position, body in rows]
        is_added = self._driver.write(lambda session: self._add(session, head, part, is_new, cut, erased))
        if part.branch == head.branch and is_added:
            self._remember(key(head), cut[-1][0])
        return True

    def _behind(
        self, session: Session, head: Head, most: int
    ) -> tuple[Range, bool, list[tuple[int, bytes]], int] | None:
        """The first range whose messages are not all indexed, from there on; whether none of them is; some of those
        messages; and the newest erasure that they were read after.
        """
        for part in self._parts(session, head):
            mark = _mark(session, head, part)
            done = mark[0] if mark else part.first - 1
            if done < part.last:
                lender = Head(head.tenant, head.name, head.root, part.branch)
                erased = read_branch(session, lender, self._driver.place)[0].erased
                rows = _bodies(session, head, part, done + 1, most)
                return part._replace(first=done + 1), mark is None, rows, erased
        return None

    def _add(
        self,
        session: Session,
        head: Head,
        part: Range,
        is_new: bool,
        rows: Sequence[tuple[int, Said]],
        erased: int,
    ) -> bool:
        """Whether they were added."""
        last = rows[-1][0]
        if not session.rows(sql.HOLD, (*key(head, part.branch), erased)):
            return False  # Some of them may have been erased since they were read.
        branch = key(head, part.branch)
        mark = _mark(session, head, part)
        if (mark is None) != is_new:
            return False  # Another process was here first, or emptied the index.
        if mark is None:
            section = Section(*branch, self._words.place(session, *branch))
            session.rows(sql.ADD_MARK, (*branch, last, section.place))
        else:
            before, section = mark
            if before != part.first - 1:
                return False  # Another process was here first.
            session.rows(sql.MOVE_MARK, (last, *branch))
        self._words.add(session, section, rows)
        return True

    def _parts(self, session: Session, head: Head) -> list[Range]:
        family: Lineage = read_branch(session, head, self._driver.place)[1]
        return list(lineage.position_ranges(family, head.branch, 1, head.position))

    def forget(self) -> None:
        """Look again how far each branch is indexed: the index was emptied."""
        self._known.clear()

    def _remember(self, branch: tuple[str, int, int], position: int) -> None:
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[branch] = max(position, self._known.get(branch, 0))


def _mark(session: Session, head: Head, part: Range) -> tuple[int, Section] | None:
    """Up to which position a branch is indexed, and its section of the index."""
    for position, place in session.rows(sql.MARK, key(head, part.branch)):
        return position, Section(*key(head, part.branch), place)
    return None


def _bodies(session: Session, head: Head, part: Range, first: int, most: int) -> list[tuple[int, bytes]]:
    """Messages from a position on with their bodies, up to so many bytes; at least one. b"" for a damaged one.

    Damage is for readers and `verify` to report: a search must not fail because of a message that is not looked for.
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
            size += min(len(body), SAID_MAX)
            if size >= most:
                return rows
        if end == part.last:
            break
    return rows or [(part.last, b"")]
