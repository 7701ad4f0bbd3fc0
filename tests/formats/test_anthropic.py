from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from format_views import IMAGE, PIXEL, entries, entry, view
from msgspec.structs import replace

from foveate.core.messages import (
    Extra,
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_result,
    user,
)
from foveate.core.profiles import PROFILES, profile_for
from foveate.core.stamps import Usage
from foveate.errors import BadMessage
from foveate.formats import get_format
from foveate.formats.anthropic import Anthropic
from foveate.formats.anthropic.write import NO_OUTPUT
from foveate.testing.bodies import check_body

PROFILE = PROFILES["anthropic"]
STRICT = msgspec.structs.replace(PROFILE, strict=True)
MARK = {"type": "ephemeral"}


def parse(message: object) -> tuple[Message, ...]:
    return Anthropic().parse(message)


def one(block: dict[str, Any], role: str = "user") -> Any:
    """Return the part for a block alone in a message, after checking that it is written back unchanged."""
    wire = {"role": role, "content": [block]}
    (message,) = parse(wire)
    assert Anthropic().render([message]) == [wire]
    (part,) = message.parts
    return part


class SdkObject:
    """An SDK object as a format sees it."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, **options: Any) -> dict[str, Any]:
        assert options == {"exclude_unset": True, "mode": "json", "by_alias": True, "warnings": False}
        return self.fields


def test_text_may_be_a_string_or_blocks():
    assert parse("hi") == parse({"role": "user", "content": "hi"}) == (user("hi"),)
    assert parse({"role": "user", "content": [{"type": "text", "text": "hi"}]}) == (user("hi"),)


def test_a_user_message_becomes_results_and_the_messages_between_them():
    wire = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "one"},
            {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "two"}], "is_error": True},
            {"type": "text", "text": "and now"},
            {"type": "text", "text": "this"},
            {"type": "tool_result", "tool_use_id": "c"},
        ],
    }
    assert parse(wire) == (
        tool_result("a", "one"),
        tool_result("b", "two", state="error"),
        Message("user", (Text("and now"), Text("this"))),
        Message("tool", (ToolResult("c"),)),
    )


def test_a_list_of_results_comes_from_the_user():
    blocks = [{"type": "tool_result", "tool_use_id": "a", "content": "one"}]
    assert parse(blocks) == (tool_result("a", "one"),)
    assert parse([SdkObject(type="tool_result", tool_use_id="a", content="one")]) == (tool_result("a", "one"),)


def test_the_input_of_a_call_keeps_its_order_and_characters():
    part = one({"type": "tool_use", "id": "a", "name": "f", "input": {"z": "héé 漢", "a": [1, 2.5, None]}}, "assistant")
    assert part == ToolCall("a", "f", '{"z":"héé 漢","a":[1,2.5,null]}')


def test_thinking_keeps_its_signature_and_encrypted_data():
    assert one({"type": "thinking", "thinking": "hm", "signature": "s"}, "assistant") == Reasoning(
        "hm", "s", format="anthropic"
    )
    assert one({"type": "redacted_thinking", "data": "xyz"}, "assistant") == Reasoning(
        encrypted="xyz", format="anthropic"
    )


@pytest.mark.parametrize(
    ("source", "media"),
    [
        ({"type": "base64", "media_type": "image/png", "data": PIXEL}, IMAGE),
        ({"type": "url", "url": "https://x.test/a.png"}, Media("", "url", "https://x.test/a.png")),
        ({"type": "file", "file_id": "file_1"}, Media("", "file", "file_1", extra=Extra("anthropic", "{}"))),
    ],
)
def test_an_image_of_every_source_becomes_media(source: dict[str, Any], media: Media):
    assert one({"type": "image", "source": source}) == media


@pytest.mark.parametrize(
    ("source", "mime", "data"),
    [
        ({"type": "base64", "media_type": "application/pdf", "data": "JVBE"}, "application/pdf", "JVBE"),
        ({"type": "text", "media_type": "text/plain", "data": "héllo"}, "text/plain", "aMOpbGxv"),
        ({"type": "url", "url": "https://x.test/a.pdf"}, "application/pdf", "https://x.test/a.pdf"),
        ({"type": "file", "file_id": "file_1"}, "application/octet-stream", "file_1"),
    ],
)
def test_a_document_becomes_media_named_by_its_title(source: dict[str, Any], mime: str, data: str):
    part = one({"type": "document", "source": source, "title": "A report", "context": "c"})
    held = source["type"] if source["type"] in ("url", "file") else "base64"
    assert part == Media(mime, held, data, "A report", Extra("anthropic", '{"context":"c"}'))


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "t"}]}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL, "new": 1}},
        {"type": "image", "source": {"type": "hologram", "data": 3}},
        {"type": "container_upload", "file_id": "f"},
        {"type": "search_result", "source": "s", "title": "t", "content": []},
    ],
)
def test_a_block_of_an_unknown_kind_or_source_is_kept_whole(block: dict[str, Any]):
    assert one(block) == Opaque("anthropic", block["type"], json.dumps(block, separators=(",", ":")))


def test_blocks_of_hosted_tools_are_kept_whole():
    call = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "q"}}
    block = {"type": "web_search_tool_result", "tool_use_id": "srv", "content": [{"type": "web_search_result"}]}
    (message,) = parse({"role": "assistant", "content": [call, block]})
    assert [part.kind for part in message.parts if isinstance(part, Opaque)] == [call["type"], block["type"]]
    assert Anthropic().render([message]) == [{"role": "assistant", "content": [call, block]}]


def test_unknown_fields_return_byte_equal_and_only_to_their_format():
    part = one({"type": "text", "text": "t", "citations": [{"type": "page", "x": 1.0, "ü": None}], "new": {"b": 1}})
    assert part == Text("t", Extra("anthropic", '{"citations":[{"type":"page","x":1.0,"ü":null}],"new":{"b":1}}'))
    assert get_format("openai").render([Message("user", (part,))]) == [{"role": "user", "content": "t"}]


def test_unknown_fields_stay_with_the_first_message_after_a_split():
    wire = {
        "role": "user",
        "content": [{"type": "text", "text": "t"}, {"type": "tool_result", "tool_use_id": "a"}],
        "new": 1,
    }
    kept = Extra("anthropic", '{"new":1}')
    assert parse(wire) == (Message("user", (Text("t"),), "", kept), Message("tool", (ToolResult("a"),)))
    wire["content"].reverse()
    assert parse({**wire, "content": wire["content"] * 2})[1:] == (
        Message("user", (Text("t"),)),
        Message("tool", (ToolResult("a"),)),
        Message("user", (Text("t"),)),
    )
    wire["content"].reverse()
    asked = Message("tool", (ToolResult("a", (Text("r"),)),))
    assert [len(each["content"]) for each in Anthropic().render([asked, *parse(wire)])] == [1, 1, 1]
    assert [len(each["content"]) for each in Anthropic().render([asked, Message("user"), user("t")])] == [1, 0, 1]


def test_current_fields_win_over_kept_fields():
    shrunk = Message("user", (Text("now", Extra("anthropic", '{"text":"then","new":1}')),))
    assert Anthropic().render([shrunk])[0]["content"] == [{"type": "text", "text": "now", "new": 1}]


def test_cache_marks_are_dropped_when_read():
    """Marks that came back with old messages would add up, and the API refuses a request with five."""
    marked = [
        {"type": "text", "text": "t", "cache_control": MARK},
        {"type": "tool_result", "tool_use_id": "a", "cache_control": MARK},
        {"type": "image", "source": {"type": "url", "url": "https://x.test"}, "cache_control": MARK},
        {"type": "container_upload", "file_id": "f", "cache_control": MARK},
    ]
    messages = parse({"role": "user", "content": marked, "cache_control": MARK})
    assert "cache_control" not in json.dumps(Anthropic().render(messages))


def test_the_envelope_of_a_reply_is_dropped():
    bare = {"role": "assistant", "content": [{"type": "text", "text": "t", "citations": None}]}
    around = {"id": "msg_1", "type": "message", "model": "m", "stop_reason": "end_turn", "stop_sequence": None}
    assert parse({**bare, **around, "usage": {}, "new": 1}) == parse(bare) == (assistant("t"),)
    assert parse({**bare, "new": 1})[0].extra == Extra("anthropic", '{"new":1}')


def test_sdk_objects_are_read_from_their_dump():
    block = SdkObject(type="tool_use", id="a", name="f", input={"n": 1})
    assert parse(SdkObject(role="assistant", content=[block])) == (assistant("", ToolCall("a", "f", '{"n":1}')),)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (None, "message is missing or null. It must be an object."),
        (3, "message is a number or a boolean. It must be an object."),
        ([], "The list of blocks is empty"),
        ({}, "message.role is missing or null. It must be user, assistant or system."),
        ({"type": "tool_result"}, "parts of a content belong in the content of a message with a role."),
        ({"role": "robot", "content": "x"}, "message.role is the string 'robot'"),
        ({"role": "tool", "content": "x"}, 'open the conversation with format="openai"'),
        ({"role": "assistant", "content": "x", "tool_calls": [{}]}, "Anthropic's calls are tool_use blocks"),
        ({"role": "user"}, "message.content is missing or null. It must be a string or a list of blocks."),
        ({"role": "user", "content": ["x"]}, "content[0] is the string 'x'. It must be an object."),
        ({"role": "user", "content": [{"text": "x"}]}, "content[0].type is missing or null. Every content block"),
        ({"role": "user", "content": [{"type": "text", "text": 1}]}, "content[0].text is a number"),
        ({"role": "user", "content": [{"type": "tool_use"}]}, "content[0] is a tool_use in a message of the role user"),
        ({"role": "assistant", "content": [{"type": "tool_result"}]}, "only the role user has such blocks"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}, "content[0].name is missing or null"),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}]},
            "content[0].input is the string '{}'. It must be an object.",
        ),
        ([{"type": "tool_result", "tool_use_id": "a", "content": [7]}], "blocks[0].content[0] is a number"),
        ([{"type": "tool_result", "tool_use_id": "a", "is_error": "no"}], "blocks[0].is_error is the string 'no'"),
        ([{"type": "image"}], "blocks[0].source is missing or null. It must be an object."),
        ([{"type": "new", "x": float("nan")}], "blocks[0] holds a number that is not finite"),
        ([{"type": "new", "x": "\ud83d"}], "blocks[0] holds half of a surrogate pair"),
        ([{"type": "new", "x": object()}], "a object is not a JSON value"),
    ],
)
def test_an_error_names_the_place_of_a_wrong_shape(wrong: object, says: str):
    with pytest.raises(BadMessage) as caught:
        parse(wrong)
    assert says in str(caught.value)


def test_deep_nesting_is_refused_with_its_place():
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    for wrong in (deep, {"role": "user", "content": deep}, [{"type": "new", "x": deep}], {"role": "user", "x": deep}):
        with pytest.raises(BadMessage):
            parse(wrong)
    for depth in (100_000, 300):
        deep = json.loads("[" * depth + "]" * depth) if depth < 1_000 else deep
        call = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": deep}}
        with pytest.raises(BadMessage, match=r"content\[0\]\.input is nested deeper than 200 levels"):
            parse({"role": "assistant", "content": [call]})


def test_an_object_that_cannot_dump_itself_is_a_bad_message():
    class Broken:
        def model_dump(self, **options: Any) -> dict[str, Any]:
            raise RuntimeError("no")

    with pytest.raises(BadMessage, match=r"model_dump\(\) of a Broken failed: no"):
        parse(Broken())


def test_a_reply_gives_its_message_and_usage():
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 3},
    }
    reply = SdkObject(role="assistant", type="message", content=[{"type": "text", "text": "t"}], usage=usage)
    assert Anthropic().parse_reply(reply) == (assistant("t"), Usage(5, 100, 20, 7, 3))


def test_unreported_usage_is_none_not_zero():
    bare = {"role": "assistant", "content": "t"}
    assert Anthropic().parse_reply(bare) == (assistant("t"), Usage())
    assert Anthropic().parse_reply({**bare, "content": ""}) == (assistant(), Usage())
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": None,
        "cache_creation_input_tokens": True,
        "output_tokens": "7",
        "output_tokens_details": {"thinking_tokens": -1},
    }
    assert Anthropic().parse_reply({**bare, "usage": usage})[1] == Usage(input=5)


def test_a_reply_must_have_the_role_assistant():
    with pytest.raises(BadMessage, match="For a stream, pass its final message"):
        Anthropic().parse_reply({"type": "message_start"})
    with pytest.raises(BadMessage, match="reply is missing or null"):
        Anthropic().parse_reply(None)


def test_consecutive_results_share_a_message_with_the_next_user_text():
    messages = [assistant("", ToolCall("a", "f"), ToolCall("b", "f")), tool_result("a", "1"), tool_result("b", "2")]
    assert Anthropic().render([*messages, user("go on"), user("please")])[1:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": "2"},
                {"type": "text", "text": "go on"},
            ],
        },
        {"role": "user", "content": [{"type": "text", "text": "please"}]},
    ]


def test_arguments_that_are_not_an_object_are_wrapped():
    for text in ("[1]", '{"a":', "", "NaN", '{"a":NaN}', "[" * 100_000, '{"a":' * 500 + "1" + "}" * 500):
        (wire,) = Anthropic().render([assistant("", ToolCall("a", "f", text))])
        assert wire["content"][0]["input"] == {"_arguments": text}


def test_halves_of_surrogate_pairs_in_arguments_do_not_stop_a_request():
    call = assistant("", ToolCall("a", "f", r'{"a":"\ud83d!","b":"\ud83d\ude00"}'))
    (wire,) = Anthropic().render([call])
    assert wire["content"][0]["input"] == {"a": "\ufffd!", "b": "😀"}
    assert "\ufffd!".encode() in Anthropic().body(view(user("u"), call), profile=PROFILE)


def test_a_text_with_half_a_surrogate_pair_cannot_be_sent():
    format = Anthropic()
    good, bad = entry(user("good")), entry(user("\ud83d"), 1)
    with pytest.raises(BadMessage, match="half of a surrogate pair"):
        format.rendered(view(good, bad), profile=PROFILE)
    assert [each.entries for each in format.rendered(view(good), profile=PROFILE)] == [(good,)]
    before, other = entries(user("u"), assistant("a"), user("v")), entry(assistant("b"), 1)
    kept = format.rendered(view(*before), profile=PROFILE)
    with pytest.raises(BadMessage):
        format.rendered(view(before[0], other, bad), profile=PROFILE)
    assert format.rendered(view(*before), profile=PROFILE) == kept


def test_entries_of_the_users_side_in_one_turn_share_a_message():
    first, call, result, word, later = entries(
        user("u"), assistant("", ToolCall("a", "f")), tool_result("a", "1"), user("also"), user("much later")
    )
    later = entry(later.message, turn=2, position=5)
    shown = Anthropic().rendered(view(first, call, result, word, later), profile=PROFILE)
    assert [each.entries for each in shown] == [(first,), (call,), (result, word), (later,)]
    assert [json.loads(each.body)["role"] for each in shown] == ["user", "assistant", "user", "user"]


def test_results_come_first_in_their_message():
    note = entry(user("note"), 1)
    result = entry(tool_result("a", "1"), 1, 2)
    (wire,) = Anthropic().prompt(view(note, result), profile=PROFILE)["messages"]
    assert [block["type"] for block in wire["content"]] == ["tool_result", "text"]


def test_system_messages_at_the_beginning_move_to_system_and_later_ones_stay():
    shown = view(system("rules"), Message("system", (Text("more"), Text(" "))), user("u"), system("changed"))
    prompt = Anthropic().prompt(shown, profile=PROFILE, system="first")
    assert prompt == {
        "system": [
            {"type": "text", "text": "first"},
            {"type": "text", "text": "rules"},
            {"type": "text", "text": "more", "cache_control": MARK},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "u"}]},
            {"role": "system", "content": [{"type": "text", "text": "changed", "cache_control": MARK}]},
        ],
    }
    assert [wire["role"] for wire in Anthropic().render([system("rules"), user("u"), system("changed")])] == [
        "system",
        "user",
        "system",
    ]


def test_system_message_shown_as_a_note_is_written_as_a_users():
    note = replace(entry(system("[System note]\nchanged"), position=2), kind="note")
    prompt = Anthropic().prompt(view(entry(user("u")), note), profile=PROFILE)
    texts = [{"type": "text", "text": "u"}, {"type": "text", "text": "[System note]\nchanged", "cache_control": MARK}]
    assert prompt["messages"] == [{"role": "user", "content": texts}]


def test_settings_and_changes_of_tools_stay_with_a_later_system_message():
    """Only text, changes of tools and documented settings of the system message are sent."""
    wires = [
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
        {
            "role": "system",
            "content": [
                {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "bash"}},
                {"type": "text", "text": "no shell"},
            ],
        },
        {"role": "system", "content": [{"type": "text", "text": "soon"}], "clear_at": "next_user_message"},
        {"role": "system", "content": [], "output_config": {"effort": "low"}},
        {"role": "assistant", "content": [{"type": "text", "text": "ok"}]},
    ]
    messages = [message for wire in wires for message in Anthropic().parse(wire)]
    rendered = Anthropic().rendered(view(*messages), profile=PROFILE)
    assert [json.loads(each.body) for each in rendered] == wires


def test_message_for_one_turn_takes_no_cache_mark():
    wire = {"role": "system", "content": "soon", "clear_at": "next_user_message"}
    (scoped,) = Anthropic().parse(wire)
    shown = Anthropic().prompt(view(user("u"), scoped), profile=PROFILE)["messages"]
    assert shown[0]["content"][0]["cache_control"] == MARK
    assert shown[1]["content"] == [{"type": "text", "text": "soon"}]


def test_rendered_has_every_entry_once_including_system_prompts():
    shown = view(system("rules"), user("u"), assistant("a"), system("note"))
    rendered = Anthropic().rendered(shown, profile=PROFILE)
    assert [each for wire in rendered for each in wire.entries] == list(shown.entries)
    assert json.loads(rendered[0].body) == {"role": "system", "content": [{"type": "text", "text": "rules"}]}


@pytest.mark.parametrize(
    ("prompt", "blocks"),
    [
        (None, []),
        ("", []),
        ("s", [{"type": "text", "text": "s"}]),
        (["s", "t"], [{"type": "text", "text": "s"}, {"type": "text", "text": "t"}]),
        ([{"type": "text", "text": "s", "new": 1}], [{"type": "text", "text": "s", "new": 1}]),
        ([{"role": "system", "content": "s"}], [{"type": "text", "text": "s"}]),
        ({"role": "developer", "content": [{"type": "text", "text": "s"}]}, [{"type": "text", "text": "s"}]),
    ],
)
def test_a_system_prompt_may_have_many_shapes(prompt: object, blocks: list[dict[str, Any]]):
    body = json.loads(Anthropic().body(view(user("u")), profile=PROFILE, system=prompt))
    assert body.get("system", []) == blocks


def test_an_error_names_a_system_prompt_of_a_wrong_shape():
    with pytest.raises(BadMessage, match=r"system\[0\] is a number"):
        Anthropic().prompt(view(user("u")), profile=PROFILE, system=[1])


def test_tools_in_openais_shape_are_converted():
    schema = {"type": "object", "properties": {"p": {"type": "string"}}}
    tools = [
        {"name": "own", "input_schema": schema},
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema, "strict": True}},
        {"type": "function", "name": "g", "parameters": None},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "custom", "custom": {"name": "c", "description": "d", "format": {"type": "text"}}},
    ]
    free = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    assert Anthropic().prompt(view(user("u")), profile=PROFILE, system="s", tools=tools)["tools"] == [
        tools[0],
        {"name": "f", "description": "d", "strict": True, "input_schema": schema},
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
        tools[3],
        {"name": "c", "description": "d", "input_schema": free},
    ]
    assert "tools" not in Anthropic().prompt(view(user("u")), profile=PROFILE)


def test_a_text_file_of_another_type_is_its_text():
    shown = view(user("u", Media("text/csv", "base64", "YSxiCjEsMg==", "t.csv")))
    (message,) = Anthropic().prompt(shown, profile=PROFILE)["messages"]
    assert message["content"][1]["text"] == "[t.csv]\na,b\n1,2"


def test_media_that_cannot_be_sent_become_text():
    """One image that the provider refuses would make every later request fail."""
    bad = [
        Media("image/tiff", "base64", "SUkqAAgA", "scan.tiff"),
        Media("image/png", "base64", "not base64!"),
        Media("image/png", "url", "ftp://x.test/a.png"),
        Media("audio/wav", "base64", PIXEL),
        Media("", "file", "file-of-another", extra=Extra("openai", "{}")),
    ]
    body = json.loads(Anthropic().body(view(user("u", *bad, IMAGE)), profile=PROFILE))
    assert [block.get("text") for block in body["messages"][0]["content"]] == [
        "u",
        "[Image, not shown here: scan.tiff image/tiff]",
        "[Image, not shown here: image/png]",
        "[Image, not shown here: ftp://x.test/a.png]",
        "[Sound, not shown here: audio/wav]",
        "[Image, not shown here]",
        None,
    ]
    assert check_body("anthropic", body) == []


def test_a_failed_result_has_text_only_and_is_never_empty():
    """`content cannot be empty if is_error is true`; `all content must be type text if is_error is true`."""
    asked = assistant("", ToolCall("a", "f"), ToolCall("b", "f"))
    failed = Message("tool", (ToolResult("b", (Text("  "), IMAGE), "error"),))
    body = json.loads(
        Anthropic().body(
            view(user("u"), asked, Message("tool", (ToolResult("a", (), "interrupted"),)), failed), profile=PROFILE
        )
    )
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": NO_OUTPUT, "is_error": True},
        {"type": "tool_result", "tool_use_id": "b", "content": "[Image, not shown here: image/png]", "is_error": True},
    ]
    assert check_body("anthropic", body) == []


def test_a_strict_provider_gets_only_known_fields():
    """F09: strict gateways refuse extra keys."""
    part = Text("t", Extra("anthropic", '{"new":1}'))
    call = ToolCall("a", "f", "{}", Extra("anthropic", '{"caller":{"type":"direct"}}'))
    shown = view(
        Message("user", (part,), extra=Extra("anthropic", '{"new":1}')),
        Message("assistant", (part, Opaque("anthropic", "new_block", '{"type":"new_block"}'), call)),
        Message("tool", (ToolResult("a", (part,), extra=Extra("anthropic", '{"toolset_name":"x"}')),)),
    )
    assert Anthropic().body(shown, profile=STRICT).count(b"new") == 0
    assert check_body("anthropic", Anthropic().body(shown, profile=STRICT), strict=True) == []
    takes_all = msgspec.structs.replace(PROFILE, unknown_keys=True)
    assert Anthropic().body(shown, profile=takes_all).count(b"new") == 5
    documented = Anthropic().body(shown, profile=PROFILE)
    assert documented.count(b"new") == 4  # Blocks keep theirs; messages do not.


def test_foreign_reasoning_and_blocks_are_not_written():
    parts = (
        Reasoning("mine", format="openai"),
        Reasoning("nobody's"),
        Opaque("openai", "k", '{"type":"k"}'),
        Text("t"),
    )
    assert Anthropic().render([Message("assistant", parts)]) == [
        {"role": "assistant", "content": [{"type": "text", "text": "t"}]}
    ]


def test_an_entry_without_content_for_the_provider_has_no_message():
    nothing = Message("assistant", (Opaque("openai", "k", '{"type":"k"}'),))
    assert Anthropic().body(view(user("u"), nothing), profile=PROFILE).count(b"role") == 1


@pytest.mark.parametrize(("model", "role"), [("claude-haiku-4-5", "assistant"), ("claude-opus-4-6", "user")])
def test_request_ends_with_the_user_for_models_without_prefill(model: str, role: str) -> None:
    """Claude since 4.6 refuses a request that ends with the assistant."""
    format, profile = Anthropic(), profile_for("anthropic", model)
    shown = view(user("Hello."), assistant("Hi."))
    prompt = format.prompt(shown, profile=profile)
    assert prompt["messages"][-1]["role"] == role
    assert json.loads(format.body(shown, profile=profile))["messages"][-1]["role"] == role
    assert check_body("anthropic", {**prompt, "model": model}) == []


def test_paused_turn_of_a_server_tool_is_continued_without_a_user() -> None:
    format, profile = Anthropic(), profile_for("anthropic", "claude-opus-4-6")
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tram"}}
    (paused,) = format.parse({"role": "assistant", "content": [use]})
    assert format.prompt(view(user("Find it."), paused), profile=profile)["messages"][-1]["content"][0]["type"] == (
        "server_tool_use"
    )
