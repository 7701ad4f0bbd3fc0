"""List a whole SQL database: every branch, and the rows and names that belong to none; verify one conversation.

The census reads a page at a time, each in its own transaction, and remembers only the last key of a page. `orphans.py`
finds the rows that belong to nothing; `audit.py` computes the hashes.
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
from .orphans import Trees, orphans, trees_with_runs
from .rows import are_bytes
from .runs import read_runs, read_steps

__all__ = ["Census"]

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
