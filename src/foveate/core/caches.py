"""Caches of values derived from texts, registered so that an erasure can clear them.

An erased text must not survive in a cache. Each cache registers itself here when it is created. Each cache limits its
own size. Clearing a cache costs time at the next use and changes no result.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache, wraps
from hashlib import blake2b
from threading import Lock
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

    `characters`: for results that grow with their text, the most characters of all long texts with a held result.
    """

    def decorate(function: F) -> F:
        of_short = cached(size)(function)
        of_long = _NewestResults(function, size, characters)
        register(of_long)

        @wraps(function)
        def call(text: str, *rest: Any, **options: Any) -> Any:
            return (of_short if len(text) <= _SHORT else of_long)(text, *rest, **options)

        return cast(F, call)

    return decorate


class _NewestResults:
    """The newest results of a function of a long text, by the hash of the text. Threads may share it."""

    def __init__(self, function: Callable[..., Any], size: int, characters: int | None) -> None:
        self._function, self._size, self._characters = function, size, characters
        self._results: OrderedDict[object, tuple[int, Any]] = OrderedDict()  # Each with the length of its text.
        self._held = 0  # Characters of the texts.
        self._lock = Lock()

    def __call__(self, text: str, *rest: object, **options: object) -> Any:
        text_hash = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        key = (text_hash, rest, *options.items())
        with self._lock:
            if (known := self._results.get(key)) is not None:
                self._results.move_to_end(key)
                return known[1]
        value = self._function(text, *rest, **options)
        with self._lock:
            if key not in self._results:  # Another thread may have added it.
                self._results[key] = len(text), value
                self._held += len(text)
            while len(self._results) > 1 and self._is_over():
                self._held -= self._results.popitem(last=False)[1][0]
        return value

    def _is_over(self) -> bool:
        return len(self._results) > self._size or (self._characters is not None and self._held > self._characters)

    def cache_clear(self) -> None:
        """Remove all results."""
        with self._lock:
            self._results.clear()
            self._held = 0


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
