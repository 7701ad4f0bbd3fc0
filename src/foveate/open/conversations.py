"""Opens conversations, for programs with and without asyncio."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..background.threads import Threads
from ..conversation import Conversation, validate
from ..conversation.plugins import Plugin, checked_plugins
from ..policies import PolicyChoice
from ..ports import Format, Store, Summarizer, complete
from .options import Options, resolve
from .parts import Parts
from .registry import open_store

if TYPE_CHECKING:
    from ..background.tasks import Tasks
    from ..conversation import AsyncConversation

__all__ = ["Opener", "open_async_conversation", "open_conversation", "open_without_window"]

_log = logging.getLogger("foveate")
_NO_OPTIONS = Options()


def open_conversation(
    name: str,
    *,
    store: str | Store | None = None,
    format: str | Format | None = None,
    model: str | None = None,
    window: int | None = None,
    policy: PolicyChoice | None = None,
    summarizer: str | Summarizer | None = None,
    expand: bool | None = None,
    plugins: Sequence[Plugin] = (),
    options: Options = _NO_OPTIONS,
) -> Conversation:
    """Open the conversation `name`; create it if it does not exist.

    `store`: `memory:` (the default, gone when the process ends), `sqlite:///chat.db` (relative),
    `sqlite:////var/chat.db` (absolute), `postgresql://...`, or a Store, which stays open when the conversation closes.

    `model`: the name of the model, such as `claude-sonnet-4-5` or `openai:gpt-5`. It chooses format, window, prices and
    the provider's rules. `format`: `openai` (chat completions), `openai_responses`, `anthropic` or `gemini`; default:
    the model's, else `openai`. `window`: the model's window in tokens; needed if the model is not known.

    `policy`: a preset's name or file (`balanced`, the default, `prune`, `keep-last-5`, `mine.toml`), a policy of your
    own, or a list of both, such as `[mine, "balanced"]`. `none` keeps only the hard floor; `off` does nothing
    automatically. `summarizer`: writes the summaries that policies request. A function, or a name: `digest` and
    `first-characters` need no model; `anthropic:claude-haiku-4-5` names one.

    `expand`: offer the model the tool `expand`, which shows originals, and answer its calls: True always, False never,
    by default in requests with other tools. In a request without it, no text names the tool. `plugins`: add context to
    the user's messages and to tool results. `options`: everything else, see `Options`.

    A value that is None comes from the environment (`FOVEATE_WINDOW`), `foveate.toml` in the current folder, the preset
    or the default, in this order. Raises BadSetting for values that are not allowed or do not go together.
    """
    parts = _parts(locals())
    return _open(name, parts)


def open_without_window(name: str, **keywords: Any) -> Conversation:
    """Open a conversation that may have no window, with the keywords of `open_conversation`, for a job of a worker.

    Compaction on request needs none; `prompt` and `plan` still raise BadSetting without one.
    """
    return _open(name, _parts({**_DEFAULTS, **keywords})._replace(needs_window=False))


async def open_async_conversation(
    name: str,
    *,
    store: str | Store | None = None,
    format: str | Format | None = None,
    model: str | None = None,
    window: int | None = None,
    policy: PolicyChoice | None = None,
    summarizer: str | Summarizer | None = None,
    expand: bool | None = None,
    plugins: Sequence[Plugin] = (),
    options: Options = _NO_OPTIONS,
) -> AsyncConversation:
    """Open the conversation `name` for asyncio; create it if it does not exist.

    The arguments are those of `open_conversation`. Summarizers and plugins may be coroutine functions.
    """
    parts = _parts(locals())
    return await _open_async(name, parts)


class Opener:
    """Opens conversations with the same options in one store."""

    def __init__(self, **keywords: Any) -> None:
        """`keywords`: all those of `open_conversation`. Opens the store.

        Without a model, the window need not be known yet: a request may name both.
        """
        parts = _parts(keywords)._replace(needs_window=False)
        parts.check()
        if parts.resolved.model:
            parts.require_window(parts.resolved.model)
        store = parts.resolved.store
        self._owns_store = isinstance(store, str)
        self._store = open_store(store) if isinstance(store, str) else complete(store)
        self._parts = parts.in_store(self._store).with_open_model()

    def open(self, name: str) -> Conversation:
        """Open a conversation. Closing it leaves the store open."""
        return _open(name, self._parts)

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._owns_store:
            self._store.close()


_DEFAULTS: dict[str, Any] = dict(open_conversation.__kwdefaults__ or {})


def _parts(arguments: dict[str, Any]) -> Parts:
    """Resolve the arguments of `open_conversation`."""
    options = validate.instance("options=", arguments["options"], Options, "an Options, such as Options(reserve=8_000)")
    plugins = checked_plugins(arguments["plugins"])
    arguments = {name: str.__str__(value) if isinstance(value, str) else value for name, value in arguments.items()}
    keywords = {name: arguments[name] for name in ("store", "format", "model", "window", "summarizer", "expand")}
    keywords |= {name: getattr(options, name) for name in ("reserve", "tenant", "expand_where")}
    return Parts(resolve(arguments["policy"], options.settings, plugins, **keywords), options, plugins)


def _open(
    name: str, parts: Parts, background: type[Threads] | type[Tasks] = Threads, *, is_fork: bool = False
) -> Conversation:
    name = _checked_name(name, parts)
    session = parts.session(background)
    for note in () if is_fork else parts.idle_notes(session):
        _log.warning("%s: %s", name, note)

    def reopen(fork: str) -> Conversation:
        return _open(fork, parts.sharing_store(session), background, is_fork=True)

    conversation = Conversation(session, owns_store=isinstance(parts.resolved.store, str), reopen=reopen)
    try:
        session.state.open(parts.resolved.tenant, name)
    except BaseException:
        conversation.close()
        raise
    return conversation


async def _open_async(name: str, parts: Parts) -> AsyncConversation:
    import asyncio

    from ..background.tasks import Tasks, finished, running_loop

    running_loop()
    opening = asyncio.ensure_future(asyncio.to_thread(_open, name, parts, Tasks))
    if cancelled := await finished(opening):
        if opening.exception() is None:
            opening.result().close()
        raise cancelled
    return opening.result().aio


def _checked_name(name: object, parts: Parts) -> str:
    """Return the name of a conversation. Raises BadSetting if it, or a part that belongs to it, is not allowed."""
    validate.text("tenant=", parts.resolved.tenant)
    if parts.options.on_event is not None:
        validate.listener("on_event=", parts.options.on_event)
    return validate.conversation_name("The name of a conversation", name)
