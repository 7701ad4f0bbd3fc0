"""Caches of values derived from texts, registered so that an erasure can clear them.

An erased text must not survive in a cache. Each cache registers itself here when it is created. Each cache limits its
own size. Clearing a cache costs time at the next use and changes no result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache, wraps
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from weakref import ReferenceType, ref

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

__all__ = [
    "Cache",
    "cached",
    "cached_by_text",
    "cached_on_entry",
    "clear_caches",
    "known_form",
    "newest_forms",
    "register",
    "remember_form",
]

_FORMS_MAX = 4
"""Values of one name that an entry holds: a plan tries edits, so that views alternate."""
_SHORT = 400
"""Characters of a text that a cache may hold."""
_LENGTHS = (2**12, 2**15, 2**18, 2**21)
"""The most characters of a text of each kind; the last kind has no limit."""

_MISSING = object()

F = TypeVar("F", bound=Callable[..., Any])
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


class HasMemo(Protocol):
    """An entry of a view. It holds few values."""

    def recall(self, key: object, default: Any = None) -> Any:
        """Return the value that `remember` stored under this key."""
        ...

    def remember(self, key: object, value: object) -> None:
        """Store a value derived from the entry, which exists as long as the entry does."""
        ...


def cached_on_entry(function: F) -> F:
    """Decorate a function of an entry, its first argument: the entry holds the results. They must not refer to it."""

    @wraps(function)
    def call(entry: HasMemo, *rest: object) -> Any:
        key = (function, *rest) if rest else function
        result = entry.recall(key, _MISSING)
        if result is _MISSING:
            entry.remember(key, result := function(entry, *rest))
        return result

    return cast(F, call)


def newest_forms(entry: HasMemo, name: object, key: object, make: Callable[[], R]) -> R:
    """Return the value that `make` gives for `key`. The entry holds the values of the newest few keys of this name.

    Keys may refer to entries before this one in its view, and values to no entry of it: references must not form a
    cycle.
    """
    known: R = known_form(entry, name, key, _MISSING)
    if known is not _MISSING:
        return known
    value = make()
    remember_form(entry, name, key, value)
    return value


def remember_form(entry: HasMemo, name: object, key: object, value: object) -> None:
    """Let an entry hold the value of `newest_forms` for `key`."""
    entry.remember(name, (key, value, *entry.recall(name, ())[: 2 * (_FORMS_MAX - 1)]))


def known_form(entry: HasMemo, name: object, key: object, default: Any = None) -> Any:
    """Return the value that `newest_forms` stored for `key`."""
    forms: tuple[Any, ...] = entry.recall(name, ())  # Keys and values in turn: there may be many entries.
    for index in range(0, len(forms), 2):
        if forms[index] == key:
            return forms[index + 1]
    return default


def cached_by_text(size: int, *, characters: int | None = None) -> Callable[[F], F]:
    """Return a decorator like `cached` for functions of a long text, the first argument.

    The cache holds a hash of it, so that the texts of closed conversations leave the memory. A short text is held.

    `characters`: for results that grow with their text, about the most characters of all texts of one kind of length.
    Fewer results are held for longer texts, and at least one.
    """

    def decorate(function: F) -> F:
        def by_hash(key: _TextKey | str, *rest: Any, **options: Any) -> Any:
            return function(key if isinstance(key, str) else key.text, *rest, **options)

        whole = cached(size)(by_hash)
        limited = (
            [] if characters is None else [cached(min(size, max(1, characters // most)))(by_hash) for most in _LENGTHS]
        )

        @wraps(function)
        def call(text: str, *rest: Any, **options: Any) -> Any:
            if len(text) <= _SHORT:
                return whole(text, *rest, **options)
            known = limited[bisect_left(_LENGTHS, len(text), hi=len(_LENGTHS) - 1)] if limited else whole
            key = _TextKey(text)
            try:
                return known(key, *rest, **options)
            finally:
                key.text = ""

        return cast(F, call)

    return decorate


class _TextKey:
    """A text as the key of a cache, compared by its hash, so that the text can be released."""

    __slots__ = ("_hash", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._hash = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TextKey) and self._hash == other._hash

    def __hash__(self) -> int:
        return hash(self._hash)


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
