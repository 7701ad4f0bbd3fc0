"""The SQL store: the Store protocol in terms of named statements and a driver.

It knows what the tables mean and nothing of any one database. A write packs its bodies before its transaction begins,
in the thread that calls, so that locks are held as shortly as may be; then it states what it expects to find, and
where it finds something else it writes nothing.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from msgspec import structs

from ...core import ids as identity
from ...core.edits import Record
from ...errors import BadSetting, Damaged, NoSuchConversation, StoreError
from ...ports import Appended, Branch, Clock, Finding, Found, Head
from .. import lineage
from ..checks import (
    append_conflict,
    check_held,
    check_keys,
    check_names,
    check_point,
    check_record,
    check_rows,
    commit_conflict,
    taken,
)
from ..codec import Codec, DamagedBody, pack, ready, unpack
from ..lineage import Lineage
from . import audit as sql_audit
from . import statements as sql
from .bulk import SqlBulk
from .catalog import SqlCatalog
from .census import SqlCensus
from .driver import Driver, Session
from .erasing import SqlErasing
from .migrate import bring_up_to_date
from .rows import (
    are_bytes,
    check_beyond,
    key,
    link_at,
    message_values,
    read_branch,
    read_messages,
    read_records,
    record_at,
)
from .runs import SqlRuns, asked_by
from .search import Searching
from .turns import SqlTurns, beyond

__all__ = ["SqlStore"]

_log = logging.getLogger(__name__)

_ID = re.compile(r"[0-9a-f]{40}")
_LOCATE_MAX = 200
"""Ids looked up by one statement."""


class SqlStore(SqlTurns, SqlBulk, SqlCensus, SqlErasing, SqlRuns, SqlCatalog):
    """Conversations in a SQL database. Safe to share between threads; a context manager that closes itself.

    `codec="zstd"` writes large bodies with zstd, which needs `compression.zstd` or the `zstandard` package; what was
    written either way is read either way. `clock` dates migrations.
    """

    def __init__(self, driver: Driver, *, codec: Codec = "zlib", clock: Clock | None = None) -> None:
        ready(codec)
        self._driver = driver
        self._codec = codec
        self._crowded = {}
        try:
            bring_up_to_date(driver, clock or (lambda: time.time_ns() // 1_000_000))
        except BaseException:
            driver.close()
            raise
        self._searching = Searching(driver, driver.words) if driver.words else None

    def open(self, tenant: str, name: str, *, create: bool = True) -> Head:
        check_keys(tenant, name)
        head = self._driver.read(lambda session: self._find(session, tenant, name))
        if head is None and create:
            try:
                head = self._driver.write(lambda session: _begin(session, tenant, name))
            except BadSetting:  # Another writer began it a moment ago.
                head = self._driver.read(lambda session: self._find(session, tenant, name))
        if head is None:
            raise NoSuchConversation(name, self._driver.place)
        return head

    def append(self, head: Head, rows: Sequence[Appended], *, owner: str = "") -> Head:
        check_rows(head, rows)
        values = [message_values(head, row, pack(row.body, self._codec)) for row in rows]
        messages = [message for message, _ in values]
        # In one order for all, so that no two writers of a tree wait for each other.
        bodies = sorted(body for _, body in values if body)
        tip = rows[-1] if rows else head
        ends = tip.position, (rows[-1].id if rows else head.tip), tip.seal

        def work(session: Session) -> Head:
            expected = head.name, head.position, bytes.fromhex(head.tip), bytes.fromhex(head.seal)
            written = ends[0], bytes.fromhex(ends[1]), bytes.fromhex(ends[2])
            advance = sql.ADVANCE, (*written, *key(head), *expected)
            (found,) = asked_by(session, head, owner, self._driver.place, advance)
            if not found:
                raise append_conflict(head, self._now(session, head))
            number, record, erased = found[0]
            self._check_same(session, head, structs.replace(head, number=number, record=record.hex(), erased=erased))
            if bodies:
                session.each(sql.ADD_BODY, bodies)
            session.each(sql.ADD_MESSAGE, messages)
            return Head(head.tenant, head.name, head.root, head.branch, *ends, number, record.hex(), head.erased)

        return self._driver.write(work)

    def commit(self, head: Head, record: Record, record_id: str) -> Head:
        stored = pack(check_record(head, record, record_id), self._codec)
        id = bytes.fromhex(record_id)

        def work(session: Session) -> Head:
            expected = head.name, head.number, bytes.fromhex(head.record), head.erased
            found = session.rows(sql.COMMIT, (record.last, id, *key(head), *expected))
            if not found:
                raise commit_conflict(head, self._now(session, head))
            position, tip, seal = found[0]
            self._check_same(session, head, structs.replace(head, position=position, tip=tip.hex(), seal=seal.hex()))
            session.rows(sql.ADD_RECORD, (*key(head), record.first, id, stored))
            ends = position, tip.hex(), seal.hex(), record.last, record_id, head.erased
            return Head(head.tenant, head.name, head.root, head.branch, *ends)

        now = self._driver.write(work)
        self._keep_up(now)
        return now

    def messages(self, head: Head, first: int, last: int) -> list[Appended]:
        return self._read_runs(head, [(first, last)])

    def pick(self, head: Head, positions: Sequence[int]) -> list[Appended]:
        return self._read_runs(head, list(lineage.runs(positions)))

    def locate(self, head: Head, ids: Sequence[str]) -> dict[str, int]:
        wanted = {bytes.fromhex(id): id for id in ids if _ID.fullmatch(id)}
        prefixes = sorted({id[:8] for id in wanted})

        def work(session: Session) -> dict[str, int]:
            _, family = self._branch(session, head)
            parts = list(lineage.position_ranges(family, head.branch, 1, head.position))
            found = {}
            for start in range(0, len(prefixes), _LOCATE_MAX):
                some = prefixes[start : start + _LOCATE_MAX]
                for id, branch, position in session.rows(sql.locate(len(some)), (head.tenant, head.root, *some)):
                    here = any(part.branch == branch and part.first <= position <= part.last for part in parts)
                    if here and id in wanted:
                        found[wanted[id]] = position
            return found

        return self._driver.read(work)

    def search(self, head: Head, query: str, limit: int = 20) -> list[Found]:
        if self._searching is None:
            raise StoreError(
                f"{self._driver.place} keeps no index of words: it was opened with search off, or its SQLite was built "
                f"without FTS5. Read the history instead."
            )
        return self._searching.search(head, query, limit)

    def records(self, head: Head, after: int = 0) -> list[tuple[str, Record]]:
        def work(session: Session) -> list[tuple[str, Record]]:
            _, family = self._branch(session, head)
            return list(read_records(session, head, family, max(after, 0)))

        return self._driver.read(work)

    def fork(self, head: Head, name: str, position: int, number: int) -> Head:
        check_keys(head.tenant, name)
        check_point(head, position, number)

        def work(session: Session) -> Head:
            now, family = self._branch(session, head)
            fork = _leave(session, structs.replace(head, erased=now.erased), family, name, position, number)
            _take_name(session, fork)
            return fork

        return self._driver.write(work)

    def repoint(self, head: Head, position: int, number: int, keep: str) -> Head:
        check_keys(head.tenant, keep)
        check_point(head, position, number)

        def work(session: Session) -> Head:
            chains = head.position, bytes.fromhex(head.tip), head.number, bytes.fromhex(head.record)
            found = session.rows(sql.RENAME, (keep, *key(head), head.name, *chains))
            if not found:
                now = self._now(session, head)
                same = (now.name, now.position, now.tip) == (head.name, head.position, head.tip)
                raise commit_conflict(head, now) if same else append_conflict(head, now)
            _take_name(session, Head(head.tenant, keep, head.root, head.branch))
            given = structs.replace(head, erased=found[0][1])
            fork = _leave(session, given, lineage.decode(found[0][0]), head.name, position, number)
            place = head.tenant, lineage.root_of(head.tenant, head.name), head.name
            if not session.rows(sql.POINT_NAME, (fork.branch, *place)):
                raise Damaged(f"No row leads to {head.name!r} by its name. Run `verify`.")
            return fork

        return self._driver.write(work)

    def branches(self, head: Head) -> list[Branch]:
        def work(session: Session) -> list[Branch]:
            self._now(session, head)
            tree = session.rows(sql.TREE, (head.tenant, head.root))
            heads = [Head(head.tenant, name, head.root, branch) for branch, name in tree]
            return [lineage.branch_of(*self._branch(session, one)) for one in heads]

        return self._driver.read(work)

    def rename(self, tenant: str, names: Mapping[str, str]) -> None:
        check_names(tenant, names)

        def work(session: Session) -> None:
            for old, new in sorted(names.items()):
                found = session.rows(sql.DROP_NAME, (tenant, lineage.root_of(tenant, old), old))
                if not found:
                    raise NoSuchConversation(old, self._driver.place)
                head = Head(tenant, new, *found[0])
                _take_name(session, head)
                if not session.rows(sql.SAY_NAME, (new, *key(head), old)):
                    raise Damaged(f"The name {old!r} leads to a branch that has another one. Run `verify`.")

        self._driver.write(work)

    def snapshot(self, head: Head) -> tuple[int, int, bytes] | None:
        def work(session: Session) -> tuple[int, int, bytes] | None:
            _, family = self._branch(session, head)
            newest = None
            for branch, last, newest_edit in [*family, (head.branch, head.position, head.number)]:
                for position, number, digest, stored in session.rows(sql.SNAPSHOT, key(head, branch)):
                    before = position <= min(last, head.position) and number <= min(newest_edit, head.number)
                    if before and (newest is None or newest[:2] <= (position, number)):
                        body = _intact(digest, stored)
                        newest = newest if body is None else (position, number, body)
            return newest

        return self._driver.read(work)

    def save_snapshot(self, head: Head, position: int, number: int, body: bytes) -> None:
        check_point(head, position, number)
        stored = bytes.fromhex(identity.body_hash(body)), pack(body, self._codec)

        def work(session: Session) -> None:
            self._now(session, head)
            if session.rows(sql.HOLD, (*key(head), head.erased)):  # Else it may show what was erased since.
                session.rows(sql.SAVE_SNAPSHOT, (*key(head), position, number, *stored))

        self._driver.write(work)

    def names(self, tenant: str) -> list[str]:
        return sorted(name for (name,) in self._driver.read(lambda session: session.rows(sql.NAMES, (tenant,))))

    def verify(self, head: Head) -> list[Finding]:
        try:
            return self._driver.read(lambda session: list(sql_audit.audit(session, head, self._driver.place)))
        except Damaged as error:
            return [Finding("database", str(error))]

    def check_database(self) -> tuple[list[Finding], list[str]]:
        return self._driver.check()

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --------------------------------------------------------------------------------------------------- helpers

    def _find(self, session: Session, tenant: str, name: str) -> Head | None:
        for home, branch in session.rows(sql.FIND, (tenant, lineage.root_of(tenant, name), name)):
            try:
                return self._now(session, Head(tenant, name, home, branch))
            except NoSuchConversation as error:
                raise Damaged(f"The name {name!r} leads to a branch that is gone. Run `verify`.") from error
        return None

    def _keep_up(self, head: Head) -> None:
        """Let the index of words catch up a little. What was committed stays committed, whatever happens here."""
        if self._searching is not None:
            try:
                self._searching.keep_up(head)
            except Exception:
                _log.debug("the index of words of %r stays behind", head.name, exc_info=True)

    def _branch(self, session: Session, head: Head) -> tuple[Head, Lineage]:
        now, family = read_branch(session, head, self._driver.place)
        check_held(head, now)
        return now, family

    def _now(self, session: Session, head: Head) -> Head:
        return self._branch(session, head)[0]

    def _check_same(self, session: Session, head: Head, now: Head) -> None:
        """Raises StoreRolledBack where the chain that is not written to does not run through the head: the store lost
        some of
        what it had, and nothing is to be added to the rest.
        """
        check_held(head, now)
        ends = (now.position, now.tip, now.number, now.record)
        if ends != (head.position, head.tip, head.number, head.record):
            check_beyond(head, now, *session.ask(*beyond(head, 1, 1)))

    def _read_runs(self, head: Head, runs: Sequence[tuple[int, int]]) -> list[Appended]:
        def work(session: Session) -> list[Appended]:
            _, family = self._branch(session, head)
            found: list[Appended] = []
            for first, last in runs:
                clipped = max(first, 1), min(last, head.position)
                if clipped[0] <= clipped[1]:
                    found.extend(read_messages(session, head, family, *clipped))
            return found

        return self._driver.read(work)


def _begin(session: Session, tenant: str, name: str) -> Head:
    """A new conversation, the first of its tree."""
    root = lineage.root_of(tenant, name)
    branch = session.rows(sql.NEW_BRANCH, (tenant, root))[0][0]
    # A conversation that had this name before, and has another one now, may have left its tree here.
    head = Head(tenant, name, root, branch, erased=session.rows(sql.LAST_ERASURE, (tenant, root))[0][0])
    _take_name(session, head)
    _add_branch(session, head, ())
    return head


def _leave(session: Session, head: Head, family: Lineage, name: str, position: int, number: int) -> Head:
    """A new branch that shares this much of the head's."""
    tip, seal = link_at(session, head, family, position)
    record, last = record_at(session, head, family, number)
    if last != number:
        raise BadSetting(f"Edit {number} of {head.name!r} is in the middle of a record; fork where a record ends.")
    branch = session.rows(sql.NEW_BRANCH, (head.tenant, head.root))[0][0]
    # Asked once the tree is held: what was erased since the head was read would else be unknown to the new branch.
    ((erased,),) = session.rows(sql.LAST_ERASURE, (head.tenant, head.root))
    fork = Head(head.tenant, name, head.root, branch, position, tip, seal, number, record, erased)
    _add_branch(session, fork, lineage.descend(family, head.branch, position, number))
    return fork


def _add_branch(session: Session, head: Head, family: Lineage) -> None:
    chains = head.position, bytes.fromhex(head.tip), bytes.fromhex(head.seal), head.number, bytes.fromhex(head.record)
    session.rows(sql.ADD_BRANCH, (*key(head), head.name, lineage.encode(family), *chains, head.erased))


def _take_name(session: Session, head: Head) -> None:
    """Let the head's name, which must be free, stand for its branch."""
    row = head.tenant, lineage.root_of(head.tenant, head.name), head.name, head.root, head.branch
    if not session.rows(sql.TAKE_NAME, row):
        raise taken(head.name)


def _intact(digest: Any, stored: Any) -> bytes | None:
    """A snapshot's bytes, or None where they are damaged: losing one loses time, never data."""
    if not are_bytes(digest, stored):
        return None
    try:
        body = unpack(stored)
    except DamagedBody:
        return None
    return body if identity.body_hash(body) == digest.hex() else None
