"""Plugins: users' programs that add content to messages for one or more model calls.

A plugin runs when the user has said something, with the content of that message, and with the results when tools have
answered and the model is about to be called again. Its content becomes part of the stored message, or, after tool
results, a message of its own. A plugin that fails is left out; it can neither break a call nor see what another one
added.

`plugin` makes a plugin from a function that returns text. A plugin may also bring tools, which agents offer to the
model, and policies, which run before the conversation's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, overload

from msgspec.structs import replace

from ..core.enrich import AdditionalContent, EnrichedMessage, enrich
from ..core.messages import Media, Message, Opaque, Part, Text, ToolResult
from ..core.planner import Policy
from ..core.projection import Projection
from ..core.stamps import Stamp
from ..core.stored_form import stored_message
from ..errors import BadSetting
from . import validate
from .append import MessageFacts
from .calls import Caller

__all__ = [
    "Addition",
    "AdditionalContent",
    "Additions",
    "Plugin",
    "PluginFunction",
    "PluginRunner",
    "are_results",
    "checked_plugins",
    "plugin",
    "plugin_policies",
    "plugin_tools",
]

Addition = AdditionalContent | str | Text | Media
"""Content for the next model call only, unless it is an AdditionalContent, which has its own retention."""
Additions = Addition | Iterable[Addition] | None
"""The return value of a plugin."""

ReportFailure = Callable[[str, str], None]
"""Called with the name of a plugin that is left out, and the reason."""


class Plugin(Protocol):
    """Adds content to messages.

    It may also have `tools`, a list of tools or functions that agents offer to the model, and `policies`, a list of
    policies that run before those of the conversation, unless the policy is `off`.
    """

    @property
    def name(self) -> str:
        """Heading of what it adds, and its name in the journal and in settings."""
        ...

    def __call__(self, content: tuple[Part, ...], /) -> Additions | Awaitable[Additions]:
        """Return what to add to a message with this content. None: nothing.

        When tools have answered, the content is one ToolResult for each answer since the model spoke, in order, with
        its `state` and, as `name`, the tool. The answers of one call may be several texts and images (`content`).

        In an async conversation it may be async. It must not use the conversation that calls it, which waits for it.
        """
        ...


PluginFunction = Callable[[tuple[Part, ...]], Additions | Awaitable[Additions]]
"""A function that `plugin` makes a plugin of: it takes the content of a message, and returns what to add to it."""


@overload
def plugin(
    function: PluginFunction,
    /,
    *,
    name: str | None = None,
    display: bool = True,
    save: bool | int = False,
    after_tools: bool = False,
    tools: Sequence[object] = (),
    policies: Sequence[Policy] = (),
) -> Plugin: ...
@overload
def plugin(
    *,
    name: str | None = None,
    display: bool = True,
    save: bool | int = False,
    after_tools: bool = False,
    tools: Sequence[object] = (),
    policies: Sequence[Policy] = (),
) -> Callable[[PluginFunction], Plugin]: ...


def plugin(
    function: PluginFunction | None = None,
    /,
    *,
    name: str | None = None,
    display: bool = True,
    save: bool | int = False,
    after_tools: bool = False,
    tools: Sequence[object] = (),
    policies: Sequence[Policy] = (),
) -> Plugin | Callable[[PluginFunction], Plugin]:
    """Make a plugin from a function, named after it: a decorator, plain or with options.

    The function is called with the content of what the user says; with `after_tools` also, with the results as values
    of ToolResult, when tools have answered. It returns a text, several, or None. A text is shown at the next call if
    `display`, and at later ones as `save` says: True for good, a number for that many calls. An AdditionalContent has
    its own options. `tools` and `policies`: what the plugin brings. Raises BadSetting for options of another kind.
    """
    AdditionalContent("", display, save)  # Refuses wrong values of both.
    validate.instance("after_tools=", after_tools, bool, "True or False")

    def make(function: PluginFunction) -> Plugin:
        validate.function("The argument of plugin()", function)
        own_name = getattr(function, "__name__", "") if name is None else name
        return checked_plugins(
            [_FunctionPlugin(own_name, function, display, save, after_tools, tuple(tools), tuple(policies))]
        )[0]

    return make if function is None else make(function)


class _FunctionPlugin:
    """See `plugin`."""

    def __init__(
        self,
        name: str,
        function: PluginFunction,
        display: bool,
        save: bool | int,
        after_tools: bool,
        tools: tuple[object, ...],
        policies: tuple[Policy, ...],
    ) -> None:
        self.name, self.tools, self.policies = name, tools, policies
        self._function, self._display, self._save, self._after_tools = function, display, save, after_tools

    def __call__(self, content: tuple[Part, ...], /) -> Additions | Awaitable[Additions]:
        if are_results(content) and not self._after_tools:
            return None
        additions = self._function(content)
        return self._awaited(additions) if inspect.isawaitable(additions) else self._with_options(additions)

    async def _awaited(self, additions: Awaitable[Additions]) -> Additions:
        return self._with_options(await additions)

    def _with_options(self, additions: Additions) -> Additions:
        return [
            addition if isinstance(addition, AdditionalContent) else _content(addition, self._display, self._save)
            for addition in _as_list(additions)
        ]


def plugin_tools(plugins: Iterable[Plugin]) -> tuple[object, ...]:
    """Return the tools of the plugins, in order."""
    return tuple(tool for plugin in plugins for tool in getattr(plugin, "tools", ()))


def plugin_policies(plugins: Iterable[Plugin]) -> tuple[Policy, ...]:
    """Return the policies of the plugins, in order."""
    return tuple(policy for plugin in plugins for policy in getattr(plugin, "policies", ()))


def checked_plugins(plugins: Sequence[Plugin]) -> tuple[Plugin, ...]:
    """Return plugins that a program passed in. Raises BadSetting for other values and repeated names."""
    if not isinstance(plugins, list | tuple):
        raise BadSetting(f"plugins= must be a list of plugins, not {plugins!r:.100}.")
    names: set[str] = set()
    for plugin in plugins:
        validate.function("A plugin", plugin)
        name = getattr(plugin, "name", None)
        if not isinstance(name, str) or not name.strip():
            raise BadSetting(
                f"A plugin has a name, a text that is not blank; {plugin!r:.100} has {name!r:.60}. "
                "plugin() makes one from a function."
            )
        if name in names:
            raise BadSetting(f"There are two plugins of the name {name!r}. Give each its own.")
        names.add(name)
        for attribute in ("tools", "policies"):
            values = getattr(plugin, attribute, ())
            if not isinstance(values, list | tuple) or (attribute == "policies" and not all(map(callable, values))):
                raise BadSetting(
                    f"The {attribute} of the plugin {name} must be a list of {attribute}, not {values!r:.100}."
                )
    return tuple(plugins)


def are_results(content: Sequence[Part]) -> bool:
    """Return whether a plugin's argument is what tools answered, and not what the user said."""
    return bool(content) and isinstance(content[0], ToolResult)


class PluginRunner:
    """Runs the plugins of one conversation."""

    def __init__(self, plugins: Sequence[Plugin], caller: Caller, report: ReportFailure) -> None:
        self._plugins = tuple(plugins)
        self._caller = caller
        self._report = report
        self._silent_at = ""  # id of the newest message when no plugin had anything to add to tool results
        self._is_running = False

    def add_to(self, messages: Sequence[Message], facts: MessageFacts) -> tuple[Sequence[Message], MessageFacts]:
        """Return the messages with what plugins add to the user's last one, and the retention of its parts.

        Of several messages only the user's last is added to, and only if the model has not answered it: the others are
        past. Messages with their own retention stay as they are.
        """
        at = _unanswered(messages, facts)
        if at is None or facts.kept:
            return messages, facts
        enriched = enrich(messages[at], self._run(messages[at].parts))
        kept = {at: enriched.kept} if enriched.kept else {}
        return (*messages[:at], enriched.message, *messages[at + 1 :]), replace(facts, kept=kept)

    def after_results(self, projection: Projection, tip: str) -> EnrichedMessage | None:
        """Return a message of what plugins add to tool results that no call has shown yet; None if that is nothing.

        The plugins run once, not again for a prompt that is made again.
        """
        if self._silent_at == tip:
            return None
        results = _fresh_results(projection)
        if all(result.state == "error" for result in results):
            return None
        enriched = enrich(Message("user"), self._run(results))
        if enriched.kept:
            return enriched  # Once it is appended, it shows that the plugins ran.
        self._silent_at = tip
        return None

    def _run(self, content: tuple[Part, ...]) -> list[tuple[str, tuple[AdditionalContent, ...]]]:
        added: list[tuple[str, tuple[AdditionalContent, ...]]] = []
        if self._is_running:
            return added  # A plugin that appends a message does not run for it.
        self._is_running = True
        try:
            for plugin in self._plugins:
                try:
                    additions = self._caller.call(_call, plugin, content)
                    added.append((plugin.name, _checked(additions)))
                except Exception as error:  # The message is made without it.
                    self._report(plugin.name, f"{type(error).__name__}: {error}")
        finally:
            self._is_running = False
        return added


def _unanswered(messages: Sequence[Message], facts: MessageFacts) -> int | None:
    """Return the index of the user's last message, if the model does not answer it in what follows."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "assistant":
            return None
        if messages[at].role == "user" and facts.origin_of(messages[at], at) == "user":
            return at
    return None


def _fresh_results(projection: Projection) -> tuple[ToolResult, ...]:
    """Return what tools answered since the model or the user spoke or plugins ran, in order."""
    results: list[ToolResult] = []
    for message, stamp in projection.since_reply():
        if stamp.origin in ("user", "plugin"):
            break
        if stamp.origin == "tool" or (stamp.expanded is not None and message.role == "tool"):
            results.append(_result_of(message, stamp))
    return tuple(reversed(results))


def _result_of(message: Message, stamp: Stamp) -> ToolResult:
    """Return the result in a message, with the name of the tool. A result in a user's message answers no call."""
    result = message.result
    if result is not None:
        return replace(result, name=result.name or stamp.source)
    content = tuple(part for part in message.parts if isinstance(part, Text | Media | Opaque))
    return ToolResult("", content, name=stamp.source or (stamp.lease.action_id if stamp.lease else ""))


def _call(plugin: Plugin, content: tuple[Part, ...]) -> object:
    additions = plugin(content)
    # A generator runs here, so that its failure is the plugin's.
    if isinstance(additions, Iterable) and not isinstance(additions, str | Mapping):
        return list(additions)
    return additions


def _checked(additions: object) -> tuple[AdditionalContent, ...]:
    """Return a plugin's return value as immutable values. Raises if it cannot be added to a message."""
    if inspect.iscoroutine(additions):
        additions.close()
        raise TypeError("it must be awaited, which only an async conversation can do")
    contents: list[AdditionalContent] = []
    for addition in _as_list(additions):
        content = addition if isinstance(addition, AdditionalContent) else _content(addition)
        stored_message(Message("user", content.blocks))
        contents.append(replace(content, content=content.blocks))
    return tuple(contents)


def _as_list(additions: object) -> list[object]:
    if additions is None:
        return []
    if isinstance(additions, Iterable) and not isinstance(additions, str | Mapping | Text | Media | AdditionalContent):
        return list(additions)
    return [additions]


def _content(addition: object, display: bool = True, save: bool | int = False) -> AdditionalContent:
    if not isinstance(addition, str | Text | Media):
        raise TypeError(f"it returned {addition!r:.60}, which is no AdditionalContent and no text")
    return AdditionalContent(addition if isinstance(addition, str) else (addition,), display, save)
