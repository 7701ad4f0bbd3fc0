"""Caches of values derived from texts, registered so that an erasure can clear them.

An erased text must not survive in a cache. Each cache registers itself here when it is created. Each cache limits its
own size. Clearing a cache costs time at the next use and changes no result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeVar
from weakref import ReferenceType, ref

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

__all__ = ["Cache", "cached", "clear_caches", "register"]

R = TypeVar("R")


class Cache(Protocol):
    """An object that caches values derived from texts."""

    def cache_clear(self) -> None:
        """Remove all cached values."""
        ...


_registered: dict[int, ReferenceType[Cache]] = {}
"""By identity. A plain dictionary: one thread can add an entry while another thread iterates over a copy."""


def cached(size: int) -> Callable[[Callable[..., R]], _lru_cache_wrapper[R]]:
    """Return a decorator that caches the newest `size` results of a function until `clear_caches`.

    Use it for functions of messages. Functions of settings may use `functools.cache`.
    """

    def decorate(function: Callable[..., R]) -> _lru_cache_wrapper[R]:
        cache = lru_cache(size)(function)
        register(cache)
        return cache

    return decorate


def register(cache: Cache) -> None:
    """Let `clear_caches` clear this cache as long as it exists."""
    key = id(cache)
    _registered[key] = ref(cache, lambda _: _registered.pop(key, None))


def clear_caches() -> None:
    """Clear all registered caches."""
    for reference in list(_registered.values()):
        cache = reference()
        if cache is not None:
            cache.cache_clear()
