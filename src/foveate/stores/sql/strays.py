"""Which rows of a range of trees belong to nothing: of no branch, no tree, no run, or a body that no message has.

Each statement reads a table in the order of its key and compares tenant and root with tenant and root, so a database
that lies on several machines can answer it too. They look at many trees at once, so they stand here and not with those
of a turn. It looks at places alone: what rows say is for `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...ports import Stray
from .driver import Row, Session

__all__ = ["Trees", "strays", "with_runs"]

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
"""Tables whose rows belong to a branch, and what a row is called."""
_OF_TREES = {"branch": "conversation", "run": "run", "erasure": "record of an erasure", "body": "large body"}
"""Tables whose rows belong to a tree."""


class Trees(NamedTuple):
    """A range of trees, by tenant and root: those behind one, up to another or to the very end."""

    after: Row
    upto: Row | None
    counts: dict[Row, int]
    """Of those that there are, how many branches each is said to have."""

    def rows(self, session: Session, statement: str, table: str = "") -> list[Row]:
        """What a statement says of it."""
        range = (*self.after, *(self.upto or ()))
        text = statement.format(upto=_UPTO if self.upto else "", table=table)
        return session.rows(text, range * text.count("(x.tenant, x.root) >"))


def strays(session: Session, trees: Trees) -> Iterator[Stray]:
    """Whatever in these trees belongs to nothing, and trees that are not as they say."""
    yield from _families(session, trees)
    for table, what in _OF_TREES.items():
        for tenant, root, count in trees.rows(session, _WITHOUT_TREE, table):
            yield Stray(tenant, _tree(root), f"there is no such tree, and {_of(count, what)} in it")
    for table, what in _OF_BRANCHES.items():
        for tenant, root, branch, count in trees.rows(session, _WITHOUT_BRANCH, table):
            where = f"branch {branch} of {_tree(root)}"
            yield Stray(tenant, where, f"there is no such branch, and {_of(count, what)} on it")
    for tenant, root, run, count in trees.rows(session, _WITHOUT_RUN):
        where = f"run {run!r} of {_tree(root)}"
        yield Stray(tenant, where, f"there is no such run, and {_of(count, 'step')} of it")
    for tenant, root, hash in trees.rows(session, _UNUSED_BODIES):
        where = f"body {hash.hex() if isinstance(hash, bytes) else hash!r} of {_tree(root)}"
        yield Stray(tenant, where, "no message has it")


def with_runs(session: Session, trees: Trees) -> list[Row]:
    """Tenant and root of those in which agents ran."""
    return trees.rows(session, _WITH_RUNS)


def _families(session: Session, trees: Trees) -> Iterator[Stray]:
    """A tree counts its branches, and each of these knows the newest erasure: all are numbered without gaps."""
    erasures = {(tenant, root): (count, last) for tenant, root, count, last in trees.rows(session, _ERASURES)}
    families = {(tenant, root): row for tenant, root, *row in trees.rows(session, _FAMILIES)}
    for (tenant, root), said in trees.counts.items():
        count, last, oldest, newest = families.get((tenant, root), (0, 0, 0, 0))
        if count != said or last != said:
            problem = f"it has had {said} branches, and there are {count}, the newest number {last}"
            yield Stray(tenant, _tree(root), problem)
        kept = erasures.get((tenant, root), (0, 0))
        if kept[0] != kept[1] or (count and (oldest, newest) != (kept[1], kept[1])):
            problem = (
                f"its conversations know of {newest} erasures, and records are kept of {kept[0]}, the newest "
                f"number {kept[1]}"
            )
            yield Stray(tenant, _tree(root), problem)


def _tree(root: int) -> str:
    return f"tree {root}"


def _of(count: int, what: str) -> str:
    """How many there are, as the end of a sentence says it."""
    if count == 1:
        return f"a {what} lies"
    first, of, rest = what.partition(" of ")
    many = f"{first[:-1]}ies" if first.endswith("y") else f"{first}s"
    return f"{count:,} {many}{of}{rest} lie"
