"""Functions that remember what they were asked, and whatever else keeps texts only to be quick.

What was erased must not live on in a cache, wherever that is held, so each is noted here when it is made. Each is
bounded by itself. Emptying one costs time, the next time, and changes nothing.
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
    """Whatever keeps what it worked out from texts."""

    def cache_clear(self) -> None:
        """Let go of all of it."""
        ...


_noted: dict[int, ReferenceType[Cache]] = {}
"""By identity. A plain dictionary: what is added by one thread while another one reads it all disturbs nobody."""


def cached(size: int) -> Callable[[Callable[..., R]], _lru_cache_wrapper[R]]:
    """A function that remembers its newest `size` answers, until `clear_caches`. For what is made of messages; what is
    made
    of settings alone may use `functools.cache`.
    """

    def decorated(function: Callable[..., R]) -> _lru_cache_wrapper[R]:
        remembering = lru_cache(size)(function)
        register(remembering)
        return remembering

    return decorated


def register(remembering: Cache) -> None:
    """Let it be emptied by `clear_caches`, as long as it lives."""
    key = id(remembering)
    _noted[key] = ref(remembering, lambda _: _noted.pop(key, None))


def clear_caches() -> None:
    """Empty all that was noted."""
    for noted in list(_noted.values()):
        remembering = noted()
        if remembering is not None:
            remembering.cache_clear()
