"""The scripted model, the stub client and the local server answer like Gemini."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from foveate import open_conversation
from foveate.core.messages import Message, Reasoning, Text, ToolCall
from foveate.formats import gather, get_format
from foveate.ports import StreamEnd
from foveate.testing import (
    CutReply,
    Failure,
    IllegalRequest,
    ProviderError,
    ScriptedModel,
    StoppedReply,
    StubGemini,
    calls,
)
from foveate.testing.server import StubServer

HI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
CALLING = Message("assistant", (Reasoning("Hm hm."), Text("I look."), ToolCall("a", "look", '{"at": 1}')))


def ask(server: StubServer, path: str, body: dict[str, Any] = HI) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    try:
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_the_stub_replies_like_the_sdk():
    reply = StubGemini([CALLING]).models.generate_content(model="models/m", **HI)
    parts = reply.candidates[0].content.parts
    assert (reply.text, reply.candidates[0].finish_reason, reply.model_version) == ("I look.", "STOP", "m")
    assert [part.text for part in parts] == ["Hm hm.", "I look.", None]
    assert (parts[0].thought, parts[2].function_call.name, parts[2].function_call.args) == (True, "look", {"at": 1})
    message, usage = get_format("gemini").parse_reply(reply)
    assert [type(part) for part in message.parts] == [Reasoning, Text, ToolCall]
    assert (usage.input, usage.cache_read, usage.output, usage.reasoning) == (5, 0, 7, 2)


def test_a_conversation_with_tools_runs_through():
    client = StubGemini([calls("a", "b"), calls("look", "look"), "Done."])
    chat = open_conversation("loop", format="gemini", window=100_000)
    chat.append("Look.")
    for _ in range(3):
        chat.record(client.models.generate_content(model="gemini-3.8-flash", **chat.prompt(system="Be brief.")))
        for call in chat.open_calls():
            chat.append({"functionResponse": {"name": call.name, "response": {"output": "ok"}}})
    assert chat.view.entries[-1].message.text == "Done."
    assert [len(request["contents"]) for request in client.requests] == [1, 3, 5]
    assert chat.totals().usage.cache_read


def test_each_event_of_a_stream_has_parts():
    """Google's SDK for JavaScript drops an answer with an event without any."""
    with StubServer(ScriptedModel([calls("a", "b", text="I look.")], "gemini")) as server:
        _, body = ask(server, "/v1beta/models/m:streamGenerateContent?alt=sse")
    candidates = [json.loads(line[6:])["candidates"][0] for line in body.splitlines() if line]
    assert [len(candidate["content"]["parts"]) for candidate in candidates] == [1, 1, 2]
    assert [candidate.get("finishReason") for candidate in candidates] == [None, None, "STOP"]


def test_an_illegal_request_is_refused():
    with pytest.raises(IllegalRequest, match="must not be empty"):
        StubGemini(["hi"]).models.generate_content(model="m", contents=[{"role": "user", "parts": []}])


def test_a_prompt_above_the_window_is_refused_in_googles_words():
    with pytest.raises(ProviderError, match=r"The input token count \(5\) exceeds the maximum number of tokens"):
        ScriptedModel(["hi"], "gemini", window=4).complete(HI)


def test_the_reason_of_the_end_is_scripted():
    reply = ScriptedModel([StoppedReply("hi", "MAX_TOKENS")], "gemini").reply(HI)
    assert get_format("gemini").stop_of(reply).kind == "length"  # type: ignore[union-attr]


def test_a_stream_of_the_model_yields_its_pieces():
    *pieces, end = ScriptedModel([CALLING], "gemini").stream(HI)
    assert [(piece.kind, piece.text, piece.name) for piece in pieces] == [
        ("reasoning", "Hm ", ""),
        ("reasoning", "hm.", ""),
        ("text", "I ", ""),
        ("text", "look.", ""),
        ("call", "", "look"),
        ("call", '{"at": 1}', ""),
    ]
    assert isinstance(end, StreamEnd)


@pytest.mark.parametrize("alt", ["", "?alt=sse"])
def test_the_server_streams_what_it_sends_whole(alt: str):
    with StubServer(ScriptedModel([CALLING, CALLING], "gemini")) as server:
        status, whole = ask(server, "/v1beta/models/gemini-3.8-flash:generateContent")
        _, stream = ask(server, f"/v1beta/models/gemini-3.8-flash:streamGenerateContent{alt}")
        model = server.models[""]
        assert [request["model"] for request in model.requests] == ["gemini-3.8-flash"] * 2
    gatherer = gather("gemini")
    gatherer.feed(stream)
    streamed = gatherer.whole()
    assert (status, streamed is not None) == (200, True)
    format = get_format("gemini")
    assert format.parse_reply(streamed)[0] == format.parse_reply(json.loads(whole))[0]


def test_errors_of_the_server_have_googles_shape():
    script = [Failure(429, message="Quota exceeded."), CutReply("hi there", error=Failure(503, message="Overloaded."))]
    with StubServer(ScriptedModel(script, "gemini")) as server:
        status, body = ask(server, "/v1beta/models/m:generateContent")
        assert (status, json.loads(body)) == (
            429,
            {"error": {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}},
        )
        _, stream = ask(server, "/v1beta/models/m:streamGenerateContent?alt=sse")
        assert b'"status": "UNAVAILABLE"' in stream
        status, body = ask(server, "/v1beta/models/m:generateContent", {"contents": []})
        assert (status, json.loads(body)["error"]["status"]) == (400, "INVALID_ARGUMENT")
