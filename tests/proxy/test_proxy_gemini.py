"""Clients of the Gemini API through a proxy, before a provider that refuses illegal requests."""

from __future__ import annotations

import io
import json
import logging
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")

from servers import RawProvider, RunningProxy, ask, numbers, running_proxy, split
from waiting import until

import foveate
from foveate import Message, Text, ToolCall
from foveate.core.edits import CALLER
from foveate.formats import gather
from foveate.open import open_store
from foveate.proxy.records import write_log
from foveate.testing import Failure, ScriptedModel, call, calls, say
from foveate.testing.server import StubServer

WINDOW = 16_000
CALLS = 20
ANSWER = "Log 7 has an error."
SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}}
TOOLS = [{"functionDeclarations": [{"name": "read_log", "parametersJsonSchema": SCHEMA}]}]
HEADERS = {"x-goog-api-key": "secret-key-1", "content-type": "application/json"}


def log_text(number: int) -> str:
    return "".join(f"Line {line} of log {number}: every request was answered in time.\n" for line in range(100))


def path_of(method: str, model: str = "gemini-2.5-pro") -> str:
    return f"/v1beta/models/{model}:{method}"


def post(proxy: RunningProxy, path: str, body: Any, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers (names in lower case) and content of the answer."""
    connection = HTTPConnection("127.0.0.1", proxy.port, timeout=60)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, content, {**HEADERS, **headers})
    response = connection.getresponse()
    answer = response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    connection.close()
    return answer


def post_to_code_assist(proxy: RunningProxy, method: str, fields: Any, **own: Any) -> bytes:
    """Send the fields as Gemini CLI does with a Google login, and return the answer."""
    body = {"model": "gemini-2.5-pro", "project": "p1", "request": {**fields, "session_id": "s-1"}, **own}
    login = {"x-goog-api-key": "", "authorization": "Bearer ya29.token"}
    status, _, content = post(proxy, f"/v1internal:{method}", body, **login)
    assert status == 200, content
    return content


def own_id(called: Any) -> dict[str, str]:
    return {"id": called["id"]} if "id" in called else {}


def loop(
    proxy: RunningProxy, contents: list[Any], *, stream: bool, gives_ids: bool = False, has_login: bool = False
) -> str:
    """The loop of a program that uses tools; return the last text. `gives_ids`: to calls without one."""
    while True:
        fields = {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "tools": TOOLS, "contents": contents}
        method = "streamGenerateContent" if stream else "generateContent"
        query = "?alt=sse" if stream else ""
        if has_login:
            content = post_to_code_assist(proxy, f"{method}{query}", fields, user_prompt_id="s-1########0")
        else:
            status, _, content = post(proxy, f"{path_of(method)}{query}", fields)
            assert status == 200, content
        if stream:
            gatherer = gather("gemini")
            gatherer.feed(content)
            response: Any = gatherer.whole()
        else:
            response = json.loads(content)
            response = response["response"] if has_login else response
        answer = response["candidates"][0]["content"]
        contents.append(answer)
        calls = [part["functionCall"] for part in answer["parts"] if "functionCall" in part]
        if not calls:
            return "".join(part["text"] for part in answer["parts"])
        for number, each in enumerate(calls if gives_ids else ()):
            each.setdefault("id", f"{each['name']}_{len(contents)}_{number}")
        results = [
            {**own_id(each), "name": each["name"], "response": {"output": log_text(each["args"]["number"])}}
            for each in calls
        ]
        contents.append({"role": "user", "parts": [{"functionResponse": result} for result in results]})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_tool_loop_stays_in_the_window(stream: bool, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    script = [call(f"c{number}", "read_log", number=number) for number in range(CALLS)]
    script.insert(9, call("e1", "expand", handle="m3"))
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Which of the logs has an error?"}]}]
    with (
        StubServer(ScriptedModel([*script, say(ANSWER)], "gemini", strict=True)) as server,
        running_proxy(server.url, store=url, window=WINDOW) as proxy,
    ):
        assert loop(proxy, contents, stream=stream) == ANSWER
        assert server.illegal == []
        managed = 'foveate_requests_total{api="gemini",outcome="managed"}'
        until(lambda: numbers(proxy)[managed] == CALLS + 1)
        found = numbers(proxy)
    assert found['foveate_expansions_total{api="gemini"}'] == 1
    assert found['foveate_dollars_spent_total{api="gemini"}'] > 0
    own, sent = len(json.dumps(contents)), max(len(request.body) for request in server.received)
    assert own > 100_000
    assert sent < 0.6 * own
    assert "expand" not in json.dumps(contents)
    assert {request.headers["x-goog-api-key"] for request in server.received} == {"secret-key-1"}
    with open_store(url) as store:
        [name] = store.names("")
        with foveate.open_conversation(name, store=store, format="gemini", window=WINDOW) as chat:
            assert chat.totals().calls_billed == CALLS + 2
            assert chat.journal.verify() == []
    assert b"secret-key-1" not in Path(tmp_path, "chats.db").read_bytes()


def test_a_chat_that_keeps_the_pieces_of_streams_stays_one(tmp_path: Path):
    """Chats of Google's SDKs keep a streamed answer as one content for each event."""
    url = f"sqlite:///{tmp_path}/chats.db"
    script = [calls(call(f"c{number}", "read_log", number=number), text="I read on.") for number in range(CALLS)]
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Which of the logs has an error?"}]}]
    with (
        StubServer(ScriptedModel([*script, say(ANSWER)], "gemini", strict=True)) as server,
        running_proxy(server.url, store=url, window=WINDOW) as proxy,
    ):
        for number in range(CALLS + 1):
            fields = {"tools": TOOLS, "contents": contents}
            status, _, content = post(proxy, f"{path_of('streamGenerateContent')}?alt=sse", fields)
            assert status == 200, content
            events = [json.loads(line.removeprefix(b"data: ")) for line in content.splitlines() if line]
            contents += [event["candidates"][0]["content"] for event in events]
            result = {"id": f"c{number}", "name": "read_log", "response": {"output": log_text(number)}}
            contents.append({"role": "user", "parts": [{"functionResponse": result}]})
        assert server.illegal == []
    own, sent = len(json.dumps(contents)), max(len(request.body) for request in server.received)
    assert own > 100_000
    assert sent < 0.6 * own
    assert "".join(part["text"] for content in contents[-7:-1] for part in content["parts"]) == ANSWER
    with open_store(url) as store:
        [name] = store.names("")
        with foveate.open_conversation(name, store=store, format="gemini", window=WINDOW) as chat:
            assert len(chat) == 2 * CALLS + 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_calls_without_ids_find_their_results(stream: bool):
    """As most models of Gemini send them: the scripted model sends no id that is the name."""

    def reads(*numbers: int) -> list[ToolCall]:
        return [ToolCall("read_log", "read_log", json.dumps({"number": number})) for number in numbers]

    def looks(handle: str) -> ToolCall:
        return ToolCall("expand", "expand", json.dumps({"handle": handle}))

    replies = [*([read] for read in reads(*range(8))), [looks("m3")], reads(20, 21), [looks("m5")], [looks("m3")]]
    replies += [[looks("m5"), *reads(30)], reads(22, 23), [looks("m7"), *reads(31, 32)]]
    script = [*(Message("assistant", tuple(calls)) for calls in replies), say(ANSWER), say("Yes.")]
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Which of the logs has an error?"}]}]
    with (
        StubServer(ScriptedModel(script, "gemini", strict=True)) as server,
        running_proxy(server.url, window=WINDOW) as proxy,
    ):
        assert loop(proxy, contents, stream=stream) == ANSWER
        contents.append({"role": "user", "parts": [{"text": "Sure?"}]})
        assert loop(proxy, contents, stream=stream) == "Yes."
        assert server.illegal == []
        assert numbers(proxy)['foveate_expansions_total{api="gemini"}'] == 3
    sent = server.received[-1].body
    assert b'"id"' not in sent
    assert sent.count(b"functionCall") == sent.count(b"functionResponse")


def test_calls_without_ids_keep_their_bytes():
    """The ids that they have in the view stay out of requests, so these items count as unchanged."""

    def called(*numbers: int) -> bytes:
        parts = (
            b'{"thoughtSignature":"_-8=", "functionCall" : {"args":{"number" : %d}, "name":"read_log"}}' % number
            for number in numbers
        )
        return b'{"parts":[%s], "role" : "model"}' % b",".join(parts)

    def resulted(*numbers: int) -> bytes:
        parts = (
            b'{"functionResponse":{"response":{"output":"log %d"}, "name":"read_log"}}' % number for number in numbers
        )
        return b'{"parts" :[%s],"role":"user"}' % b" , ".join(parts)

    items = [b'{"role":"user","parts":[{"text":"Which of the logs has an error?"}]}']
    tools = json.dumps(TOOLS).encode()
    before = b""
    with (
        StubServer(ScriptedModel([say("Hm.")] * 6, "gemini", strict=True)) as server,
        running_proxy(server.url, window=100_000) as proxy,
    ):
        for number in range(6):
            numbers = range(number, number + 1 + number % 2)
            items += [called(*numbers), resulted(*numbers)]
            body = b'{"tools":%s,"contents":[%s]}' % (tools, b",".join(items))
            status, _, content = post(proxy, path_of("generateContent"), body)
            assert status == 200, content
            sent = server.received[-1].body
            assert b",".join(items) in sent
            contents = sent[sent.index(b'"contents":') : sent.index(items[-1]) + len(items[-1])]
            assert contents.startswith(before)
            before = contents


@pytest.mark.parametrize("own_id", [{"id": "c1"}, {}], ids=["with an id", "without an id"])
def test_a_call_without_a_result_gets_one_with_its_name(own_id: dict[str, str]):
    """The API refuses a result with another name than its call."""
    called = {"functionCall": {**own_id, "name": "read_log", "args": {}}, "thoughtSignature": "c2lnbmVkLWhlcmU="}
    older = {"functionCall": {"name": "read_log", "args": {}}}
    resulted = {"functionResponse": {"name": "read_log", "response": {"output": "log 1"}}}
    contents = [
        {"role": "user", "parts": [{"text": "Which of the logs has an error?"}]},
        {"role": "model", "parts": [older]},
        {"role": "user", "parts": [resulted]},
        {"role": "model", "parts": [called]},
        {"role": "user", "parts": [{"text": "Stop."}]},
    ]
    with (
        StubServer(ScriptedModel([say("Fine.")], "gemini", strict=True)) as server,
        running_proxy(server.url) as proxy,
    ):
        status, _, content = post(proxy, path_of("generateContent"), {"contents": contents, "tools": TOOLS})
        assert status == 200, content
    [part] = server.received[0].values["contents"][4]["parts"]
    assert part["functionResponse"] == {**own_id, "name": "read_log", "response": part["functionResponse"]["response"]}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_client_may_give_ids_to_calls(stream: bool, tmp_path: Path):
    """Gemini CLI does, and its results have them too."""
    url = f"sqlite:///{tmp_path}/chats.db"
    numbered = [ToolCall("read_log", "read_log", json.dumps({"number": number})) for number in range(12)]
    replies = [(call,) for call in numbered[:8]] + [tuple(numbered[8:10]), tuple(numbered[10:])]
    script: list[Any] = [Message("assistant", calls) for calls in replies]
    script.insert(6, call("expand", "expand", handle="m3"))
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Which of the logs has an error?"}]}]
    with (
        StubServer(ScriptedModel([*script, say(ANSWER), say("Yes.")], "gemini", strict=True)) as server,
        running_proxy(server.url, store=url, window=WINDOW) as proxy,
    ):
        assert loop(proxy, contents, stream=stream, gives_ids=True) == ANSWER
        contents.append({"role": "user", "parts": [{"text": "Sure?"}]})
        assert loop(proxy, contents, stream=stream, gives_ids=True) == "Yes."
        assert server.illegal == []
    with open_store(url) as store:
        [name] = store.names("")
        with foveate.open_conversation(name, store=store, format="gemini", window=WINDOW) as chat:
            replies_stored = [row.message for row in chat.history() if row.message.role == "assistant"]
            assert len(replies_stored) == len(script) + 2
            assert chat.totals().calls_billed == len(script) + 2
            assert not any(record.author == CALLER for record in chat.journal.records())


@pytest.mark.parametrize("is_restarted", [False, True], ids=["one process", "restarted"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_reply_with_an_expansion_and_ids_of_the_client_is_stored_once(
    stream: bool, is_restarted: bool, tmp_path: Path
):
    """The client gives ids to its calls in a reply that was recorded without them."""
    url = f"sqlite:///{tmp_path}/chats.db"

    def reads(*numbers: int) -> list[ToolCall]:
        return [ToolCall("read_log", "read_log", json.dumps({"number": number})) for number in numbers]

    look = ToolCall("expand", "expand", '{"handle":"m3"}')
    replies = [*([read] for read in reads(*range(6))), [look, *reads(6)], reads(7), [*reads(8, 8), look], reads(9)]
    replies += [[look, *reads(8)]]
    script = [*(Message("assistant", tuple(calls)) for calls in replies), say(ANSWER), say("Yes.")]
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Which of the logs has an error?"}]}]
    model = ScriptedModel(script, "gemini", strict=True)
    with StubServer(model) as server:
        with running_proxy(server.url, store=url, window=WINDOW) as proxy:
            assert loop(proxy, contents, stream=stream, gives_ids=True) == ANSWER
            contents.append({"role": "user", "parts": [{"text": "Sure?"}]})
            if not is_restarted:
                assert loop(proxy, contents, stream=stream, gives_ids=True) == "Yes."
        if is_restarted:
            with running_proxy(server.url, store=url, window=WINDOW) as proxy:
                assert loop(proxy, contents, stream=stream, gives_ids=True) == "Yes."
        assert server.illegal == []
        assert not any(b"[No result" in request.body for request in server.received)
    with open_store(url) as store:
        [name] = store.names("")
        with foveate.open_conversation(name, store=store, format="gemini", window=WINDOW) as chat:
            assert sum(row.message.role == "assistant" for row in chat.history()) == len(script)
            assert not any(record.author == CALLER for record in chat.journal.records())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_tool_loop_of_code_assist_stays_in_the_window(stream: bool, tmp_path: Path):
    """As Gemini CLI with a Google login: an object around request and answer, calls without ids, and a token."""
    url = f"sqlite:///{tmp_path}/chats.db"
    calls = [ToolCall("read_log", "read_log", json.dumps({"number": number})) for number in range(CALLS)]
    script: list[Any] = [Message("assistant", (call,)) for call in calls]
    script.insert(9, Message("assistant", (ToolCall("expand", "expand", '{"handle":"m3"}'),)))
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Which of the logs has an error?"}]}]
    with (
        StubServer(ScriptedModel([*script, say(ANSWER)], "gemini", strict=True)) as server,
        RawProvider(b"") as others,
        running_proxy(others.url, code_assist=server.url, store=url, window=WINDOW) as proxy,
    ):
        assert loop(proxy, contents, stream=stream, gives_ids=True, has_login=True) == ANSWER
        assert (server.illegal, others.received) == ([], [])
        until(lambda: numbers(proxy)['foveate_requests_total{api="gemini",outcome="managed"}'] == CALLS + 1)
        assert numbers(proxy)['foveate_expansions_total{api="gemini"}'] == 1
    own, sent = len(json.dumps(contents)), max(len(request.body) for request in server.received)
    assert own > 100_000
    assert sent < 0.6 * own
    assert "expand" not in json.dumps(contents)
    for request in server.received:
        assert list(request.values) == ["model", "project", "request", "user_prompt_id"]
        assert request.values["request"]["session_id"] == "s-1"
        assert request.headers["authorization"] == "Bearer ya29.token"
    with open_store(url) as store:
        [name] = store.names("")
        assert name.startswith("s-1.")
        with foveate.open_conversation(name, store=store, format="gemini", window=WINDOW) as chat:
            assert chat.totals().calls_billed == CALLS + 2
            assert chat.journal.verify() == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_answer_of_code_assist_with_an_expansion_is_one_answer(stream: bool):
    def looks() -> Message:
        return Message("assistant", (Text("I look. "), ToolCall("expand", "expand", '{"handle":"m2"}')))

    fields = {"tools": TOOLS, "contents": [{"role": "user", "parts": [{"text": "Hello."}]}]}
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    with (
        StubServer(ScriptedModel([looks(), say("I saw."), say("Bye.")], "gemini")) as server,
        running_proxy(server.url) as proxy,
    ):
        content = post_to_code_assist(proxy, method, fields)
        plain = post_to_code_assist(proxy, method, fields)
    answers = [json.loads(line[6:]) for line in content.splitlines() if line] if stream else [json.loads(content)]
    assert {answer["traceId"] for answer in answers} == {"trace-r0001"}
    assert {answer["response"]["responseId"] for answer in answers} == {"r0001"}
    parts = [part for answer in answers for part in answer["response"]["candidates"][0]["content"].get("parts", ())]
    assert "".join(part.get("text", "") for part in parts) == "I look. I saw."
    assert not any("functionCall" in part for part in parts)
    reasons = [answer["response"]["candidates"][0].get("finishReason") for answer in answers]
    assert [reason for reason in reasons if reason] == ["STOP"]
    assert b"trace-r0003" in plain


def test_a_request_of_code_assist_without_changes_keeps_its_bytes():
    answer = b'HTTP/1.1 429 Too Many Requests\r\nContent-Length: 13\r\nConnection: close\r\n\r\n{ "error":{}}'
    request = b'{"contents" : [{"role":"user","parts":[{"text":"Hi."}]}],"labels":{"a" :1}}'
    body = b'{ "request": %s, "model" :"gemini-2.5-pro", "later": [ 1 ]}' % request
    with_tools = body.replace(b'"labels"', b'"tools":[{"functionDeclarations":[{"name" :"a"}]}],"labels"')
    with (
        RawProvider(answer) as provider,
        RawProvider(b"") as others,
        running_proxy(others.url, code_assist=provider.url) as proxy,
    ):
        for sent in (body, with_tools):
            status, _, content = post(proxy, "/v1internal:generateContent", sent)
            assert (status, content) == (429, b'{ "error":{}}')
        for sent in (b"{}", b'{"request":1}', b'{"request":{"contents":1}}'):
            post(proxy, "/v1internal:generateContent", sent)
        for method in ("countTokens", "loadCodeAssist", "onboardUser", "streamGenerateContent"):
            assert "x-foveate-conversation" not in post(proxy, f"/v1internal:{method}", body)[1]
    received = [exchange.body for exchange in provider.received]
    assert received[0] == body
    assert received[1].startswith(b'{"request":{"contents":[{"role":"user","parts":[{"text":"Hi."}]}],"tools":[')
    assert received[1].endswith(b'},"model":"gemini-2.5-pro","later":[ 1 ]}')
    assert b'[{"functionDeclarations":[{"name" :"a"},' in received[1]
    assert b'"labels":{"a" :1}' in received[1]
    assert received[2:5] == [b"{}", b'{"request":1}', b'{"request":{"contents":1}}']
    assert received[5:] == [body] * 4


def test_a_refusal_as_too_long_is_repeated_with_less():
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Which of the logs has an error?"}]}]
    script = [*(call(f"c{number}", "read_log", number=number) for number in range(9)), say(ANSWER)]
    with (
        StubServer(ScriptedModel(script, "gemini", strict=True, window=1_700)) as server,
        running_proxy(server.url, window=100_000) as proxy,
    ):
        assert loop(proxy, contents, stream=True) == ANSWER
        assert numbers(proxy)['foveate_retries_total{api="gemini"}'] >= 1


def test_errors_of_the_provider_pass_as_they_are():
    failure = Failure(429, message="Resource has been exhausted (e.g. check quota).")
    with StubServer(ScriptedModel([failure, say("Hi.")], "gemini")) as server, running_proxy(server.url) as proxy:
        body = {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}], "tools": TOOLS}
        status, _, content = post(proxy, path_of("generateContent"), body)
        assert (status, json.loads(content)["error"]["message"]) == (429, failure.message)
        assert post(proxy, path_of("generateContent"), body)[0] == 200


def test_other_requests_pass_as_they_are():
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    body = b'{ "contents" : [{"parts":[{"text":"Hi."}]}] }'
    paths = [
        path_of("countTokens"),
        path_of("embedContent"),
        path_of("streamGenerateContent"),
        "/v1beta/cachedContents",
    ]
    with RawProvider(answer) as provider, running_proxy(provider.url) as proxy:
        for path in paths:
            status, headers, content = post(proxy, path, body)
            assert (status, content) == (200, b"{}")
            assert "x-foveate-conversation" not in headers
        cached = b'{"cachedContent": "cachedContents/1", "contents": [{"parts":[{"text":"Hi."}]}]}'
        post(proxy, path_of("generateContent"), cached)
    assert [exchange.target for exchange in provider.received] == [*paths, path_of("generateContent")]
    assert [exchange.body for exchange in provider.received] == [*[body] * 4, cached]


def test_each_api_has_its_provider():
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    with (
        RawProvider(answer) as google,
        RawProvider(answer) as others,
        running_proxy(others.url, gemini=google.url) as proxy,
    ):
        for path in (path_of("generateContent"), "/upload/v1beta/files", "/v1beta/openai/chat/completions"):
            post(proxy, path, b"{}", **{"x-goog-api-key": ""})
        post(proxy, "/v1/models", b"{}")  # With a key of Google's.
        vertex = "/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent"
        for path in ("/v1/models/gemini-2.5-pro:countTokens", "/v1/models?pageSize=9&key=secret-key-2", vertex):
            post(proxy, path, b"{}", **{"x-goog-api-key": ""})
        post(proxy, "/v1/chat/completions", b"{}", **{"x-goog-api-key": ""})
    assert [len(provider.received) for provider in (google, others)] == [7, 1]


def test_errors_of_the_proxy_have_the_form_of_the_api():
    with RawProvider(b"") as provider, running_proxy(provider.url) as proxy:
        body = {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}], "tools": TOOLS}
        status, _, content = post(proxy, path_of("generateContent"), body)
    error = json.loads(content)["error"]
    assert (status, error["code"], error["status"]) == (502, 502, "UNAVAILABLE")
    assert error["message"].startswith("foveate: The provider did not answer.")


def test_claude_on_vertex_is_managed():
    """Its path names the model, and its body is Anthropic's without it."""
    model = ScriptedModel([call("c1", "read_log", number=1), say("Done.")], "anthropic")
    path = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-4-5@20251101:rawPredict"
    tools = [{"name": "read_log", "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": "Read."}]
    answers: list[bytes] = []

    def answer(exchange: Any) -> None:
        content = json.dumps(model.answer({"model": "claude-opus-4-5", **json.loads(exchange.body)}).response).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        answers.append(content)
        exchange.connection.sendall(head.encode() + content)

    with RawProvider(answer) as provider, running_proxy(provider.url, window=None) as proxy:
        for _ in range(2):
            fields = {"anthropic_version": "vertex-2023-10-16", "max_tokens": 99, "tools": tools, "messages": messages}
            status, headers, content = post(proxy, path, fields)
            assert (status, content) == (200, answers[-1])
            assert headers["x-foveate-conversation"]
            reply = json.loads(content)["content"]
            messages.append({"role": "assistant", "content": reply})
            result = {"type": "tool_result", "tool_use_id": "c1", "content": log_text(1)}
            messages.append({"role": "user", "content": [result]})
        until(lambda: numbers(proxy)['foveate_requests_total{api="anthropic",outcome="managed"}'] == 2)
    assert {exchange.target for exchange in provider.received} == {path}


def test_a_key_in_the_query_is_neither_logged_nor_shown(caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    body = {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}], "tools": TOOLS}
    with RawProvider(b"no answer of a server\r\n\r\n") as provider, running_proxy(provider.url) as proxy:
        for method in ("generateContent", "countTokens"):
            status, _, content = post(proxy, f"{path_of(method)}?key=secret%20key-2", body)
            assert status == 502
            assert b"key-2" not in content
    assert [exchange.target.rpartition("=")[2] for exchange in provider.received] == ["secret%20key-2"] * 2
    shown = "".join(f"{record.getMessage()} {record.__dict__.get('facts')}" for record in caplog.records)
    assert "generateContent" in shown
    assert "key-2" not in shown


def test_a_key_in_the_query_is_that_of_an_owner():
    """Another one with the same session gets another conversation."""
    body = {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}], "tools": TOOLS}
    own = {"x-goog-api-key": "", "x-foveate-conversation": "mine"}
    script = [say("Hi.")] * 4
    with StubServer(ScriptedModel(script, "gemini")) as server, running_proxy(server.url) as proxy:
        queries = ("key=secret-key-2", "key=secret-key-2", "key=secret-key-3", "alt=json&key=secret-key-2")
        names = [
            post(proxy, f"{path_of('generateContent')}?{query}", body, **own)[1]["x-foveate-conversation"]
            for query in queries
        ]
        assert {"x-goog-api-key": ""}.items() <= server.received[0].headers.items()
    assert [names.index(name) for name in names] == [0, 0, 2, 0]
    assert "secret-key" not in "".join(names)


def test_the_log_of_web_sockets_has_no_query(monkeypatch: pytest.MonkeyPatch):
    for name in ("foveate", "uvicorn", "uvicorn.access", "uvicorn.error"):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "handlers", [])
        for field in ("level", "propagate", "disabled"):
            monkeypatch.setattr(logger, field, getattr(logger, field))
    logging.getLogger("uvicorn.error").setLevel(logging.NOTSET)  # Other servers of this process may have set one.
    log = io.StringIO()
    write_log(log, is_json=False)
    request = b"GET /ws/live?key=secret-key-2 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
    request += b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    with RawProvider(b"") as provider, running_proxy(provider.url) as proxy:
        assert split(ask(proxy.port, request))[0] == 426
    assert 'WebSocket /ws/live\\" 426' in log.getvalue()
    assert "secret-key-2" not in log.getvalue()
