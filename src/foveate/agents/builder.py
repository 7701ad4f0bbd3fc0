"""Agents put together step by step: each step says one thing, in words, and returns a new builder.

Nothing in here does anything that keywords could not: `keywords()` shows what `build_...` hands to the agent. A builder
never changes, so one may be kept, shared, and built on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from .. import given
from ..core.events import Event
from ..core.planner import Policy
from ..errors import BadSetting
from ..open import open_model
from ..plugins import Plugin
from ..ports import Model, Store
from .calling import Approve
from .limits import Limits
from .shrinking import Shrinking
from .tools import Tool, tools_of

if TYPE_CHECKING:
    from .chat import AsyncChatAgent, ChatAgent
    from .loop import AsyncLoopAgent, LoopAgent
    from .react import AsyncReActAgent, ReActAgent

__all__ = ["AgentBuilder"]

_KEYS = ("sk-", "xai-", "AIza", "gsk_")
"""How keys begin: whoever says them in the place of a model would find them in an error, or in a log."""

Kind = Literal["chat", "react", "loop"]
PluginMaker = type[Any] | partial[Any]
"""Makes a plugin for each agent: a class, or a `functools.partial` of one."""


class AgentBuilder(Struct, frozen=True, kw_only=True):
    """An agent that is not built yet.

    >>> from foveate.testing import ScriptedModel
    >>> builder = AgentBuilder().use(ScriptedModel(["Hello."])).with_window(100_000).for_conversation("support-456")
    >>> with builder.build_chat_agent() as agent:
    ...     print(agent.send("Hello!"))
    Hello.
    """

    said: Mapping[str, Any] = {}
    """Keywords that need nothing to be worked out."""
    model: str | Model | None = None
    key: str | None = None
    tools: tuple[Tool, ...] = ()
    plugins: tuple[Plugin | PluginMaker, ...] = ()
    listeners: tuple[Callable[[Event], object], ...] = ()
    shrinking: Shrinking = Shrinking()

    # ----------------------------------------------------------------------------------------------------- the model

    def use(self, model: str | Model, *, key: str | None = None) -> AgentBuilder:
        """The model: a name such as `anthropic:claude-haiku-4-5`, or a Model. `key`: of its provider; by default the
        environment's. Raises BadSetting for a key of a Model, which has its own.
        """
        if isinstance(model, str):
            if model.rpartition(":")[2].startswith(_KEYS):  # Not said again.
                raise BadSetting("The first argument looks like a key. The model comes first: use(model, key=...).")
            if not model.strip():
                raise BadSetting("The name of the model is blank.")
        else:
            given.like("The model", model, ("complete",), "a name such as anthropic:claude-haiku-4-5, or a Model")
            if key is not None:
                raise BadSetting("A Model has its key already. Say key= where it is made.")
        if key is not None and (not isinstance(key, str) or not key.strip()):
            raise BadSetting("key= is a text that is not blank; leave it out for the environment's.")
        return replace(self, model=model, key=key)

    def use_openai(self, model: str, key: str | None = None) -> AgentBuilder:
        """A model of OpenAI's, such as `gpt-4.1-mini`. Without `key`: `OPENAI_API_KEY`."""
        return self._use("openai", model, key)

    def use_anthropic(self, model: str, key: str | None = None) -> AgentBuilder:
        """A model of Anthropic's, such as `claude-haiku-4-5`. Without `key`: `ANTHROPIC_API_KEY`."""
        return self._use("anthropic", model, key)

    def use_google(self, model: str, key: str | None = None) -> AgentBuilder:
        """A model of Google's, such as `gemini-2.5-flash`, at its OpenAI-compatible address. Without `key`:
        `GEMINI_API_KEY`.
        """
        return self._use("google", model, key)

    def use_xai(self, model: str, key: str | None = None) -> AgentBuilder:
        """A model of xAI's, such as `grok-4`, at its OpenAI-compatible address. Without `key`: `XAI_API_KEY`."""
        return self._use("xai", model, key)

    def _use(self, provider: str, model: str, key: str | None) -> AgentBuilder:
        return self.use(f"{provider}:{given.text('The name of the model', model)}", key=key)

    # ------------------------------------------------------------------------------------------------ the conversation

    def with_history(self, store: str | Store) -> AgentBuilder:
        """Where every message is kept: `sqlite:///chat.db`, another URL, or a Store. By default in memory."""
        return self._with(store=store)

    def for_conversation(self, name: str) -> AgentBuilder:
        """The conversation, by its name: taken up if the store has it, else begun."""
        given.text("The name of a conversation", name)
        return self._with(conversation=name)

    def with_summarization(
        self,
        trigger_at: int = 100,
        keep_recent: int = 10,
        tool: object = None,
        *,
        enabled: bool = True,
        tool_results_keep_recent: int | None = None,
        **more: Any,
    ) -> AgentBuilder:
        """Show the oldest messages as one summary: at `trigger_at` messages all but the newest `keep_recent`, and then
        whenever `keep_recent` more have come. The history keeps all of them.

        `tool`: who writes the summaries: a function of a SummaryRequest, a Tool, an object with `invoke(json_text)`, or
        a name such as `anthropic:claude-haiku-4-5`; None: a digest made by code, which needs no model. `enabled`:
        False takes back what was said before. `tool_results_keep_recent`: short for
        `with_tool_result_filtering(keep_recent=...)`. `more`: other arguments of `foveate.policies.checkpoint`, such as
        `retrigger="trigger_at"`. Raises BadSetting for `keep_recent` of `trigger_at` or more, and where filtering is
        told another number. The agent warns when it is built with `keep_recent` below 5.
        """
        shrinking = self.shrinking.summarized(trigger_at, keep_recent, tool, enabled, tool_results_keep_recent, more)
        return replace(self, shrinking=shrinking)

    def with_tool_result_filtering(self, keep_recent: int = 5, **more: Any) -> AgentBuilder:
        """Keep the newest `keep_recent` tool results whole (0: all of them), and show a placeholder for the others.

        Browsers want 1 to 3, agents with several tools 5 to 10. `more`: other arguments of
        `foveate.policies.filter_tool_results`, such as `batch=10` or `placeholder=`. Raises BadSetting where
        summarization is told another number.
        """
        return replace(self, shrinking=self.shrinking.filtered(keep_recent, more))

    def with_max_multimodal_messages(self, most: int, **more: Any) -> AgentBuilder:
        """Keep images and documents in the newest `most` messages that have some (0: in none)."""
        return replace(self, shrinking=self.shrinking.with_media(most, more))

    def with_history_retention(self, *args: object, **keywords: object) -> AgentBuilder:
        """Gone: it dropped messages. Raises BadSetting that names what came in its place."""
        raise BadSetting(
            "with_history_retention is gone: it dropped messages. Say with_summarization(trigger_at=100, "
            "keep_recent=10) for long chats, and with_tool_result_filtering(keep_recent=5) for tools that say much."
        )

    def with_policy(self, policy: str | Policy | Sequence[Policy]) -> AgentBuilder:
        """What else shrinks the conversation: a preset such as `balanced`, a file, or policies of your own, which
        cannot go with summarization and filtering as said here. By default `balanced` where neither is said, else
        nothing.
        """
        return self._with(policy=policy)

    def with_window(self, tokens: int, *, reserve: int | None = None) -> AgentBuilder:
        """The model's window, where it is not known, and what of it stays free for answers."""
        said = {"window": given.whole("The window (tokens)", tokens, 1)}
        return self._with(**said, **({} if reserve is None else {"reserve": given.whole("reserve= (tokens)", reserve)}))

    def with_expanding(self, on: bool = True, *, where: str | None = None) -> AgentBuilder:
        """Whether the model has the tool `expand`, which brings back what was shortened. If not, placeholders do not
        name what it takes: `[Omitted]`.
        """
        given.instance("with_expanding()", on, bool, "True or False")
        return self._with(expand=on, **({} if where is None else {"expand_where": where}))

    def with_plugin(self, plugin: Plugin | PluginMaker) -> AgentBuilder:
        """A context provider. A class, or a `functools.partial` of one, is called for each agent that is built."""
        return replace(self, plugins=(*self.plugins, plugin))

    def on_event(self, listener: Callable[[Event], object]) -> AgentBuilder:
        """Called with every Event of the conversation, behind those that were named before."""
        given.callable_("on_event()", listener)
        return replace(self, listeners=(*self.listeners, listener))

    # ------------------------------------------------------------------------------------------------------- the agent

    def with_system(self, text: str) -> AgentBuilder:
        """The system prompt."""
        return self._with(system=given.text("The system prompt", text))

    def add_tool(self, tool: Tool | Callable[..., object]) -> AgentBuilder:
        """A tool: a Tool, or a function with types and a docstring. Raises BadSetting where the name is taken."""
        return self.add_tools(tool)

    def add_tools(self, *tools: Tool | Callable[..., object] | Iterable[Tool | Callable[..., object]]) -> AgentBuilder:
        """Several, or lists of them: `add_tools(*files("."), search("."))`."""
        several: list[Tool | Callable[..., object]] = []
        for one in tools:
            several += [one] if isinstance(one, Tool) or not isinstance(one, Iterable) else one
        return replace(self, tools=tools_of([*self.tools, *several]))

    def with_limits(self, limits: Limits | None = None, **bounds: Any) -> AgentBuilder:
        """Bounds of each run: a Limits, or its fields, `with_limits(turns=20, money=0.5)`."""
        if limits is not None:
            given.instance("with_limits()", limits, Limits, "a Limits, or its fields by name")
        try:
            return self._with(limits=replace(limits or Limits(), **bounds))
        except TypeError as error:
            raise BadSetting(f"Limits are {', '.join(Limits.__struct_fields__)}; {error}.") from error

    def with_approval(self, approve: Approve, *, of_all: bool = False) -> AgentBuilder:
        """Asked before each call of a tool that needs approval; `of_all`: of any tool. Returns True, False, or a
        sentence why not.
        """
        given.callable_("with_approval()", approve)
        return self._with(approve=approve, **({"approves_all": True} if of_all else {}))

    def with_keywords(self, **keywords: Any) -> AgentBuilder:
        """Any other keyword of the agent, or of `open_conversation`."""
        return self._with(**keywords)

    # ---------------------------------------------------------------------------------------------------------- built

    def keywords(self, kind: Kind = "chat", *, asynchronous: bool = False) -> dict[str, Any]:
        """The plain construction that this stands for: `ChatAgent(**builder.keywords())`.

        `kind`: `chat` and `react` take the same, `loop` says `instructions` and `actions`. `asynchronous`: of the agent
        with asyncio, whose model awaits. Raises BadSetting where there is no model, and for what cannot go together.
        """
        if self.model is None:
            raise BadSetting('Say which model: .use("anthropic:claude-haiku-4-5"), .use_openai("gpt-4.1-mini"), ...')
        keyed = self.key is not None and isinstance(self.model, str)
        model = open_model(str(self.model), asynchronous=asynchronous, api_key=self.key) if keyed else self.model
        made: dict[str, Any] = {"model": model, **({"closes_model": True} if keyed else {}), **self.said}
        if self.tools:
            made["tools"] = list(self.tools)
        if self.plugins:
            made["plugins"] = [one() if isinstance(one, type | partial) else one for one in self.plugins]
        if self.listeners:
            made["on_event"] = self.listeners[0] if len(self.listeners) == 1 else _Each(self.listeners)
        made |= self.shrinking.keywords(self.said, kind)
        return made if kind != "loop" else _of_a_loop(made)

    def build_chat_agent(self) -> ChatAgent:
        """A ChatAgent. Raises BadSetting for what cannot go together."""
        from .chat import ChatAgent

        return ChatAgent(**self.keywords())

    def build_async_chat_agent(self) -> AsyncChatAgent:
        """The same for asyncio."""
        from .chat import AsyncChatAgent

        return AsyncChatAgent(**self.keywords(asynchronous=True))

    def build_react_agent(self) -> ReActAgent:
        """A ReActAgent. Raises BadSetting for what cannot go together."""
        from .react import ReActAgent

        return ReActAgent(**self.keywords("react"))

    def build_async_react_agent(self) -> AsyncReActAgent:
        """The same for asyncio."""
        from .react import AsyncReActAgent

        return AsyncReActAgent(**self.keywords("react", asynchronous=True))

    def build_loop_agent(self) -> LoopAgent:
        """A LoopAgent, whose actions are the tools. Raises BadSetting for what cannot go together."""
        from .loop import LoopAgent

        return LoopAgent(**self.keywords("loop"))

    def build_async_loop_agent(self) -> AsyncLoopAgent:
        """The same for asyncio."""
        from .loop import AsyncLoopAgent

        return AsyncLoopAgent(**self.keywords("loop", asynchronous=True))

    def __repr__(self) -> str:
        """What was said, but for keys and passwords."""
        facts = [repr(self.model) if isinstance(self.model, str) else getattr(self.model, "name", "no model")]
        facts += [f"{name}={_shown(name, value)}" for name, value in self.said.items()]
        facts += [str(self.shrinking)] if str(self.shrinking) else []
        facts += [f"tools={[tool.name for tool in self.tools]}"] if self.tools else []
        return f"AgentBuilder({', '.join(facts)})"

    # --------------------------------------------------------------------------------------------------------- helpers

    def _with(self, **said: Any) -> AgentBuilder:
        return replace(self, said={**self.said, **said})


def _shown(name: str, value: object) -> str:
    """A value in a few characters; of a store that is a server only its kind, since its URL may hold a password."""
    if name == "store" and isinstance(value, str) and not value.startswith(("sqlite:", "memory:")):
        return f"'{value.partition(':')[0]}:...'"
    return f"{value!r:.60}"


class _Each(Struct, frozen=True):
    """Calls several listeners, each whatever becomes of the others."""

    listeners: tuple[Callable[[Event], object], ...]

    def __call__(self, event: Event) -> None:
        failed: Exception | None = None
        for listener in self.listeners:
            try:
                listener(event)
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed  # The conversation logs it.


def _of_a_loop(made: dict[str, Any]) -> dict[str, Any]:
    """The same in the words of a loop agent."""
    if made.pop("approves_all", False):
        raise BadSetting("A loop agent is asked for approval of what needs it, not of all. Leave of_all=True out.")
    for said, called in (("system", "instructions"), ("tools", "actions")):
        if said in made:
            made[called] = made.pop(said)
    return made
