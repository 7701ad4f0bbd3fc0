"""A plugin for Google ADK: each model call of an app gets the view, and the events of the session stay whole.

app = App(name="demo", root_agent=agent, plugins=[FoveatePlugin("sqlite:///chats.db")])
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from base64 import b64decode
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from google.adk.agents.context_cache_config import ContextCacheConfig
from google.adk.models import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.genai import types
from msgspec.structs import replace

from ..conversation import Conversation
from ..core.messages import Media, Message
from ..core.needs import CACHE_KEY
from ..core.view import Entry
from ..expand.tool import expand_tool
from ..ports import Store
from .host import EXPAND, Host, ModelCall, Path, class_names

__all__ = ["FoveatePlugin"]

_log = logging.getLogger("foveate")
_FORMAT: Final = "gemini"


class FoveatePlugin(BasePlugin):
    """Shows the model what fits its window, and answers its calls of `expand`. Put it last in the list.

    A session is a conversation, and so is each further agent in it. One plugin may serve many apps.
    """

    def __init__(self, store: str | Store = "memory:", *, expand: bool = True, **options: Any) -> None:
        """`store`: a URL, or a Store, which stays open. `options`: those of `open_conversation`, such as `window` and
        `policy`. Raises BadSetting.
        """
        super().__init__(name="foveate")
        self._host = Host(store, expand=expand, **options)
        self._calls: dict[Path, ModelCall] = {}
        """The model calls in progress, by the names of their conversations."""

    async def close(self) -> None:
        """Close the store, if it was opened here. A runner that closes does this."""
        await asyncio.to_thread(self._host.close)

    def conversation(self, context: Any) -> Conversation:
        """Return the conversation of an agent: `totals()`, `pin(...)`, `search(...)`, `explain(...)`.

        `context`: that of a callback or of a tool.
        """
        return self._host.conversation(_path_of(context), _FORMAT)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Put the view in place of the contents of the request."""
        path = _path_of(callback_context)
        self._calls.pop(path, None)
        model = await _model_of(callback_context)
        if _is_stateful(callback_context, llm_request, model):
            self._host.warn(f"The provider's servers keep the history of {'/'.join(path)}.")
            return
        call = await asyncio.to_thread(self._begin, path, llm_request)
        if call is not None:
            self._calls[path] = call
            llm_request.contents = _shown_contents(call)
            _use_cache(model, llm_request, call)
            if self._host.offers_expand:
                llm_request.append_tools([_ExpandTool(call.chat)])

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Record the reply of the model."""
        path = _path_of(callback_context)
        if not llm_response.partial and path in self._calls:
            await asyncio.to_thread(_record, self._calls.pop(path), llm_response)

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> Any:
        """Send a smaller view, if the provider refused the prompt as too long."""
        path = _path_of(callback_context)
        call = self._calls.pop(path, None)
        if call is None:
            return None
        try:
            await asyncio.to_thread(call.make_smaller, error)
            llm_request.contents = _shown_contents(call)
            response = await _answer(callback_context, llm_request)
        except Exception as other:  # ADK raises the first error.
            _log.info("A smaller prompt was not answered: %s", other)
            return None
        self._calls[path] = call
        return response

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        """Answer calls of `expand`; pass other calls on."""
        if isinstance(tool, AgentTool):
            _enter_tool(tool_context)

    def _begin(self, path: Path, request: Any) -> ModelCall | None:
        """Take over the contents of the session, and return the model call with its view."""
        return self._host.begin(
            path,
            request.contents,
            format=_FORMAT,
            model=str(request.model or "").rpartition("models/")[2],
            system=request.config.system_instruction,
            tools=[_definition(tool) for tool in request.config.tools or ()],
        )


def _record(call: ModelCall, response: Any) -> None:
    content = response.content
    candidate = {"content": content, "finishReason": getattr(response.finish_reason, "value", None)}
    reply = {"candidates": [candidate], "usageMetadata": response.usage_metadata}
    if content is not None and content.parts:
        call.record(reply)
    elif response.usage_metadata:
        call.bill(call.chat.format.parse_reply(reply)[1])


async def _answer(context: Any, request: Any) -> LlmResponse | None:
    """Return the model's response to a request, without streaming."""
    model = await _model_of(context)
    async with aclosing(model.generate_content_async(request, stream=False)) as responses:
        found = [response async for response in responses]
    return found[-1] if found else None


async def _model_of(context: Any) -> Any:
    """Return the model of an agent, an object of ADK."""
    return await context.get_invocation_context().agent.canonical_model_async(context)


def _is_stateful(context: Any, request: Any, model: Any) -> bool:
    """Return whether the provider keeps the history: in the Interactions API, or in a live session."""
    if request.previous_interaction_id or context.get_invocation_context().live_request_queue is not None:
        return True
    return bool(getattr(model, "use_interactions_api", False))


def _use_cache(model: Any, request: Any, call: ModelCall) -> None:
    """Give a request to a Claude the marks for its cache, and one to OpenAI the key, unless it has them."""
    kinds = class_names(model).split()
    if call.wants_marks and ("AnthropicLlm" in kinds or "LiteLlm" in kinds):
        request.cache_config = request.cache_config or ContextCacheConfig()
    elif call.cache_key and "LiteLlm" in kinds:
        own = getattr(model, "_additional_args", None) or {}  # Its constructor's keywords, which it sends on.
        options = request.config.http_options or types.HttpOptions()
        body = own.get("extra_body") if options.extra_body is None else options.extra_body
        if CACHE_KEY not in own:
            body = {CACHE_KEY: call.cache_key, **(body or {})}
            request.config.http_options = options.model_copy(update={"extra_body": body})


def _definition(tool: Any) -> Any:
    """Return the definition of tools as the model reads it."""
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(tool, "model_dump") else tool


_DECLARATION: Final = expand_tool("gemini")["functionDeclarations"][0]


def _shown_contents(call: ModelCall) -> list[types.Content]:
    """Return the view: the session's own contents where they are shown unchanged, and new ones for the rest."""
    shown: list[types.Content] = []
    for is_own, pieces in itertools.groupby(call.shown(), key=lambda piece: piece.entry is None):
        if is_own:
            shown += [piece.item for piece in pieces]
        else:  # Results in one content must stay together.
            messages = [_named(piece.entry) for piece in pieces if piece.entry is not None]
            shown += [types.Content.model_validate(content) for content in call.chat.format.render(messages)]
    return shown


class _ExpandTool(BaseTool):
    """Shows the model what was shortened."""

    def __init__(self, chat: Conversation) -> None:
        super().__init__(name=EXPAND["name"], description=EXPAND["description"])
        self._chat = chat

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration.model_validate(_DECLARATION)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        result = await asyncio.to_thread(self._chat.expansion, args)
        media = [_part(part) for part in result.content if isinstance(part, Media)]
        key = "error" if result.state == "error" else "output"
        return {key: result.text, "media": media} if media else {key: result.text}


def _named(entry: Entry) -> Message:
    """Return the message of an entry. Gemini needs the name of the tool with each result."""
    result = entry.message.result
    if result is None or result.name:
        return entry.message
    return Message("tool", (replace(result, name=entry.tool),))


def _part(media: Media) -> types.Part:
    if media.source == "base64":
        return types.Part.from_bytes(data=b64decode(media.data), mime_type=media.mime)
    return types.Part.from_uri(file_uri=media.data, mime_type=media.mime or None)


class _Caller(NamedTuple):
    """The agent that runs another one as its tool."""

    session_id: str
    path: Path


_CALLER: Final[ContextVar[_Caller | None]] = ContextVar("foveate_adk_caller", default=None)
"""ADK gives each tool a context."""


def _enter_tool(context: Any) -> None:
    """Let the agent that the tool of this context runs know whose child it is."""
    _CALLER.set(_Caller(context.session.id, _path_of(context)))


def _path_of(context: Any) -> Path:
    """Return the name of an agent's conversation: `app/user/session`, and for further agents `app/user/session/agent`.

    Ids of sessions are unique for one user of one app only.
    """
    run, session, caller = context.get_invocation_context(), context.session, _CALLER.get()
    agent, branch, node = run.agent, run.branch or "", run.node_path or ""
    path: Path = (session.app_name, session.user_id, session.id)
    if caller is not None and caller.session_id != session.id:  # An agent as a tool has a session for each call.
        path = (*caller.path, f"{agent.root_agent.name}:{session.id}")
    # An agent without the contents of the session starts with an empty list in each run.
    if getattr(agent, "include_contents", "") == "none" or getattr(agent, "mode", "") == "single_turn":
        return (*path, f"{agent.name}:{run.invocation_id}:{branch}:{node}".rstrip(":"))
    if branch or "/" in node or agent.name != agent.root_agent.name:
        path = (*path, f"{agent.name}:{branch}".rstrip(":"))
    return (*path, run.isolation_scope) if run.isolation_scope else path
