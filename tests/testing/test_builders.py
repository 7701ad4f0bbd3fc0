"""Builders return the described messages, and generated text is the same each time."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import pytest

from foveate.core.messages import Media, Message, Reasoning, Text, ToolCall, ToolResult
from foveate.testing import agent_run, answer, call, calls, chat, say, system, text_of, thought, user


def test_chat_builds_a_list_of_messages():
    shot = Media("image/png", "url", "https://example.com/a.png")
    result = chat(
        system("Be brief."),
        user("hi"),
        call("a"),
        answer("a", "ok"),
        [calls("b", call("c", "grep", pattern="é", path=None), text="Both."), answer("c", "no", shot, state="error")],
        say("done"),
    )
    assert result == [
        Message("system", (Text("Be brief."),)),
        Message("user", (Text("hi"),)),
        Message("assistant", (ToolCall("a", "tool", "{}"),)),
        Message("tool", (ToolResult("a", (Text("ok"),)),)),
        Message(
            "assistant",
            (Text("Both."), ToolCall("b", "tool", "{}"), ToolCall("c", "grep", '{"pattern":"é","path":null}')),
        ),
        Message("tool", (ToolResult("c", (Text("no"), shot), "error"),)),
        Message("assistant", (Text("done"),)),
    ]


def test_argument_may_be_called_name():
    assert call("a", "rename", name="b", call_id="c").calls == (ToolCall("a", "rename", '{"name":"b","call_id":"c"}'),)


def test_thought_stands_before_what_it_led_to():
    assert thought("Hm.", call("a"), signature="sig") == Message(
        "assistant", (Reasoning("Hm.", "sig", format="anthropic"), ToolCall("a", "tool", "{}"))
    )


@pytest.mark.parametrize("tokens", [0, 1, 2, 3, 10, 499, 500, 501, 12_345])
def test_text_of_n_tokens_counts_n_before_and_after_trimming(tokens):
    text = text_of(tokens)
    assert math.ceil(len(text) / 4) == math.ceil(len(text.strip()) / 4) == tokens
    assert text == text_of(tokens)


def test_texts_of_different_seeds_differ():
    assert text_of(50, seed=1) != text_of(50, seed=2)


def test_long_text_does_not_repeat_itself():
    lines = text_of(20_000).split("\n")
    assert len(set(lines)) > 0.99 * len(lines) > 100


def test_generated_agent_run_is_deterministic():
    run = agent_run(40, seed=3)
    assert sum(message.role == "assistant" for message in run) == 40
    assert run == agent_run(40, seed=3)
    assert run != agent_run(40, seed=4)
    assert (run[0].role, run[-1].role, run[-1].calls) == ("user", "assistant", ())


def test_generated_calls_are_answered_and_have_own_ids():
    run = agent_run(120, seed=1)
    asked = [one.call_id for message in run for one in message.calls]
    assert len(set(asked)) == len(asked) > 100
    assert [message.result.call_id for message in run if message.result] == asked
    assert any(len(message.calls) > 1 for message in run)
    for before, message in pairwise(run):
        assert not (before.calls and message.role != "tool")


def test_agent_run_looks_like_work():
    """Code, logs, listings and JSON, mostly small, some errors; the agent edits only what it read before."""
    run = agent_run(200, seed=7)
    results = [message.result for message in run if message.result]
    sizes = sorted(len(result.text) for result in results)
    assert sizes[0] > 0
    assert sizes[-1] <= 6_000
    assert sizes[len(sizes) // 2] < 2_500
    assert {one.name for message in run for one in message.calls} == {"bash", "grep", "read_file", "edit", "query"}
    assert {result.state for result in results} == {"ok", "error"}
    seen = ""
    edited = 0
    for message in run:
        for one in message.calls:
            arguments = json.loads(one.arguments)
            if one.name == "edit":
                edited += 1
                assert arguments["old"] in seen
                assert arguments["path"] in seen
        seen += message.text
    assert edited > 10


def test_size_of_results_can_be_chosen():
    run = agent_run(60, result_chars=(3_000, 4_000))
    sizes = [len(message.text) for message in run if message.role == "tool"]
    assert max(sizes) <= 4_000
    assert sorted(sizes)[len(sizes) // 2] > 1_500
