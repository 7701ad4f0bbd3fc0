"""Find rows that belong to nothing in a range of trees: to no branch, no tree, no run or no message.

Each statement reads a table in the order of its key and compares tenant and root with tenant and root, so a distributed
database can answer it too. Only positions and keys are read; `verify` checks the content.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...ports import Orphan
from .driver import Row, Session

__all__ = ["Trees", "orphans", "trees_with_runs"]

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
