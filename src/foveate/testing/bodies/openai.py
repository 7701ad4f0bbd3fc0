"""What chat completions refuse in a list of messages and in what travels beside it.

A message alone is read by `openai_message.py`.
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
    """Chat completions."""

    bytes_max = 50_000_000

    def judge(self, messages: Sequence[OpenAIFacts], body: Mapping[str, Any]) -> Iterator[Fault]:
        """What is wrong with messages beside each other, and with what travels beside them; paths from the top."""
        yield from _pairs(messages)
        if (images := sum([facts.images for facts in messages])) > IMAGES_MAX:
            yield "media", "messages", f"too many images: {images} > {IMAGES_MAX}"
        if "system" in body:
            yield "system", "system", "Unknown parameter: 'system'."
        yield from _tools(body.get("tools"))


def _pairs(messages: Sequence[OpenAIFacts]) -> Iterator[Fault]:
    """Calls and answers: tool messages stand right behind the message that asked, one for each call, in any order."""
    asked: dict[str, int | None] = {}
    """The calls that tool messages may answer here, and where each was answered."""
    caller = 0
    for position, facts in enumerate(messages):
        if facts.role != "tool":
            if asked:
                yield from _unanswered(asked, caller)
            asked, caller = dict.fromkeys(facts.calls), position
            continue
        if (answer := facts.answer) is None:
            continue
        where = f"messages[{position}].tool_call_id"
        if answer not in asked:
            said = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
            yield "pairing", where, f"{said}: {answer!r}"
        elif (before := asked[answer]) is not None:
            said = f"Duplicate value for 'tool_call_id' of {answer!r}"
            yield "pairing", where, f"{said}, in messages[{before}] and messages[{position}]."
        else:
            asked[answer] = position
    yield from _unanswered(asked, caller)


def _unanswered(asked: Mapping[str, int | None], caller: int) -> Iterator[Fault]:
    if missing := [call_id for call_id, where in asked.items() if where is None]:
        said = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(missing)}"
        )
        yield "pairing", f"messages[{caller}].tool_calls", said


def _tools(tools: object) -> Iterator[Fault]:
    if tools is None:
        return
    if not isinstance(tools, list):
        yield "tools", "tools", "expected an array of objects"
        return
    if not tools:
        yield "tools", "tools", EMPTY_ARRAY
    if len(tools) > TOOLS_MAX:
        said = f"array too long. Expected an array with maximum length {TOOLS_MAX}, but got {len(tools)}."
        yield "tools", "tools", said
    for place, tool in enumerate(tools):
        kind = tool.get("type") if isinstance(tool, dict) else None
        what = tool.get(kind) if isinstance(kind, str) else None
        if not isinstance(what, dict):
            yield "tools", f"tools[{place}]", "Missing required parameter: 'function'."
        elif not isinstance(what.get("name"), str) or not TOOL_NAME(what["name"]):
            yield "name", f"tools[{place}].{kind}.name", NO_MATCH
