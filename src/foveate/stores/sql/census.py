"""List a whole SQL database: every branch, and the rows and names that belong to none; verify one conversation.

The census reads a page at a time, each in its own transaction, and remembers only the last key of a page. A statement
that looks for orphans reads a table in the order of its key and compares tenant and root with tenant and root, so a
distributed database can answer it too. It reads only positions and keys; `audit.py` computes the hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from ...errors import BadSetting, Damaged
from ...ports import Finding, Head, Orphan
from ..lineage import root_of
from .audit import audit
from .catalog import Catalog
from .driver import Driver, Row, Session
from .rows import are_bytes
from .runs import read_runs, read_steps

__all__ = ["Census", "Trees", "orphans", "trees_with_runs"]

_PAGE = 500
"""Branches, names or trees on one page."""
_BEFORE, _BEHIND = -(2**63), 2**63 - 1
"""Before and after all roots."""
_COUNTER = 0
"""A root without conversations: its row of `tree` numbers the places of a word index."""

_OF = " AND tenant = ?"
_TENANTS = "SELECT tenant, COUNT(*) FROM conversation GROUP BY tenant"
_BRANCHES = """
    SELECT tenant, root, branch, name, position, tip, seal, number, record, erased FROM branch
    WHERE (tenant, root, branch) > (?, ?, ?){of} ORDER BY tenant, root, branch LIMIT ?"""
_NAMES = """
    SELECT tenant, root, name, home, branch FROM conversation
    WHERE (tenant, root, name) > (?, ?, ?){of} ORDER BY tenant, root, name LIMIT ?"""
_NAME_OF = "SELECT name FROM branch WHERE tenant = ? AND root = ? AND branch = ?"
_TREES = "SELECT tenant, root, branches FROM tree WHERE (tenant, root) > (?, ?){of} ORDER BY tenant, root LIMIT ?"
_WITH_CATALOG = "SELECT tenant FROM prompt UNION SELECT tenant FROM action UNION SELECT tenant FROM binding"


class _Page(NamedTuple):
    entries: list[Head | Orphan]
    end: Row | None
    """The last key on the page; None if it was the last page."""


class Census:
    """Lists everything in a database, and verifies it."""

    def __init__(self, driver: Driver, catalog: Catalog) -> None:
        self._driver, self._catalog, self._place = driver, catalog, driver.place

    def tenants(self) -> dict[str, int]:
        return dict(sorted(self._driver.read(lambda session: session.rows(_TENANTS))))

    def verify(self, head: Head) -> list[Finding]:
        try:
            return self._driver.read(lambda session: list(audit(session, head, self._place)))
        except Damaged as error:
            return [Finding("database", str(error))]

    def census(self, tenant: str | None) -> Iterator[Head | Orphan]:
        """Yield the branches first, then the faults of names, trees and catalogs."""
        first = tenant or ""
        try:
            yield from self._paged(partial(_branches, tenant), (first, _BEFORE, _BEFORE))
            yield from self._paged(partial(_names, tenant), (first, _BEFORE, ""))
            yield from self._trees(tenant)
            yield from self._catalogs(tenant)
        except UnicodeEncodeError as error:  # The last key of a page is passed to the database again.
            raise Damaged(
                f"{self._place} has a tenant or a name that is no text ({error}); everything after it cannot be "
                f"listed. Restore a backup."
            ) from error

    def _paged(self, page: Callable[[Row, Session], _Page], after: Row) -> Iterator[Head | Orphan]:
        end: Row | None = after
        while end is not None:
            entries, end = self._driver.read(partial(page, end))
            yield from entries

    def _trees(self, tenant: str | None) -> Iterator[Orphan]:
        end: Row | None = (tenant or "", _BEFORE)
        while end is not None:
            faults, with_runs, end = self._driver.read(partial(_trees, tenant, end))
            yield from faults
            for owner, root in with_runs:
                yield from self._runs_in(Head(owner, f"tree {root}", root, 0))

    def _runs_in(self, tree: Head) -> Iterator[Orphan]:
        """Yield the first run or step of a tree that cannot be read."""
        try:
            for run in self._driver.read(lambda session: read_runs(session, tree)):
                self._driver.read(partial(_read_steps, tree, run.id))
        except Damaged as error:
            yield Orphan(tree.tenant, "runs", str(error))

    def _catalogs(self, tenant: str | None) -> Iterator[Orphan]:
        owners = self._driver.read(lambda session: session.rows(_WITH_CATALOG)) if tenant is None else [(tenant,)]
        for (owner,) in owners:
            for read in (self._catalog.prompts, self._catalog.actions, self._catalog.bindings):
                try:
                    read(owner)
                except (Damaged, BadSetting) as error:
                    yield Orphan(owner, "catalog", str(error))


def _branches(tenant: str | None, after: Row, session: Session) -> _Page:
    rows = _page(session, _BRANCHES, tenant, after)
    return _Page([_head(row) for row in rows], rows[-1][:3] if rows else None)


def _head(row: Row) -> Head:
    tenant, root, branch, name, position, tip, seal, number, record, erased = row
    if not are_bytes(tip, seal, record):  # `verify` reports that it cannot be read.
        return Head(tenant, name, root, branch)
    return Head(tenant, name, root, branch, position, tip.hex(), seal.hex(), number, record.hex(), erased)


def _names(tenant: str | None, after: Row, session: Session) -> _Page:
    rows = _page(session, _NAMES, tenant, after)
    entries: list[Head | Orphan] = []
    for owner, root, name, home, branch in rows:
        actual = session.rows(_NAME_OF, (owner, home, branch))
        if root != root_of(owner, name):
            problem = "its row has the wrong root, so it is never found"
        elif not actual:
            problem = f"it leads to branch {branch} of tree {home}, which is gone"
        elif actual[0][0] != name:
            problem = f"it leads to a conversation that is called {actual[0][0]!r}"
        else:
            continue
        entries.append(Orphan(owner, f"name {name!r}", problem))
    return _Page(entries, rows[-1][:3] if rows else None)


def _trees(tenant: str | None, after: Row, session: Session) -> tuple[list[Orphan], list[Row], Row | None]:
    """Return the faults on a page of trees, the trees with runs, and the end of the page."""
    rows = _page(session, _TREES, tenant, after)
    end = rows[-1][:2] if len(rows) == _PAGE else None
    upto = end if end is not None or tenant is None else (tenant, _BEHIND)
    trees = Trees(after, upto, {row[:2]: row[2] for row in rows if row[1] != _COUNTER})
    return list(orphans(session, trees)), trees_with_runs(session, trees), end


def _page(session: Session, statement: str, tenant: str | None, after: Row) -> list[Row]:
    if tenant is None:
        return session.rows(statement.format(of=""), (*after, _PAGE))
    return session.rows(statement.format(of=_OF), (*after, tenant, _PAGE))


def _read_steps(tree: Head, run: str, session: Session) -> None:
    read_steps(session, tree, run, 0)


_RANGE = "(x.tenant, x.root) > (?, ?){upto}"
_UPTO = " AND (x.tenant, x.root) <= (?, ?)"

_FAMILIES = f"""
    SELECT x.tenant, x.root, COUNT(*), MAX(x.branch), MIN(x.erased), MAX(x.erased) FROM branch x
    WHERE {_RANGE} GROUP BY x.tenant, x.root"""
_ERASURES = f"""
    SELECT x.tenant, x.root, COUNT(*), MAX(x.number) FROM erasure x WHERE {_RANGE} GROUP BY x.tenant, x.root"""
_WITHOUT_BRANCH = f"""
    SELECT x.tenant, x.root, x.branch, COUNT(*) FROM {{table}} x
    WHERE {_RANGE} AND NOT EXISTS (
        SELECT 1 FROM branch y WHERE y.tenant = x.tenant AND y.root = x.root AND y.branch = x.branch)
    GROUP BY x.tenant, x.root, x.branch ORDER BY x.tenant, x.root, x.branch"""
_WITHOUT_TREE = f"""
    SELECT x.tenant, x.root, COUNT(*) FROM {{table}} x
    WHERE {_RANGE} AND NOT EXISTS (SELECT 1 FROM tree y WHERE y.tenant = x.tenant AND y.root = x.root)
    GROUP BY x.tenant, x.root ORDER BY x.tenant, x.root"""
_WITHOUT_RUN = f"""
    SELECT x.tenant, x.root, x.run, COUNT(*) FROM step x
    WHERE {_RANGE} AND NOT EXISTS (
        SELECT 1 FROM run y WHERE y.tenant = x.tenant AND y.root = x.root AND y.id = x.run)
    GROUP BY x.tenant, x.root, x.run ORDER BY x.tenant, x.root, x.run"""
_UNUSED_BODIES = f"""
    SELECT x.tenant, x.root, x.hash FROM body x WHERE {_RANGE}
    EXCEPT
    SELECT x.tenant, x.root, x.body_hash FROM message x
    WHERE {_RANGE} AND x.body IS NULL AND x.body_hash IS NOT NULL
    ORDER BY 1, 2, 3"""
_WITH_RUNS = f"SELECT DISTINCT x.tenant, x.root FROM run x WHERE {_RANGE} ORDER BY x.tenant, x.root"

_OF_BRANCHES = {
    "message": "message",
    "record": "record of edits",
    "snapshot": "saved view",
    "indexed": "mark of the index of words",
    "claim": "claim",
}
"""Tables whose rows belong to a branch, and the name of a row."""
_OF_TREES = {"branch": "conversation", "run": "run", "erasure": "record of an erasure", "body": "large body"}
"""Tables whose rows belong to a tree."""


class Trees(NamedTuple):
    """A range of trees by tenant and root: those after a key, up to another key or to the end."""

    after: Row
    upto: Row | None
    counts: dict[Row, int]
    """The number of branches that each tree claims to have."""

    def rows(self, session: Session, statement: str, table: str = "") -> list[Row]:
        """Run a statement on these trees."""
        range = (*self.after, *(self.upto or ()))
        text = statement.format(upto=_UPTO if self.upto else "", table=table)
        return session.rows(text, range * text.count("(x.tenant, x.root) >"))


def orphans(session: Session, trees: Trees) -> Iterator[Orphan]:
    """Yield the rows of these trees that belong to nothing, and the trees whose counts are wrong."""
    yield from _families(session, trees)
    for table, what in _OF_TREES.items():
        for tenant, root, count in trees.rows(session, _WITHOUT_TREE, table):
            yield Orphan(tenant, _tree(root), f"there is no such tree, and {_of(count, what)} in it")
    for table, what in _OF_BRANCHES.items():
        for tenant, root, branch, count in trees.rows(session, _WITHOUT_BRANCH, table):
            where = f"branch {branch} of {_tree(root)}"
            yield Orphan(tenant, where, f"there is no such branch, and {_of(count, what)} on it")
    for tenant, root, run, count in trees.rows(session, _WITHOUT_RUN):
        where = f"run {run!r} of {_tree(root)}"
        yield Orphan(tenant, where, f"there is no such run, and {_of(count, 'step')} of it")
    for tenant, root, hash in trees.rows(session, _UNUSED_BODIES):
        where = f"body {hash.hex() if isinstance(hash, bytes) else hash!r} of {_tree(root)}"
        yield Orphan(tenant, where, "no message has it")


def trees_with_runs(session: Session, trees: Trees) -> list[Row]:
    """Return tenant and root of the trees with runs of agents."""
    return trees.rows(session, _WITH_RUNS)


def _families(session: Session, trees: Trees) -> Iterator[Orphan]:
    """Compare the counters: a tree counts its branches, a branch stores the newest erasure, and there are no gaps."""
    erasures = {(tenant, root): (count, last) for tenant, root, count, last in trees.rows(session, _ERASURES)}
    families = {(tenant, root): row for tenant, root, *row in trees.rows(session, _FAMILIES)}
    for (tenant, root), counted in trees.counts.items():
        count, last, oldest, newest = families.get((tenant, root), (0, 0, 0, 0))
        if count != counted or last != counted:
            problem = f"it has had {counted} branches, and there are {count}, the newest number {last}"
            yield Orphan(tenant, _tree(root), problem)
        stored = erasures.get((tenant, root), (0, 0))
        if stored[0] != stored[1] or (count and (oldest, newest) != (stored[1], stored[1])):
            problem = (
                f"its conversations know of {newest} erasures, and records are kept of {stored[0]}, the newest "
                f"number {stored[1]}"
            )
            yield Orphan(tenant, _tree(root), problem)


def _tree(root: int) -> str:
    return f"tree {root}"


def _of(count: int, what: str) -> str:
    """Return the count with its noun and verb: `a step lies`, `3 steps lie`."""
    if count == 1:
        return f"a {what} lies"
    first, of, rest = what.partition(" of ")
    many = f"{first[:-1]}ies" if first.endswith("y") else f"{first}s"
    return f"{count:,} {many}{of}{rest} lie"
