"""Outage: keeps requests from waiting, one after the other, for a store that does not answer.

A database that is down fails after its time limit, ten seconds by default, and the request goes on without a view. The
requests behind it need not wait as long for the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Final

from ..errors import StoreError

__all__ = ["Outage"]

_SLOW_SECONDS: Final = 1.0
"""A failure that took as long as this is an outage. Others cost no time: each request may try."""
_PAUSE_SECONDS: Final = 5.0
"""Time until a request tries the store again."""


class Outage:
    """Whether the store is known to be down. Used from one thread."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._reason = ""
        self._next = 0.0

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Use the store during the block. Raises StoreError at once while it is down.

        After a pause one request may try; those that come until it knows more do not wait with it.
        """
        began = self._clock()
        if self._reason:
            if began < self._next:
                raise StoreError(self._reason)
            self._next = began + _PAUSE_SECONDS
        try:
            yield
        except StoreError as error:
            now = self._clock()
            if now - began >= _SLOW_SECONDS:
                self._reason, self._next = str(error), now + _PAUSE_SECONDS
            raise

    def end(self) -> None:
        """Note that the store answered."""
        self._reason = ""
