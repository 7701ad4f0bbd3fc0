"""OpenAI Agents: 100 calls in a small window, with the real SDK and a server on loopback."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = str(Path(__file__).resolve().parent.parent)
sys.path.remove(TESTS)  # Its folder `agents` hides the package of the SDK.
try:
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
finally:
    sys.path.insert(0, TESTS)
if not hasattr(agents, "Runner"):
    pytest.skip("openai-agents is not installed", allow_module_level=True)

import mcp.types
import openai
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, function_tool
from agents.mcp import MCPServer
from hypothesis import given
from hypothesis import strategies as st
from pages import run_page
from recorded import recorded_lists
from scenario import ANSWER, CALLS, QUESTION, WINDOW, exact_tokens, largest, log_text, reader

import foveate
from foveate.errors import BadInput
from foveate.formats import get_format
from foveate.hosts.openai_agents import FoveateSession
from foveate.testing import CutReply, ScriptedModel, call, say
from foveate.testing.server import StubServer

agents.set_tracing_disabled(True)


@function_tool
def read_log(number: int) -> str:
    """Return the log with a number."""
    return log_text(number)


def agent_of(api: str, server: StubServer, session: FoveateSession | None, name: str = "gpt-5") -> Any:
    client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)
    kind = OpenAIResponsesModel if api == "openai_responses" else OpenAIChatCompletionsModel
    tools = [read_log] if session is None else [read_log, session.expand_tool]
    return Agent(name="reader", instructions="Be brief.", tools=tools, model=kind(name, client))


async def run(agent: Any, session: FoveateSession, text: str = QUESTION) -> Any:
    return await Runner.run(agent, text, max_turns=300, **session.for_run())


async def streamed(agent: Any, session: FoveateSession) -> Any:
    result = Runner.run_streamed(agent, QUESTION, max_turns=300, **session.for_run())
    async for _ in result.stream_events():
        pass
    return result


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", ["openai_responses", "openai"])
def test_a_hundred_calls_stay_in_the_window(api: str, stream: bool):
    model = ScriptedModel(reader(), api)
    session = FoveateSession("t1", window=WINDOW)
    with StubServer(model) as server:
        result = asyncio.run((streamed if stream else run)(agent_of(api, server, session), session))
        assert server.illegal == []
    assert result.final_output == ANSWER
    assert largest(model) <= WINDOW
    assert len(model.requests) == CALLS + 1
    results = [row.message.text for row in session.conversation.history() if row.message.role == "tool"]
    assert results == [log_text(number) for number in range(CALLS)]


def test_without_the_session_the_requests_outgrow_the_window():
    model = ScriptedModel(reader(30), "openai_responses")
    with StubServer(model) as server:
        asyncio.run(Runner.run(agent_of("openai_responses", server, None), QUESTION, max_turns=300))
    assert largest(model) > 2 * WINDOW


def test_the_model_expands_what_was_shortened():
    model = ScriptedModel(reader(40, expand="m3"), "openai_responses")
    session = FoveateSession("t1", window=WINDOW)
    with StubServer(model) as server:
        asyncio.run(run(agent_of("openai_responses", server, session), session))
        assert server.illegal == []
    outputs = [item for request in model.requests for item in request["input"] if item.get("call_id") == "expand-1"]
    assert any("m3" in json.dumps(item.get("output", "")) for item in outputs)
    assert len({json.dumps(request["tools"]) for request in model.requests}) == 1


def test_the_history_holds_every_bill_once(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel(reader(12), "openai_responses")
    session = FoveateSession("t1", url, window=WINDOW)
    with StubServer(model) as server:
        asyncio.run(run(agent_of("openai_responses", server, session), session))
    session.close()
    with foveate.open_conversation("t1", store=url, window=WINDOW, format="openai_responses") as chat:
        assert [row.message.role for row in chat.history()] == ["user", *["assistant", "tool"] * 12, "assistant"]
        usage = chat.totals().usage
        billed = (usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0)
        assert (chat.totals().calls, billed) == (13, sum(bill.total for bill in model.billed))


def test_a_session_goes_on_after_a_restart(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    items = []
    for _ in range(2):
        model = ScriptedModel(reader(25), "openai_responses")
        session = FoveateSession("t1", url, window=WINDOW)
        with StubServer(model) as server:
            before = asyncio.run(session.get_items())
            asyncio.run(run(agent_of("openai_responses", server, session), session))
            assert server.illegal == []
        assert largest(model) <= WINDOW
        items.append((before, asyncio.run(session.get_items())))
        session.close()
    assert [plain(item) for item in items[1][0]] == [plain(item) for item in items[0][1]]
    assert len(items[1][1]) == 2 * len(items[0][1])
    with foveate.open_store(url) as store:
        assert store.names("") == ["t1"]


def plain(item: Any) -> tuple[Any, ...]:
    """Return what an item says."""
    content = item.get("content")
    text = content if isinstance(content, str) or content is None else "".join(part["text"] for part in content)
    return item.get("type", "message"), item.get("role"), text, item.get("arguments"), item.get("output")


def test_a_cut_stream_leaves_a_session_that_goes_on():
    replies = iter([call("c0", "read_log", number=0), CutReply(say("A long answer that is cut off.")), say(ANSWER)])
    model = ScriptedModel(lambda request: next(replies), "openai_responses")
    session = FoveateSession("t1", window=WINDOW)
    with StubServer(model) as server:
        agent = agent_of("openai_responses", server, session)
        with pytest.raises(Exception):  # noqa: B017, PT011 - the SDK's error, by version
            asyncio.run(streamed(agent, session))
        agent = agent_of("openai_responses", server, session)
        assert asyncio.run(run(agent, session, "Go on.")).final_output == ANSWER
        assert server.illegal == []


def test_a_cancelled_run_leaves_a_session_that_goes_on():
    model = ScriptedModel(lambda request: say(ANSWER), "openai_responses")
    session = FoveateSession("t1", window=WINDOW)

    async def main(server: StubServer) -> Any:
        agent = agent_of("openai_responses", server, session)
        task = asyncio.create_task(run(agent, session))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await run(agent, session, "Go on.")

    with StubServer(model) as server:
        assert asyncio.run(main(server)).final_output == ANSWER
        assert server.illegal == []


def test_a_popped_item_is_not_sent_again(tmp_path: Path):
    model = ScriptedModel(lambda request: say(ANSWER), "openai_responses")
    session = FoveateSession("t1", f"sqlite:///{tmp_path}/chats.db", window=WINDOW)

    async def main(server: StubServer) -> list[Any]:
        agent = agent_of("openai_responses", server, session)
        await run(agent, session, "My password is hunter2.")
        popped = [await session.pop_item(), await session.pop_item()]
        await run(agent, session, "Hello.")
        return popped

    with StubServer(model) as server:
        popped = asyncio.run(main(server))
        assert server.illegal == []
        assert "hunter2" in json.dumps(popped[1])
        assert "hunter2" not in server.received[-1].body.decode()
    session.close()
    again = FoveateSession("t1", f"sqlite:///{tmp_path}/chats.db", window=WINDOW)
    assert "hunter2" not in json.dumps(asyncio.run(again.get_items()))


def test_a_cleared_session_begins_again():
    model = ScriptedModel(lambda request: say(ANSWER), "openai_responses")
    session = FoveateSession("t1", window=WINDOW)

    async def main(server: StubServer) -> Any:
        agent = agent_of("openai_responses", server, session)
        await run(agent, session, "My password is hunter2.")
        await session.clear_session()
        await run(agent, session, "Hello.")
        return await session.get_items()

    with StubServer(model) as server:
        assert len(asyncio.run(main(server))) == 2
        assert server.illegal == []
        assert "hunter2" not in server.received[-1].body.decode()


async def answered(session: FoveateSession, server: StubServer, text: str) -> Any:
    """Run an agent, with a client that is closed in this event loop."""
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k") as client:
        agent = Agent(name="reader", model=OpenAIResponsesModel("gpt-5", client))
        return await Runner.run(agent, text, **session.for_run())


def test_what_was_popped_or_cleared_stays_away_after_a_restart(tmp_path: Path):
    """A server makes a session for each request: without a model call, nothing of this was stored."""
    url, model = f"sqlite:///{tmp_path}/chats.db", ScriptedModel(lambda request: say(ANSWER), "openai_responses")

    async def main(server: StubServer) -> None:
        session = FoveateSession("t1", url, window=WINDOW)
        await answered(session, server, "Hello.")
        await answered(session, server, "My password is hunter2.")
        await session.pop_item()
        await session.pop_item()
        session.close()
        session = FoveateSession("t1", url, window=WINDOW)
        assert len(await session.get_items()) == 2
        await session.clear_session()
        session.close()
        session = FoveateSession("t1", url, window=WINDOW)
        assert await session.get_items() == []
        session.close()

    with StubServer(model) as server:
        asyncio.run(main(server))


def test_a_session_sees_what_another_process_added(tmp_path: Path):
    url, model = f"sqlite:///{tmp_path}/chats.db", ScriptedModel(lambda request: say(ANSWER), "openai_responses")

    async def main(server: StubServer) -> list[Any]:
        sessions = [FoveateSession("t1", url, window=WINDOW) for _ in range(2)]
        for number in range(4):
            await answered(sessions[number % 2], server, f"Question {number}.")
        items = await sessions[0].get_items()
        for session in sessions:
            session.close()
        return items

    with StubServer(model) as server:
        items = asyncio.run(main(server))
        assert server.illegal == []
    assert [item["content"] for item in items if item["role"] == "user"] == [f"Question {n}." for n in range(4)]
    assert [json.dumps(model.requests[-1]["input"]).count(f"Question {n}.") for n in range(4)] == [1] * 4


def test_the_model_may_change_in_a_session():
    session = FoveateSession("t1", window=WINDOW)
    for api, name in ("openai_responses", "gpt-5"), ("openai", "gpt-4o"), ("openai_responses", "gpt-5-mini"):
        model = ScriptedModel(reader(15), api)
        with StubServer(model) as server:
            result = asyncio.run(run(agent_of(api, server, session, name), session))
            assert result.final_output == ANSWER
            assert server.illegal == []
        assert largest(model) <= WINDOW


def test_a_handoff_keeps_one_conversation():
    replies = iter([call("h0", "transfer_to_reader"), call("c0", "read_log", number=0), say(ANSWER)])
    model = ScriptedModel(lambda request: next(replies), "openai_responses")
    session = FoveateSession("t1", window=WINDOW)
    with StubServer(model) as server:
        target = agent_of("openai_responses", server, session)
        first = Agent(name="door", instructions="Hand over.", handoffs=[target], model=target.model)
        assert asyncio.run(run(first, session)).final_output == ANSWER
        assert server.illegal == []
    assert len(session.conversation) == 6


class LogServer(MCPServer):
    """An MCP server in this process, with one tool of about 500 tokens."""

    name = "logs"

    async def connect(self) -> None: ...
    async def cleanup(self) -> None: ...
    async def list_prompts(self, *arguments: Any, **options: Any) -> Any: ...
    async def get_prompt(self, *arguments: Any, **options: Any) -> Any: ...

    async def list_tools(self, *arguments: Any, **options: Any) -> list[Any]:
        return [mcp.types.Tool(name="tail", description="words " * 400, input_schema={"type": "object"})]

    async def call_tool(self, *arguments: Any, **options: Any) -> Any:
        return mcp.types.CallToolResult(content=[mcp.types.TextContent(type="text", text="The last line.")])


class DeadServer(LogServer):
    async def list_tools(self, *arguments: Any, **options: Any) -> list[Any]:
        raise ConnectionError("The server is gone.")


def test_tools_of_servers_and_handoffs_are_counted():
    other = Agent(name="other", handoff_description="words " * 800)
    sizes = []
    for more in {}, {"mcp_servers": [LogServer()], "handoffs": [other]}:
        left = iter([call("c0", "tail"), say(ANSWER)]) if more else iter([say(ANSWER)])
        model = ScriptedModel(left, "openai_responses")
        session = FoveateSession("t1", window=WINDOW)
        with StubServer(model) as server:
            agent = agent_of("openai_responses", server, session).clone(**more)
            assert asyncio.run(run(agent, session)).final_output == ANSWER
            assert server.illegal == []
        sizes.append((session.conversation.budget.overhead, exact_tokens({"tools": model.requests[0]["tools"]})))
    counted, exact = (second - first for first, second in zip(*sizes, strict=True))
    assert exact > 1_200
    assert abs(counted - exact) < 0.1 * exact


def test_a_server_that_is_gone_fails_as_without_the_session():
    errors = []
    for session in None, FoveateSession("t1", window=WINDOW):
        with StubServer(ScriptedModel([say(ANSWER)], "openai_responses")) as server:
            agent = agent_of("openai_responses", server, session).clone(mcp_servers=[DeadServer()])
            with pytest.raises(Exception) as caught:  # noqa: PT011 - the SDK's error, by version
                asyncio.run(Runner.run(agent, QUESTION, **(session.for_run() if session else {})))
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


def test_a_fault_sends_the_items_as_they_are(full_disk: None):
    model = ScriptedModel(lambda request: say(ANSWER), "openai_responses")
    session = FoveateSession("t1")
    with StubServer(model) as server, pytest.warns(RuntimeWarning, match="are sent as they are"):
        agent = agent_of("openai_responses", server, session, "nobody-knows-me")
        assert asyncio.run(run(agent, session)).final_output == ANSWER


def test_a_filter_of_the_program_is_not_replaced():
    session = FoveateSession("t1", window=WINDOW)
    with pytest.raises(BadInput, match="call_model_input_filter"):
        session.for_run(RunConfig(call_model_input_filter=lambda data: data.model_data))


# --------------------------------------------------------------------------------------------------------- conversion

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
ITEMS = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, TEXTS),
    st.builds(
        lambda text: {
            "role": "user",
            "content": [
                {"type": "input_text", "text": text},
                {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"},
                {"type": "input_file", "file_id": "file-1"},
            ],
        },
        TEXTS,
    ),
    st.builds(
        lambda text: {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
        },
        TEXTS,
    ),
    st.builds(
        lambda text: {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text}],
            "encrypted_content": "b",
        },
        TEXTS,
    ),
    st.builds(
        lambda text: {
            "id": "fc_1",
            "type": "function_call",
            "call_id": f"c-{text}",
            "name": "read_log",
            "arguments": json.dumps({"a": text}),
            "status": "completed",
        },
        TEXTS,
    ),
    st.builds(lambda text: {"type": "function_call_output", "call_id": f"c-{text}", "output": text}, TEXTS),
    st.just(
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "a"}}
    ),
    st.just({"id": "cmp_1", "type": "compaction", "encrypted_content": "b"}),
    st.just({"id": "m1", "type": "mcp_call", "server_label": "s", "name": "n", "arguments": "{}", "output": "a"}),
)


@given(ITEMS)
def test_an_item_is_equal_after_conversion(item: Any):
    format = get_format("openai_responses")
    messages = list(format.parse(item))
    assert list(format.render(messages)) == [item]


def test_recorded_items_are_equal_in_another_process(transcripts: Path, tmp_path: Path):
    url, format, count = f"sqlite:///{tmp_path}/chats.db", get_format("openai_responses"), 0
    for number, recorded in enumerate(recorded_lists(transcripts)):
        items = list(format.render([message for message in recorded if message.role != "system"]))
        session = FoveateSession(f"t{number}", url, window=WINDOW)
        asyncio.run(session.add_items(items))
        session.close()
        again = FoveateSession(f"t{number}", url, window=WINDOW)
        assert asyncio.run(again.get_items()) == items
        again.close()
        count += len(items)
    assert count > 1_000


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_page("openai-agents.md", tmp_path, monkeypatch)
