"""Middleware for LangChain and deepagents: each model call gets the view, and the state of the thread stays whole.

agent = create_agent(model, tools, middleware=[FoveateMiddleware("sqlite:///chats.db")])
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ..conversation import Conversation
from .host import EXPAND, Host, ModelCall, Path, wire_format
from .langchain_messages import from_langchain, langchain_content, to_langchain, usage_of

__all__ = ["FoveateMiddleware"]


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
        self._host = Host(store, expand=expand, **options)
        tool = StructuredTool.from_function(
            func=_never_called, name=EXPAND["name"], description=EXPAND["description"], args_schema=EXPAND["parameters"]
        )
        self.tools = [tool] if expand else []
        """The tools that the middleware adds to the agent: `expand`, if it is offered."""

    @property
    def name(self) -> str:
        """The name of the middleware."""
        return self._name

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._host.close()

    def conversation(self, runtime: Any, messages: Sequence[BaseMessage]) -> Conversation:
        """Return the conversation of a run. Without a thread, it is named after its first message."""
        return self._host.conversation(_path_of(runtime, messages))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call the model with the view in place of the messages of the state."""
        call = self._begin(request)
        if call is None:
            return handler(request)
        try:
            response = handler(request.override(messages=_shown(call)))
        except Exception as error:
            call.make_smaller(error)
            response = handler(request.override(messages=_shown(call)))
        _record(call, response)
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the model with the view in place of the messages of the state."""
        call = await asyncio.to_thread(self._begin, request)
        if call is None:
            return await handler(request)
        try:
            response = await handler(request.override(messages=_shown(call)))
        except Exception as error:
            await asyncio.to_thread(call.make_smaller, error)
            response = await handler(request.override(messages=_shown(call)))
        await asyncio.to_thread(_record, call, response)
        return response

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Answer calls of `expand`; pass other calls on."""
        return self._expanded(request) if self._is_expand(request) else handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Answer calls of `expand`; pass other calls on."""
        return await (asyncio.to_thread(self._expanded, request) if self._is_expand(request) else handler(request))

    def _begin(self, request: Any) -> ModelCall | None:
        """Take over the messages of the state, and return the model call with its view; None if that fails."""
        model = request.model
        if getattr(model, "use_previous_response_id", False):
            self._host.warn("use_previous_response_id= lets the provider keep the history. Leave it out.")
            return None
        return self._host.begin(
            _path_of(request.runtime, request.messages),
            request.messages,
            format=wire_format(str(model._llm_type)),
            model=str(getattr(model, "model_name", "") or getattr(model, "model", "")).removeprefix("models/"),
            read=from_langchain,
            key=lambda message: message.id,
            system=str(request.system_message.text) if request.system_message else None,
            tools=[convert_to_openai_tool(tool) for tool in request.tools],
        )

    def _is_expand(self, request: Any) -> bool:
        return bool(self.tools) and request.tool_call["name"] == EXPAND["name"]

    def _expanded(self, request: Any) -> ToolMessage:
        tool_call = request.tool_call
        result = self._host.expansion(_path_of(request.runtime, request.state["messages"]), tool_call["args"])
        status = "error" if result.state == "error" else "success"
        content = langchain_content(result.content)
        return ToolMessage(content, tool_call_id=tool_call["id"], name=EXPAND["name"], status=status)


def _shown(call: ModelCall) -> list[BaseMessage]:
    """Return the view: the state's own messages where they are shown unchanged, and new ones for the rest."""
    return [item if entry is None else to_langchain(entry.message, item) for item, entry, _ in call.shown()]


def _record(call: ModelCall, response: Any) -> None:
    for message in getattr(response, "result", [response]):
        if isinstance(message, AIMessage):
            call.record(message, usage_of(message))


def _path_of(runtime: Any, messages: Sequence[BaseMessage]) -> Path:
    """Return the name of a thread, and below it that of the call of a sub-agent."""
    info = runtime.execution_info
    thread = (info and info.thread_id) or f"run-{messages[0].id if messages else ''}"
    agent = info.checkpoint_ns.rpartition("|")[0] if info else ""
    return (thread, agent) if agent else (thread,)


def _never_called(**arguments: Any) -> str:
    """The middleware answers calls of `expand` in `wrap_tool_call`."""
    raise AssertionError("FoveateMiddleware answers calls of `expand` itself.")
