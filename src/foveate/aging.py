"""Ages of many conversations: of one by its name, of all of a tenant's, of all in a database.

Each conversation is opened, and lets go of what is over its age by itself (`Conversation.age`); one in which nothing
can be that old is not even opened. Whoever is interrupted begins again: what is gone is passed over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .core.retention import Age, Ages, read_ages
from .errors import ConflictError
from .open import Options, open_conversation
from .ports import IMPORTING, Clock, Database

if TYPE_CHECKING:
    from .engine.aging import Aged

__all__ = ["age_conversation", "age_database", "age_tenant"]


def age_conversation(
    store: Database,
    name: str,
    ages: Ages,
    *,
    tenant: str = "",
    reason: str = "age",
    who: str = "",
    dry_run: bool = False,
    clock: Clock | None = None,
) -> Aged:
    """Erase what is over its age in one conversation, and tell how much that was: see `Conversation.age`.

    `clock` tells the time by which things age, by default this computer's. Raises NoSuchConversation.
    """
    head = store.open(tenant, name, create=False)
    now = clock or _now
    if not _may_be_over(store, head.tenant, name, read_ages(ages), now()):
        from .engine.aging import Aged

        return Aged(name)
    with open_conversation(
        name, store=store, policy="off", expand=False, options=Options(tenant=tenant, background=False, clock=now)
    ) as chat:
        return chat.age(ages, reason=reason, who=who, dry_run=dry_run)


def age_tenant(
    store: Database,
    ages: Ages,
    tenant: str = "",
    *,
    names: Sequence[str] = (),
    reason: str = "age",
    who: str = "",
    dry_run: bool = False,
    clock: Clock | None = None,
) -> Iterator[Aged]:
    """The same for all conversations of a tenant, or those with these names, one after the other, each told of when it
    is done. What an import has not finished waits.

    Where others kept changing the view of one, ConflictError is raised when all others are done. Where there is none
    of one
    of these names, NoSuchConversation is raised before any of them is touched.
    """
    rules, late = read_ages(ages), None
    for name in names:
        store.open(tenant, name, create=False)  # All of them are looked for before the first one loses anything.
    for name in names or [one for one in store.names(tenant) if not one.startswith(IMPORTING)]:
        try:
            done = age_conversation(
                store, name, rules, tenant=tenant, reason=reason, who=who, dry_run=dry_run, clock=clock
            )
        except ConflictError as error:
            late = error
        else:
            yield done
    if late:
        raise late


def age_database(
    store: Database,
    ages: Ages,
    *,
    reason: str = "age",
    who: str = "",
    dry_run: bool = False,
    clock: Clock | None = None,
) -> Iterator[tuple[str, Aged]]:
    """The same for all conversations of all tenants, each with the tenant that it belongs to."""
    rules, late = read_ages(ages), None
    for tenant in store.tenants():
        try:
            for done in age_tenant(store, rules, tenant, reason=reason, who=who, dry_run=dry_run, clock=clock):
                yield tenant, done
        except ConflictError as error:
            late = error
    if late:
        raise late


def _may_be_over(store: Database, tenant: str, name: str, ages: tuple[Age, ...], now: int) -> bool:
    """Whether anything can be over its age: the oldest message is the first one to be, by every rule."""
    head = store.open(tenant, name, create=False)
    oldest, newest = store.stamps(head, 1, 1), store.stamps(head, head.position, head.position)
    if not oldest:
        return False
    turns = newest[0].stamp.turn - oldest[0].stamp.turn + 1  # A call may have been begun that is not answered yet.
    return any(age.is_over(turns, now - oldest[0].stamp.time) for age in ages)


def _now() -> int:
    return time.time_ns() // 1_000_000
