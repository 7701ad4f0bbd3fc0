"""A session of the OpenAI Agents SDK: the whole history in a store, and the view before each model call.

session = FoveateSession("ann", "sqlite:///chats.db")
agent = Agent(name="helper", tools=[read_log, session.expand_tool])
result = await Runner.run(agent, "Read the logs.", **session.for_run())
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any, Final

from agents import Agent, FunctionTool, Handoff, RunConfig, RunHooks, ToolOutputImage, ToolOutputText, handoff
from agents.run_config import CallModelData, ModelInputData

from ..conversation import Conversation
from ..core.messages import Media, Text
from ..core.stamps import Usage
from ..core.view import View
from ..errors import BadInput, FoveateError
from ..expand.tool import expand_tool
from .pools import Pools, model_name

__all__ = ["FoveateSession"]

_log = logging.getLogger("foveate")
_FORMAT: Final = "openai_responses"
_EXPAND: Final = expand_tool(_FORMAT)


class FoveateSession(RunHooks[Any]):
    """Keeps every item of a conversation, and shows the model what fits its window."""

    session_settings = None

    def __init__(self, session_id: str, store: Any = "memory:", **options: Any) -> None:
        """`store`: a URL, or a Store. `options`: those of `open_conversation`, such as `window` and `policy`.

        Raises BadSetting.
        """
        self.session_id = session_id
        self._pools = Pools(store=store, **options)
        self.conversation: Conversation = self._pools.get(_FORMAT, session_id)
        """The conversation of foveate: `totals()`, `pin(...)`, `search(...)`, `explain(...)`."""
        self._items = self._stored_items()
        self._turn = 0
        self._mcp_tools: list[Any] = []
        self.expand_tool = FunctionTool(
            name="expand",
            description=_EXPAND["description"],
            params_json_schema=_EXPAND["parameters"],
            on_invoke_tool=self._expand,
            strict_json_schema=False,
        )
        """Gives the model back what was shortened. Add it to the tools of the agents."""

    def for_run(self, config: RunConfig | None = None) -> dict[str, Any]:
        """Return the keywords of `Runner.run` and `Runner.run_streamed`: session, hooks and run_config.

        `config`: a configuration of your own. Raises BadInput if it has a filter already.
        """
        config = config or RunConfig()
        if config.call_model_input_filter is not None:
            raise BadInput("The RunConfig has a call_model_input_filter. Call session.filter(data) in it instead.")
        return {"session": self, "hooks": self, "run_config": replace(config, call_model_input_filter=self.filter)}

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._pools.close()

    # --------------------------------------------------------------------------------------------- the SDK's session

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items of the conversation, the last ones if there is a limit."""
        return list(self._items) if limit is None else self._items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[Any]) -> None:
        """Store items that the conversation does not have yet."""
        self._items += items
        await asyncio.to_thread(self._follow, list(self._items))

    async def pop_item(self) -> Any:
        """Take the newest item away, and return it. The history keeps it, and the model no longer sees it."""
        if not self._items:
            return None
        item = self._items.pop()
        await asyncio.to_thread(self._follow, list(self._items))
        return item

    async def clear_session(self) -> None:
        """Take all items away. The history keeps them under another name."""
        self._items.clear()

    # ------------------------------------------------------------------------------------------------------- each call

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the view in place of the items. This is the `call_model_input_filter` of a run."""
        try:
            return await asyncio.to_thread(self._filtered, data)
        except FoveateError as error:
            _log.warning("The items are sent as they are. %s", error)
            return data.model_data

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """List the tools of the agent's MCP servers, which the filter does not see, to count them."""
        self._mcp_tools = []
        if agent.mcp_servers:
            try:
                self._mcp_tools = await agent.get_mcp_tools(context)
            except Exception as error:  # The SDK lists them itself next, and reports the failure.
                _log.warning("The tools of the MCP servers of %s are not counted: %s", agent.name, error)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Record a reply and its usage."""
        output = [item.model_dump(exclude_unset=True) for item in response.output]
        await asyncio.to_thread(self._record, {"object": "response", "output": output}, _usage(response.usage))

    def _filtered(self, data: CallModelData[Any]) -> ModelInputData:
        chat, items = self.conversation, list(data.model_data.input)
        self._follow(items)
        instructions = data.model_data.instructions
        model = model_name(_FORMAT, _name_of(data.agent.model)) or None
        view = chat.prepare(system=instructions, tools=_definitions(data.agent, self._mcp_tools), model=model)
        self._turn = view.turn
        return ModelInputData(input=self._shown(view, items), instructions=instructions)

    def _shown(self, view: View, items: list[Any]) -> list[Any]:
        """Return the view: the run's own items where they are shown unchanged, and new ones for the rest."""
        shown: list[Any] = []
        for places, entries in view.by_item():
            if places:
                shown += [items[place] for place in places]
            else:
                shown += self.conversation.format.render([entry.message for entry in entries])
        return shown

    def _follow(self, items: list[Any]) -> None:
        self.conversation.follow(items)

    def _record(self, reply: dict[str, Any], usage: Usage | None) -> None:
        try:
            self.conversation.record(reply, usage=usage, call=self._turn or None)
        except FoveateError as error:  # The next list brings the reply again; only its usage is missing.
            _log.warning("A reply was not recorded: %s", error)

    def _stored_items(self) -> list[Any]:
        """Return the items that the session had in an earlier process."""
        return list(self.conversation.format.render([row.message for row in self.conversation.listed()]))

    async def _expand(self, context: Any, arguments: str) -> Any:
        result = await asyncio.to_thread(self.conversation.expansion, arguments)
        return [_output(part) for part in result.content]


def _output(part: Any) -> ToolOutputText | ToolOutputImage:
    if isinstance(part, Media) and part.is_image and part.source != "file":
        url = part.data if part.source == "url" else f"data:{part.mime or 'image/png'};base64,{part.data}"
        return ToolOutputImage(image_url=url)
    return ToolOutputText(text=part.text if isinstance(part, Text) else f"[{getattr(part, 'mime', 'content')}]")


def _definitions(agent: Any, mcp_tools: list[Any]) -> list[dict[str, Any]]:
    """Return the definitions of an agent's tools and handoffs, as the model reads them."""
    found: list[dict[str, Any]] = []
    for tool in [*mcp_tools, *agent.tools]:
        if isinstance(tool, FunctionTool):
            definition = _definition(tool.name, tool.description, tool.params_json_schema)
            found.append(_EXPAND if tool.name == "expand" else definition)
    for target in agent.handoffs:
        move: Handoff[Any, Any] = handoff(target) if isinstance(target, Agent) else target
        found.append(_definition(move.tool_name, move.tool_description, move.input_json_schema))
    return found


def _definition(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": description, "parameters": parameters}


def _name_of(model: Any) -> str:
    """Return the name of an agent's model, which may be an object of the SDK."""
    return model if isinstance(model, str) else str(getattr(model, "model", None) or "")


def _usage(usage: Any) -> Usage:
    """Return the usage of a reply. The SDK's input tokens include those of the cache."""
    read = getattr(usage.input_tokens_details, "cached_tokens", 0) or 0
    reasoning = getattr(usage.output_tokens_details, "reasoning_tokens", 0) or 0
    return Usage(max(0, usage.input_tokens - read), read, None, usage.output_tokens, reasoning)
