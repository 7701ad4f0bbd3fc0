"""A capability of Pydantic AI: each model request gets the view, and the run's message history stays whole.

agent = Agent("openai:gpt-5", capabilities=[FoveateCapability("sqlite:///chats.db")])
"""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace
from typing import Any

from pydantic_ai import FunctionToolset, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import CachePoint, ModelMessage, ModelRequest, ModelResponse

from ..conversation import Conversation
from ..ports import Store
from .host import EXPAND, Host, ModelCall, tool_definition, usage_of_totals, wire_format
from .pydantic_ai_messages import content_of, messages_of, request_part, response_of

__all__ = ["FoveateCapability"]

if not hasattr(AbstractCapability, "prepare_model_request"):  # An older version would never call the hook below.
    raise ImportError(
        "Capabilities of this Pydantic AI have no `prepare_model_request`. Install version 2.64 or newer."
    )


class FoveateCapability(AbstractCapability[Any]):
    """Shows the model what fits its window, and answers its calls of `expand`. Put it last in the list.

    Each `conversation_id` is a conversation of foveate. One capability may serve many agents.
    """

    def __init__(self, store: str | Store = "memory:", *, expand: bool = True, **options: Any) -> None:
        """`store`: a URL, or a Store, which stays open. `options`: those of `open_conversation`, such as `window` and
        `policy`. Raises BadSetting.
        """
        self._host = Host(store, expand=expand, **options)
        self._name = ""
        self._call: ModelCall | None = None

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._host.close()

    def conversation(self, conversation_id: str) -> Conversation:
        """Return a conversation of foveate: `totals()`, `pin(...)`, `search(...)`, `explain(...)`."""
        return self._host.conversation((conversation_id,))

    async def for_run(self, ctx: Any) -> FoveateCapability:
        """Return the capability of one run."""
        run = copy.copy(self)
        run._name = ctx.conversation_id or ctx.run_id or "run"
        return run

    def get_toolset(self) -> Any:
        """Return the toolset with `expand`; None if it is not offered."""
        tool = Tool.from_schema(self._expand, EXPAND["name"], EXPAND["description"], EXPAND["parameters"])
        return FunctionToolset([tool]) if self._host.offers_expand else None

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Prepare the tools of one request."""
        call = self._call = await asyncio.to_thread(self._begin, request_context)
        if call is None:
            return request_context
        messages, settings = _shown(call), request_context.model_settings
        if key := call.cache_key:
            settings = {"openai_prompt_cache_key": key, **(settings or {})}
        if call.wants_marks and not any(map(_has_cache_point, messages)):
            settings = {"cache": True, **(settings or {})}  # Settings of one provider, such as anthropic_cache, win.
        return replace(request_context, messages=messages, model_settings=settings)

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> ModelResponse:
        """Send the view in place of the messages of the run, and record the reply."""
        response: ModelResponse = await handler(request_context)
        if self._call is not None:
            usage = response.usage
            read, write = usage.cache_read_tokens, usage.cache_write_tokens
            billed = usage_of_totals(usage.input_tokens, read, write, usage.output_tokens)
            await asyncio.to_thread(self._call.record, response, billed)
        return response

    def _begin(self, request: Any) -> ModelCall | None:
        """Take over the messages of the run, and return the model call with its view."""
        model, parameters = request.model, request.model_request_parameters
        tools = (*parameters.function_tools, *parameters.output_tools)
        return self._host.begin(
            (self._name,),
            request.messages,
            format=wire_format(f"{model.system} {type(model).__name__}"),
            model=str(model.model_name),
            read=messages_of,
            system="\n\n".join(part.content for part in parameters.instruction_parts or ()) or None,
            tools=[tool_definition(tool.name, tool.description, tool.parameters_json_schema) for tool in tools],
        )

    async def _expand(self, **arguments: Any) -> Any:
        result = await asyncio.to_thread(self._host.expansion, (self._name,), arguments)
        return content_of(result.content)


def _has_cache_point(message: ModelMessage) -> bool:
    contents = (getattr(part, "content", None) for part in message.parts)
    return any(isinstance(item, CachePoint) for items in contents if isinstance(items, list | tuple) for item in items)


def _shown(call: ModelCall) -> list[ModelMessage]:
    """Return the view: the run's own messages where they are shown unchanged, and new ones for the rest."""
    shown: list[ModelMessage] = []
    message: ModelRequest | None = None  # A new request, which takes further parts.
    for own, entry, number in call.shown():
        if entry is None:
            shown.append(own)
            message = None
        elif entry.message.role == "assistant":
            shown.append(response_of(entry.message, own if isinstance(own, ModelResponse) else None))
            message = None
        else:
            request = own if isinstance(own, ModelRequest) else None
            old = request.parts[number] if request is not None else None
            part = request_part(entry.message, old) if old is None or call.view.given(entry) is None else old
            if message is None:
                message = ModelRequest([]) if request is None else replace(request, parts=[])
                shown.append(message)
            message.parts = [*message.parts, part]
    return shown
