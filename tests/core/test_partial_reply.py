"""The part of a stopped reply that stays in the conversation."""

from __future__ import annotations

import pytest

from foveate.core.messages import Extra, Message, Opaque, Part, Reasoning, Text, ToolCall
from foveate.core.partial_replies import partial_reply

SIGNED = Reasoning("So.", "signature", format="anthropic")
SEALED = Reasoning("", "", "payload", "openai_responses")
READABLE = Reasoning("So.", format="anthropic")
CALL = ToolCall("c1", "look", '{"at": "the d')
USE = Opaque("anthropic", "server_tool_use", '{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}')
FOUND = Opaque("anthropic", "web_search_tool_result", '{"type":"web_search_tool_result","tool_use_id":"s1"}')


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        ((SIGNED, Text("Hel")), (SIGNED, Text("Hel"))),
        ((SEALED, Text("Hel")), (SEALED, Text("Hel"))),
        ((Text("Hello. "), CALL), (Text("Hello. "),)),
        ((CALL,), ()),
        ((Text(" \n"),), ()),
        # Reasoning that led to nothing, or to something left out.
        ((SIGNED,), (READABLE,)),
        ((SEALED,), ()),
        ((SIGNED, CALL), (READABLE,)),
        ((SIGNED, Text(" ")), (READABLE,)),
        ((Text("Hello."), SIGNED, CALL), (Text("Hello."), READABLE)),
        # Reasoning after something left out is bound to it.
        ((SIGNED, CALL, SIGNED, Text("Hel")), (READABLE, READABLE, Text("Hel"))),
        ((SIGNED, SIGNED, Text("Hel")), (SIGNED, SIGNED, Text("Hel"))),
        # Server tools.
        ((USE,), ()),
        ((Text("I search."), USE, FOUND, Text("It")), (Text("I search."), USE, FOUND, Text("It"))),
        ((SIGNED, USE), (READABLE,)),
    ],
)
def test_a_partial_reply_keeps_what_can_be_sent(parts: tuple[Part, ...], kept: tuple[Part, ...]):
    assert partial_reply(Message("assistant", parts)) == Message("assistant", kept)


def test_fields_of_the_whole_message_are_left_out():
    """Such as incomplete details of the reasoning, which a server would check."""
    extra = Extra("openai", '{"reasoning_details":[{"type":"reasoning.text","text":"Let"}]}')
    assert partial_reply(Message("assistant", (Text("Hel"),), "ada", extra)) == Message("assistant", (Text("Hel"),))
