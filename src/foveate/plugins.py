"""Context providers: programs that add to a message what the model should know beside it, for as long as they say.

A plugin is asked when the user has said something, with what was said, and with nothing when tools have answered and
the model is about to be called again. What it returns becomes part of the stored message (`core/enrich.py`), or, after
tool results, a message of its own: no "please continue" in anybody's name goes with it, since models take such words
for a request. A plugin that fails is left out; it can neither break a call nor see what another one added.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from . import given
from .core.enrich import AdditionalContent, Enriched, enrich
from .core.messages import Message, Part
from .core.projection import Projection
from .engine import About, Step
from .errors import BadSetting

__all__ = ["AdditionalContent", "Panel", "Plugin", "listed"]

Failed = Callable[[str, str], None]
"""Told the name of a plugin that is left out, and why."""


class Plugin(Protocol):
    """Adds to messages what the model should know beside them."""

    name: str
    """Stands over what it adds, and in the journal and in settings."""

    def __call__(
        self, content: tuple[Part, ...], /
    ) -> Iterable[AdditionalContent] | Awaitable[Iterable[AdditionalContent] | None] | None:
        """What to add to a message with this content; `()` when tools have answered. None: nothing.

        It may be awaited in an async conversation. It must not use the conversation that asks it, which waits for it.
        """
        ...


def listed(plugins: Sequence[Plugin]) -> tuple[Plugin, ...]:
    """Plugins as a program hands them in. Raises BadSetting for what is no plugin, and for a name taken twice."""
    if not isinstance(plugins, list | tuple):
        raise BadSetting(f"plugins= is a list of plugins, not {plugins!r:.100}.")
    names: set[str] = set()
    for plugin in plugins:
        given.callable_("A plugin", plugin)
        name = getattr(plugin, "name", None)
        if not isinstance(name, str) or not name.strip():
            raise BadSetting(f"A plugin has a name, a text that is not blank; {plugin!r:.100} has {name!r:.60}.")
        if name in names:
            raise BadSetting(f"There are two plugins of the name {name!r}; each needs its own.")
        names.add(name)
    return tuple(plugins)


class Panel:
    """The plugins of one conversation, and where they had nothing to say."""

    def __init__(self, plugins: Sequence[Plugin], failed: Failed) -> None:
        self._plugins = tuple(plugins)
        self._failed = failed
        self._asked = ""  # id of the newest message when they had nothing to add to tool results
        self._is_asking = False

    def add_to(self, messages: Sequence[Message], about: About) -> Step[tuple[Sequence[Message], About]]:
        """The messages, what the user says last in them with what plugins add to it, and how long its parts are shown.

        Of several messages only the last that the user says is added to, and only if the model has not answered it:
        the others are the past by now. What is appended with times of its own is left as it is.
        """
        at = _unanswered(messages, about)
        if at is None or not self._plugins or about.kept:
            return messages, about
        added = yield from self._added(messages[at].parts)
        made = enrich(messages[at], added)
        kept = {at: made.kept} if made.kept else {}
        return (*messages[:at], made.message, *messages[at + 1 :]), replace(about, kept=kept)

    def after_results(self, projection: Projection, tip: str) -> Step[Enriched | None]:
        """A message of what plugins add to tool results that no call has shown yet; None where there is nothing.

        They are asked once: not again for a prompt that is made again.
        """
        if not self._plugins or self._asked == tip or not _has_fresh_results(projection):
            return None
        made = enrich(Message("user"), (yield from self._added(())))
        if made.kept:
            return made  # Once it is appended, it shows that they were asked.
        self._asked = tip
        return None

    def _added(self, content: tuple[Part, ...]) -> Step[list[tuple[str, tuple[AdditionalContent, ...]]]]:
        added: list[tuple[str, tuple[AdditionalContent, ...]]] = []
        if self._is_asking:
            return added  # A plugin that appends a message is not asked about it.
        self._is_asking = True
        try:
            for plugin in self._plugins:
                try:
                    said = yield partial(_ask, plugin, content)
                    added.append((plugin.name, _checked(said)))
                except Exception as error:  # Its own affair: the message is made without it.
                    self._failed(plugin.name, f"{type(error).__name__}: {error}")
        finally:
            self._is_asking = False
        return added


def _unanswered(messages: Sequence[Message], about: About) -> int | None:
    """Index of the last message that the user says, if the model does not answer it in what follows."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "assistant":
            return None
        if messages[at].role == "user" and about.origin_of(messages[at]) == "user":
            return at
    return None


def _has_fresh_results(projection: Projection) -> bool:
    """Whether a tool has answered, and not with an error, since the model or the user spoke or plugins were asked."""
    for message, stamp in projection.since_reply():
        if stamp.origin in ("user", "plugin"):
            return False
        has_answered = stamp.origin == "tool" or (stamp.expanded is not None and message.role == "tool")
        if has_answered and (message.result is None or message.result.state != "error"):
            return True
    return False


def _ask(plugin: Plugin, content: tuple[Part, ...]) -> object:
    said = plugin(content)
    return list(said) if isinstance(said, Iterable) else said  # A generator runs here, where its failure is its own.


def _checked(said: object) -> tuple[AdditionalContent, ...]:
    """What a plugin returned, as values that it can no longer change. Raises for what cannot be added to a message."""
    if inspect.iscoroutine(said):
        said.close()
        raise TypeError("it must be awaited, which only an async conversation can do")
    returned: list[object] = [] if said is None else list(said) if isinstance(said, Iterable) else [said]
    contents: list[AdditionalContent] = []
    for one in returned:
        if not isinstance(one, AdditionalContent):
            raise TypeError(f"it returned {one!r:.60}, which is no AdditionalContent")
        given.message(Message("user", one.blocks))
        contents.append(replace(one, content=one.blocks))
    return tuple(contents)
