"""Middleware for LangChain and deepagents: each model call gets the view, and the state of the thread stays whole.

agent = create_agent(model, tools, middleware=[FoveateMiddleware("sqlite:///chats.db")])
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ..conversation import Conversation
from ..core.conversation_names import child_name
from ..core.view import View
from ..errors import FoveateError
from ..expand.tool import expand_tool
from ..types import ListItem
from .langchain_messages import from_langchain, langchain_content, to_langchain, usage_of
from .pools import Pools, model_name

__all__ = ["FoveateMiddleware"]

_log = logging.getLogger("foveate")
_EXPAND: Final = expand_tool("openai")


class _Call(NamedTuple):
    """One model call: its conversation, and the messages to send."""

    chat: Conversation
    view: View
    given: Sequence[BaseMessage]


class FoveateMiddleware(AgentMiddleware):
    """Shows the model what fits its window, and answers its calls of `expand`. Put it last in the list.

    A thread is a conversation, and so is each call of a sub-agent. The middleware may serve many agents and threads.
    """

    def __init__(
        self, store: Any = "memory:", *, expand: bool = True, name: str = "FoveateMiddleware", **options: Any
    ) -> None:
        """`name`: its name among the middleware. With "SummarizationMiddleware" it takes the place of the summarization
        of deepagents, also in its general-purpose sub-agent. `options`: those of `open_conversation`, such as `window`
        and `policy`. Raises BadSetting.
        """
        super().__init__()
        self._name = name
        self._pools = Pools(store=store, expand=expand, **options)
        function = _EXPAND["function"]
        tool = StructuredTool.from_function(
            func=_never_called, name="expand", description=function["description"], args_schema=function["parameters"]
        )
        self.tools = [tool] if expand else []

    @property
    def name(self) -> str:
        return self._name

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._pools.close()

    def conversation(self, runtime: Any, messages: Sequence[BaseMessage], format: str = "openai") -> Conversation:
        """Return the conversation of a run. Without a thread, it is named after its first message."""
        info = runtime.execution_info
        name = (info and info.thread_id) or f"run-{messages[0].id if messages else ''}"
        agent = info.checkpoint_ns.rpartition("|")[0] if info else ""
        return self._pools.get(format, child_name(name, agent) if agent else name)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            call = self._begin(request)
        except FoveateError as error:
            _warn(error)
            return handler(request)
        try:
            response = handler(request.override(messages=_shown(call)))
        except Exception as error:
            call = _smaller(call, error)
            response = handler(request.override(messages=_shown(call)))
        _record(call, response)
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        try:
            call = await asyncio.to_thread(self._begin, request)
        except FoveateError as error:
            _warn(error)
            return await handler(request)
        try:
            response = await handler(request.override(messages=_shown(call)))
        except Exception as error:
            call = await asyncio.to_thread(_smaller, call, error)
            response = await handler(request.override(messages=_shown(call)))
        await asyncio.to_thread(_record, call, response)
        return response

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return self._expanded(request) if request.tool_call["name"] == "expand" and self.tools else handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        if request.tool_call["name"] == "expand" and self.tools:
            return await asyncio.to_thread(self._expanded, request)
        return await handler(request)

    def _begin(self, request: Any) -> _Call:
        """Take over the messages of the state, and return the view of this call."""
        format, model = _model_of(request.model)
        chat = self.conversation(request.runtime, request.messages, format)
        chat.follow(request.messages, read=partial(_item, format))
        system = str(request.system_message.text) if request.system_message else None
        tools = [_EXPAND if _is_ours(tool) else convert_to_openai_tool(tool) for tool in request.tools]
        return _Call(chat, chat.prepare(system=system, tools=tools, model=model or None), request.messages)

    def _expanded(self, request: Any) -> ToolMessage:
        tool_call, messages = request.tool_call, request.state["messages"]
        result = self.conversation(request.runtime, messages).expansion(tool_call["args"])
        status = "error" if result.state == "error" else "success"
        return ToolMessage(
            langchain_content(result.content), tool_call_id=tool_call["id"], name="expand", status=status
        )


def _shown(call: _Call) -> list[BaseMessage]:
    """Return the view: the state's own messages where they are shown unchanged, and new ones for the rest."""
    shown: list[BaseMessage] = []
    for items, entries in call.view.by_item():
        if items:
            shown += [call.given[index] for index in items]
            continue
        for entry in entries:
            place = call.view.list_places.get(entry.position)
            shown.append(to_langchain(entry.message, call.given[place.items[0]] if place else None))
    return shown


def _smaller(call: _Call, error: Exception) -> _Call:
    """Return a smaller view for a prompt that was too long. Raises the error if it has another cause."""
    call.chat.retry_smaller(error)
    return call._replace(view=call.chat.view)


def _record(call: _Call, response: Any) -> None:
    for message in getattr(response, "result", [response]):
        if isinstance(message, AIMessage):
            try:
                reply = from_langchain(message, call.chat.format.name)
                call.chat.record(reply, usage=usage_of(message), call=call.view.turn)
            except FoveateError as error:  # The state brings the reply again; only its usage is missing.
                _log.warning("A reply was not recorded: %s", error)


def _item(format: str, message: BaseMessage) -> ListItem:
    return ListItem(from_langchain(message, format), key=message.id or "")


def _model_of(model: Any) -> tuple[str, str]:
    """Return the wire format whose rules the model has, and its name."""
    provider = str(model._llm_type)
    format = "anthropic" if "anthropic" in provider else "gemini" if "google" in provider else "openai"
    name = str(getattr(model, "model_name", "") or getattr(model, "model", ""))
    return format, model_name(format, name.removeprefix("models/"))


def _is_ours(tool: object) -> bool:
    return isinstance(tool, StructuredTool) and tool.func is _never_called


def _never_called(**arguments: Any) -> str:
    """The middleware answers calls of `expand` in `wrap_tool_call`."""
    raise AssertionError("FoveateMiddleware answers calls of `expand` itself.")


def _warn(error: FoveateError) -> None:
    _log.warning("The messages of the state are sent as they are. %s", error)
