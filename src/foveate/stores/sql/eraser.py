"""Erasing in the SQL store: one transaction erases messages and all data derived from them.

`stores.derived_data` finds the data in the tree of `erasure_tree.py`. The tree is locked while it is erased, so that no
other writer adds to it. Each branch stores the number of the newest erasure, which tells writers that read before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import structs

from ...core import ids, wire
from ...core.caches import clear_caches
from ...core.ids import ERASED
from ...core.runs import AgentRun, AgentRunStep
from ...errors import StoreError
from ...ports import Erasure, Finding, Head
from ..checks import check_erasure, check_journal, check_prefix, check_spans, check_texts, too_old_to_erase
from ..codec import DamagedBody, pack
from ..derived_data import DerivedData, Ends, Place, derived_data
from ..erasures import check_seen, counted, handles_of, residue, whole_runs
from ..lineage import position_ranges, root_of
from ..words import KEYS_VERSION, keys_of, text_of
from . import statements as sql
from .driver import Driver, Row, Session
from .erasure_tree import SqlTree, hash_of
from .rows import body_or_empty, key, read_branch, with_body
from .runs import pack_text
from .search import Search
from .words import drop_words, holding_words, remove_words

__all__ = ["Eraser", "indexed_places", "lock_tree"]

_TREES = 50
"""Trees of forks that one transaction of a vacuum reads; others write in between."""
_ATTEMPTS = 3
"""Attempts of an erasure: all but the last collect the data before they lock the tree."""
_TABLES = (
    "message",
    "body",
    "record",
    "snapshot",
    "indexed",
    "said",
    "run",
    "step",
    "erasure",
    "claim",
    "branch",
    "tree",
)
"""Tables with rows of a tree."""
_DISCARD = "DELETE FROM {} WHERE tenant = ? AND root = ?"


class _Collected(NamedTuple):
    """Everything that one erasure has to change, as it was when it was collected."""

    heads: Ends
    needs_silence: bool
    """Whether it is valid only as long as no message is appended."""
    data: DerivedData
    tombstones: dict[Place, Row]
    """Rows of `message` that replace the rows whose bodies are erased."""
    records: list[Row]
    """Rows of `record` that replace others."""
    large: set[bytes]
    """Hashes of large bodies that no message has any more then."""
    words: dict[Place, set[str]]
    """The keys of the erased bodies in the word index."""
    snapshots: dict[int, bytes]
    """By branch: hashes of the snapshots that may stay, some of them changed."""


class Eraser:
    """Erases messages, proves that nothing is left, and discards trees."""

    def __init__(self, driver: Driver, search: Search) -> None:
        self._driver, self._search, self._place = driver, search, driver.place

    def erase(
        self,
        head: Head,
        spans: Sequence[tuple[int, int]],
        *,
        runs: bool | Collection[str],
        keep_shown: bool,
        seen: Sequence[Head],
        is_still: bool,
        who: str,
        reason: str,
        time: int,
    ) -> Erasure:
        check_spans(head, spans)
        check_texts("erasure", who=who, reason=reason)
        request = Erasure(0, time, who, reason, head.name, handles_of(spans))
        places: set[Place] = set()

        def collect(session: Session) -> _Collected:
            collected = self._collect(session, head, spans, runs, keep_shown, seen, is_still)
            places.update(collected.data.bodies)
            return collected

        erasure: Erasure | None = None
        for attempt in range(_ATTEMPTS):
            before = self._driver.read(collect) if attempt < _ATTEMPTS - 1 else None
            if before is not None and before.data.is_empty:
                return Erasure(0)
            erasure = self._driver.write(partial(self._erase, head, collect, before, request))
            if erasure is not None:
                break
        assert erasure is not None  # The last attempt collects while the tree is locked.
        if erasure.number and not keep_shown:
            self._prove_words(head, places)
        self._search.forget()
        if erasure.number:
            clear_caches()
        return erasure

    def erasures(self, head: Head) -> list[Erasure]:
        def work(session: Session) -> list[Erasure]:
            read_branch(session, head, self._place)
            return [Erasure(*row) for row in session.rows(sql.ERASURES, (head.tenant, head.root))]

        return self._driver.read(work)

    def add_erasure(self, head: Head, erasure: Erasure) -> None:
        check_erasure(erasure)

        def work(session: Session) -> None:
            tree = head.tenant, head.root
            lock_tree(session, head)
            read_branch(session, head, self._place)
            if erasure.number == session.rows(sql.LAST_ERASURE, tree)[0][0] + 1:
                session.rows(sql.ADD_ERASURE, (*tree, *structs.astuple(erasure)))
                session.rows(sql.SET_ERASED, (erasure.number, *tree))

        self._driver.write(work)

    def find_residue(self, head: Head) -> tuple[int, list[Finding]]:
        def work(session: Session) -> tuple[int, list[Finding]]:
            now, family = read_branch(session, head, self._place)
            erased: dict[str, Place] = {}
            tree = SqlTree(session, now)
            for part in position_ranges(family, now.branch, 1, now.position):
                for row in tree.rows(part.branch, part.first, part.last):
                    if not row.has_body:
                        erased[row.id] = Place(part.branch, row.position)
            findings = residue(derived_data(tree, erased, proves=True)) if erased else []
            problem = "it was erased, and the index of words still has words of it"
            left = self._remaining_words(session, now, erased.values()) if self._driver.has_index else ()
            return len(erased), [*findings, *(Finding(f"message {at.position}", problem) for at in left)]

        return self._driver.read(work)

    def vacuum(self) -> None:
        trees = self._driver.read(lambda session: session.rows(sql.TREES_WITH_BODIES))
        for start in range(0, len(trees), _TREES):
            self._driver.write(partial(_drop_bodies, trees[start : start + _TREES]))
        self._driver.vacuum()

    def discard(self, head: Head, prefix: str) -> None:
        def work(session: Session) -> None:
            tree = head.tenant, head.root
            session.scrub()
            lock_tree(session, head)
            read_branch(session, head, self._place)
            names = [name for _, name in session.rows(sql.TREE, tree)]
            check_prefix(prefix, names)
            for name in sorted(names):
                session.rows(sql.DROP_NAME, (head.tenant, root_of(head.tenant, name), name))
            for table in _TABLES:
                session.rows(_DISCARD.format(table), tree)

        self._driver.write(work)
        self._search.forget()

    # ------------------------------------------------------------------------------------------------------ erasing

    def _collect(
        self,
        session: Session,
        head: Head,
        spans: Sequence[tuple[int, int]],
        runs: bool | Collection[str],
        keep_shown: bool,
        seen: Sequence[Head],
        is_still: bool,
    ) -> _Collected:
        """Collect all that has to change. Raises StoreError if the chains could not be verified afterwards."""
        now, family = read_branch(session, head, self._place)
        tree, heads = SqlTree(session, now), _ends(session, now)
        if keep_shown or seen:
            check_journal(head, now)
        if seen:
            check_seen(tree, head, spans, seen, heads, is_still=is_still)
        parts = (part for first, last in spans for part in position_ranges(family, now.branch, first, last))
        wanted = {
            row[1].hex()
            for part in parts
            for row in session.rows(sql.STAMPS, (*with_body(now, part.branch), *part[1:]))
        }
        data = derived_data(tree, wanted, runs=whole_runs(now, runs), keep_shown=keep_shown)
        for place in data.stamps:
            if not tree.has_redacted_seal(place):
                raise too_old_to_erase(now, f"The application's facts of message {place.position} were")
        records: list[Row] = []
        for branch, record in data.records:
            id = tree.redacted_id(branch, record)
            if id is None:
                raise too_old_to_erase(now, f"Record {record.first} of the journal was")
            records.append((*key(now, branch), record.first, id, pack(wire.encode_record(record))))
        tombstones: dict[Place, Row] = {}
        words: dict[Place, set[str]] = {}
        large: set[bytes] = set()
        for place in data.bodies:
            (row,) = session.rows(sql.MESSAGES, (*with_body(now, place.branch), place.position, place.position))
            hash = bytes.fromhex(hash_of(now, row[0], row[4], row[5]))
            stamp = wire.encode_stamp(data.stamps[place]) if place in data.stamps else row[3]
            tombstones[place] = (*key(now, place.branch), *row[:3], stamp, hash, b"")
            if row[4] is not None:
                large.add(hash)
            if self._driver.has_index:
                words[place] = keys_of(text_of(body_or_empty(row[4], row[5])))
        if large:
            for place, hash in tree.large():
                if place not in tombstones:
                    large.discard(hash)
        hashes: dict[int, bytes] = {}
        if keep_shown:
            hashes = dict(session.rows(sql.SNAPSHOT_HASHES, (now.tenant, now.root)))
        return _Collected(heads, bool(seen) and is_still, data, tombstones, records, large, words, hashes)

    def _erase(
        self,
        head: Head,
        collect: Callable[[Session], _Collected],
        before: _Collected | None,
        request: Erasure,
        session: Session,
    ) -> Erasure | None:
        """Erase what was collected before, or collect it now. None: it may be incomplete, so collect it again."""
        session.scrub()
        lock_tree(session, head)
        now, _ = read_branch(session, head, self._place)
        if before is not None and not _is_complete(session, now, before):
            return None
        collected = before or collect(session)
        if collected.data.is_empty:
            return Erasure(0)
        number = session.rows(sql.LAST_ERASURE, (head.tenant, head.root))[0][0] + 1
        erasure = counted(collected.data, structs.replace(request, number=number, name=now.name))
        self._remove_words(session, now, collected.words, indexed_places(session, now, collected.data.bodies))
        self._write(session, now, collected)
        session.rows(sql.SET_ERASED, (number, head.tenant, head.root))
        session.rows(sql.ADD_ERASURE, (head.tenant, head.root, *structs.astuple(erasure)))
        return erasure

    def _write(self, session: Session, head: Head, collected: _Collected) -> None:
        data, tree = collected.data, (head.tenant, head.root)
        stamps = [
            (wire.encode_stamp(stamp), *key(head, at.branch), at.position)
            for at, stamp in data.stamps.items()
            if at not in collected.tombstones
        ]
        bodies = [(*key(head, at.branch), at.position) for at in collected.tombstones]
        runs = [(*self._erased_texts(run, ("task", "result", "reason")), *tree, run.id) for run in data.runs]
        steps = [
            (*self._erased_texts(step, ("input", "output", "error")), *tree, step.run, step.number)
            for step in data.steps
        ]
        for statement, many in (
            (sql.ERASE_STAMP, stamps),
            (sql.DROP_MESSAGE, bodies),
            (sql.ADD_MESSAGE, list(collected.tombstones.values())),
            (sql.DROP_RECORD, [row[:4] for row in collected.records]),
            (sql.ADD_RECORD, collected.records),
            (sql.DROP_BODY, [(*tree, hash) for hash in sorted(collected.large)]),
            (sql.ERASE_RUN, runs),
            (sql.ERASE_STEP, steps),
        ):
            if many:
                session.each(statement, many)
        self._write_snapshots(session, head, collected)
        session.rows(sql.DROP_VIEWS, tree)

    def _write_snapshots(self, session: Session, head: Head, collected: _Collected) -> None:
        for branch, hash in session.rows(sql.SNAPSHOT_HASHES, (head.tenant, head.root)):
            body = collected.data.snapshots.get(branch)
            if body == b"" or collected.snapshots.get(branch) != hash:  # The second: saved since.
                session.rows(sql.DROP_SNAPSHOT, key(head, branch))
            elif body:
                stored = bytes.fromhex(ids.body_hash(body)), pack(body)
                session.rows(sql.ERASE_SNAPSHOT, (*stored, *key(head, branch)))

    def _erased_texts(self, value: AgentRun | AgentRunStep, names: tuple[str, ...]) -> list[bytes | None]:
        """Return the new text of each field; None for a field that stays."""
        return [pack_text(ERASED) if getattr(value, name) == ERASED else None for name in names]

    # ------------------------------------------------------------------------------------------------ the word index

    def _remove_words(
        self, session: Session, head: Head, words: Mapping[Place, set[str]], places: Sequence[Place]
    ) -> None:
        """Remove the words of messages that are indexed."""
        if places and not self._driver.has_index:
            raise StoreError(
                f"{self._place} has an index with words of these messages, and was opened without it. Open it with "
                f"search, then erase. Nothing was erased."
            )
        for branch in sorted({place.branch for place in places}):
            gone = {place.position: words[place] for place in places if place.branch == branch}
            if session.rows(sql.MARK, key(head, branch))[0][1] != KEYS_VERSION:
                drop_words(session, key(head, branch))
                continue
            try:
                remove_words(session, key(head, branch), gone)
            except DamagedBody:
                drop_words(session, key(head, branch))

    def _prove_words(self, head: Head, places: Collection[Place]) -> None:
        """Read the index again, and drop it where it still has words of these messages: they were indexed by another
        version of the keys. A search builds it again.
        """
        if not self._driver.has_index:
            return
        left = self._driver.read(lambda session: list(self._remaining_words(session, head, places)))
        if left:
            self._driver.write(lambda session: _drop_words(session, head, {place.branch for place in left}))

    def _remaining_words(self, session: Session, head: Head, places: Collection[Place]) -> Iterator[Place]:
        """Yield the places of erased messages that have words in the index, or that a damaged index may hide."""
        indexed = indexed_places(session, head, places)
        for branch in sorted({place.branch for place in indexed}):
            positions = {place.position for place in indexed if place.branch == branch}
            try:
                held = holding_words(session, key(head, branch), positions)
            except DamagedBody:
                held = positions
            yield from (Place(branch, position) for position in sorted(held))


def _drop_words(session: Session, head: Head, branches: Collection[int]) -> None:
    session.scrub()
    for branch in sorted(branches):
        drop_words(session, key(head, branch))


def lock_tree(session: Session, head: Head) -> None:
    """Lock a tree: no other writer appends, commits, forks or indexes in it until the transaction ends."""
    session.rows(sql.LOCK_TREE, (head.tenant, head.root))
    session.rows(sql.LOCK_BRANCHES, (head.tenant, head.root))


def _drop_bodies(trees: Sequence[Row], session: Session) -> None:
    """Delete the bodies of these trees that no message has."""
    session.scrub()
    for tenant, root in trees:
        lock_tree(session, Head(tenant, "", root, 0))
        session.rows(sql.DROP_BODIES, (tenant, root, tenant, root))


def _ends(session: Session, head: Head) -> Ends:
    rows = session.rows(sql.HEADS, (head.tenant, head.root))
    return {branch: (position, number, erased) for branch, position, number, erased in rows}


def _is_complete(session: Session, head: Head, collected: _Collected) -> bool:
    """Return whether nothing changed since, and no new message has to be erased too."""
    tree, now = SqlTree(session, head), _ends(session, head)
    before = collected.heads
    if {branch: ends[1:] for branch, ends in now.items()} != {branch: ends[1:] for branch, ends in before.items()}:
        return False  # A fork, an edit, or another erasure.
    for branch, (position, *_) in now.items():
        last = before[branch][0]
        if position == last:
            continue
        if collected.needs_silence or any(
            row.id in collected.data.ids or (row.stamp.expanded and row.stamp.expanded.is_copy)
            for row in tree.rows(branch, last + 1)
        ):
            return False
        if any(hash in collected.large for _, hash in tree.large_of(branch, last)):
            return False
    return True


def indexed_places(session: Session, head: Head, places: Collection[Place]) -> list[Place]:
    """Return the messages among these that are in the word index."""
    marks: dict[int, int] = {}
    for branch in {place.branch for place in places}:
        for position, _ in session.rows(sql.MARK, key(head, branch)):
            marks[branch] = position
    return [at for at in places if at.position <= marks.get(at.branch, 0)]
