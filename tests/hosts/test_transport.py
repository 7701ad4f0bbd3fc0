"""The HTTP client under the SDKs: 100 calls in a small window, with the real SDKs and a server on loopback."""

from __future__ import annotations

import asyncio
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai", reason="openai is not installed")
pytest.importorskip("anthropic", reason="anthropic is not installed")
httpx2 = pytest.importorskip("httpx2", reason="httpx2 is not installed")

import anthropic
import openai
from pages import run_page
from scenario import ANSWER, CALLS, QUESTION, WINDOW, exact_tokens, largest, log_text, reader

import foveate
from foveate.hosts.transport import async_http_client, conversation, http_client
from foveate.requests import CONVERSATION_HEADER
from foveate.testing import CutReply, Failure, ScriptedModel, call, say
from foveate.testing.server import StubServer

OPENAI_TOOLS: Any = [
    {"type": "function", "function": {"name": "read_log", "parameters": {"type": "object", "properties": {}}}}
]
RESPONSES_TOOLS: Any = [{"type": "function", "name": "read_log", "parameters": {"type": "object", "properties": {}}}]
ANTHROPIC_TOOLS: Any = [{"name": "read_log", "input_schema": {"type": "object", "properties": {}}}]


def run_openai(client: Any, messages: list[Any], *, stream: bool = False, model: str = "gpt-5") -> str:
    """The loop of a program that uses chat completions; return the answer."""
    while True:
        if stream:
            with client.chat.completions.stream(model=model, messages=messages, tools=OPENAI_TOOLS) as events:
                reply = events.get_final_completion()
        else:
            reply = client.chat.completions.create(model=model, messages=messages, tools=OPENAI_TOOLS)
        message = reply.choices[0].message
        # Only what the API documents for requests: the client sends a program's own messages as they are.
        fields = {"role": True, "content": True, "tool_calls": {"__all__": {"id", "type", "function"}}}
        own = message.model_dump(exclude_none=True, include=fields)
        for tool_call in own.get("tool_calls") or ():
            tool_call["function"].pop("parsed_arguments", None)
        messages.append(own)
        if not message.tool_calls:
            return message.content
        for tool_call in message.tool_calls:
            number = json.loads(tool_call.function.arguments)["number"]
            messages.append({"role": "tool", "tool_call_id": tool_call.id, "content": log_text(number)})


def run_anthropic(client: Any, messages: list[Any], *, stream: bool = False, model: str = "claude-haiku-4-5") -> str:
    """The loop of a program that uses Anthropic's messages; return the answer."""
    keywords: Any = {"model": model, "max_tokens": 500, "tools": ANTHROPIC_TOOLS, "system": "Be brief."}
    while True:
        if stream:
            with client.messages.stream(messages=messages, **keywords) as events:
                reply = events.get_final_message()
        else:
            reply = client.messages.create(messages=messages, **keywords)
        messages.append({"role": "assistant", "content": reply.content})
        uses = [block for block in reply.content if block.type == "tool_use"]
        if not uses:
            return reply.content[0].text
        results = [{"type": "tool_result", "tool_use_id": u.id, "content": log_text(u.input["number"])} for u in uses]
        messages.append({"role": "user", "content": results})


def run_responses(client: Any, items: list[Any], *, stream: bool = False, model: str = "gpt-5") -> str:
    """The loop of a program that uses the Responses API and keeps its own list; return the answer."""
    while True:
        if stream:
            with client.responses.stream(model=model, input=items, tools=RESPONSES_TOOLS, store=False) as events:
                reply = events.get_final_response()
        else:
            reply = client.responses.create(model=model, input=items, tools=RESPONSES_TOOLS, store=False)
        unset = {"parsed", "parsed_arguments"}
        items += [item.model_dump(exclude_none=True, exclude=unset) for item in reply.output]
        found = [item for item in reply.output if item.type == "function_call"]
        if not found:
            return reply.output_text
        for item in found:
            number = json.loads(item.arguments)["number"]
            items.append({"type": "function_call_output", "call_id": item.call_id, "output": log_text(number)})


RUNS = {"openai": run_openai, "anthropic": run_anthropic, "openai_responses": run_responses}


def client_of(provider: str, server: StubServer, **options: Any) -> Any:
    http = http_client(**{"window": WINDOW, "policy": "balanced", **options})
    if provider == "anthropic":
        return anthropic.Anthropic(base_url=server.url, api_key="k", http_client=http, max_retries=1)
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", http_client=http, max_retries=1)


def first_list() -> list[Any]:
    return [{"role": "user", "content": QUESTION}]


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "stream"), [*((provider, True) for provider in RUNS), ("openai", False)])
def test_a_hundred_calls_stay_in_the_window(provider: str, stream: bool):
    model = ScriptedModel(reader(), provider, strict=True)
    with StubServer(model) as server, client_of(provider, server) as client:
        messages = first_list()
        assert RUNS[provider](client, messages, stream=stream) == ANSWER
        assert server.illegal == []
    assert len(model.requests) == CALLS + 1
    assert largest(model) <= WINDOW
    assert exact_tokens({"messages": messages}) > 7 * WINDOW  # The program's own list is whole.


@pytest.mark.parametrize("provider", list(RUNS))
def test_the_history_holds_every_message_once_and_every_bill(provider: str, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel(reader(8), provider)
    with StubServer(model) as server, client_of(provider, server, store=url) as client, conversation("logs"):
        RUNS[provider](client, first_list(), stream=provider == "anthropic")
    with foveate.open_conversation("logs", store=url, window=WINDOW, format=provider) as chat:
        results = [row.message.text for row in chat.history() if row.message.role == "tool"]
        assert results == [log_text(number) for number in range(8)]
        assert chat.totals().calls == 9
        usage = chat.totals().usage
        billed = (usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0)
        assert billed == sum(bill.total for bill in model.billed)


@pytest.mark.slow
def test_a_program_that_starts_again_goes_on(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    messages = first_list()
    for _ in range(2):
        model = ScriptedModel(reader(20), "openai")
        with StubServer(model) as server, client_of("openai", server, store=url) as client:
            run_openai(client, messages)
            assert server.illegal == []
        assert largest(model) <= WINDOW
        messages.append({"role": "user", "content": "Read them again."})
    with foveate.open_store(url) as store:
        assert len(store.names("")) == 1


@pytest.mark.parametrize("stream", [pytest.param(False, marks=pytest.mark.slow), True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", list(RUNS))
def test_the_model_may_expand_and_the_program_sees_nothing_of_it(provider: str, stream: bool, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel(reader(14, expand="m3"), provider)
    messages = first_list()
    with StubServer(model) as server, client_of(provider, server, store=url) as client, conversation("logs"):
        assert RUNS[provider](client, messages, stream=stream) == ANSWER
        assert server.illegal == []
    assert len(model.requests) == 16
    assert all("expand" in json.dumps(request["tools"]) for request in model.requests)
    assert "expand" not in json.dumps(messages, default=str)
    with foveate.open_conversation("logs", store=url, window=WINDOW, format=provider) as chat:
        calls = [row.message.calls[0].name for row in chat.history() if row.message.calls]
        assert (calls.count("expand"), calls.count("read_log")) == (1, 14)
        assert chat.totals().calls == 16
    with foveate.open_store(url) as store:
        assert store.names("") == ["logs"]


def test_an_async_program_sees_nothing_of_an_expansion():
    model = ScriptedModel(reader(12, expand="m3"), "anthropic")

    async def run(client: Any) -> str:
        messages = first_list()
        keywords: Any = {"model": "claude-haiku-4-5", "max_tokens": 500, "tools": ANTHROPIC_TOOLS}
        for number in range(13):
            if number % 2:
                async with client.messages.stream(messages=messages, **keywords) as events:
                    reply = await events.get_final_message()
            else:
                reply = await client.messages.create(messages=messages, **keywords)
            messages.append({"role": "assistant", "content": reply.content})
            uses = [block for block in reply.content if block.type == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": use.id, "content": log_text(3)} for use in uses]
            messages.append({"role": "user", "content": results})
        assert "expand" not in json.dumps(messages, default=str)
        return str(reply.content[-1].text)

    async def main(server: StubServer) -> str:
        http = async_http_client(window=WINDOW)
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="k", http_client=http) as client:
            return await run(client)

    with StubServer(model) as server:
        assert asyncio.run(main(server)) == ANSWER
        assert server.illegal == []
    assert len(model.requests) == 14


@pytest.mark.parametrize("provider", list(RUNS))
def test_an_error_behind_an_expansion_reaches_the_program(provider: str):
    script = iter(
        [
            call("c0", "read_log", number=0),
            call("e0", "expand", handle="m3"),
            Failure(503, message="Overloaded."),
            Failure(503, message="Overloaded."),
            say(ANSWER),
        ]
    )
    model = ScriptedModel(lambda request: next(script), provider)
    messages = first_list()
    with StubServer(model) as server, client_of(provider, server) as client:
        with pytest.raises((openai.OpenAIError, anthropic.AnthropicError), match=r"(?i)overloaded"):
            RUNS[provider](client.with_options(max_retries=0), messages, stream=True)
        assert RUNS[provider](client, messages, stream=True) == ANSWER
        assert server.illegal == []


def test_the_request_of_a_retry_is_the_same():
    script = iter([call("c0", "read_log", number=0), Failure(500), say(ANSWER)])
    model = ScriptedModel(lambda request: next(script), "openai")
    with StubServer(model) as server, client_of("openai", server) as client:
        assert run_openai(client, first_list()) == ANSWER
        bodies = [received.body for received in server.received]
    assert bodies[1] == bodies[2]


def test_a_cut_stream_is_not_recorded_and_the_run_goes_on(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    script = iter([call("c0", "read_log", number=0), CutReply(say("A long answer that is cut.")), say(ANSWER)])
    model = ScriptedModel(lambda request: next(script), "anthropic")
    messages = first_list()
    with StubServer(model) as server, client_of("anthropic", server, store=url) as client, conversation("logs"):
        with pytest.raises(Exception):  # noqa: B017, PT011 - the SDK's error, by version
            run_anthropic(client, messages, stream=True)
        assert run_anthropic(client, messages, stream=True) == ANSWER
        assert server.illegal == []
    with foveate.open_conversation("logs", store=url, window=WINDOW, format="anthropic") as chat:
        assert [row.message.role for row in chat.history()] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.slow
def test_a_refused_prompt_is_made_smaller():
    model = ScriptedModel(reader(30), "anthropic", window=5_000)  # Smaller than the window of the options.
    with StubServer(model) as server, client_of("anthropic", server) as client:
        assert run_anthropic(client, first_list()) == ANSWER
        assert server.illegal == []
        assert len(server.received) > len(model.requests) == 31  # Some were refused.


@pytest.mark.slow
def test_a_model_may_change_in_the_middle():
    model = ScriptedModel(reader(40), "openai")
    messages = first_list()
    with StubServer(model) as server, client_of("openai", server) as client:
        for number in range(40):
            names = ("gpt-5", "gpt-4o-mini")
            reply = client.chat.completions.create(model=names[number % 2], messages=messages, tools=OPENAI_TOOLS)
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": log_text(number)}
            messages.append(result)
        assert server.illegal == []
    assert largest(model) <= WINDOW


def test_messages_that_the_program_deletes_are_not_sent_again():
    model = ScriptedModel(lambda request: say("Noted."), "openai")
    messages = [{"role": "user", "content": "My password is hunter2."}]
    with StubServer(model) as server, client_of("openai", server) as client:
        for text in ("Go on.", "And on."):
            reply = client.chat.completions.create(model="gpt-5", messages=messages)
            messages += [reply.choices[0].message.model_dump(exclude_none=True), {"role": "user", "content": text}]
        del messages[0:2]
        client.chat.completions.create(model="gpt-5", messages=messages)
        assert "hunter2" not in server.received[-1].body.decode()
        assert server.illegal == []


def test_the_header_names_the_conversation_and_is_not_sent(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    with StubServer(model) as server, client_of("openai", server, store=url) as client:
        for name in ("ann", "ben"):
            client.chat.completions.create(
                model="gpt-5", messages=first_list(), extra_headers={CONVERSATION_HEADER: name}
            )
        assert all(CONVERSATION_HEADER not in received.headers for received in server.received)
    with foveate.open_store(url) as store:
        assert sorted(store.names("")) == ["ann", "ben"]


def test_a_request_that_cannot_have_a_view_is_sent_unchanged():
    model = ScriptedModel(lambda request: say(ANSWER), "openai_responses")
    with StubServer(model) as server, client_of("openai_responses", server) as client:
        with pytest.warns(RuntimeWarning, match="are sent as they are. previous_response_id=") as warnings:
            for _ in range(3):
                client.responses.create(model="gpt-5", input=QUESTION, previous_response_id="resp_1")
        assert server.received[-1].values["input"] == QUESTION
    assert len(warnings) == 1


def test_a_model_that_is_not_known_gets_a_view_and_a_warning():
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    with StubServer(model) as server, client_of("openai", server, window=None) as client:
        with pytest.warns(RuntimeWarning, match="foveate assumes 128,000 tokens") as warnings:
            for _ in range(3):
                client.chat.completions.create(model="nobody-knows-me", messages=first_list())
        chat = client._client._transport._views._host.conversation((_only_name(client),))
        assert chat.view.budget.window == 128_000
    assert len(warnings) == 1


def test_missing_http_library_names_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(foveate.errors.MissingExtra, match=r'httpx2.* needs: pip install "foveate\[openai\]"'):
        http_client(window=16_000)


@pytest.mark.parametrize(("library", "other"), [("httpx2", "httpx"), ("httpx", "httpx2")])
def test_the_other_http_library_is_named_if_it_is_there(monkeypatch: pytest.MonkeyPatch, library, other):
    """Regression: an SDK before OpenAI 3 was told to install what it has."""
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, other, types.ModuleType(other))
    with pytest.raises(
        foveate.errors.BadSetting, match=f'^{library} is not installed, but {other} is. Pass library="{other}"'
    ):
        async_http_client(library=library, window=16_000)


def test_an_unknown_http_library_is_refused():
    with pytest.raises(foveate.errors.BadSetting, match=r'^library= must be "httpx2" or "httpx", not \'requests\''):
        http_client(library="requests", window=16_000)


def test_the_window_is_that_of_the_model_by_default(caplog: pytest.LogCaptureFixture):
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    with StubServer(model) as server, client_of("openai", server, window=None) as client:
        for name in ("gpt-4o", "claude-sonnet-4-5"):
            client.chat.completions.create(model=name, messages=first_list())
        chat = client._client._transport._views._host.conversation((_only_name(client),))
        assert chat.view.budget.window == 200_000
    assert "are sent as they are" not in caplog.text


def _only_name(client: Any) -> str:
    (name,) = client._client._transport._views._host._pools["openai"]._recent
    return name


def test_other_requests_pass_unchanged():
    seen: list[Any] = []

    def answer(request: Any) -> Any:
        seen.append((request.method, request.url.path, request.read()))
        return httpx2.Response(200, json={"ok": True})

    with http_client(window=WINDOW, transport=httpx2.MockTransport(answer)) as client:
        assert client.get("https://api.example/v1/models").json() == {"ok": True}
        client.post("https://api.example/v1/embeddings", json={"input": "a"})
        with pytest.warns(RuntimeWarning, match="JSONDecodeError"):
            client.post("https://api.example/v1/messages", content=b"not json")
    assert [(method, path) for method, path, _ in seen] == [
        ("GET", "/v1/models"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/messages"),
    ]
    assert seen[2][2] == b"not json"


def test_many_tasks_share_one_async_client(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel(lambda request: say(ANSWER), "anthropic")

    async def talk(client: Any, name: str) -> None:
        messages: list[Any] = [{"role": "user", "content": f"I am {name}."}]
        with conversation(name):
            for number in range(5):
                keywords: Any = {"model": "claude-haiku-4-5", "max_tokens": 100, "messages": messages}
                if number % 2:
                    async with client.messages.stream(**keywords) as stream:
                        reply = await stream.get_final_message()
                else:
                    reply = await client.messages.create(**keywords)
                messages.append({"role": "assistant", "content": reply.content})
                messages.append({"role": "user", "content": f"Go on, {number}."})

    async def main(server: StubServer) -> None:
        http = async_http_client(window=WINDOW, store=url)
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="k", http_client=http) as client:
            await asyncio.gather(*(talk(client, f"user-{number}") for number in range(8)))

    with StubServer(model) as server:
        asyncio.run(main(server))
        assert server.illegal == []
    for number in range(8):
        with foveate.open_conversation(f"user-{number}", store=url, window=WINDOW, format="anthropic") as chat:
            assert (len(chat), chat.totals().calls) == (10, 5)
            assert chat.history()[0].message.text == f"I am user-{number}."


def test_a_cancelled_request_records_nothing():
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    held: list[Any] = []

    async def main(server: StubServer) -> None:
        class Stuck(httpx2.AsyncBaseTransport):  # type: ignore[misc]
            async def handle_async_request(self, request: Any) -> Any:
                held.append(request)
                await asyncio.Event().wait()

        http = async_http_client(window=WINDOW, transport=Stuck())
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", http_client=http, max_retries=0)
        task = asyncio.create_task(client.chat.completions.create(model="gpt-5", messages=first_list()))
        while not held:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (pool,) = [p for p in http._transport._views._host._pools.values() if len(p)]
        (chat,) = pool._recent.values()
        assert [row.message.role for row in chat.history()] == ["user"]
        await http.aclose()

    with StubServer(model) as server:
        asyncio.run(main(server))


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_page("sdks.md", tmp_path, monkeypatch)
