"""A plugin for Google ADK: each model call of an app gets the view, and the events of the session stay whole.

app = App(name="demo", root_agent=agent, plugins=[FoveatePlugin("sqlite:///chats.db")])
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any, Final

from google.adk.models import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.genai import types
from msgspec.structs import replace

from ..conversation import Conversation
from ..core.conversation_names import child_name
from ..core.messages import Media, Message
from ..core.view import Entry
from ..errors import FoveateError
from ..expand.tool import expand_tool
from .pools import Pools, model_name

__all__ = ["FoveatePlugin"]

_log = logging.getLogger("foveate")
_FORMAT: Final = "gemini"
_EXPAND: Final = expand_tool(_FORMAT)["functionDeclarations"][0]
_caller: ContextVar[tuple[str, str]] = ContextVar("_caller", default=("", ""))
"""The session and the conversation of the agent that runs another one as its tool. ADK gives each tool a context."""


class FoveatePlugin(BasePlugin):
    """Shows the model what fits its window, and answers its calls of `expand`. Put it last in the list.

    A session is a conversation, and so is each further agent in it. One plugin may serve many apps.
    """

    def __init__(self, store: Any = "memory:", *, expand: bool = True, **options: Any) -> None:
        """`options`: those of `open_conversation`, such as `window` and `policy`. Raises BadSetting."""
        super().__init__(name="foveate")
        self._pools = Pools(store=store, expand=expand, **options)
        self._offers = expand
        self._turns: dict[str, int] = {}
        """The numbers of the model calls that run, by the name of their conversation."""
        self._warned: set[str] = set()
        """The conversations that a warning named."""

    async def close(self) -> None:
        """Close the store, if it was opened here. A runner that closes does this."""
        await asyncio.to_thread(self._pools.close)

    def conversation(self, context: Any) -> Conversation:
        """Return the conversation of an agent: `totals()`, `pin(...)`, `search(...)`, `explain(...)`.

        `context`: that of a callback or of a tool.
        """
        return self._pools.get(_FORMAT, _name_of(context))

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        try:
            name = _name_of(callback_context)
            self._turns.pop(name, None)
            if await _is_stateful(callback_context, llm_request):
                self._warn_of_state(name)
                return
            llm_request.contents = await asyncio.to_thread(self._shown, name, llm_request)
            if self._offers:
                llm_request.append_tools([_Expand(self._pools.get(_FORMAT, name))])
        except FoveateError as error:
            _log.warning("The contents of the session are sent as they are. %s", error)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        name = _name_of(callback_context)
        if not llm_response.partial and name in self._turns:
            await asyncio.to_thread(self._record, name, llm_response)

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> Any:
        """Send a smaller view, if the provider refused the prompt as too long."""
        name = _name_of(callback_context)
        if name not in self._turns:
            return None
        try:
            llm_request.contents = await asyncio.to_thread(self._smaller, name, error)
            return await _answer(callback_context, llm_request)
        except Exception as other:  # ADK raises the first error.
            _log.info("A smaller prompt was not answered: %s", other)
            return None

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        if isinstance(tool, AgentTool):
            _caller.set((tool_context.session.id, _name_of(tool_context)))

    def _shown(self, name: str, request: Any) -> list[types.Content]:
        """Take over the contents of the session, and return the view of this call."""
        chat, given = self._pools.get(_FORMAT, name), request.contents
        chat.follow(given)
        system, tools = request.config.system_instruction, request.config.tools or ()
        model = model_name(_FORMAT, str(request.model or "").rpartition("models/")[2])
        view = chat.prepare(system=system, tools=[_definition(tool) for tool in tools], model=model or None)
        self._turns[name] = view.turn
        shown: list[types.Content] = []
        others: list[Message] = []  # Results in one content must stay together.
        for items, entries in view.by_item():
            if items:
                shown += [*_contents(chat, others), *(given[index] for index in items)]
                others = []
            else:
                others += map(_named, entries)
        return shown + _contents(chat, others)

    def _smaller(self, name: str, error: Exception) -> list[types.Content]:
        chat = self._pools.get(_FORMAT, name)
        prompt = chat.retry_smaller(error)
        self._turns[name] = chat.view.turn
        return [types.Content.model_validate(content) for content in prompt["contents"]]

    def _record(self, name: str, response: Any) -> None:
        chat, turn, content = self._pools.get(_FORMAT, name), self._turns[name], response.content
        candidate = {"content": content, "finishReason": getattr(response.finish_reason, "value", None)}
        reply = {"candidates": [candidate], "usageMetadata": response.usage_metadata}
        try:
            if content is not None and content.parts:
                chat.record(reply, call=turn)
            elif response.usage_metadata:
                chat.bill(turn, chat.format.parse_reply(reply)[1])
        except FoveateError as error:  # The session brings the reply again; only its usage is missing.
            _log.warning("A reply was not recorded: %s", error)

    def _warn_of_state(self, name: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            _log.warning("The contents of %s are sent as they are. The provider's servers keep its history.", name)


class _Expand(BaseTool):
    """Shows the model what was shortened."""

    def __init__(self, chat: Conversation) -> None:
        super().__init__(name="expand", description=_EXPAND["description"])
        self._chat = chat

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration.model_validate(_EXPAND)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        result = await asyncio.to_thread(self._chat.expansion, args)
        media = [_part(part) for part in result.content if isinstance(part, Media)]
        key = "error" if result.state == "error" else "output"
        return {key: result.text, "media": media} if media else {key: result.text}


def _name_of(context: Any) -> str:
    """Return the name of an agent's conversation: `app/user/session`, and for further agents `app/user/session/agent`.

    Ids of sessions are unique for one user of one app only.
    """
    run, session = context.get_invocation_context(), context.session
    agent, session_id, caller = run.agent, *_caller.get()
    if caller and session_id != session.id:  # An agent as a tool has a session of its own for each call.
        name = child_name(caller, f"{agent.root_agent.name}:{session.id}")
    else:
        name = child_name(child_name(session.app_name, session.user_id), session.id)
    path, branch = run.node_path or "", run.branch or ""
    # An agent without the contents of the session starts with an empty list in each run.
    if getattr(agent, "include_contents", "") == "none" or getattr(agent, "mode", "") == "single_turn":
        return child_name(name, f"{agent.name}:{run.invocation_id}:{branch}:{path}".rstrip(":"))
    if branch or "/" in path or agent.name != agent.root_agent.name:
        name = child_name(name, f"{agent.name}:{branch}".rstrip(":"))
    return child_name(name, run.isolation_scope) if run.isolation_scope else name


async def _answer(context: Any, request: Any) -> LlmResponse | None:
    """Return the model's response to a request, without streaming."""
    model = await context.get_invocation_context().agent.canonical_model_async(context)
    async with aclosing(model.generate_content_async(request, stream=False)) as responses:
        found = [response async for response in responses]
    return found[-1] if found else None


async def _is_stateful(context: Any, request: Any) -> bool:
    """Return whether the provider keeps the history: in the Interactions API, or in a live session."""
    invocation = context.get_invocation_context()
    if request.previous_interaction_id or invocation.live_request_queue is not None:
        return True
    return bool(getattr(await invocation.agent.canonical_model_async(context), "use_interactions_api", False))


def _definition(tool: Any) -> Any:
    """Return the definition of tools as the model reads it."""
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(tool, "model_dump") else tool


def _named(entry: Entry) -> Message:
    """Return the message of an entry. Gemini needs the name of the tool with each result."""
    result = entry.message.result
    if result is None or result.name:
        return entry.message
    return Message("tool", (replace(result, name=entry.tool),))


def _contents(chat: Conversation, messages: list[Message]) -> list[types.Content]:
    return [types.Content.model_validate(content) for content in chat.format.render(messages)]


def _part(media: Media) -> types.Part:
    if media.source == "base64":
        return types.Part.from_bytes(data=b64decode(media.data), mime_type=media.mime)
    return types.Part.from_uri(file_uri=media.data, mime_type=media.mime or None)
