"""How long a digest may be."""

from __future__ import annotations

__all__ = ["room_for"]


def room_for(characters: int) -> int:
    """Characters that a digest of a text of this length may have.

    A quarter of a small text, less and less of larger ones, 16,000 at most: small results are dense, and what is wanted
    of a large one is a few names.
    """
    if characters <= 2_000:
        return characters // 4
    return min(int(3.6 * characters**0.64), characters // 4, 16_000)
