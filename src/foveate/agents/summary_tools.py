"""A tool that writes summaries: called with plain JSON values about what is to be summarised, it returns the text.

For programs that have such a tool already, made for another host. A summarizer proper is a function of a
`SummaryRequest`, which holds the messages themselves.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable
from typing import Any, Protocol

from msgspec import Struct

from ..core.summaries import SummaryRequest
from ..errors import BadSetting
from ..ports import Summarizer
from .tools import Tool

__all__ = ["Invoked", "summarizer_of"]


class Invoked(Protocol):
    """An object that is handed one JSON text, and returns text or JSON."""

    def invoke(self, arguments: str, /) -> Any:
        """`arguments`: a JSON object with `conversation_id`, `from_turn`, `to_turn`, `original_message_count`,
        `filtered_message_count`, `messages` (each with `role`, `text`, `has_tool_calls`, `is_tool_result`) and
        `previous_summary`. Returns the summary: text, `{"summary": ...}`, or an awaitable of that.
        """
        ...


def summarizer_of(tool: object, conversation: str) -> Summarizer | str:
    """What `open_conversation(summarizer=)` takes, of what a program has: the name of one, a function of a
    SummaryRequest, a Tool, or an object with `invoke`. `conversation`: told to the last two as `conversation_id`.

    A Tool is called with those of the values that its parameters name. Raises BadSetting for what is none of these.
    """
    if isinstance(tool, Tool):
        return _ToolSummarizer(tool, conversation)
    if callable(getattr(tool, "invoke", None)) and not isinstance(tool, type):
        return _InvokedSummarizer(tool, conversation)
    if isinstance(tool, str) and tool.strip():
        return tool
    if callable(tool) and not isinstance(tool, type):
        return tool
    raise BadSetting(
        "A tool for summaries is a function of a SummaryRequest, a Tool, an object with invoke(json_text), or a name "
        f"such as digest or anthropic:claude-haiku-4-5; not {tool!r:.100}."
    )


class _ToolSummarizer(Struct, frozen=True):
    tool: Tool
    conversation: str

    @property
    def name(self) -> str:
        """What receipts call it."""
        return self.tool.name

    def __call__(self, request: SummaryRequest) -> Any:
        told = _told(request, self.conversation)
        wanted = self.tool.parameters.get("properties", {})
        text = json.dumps({key: value for key, value in told.items() if key in wanted}, ensure_ascii=False)
        return _text_of(self.tool.call(**self.tool.arguments(text)))


class _InvokedSummarizer(Struct, frozen=True):
    tool: Any
    conversation: str

    @property
    def name(self) -> str:
        """What receipts call it."""
        name = getattr(self.tool, "name", None)
        return name if isinstance(name, str) and name else type(self.tool).__name__

    def __call__(self, request: SummaryRequest) -> Any:
        return _text_of(self.tool.invoke(json.dumps(_told(request, self.conversation), ensure_ascii=False)))


def _told(request: SummaryRequest, conversation: str) -> dict[str, Any]:
    """The values, also for a policy that gives fewer facts than `checkpoint` does."""
    messages = [
        {
            "role": message.role,
            "text": message.text,
            "has_tool_calls": bool(message.calls),
            "is_tool_result": message.result is not None,
        }
        for message in request.messages
    ]
    count = len(messages)
    return {
        "conversation_id": conversation,
        "from_turn": 0,
        "to_turn": max(0, count - 1),
        "original_message_count": count,
        "filtered_message_count": count,
        "messages": messages,
        **request.facts,
        "previous_summary": request.previous,
    }


def _text_of(said: Any) -> Any:
    """What a tool returned, as a summarizer returns it: a mapping is JSON."""
    if inspect.isawaitable(said):
        return _later(said)
    return json.dumps(said, ensure_ascii=False) if isinstance(said, dict) else said


async def _later(said: Awaitable[Any]) -> Any:
    return _text_of(await said)
