from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from format_views import IMAGE, PIXEL, entries, view

from foveate import open_conversation
from foveate.core.message_keys import message_key
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
from foveate.core.profiles import PROFILES
from foveate.core.stamps import Usage
from foveate.errors import BadMessage
from foveate.formats.openai import OpenAIChat
from foveate.formats.openai.write import SHOWN
from foveate.testing.bodies import check_body

PROFILE = PROFILES["openai"]
STRICT = msgspec.structs.replace(PROFILE, strict=True)


def parse(message: object) -> Message:
    (parsed,) = OpenAIChat().parse(message)
    return parsed


def whole(wire: dict[str, Any]) -> Message:
    """Return the message in a wire message, after checking that it is written back unchanged."""
    message = parse(wire)
    assert OpenAIChat().render([message]) == [wire]
    return message


def call(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [fields]}


class SdkObject:
    """An SDK object as a format sees it."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, exclude_unset: bool = False) -> dict[str, Any]:
        assert exclude_unset
        return self.fields


def test_every_role_is_read():
    assert parse("hi") == whole({"role": "user", "content": "hi"}) == user("hi")
    assert whole({"role": "system", "content": "rules"}) == system("rules")
    developer = Message("system", (Text("rules"),), extra=Extra("openai", '{"role":"developer"}'))
    assert whole({"role": "developer", "content": "rules"}) == developer
    assert whole({"role": "assistant", "content": "yes"}) == assistant("yes")
    assert whole({"role": "tool", "tool_call_id": "a", "content": "ok"}) == tool_result("a", "ok")


def test_names_are_kept():
    assert whole({"role": "user", "content": "hi", "name": "ann"}).name == "ann"
    named = whole({"role": "tool", "tool_call_id": "a", "content": "ok", "name": "grep"})
    assert named == tool_result("a", "ok", name="grep")


def test_an_assistant_with_calls_and_empty_content_has_no_text():
    asked = assistant("", ToolCall("a", "f", '{"n": 1}'))
    function = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}}
    assert whole(call(**function)) == asked
    assert parse({**call(**function), "content": ""}) == asked
    assert parse({"role": "assistant", "tool_calls": [function]}) == asked
    blank = Message("assistant", (Text(""),))  # Differs from an empty content, and stays.
    assert whole({"role": "assistant", "content": [{"type": "text", "text": ""}]}) == blank


def test_fields_that_an_api_fills_in_are_ignored():
    filled = {"refusal": None, "audio": None, "function_call": None, "tool_calls": None, "annotations": [], "parsed": 1}
    assert parse({"role": "assistant", "content": "yes", **filled}) == assistant("yes")


@pytest.mark.parametrize(("transcript", "text"), [("Hello there.", "Hello there."), (None, "[A spoken reply]")])
def test_spoken_reply_is_sent_as_its_transcript(transcript: str | None, text: str):
    """Its message has no other content. The provider deletes the audio when it expires, and then refuses its id."""
    audio = {"id": "audio_1", "expires_at": 1, "data": "UklG", "transcript": transcript}
    reply = {"role": "assistant", "content": None, "audio": audio}
    message = whole(reply)
    assert message.text == text
    format, shown = OpenAIChat(), view(user("hi"), message, user("go on"))
    sent = format.prompt(shown, profile=PROFILE)["messages"]
    assert sent[1] == {"role": "assistant", "content": text}
    assert check_body("openai", format.body(shown, profile=PROFILE)) == []
    strict = OpenAIChat().prompt(shown, profile=msgspec.structs.replace(PROFILE, strict=True))
    assert strict["messages"][1] == {"role": "assistant", "content": text}


def test_list_that_names_a_spoken_reply_by_its_id_has_the_recorded_one():
    """As OpenAI documents it. The transcript counted as edited, so that the view had none."""
    chat = open_conversation("c", store="memory:", format="openai", window=100_000, policy="none")
    listed: list[Any] = [{"role": "user", "content": "hi"}]
    chat.prompt(messages=listed)
    audio = {"id": "audio_1", "expires_at": 1, "data": "UklG", "transcript": "Hello there."}
    reply = {"role": "assistant", "content": None, "audio": audio}
    chat.record({"object": "chat.completion", "choices": [{"message": reply, "finish_reason": "stop"}]})
    listed += [{"role": "assistant", "audio": {"id": "audio_1"}}, {"role": "user", "content": "go on"}]
    chat.prompt(messages=listed)
    assert [entry.message.text for entry in chat.view] == ["hi", "Hello there.", "go on"]
    other = {"role": "assistant", "audio": {"id": "audio_2"}}
    assert message_key(parse(other)) != message_key(parse(reply)) == message_key(parse(listed[1]))


def test_the_arguments_of_a_call_are_kept_byte_for_byte():
    for arguments in ('{"b": 1,  "a": 2}', "", "not json", '{"a":'):
        function = {"name": "f", "arguments": arguments}
        assert whole(call(id="a", type="function", function=function)).calls[0].arguments == arguments


def test_calls_of_lenient_servers_are_read():
    assert parse(call(function={"name": "f", "arguments": {"z": 1, "a": "é"}})).calls == (
        ToolCall("", "f", '{"z":1,"a":"é"}'),
    )
    assert parse(call(id=None, function={"name": "f"})).calls == (ToolCall("", "f", "{}"),)


def test_unknown_fields_of_a_call_stay_with_it_at_every_depth():
    google = {"google": {"thought_signature": "x"}}
    wire = call(id="a", type="function", function={"name": "f", "arguments": "{}", "new": 1}, extra_content=google)
    kept = '{"function":{"new":1},"extra_content":{"google":{"thought_signature":"x"}}}'
    assert whole(wire).calls == (ToolCall("a", "f", "{}", Extra("openai", kept)),)


def test_a_custom_call_keeps_its_text_as_a_field():
    wire = call(id="a", type="custom", custom={"name": "sh", "input": 'echo "1"'})
    asked = whole(wire)
    assert asked.calls == (ToolCall("a", "sh", '{"input":"echo \\"1\\""}', Extra("openai", '{"type":"custom"}')),)
    broken = Message("assistant", (msgspec.structs.replace(asked.calls[0], arguments="cut off"),))
    (again,) = OpenAIChat().render([broken])
    assert again["tool_calls"][0]["custom"] == {"name": "sh", "input": "cut off"}


def test_a_call_of_an_unknown_kind_stays_among_the_calls():
    wire = call(id="a", type="telepathy", telepathy={"to": "b"})
    body = '{"id":"a","type":"telepathy","telepathy":{"to":"b"}}'
    assert whole(wire).parts == (Opaque("openai", "tool_call:telepathy", body),)


def test_the_legacy_shape_becomes_a_call_and_a_result():
    asked = parse({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}})
    result = parse({"role": "function", "name": "f", "content": "ok"})
    assert (asked, result) == (assistant("", ToolCall("f", "f")), tool_result("f", "ok", name="f"))


def test_a_refusal_is_a_marked_text():
    refused = Text("no", Extra("openai", '{"type":"refusal"}'))
    assert whole({"role": "assistant", "content": None, "refusal": "no"}).parts == (refused,)
    parts = [{"type": "text", "text": "well"}, {"type": "refusal", "refusal": "no"}]
    assert whole({"role": "assistant", "content": parts}).parts == (Text("well"), refused)
    assert parse({"role": "assistant", "content": "well", "refusal": "no"}).parts == (Text("well"), refused)


def test_reasoning_goes_back_in_the_field_it_came_in():
    for field, extra in (("reasoning_content", None), ("reasoning", Extra("openai", '{"type":"reasoning"}'))):
        message = whole({"role": "assistant", "content": "yes", field: "hm"})
        assert message.parts == (Reasoning("hm", format="openai", extra=extra), Text("yes"))
    assert whole({"role": "assistant", "content": "yes", "reasoning_details": [{"x": 1}]}).extra is not None


@pytest.mark.parametrize(
    ("part", "media"),
    [
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}, IMAGE),
        ({"type": "image_url", "image_url": {"url": "https://x.test/a"}}, Media("", "url", "https://x.test/a")),
        (
            {"type": "image_url", "image_url": {"url": "https://x.test/a", "detail": "low"}, "new": 1},
            Media("", "url", "https://x.test/a", "", Extra("openai", '{"image_url":{"detail":"low"},"new":1}')),
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:application/pdf;base64,JVBE"}},
            Media("application/pdf", "base64", "JVBE", "", Extra("openai", '{"type":"image_url"}')),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
            Media("audio/wav", "base64", "UklG"),
        ),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "a.pdf"}},
            Media("application/pdf", "base64", "JVBE", "a.pdf"),
        ),
        (
            {"type": "file", "file": {"file_id": "file_1"}},
            Media("application/octet-stream", "file", "file_1", "", Extra("openai", "{}")),
        ),
        (
            {"type": "file", "file": {"file_data": f"data:image/png;base64,{PIXEL}", "filename": "a.png"}},
            Media("image/png", "base64", PIXEL, "a.png", Extra("openai", '{"type":"file"}')),
        ),
        ({"type": "image_url", "image_url": {"url": "data:,hi"}}, Media("", "url", "data:,hi")),
    ],
)
def test_media_of_every_source_are_read(part: dict[str, Any], media: Media):
    assert whole({"role": "user", "content": [part]}).parts == (media,)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "video_url", "video_url": {"url": "https://x.test"}},
        {"type": "file", "file": {"file_id": "a", "file_data": "b"}},
        {"type": "file", "file": {"file_data": "no data URL"}},
    ],
)
def test_a_part_of_an_unknown_kind_is_kept_whole(part: dict[str, Any]):
    kept = Opaque("openai", part["type"], json.dumps(part, separators=(",", ":")))
    assert whole({"role": "user", "content": [{"type": "text", "text": "t"}, part]}).parts == (Text("t"), kept)


def test_unknown_fields_return_byte_equal_without_cache_marks():
    part = {"type": "text", "text": "t", "new": {"ü": [1.5, None]}}
    message = whole({"role": "user", "content": [part], "id": "x"})
    assert message == Message(
        "user", (Text("t", Extra("openai", '{"new":{"ü":[1.5,null]}}')),), "", Extra("openai", '{"id":"x"}')
    )
    marked = {**part, "cache_control": {"type": "ephemeral"}, "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert parse({"role": "user", "content": [marked], "id": "x", "cache_control": {}}) == message


def test_an_empty_result_becomes_an_empty_text():
    for content in (None, [], ""):
        assert parse({"role": "tool", "tool_call_id": "a", "content": content}) == tool_result("a", "")
    assert OpenAIChat().render([tool_result("a", "")])[0]["content"] == ""


def test_sdk_objects_are_read_from_their_dump():
    inner = SdkObject(id="a", type="function", function={"name": "f", "arguments": "{}"})
    assert parse(SdkObject(role="assistant", content=None, tool_calls=[inner])) == assistant("", ToolCall("a", "f"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (None, "message is missing or null. It must be an object."),
        ([{"role": "user", "content": "x"}], "message is a list. It must be an object."),
        ({"role": ["user"]}, "message.role is a list. It must be system, developer, user,"),
        ({"role": "user", "content": None}, "A message of the role user has no content. Give it a string or a list"),
        ({"role": "user", "content": {"text": "x"}}, "message.content is an object with the keys 'text'"),
        ({"role": "user", "content": ["x"]}, "content[0] is the string 'x'. It must be an object."),
        ({"role": "user", "content": [{"type": "text"}]}, "content[0].text is missing or null. It must be a string."),
        ({"role": "user", "content": [{"type": "image_url", "image_url": 3}]}, "content[0].image_url is a number"),
        ({"role": "user", "content": [{"type": "tool_result"}]}, 'open the conversation with format="anthropic"'),
        ({"role": "user", "content": [{}]}, "content[0].type is missing or null. Every part of a content has a type"),
        ({"role": "assistant", "tool_calls": {}}, "tool_calls is an object without keys. It must be a list."),
        (call(id="a"), "tool_calls[0].type is missing or null. A tool call has the type function or custom."),
        (call(id=1, function={"name": "f"}), "tool_calls[0].id is a number or a boolean. It must be a string."),
        (call(function={"arguments": "{}"}), "tool_calls[0].function.name is missing or null"),
        (call(function={"name": "f", "arguments": [1]}), "tool_calls[0].function.arguments is a list"),
        (call(type="custom", custom={"name": "f"}), "tool_calls[0].custom.input is missing or null"),
        ({"role": "assistant", "refusal": True}, "message.refusal is a number or a boolean. It must be a string."),
        ({"role": "assistant", "function_call": "f"}, "function_call is the string 'f'. It must be an object."),
        ({"role": "tool", "tool_call_id": 7, "content": ""}, "message.tool_call_id is a number"),
        ({"role": "user", "content": "x", "new": float("inf")}, "message holds a number that is not finite"),
    ],
)
def test_an_error_names_the_place_of_a_wrong_shape(wrong: object, says: str):
    with pytest.raises(BadMessage) as caught:
        parse(wrong)
    assert says in str(caught.value)


def test_deep_nesting_is_refused_with_its_place():
    deep: Any = {}
    for _ in range(100_000):
        deep = {"x": deep}
    for wrong in (deep, {"role": "user", "content": [deep]}, call(function={"name": "f", "arguments": deep})):
        with pytest.raises(BadMessage):
            parse(wrong)
    with pytest.raises(BadMessage, match="message is nested deeper than 200 levels"):
        parse({"role": "user", "content": "x", "new": deep})


def test_usage_input_excludes_cached_tokens():
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    reply = SdkObject(choices=[{"index": 0, "message": {"content": "yes"}}], usage=usage)
    assert OpenAIChat().parse_reply(reply) == (assistant("yes"), Usage(30, 60, 10, 20, 5))


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (None, Usage()),
        ({}, Usage()),
        ({"prompt_tokens": 100, "prompt_tokens_details": None}, Usage(input=100)),
        ({"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 0}}, Usage(input=100, cache_read=0)),
        ({"prompt_tokens": 100, "prompt_cache_hit_tokens": 60}, Usage(input=40, cache_read=60)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}}, Usage(input=10, cache_read=60)),
        ({"prompt_tokens": True, "completion_tokens": -1}, Usage()),
    ],
)
def test_unreported_usage_is_none_not_zero(usage: object, read: Usage):
    reply = {"choices": [{"message": {"role": "assistant", "content": "yes"}}], "usage": usage}
    assert OpenAIChat().parse_reply(reply) == (assistant("yes"), read)


def test_a_message_alone_is_a_reply_too():
    assert OpenAIChat().parse_reply({"role": "assistant", "content": "yes"}) == (assistant("yes"), Usage())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"choices": []}, "reply.choices is empty"),
        ({"choices": [{"delta": {}}]}, "one chunk of a stream"),
        ({"choices": [{}]}, "reply.choices[0].message is missing or null"),
        ({"choices": 3}, "reply.choices is a number"),
        ({"role": "user", "content": "x"}, "The role of a reply is the string 'user'. It must be assistant."),
        ("yes", "reply is the string 'yes'. It must be an object."),
    ],
)
def test_an_error_names_a_value_that_is_not_a_reply(wrong: object, says: str):
    with pytest.raises(BadMessage) as caught:
        OpenAIChat().parse_reply(wrong)
    assert says in str(caught.value)


def test_media_of_results_follow_the_last_consecutive_result():
    """No other role may speak between an assistant's calls and their results."""
    asked = assistant("", ToolCall("a", "f"), ToolCall("b", "f"))
    answers = (tool_result("a", "seen", IMAGE), tool_result("b", "read"))
    shown = view(user("u"), asked, *answers, assistant("done"))
    wires = OpenAIChat().prompt(shown, profile=PROFILE)["messages"]
    assert wires[2:] == [
        {"role": "tool", "tool_call_id": "a", "content": "seen\n[Image: shown in the next user message]"},
        {"role": "tool", "tool_call_id": "b", "content": "read"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": SHOWN},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
            ],
        },
        {"role": "assistant", "content": "done"},
    ]
    assert OpenAIChat().render([user("u"), asked, *answers, assistant("done")]) == wires
    rendered = OpenAIChat().rendered(shown, profile=PROFILE)
    assert [[each.position for each in wire.entries] for wire in rendered] == [[1], [2], [3], [4], [], [5]]


def test_media_stay_in_their_result_if_the_profile_allows_it():
    profile = msgspec.structs.replace(PROFILE, media_in_results=True)
    shown = view(user("u"), assistant("", ToolCall("a", "f")), tool_result("a", "seen", IMAGE))
    wires = OpenAIChat().prompt(shown, profile=profile)["messages"]
    assert [wire["role"] for wire in wires] == ["user", "assistant", "tool"]
    assert [part["type"] for part in wires[2]["content"]] == ["text", "image_url"]


def test_media_that_cannot_be_sent_become_text():
    """One image that the provider refuses would make every later request fail."""
    bad = [
        Media("image/tiff", "base64", "SUkqAAgA", "scan.tiff"),
        Media("image/png", "base64", "not base64!"),
        Media("application/pdf", "url", "https://x.test/a.pdf"),
        Media("", "file", "file-of-another", extra=Extra("anthropic", "{}")),
    ]
    texts = [
        "[Image, not shown here: scan.tiff image/tiff]",
        "[Image, not shown here: image/png]",
        "[Document, not shown here: https://x.test/a.pdf]",
        "[Image, not shown here]",
    ]
    asked = assistant("", ToolCall("a", "f"))
    body = json.loads(OpenAIChat().body(view(user("u", *bad), asked, tool_result("a", "t", *bad)), profile=PROFILE))
    assert [part["text"] for part in body["messages"][0]["content"]] == ["u", *texts]
    assert body["messages"][2:] == [{"role": "tool", "tool_call_id": "a", "content": "\n".join(["t", *texts])}]
    assert check_body("openai", body) == []


TEXT_FILE = Media("text/csv", "base64", "YSxiCjEsMg==", "t.csv")
"""The text `a,b` and `1,2`."""


def test_files_other_than_pdf_become_text():
    """OpenAI reads no other files here, and asks to send a text as text."""
    files = (Media("application/pdf", "base64", "JVBERi0="), TEXT_FILE, Media("video/mp4", "base64", "AAAA"))
    asked = assistant("", ToolCall("a", "f"))
    prompt = OpenAIChat().prompt(view(user("u", *files), asked, tool_result("a", "t", TEXT_FILE)), profile=PROFILE)
    assert prompt["messages"][0]["content"][1:] == [
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "file.pdf"}},
        {"type": "text", "text": "[t.csv]\na,b\n1,2"},
        {"type": "text", "text": "[Video, not shown here: video/mp4]"},
    ]
    assert prompt["messages"][2]["content"] == "t\n[t.csv]\na,b\n1,2"
    assert check_body("openai", prompt) == []


def test_a_file_that_came_in_this_format_stays_a_file():
    """Other servers of this API read more files than OpenAI."""
    part = {"type": "file", "file": {"file_data": "data:text/csv;base64,YSxiCjEsMg==", "filename": "t.csv"}}
    (message,) = OpenAIChat().parse({"role": "user", "content": [part]})
    assert OpenAIChat().prompt(view(message), profile=PROFILE)["messages"][0]["content"] == [part]


@pytest.mark.parametrize(("mime", "form"), [("audio/mpeg", "mp3"), ("audio/x-wav", "wav"), ("audio/wav", "wav")])
def test_a_sound_has_the_format_that_openai_knows(mime: str, form: str):
    shown = view(user("hear", Media(mime, "base64", "AAAA")))
    (_, sound) = OpenAIChat().prompt(shown, profile=PROFILE)["messages"][0]["content"]
    assert sound == {"type": "input_audio", "input_audio": {"data": "AAAA", "format": form}}


def test_only_the_users_side_shows_media():
    shown = view(Message("system", (Text("s"), IMAGE)), user("u"), Message("assistant", (Text("a"), IMAGE)))
    assert check_body("openai", OpenAIChat().body(shown, profile=PROFILE)) == []
    exported = OpenAIChat().render([entry.message for entry in shown])
    assert [part["type"] for part in exported[2]["content"]] == ["text", "image_url"]


def test_only_an_assistant_has_refusals():
    refused = Text("no", Extra("openai", '{"type":"refusal"}'))
    shown = view(Message("system", (Text("s"), refused)), Message("user", (Text("u"), refused)), assistant("a"))
    assert check_body("openai", OpenAIChat().body(shown, profile=PROFILE)) == []


def test_a_strict_server_gets_only_known_fields():
    """F09: strict gateways refuse extra keys."""
    noted = Text("t", Extra("openai", '{"new":1}'))
    asked = ToolCall("a", "f", '{"input":"x"}', Extra("openai", '{"type":"custom","new":1}'))
    shown = view(
        Message("system", (noted,), extra=Extra("openai", '{"role":"developer","new":1}')),
        Message("user", (noted, Media("", "url", "https://x.test", "", Extra("openai", '{"image_url":{"new":1}}')))),
        Message("user", (Text("t"), Opaque("openai", "new_part", '{"type":"new_part"}'))),
        Message("assistant", (Reasoning("hm", format="openai"), noted, asked), extra=Extra("openai", '{"new":1}')),
        Message("tool", (ToolResult("a", (noted,), name="f"),), extra=Extra("openai", '{"new":1}')),
    )
    assert check_body("openai", OpenAIChat().body(shown, profile=STRICT), strict=True) == []
    assert b"new" not in OpenAIChat().body(shown, profile=STRICT)
    takes_all = msgspec.structs.replace(PROFILE, unknown_keys=True)
    assert OpenAIChat().body(shown, profile=takes_all).count(b"new") == 10
    documented = OpenAIChat().body(shown, profile=PROFILE)
    assert documented.count(b"new") == 7  # Blocks keep theirs; messages do not.


def test_reasoning_returns_only_to_its_own_format():
    foreign = (
        Reasoning("theirs", "s", format="anthropic"),
        Reasoning("nobody's"),
        Reasoning(encrypted="x", format="openai"),
    )
    assert OpenAIChat().render([Message("assistant", (*foreign, Text("t")))]) == [{"role": "assistant", "content": "t"}]


def test_a_request_replaces_characters_that_names_must_not_have():
    named = Message("user", (Text("u"),), "Ann <ann@x.test>")
    assert OpenAIChat().prompt(view(named), profile=PROFILE)["messages"][0]["name"] == "Ann__ann@x.test_"
    assert OpenAIChat().render([named])[0]["name"] == "Ann <ann@x.test>"


def test_an_entry_without_content_for_the_provider_has_no_message():
    nothing = Message("assistant", (Opaque("anthropic", "k", '{"type":"k"}'),))
    assert OpenAIChat().body(view(user("u"), nothing), profile=PROFILE).count(b"role") == 1


@pytest.mark.parametrize(
    ("prompt", "messages"),
    [
        (None, []),
        ("", []),
        ("s", [{"role": "system", "content": "s"}]),
        (["s", "t"], [{"role": "system", "content": "s\n\nt"}]),
        ([{"type": "text", "text": "s", "cache_control": {}}], [{"role": "system", "content": "s"}]),
        ([{"role": "developer", "content": "s"}], [{"role": "developer", "content": "s"}]),
        ({"role": "system", "content": "s"}, [{"role": "system", "content": "s"}]),
    ],
)
def test_the_callers_system_prompt_precedes_that_of_the_view(prompt: object, messages: list[dict[str, Any]]):
    """They are one message: the templates of many open models take only one, and the fields of the view's count."""
    request = OpenAIChat().prompt(view(user("u")), profile=PROFILE, system=prompt)
    assert request == {"messages": [*messages, {"role": "user", "content": "u"}]}
    text = "\n\n".join([*(message["content"] for message in messages), "own"])
    expected = [{"role": "system", "content": text}, {"role": "user", "content": "u"}]
    shown = view(system("own"), user("u"))
    assert OpenAIChat().prompt(shown, profile=PROFILE, system=prompt) == {"messages": expected}
    assert json.loads(OpenAIChat().body(shown, profile=PROFILE, system=prompt)) == {"messages": expected}


def test_a_second_system_message_of_the_view_stays():
    shown = view(system("one"), system("two"), user("u"))
    for prompt, first in ((None, "one"), ("s", "s\n\none")):
        messages = OpenAIChat().prompt(shown, profile=PROFILE, system=prompt)["messages"]
        assert [message["content"] for message in messages] == [first, "two", "u"]


def test_tools_in_anthropics_shape_are_converted():
    schema = {"type": "object", "properties": {"p": {"type": "string"}}}
    tools = [
        {"type": "function", "function": {"name": "own", "parameters": schema}},
        {"name": "f", "description": "d", "input_schema": schema, "cache_control": {"type": "ephemeral"}},
        {"type": "function", "name": "g", "parameters": schema, "strict": None},
    ]
    assert OpenAIChat().prompt(view(user("u")), profile=PROFILE, tools=tools)["tools"] == [
        tools[0],
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}},
        {"type": "function", "function": {"name": "g", "parameters": schema}},
    ]


def test_an_error_names_a_tool_of_a_wrong_shape():
    with pytest.raises(BadMessage, match=r"tools\[0\] is the string 'grep'"):
        OpenAIChat().prompt(view(user("u")), profile=PROFILE, tools=["grep"])  # type: ignore[list-item]


def test_a_body_equals_the_prompt():
    shown = view(system("s"), user("u", IMAGE), assistant("", ToolCall("a", "f")), tool_result("a", "ok", IMAGE))
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    for shown_view in (shown, view()):
        for extra in ({}, {"system": "x"}, {"tools": tools}, {"system": "x", "tools": tools}):
            body = OpenAIChat().body(shown_view, profile=PROFILE, **extra)  # type: ignore[arg-type]
            assert json.loads(body) == OpenAIChat().prompt(shown_view, profile=PROFILE, **extra)  # type: ignore[arg-type]


def test_changing_a_prompt_does_not_change_the_next_one():
    format, tools = OpenAIChat(), [{"type": "function", "function": {"name": "f", "parameters": {"x": []}}}]
    shown = view(user("u", IMAGE), assistant("", ToolCall("a", "f")), tool_result("a", "1", IMAGE))
    rules = [{"role": "system", "content": [{"type": "text", "text": "s"}]}]

    def ask() -> dict[str, Any]:
        return format.prompt(shown, profile=PROFILE, system=rules, tools=tools)

    def spoil(value: Any) -> None:
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, dict | list):
                spoil(inner)
        value.clear()

    before = json.dumps([ask(), tools, rules])
    spoil(ask())
    assert json.dumps([ask(), tools, rules]) == before


def test_a_longer_view_extends_the_body_byte_for_byte():
    """F27: with no new edit, each rendering extends the last one."""
    messages = [user("u")]
    for step in range(20):
        messages += [assistant("", ToolCall(f"c{step}", "f")), tool_result(f"c{step}", "r", IMAGE)]
    format, shown = OpenAIChat(), entries(*messages)
    bodies = [format.body(view(*shown[: 1 + 2 * n]), profile=PROFILE, system="x") for n in range(1, 20)]
    for before, after in pairwise(bodies):
        assert after.startswith(before.removesuffix(b"]}"))


def test_the_stream_index_of_a_call_is_dropped():
    call = {"id": "a", "type": "function", "function": {"name": "grep", "arguments": "{}"}}
    gathered = {"role": "assistant", "content": None, "tool_calls": [{**call, "index": 0}]}
    chat = OpenAIChat()
    (messages,) = chat.parse(gathered)
    assert chat.render([messages]) == [{"role": "assistant", "content": None, "tool_calls": [call]}]
