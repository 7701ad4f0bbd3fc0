"""What jobs there are, what each says, and doing one. A job names things, and holds nothing that was said.

foveate.compact   sum a conversation up                                      compacting.py
foveate.erase     erase messages, a conversation, or all of a tenant's       here
foveate.vacuum    let go of the room that erased things took                 here
foveate.age       erase what is over its age                                 aging.py
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from ..core.retention import Age
from ..errors import BadSetting
from ..open import Options, open_conversation
from ..ports import Database, Erasure
from ..stores.erasing_all import erase_conversation, erase_tenant
from .aging import Aging, aged
from .compacting import Compaction, Opening, compacted, hashed

__all__ = ["TASKS", "ErasureJob", "Vacuum", "Wanted", "done", "task_of"]


class ErasureJob(Struct, frozen=True, omit_defaults=True):
    """What is to be erased. What is erased already is passed over, so doing it again changes nothing."""

    conversation: str | None = None
    """None: all conversations of the tenant."""
    tenant: str = ""
    handle: str = ""
    """Of messages, such as `m3` or `m3-m17`; "": all of the conversation."""
    who: str = ""
    reason: str = ""

    @property
    def lock(self) -> str:
        """Of the conversation, so that nothing else is done with it meanwhile."""
        if self.conversation is None:
            return hashed(self.tenant, "all")
        return Compaction(self.conversation, self.tenant).lock

    @property
    def waiting_lock(self) -> str:
        return hashed(self.lock, "erase", self.handle)


class Vacuum(Struct, frozen=True):
    """The room that erased things took is given back. Says nothing more."""

    @property
    def lock(self) -> str:
        return hashed("vacuum")

    @property
    def waiting_lock(self) -> str:
        return self.lock


Wanted = Compaction | ErasureJob | Vacuum | Aging

TASKS: Mapping[str, type[Wanted]] = {
    "foveate.age": Aging,
    "foveate.compact": Compaction,
    "foveate.erase": ErasureJob,
    "foveate.vacuum": Vacuum,
}
"""The tasks by their names in the queue."""


def task_of(wanted: Wanted) -> str:
    """The name of the task that does it."""
    return next(name for name, kind in TASKS.items() if isinstance(wanted, kind))


def done(store: Any, wanted: Wanted, opening: Opening, *, is_last: bool, ages: tuple[Age, ...] = ()) -> str:
    """Do a job, and tell in a few words what came of it. `is_last`: no other attempt follows. `ages`: the worker's."""
    match wanted:
        case Compaction():
            return compacted(store, wanted, opening, is_last=is_last)
        case ErasureJob():
            return _erased(store, wanted, opening)
        case Vacuum():
            store.vacuum()
            return "done"
        case Aging():
            return aged(store, wanted, ages)


def _erased(store: Database, wanted: ErasureJob, opening: Opening) -> str:
    if wanted.conversation is None:
        if not wanted.tenant:
            raise BadSetting("Whose conversations are to be erased? Name the tenant.")
        every = erase_tenant(store, wanted.tenant, reason=wanted.reason, who=wanted.who, clock=_now)
        made = [one for erased in every.values() for one in erased]
        return f"{_counted(made)} erased in {len(every):,} conversation{'s' * (len(every) != 1)}"
    store.open(wanted.tenant, wanted.conversation, create=False)
    if wanted.handle:
        with open_conversation(
            wanted.conversation,
            store=store,
            policy="off",
            window=opening.window,
            model=opening.model,
            format=opening.format,
            options=Options(tenant=wanted.tenant, background=False),
        ) as chat:
            made = [chat.erase(wanted.handle, reason=wanted.reason, who=wanted.who)]
    else:
        made = erase_conversation(
            store, wanted.conversation, tenant=wanted.tenant, reason=wanted.reason, who=wanted.who, clock=_now
        )
    return f"{_counted(made)} erased"


def _counted(made: Iterable[Erasure]) -> str:
    count = sum(one.messages for one in made)
    return f"{count:,} message{'s' * (count != 1)}"


def _now() -> int:
    return time.time_ns() // 1_000_000
