"""A whole database, proven: every conversation of every tenant, and whatever lies there and belongs to none.

Goes by the store's census, a conversation at a time, so it takes little memory whatever there is.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..errors import Damaged, NoSuchConversation
from ..ports import Finding, Head, Store
from .views import verify_view

__all__ = ["Verified", "verified", "verify_all"]


class Verified(Struct, frozen=True):
    """One conversation that was verified, or something that belongs to none."""

    tenant: str
    name: str
    """The conversation's; "" for what belongs to none."""
    messages: int = 0
    findings: tuple[Finding, ...] = ()
    """What is wrong with it."""


def verify_all(store: Store, *, tenant: str | None = None) -> Iterator[Verified]:
    """Verify every conversation of a store, or of one tenant, and look for what belongs to none.

    Re-hashes everything, as `Store.verify` does. Finds besides: rows and names that lead nowhere, branches without a
    name, trees that lost some, runs, steps and catalogs that cannot be read. Deletes and mends nothing. Others may
    write meanwhile.
    """
    try:
        for one in store.census(tenant):
            if isinstance(one, Head):
                yield Verified(one.tenant, one.name, one.position, tuple(verified(store, one)))
            else:
                yield Verified(one.tenant, "", findings=(Finding(one.where, one.problem),))
    except Damaged as error:
        yield Verified(tenant or "", "", findings=(Finding("database", str(error)),))


def verified(store: Store, head: Head) -> list[Finding]:
    """What is wrong with one conversation, its saved view too."""
    try:
        return [*store.verify(head), *verify_view(store, head)]
    except (Damaged, NoSuchConversation) as error:
        return [Finding("head", str(error))]
