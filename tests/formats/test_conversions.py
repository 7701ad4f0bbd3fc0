"""Messages through one format, through two formats, and back: docs/guides/formats.md lists what each format carries."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from format_views import IMAGE
from msgspec.structs import replace

from foveate.core.messages import Media, Message, Opaque, Text, ToolCall, ToolResult, assistant, system, user
from foveate.formats import get_format
from foveate.formats.json import encode

FORMATS = ("anthropic", "openai", "openai_responses", "gemini")
CALL = ToolCall("call_1", "look", '{"at":"it"}')
RESULT = Message("tool", (ToolResult("call_1", (Text("r"),)),))


def answered(*content: Any, state: Any = "ok") -> list[Message]:
    return [Message("assistant", (CALL,)), Message("tool", (ToolResult("call_1", content, state),))]


CONTENT: dict[str, list[Message]] = {
    "texts of the user, the model and the system": [system("s"), user("u"), assistant("a")],
    "several texts in one message": [Message("user", (Text("a"), Text("b")))],
    "the name of a speaker": [Message("user", (Text("a"),), "ann")],
    "images, as data and by URL": [user("u", IMAGE, Media("", "url", "https://x.test/a.png"))],
    "PDF documents as data, with a name": [user("u", Media("application/pdf", "base64", "JVBERi0x", "a.pdf"))],
    "PDF documents by URL": [user("u", Media("application/pdf", "url", "https://x.test/a.pdf"))],
    "images that the model made": [Message("assistant", (IMAGE,))],
    "calls, in parallel too, and their results": [
        assistant("I look.", CALL, ToolCall("call_2", "look", "{}")),
        RESULT,
        Message("tool", (ToolResult("call_2", (Text("2"),)),)),
    ],
    "text after a call": [Message("assistant", (CALL, Text("I look."))), RESULT],
    "arguments that are not a JSON object": [Message("assistant", (ToolCall("call_1", "f", '{"at":'),)), RESULT],
    "several texts in a result": answered(Text("a"), Text("b")),
    "images in a result": answered(Text("a"), IMAGE),
    "a result without content": answered(),
    "a failed result": answered(Text("r"), state="error"),
    "an interrupted result": answered(Text("r"), state="interrupted"),
}
"""Content that does not belong to one provider."""


def through(name: str, messages: list[Message]) -> list[Message]:
    """Return the messages after a trip over the wire of a format."""
    format = get_format(name)
    wires = json.loads(encode(format.render(messages)))
    return [message for item in format.group(wires) for message in format.parse(item)]


def bare(messages: list[Message]) -> list[Message]:
    """Return the messages without what a format remembers, and without the names of tools in results.

    Formats that have no place for such a name lose it, and Gemini takes it from the call.
    """

    def part(value: Any) -> Any:
        match value:
            case Opaque():
                return value
            case ToolResult(content=content):
                return replace(value, name="", extra=None, content=tuple(map(part, content)))
            case _:
                return replace(value, extra=None)

    return [replace(message, extra=None, parts=tuple(map(part, message.parts))) for message in messages]


def is_carried(name: str, messages: list[Message]) -> bool:
    return bare(through(name, messages)) == bare(messages)


@pytest.mark.parametrize("content", CONTENT)
@pytest.mark.parametrize(("own", "other"), [*product(FORMATS, FORMATS)])
def test_two_formats_lose_only_what_one_of_them_cannot_carry(own: str, other: str, content: str):
    messages = CONTENT[content]
    returned = through(own, through(other, through(own, messages)))
    assert (bare(returned) == bare(messages)) == (is_carried(own, messages) and is_carried(other, messages))


@pytest.mark.parametrize(("own", "other"), [*product(FORMATS, FORMATS)])
def test_texts_calls_and_their_order_come_back_through_any_two_formats(own: str, other: str):
    """What a format cannot carry changes its shape, but no text and no call gets lost."""
    for messages in CONTENT.values():
        returned = through(own, through(other, through(own, messages)))
        for text in ("u", "a", "b", "I look.", "r", "2"):
            said = [part for message in messages for part in texts_of(message)]
            assert text not in said or any(text in part for message in returned for part in texts_of(message))
        calls = [call.call_id for message in messages for call in message.calls]
        assert [call.call_id for message in returned for call in message.calls] == calls


def texts_of(message: Message) -> list[str]:
    parts = [*message.parts, *(message.result.content if message.result else ())]
    return [part.text for part in parts if isinstance(part, Text)]


def test_the_page_lists_what_each_format_carries():
    head = f"| | {' | '.join(f'`{name}`' for name in FORMATS)} |"
    rows = [
        f"| {content} | {' | '.join('yes' if is_carried(name, messages) else '-' for name in FORMATS)} |"
        for content, messages in CONTENT.items()
    ]
    page = (Path(__file__).parents[2] / "docs" / "guides" / "formats.md").read_text(encoding="utf-8")
    assert "\n".join([head, "|---|---|---|---|---|", *rows]) in page
