"""A plugin for Google ADK: each model call of an app gets the view, and the events of the session stay whole.

app = App(name="demo", root_agent=agent, plugins=[FoveatePlugin("sqlite:///chats.db")])
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import Any, Final

from google.adk.models import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool

from ..conversation import Conversation
from .google_adk_contents import ExpandTool, shown_contents
from .google_adk_names import enter_tool, path_of
from .host import Host, ModelCall, Path

__all__ = ["FoveatePlugin"]

_log = logging.getLogger("foveate")
_FORMAT: Final = "gemini"


class FoveatePlugin(BasePlugin):
    """Shows the model what fits its window, and answers its calls of `expand`. Put it last in the list.

    A session is a conversation, and so is each further agent in it. One plugin may serve many apps.
    """

    def __init__(self, store: Any = "memory:", *, expand: bool = True, **options: Any) -> None:
        """`options`: those of `open_conversation`, such as `window` and `policy`. Raises BadSetting."""
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
        return self._host.conversation(path_of(context), _FORMAT)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Put the view in place of the contents of the request."""
        path = path_of(callback_context)
        self._calls.pop(path, None)
        if await _is_stateful(callback_context, llm_request):
            self._host.warn(f"The provider's servers keep the history of {'/'.join(path)}.")
            return
        call = await asyncio.to_thread(self._begin, path, llm_request)
        if call is not None:
            self._calls[path] = call
            llm_request.contents = shown_contents(call)
            if self._host.offers_expand:
                llm_request.append_tools([ExpandTool(call.chat)])

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Record the reply of the model."""
        path = path_of(callback_context)
        if not llm_response.partial and path in self._calls:
            await asyncio.to_thread(_record, self._calls.pop(path), llm_response)

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> Any:
        """Send a smaller view, if the provider refused the prompt as too long."""
        path = path_of(callback_context)
        call = self._calls.pop(path, None)
        if call is None:
            return None
        try:
            await asyncio.to_thread(call.make_smaller, error)
            llm_request.contents = shown_contents(call)
            response = await _answer(callback_context, llm_request)
        except Exception as other:  # ADK raises the first error.
            _log.info("A smaller prompt was not answered: %s", other)
            return None
        self._calls[path] = call
        return response

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        """Answer calls of `expand`; pass other calls on."""
        if isinstance(tool, AgentTool):
            enter_tool(tool_context)

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
