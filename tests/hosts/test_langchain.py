"""LangChain: 100 calls in a small window, with the real framework, its models, and a server on loopback."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain.agents.middleware", reason="langchain is not installed")
pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
pytest.importorskip("langchain_anthropic", reason="langchain-anthropic is not installed")

from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pages import run_example, run_page
from pydantic import BaseModel
from recorded import recorded_lists
from scenario import ANSWER, CALLS, QUESTION, WINDOW, largest, log_text, marks, reader

import foveate
from foveate import Message, Reasoning, ToolCall
from foveate.hosts.langchain import FoveateMiddleware
from foveate.hosts.langchain_messages import from_langchain, to_langchain
from foveate.testing import CutReply, Failure, ScriptedModel, call, say
from foveate.testing.server import StubServer


@tool
def read_log(number: int) -> str:
    """Return the log with a number."""
    return log_text(number)


def chat_model(provider: str, url: str, *, retries: int = 0, name: str = "") -> Any:
    if provider == "anthropic":
        return ChatAnthropic(model=name or "claude-haiku-4-5", base_url=url, api_key="k", max_retries=retries)
    return ChatOpenAI(model=name or "gpt-5", base_url=f"{url}/v1", api_key="k", max_retries=retries)


def agent_of(provider: str, server: StubServer, middleware: Any, *others: Any, **options: Any) -> Any:
    model = chat_model(provider, server.url)
    saver = InMemorySaver()
    chain = [*others, middleware]
    return create_agent(model, [read_log], system_prompt="Be brief.", middleware=chain, checkpointer=saver, **options)


def asked(text: str = QUESTION) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def thread(name: str = "t1") -> Any:
    return {"configurable": {"thread_id": name}, "recursion_limit": 500}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_hundred_calls_stay_in_the_window(provider: str, streamed: bool):
    model = ScriptedModel(reader(), provider)
    with StubServer(model) as server:
        agent = agent_of(provider, server, FoveateMiddleware(window=WINDOW))
        if streamed:
            pieces = list(agent.stream(asked(), thread(), stream_mode="messages"))
            assert len(pieces) > 2 * CALLS
            messages = agent.get_state(thread()).values["messages"]
        else:
            messages = agent.invoke(asked(), thread())["messages"]
        assert server.illegal == []
    assert messages[-1].text == ANSWER
    assert largest(model) <= WINDOW
    assert [m.text for m in messages if m.type == "tool"] == [log_text(number) for number in range(CALLS)]


def test_without_the_middleware_the_requests_outgrow_the_window():
    model = ScriptedModel(reader(30), "openai")
    with StubServer(model) as server:
        create_agent(chat_model("openai", server.url), [read_log]).invoke(asked(), thread())
    assert largest(model) > 2 * WINDOW


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_the_model_expands_what_was_shortened(provider: str):
    model = ScriptedModel(reader(40, expand="m3"), provider)
    with StubServer(model) as server:
        middleware = FoveateMiddleware(window=WINDOW)
        messages = agent_of(provider, server, middleware).invoke(asked(), thread())["messages"]
        assert server.illegal == []
    (expansion,) = [m for m in messages if m.type == "tool" and m.name == "expand"]
    assert expansion.status == "success" or "match" in expansion.text
    assert "m3" in expansion.text
    tools = {str(request["tools"]) for request in model.requests}
    assert len(tools) == 1  # The prefix is the same from the first request on.
    assert "expand" in tools.pop()


def test_an_unknown_handle_is_a_result_that_the_model_can_read():
    replies = iter([call("c0", "read_log", number=0), call("e0", "expand", handle="m99"), say(ANSWER)])
    model = ScriptedModel(lambda request: next(replies), "openai")
    with StubServer(model) as server:
        messages = agent_of("openai", server, FoveateMiddleware(window=WINDOW)).invoke(asked(), thread())["messages"]
    (expansion,) = [m for m in messages if m.type == "tool" and m.name == "expand"]
    assert expansion.status == "error"
    assert "m99" in expansion.text


@pytest.mark.parametrize(("name", "own"), [("gpt-5.6", ""), ("gpt-5.6", "mine"), ("gpt-5.5", "")])
def test_newer_gpt_gets_a_key_for_its_cache(name: str, own: str):
    model = ScriptedModel(reader(3), "openai")
    with StubServer(model) as server:
        llm = chat_model("openai", server.url, name=name)
        llm.model_kwargs = {"prompt_cache_key": own} if own else {}
        agent = create_agent(llm, [read_log], middleware=[FoveateMiddleware(window=WINDOW)])
        agent.invoke(asked(), thread())
        keys = {request.values.get("prompt_cache_key") for request in server.received}
    (key,) = keys
    assert key == own if own else (key is None) == (name == "gpt-5.5")


def marks_of(calls: int = 3, *middleware: Any, **options: Any) -> list[int]:
    """Return the number of marks in each request of an agent with Claude and foveate's middleware."""
    with StubServer(ScriptedModel(reader(calls), "anthropic")) as server:
        chain = middleware or (FoveateMiddleware(window=WINDOW),)
        keywords = {"tools": [read_log], "system_prompt": "Be brief.", **options}
        agent = create_agent(chat_model("anthropic", server.url), middleware=chain, **keywords)
        agent.invoke(asked(), thread())
        assert server.illegal == []
        return [marks(request.values) for request in server.received]


def test_claude_gets_marks_for_its_cache_behind_its_first_reply():
    with_view = ScriptedModel(reader(30), "anthropic")
    with StubServer(with_view) as server:
        agent_of("anthropic", server, FoveateMiddleware(window=WINDOW)).invoke(asked(), thread())
        counts = [marks(request.values) for request in server.received]
    assert counts == [0, *[1] * 30]
    assert sum(bill.read for bill in with_view.billed) > sum(bill.total for bill in with_view.billed) / 2


def test_own_marks_for_the_cache_win():
    block = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert marks_of(system_prompt=SystemMessage([block])) == [1] * 4
    caching, foveates = AnthropicPromptCachingMiddleware(), FoveateMiddleware(window=WINDOW)
    assert marks_of(3, caching, foveates) == marks_of(3, foveates, caching) == [3] * 4


def test_async_agents_stay_in_the_window_too():
    model = ScriptedModel(reader(30, expand="m3"), "anthropic")

    async def main(server: StubServer) -> Any:
        agent = agent_of("anthropic", server, FoveateMiddleware(window=WINDOW))
        return await agent.ainvoke(asked(), thread())

    with StubServer(model) as server:
        state = asyncio.run(main(server))
        assert server.illegal == []
    assert state["messages"][-1].text == ANSWER
    assert largest(model) <= WINDOW


def test_the_history_holds_every_message_once_and_every_bill(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel(reader(12), "anthropic")
    with StubServer(model) as server:
        middleware = FoveateMiddleware(url, window=WINDOW)
        agent_of("anthropic", server, middleware).invoke(asked(), thread())
        middleware.close()
    with foveate.open_conversation("t1", store=url, window=WINDOW, format="anthropic") as chat:
        assert [row.message.role for row in chat.history()] == ["user", *["assistant", "tool"] * 12, "assistant"]
        usage = chat.totals().usage
        billed = (usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0)
        assert (chat.totals().calls, billed) == (13, sum(bill.total for bill in model.billed))


def test_a_thread_goes_on_after_a_restart(tmp_path: Path):
    url, saver = f"sqlite:///{tmp_path}/chats.db", InMemorySaver()
    sizes = []
    for _ in range(2):
        model = ScriptedModel(reader(25), "openai")
        with StubServer(model) as server:
            middleware = FoveateMiddleware(url, window=WINDOW)
            model_of = chat_model("openai", server.url)
            agent = create_agent(model_of, [read_log], middleware=[middleware], checkpointer=saver)
            agent.invoke(asked(), thread())
            assert server.illegal == []
            middleware.close()
        sizes.append(largest(model))
    assert max(sizes) <= WINDOW
    with foveate.open_store(url) as store:
        assert store.names("") == ["t1"]


@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
def test_a_retry_records_one_reply(outside: bool, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    replies = iter([call("c0", "read_log", number=0), Failure(500), say(ANSWER)])
    model = ScriptedModel(lambda request: next(replies), "openai")
    with StubServer(model) as server:
        middleware, retry = FoveateMiddleware(url, window=WINDOW), ModelRetryMiddleware(initial_delay=0, jitter=False)
        chain = [retry, middleware] if outside else [middleware, retry]
        agent = create_agent(chat_model("openai", server.url), [read_log], middleware=chain)
        assert agent.invoke(asked(), thread())["messages"][-1].text == ANSWER
        assert server.illegal == []
        middleware.close()
    with foveate.open_store(url) as store:
        (name,) = store.names("")
    with foveate.open_conversation(name, store=url, window=WINDOW) as chat:
        assert [row.message.role for row in chat.history()] == ["user", "assistant", "tool", "assistant"]


def test_a_cut_stream_leaves_a_thread_that_goes_on():
    replies = iter([call("c0", "read_log", number=0), CutReply(say("A long answer that is cut off.")), say(ANSWER)])
    model = ScriptedModel(lambda request: next(replies), "anthropic")
    with StubServer(model) as server:
        agent = agent_of("anthropic", server, FoveateMiddleware(window=WINDOW))
        with pytest.raises(Exception):  # noqa: B017, PT011 - the SDK's error, by version
            list(agent.stream(asked(), thread(), stream_mode="messages"))
        assert agent.invoke(asked("Go on."), thread())["messages"][-1].text == ANSWER
        assert server.illegal == []


def test_a_cancelled_run_leaves_a_thread_that_goes_on():
    model = ScriptedModel(lambda request: say(ANSWER), "openai")

    async def main(server: StubServer) -> str:
        agent = agent_of("openai", server, FoveateMiddleware(window=WINDOW))
        task = asyncio.create_task(agent.ainvoke(asked(), thread()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return str((await agent.ainvoke(asked("Go on."), thread()))["messages"][-1].text)

    with StubServer(model) as server:
        assert asyncio.run(main(server)) == ANSWER
        assert server.illegal == []


def test_removed_messages_are_not_sent_and_pins_stay():
    model = ScriptedModel(reader(6), "openai")
    with StubServer(model) as server:
        middleware = FoveateMiddleware(window=WINDOW)
        agent = agent_of("openai", server, middleware)
        messages = agent.invoke(asked(), thread())["messages"]
        chat = middleware._host.conversation(("t1",))
        chat.pin("m13")
        agent.update_state(thread(), {"messages": [RemoveMessage(messages[n].id) for n in (3, 4)]})
        agent.invoke(asked("And now?"), thread())
        assert server.illegal == []
    assert "Line 1 of log 5:" in str(model.requests[-1])
    assert "Line 1 of log 1:" not in str(model.requests[-1])
    assert chat.name == "t1"
    assert [entry.handle for entry in chat.view if entry.is_pinned()] == ["m13"]


def test_the_model_may_change_in_a_thread():
    saver, sizes = InMemorySaver(), []
    middleware = FoveateMiddleware(window=WINDOW)
    for provider in ("anthropic", "openai", "anthropic"):
        model = ScriptedModel(reader(15), provider)
        with StubServer(model) as server:
            llm = chat_model(provider, server.url)
            agent = create_agent(llm, [read_log], middleware=[middleware], checkpointer=saver)
            assert agent.invoke(asked(), thread())["messages"][-1].text == ANSWER
            assert server.illegal == []
        sizes.append(largest(model))
    assert max(sizes) <= WINDOW


def test_a_refused_prompt_is_made_smaller():
    model = ScriptedModel(reader(30), "openai", window=3_500)  # Smaller than the window of the options.
    with StubServer(model) as server:
        state = agent_of("openai", server, FoveateMiddleware(window=WINDOW)).invoke(asked(), thread())
        assert server.illegal == []
        assert len(server.received) > len(model.requests) == 31  # Some were refused.
    assert state["messages"][-1].text == ANSWER


@pytest.mark.parametrize("policy", ["balanced", "none", "keep-last-1"])
def test_signed_thinking_goes_back_as_it_was(policy: str):
    def reply(number: int) -> Message:
        thought = Reasoning(f"Log {number} is next.", f"signature-{number}", format="anthropic")
        return Message("assistant", (thought, *call(f"c{number}", "read_log", number=number).parts))

    model = ScriptedModel([*map(reply, range(30)), say(ANSWER)], "anthropic")
    with StubServer(model) as server:
        thinking = {"type": "enabled", "budget_tokens": 1024}
        keywords: Any = {"base_url": server.url, "api_key": "k", "max_tokens": 2000, "thinking": thinking}
        llm = ChatAnthropic(model="claude-haiku-4-5", max_retries=0, **keywords)
        middleware = FoveateMiddleware(window=WINDOW, policy=policy)
        agent = create_agent(llm, [read_log], middleware=[middleware])
        assert agent.invoke(asked(), thread())["messages"][-1].text == ANSWER
        assert server.illegal == []
    assert "signature-29" in str(model.requests[-1])
    assert largest(model) <= WINDOW


def test_a_sub_agent_has_a_conversation_of_its_own(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    main = ScriptedModel([call("d0", "delegate", task="read"), say("Done.")], "anthropic")
    sub = ScriptedModel(reader(20), "anthropic")
    with StubServer({"/main": main, "/sub": sub}) as server:
        middleware = FoveateMiddleware(url, window=WINDOW)
        helper = create_agent(chat_model("anthropic", f"{server.url}/sub"), [read_log], middleware=[middleware])

        @tool
        def delegate(task: str) -> str:
            """Let a sub-agent do a task."""
            return str(helper.invoke(asked(task))["messages"][-1].text)

        llm = chat_model("anthropic", f"{server.url}/main")
        agent = create_agent(llm, [delegate], middleware=[middleware], checkpointer=InMemorySaver())
        assert agent.invoke(asked(), thread())["messages"][-1].text == "Done."
        assert server.illegal == []
        middleware.close()
    assert largest(sub) <= WINDOW
    with foveate.open_store(url) as store:
        names = sorted(store.names(""))
    assert len(names) == 2
    assert names[0] == "t1"
    assert names[1].startswith("t1/tools:")
    with foveate.open_conversation("t1", store=url, window=WINDOW, format="anthropic") as chat:
        assert (chat.totals().calls, chat.totals(children=True).calls) == (2, 23)


def graph_of(node: Any) -> Any:
    """Return a graph with this node alone."""
    graph = StateGraph(MessagesState)
    graph.add_node("reader", node)
    graph.add_edge(START, "reader")
    return graph.compile(checkpointer=InMemorySaver())


def test_an_agent_in_a_graph_goes_on_in_the_next_run(tmp_path: Path):
    """LangGraph gives each run of a node a new id, so each question had another conversation with the whole list."""
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel([call("c0", "read_log", number=0), say("One."), say("Two."), say("Three.")], "openai")
    with StubServer(model) as server:
        middleware = FoveateMiddleware(url, window=WINDOW)
        agent = create_agent(chat_model("openai", server.url), [read_log], middleware=[middleware])
        graph = graph_of(agent)
        for text in ("First.", "Second.", "Third."):
            graph.invoke(asked(text), thread())
        assert middleware._host.conversation(("t1", "reader")).totals().calls == 4
        middleware.close()
    with foveate.open_store(url) as store:
        assert store.names("") == ["t1/reader"]


def test_runs_of_a_node_with_lists_of_their_own_are_conversations(tmp_path: Path):
    url, model = f"sqlite:///{tmp_path}/chats.db", ScriptedModel(lambda request: say("Done."), "openai")
    with StubServer(model) as server:
        middleware = FoveateMiddleware(url, window=WINDOW)
        agent = create_agent(chat_model("openai", server.url), [read_log], middleware=[middleware])
        graph = graph_of(lambda state: agent.invoke(asked(f"About {state['messages'][-1].text}")))
        for text in ("a", "b", "c"):
            graph.invoke(asked(text), thread())
        middleware.close()
    with foveate.open_store(url) as store:
        names = sorted(store.names(""))
    assert [name[:10] for name in names] == ["t1/reader", "t1/reader:", "t1/reader:"]
    assert [len(request["messages"]) for request in model.requests] == [1, 1, 1]


def deep_agent(server: StubServer, *middleware: Any) -> Any:
    deepagents = pytest.importorskip("deepagents", reason="deepagents is not installed")
    saver = InMemorySaver()
    return deepagents.create_deep_agent(
        chat_model("anthropic", server.url), [read_log], middleware=middleware, checkpointer=saver
    )


def delegating() -> ScriptedModel:
    """Return a model that reads 13 logs, writes a file and delegates, and whose sub-agent does the same."""
    task = call("t0", "task", description="SUBTASK", subagent_type="general-purpose")
    main = iter([*reading("c", "/main.txt"), task, call("r0", "read_file", file_path="/sub.txt"), say(ANSWER)])
    sub = iter([*reading("s", "/sub.txt"), say("Done.")])
    return ScriptedModel(lambda request: next(sub if "SUBTASK" in str(request["messages"][0]) else main), "anthropic")


def reading(id: str, path: str) -> list[Message]:
    calls = [call(f"{id}{number}", "read_log", number=number) for number in range(13)]
    return [*calls, call(f"{id}-w", "write_file", file_path=path, content="Log 57.")]


def test_deepagents_and_its_sub_agents_stay_in_the_window(tmp_path: Path):
    url, model = f"sqlite:///{tmp_path}/chats.db", delegating()
    with StubServer(model) as server:
        middleware = FoveateMiddleware(url, window=WINDOW, name="SummarizationMiddleware")
        state = deep_agent(server, middleware).invoke(asked(), thread())
        assert server.illegal == []
        middleware.close()
    assert state["messages"][-1].text == ANSWER
    assert sorted(state["files"]) == ["/main.txt", "/sub.txt"]
    assert "Log 57." in str(model.requests[-1])
    assert largest(model) <= WINDOW
    assert all("expand" in str(request["tools"]) for request in model.requests)
    with foveate.open_store(url) as store:
        first, second = sorted(store.names(""))
    assert (first, second.startswith("t1/tools:")) == ("t1", True)


def test_deepagents_without_the_middleware_outgrows_the_window():
    model = delegating()
    with StubServer(model) as server:
        deep_agent(server).invoke(asked(), thread())
    assert largest(model) > WINDOW


def test_deepagents_marks_are_not_doubled():
    counts = []
    for middleware in ([], [FoveateMiddleware(window=WINDOW, name="SummarizationMiddleware")]):
        with StubServer(ScriptedModel(reader(3), "anthropic")) as server:
            deep_agent(server, *middleware).invoke(asked(), thread())
            counts.append([marks(request.values) for request in server.received])
    assert counts == [[3] * 4] * 2  # Those of deepagents: its system prompt, its tools and the end.


def test_summarization_of_deepagents_may_stay_on():
    summarization = pytest.importorskip("deepagents.middleware.summarization", reason="deepagents is not installed")
    backends = pytest.importorskip("deepagents.backends", reason="deepagents is not installed")
    script = reader(30)
    model = ScriptedModel(lambda request: script(request) if request.get("tools") else say("Nothing yet."), "anthropic")
    with StubServer(model) as server:
        llm, backend = chat_model("anthropic", server.url), backends.StateBackend()
        options: Any = {"trigger": ("tokens", 5_000), "keep": ("messages", 4)}
        own = summarization.SummarizationMiddleware(llm, backend=backend, **options)
        state = deep_agent(server, own, FoveateMiddleware(window=WINDOW)).invoke(asked(), thread())
        assert server.illegal == []
    assert state["messages"][-1].text == ANSWER
    assert largest(model) <= WINDOW
    assert any(not request.get("tools") for request in model.requests)


def test_structured_output_is_part_of_the_history():
    class Verdict(BaseModel):
        """The verdict."""

        number: int

    replies = iter([call("c0", "read_log", number=57), call("v0", "Verdict", number=57), say("Thanks.")])
    model = ScriptedModel(lambda request: next(replies), "openai")
    with StubServer(model) as server:
        middleware = FoveateMiddleware(window=WINDOW)
        agent = agent_of("openai", server, middleware, response_format=ToolStrategy(Verdict))
        assert agent.invoke(asked(), thread())["structured_response"] == Verdict(number=57)
        assert server.illegal == []


def test_a_fault_sends_the_messages_as_they_are(full_disk: None):
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    with StubServer(model) as server, pytest.warns(RuntimeWarning, match="are sent as they are"):
        agent = create_agent(
            chat_model("openai", server.url, name="nobody-knows-me"), [], middleware=[FoveateMiddleware()]
        )
        assert agent.invoke(asked())["messages"][-1].text == ANSWER


def test_a_model_whose_provider_keeps_the_history_is_left_alone():
    model = ScriptedModel([say("Yes?"), say(ANSWER)], "openai_responses")
    with StubServer(model) as server, pytest.warns(RuntimeWarning, match="lets the provider keep the history"):
        llm = ChatOpenAI(model="gpt-5", base_url=f"{server.url}/v1", api_key="k", use_previous_response_id=True)
        middleware = FoveateMiddleware(window=WINDOW)
        agent = create_agent(llm, [read_log], middleware=[middleware], checkpointer=InMemorySaver())
        for text in ("Hello.", QUESTION):
            state = agent.invoke(asked(text), thread())
    assert state["messages"][-1].text == ANSWER
    assert len(middleware._host.conversation(("t1",))) == 0


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_call_with_broken_arguments_keeps_its_result(provider: str):
    """LangChain answers it with an error, which is illegal without the call."""
    model = ScriptedModel([call("c9", "read_log", number=9), say(ANSWER)], provider)
    with StubServer(model) as server:
        middleware = FoveateMiddleware(window=WINDOW)
        agent = agent_of(provider, server, middleware)
        reply = AIMessage(
            "",
            tool_calls=[{"id": "c1", "name": "read_log", "args": {"number": 1}, "type": "tool_call"}],
            invalid_tool_calls=[{"id": "c0", "name": "read_log", "args": '{"number": ', "error": None}],
        )
        results = [ToolMessage("One.", tool_call_id="c1"), ToolMessage("Broken.", tool_call_id="c0", status="error")]
        state = agent.invoke({"messages": [HumanMessage(QUESTION), reply, *results]}, thread())
        assert server.illegal == []
    assert state["messages"][-1].text == ANSWER
    assert "Broken." in str(model.requests[-1])
    (stored,) = middleware._host.conversation(("t1",)).history(2, 2)
    assert [call.arguments for call in stored.message.calls] == ['{"number": 1}', '{"number": ']


# --------------------------------------------------------------------------------------------------------- conversion

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
    st.just({"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}),
    st.just({"type": "image", "url": "https://example.org/a.png"}),
    st.just({"type": "file", "base64": "JVBERi0=", "mime_type": "application/pdf"}),
)
CONTENT = st.one_of(TEXTS, st.lists(BLOCKS, min_size=1, max_size=4))
ARGUMENTS = st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(-9, 9), st.booleans()), max_size=3)
CALL = st.builds(lambda id, args: {"id": id, "name": "read_log", "args": args, "type": "tool_call"}, TEXTS, ARGUMENTS)
MESSAGES = st.one_of(
    st.builds(HumanMessage, CONTENT),
    st.builds(SystemMessage, TEXTS),
    st.builds(lambda content, calls: AIMessage(content, tool_calls=calls), TEXTS, st.lists(CALL, max_size=3)),
    st.builds(
        lambda content, id, status: ToolMessage(content, tool_call_id=id, name="read_log", status=status),
        CONTENT,
        TEXTS,
        st.sampled_from(["success", "error"]),
    ),
)


@given(MESSAGES)
def test_conversion_is_lossless(message: Any):
    there = from_langchain(message, "openai")
    back = to_langchain(there)
    assert from_langchain(back, "openai") == there
    assert (back.type, back.content_blocks) == (message.type, message.content_blocks)
    assert getattr(back, "tool_calls", None) == getattr(message, "tool_calls", None)


def test_arguments_keep_their_letters():
    """Escapes are several tokens for each letter, and `expand` and `search` would show them."""
    own = AIMessage("", tool_calls=[{"id": "c0", "name": "write", "args": {"text": "長い"}, "type": "tool_call"}])
    assert from_langchain(own, "openai").calls[0].arguments == '{"text": "長い"}'


NATIVE: Any = [
    AIMessage(
        [
            {"type": "thinking", "thinking": "Search.", "signature": "signed"},
            {"type": "text", "text": "Found.", "citations": [{"type": "char_location", "cited_text": "a"}]},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"encrypted_content": "b"}]},
            {"type": "tool_use", "id": "c0", "name": "write", "input": {"text": "long"}},
        ],
        tool_calls=[{"name": "write", "args": {"text": "long"}, "id": "c0", "type": "tool_call"}],
        response_metadata={"model_provider": "anthropic"},
        usage_metadata={"input_tokens": 9, "output_tokens": 1, "total_tokens": 10},
    ),
    AIMessage(
        [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Search."}], "encrypted_content": "b"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "text", "text": "Found.", "annotations": [], "id": "msg_1"},
            {"type": "function_call", "name": "write", "arguments": '{"text":"long"}', "call_id": "c0", "id": "fc_1"},
        ],
        tool_calls=[{"name": "write", "args": {"text": "long"}, "id": "c0", "type": "tool_call"}],
        response_metadata={"model_provider": "openai", "id": "resp_1"},
    ),
    AIMessage(
        "Found.",
        tool_calls=[{"name": "write", "args": {"text": "long"}, "id": "c0", "type": "tool_call"}],
        additional_kwargs={"reasoning_content": "Search.", "tool_calls": [{"id": "c0"}]},
        response_metadata={"model_provider": "deepseek"},
    ),
    HumanMessage(
        [
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
            {"type": "document", "source": {"type": "text", "data": "Text.", "media_type": "text/plain"}, "title": "a"},
        ],
        name="ann",
    ),
    ToolMessage(
        [{"type": "text", "text": "Text."}, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}],
        tool_call_id="c0",
        artifact={"a": 1},
    ),
]


@pytest.mark.parametrize("own", NATIVE, ids=["anthropic", "responses", "chat", "prompt", "result"])
def test_messages_with_blocks_of_a_provider_come_back_equal(own: Any):
    there = from_langchain(own, "openai")
    assert to_langchain(there, own) == own


@pytest.mark.parametrize("own", NATIVE[:3], ids=["anthropic", "responses", "chat"])
def test_a_changed_call_leaves_the_other_blocks_as_they_are(own: Any):
    there = from_langchain(own, "openai")
    parts = (*there.parts[:-1], ToolCall("c0", "write", '{"text":"short"}'))
    back: Any = to_langchain(Message("assistant", parts), own)
    assert [call["args"] for call in back.tool_calls] == [{"text": "short"}]
    assert "long" not in str((back.content, back.additional_kwargs))
    kinds = ("tool_use", "function_call")
    kept = [block for block in own.content if isinstance(block, str) or block["type"] not in kinds]
    assert list(back.content) == kept
    assert (back.response_metadata, back.usage_metadata) == (own.response_metadata, own.usage_metadata)


def test_recorded_messages_are_equal_after_conversion(transcripts: Path):
    count = 0
    for recorded in recorded_lists(transcripts):
        for message in recorded:
            own = to_langchain(message)
            there = from_langchain(own, "openai")
            assert (there.role, there.text) == (message.role, message.text)
            assert to_langchain(there) == own
            count += 1
    assert count > 1_000


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_page("langchain.md", tmp_path, monkeypatch)


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    run_example("langchain_agent.py", tmp_path, monkeypatch)
    answer, whole, totals = capsys.readouterr().out.splitlines()[:3]
    assert answer == "It keeps the books of a mill."
    assert whole.startswith("130 messages in the ")
    assert totals.startswith("65 calls: ")
    assert int(totals.split("(")[1].split("%")[0]) >= 40
