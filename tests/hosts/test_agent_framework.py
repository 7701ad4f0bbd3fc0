"""Microsoft Agent Framework: 100 calls in a small window, with its real clients and a server on loopback."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="agent-framework is not installed")
pytest.importorskip("agent_framework_openai", reason="agent-framework-openai is not installed")

from agent_framework import (
    Agent,
    AgentSession,
    CharacterEstimatorTokenizer,
    ChatContext,
    ChatMiddleware,
    Content,
    ContextWindowCompactionStrategy,
    Message,
    SlidingWindowStrategy,
    ToolResultCompactionStrategy,
    TruncationStrategy,
    tool,
)
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from hypothesis import given
from hypothesis import strategies as st
from pages import run_page
from scenario import ANSWER, CALLS, QUESTION, WINDOW, exact_tokens, largest, log_text, reader

import foveate
from foveate.formats import get_format
from foveate.hosts.agent_framework import FoveateMiddleware
from foveate.hosts.agent_framework_messages import groups, messages_of, to_agent_framework
from foveate.testing import CutReply, Failure, ScriptedModel, call, say
from foveate.testing.server import StubServer

# The SDK closes its connections by itself, in part after the loop of `asyncio.run` has ended.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"
)
APIS = ["openai", "openai_responses"]
OWN_HISTORY = {"store": False}
LOOP = asyncio.Runner()
"""One loop for all runs: a client of the SDK keeps its connections."""
CLIENTS: list[Any] = []


@pytest.fixture(autouse=True)
def closed_clients() -> Any:
    yield
    for client in CLIENTS:
        LOOP.run(client.client.close())
    CLIENTS.clear()


@pytest.fixture(autouse=True, scope="module")
def closed_loop() -> Any:
    with LOOP:
        yield


@tool
def read_log(number: int) -> str:
    """Return the log with a number."""
    return log_text(number)


def client_of(api: str, url: str, name: str = "gpt-5") -> Any:
    kind = OpenAIChatClient if api == "openai_responses" else OpenAIChatCompletionClient
    limits = {"max_iterations": 2 * CALLS}
    CLIENTS.append(kind(model=name, base_url=f"{url}/v1", api_key="k", function_invocation_configuration=limits))
    return CLIENTS[-1]


def agent_of(api: str, server: StubServer, middleware: Any, *others: Any, **options: Any) -> Any:
    chain = [] if middleware is None else [*others, middleware]
    options = {"tools": [read_log], "default_options": OWN_HISTORY, "instructions": "Be brief.", **options}
    return Agent(client=client_of(api, server.url), middleware=chain, **options)


async def ask(agent: Any, text: str = QUESTION, session: Any = None, *, streamed: bool = False) -> Any:
    if not streamed:
        return await agent.run(text, session=session)
    stream = agent.run(text, session=session, stream=True)
    updates = [update async for update in stream]
    assert len(updates) > 1
    return await stream.get_final_response()


def run(agent: Any, text: str = QUESTION, session: Any = None, *, streamed: bool = False) -> Any:
    return LOOP.run(ask(agent, text, session, streamed=streamed))


def session_of(name: str = "t1") -> AgentSession:
    return AgentSession(session_id=name)


def stored(session: AgentSession) -> list[Message]:
    """Return the list in which the framework keeps the messages of a session."""
    messages: list[Message] = session.state["in_memory"]["messages"]
    return messages


def results(messages: list[Message]) -> list[Content]:
    return [content for message in messages for content in message.contents if content.type == "function_result"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", APIS)
def test_a_hundred_calls_stay_in_the_window(api: str, streamed: bool):
    model, session = ScriptedModel(reader(), api), session_of()
    with StubServer(model) as server:
        response = run(agent_of(api, server, FoveateMiddleware(window=WINDOW)), session=session, streamed=streamed)
        assert server.illegal == []
    assert response.text.endswith(ANSWER)
    assert len(model.requests) == CALLS + 1
    assert largest(model) <= WINDOW
    assert [content.result for content in results(stored(session))] == [log_text(number) for number in range(CALLS)]


def test_without_the_middleware_the_requests_outgrow_the_window():
    model = ScriptedModel(reader(30), "openai")
    with StubServer(model) as server:
        run(agent_of("openai", server, None))
    assert largest(model) > 2 * WINDOW


@pytest.mark.parametrize("api", APIS)
def test_the_model_expands_what_was_shortened(api: str):
    model = ScriptedModel(reader(40, expand="m3"), api)
    with StubServer(model) as server:
        response = run(agent_of(api, server, FoveateMiddleware(window=WINDOW)), session=session_of())
        assert server.illegal == []
    (expansion,) = [content for content in results(response.messages) if content.call_id == "expand-1"]
    assert "m3" in expansion.result
    tools = {str(request["tools"]) for request in model.requests}
    assert len(tools) == 1  # The prefix is the same from the first request on.
    assert "expand" in tools.pop()


def test_an_unknown_handle_is_a_result_that_the_model_can_read():
    model = ScriptedModel([call("e0", "expand", handle="m99"), say(ANSWER)], "openai")
    with StubServer(model) as server:
        agent = agent_of("openai", server, FoveateMiddleware(window=WINDOW), tools=[])
        (expansion,) = results(run(agent).messages)
        assert server.illegal == []
    assert "m99" in expansion.result


def test_without_expand_the_model_has_only_the_tools_of_the_agent():
    model = ScriptedModel(reader(30), "openai")
    with StubServer(model) as server:
        run(agent_of("openai", server, FoveateMiddleware(window=WINDOW, expand=False)))
        assert server.illegal == []
    assert {tool["function"]["name"] for request in model.requests for tool in request["tools"]} == {"read_log"}
    assert largest(model) <= WINDOW


def test_the_history_holds_every_message_once_and_every_bill(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel(reader(12), "openai")
    middleware = FoveateMiddleware(url, window=WINDOW)
    with StubServer(model) as server:
        run(agent_of("openai", server, middleware), session=session_of(), streamed=True)
    middleware.close()
    with foveate.open_conversation("t1", store=url, window=WINDOW) as chat:
        assert [row.message.role for row in chat.history()] == ["user", *["assistant", "tool"] * 12, "assistant"]
        usage = chat.totals().usage
        billed = (usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0)
        assert (chat.totals().calls, billed) == (13, sum(bill.total for bill in model.billed))


@pytest.mark.parametrize("api", APIS)
def test_a_session_goes_on_after_a_restart(api: str, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    saved = session_of().to_dict()
    for part in range(2):
        model = ScriptedModel(reader(25, first=25 * part), api)
        middleware, session = FoveateMiddleware(url, window=WINDOW), AgentSession.from_dict(saved)
        with StubServer(model) as server:
            run(agent_of(api, server, middleware), session=session)
            assert server.illegal == []
        middleware.close()
        saved = json.loads(json.dumps(session.to_dict()))
        assert largest(model) <= WINDOW
    with foveate.open_store(url) as store:
        assert store.names("") == ["t1"]
    with foveate.open_conversation("t1", store=url, window=WINDOW, format=api) as chat:
        assert len(chat) == 2 * (1 + 2 * 25 + 1)


def test_a_failed_call_leaves_a_session_that_goes_on(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    replies = iter([call("c0", "read_log", number=0), Failure(400), say(ANSWER)])
    model, session = ScriptedModel(lambda request: next(replies), "openai"), session_of()
    middleware = FoveateMiddleware(url, window=WINDOW)
    with StubServer(model) as server:
        agent = agent_of("openai", server, middleware)
        with pytest.raises(Exception):  # noqa: B017, PT011 - the framework's error, by version
            run(agent, session=session)
        assert run(agent, session=session).text == ANSWER
        assert server.illegal == []
    middleware.close()


def test_a_retry_of_the_sdk_records_one_reply():
    replies = iter([call("c0", "read_log", number=0), Failure(500), say(ANSWER)])
    model = ScriptedModel(lambda request: next(replies), "openai")
    middleware = FoveateMiddleware(window=WINDOW)
    with StubServer(model) as server:
        assert run(agent_of("openai", server, middleware), session=session_of()).text == ANSWER
        assert server.illegal == []
    history = middleware.conversation("t1").history()
    assert [row.message.role for row in history] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("api", APIS)
def test_a_cut_stream_leaves_a_session_that_goes_on(api: str):
    replies = iter([call("c0", "read_log", number=0), CutReply(say("A long answer that is cut off.")), say(ANSWER)])
    model, session = ScriptedModel(lambda request: next(replies), api), session_of()
    with StubServer(model) as server:
        agent = agent_of(api, server, FoveateMiddleware(window=WINDOW))
        with pytest.raises(Exception):  # noqa: B017, PT011 - the SDK's error, by version
            run(agent, session=session, streamed=True)
        assert run(agent, "Go on.", session).text == ANSWER
        assert server.illegal == []


def test_a_cancelled_run_leaves_a_session_that_goes_on():
    model, session = ScriptedModel(lambda request: say(ANSWER), "openai"), session_of()

    async def main(server: StubServer) -> str:
        agent = agent_of("openai", server, FoveateMiddleware(window=WINDOW))
        task = asyncio.create_task(ask(agent, session=session))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return str((await ask(agent, "Go on.", session)).text)

    with StubServer(model) as server:
        assert LOOP.run(main(server)) == ANSWER
        assert server.illegal == []


def test_several_calls_in_one_reply_have_their_results_in_one_message():
    calls = [foveate.Message("assistant", (call_of(2 * n), call_of(2 * n + 1))) for n in range(15)]
    for api in APIS:
        replies = iter([*calls, say(ANSWER)])
        model = ScriptedModel(lambda request, replies=replies: next(replies), api)
        shown = Recorder()
        with StubServer(model) as server:
            agent = agent_of(api, server, FoveateMiddleware(window=WINDOW))
            agent.middleware.append(shown)
            assert run(agent).text == ANSWER
            assert server.illegal == []
        assert largest(model) <= WINDOW
        assert {len(message.contents) for sent in shown.calls for message in sent if message.role == "tool"} == {2}


def call_of(number: int) -> foveate.ToolCall:
    return foveate.ToolCall(f"call-{number}", "read_log", json.dumps({"number": number}))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_reasoning_goes_back_to_its_own_provider_only(streamed: bool):
    reasoning = foveate.Reasoning("The disk may be full.", encrypted="sealed", format="openai_responses")
    parts = (reasoning, foveate.Text("I read log 57."), call_of(57))
    middleware, session = FoveateMiddleware(window=WINDOW), session_of()
    model = ScriptedModel([foveate.Message("assistant", parts), say(ANSWER)], "openai_responses")
    with StubServer(model) as server:
        run(agent_of("openai_responses", server, middleware), session=session, streamed=streamed)
        assert server.illegal == []
    (item,) = [item for item in model.requests[-1]["input"] if item["type"] == "reasoning"]
    assert (item["encrypted_content"], item["summary"][0]["text"]) == ("sealed", "The disk may be full.")
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    with StubServer(model) as server:
        assert run(agent_of("openai", server, middleware), session=session).text == ANSWER
        assert server.illegal == []
    assert "sealed" not in str(model.requests)


def test_messages_that_the_program_removes_are_not_sent_and_pins_stay():
    model, session = ScriptedModel(reader(6), "openai"), session_of()
    middleware = FoveateMiddleware(window=WINDOW)
    with StubServer(model) as server:
        agent = agent_of("openai", server, middleware)
        run(agent, session=session)
        chat = middleware.conversation("t1")
        chat.pin("m13")
        del stored(session)[3:5]
        run(agent, "And now?", session)
        assert server.illegal == []
    assert "Line 1 of log 5:" in str(model.requests[-1])
    assert "Line 1 of log 1:" not in str(model.requests[-1])
    assert chat.name == "t1"
    assert [entry.handle for entry in chat.view if entry.is_pinned()] == ["m13"]


def test_a_message_that_the_program_edits_is_sent_as_edited():
    model, session = ScriptedModel(reader(3), "openai"), session_of()
    middleware = FoveateMiddleware(window=WINDOW)
    with StubServer(model) as server:
        agent = agent_of("openai", server, middleware)
        run(agent, session=session)
        old = stored(session)[6].contents[0]
        stored(session)[6] = Message("tool", [Content.from_function_result(old.call_id, result="Log 2 is secret.")])
        run(agent, "And now?", session)
        assert server.illegal == []
    assert names_of(middleware) == ["t1"]
    assert "Log 2 is secret." in str(model.requests[-1])
    assert "Line 1 of log 2:" not in str(model.requests[-1])


def test_the_model_may_change_in_a_session():
    middleware, session = FoveateMiddleware(window=WINDOW), session_of()
    for number, api in enumerate(["openai", "openai_responses", "openai"]):
        model = ScriptedModel(reader(15, first=15 * number), api)
        with StubServer(model) as server:
            assert run(agent_of(api, server, middleware), session=session).text == ANSWER
            assert server.illegal == []
        assert largest(model) <= WINDOW


@pytest.mark.parametrize("api", APIS)
def test_a_refused_prompt_is_made_smaller(api: str):
    model = ScriptedModel(reader(30), api, window=3_500)  # Smaller than the window of the options.
    with StubServer(model) as server:
        assert run(agent_of(api, server, FoveateMiddleware(window=WINDOW))).text == ANSWER
        assert server.illegal == []
        assert len(server.received) > len(model.requests)  # Some were refused.
    assert len(model.requests) == 31


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_a_sub_agent_has_a_conversation_of_its_own(shared: bool, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    main = ScriptedModel([call("d0", "delegate", task="Read the logs."), say("Done.")], "openai")
    sub = ScriptedModel(reader(20), "openai")
    middleware = FoveateMiddleware(url, window=WINDOW)
    with StubServer({"/main": main, "/sub": sub}) as server:
        client = client_of("openai", f"{server.url}/sub")
        helper = Agent(client=client, name="helper", tools=[read_log], middleware=[middleware])
        tools = [helper.as_tool(name="delegate", arg_name="task", propagate_session=shared)]
        agent = Agent(
            client=client_of("openai", f"{server.url}/main"),
            tools=tools,
            middleware=[middleware.sub_agents, middleware],
        )
        assert run(agent, session=session_of()).text == "Done."
        assert server.illegal == []
    middleware.close()
    assert largest(sub) <= WINDOW
    with foveate.open_store(url) as store:
        first, second = sorted(store.names(""))
    assert first == "t1"
    assert second == "t1/delegate:d0" if shared else second.startswith("t1/")
    with foveate.open_conversation("t1", store=url, window=WINDOW) as chat:
        assert (chat.totals().calls, chat.totals(children=True).calls) == (2, 23)


@pytest.mark.parametrize("api", APIS)
def test_a_tool_that_the_user_approves_runs_once(api: str):
    @tool(approval_mode="always_require")
    def delete_log(number: int) -> str:
        """Delete a log."""
        return f"Log {number} is deleted."

    replies = iter([call("c0", "delete_log", number=57), say("Deleted."), say(ANSWER)])
    model, session = ScriptedModel(lambda request: next(replies), api), session_of()
    middleware = FoveateMiddleware(window=WINDOW)
    with StubServer(model) as server:
        agent = agent_of(api, server, middleware, tools=[delete_log])
        (request,) = run(agent, "Delete log 57.", session).user_input_requests
        answer = Message("user", [request.to_function_approval_response(approved=True)])
        assert LOOP.run(agent.run(answer, session=session)).text == "Deleted."
        run(agent, session=session)
        assert server.illegal == []
    roles = [row.message.role for row in middleware.conversation("t1").history()]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert names_of(middleware) == ["t1"]


def names_of(middleware: FoveateMiddleware) -> list[str]:
    store = middleware._host._owned
    assert store is not None
    return store.names("")


def test_a_client_without_an_agent_has_the_middleware_too():
    model = ScriptedModel(reader(30, expand="m3"), "openai")
    with StubServer(model) as server:
        client = client_of("openai", server.url)
        client.chat_middleware.append(FoveateMiddleware(window=WINDOW))
        response = LOOP.run(client.get_response([Message("user", [QUESTION])], options={"tools": [read_log]}))
        assert server.illegal == []
    assert response.text == ANSWER
    assert largest(model) <= WINDOW


class Recorder(ChatMiddleware):
    """Keeps the messages of each call."""

    def __init__(self) -> None:
        self.calls: list[list[Message]] = []

    async def process(self, context: Any, call_next: Any) -> None:
        self.calls.append(list(context.messages))
        await call_next()


def test_messages_that_are_shown_unchanged_are_those_of_the_session():
    hosted = [
        Content.from_mcp_server_tool_call("h1", "find", server_name="wiki", arguments={"words": "disk"}),
        Content.from_mcp_server_tool_result("h1", output=[Content.from_text("Nothing.")]),
        Content.from_text("The wiki has nothing."),
    ]
    question = [Message("user", ["Ask the wiki."]), Message("assistant", hosted), Message("user", [QUESTION])]
    model = ScriptedModel(reader(15), "openai_responses")
    before, after = Recorder(), Recorder()
    with StubServer(model) as server:
        chain = [before, FoveateMiddleware(window=WINDOW), after]
        agent = Agent(client=client_of("openai_responses", server.url), tools=[read_log], middleware=chain)
        LOOP.run(agent.run(question, options=OWN_HISTORY))
        assert server.illegal == []
    given, shown = before.calls[-1], after.calls[-1]
    assert all(one is other for one, other in zip(given[:3], shown[:3], strict=True))
    assert [message for message in shown if all(message is not one for one in given)]  # Shortened results.
    assert shown[-1] is given[-1]
    assert len(given) == 3 + 2 * 15


def test_runs_without_a_session_are_conversations_of_their_own():
    replies = iter(2 * [call("c0", "read_log", number=0), say(ANSWER)])
    model = ScriptedModel(lambda request: next(replies), "openai")
    middleware = FoveateMiddleware(window=WINDOW)
    with StubServer(model) as server:
        agent = agent_of("openai", server, middleware)
        run(agent, "One.")
        run(agent, "Two.")
    assert [name.startswith("run-") for name in names_of(middleware)] == [True, True]


def test_history_that_the_service_keeps_is_left_alone():
    replies = iter([call("c0", "read_log", number=0), say(ANSWER), say(ANSWER)])
    model = ScriptedModel(lambda request: next(replies), "openai_responses")
    with StubServer(model) as server, pytest.warns(RuntimeWarning, match="store=False") as warnings:
        agent = agent_of("openai_responses", server, FoveateMiddleware(window=WINDOW), default_options={})
        run(agent, session=session_of())
        assert json.loads(server.received[1].body)["previous_response_id"]
    assert len(warnings) == 1
    assert "expand" not in str(model.requests)


def test_a_fault_sends_the_messages_as_they_are(full_disk: None):
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    with StubServer(model) as server, pytest.warns(RuntimeWarning, match="are sent as they are"):
        client = client_of("openai", server.url, "nobody-knows-me")
        assert run(Agent(client=client, middleware=[FoveateMiddleware()])).text == ANSWER


# --------------------------------------------------------------------------------------------------------- conversion

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
ARGUMENTS = st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(-9, 9), st.booleans()), max_size=3)
CONTENTS = st.one_of(
    st.builds(Content.from_text, TEXTS),
    st.builds(lambda data: Content.from_data(data, "image/png", name="a.png"), st.binary(min_size=1, max_size=9)),
    st.just(Content.from_uri("https://example.org/a.png", media_type="image/png")),
    st.builds(lambda id: Content.from_hosted_file(id, media_type="application/pdf"), TEXTS),
    st.builds(lambda text: Content.from_error(message=text, error_code="E1"), TEXTS),
)
REASONING = st.builds(lambda text, data: Content.from_text_reasoning(text=text, protected_data=data), TEXTS, TEXTS)
CALL = st.builds(
    lambda id, body: Content.from_function_call(id, "read_log", arguments=json.dumps(body)), TEXTS, ARGUMENTS
)
RESULT = st.builds(
    lambda id, items, failure: Content.from_function_result(id, result=items, exception=failure),
    TEXTS,
    st.lists(CONTENTS, min_size=1, max_size=3),
    st.sampled_from([None, "failed"]),
)
MESSAGES = st.one_of(
    st.builds(lambda contents: Message("user", contents), st.lists(CONTENTS, min_size=1, max_size=4)),
    st.builds(lambda text: Message("system", [text]), TEXTS),
    st.builds(
        lambda contents: Message("assistant", contents), st.lists(st.one_of(CONTENTS, REASONING, CALL), min_size=1)
    ),
    st.builds(lambda contents: Message("tool", contents), st.lists(RESULT, min_size=1, max_size=3)),
)


@given(MESSAGES)
def test_conversion_is_lossless(message: Message):
    there = messages_of(message, "openai_responses")
    back = [to_agent_framework(one, "openai_responses") for one in there]
    assert [one.role for one in back] == [message.role] * len(there)
    assert [content for one in back for content in one.contents] == message.contents
    assert [other for one in back for other in messages_of(one, "openai_responses")] == there


@given(MESSAGES)
def test_contents_of_a_changed_message_are_the_same_objects(message: Message):
    for there, contents in zip(messages_of(message, "openai"), groups(message), strict=True):
        back = to_agent_framework(there, "openai", message, contents)
        assert (back.role, back.message_id) == (message.role, message.message_id)
        assert back.contents == contents


def test_recorded_messages_come_back(transcripts: Path):
    count = 0
    for path in sorted((transcripts / "neutral").glob("*/*.jsonl"))[::9]:
        for line in path.read_text("utf-8").splitlines():
            for recorded in get_format("openai").parse(json.loads(line)):
                own = to_agent_framework(recorded, "openai")
                (there,) = messages_of(own, "openai")
                assert (there.role, there.text) == (recorded.role, recorded.text)
                assert [call.arguments for call in there.calls] == [call.arguments for call in recorded.calls]
                assert to_agent_framework(there, "openai").contents == own.contents
                count += 1
    assert count > 100


def test_foveate_sends_less_than_the_compaction_of_the_framework():
    """Prints the table of the page with `-s`; with FOVEATE_THOROUGH=1 all of it."""
    counter = CharacterEstimatorTokenizer()
    strategies: dict[str, Any] = {
        "context window": ContextWindowCompactionStrategy(max_context_window_tokens=WINDOW, max_output_tokens=1_000),
        "truncation": TruncationStrategy(
            max_n=14_000, compact_to=8_000, tokenizer=counter, preserve_first_user_group=True
        ),
    }
    if os.environ.get("FOVEATE_THOROUGH"):
        strategies["nothing"] = None
        strategies["sliding window"] = SlidingWindowStrategy(keep_last_groups=10)
        strategies["tool results"] = ToolResultCompactionStrategy(keep_last_tool_call_groups=5)
    rows = {name: row_of(compaction_strategy=strategy) for name, strategy in strategies.items()}
    ours = row_of(FoveateMiddleware(window=WINDOW))
    print("largest, sent, cost, logs, question", f"foveate: {ours}", *map(str, rows.items()), sep="\n")
    _, sent, cost, logs, has_question = ours
    assert all(sent < row[1] and cost < row[2] for row in rows.values())
    assert (logs, has_question) == (CALLS, True)


def row_of(middleware: Any = None, **options: Any) -> tuple[int, int, float, int, bool]:
    """Return the largest request, all tokens, their cost, the logs that the last request names, and if it asks."""
    model = ScriptedModel(reader(), "openai")
    with StubServer(model) as server:
        run(agent_of("openai", server, middleware, **options), session=session_of())
        assert server.illegal == []
    sent = sum(exact_tokens(request) for request in model.requests)
    cost = sum(1.25 * (bill.total - bill.read) + 0.125 * bill.read for bill in model.billed) / 1e6
    last = str(model.requests[-1])
    logs = sum(f"log {number}:" in last or f"number={number})" in last for number in range(CALLS))
    return largest(model), sent, cost, logs, QUESTION in last


@pytest.mark.parametrize(("name", "own"), [("gpt-5.6", ""), ("gpt-5.6", "mine"), ("gpt-5.5", "")])
@pytest.mark.parametrize("api", APIS)
def test_newer_gpt_gets_a_key_for_its_cache(api: str, name: str, own: str):
    options = {**OWN_HISTORY, **({"prompt_cache_key": own} if own else {})}
    with StubServer(ScriptedModel(reader(2), api)) as server:
        client, middleware = client_of(api, server.url, name), FoveateMiddleware(window=WINDOW)
        run(Agent(client=client, middleware=[middleware], tools=[read_log], default_options=options))
        (key,) = {request.values.get("prompt_cache_key") for request in server.received}
    assert key == own if own else (key is None) == (name == "gpt-5.5")


class AnthropicClient:
    """A client whose options show what it sends. The real one needs another version of Anthropic's SDK."""

    model = "claude-haiku-4-5"


@pytest.mark.parametrize("own", [None, {"type": "ephemeral", "ttl": "1h"}], ids=["none", "own"])
def test_claude_gets_a_mark_for_its_cache_behind_its_first_reply(own: Any):
    middleware, shown = FoveateMiddleware(window=WINDOW), list[Any]()
    messages = [Message("user", [QUESTION]), Message("assistant", ["I look."]), Message("user", ["And?"])]
    for count in (1, 3):
        options = {"tools": [read_log], **({"cache_control": own} if own else {})}
        context = ChatContext(AnthropicClient(), messages[:count], options, session=session_of())

        async def answer(context: ChatContext = context) -> None:
            shown.append(context.options and context.options.get("cache_control"))

        LOOP.run(middleware.process(context, answer))
    assert shown == ([own, own] if own else [None, {"type": "ephemeral"}])


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_page("agent-framework.md", tmp_path, monkeypatch)
