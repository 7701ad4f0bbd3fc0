"""A capability of Pydantic AI: each model request gets the view, and the run's message history stays whole.

agent = Agent("openai:gpt-5", capabilities=[FoveateCapability("sqlite:///chats.db")])
"""

from __future__ import annotations

import asyncio
import copy
import logging
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pydantic_ai import FunctionToolset, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from ..conversation import Conversation
from ..core.stamps import Usage
from ..core.view import View
from ..errors import FoveateError
from ..expand.tool import expand_tool
from ..types import ListItem
from .pools import Pools, model_name
from .pydantic_ai_messages import content_of, messages_of, request_part, response_of

__all__ = ["FoveateCapability"]

_log = logging.getLogger("foveate")
_EXPAND: Final = expand_tool("openai")
if not hasattr(AbstractCapability, "prepare_model_request"):  # An older version would never call the hook below.
    raise ImportError(
        "Capabilities of this Pydantic AI have no `prepare_model_request`. Install version 2.64 or newer."
    )


class FoveateCapability(AbstractCapability[Any]):
    """Shows the model what fits its window, and answers its calls of `expand`. Put it last in the list.

    Each `conversation_id` is a conversation of foveate. One capability may serve many agents.
    """

    def __init__(self, store: Any = "memory:", *, expand: bool = True, **options: Any) -> None:
        """`options`: those of `open_conversation`, such as `window` and `policy`. Raises BadSetting."""
        self._pools = Pools(store=store, expand=expand, **options)
        self._offers = expand
        self._name = ""
        self._format = "openai"
        self._turn = 0

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._pools.close()

    def conversation(self, conversation_id: str) -> Conversation:
        """Return a conversation of foveate: `totals()`, `pin(...)`, `search(...)`, `explain(...)`."""
        return self._pools.get(self._format, conversation_id)

    async def for_run(self, ctx: Any) -> FoveateCapability:
        run = copy.copy(self)
        run._name = ctx.conversation_id or ctx.run_id or "run"
        return run

    def get_toolset(self) -> Any:
        function = _EXPAND["function"]
        tool = Tool.from_schema(self._expand, "expand", function["description"], function["parameters"])
        return FunctionToolset([tool]) if self._offers else None

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        try:
            messages = await asyncio.to_thread(self._shown, request_context)
        except FoveateError as error:
            _log.warning("The messages of the run are sent as they are. %s", error)
            self._turn = 0
            return request_context
        return replace(request_context, messages=messages)

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> ModelResponse:
        response: ModelResponse = await handler(request_context)
        if self._turn:
            await asyncio.to_thread(self._record, response)
        return response

    def _shown(self, request: Any) -> list[ModelMessage]:
        """Take over the messages of the run, and return the view of this request."""
        self._format, model = _model_of(request.model)
        chat = self.conversation(self._name)
        given: list[ModelMessage] = request.messages
        chat.follow(given, read=partial(_item, self._format))
        parameters = request.model_request_parameters
        system = "\n\n".join(part.content for part in parameters.instruction_parts or ()) or None
        tools = [_definition(tool) for tool in (*parameters.function_tools, *parameters.output_tools)]
        view = chat.prepare(system=system, tools=tools, model=model or None)
        self._turn = view.turn
        return _messages(view, given)

    def _record(self, response: ModelResponse) -> None:
        message, usage = messages_of(response, self._format)[0], response.usage
        read, write = usage.cache_read_tokens, usage.cache_write_tokens
        billed = Usage(max(0, usage.input_tokens - read - write), read, write, usage.output_tokens)
        try:
            self.conversation(self._name).record(message, usage=billed, call=self._turn)
        except FoveateError as error:  # The history brings the reply again; only its usage is missing.
            _log.warning("A reply was not recorded: %s", error)

    async def _expand(self, **arguments: Any) -> Any:
        chat = self.conversation(self._name)
        return content_of((await asyncio.to_thread(chat.expansion, arguments)).content)


def _messages(view: View, given: list[ModelMessage]) -> list[ModelMessage]:
    """Return the view: the run's own messages where they are shown unchanged, and new ones for the rest."""
    shown: list[ModelMessage] = []
    for items, entries in view.by_item():
        if items:
            shown += [given[index] for index in items]
            continue
        for entry in entries:
            place = view.list_places.get(entry.position)
            own = given[place.items[0]] if place else None
            if entry.message.role == "assistant":
                shown.append(response_of(entry.message, own if isinstance(own, ModelResponse) else None))
                continue
            is_request = place is not None and isinstance(own, ModelRequest)
            old = own.parts[place.part] if is_request else None  # type: ignore[union-attr]
            part = old if view.given(entry) is not None and old is not None else request_part(entry.message, old)
            last = shown[-1] if shown else None
            if isinstance(last, ModelRequest) and all(last is not message for message in given):
                shown[-1] = replace(last, parts=[*last.parts, part])
            else:
                shown.append(replace(own, parts=[part]) if isinstance(own, ModelRequest) else ModelRequest([part]))
    return shown


def _item(format: str, message: ModelMessage) -> ListItem:
    return ListItem(messages_of(message, format))


def _definition(tool: Any) -> dict[str, Any]:
    if tool.name == "expand":
        return _EXPAND
    names = {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
    return {"type": "function", "function": names}


def _model_of(model: Any) -> tuple[str, str]:
    """Return the wire format whose rules the model has, and its name."""
    system, kind = str(model.system), type(model).__name__
    format = "anthropic" if "anthropic" in system else "gemini" if "google" in system else "openai"
    if format == "openai" and "Responses" in kind:
        format = "openai_responses"
    return format, model_name(format, str(model.model_name))
