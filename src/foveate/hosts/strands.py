"""A plugin of Strands: each model call gets the view, and `agent.messages` stay whole.

agent = Agent(plugins=[FoveatePlugin("sqlite:///chats.db")], conversation_manager=NullConversationManager())
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any, Final
from weakref import WeakKeyDictionary

from strands.agent import NullConversationManager
from strands.hooks import AfterModelCallEvent, HookOrder
from strands.middleware import ExecuteToolStage, InvokeModelStage
from strands.plugins import Plugin
from strands.tools import PythonAgentTool
from strands.types.events import ModelStopReason

from ..conversation import Conversation
from ..core.needs import CACHE_KEY
from ..core.profiles import claude_version
from ..core.stamps import Usage
from ..errors import BadSetting
from ..ports import Store
from .host import (
    EXPAND,
    Host,
    ModelCall,
    Path,
    class_names,
    find_mark,
    logged,
    tool_definition,
    usage_of_totals,
    wire_format,
)
from .strands_messages import blocks_of, messages_of, result_block

__all__ = ["FoveatePlugin", "usage_of"]

_REWRITTEN: Final = ("cancelled", "max_tokens")
"""Reasons to stop after which Strands may put another message into `agent.messages`."""
_RUNNING: Final[ContextVar[tuple[Any, Path] | None]] = ContextVar("foveate_strands_tool", default=None)
"""The agent whose tool runs here, and the conversation of an agent that the tool calls."""


class FoveatePlugin(Plugin):
    """Shows the model what fits its window, and answers its calls of `expand`. Put it last in the list.

    A session is a conversation of foveate, and so is each call of a sub-agent. The plugin may serve many agents.
    """

    name = "foveate"
    """The name of the plugin."""

    def __init__(
        self, store: str | Store = "memory:", *, expand: bool = True, session_id: str = "", **options: Any
    ) -> None:
        """`store`: a URL, or a Store, which stays open. `options`: those of `open_conversation`, such as `window` and
        `policy`. Raises BadSetting.

        `session_id`: the name of the conversation of an agent without a session manager.
        """
        super().__init__()
        self._host, self._session_id = Host(store, expand=expand, **options), session_id
        self._calls: WeakKeyDictionary[Any, ModelCall] = WeakKeyDictionary()
        """The newest model call of each agent."""

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._host.close()

    def init_agent(self, agent: Any) -> None:
        """Serve an agent. Raises BadSetting if the agent has another manager of its messages."""
        manager = getattr(agent, "_context_manager", None) or agent.conversation_manager
        if not isinstance(manager, NullConversationManager):
            raise BadSetting(
                f"{type(manager).__name__} removes messages from agent.messages before foveate sees them. Pass "
                "conversation_manager=NullConversationManager() to the Agent, and leave out context_manager=."
            )
        agent.add_middleware(InvokeModelStage, self._around_model)
        agent.add_middleware(ExecuteToolStage, self._around_tool)
        agent.add_hook(self._after_model, AfterModelCallEvent, order=HookOrder.SDK_LAST + 1)
        if self._host.offers_expand:
            agent.tool_registry.register_tool(_expand_tool(self._expand))

    def conversation(self, agent: Any) -> Conversation:
        """Return the conversation of an agent: `totals()`, `pin(...)`, `search(...)`, `explain(...)`."""
        call = self._calls.get(agent)
        return call.chat if call else self._host.conversation(self._path_of(agent), _model_of(agent.model)[0])

    async def _around_model(self, context: Any, next_: Callable[[Any], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        self._calls.pop(context.agent, None)
        parts = _RequestParts(context)
        call = await asyncio.to_thread(self._begin, context, parts)
        if call is None:
            async for event in next_(context):
                yield event
            return
        has_begun = False
        for is_last in (False, True):
            try:
                async for event in next_(_with_view(context, parts, call)):
                    has_begun = True
                    yield await self._noted(context.agent, call, event)
                return
            except Exception as error:
                if has_begun or is_last:
                    raise
                await asyncio.to_thread(call.make_smaller, error)

    def _begin(self, context: Any, parts: _RequestParts) -> ModelCall | None:
        """Take over the messages of the agent, and return the model call with its view."""
        if context.model.stateful:
            self._host.warn("The model keeps the conversation on its server. Turn that off for foveate to shorten it.")
            return None
        format, model = _model_of(context.model)
        return self._host.begin(
            self._path_of(context.agent),
            parts.messages,
            format=format,
            model=model,
            read=messages_of,
            key=lambda message: message.get("tracking_id"),
            system=parts.system,
            tools=[_definition_of(spec) for spec in context.tool_specs],
        )

    async def _noted(self, agent: Any, call: ModelCall, event: Any) -> Any:
        if isinstance(event, ModelStopReason):
            usage = usage_of(event.usage)
            if event.stop_reason in _REWRITTEN:
                await asyncio.to_thread(call.bill, usage)
            else:
                await asyncio.to_thread(call.record, event.message, usage)
            self._calls[agent] = call
        return event

    async def _after_model(self, event: AfterModelCallEvent) -> None:
        """Withdraw a reply that a hook rejected. If that fails, the next list lacks the reply."""
        call = self._calls.get(event.agent)
        if event.retry and event.stop_response is not None and call is not None:
            with logged("A rejected reply was not withdrawn"):
                await asyncio.to_thread(call.chat.discard, call.view.turn)

    async def _around_tool(self, context: Any, next_: Callable[[Any], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        """Let an agent that the tool calls know whose child it is."""
        agent, use, before = context.agent, context.tool_use, _RUNNING.get()
        call = self._calls.get(agent)
        parent = (call.chat.name,) if call else self._path_of(agent)
        _RUNNING.set((agent, (*parent, f"{use['name']}:{use['toolUseId']}")))
        try:
            async for event in next_(context):
                yield event
        finally:
            _RUNNING.set(before)

    def _path_of(self, agent: Any) -> Path:
        """Return the name of the agent's conversation."""
        caller = _RUNNING.get()
        if agent._session_manager is None and caller is not None and caller[0] is not agent:
            return caller[1]
        session = str(agent.session_id if agent._session_manager else self._session_id or agent.session_id)
        return (session,) if agent.agent_id == "default" else (session, agent.agent_id)

    def _expand(self, tool_use: Any, **state: Any) -> Any:
        return result_block(self.conversation(state["agent"]).expansion(tool_use["input"]), tool_use["toolUseId"])


_POINT: Final[dict[str, Any]] = {"cachePoint": {"type": "default"}}
"""A mark for the cache of Anthropic or Bedrock, in the form of Strands."""
_BEDROCK: Final = (4, 0)
"""The version from which on Bedrock has a cache for every Claude. For older ones it may refuse a mark."""


def _with_view(context: Any, parts: _RequestParts, call: ModelCall) -> Any:
    """Return the request with the view, and with the key or the marks for the provider's cache, if it has none."""
    model, config = context.model, context.model.get_config()
    messages, prompt, kinds = parts.shown(call), context.system_prompt, class_names(model)
    if any(config.get(key) for key in ("cache_config", "cache_tools", "cache_prompt")):
        return context.replace(messages=messages)
    takes_marks = "AnthropicModel" in kinds or ("BedrockModel" in kinds and _has_cache(config))
    if call.wants_marks and takes_marks and not find_mark([config.get("params"), messages, prompt]):
        blocks = [{"text": prompt}] if isinstance(prompt, str) and prompt else prompt
        return context.replace(messages=parts.shown(call, _POINT), system_prompt=blocks and [*blocks, _POINT])
    params = config.get("params") or {}
    if call.cache_key and "OpenAI" in kinds and CACHE_KEY not in params:
        model = copy.copy(model)  # Other agents use the same object.
        model.config = {**config, "params": {**params, CACHE_KEY: call.cache_key}}
    return context.replace(messages=messages, model=model)


def _has_cache(config: Any) -> bool:
    """Return whether Bedrock has a cache for this model."""
    version = claude_version(str(config.get("model_id")))
    return version is not None and version >= _BEDROCK


class _RequestParts:
    """The messages of the agent in a request, and the blocks that only this request has at its end."""

    def __init__(self, context: Any) -> None:
        messages, count = context.messages, context.dynamic_trailing_blocks
        content = messages[-1]["content"] if count else []
        self._added = content[-count:] if count else []
        """Blocks such as memories, which are sent and not kept."""
        kept = [{**messages[-1], "content": content[:-count]}] if content[:-count] else []
        self.messages: list[Any] = [*messages[:-1], *kept] if count else messages
        prompt = context.system_prompt or ()
        blocks = [{"text": prompt}] if isinstance(prompt, str) else prompt
        texts = [block.get("text") for block in (*blocks, *self._added)]
        self.system = "\n".join(filter(None, texts)) or None
        """The texts of the system prompt and of the added blocks. Both take tokens."""

    def shown(self, call: ModelCall, *end: Any) -> list[Any]:
        """Return the messages to send: the agent's own where they are shown unchanged, and new ones for the rest.

        `end`: blocks to add at the end of those that the agent keeps.
        """
        shown: list[Any] = []
        for own, entry, _ in call.shown():
            if entry is None:
                _add(shown, own)
            else:
                role = "assistant" if entry.message.role == "assistant" else "user"
                _add(shown, {"role": role, "content": blocks_of(entry.message, own["content"] if own else ())})
        if end and shown and shown[-1]["role"] == "user":
            _add(shown, {"role": "user", "content": [*end]})
        if self._added:
            _add(shown, {"role": "user", "content": self._added})
        return shown


def _definition_of(spec: Any) -> dict[str, Any]:
    """Return the definition of a tool."""
    return tool_definition(spec["name"], spec["description"], spec["inputSchema"]["json"])


def _expand_tool(function: Any) -> PythonAgentTool:
    """Return the tool `expand`, whose calls this function answers."""
    name, description, schema = EXPAND["name"], EXPAND["description"], {"json": EXPAND["parameters"]}
    spec: Any = {"name": name, "description": description, "inputSchema": schema}
    return PythonAgentTool(name, spec, function)


def _model_of(model: Any) -> tuple[str, str]:
    """Return the wire format whose rules the model has, and its name."""
    kinds = class_names(model)
    name = str(model.get_config().get("model_id") or "")
    if "Bedrock" in kinds:
        return ("anthropic" if "claude" in name else "openai"), f"bedrock:{name}"
    return wire_format(kinds), name


def usage_of(usage: Any) -> Usage | None:
    """Return the usage of a reply; None if none was reported.

    Some models of Strands count the cache's tokens among the input tokens, others apart. The total has them once.
    """
    read, write = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")
    output, total = usage["outputTokens"], usage.get("totalTokens") or usage["inputTokens"] + usage["outputTokens"]
    return usage_of_totals(total - output, read, write, output) if total else None


def _add(shown: list[Any], message: Any) -> None:
    """Add a message. Roles alternate, and the results of one reply are in one message."""
    if shown and shown[-1]["role"] == message["role"]:
        shown[-1] = {"role": message["role"], "content": [*shown[-1]["content"], *message["content"]]}
    else:
        shown.append(message)
