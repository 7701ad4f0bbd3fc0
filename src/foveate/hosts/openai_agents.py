"""A session of the OpenAI Agents SDK: the whole history in a store, and the view before each model call.

session = FoveateSession("ann", "sqlite:///chats.db")
agent = Agent(name="helper", tools=[read_log, session.expand_tool])
result = await Runner.run(agent, "Read the logs.", **session.for_run())
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agents import Agent, FunctionTool, Handoff, RunConfig, RunHooks, ToolOutputImage, ToolOutputText, handoff
from agents.run_config import CallModelData, ModelInputData

from ..conversation import Conversation
from ..core.messages import Media, Text
from ..core.stamps import Usage
from ..errors import BadInput
from ..ports import Store
from .host import EXPAND, Host, ModelCall, logged, tool_definition, usage_of_totals

if TYPE_CHECKING:
    from agents.memory import SessionSettings

__all__ = ["FoveateSession"]

_FORMAT: Final = "openai_responses"


class FoveateSession(RunHooks[Any]):
    """Keeps every item of a conversation, and shows the model what fits its window."""

    session_settings: SessionSettings | None = None
    """Settings of the SDK for this session."""

    def __init__(self, session_id: str, store: str | Store = "memory:", **options: Any) -> None:
        """`store`: a URL, or a Store. `options`: those of `open_conversation`, such as `window` and `policy`.

        Raises BadSetting.
        """
        self.session_id = session_id
        """The name of the conversation."""
        self._host = Host(store, expand=None, **options)
        self.conversation: Conversation = self._host.conversation((session_id,), _FORMAT)
        """The conversation of foveate: `totals()`, `pin(...)`, `search(...)`, `explain(...)`."""
        self._items: list[Any] = []
        self._tip = ""
        """The newest message that this session knows."""
        self._read_again()
        self._call: ModelCall | None = None
        self._mcp_tools: list[Any] = []
        self.expand_tool = FunctionTool(
            name=EXPAND["name"],
            description=EXPAND["description"],
            params_json_schema=EXPAND["parameters"],
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
        self._host.close()

    # --------------------------------------------------------------------------------------------- the SDK's session

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items of the conversation, the last ones if there is a limit."""
        await asyncio.to_thread(self._refresh)
        return list(self._items) if limit is None else self._items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[Any]) -> None:
        """Store items that the conversation does not have yet."""
        self._items += items
        await asyncio.to_thread(self._follow)

    async def pop_item(self) -> Any:
        """Take the newest item away, and return it. The history keeps it, and the model no longer sees it."""
        if not self._items:
            return None
        item = self._items.pop()
        await asyncio.to_thread(self._go_back)
        return item

    async def clear_session(self) -> None:
        """Take all items away. The history keeps them under another name."""
        self._items.clear()
        await asyncio.to_thread(self._go_back)

    def _read_again(self) -> None:
        rows = self.conversation.listed()
        self._items = list(self.conversation.format.render([row.message for row in rows]))
        self._tip = self.conversation.tip

    def _refresh(self) -> None:
        """Read the items again if another session object, such as that of another process, changed them."""
        self.conversation.refresh()
        if self.conversation.tip != self._tip:
            self._read_again()

    def _follow(self) -> None:
        self.conversation.follow(list(self._items))
        self._tip = self.conversation.tip

    def _go_back(self) -> None:
        with self.conversation._agent.lock:
            self._follow()
            self.conversation._agent.go_back()
            self._tip = self.conversation.tip

    # ------------------------------------------------------------------------------------------------------- each call

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the view in place of the items. This is the `call_model_input_filter` of a run."""
        self._call = await asyncio.to_thread(self._begin, data)
        if self._call is None:
            return data.model_data
        return ModelInputData(input=self._shown(self._call), instructions=data.model_data.instructions)

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """List the tools of the agent's MCP servers, which the filter does not see, to count them."""
        self._mcp_tools = []
        if agent.mcp_servers:
            with logged(f"The tools of the MCP servers of {agent.name} are not counted"):  # The SDK reports the error.
                self._mcp_tools = await agent.get_mcp_tools(context)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Record a reply and its usage."""
        if self._call is not None:
            output = [item.model_dump(exclude_unset=True) for item in response.output]
            reply = {"object": "response", "output": output}
            await asyncio.to_thread(self._record, self._call, reply, _usage_of(response.usage))

    def _begin(self, data: CallModelData[Any]) -> ModelCall | None:
        call = self._host.begin(
            (self.session_id,),
            list(data.model_data.input),
            format=_FORMAT,
            model=_model_of(data.agent),
            system=data.model_data.instructions,
            tools=_definitions_of(data.agent, self._mcp_tools),
        )
        self._tip = self.conversation.tip
        return call

    def _record(self, call: ModelCall, reply: Any, usage: Usage) -> None:
        call.record(reply, usage)
        self._tip = self.conversation.tip

    def _shown(self, call: ModelCall) -> list[Any]:
        """Return the view: the run's own items where they are shown unchanged, and new ones for the rest."""
        render = self.conversation.format.render
        shown: list[Any] = []
        for item, entry, _ in call.shown():
            shown += [item] if entry is None else render([entry.message])
        return shown

    async def _expand(self, context: Any, arguments: str) -> Any:
        result = await asyncio.to_thread(self._host.expansion, (self.session_id,), arguments)
        return [_output_of(part) for part in result.content]


def _output_of(part: Any) -> ToolOutputText | ToolOutputImage:
    """Return a part of the result of `expand` as an output of a tool."""
    if isinstance(part, Media) and part.is_image and part.source != "file":
        url = part.data if part.source == "url" else f"data:{part.mime or 'image/png'};base64,{part.data}"
        return ToolOutputImage(image_url=url)
    return ToolOutputText(text=part.text if isinstance(part, Text) else f"[{getattr(part, 'mime', 'content')}]")


def _definitions_of(agent: Any, mcp_tools: list[Any]) -> list[dict[str, Any]]:
    """Return the definitions of an agent's tools and handoffs, as the model reads them."""
    tools = [tool for tool in (*mcp_tools, *agent.tools) if isinstance(tool, FunctionTool)]
    moves: list[Handoff[Any, Any]] = [handoff(to) if isinstance(to, Agent) else to for to in agent.handoffs]
    return [
        *(tool_definition(tool.name, tool.description, tool.params_json_schema) for tool in tools),
        *(tool_definition(move.tool_name, move.tool_description, move.input_json_schema) for move in moves),
    ]


def _model_of(agent: Any) -> str:
    """Return the name of an agent's model, which may be an object of the SDK."""
    model = agent.model
    return model if isinstance(model, str) else str(getattr(model, "model", None) or "")


def _usage_of(usage: Any) -> Usage:
    """Return the usage of a reply."""
    read = getattr(usage.input_tokens_details, "cached_tokens", 0) or 0
    reasoning = getattr(usage.output_tokens_details, "reasoning_tokens", 0) or 0
    return usage_of_totals(usage.input_tokens, read, None, usage.output_tokens, reasoning)
