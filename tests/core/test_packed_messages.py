"""Packed messages: what they refer to, and that nothing is decoded before it is used."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import Message, Text, ToolCall, ToolResult
from foveate.core.packed_messages import PackedMessage, packed_form
from foveate.core.wire import decode_message, encode_message
from foveate.formats import get_format
from foveate.testing.strategies import histories

LONG = 'A "long" text\nwith \\ escapes, é and \u2028, of more than 32 characters. '


@pytest.mark.parametrize("provider", ["openai", "anthropic", "openai_responses", "gemini"])
@given(history=histories(max_size=6))
def test_packed_message_equals_the_stored_one(provider: str, history: list[Message]) -> None:
    """Also if the place in the rendered messages shows others, a part of them, or nothing."""
    rendered = b",".join(msgspec.json.encode(wire) for wire in get_format(provider).render(history))
    for message in history:
        stored = decode_message(encode_message(message))
        for place in (range(len(rendered)), range(len(rendered) // 2), range(0)):
            assert PackedMessage(packed_form(message, rendered, place), rendered).message() == stored


@given(st.lists(st.text(min_size=32), min_size=1, max_size=4))
def test_long_texts_are_references(texts: Sequence[str]) -> None:
    message = Message("user", tuple(Text(text) for text in texts))
    shown = encode_message(Message("tool", (ToolResult("a", message.parts), ToolCall("b", "look", LONG))))
    form = packed_form(message, b"[" + shown, range(1, 1 + len(shown)))
    assert len(form) < 60 + 60 * len(texts)
    assert PackedMessage(form, b"[" + shown).message() == message


def test_message_is_decoded_once() -> None:
    packed = PackedMessage(packed_form(Message("user", (Text(LONG),))))
    assert packed.message() is packed.message()
