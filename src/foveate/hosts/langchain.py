"""Middleware for LangChain and deepagents: each model call gets the view, and the state of the thread stays whole.

agent = create_agent(model, tools, middleware=[FoveateMiddleware("sqlite:///chats.db")])
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ..conversation import Conversation
from ..core.needs import CACHE_KEY
from ..ports import Store
from .host import EXPAND, Host, ModelCall, Path, class_names, find_mark, wire_format
from .langchain_messages import from_langchain, langchain_content, to_langchain, usage_of

__all__ = ["FoveateMiddleware"]

_TOOLS: Final = "tools:"
"""The node in which an agent runs its tools."""
_ENDS: Final = 8
"""Messages of a history among which one has LangChain's id: replies that were recorded have none."""


class FoveateMiddleware(AgentMiddleware):
    """Shows the model what fits its window, and answers its calls of `expand`. Put it last in the list.

    A thread is a conversation, and so is each call of a sub-agent. The middleware may serve many agents and threads.
    """

    def __init__(
        self, store: str | Store = "memory:", *, expand: bool = True, name: str = "FoveateMiddleware", **options: Any
    ) -> None:
        """`name`: its name among the middleware. With "SummarizationMiddleware" it takes the place of the summarization
        of deepagents, also in its general-purpose sub-agent. `options`: those of `open_conversation`, such as `window`
        and `policy`. Raises BadSetting.
        """
        super().__init__()
        self._name = name
        self._host = Host(store, expand=expand, **options)
        self._beginnings: WeakKeyDictionary[Conversation, str | None] = WeakKeyDictionary()
        """The id of the first message of a conversation of a node, before it is stored."""
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
        return self._host.conversation(self._path(runtime, messages))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call the model with the view in place of the messages of the state."""
        call = self._begin(request)
        if call is None:
            return handler(request)
        try:
            response = handler(_with_view(request, call))
        except Exception as error:
            call.make_smaller(error)
            response = handler(_with_view(request, call))
        _record(call, response)
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the model with the view in place of the messages of the state."""
        call = await asyncio.to_thread(self._begin, request)
        if call is None:
            return await handler(request)
        try:
            response = await handler(_with_view(request, call))
        except Exception as error:
            await asyncio.to_thread(call.make_smaller, error)
            response = await handler(_with_view(request, call))
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
        format = wire_format(str(model._llm_type))
        return self._host.begin(
            self._path(request.runtime, request.messages, format),
            request.messages,
            format=format,
            model=str(getattr(model, "model_name", "") or getattr(model, "model", "")).removeprefix("models/"),
            read=from_langchain,
            key=lambda message: message.id,
            system=str(request.system_message.text) if request.system_message else None,
            tools=[convert_to_openai_tool(tool) for tool in request.tools],
        )

    def _path(self, runtime: Any, messages: Sequence[BaseMessage], format: str = "") -> Path:
        """Return the name of a thread, and below it that of a node with an agent, or of the call of a sub-agent."""
        path, node = _path_of(runtime, messages)
        with suppress(Exception):  # The model call meets the fault too, and reports it.
            if node != path and self._goes_on(self._host.conversation(node, format), messages):
                return node
        return path

    def _goes_on(self, chat: Conversation, messages: Sequence[BaseMessage]) -> bool:
        """Return whether these messages begin a conversation, or have one of its first or newest messages."""
        ids, end = {message.id for message in messages}, len(chat)
        if messages and not end:  # Runs of a node may begin at the same time: the first one gets the conversation.
            return self._beginnings.setdefault(chat, messages[0].id) in ids
        ends = (*chat.history(1, min(end, _ENDS)), *chat.history(max(1, end - _ENDS + 1), end))
        return any(row.stamp.key in ids for row in ends)

    def _is_expand(self, request: Any) -> bool:
        return bool(self.tools) and request.tool_call["name"] == EXPAND["name"]

    def _expanded(self, request: Any) -> ToolMessage:
        tool_call = request.tool_call
        result = self._host.expansion(self._path(request.runtime, request.state["messages"]), tool_call["args"])
        status = "error" if result.state == "error" else "success"
        content = langchain_content(result.content)
        return ToolMessage(content, tool_call_id=tool_call["id"], name=EXPAND["name"], status=status)


def _with_view(request: Any, call: ModelCall) -> Any:
    """Return the request with the view, and with the key or the mark for the provider's cache, if it has none."""
    settings, kinds = request.model_settings, class_names(request.model).split()
    own = {**(getattr(request.model, "model_kwargs", None) or {}), **settings}
    request = request.override(messages=_shown(call))
    if call.cache_key and CACHE_KEY not in own and "openai" in str(request.model._llm_type):
        settings = {**settings, CACHE_KEY: call.cache_key}
    elif call.wants_marks and "ChatAnthropic" in kinds:
        contents = [message.content for message in (request.system_message, *request.messages) if message]
        tools = [tool if isinstance(tool, dict) else getattr(tool, "extras", None) for tool in request.tools]
        if find_mark([own, contents, tools]) is None:
            # A setting, because middleware behind this one may set the same, and four marks are the limit.
            settings = {**settings, "cache_control": {"type": "ephemeral"}}
    return request.override(model_settings=settings)


def _shown(call: ModelCall) -> list[BaseMessage]:
    """Return the view: the state's own messages where they are shown unchanged, and new ones for the rest."""
    return [item if entry is None else to_langchain(entry.message, item) for item, entry, _ in call.shown()]


def _record(call: ModelCall, response: Any) -> None:
    for message in getattr(response, "result", [response]):
        if isinstance(message, AIMessage):
            call.record(message, usage_of(message))


def _path_of(runtime: Any, messages: Sequence[BaseMessage]) -> tuple[Path, Path]:
    """Return the name of a run of an agent, and the one of all runs of its node in a graph.

    Each call of a tool is a list of its own, so its sub-agents have the same name in both.
    """
    info = runtime.execution_info
    thread = (info and info.thread_id) or f"run-{messages[0].id if messages else ''}"
    tasks = info.checkpoint_ns.split("|")[:-1] if info else []  # Each is the name of a node, a colon and a random id.
    nodes = [task if task.startswith(_TOOLS) else task.partition(":")[0] for task in tasks]
    return (thread, "|".join(tasks))[: 1 + bool(tasks)], (thread, "|".join(nodes))[: 1 + bool(tasks)]


def _never_called(**arguments: Any) -> str:
    """Stand for `expand`, whose calls the middleware answers in `wrap_tool_call`."""
    raise AssertionError("FoveateMiddleware answers calls of `expand` itself.")
