"""Requests with the view: the client's own bytes where nothing changes, and legal requests where something does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import Conversation, Text, open_conversation
from foveate.core.system_messages import NO_REPLY
from foveate.edits import Hide, Replace, Target
from foveate.errors import BadInput
from foveate.expand import tool
from foveate.expand.tool import EXPAND_INSTRUCTION, expand_tool
from foveate.requests import WireRequest, api_of, model_name, wants_json
from foveate.requests.apis import Api
from foveate.stores.memory import MemoryStore
from foveate.testing import ScriptedModel, call, say
from foveate.testing.bodies import check_body
from foveate.testing.usage import unmarked

from client import TOOLS, spoken  # isort: skip

CLEARED = (Text("[cleared]"),)
PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-3-pro:generateContent",
}
MODELS = {"anthropic": "claude-opus-4-5", "openai": "gpt-5", "openai_responses": "gpt-5", "gemini": "gemini-3-pro"}
SESSIONS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")


def api_named(format: str) -> Api:
    api = api_of(PATHS[format])
    assert api is not None
    return api


def opened(format: str, **options: Any) -> Conversation:
    return open_conversation("c", format=format, **{"policy": "none", "expand": False, **options})


def spaced(value: Any) -> bytes:
    """JSON as no part of foveate writes it: with spaces and with escapes."""
    return json.dumps(value, ensure_ascii=True, separators=(" , ", " : ")).encode()


def items_in(format: str, body: bytes) -> list[bytes]:
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    return [bytes(item) for item in msgspec.json.decode(fields[api_named(format).messages], type=list[msgspec.Raw])]


def text_item(format: str, role: str, text: str) -> dict[str, Any]:
    return spoken(format, text, role)


def tool_turn(format: str, number: int, text: str) -> list[dict[str, Any]]:
    """Return the items of a call and of its result."""
    match format:
        case "anthropic":
            use = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"n": 1.50}}
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
            return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        case "openai":
            function = {"name": "read", "arguments": '{"n" : 1.50}'}
            tool_call = {"id": f"t{number}", "type": "function", "function": function}
            return [
                {"role": "assistant", "content": None, "tool_calls": [tool_call]},
                {"role": "tool", "tool_call_id": f"t{number}", "content": text},
            ]
        case "gemini":
            function = {"id": f"t{number}", "name": "read", "args": {"n": 1.50}}
            part = {"functionCall": function, "thoughtSignature": "c2lnbmVk"}
            answered = {"id": f"t{number}", "name": "read", "response": {"output": text}}
            return [{"role": "model", "parts": [part]}, {"role": "user", "parts": [{"functionResponse": answered}]}]
        case _:
            return [
                {"type": "function_call", "call_id": f"t{number}", "name": "read", "arguments": '{"n" : 1.50}'},
                {"type": "function_call_output", "call_id": f"t{number}", "output": text},
            ]


def tools_of(format: str) -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {}}
    match format:
        case "anthropic":
            return [{"name": "read", "input_schema": schema}]
        case "openai":
            return [{"type": "function", "function": {"name": "read", "parameters": schema}}]
        case "gemini":
            return TOOLS["gemini"]
        case _:
            return [{"type": "function", "name": "read", "parameters": schema}]


def body_of(format: str, items: list[Any], **fields: Any) -> dict[str, Any]:
    most: dict[str, Any] = {"max_tokens": 100} if format == "anthropic" else {}
    if format != "gemini":  # The path names the model.
        most["model"] = MODELS[format]
    return {**most, "tools": tools_of(format), api_named(format).messages: items, **fields}


def recorded(folder: Path, client: str) -> list[tuple[str, tuple[str, ...], dict[str, Any]]]:
    """Return the requests that a real client sent: the path, what names the conversation, and the body."""
    found = []
    for line in (folder / f"{client}.jsonl").read_text().splitlines():
        request = json.loads(line)
        path, body = request["path"].split("?")[0], request["body"]
        if api_of(path) is None or not isinstance(body, dict):
            continue
        headers = {name.lower(): value for name, value in request["headers"].items()}
        session = next((headers[name] for name in SESSIONS if name in headers), "")
        purpose = "tools" if body.get("tools") else "title"
        found.append((path, (path, session, headers.get("x-claude-code-agent-id", ""), purpose), body))
    assert found
    return found


# ----------------------------------------------------------------------------------------------------------- recordings


@pytest.mark.parametrize("client", ["agent", "claude", "codex", "mcpcc", "oc", "sdk"])
def test_recorded_requests_keep_every_byte(client: str, wire_recordings: Path):
    chats: dict[tuple[str, ...], Conversation] = {}
    for path, key, body in recorded(wire_recordings, client):
        api = api_of(path)
        assert api is not None
        chat = chats.setdefault(key, opened(api.format, window=1_000_000))
        content = spaced(body)
        request = WireRequest(chat, api, content)
        if chat.journal.records():  # The client edited a result, so reasoning behind it is bound to another one.
            assert (client, key[1][:8]) == ("claude", "06d66d5c")
            continue
        assert request.content == content
        assert request.is_stream is bool(body.get("stream"))
        assert chat._agent.store.names("") == ["c"]


@pytest.mark.parametrize("client", ["agent", "claude", "codex", "mcpcc", "oc", "sdk"])
def test_recorded_requests_with_expand_keep_their_messages(client: str, wire_recordings: Path):
    chats: dict[tuple[str, ...], Conversation] = {}
    heads: dict[tuple[str, ...], bytes] = {}
    for path, key, body in recorded(wire_recordings, client):
        api = api_of(path)
        assert api is not None
        chat = chats.setdefault(key, opened(api.format, window=1_000_000, expand=None))
        request = WireRequest(chat, api, spaced(body))
        sent = json.loads(request.content)
        assert check_body(api.format, sent) == []
        assert list(sent)[: len(body)] == list(body)  # The order of the fields stays.
        if not body.get("tools"):
            assert request.content == spaced(body)
            continue
        assert sent["tools"] == [*body["tools"], expand_tool(api.format)]
        if chat.journal.records():
            continue  # As above.
        first = 0 if api.system else 1  # The system prompt of chat completions is a message.
        assert items_in(api.format, request.content)[first:] == items_in(api.format, spaced(body))[first:]
        assert sent == sent | {
            name: body[name] for name in body if name not in ("tools", "thinking", api.messages, api.system)
        }
        assert json.dumps(sent).count(json.dumps(EXPAND_INSTRUCTION)[1:-1]) == 1
        head = msgspec.json.encode([sent["tools"], sent.get(api.system), sent[api.messages][:first]])
        assert client != "claude" or heads.setdefault(key, head) == head  # The provider's cache keeps the prefix.


@pytest.mark.parametrize("client", ["claude", "agent", "sdk", "codex"])
def test_recorded_requests_that_shrink_keep_the_rest(client: str, wire_recordings: Path):
    chats: dict[tuple[str, ...], Conversation] = {}
    shrunk = 0
    for path, key, body in recorded(wire_recordings, client):
        api = api_of(path)
        assert api is not None
        chat = chats.setdefault(key, opened(api.format, window=100_000, policy="keep-last-1"))
        request = WireRequest(chat, api, spaced(body))
        sent = json.loads(request.content)
        assert check_body(api.format, sent) == []
        own = items_in(api.format, spaced(body))
        kept = [item for item in items_in(api.format, request.content) if item in own]
        assert [own[place] for places, _ in request.view.by_item() for place in places] == kept
        assert {own[0], own[-1]} <= set(kept)
        marks = [json.dumps(value).count('"cache_control": {') for value in (sent, body)]
        assert marks[0] == marks[1]
        shrunk += len(request.content) < len(spaced(body)) - 1000
    assert shrunk or client not in ("claude", "sdk")


# ---------------------------------------------------------------------------------------------------------------- bytes


@pytest.mark.parametrize("format", list(PATHS))
def test_numbers_escapes_and_repeated_keys_survive(format: str):
    text = b'"\\u00e9\\ud83d\\ude00\\/"'
    odd = b'{"role": "user", %s, "unknown": [1.50, 1E2, 12345678901234567890123], "twice": 1, "twice": 2}' % (
        b'"parts": [{"text": %s}]' % text if format == "gemini" else b'"content": %s' % text
    )
    content = b'{"model":"%s", "max_tokens": 9,\n"%s" : [%s], "temperature": 1.000, "model2": null}' % (
        MODELS[format].encode(),
        api_named(format).messages.encode(),
        odd,
    )
    assert WireRequest(opened(format, window=9_000), api_named(format), content).content == content
    offered = WireRequest(opened(format, window=9_000, expand=True), api_named(format), content).content
    if format != "openai_responses":  # The response may be stored, so `expand` is not offered.
        assert odd in offered
        assert b'"temperature":1.000' in offered
        assert offered != content


@pytest.mark.parametrize("format", list(PATHS))
def test_only_changed_messages_are_written_anew(format: str):
    chat, api = opened(format, window=50_000), api_named(format)
    items = [text_item(format, "user", "Read.")]
    for number in range(4):
        items += tool_turn(format, number, f"Result {number}.")
    WireRequest(chat, api, spaced(body_of(format, items)))
    results = [row for row in chat.history() if row.message.role == "tool"]
    chat.edit(Replace(target=Target(results[1].id), content=CLEARED))
    request = WireRequest(chat, api, spaced(body_of(format, items)))
    own, sent = items_in(format, spaced(body_of(format, items))), items_in(format, request.content)
    assert [place for place, item in enumerate(own) if item not in sent] == [4]
    assert len(sent) == len(own)
    assert b"[cleared]" in sent[4]
    assert check_body(format, json.loads(request.content)) == []
    chat.undo()
    assert WireRequest(chat, api, spaced(body_of(format, items))).content == spaced(body_of(format, items))


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_details"])
@pytest.mark.parametrize("drops", [True, False])
def test_an_edited_reply_has_the_reasoning_that_the_client_sends(drops: bool, field: str):
    """The client left it out, as OpenAI's SDK and LangChain do. The message that replaced its own had it, which fills
    small windows, and which some servers refuse."""
    thoughts = [{"type": "text", "text": "Hm."}] if field.endswith("s") else "Hm."
    chat = open_conversation("c", format="openai", window=50_000, policy="none")
    api = api_named("openai")
    tool_call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"page": 1}'}}
    answered = {"role": "assistant", "content": None, field: thoughts, "tool_calls": [tool_call]}
    items: list[dict[str, Any]] = [{"role": "user", "content": "Read it."}]
    first = WireRequest(chat, api, json.dumps({"model": "qwen3", "messages": items}).encode())
    choice = {"index": 0, "message": answered, "finish_reason": "tool_calls"}
    first.received(json.dumps({"id": "r1", "object": "chat.completion", "choices": [choice]}).encode())
    own = {key: value for key, value in answered.items() if key != field} if drops else answered
    items += [own, {"role": "tool", "tool_call_id": "c1", "content": "Rye."}]
    reply = chat.history()[1]
    chat.edit(Replace(Target(reply.id, (len(reply.message.parts) - 1,)), (Text('{"page": 2}'),)))
    request = WireRequest(chat, api, json.dumps({"model": "qwen3", "messages": items}).encode())
    shown = json.loads(request.content)["messages"][1]
    assert shown["tool_calls"][0]["function"]["arguments"] == '{"page": 2}'
    assert shown.get(field) == (None if drops else thoughts)


def test_results_of_functions_stay_results_of_functions():
    """The older form of calls, with `functions=`. An edited result got the role `tool` behind the client's own
    `function_call`, which every server refuses."""
    chat = open_conversation("c", format="openai", window=50_000, policy="keep-last-1")
    items: list[dict[str, Any]] = [{"role": "user", "content": "Read both."}]
    for number in range(3):
        function = {"name": "read", "arguments": json.dumps({"number": number})}
        items.append({"role": "assistant", "content": None, "function_call": function})
        items.append({"role": "function", "name": "read", "content": f"{number} of many lines of rye.\n" * 40})
    items.append({"role": "assistant", "content": None, "function_call": {"name": "stop", "arguments": "{}"}})
    items.append({"role": "user", "content": "Go on."})
    body = {"model": "gpt-4", "functions": [{"name": "read", "parameters": {}}], "messages": items}
    messages = json.loads(WireRequest(chat, api_named("openai"), json.dumps(body).encode()).content)["messages"]
    calls = [message["function_call"]["name"] for message in messages if message["role"] == "assistant"]
    results = [message["name"] for message in messages if message["role"] == "function"]
    assert calls == results == ["read", "read", "read", "stop"]
    assert [message["role"] for message in messages] == ["user", *["assistant", "function"] * 4, "user"]
    assert len(messages[2]["content"]) < len(items[2]["content"])


def test_items_before_a_stand_in_follow_a_list_that_slides():
    """A stand-in has no position. The items before it kept their former places, so that other messages were sent."""
    chat = open_conversation("c", format="openai", window=50_000, policy="none")
    texts = ["One.", "Two.", "Three.", "Four.", "Five.", "Six."]
    roles = ["user", "assistant", "user", "user", "assistant", "user"]
    items = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]

    def shown(own: list[dict[str, str]]) -> list[str]:
        body = json.dumps({"model": "gemma3:27b", "messages": own}).encode()
        content = WireRequest(chat, api_named("openai"), body).content
        return [message["content"] for message in json.loads(content)["messages"]]

    shown(items)
    chat.edit(*[Hide(Target(row.id)) for row in chat.history()[:2]])
    wanted = ["Three.", NO_REPLY, "Four.", "Five.", "Six."]
    assert shown(items) == wanted
    assert shown(items[2:]) == wanted


def test_messages_that_the_client_removed_are_not_saved_tokens():
    """A client that shows the newest state of its files in each request got credit for all states before it."""
    chat, items = opened("openai", window=50_000), list[dict[str, Any]]()
    for number in range(5):
        items.append({"role": "user", "content": f"Question {number}."})
        files = {"role": "user", "content": f"The files have this text now: {number} {'word ' * 2_000}"}
        own = [*items[:-1], files, {"role": "assistant", "content": "Ok."}, items[-1]]
        body = json.dumps({"model": "gpt-5", "messages": own}).encode()
        request = WireRequest(chat, api_named("openai"), body)
        assert (request.content, request.tokens_history) == (body, request.view.tokens)
        items.append({"role": "assistant", "content": f"Answer {number}."})
        model = ScriptedModel([say(f"Answer {number}.")], "openai")
        request.received(json.dumps(model.reply(json.loads(body))).encode())
    assert chat.totals().tokens_history > 4 * request.tokens_history


def test_a_mark_moves_to_the_message_in_its_place():
    chat, api = opened("anthropic", window=50_000), api_named("anthropic")
    items = [text_item("anthropic", "user", "Read.")]
    for number in range(4):
        items += tool_turn("anthropic", number, f"Result {number}.")
    items[4]["content"][0]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    WireRequest(chat, api, spaced(body_of("anthropic", items)))
    entry = [row for row in chat.history() if row.message.role == "tool"][1]
    chat.edit(Replace(target=Target(entry.id), content=CLEARED))
    sent = json.loads(WireRequest(chat, api, spaced(body_of("anthropic", items))).content)["messages"]
    assert sent[4]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    chat.edit(Hide(Target(chat.history()[3].id)), Hide(Target(entry.id)))  # The call, and its result.
    sent = json.loads(WireRequest(chat, api, spaced(body_of("anthropic", items))).content)["messages"]
    assert json.dumps(sent).count("cache_control") == 1
    assert sent[2]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


MARK = {"type": "ephemeral"}


def marked(body: dict[str, Any]) -> list[str]:
    """Return the parts of a request with cache marks: the name of a field, or the place of a message."""
    fields = {name: body.get(name) for name in ("system", "tools")} | dict(enumerate(body["messages"]))
    return [str(name) for name, value in fields.items() if "cache_control" in json.dumps(value)]


def test_requests_without_marks_are_marked_if_asked_for():
    chat, api = opened("anthropic", window=50_000), api_named("anthropic")
    items = [text_item("anthropic", "user", "Read."), *tool_turn("anthropic", 1, "Result.")]
    body = body_of("anthropic", items, system=[{"type": "text", "text": "Be brief."}])
    assert marked(json.loads(WireRequest(chat, api, spaced(body), adds_marks=True).content)) == ["system", "2"]
    assert WireRequest(chat, api, spaced(body)).content == spaced(body)
    body["system"] = [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
    assert json.loads(WireRequest(chat, api, spaced(body), adds_marks=True).content) == body


@pytest.mark.parametrize("is_text", [True, False], ids=["text", "blocks"])
def test_loop_without_marks_is_marked_from_its_second_request_on(is_text: bool):
    """The first request may be the only one of its conversation, and writing to the cache costs more than input."""
    chat, api = opened("anthropic", window=500_000, expand=None), api_named("anthropic")
    prompt: Any = "Be brief." if is_text else [{"type": "text", "text": "Be brief."}]
    items = [text_item("anthropic", "user", "Read.")]
    head = []
    for number in range(1, 60):
        sent = json.loads(WireRequest(chat, api, spaced(body_of("anthropic", items, system=prompt))).content)
        head.append((sent["tools"], sent["system"]))
        places = [] if number == 1 else [str(2 * number - 2)]
        assert marked(sent)[-1:] == places
        assert [one for one, own in zip(sent["messages"], items, strict=True) if one != own] == [
            sent["messages"][int(place)] for place in marked(sent) if place.isdigit()
        ]
        assert check_body("anthropic", sent) == []
        items += tool_turn("anthropic", number, f"Result {number}.")
    assert {json.dumps(tools) for tools, _ in head} == {json.dumps(head[0][0])}
    assert [unmarked(system) for _, system in head] == [head[0][1]] * 59


@pytest.mark.parametrize("format", ["openai", "openai_responses"])
def test_request_that_offers_expand_gets_a_key_for_the_cache(format: str):
    chat, api = opened(format, window=50_000, expand=None), api_named(format)
    body = body_of(format, [text_item(format, "user", "Read.")], model="gpt-5.6", store=False)
    assert json.loads(WireRequest(chat, api, spaced(body)).content)["prompt_cache_key"].startswith("foveate-")
    own = body | {"prompt_cache_key": "mine"}
    assert json.loads(WireRequest(chat, api, spaced(own)).content)["prompt_cache_key"] == "mine"
    plain = {key: value for key, value in body.items() if key != "tools"}
    assert WireRequest(chat, api, spaced(plain)).content == spaced(plain)
    older = body | {"model": "gpt-5.5"}
    assert "prompt_cache_key" not in json.loads(WireRequest(chat, api, spaced(older)).content)


def test_client_that_marks_keeps_its_own_marks():
    chat, api = opened("anthropic", window=50_000, expand=None), api_named("anthropic")
    items = [text_item("anthropic", "user", "Read."), *tool_turn("anthropic", 1, "Result.")]
    automatic = body_of("anthropic", items, cache_control=MARK)
    assert marked(json.loads(WireRequest(chat, api, spaced(automatic)).content)) == []


def test_media_of_results_wait_for_the_last_result_of_the_call():
    chat, api = opened("openai", window=50_000), api_named("openai")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in (1, 2)]
    items: list[Any] = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "One."}, image]},
        {"role": "tool", "tool_call_id": "c2", "content": "Two."},
        {"role": "user", "content": "And?"},
    ]
    WireRequest(chat, api, spaced(body_of("openai", items)))
    chat.edit(Replace(target=Target(chat.history()[2].id, (0, 0)), content=CLEARED))
    request = WireRequest(chat, api, spaced(body_of("openai", items)))
    roles = [message["role"] for message in json.loads(request.content)["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "user", "user"]
    assert check_body("openai", json.loads(request.content)) == []


def test_options_for_bound_reasoning_wait_for_the_first_edit():
    chat, api = opened("anthropic", window=50_000), api_named("anthropic")
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    turn = tool_turn("anthropic", 1, "A long result.")
    turn[0]["content"].insert(0, thinking)
    items = [text_item("anthropic", "user", "Read."), *turn]
    body = body_of("anthropic", items, model="claude-opus-5-5", thinking={"type": "adaptive", "display": "omitted"})
    request = WireRequest(chat, api, spaced(body))
    assert (request.content, request.betas) == (spaced(body), ())
    chat.edit(Replace(target=Target(chat.history()[2].id), content=CLEARED))
    request = WireRequest(chat, api, spaced(body))
    sent = json.loads(request.content)["thinking"]
    assert sent == {**body["thinking"], "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert request.betas == ("thinking-binding-controls-2026-08-01",)


def test_bedrock_has_betas_in_the_body():
    chat = opened("anthropic", window=50_000)
    api = api_of("/model/us.anthropic.claude-opus-5-5-v1:0/invoke")
    assert api is not None
    turn = tool_turn("anthropic", 1, "A long result.")
    turn[0]["content"].insert(0, {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"})
    body = body_of(
        "anthropic", [text_item("anthropic", "user", "Read."), *turn], anthropic_version="bedrock-2023-05-31"
    )
    del body["model"]
    WireRequest(chat, api, spaced(body))
    chat.edit(Replace(target=Target(chat.history()[2].id), content=CLEARED))
    beta = "thinking-binding-controls-2026-08-01"
    for own, sent in ((None, [beta]), ([], [beta]), (["mine-1"], ["mine-1", beta]), ([beta], [beta])):
        fields = body if own is None else {**body, "anthropic_beta": own}
        request = WireRequest(chat, api, spaced(fields))
        assert request.betas == ()
        assert json.loads(request.content)["anthropic_beta"] == sent


def test_input_of_responses_may_be_a_text():
    chat, api = opened("openai_responses", window=50_000), api_named("openai_responses")
    content = b'{"model": "gpt-5", "input": "Say \\u00e9."}'
    assert WireRequest(chat, api, content).content == content
    assert chat.history()[0].message.text == "Say \xe9."


@pytest.mark.parametrize(
    ("format", "fields", "error"),
    [
        ("openai_responses", {"previous_response_id": "resp_1"}, BadInput),
        ("openai_responses", {"input": [{"type": "item_reference", "id": "msg_1"}]}, BadInput),
        ("anthropic", {"thread": {"type": "create"}}, BadInput),
        ("openai", {"n": 2}, BadInput),
        ("gemini", {"generationConfig": {"candidateCount": 2}}, BadInput),
        ("gemini", {"cachedContent": "cachedContents/1"}, BadInput),
        ("gemini", {"systemInstruction": "You help."}, BadInput),
        ("gemini", {"contents": "Hi."}, BadInput),
        ("openai", {"messages": 3}, ValueError),
        ("anthropic", {"system": 5}, BadInput),
        ("anthropic", {"system": {"text": "You help."}}, BadInput),
        ("openai_responses", {"instructions": True}, BadInput),
    ],
)
def test_requests_that_cannot_show_a_view_are_refused(format: str, fields: dict[str, Any], error: type[Exception]):
    body = {**body_of(format, [text_item(format, "user", "Hi.")]), **fields}
    chat = opened(format, window=9_000)
    with pytest.raises(error):
        WireRequest(chat, api_named(format), spaced(body))
    assert len(chat) == 0


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"model": "gpt-5"}', b"\xff", b'{"messages": [' * 2000])
def test_bodies_that_are_no_requests_are_refused(content: bytes):
    with pytest.raises((ValueError, KeyError, RecursionError)):
        WireRequest(opened("openai", window=9_000), api_named("openai"), content)


def test_gemini_offers_expand_beside_the_functions_of_the_client():
    """Vertex AI takes one list of functions. Google takes two spellings of each key."""
    items = [text_item("gemini", "user", "Hi.")]
    for tools, system in (
        ("functionDeclarations", "systemInstruction"),
        ("function_declarations", "system_instruction"),
    ):
        chat = opened("gemini", window=50_000, expand=None)
        own = [{"googleMaps": {}}, {tools: [{"name": "read"}]}]
        fields = {"tools": own, system: {"role": "user", "parts": [{"text": "Be brief."}]}, "contents": items}
        sent = json.loads(WireRequest(chat, api_named("gemini"), spaced(fields)).content)
        assert sent.keys() == fields.keys()
        assert [tool.keys() for tool in sent["tools"]] == [{"googleMaps"}, {tools}]
        assert [function["name"] for function in sent["tools"][1][tools]] == ["read", "expand"]
        assert sent[system] == {"role": "user", "parts": [{"text": "Be brief."}, {"text": EXPAND_INSTRUCTION}]}
        again = WireRequest(chat, api_named("gemini"), spaced({**fields, **sent, "contents": items}))
        assert json.loads(again.content) == sent  # Once.


@pytest.mark.parametrize("parts", [None, {"text": "Be brief."}, [{"text": "Be brief."}]], ids=["null", "one", "list"])
@pytest.mark.parametrize("is_null", [False, True])
def test_gemini_takes_one_part_and_null_as_a_system_prompt(parts: Any, is_null: bool):
    """Google reads one value as a list with it, as examples of its documentation have it, and null as no field."""
    chat = opened("gemini", window=50_000, expand=None)
    fields = {"contents": [text_item("gemini", "user", "Hi.")], "tools": TOOLS["gemini"]}
    fields["system_instruction"] = None if is_null else {"parts": parts}
    sent = json.loads(WireRequest(chat, api_named("gemini"), spaced(fields)).content)["system_instruction"]
    own = [] if is_null or parts is None else [{"text": "Be brief."}]
    assert sent == {"parts": [*own, {"text": EXPAND_INSTRUCTION}]}


def test_gemini_gets_no_function_beside_tools_of_google_alone():
    chat = opened("gemini", window=50_000, expand=None)
    content = spaced({"tools": [{"googleSearch": {}}], "contents": [text_item("gemini", "user", "Hi.")]})
    assert WireRequest(chat, api_named("gemini"), content).content == content


def test_many_tools_are_looked_through_a_few_times(monkeypatch: pytest.MonkeyPatch):
    """Clients send dozens of tools with each request."""
    looked_at, functions_in = list[object](), tool._functions_in
    monkeypatch.setattr(tool, "_functions_in", lambda one: looked_at.append(one) or functions_in(one))
    tools = [{"name": f"tool_{n}", "input_schema": {"type": "object"}} for n in range(50)]
    chat, api = opened("anthropic", expand=None, window=100_000), api_named("anthropic")
    fields = {"model": "claude-haiku-4-5", "max_tokens": 9, "tools": tools}
    wire = WireRequest(chat, api, spaced({**fields, "messages": [text_item("anthropic", "user", "Hi")]}))
    wire.received(json.dumps({"role": "assistant", "content": [{"type": "text", "text": "Hi."}]}).encode())
    assert expand_tool("anthropic") in json.loads(wire.content)["tools"]
    assert len(looked_at) <= 6 * 50


def overtaken(format: str) -> tuple[WireRequest, Conversation]:
    """Return a request with Ann's list, and its conversation, in which a request with Bob's list began after it."""
    chat = opened(format, expand=None, window=16_000)
    requests = []
    for texts in (["Hello.", "I am Ann.", "My key is 1."], ["Hello.", "I am Bob."]):
        items = [text_item(format, "user", text) for text in texts]
        fields = {"model": MODELS[format], "tools": TOOLS[format], "store": False, api_named(format).messages: items}
        requests.append(WireRequest(chat, api_named(format), spaced(fields)))
    return requests[0], chat


@pytest.mark.parametrize("format", PATHS)
def test_a_request_that_another_overtook_goes_on_with_its_own_list(format: str):
    """Two users may begin a conversation with the same words. Otherwise one gets the messages of the other."""
    request, _ = overtaken(format)
    assert request.refused(400, b"prompt is too long: 20000 tokens > 16000 maximum")
    assert b"My key is 1." in request.content
    request, _ = overtaken(format)
    model = ScriptedModel([call("e1", "expand", search="key")], format)
    assert request.received(json.dumps(model.answer(json.loads(request.content)).response).encode()) is None
    assert request.follow_up is not None
    assert b"My key is 1." in request.follow_up
    assert b"Bob" not in request.follow_up


@pytest.mark.parametrize("format", PATHS)
def test_a_reply_that_another_request_overtook_is_only_billed(format: str):
    request, chat = overtaken(format)
    model = ScriptedModel([say("Hi, Ann.")], format)
    answer = json.dumps(model.answer(json.loads(request.content)).response).encode()
    assert request.received(answer) == answer
    assert [entry.message.text for entry in chat.view] == ["Hello.", "I am Bob."]
    assert chat.totals().usage.output


@pytest.mark.parametrize(
    ("format", "fields", "expected"),
    [
        ("gemini", {"generationConfig": {"responseMimeType": "application/json"}}, True),
        ("gemini", {"generation_config": {"response_json_schema": {"type": "object"}}}, True),
        ("gemini", {"generationConfig": {"responseSchema": {"type": "OBJECT"}}}, True),
        ("gemini", {"generationConfig": {"responseMimeType": "text/plain", "responseSchema": None}}, False),
        ("gemini", {"generationConfig": {"responseModalities": ["TEXT"], "temperature": 1}}, False),
        ("gemini", {"generationConfig": 1}, False),
        ("openai", {"response_format": {"type": "json_object"}}, True),
        ("openai", {"response_format": {"type": "text"}}, False),
        ("openai", {"response_format": None}, False),
        ("openai_responses", {"text": {"format": {"type": "json_schema"}, "verbosity": "low"}}, True),
        ("openai_responses", {"text": {"verbosity": "low"}}, False),
        ("anthropic", {"output_config": {"format": {"type": "json_schema"}}}, True),
        ("anthropic", {"output_format": {"type": "json_schema"}}, True),
        ("anthropic", {"output_config": {"effort": "low"}}, False),
        ("anthropic", {}, False),
    ],
)
def test_a_request_says_whether_it_wants_json(format: str, fields: dict[str, Any], expected: bool):
    assert wants_json(format, fields.get) is expected


def test_paths_name_the_api():
    assert api_of("/v1/messages") == Api("anthropic", "messages", "system")
    assert api_of("/openai/v1/chat/completions") == Api("openai", "messages", "")
    assert api_of("/v1/threads/t1/messages") is None
    assert api_of("/v1/messages/count_tokens") is None
    gemini = Api("gemini", "contents", "systemInstruction", "gemini-3-pro", is_stream=False)
    assert api_of("/v1beta/models/gemini-3-pro:generateContent") == gemini
    vertex = "/v1/projects/p/locations/l/publishers"
    assert api_of(f"{vertex}/google/models/gemini-3-pro:generateContent", "key=1") == gemini
    streamed = f"{vertex}/google/models/gemini-3-pro:streamGenerateContent"
    assert api_of(streamed, "key=1&alt=sse") == gemini._replace(is_stream=True)
    assert api_of(streamed, "") is None  # One JSON list.
    claude = Api("anthropic", "messages", "system", "claude-opus-4-5@20251101")
    for method in ("rawPredict", "streamRawPredict"):
        assert api_of(f"{vertex}/anthropic/models/claude-opus-4-5@20251101:{method}") == claude
    assert api_of(f"{vertex}/anthropic/models/count-tokens@20240409:rawPredict") is None
    assert api_of(f"{vertex}/mistralai/models/mistral-large:rawPredict") is None
    assert api_of("/v1beta/models/gemini-3-pro:countTokens") is None
    bedrock = Api("anthropic", "messages", "system", is_stream=False, is_bedrock=True)
    arn = "arn:aws:bedrock:us-east-1:123456789012"
    for name in (
        "anthropic.claude-opus-4-5-20251101-v1:0",
        "us.anthropic.claude-opus-4-5-20251101-v1:0",
        f"{arn}:inference-profile/global.anthropic.claude-opus-4-5-20251101-v1:0",
        f"{arn}:application-inference-profile/a1b2c3",
    ):
        model = bedrock._replace(model=f"bedrock:{name}")
        assert api_of(f"/model/{name}/invoke") == model
        assert api_of(f"/model/{name}/invoke-with-response-stream") == model._replace(is_stream=True)
        assert api_of(f"/model/{name}/converse") is None
        assert api_of(f"/model/{name}/count-tokens") is None
    for name in ("meta.llama3-70b-instruct-v1:0", f"{arn}:foundation-model/amazon.nova-pro-v1:0"):
        assert api_of(f"/model/{name}/invoke") is None
    login = gemini._replace(model="", inside="request")
    assert api_of("/v1internal:generateContent") == login
    assert api_of("/v1internal:streamGenerateContent", "alt=sse") == login._replace(is_stream=True)
    assert api_of("/v1internal:streamGenerateContent") is None
    assert api_of("/v1internal:loadCodeAssist") is None
    assert api_of("/v1beta/models/v1internal:generateContent") == gemini._replace(model="v1internal")
    assert api_of("/v1beta/models/gemini-embedding:batchEmbedContents") is None
    assert model_name("anthropic", "claude-opus-5-5") == "claude-opus-5-5"
    assert model_name("openai", "claude-opus-5-5") == "gateway:claude-opus-5-5"


# ----------------------------------------------------------------------------------------------------------- properties

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).map(str.strip).filter(bool)
extras = st.dictionaries(st.sampled_from(["x_a", "x_b"]), st.none() | st.floats(allow_nan=False, allow_infinity=False))


@st.composite
def conversations(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """Return a format, and the growing list of a client as bytes, which odd escapes and spaces vary."""
    format = draw(st.sampled_from(list(PATHS)))
    items: list[Any] = [{**text_item(format, "user", draw(texts)), **draw(extras)}]
    for number in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            items += tool_turn(format, number, draw(texts) * draw(st.sampled_from([1, 200])))
        else:
            items += [text_item(format, "assistant", draw(texts)), text_item(format, "user", draw(texts))]
    written = [
        json.dumps(item, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1]))).encode()
        for item in items
    ]
    return format, written


def refusals(format: str, request: WireRequest) -> list[Any]:
    """Return why a request is illegal, apart from unknown keys, which are the client's own."""
    return [refusal for refusal in check_body(format, json.loads(request.content)) if refusal.rule != "keys"]


def wire_body(format: str, items: list[bytes]) -> bytes:
    fields = body_of(format, [])
    del fields[api_named(format).messages]
    return spaced(fields)[:-1] + b',"' + api_named(format).messages.encode() + b'":[' + b", ".join(items) + b"]}"


@given(conversations(), st.sampled_from(["keep-last-1", "balanced", "none"]), st.booleans(), st.booleans())
def test_every_request_is_legal_and_keeps_unchanged_items(
    conversation: tuple[str, list[bytes]], policy: str, expands: bool, marks: bool
):
    format, items = conversation
    store = MemoryStore()
    chat = opened(format, window=6_000, policy=policy, expand=None if expands else False, store=store)
    for end in range(1, len(items) + 1):
        if any(word in items[end - 1] for word in (b'"assistant"', b'"function_call"', b'"model"')):
            continue  # A client asks after a message of its own.
        body = wire_body(format, items[:end])
        if format == "anthropic" and marks:
            body = b'{"cache_control" : {"type": "ephemeral"},' + body[1:]
        request = WireRequest(chat, api_named(format), body)
        assert refusals(format, request) == []
        sent = items_in(format, request.content)
        kept = [items[place] for places, _ in request.view.by_item() for place in places]
        changes = {"openai": True, "openai_responses": False, "anthropic": not marks, "gemini": False}[format]
        assert [item for item in sent if item in items] == kept or (expands and changes)
        if not expands and policy == "none":
            assert request.content == body
        assert WireRequest(chat, api_named(format), body).content == request.content  # A retry.
    assert store.names("") == ["c"]


@settings(max_examples=settings.default.max_examples // 2 if settings.default else 20)
@given(conversations(), st.data())
def test_bytes_survive_edits_by_hand(conversation: tuple[str, list[bytes]], data: st.DataObject):
    format, items = conversation
    if b'"assistant"' in items[-1] or b'"model"' in items[-1]:
        items = items[:-1]
    chat = opened(format, window=100_000)
    WireRequest(chat, api_named(format), wire_body(format, items))
    results = [row for row in chat.history() if row.message.role == "tool"]
    chosen = data.draw(st.lists(st.sampled_from(results), unique_by=lambda row: row.id)) if results else []
    if chosen:
        chat.edit(*(Replace(target=Target(row.id), content=CLEARED) for row in chosen))
    request = WireRequest(chat, api_named(format), wire_body(format, items))
    changed = [item for item in items if item not in items_in(format, request.content)]
    assert len(changed) <= len(chosen)
    assert refusals(format, request) == []
