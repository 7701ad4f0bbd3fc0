"""Opening a conversation, in either shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import given
from ..background.threads import Threads
from ..conversation import Conversation
from ..core.events import Event
from ..core.planner import Policy
from ..core.profiles import Profile
from ..core.view import Prices
from ..expansion.placing import Where
from ..plugins import Plugin, listed
from ..ports import Background, Clock, Elsewhere, Format, Store, Summarizer, TokenCounter
from .made import Made
from .told import told_by

if TYPE_CHECKING:
    from ..async_conversation import AsyncConversation

__all__ = ["open_async_conversation", "open_conversation"]


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
    told = told_by(
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
    made = Made(told, profile, prices, counter, clock, asked, background)
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
    told = told_by(
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
    made = Made(told, profile, prices, counter, clock, asked, background)
    return await _open_async(name, told.tenant, made, on_event)


def _open(name: str, tenant: str, made: Made, on_event: Callable[[Event], object] | None) -> Conversation:
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
    name: str, tenant: str, made: Made, on_event: Callable[[Event], object] | None
) -> AsyncConversation:
    from ..async_conversation import AsyncConversation
    from ..background.tasks import Tasks

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
    given.name("The name of a conversation", name)
    given.text("tenant=", tenant)
    if on_event is not None:
        given.callable_("on_event=", on_event)
