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


@pytest.mark.parametrize("name", ["append", "follow"])
@pytest.mark.parametrize("format", ["anthropic", "openai", "openai_responses", "gemini"])
@pytest.mark.parametrize(
    "value",
    [
        {"type": "human", "content": "hi"},
        {"type": "ai", "data": {"content": "hi"}},
        {"id": "m1", "content": "hi"},
        {"from": "human", "value": "hi"},
        ("human", "hi"),
        ["assistant", "hi"],
    ],
)
def test_messages_of_other_libraries_are_refused_plainly(value: Any, format: str, name: str):
    """They have no role. Their items are neither blocks of one message nor texts of the user."""
    chat = open_conversation("c", format=format, window=8_000)
    problem = r"role is missing or null.* convert it first;|no message\. Pass an object with a role"
    with pytest.raises(BadMessage, match=rf"^Item 1 of the list: .*({problem})|^A pair of the author .*no message"):
        getattr(chat, name)([value])
    assert len(chat) == 0


@pytest.mark.parametrize("name", ["append", "follow"])
@pytest.mark.parametrize("format", ["anthropic", "openai", "openai_responses"])
@pytest.mark.parametrize("value", [{"text": "hi"}, {"author": "bob", "text": "hi"}])
def test_objects_with_neither_role_nor_type_are_refused(value: Any, format: str, name: str):
    """In Gemini's format, an object with a text is a part."""
    chat = open_conversation("c", format=format, window=8_000)
    with pytest.raises(BadMessage, match=r"^Item 1 of the list: .*role is missing or null.* convert it first;"):
        getattr(chat, name)([value])
    assert len(chat) == 0


def test_a_list_of_parts_is_no_message_of_chat_completions():
    chat = open_conversation("c", format="openai", window=8_000)
    with pytest.raises(BadMessage, match=r"^message is a list.* Put the parts of a content into a message with a role"):
        chat.append([{"type": "text", "text": "hi"}])
    assert len(chat) == 0
