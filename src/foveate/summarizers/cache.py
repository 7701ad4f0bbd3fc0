"""Cache of summaries: the same request is not sent twice.

The key of a request covers messages, prompt, length and facts, not the attempt. A summarizer with a method `cache_key`
chooses the key itself: that of `model_summarizer` also covers the texts of its prompts. Only accepted summaries are
kept, so a failure is never repeated from the cache.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, MutableMapping

import msgspec

from ..core.caches import register
from ..core.summaries import Summary, SummaryRequest, read_answer
from ..errors import BadSetting
from ..ports import Summarizer
from .acceptance import accept
from .fallback import name_of
from .timeout import close_with

__all__ = ["cached"]


def cached(summarizer: Summarizer, store: MutableMapping[str, bytes] | None = None, *, size: int = 256) -> Summarizer:
    """Return the same summarizer with a cache, which asks it once for each request.

    `store`: any mutable mapping of text to bytes, such as an open `shelve`, for summaries that outlive the process;
    the default is a dict, which is emptied when something is erased. `size`: the entries of that dict at most; the
    oldest are dropped first. A mapping that you pass is never emptied. Safe to use from several threads. Raises
    BadSetting for a `size` below 1.
    """
    if not callable(summarizer):
        raise BadSetting(f"cached takes a summarizer, not {summarizer!r:.60}. Pass a function of a SummaryRequest.")
    if size < 1:
        raise BadSetting(f"Size of the cache must be at least 1, not {size}.")
    return _Cached(summarizer, store, size)


class _Cached:
    """A summarizer with a cache."""

    def __init__(self, summarizer: Summarizer, store: MutableMapping[str, bytes] | None, size: int) -> None:
        self.name = name_of(summarizer)
        self.needs_no_model = getattr(summarizer, "needs_no_model", False)
        self._summarizer, self._size = summarizer, size
        self._key_of: Callable[[SummaryRequest], str] = getattr(summarizer, "cache_key", lambda request: request.key)
        self._kept: MutableMapping[str, bytes] = {} if store is None else store
        self._is_own = store is None
        self._lock = threading.Lock()
        register(self)

    def cache_clear(self) -> None:
        """Empty the own dict after an erasure, since a summary may hold erased text. A mapping of the caller stays."""
        if self._is_own:
            with self._lock:
                self._kept.clear()

    def __call__(self, request: SummaryRequest) -> str | Summary | Awaitable[str | Summary]:
        key = self._key_of(request)
        with self._lock:
            known = self._kept.get(key)
        if known is not None:
            return msgspec.json.decode(known, type=Summary)
        answer = self._summarizer(request)
        if inspect.isawaitable(answer):
            return close_with(self._later(key, request, answer), answer)
        return self._keep(key, request, answer)

    async def _later(self, key: str, request: SummaryRequest, answer: Awaitable[str | Summary]) -> str | Summary:
        return self._keep(key, request, await answer)

    def _keep(self, key: str, request: SummaryRequest, answer: str | Summary) -> str | Summary:
        if not isinstance(answer, str | Summary):
            return answer
        summary = answer if isinstance(answer, Summary) else Summary(answer, self.name)
        is_failure = bool(accept(request, read_answer(summary.text)).why)
        if is_failure and not self.needs_no_model:
            return answer
        with self._lock:
            self._kept[key] = msgspec.json.encode(summary)
            while self._is_own and len(self._kept) > self._size:
                del self._kept[next(iter(self._kept))]
        return answer
