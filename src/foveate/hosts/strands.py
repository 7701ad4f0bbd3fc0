"""A plugin of Strands: each model call gets the view, and `agent.messages` stay whole.

agent = Agent(plugins=[FoveatePlugin("sqlite:///chats.db")], conversation_manager=NullConversationManager())
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from msgspec import structs
from strands.agent import NullConversationManager
from strands.hooks import AfterModelCallEvent, HookOrder
from strands.middleware import ExecuteToolStage, InvokeModelStage
from strands.plugins import Plugin
from strands.tools import PythonAgentTool
from strands.types.events import ModelStopReason

from ..conversation import Conversation
from ..core.conversation_names import child_name
from ..core.messages import Message
from ..core.view import View
from ..errors import BadSetting, FoveateError
from ..expand.tool import expand_tool
from ..types import ListItem
from .pools import Pools, model_name
from .strands_messages import blocks_of, messages_of, usage_of

__all__ = ["FoveatePlugin"]

_log = logging.getLogger("foveate")
_EXPAND: Final = expand_tool("openai")
_REWRITTEN: Final = ("cancelled", "max_tokens")
"""Reasons to stop after which Strands may put another message into `agent.messages`."""
_RUNNING: Final[ContextVar[tuple[Any, str] | None]] = ContextVar("foveate_strands_tool", default=None)
"""The agent whose tool runs here, and the name of a conversation for an agent that the tool calls."""


class _Call(NamedTuple):
    """One model call: its conversation, the view to send, the messages it came from, and blocks of this call alone."""

    chat: Conversation
    view: View
    given: list[Any]
    injected: list[Any]


class FoveatePlugin(Plugin):
    """Shows the model what fits its window, and answers its calls of `expand`. Put it last in the list.

    A session is a conversation of foveate, and so is each call of a sub-agent. The plugin may serve many agents.
    """

    name = "foveate"

    def __init__(self, store: Any = "memory:", *, expand: bool = True, session_id: str = "", **options: Any) -> None:
        """`options`: those of `open_conversation`, such as `window` and `policy`. Raises BadSetting.

        `session_id`: the name of the conversation of an agent without a session manager.
        """
        super().__init__()
        self._pools = Pools(store=store, expand=expand, **options)
        self._offers, self._session_id = expand, session_id
        self._calls: WeakKeyDictionary[Any, _Call] = WeakKeyDictionary()

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._pools.close()

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
        if self._offers:
            function = _EXPAND["function"]
            schema = {"json": function["parameters"]}
            spec: Any = {"name": "expand", "description": function["description"], "inputSchema": schema}
            agent.tool_registry.register_tool(PythonAgentTool("expand", spec, self._expand))

    def conversation(self, agent: Any) -> Conversation:
        """Return the conversation of an agent: `totals()`, `pin(...)`, `search(...)`, `explain(...)`."""
        call = self._calls.get(agent)
        return call.chat if call else self._pools.get(_model_of(agent.model)[0], self._name_of(agent))

    def _name_of(self, agent: Any) -> str:
        caller = _RUNNING.get()
        if agent._session_manager is None and caller is not None and caller[0] is not agent:
            return caller[1]
        name = str(agent.session_id if agent._session_manager else self._session_id or agent.session_id)
        return name if agent.agent_id == "default" else child_name(name, agent.agent_id)

    async def _around_model(self, context: Any, next_: Callable[[Any], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        agent = context.agent
        self._calls.pop(agent, None)
        try:
            call = await asyncio.to_thread(self._begin, context)
        except FoveateError as error:
            _log.warning("The messages of the agent are sent as they are. %s", error)
            async for event in next_(context):
                yield event
            return
        has_begun = False
        try:
            async for event in next_(context.replace(messages=_shown(call))):
                has_begun = True
                yield await self._noted(agent, call, event)
            return
        except Exception as error:
            if has_begun:
                raise
            call = await asyncio.to_thread(_smaller, call, error)
        async for event in next_(context.replace(messages=_shown(call))):
            yield await self._noted(agent, call, event)

    async def _noted(self, agent: Any, call: _Call, event: Any) -> Any:
        if isinstance(event, ModelStopReason):
            await asyncio.to_thread(_record, call, event)
            self._calls[agent] = call
        return event

    async def _after_model(self, event: AfterModelCallEvent) -> None:
        """Withdraw a reply that a hook rejected."""
        call = self._calls.get(event.agent)
        if event.retry and event.stop_response is not None and call is not None:
            try:
                await asyncio.to_thread(call.chat.discard, call.view.turn)
            except FoveateError as error:  # The next list lacks the reply, and the conversation follows it.
                _log.warning("A rejected reply was not withdrawn. %s", error)

    async def _around_tool(self, context: Any, next_: Callable[[Any], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        """Let an agent that the tool calls know whose child it is."""
        before, use = _RUNNING.get(), context.tool_use
        try:
            name = child_name(self.conversation(context.agent).name, f"{use['name']}:{use['toolUseId']}")
            _RUNNING.set((context.agent, name))
        except FoveateError as error:
            _log.warning("A sub-agent of this tool gets a conversation of its own. %s", error)
        try:
            async for event in next_(context):
                yield event
        finally:
            _RUNNING.set(before)

    def _begin(self, context: Any) -> _Call:
        """Take over the messages of the agent, and return the view of this call."""
        if context.model.stateful:
            raise BadSetting("The model keeps the conversation on its server. Turn that off for foveate to shorten it.")
        format, model = _model_of(context.model)
        chat = self._pools.get(format, self._name_of(context.agent))
        given, injected = _without_injected(context.messages, context.dynamic_trailing_blocks)
        chat.follow(given, read=lambda message: _item(message, format))
        system = [context.system_prompt] if isinstance(context.system_prompt, str) else context.system_prompt or ()
        texts = [text if isinstance(text, str) else text.get("text", "") for text in (*system, *injected)]
        tools = [_definition(spec) for spec in context.tool_specs]
        view = chat.prepare(system="\n".join(filter(None, texts)) or None, tools=tools, model=model or None)
        return _Call(chat, view, given, injected)

    def _expand(self, tool_use: Any, **state: Any) -> Any:
        result = self.conversation(state["agent"]).expansion(tool_use["input"])
        answer = Message("tool", (structs.replace(result, call_id=tool_use["toolUseId"]),))
        return blocks_of(answer)[0]["toolResult"]


def _shown(call: _Call) -> list[Any]:
    """Return the view: the agent's own messages where they are shown unchanged, and new ones for the rest."""
    shown: list[Any] = []
    for items, entries in call.view.by_item():
        for index in items:
            _add(shown, call.given[index])
        for entry in () if items else entries:
            place = call.view.list_places.get(entry.position)
            own = call.given[place.items[0]]["content"] if place else ()
            role = "assistant" if entry.message.role == "assistant" else "user"
            _add(shown, {"role": role, "content": blocks_of(entry.message, own)})
    if call.injected:
        _add(shown, {"role": "user", "content": call.injected})
    return shown


def _add(shown: list[Any], message: Any) -> None:
    """Add a message. Roles alternate, and the results of one reply are in one message."""
    if shown and shown[-1]["role"] == message["role"]:
        shown[-1] = {"role": message["role"], "content": [*shown[-1]["content"], *message["content"]]}
    else:
        shown.append(message)


def _without_injected(messages: list[Any], count: int) -> tuple[list[Any], list[Any]]:
    """Return the messages without blocks that only this call has at its end, such as memories; and these blocks."""
    if not count:
        return messages, []
    content = messages[-1]["content"]
    kept = [{**messages[-1], "content": content[:-count]}] if content[:-count] else []
    return [*messages[:-1], *kept], content[-count:]


def _smaller(call: _Call, error: Exception) -> _Call:
    """Return a smaller view for a prompt that was too long. Raises the error if it has another cause."""
    call.chat.retry_smaller(error)
    return call._replace(view=call.chat.view)


def _record(call: _Call, stop: ModelStopReason) -> None:
    usage = usage_of(stop.usage)
    try:
        if stop.stop_reason not in _REWRITTEN:
            call.chat.record(messages_of(stop.message, call.chat.format.name)[0], usage=usage, call=call.view.turn)
        elif usage is not None:
            call.chat.bill(call.view.turn, usage)
    except FoveateError as error:  # The agent's messages bring the reply again; only its usage is missing.
        _log.warning("A reply was not recorded: %s", error)


def _item(message: Any, format: str) -> ListItem:
    return ListItem(messages_of(message, format), key=message.get("tracking_id") or "")


def _definition(spec: Any) -> dict[str, Any]:
    if spec["name"] == "expand":
        return _EXPAND
    names = {"name": spec["name"], "description": spec["description"], "parameters": spec["inputSchema"]["json"]}
    return {"type": "function", "function": names}


def _model_of(model: Any) -> tuple[str, str]:
    """Return the wire format whose rules the model has, and its name."""
    kinds = " ".join(kind.__name__ for kind in type(model).__mro__)
    name = str(model.get_config().get("model_id") or "")
    if "Bedrock" in kinds:
        return ("anthropic" if "claude" in name else "openai"), f"bedrock:{name}"
    is_claude, is_gemini = "Anthropic" in kinds, "Gemini" in kinds
    format = "anthropic" if is_claude else "gemini" if is_gemini else "openai"
    if "Responses" in kinds:
        format = "openai_responses"
    return format, model_name(format, name)
