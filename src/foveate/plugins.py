"""Context providers: programs that add to a message what the model should know beside it, for as long as they say.

A plugin is asked when the user has said something, with what was said, and with nothing when tools have answered and
the model is about to be called again. What it returns becomes part of the stored message (`core/enrich.py`), or, after
tool results, a message of its own: no "please continue" in anybody's name goes with it, since models take such words
for a request. A plugin that fails is left out; it can neither break a call nor see what another one added.

`plugin` makes one of a function that returns text. Beside what it adds, a plugin may bring tools, which agents offer
to the model, and policies, which run before the conversation's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, overload

from msgspec.structs import replace

from . import given
from .core.enrich import AdditionalContent, EnrichedMessage, enrich
from .core.messages import Media, Message, Part, Text
from .core.planner import Policy
from .core.projection import Projection
from .engine import About, Step
from .errors import BadSetting

__all__ = ["AdditionalContent", "Additions", "Panel", "Plugin", "brought", "listed", "plugin", "policies_of"]

Addition = AdditionalContent | str | Text | Media
"""What is no AdditionalContent is shown at the coming call, and at no later one."""
Additions = Addition | Iterable[Addition] | None
"""What a plugin returns."""

Failed = Callable[[str, str], None]
"""Told the name of a plugin that is left out, and why."""


class Plugin(Protocol):
    """Adds to messages what the model should know beside them.

    It may also have `tools`, a list of tools or functions that agents offer to the model as if they had been told of
    them, and `policies`, a list of policies that run before those of the conversation, unless `off` is chosen.
    """

    name: str
    """Stands over what it adds, and in the journal and in settings."""

    def __call__(self, content: tuple[Part, ...], /) -> Additions | Awaitable[Additions]:
        """What to add to a message with this content; `()` when tools have answered. None: nothing.

        It may be awaited in an async conversation. It must not use the conversation that asks it, which waits for it.
        """
        ...


Function = Callable[[tuple[Part, ...]], Additions | Awaitable[Additions]]


@overload
def plugin(function: Function, /) -> Plugin: ...
@overload
def plugin(
    *,
    name: str | None = None,
    display: bool = True,
    save: bool | int = False,
    after_tools: bool = False,
    tools: Sequence[object] = (),
    policies: Sequence[Policy] = (),
) -> Callable[[Function], Plugin]: ...


def plugin(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    display: bool = True,
    save: bool | int = False,
    after_tools: bool = False,
    tools: Sequence[object] = (),
    policies: Sequence[Policy] = (),
) -> Plugin | Callable[[Function], Plugin]:
    """A plugin of a function, by its name: a decorator, plain or with options.

    The function is called with the content of what the user says; `after_tools`: also, with `()`, when tools have
    answered. It returns text, or several, or None. A text is shown at the coming call if `display`, and at later ones
    as `save` says: True for good, a number for so many. An AdditionalContent among them says that for itself. `tools`
    and `policies`: what the plugin brings along. Raises BadSetting for options of another kind.
    """
    AdditionalContent("", display, save)  # Refuses what is no time.
    given.instance("after_tools=", after_tools, bool, "True or False")

    def make(function: Function) -> Plugin:
        given.callable_("What plugin() takes", function)
        called = getattr(function, "__name__", "") if name is None else name
        made = _OfFunction(called, function, display, save, after_tools, tuple(tools), tuple(policies))
        return listed([made])[0]

    return make if function is None else make(function)


class _OfFunction:
    """See `plugin`."""

    def __init__(
        self,
        name: str,
        function: Function,
        display: bool,
        save: bool | int,
        after_tools: bool,
        tools: tuple[object, ...],
        policies: tuple[Policy, ...],
    ) -> None:
        self.name, self.tools, self.policies = name, tools, policies
        self._function, self._display, self._save, self._after_tools = function, display, save, after_tools

    def __call__(self, content: tuple[Part, ...], /) -> Additions | Awaitable[Additions]:
        if not content and not self._after_tools:
            return None
        said = self._function(content)
        return self._later(said) if inspect.isawaitable(said) else self._timed(said)

    async def _later(self, said: Awaitable[Additions]) -> Additions:
        return self._timed(await said)

    def _timed(self, said: Additions) -> Additions:
        return [
            one if isinstance(one, AdditionalContent) else _content(one, self._display, self._save)
            for one in _several(said)
        ]


def brought(plugins: Iterable[Plugin]) -> tuple[object, ...]:
    """The tools that plugins bring along, in order."""
    return tuple(tool for plugin in plugins for tool in getattr(plugin, "tools", ()))


def policies_of(plugins: Iterable[Plugin]) -> tuple[Policy, ...]:
    """The policies that plugins bring along, in order."""
    return tuple(policy for plugin in plugins for policy in getattr(plugin, "policies", ()))


def listed(plugins: Sequence[Plugin]) -> tuple[Plugin, ...]:
    """Plugins as a program hands them in. Raises BadSetting for what is no plugin, and for a name taken twice."""
    if not isinstance(plugins, list | tuple):
        raise BadSetting(f"plugins= is a list of plugins, not {plugins!r:.100}.")
    names: set[str] = set()
    for plugin in plugins:
        given.callable_("A plugin", plugin)
        name = getattr(plugin, "name", None)
        if not isinstance(name, str) or not name.strip():
            raise BadSetting(
                f"A plugin has a name, a text that is not blank; {plugin!r:.100} has {name!r:.60}. "
                "plugin() makes one of a function."
            )
        if name in names:
            raise BadSetting(f"There are two plugins of the name {name!r}; each needs its own.")
        names.add(name)
        for what in ("tools", "policies"):
            carried = getattr(plugin, what, ())
            if not isinstance(carried, list | tuple) or (what == "policies" and not all(map(callable, carried))):
                raise BadSetting(f"The {what} of the plugin {name} are a list of {what}, not {carried!r:.100}.")
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

    def after_results(self, projection: Projection, tip: str) -> Step[EnrichedMessage | None]:
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
    # A generator runs here, where its failure is its own.
    return list(said) if isinstance(said, Iterable) and not isinstance(said, str) else said


def _checked(said: object) -> tuple[AdditionalContent, ...]:
    """What a plugin returned, as values that it can no longer change. Raises for what cannot be added to a message."""
    if inspect.iscoroutine(said):
        said.close()
        raise TypeError("it must be awaited, which only an async conversation can do")
    contents: list[AdditionalContent] = []
    for one in _several(said):
        content = one if isinstance(one, AdditionalContent) else _content(one)
        given.message(Message("user", content.blocks))
        contents.append(replace(content, content=content.blocks))
    return tuple(contents)


def _several(said: object) -> list[object]:
    if said is None:
        return []
    if isinstance(said, Iterable) and not isinstance(said, str | Text | Media | AdditionalContent):
        return list(said)
    return [said]


def _content(said: object, display: bool = True, save: bool | int = False) -> AdditionalContent:
    if not isinstance(said, str | Text | Media):
        raise TypeError(f"it returned {said!r:.60}, which is no AdditionalContent and no text")
    return AdditionalContent(said if isinstance(said, str) else (said,), display, save)
