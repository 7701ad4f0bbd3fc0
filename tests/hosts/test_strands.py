"""Strands: 100 calls in a small window, with the real framework, its models, and a server on loopback."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands.plugins", reason="strands-agents is not installed")

from hypothesis import given
from hypothesis import strategies as st
from pages import run_page
from pydantic import BaseModel
from recorded import recorded_lists
from scenario import ANSWER, CALLS, QUESTION, WINDOW, largest, log_text, marks, reader
from strands import Agent, ModelRetryStrategy, tool
from strands.agent import NullConversationManager
from strands.hooks import AfterModelCallEvent
from strands.middleware import InvokeModelStage
from strands.models import CacheConfig
from strands.models.anthropic import AnthropicModel
from strands.models.bedrock import BedrockModel
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel
from strands.session import FileSessionManager
from strands.tools.executors import ConcurrentToolExecutor, SequentialToolExecutor
from strands.types.exceptions import MaxTokensReachedException

import foveate
from foveate import Message, Reasoning, Text
from foveate.errors import BadSetting
from foveate.hosts.strands import FoveatePlugin, usage_of
from foveate.hosts.strands_messages import blocks_of, messages_of
from foveate.testing import CutReply, Failure, ScriptedModel, StoppedReply, call, say
from foveate.testing.server import StubServer

# The SDKs close their clients by themselves, in part after the loop of `asyncio.run` has ended.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"
)


@tool
def read_log(number: int) -> str:
    """Return the log with a number."""
    return log_text(number)


def model_of(api: str, url: str, name: str = "", **options: Any) -> Any:
    if api == "anthropic":
        # The model keeps its client, whose open connections are of no use in the event loop of the next call.
        headers = {"Connection": "close"}
        client: dict[str, Any] = {"base_url": url, "api_key": "k", "max_retries": 0, "default_headers": headers}
        return AnthropicModel(client_args=client, model_id=name or "claude-haiku-4-5", max_tokens=999, **options)
    client = {"base_url": f"{url}/v1", "api_key": "k", "max_retries": 0}
    kind: Any = OpenAIResponsesModel if api == "openai_responses" else OpenAIModel
    return kind(client_args=client, model_id=name or "gpt-5", **options)


def agent_of(model: Any, plugin: Any = None, **options: Any) -> Any:
    keywords = {"tools": [read_log], "system_prompt": "Be brief.", "callback_handler": None, **options}
    keywords.setdefault("conversation_manager", NullConversationManager())
    return Agent(model=model, plugins=[plugin] if plugin else [], **keywords)


def results(agent: Any) -> list[dict[str, Any]]:
    return [block["toolResult"] for m in agent.messages for block in m["content"] if "toolResult" in block]


async def streamed_text(agent: Any) -> str:
    return "".join([event["data"] async for event in agent.stream_async(QUESTION) if "data" in event])


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_a_hundred_calls_stay_in_the_window(api: str, streamed: bool):
    model = ScriptedModel(reader(), api)
    with StubServer(model) as server:
        options = {"stream": streamed} if api == "openai" else {}
        agent = agent_of(model_of(api, server.url, **options), FoveatePlugin(window=WINDOW))
        answer = asyncio.run(streamed_text(agent)) if streamed else str(agent(QUESTION)).strip()
        assert server.illegal == []
    assert answer == ANSWER
    assert len(model.requests) == CALLS + 1
    assert largest(model) <= WINDOW
    assert [result["content"] for result in results(agent)] == [[{"text": log_text(n)}] for n in range(CALLS)]


def test_without_the_plugin_the_requests_outgrow_the_window():
    model = ScriptedModel(reader(30), "openai")
    with StubServer(model) as server:
        agent_of(model_of("openai", server.url))(QUESTION)
    assert largest(model) > 2 * WINDOW


@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_results_of_one_reply_stay_together(api: str):
    def reply(first: int) -> Message:
        calls = (call(f"c{n}", "read_log", number=n).parts[0] for n in range(first, first + 3))
        return Message("assistant", (Text("I read three."), *calls))

    model = ScriptedModel([*(reply(first) for first in range(0, 60, 3)), say(ANSWER)], api)
    with StubServer(model) as server:
        agent = agent_of(model_of(api, server.url), FoveatePlugin(window=WINDOW))
        assert str(agent(QUESTION)).strip() == ANSWER
        assert server.illegal == []
    assert largest(model) <= WINDOW
    if api == "anthropic":
        for request in model.requests:
            roles = [message["role"] for message in request["messages"]]
            assert all(one != other for one, other in itertools.pairwise(roles))


@pytest.mark.parametrize("name", ["claude-haiku-4-5", "claude-opus-5-5"])
def test_a_model_gets_its_signed_thoughts_back(name: str):
    def reply(number: int) -> Message:
        thought = Reasoning(f"Log {number} is next.", "" if is_bound else f"signature-{number}", format="anthropic")
        return Message("assistant", (thought, call(f"c{number}", "read_log", number=number).parts[0]))

    is_bound = name == "claude-opus-5-5"  # Its thoughts are bound to the messages before them.
    model = ScriptedModel([*map(reply, range(30)), say(ANSWER), say("Bye.")], "anthropic", binds_reasoning=is_bound)
    with StubServer(model) as server:
        thinking = {"thinking": {"type": "adaptive"} if is_bound else {"type": "enabled", "budget_tokens": 500}}
        agent = agent_of(model_of("anthropic", server.url, name, params=thinking), FoveatePlugin(window=WINDOW))
        agent(QUESTION)
        agent("Thanks.")
        assert server.illegal == []
    assert "Log 0 is next." in str(model.requests[1])
    assert is_bound or "signature-29" in str(model.requests[30])
    assert largest(model) <= WINDOW


@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_the_model_expands_what_was_shortened(api: str):
    replies = [*(call(f"c{n}", "read_log", number=n) for n in range(20)), call("e0", "expand", handle="m3", lines="2")]
    model = ScriptedModel([*replies, say(ANSWER)], api)
    with StubServer(model) as server:
        agent = agent_of(model_of(api, server.url), FoveatePlugin(window=WINDOW))
        agent(QUESTION)
        assert server.illegal == []
    expansion = results(agent)[-1]
    assert expansion["status"] == "success"
    assert "Line 1 of log 0:" in expansion["content"][0]["text"]
    assert "Line 1 of log 0:" in str(model.requests[-1])
    tools = {str(request["tools"]) for request in model.requests}
    assert len(tools) == 1  # The prefix is the same from the first request on.
    assert "expand" in tools.pop()


def test_an_unknown_handle_is_a_result_that_the_model_can_read():
    model = ScriptedModel([call("c0", "read_log", number=0), call("e0", "expand", handle="m99"), say(ANSWER)], "openai")
    with StubServer(model) as server:
        agent = agent_of(model_of("openai", server.url), FoveatePlugin(window=WINDOW))
        agent(QUESTION)
        assert server.illegal == []
    expansion = results(agent)[-1]
    assert expansion["status"] == "error"
    assert "m99" in expansion["content"][0]["text"]


@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_the_history_holds_every_message_once_and_every_bill(api: str, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel(reader(12), api)
    with StubServer(model) as server:
        plugin = FoveatePlugin(url, window=WINDOW, session_id="t1")
        agent_of(model_of(api, server.url), plugin)(QUESTION)
        plugin.close()
    with foveate.open_conversation("t1", store=url, window=WINDOW, format=api) as chat:
        assert [row.message.role for row in chat.history()] == ["user", *["assistant", "tool"] * 12, "assistant"]
        usage = chat.totals().usage
        billed = (usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0)
        assert (chat.totals().calls, billed) == (13, sum(bill.total for bill in model.billed))


def test_a_session_goes_on_after_a_restart(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    for run in range(2):
        model = ScriptedModel(reader(25, first=25 * run), "openai")
        with StubServer(model) as server:
            plugin = FoveatePlugin(url, window=WINDOW)
            session = FileSessionManager(session_id="ann", storage_dir=str(tmp_path))
            agent = agent_of(model_of("openai", server.url), plugin, session_manager=session)
            agent(QUESTION)
            assert server.illegal == []
            assert len(agent.messages) == len(plugin.conversation(agent)) == (run + 1) * 52
            plugin.close()
        assert largest(model) <= WINDOW
    with foveate.open_store(url) as store:
        assert store.names("") == ["ann"]


def test_a_throttled_call_is_made_again_and_recorded_once():
    model = ScriptedModel([call("c0", "read_log", number=0), Failure(429), say(ANSWER)], "anthropic")
    plugin = FoveatePlugin(window=WINDOW)
    with StubServer(model) as server:
        retry = ModelRetryStrategy(max_attempts=3, initial_delay=0, max_delay=0)
        agent = agent_of(model_of("anthropic", server.url), plugin, retry_strategy=retry)
        assert str(agent(QUESTION)).strip() == ANSWER
        assert server.illegal == []
    roles = [row.message.role for row in plugin.conversation(agent).history()]
    assert roles == ["user", "assistant", "tool", "assistant"]


def test_a_rejected_reply_is_withdrawn_and_billed():
    def reject(event: AfterModelCallEvent) -> None:
        event.retry = event.stop_response is not None and "I refuse." in str(event.stop_response.message)

    model = ScriptedModel([call("c0", "read_log", number=0), say("I refuse."), say(ANSWER), say("Bye.")], "openai")
    plugin = FoveatePlugin(window=WINDOW)
    with StubServer(model) as server:
        agent = agent_of(model_of("openai", server.url), plugin, hooks=[reject])
        agent(QUESTION)
        agent("Goodbye.")
        assert server.illegal == []
    chat = plugin.conversation(agent)
    assert [m["role"] for m in agent.messages] == ["user", "assistant", "user", "assistant", "user", "assistant"]
    assert "I refuse." not in str(model.requests[-1])
    assert "I refuse." in str([row.message for row in chat.history()])
    assert chat.totals().calls == 4
    assert not chat.name.endswith("~1")


def test_a_cut_stream_leaves_an_agent_that_goes_on():
    replies = [call("c0", "read_log", number=0), CutReply(say("A long answer that is cut off.")), say(ANSWER)]
    model = ScriptedModel(replies, "anthropic")
    with StubServer(model) as server:
        agent = agent_of(model_of("anthropic", server.url), FoveatePlugin(window=WINDOW))
        with pytest.raises(Exception):  # noqa: B017, PT011 - the SDK's error, by version
            agent(QUESTION)
        assert str(agent("Go on.")).strip() == ANSWER
        assert server.illegal == []


def test_a_cancelled_task_leaves_an_agent_that_goes_on():
    model = ScriptedModel(lambda request: say(ANSWER), "openai")

    async def main(server: StubServer) -> str:
        agent = agent_of(model_of("openai", server.url), FoveatePlugin(window=WINDOW))
        task = asyncio.create_task(agent.invoke_async(QUESTION))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return str(await agent.invoke_async("Go on.")).strip()

    with StubServer(model) as server:
        assert asyncio.run(main(server)) == ANSWER
        assert server.illegal == []


def test_a_cancelled_agent_goes_on_with_its_own_message():
    model = ScriptedModel(lambda request: say(ANSWER), "anthropic")
    plugin = FoveatePlugin(window=WINDOW)

    async def main(server: StubServer) -> Any:
        agent = agent_of(model_of("anthropic", server.url), plugin)
        async for event in agent.stream_async(QUESTION):
            if "data" in event:
                agent.cancel(message="Stopped by Ann.")
        assert agent.messages[-1]["content"] == [{"text": "Stopped by Ann."}]
        await agent.invoke_async("Go on.")
        return agent

    with StubServer(model) as server:
        agent = asyncio.run(main(server))
        assert server.illegal == []
    texts = [row.message.text for row in plugin.conversation(agent).history()]
    assert texts == [QUESTION, "Stopped by Ann.", "Go on.", ANSWER]


def test_a_reply_that_was_too_long_is_followed_as_the_agent_rewrites_it():
    long = StoppedReply(call("c0", "read_log", number=0), "max_tokens")
    model = ScriptedModel([long, say(ANSWER)], "anthropic")
    plugin = FoveatePlugin(window=WINDOW)
    with StubServer(model) as server:
        agent = agent_of(model_of("anthropic", server.url), plugin)
        with pytest.raises(MaxTokensReachedException):
            agent(QUESTION)
        agent("Go on.")
        assert server.illegal == []
    chat = plugin.conversation(agent)
    assert [row.message.text for row in chat.history()] == [m["content"][0]["text"] for m in agent.messages]
    usage = chat.totals().usage
    billed = (usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0)
    assert (chat.totals().calls, billed) == (2, sum(bill.total for bill in model.billed))


def test_removed_messages_are_not_sent_and_pins_stay():
    model = ScriptedModel(reader(6), "openai")
    plugin = FoveatePlugin(window=WINDOW)
    with StubServer(model) as server:
        agent = agent_of(model_of("openai", server.url), plugin)
        agent(QUESTION)
        chat = plugin.conversation(agent)
        chat.pin("m13")
        del agent.messages[3:5]
        agent("And now?")
        assert server.illegal == []
    assert "Line 1 of log 5:" in str(model.requests[-1])
    assert "Line 1 of log 1:" not in str(model.requests[-1])
    assert plugin.conversation(agent) is chat
    assert [entry.handle for entry in chat.view if entry.is_pinned()] == ["m13"]


def test_the_model_may_change_in_a_session():
    plugin = FoveatePlugin(window=WINDOW)
    agent = agent_of(model_of("openai", "http://127.0.0.1:1"), plugin)
    for number, api in enumerate(("anthropic", "openai", "openai_responses", "anthropic")):
        model = ScriptedModel(reader(13, first=13 * number), api)
        with StubServer(model) as server:
            agent.model = model_of(api, server.url)
            assert str(agent(QUESTION)).strip() == ANSWER
            assert server.illegal == []
        assert largest(model) <= WINDOW


@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_a_refused_prompt_is_made_smaller(api: str):
    model = ScriptedModel(reader(30), api, window=3_500)  # Smaller than the window of the options.
    with StubServer(model) as server:
        agent = agent_of(model_of(api, server.url), FoveatePlugin(window=WINDOW))
        assert str(agent(QUESTION)).strip() == ANSWER
        assert server.illegal == []
        assert len(server.received) > len(model.requests)


@pytest.mark.parametrize("executor", [ConcurrentToolExecutor, SequentialToolExecutor])
@pytest.mark.parametrize("kind", ["agent as a tool", "agent in a function"])
def test_a_sub_agent_has_a_conversation_of_its_own(kind: str, executor: Any, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    main = ScriptedModel([call("d0", "delegate", input="read"), say("Done.")], "anthropic")
    sub = ScriptedModel(reader(12, expand="m3"), "anthropic")
    with StubServer({"/main": main, "/sub": sub}) as server:
        plugin = FoveatePlugin(url, window=WINDOW, session_id="t1")
        helper = agent_of(model_of("anthropic", f"{server.url}/sub"), plugin, tool_executor=executor())

        @tool
        def delegate(input: str) -> str:
            """Let a sub-agent do a task."""
            return str(helper(input))

        tools = [delegate if kind == "agent in a function" else helper.as_tool(name="delegate", description="Help.")]
        agent = agent_of(model_of("anthropic", f"{server.url}/main"), plugin, tools=tools, tool_executor=executor())
        assert str(agent(QUESTION)).strip() == "Done."
        assert server.illegal == []
        plugin.close()
    assert largest(sub) <= WINDOW
    with foveate.open_store(url) as store:
        assert sorted(store.names("")) == ["t1", "t1/delegate:d0"]
    with foveate.open_conversation("t1", store=url, window=WINDOW, format="anthropic") as chat:
        assert (chat.totals().calls, chat.totals(children=True).calls) == (2, 16)


def test_structured_output_is_part_of_the_history():
    class Verdict(BaseModel):
        """The verdict."""

        number: int

    model = ScriptedModel([call("c0", "read_log", number=57), call("v0", "Verdict", number=57), say("Bye.")], "openai")
    with StubServer(model) as server:
        agent = agent_of(model_of("openai", server.url), FoveatePlugin(window=WINDOW))
        assert agent(QUESTION, structured_output_model=Verdict).structured_output == Verdict(number=57)
        agent("Thanks.")
        assert server.illegal == []


def test_blocks_of_one_call_are_sent_and_not_kept():
    async def remember(context: Any) -> Any:
        messages = [*context.messages[:-1], {**context.messages[-1]}]
        messages[-1]["content"] = [*messages[-1]["content"], {"text": "It is noon."}]
        return context.replace(messages=messages, dynamic_trailing_blocks=1)

    model = ScriptedModel(reader(30), "anthropic")
    plugin = FoveatePlugin(window=WINDOW)
    with StubServer(model) as server:
        agent = agent_of(model_of("anthropic", server.url), plugin)
        agent.add_middleware(InvokeModelStage.Input, remember)
        agent(QUESTION)
        assert server.illegal == []
    assert largest(model) <= WINDOW
    assert {str(request["messages"]).count("It is noon.") for request in model.requests} == {1}
    assert "It is noon." in str(model.requests[-1]["messages"][-1])
    assert "It is noon." not in str([row.message for row in plugin.conversation(agent).history()])


def test_a_fault_sends_the_messages_as_they_are(full_disk: None):
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    with StubServer(model) as server, pytest.warns(RuntimeWarning, match="are sent as they are"):
        agent = agent_of(model_of("openai", server.url, "nobody-knows-me"), FoveatePlugin())
        assert str(agent(QUESTION)).strip() == ANSWER


def test_a_model_with_a_conversation_on_its_server_is_left_alone():
    model = ScriptedModel(lambda request: say(ANSWER), "openai_responses")
    with StubServer(model) as server, pytest.warns(RuntimeWarning, match="keeps the conversation on its server"):
        llm = model_of("openai_responses", server.url, stateful=True)
        agent = agent_of(llm, FoveatePlugin(window=WINDOW), conversation_manager=None)
        assert str(agent(QUESTION)).strip() == ANSWER


MANAGERS = [{"conversation_manager": None}, {"conversation_manager": None, "context_manager": "auto"}]


@pytest.mark.parametrize("options", MANAGERS, ids=str)
def test_another_manager_of_the_messages_is_refused(options: dict[str, Any]):
    with pytest.raises(BadSetting, match="NullConversationManager"):
        agent_of(model_of("openai", "http://127.0.0.1:1"), FoveatePlugin(window=WINDOW), **options)


# --------------------------------------------------------------------------------------------------------- conversion


@pytest.mark.parametrize(
    ("cache", "prompt", "counts"),
    [
        (None, "Be brief.", [0, 2, 2, 2]),
        (None, None, [0, 1, 1, 1]),
        (CacheConfig(strategy="anthropic", system_prompt_ttl=False), "Be brief.", [1] * 4),
        (None, [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}], [1] * 4),
    ],
    ids=["none", "no system prompt", "configuration", "own point"],
)
def test_claude_gets_marks_for_its_cache_if_it_has_none(cache: Any, prompt: Any, counts: list[int]):
    with StubServer(ScriptedModel(reader(3), "anthropic")) as server:
        model = model_of("anthropic", server.url, **({"cache_config": cache} if cache else {}))
        agent = agent_of(model, FoveatePlugin(window=WINDOW), system_prompt=prompt)
        agent(QUESTION)
        assert server.illegal == []
        assert [marks(request.values) for request in server.received] == counts
    assert "cachePoint" not in str(agent.messages)


class BedrockClient:
    """Answers like Bedrock: reads two logs, then answers."""

    def __init__(self) -> None:
        self.points: list[int] = []

    def converse(self, **request: Any) -> Any:
        self.points.append(str(request).count("'cachePoint': {'type': 'default'}"))
        number = len(self.points)
        use = {"toolUse": {"toolUseId": f"c{number}", "name": "read_log", "input": {"number": number}}}
        content, reason = ([use], "tool_use") if number < 3 else ([{"text": ANSWER}], "end_turn")
        usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
        message = {"role": "assistant", "content": content}
        return {"output": {"message": message}, "stopReason": reason, "usage": usage, "metrics": {"latencyMs": 1}}


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", [0, 2, 2]),
        ("anthropic.claude-3-haiku-20240307-v1:0", [0, 0, 0]),
        ("us.amazon.nova-pro-v1:0", [0, 0, 0]),
    ],
)
def test_claude_of_bedrock_gets_cache_points(name: str, points: list[int]):
    model = BedrockModel(model_id=name, streaming=False, region_name="us-east-1", api_key="k")
    model.client = client = BedrockClient()
    assert str(agent_of(model, FoveatePlugin(window=WINDOW))(QUESTION)).strip() == ANSWER
    assert client.points == points


@pytest.mark.parametrize(("name", "own"), [("gpt-5.6", ""), ("gpt-5.6", "mine"), ("gpt-5.5", "")])
@pytest.mark.parametrize("api", ["openai", "openai_responses"])
def test_newer_gpt_gets_a_key_for_its_cache(api: str, name: str, own: str):
    params = {"temperature": 1, **({"prompt_cache_key": own} if own else {})}
    with StubServer(ScriptedModel(reader(2), api)) as server:
        model = model_of(api, server.url, name, params=params)
        for session in ("one", "two"):
            agent_of(model, FoveatePlugin(window=WINDOW, session_id=session))(QUESTION)
        keys = [request.values.get("prompt_cache_key") for request in server.received]
        assert {request.values["temperature"] for request in server.received} == {1}
    assert len(set(keys)) == (2 if name == "gpt-5.6" and not own else 1)
    assert keys[0] == own if own else (keys[0] is None) == (name == "gpt-5.5")
    assert model.get_config()["params"] == params  # Other agents use the same model.


def test_a_cache_point_takes_the_key_from_no_gpt():
    """A program may use the same prompt with several models. OpenAI has no cache points."""
    prompt = [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}]
    with StubServer(ScriptedModel(reader(2), "openai")) as server:
        model = model_of("openai", server.url, "gpt-5.6")
        agent_of(model, FoveatePlugin(window=WINDOW), system_prompt=prompt)(QUESTION)
        assert all(request.values.get("prompt_cache_key") for request in server.received)


def test_the_tokens_of_the_cache_count_once():
    inside = {"inputTokens": 100, "outputTokens": 5, "totalTokens": 105, "cacheReadInputTokens": 60}
    beside = {"inputTokens": 40, "outputTokens": 5, "totalTokens": 105, "cacheReadInputTokens": 60}
    assert usage_of(inside) == usage_of(beside) == foveate.Usage(40, 60, None, 5)
    assert usage_of({"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}) is None


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
DATA = st.binary(max_size=8)
TEXT_BLOCKS = st.builds(lambda text: {"text": text}, TEXTS)
FILES = st.one_of(
    st.builds(lambda data: {"image": {"format": "png", "source": {"bytes": data}}}, DATA),
    st.builds(lambda data: {"audio": {"format": "mp3", "source": {"bytes": data}}}, DATA),
    st.builds(lambda data: {"video": {"format": "three_gp", "source": {"bytes": data}}}, DATA),
    st.builds(lambda data, name: {"document": {"format": "md", "name": name, "source": {"bytes": data}}}, DATA, TEXTS),
    st.just({"image": {"format": "png", "source": {"location": {"type": "s3", "uri": "s3://a/b"}}}}),
)
ODD = st.one_of(
    st.builds(lambda text: {"guardContent": {"text": {"text": text}}}, TEXTS),
    st.builds(
        lambda data: {"document": {"format": "pdf", "name": "a", "source": {"bytes": data}, "context": "b"}}, DATA
    ),
)
ARGUMENTS = st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(-9, 9), st.booleans(), st.none()), max_size=3)
ASSISTANT_BLOCKS = st.one_of(
    TEXT_BLOCKS,
    st.builds(lambda id, input: {"toolUse": {"toolUseId": id, "name": "read_log", "input": input}}, TEXTS, ARGUMENTS),
    st.builds(lambda text: {"reasoningContent": {"reasoningText": {"text": text}}}, TEXTS),
    st.builds(
        lambda text, sign: {"reasoningContent": {"reasoningText": {"text": text, "signature": sign}}}, TEXTS, TEXTS
    ),
    st.builds(lambda data: {"reasoningContent": {"redactedContent": data}}, st.binary(min_size=1, max_size=8)),
    st.builds(lambda text: {"citationsContent": {"citations": [], "content": [{"text": text}]}}, TEXTS),
)
RESULTS = st.builds(
    lambda id, content, status: {"toolResult": {"toolUseId": id, "status": status, "content": content}},
    TEXTS,
    st.lists(st.one_of(TEXT_BLOCKS, FILES), max_size=3),
    st.sampled_from(["success", "error"]),
)
MESSAGES = st.one_of(
    st.builds(
        lambda content: {"role": "user", "content": content},
        st.lists(st.one_of(TEXT_BLOCKS, FILES, ODD, RESULTS), min_size=1, max_size=5),
    ),
    st.builds(
        lambda content: {"role": "assistant", "content": content}, st.lists(ASSISTANT_BLOCKS, min_size=1, max_size=5)
    ),
)


@given(MESSAGES)
def test_conversion_is_lossless(message: Any):
    there = messages_of(message, "anthropic")
    assert [block for one in there for block in blocks_of(one)] == message["content"]


def test_other_fields_of_a_block_stay_where_it_is_unchanged():
    use = {"toolUse": {"toolUseId": "c0", "name": "read_log", "input": {"b": 1}, "reasoningSignature": "s"}}
    (message,) = messages_of({"role": "assistant", "content": [{"text": "One."}, use]}, "openai")
    assert blocks_of(message, [{"text": "Two."}, use]) == [{"text": "One."}, use]
    result = {"toolResult": {"toolUseId": "c0", "status": "success", "content": [{"json": {"a": 1}}], "metadata": 5}}
    (message,) = messages_of({"role": "user", "content": [result]}, "openai")
    assert message.text == '{"a": 1}'
    assert blocks_of(message, [result]) == [result]


def test_recorded_messages_are_equal_after_conversion(transcripts: Path):
    count = 0
    for recorded in recorded_lists(transcripts):
        for message in recorded:
            if not (message.text or message.calls):
                continue  # An empty text says nothing, and is left out of what changes.
            own = {"role": "assistant" if message.role == "assistant" else "user", "content": blocks_of(message)}
            (there,) = messages_of(own, "anthropic")
            assert there.text == message.text
            assert blocks_of(there) == own["content"]
            count += 1
    assert count > 1_000


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_page("strands.md", tmp_path, monkeypatch)
