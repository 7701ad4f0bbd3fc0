"""A store that lacks some capabilities, made usable: it answers that it has none of these, or raises BadSetting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, cast

from ..errors import BadSetting
from .store import (
    Audits,
    Database,
    Erases,
    HasCatalog,
    Imports,
    KeepsRuns,
    Lists,
    Locks,
    Rewinds,
    SavesViews,
    Searches,
    Store,
)
from .values import Listed

__all__ = ["complete", "has_words"]

_CAPABILITIES: tuple[type, ...] = (
    *(SavesViews, Lists, Rewinds, Searches, KeepsRuns, Locks, Erases, Audits, Imports, HasCatalog),
)
_METHODS: dict[str, type] = {
    name: kind for kind in _CAPABILITIES for name in vars(kind) if callable(vars(kind)[name]) and name[0] != "_"
}
"""The methods of all capabilities."""


def complete(store: Store) -> Database:
    """Return the store itself if it has all capabilities, else a store that raises BadSetting for the missing ones.

    A store that saves no views, keeps no runs and cannot erase is read as one in which there are none. One that cannot
    list by time is listed by name.
    """
    if isinstance(store, _Completed) or all(hasattr(store, name) for name in _METHODS):
        return cast("Database", store)
    return cast("Database", _Completed(store))


def has_words(name: str, words: Sequence[str]) -> bool:
    """Return whether a name contains all these words, as `Lists.recent` means it."""
    return all(word in name or word.lower() in name.lower() for word in words)


class _Completed:
    """A store without some capabilities."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._store.close()

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._store, name)
        except AttributeError:
            if name not in _METHODS:
                raise
        if name == "recent":
            return self._recent
        if name in _EMPTY:
            return _EMPTY[name]
        kind = type(self._store).__name__
        raise BadSetting(
            f"{kind} has no method {name}(), which belongs to the capability ports.{_METHODS[name].__name__}. Add it "
            f"to {kind}, or use one of foveate's own stores (memory:, sqlite:///PATH, postgresql://...)."
        )

    def _recent(
        self, tenant: str, *, words: Sequence[str] = (), first: int = 0, limit: int = 50
    ) -> tuple[list[Listed], int]:
        """List by name, for a store that cannot list by time."""
        names = [name for name in self._store.names(tenant) if has_words(name, words)]
        heads = [self._store.open(tenant, name, create=False) for name in names[first : first + limit]]
        return [Listed(head.name, head.position, head.number, 0) for head in heads], len(names)


_EMPTY: dict[str, Callable[..., Any]] = {
    "snapshot": lambda head: None,
    "save_snapshot": lambda head, position, number, body, view=(): None,
    "saved_view": lambda head, position, number: (),
    "runs": lambda head: [],
    "steps": lambda head, run, after=0: [],
    "erasures": lambda head: [],
    "find_residue": lambda head: (0, []),
    **dict.fromkeys(("actions", "bindings", "prompts"), lambda tenant, agent="": []),
}
"""Answers of a store that cannot have any of these."""
