"""Messages in bytes are read as the same messages in dicts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foveate import Media, Text, ToolResult, open_conversation
from foveate.conversation.message_reader import MessageReader
from foveate.errors import BadMessage
from foveate.formats import get_format


def outcome(value: object) -> object:
    """Return the messages in a value, or the error that it raises."""
    try:
        return MessageReader(get_format("anthropic")).read(value)
    except BadMessage as error:
        return str(error)


@pytest.mark.parametrize(
    "field",
    [
        '"extra": 123456789012345678901234567890',
        '"extra": [1e400, NaN]',
        '"extra": {"a": 1, "a": 2.50, "b": -0.0}',
        '"extra": "\\ud83d"',
        '"extra": "\\ud83d\\ude00 \\u0000"',
    ],
)
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_a_message_in_bytes_equals_the_one_in_a_dict(start: str, field: str):
    text = f'{{"role": "user", "content": "Go on.", {field}}}'
    assert outcome((start + text).encode()) == outcome(json.loads(text))


@pytest.mark.parametrize("body", [b"", b"{", b'"a\tb"', b'{"a": 1}}', b"\xff"])
def test_bytes_that_are_no_json_are_refused(body: bytes):
    with pytest.raises(BadMessage, match=r"A message in bytes is no JSON: .*It begins with"):
        MessageReader(get_format("anthropic")).read(body)


@pytest.mark.parametrize("format", ["anthropic", "openai", "openai_responses", "gemini"])
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            Media("image/png", "base64", "aGk="),
            r"^Media is a part of a message, not a message\. Pass one, such as foveate.user",
        ),
        ([Text("See:"), Media("image/png", "base64", "aGk=")], r"^Item 1 of the list: Text is a part of a message"),
        (ToolResult("c1", (Text("ok"),)), r"^ToolResult is a part of a message.* such as foveate.tool_result\("),
    ],
)
def test_a_part_is_no_message(format: str, value: object, problem: str):
    with pytest.raises(BadMessage, match=problem):
        MessageReader(get_format(format)).read(value)


@pytest.mark.parametrize("name", ["append", "follow"])
@pytest.mark.parametrize(
    ("format", "good"),
    [
        ("openai", {"role": "user", "content": "hi"}),
        ("anthropic", {"role": "user", "content": "hi"}),
        ("openai_responses", {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}),
        ("gemini", {"role": "user", "parts": [{"text": "hi"}]}),
    ],
)
def test_error_names_the_item_of_a_list(format: str, good: dict[str, Any], name: str):
    """Also if several items form one message, as in the Responses API."""
    chat = open_conversation("c", format=format, window=8_000)
    items = [good, good, good, {"role": "bot", "content": "hi", "parts": []}]
    with pytest.raises(BadMessage, match=r"^Item 4 of the list: \w+\.role is the string 'bot'\."):
        getattr(chat, name)(items)
    assert len(chat) == 0
