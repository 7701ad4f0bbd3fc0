"""Erasing much: a whole conversation, or all of a tenant's, piece by piece.

Each piece is a transaction of its own, so that others get their turn in between. Whoever is interrupted begins again:
what is erased already is passed over.
"""

from __future__ import annotations

import time

from ..ports import Clock, Database, Erasure

__all__ = ["erase_conversation", "erase_tenant"]

_MESSAGES = 5_000
"""Erased by one transaction, which also looks through the whole tree of forks."""


def erase_conversation(
    store: Database, name: str, *, tenant: str = "", reason: str = "", who: str = "", clock: Clock | None = None
) -> list[Erasure]:
    """Erase every message of a conversation, with all that was made of them and the texts of its agents' runs.

    Forks lose what they share with it and keep their own. Its name, its places and its hashes stay. `clock` dates the
    erasures, by default this computer's. Raises NoSuchConversation.
    """
    done: list[Erasure] = []
    first = 1
    while True:
        head = store.open(tenant, name, create=False)
        last = min(first + _MESSAGES - 1, head.position)
        is_end = last == head.position
        piece = (first, last) if first <= last else (1, 0)
        done.append(store.erase(head, [piece], runs=is_end, who=who, reason=reason, time=(clock or _now)()))
        first = last + 1
        if is_end and store.open(tenant, name, create=False).position < first:
            return [one for one in done if one.number]


def erase_tenant(
    store: Database, tenant: str, *, reason: str = "", who: str = "", clock: Clock | None = None
) -> dict[str, list[Erasure]]:
    """The same for all conversations of a tenant, by name. Names stay, and so does what is set up for its agents."""
    return {
        name: erase_conversation(store, name, tenant=tenant, reason=reason, who=who, clock=clock)
        for name in store.names(tenant)
    }


def _now() -> int:
    return time.time_ns() // 1_000_000
