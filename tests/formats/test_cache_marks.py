from __future__ import annotations

from typing import Any

import pytest
from format_views import entry, loop, view

from foveate.core.messages import Message, Opaque, Reasoning, Text, user
from foveate.core.profiles import PROFILES
from foveate.formats.anthropic import Anthropic
from foveate.formats.anthropic.write import MOST, STEP
from foveate.testing.bodies import check_body

PROFILE = PROFILES["anthropic"]
MARK = {"type": "ephemeral"}


def marked(prompt: dict[str, Any]) -> list[int]:
    """Return the positions of the marked blocks, counted over the blocks of all messages."""
    blocks = [block for message in prompt["messages"] for block in message["content"]]
    return [place for place, block in enumerate(blocks) if "cache_control" in block]


def test_marks_are_at_the_end_and_at_most_fifteen_blocks_apart():
    prompt = Anthropic().prompt(view(*loop(40)), profile=PROFILE, system="s")
    assert marked(prompt) == [80 - 2 * STEP, 80 - STEP, 80]
    assert prompt["system"][-1]["cache_control"] == MARK
    assert check_body("anthropic", prompt) == []


def test_a_short_prompt_is_marked_only_at_its_ends():
    prompt = Anthropic().prompt(view(*loop(7)), profile=PROFILE, system="s")
    assert marked(prompt) == [14]
    assert marked(Anthropic().prompt(view(*loop(8)), profile=PROFILE)) == [1, 16]


def test_without_a_system_prompt_the_last_tool_is_marked():
    tools = [{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": {}}]
    deferred = {"name": "c", "input_schema": {}, "defer_loading": True}
    prompt = Anthropic().prompt(view(user("u")), profile=PROFILE, tools=[*tools, deferred])
    assert prompt["tools"] == [tools[0], {**tools[1], "cache_control": MARK}, deferred]


@pytest.mark.parametrize(("own", "ours"), [(0, 4), (1, 3), (2, 2), (3, 1), (4, 0), (5, 0)])
def test_marks_of_the_caller_count(own: int, ours: int):
    rules = [{"type": "text", "text": str(n), "cache_control": {"type": "ephemeral", "ttl": "1h"}} for n in range(own)]
    blocks = [*rules, {"type": "text", "text": "last"}]
    prompt = Anthropic().prompt(view(*loop(60)), profile=PROFILE, system=blocks)
    placed = len(marked(prompt)) + ("cache_control" in prompt["system"][-1])
    assert (placed, "cache_control" in blocks[-1]) == (ours, False)
    assert own > MOST or check_body("anthropic", prompt) == []


def test_thinking_and_unknown_blocks_get_no_mark():
    thought = Message("assistant", (Text("t"), Reasoning("hm", "s", format="anthropic")))
    empty = view(entry(user("u")), entry(Message("assistant", (Text("t"), Text(""))), 1))
    assert marked(Anthropic().prompt(empty, profile=PROFILE)) == [1]
    unknown = Message("user", (Text("u"), Opaque("anthropic", "container_upload", '{"type":"container_upload"}')))
    assert marked(Anthropic().prompt(view(user("u"), thought), profile=PROFILE)) == [1]
    assert marked(Anthropic().prompt(view(unknown), profile=PROFILE)) == [0]


def test_blocks_without_marks_are_bridged_as_far_as_possible():
    thoughts = tuple(Reasoning(str(n), "s", format="anthropic") for n in range(20))
    shown = view(user("u"), Message("assistant", (Text("a"), *thoughts, Text("b"))), *loop(4))
    assert marked(Anthropic().prompt(shown, profile=PROFILE)) == [1, 22, 31]
    lone = view(user("u"), Message("assistant", (*thoughts, *thoughts, Text("b"))))
    assert marked(Anthropic().prompt(lone, profile=PROFILE)) == [0, 41]


def test_bytes_carry_no_marks():
    assert b"cache_control" not in Anthropic().body(view(*loop(40)), profile=PROFILE, system="s")
