"""Retention and erasing for many conversations: one by name, all of a tenant, or all of a database.

`Privacy.apply_retention` applies the rules to each one; conversations without old messages are not opened. Each erasure
is a transaction of its own, and erased messages are skipped, so an interrupted call can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..conversation.retention import RetentionCount, RetentionReport
from ..core.conversation_names import child_name
from ..core.retention import Age, AgeKind, Ages, Exempt, Wait, read_ages
from ..errors import BadSetting, ConflictError
from ..open import Options, open_conversation
from ..ports import IMPORTING, Clock, Database, Erasure, wall_clock
from ..stores.checks import check_texts

__all__ = [
    "Age",
    "AgeKind",
    "Ages",
    "Exempt",
    "RetentionCount",
    "RetentionReport",
    "Wait",
    "age_conversation",
    "age_database",
    "age_tenant",
    "erase_conversation",
    "erase_tenant",
]

_MESSAGES = 5_000
"""Messages erased by one transaction, which also reads the whole tree of forks."""


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
) -> RetentionReport:
    """Apply retention rules to one conversation, and return the result: see `Privacy.apply_retention`.

    `clock`: the time for the ages, by default that of this computer. Raises NoSuchConversation.
    """
    head = store.open(tenant, name, create=False)
    now = clock or wall_clock
    if not _may_be_old(store, head.tenant, name, read_ages(ages), now()):
        return RetentionReport(name)
    with open_conversation(
        name, store=store, policy="off", expand=False, options=Options(tenant=tenant, background=False, clock=now)
    ) as chat:
        return chat.privacy.apply_retention(ages, reason=reason, who=who, dry_run=dry_run)


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
) -> Iterator[RetentionReport]:
    """Apply retention rules to all conversations of a tenant, or to those with these names; yield each result.

    Unfinished imports are skipped. Raises NoSuchConversation before any change if a name does not exist, and
    ConflictError after all others if the view of a conversation kept changing. The other arguments are those of
    `age_conversation`.
    """
    check_texts("conversation", tenant=tenant)
    rules, conflict = read_ages(ages), None
    for name in names:
        store.open(tenant, name, create=False)  # All of them exist before the first is changed.
    for name in names or [name for name in store.names(tenant) if not name.startswith(IMPORTING)]:
        try:
            result = age_conversation(
                store, name, rules, tenant=tenant, reason=reason, who=who, dry_run=dry_run, clock=clock
            )
        except ConflictError as error:
            conflict = error
        else:
            yield result
    if conflict:
        raise conflict


def age_database(
    store: Database,
    ages: Ages,
    *,
    reason: str = "age",
    who: str = "",
    dry_run: bool = False,
    clock: Clock | None = None,
) -> Iterator[tuple[str, RetentionReport]]:
    """Apply retention rules to all conversations of all tenants; yield each result with its tenant.

    The arguments are those of `age_tenant`.
    """
    rules, conflict = read_ages(ages), None
    for tenant in store.tenants():
        try:
            for result in age_tenant(store, rules, tenant, reason=reason, who=who, dry_run=dry_run, clock=clock):
                yield tenant, result
        except ConflictError as error:
            conflict = error
    if conflict:
        raise conflict


def erase_conversation(
    store: Database, name: str, *, tenant: str = "", reason: str = "", who: str = "", clock: Clock | None = None
) -> list[Erasure]:
    """Erase every message of a conversation, all data derived from them, and its agents' runs with their sub-agents.

    Forks lose the messages that they share with it, and keep their own. Names, positions and hashes stay. `clock` dates
    the erasures, by default this computer's. Raises NoSuchConversation.
    """
    names = [name, *sub_agents(store, tenant, name)]
    return [piece for each in names for piece in _erase_alone(store, each, tenant, reason, who, clock)]


def erase_tenant(
    store: Database, tenant: str, *, reason: str = "", who: str = "", clock: Clock | None = None
) -> dict[str, list[Erasure]]:
    """Erase all conversations of a tenant; return the erasures by name. Names and the catalog stay."""
    check_texts("conversation", tenant=tenant)
    return {name: _erase_alone(store, name, tenant, reason, who, clock) for name in store.names(tenant)}


def sub_agents(store: Database, tenant: str, name: str) -> list[str]:
    """Return the conversations of sub-agents, and of theirs, that the runs of a conversation began."""
    runs = store.runs(store.open(tenant, name, create=False))
    prefixes = tuple(prefix for run in runs if run.conversation == name and (prefix := _prefix_of(name, run.id)))
    return [child for child in store.names(tenant) if child.startswith(prefixes)] if prefixes else []


def _prefix_of(name: str, run: str) -> str:
    """Return the beginning of the names of sub-agents that a run began; "" if they would be too long to exist."""
    try:
        return f"{child_name(name, run)}/"
    except BadSetting:
        return ""


def _erase_alone(store: Database, name: str, tenant: str, reason: str, who: str, clock: Clock | None) -> list[Erasure]:
    erasures: list[Erasure] = []
    first = 1
    while True:
        head = store.open(tenant, name, create=False)
        last = min(first + _MESSAGES - 1, head.position)
        is_end = last == head.position
        span = (first, last) if first <= last else (1, 0)
        erasures.append(store.erase(head, [span], runs=is_end, who=who, reason=reason, time=(clock or wall_clock)()))
        first = last + 1
        if is_end and store.open(tenant, name, create=False).position < first:
            return [erasure for erasure in erasures if erasure.number]


def _may_be_old(store: Database, tenant: str, name: str, ages: tuple[Age, ...], now: int) -> bool:
    """Return whether any message can be too old: by every rule the oldest message is the first."""
    head = store.open(tenant, name, create=False)
    oldest, newest = store.stamps(head, 1, 1), store.stamps(head, head.position, head.position)
    if not oldest:
        return False
    turns = newest[0].stamp.turn - oldest[0].stamp.turn + 1  # A call may be open that is not answered yet.
    return any(age.is_over(turns, now - oldest[0].stamp.time) for age in ages)
