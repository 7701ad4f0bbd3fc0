"""The Gemini format: contents to messages and back, pairs without ids, signatures, requests and replies."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from format_views import IMAGE, PIXEL, view

from foveate import open_conversation
from foveate.core.legalize import NO_ANSWER
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
from foveate.core.stamps import Stop, Usage
from foveate.core.system_messages import OPENING
from foveate.edits import Replace, Target
from foveate.errors import BadMessage
from foveate.formats import get_format
from foveate.formats.gemini.write import NO_SIGNATURE, NOTE, SHOWN
from foveate.testing.bodies import check_body

PROFILE = PROFILES["gemini"]
Wire = dict[str, Any]


class SdkObject:
    """An object that dumps itself as those of google-genai: set fields, by alias, with bytes and enumerations."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, exclude_unset: bool = False, by_alias: bool = False, mode: str = "python") -> Wire:
        assert exclude_unset
        assert by_alias
        assert mode == "python"
        return self.fields


class SdkContent(SdkObject):
    """A content as google-genai has it."""

    def __init__(self, content: Wire) -> None:
        super().__init__(**content)
        self.role = content["role"]


def call(name: str = "look", id: str | None = None, signature: str = "", **args: Any) -> Wire:
    inner = {"name": name, "args": args} if id is None else {"id": id, "name": name, "args": args}
    return {"functionCall": inner, **({"thoughtSignature": signature} if signature else {})}


def answer(text: str = "ok", name: str = "look", id: str | None = None, **more: Any) -> Wire:
    inner = {"name": name, "response": {"output": text}, **more}
    return {"functionResponse": inner if id is None else {"id": id, **inner}}


def said(*parts: Wire) -> Wire:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Wire) -> Wire:
    return {"role": "model", "parts": list(parts)}


def parsed(*wires: object) -> list[Message]:
    format = get_format("gemini")
    return [message for wire in wires for message in format.parse(wire)]


def contents(*shown: Message, model: str = "", **options: Any) -> list[Wire]:
    """Return the contents of a request with these messages, which the checker accepts."""
    profile = profile_for("gemini", model)
    format = get_format("gemini")
    request = format.prompt(view(*shown), profile=profile, **options)
    body = json.loads(format.body(view(*shown), profile=profile, **options))
    assert request["contents"] == body["contents"]
    assert check_body("gemini", {**body, "model": model}) == []
    wires: list[Wire] = request["contents"]
    return wires


CONVERSATION: list[Wire] = [
    said(
        {"text": "Compare.", "partMetadata": {"a": None}},
        {"inlineData": {"mimeType": "image/png", "data": PIXEL}, "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}, "videoMetadata": {"fps": 2.0}},
        {"fileData": {"fileUri": "gs://bucket/a.pdf", "mimeType": "application/pdf", "displayName": "a"}},
    ),
    model(
        {"text": "I look first.", "thought": True},
        {"text": "Both at once."},
        call(signature="c2lnbmVk", at=1, depth={"x_y": [1, 2.5, None]}),
        call(at=2),
        call("a.b:c-d", "call-7"),
    ),
    said(
        answer("first"),
        {"functionResponse": {"name": "look", "response": {"result": "second"}, "scheduling": "SILENT"}},
        {"functionResponse": {"id": "call-7", "name": "a.b:c-d", "response": {"rows": [1, 2.0], "more": None}}},
    ),
    model(
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}, "thoughtSignature": "QQ=="},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
        {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}},
        {"text": "Done.", "thoughtSignature": "c2ln"},
        {"text": "", "thoughtSignature": "bGFzdA=="},
    ),
    {"role": "function", "parts": [{"functionResponse": {"name": "z", "response": {"error": "no such tool"}}}]},
    {"role": "model", "parts": [{"hologram": {"x": 1}, "thought": True}], "turnComplete": True},
    said({"text": ""}, {"functionResponse": {"name": "q", "response": {}}}),
]


def test_a_conversation_comes_back_as_it_was():
    *whole, mixed = CONVERSATION
    assert get_format("gemini").render(parsed(*whole)) == whole
    # The API wants function responses apart from other parts, so they come back apart.
    assert get_format("gemini").render(parsed(mixed)) == [said({"text": ""}), said(mixed["parts"][1])]


def test_names_of_the_sdk_are_read_as_those_of_the_api():
    signature, image = b"\xff\xfe\xfasigned", b"\xfb\xff\xfe"
    python = [
        {
            "role": "model",
            "parts": [
                {"function_call": {"name": "look", "args": {"snake_case": 1}}, "thought_signature": signature},
                {"code_execution_result": {"outcome": "OUTCOME_OK"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"function_response": {"name": "look", "response": {"snake_case": 2}, "will_continue": False}},
                {"inline_data": {"mime_type": "image/png", "data": image, "display_name": "a"}},
                {"file_data": {"file_uri": "gs://b/c", "mime_type": "image/png"}},
            ],
        },
    ]
    objects = [
        SdkObject(**{**each, "parts": [SdkObject(**part) for part in each["parts"]]})  # type: ignore[dict-item]
        for each in python
    ]
    first = [
        {
            "functionCall": {"name": "look", "args": {"snake_case": 1}},
            "thoughtSignature": b64encode(signature).decode(),
        },
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
    ]
    data = b64encode(image).decode()
    assert "+" in data or "/" in data
    second = [
        {"functionResponse": {"name": "look", "response": {"snake_case": 2}, "willContinue": False}},
        {"inlineData": {"mimeType": "image/png", "data": data, "displayName": "a"}},
        {"fileData": {"mimeType": "image/png", "fileUri": "gs://b/c"}},
    ]
    expected = [{"role": "model", "parts": first}, said(second[0]), said(*second[1:])]
    assert json.loads(json.dumps(get_format("gemini").render(parsed(*python)))) == expected
    assert parsed(*objects) == parsed(*python)


def test_a_role_that_is_a_default_of_the_sdk_s_class_is_read():
    content = SdkObject(parts=[call("look")])
    content.role = "model"  # type: ignore[attr-defined]
    assert parsed(content) == parsed({"role": "model", "parts": [call("look")]})


def test_url_safe_base64_of_the_sdk_becomes_standard_base64():
    part = {"inlineData": {"mimeType": "image/png", "data": "-_-_"}}
    assert parsed(said(part)) == [Message("user", (Media("image/png", "base64", "+/+/"),))]


def test_a_signature_is_the_same_in_every_alphabet_and_as_bytes():
    signed = {"text": "a", "thoughtSignature": "//79"}
    assert parsed(model({**signed, "thoughtSignature": "__79"})) == parsed(model(signed))
    assert parsed(model({**signed, "thoughtSignature": b"\xff\xfe\xfd"})) == parsed(model(signed))
    [message] = parsed(model(call(signature=NO_SIGNATURE)))
    assert get_format("gemini").render([message]) == [model(call(signature=NO_SIGNATURE))]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("hi", user("hi")),
        (["hi", {"text": "you"}], Message("user", (Text("hi"), Text("you")))),
        ({"text": "hi"}, user("hi")),
        ({"parts": [{"text": "hi"}]}, user("hi")),
        ({"functionCall": {"name": "f"}}, Message("assistant", parsed(model(call("f")))[0].parts)),
        ({"role": "model"}, Message("assistant")),
        ({"role": "system", "parts": [{"text": "hi"}]}, system("hi")),
        (model({}, {"text": "hi"}), assistant("hi")),  # The SDK leaves {} of a part that it does not know.
    ],
)
def test_short_forms_are_read(value: object, message: Message):
    assert parsed(value) == [message]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"role": "assistant", "content": "hi"}, "content.role is the string 'assistant'"),
        ({"role": "user", "content": "hi"}, "content.parts is missing"),
        (model(answer()), "a functionResponse in a content of the role model"),
        (said(call()), "a functionCall in a content of the role user"),
        (model({"functionCall": {"name": "f", "args": "{}"}}), r"functionCall.args is the string '\{\}'"),
        (model({"functionCall": {"args": {}}}), "functionCall.name is missing or null"),
        (model({"functionCall": {"id": 7, "name": "f"}}), "functionCall.id is a number"),
        (said({"functionResponse": {"name": "f", "response": "ok"}}), "functionResponse.response is the string 'ok'"),
        (said({"inlineData": {"mimeType": "image/png"}}), r"inlineData.data is missing or null"),
        ([], "The list of parts is empty"),
        (7, "content is a number"),
    ],
)
def test_what_is_no_content_is_refused_with_a_reason(wrong: object, problem: str):
    with pytest.raises(BadMessage, match=problem):
        parsed(wrong)


def test_a_text_with_the_flag_thought_is_reasoning():
    [message] = parsed(model({"text": "Hm.", "thought": True}, {"text": "Yes.", "thought": False}))
    assert message.parts == (Reasoning("Hm.", format="gemini"), Text("Yes."))


def test_a_signature_stays_with_the_part_that_it_came_with():
    wire = model({"text": "a"}, {"text": "b", "thoughtSignature": "Yg=="}, {"text": "", "thoughtSignature": "Yw=="})
    [message] = parsed(wire)
    assert message.text == "a\nb"
    assert contents(user("go"), message, user("on"))[1] == wire


def test_a_response_is_readable_text():
    results = [message.result for message in parsed(*CONVERSATION) if message.result]
    assert [(result.text, result.state) for result in results] == [
        ("first", "ok"),
        ("second", "ok"),
        ('{"rows":[1,2.0],"more":null}', "ok"),
        ("no such tool", "error"),
        ("", "ok"),
    ]


def test_the_role_function_comes_back():
    wires = [{"role": "function", "parts": [{"text": "a"}]}, {"role": "function", "parts": [answer("b")]}]
    assert get_format("gemini").render(parsed(*wires)) == wires


def test_a_part_of_a_response_that_is_no_media_is_kept_whole():
    odd = answer("a", parts=[{"text": "b"}, {"functionResponse": {"name": "f"}}, {"text": "c", "thought": True}])
    [message] = parsed(said(odd))
    assert message.text == "a"
    assert get_format("gemini").render([message]) == [said(odd)]


def test_an_edited_response_stays_under_its_field():
    chat = open_conversation("edited", format="gemini", window=100_000, policy="none")
    chat.append("go")
    chat.record(reply(model(call(signature="c2ln"), call(at=2))))
    chat.append(said(answer("first"), {"functionResponse": {"name": "look", "response": {"rows": [1], "n": 1}}}))
    chat.edit(_replaced(chat, 3, "[cut]"), _replaced(chat, 4, "[cut too]"))
    shown = chat.prompt()["contents"][2]["parts"]
    assert [part["functionResponse"]["response"] for part in shown] == [{"output": "[cut]"}, {"output": "[cut too]"}]


def _replaced(chat: Any, position: int, text: str) -> Any:
    return Replace(Target(chat.view.entries[position - 1].id), (Text(text),))


# --------------------------------------------------------------------------------------------------- pairs without ids


def test_responses_without_ids_answer_calls_of_their_name_in_order():
    chat = open_conversation("pairs", format="gemini", window=100_000)
    chat.append("go")
    chat.record(reply(model(call("a", signature="c2ln", n=1), call("b", n=2), call("a", n=3))))
    assert [each.arguments for each in chat.open_calls()] == ['{"n":1}', '{"n":2}', '{"n":3}']
    chat.append(said(answer("for b", "b"), answer("for the first a", "a")))
    assert [each.arguments for each in chat.open_calls()] == ['{"n":3}']
    chat.append(said(answer("for the second a", "a")))
    assert chat.open_calls() == ()
    request = chat.prompt()
    assert request["contents"][1:] == [
        model(call("a", signature="c2ln", n=1), call("b", n=2), call("a", n=3)),
        said(answer("for the first a", "a"), answer("for b", "b"), answer("for the second a", "a")),
    ]
    assert check_body("gemini", request) == []


def test_a_response_without_an_id_answers_a_call_that_has_one():
    """Gemini 3 gives its calls ids; many programs send only the name back."""
    chat = open_conversation("ids", format="gemini", window=100_000)
    chat.append("go")
    chat.record(reply(model(call("a", "id-1", "c2ln"), call("a", "id-2"))))
    chat.append(said(answer("one", "a")))
    chat.append(said(answer("two", "a", "id-2")))
    assert chat.open_calls() == ()
    assert chat.prompt()["contents"][2] == said(answer("one", "a"), answer("two", "a", "id-2"))


def test_no_id_is_sent_that_the_client_did_not_have():
    first, second = model(call(signature="c2ln")), model(call(signature="c2ln"))
    sent = contents(*parsed("go", first, said(answer()), second, said(answer("again"))))
    assert sent == [said({"text": "go"}), first, said(answer()), second, said(answer("again"))]


def test_a_call_without_an_answer_gets_a_response_without_an_id():
    chat = open_conversation("open", format="gemini", window=100_000)
    chat.append("go")
    chat.record(reply(model(call(signature="c2ln"))))
    chat.append("Never mind.")
    request = chat.prompt()
    assert request["contents"][2:] == [
        said({"functionResponse": {"name": "look", "response": {"error": NO_ANSWER}}}),
        said({"text": "Never mind."}),
    ]
    assert check_body("gemini", request) == []


def test_answers_stand_in_the_order_of_their_calls():
    calls = assistant("", ToolCall("x", "a"), ToolCall("y", "b"))
    sent = contents(user("go"), calls, tool_result("y", "2"), tool_result("x", "1"))
    assert sent[2] == said(answer("1", "a", "x"), answer("2", "b", "y"))


# -------------------------------------------------------------------------------------------------- what requests hold


def test_a_call_without_a_signature_gets_the_documented_one():
    """Gemini 3 refuses a call of the current turn without one; only the first call of a content needs it."""
    calls = assistant("", ToolCall("x", "a"), ToolCall("y", "b"))
    answers = (tool_result("x", "1"), tool_result("y", "2"))
    for name in ("", "gemini-3-pro-preview", "models/gemini-3.8-flash", "gemini-flash-latest"):
        parts = contents(user("go"), calls, *answers, model=name)[1]["parts"]
        assert [part.get("thoughtSignature") for part in parts] == [NO_SIGNATURE, None]
    for name in ("gemini-2.5-flash", "gemini-1.5-pro", "gemma-4-27b-it"):
        parts = contents(user("go"), calls, *answers, model=name)[1]["parts"]
        assert [part.get("thoughtSignature") for part in parts] == [None, None]


def test_a_call_follows_the_side_of_the_user():
    calls = assistant("", ToolCall("x", "a"))
    sent = contents(user("go"), assistant("Wait."), assistant("Now."), calls, tool_result("x", "1"))
    assert [(wire["role"], "functionCall" in wire["parts"][0]) for wire in sent] == [
        ("user", False),
        ("model", False),
        ("model", False),
        ("user", False),
        ("model", True),
        ("user", False),
    ]
    assert sent[3] == said({"text": OPENING})


def test_a_request_does_not_end_with_the_model_where_that_is_refused():
    asked = (user("go"), assistant("I"))
    for name in ("", "gemini-3.7-flash", "gemini-4-pro"):
        assert contents(*asked, model=name)[-1] == said({"text": OPENING})
    for name in ("gemini-2.5-pro", "gemini-3-flash-preview", "gemini-3.1-pro"):
        assert contents(*asked, model=name)[-1] == model({"text": "I"})


def test_a_content_of_responses_holds_nothing_else():
    calls = assistant("", ToolCall("x", "a"))
    sent = contents(user("go"), calls, tool_result("x", "1"), user("And be quick."))
    assert sent[2:] == [said(answer("1", "a", "x")), said({"text": "And be quick."})]


def test_media_of_results_stay_in_the_response_where_the_model_reads_them():
    sound = Media("audio/wav", "base64", "UklGRg==")
    shown = tool_result("x", "seen", IMAGE, sound)
    asked = (user("go"), assistant("", ToolCall("x", "a")), shown)
    new = contents(*asked, model="gemini-3-pro-preview")
    assert new[2]["parts"][0]["functionResponse"]["parts"] == [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
    assert new[3] == said({"text": SHOWN}, {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}})
    old = contents(*asked, model="gemini-2.5-pro")
    assert "parts" not in old[2]["parts"][0]["functionResponse"]
    assert old[2]["parts"][0]["functionResponse"]["response"]["output"] == (
        "seen\n[Image: shown in the next message of the user]\n[Sound: shown in the next message of the user]"
    )
    assert [part.keys() for part in old[3]["parts"]] == [{"text"}, {"inlineData"}, {"inlineData"}]


def test_media_that_gemini_does_not_read_become_text():
    foreign = Media("image/png", "file", "file_1", "", Extra("anthropic", "{}"))
    sent = contents(user("Look.", Media("image/gif", "base64", "R0lGODdh"), foreign))
    assert [part.get("text", "")[:18] for part in sent[0]["parts"]] == [
        "Look.",
        "[Image, not shown ",
        "[Image, not shown ",
    ]


def test_the_type_of_an_address_follows_its_ending():
    picture = Media("", "url", "https://example.com/a.PNG?size=2")
    unknown = Media("", "url", "https://example.com/a")
    assert contents(user("Look.", picture, unknown))[0]["parts"][1:] == [
        {"fileData": {"mimeType": "image/png", "fileUri": "https://example.com/a.PNG?size=2"}},
        {"fileData": {"fileUri": "https://example.com/a"}},
    ]


def test_a_list_that_comes_back_is_recognised():
    """The caller's own list holds what the SDK's JSON makes of it."""
    chat = open_conversation("list", format="gemini", window=100_000)
    theirs: list[Any] = [said({"text": "go"})]
    for number in range(3):
        request = chat.prompt(messages=theirs)
        assert check_body("gemini", request) == []
        chat.record(reply(model(call(signature="//79", n=number), call(n=number))))
        again = {"function_call": {"name": "look", "args": {"n": number}}, "thought_signature": "__79"}
        theirs += [model(again, call(n=number)), said(answer("1"), answer("2"))]
    chat.prompt(messages=theirs)
    assert (chat.name, len(chat)) == ("list", 10)


@pytest.mark.parametrize(
    "form", [dict, lambda content: json.dumps(content).encode(), SdkContent], ids=["dict", "json", "sdk"]
)
def test_the_pieces_of_an_answer_are_one_message(form: Callable[[Wire], object]):
    """Chats of Google's SDKs keep a streamed answer as one content for each of its pieces."""
    chat = open_conversation("pieces", format="gemini", window=100_000)
    theirs: list[Any] = [said({"text": "go"})]
    for number in range(3):
        request = chat.prompt(messages=[form(content) for content in theirs])
        assert check_body("gemini", request) == []
        ids = f"a{number}", f"b{number}"
        called = [call(id=ids[0], signature="QQ=="), call(id=ids[1])]
        chat.record(reply(model({"text": "I look."}, *called)))
        pieces = [model({"text": "I "}), model({"text": "look."}), model(*called)]
        theirs += [*pieces, said(answer("1", id=ids[0]), answer("2", id=ids[1]))]
    kept = json.dumps(theirs)
    view = chat.prepare(messages=[form(content) for content in theirs])
    assert (chat.name, len(chat)) == ("pieces", 10)
    assert [item.places for item in chat.request_items(view).items] == [
        *(range(0, 1), range(1, 4), range(4, 5), range(5, 8), range(8, 9), range(9, 12), range(12, 13))
    ]
    assert json.dumps(theirs) == kept


def test_names_of_tools_keep_dots_and_colons():
    """Other characters, and a digit in front, are refused."""
    calls = [ToolCall(f"c{n}", name) for n, name in enumerate(("files.read", "a:b", "two words", "7up", ""))]
    answers = [tool_result(each.call_id, "ok") for each in calls]
    chat = open_conversation("names", format="gemini", window=100_000)
    chat.append([user("go"), assistant("", *calls), *answers])
    request = chat.prompt()
    assert check_body("gemini", request) == []
    names = ["files.read", "a:b", "two_words", "_7up", "unnamed_tool"]
    assert [part["functionCall"]["name"] for part in request["contents"][1]["parts"]] == names
    assert [part["functionResponse"]["name"] for part in request["contents"][2]["parts"]] == names


def test_a_system_message_in_the_middle_travels_as_the_users():
    sent = contents(user("go"), assistant("a"), system("Stop."), user("on"))
    assert sent[2] == said({"text": f"{NOTE}Stop."}, {"text": "on"})


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        (None, ["own"]),
        ("Be brief.", ["Be brief.", "own"]),
        (["a", "", {"text": "b"}], ["a", "b", "own"]),
        ({"parts": [{"text": "a"}, "b"]}, ["a", "b", "own"]),
        ([{"type": "text", "text": "a"}, {"role": "system", "content": "b"}], ["a", "b", "own"]),
        (SdkObject(parts=[SdkObject(text="a")]), ["a", "own"]),
    ],
)
def test_the_system_prompt_goes_to_the_instruction(given: object, texts: list[str]):
    format, shown = get_format("gemini"), view(system("own"), user("go"))
    expected = {"parts": [{"text": text} for text in texts]}
    request = format.prompt(shown, profile=PROFILE, system=given)
    assert request == {"contents": [said({"text": "go"})], "config": {"system_instruction": expected}}
    body = json.loads(format.body(shown, profile=PROFILE, system=given))
    assert body == {"systemInstruction": expected, "contents": [said({"text": "go"})]}


def test_tools_of_every_form_become_one_list_of_functions():
    schema = {"type": "object", "properties": {"at": {"type": "string"}}}
    tools: list[Any] = [
        {"type": "function", "function": {"name": "a", "description": "A.", "parameters": schema, "strict": True}},
        {"type": "function", "name": "b", "parameters": schema},
        {"name": "c", "input_schema": schema},
        {"functionDeclarations": [{"name": "d", "parametersJsonSchema": schema}], "codeExecution": {}},
        {"function_declarations": [{"name": "e", "parameters": {"type": "OBJECT"}}]},
        {"type": "custom", "custom": {"name": "f", "description": "Free."}},
        {"name": "g", "description": "G."},
        {"googleSearch": {}},
    ]
    functions, *others = get_format("gemini").prompt(view(user("go")), profile=PROFILE, tools=tools)["config"]["tools"]
    assert functions == {
        "functionDeclarations": [
            {"name": "a", "description": "A.", "parametersJsonSchema": schema},
            {"name": "b", "parametersJsonSchema": schema},
            {"name": "c", "parametersJsonSchema": schema},
            {"name": "d", "parametersJsonSchema": schema},
            {"name": "e", "parameters": {"type": "OBJECT"}},
            {
                "name": "f",
                "description": "Free.",
                "parametersJsonSchema": {
                    "type": "object",
                    "properties": {"input": {"type": "string"}},
                    "required": ["input"],
                },
            },
            {"name": "g", "description": "G."},
        ]
    }
    assert others == [{"codeExecution": {}}, {"googleSearch": {}}]


def test_functions_of_gemini_become_tools_of_the_other_providers():
    declared = {
        "functionDeclarations": [
            {"name": "a", "description": "A.", "parametersJsonSchema": {"type": "object"}},
            {"name": "b", "parameters": {"type": "OBJECT", "properties": {"x": {"type": "STRING"}}}},
            {"name": "c"},
        ]
    }
    shown = view(user("go"))
    schemas = [
        {"type": "object"},
        {"type": "object", "properties": {"x": {"type": "string"}}},
        {"type": "object", "properties": {}},
    ]
    anthropic = get_format("anthropic").prompt(shown, profile=PROFILES["anthropic"], tools=[declared])["tools"]
    assert [(tool["name"], tool["input_schema"]) for tool in anthropic] == list(zip("abc", schemas, strict=True))
    openai = get_format("openai").prompt(shown, profile=PROFILES["openai"], tools=[declared])["tools"]
    assert [tool["function"]["parameters"] for tool in openai] == schemas


def test_a_body_begins_like_the_body_before():
    chat = open_conversation("prefix", format="gemini", window=100_000, policy="none")
    bodies: list[bytes] = []
    for turn in range(4):
        chat.append(f"go {turn}")
        bodies.append(_body(chat))
        chat.record(reply(model(call("a", signature="c2ln"), call("b"))))
        chat.append(said(answer("1", "b"), answer("2", "a")))
        bodies.append(_body(chat))
        chat.record(reply(model({"text": "Done."})))
    for before, after in pairwise(bodies):
        assert after.startswith(before[:-2])


def _body(chat: Any) -> bytes:
    body: bytes = chat.format.body(chat.prepare(), profile=chat._agent.profile)
    return body


# ------------------------------------------------------------------------------------------------------------- replies


def reply(content: Wire | None, finish: str = "STOP", **usage: int) -> Wire:
    candidate = {"finishReason": finish, "index": 0, **({"content": content} if content is not None else {})}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3.8-flash", "responseId": "r"}


def test_a_reply_gives_its_message_and_usage():
    counts = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 20,
        "toolUsePromptTokenCount": 5,
        "totalTokenCount": 132,
    }
    message, usage = get_format("gemini").parse_reply(reply(model({"text": "hi"}), **counts))
    assert message == assistant("hi")
    assert usage == Usage(input=45, cache_read=60, cache_write=None, output=27, reasoning=20)
    inside = {"response": reply(model({"text": "hi"}), **counts), "traceId": "t1"}  # As Code Assist and batches.
    assert get_format("gemini").parse_reply(inside) == (message, usage)
    assert get_format("gemini").stop_of(inside) == get_format("gemini").stop_of(inside["response"])


def test_unknown_counts_are_none():
    assert get_format("gemini").parse_reply(reply(model({"text": "hi"})))[1] == Usage()
    assert get_format("gemini").parse_reply(model({"text": "hi"}))[1] == Usage()


@pytest.mark.parametrize(
    ("finish", "part", "stop"),
    [
        ("STOP", {"text": "hi"}, Stop("end", "STOP")),
        ("STOP", call(), Stop("calls", "STOP")),
        ("MAX_TOKENS", {"text": "hi"}, Stop("length", "MAX_TOKENS")),
        ("SAFETY", None, Stop("filtered", "SAFETY")),
        ("MALFORMED_FUNCTION_CALL", None, Stop("other", "MALFORMED_FUNCTION_CALL")),
    ],
)
def test_the_finish_reason_is_read(finish: str, part: Wire | None, stop: Stop):
    wire = reply(model(part) if part else None, finish)
    format = get_format("gemini")
    assert format.stop_of(wire) == stop
    assert format.parse_reply(wire)[0] == (parsed(model(part))[0] if part else Message("assistant"))


def test_a_blocked_prompt_raises_with_its_reason():
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}}
    assert get_format("gemini").stop_of(blocked) == Stop("filtered", "PROHIBITED_CONTENT")
    with pytest.raises(BadMessage, match="Gemini blocked the prompt: PROHIBITED_CONTENT"):
        get_format("gemini").parse_reply(blocked)
    with pytest.raises(BadMessage, match="candidates is empty"):
        get_format("gemini").parse_reply({"candidates": []})


def test_a_switch_from_another_provider_keeps_calls_and_text():
    wires: list[Wire] = [
        {"role": "user", "content": "why?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"}]},
    ]
    messages = [message for wire in wires for message in get_format("anthropic").parse(wire)]
    chat = open_conversation("switch", format="gemini", window=100_000)
    chat.append(messages)
    assert chat.prompt()["contents"] == [
        said({"text": "why?"}),
        model(call("read", "toolu_1", NO_SIGNATURE, path="a.py")),
        said(answer("x = 1", "read", "toolu_1")),
    ]


def test_blocks_of_other_providers_stay_away():
    foreign = Message("user", (Text("see"), Opaque("anthropic", "x", '{"type":"x"}')))
    chat = open_conversation("foreign", format="gemini", window=100_000)
    chat.append(foreign)
    assert chat.prompt()["contents"] == [said({"text": "see"})]


def test_a_result_that_nobody_can_read_is_written_all_the_same():
    wires = get_format("gemini").render([Message("tool", (ToolResult("c", (Text("a"), Text("b")), "interrupted"),))])
    assert wires == [said({"functionResponse": {"id": "c", "name": "c", "response": {"error": "a\nb"}}})]


@pytest.mark.parametrize("role", ["user", "model"])
def test_keys_that_the_api_refuses_stay_in_the_history(role: str):
    """Hosts keep ids, times and metadata in their messages."""
    foreign = {"role": role, "parts": [{"text": "hi"}], "id": "42", "timestamp": 7}
    format = get_format("gemini")
    messages = format.parse(foreign)
    assert format.render(messages) == [foreign]
    prompt = format.prompt(view(user("Go."), *messages, assistant("Done."), user("Go on.")), profile=PROFILE)
    assert check_body("gemini", prompt) == []
    assert "hi" in str(prompt)
    assert "timestamp" not in str(prompt)
    refusals = check_body("gemini", {"contents": [{"role": "user", "parts": [{"text": "hi"}], "timestamp": 7}]})
    assert [refusal.where for refusal in refusals] == ["contents[0].timestamp"]
