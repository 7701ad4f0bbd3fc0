"""The jobs of the queue, and functions that run them. A job contains names, and no text of messages.

foveate.compact   summarize a part of a conversation
foveate.erase     erase messages, a conversation, or all conversations of a tenant
foveate.vacuum    remove erased data from the files, and shrink them
foveate.age       apply retention rules

Every job may run twice: it checks again what is due, accepts a summary that was written since, and never overwrites
messages of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from inspect import isawaitable, iscoroutine
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.plurals import plural
from ...core.receipts import receipt_of
from ...core.retention import Age, read_rule
from ...core.summaries import Summary, SummaryRequest
from ...errors import BadSetting, NoSummary
from ...open import Options, grouped, open_conversation, open_summarizer, open_without_window
from ...policies import PolicyChoice
from ...ports import Database, Erasure, Prompts, Summarizer, wall_clock
from ..retention import age_conversation, age_database, age_tenant, erase_conversation, erase_tenant

if TYPE_CHECKING:
    from ...conversation.retention import RetentionReport

__all__ = [
    "SUMMARIZING",
    "TASKS",
    "CompactionJob",
    "ErasureJob",
    "Job",
    "OpenSettings",
    "RetentionJob",
    "VacuumJob",
    "compact",
    "run_job",
    "task_of",
]

SUMMARIZING = frozenset({"compact"})
"""Policies that can write a summary before it is due."""


class CompactionJob(Struct, frozen=True, omit_defaults=True):
    """A request to compact a conversation."""

    conversation: str
    """The name of the conversation."""
    tenant: str = ""
    """Its owner."""
    number: int | None = None
    """The newest edit at the time of the request; None if unknown."""
    is_wanted: bool = False
    """Whether to summarize the oldest part although no policy asks for it now."""
    focus: str = ""
    """The topic that the summary emphasizes."""
    window: int | None = None
    """The window of the conversation in tokens; None: that of the worker."""
    reserve: int | None = None
    """Tokens kept free for the answer."""
    format: str = ""
    """The wire format of the conversation."""

    @property
    def lock(self) -> str:
        """The lock of all jobs of one conversation: one of them runs at a time. A hash, because names may be long."""
        return _hash_of(self.tenant, self.conversation)

    @property
    def waiting_lock(self) -> str:
        """The lock of equal jobs: one of them waits at a time."""
        return _hash_of(self.tenant, self.conversation, "compact", self.focus, str(self.is_wanted))


class ErasureJob(Struct, frozen=True, omit_defaults=True):
    """A request to erase. Erased messages are skipped, so running it again changes nothing."""

    conversation: str | None = None
    """None: all conversations of the tenant."""
    tenant: str = ""
    """The owner of the conversation."""
    handle: str = ""
    """Messages, such as `m3` or `m3-m17`; "": the whole conversation."""
    who: str = ""
    """The person or program that asked for it; stored with the erasure."""
    reason: str = ""
    """Why it was asked for; stored with the erasure."""

    @property
    def lock(self) -> str:
        """The lock of the conversation: no other job changes it meanwhile."""
        if self.conversation is None:
            return _hash_of(self.tenant, "all")
        return CompactionJob(self.conversation, self.tenant).lock

    @property
    def waiting_lock(self) -> str:
        """The lock of equal jobs: one of them waits at a time."""
        return _hash_of(self.lock, "erase", self.handle)


class VacuumJob(Struct, frozen=True):
    """A request to remove erased data from the files, and to shrink them."""

    @property
    def lock(self) -> str:
        """The lock of all such jobs."""
        return _hash_of("vacuum")

    @property
    def waiting_lock(self) -> str:
        """The lock of all such jobs."""
        return self.lock


class RetentionJob(Struct, frozen=True, omit_defaults=True):
    """A request to apply retention rules. Running it again changes nothing."""

    conversation: str | None = None
    """None: all conversations of the tenant."""
    tenant: str | None = None
    """None: all tenants."""
    ages: tuple[str, ...] = ()
    """The rules, such as `tool results = 90 days`; empty: those of the worker."""
    who: str = ""
    """The person or program that asked for it; stored with each erasure."""
    reason: str = "age"
    """Why it was asked for; stored with each erasure."""

    @property
    def lock(self) -> str:
        """The lock of the conversation: no other job changes it meanwhile."""
        if self.conversation is None:
            return _hash_of("age", "" if self.tenant is None else f"of {self.tenant}")
        return CompactionJob(self.conversation, self.tenant or "").lock

    @property
    def waiting_lock(self) -> str:
        """The lock of equal jobs: one of them waits at a time."""
        return _hash_of(self.lock, "age", *self.ages)


Job = CompactionJob | ErasureJob | VacuumJob | RetentionJob
"""A job of the queue."""

TASKS: Mapping[str, type[Job]] = {
    "foveate.age": RetentionJob,
    "foveate.compact": CompactionJob,
    "foveate.erase": ErasureJob,
    "foveate.vacuum": VacuumJob,
}
"""The jobs by the names of their tasks in the queue."""


class OpenSettings(Struct, frozen=True):
    """The settings with which a worker opens conversations, where a job does not name its own."""

    summarizer: str | Summarizer
    policy: PolicyChoice | None = None
    """As for `open_conversation`; None: as the settings say."""
    window: int | None = None
    reserve: int | None = None
    model: str | None = None
    format: str | None = None
    settings: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.summarizer:
            raise BadSetting(
                "A worker needs a summarizer. Pass --summarizer, or summarizer=: a name such as digest or "
                "anthropic:claude-haiku-4-5."
            )

    def opened(self, prompts: Prompts | None = None) -> OpenSettings:
        """Return the settings with the summarizer opened. Raises BadSetting and MissingExtra as every job would.

        `prompts`: those of a summarizer that is a model's name.
        """
        keywords: dict[str, Any] = {name: getattr(self, name) for name in self.__struct_fields__}
        if isinstance(self.summarizer, str):
            keywords["summarizer"] = open_summarizer(self.summarizer, prompts=prompts)
        open_without_window("checked", store="memory:", **grouped({"background": False, **keywords})).close()
        return replace(self, summarizer=keywords["summarizer"])


def task_of(job: Job) -> str:
    """Return the name of the task of a job."""
    return next(name for name, kind in TASKS.items() if isinstance(job, kind))


def run_job(store: Database, job: Job, settings: OpenSettings, *, is_last: bool, ages: tuple[Age, ...] = ()) -> str:
    """Run a job, and describe the result in a few words. `is_last`: no other attempt follows. `ages`: the worker's."""
    match job:
        case CompactionJob():
            return compact(store, job, settings, is_last=is_last)
        case ErasureJob():
            return _erase(store, job, settings)
        case VacuumJob():
            store.vacuum()
            return "done"
        case RetentionJob():
            return _apply_ages(store, job, ages)


def compact(store: Database, job: CompactionJob, settings: OpenSettings, *, is_last: bool) -> str:
    """Compact a conversation, and describe the result in a few words.

    `is_last`: accept the summary of a fallback if the model fails; else NoSummary is raised for it. Raises
    NoSuchConversation, BadSetting if a policy must decide without a window, and the errors of the summarizer. Nothing
    is written then.
    """
    store.open(job.tenant, job.conversation, create=False)
    keywords: dict[str, Any] = {
        "window": job.window if settings.window is None else settings.window,
        "reserve": job.reserve if settings.reserve is None else settings.reserve,
        "format": settings.format or job.format or None,
    }
    chat = open_without_window(
        job.conversation,
        store=store,
        model=settings.model,
        policy=settings.policy,
        summarizer=_strict(settings.summarizer, is_last=is_last),
        **grouped({"tenant": job.tenant, "settings": settings.settings, "background": False, **keywords}),
    )
    with chat:
        if not job.is_wanted and chat._agent.window is None:
            raise BadSetting(
                f"The window of {job.conversation!r} is not known, so no policy can decide whether a compaction is "
                "due. Pass it to the worker (--window, or window= or model= in foveate.toml), or enqueue with now=True."
            )
        record = chat._agent.compact_detached(since=job.number, is_wanted=job.is_wanted, focus=job.focus)
        return "nothing to do" if record is None else str(receipt_of(record))


def _strict(summarizer: str | Summarizer, *, is_last: bool) -> Callable[[SummaryRequest], str | Summary]:
    """Return a summarizer that raises if there is no text, or that of a fallback, and another attempt follows.

    It raises BadSetting for an awaitable: a job has no event loop.
    """
    model = open_summarizer(summarizer) if isinstance(summarizer, str) else summarizer

    def summarize(request: SummaryRequest) -> Any:
        summary: Any = model(request)
        if isawaitable(summary):
            if iscoroutine(summary):
                summary.close()
            raise BadSetting("A worker cannot await its summarizer. Pass a function that returns the text.")
        refused = summary.refused if isinstance(summary, Summary) else ()
        text = summary.text if isinstance(summary, Summary) else summary
        if not refused and not (isinstance(text, str) and text.strip()):
            refused = ("the summarizer returned no text",)
        if refused and not is_last:
            raise NoSummary(refused)
        return summary

    return summarize


def _erase(store: Database, job: ErasureJob, settings: OpenSettings) -> str:
    who, reason = job.who, job.reason
    if job.conversation is None:
        if not job.tenant:
            raise BadSetting("Erasing all conversations needs a tenant. Name the tenant.")
        erased = erase_tenant(store, job.tenant, reason=reason, who=who, clock=wall_clock)
        count = _count(erasure for erasures in erased.values() for erasure in erasures)
        return f"{count} erased in {plural(len(erased), 'conversation')}"
    store.open(job.tenant, job.conversation, create=False)
    if job.handle:
        with open_conversation(
            job.conversation,
            store=store,
            policy="off",
            window=settings.window,
            model=settings.model,
            format=settings.format,
            options=Options(tenant=job.tenant, background=False),
        ) as chat:
            erasures = [chat.privacy.erase(job.handle, reason=reason, who=who)]
    else:
        erasures = erase_conversation(
            store, job.conversation, tenant=job.tenant, reason=reason, who=who, clock=wall_clock
        )
    return f"{_count(erasures)} erased"


def _apply_ages(store: Database, job: RetentionJob, default: tuple[Age, ...]) -> str:
    ages = tuple(map(read_rule, job.ages)) or default
    if not ages:
        raise BadSetting(
            "The job names no ages, and this worker has none. Name some, or start the worker where foveate.toml has a "
            "table [ages]."
        )
    who, reason, tenant = job.who, job.reason, job.tenant or ""
    results: Iterable[RetentionReport]
    if job.conversation is not None:
        results = [age_conversation(store, job.conversation, ages, tenant=tenant, reason=reason, who=who)]
    elif job.tenant is not None:
        results = age_tenant(store, ages, tenant, reason=reason, who=who)
    else:
        results = (result for _, result in age_database(store, ages, reason=reason, who=who))
    counts = [sum(erasure.messages for erasure in result.erased) for result in results]
    return f"{plural(sum(counts), 'message')} erased, {plural(len(counts), 'conversation')} looked through"


def _count(erasures: Iterable[Erasure]) -> str:
    return plural(sum(erasure.messages for erasure in erasures), "message")


def _hash_of(*parts: str) -> str:
    """Return a short name for these names, which may be longer than an index of the database allows."""
    return blake2b(msgspec.json.encode(parts), digest_size=20, person=b"foveate job 1").hexdigest()
