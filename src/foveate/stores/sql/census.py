"""A census of a whole SQL database: every branch there is, and the rows and names that belong to none.

Reads a page at a time, each in a transaction of its own, and keeps of a page nothing but where it ended: the next one
begins behind that key. What in a range of trees belongs to nothing is told by `strays.py`; nothing is hashed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from ...errors import BadSetting, Damaged
from ...ports import Head, Stray
from ..lineage import root_of
from .catalog import SqlCatalog
from .driver import Driver, Row, Session
from .rows import are_bytes
from .runs import SqlRuns, read_runs, read_steps
from .strays import Trees, strays, with_runs

__all__ = ["SqlCensus"]

_PAGE = 500
"""Branches, names or trees of one page."""
_BEFORE, _BEHIND = -(2**63), 2**63 - 1
"""All roots."""
_COUNTER = 0
"""The root of no conversation: its row of `tree` numbers the places of an index of words."""

_OF = " AND tenant = ?"
_TENANTS = "SELECT tenant, COUNT(*) FROM conversation GROUP BY tenant"
_BRANCHES = """
    SELECT tenant, root, branch, name, position, tip, seal, number, record, erased FROM branch
    WHERE (tenant, root, branch) > (?, ?, ?){of} ORDER BY tenant, root, branch LIMIT ?"""
_NAMES = """
    SELECT tenant, root, name, home, branch FROM conversation
    WHERE (tenant, root, name) > (?, ?, ?){of} ORDER BY tenant, root, name LIMIT ?"""
_CALLED = "SELECT name FROM branch WHERE tenant = ? AND root = ? AND branch = ?"
_TREES = "SELECT tenant, root, branches FROM tree WHERE (tenant, root) > (?, ?){of} ORDER BY tenant, root LIMIT ?"
_SHOPS = "SELECT tenant FROM prompt UNION SELECT tenant FROM action UNION SELECT tenant FROM binding"


class _Page(NamedTuple):
    found: list[Head | Stray]
    end: Row | None
    """The last key on it; None where nothing follows."""


class SqlCensus(SqlRuns, SqlCatalog):
    """The part of the SQL store that looks at all there is."""

    _driver: Driver

    def tenants(self) -> dict[str, int]:
        return dict(sorted(self._driver.read(lambda session: session.rows(_TENANTS))))

    def census(self, tenant: str | None = None) -> Iterator[Head | Stray]:
        """See `Store.census`: the branches come first, then names, trees and what is set up for agents."""
        whose = tenant or ""
        try:
            yield from self._paged(partial(_branches, tenant), (whose, _BEFORE, _BEFORE))
            yield from self._paged(partial(_names, tenant), (whose, _BEFORE, ""))
            yield from self._trees(tenant)
            yield from self._catalogs(tenant)
        except UnicodeEncodeError as error:  # Where a page ends is handed back to the database.
            raise Damaged(
                f"{self._driver.place} has a tenant or a name that is no text ({error}); what comes after it cannot be "
                f"listed. Restore a backup."
            ) from error

    def _paged(self, page: Callable[[Row, Session], _Page], after: Row) -> Iterator[Head | Stray]:
        end: Row | None = after
        while end is not None:
            found, end = self._driver.read(partial(page, end))
            yield from found

    def _trees(self, tenant: str | None) -> Iterator[Stray]:
        end: Row | None = (tenant or "", _BEFORE)
        while end is not None:
            found, running, end = self._driver.read(partial(_trees, tenant, end))
            yield from found
            for whose, root in running:
                yield from self._runs_in(Head(whose, f"tree {root}", root, 0))

    def _runs_in(self, tree: Head) -> Iterator[Stray]:
        """A run or a step that cannot be read, which else only whoever asks for it is told."""
        try:
            for run in self._driver.read(lambda session: read_runs(session, tree)):
                self._driver.read(partial(_read_steps, tree, run.id))
        except Damaged as error:
            yield Stray(tree.tenant, "runs", str(error))

    def _catalogs(self, tenant: str | None) -> Iterator[Stray]:
        shops = self._driver.read(lambda session: session.rows(_SHOPS)) if tenant is None else [(tenant,)]
        for (shop,) in shops:
            for read in (self.prompts, self.actions, self.bindings):
                try:
                    read(shop)
                except (Damaged, BadSetting) as error:
                    yield Stray(shop, "catalog", str(error))


def _branches(tenant: str | None, after: Row, session: Session) -> _Page:
    rows = _page(session, _BRANCHES, tenant, after)
    return _Page([_head(row) for row in rows], rows[-1][:3] if rows else None)


def _head(row: Row) -> Head:
    tenant, root, branch, name, position, tip, seal, number, record, erased = row
    if not are_bytes(tip, seal, record):  # `verify` tells that it cannot be read.
        return Head(tenant, name, root, branch)
    return Head(tenant, name, root, branch, position, tip.hex(), seal.hex(), number, record.hex(), erased)


def _names(tenant: str | None, after: Row, session: Session) -> _Page:
    rows = _page(session, _NAMES, tenant, after)
    found: list[Head | Stray] = []
    for whose, root, name, home, branch in rows:
        called = session.rows(_CALLED, (whose, home, branch))
        if root != root_of(whose, name):
            found.append(Stray(whose, f"name {name!r}", "it does not lie where it is looked for, so nobody finds it"))
        elif not called:
            found.append(Stray(whose, f"name {name!r}", f"it leads to branch {branch} of tree {home}, which is gone"))
        elif called[0][0] != name:
            problem = f"it leads to a conversation that is called {called[0][0]!r}"
            found.append(Stray(whose, f"name {name!r}", problem))
    return _Page(found, rows[-1][:3] if rows else None)


def _trees(tenant: str | None, after: Row, session: Session) -> tuple[list[Stray], list[Row], Row | None]:
    """What is wrong in a page of trees, those of them in which agents ran, and where the page ends."""
    rows = _page(session, _TREES, tenant, after)
    end = rows[-1][:2] if len(rows) == _PAGE else None
    upto = end if end is not None or tenant is None else (tenant, _BEHIND)
    trees = Trees(after, upto, {row[:2]: row[2] for row in rows if row[1] != _COUNTER})
    return list(strays(session, trees)), with_runs(session, trees), end


def _page(session: Session, statement: str, tenant: str | None, after: Row) -> list[Row]:
    if tenant is None:
        return session.rows(statement.format(of=""), (*after, _PAGE))
    return session.rows(statement.format(of=_OF), (*after, tenant, _PAGE))


def _read_steps(tree: Head, run: str, session: Session) -> None:
    read_steps(session, tree, run, 0)
