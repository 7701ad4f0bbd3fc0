"""LiteLLM: 100 calls in a small window, with the real package and a server on loopback.

The hooks are those that LiteLLM's router calls, also in its proxy. The proxy itself is not installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # No download when the package is imported.
litellm = pytest.importorskip("litellm", reason="litellm is not installed")

from pages import run_page
from scenario import ANSWER, CALLS, QUESTION, WINDOW, exact_tokens, largest, log_text, marks, reader

import foveate
from foveate.hosts.litellm import FoveateLogger
from foveate.testing import CutReply, Failure, ScriptedModel, call, say
from foveate.testing.server import StubServer

# LiteLLM's own, about its types and its logging tasks.
pytestmark = [pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("UserWarning", "DeprecationWarning")]

SCHEMA: Any = {"type": "object", "properties": {}}
TOOLS: dict[str, Any] = {
    "openai": [{"type": "function", "function": {"name": "read_log", "parameters": SCHEMA}}],
    "anthropic": [{"name": "read_log", "input_schema": SCHEMA}],
    "openai_responses": [{"type": "function", "name": "read_log", "parameters": SCHEMA}],
}
MODELS = {"openai": "openai/gpt-5", "anthropic": "anthropic/claude-haiku-4-5", "openai_responses": "openai/gpt-5"}


@pytest.fixture(autouse=True)
def no_callbacks() -> Iterator[None]:
    yield
    litellm.callbacks = []
    litellm.num_retries = None


def logger_of(**options: Any) -> FoveateLogger:
    """Install a logger, in place of the last one."""
    logger = FoveateLogger(**{"window": WINDOW, "policy": "balanced", **options})
    for name in ("callbacks", "success_callback", "_async_success_callback", "failure_callback"):
        setattr(litellm, name, [])
    litellm._async_failure_callback = []
    litellm.callbacks = [logger]
    return logger


def where(provider: str, server: StubServer) -> dict[str, Any]:
    url = server.url if provider == "anthropic" else f"{server.url}/v1"
    return {"model": MODELS[provider], "api_base": url, "api_key": "k"}


def streaming(stream: bool) -> dict[str, Any]:
    return {"stream": True} if stream else {}


def first_list(text: str = QUESTION) -> list[Any]:
    return [{"role": "user", "content": text}]


async def run_openai(server: StubServer, messages: list[Any], *, stream: bool = False, **more: Any) -> str:
    """The loop of a program that uses `acompletion`; return the answer."""
    keywords = {**where("openai", server), "tools": TOOLS["openai"], **more}
    while True:
        if stream:
            options = {"stream": True, "stream_options": {"include_usage": True}}
            chunks = [chunk async for chunk in await litellm.acompletion(messages=messages, **keywords, **options)]
            reply = litellm.stream_chunk_builder(chunks)
        else:
            reply = await litellm.acompletion(messages=messages, **keywords)
        message = reply.choices[0].message
        messages.append(message)  # An object of LiteLLM, as its guide does it.
        if not message.tool_calls:
            return str(message.content)
        for tool_call in message.tool_calls:
            number = json.loads(tool_call.function.arguments)["number"]
            messages.append({"role": "tool", "tool_call_id": tool_call.id, "content": log_text(number)})


async def run_anthropic(server: StubServer, messages: list[Any], **more: Any) -> str:
    """The loop of a program that uses Anthropic's messages; return the answer."""
    keywords = {**where("anthropic", server), "max_tokens": 500, "tools": TOOLS["anthropic"], "system": "Be brief."}
    while True:
        reply = await litellm.anthropic.messages.acreate(messages=messages, **{**keywords, **more})
        messages.append({"role": "assistant", "content": reply["content"]})
        uses = [block for block in reply["content"] if block["type"] == "tool_use"]
        if not uses:
            return str(reply["content"][0]["text"])
        results = [(use["id"], log_text(use["input"]["number"])) for use in uses]
        blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in results]
        messages.append({"role": "user", "content": blocks})


async def run_responses(server: StubServer, items: list[Any], *, stream: bool = False, **more: Any) -> str:
    """The loop of a program that uses `aresponses` and keeps its own list; return the answer."""
    keywords = {**where("openai_responses", server), "tools": TOOLS["openai_responses"], "store": False, **more}
    while True:
        reply = await litellm.aresponses(input=items, stream=stream, **keywords)
        if stream:
            reply = [event async for event in reply][-1].response
        output = [item if isinstance(item, dict) else item.model_dump(exclude_none=True) for item in reply.output]
        items += output
        found = [item for item in output if item["type"] == "function_call"]
        if not found:
            return str(output[-1]["content"][0]["text"])
        for item in found:
            number = json.loads(item["arguments"])["number"]
            items.append({"type": "function_call_output", "call_id": item["call_id"], "output": log_text(number)})


RUNS: dict[str, Any] = {"openai": run_openai, "anthropic": run_anthropic, "openai_responses": run_responses}


async def logged() -> None:
    """Wait until LiteLLM's worker has reported every reply."""
    from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

    for _ in range(2):  # A task may give the worker more to do.
        await GLOBAL_LOGGING_WORKER.flush()
        others = asyncio.all_tasks() - {asyncio.current_task(), GLOBAL_LOGGING_WORKER._worker_task}
        if others:
            await asyncio.wait(others, timeout=5)


def run(provider: str, server: StubServer, messages: list[Any], **more: Any) -> str:
    async def main() -> str:
        answer = await RUNS[provider](server, messages, **more)
        await logged()
        return str(answer)

    return asyncio.run(main())


KINDS = [("openai", False), ("openai", True), ("anthropic", False), ("openai_responses", False)]
KINDS.append(("openai_responses", True))
IDS = [f"{provider}-{'streamed' if stream else 'whole'}" for provider, stream in KINDS]


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "stream"), KINDS, ids=IDS)
def test_a_hundred_calls_stay_in_the_window(provider: str, stream: bool):
    logger_of()
    # Objects of LiteLLM in a list of chat completions have fields of its own, which it sends on.
    model = ScriptedModel(reader(), provider, strict=provider != "openai")
    messages = first_list()
    with StubServer(model) as server:
        assert run(provider, server, messages, **streaming(stream)) == ANSWER
        assert server.illegal == []
    assert len(model.requests) == CALLS + 1
    assert largest(model) <= WINDOW
    # The program's own list is whole.
    assert exact_tokens({"messages": json.loads(json.dumps(messages, default=vars))}) > 7 * WINDOW


@pytest.mark.parametrize(("provider", "stream"), KINDS, ids=IDS)
def test_the_history_holds_every_message_once_and_every_bill(provider: str, stream: bool, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    model = ScriptedModel(reader(12), provider)
    with StubServer(model) as server:
        run(provider, server, first_list(), litellm_session_id="logs", **streaming(stream))
    logger.close()
    with foveate.open_conversation("logs", store=url, window=WINDOW, format=provider) as chat:
        assert [row.message.role for row in chat.history()] == ["user", *["assistant", "tool"] * 12, "assistant"]
        usage = chat.totals().usage
        billed = (usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0)
        assert (chat.totals().calls, billed) == (13, sum(bill.total for bill in model.billed))


def test_without_the_logger_the_requests_outgrow_the_window():
    model = ScriptedModel(reader(30), "openai")
    with StubServer(model) as server:
        run("openai", server, first_list())
    assert largest(model) > 2 * WINDOW


@pytest.mark.slow
def test_a_program_that_starts_again_goes_on(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    messages = first_list()
    for _ in range(2):
        logger = logger_of(store=url)
        model = ScriptedModel(reader(20), "anthropic")
        with StubServer(model) as server:
            run("anthropic", server, messages)
            assert server.illegal == []
        assert largest(model) <= WINDOW
        messages.append({"role": "user", "content": "Read them again."})
        logger.close()
    assert len(names_in(url)) == 1


def names_in(url: str) -> list[str]:
    with foveate.open_store(url) as store:
        return sorted(store.names(""))


def roles_in(url: str, name: str, format: str = "openai") -> list[str]:
    with foveate.open_conversation(name, store=url, window=WINDOW, format=format) as chat:
        return [row.message.role for row in chat.history()]


@pytest.mark.parametrize("provider", ["openai", "openai_responses"])
def test_a_retry_sends_the_same_view_and_records_one_reply(provider: str, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    script = iter([call("c0", "read_log", number=0), Failure(500), say(ANSWER)])
    model = ScriptedModel(lambda request: next(script), provider)
    with StubServer(model) as server:
        more = {"litellm_session_id": "logs", "num_retries": 2, "max_retries": 0}
        assert run(provider, server, first_list(), **more) == ANSWER
        bodies = [received.values for received in server.received]
    assert bodies[1] == bodies[2]
    logger.close()
    # LiteLLM calls no hook after a retry of `aresponses`: the next list brings the reply.
    last = ["assistant"] if provider == "openai" else []
    assert roles_in(url, "logs", provider) == ["user", "assistant", "tool", *last]


def router_of(*deployments: tuple[str, dict[str, Any]], **options: Any) -> Any:
    models = [{"model_name": name, "litellm_params": params} for name, params in deployments]
    return litellm.Router(model_list=models, retry_after=0, **options)


@pytest.mark.parametrize("call_id", [{}, {"litellm_call_id": "call-1"}], ids=["program", "proxy"])
def test_the_routers_retries_and_fallbacks_send_a_view(call_id: dict[str, str], tmp_path: Path):
    """The proxy gives all attempts one id, and each attempt gets the client's own list."""
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    failing = ScriptedModel(lambda request: Failure(500), "openai")
    answering = ScriptedModel(lambda request: say(ANSWER), "anthropic")
    calls = [({"role": "user", "content": QUESTION})]
    for number in range(30):
        part = {"id": f"c{number}", "type": "function", "function": {"name": "read_log", "arguments": "{}"}}
        calls.append({"role": "assistant", "content": None, "tool_calls": [part]})
        calls.append({"role": "tool", "tool_call_id": f"c{number}", "content": log_text(number)})

    async def main(first: StubServer, second: StubServer) -> Any:
        router = router_of(
            ("fast", where("openai", first) | {"max_retries": 0}),
            ("other", where("anthropic", second)),
            num_retries=1,
            fallbacks=[{"fast": ["other"]}],
        )
        keywords: Any = {"tools": TOOLS["openai"], "metadata": {"session_id": "logs"}, **call_id}
        reply = await router.acompletion(model="fast", messages=calls, **keywords)
        await logged()
        return reply

    with StubServer(failing) as first, StubServer(answering) as second:
        assert asyncio.run(main(first, second)).choices[0].message.content == ANSWER
        sent = [received.values for server in (first, second) for received in server.received]
        assert second.illegal == []
    assert len(sent) == 3
    assert max(exact_tokens(body) for body in sent) <= WINDOW
    logger.close()
    assert names_in(url) == ["logs"]
    assert roles_in(url, "logs") == ["user", *["assistant", "tool"] * 30, "assistant"]


def test_a_request_that_changes_its_interface_gets_one_view(tmp_path: Path):
    """LiteLLM sends Anthropic's messages to OpenAI's models through the Responses API, with the hooks once more."""
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    model = ScriptedModel(reader(30), "openai_responses")
    with StubServer(model) as server:
        other = where("openai_responses", server)
        assert run("anthropic", server, first_list(), litellm_session_id="logs", **other) == ANSWER
        assert server.illegal == []
    assert largest(model) <= WINDOW
    logger.close()
    assert names_in(url) == ["logs"]
    assert roles_in(url, "logs", "anthropic") == ["user", *["assistant", "tool"] * 30, "assistant"]


def test_claude_through_chat_completions(tmp_path: Path):
    logger_of()
    model = ScriptedModel(reader(30), "anthropic")
    with StubServer(model) as server:
        assert run("openai", server, first_list(), **where("anthropic", server)) == ANSWER
        assert server.illegal == []
    assert largest(model) <= WINDOW


def test_a_cut_stream_is_not_recorded_and_the_run_goes_on(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    script = iter([call("c0", "read_log", number=0), CutReply(say("A long answer that is cut.")), say(ANSWER)])
    model = ScriptedModel(lambda request: next(script), "openai")
    messages = first_list()
    with StubServer(model) as server:
        with pytest.raises(Exception):  # noqa: B017, PT011 - the SDK's error, by version
            run("openai", server, messages, stream=True, litellm_session_id="logs")
        assert run("openai", server, messages, stream=True, litellm_session_id="logs") == ANSWER
        assert server.illegal == []
    logger.close()
    assert roles_in(url, "logs") == ["user", "assistant", "tool", "assistant"]


def test_a_cancelled_call_records_nothing(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    model = ScriptedModel(lambda request: say(ANSWER), "openai")

    async def main(server: StubServer) -> str:
        started = asyncio.Event()

        class Waiting(litellm.integrations.custom_logger.CustomLogger):  # type: ignore[misc, name-defined]
            async def async_pre_call_deployment_hook(self, kwargs: Any, call_type: Any) -> None:
                started.set()
                await asyncio.Event().wait()

        waiting = Waiting()
        litellm.callbacks.append(waiting)
        task = asyncio.create_task(run_openai(server, first_list(), litellm_session_id="logs"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert roles_in(url, "logs") == ["user"]
        litellm.callbacks.remove(waiting)
        return await run_openai(server, first_list(), litellm_session_id="logs")

    with StubServer(model) as server:
        assert asyncio.run(main(server)) == ANSWER
        assert server.illegal == []
    logger.close()


def test_a_message_that_the_program_removed_is_hidden(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    messages = [*first_list(), {"role": "assistant", "content": "A secret."}, {"role": "user", "content": "Go on."}]
    with StubServer(model) as server:
        run("openai", server, messages, litellm_session_id="logs")
        del messages[1]
        messages.append({"role": "user", "content": "And now?"})
        run("openai", server, messages, litellm_session_id="logs")
        assert server.illegal == []
    assert "A secret." in str(model.requests[0])
    assert "A secret." not in str(model.requests[1])
    logger.close()
    assert names_in(url) == ["logs"]


@pytest.mark.slow
def test_a_model_may_change_in_the_middle():
    logger_of()
    model = ScriptedModel(reader(40), "openai")
    messages = first_list()

    async def main(server: StubServer) -> None:
        for number in range(40):
            keywords = {**where("openai", server), "model": ("openai/gpt-5", "openai/gpt-4o-mini")[number % 2]}
            reply = await litellm.acompletion(messages=messages, tools=TOOLS["openai"], **keywords)
            messages.append(reply.choices[0].message.model_dump(exclude_none=True))
            id = messages[-1]["tool_calls"][0]["id"]
            messages.append({"role": "tool", "tool_call_id": id, "content": log_text(number)})

    with StubServer(model) as server:
        asyncio.run(main(server))
        assert server.illegal == []
    assert largest(model) <= WINDOW


def test_the_lists_of_one_session_are_conversations_of_their_own(tmp_path: Path):
    """An agent and its sub-agents send LiteLLM one session id."""
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    model = ScriptedModel(lambda request: say(ANSWER), "openai")

    async def main(server: StubServer) -> None:
        lists = [first_list(), first_list("Write a title.")]
        for _ in range(3):
            for messages in lists:
                await run_openai(server, messages, litellm_session_id="s1")
                messages.append({"role": "user", "content": "Go on."})

    with StubServer(model) as server:
        asyncio.run(main(server))
    logger.close()
    first, second = names_in(url)
    assert first == "s1"
    assert second.startswith("s1/list-")
    assert [len(roles_in(url, name)) for name in (first, second)] == [6, 6]


def test_users_who_ask_the_same_have_conversations_of_their_own(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    with StubServer(model) as server:
        for user in ("ann", "ben", "ann"):
            run("openai", server, first_list(), user=user)
    logger.close()
    assert len([name for name in names_in(url) if "~" not in name]) == 2


def test_the_keys_of_a_proxy_keep_conversations_apart(tmp_path: Path):
    """The proxy adds a hash of the client's key to the metadata."""
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    for key in ("one", "two"):
        data = {"litellm_call_id": key, "litellm_metadata": {"user_api_key_hash": key}, "model": "openai/gpt-5"}
        asyncio.run(Held(logger, "acompletion", {"messages": first_list(), **data}).begin())
    logger.close()
    assert len(names_in(url)) == 2


def test_a_view_that_litellm_sends_again_stays_a_view(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    messages = first_list()
    for number in range(30):
        use = {"type": "function", "id": f"c{number}", "function": {"name": "read_log", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [use]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": log_text(number)})
    data = {"litellm_call_id": "a", "litellm_session_id": "logs", "model": "openai/gpt-5"}

    async def main() -> list[Any]:
        first = await Held(logger, "acompletion", {**data, "messages": messages}).begin()
        again = await Held(logger, "acompletion", first).begin()
        return [first["messages"], again["messages"]]

    first, again = asyncio.run(main())
    assert first == again != messages
    logger.close()
    assert names_in(url) == ["logs"]
    assert len(roles_in(url, "logs")) == 61


def test_responses_without_asyncio_have_a_view_too():
    logger_of()
    model = ScriptedModel(reader(20), "openai_responses")
    items = first_list()
    with StubServer(model) as server:
        for number in range(20):
            keywords = {**where("openai_responses", server), "tools": TOOLS["openai_responses"], "store": False}
            reply = litellm.responses(input=items, **keywords)
            items += [item.model_dump(exclude_none=True) for item in reply.output]
            output = {"type": "function_call_output", "call_id": items[-1]["call_id"], "output": log_text(number)}
            items.append(output)
        assert server.illegal == []
    assert largest(model) <= WINDOW


def test_a_mark_for_the_cache_that_moves_keeps_the_conversation(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    model = ScriptedModel(lambda request: say(ANSWER), "anthropic")
    mark = {"cache_control": {"type": "ephemeral"}}
    with StubServer(model) as server:
        for marks in (mark, {}):
            messages = [{"role": "user", "content": [{"type": "text", "text": QUESTION, **marks}]}]
            run("anthropic", server, messages)
    logger.close()
    assert len([name for name in names_in(url) if "~" not in name]) == 1


def run_claude(messages: list[Any], **more: Any) -> list[dict[str, Any]]:
    """Run the loop of `acompletion` with Claude; return the requests."""
    logger_of()
    with StubServer(ScriptedModel(reader(3), "anthropic")) as server:
        run("openai", server, messages, **{**where("anthropic", server), **more})
        assert server.illegal == []
        return [request.values for request in server.received]


def test_claude_gets_marks_for_its_cache_behind_its_first_reply():
    system = {"role": "system", "content": "Be brief."}
    assert [marks(request) for request in run_claude([system, *first_list()])] == [0, 2, 2, 2]
    assert [marks(request) for request in run_claude(first_list(), tools=None)] == [0] * 4


def test_own_marks_of_a_program_stay_at_the_end_of_its_messages():
    """The view of a chat completion has no marks of its own."""
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": QUESTION, **mark}]}]
    requests = run_claude(messages)
    assert [marks(request) for request in requests] == [1] * 4
    assert [request["messages"][-1]["content"][-1]["cache_control"] for request in requests] == [
        {"type": "ephemeral", "ttl": "1h"}
    ] * 4


@pytest.mark.parametrize(
    "own",
    [
        {"cache_control_injection_points": [{"location": "message", "index": 0}]},
        {"tools": [{**TOOLS["openai"][0], "cache_control": {"type": "ephemeral"}}]},
    ],
    ids=["option", "tools"],
)
def test_other_marks_of_a_program_win(own: dict[str, Any]):
    assert [marks(request) for request in run_claude(first_list(), **own)] == [1] * 4


def test_marks_that_litellm_sets_by_itself_win(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(litellm, "enable_anthropic_prompt_caching", True)
    logger_of()
    litellm.callbacks = []
    with StubServer(ScriptedModel(reader(3), "anthropic")) as server:
        run("openai", server, first_list(), **where("anthropic", server))
        alone = [marks(request.values) for request in server.received]
    assert [marks(request) for request in run_claude(first_list())] == alone


@pytest.mark.parametrize(("name", "own"), [("gpt-5.6", ""), ("gpt-5.6", "mine"), ("gpt-5.5", "")])
@pytest.mark.parametrize("provider", ["openai", "openai_responses"])
def test_newer_gpt_gets_a_key_for_its_cache(provider: str, name: str, own: str):
    logger_of()
    more = {"model": f"openai/{name}", **({"prompt_cache_key": own} if own else {})}
    with StubServer(ScriptedModel(reader(2), provider)) as server:
        run(provider, server, first_list(), **more)
        (key,) = {request.values.get("prompt_cache_key") for request in server.received}
    assert key == own if own else (key is None) == (name == "gpt-5.5")


class Held:
    """A request on the way: what LiteLLM gives the hooks of a call, which a test can run in any order."""

    def __init__(self, logger: FoveateLogger, kind: str, data: dict[str, Any]) -> None:
        self._logger, self._kind, self.data = logger, kind, data

    async def begin(self) -> Any:
        return await self._logger.async_pre_call_deployment_hook(self.data, litellm.types.utils.CallTypes(self._kind))

    async def report(self, reply: dict[str, Any], **more: Any) -> None:
        kwargs = {"litellm_call_id": self.data["litellm_call_id"], **more}
        await self._logger.async_log_success_event(kwargs, litellm.ModelResponse(**reply), None, None)


def logged_reply(text: str, prompt: int) -> dict[str, Any]:
    """A reply as LiteLLM logs it, in OpenAI's form for every interface."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5}
    usage |= {"prompt_tokens_details": {"cached_tokens": 40}, "cache_creation_input_tokens": 30}
    return {"choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage}


@pytest.mark.parametrize("kind", ["acompletion", "anthropic_messages"])
def test_a_streamed_reply_that_is_logged_late_is_only_billed(kind: str, tmp_path: Path):
    """As in the proxy: the report of the first reply comes after the second request."""
    url, format = f"sqlite:///{tmp_path}/chats.db", _FORMATS_OF[kind]
    logger = logger_of(store=url)
    more = {"model": MODELS[format], "stream": True, "litellm_metadata": {"session_id": "logs"}, "max_tokens": 50}
    answer = {"role": "assistant", "content": "One."}
    longer = [*first_list(), answer, {"role": "user", "content": "Go on."}]

    async def main() -> None:
        first = Held(logger, kind, {"litellm_call_id": "a", "messages": first_list(), **more})
        second = Held(logger, kind, {"litellm_call_id": "b", "messages": longer, **more})
        await first.begin()
        await second.begin()
        await first.report(logged_reply("One.", 100))
        await second.report(logged_reply("Two.", 200))
        await second.report(logged_reply("Two.", 200))  # Twice.

    asyncio.run(main())
    logger.close()
    roles = ["user", "assistant", "user"]
    # The reply to Anthropic's messages has lost its form. The next list of the client brings it.
    assert roles_in(url, "logs", format) == (roles if kind == "anthropic_messages" else [*roles, "assistant"])
    with foveate.open_conversation("logs", store=url, window=WINDOW, format=format) as chat:
        usage = chat.totals().usage
        assert (usage.input, usage.cache_read, usage.cache_write, usage.output) == (160, 80, 60, 10)


_FORMATS_OF = {"acompletion": "openai", "anthropic_messages": "anthropic"}


def test_a_stream_without_usage_bills_nothing(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    more = {"model": "openai/gpt-5", "litellm_session_id": "logs", "litellm_call_id": "a"}

    async def main() -> None:
        held = Held(logger, "acompletion", {"messages": first_list(), **more})
        await held.begin()
        await held.report({**logged_reply("One.", 100), "usage": {"prompt_tokens": 0, "completion_tokens": 0}})

    asyncio.run(main())
    logger.close()
    with foveate.open_conversation("logs", store=url, window=WINDOW) as chat:
        assert [row.message.role for row in chat.history()] == ["user", "assistant"]
        assert chat.totals().usage.input in (None, 0)
        assert chat.history()[-1].stamp.usage is None


def test_a_reply_from_litellms_cache_is_recorded_and_not_billed(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    logger = logger_of(store=url)
    more = {"model": "openai/gpt-5", "litellm_session_id": "logs", "litellm_call_id": "a"}

    async def main() -> None:
        held = Held(logger, "acompletion", {"messages": first_list(), **more})
        await held.begin()
        await held.report(logged_reply("One.", 100), cache_hit=True)

    asyncio.run(main())
    logger.close()
    with foveate.open_conversation("logs", store=url, window=WINDOW) as chat:
        assert [row.message.role for row in chat.history()] == ["user", "assistant"]
        assert chat.history()[-1].stamp.usage is None


def test_a_refused_prompt_makes_the_next_one_smaller():
    logger_of()
    model = ScriptedModel(reader(30), "anthropic", window=4_000)  # Smaller than the window of the options.
    messages = first_list()
    refused = 0
    with StubServer(model) as server:
        for _ in range(5):
            with contextlib.suppress(litellm.exceptions.BadRequestError):
                assert run("anthropic", server, messages) == ANSWER
                break
            refused += 1
        assert server.illegal == []
    assert messages[-1]["role"] == "assistant"
    assert 0 < refused < 5


def test_beta_features_of_a_view_are_added_to_the_headers():
    logger = logger_of()
    thinking = {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}
    use = {"type": "tool_use", "id": "c0", "name": "read_log", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c0", "content": "fine"}
    messages = [
        *first_list(),
        {"role": "assistant", "content": [thinking, use]},
        {"role": "user", "content": [result]},
    ]
    data = {
        "model": "anthropic/claude-opus-5-5",
        "messages": messages,
        "litellm_call_id": "a",
        "extra_headers": {"anthropic-beta": "one-2026-01-01", "x-mine": "1"},
    }
    changed = asyncio.run(Held(logger, "anthropic_messages", data).begin())
    headers = changed["extra_headers"]
    assert headers["anthropic-beta"].startswith("one-2026-01-01,")
    assert headers["x-mine"] == "1"
    assert data["extra_headers"] == {"anthropic-beta": "one-2026-01-01", "x-mine": "1"}


def test_the_base_model_of_a_deployment_gives_the_window():
    """An Azure deployment has a name of its own."""
    logger = logger_of(window=None)
    model = ScriptedModel(lambda request: say(ANSWER), "openai")

    async def main(server: StubServer) -> None:
        params = {"model": "openai/our-deployment", "api_base": f"{server.url}/v1", "api_key": "k"}
        deployment = {"model_name": "ours", "litellm_params": params, "model_info": {"base_model": "gpt-4o"}}
        router = litellm.Router(model_list=[deployment])
        await router.acompletion(model="ours", messages=first_list(), litellm_session_id="logs")

    with StubServer(model) as server:
        asyncio.run(main(server))
    assert logger._requests._host.conversation(("logs",)).view.budget.window == 128_000


def test_the_window_of_other_models_is_that_of_litellms_table(caplog: pytest.LogCaptureFixture):
    logger = logger_of(window=None)
    data = {"messages": first_list(), "litellm_session_id": "logs", "litellm_call_id": "a"}
    with caplog.at_level(logging.WARNING, "foveate"):
        asyncio.run(Held(logger, "acompletion", {**data, "model": "mistral/mistral-large-latest"}).begin())
    known = litellm.get_model_info("mistral/mistral-large-latest")["max_input_tokens"]
    assert logger._requests._host.conversation(("logs",)).view.budget.window == known
    assert caplog.text == ""


def test_the_window_of_the_options_limits_that_of_litellms_table():
    logger = logger_of(window=WINDOW)
    data = {"messages": first_list(), "litellm_session_id": "logs", "litellm_call_id": "a"}
    asyncio.run(Held(logger, "acompletion", {**data, "model": "mistral/mistral-large-latest"}).begin())
    assert logger._requests._host.conversation(("logs",)).view.budget.window == WINDOW


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("aresponses", {"input": "Hello", "model": "gpt-5", "previous_response_id": "resp_1"}, "previous_response_id"),
        ("acompletion", {"model": "gpt-5"}, "messages"),
    ],
)
def test_a_request_that_cannot_have_a_view_is_sent_unchanged(kind: str, data: dict[str, Any], reason: str):
    logger = logger_of(window=None)
    with pytest.warns(RuntimeWarning, match=f"are sent as they are.*{reason}") as warnings:
        for number in range(3):
            held = Held(logger, kind, {**data, "litellm_call_id": f"a{number}"})
            assert asyncio.run(held.begin()) is None
    assert len(warnings) == 1


def test_other_calls_pass_unchanged():
    logger = logger_of()
    assert asyncio.run(Held(logger, "aembedding", {"model": "e", "input": ["a"]}).begin()) is None


def test_calls_without_an_end_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("foveate.hosts.litellm._MAX_CALLS", 3)
    logger = logger_of()
    data = {"messages": first_list(), "model": "openai/gpt-5", "litellm_session_id": "logs"}
    for number in range(6):
        asyncio.run(Held(logger, "acompletion", {**data, "litellm_call_id": f"a{number}"}).begin())
    assert list(logger._calls) == ["a3", "a4", "a5"]


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_page("litellm.md", tmp_path, monkeypatch)
