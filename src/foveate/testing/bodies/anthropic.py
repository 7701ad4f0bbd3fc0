"""Rules of Anthropic's Messages API for a list of messages, system prompt and tools.

Consecutive messages of one role are one turn for this API, so pairs and their order are checked by turn.
`anthropic_message.py` checks single messages.

Sources: Anthropic's documentation of mid-conversation system messages and of compaction, the types of its SDK, and the
errors of the API, as of November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .anthropic_message import SERVER_USES, THINKING, AnthropicFacts, AnthropicReader
from .media import MANY_PIXELS
from .values import CALL_ID, Fault, encodes

__all__ = ["AnthropicRules"]

Messages = Sequence[AnthropicFacts]

MESSAGES_MAX: Final = 100_000
MEDIA_MAX: Final = 100
"""Images and documents in a request to a model with a window of 200,000 tokens."""
MANY_IMAGES: Final = 20
"""Above this number of images in a request, none may be large."""
MARKS_MAX: Final = 4
NO_PREFILL: Final = (
    "claude-fable-",
    "claude-opus-4-6",
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-sonnet-4-6",
    "claude-sonnet-5",
)
"""Models that require a user message at the end."""


class AnthropicRules(AnthropicReader):
    """The rules of the Messages API."""

    list_name = "messages"
    bytes_max = 32_000_000

    def judge(self, messages: Messages, body: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the problems across messages, system prompt and tools, with paths from the top."""
        if len(messages) > MESSAGES_MAX:
            yield "size", "messages", f"List should have at most {MESSAGES_MAX} items"
        if messages[0].role == "assistant" and messages[0].kinds[:1] != ["compaction"]:
            yield "first", "messages[0]", 'first message must use the "user" role'
        yield from _system_faults(messages, str(body.get("model", "")))
        yield from _compaction_faults(messages)
        yield from _fallback_faults(messages)
        yield from _pairs(messages)
        yield from _server_pairs(messages)
        yield from _ends(messages, str(body.get("model", "")))
        thinking = body.get("thinking")
        if isinstance(thinking, dict):
            yield from _thinking(messages, thinking.get("type"))
        yield from _media(messages)
        yield from self._beside(messages, body)

    def _beside(self, messages: Messages, body: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the problems of tools, system prompt and all cache marks, in the order the API reads them."""
        extras = AnthropicFacts()
        self._tools(body.get("tools"), extras)
        system = body.get("system")
        if isinstance(system, list):
            for place, block in enumerate(system):
                if isinstance(block, dict) and block.get("type") == "text":
                    self._block(block, f"system[{place}]", extras)
                else:
                    extras.fault("system", f"system[{place}]", "Input should be a text block")
        elif isinstance(system, str):
            if not encodes(system):
                extras.fault("utf8", "system", "str is not valid UTF-8: surrogates not allowed")
        elif system is not None:
            extras.fault("system", "system", "Input should be a valid string or list of text blocks")
        yield from extras.faults
        marks = extras.marks
        for position, facts in enumerate(messages):
            if facts.marks:
                marks += [(f"messages[{position}]{path}", ttl) for path, ttl in facts.marks]
        yield from _cache(marks, automatic=body.get("cache_control") is not None)

    def _tools(self, tools: object, extras: AnthropicFacts) -> None:
        if tools is None:
            return
        if not isinstance(tools, list):
            extras.fault("tools", "tools", "Input should be a valid list")
            return
        names: set[object] = set()
        for place, tool in enumerate(tools):
            if not isinstance(tool, dict):
                extras.fault("tools", f"tools[{place}]", "Input should be an object")
                continue
            name = tool.get("name")
            if tool.get("type") in (None, "custom"):
                if not (isinstance(name, str) and CALL_ID(name) and len(name) <= 128):
                    extras.fault("name", f"tools[{place}].name", "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
                if not isinstance(tool.get("input_schema"), dict):
                    extras.fault("tools", f"tools[{place}].input_schema", "Field required")
            if isinstance(name, str) and name in names:
                extras.fault("tools", f"tools[{place}].name", "Tool names must be unique.")
            names.add(str(name))
            self._mark(tool.get("cache_control"), f"tools[{place}]", extras)


def _fallback_faults(messages: Messages) -> Iterator[Fault]:
    """Yield the blocks before the last `fallback` block of a message that a request leaves out."""
    for position, facts in enumerate(messages):
        if "fallback" not in facts.kinds:
            continue
        last = max(place for place, kind in enumerate(facts.kinds) if kind == "fallback")
        for place, kind in enumerate(facts.kinds[:last]):
            if kind in (*THINKING, "connector_text", "tool_use"):
                problem = f"leave out `{kind}` blocks before the last `fallback` block"
                yield "fallback", f"messages[{position}].content[{place}]", problem


def _pairs(messages: Messages) -> Iterator[Fault]:
    """Yield problems of calls and answers: each call answered once at the start of the next turn; ids never repeat."""
    used: set[str] = set()
    open_calls: dict[str, int] = {}
    """The calls of the newest assistant turn, each with its message."""
    answered: set[str] = set()
    turn, spoken, called = "", False, False
    for position, facts in enumerate(messages):
        if facts.role != turn:
            if facts.role != "user":
                yield from _unanswered(open_calls, answered)
                open_calls, called = {}, False
            turn, answered, spoken = facts.role, set(), False
        for call_id, place in facts.calls:
            if call_id in used:
                yield "call-id", f"messages[{position}].content[{place}].id", "`tool_use` ids must be unique"
            used.add(call_id)
            open_calls[call_id] = position
        for call_id, place in facts.answers:
            where = f"messages[{position}].content[{place}]"
            if call_id not in open_calls or turn != "user":
                problem = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message"
                yield "pairing", where, f"unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. {problem}"
            elif call_id in answered:
                problem = "each tool_use must have a single result. Found multiple `tool_result` blocks with id"
                yield "pairing", where, f"{problem}: {call_id}"
            answered.add(call_id)
        if turn == "user" and open_calls:
            for place, kind in enumerate(facts.kinds):
                if kind != "tool_result":
                    spoken = True
                elif spoken:
                    problem = "Messages following `tool_use` blocks must begin with the `tool_result` blocks"
                    yield "order", f"messages[{position}].content[{place}]", problem
        elif turn == "assistant" and open_calls:
            for place, kind in enumerate(facts.kinds):
                if kind == "tool_use":
                    called = True
                elif called and (kind == "text" or kind in THINKING):
                    problem = f"`{kind}` stands between `tool_use` blocks and their `tool_result` blocks"
                    yield "order", f"messages[{position}].content[{place}]", problem
    yield from _unanswered(open_calls, answered)


def _unanswered(open_calls: Mapping[str, int], answered: set[str]) -> Iterator[Fault]:
    if missing := [call_id for call_id in open_calls if call_id not in answered]:
        problem = "`tool_use` ids were found without `tool_result` blocks immediately after"
        yield "pairing", f"messages[{open_calls[missing[0]]}]", f"{problem}: {', '.join(missing)}"


def _server_pairs(messages: Messages) -> Iterator[Fault]:
    """Yield problems of server tools: each use has one result behind it, before the user speaks again.

    Results of the client's own tools may come between. A use at the end still waits: the provider continues there.
    """
    used: set[str] = set()
    waiting: dict[str, tuple[str, str]] = {}
    """Kind and place of each use without a result, by its id."""
    for position, facts in enumerate(messages):
        if waiting and facts.role == "user" and any(kind != "tool_result" for kind in facts.kinds):
            yield from _unserved(waiting)
            waiting = {}
        for kind, use, place in facts.served:
            where = f"messages[{position}].content[{place}]"
            if kind in SERVER_USES:
                if use in used:
                    yield "call-id", f"{where}.id", "`tool_use` ids must be unique"
                used.add(use)
                waiting[use] = (kind, where)
                continue
            made_by, _ = waiting.pop(use, ("", ""))
            if (made_by == "mcp_tool_use") != (kind == "mcp_tool_result") or not made_by:
                problem = f"Each `{kind}` block must have a corresponding `server_tool_use` block before it"
                yield "pairing", where, f"unexpected `tool_use_id` found in `{kind}` blocks: {use}. {problem}"


def _unserved(waiting: Mapping[str, tuple[str, str]]) -> Iterator[Fault]:
    for use, (kind, where) in waiting.items():
        yield "pairing", where, f"`{kind}` with id `{use}` was found without a corresponding result block"


def _ends(messages: Messages, model: str) -> Iterator[Fault]:
    """Yield problems at the ends of messages: empty, or in thinking; for the last one also blank or not a user's."""
    last = len(messages) - 1
    for position, facts in enumerate(messages):
        if not facts.kinds:
            if (position < last or facts.role != "assistant") and facts.role != "system" and not facts.faults:
                problem = "all messages must have non-empty content except for the optional final assistant message"
                yield "empty", f"messages[{position}].content", problem
        elif facts.kinds[-1] in THINKING and facts.role == "assistant" and not _continues(messages, position):
            problem = f"The final block in an assistant message cannot be `{facts.kinds[-1]}`"
            yield "thinking", f"messages[{position}].content[{len(facts.kinds) - 1}]", problem
    if messages[last].role != "assistant":
        return
    text = messages[last].last_text
    if text and text[-1].isspace():
        yield "trailing", f"messages[{last}].content", "final assistant content cannot end with trailing whitespace"
    if model.startswith(NO_PREFILL) and not _is_paused(messages):
        problem = (
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
        yield "prefill", f"messages[{last}]", problem


def _is_paused(messages: Messages) -> bool:
    """Return whether the provider continues here: after a block of a server tool or a compaction."""
    waiting: set[str] = set()
    for facts in messages:
        if facts.role == "user" and any(kind != "tool_result" for kind in facts.kinds):
            waiting.clear()
        for kind, use, _ in facts.served:
            waiting.add(use) if kind in SERVER_USES else waiting.discard(use)
    return bool(waiting or messages[-1].served or messages[-1].kinds[-1:] == ["compaction"])


def _continues(messages: Messages, position: int) -> bool:
    """Return whether the next message belongs to the same turn."""
    return position + 1 < len(messages) and messages[position + 1].role == messages[position].role


def _thinking(messages: Messages, mode: object) -> Iterator[Fault]:
    """Yield problems of extended thinking: if on, an open tool loop starts with thinking; if off, the end has none."""
    last = len(messages) - 1
    if mode == "disabled" and messages[last].role == "assistant":
        for place, kind in enumerate(messages[last].kinds):
            if kind in THINKING:
                problem = "When thinking is disabled, a final `assistant` message cannot contain `thinking`"
                yield "thinking", f"messages[{last}].content[{place}]", problem
    if mode != "enabled":
        return
    loop: list[int] = []
    """The assistant messages since the last text of the user, newest first."""
    for position in range(last, -1, -1):
        if messages[position].role == "assistant":
            loop.append(position)
        elif messages[position].role == "user" and not messages[position].answers:
            break
    # A model without interleaved thinking thinks once, at the start of the loop.
    if loop and not any(messages[position].kinds[:1] in (["thinking"], ["redacted_thinking"]) for position in loop):
        found = next(iter(messages[loop[-1]].kinds), "nothing")
        problem = "When `thinking` is enabled, a final `assistant` message must start with a thinking block"
        where = f"messages[{loop[-1]}].content[0]"
        yield "thinking", where, f"Expected `thinking` or `redacted_thinking`, but found `{found}`. {problem}"


def _media(messages: Messages) -> Iterator[Fault]:
    images = sum([facts.images for facts in messages])
    documents = sum([facts.documents for facts in messages])
    if images + documents > MEDIA_MAX:
        yield "media", "messages", f"too many images and documents: {images} + {documents} > {MEDIA_MAX}"
    if images > MANY_IMAGES:
        for position, facts in enumerate(messages):
            for path in facts.large:
                problem = f"image dimensions exceed max allowed size for many-image requests: {MANY_PIXELS} pixels"
                yield "media", f"messages[{position}]{path}", problem


def _cache(marks: Sequence[tuple[str, str]], *, automatic: bool) -> Iterator[Fault]:
    if (count := len(marks) + automatic) > MARKS_MAX:
        problem = f"A maximum of {MARKS_MAX} blocks with cache_control may be provided. Found {count}."
        yield "cache", marks[-1][0], problem
    short = False
    for path, ttl in marks:
        if short and ttl == "1h":
            yield "cache", path, "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
        short = short or ttl == "5m"


_ANYWHERE: Final = "the directive-only form (content: [] with output_config) is accepted at any position"
_OLDER: Final = re.compile(
    r"claude-(?:\d|instant|(?:opus-4(?!-\d+\b)|opus-4-(?:[0-7]\b|\d{8}))|sonnet-4|haiku-4|sonnet-5(?!-\d\b))"
).match
"""Models that refuse system messages among the messages."""


def _system_faults(messages: Sequence[AnthropicFacts], model: str) -> Iterator[Fault]:
    """Yield the problems of the places of system messages. Consecutive ones are judged as one."""
    position = 0
    while position < len(messages):
        start = position
        while position < len(messages) and messages[position].role == "system":
            position += 1
        if position == start:
            position += 1
            continue
        if _OLDER(model):
            yield "role", f"messages[{start}].role", "role 'system' is not supported on this model"
            continue
        if not any(messages[place].kinds for place in range(start, position)):
            continue
        where = f"messages[{start}]"
        if start == 0:
            yield "system", where, f"use the top-level 'system' parameter for the initial system prompt; {_ANYWHERE}"
        elif not _may_precede(messages[start - 1]):
            problem = "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool"
            yield "system", where, f"{problem} result; {_ANYWHERE}"
        if position < len(messages) and messages[position].role != "assistant":
            problem = "role 'system' must precede an 'assistant' message or end the array"
            yield "system", f"messages[{position - 1}]", f"{problem}; {_ANYWHERE}"


def _may_precede(message: AnthropicFacts) -> bool:
    last = message.kinds[-1] if message.kinds else ""
    return message.role == "user" or (last.endswith("_tool_result") and last != "tool_result")


def _compaction_faults(messages: Sequence[AnthropicFacts]) -> Iterator[Fault]:
    """Yield the problems of compaction blocks. A signed one comes first, in place of what it summarizes, and alone."""
    blocks = [(position, *block) for position, facts in enumerate(messages) for block in facts.compactions]
    signed = [block for block in blocks if block[2]]
    for position, place, _ in blocks:
        where = f"messages[{position}].content[{place}]"
        if messages[position].role == "system":
            yield "compaction", where, "compaction_block_misplaced: the block is in a `system` message"
    for position, place, _ in signed:
        if (position, place) != (0, 0):
            problem = "`compaction` block must be sent first, in place of the messages it summarizes"
            yield "compaction", f"messages[{position}].content[{place}]", f"compaction_block_misplaced: {problem}"
    if signed and len(blocks) > 1:
        position, place, _ = blocks[0]
        problem = "compaction_block_ambiguous: `messages` holds more than one `compaction` block with content"
        yield "compaction", f"messages[{position}].content[{place}]", problem
