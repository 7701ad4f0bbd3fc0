"""The one place that picks concrete leaves: which store, format, counter and policies a conversation is made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .conversation import AsyncConversation, Conversation
from .core.events import Event
from .core.planner import Policy
from .core.profiles import Profile, profile_for, window_of
from .core.view import Prices
from .counters.estimate import EstimatingCounter
from .engine import Engine
from .errors import BadSetting
from .policies import FLOOR, named
from .ports import Clock, Format, Store, TokenCounter

if TYPE_CHECKING:
    pass

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
    `clock`: milliseconds since 1970. `on_event` is called with every Event; it can neither break nor change a run.
    Raises BadSetting for values that are not allowed.
    """
    engine, owns = _engine(store, format, model, window, reserve, policy, profile, prices, counter, clock)

    def reopen(other: str) -> Conversation:
        return open_conversation(
            other,
            store=engine.store,
            format=engine.format.name,
            model=model,
            window=window,
            reserve=reserve,
            policy=policy,
            profile=profile,
            prices=prices,
            counter=counter,
            clock=clock,
            tenant=tenant,
            on_event=on_event,
        )

    conversation = Conversation(engine, on_event=on_event, owns_store=owns, reopen=reopen)
    try:
        conversation._do(engine.open(tenant, name))
    except BaseException:
        conversation.close()
        raise
    return conversation


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
    tenant: str = "",
    on_event: Callable[[Event], object] | None = None,
) -> AsyncConversation:
    """See `open_conversation`."""
    engine, owns = _engine(store, format, model, window, reserve, policy, profile, prices, counter, clock)

    async def reopen(other: str) -> AsyncConversation:
        return await open_async_conversation(
            other,
            store=engine.store,
            format=engine.format.name,
            model=model,
            window=window,
            reserve=reserve,
            policy=policy,
            profile=profile,
            prices=prices,
            counter=counter,
            clock=clock,
            tenant=tenant,
            on_event=on_event,
        )

    conversation = AsyncConversation(engine, on_event=on_event, owns_store=owns, reopen=reopen)
    try:
        await conversation._do(engine.open(tenant, name))
    except BaseException:
        await conversation.close()
        raise
    return conversation


def open_store(url: str) -> Store:
    """The store behind a URL: `memory:` or `sqlite:///PATH`. Raises BadSetting for another one."""
    if url in ("memory:", "memory://"):
        from .stores.memory import MemoryStore

        return MemoryStore()
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        from .stores.sqlite import SqliteStore

        return SqliteStore(url.removeprefix("sqlite:///"))
    raise BadSetting(f"There is no store {url!r}. Known: memory: and sqlite:///PATH, for example sqlite:///chat.db.")


def _engine(
    store: str | Store,
    format: str | Format,
    model: str,
    window: int | None,
    reserve: int | None,
    policy: str | Policy | Sequence[Policy],
    profile: Profile | None,
    prices: Prices | None,
    counter: TokenCounter | None,
    clock: Clock | None,
) -> tuple[Engine, bool]:
    """The engine, and whether its store was opened here."""
    if window is not None and (isinstance(window, bool) or window < 1):
        raise BadSetting(f"window= is a number of tokens above 0, not {window!r}.")
    if reserve is not None and (isinstance(reserve, bool) or reserve < 0):
        raise BadSetting(f"reserve= is a number of tokens of 0 or more, not {reserve!r}.")
    policies, floor = _policies(policy)
    shape = _format(format)
    demands = profile or profile_for(shape.name, model)
    opened = open_store(store) if isinstance(store, str) else store
    engine = Engine(
        opened,
        shape,
        demands,
        counter or EstimatingCounter(),
        clock or _wall_clock,
        policies=policies,
        floor=floor,
        window=window if window is not None else window_of(model),
        reserve=reserve,
        prices=prices or Prices(),
    )
    return engine, isinstance(store, str)


def _format(format: str | Format) -> Format:
    if not isinstance(format, str):
        return format
    from .formats import get_format

    return get_format(format)


def _policies(policy: str | Policy | Sequence[Policy]) -> tuple[Sequence[Policy], Sequence[Policy]]:
    if isinstance(policy, str):
        return named(policy)
    if callable(policy):
        return (policy,), FLOOR
    return tuple(policy), FLOOR


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000
