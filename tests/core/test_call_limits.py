"""Limits of calls: many calls in one message, and long ids."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate import open_conversation
from foveate.core.checker import check
from foveate.core.edits import Hide, Replace, Target
from foveate.core.explain import explain
from foveate.core.messages import Message, Text, ToolCall
from foveate.core.units import cut_points
from foveate.testing import answer, calls, user
from foveate.testing.bodies import check_body
from foveate.testing.strategies import edits, histories

from .story import ANTHROPIC, OPENAI, Story

FEW = replace(OPENAI, max_calls=2, max_call_id=12)


def shape(story: Story) -> list[str]:
    """Return each entry in short: its calls, or the call that it answers."""
    entries = [entry.message for entry in story.projection.entries()]
    return [
        ",".join(call.call_id for call in message.calls) or (message.result.call_id if message.result else message.role)
        for message in entries
    ]


def test_calls_above_the_limit_follow_in_messages_with_their_answers():
    made = [f"c{n}" for n in range(5)]
    story = Story(user("go"), calls(*made, text="All."), *(answer(id) for id in reversed(made)), profile=FEW)
    assert shape(story) == ["user", "c0,c1", "c1", "c0", "c2,c3", "c3", "c2", "c4", "c4"]
    first, further = story.projection.entries()[1], story.projection.entries()[4]
    assert (first.kind, further.kind) == ("message", "continuation")
    assert first.message.text == "All."
    assert first.legalized == "more than 2 calls in one message are refused"
    assert check(story.projection.entries(), FEW) == []


def test_further_calls_of_a_message_are_explained():
    """`explain` raised KeyError for a message with more calls than the provider takes."""
    story = Story(user("go"), calls("a", "b", "c"), profile=FEW)
    further = next(entry for entry in story.projection.entries() if entry.kind == "continuation")
    assert explain(further, {}) == (
        f"m2 continues with further calls, {further.tokens} tokens, recorded in turn 1.\n"
        "Changed for its provider: more than 2 calls in one message are refused."
    )


def test_a_call_above_the_limit_without_an_answer_has_a_stand_in():
    story = Story(user("go"), calls("a", "b", "c"), answer("b"), user("on"), profile=FEW)
    assert [entry.kind for entry in story.projection.entries()] == [
        *("message", "message", "message", "stand-in"),
        *("continuation", "stand-in", "message"),
    ]


def test_a_message_of_many_calls_is_one_unit():
    story = Story(user("go"), calls("a", "b", "c"), *(answer(id) for id in "abc"), user("on"), profile=FEW)
    assert cut_points(story.projection.entries()) == [0, 1, 6, 7]
    story.edit(Hide(Target(story.id(2))))
    assert [entry.kind for entry in story.projection.entries()] == ["message", "note", "note", "note", "message"]


def test_edits_of_calls_above_the_limit_apply():
    story = Story(user("go"), calls("a", "b", "c"), *(answer(id) for id in "abc"), profile=FEW)
    story.edit(Replace(Target(story.id(2), (2,)), (Text('{"x":1}'),)))
    assert [call.arguments for entry in story.projection.entries() for call in entry.message.calls][2] == '{"x":1}'


@pytest.mark.parametrize("count", [128, 129, 300])
def test_openai_takes_any_number_of_calls(count: int):
    chat = open_conversation("c", format="openai", window=1_000_000, policy="none")
    made = [f"call_{n}" for n in range(count)]
    chat.append([user("go"), calls(*made), *(answer(id) for id in made)])
    body = json.loads(chat.body())
    assert check_body("openai", body) == []
    sizes = [len(message["tool_calls"]) for message in body["messages"] if message["role"] == "assistant"]
    assert sizes == [128] * (count // 128) + [count % 128] * (count % 128 > 0)
    chat.append(user("more"))
    assert json.loads(chat.body())["messages"][:-1] == body["messages"]


def test_anthropic_takes_many_calls_in_one_message():
    made = [f"call_{n}" for n in range(300)]
    story = Story(user("go"), calls(*made), *(answer(id) for id in made), profile=ANTHROPIC)
    assert len(story.projection.entries()) == 302


def test_long_ids_with_one_beginning_stay_apart():
    """Some servers put a payload into the id, so long ids often begin alike."""
    story = Story(
        user("go"), calls("fc_" + "x" * 60 + "1", "fc_" + "x" * 60 + "2"), answer("fc_" + "x" * 60 + "2", "two")
    )
    (_, asked, result, _) = story.projection.entries()
    assert [call.call_id for call in asked.message.calls] == ["fc_" + "x" * 17 + "_2_0", "fc_" + "x" * 17 + "_2_1"]
    assert result.message.result.call_id == "fc_" + "x" * 17 + "_2_1"


def test_an_id_as_long_as_the_limit_stays():
    story = Story(user("go"), Message("assistant", (ToolCall("x" * 40, "t"), ToolCall("y" * 41, "t"))))
    assert [call.call_id for call in story.projection.entries()[1].message.calls] == ["x" * 40, "y" * 20 + "_2_1"]


@given(history=histories(), data=st.data())
def test_views_with_a_low_limit_of_calls_are_legal(history: list[Message], data: st.DataObject):
    story = Story(user("go"), profile=FEW)
    for message in history:
        story.say(message)
        if data.draw(st.integers(0, 4)) == 0:
            story.edit(*data.draw(edits([row.id for row in story.rows[1:]], max_size=2)))
        found = check(story.view(), FEW)
        assert [violation for violation in found if violation.rule != "PromptsAreIntact"] == []
    assert [entry.message for entry in story.folded().entries()] == [e.message for e in story.projection.entries()]
