"""Erasing on the SQL store: the one transaction that erases.

What has to be reached is found by `stores.erasing`, in the tree of `erasing_tree.py`. The tree is held while that is
done, so that nobody adds to it in between; whoever read before it is told by the number of the newest erasure, which is
kept with every branch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import structs

from ...core import ids, wire
from ...core.caches import clear_caches
from ...core.redacted_form import ERASED
from ...core.runs import AgentRun, AgentRunStep
from ...errors import StoreError
from ...ports import Erased, Finding, Head, StampRow
from ..checks import check_journal, check_spans, check_words, too_early
from ..codec import Codec, DamagedBody, pack
from ..erasing import Ends, Place, Reach, check_seen, counted, left_over, named, reach, whole_runs
from ..lineage import position_ranges
from ..words import Said, said
from . import statements as sql
from .driver import Driver, Row, Section, Session
from .erasing_tree import SqlTree, damaged, hash_of
from .rows import UNREADABLE, body_of, key, read_branch, with_body
from .runs import SqlRuns
from .search import Searching

__all__ = ["SqlErasing"]

_TREES = 50
"""Trees of forks that one transaction of a vacuum looks through; others write in between."""
_ATTEMPTS = 3
"""How often what an erasure has to reach is looked for while others write, before they are made to wait."""


class _Found(NamedTuple):
    """What one erasure has to reach, as it stood when it was looked for."""

    heads: Ends
    is_still: bool
    """Whether it only holds for as long as nobody says anything."""
    reach: Reach
    tombstones: dict[Place, Row]
    """What is to stand in `message` instead of the rows whose bodies go."""
    records: list[Row]
    """What is to stand in `record`."""
    large: set[bytes]
    """Hashes of large bodies that nobody says any more then."""
    said: dict[Place, Said]
    """The words of the bodies that go."""
    snapshots: dict[int, bytes]
    """By branch: hashes of those that may stay, some of them changed."""


class SqlErasing(SqlRuns):
    """The part of the SQL store that erases, and proves it."""

    _driver: Driver
    _codec: Codec
    _searching: Searching | None

    def erase(
        self,
        head: Head,
        spans: Sequence[tuple[int, int]],
        *,
        runs: bool | Collection[str] = False,
        keep_shown: bool = False,
        seen: Sequence[Head] = (),
        is_still: bool = False,
        who: str = "",
        reason: str = "",
        time: int = 0,
    ) -> Erased:
        check_spans(head, spans)
        check_words("erasure", who=who, reason=reason)
        asked = Erased(0, time, who, reason, head.name, named(spans))

        def look(session: Session) -> _Found:
            found = self._found(session, head, spans, runs, keep_shown, seen, is_still)
            places.update(found.reach.bodies)
            return found

        done: Erased | None = None
        places: set[Place] = set()
        for attempt in range(_ATTEMPTS):
            # Looked for while others write; where they wrote what matters, again, and at last while they wait.
            before = self._driver.read(look) if attempt < _ATTEMPTS - 1 else None
            if before is not None and before.reach.is_done:
                return Erased(0)
            done = self._driver.write(partial(self._erased, head, look, before, asked))
            if done is not None:
                break
        assert done is not None  # The last attempt lets nobody come in between.
        if done.number and not keep_shown:
            self._settle_words(head, places)
        if self._searching:
            self._searching.forget()
        if done.number:
            clear_caches()
        return done

    def stamps(self, head: Head, first: int, last: int) -> list[StampRow]:
        def work(session: Session) -> list[StampRow]:
            _, family = read_branch(session, head, self._driver.place)
            return [
                StampRow(position, id.hex(), wire.decode_stamp(stamp), size)
                for part in position_ranges(family, head.branch, max(first, 1), min(last, head.position))
                for position, id, stamp, size in session.rows(sql.STAMPS, (*with_body(head, part.branch), *part[1:]))
            ]

        try:
            return self._driver.read(work)
        except (AttributeError, TypeError, *UNREADABLE) as error:
            raise damaged(head, f"one of the messages {first} to {last}") from error

    def erasures(self, head: Head) -> list[Erased]:
        def work(session: Session) -> list[Erased]:
            read_branch(session, head, self._driver.place)
            return [Erased(*row) for row in session.rows(sql.ERASURES, (head.tenant, head.root))]

        return self._driver.read(work)

    def leftovers(self, head: Head) -> tuple[int, list[Finding]]:
        def work(session: Session) -> tuple[int, list[Finding]]:
            now, family = read_branch(session, head, self._driver.place)
            gone: dict[str, Place] = {}
            tree = SqlTree(session, now)
            for part in position_ranges(family, now.branch, 1, now.position):
                for seen in tree.rows(part.branch, part.first, part.last):
                    if not seen.has_body:
                        gone[seen.id] = Place(part.branch, seen.position)
            found = left_over(reach(tree, gone, proves=True)) if gone else []
            return len(gone), [*found, *self._words_left(session, now, gone.values())]

        return self._driver.read(work)

    def vacuum(self) -> None:
        trees = self._driver.read(lambda session: session.rows(sql.TREES_WITH_BODIES))
        for start in range(0, len(trees), _TREES):
            self._driver.write(partial(_drop_bodies, trees[start : start + _TREES]))
        self._settle_words(Head("", "", 0, 0), ())
        self._driver.vacuum()

    # --------------------------------------------------------------------------------------------------- helpers

    def _found(
        self,
        session: Session,
        head: Head,
        spans: Sequence[tuple[int, int]],
        runs: bool | Collection[str],
        keep_shown: bool,
        seen: Sequence[Head],
        is_still: bool,
    ) -> _Found:
        """Look for all that has to be reached. Raises StoreError where the chains could not be verified any more."""
        now, family = read_branch(session, head, self._driver.place)
        tree, heads = SqlTree(session, now), _heads(session, now)
        if keep_shown or seen:
            check_journal(head, now)
        if seen:
            check_seen(tree, head, spans, seen, heads, is_still=is_still)
        parts = (part for first, last in spans for part in position_ranges(family, now.branch, first, last))
        asked = {
            row[1].hex()
            for part in parts
            for row in session.rows(sql.STAMPS, (*with_body(now, part.branch), *part[1:]))
        }
        found = reach(tree, asked, runs=whole_runs(now, runs), keep_shown=keep_shown)
        for place in found.stamps:
            if not tree.has_outline(place):
                raise too_early(now, f"The application's facts of message {place.position} were")
        records: list[Row] = []
        for branch, record in found.records:
            id = tree.outlined_id(branch, record)
            if id is None:
                raise too_early(now, f"Record {record.first} of the journal was")
            records.append((*key(now, branch), record.first, id, pack(wire.encode_record(record), self._codec)))
        tombstones: dict[Place, Row] = {}
        words: dict[Place, Said] = {}
        large: set[bytes] = set()
        for place in found.bodies:
            (row,) = session.rows(sql.MESSAGES, (*with_body(now, place.branch), place.position, place.position))
            hash = bytes.fromhex(hash_of(now, row[0], row[4], row[5]))
            stamp = wire.encode_stamp(found.stamps[place]) if place in found.stamps else row[3]
            tombstones[place] = (*key(now, place.branch), *row[:3], stamp, hash, b"")
            if row[4] is not None:
                large.add(hash)
            if self._driver.words is not None:
                words[place] = said(_body_or_nothing(row[4], row[5]))
        if large:
            for place, hash in tree.large():
                if place not in tombstones:
                    large.discard(hash)
        there: dict[int, bytes] = dict(session.rows(sql.SNAPSHOT_HASHES, (now.tenant, now.root))) if keep_shown else {}
        return _Found(heads, bool(seen) and is_still, found, tombstones, records, large, words, there)

    def _erased(
        self, head: Head, look: Callable[[Session], _Found], before: _Found | None, asked: Erased, session: Session
    ) -> Erased | None:
        """Erase what was found before, or what is found now. None where it may be no more what it was."""
        session.scrub()
        session.rows(sql.HOLD_TREE, (head.tenant, head.root))
        session.rows(sql.HOLD_BRANCHES, (head.tenant, head.root))
        now, _ = read_branch(session, head, self._driver.place)
        if before is not None and not _holds_still(session, now, before):
            return None
        found = before or look(session)
        if found.reach.is_done:
            return Erased(0)
        number = session.rows(sql.LAST_ERASURE, (head.tenant, head.root))[0][0] + 1
        done = counted(found.reach, structs.replace(asked, number=number, name=now.name))
        self._remove_words(session, now, found.said, _marked(session, now, found.reach.bodies))
        self._write(session, now, found)
        session.rows(sql.SAY_ERASED, (number, head.tenant, head.root))
        told = done.time, done.who, done.reason, done.name, done.handles
        counts = done.messages, done.edits, done.runs, done.steps
        session.rows(sql.ADD_ERASURE, (head.tenant, head.root, number, *told, *counts))
        return done

    def _write(self, session: Session, head: Head, found: _Found) -> None:
        reached, tree = found.reach, (head.tenant, head.root)
        stamps = [
            (wire.encode_stamp(stamp), *key(head, at.branch), at.position)
            for at, stamp in reached.stamps.items()
            if at not in found.tombstones
        ]
        bodies = [(*key(head, at.branch), at.position) for at in found.tombstones]
        runs = [(*self._gone(run, ("task", "result", "reason")), *tree, run.id) for run in reached.runs]
        steps = [
            (*self._gone(step, ("input", "output", "error")), *tree, step.run, step.number) for step in reached.steps
        ]
        for statement, many in (
            (sql.ERASE_STAMP, stamps),
            (sql.TAKE_MESSAGE, bodies),
            (sql.ADD_MESSAGE, list(found.tombstones.values())),
            (sql.TAKE_RECORD, [row[:4] for row in found.records]),
            (sql.ADD_RECORD, found.records),
            (sql.DROP_BODY, [(*tree, hash) for hash in sorted(found.large)]),
            (sql.ERASE_RUN, runs),
            (sql.ERASE_STEP, steps),
        ):
            if many:
                session.each(statement, many)
        self._write_snapshots(session, head, found)

    def _write_snapshots(self, session: Session, head: Head, found: _Found) -> None:
        for branch, hash in session.rows(sql.SNAPSHOT_HASHES, (head.tenant, head.root)):
            body = found.reach.snapshots.get(branch)
            if body == b"" or found.snapshots.get(branch) != hash:  # The second: saved since, or made of more.
                session.rows(sql.DROP_SNAPSHOT, key(head, branch))
            elif body:
                stored = bytes.fromhex(ids.body_hash(body)), pack(body, self._codec)
                session.rows(sql.ERASE_SNAPSHOT, (*stored, *key(head, branch)))

    def _gone(self, one: AgentRun | AgentRunStep, names: tuple[str, ...]) -> list[bytes | None]:
        return [self._packed(ERASED) if getattr(one, name) == ERASED else None for name in names]

    def _remove_words(
        self, session: Session, head: Head, said: Mapping[Place, Said], marked: Sequence[tuple[Section, Place]]
    ) -> None:
        if not marked:
            return
        words = self._driver.words
        if words is None:
            raise StoreError(
                f"{self._driver.place} has an index with words of these messages, and was opened without it. Open it "
                f"with search, then erase. Nothing was erased."
            )
        words.remove(session, [(section, where.position, said[where]) for section, where in marked])

    def _settle_words(self, head: Head, places: Collection[Place]) -> None:
        """Leave no word of these messages in the index. It takes long where much is indexed, so others write in
        between; where it is broken off, `vacuum` goes on.
        """
        words = self._driver.words
        if words is None:
            return

        def settle(session: Session) -> bool:
            session.scrub()
            return words.settle(session)

        def clear(session: Session) -> None:
            session.scrub()
            words.clear(session)
            session.rows(sql.DROP_MARKS)

        while self._driver.write(settle):
            pass
        if self._driver.read(lambda session: any(True for _ in self._words_left(session, head, places))):
            self._driver.write(clear)

    def _words_left(self, session: Session, head: Head, places: Collection[Place]) -> Iterator[Finding]:
        if self._driver.words is None:
            return
        asked = {(section, where.position) for section, where in _marked(session, head, places)}
        for _, position in sorted(self._driver.words.holding(session, sorted(asked)) if asked else ()):
            yield Finding(f"message {position}", "it was erased, and the index of words still has words of it")


def _drop_bodies(trees: Sequence[Row], session: Session) -> None:
    """Drop the bodies of these trees that no message leads to."""
    session.scrub()
    for tenant, root in trees:
        session.rows(sql.HOLD_TREE, (tenant, root))
        session.rows(sql.HOLD_BRANCHES, (tenant, root))
        session.rows(sql.DROP_BODIES, (tenant, root, tenant, root))


def _heads(session: Session, head: Head) -> Ends:
    rows = session.rows(sql.HEADS, (head.tenant, head.root))
    return {branch: (position, number, erased) for branch, position, number, erased in rows}


def _holds_still(session: Session, head: Head, found: _Found) -> bool:
    """Whether all that was found is as it was, and nothing came since that would have to be reached too."""
    tree, now = SqlTree(session, head), _heads(session, head)
    if {branch: ends[1:] for branch, ends in now.items()} != {branch: ends[1:] for branch, ends in found.heads.items()}:
        return False  # A fork, an edit, or something else that was erased.
    for branch, (position, *_) in now.items():
        before = found.heads[branch][0]
        if position == before:
            continue
        if found.is_still or any(
            seen.id in found.reach.ids or (seen.stamp.expanded and seen.stamp.expanded.is_copy)
            for seen in tree.rows(branch, before + 1)
        ):
            return False
        if any(hash in found.large for _, hash in tree.large_of(branch, before)):
            return False
    return True


def _body_or_nothing(digest: object, stored: object) -> bytes:
    """A body; b"" for a damaged one, of which the index has no words."""
    try:
        return body_of(digest, stored)[0]
    except DamagedBody:
        return b""


def _marked(session: Session, head: Head, places: Collection[Place]) -> list[tuple[Section, Place]]:
    """Of these messages those that the index of words has come to, each with its section of the index."""
    marks: dict[int, tuple[int, Section]] = {}
    for branch in {place.branch for place in places}:
        for position, place in session.rows(sql.MARK, key(head, branch)):
            marks[branch] = position, Section(*key(head, branch), place)
    reached = [(marks[where.branch], where) for where in places if where.branch in marks]
    return [(section, where) for (position, section), where in reached if where.position <= position]
