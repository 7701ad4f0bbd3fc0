"""Messages of the AI SDK's user interface, in every format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foveate import Media, Message, Text, ToolCall, ToolResult, open_conversation
from foveate.core.messages import Opaque, Reasoning, assistant, tool_result, user
from foveate.errors import BadMessage
from foveate.formats.ui_messages import is_ui_message, read_ui_message
from foveate.replay.recordings import read_recording, sniff
from foveate.testing import check_body

FORMATS = ["anthropic", "openai", "openai_responses", "gemini"]
USER = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "How were sales?"}]}
ANSWER = {
    "id": "m2",
    "role": "assistant",
    "metadata": {"tokens": 7},
    "parts": [
        {"type": "step-start"},
        {"type": "reasoning", "text": "A query.", "state": "done"},
        {"type": "text", "text": "Let me see.", "state": "done"},
        {
            "type": "tool-runQuery",
            "toolCallId": "c1",
            "state": "output-available",
            "input": {"sql": "SELECT 1"},
            "output": {"rows": [1]},
        },
        {
            "type": "dynamic-tool",
            "toolName": "chart",
            "toolCallId": "c2",
            "state": "output-error",
            "input": {},
            "errorText": "No chart.",
        },
        {"type": "step-start"},
        {"type": "source-url", "sourceId": "s1", "url": "https://example.org"},
        {"type": "text", "text": "They rose."},
    ],
}
SOURCE = '{"type":"source-url","sourceId":"s1","url":"https://example.org"}'
READ = (
    Message(
        "assistant",
        (
            Reasoning("A query.", format="ai_sdk"),
            Text("Let me see."),
            ToolCall("c1", "runQuery", '{"sql":"SELECT 1"}'),
            ToolCall("c2", "chart", "{}"),
        ),
    ),
    tool_result("c1", '{"rows":[1]}', name="runQuery"),
    tool_result("c2", "No chart.", state="error", name="chart"),
    Message("assistant", (Opaque("ai_sdk", "source-url", SOURCE), Text("They rose."))),
)


def bare(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages without the fields of the first one, such as its id."""
    return (Message(messages[0].role, messages[0].parts), *messages[1:])


def test_an_answer_of_several_steps_becomes_a_message_for_each_call_of_the_model():
    """The qwery document: messages with `parts`."""
    assert bare(read_ui_message(ANSWER)) == READ


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_takes_messages_of_the_user_interface(format: str):
    chat = open_conversation("c", format=format, window=9_000)
    chat.append([USER, ANSWER, {**USER, "id": "m3"}])
    rows = chat.history()
    assert bare(tuple(row.message for row in rows[1:5])) == READ
    assert [row.metadata for row in rows] == [{}, *[{"tokens": 7}] * 4, {}]
    prompt = chat.prompt()
    assert check_body(format, prompt) == []
    for word in ("m1", "source-url", "metadata", "parts[", "A query."):
        assert word not in str(prompt)
    assert "They rose." in str(prompt)
    assert "rows" in str(prompt)


@pytest.mark.parametrize("format", FORMATS)
def test_a_caller_may_keep_the_list_and_pass_it_whole(format: str):
    chat = open_conversation("c", format=format, window=9_000)
    chat.prompt(messages=[USER])
    chat.prompt(messages=[USER, ANSWER, {**USER, "id": "m3"}])
    assert len(chat) == 6
    chat.prompt(messages=[USER, ANSWER, {**USER, "id": "m3"}])
    assert len(chat) == 6


@pytest.mark.parametrize(
    ("part", "messages"),
    [
        (
            {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": "data:image/png;base64,AAAA"},
            [Media("image/png", "base64", "AAAA", "a.png")],
        ),
        (
            {"type": "file", "mediaType": "image/png", "url": "https://example.org/a.png"},
            [Media("image/png", "url", "https://example.org/a.png")],
        ),
        ({"type": "file", "mimeType": "image/png", "data": "AAAA"}, [Media("image/png", "base64", "AAAA")]),
        ({"type": "data-chart", "data": 1}, [Opaque("ai_sdk", "data-chart", '{"type":"data-chart","data":1}')]),
    ],
)
def test_parts_of_a_user_are_read(part: dict[str, Any], messages: list[Any]):
    (message,) = bare(read_ui_message({"role": "user", "parts": [{"type": "text", "text": "Look."}, part]}))
    assert list(message.parts) == [Text("Look."), *messages]


def call(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "parts": [{"type": "tool-f", "toolCallId": "c1", "input": {"a": 1}, **fields}]}


CALL = ToolCall("c1", "f", '{"a":1}')


@pytest.mark.parametrize(
    ("message", "result"),
    [
        (call(state="output-available", output="text"), ToolResult("c1", (Text("text"),), "ok", "f")),
        (call(state="completed", output=None), ToolResult("c1", (Text("null"),), "ok", "f")),
        (
            call(state="output-denied", approval={"id": "1", "approved": False, "reason": "Too dear."}),
            ToolResult("c1", (Text("The user did not allow this call: Too dear."),), "error", "f"),
        ),
        (call(state="input-available"), None),
        (call(state="approval-requested", approval={"id": "1"}), None),
    ],
)
def test_the_state_of_a_call_decides_its_result(message: dict[str, Any], result: ToolResult | None):
    results = [Message("tool", (result,))] if result else []
    assert list(read_ui_message(message)) == [assistant("", CALL), *results]


def test_a_call_whose_arguments_were_still_streaming_is_left_out():
    assert read_ui_message(call(state="input-streaming")) == (Message("assistant"),)


def test_text_after_an_output_begins_another_message():
    """Version 4 writes no `step-start`, and another kind of part for calls."""
    tool = {"state": "result", "toolCallId": "c1", "toolName": "f", "args": {"a": 1}, "result": "text"}
    parts = [{"type": "tool-invocation", "toolInvocation": tool}, {"type": "text", "text": "Done."}]
    messages = read_ui_message({"role": "assistant", "content": "Done.", "parts": parts})
    assert messages == (assistant("", CALL), tool_result("c1", "text", name="f"), assistant("Done."))


def test_signed_reasoning_of_anthropic_keeps_its_signature():
    part = {"type": "reasoning", "text": "Hm.", "providerMetadata": {"anthropic": {"signature": "sig"}}}
    (message,) = read_ui_message({"role": "assistant", "parts": [part]})
    assert message.parts == (Reasoning("Hm.", "sig", "", "anthropic"),)


@pytest.mark.parametrize(
    "other",
    [
        {"role": "user", "content": "Hi."},
        {"role": "user", "parts": [{"text": "Hi."}]},
        {"role": "model", "parts": [{"text": "Hi."}]},
        {"role": "user", "parts": []},
        {"role": "user", "parts": "text"},
    ],
)
def test_messages_of_other_formats_are_not_taken_for_these(other: dict[str, Any]):
    assert not is_ui_message(other)


def test_a_wrong_part_is_refused_with_its_place():
    with pytest.raises(BadMessage, match=r"parts\[0\].text is missing or null"):
        read_ui_message({"role": "user", "parts": [{"type": "text"}]})
    with pytest.raises(BadMessage, match=r"parts\[0\].toolCallId is missing or null"):
        read_ui_message({"role": "assistant", "parts": [{"type": "tool-f", "state": "input-available"}]})


def test_a_file_of_them_is_a_recording(tmp_path):
    path = tmp_path / "chat.json"
    summary = {**USER, "id": "m0", "role": "assistant", "metadata": {"summary": True}}
    path.write_text(json.dumps({"messages": [summary, USER, ANSWER]}))
    recording = read_recording(path)
    assert sniff(path) == "chat"
    assert [entry.origin for entry in recording.messages] == ["summary", *[None] * 5]
    assert [entry.id for entry in recording.messages] == ["m0", "m1", *["m2"] * 4]
    assert recording.messages[1].message == user("How were sales?")
    assert tuple(entry.message for entry in recording.messages[2:]) == READ


@pytest.mark.parametrize("content", [{}, {"content": None}])
def test_an_assistant_message_of_an_unknown_form_is_refused(content: dict[str, Any]):
    """Its content would be silently empty."""
    chat = open_conversation("c", format="openai", window=9_000)
    with pytest.raises(BadMessage, match=r"has neither content nor tool_calls, but 'blocks', a list\. Its content"):
        chat.append({"role": "assistant", "blocks": [{"text": "Hi."}], **content})
    assert len(chat) == 0


@pytest.mark.parametrize(
    "empty",
    [
        {"content": None, "id": "m1", "timestamp": 7},
        {"content": ""},
        {"content": "", "usage": {"input": 3}},
        {"content": None, "provider_specific_fields": {"a": 1}},
        {"content": None, "audio": {"id": "a"}},
    ],
)
def test_an_empty_assistant_message_is_still_accepted(empty: dict[str, Any]):
    chat = open_conversation("c", format="openai", window=9_000)
    chat.append({"role": "assistant", **empty})
    assert len(chat) == 1
