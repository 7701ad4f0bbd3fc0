"""Tokens that a provider adds to a request with tools."""

from __future__ import annotations

import json

import pytest

import foveate
from foveate.counters import counter_for, counter_named

TOOL = {"name": "read", "description": "Read a file.", "input_schema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        # Anthropic's table, with a required tool call (`any`, `tool`). Other models of a version may have fewer.
        ("claude-opus-5-5", 474),
        ("claude-sonnet-5", 474),
        ("claude-opus-4-8", 410),
        ("claude-opus-4-7", 804),
        ("claude-sonnet-4-6", 589),
        ("claude-haiku-4-5-20251001", 589),
        ("claude-3-opus-20240229", 530),
        ("bedrock:us.anthropic.claude-opus-4-7-v1:0", 804),
        ("gpt-5.4", 0),
        ("gemini-3.1-pro", 0),
    ],
)
def test_claude_adds_a_prompt_to_requests_with_tools(model, tokens):
    counter = counter_for(model, "anthropic")
    assert counter.tools([TOOL]) == tokens
    assert counter.tools([]) == 0


def test_named_counters_and_unknown_models_of_claude_add_it_too():
    assert counter_for("", "anthropic").tools([TOOL]) == 474
    assert counter_named("estimate:claude").tools([TOOL]) == 589
    assert counter_named("characters").tools([TOOL]) == 0


def test_definitions_that_only_anthropic_has_are_added():
    tools = [{"type": "bash_20250124", "name": "bash"}, {"type": "text_editor_20250728", "name": "edit"}]
    assert counter_for("claude-opus-5").tools(tools) == 474 + 245 + 700


def test_a_request_leaves_room_for_the_prompt_of_the_tools():
    """`Within the window` did not hold for Claude by the few hundred tokens that only usage showed."""
    chat = foveate.open_conversation("c", model="claude-sonnet-5", window=8_000, expand=False)
    counter = counter_for("claude-sonnet-5")
    chat.append("Hello.")
    bare = chat.prepare(system="Be brief.").budget
    full = chat.prepare(system="Be brief.", tools=[TOOL]).budget
    more = json.dumps(["Be brief.", [TOOL]], separators=(",", ":"))
    less = json.dumps(["Be brief.", []], separators=(",", ":"))
    assert full.overhead - bare.overhead == counter(more) - counter(less) + 474
    assert bare.usable - full.usable == full.overhead - bare.overhead
