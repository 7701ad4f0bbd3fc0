"""The local server answers like real providers, over plain HTTP: statuses, errors, events."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from foveate.core.messages import Message, Reasoning, Text, ToolCall
from foveate.testing import CutReply, Failure, ScriptedModel, SlowReply, call, say
from foveate.testing.server import StubServer

HI = {"messages": [{"role": "user", "content": "hi"}]}
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}
BOTH = pytest.mark.parametrize("provider", ["anthropic", "openai"])


def ask(server: StubServer, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of the response."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    try:
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def events_of(body: bytes) -> list[tuple[str, Any]]:
    """Return the events of a stream by name, with their data as values."""
    events = [block.split("\n") for block in body.decode().strip().split("\n\n")]
    results = []
    for lines in events:
        name = lines[0].removeprefix("event: ") if lines[0].startswith("event: ") else ""
        data = lines[-1].removeprefix("data: ")
        results.append((name, data if data == "[DONE]" else json.loads(data)))
    return results


@BOTH
def test_answers_lack_the_keys_that_only_sdks_show(provider: str):
    """Such as `"citations": null` in a block: the Vercel AI SDK refuses it."""
    with StubServer(ScriptedModel([call("a"), say("Hi.")], provider)) as server:
        answers = [json.loads(ask(server, PATHS[provider], HI)[2]) for _ in range(2)]
    if provider == "anthropic":
        keys = [set(block) for answer in answers for block in answer["content"]]
        assert keys == [{"type", "id", "name", "input"}, {"type", "text"}]
    else:
        always = {"role", "content", "refusal", "annotations"}
        keys = [set(answer["choices"][0]["message"]) for answer in answers]
        assert keys == [{*always, "tool_calls"}, always]


def test_summaries_of_reasoning_begin_and_end_in_the_stream():
    """OpenAI's SDK for JavaScript needs the beginning of each part."""
    with StubServer(ScriptedModel([Message("assistant", (Reasoning("Hm hm."),))], "openai_responses")) as server:
        _, _, body = ask(server, "/v1/responses", {"input": "hi", "stream": True})
    kinds = [name.removeprefix("response.reasoning_summary_") for name, _ in events_of(body) if "summary" in name]
    assert kinds == ["part.added", "text.delta", "text.delta", "text.done", "part.done"]


def test_anthropic_events_are_in_order_and_named_by_type():
    message = Message("assistant", (Reasoning("Hm hm."), Text("I look."), ToolCall("a", "look", '{"at": 1}')))
    with StubServer(ScriptedModel([message])) as server:
        status, headers, body = ask(server, PATHS["anthropic"], {**HI, "stream": True})
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    events = events_of(body)
    assert all(name == data["type"] for name, data in events)
    assert [name for name, _ in events] == [
        "message_start",
        *("content_block_start", "ping", *["content_block_delta"] * 3, "content_block_stop"),
        *("content_block_start", *["content_block_delta"] * 2, "content_block_stop"),
        *("content_block_start", *["content_block_delta"] * 3, "content_block_stop"),
        *("message_delta", "message_stop"),
    ]
    deltas = [data["delta"]["type"] for name, data in events if name == "content_block_delta"]
    assert deltas == ["thinking_delta"] * 2 + ["signature_delta"] + ["text_delta"] * 2 + ["input_json_delta"] * 3
    assert events[-2][1]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}


@pytest.mark.parametrize("usage", [True, False])
def test_openai_chunks_are_in_order_with_usage_on_request(usage: bool):
    options = {"stream_options": {"include_usage": True}} if usage else {}
    message = Message("assistant", (Text("I look."), ToolCall("a", "look", '{"at": 1}')))
    with StubServer(ScriptedModel([message], "openai")) as server:
        _, _, body = ask(server, PATHS["openai"], {**HI, "stream": True, **options})
    chunks = [data for _, data in events_of(body)]
    assert chunks.pop() == "[DONE]"
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    if usage:
        last = chunks.pop()
        assert (last["choices"], last["usage"]["prompt_tokens"]) == ([], 5)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["tool_calls"]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    first = {"index": 0, "id": "a", "function": {"arguments": "", "name": "look"}, "type": "function"}
    assert deltas[:4] == [
        {"role": "assistant", "content": ""},
        {"content": "I "},
        {"content": "look."},
        {"tool_calls": [first]},
    ]
    pieces = [delta["tool_calls"][0]["function"]["arguments"] for delta in deltas[4:-1]]
    assert "".join(pieces) == '{"at": 1}'


@BOTH
def test_illegal_request_gets_status_400_and_is_recorded(provider: str):
    with StubServer(ScriptedModel(["x"], provider, window=1_000)) as server:
        wrong = {"messages": [{"role": "robot", "content": "x"}]}
        status, _, body = ask(server, PATHS[provider], wrong)
        assert (status, json.loads(body)["error"]["type"]) == (400, "invalid_request_error")
        assert [refusal.rule for refusal in server.illegal[0].refusals] == ["role"]
        long = {"messages": [{"role": "user", "content": "word " * 2_000}]}
        status, _, body = ask(server, PATHS[provider], long)
        words = {"anthropic": "prompt is too long: ", "openai": "maximum context length is 1000 tokens"}
        assert status == 400
        assert words[provider] in json.loads(body)["error"]["message"]
        assert len(server.illegal) == 1


@BOTH
def test_trouble_has_its_status_its_words_and_when_to_come_back(provider: str):
    with StubServer(ScriptedModel([Failure(429, 2, "Slow down."), Failure(529)], provider)) as server:
        status, headers, body = ask(server, PATHS[provider], HI)
        assert (status, headers["retry-after"], json.loads(body)["error"]["message"]) == (429, "2", "Slow down.")
        status, headers, body = ask(server, PATHS[provider], HI)
        assert (status, "retry-after" in headers, json.loads(body)["error"]["type"]) == (529, False, "overloaded_error")


@BOTH
def test_cut_answer_ends_in_the_middle(provider: str):
    cuts = [
        CutReply("one two"),
        CutReply("one two"),
        CutReply("one two", is_clean=True),
        CutReply("one two", error=Failure(529)),
    ]
    with StubServer(ScriptedModel(cuts, provider)) as server:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server, PATHS[provider], HI)
        with pytest.raises(http.client.IncompleteRead):
            ask(server, PATHS[provider], {**HI, "stream": True})
        polite = ask(server, PATHS[provider], {**HI, "stream": True})[2]
        assert b"one" in polite
        assert b"[DONE]" not in polite
        assert b"message_stop" not in polite
        assert "It did not work out." in json.dumps(
            events_of(ask(server, PATHS[provider], {**HI, "stream": True})[2])[-1]
        )


def test_a_slow_answer_is_given_up_when_the_server_closes():
    with StubServer(ScriptedModel([SlowReply("x", 60)])) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        connection.request("POST", PATHS["anthropic"], json.dumps(HI))
    with pytest.raises(ConnectionError):
        connection.getresponse()
    connection.close()


def test_a_connection_is_kept_for_the_next_request():
    with StubServer(ScriptedModel(["one", "two"], "openai")) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        sockets = set()
        for body in ({**HI, "stream": True}, HI):
            connection.request("POST", PATHS["openai"], json.dumps(body))
            sockets.add(connection.sock)
            assert connection.getresponse().read()
        assert len(sockets) == 1
        connection.close()


def test_models_answer_at_their_paths_only():
    models = {"/a": ScriptedModel(["a"]), "/a/b": ScriptedModel(["b"]), "": ScriptedModel(["c"], "openai")}
    with StubServer(models) as server:
        texts = [
            json.loads(ask(server, f"{at}/v1/messages?beta=true", HI)[2])["content"][0]["text"] for at in ("/a", "/a/b")
        ]
        assert texts == ["a", "b"]
        assert json.loads(ask(server, "/v1/chat/completions", HI)[2])["choices"][0]["message"]["content"] == "c"
        status, _, body = ask(server, "/v1/messages", HI)
        assert (status, json.loads(body)["error"]["message"]) == (404, "No model answers at /v1/messages.")
    assert [one.path for one in server.received][-1] == "/v1/messages"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"no json", "JSONDecodeError: "),
        (b"[1]", "ValueError: the body is not a JSON object"),
        (b"", "JSONDecodeError: "),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(body: bytes, says: str):
    with StubServer(ScriptedModel(["x"])) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        connection.request("POST", PATHS["anthropic"], body)
        response = connection.getresponse()
        assert response.status == 400
        assert json.loads(response.read())["error"]["message"].startswith(says)
        connection.close()


def test_failing_script_is_reported_and_a_cut_ends_the_connection():
    def fails(request: dict[str, Any]) -> str:
        raise KeyError("city")

    with StubServer({"/a": ScriptedModel(fails), "/b": ScriptedModel([ConnectionError()])}) as server:
        status, _, body = ask(server, "/a/v1/messages", HI)
        assert (status, json.loads(body)["error"]["message"]) == (400, "KeyError: 'city'")
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server, "/b/v1/messages", HI)


def test_finished_script_is_reported_as_not_retryable():
    with StubServer(ScriptedModel([])) as server:
        status, _, body = ask(server, PATHS["anthropic"], HI)
    assert (status, json.loads(body)["error"]["message"]) == (400, "The script has 0 answers, and this is request 1.")
