"""The job that lets go of what was kept long enough: what it says, and doing it. It names rules, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from ..aging import age_conversation, age_database, age_tenant
from ..core.retention import Age, read_rule
from ..errors import BadSetting
from ..ports import Database
from .compacting import Compaction, hashed

if TYPE_CHECKING:
    from ..engine.aging import Aged

__all__ = ["Aging", "aged"]


class Aging(Struct, frozen=True, omit_defaults=True):
    """What is over its age is to be erased. Doing it again changes nothing."""

    conversation: str | None = None
    """None: all conversations of the tenant."""
    tenant: str | None = None
    """None: those of all tenants."""
    ages: tuple[str, ...] = ()
    """Each rule in words, such as `tool results = 90 days`; none: those that the worker has."""
    who: str = ""
    reason: str = "age"

    @property
    def lock(self) -> str:
        """Of the conversation, so that nothing else is done with it meanwhile."""
        if self.conversation is None:
            return hashed("age", "" if self.tenant is None else f"of {self.tenant}")
        return Compaction(self.conversation, self.tenant or "").lock

    @property
    def waiting_lock(self) -> str:
        return hashed(self.lock, "age", *self.ages)


def aged(store: Database, wanted: Aging, own: tuple[Age, ...]) -> str:
    """Do it, and tell in a few words what came of it. `own`: the worker's ages, where the job names none.

    Raises BadSetting where neither does, and for what is no rule.
    """
    ages = tuple(map(read_rule, wanted.ages)) or own
    if not ages:
        raise BadSetting(
            "The job names no ages, and this worker has none. Name some, or start the worker where foveate.toml has a "
            "table [ages]."
        )
    who, reason, tenant = wanted.who, wanted.reason, wanted.tenant or ""
    if wanted.conversation is not None:
        return _counted([age_conversation(store, wanted.conversation, ages, tenant=tenant, reason=reason, who=who)])
    if wanted.tenant is not None:
        return _counted(age_tenant(store, ages, tenant, reason=reason, who=who))
    return _counted(one for _, one in age_database(store, ages, reason=reason, who=who))


def _counted(done: Iterable[Aged]) -> str:
    every = [sum(part.messages for part in one.erased) for one in done]
    conversations = f"{len(every):,} conversation{'s' * (len(every) != 1)}"
    return f"{sum(every):,} message{'s' * (sum(every) != 1)} erased, {conversations} looked through"
