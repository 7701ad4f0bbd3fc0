"""The one place that picks concrete leaves: which store, format, counter and policies a conversation is made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from . import given
from .conversation import Conversation
from .core.events import Event
from .core.planner import Policy, Rung
from .core.profiles import Profile, profile_for, window_of
from .core.view import Prices
from .counters.estimate import EstimatingCounter
from .engine import Engine
from .errors import BadSetting
from .limits import Limits
from .policies import FLOOR, named
from .ports import Clock, Format, Store, Summarizer, TokenCounter

if TYPE_CHECKING:
    from .async_conversation import AsyncConversation

__all__ = ["open_async_conversation", "open_conversation", "open_store"]


def open_conversation(
    name: str,
    *,
    store: str | Store = "memory:",
    format: str | Format = "openai",
    model: str = "",
    window: int | None = None,
    reserve: int | None = None,
    policy: str | Policy | Sequence[Policy] = "prune",
    profile: Profile | None = None,
    prices: Prices | None = None,
    counter: TokenCounter | None = None,
    clock: Clock | None = None,
    summarizer: Summarizer | None = None,
    tenant: str = "",
    on_event: Callable[[Event], object] | None = None,
) -> Conversation:
    """Open the conversation `name`, or begin it.

    `store`: `memory:` (default; gone when the process ends), `sqlite:///chat.db` (relative) or
    `sqlite:////var/chat.db` (absolute), or a Store, which is then left open on close. `format`: `openai` (chat
    completions) or `anthropic`. `window`: the model's, in tokens; known for common models if `model` is named.
    `reserve`: tokens kept free for the answer (default: a tenth of the window, at most 20,000). `policy`: a name
    (`prune`, `keep-last-5`, `none` for the hard floor alone, `off` for nothing automatic at all) or policies of
    your own, which run above the hard floor. `profile`: what the provider demands, if it is not the format's own.
    `clock`: milliseconds since 1970. `summarizer`: writes the summaries that a policy asks for; without one, the policy
    does what it can without a model. `on_event` is called with every Event; it can neither break nor change a run.
    Raises BadSetting for values that are not allowed.
    """
    made = _Made(store, format, model, window, reserve, policy, profile, prices, counter, clock, summarizer)
    return _open(name, tenant, made, on_event)


async def open_async_conversation(
    name: str,
    *,
    store: str | Store = "memory:",
    format: str | Format = "openai",
    model: str = "",
    window: int | None = None,
    reserve: int | None = None,
    policy: str | Policy | Sequence[Policy] = "prune",
    profile: Profile | None = None,
    prices: Prices | None = None,
    counter: TokenCounter | None = None,
    clock: Clock | None = None,
    summarizer: Summarizer | None = None,
    tenant: str = "",
    on_event: Callable[[Event], object] | None = None,
) -> AsyncConversation:
    """See `open_conversation`."""
    made = _Made(store, format, model, window, reserve, policy, profile, prices, counter, clock, summarizer)
    return await _open_async(name, tenant, made, on_event)


def open_store(url: str) -> Store:
    """The store behind a URL: `memory:` or `sqlite:///PATH`. Raises BadSetting for another one."""
    given.text("The URL of a store", url)
    if url in ("memory:", "memory://"):
        from .stores.memory import MemoryStore

        return MemoryStore()
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        from .stores.sqlite import SqliteStore

        return SqliteStore(url.removeprefix("sqlite:///"))
    raise BadSetting(f"There is no store {url!r}. Known: memory: and sqlite:///PATH, for example sqlite:///chat.db.")


class _Made(NamedTuple):
    """What a conversation is made of, so that a fork of it is made of the same."""

    store: str | Store
    format: str | Format
    model: str
    window: int | None
    reserve: int | None
    policy: str | Policy | Sequence[Policy]
    profile: Profile | None
    prices: Prices | None
    counter: TokenCounter | None
    clock: Clock | None
    summarizer: Summarizer | None

    def engine(self) -> Engine:
        """An engine of these parts. Raises BadSetting, before the store is opened, for values that are not allowed."""
        self._check()
        policies, floor = _policies(self.policy)
        format = _format(self.format)
        profile = self.profile or profile_for(format.name, self.model)
        return Engine(
            open_store(self.store) if isinstance(self.store, str) else self.store,
            format,
            profile,
            self.counter or EstimatingCounter(),
            _whole(self.clock) if self.clock else _wall_clock,
            policies=policies,
            floor=floor,
            limits=Limits(self.window if self.window is not None else window_of(self.model), self.reserve, profile),
            prices=self.prices or Prices(),
            summarizer=self.summarizer,
        )

    def _check(self) -> None:
        if not isinstance(self.store, str):
            given.like("store=", self.store, ("open", "append", "commit"), "a URL such as sqlite:///chat.db or a Store")
        if not isinstance(self.format, str):
            given.like("format=", self.format, ("parse", "prompt"), "the name of a format or a Format")
        given.text("model=", self.model)
        if self.window is not None:
            given.whole("window= (tokens)", self.window, 1)
        if self.reserve is not None:
            given.whole("reserve= (tokens)", self.reserve)
        if self.profile is not None:
            given.instance("profile=", self.profile, Profile, "a Profile")
        if self.prices is not None:
            given.instance("prices=", self.prices, Prices, "a Prices")
        if self.clock is not None:
            given.callable_("clock=", self.clock)
        if self.summarizer is not None:
            given.callable_("summarizer=", self.summarizer)
        if self.counter is not None:
            given.callable_("counter=", self.counter)
            given.whole("What counter= returns (tokens)", self.counter("four"))

    def beside(self, engine: Engine) -> _Made:
        """The same parts for another conversation in the store that `engine` has open."""
        format = self.format if isinstance(self.format, str) else engine.format
        return self._replace(store=engine.store, format=format)


def _open(name: str, tenant: str, made: _Made, on_event: Callable[[Event], object] | None) -> Conversation:
    _check_opening(name, tenant, on_event)
    engine = made.engine()

    def reopen(fork: str) -> Conversation:
        return _open(fork, tenant, made.beside(engine), on_event)

    owns_store = isinstance(made.store, str)
    conversation = Conversation(engine, on_event=on_event, owns_store=owns_store, reopen=reopen)
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

    _check_opening(name, tenant, on_event)
    engine = made.engine()

    async def reopen(fork: str) -> AsyncConversation:
        return await _open_async(fork, tenant, made.beside(engine), on_event)

    owns_store = isinstance(made.store, str)
    conversation = AsyncConversation(engine, on_event=on_event, owns_store=owns_store, reopen=reopen)
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


def _policies(policy: str | Policy | Sequence[Policy]) -> tuple[Sequence[Policy], Sequence[Rung]]:
    if isinstance(policy, str):
        return named(policy)
    if callable(policy):
        return (policy,), FLOOR
    if not isinstance(policy, list | tuple):
        raise BadSetting(f"policy= is a name, a policy or a list of policies, not {policy!r:.100}.")
    for one in policy:
        given.callable_("A policy", one)
    return tuple(policy), FLOOR


def _whole(clock: Clock) -> Clock:
    """A clock whose wrong answers are refused, since a time that is no whole number could not be read again."""
    return lambda: given.whole("What clock= returns (milliseconds since 1970)", clock())


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000
