"""The large messages an archive told last: one that says the same again only names the place of the first.

Whoever writes an archive and whoever reads it keep the same ones, so a place that is named is known; and no more than
so many, so an archive of any length is written and read in little memory. What was let go of is told in full again.
"""

from __future__ import annotations

from typing import TypeVar

__all__ = ["LARGE", "Large"]

LARGE = 4096
"""Bytes of a message above which it is one."""
_KEPT_MAX = 10_000

K = TypeVar("K")
V = TypeVar("V")


class Large(dict[K, V]):
    """Those that are kept, the oldest first; of each what its key and its value say."""

    def keep(self, key: K, value: V) -> None:
        """One more was told in full, in the order of the archive."""
        self[key] = value
        if len(self) > _KEPT_MAX:
            del self[next(iter(self))]
