"""The one place that picks concrete leaves: which store, format, counter and policies a conversation is made of."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from . import given
from .background.threads import Threads
from .conversation import Conversation
from .core.events import Event
from .core.planner import Policy, Rung
from .core.profiles import Profile, profile_for, window_of
from .core.summaries import Summary, SummaryRequest
from .core.view import Prices
from .counters.estimate import EstimatingCounter
from .engine import Engine
from .errors import BadSetting
from .expansion.answering import Expanding
from .expansion.placing import Where
from .limits import Limits
from .patterns import find as find_pattern
from .plugins import Plugin, listed, policies_of
from .policies import DEFAULT, FLOOR, check_together, in_use, named, named_summarizer, own_policies
from .ports import Background, Clock, Cost, Database, Elsewhere, Format, Store, Summarizer, TokenCounter
from .stores import place_of

if TYPE_CHECKING:
    from .async_conversation import AsyncConversation
    from .background.tasks import Tasks
    from .models.anthropic import AnthropicModel
    from .models.demo import DemoModel
    from .models.openai import OpenAIModel

__all__ = [
    "cost_of",
    "find_pattern",
    "open_async_conversation",
    "open_conversation",
    "open_model",
    "open_store",
    "open_summarizer",
]

_SUMMARY_TIMEOUT = 60.0
"""Seconds that a model may take for an answer when it writes a summary: less than the whole summary may take."""


def open_conversation(
    name: str,
    *,
    store: str | Store | None = None,
    format: str | Format | None = None,
    model: str | None = None,
    window: int | None = None,
    reserve: int | None = None,
    policy: str | Policy | Sequence[Policy] | None = None,
    settings: Mapping[str, Any] | None = None,
    profile: Profile | None = None,
    prices: Prices | None = None,
    counter: TokenCounter | None = None,
    clock: Clock | None = None,
    summarizer: str | Summarizer | None = None,
    plugins: Sequence[Plugin] = (),
    tenant: str | None = None,
    on_event: Callable[[Event], object] | None = None,
    background: bool | Background | Elsewhere | None = None,
    expand: bool | None = None,
    expand_where: Where | None = None,
) -> Conversation:
    """Open the conversation `name`, or begin it.

    `store`: `memory:` (default; gone when the process ends), `sqlite:///chat.db` (relative) or
    `sqlite:////var/chat.db` (absolute), or a Store, which is then left open on close. `format`: `openai` (chat
    completions; default) or `anthropic`. `window`: the model's, in tokens; known for common models if `model` is named.
    `reserve`: tokens kept free for the answer (default: a tenth of the window, at most 20,000). `policy`: a preset's
    name or file (`prune`, `keep-last-5`, `mine.toml`, `none` for the hard floor alone, `off` for nothing automatic at
    all) or policies of your own, which run above the hard floor. `settings`: of the preset's mechanisms, such as
    `{"prune": {"protect": 20_000}}`. `profile`: what the provider demands, if it is not the format's own. `clock`:
    milliseconds since 1970. `summarizer`: writes the summaries that a policy asks for, a function or a name: `digest`
    or `first-characters`, which need no model, or a model such as `anthropic:claude-haiku-4-5`. `plugins`: add to what
    the user says, and to tool results, what the model should know beside it, each for as long as it says. `on_event` is
    called with every Event; it can neither break nor change a run. `background`: whether summaries are written while
    the conversation goes on. None: those that a policy asks for ahead, from a model or a function; True: all that the
    view fits without, so that nothing waits unless it must; False: none; or a Background of your own, or a
    `foveate.worker.Queue`, which has other processes write them.

    `expand`: offer the model the tool `expand`, with a short instruction in the system prompt, and answer its calls
    (default: no). `expand_where`: whether an original comes back in its place (`view`), as the result of the call
    (`tail`), or where that costs less (`auto`, the default).

    What is None is as the environment (`FOVEATE_WINDOW`) says, else as `foveate.toml` in the current folder says, else
    the preset or the default. Raises BadSetting for values that are not allowed.
    """
    asked = listed(plugins)
    told = _told(
        policy,
        settings,
        asked,
        store=store,
        format=format,
        model=model,
        window=window,
        reserve=reserve,
        tenant=tenant,
        summarizer=summarizer,
        expand=expand,
        expand_where=expand_where,
    )
    made = _Made(told, profile, prices, counter, clock, asked, background)
    return _open(name, told.tenant, made, on_event)


async def open_async_conversation(
    name: str,
    *,
    store: str | Store | None = None,
    format: str | Format | None = None,
    model: str | None = None,
    window: int | None = None,
    reserve: int | None = None,
    policy: str | Policy | Sequence[Policy] | None = None,
    settings: Mapping[str, Any] | None = None,
    profile: Profile | None = None,
    prices: Prices | None = None,
    counter: TokenCounter | None = None,
    clock: Clock | None = None,
    summarizer: str | Summarizer | None = None,
    plugins: Sequence[Plugin] = (),
    tenant: str | None = None,
    on_event: Callable[[Event], object] | None = None,
    background: bool | Background | Elsewhere | None = None,
    expand: bool | None = None,
    expand_where: Where | None = None,
) -> AsyncConversation:
    """See `open_conversation`."""
    asked = listed(plugins)
    told = _told(
        policy,
        settings,
        asked,
        store=store,
        format=format,
        model=model,
        window=window,
        reserve=reserve,
        tenant=tenant,
        summarizer=summarizer,
        expand=expand,
        expand_where=expand_where,
    )
    made = _Made(told, profile, prices, counter, clock, asked, background)
    return await _open_async(name, told.tenant, made, on_event)


def open_store(url: str) -> Database:
    """The store behind a URL: `memory:`, `sqlite:///PATH` or `postgresql://...`. Raises BadSetting for another one.

    It keeps conversations (`ports.Store`) and what was set up for agents (`ports.Catalog`).

    `sqlite:///PATH?search=off` keeps no index of words: the file is smaller by about 40 %, and `search` is refused.
    `?wait=30`: seconds to wait while another process writes (10). `?synchronous=normal`: a power cut may undo the last
    moments (docs/durability.md). Several are joined by `&`.
    `postgresql://USER:PASSWORD@HOST/DATABASE?schema=NAME` needs the extra `postgres`; MissingExtra where it is missing.
    """
    given.text("The URL of a store", url)
    place = place_of(url)
    if place.kind == "memory":
        from .stores.memory import MemoryStore

        return MemoryStore()
    if place.kind == "postgres":
        from .stores.postgres import PostgresStore

        return PostgresStore(place.path)
    from .stores.sqlite import SqliteStore

    return SqliteStore(place.path, synchronous=place.synchronous, wait=place.wait, search=place.search)


def open_model(
    name: str,
    *,
    asynchronous: bool = False,
    max_tokens: int | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    options: Mapping[str, Any] | None = None,
    api_key: str | None = None,
) -> AnthropicModel | OpenAIModel | DemoModel:
    """The model of this name, through its provider's official SDK: `anthropic:claude-haiku-4-5`, `openai:gpt-4.1-mini`,
    `google:gemini-2.5-flash`, `xai:grok-4.7`, ... (`foveate.models.PROVIDERS`).

    Its `format` is the one to open a conversation with. Its key is `api_key`, or is found where the SDK finds it, when
    the first request is sent. `asynchronous`: its answers are awaited. `max_tokens`: of one answer (default 8,192).
    `timeout`: seconds until the answer, or the next piece of a stream (600). `max_retries`: the SDK's (2). `options`:
    said with every request, such as `{"temperature": 0}`. Raises BadSetting for another name, and MissingExtra where
    the SDK is not installed.
    """
    from .models import model_named

    return model_named(
        name,
        asynchronous=asynchronous,
        max_tokens=max_tokens,
        timeout=timeout,
        max_retries=max_retries,
        options=options,
        api_key=api_key,
    )


def cost_of(name: str) -> Cost | None:
    """What tokens of the model with this name cost in US dollars, as a function of a `Usage`; None where that is not
    known, or `genai-prices` is not installed (`pip install "foveate[prices]"`).
    """
    from .models.prices import cost_of as found

    return found(name)


def open_summarizer(name: str, *, prompts: Mapping[str, str] | None = None) -> Summarizer:
    """The summarizer of this name: `digest` or `first-characters`, which need no model, or a model.

    A model is named as in `anthropic:claude-haiku-4-5` or `openai:gpt-4.1-mini`. What it wrote is kept for the same
    question, and where it fails, or writes what cannot be taken, the digest answers. `prompts`: a model's, by their
    names, beside the shipped ones or in their places. Raises BadSetting for another name, and MissingExtra where the
    SDK is not installed.
    """
    from .models import is_model_name, model_named
    from .summarizers import fallback, first_characters, summarizer_named

    given.text("The name of a summarizer", name)
    if not is_model_name(name):
        return summarizer_named(name)
    from .summarizers.cache import cached
    from .summarizers.digest import digest_history
    from .summarizers.model import model_summarizer

    model = model_named(name, timeout=_SUMMARY_TIMEOUT)
    writer = model_summarizer(model, _format(model.format), prompts=prompts)
    return fallback(cached(writer), digest_history(), first_characters())


class _Told(NamedTuple):
    """What keywords, the environment, `foveate.toml` and a preset come to together."""

    policies: Sequence[Policy]
    floor: Sequence[Rung]
    store: str | Store
    format: str | Format
    model: str
    window: int | None
    reserve: int | None
    tenant: str
    expand: bool
    expand_where: Where
    summarizer: str | Summarizer
    """A name, "" for none, or what a program hands in."""


class _Made(NamedTuple):
    """What a conversation is made of, so that a fork of it is made of the same."""

    told: _Told
    profile: Profile | None
    prices: Prices | None
    counter: TokenCounter | None
    clock: Clock | None
    plugins: tuple[Plugin, ...]
    background: bool | Background | Elsewhere | None

    def engine(self, own: type[Threads] | type[Tasks]) -> Engine:
        """An engine of these parts. `own`: makes what runs in the background where nothing is handed in for it.

        Raises BadSetting, before the store is opened, for values that are not allowed.
        """
        self._check()
        told = self.told
        has_summarizer = told.summarizer != ""
        policies = in_use(told.policies, has_summarizer=has_summarizer)
        check_together(policies, has_summarizer=has_summarizer)
        format = _format(told.format)
        profile = self.profile or profile_for(format.name, told.model)
        return Engine(
            open_store(told.store) if isinstance(told.store, str) else told.store,
            format,
            profile,
            self.counter or EstimatingCounter(),
            _whole(self.clock) if self.clock else _wall_clock,
            policies=policies,
            floor=told.floor,
            limits=Limits(told.window if told.window is not None else window_of(told.model), told.reserve, profile),
            prices=self.prices or Prices(),
            summarizer=_summarizer(told.summarizer),
            spare=_by_code,
            background=self._beside(own),
        )

    def expanding(self) -> Expanding:
        """How the conversation expands."""
        return Expanding(self.told.expand, self.told.expand_where, find_pattern)

    def _beside(self, own: type[Threads] | type[Tasks]) -> Background | Elsewhere | None:
        if isinstance(self.background, bool):
            return own(eager=True) if self.background else None
        if self.background is None:  # Without a model a summary is done before a thread has begun.
            return None if _needs_no_model(self.told.summarizer) else own()
        return self.background

    def _check(self) -> None:
        told = self.told
        if not isinstance(told.store, str):
            given.like("store=", told.store, ("open", "append", "commit"), "a URL such as sqlite:///chat.db or a Store")
        if not isinstance(told.format, str):
            given.like("format=", told.format, ("parse", "prompt"), "the name of a format or a Format")
        given.text("model=", told.model)
        given.instance("expand=", told.expand, bool, "True or False")
        if told.expand_where not in get_args(Where):
            raise BadSetting(f"expand_where= is {', '.join(get_args(Where))}, not {told.expand_where!r:.60}.")
        if told.window is not None:
            given.whole("window= (tokens)", told.window, 1)
        if told.reserve is not None:
            given.whole("reserve= (tokens)", told.reserve)
        if self.profile is not None:
            given.instance("profile=", self.profile, Profile, "a Profile")
        if self.prices is not None:
            given.instance("prices=", self.prices, Prices, "a Prices")
        if self.clock is not None:
            given.callable_("clock=", self.clock)
        if not isinstance(told.summarizer, str):
            given.callable_("summarizer=", told.summarizer)
        is_own = self.background is not None and not isinstance(self.background, bool)
        if is_own and not hasattr(self.background, "hand_on"):
            given.callable_("background=, if not True or False,", self.background)
        if self.counter is not None:
            given.callable_("counter=", self.counter)
            given.whole("What counter= returns (tokens)", self.counter("four"))

    def beside(self, engine: Engine) -> _Made:
        """The same parts for another conversation in the store that `engine` has open."""
        format = self.told.format if isinstance(self.told.format, str) else engine.format
        return self._replace(told=self.told._replace(store=engine.store, format=format))


def _open(name: str, tenant: str, made: _Made, on_event: Callable[[Event], object] | None) -> Conversation:
    _check_opening(name, tenant, on_event)
    engine = made.engine(Threads)

    def reopen(fork: str) -> Conversation:
        return _open(fork, tenant, made.beside(engine), on_event)

    owns_store = isinstance(made.told.store, str)
    conversation = Conversation(
        engine,
        on_event=on_event,
        plugins=made.plugins,
        expanding=made.expanding(),
        owns_store=owns_store,
        reopen=reopen,
    )
    try:
        conversation._do(engine.open(tenant, name))
    except BaseException:
        conversation.close()
        raise
    return conversation


async def _open_async(
    name: str, tenant: str, made: _Made, on_event: Callable[[Event], object] | None
) -> AsyncConversation:
    from .async_conversation import AsyncConversation
    from .background.tasks import Tasks

    _check_opening(name, tenant, on_event)
    engine = made.engine(Tasks)

    async def reopen(fork: str) -> AsyncConversation:
        return await _open_async(fork, tenant, made.beside(engine), on_event)

    owns_store = isinstance(made.told.store, str)
    conversation = AsyncConversation(
        engine,
        on_event=on_event,
        plugins=made.plugins,
        expanding=made.expanding(),
        owns_store=owns_store,
        reopen=reopen,
    )
    try:
        await conversation._do(engine.open(tenant, name))
    except BaseException:
        await conversation.close()
        raise
    return conversation


def _check_opening(name: object, tenant: object, on_event: object) -> None:
    given.text("The name of a conversation", name)
    given.text("tenant=", tenant)
    if on_event is not None:
        given.callable_("on_event=", on_event)


def _format(format: str | Format) -> Format:
    if not isinstance(format, str):
        return format
    from .formats import get_format

    return get_format(format)


def _summarizer(summarizer: str | Summarizer) -> Summarizer | None:
    if isinstance(summarizer, str):
        return open_summarizer(summarizer) if summarizer else None
    from .summarizers import checked

    return checked(summarizer)


def _needs_no_model(summarizer: str | Summarizer) -> bool:
    from .models import is_model_name

    return isinstance(summarizer, str) and not is_model_name(summarizer)


def _by_code(request: SummaryRequest) -> str | Summary | Awaitable[str | Summary]:
    """The summarizer that answers where the conversation's own did not do."""
    from .summarizers import summarizer_named  # Few conversations ever need it.

    return summarizer_named("digest")(request)


def _told(
    policy: str | Policy | Sequence[Policy] | None,
    settings: Mapping[str, Any] | None,
    plugins: Sequence[Plugin],
    **keywords: Any,
) -> _Told:
    """Merge what is said. Where only keywords speak, nothing is read but the preset."""
    if settings is None and not plugins and not os.path.lexists("foveate.toml") and not any(map(_is_ours, os.environ)):
        chosen = DEFAULT if policy is None else policy
        policies, floor = _policies(chosen)
        plain: dict[str, Any] = {
            "store": "memory:",
            "format": "openai",
            "model": "",
            "tenant": "",
            "expand": False,
            "expand_where": "auto",
        }
        plain["summarizer"] = named_summarizer(chosen) if isinstance(chosen, str) else ""
        return _Told(policies, floor, **keywords | {key: plain[key] for key in plain if keywords[key] is None})
    from .settings import load

    merged = load(
        policy=policy, environ=os.environ, folder=Path(), settings=settings, has_plugins=bool(plugins), **keywords
    )
    policies = merged.policies()
    if plugins and not isinstance(merged["policy"], str):
        policies = _retaining(policies)
    if merged["policy"] != "off":  # One switch for all that is automatic.
        policies = (*policies_of(plugins), *policies)
    return _Told(policies, merged.floor(), **{key: merged[key] for key in keywords})


def _retaining(policies: tuple[Policy, ...]) -> tuple[Policy, ...]:
    """Policies of the program's own, behind the one that plugins cannot do without."""
    from .policies.retain_blocks import RetainBlocks, retain_blocks

    is_there = any(isinstance(policy, RetainBlocks) for policy in policies)
    return policies if is_there else (retain_blocks(), *policies)


def _is_ours(variable: str) -> bool:
    return variable.upper().startswith(("FOVEATE_", "LLM_COMPACTION_"))


def _policies(policy: str | Policy | Sequence[Policy]) -> tuple[Sequence[Policy], Sequence[Rung]]:
    if isinstance(policy, str):
        return named(policy)
    return own_policies(policy), FLOOR


def _whole(clock: Clock) -> Clock:
    """A clock whose wrong answers are refused, since a time that is no whole number could not be read again."""
    return lambda: given.whole("What clock= returns (milliseconds since 1970)", clock())


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000
