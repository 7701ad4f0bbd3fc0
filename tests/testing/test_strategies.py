"""Generated conversations contain every claimed irregularity."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from foveate.core import wire
from foveate.core.edits import Bill, Hide, Pin, Replace, Restore, Span, Summarize, Target, Task, Unpin
from foveate.core.messages import Media, Message, Opaque, Reasoning, Text, ToolResult
from foveate.testing import BodyChecker
from foveate.testing.strategies import edits, histories, messages, runs, texts

SEARCH = settings(max_examples=20_000, database=None, derandomize=True, phases=[Phase.generate, Phase.shrink])
IDS = ["a" * 40, "b" * 40, "c" * 40]


def asked(history: list[Message]) -> list[str]:
    return [call.call_id for message in history for call in message.calls]


def answered(history: list[Message]) -> list[str]:
    return [message.result.call_id for message in history if message.result]


def is_late(history: list[Message]) -> bool:
    """Return whether an answer comes after a later message of the assistant."""
    spoke: dict[str, int] = {}
    for position, message in enumerate(history):
        for call in message.calls:
            spoke.setdefault(call.call_id, position)
        if message.result and message.result.call_id in spoke:
            between = history[spoke[message.result.call_id] + 1 : position]
            if any(one.role == "assistant" for one in between):
                return True
    return False


NASTY: dict[str, Callable[[list[Message]], bool]] = {
    "calls in parallel": lambda history: any(len(message.calls) > 2 for message in history),
    "an answer out of order": lambda history: (
        answered(history)[:2] == asked(history)[1::-1] and len(answered(history)) > 1
    ),
    "an answer that is late": is_late,
    "a call without an answer": lambda history: bool(set(asked(history)) - set(answered(history))),
    "two answers to one call": lambda history: any(answered(history).count(one) > 1 for one in asked(history)),
    "an answer to nothing": lambda history: bool(set(answered(history)) - set(asked(history))),
    "an id used again": lambda history: len(set(asked(history))) < len(asked(history)),
    "an empty id": lambda history: "" in asked(history) and "" in answered(history),
    "a blank text": lambda history: any(isinstance(p, Text) and p.text.isspace() for m in history for p in m.parts),
    "an empty message": lambda history: any(not message.parts for message in history),
    "an answer of nothing": lambda history: any(m.result is not None and not m.result.content for m in history),
    "arguments cut short": lambda history: any(
        c.arguments == '{"path":"src/auth/ses' for m in history for c in m.calls
    ),
    "arguments that are no object": lambda history: any(c.arguments == "[1, 2]" for m in history for c in m.calls),
    "an image in an error": lambda history: any(
        m.result and m.result.state == "error" and [*m.media()] for m in history
    ),
    "unsigned thinking": lambda history: any(
        isinstance(p, Reasoning) and p.text and not p.signature and p.format == "anthropic"
        for m in history
        for p in m.parts
    ),
    "thinking and nothing else": lambda history: any(
        m.parts and all(isinstance(p, Reasoning) for p in m.parts) for m in history
    ),
    "a block of an unknown kind": lambda history: any(isinstance(p, Opaque) for m in history for p in m.parts),
    "a system message in the middle": lambda history: any(message.role == "system" for message in history[1:]),
    "no user at all": lambda history: len(history) > 2 and all(message.role != "user" for message in history),
    "a NUL": lambda history: any("\0" in message.text for message in history),
    "a word without end": lambda history: any("x" * 5000 in message.text for message in history),
    "extra fields": lambda history: any(message.extra for message in history),
}


@pytest.mark.parametrize("name", NASTY)
def test_histories_hold(name):
    history = find(histories(), NASTY[name], settings=SEARCH)
    assert NASTY[name](history)
    assert len(history) <= 4


@given(histories(max_size=10))
def test_history_is_no_longer_than_was_asked_for_and_can_be_stored(history):
    assert len(history) <= 10
    for message in history:
        assert wire.decode_message(wire.encode_message(message)) == message


@given(messages())
def test_message_keeps_to_the_model_of_messages(message):
    """A tool message has one result and no other part; results occur nowhere else."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    assert len(results) == (message.role == "tool")
    assert not results or len(message.parts) == 1
    assert wire.decode_message(wire.encode_message(message)) == message


def test_messages_are_of_every_role_and_hold_every_kind_of_part():
    kinds: set[type] = set()
    roles: set[str] = set()

    @settings(max_examples=500, database=None, derandomize=True)
    @given(messages())
    def look(message: Message) -> None:
        roles.add(message.role)
        kinds.update(map(type, message.parts))

    look()
    assert roles == {"system", "user", "assistant", "tool"}
    assert {Text, Media, Reasoning, Opaque, ToolResult} < kinds


@given(runs())
def test_run_is_a_conversation_as_it_should_be(run):
    """In the simplest form it is a legal request of chat completions."""
    checker = BodyChecker("openai")
    body = {"messages": [plain(message) for message in run]}
    assert checker.check(body) == []
    assert run[0].role == "user"


def plain(message: Message) -> dict[str, object]:
    if message.result:
        return {"role": "tool", "tool_call_id": message.result.call_id, "content": message.result.text}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    asked = [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.calls
    ]
    return {"role": message.role, "content": message.text or None, "tool_calls": asked}


def test_edits_are_of_every_kind_at_every_place_and_at_none():
    kinds: set[type] = set()
    named: set[str] = set()
    spans: set[tuple[str, str]] = set()

    @settings(max_examples=500, database=None, derandomize=True)
    @given(edits(IDS))
    def look(result: list[object]) -> None:
        kinds.update(map(type, result))
        for edit in result:
            target = getattr(edit, "target", None)
            if isinstance(target, Target):
                named.add(target.message)
            span = target if isinstance(target, Span) else getattr(edit, "span", None)
            if isinstance(span, Span):
                spans.add((span.first, span.last))

    look()
    assert kinds == {Replace, Hide, Summarize, Restore, Pin, Unpin, Task, Bill}
    assert set(IDS) < named
    assert {"", "no such message"} < named
    assert (IDS[2], IDS[0]) in spans
    assert (IDS[0], IDS[2]) in spans


def test_edits_without_messages_name_no_message():
    @settings(max_examples=100, database=None, derandomize=True)
    @given(edits([]))
    def look(result: list[object]) -> None:
        assert all(getattr(edit, "target", Target("")) not in IDS for edit in result)

    look()


@given(st.data())
@settings(suppress_health_check=[HealthCheck.data_too_large])
def test_texts_are_texts(data):
    assert isinstance(data.draw(texts()), str)
