"""What imports began and did not finish: found by its names, and taken away where nobody wants to go on with it.

An import writes under names of its own until a tree is whole. Made again with the same file, it goes on there; one that
is never made again leaves them behind. Nothing that has a name of somebody's own lies in such a tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..ports import IMPORTING, Database, Head

__all__ = ["Unfinished", "drop_unfinished", "unfinished"]


class Unfinished(Struct, frozen=True):
    """A tree of forks that an import did not finish."""

    tenant: str
    names: tuple[str, ...]
    """Of its conversations, which begin with `~importing `."""
    messages: int
    """How many were written, those that forks share once."""


def unfinished(store: Database, *, tenant: str | None = None) -> Iterator[Unfinished]:
    """What imports left unfinished, of one tenant or of all. An import that is going on now is told too."""
    return (told for told, _ in _found(store, tenant))


def drop_unfinished(store: Database, *, tenant: str | None = None) -> list[Unfinished]:
    """Take away what imports left unfinished, and tell what it was.

    An import that is going on now fails by it, and has to be made again; nothing that had been imported whole is
    touched. Raises BadSetting where somebody gave a conversation of such a tree another name.
    """
    gone = []
    for told, head in _found(store, tenant):
        store.discard(head, IMPORTING)
        gone.append(told)
    return gone


def _found(store: Database, tenant: str | None) -> Iterator[tuple[Unfinished, Head]]:
    for whose in store.tenants() if tenant is None else (tenant,):
        told: set[str] = set()
        for name in store.names(whose):
            if name.startswith(IMPORTING) and name not in told:
                tree = store.branches(store.open(whose, name, create=False))
                names = tuple(branch.head.name for branch in tree)
                told.update(names)
                messages = sum(branch.head.position - branch.position for branch in tree)
                yield Unfinished(whose, names, messages), tree[0].head
