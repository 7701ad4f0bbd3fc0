"""`AgentBuilder`: creates agents step by step. Each method sets one thing and returns a new builder.

Everything in here can be done with keywords too: `keywords()` returns those that `build_...` passes to the agent. A
builder never changes, so it can be kept, shared, and extended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ..conversation import validate
from ..conversation.plugins import Plugin
from ..core.events import Event
from ..errors import BadSetting
from ..open import open_model
from ..policies import PolicyChoice
from ..ports import Model, Store, Summarizer
from .limits import Limits
from .shrink_settings import ShrinkSettings
from .sub_agents import SubAgent
from .tool_calls import Approver
from .tools import Tool, ToolObject, ToolSource, tools_of

if TYPE_CHECKING:
    from .agent import AsyncChatAgent, AsyncReActAgent, ChatAgent, ReActAgent
    from .loop_agent import AsyncLoopAgent, LoopAgent
    from .toolbox.mcp_tools import McpServer

__all__ = ["AgentBuilder"]

_KEY_PREFIXES = ("sk-", "xai-", "AIza", "gsk_")
"""Beginnings of API keys. A key in the place of a model would appear in errors and logs."""


class AgentBuilder(Struct, frozen=True, kw_only=True):
    """Builds an agent step by step. Each method returns a new builder.

    >>> from foveate.testing import ScriptedModel
    >>> builder = AgentBuilder().use(ScriptedModel(["Hello."])).with_window(100_000).for_conversation("support-456")
    >>> with builder.build_chat_agent() as agent:
    ...     print(agent.send("Hello!"))
    Hello.
    """

    options: Mapping[str, Any] = {}
    """Keywords that are passed on unchanged."""
    model: str | Model | None = None
    """The model, or its name."""
    key: str | None = None
    """The API key for a named model."""
    tools: tuple[Tool, ...] = ()
    """The tools so far."""
    plugins: tuple[Plugin | type[Plugin] | partial[Plugin], ...] = ()
    """The plugins so far."""
    mcp_servers: tuple[Callable[[], McpServer], ...] = ()
    """The MCP servers so far: each agent has its own connections."""
    listeners: tuple[Callable[[Event], object], ...] = ()
    """The listeners for events so far."""
    _shrinking: ShrinkSettings = ShrinkSettings()
    """Summarization and filtering."""

    # ------------------------------------------------------------------------------------------------------- the model

    def use(self, model: str | Model, *, key: str | None = None) -> AgentBuilder:
        """Set the model: a name such as `anthropic:claude-haiku-4-5`, or a Model.

        `key`: the API key of its provider (default: from the environment). A Model already has its key: BadSetting.
        """
        if isinstance(model, str):
            if model.rpartition(":")[2].startswith(_KEY_PREFIXES):  # The error must not contain it.
                raise BadSetting("The first argument looks like a key. The model comes first: use(model, key=...).")
            if not model.strip():
                raise BadSetting("The name of the model is blank. Pass one such as anthropic:claude-haiku-4-5.")
        else:
            validate.has_methods(
                "The model", model, ("complete",), "a name such as anthropic:claude-haiku-4-5, or a Model"
            )
            if key is not None:
                raise BadSetting("A Model already has its key. Pass key= where you create the Model.")
        if key is not None and (not isinstance(key, str) or not key.strip()):
            raise BadSetting("key= must be a text that is not blank. Leave it out to use the environment's.")
        return replace(self, model=model, key=key)

    def use_openai(self, model: str, key: str | None = None) -> AgentBuilder:
        """Use a model of OpenAI, such as `gpt-4.1-mini`. Default key: `OPENAI_API_KEY`."""
        return self._use("openai", model, key)

    def use_anthropic(self, model: str, key: str | None = None) -> AgentBuilder:
        """Use a model of Anthropic, such as `claude-haiku-4-5`. Default key: `ANTHROPIC_API_KEY`."""
        return self._use("anthropic", model, key)

    def use_google(self, model: str, key: str | None = None) -> AgentBuilder:
        """Use a model of Google, such as `gemini-2.5-flash`, at the OpenAI-compatible address. Default key:
        `GEMINI_API_KEY`.
        """
        return self._use("google", model, key)

    def use_xai(self, model: str, key: str | None = None) -> AgentBuilder:
        """Use a model of xAI, such as `grok-4`, at the OpenAI-compatible address. Default key: `XAI_API_KEY`."""
        return self._use("xai", model, key)

    def _use(self, provider: str, model: str, key: str | None) -> AgentBuilder:
        return self.use(f"{provider}:{validate.text('The name of the model', model)}", key=key)

    # ------------------------------------------------------------------------------------------------ the conversation

    def with_history(self, store: str | Store) -> AgentBuilder:
        """Set the store: `sqlite:///chat.db`, another URL, or a Store. Default: in memory."""
        return self._with(store=store)

    def for_conversation(self, name: str) -> AgentBuilder:
        """Set the name of the conversation. It continues if the store has it, else it begins."""
        validate.text("The name of a conversation", name)
        return self._with(conversation=name)

    def with_summarization(
        self,
        trigger_at: int = 100,
        keep_recent: int = 10,
        tool: str | Summarizer | Tool | ToolObject | None = None,
        *,
        enabled: bool = True,
        tool_results_keep_recent: int | None = None,
        **options: Any,
    ) -> AgentBuilder:
        """Show the oldest messages as one summary: at `trigger_at` messages all but the newest `keep_recent`, and again
        after every `keep_recent` more. The history keeps all of them.

        `tool`: writes the summaries: a function of a SummaryRequest, a Tool, an object with `invoke(json_text)`, or a
        name such as `anthropic:claude-haiku-4-5`. None: a digest that needs no model. `enabled`: False switches
        summarization off again. `tool_results_keep_recent`: the same as
        `with_tool_result_filtering(keep_recent=...)`. `options`: other arguments of `foveate.policies.checkpoint`, such
        as `retrigger="trigger_at"`. Raises BadSetting if `keep_recent` is not below `trigger_at`, and if filtering has
        another number. Building the agent warns if `keep_recent` is below 5.
        """
        shrinking = self._shrinking.with_summaries(
            trigger_at, keep_recent, tool, enabled, tool_results_keep_recent, options
        )
        return replace(self, _shrinking=shrinking)

    def with_tool_result_filtering(self, keep_recent: int = 5, **options: Any) -> AgentBuilder:
        """Keep the newest `keep_recent` tool results whole (0: all of them), and show placeholders for the others.

        Use 1 to 3 for browsers, 5 to 10 for agents with several tools. `options`: other arguments of
        `foveate.policies.filter_tool_results`, such as `batch=10` or `placeholder=`. Raises BadSetting if summarization
        has another number.
        """
        return replace(self, _shrinking=self._shrinking.with_filter(keep_recent, options))

    def with_max_multimodal_messages(self, max_messages: int, **options: Any) -> AgentBuilder:
        """Keep images and documents in the newest `max_messages` messages that have some (0: in none).

        `options`: other arguments of `foveate.policies.filter_tool_results`.
        """
        return replace(self, _shrinking=self._shrinking.with_media(max_messages, options))

    def with_history_retention(self, *args: object, **keywords: object) -> AgentBuilder:
        """Removed: it dropped messages. Raises BadSetting that names the replacement."""
        raise BadSetting(
            "with_history_retention was removed, because it dropped messages. Use with_summarization(trigger_at=100, "
            "keep_recent=10) for long chats, and with_tool_result_filtering(keep_recent=5) for tools with long results."
        )

    def with_policy(self, policy: PolicyChoice) -> AgentBuilder:
        """Set the policy: a preset such as `balanced`, a file, or policies of your own.

        Your own policies cannot be combined with summarization and filtering of the builder. Default: `balanced`
        without them, and no other policy with them.
        """
        return self._with(policy=policy)

    def with_window(self, tokens: int, *, reserve: int | None = None) -> AgentBuilder:
        """Set the model's window in tokens, if it is not known. `reserve`: how many of them stay free for answers."""
        options = {"window": validate.integer("The window (tokens)", tokens, 1)}
        if reserve is not None:
            options["reserve"] = validate.integer("reserve= (tokens)", reserve)
        return self._with(**options)

    def with_expanding(self, on: bool = True, *, where: Literal["view", "tail", "auto"] | None = None) -> AgentBuilder:
        """Set whether the model has the tool `expand`, which brings back what was shortened.

        Without it, placeholders name no handle: `[Omitted]`. `where`: the place of an original, as in `Options`.
        """
        validate.instance("with_expanding()", on, bool, "True or False")
        return self._with(expand=on, **({} if where is None else {"expand_where": where}))

    def with_plugin(self, plugin: Plugin | type[Plugin] | partial[Plugin]) -> AgentBuilder:
        """Add a plugin. A class, or a `functools.partial` of one, is called for each agent that is built."""
        return replace(self, plugins=(*self.plugins, plugin))

    def on_event(self, listener: Callable[[Event], object]) -> AgentBuilder:
        """Add a listener that is called with every Event of the conversation."""
        validate.listener("on_event()", listener)
        return replace(self, listeners=(*self.listeners, listener))

    # ------------------------------------------------------------------------------------------------------- the agent

    def with_system(self, text: str) -> AgentBuilder:
        """Set the system prompt."""
        return self._with(system=validate.text("The system prompt", text))

    def add_tool(self, tool: Tool | ToolSource) -> AgentBuilder:
        """Add a tool: a Tool, or a function with types and a docstring. Raises BadSetting if the name is taken."""
        return self.add_tools(tool)

    def add_tools(self, *tools: Tool | ToolSource | Iterable[Tool | ToolSource]) -> AgentBuilder:
        """Add several tools, or lists of them: `add_tools(*files("."), search("."))`."""
        added: list[Tool | ToolSource] = []
        for item in tools:
            added += [item] if isinstance(item, Tool) or not isinstance(item, Iterable) else item
        return replace(self, tools=tools_of([*self.tools, *added]))

    def with_sub_agents(self, *agents: SubAgent) -> AgentBuilder:
        """Add other agents as sub-agents: agents of any kind, also without a model."""
        return self._with(sub_agents=[*self.options.get("sub_agents", ()), *agents])

    def with_mcp(
        self,
        server: object,
        *,
        prefix: str = "",
        only: Collection[str] | None = None,
        needs_approval: bool | Collection[str] = False,
        timeout: float = 60.0,
    ) -> AgentBuilder:
        """Add the tools of an MCP server: a command such as `["npx", "@playwright/mcp@latest"]`, a URL, or a dict with
        `command`, `args` and `env`, as in the files of MCP clients (extra `mcp`).

        Building an agent opens a connection, and closing the agent closes it. The options are those of
        `foveate.agents.toolbox.mcp`. Raises BadSetting for other values.
        """
        from .toolbox.mcp_tools import mcp  # Few agents need it.

        create = partial(mcp, server, prefix=prefix, only=only, needs_approval=needs_approval, timeout=timeout)
        create()  # Check the values now; nothing is opened.
        return replace(self, mcp_servers=(*self.mcp_servers, create))

    def with_limits(self, limits: Limits | None = None, **bounds: Any) -> AgentBuilder:
        """Limit each run: a Limits, or its fields, `with_limits(turns=20, money=0.5)`."""
        if limits is not None:
            validate.instance("with_limits()", limits, Limits, "a Limits, or its fields by name")
        try:
            return self._with(limits=replace(limits or Limits(), **bounds))
        except TypeError as error:
            raise BadSetting(f"Limits have the fields {', '.join(Limits.__struct_fields__)}; {error}.") from error

    def with_approval(self, approve: Approver, *, all: bool = False) -> AgentBuilder:
        """Call `approve` before each call of a tool that needs approval; with `all`, before every call.

        It returns True, False, or a sentence why not.
        """
        validate.function("with_approval()", approve)
        return self._with(approve=approve, **({"approve_all": True} if all else {}))

    def with_keywords(self, **keywords: Any) -> AgentBuilder:
        """Set any other keyword of the agent, or of `open_conversation`."""
        return self._with(**keywords)

    # ---------------------------------------------------------------------------------------------------------- built

    def keywords(
        self, kind: Literal["chat", "react", "loop"] = "chat", *, asynchronous: bool = False
    ) -> dict[str, Any]:
        """Return the keywords of the agent: `ChatAgent(**builder.keywords())`. Opens the connections to MCP servers.

        `kind`: `chat` and `react` have the same keywords; `loop` has `instructions` and `actions`. `asynchronous`: for
        an async agent, with an async model. Raises BadSetting if there is no model, or values exclude each other.
        """
        if self.model is None:
            raise BadSetting('The model is missing. Call .use("anthropic:claude-haiku-4-5") or .use_openai(...), ...')
        has_key = self.key is not None and isinstance(self.model, str)
        model = open_model(str(self.model), asynchronous=asynchronous, api_key=self.key) if has_key else self.model
        keywords: dict[str, Any] = {"model": model, **({"close_model": True} if has_key else {}), **self.options}
        servers = [create() for create in self.mcp_servers]
        if self.tools or servers:
            opened = [tool for server in servers for tool in server.open()]
            keywords["tools"] = list(tools_of([*self.tools, *opened]))
        if servers:
            keywords["resources"] = servers
        if self.plugins:
            keywords["plugins"] = [
                plugin() if isinstance(plugin, type | partial) else plugin for plugin in self.plugins
            ]
        if self.listeners:
            keywords["on_event"] = self.listeners[0] if len(self.listeners) == 1 else _AllListeners(self.listeners)
        keywords |= self._shrinking.conversation_options(self.options, kind)
        return keywords if kind != "loop" else _loop_keywords(keywords)

    def build_chat_agent(self) -> ChatAgent:
        """Build a ChatAgent. Raises BadSetting for values that exclude each other."""
        from .agent import ChatAgent

        return ChatAgent(**self.keywords())

    def build_async_chat_agent(self) -> AsyncChatAgent:
        """Build a ChatAgent for asyncio."""
        from .agent import AsyncChatAgent

        return AsyncChatAgent(**self.keywords(asynchronous=True))

    def build_react_agent(self) -> ReActAgent:
        """Build a ReActAgent. Raises BadSetting for values that exclude each other."""
        from .agent import ReActAgent

        return ReActAgent(**self.keywords("react"))

    def build_async_react_agent(self) -> AsyncReActAgent:
        """Build a ReActAgent for asyncio."""
        from .agent import AsyncReActAgent

        return AsyncReActAgent(**self.keywords("react", asynchronous=True))

    def build_loop_agent(self) -> LoopAgent:
        """Build a LoopAgent, whose actions are the tools. Raises BadSetting for values that exclude each other."""
        from .loop_agent import LoopAgent

        return LoopAgent(**self.keywords("loop"))

    def build_async_loop_agent(self) -> AsyncLoopAgent:
        """Build a LoopAgent for asyncio."""
        from .loop_agent import AsyncLoopAgent

        return AsyncLoopAgent(**self.keywords("loop", asynchronous=True))

    def __repr__(self) -> str:
        """Return the settings without keys and passwords."""
        facts = [repr(self.model) if isinstance(self.model, str) else getattr(self.model, "name", "no model")]
        facts += [f"{name}={_shown(name, value)}" for name, value in self.options.items()]
        facts += [str(self._shrinking)] if str(self._shrinking) else []
        facts += [f"tools={[tool.name for tool in self.tools]}"] if self.tools else []
        facts += [f"mcp_servers={len(self.mcp_servers)}"] if self.mcp_servers else []
        return f"AgentBuilder({', '.join(facts)})"

    def _with(self, **options: Any) -> AgentBuilder:
        return replace(self, options={**self.options, **options})


def _shown(name: str, value: object) -> str:
    """Return a value in a few characters. The URL of a database server may hold a password: return only its kind."""
    if name == "store" and isinstance(value, str) and not value.startswith(("sqlite:", "memory:")):
        return f"'{value.partition(':')[0]}:...'"
    return f"{value!r:.60}"


class _AllListeners(Struct, frozen=True):
    """Calls several listeners, also after one of them has failed."""

    listeners: tuple[Callable[[Event], object], ...]

    def __call__(self, event: Event) -> None:
        failure: Exception | None = None
        for listener in self.listeners:
            try:
                listener(event)
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure  # The conversation logs it.


def _loop_keywords(keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the same keywords with the names that a loop agent uses."""
    if keywords.pop("approve_all", False):
        raise BadSetting("A loop agent asks for approval only where an action needs it. Leave all=True out.")
    for name, loop_name in (("system", "instructions"), ("tools", "actions")):
        if name in keywords:
            keywords[loop_name] = keywords.pop(name)
    return keywords
