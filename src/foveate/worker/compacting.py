"""What a job to compact a conversation says, and how it is done. Knows no queue and no database but the store.

Doing it again does no harm: it is looked again whether anything is due, a summary that came since the job was wanted is
taken for the one that was wanted, and what others wrote meanwhile is never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.edits import Record, Summarize
from ..core.receipts import receipt_of
from ..core.summaries import Summary, SummaryRequest
from ..errors import BadSetting, NoSummary
from ..open import grouped, open_summarizer, open_without_window
from ..ports import Database, Summarizer

__all__ = ["BY_HAND", "Compaction", "Opening", "compacted", "hashed"]

BY_HAND = frozenset({"compact"})
"""Policies whose summary can be had although they do not ask for it at this moment."""


class Compaction(Struct, frozen=True, omit_defaults=True):
    """What is to be compacted. Names things, and holds nothing that was said: what is erased is not in a queue."""

    conversation: str
    tenant: str = ""
    number: int | None = None
    """Of the newest edit when it was wanted, where that is known."""
    is_wanted: bool = False
    """Whether the oldest part is to be summed up although no policy asks for it now."""
    focus: str = ""
    """What the summary is to dwell on."""
    window: int | None = None
    """The window of the conversation that wanted it, in tokens; None: as whoever works it off says."""
    reserve: int | None = None
    format: str = ""

    @property
    def lock(self) -> str:
        """The same for all jobs of one conversation: one of them runs at a time. A hash, since names may be long."""
        return hashed(self.tenant, self.conversation)

    @property
    def waiting_lock(self) -> str:
        """The same for jobs of which one is enough, as long as it waits."""
        return hashed(self.tenant, self.conversation, "compact", self.focus, str(self.is_wanted))


class Opening(Struct, frozen=True):
    """How a worker opens the conversations that it works on: what they do not say themselves."""

    summarizer: str | Summarizer
    policy: Any = None
    """As `open_conversation` takes it; None: as settings say."""
    window: int | None = None
    reserve: int | None = None
    model: str | None = None
    format: str | None = None
    settings: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.summarizer:
            raise BadSetting(
                "Somebody has to write the summaries: --summarizer, or summarizer=, a name such as digest or "
                "anthropic:claude-haiku-4-5."
            )

    def checked(self) -> Opening:
        """The same with the summarizer opened. Raises BadSetting, and MissingExtra, as every job would."""
        keywords: dict[str, Any] = {name: getattr(self, name) for name in self.__struct_fields__}
        if isinstance(self.summarizer, str):
            keywords["summarizer"] = open_summarizer(self.summarizer)
        open_without_window("checked", store="memory:", **grouped({"background": False, **keywords})).close()
        return replace(self, summarizer=keywords["summarizer"])


def compacted(store: Database, wanted: Compaction, opening: Opening, *, is_last: bool) -> str:
    """Do it, and tell in a few words what came of it.

    `is_last`: no other attempt follows, so what takes the place of a model that fails is taken; else NoSummary is
    raised for that. Raises NoSuchConversation, BadSetting where a policy is to decide and the window is not known, and
    whatever the summarizer raises; nothing was written then.
    """
    store.open(wanted.tenant, wanted.conversation, create=False)
    keywords: dict[str, Any] = {
        "window": wanted.window if opening.window is None else opening.window,
        "reserve": wanted.reserve if opening.reserve is None else opening.reserve,
        "format": opening.format or wanted.format or None,
    }
    chat = open_without_window(
        wanted.conversation,
        store=store,
        model=opening.model,
        policy=opening.policy,
        summarizer=_demanding(opening.summarizer, is_last=is_last),
        **grouped({"tenant": wanted.tenant, "settings": opening.settings, "background": False, **keywords}),
    )
    with chat:
        if not wanted.is_wanted and chat._engine.limits.window is None:
            raise BadSetting(
                f"How large is the window of {wanted.conversation!r}? Nobody said, so no policy can tell whether "
                f"anything is due. Say it to the worker (--window, or window= or model= in foveate.toml), or enqueue "
                f"with now=True."
            )
        step = chat._engine.relieve(since=wanted.number, is_wanted=wanted.is_wanted, focus=wanted.focus)
        return _told(chat._do(step))


def _told(record: Record | None) -> str:
    if record is None:
        return "nothing to do"
    edits = [edit for edit in record.edits if isinstance(edit, Summarize)]
    by = next((f", by {edit.by}" for edit in edits if edit.by), "")
    return f"{receipt_of(record)}{by}"


def _demanding(summarizer: str | Summarizer, *, is_last: bool) -> Callable[[SummaryRequest], str | Summary]:
    """The summarizer, which raises where only a stand-in answered and another attempt follows."""
    asked = open_summarizer(summarizer) if isinstance(summarizer, str) else summarizer

    def ask(request: SummaryRequest) -> Any:
        said = asked(request)
        if isinstance(said, Summary) and said.refused and not is_last:
            raise NoSummary(said.refused)
        return said

    return ask


def hashed(*parts: str) -> str:
    """A short name for what these name: they may be longer than an index of the database takes."""
    return blake2b(msgspec.json.encode(parts), digest_size=20, person=b"foveate job 1").hexdigest()
