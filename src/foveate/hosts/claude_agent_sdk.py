"""A hook and tools for the Claude Agent SDK: long results of tools become digests, and the model can read them back.

foveate = FoveateTools("fix-login", "sqlite:///chats.db")
async for message in query(prompt="Fix the login.", options=foveate.options(ClaudeAgentOptions())):
    ...
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
from mcp.server.lowlevel import Server
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, ListToolsResult, TextContent

from ..conversation import Conversation
from ..core.edits import Replace, Target
from ..core.messages import Message, Text, ToolCall, ToolResult
from ..digest import digest
from ..errors import BadInput, BadSetting, FoveateError
from ..mcp import build_server
from ..open import open_conversation
from ..policies.tool_kinds import create_name_filter
from ..ports import Store

__all__ = ["FoveateTools", "texts_of", "with_texts"]

_log = logging.getLogger("foveate")
_SERVER: Final = "foveate"
_TOOLS: Final = ("expand", "search_history")
_PROTECTED: Final = ("Read", "Edit", "Write", "NotebookEdit", "Skill", "ToolSearch")
"""Tools of Claude Code whose results stay: an edit needs the lines that it replaces, and instructions are short."""


class FoveateTools:
    """Stores long results of tools, shows the model their digests, and gives it `expand` and `search_history`."""

    def __init__(
        self,
        name: str,
        store: str | Store = "memory:",
        *,
        least: int = 6_000,
        share: float = 0.2,
        protected_tools: Collection[str] = _PROTECTED,
        **options: Any,
    ) -> None:
        """`name`: the conversation in the store, for all sessions with these options. `least`: characters of the
        shortest text that becomes a digest. `share`: the share of the characters that a digest may take.
        `protected_tools`: tools whose results stay, as names or patterns such as `mcp__docs__*`. `options`: those of
        `open_conversation`. Raises BadSetting.
        """
        if least < 0 or not 0 < share < 1:
            raise BadSetting(
                f"least is {least} and share is {share}. Set least to 0 or more, and share between 0 and 1."
            )
        settings = {"policy": "off", "window": 200_000, "expand": True, "format": "anthropic", **options}
        self.conversation: Conversation = open_conversation(name, store=store, **settings)
        """The stored results: `search("disk")`, `original("m12")`, `history()`."""
        self.server: dict[str, Any] = {"type": "sdk", "name": _SERVER, "instance": _server(_Stored(self.conversation))}
        """The MCP server, for `mcp_servers={"foveate": ...}`."""
        self._least, self._share, self._lock = least, share, threading.Lock()
        self._is_protected = create_name_filter([*protected_tools, f"mcp__{_SERVER}__*"])

    def options(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """Return the options with the hook, the server and its tools. Raises BadInput if the servers are in a file."""
        options = options or ClaudeAgentOptions()
        if not isinstance(options.mcp_servers, dict):
            raise BadInput("mcp_servers is not a dictionary. Write the servers of the file into a dictionary.")
        hooks: dict[Any, list[HookMatcher]] = dict(options.hooks or {})
        hooks["PostToolUse"] = [*hooks.get("PostToolUse", ()), HookMatcher(hooks=[self.shorten])]
        servers: dict[str, Any] = {**options.mcp_servers, _SERVER: self.server}
        allowed = [*options.allowed_tools, *(f"mcp__{_SERVER}__{tool}" for tool in _TOOLS)]
        return replace(options, hooks=hooks, mcp_servers=servers, allowed_tools=allowed)

    def close(self) -> None:
        """Close the conversation, and its store if it was opened here."""
        self.conversation.close()

    async def shorten(self, input: Any, tool_use_id: str | None, context: Any) -> Any:
        """Return a tool's output with digests in place of long texts. This is a hook for `PostToolUse`."""
        if self._is_protected(input["tool_name"]):
            return {}
        try:
            output = await asyncio.to_thread(self._shortened, input)
        except FoveateError as error:
            _log.warning("The result of %s reaches the model as it is. %s", input["tool_name"], error)
            return {}
        if output is None:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}}

    def _shortened(self, input: dict[str, Any]) -> Any:
        """Store the long texts of a result, and return the result with digests; None if it has no long text."""
        long = [text for text in texts_of(input["tool_response"]) if len(text) >= self._least]
        if not long:
            return None
        id, name = str(input["tool_use_id"]), str(input["tool_name"])
        call = ToolCall(id, name, json.dumps(input["tool_input"], ensure_ascii=False))
        result = ToolResult(id, tuple(map(Text, long)), "ok", name)
        chat = self.conversation
        with self._lock:  # Tools run in parallel. The newest entry is this result.
            chat.append([Message("assistant", (call,)), Message("tool", (result,))])
            entry = chat.view.entries[-1]
            short = {text: digest(text, int(len(text) * self._share), entry.handle).text for text in long}
            shown = Text("\n".join(short[text] for text in long))
            chat.edit(Replace(Target(entry.id), (shown,), "", f"longer than {self._least:,} characters"))
        return with_texts(input["tool_response"], short)


class _Stored:
    """The one conversation that the server may read."""

    has_views = False

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def names(self) -> Sequence[str]:
        return [self._conversation.name]

    @contextmanager
    def open(self, name: str) -> Iterator[Conversation]:
        yield self._conversation


def _server(source: _Stored) -> Server[Any]:
    """Return a server for the SDK, which takes the low-level kind, with the tools that read originals."""
    tools = build_server(source)

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[tool for tool in await tools.list_tools() if tool.name in _TOOLS])

    async def call_tool(context: Any, params: Any) -> Any:
        try:
            return await tools.call_tool(params.name, params.arguments or {})
        except ToolError as error:
            return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)

    return Server(_SERVER, on_list_tools=list_tools, on_call_tool=call_tool)


_BYTES: Final = frozenset({"base64", "data"})
"""Fields of an output that hold a file, not a text."""


def texts_of(value: Any) -> Iterator[str]:
    """Yield the texts of a tool's output, files left out."""
    match value:
        case str():
            yield value
        case dict():
            for key, inner in value.items():
                if key not in _BYTES:
                    yield from texts_of(inner)
        case list():
            for inner in value:
                yield from texts_of(inner)


def with_texts(value: Any, others: Mapping[str, str]) -> Any:
    """Return a tool's output in the same shape, with other texts in place of some."""
    match value:
        case str():
            return others.get(value, value)
        case dict():
            return {key: inner if key in _BYTES else with_texts(inner, others) for key, inner in value.items()}
        case list():
            return [with_texts(inner, others) for inner in value]
        case _:
            return value
