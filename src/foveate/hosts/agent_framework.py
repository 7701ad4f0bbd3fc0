"""Middleware for Microsoft Agent Framework: each model call gets the view, and the session's history stays whole.

agent = Agent(client=client, tools=[read_log], middleware=[FoveateMiddleware("sqlite:///chats.db")])
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from agent_framework import (
    ChatContext,
    ChatMiddleware,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
)

from ..conversation import Conversation
from ..core.needs import CACHE_KEY
from ..ports import Store
from .agent_framework_messages import content_of, groups, messages_of, to_agent_framework, usage_of
from .host import EXPAND, Host, ModelCall, Path, class_names, find_mark, tool_definition, wire_format

__all__ = ["FoveateMiddleware"]


class FoveateMiddleware(ChatMiddleware):
    """Shows the model what fits its window, and answers its calls of `expand`. Put it last in the list.

    A session is a conversation of foveate. One middleware may serve many agents and sessions.
    """

    def __init__(self, store: str | Store = "memory:", *, expand: bool = True, **options: Any) -> None:
        """`store`: a URL, or a Store, which stays open. `options`: those of `open_conversation`, such as `window` and
        `policy`. Raises BadSetting.
        """
        self._host = Host(store, expand=expand, **options)
        self.sub_agents = _SubAgents()
        """For agents whose tools are agents: `middleware=[foveate.sub_agents, foveate]`. The conversation of a
        sub-agent is then a child of its caller's."""

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._host.close()

    def conversation(self, session_id: str) -> Conversation:
        """Return a conversation of foveate: `totals()`, `pin(...)`, `search(...)`, `explain(...)`."""
        return self._host.conversation((session_id,))

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Send the view in place of the messages, and record the reply."""
        call = await asyncio.to_thread(self._begin, context)
        if call is None:
            return await call_next()
        context.messages = _shown(call)
        if added := _cache_options(context, call):
            context.options = {**added, **(context.options or {})}

        async def keep(response: Any) -> Any:
            await asyncio.to_thread(_record, call, response)
            return response

        if context.stream:
            context.stream_result_hooks.append(keep)
            return await call_next()
        try:
            await call_next()
        except Exception as error:
            await asyncio.to_thread(call.make_smaller, error)
            context.messages = _shown(call)
            await call_next()
        await keep(context.result)

    def _begin(self, context: ChatContext) -> ModelCall | None:
        """Take over the messages of a call, and return the model call with its view."""
        if _is_on_server(context):
            self._host.warn(
                "The history is kept by the service or for each call. Set the option store=False, and pass neither "
                "conversation_id nor require_per_service_call_history_persistence."
            )
            return None
        path = _path_of(context)
        if self._host.offers_expand and _has_loop(context):
            self._offer(context.options, path)
        options = context.options or {}
        system = options.get("instructions") or None
        return self._host.begin(
            path,
            list(context.messages),
            format=_format_of(context.client),
            model=str(options.get("model") or getattr(context.client, "model", "") or ""),
            read=messages_of,
            system=system if system is None or isinstance(system, str) else json.dumps(system, default=str),
            tools=[_definition(tool) for tool in options.get("tools") or ()],
        )

    def _offer(self, options: Any, path: Path) -> None:
        """Add the tool `expand` to the tools of the run, unless there is one with this name."""
        tools = options["tools"] = options.get("tools") or []
        if any(getattr(tool, "name", "") == EXPAND["name"] for tool in tools):
            return

        async def answer(**arguments: Any) -> Any:
            result = await asyncio.to_thread(self._host.expansion, path, arguments)
            return [content_of(part) for part in result.content]

        name, description, parameters = EXPAND["name"], EXPAND["description"], EXPAND["parameters"]
        tools.append(FunctionTool(name=name, description=description, func=answer, input_model=parameters))


def _shown(call: ModelCall) -> list[Message]:
    """Return the view: the caller's own messages where they are shown unchanged, and new ones for the rest."""
    shown: list[Message] = []
    before: tuple[Message | None, int] = (None, 0)
    for own, entry, part in call.shown():
        if entry is None:
            shown.append(own)
        else:
            kept = groups(own)[part] if own is not None else ()
            message = to_agent_framework(entry.message, call.chat.format.name, own, kept)
            if part and before[0] is own and before[1] == part - 1 and shown[-1].role == message.role:
                shown[-1].contents.extend(message.contents)  # The next part of the same message.
            else:
                shown.append(message)
        before = (own, part)
    return shown


def _record(call: ModelCall, response: Any) -> None:
    """Record the reply. If it has several messages, the next list brings the others."""
    for message in response.messages[:1] if response else ():
        call.record(message, usage_of(response))


def _cache_options(context: ChatContext, call: ModelCall) -> dict[str, Any]:
    """Return the options by which the provider caches the request: OpenAI's key, or Anthropic's mark at its end."""
    kinds = class_names(context.client)
    if call.cache_key and "OpenAI" in kinds:
        return {CACHE_KEY: call.cache_key}
    if call.wants_marks and "AnthropicClient" in kinds.split() and not find_mark(context.options):
        return {"cache_control": {"type": "ephemeral"}}  # Bedrock and Vertex may refuse it.
    return {}


def _is_on_server(context: ChatContext) -> bool:
    options = context.options or {}
    stores = options.get("store")
    if stores is None:
        stores = getattr(context.client, "STORES_BY_DEFAULT", False)
    return bool(stores) or any(options.get(key) for key in ("conversation_id", "previous_response_id", "conversation"))


def _has_loop(context: ChatContext) -> bool:
    """Return whether the client runs tools. Its options and tools are then those of this run."""
    return bool((getattr(context.client, "function_invocation_configuration", None) or {}).get("enabled", False))


def _definition(tool: Any) -> Any:
    """Return the definition of a tool as the model reads it."""
    if isinstance(tool, FunctionTool):
        return tool_definition(tool.name, tool.description, tool.parameters())
    return dict(tool) if isinstance(tool, Mapping) else {"type": type(tool).__name__}


def _format_of(client: Any) -> str:
    """Return the wire format whose rules the model of a client has."""
    kinds = class_names(client)
    return "openai_responses" if "OpenAIChatClient" in kinds else wire_format(kinds)


_RUN: Final = "foveate_conversation"
"""The property of a run's first message that holds the name of its conversation. It is not sent."""


class _Caller(NamedTuple):
    """The tool call that is running."""

    path: Path
    session_id: str
    key: str


_CALLER: Final[ContextVar[_Caller | None]] = ContextVar("foveate_caller", default=None)


class _SubAgents(FunctionMiddleware):
    """Names the conversation of the agents that a tool runs: a child of its caller's."""

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        if context.session is None:
            return await call_next()
        session_id = context.session.session_id
        key = f"{context.function.name}:{context.metadata.get('call_id', '')}"
        token = _CALLER.set(_Caller(_path(session_id), session_id, key))
        try:
            await call_next()
        finally:
            _CALLER.reset(token)


def _path_of(context: ChatContext) -> Path:
    """Return the name of the call's conversation: that of the session, or one that stays the same in the run."""
    if context.session is not None:
        return _path(context.session.session_id)
    own = f"run-{uuid.uuid4().hex}"
    if context.messages:  # The framework copies the messages for each run.
        own = str(context.messages[0].additional_properties.setdefault(_RUN, own))
    return _path(own)


def _path(session_id: str) -> Path:
    """Return the name of a session's conversation, which is a child of the one whose tool call is running."""
    caller = _CALLER.get()
    if caller is None:
        return (session_id,)
    return (*caller.path, caller.key if session_id == caller.session_id else session_id)
