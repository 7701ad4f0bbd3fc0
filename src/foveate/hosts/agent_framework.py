"""Middleware for Microsoft Agent Framework: each model call gets the view, and the session's history stays whole.

agent = Agent(client=client, tools=[read_log], middleware=[FoveateMiddleware("sqlite:///chats.db")])
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agent_framework import ChatContext, ChatMiddleware, FunctionTool, Message

from ..conversation import Conversation
from ..core.view import View
from ..errors import FoveateError
from ..expand.tool import expand_tool
from ..types import ListItem
from .agent_framework_messages import content_of, groups, messages_of, to_agent_framework, usage_of
from .agent_framework_names import SubAgents, conversation_name
from .pools import Pools, model_name

__all__ = ["FoveateMiddleware"]

_log = logging.getLogger("foveate")
_EXPAND: Final = expand_tool("openai")


class _Call(NamedTuple):
    """One model call: its conversation, and the messages to send."""

    chat: Conversation
    view: View
    given: Sequence[Message]
    format: str


class FoveateMiddleware(ChatMiddleware):
    """Shows the model what fits its window, and answers its calls of `expand`. Put it last in the list.

    A session is a conversation of foveate. One middleware may serve many agents and sessions.
    """

    def __init__(self, store: Any = "memory:", *, expand: bool = True, **options: Any) -> None:
        """`options`: those of `open_conversation`, such as `window` and `policy`. Raises BadSetting."""
        self._pools = Pools(store=store, expand=expand, **options)
        self._offers = expand
        self._format = "openai"
        self._has_warned = False
        self.sub_agents = SubAgents()
        """For agents whose tools are agents: `middleware=[foveate.sub_agents, foveate]`. The conversation of a
        sub-agent is then a child of its caller's."""

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._pools.close()

    def conversation(self, session_id: str) -> Conversation:
        """Return a conversation of foveate: `totals()`, `pin(...)`, `search(...)`, `explain(...)`."""
        return self._pools.get(self._format, session_id)

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        if _is_on_server(context):
            self._warn_of_server()
            return await call_next()
        try:
            call = await asyncio.to_thread(self._begin, context)
        except FoveateError as error:
            _log.warning("The messages are sent as they are. %s", error)
            return await call_next()
        context.messages = _shown(call)

        async def keep(response: Any) -> Any:
            await asyncio.to_thread(_record, call, response)
            return response

        if context.stream:
            context.stream_result_hooks.append(keep)
            return await call_next()
        try:
            await call_next()
        except Exception as error:
            call = await asyncio.to_thread(_smaller, call, error)
            context.messages = _shown(call)
            await call_next()
        await keep(context.result)

    def _begin(self, context: ChatContext) -> _Call:
        """Take over the messages of a call, and return its view."""
        options = context.options or {}
        format, model = _model_of(context.client, options.get("model"))
        self._format = format
        chat = self._pools.get(format, conversation_name(context))
        if self._offers and _has_loop(context):
            _offer(context.options, chat)
        given = list(context.messages)
        chat.follow(given, read=lambda message: ListItem(messages_of(message, format)))
        system = options.get("instructions") or None
        text = system if system is None or isinstance(system, str) else json.dumps(system, default=str)
        tools = [_definition(tool) for tool in options.get("tools") or ()]
        return _Call(chat, chat.prepare(system=text, tools=tools, model=model or None), given, format)

    def _warn_of_server(self) -> None:
        if not self._has_warned:
            _log.warning(
                "The messages are sent as they are, since the history is kept by the service or for each call. Set the "
                "option store=False, and pass neither conversation_id nor require_per_service_call_history_persistence."
            )
        self._has_warned = True


def _shown(call: _Call) -> list[Message]:
    """Return the view: the caller's own messages where they are shown unchanged, and new ones for the rest."""
    shown: list[Message] = []
    last: tuple[int, int] | None = None
    for items, entries in call.view.by_item():
        if items:
            shown += [call.given[index] for index in items]
            last = None
            continue
        for entry in entries:
            place = call.view.list_places.get(entry.position)
            if place is None:
                shown.append(to_agent_framework(entry.message, call.format))
                last = None
                continue
            own = call.given[place.items[0]]
            kept = groups(own)[place.part]
            made = to_agent_framework(entry.message, call.format, own, kept)
            if last == (place.items[0], place.part - 1) and shown[-1].role == made.role:
                shown[-1].contents.extend(made.contents)  # The next part of the same message.
            else:
                shown.append(made)
            last = (place.items[0], place.part)
    return shown


def _smaller(call: _Call, error: Exception) -> _Call:
    """Return a smaller view for a prompt that was too long. Raises the error if it has another cause."""
    call.chat.retry_smaller(error)
    return call._replace(view=call.chat.view)


def _record(call: _Call, response: Any) -> None:
    """Record the reply. If it has several messages, the next list brings the others."""
    for message in response.messages[:1] if response else ():
        try:
            call.chat.record(messages_of(message, call.format)[0], usage=usage_of(response), call=call.view.turn)
        except FoveateError as error:  # The session brings the reply again; only its usage is missing.
            _log.warning("A reply was not recorded: %s", error)


def _is_on_server(context: ChatContext) -> bool:
    options = context.options or {}
    stores = options.get("store")
    if stores is None:
        stores = getattr(context.client, "STORES_BY_DEFAULT", False)
    return bool(stores) or any(options.get(key) for key in ("conversation_id", "previous_response_id", "conversation"))


def _has_loop(context: ChatContext) -> bool:
    """Return whether the client runs tools. Its options and tools are then those of this run."""
    return bool((getattr(context.client, "function_invocation_configuration", None) or {}).get("enabled", False))


def _offer(options: Any, chat: Conversation) -> None:
    """Add the tool `expand` to the tools of the run, unless there is one with this name."""
    tools = options.get("tools")
    if any(getattr(tool, "name", "") == "expand" for tool in tools or ()):
        return

    async def answer(**arguments: Any) -> Any:
        result = await asyncio.to_thread(chat.expansion, arguments)
        return [content_of(part) for part in result.content]

    about = _EXPAND["function"]
    tool = FunctionTool(name="expand", description=about["description"], func=answer, input_model=about["parameters"])
    if tools:
        tools.append(tool)
    else:
        options["tools"] = [tool]


def _definition(tool: Any) -> Any:
    """Return the definition of a tool as the model reads it."""
    if not isinstance(tool, FunctionTool):
        return dict(tool) if isinstance(tool, Mapping) else {"type": type(tool).__name__}
    if tool.name == "expand":
        return _EXPAND
    names = {"name": tool.name, "description": tool.description, "parameters": tool.parameters()}
    return {"type": "function", "function": names}


def _model_of(client: Any, model: str | None) -> tuple[str, str]:
    """Return the wire format whose rules the model has, and its name."""
    kinds = " ".join(kind.__name__ for kind in type(client).__mro__)
    format = "anthropic" if "Anthropic" in kinds else "gemini" if "Gemini" in kinds or "Google" in kinds else "openai"
    if format == "openai" and "OpenAIChatClient" in kinds:
        format = "openai_responses"
    return format, model_name(format, str(model or getattr(client, "model", "") or ""))
