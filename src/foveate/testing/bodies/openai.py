"""Rules of chat completions for a list of messages and tools.

`openai_message.py` checks single messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .openai_message import EMPTY_ARRAY, NO_MATCH, OpenAIFacts, OpenAIReader
from .values import TOOL_NAME, Fault

__all__ = ["OpenAIRules"]

TOOLS_MAX: Final = 128
IMAGES_MAX: Final = 500


class OpenAIRules(OpenAIReader):
    """The rules of chat completions."""

    list_name = "messages"
    bytes_max = 50_000_000

    def judge(self, messages: Sequence[OpenAIFacts], body: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the problems across messages and tools, with paths from the top."""
        yield from _pairs(messages)
        if (images := sum([facts.images for facts in messages])) > IMAGES_MAX:
            yield "media", "messages", f"too many images: {images} > {IMAGES_MAX}"
        if "system" in body:
            yield "system", "system", "Unknown parameter: 'system'."
        yield from _tools(body.get("tools"))


def _pairs(messages: Sequence[OpenAIFacts]) -> Iterator[Fault]:
    """Yield problems of calls and answers: tool messages directly follow the message with the calls, one each, in any
    order.
    """
    open_calls: dict[str, int | None] = {}
    """The calls that tool messages may answer here, each with the position of its answer."""
    caller = 0
    for position, facts in enumerate(messages):
        if facts.role != "tool":
            if open_calls:
                yield from _unanswered(open_calls, caller)
            open_calls, caller = dict.fromkeys(facts.calls), position
            continue
        if (answer := facts.answer) is None:
            continue
        where = f"messages[{position}].tool_call_id"
        if answer not in open_calls:
            problem = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
            yield "pairing", where, f"{problem}: {answer!r}"
        elif (before := open_calls[answer]) is not None:
            problem = f"Duplicate value for 'tool_call_id' of {answer!r}"
            yield "pairing", where, f"{problem}, in messages[{before}] and messages[{position}]."
        else:
            open_calls[answer] = position
    yield from _unanswered(open_calls, caller)


def _unanswered(open_calls: Mapping[str, int | None], caller: int) -> Iterator[Fault]:
    if missing := [call_id for call_id, where in open_calls.items() if where is None]:
        problem = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(missing)}"
        )
        yield "pairing", f"messages[{caller}].tool_calls", problem


def _tools(tools: object) -> Iterator[Fault]:
    if tools is None:
        return
    if not isinstance(tools, list):
        yield "tools", "tools", "expected an array of objects"
        return
    if not tools:
        yield "tools", "tools", EMPTY_ARRAY
    if len(tools) > TOOLS_MAX:
        problem = f"array too long. Expected an array with maximum length {TOOLS_MAX}, but got {len(tools)}."
        yield "tools", "tools", problem
    for place, tool in enumerate(tools):
        kind = tool.get("type") if isinstance(tool, dict) else None
        what = tool.get(kind) if isinstance(kind, str) else None
        if not isinstance(what, dict):
            yield "tools", f"tools[{place}]", "Missing required parameter: 'function'."
        elif not isinstance(what.get("name"), str) or not TOOL_NAME(what["name"]):
            yield "name", f"tools[{place}].{kind}.name", NO_MATCH
