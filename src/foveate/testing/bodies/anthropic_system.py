"""Rules of Anthropic's Messages API for system messages among the messages, and for compaction blocks.

Sources: Anthropic's documentation of mid-conversation system messages and of compaction, the types of its SDK, and the
errors of the API, as of November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from .anthropic_message import AnthropicFacts
from .values import Fault

__all__ = ["compaction_faults", "system_faults"]

ANYWHERE: Final = "the directive-only form (content: [] with output_config) is accepted at any position"
OLDER: Final = re.compile(
    r"claude-(?:\d|instant|(?:opus-4(?!-\d+\b)|opus-4-(?:[0-7]\b|\d{8}))|sonnet-4|haiku-4|sonnet-5(?!-\d\b))"
).match
"""Models that refuse system messages among the messages."""


def system_faults(messages: Sequence[AnthropicFacts], model: str) -> Iterator[Fault]:
    """Yield the problems of the places of system messages. Consecutive ones are judged as one."""
    position = 0
    while position < len(messages):
        start = position
        while position < len(messages) and messages[position].role == "system":
            position += 1
        if position == start:
            position += 1
            continue
        if OLDER(model):
            yield "role", f"messages[{start}].role", "role 'system' is not supported on this model"
            continue
        if not any(messages[place].kinds for place in range(start, position)):
            continue
        where = f"messages[{start}]"
        if start == 0:
            yield "system", where, f"use the top-level 'system' parameter for the initial system prompt; {ANYWHERE}"
        elif not _may_precede(messages[start - 1]):
            problem = "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool"
            yield "system", where, f"{problem} result; {ANYWHERE}"
        if position < len(messages) and messages[position].role != "assistant":
            problem = "role 'system' must precede an 'assistant' message or end the array"
            yield "system", f"messages[{position - 1}]", f"{problem}; {ANYWHERE}"


def _may_precede(message: AnthropicFacts) -> bool:
    last = message.kinds[-1] if message.kinds else ""
    return message.role == "user" or (last.endswith("_tool_result") and last != "tool_result")


def compaction_faults(messages: Sequence[AnthropicFacts]) -> Iterator[Fault]:
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
