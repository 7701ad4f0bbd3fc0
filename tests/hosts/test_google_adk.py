"""Google ADK: 100 calls in a small window, with the real framework, Google's SDK, and a server on loopback."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # Its import asks the network for prices otherwise.
pytest.importorskip("google.adk", reason="google-adk is not installed")
pytest.importorskip("litellm", reason="litellm is not installed")

from anthropic import AsyncAnthropic
from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.agents.context_cache_config import ContextCacheConfig
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.models import BaseLlm, Gemini, LlmResponse
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import Workflow
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pages import run_page
from recorded import recorded_lists
from scenario import ANSWER, CALLS, QUESTION, WINDOW, largest, log_text, marks, reader

import foveate
from foveate.formats import get_format
from foveate.hosts.google_adk import FoveatePlugin
from foveate.testing import BodyChecker, CutReply, Failure, ScriptedModel, call, calls, say
from foveate.testing.server import StubServer

pytestmark = [  # The framework and its HTTP client warn about themselves.
    pytest.mark.filterwarnings(f"ignore::{kind}")
    for kind in ("DeprecationWarning", "UserWarning", "ResourceWarning", "pytest.PytestUnraisableExceptionWarning")
]


def read_log(number: int) -> str:
    """Return the log with a number."""
    return log_text(number)


def gemini(url: str, *, name: str = "gemini-2.5-flash", retries: int = 1) -> Gemini:
    retry = types.HttpRetryOptions(attempts=retries, initial_delay=0, max_delay=0)
    return Gemini(model=name, base_url=url, client_kwargs={"api_key": "k"}, retry_options=retry)


def agent_of(model: Any, name: str = "reader", tools: Sequence[Any] = (read_log,), **options: Any) -> LlmAgent:
    return LlmAgent(name=name, model=model, instruction="Be brief.", tools=list(tools), **options)


class Demo:
    """An app with one session, and the plugin. Its events outlive it."""

    def __init__(self, agent: Any, plugin: FoveatePlugin | None, sessions: Any = None) -> None:
        self.sessions = sessions or InMemorySessionService()
        app = App(name="demo", root_agent=agent, plugins=[plugin] if plugin else [])
        self.runner = Runner(app=app, session_service=self.sessions)
        self.plugin = plugin

    async def ask(self, text: str = QUESTION, *, streamed: bool = False) -> str:
        """Return the text of the last event."""
        if await self.session() is None:
            await self.sessions.create_session(app_name="demo", user_id="ann", session_id="s1")
        config = RunConfig(streaming_mode=StreamingMode.SSE if streamed else StreamingMode.NONE)
        answer = ""
        self.pieces = 0
        message = types.UserContent(text)
        async for event in self.runner.run_async(
            user_id="ann", session_id="s1", new_message=message, run_config=config
        ):
            self.pieces += bool(event.partial)
            if event.content and not event.partial:
                answer = "".join(part.text or "" for part in event.content.parts or ())
            if event.error_message:
                raise RuntimeError(event.error_message)
        return answer

    async def session(self) -> Any:
        return await self.sessions.get_session(app_name="demo", user_id="ann", session_id="s1")

    async def responses(self, tool: str = "read_log") -> list[dict[str, Any]]:
        """Return the results of a tool in the events."""
        parts = [part for event in (await self.session()).events for part in event.content.parts]
        return [p.function_response.response for p in parts if p.function_response and p.function_response.name == tool]

    def chat(self, name: str = "demo/ann/s1") -> foveate.Conversation:
        assert self.plugin is not None
        return self.plugin._host.conversation((name,), "gemini")


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_hundred_calls_stay_in_the_window(streamed: bool):
    script = ScriptedModel(reader(), "gemini")

    async def main(url: str) -> None:
        demo = Demo(agent_of(gemini(url)), FoveatePlugin(window=WINDOW))
        assert await demo.ask(streamed=streamed) == ANSWER
        assert [result["result"] for result in await demo.responses()] == [log_text(n) for n in range(CALLS)]
        assert (demo.pieces > CALLS) == streamed

    with StubServer(script) as server:
        asyncio.run(main(server.url))
        assert server.illegal == []
    assert largest(script) <= WINDOW
    assert len(script.requests) == CALLS + 1


def test_without_the_plugin_the_requests_outgrow_the_window():
    script = ScriptedModel(reader(30), "gemini")
    with StubServer(script) as server:
        asyncio.run(Demo(agent_of(gemini(server.url)), None).ask())
    assert largest(script) > 2 * WINDOW


def test_calls_without_an_id_stay_with_their_results():
    replies = [calls(*(call("read_log", "read_log", number=n + k) for k in range(3))) for n in range(0, 60, 3)]
    script = ScriptedModel([*replies, say(ANSWER)], "gemini")

    async def main(url: str) -> Demo:
        demo = Demo(agent_of(gemini(url)), FoveatePlugin(window=WINDOW))
        assert await demo.ask() == ANSWER
        return demo

    with StubServer(script) as server:
        demo = asyncio.run(main(server.url))
        assert server.illegal == []
        assert all('"id"' not in str(request.body) for request in server.received)
    assert largest(script) <= WINDOW
    results = [row.message.result for row in demo.chat().history() if row.message.result]
    assert [result.text for result in results] == [log_text(number) for number in range(60)]


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3.8-flash"])
def test_the_model_expands_what_was_shortened(model: str):
    script = ScriptedModel(reader(40, expand="m3"), "gemini")

    async def main(url: str) -> list[dict[str, Any]]:
        demo = Demo(agent_of(gemini(url, name=model)), FoveatePlugin(window=WINDOW))
        assert await demo.ask() == ANSWER
        return await demo.responses("expand")

    with StubServer(script) as server:
        (expansion,) = asyncio.run(main(server.url))
        assert server.illegal == []
    assert "m3" in str(expansion)
    tools = {str(request["tools"]) for request in script.requests}
    assert len(tools) == 1  # The prefix is the same from the first request on.
    assert "expand" in tools.pop()


def test_an_unknown_handle_is_a_result_that_the_model_can_read():
    replies = [call("c0", "read_log", number=0), call("e0", "expand", handle="m99"), say(ANSWER)]
    script = ScriptedModel(replies, "gemini")

    async def main(url: str) -> list[dict[str, Any]]:
        demo = Demo(agent_of(gemini(url)), FoveatePlugin(window=WINDOW))
        await demo.ask()
        return await demo.responses("expand")

    with StubServer(script) as server:
        (expansion,) = asyncio.run(main(server.url))
        assert server.illegal == []
    assert "m99" in expansion["error"]


def test_an_expanded_image_reaches_the_model():
    replies = [call("c0", "look"), call("c1", "read_log", number=0), call("e0", "expand", handle="m3"), say(ANSWER)]
    script = ScriptedModel(replies, "gemini")

    def look() -> types.Part:
        """Return a photo."""
        return types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")

    async def main(url: str) -> None:
        tools = [read_log, look]
        demo = Demo(agent_of(gemini(url), tools=tools), FoveatePlugin(window=WINDOW, policy="keep-last-1"))
        assert await demo.ask() == ANSWER

    with StubServer(script) as server:
        asyncio.run(main(server.url))
        assert server.illegal == []
    before, after = (str(request["contents"]) for request in script.requests[-2:])
    assert ("iVBORw" in before, "iVBORw" in after) == (False, True)


def test_the_history_holds_every_message_once_and_every_bill(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    script = ScriptedModel(reader(12), "gemini")

    async def main(server: str) -> None:
        demo = Demo(agent_of(gemini(server)), FoveatePlugin(url, window=WINDOW))
        await demo.ask()
        await demo.runner.close()  # It closes its plugins.

    with StubServer(script) as server:
        asyncio.run(main(server.url))
    with foveate.open_conversation("demo/ann/s1", store=url, window=WINDOW, format="gemini") as chat:
        assert [row.message.role for row in chat.history()] == ["user", *["assistant", "tool"] * 12, "assistant"]
        usage = chat.totals().usage
        assert (chat.totals().calls, usage.prompt_tokens) == (13, sum(bill.total for bill in script.billed))


def test_a_session_goes_on_after_a_restart(tmp_path: Path):
    url, sessions = f"sqlite:///{tmp_path}/chats.db", InMemorySessionService()

    async def main(server: str) -> None:
        demo = Demo(agent_of(gemini(server)), FoveatePlugin(url, window=WINDOW), sessions)
        assert await demo.ask() == ANSWER
        await demo.runner.close()

    for _ in range(2):
        script = ScriptedModel(reader(25), "gemini")
        with StubServer(script) as server:
            asyncio.run(main(server.url))
            assert server.illegal == []
        assert largest(script) <= WINDOW
    with foveate.open_store(url) as store:
        assert store.names("") == ["demo/ann/s1"]


def test_a_retry_records_one_reply():
    replies = iter([call("c0", "read_log", number=0), Failure(500), say(ANSWER)])
    script = ScriptedModel(lambda request: next(replies), "gemini")

    async def main(url: str) -> None:
        demo = Demo(agent_of(gemini(url, retries=2)), FoveatePlugin(window=WINDOW))
        assert await demo.ask() == ANSWER
        assert [row.message.role for row in demo.chat().history()] == ["user", "assistant", "tool", "assistant"]

    with StubServer(script) as server:
        asyncio.run(main(server.url))
        assert server.illegal == []


def test_a_cut_stream_leaves_a_session_that_goes_on():
    replies = iter([call("c0", "read_log", number=0), CutReply(say("A long answer that is cut off.")), say(ANSWER)])
    script = ScriptedModel(lambda request: next(replies), "gemini")

    async def main(url: str) -> None:
        demo = Demo(agent_of(gemini(url)), FoveatePlugin(window=WINDOW))
        with pytest.raises(Exception):  # noqa: B017, PT011 - the HTTP client's error, by version
            await demo.ask(streamed=True)
        assert await demo.ask("Go on.") == ANSWER

    with StubServer(script) as server:
        asyncio.run(main(server.url))
        assert server.illegal == []


def test_a_cancelled_tool_leaves_a_session_that_goes_on():
    replies = iter([call("c0", "wait"), say(ANSWER)])
    script = ScriptedModel(lambda request: next(replies), "gemini")

    async def main(url: str) -> None:
        started = asyncio.Event()

        async def wait() -> str:
            """Wait."""
            started.set()
            await asyncio.sleep(60)
            return "never"

        demo = Demo(agent_of(gemini(url), tools=[wait]), FoveatePlugin(window=WINDOW))
        task = asyncio.create_task(demo.ask())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await demo.ask("Go on.") == ANSWER

    with StubServer(script) as server:
        asyncio.run(main(server.url))
        assert server.illegal == []


def test_a_rewound_session_hides_what_came_after():
    script = ScriptedModel(lambda request: say(f"Answer {len(script.requests)}."), "gemini")

    async def main(url: str) -> None:
        demo = Demo(agent_of(gemini(url)), FoveatePlugin(window=WINDOW))
        await demo.ask("The first.")
        demo.chat().pin("m2")
        await demo.ask("The second.")
        second = (await demo.session()).events[-1].invocation_id
        await demo.runner.rewind_async(user_id="ann", session_id="s1", rewind_before_invocation_id=second)
        await demo.ask("The third.")
        assert [entry.handle for entry in demo.chat().view if entry.is_pinned()] == ["m2"]

    with StubServer(script) as server:
        asyncio.run(main(server.url))
        assert server.illegal == []
    texts = str(script.requests[-1]["contents"])
    assert "The first." in texts
    assert "The third." in texts
    assert "The second." not in texts


def test_the_model_may_change_in_a_session():
    sessions, plugin = InMemorySessionService(), FoveatePlugin(window=WINDOW)

    async def main(model: Any) -> None:
        assert await Demo(agent_of(model), plugin, sessions).ask() == ANSWER

    for provider in ("gemini", "openai", "gemini"):
        script = ScriptedModel(reader(15), provider)
        with StubServer(script) as server:
            other = LiteLlm(model="openai/gpt-5", api_base=f"{server.url}/v1", api_key="k")
            asyncio.run(main(gemini(server.url, name="gemini-3.8-flash") if provider == "gemini" else other))
            assert server.illegal == []
        assert largest(script) <= WINDOW


def requests_of(provider: str, make: Callable[[str], Any], config: Any = None) -> list[dict[str, Any]]:
    """Return the requests of an agent with foveate's plugin that reads three logs."""
    with StubServer(ScriptedModel(reader(3), provider)) as server:

        async def main() -> None:
            demo = Demo(agent_of(make(server.url)), FoveatePlugin(window=WINDOW))
            demo.runner.context_cache_config = config
            assert await demo.ask() == ANSWER

        asyncio.run(main())
        return [request.values for request in server.received]


def claude(url: str) -> Any:
    return AnthropicLlm(model="claude-haiku-4-5", client=AsyncAnthropic(base_url=url, api_key="k"))


def lite_claude(url: str) -> Any:
    return LiteLlm(model="anthropic/claude-haiku-4-5", api_base=url, api_key="k")


@pytest.mark.parametrize(("make", "count"), [(claude, 3), (lite_claude, 2)], ids=["AnthropicLlm", "LiteLlm"])
def test_claude_gets_marks_for_its_cache_behind_its_first_reply(make: Any, count: int):
    assert [marks(request) for request in requests_of("anthropic", make)] == [0, *[count] * 3]


def test_the_cache_of_the_app_wins():
    requests = requests_of("anthropic", claude, ContextCacheConfig(ttl_seconds=3600))
    assert [str(request).count("'ttl': '1h'") for request in requests] == [3] * 4


@pytest.mark.parametrize(
    ("own", "key"),
    [({}, None), ({"prompt_cache_key": "mine"}, "mine"), ({"extra_body": {"prompt_cache_key": "mine"}}, "mine")],
    ids=["none", "keyword", "body"],
)
def test_newer_gpt_behind_litellm_gets_a_key_for_its_cache(own: dict[str, Any], key: str | None):
    def make(url: str) -> Any:
        return LiteLlm(model="openai/gpt-5.6", api_base=f"{url}/v1", api_key="k", **own)

    (sent,) = {request.get("prompt_cache_key") for request in requests_of("openai", make)}
    assert sent == key if key else str(sent).startswith("foveate-")


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_refused_prompt_is_made_smaller(streamed: bool):
    script = ScriptedModel(reader(30), "gemini", window=4_000)  # Smaller than the window of the options.

    async def main(url: str) -> None:
        demo = Demo(agent_of(gemini(url)), FoveatePlugin(window=WINDOW))
        assert await demo.ask(streamed=streamed) == ANSWER
        roles = [row.message.role for row in demo.chat().history()]
        assert roles == ["user", *["assistant", "tool"] * 30, "assistant"]

    with StubServer(script) as server:
        asyncio.run(main(server.url))
        assert server.illegal == []


def test_sub_agents_have_conversations_of_their_own(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    main_script = ScriptedModel([call("t0", "transfer_to_agent", agent_name="helper")], "gemini")
    sub = ScriptedModel(reader(20), "gemini")

    async def main(server: str) -> None:
        helper = agent_of(gemini(f"{server}/sub"), "helper", description="Reads logs.")
        root = agent_of(gemini(f"{server}/main"), "root", tools=[], sub_agents=[helper])
        demo = Demo(root, FoveatePlugin(url, window=WINDOW))
        assert await demo.ask() == ANSWER
        await demo.runner.close()

    with StubServer({"/main": main_script, "/sub": sub}) as server:
        asyncio.run(main(server.url))
        assert server.illegal == []
    assert largest(sub) <= WINDOW
    with foveate.open_store(url) as store:
        assert sorted(store.names("")) == ["demo/ann/s1", "demo/ann/s1/helper"]
    with foveate.open_conversation("demo/ann/s1", store=url, window=WINDOW, format="gemini") as chat:
        assert (chat.totals().calls, chat.totals(children=True).calls) == (1, 22)


def test_an_agent_as_a_tool_has_a_conversation_for_each_call(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    both = calls(call("c0", "helper", request="read"), call("c1", "helper", request="read more"))
    main_script, sub = (
        ScriptedModel([both, say("Done.")], "gemini"),
        ScriptedModel(lambda request: say("Read."), "gemini"),
    )

    async def main(server: str) -> None:
        helper = agent_of(gemini(f"{server}/sub"), "helper", description="Reads logs.")
        root = agent_of(gemini(f"{server}/main"), "root", tools=[AgentTool(helper)])
        demo = Demo(root, FoveatePlugin(url, window=WINDOW))
        assert await demo.ask() == "Done."
        await demo.runner.close()

    with StubServer({"/main": main_script, "/sub": sub}) as server:
        asyncio.run(main(server.url))
        assert server.illegal == []
    with foveate.open_conversation("demo/ann/s1", store=url, window=WINDOW, format="gemini") as chat:
        assert [name.startswith("demo/ann/s1/helper:") for name in chat.children()] == [True, True]
        assert chat.totals(children=True).calls == 4


def test_parallel_agents_do_not_mix():
    script = ScriptedModel(lambda request: say(str(request["systemInstruction"])), "gemini")

    async def main(url: str) -> None:
        agents = [agent_of(gemini(url), f"agent{n}") for n in range(4)]
        demo = Demo(ParallelAgent(name="all", sub_agents=agents), FoveatePlugin(window=WINDOW))
        for question in ("One?", "Two?"):
            await demo.ask(question)
        for number in range(4):
            chat = demo.chat(f"demo/ann/s1/agent{number}:all.agent{number}")
            texts = [row.message.text for row in chat.history()]
            assert [len(texts), f"agent{number}" in texts[1]] == [4, True]

    with StubServer(script) as server:
        asyncio.run(main(server.url))
        assert server.illegal == []


def test_workers_of_a_workflow_do_not_mix(caplog: pytest.LogCaptureFixture):
    def answer(request: Any) -> Any:
        contents = request["contents"]
        handles = [call("c0", "read_log", number=0), call("e0", "expand", handle="m99"), say(str(contents[0]))]
        return handles[len(contents) // 2]

    script = ScriptedModel(answer, "gemini")

    def tasks(node_input: Any) -> list[str]:
        return [f"Task {number}" for number in range(3)]

    async def main(url: str) -> list[str]:
        worker = agent_of(gemini(url), "worker", parallel_worker=True)
        demo = Demo(Workflow(name="flow", edges=[("START", tasks, worker)]), FoveatePlugin(window=WINDOW))
        for _ in range(2):
            await demo.ask()
        names = demo.plugin._host._owned.names("")  # type: ignore[union-attr]
        for name in names:
            texts = [row.message.text for row in demo.chat(name).history()]
            assert [len(texts), texts[0] in texts[-1]] == [6, True]
        return names

    with StubServer(script) as server, caplog.at_level(logging.WARNING, "foveate"):
        names = asyncio.run(main(server.url))
        assert server.illegal == []
    assert [name.startswith("demo/ann/s1/worker:") for name in names] == [True] * 6
    assert "foveate" not in [record.name for record in caplog.records]


def test_an_agent_without_the_history_has_a_conversation_for_each_run():
    script = ScriptedModel(lambda request: say(ANSWER), "gemini")

    async def main(url: str) -> list[str]:
        demo = Demo(agent_of(gemini(url), include_contents="none"), FoveatePlugin(window=WINDOW))
        for _ in range(3):
            await demo.ask()
        return demo.plugin._host._owned.names("")  # type: ignore[union-attr]

    with StubServer(script) as server:
        names = asyncio.run(main(server.url))
    assert [name.startswith("demo/ann/s1/reader:") and "~" not in name for name in names] == [True] * 3


def test_a_moving_instruction_does_not_fork_the_conversation(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    script = ScriptedModel(reader(20), "gemini")

    async def main(server: str) -> None:
        agent = agent_of(gemini(server), static_instruction="You read logs.")
        demo = Demo(agent, FoveatePlugin(url, window=WINDOW))
        for _ in range(2):
            assert await demo.ask() == ANSWER
        await demo.runner.close()

    with StubServer(script) as server:
        asyncio.run(main(server.url))
        assert server.illegal == []
    assert all(str(request).count("Be brief.") == 1 for request in script.requests)
    with foveate.open_store(url) as store:
        assert store.names("") == ["demo/ann/s1"]


class Fake(BaseLlm):
    """A model without a network, which keeps what it is asked."""

    model: str = "gemini-2.5-flash"
    use_interactions_api: bool = False
    asked: list[Any] = []  # noqa: RUF012 - a field of pydantic
    reply: Callable[[Any], Any] = lambda request: None

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        self.asked.append(llm_request)
        content = types.ModelContent(ANSWER)
        yield self.reply(llm_request) or LlmResponse(content=content, interaction_id="i1")


def test_a_history_on_the_provider_s_servers_is_left_alone():
    fake = Fake(use_interactions_api=True, asked=[])

    async def main() -> Demo:
        demo = Demo(agent_of(fake), FoveatePlugin(window=WINDOW))
        for _ in range(2):
            assert await demo.ask() == ANSWER
        return demo

    with pytest.warns(RuntimeWarning, match="servers keep the history") as warnings:
        demo = asyncio.run(main())
    assert len(demo.chat()) == 0
    assert [list(request.tools_dict) for request in fake.asked] == [["read_log"]] * 2
    assert len(warnings) == 1


def test_a_fault_sends_the_contents_as_they_are(full_disk: None):
    fake = Fake(model="nobody-knows-me", asked=[])
    with pytest.warns(RuntimeWarning, match="are sent as they are"):
        assert asyncio.run(Demo(agent_of(fake), FoveatePlugin()).ask()) == ANSWER
    assert [part.text for part in fake.asked[0].contents[0].parts] == [QUESTION]


def test_a_tool_of_the_app_with_the_same_name_is_kept(caplog: pytest.LogCaptureFixture):
    def expand(handle: str) -> str:
        """Expand something else."""
        return handle

    fake = Fake(asked=[])
    with caplog.at_level(logging.WARNING, "foveate"):
        assert asyncio.run(Demo(agent_of(fake, tools=[expand]), FoveatePlugin(window=WINDOW)).ask()) == ANSWER
    assert "One of your tools is named expand" in caplog.text
    (tools,) = fake.asked[0].config.tools
    assert [tool.description for tool in tools.function_declarations] == ["Expand something else."]


def test_an_error_of_the_model_is_billed_and_no_reply():
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=70, cached_content_token_count=20)
    blocked = LlmResponse(error_code="SAFETY", error_message="Blocked.", usage_metadata=usage)
    fake = Fake(asked=[], reply=lambda request: blocked)

    async def main() -> Demo:
        demo = Demo(agent_of(fake), FoveatePlugin(window=WINDOW))
        with pytest.raises(RuntimeError, match="Blocked"):
            await demo.ask()
        return demo

    chat = asyncio.run(main()).chat()
    assert [row.message.role for row in chat.history()] == ["user"]
    assert (chat.totals().usage.input, chat.totals().usage.cache_read) == (50, 20)


SUMMARY = say("The user asks which log has an error. The agent reads them with read_log, and found none yet.")


class Unchecked(ScriptedModel):
    """A model that accepts every request."""

    def _check(self, request: Any) -> None:
        pass


@pytest.mark.slow
def test_compaction_by_the_framework_costs_more():
    """Prints rows of the table in the page: requests, the largest, tokens, their price, and illegal requests."""
    prices = {}
    for name in ("compaction", "foveate"):
        read = reader()
        script = Unchecked(
            lambda request, read=read: SUMMARY if "conversation history" in str(request)[:500] else read(request),
            "gemini",
        )

        async def main(url: str, name: str = name) -> None:
            compaction = EventsCompactionConfig(token_threshold=10_000, event_retention_size=6)
            demo = Demo(agent_of(gemini(url)), FoveatePlugin(window=WINDOW) if name == "foveate" else None)
            if name == "compaction":
                app = App(name="demo", root_agent=agent_of(gemini(url)), events_compaction_config=compaction)
                demo.runner = Runner(app=app, session_service=demo.sessions)
            assert await demo.ask() == ANSWER

        with StubServer(script) as server:
            asyncio.run(main(server.url))
        sent, cached = sum(bill.total for bill in script.billed), sum(bill.read for bill in script.billed)
        checker = BodyChecker("gemini")
        illegal = sum(bool(checker.check(request)) for request in script.requests)
        prices[name] = round(sent - 0.9 * cached)
        print(f"| {name} | {len(script.requests)} | {largest(script):,} | {sent:,} | {prices[name]:,} | {illegal} |")
    assert prices["foveate"] < 0.75 * prices["compaction"]


# --------------------------------------------------------------------------------------------------------- conversion

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
VALUES = st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(-9, 9), st.booleans()), max_size=3)
NAMES = st.sampled_from(["read_log", "expand"])
IDS = st.one_of(st.none(), TEXTS)
SHARED = [
    st.builds(lambda text: types.Part(text=text), TEXTS),
    st.builds(lambda data: types.Part.from_bytes(data=data, mime_type="image/png"), st.binary(min_size=1, max_size=9)),
    st.just(types.Part.from_uri(file_uri="https://example.org/a.png", mime_type="image/png")),
]
SAID = [
    st.builds(lambda text: types.Part(text=text, thought=True, thought_signature=b"\x00\xffsigned"), TEXTS),
    st.builds(
        lambda id, name, args, signature: types.Part(
            function_call=types.FunctionCall(id=id, name=name, args=args), thought_signature=signature
        ),
        IDS,
        NAMES,
        VALUES,
        st.sampled_from([None, b"\x00\xffsigned"]),
    ),
    st.just(types.Part(executable_code=types.ExecutableCode(code="1 + 1", language="PYTHON"))),
    st.just(types.Part(code_execution_result=types.CodeExecutionResult(outcome="OUTCOME_OK", output="2"))),
]
RESULT = st.builds(
    lambda id, name, response: types.Part(
        function_response=types.FunctionResponse(id=id, name=name, response=response)
    ),
    IDS,
    NAMES,
    st.one_of(VALUES, st.builds(lambda text: {"result": text}, TEXTS), st.builds(lambda text: {"error": text}, TEXTS)),
)
CONTENTS = st.one_of(
    st.builds(
        lambda parts: types.Content(role="user", parts=parts), st.lists(st.one_of(SHARED), min_size=1, max_size=4)
    ),
    st.builds(
        lambda parts: types.Content(role="model", parts=parts),
        st.lists(st.one_of(SHARED + SAID), min_size=1, max_size=4),
    ),
    st.builds(lambda parts: types.Content(role="user", parts=parts), st.lists(RESULT, min_size=1, max_size=3)),
)


@given(CONTENTS)
def test_conversion_is_lossless(content: types.Content):
    chat = foveate.open_conversation("c", window=WINDOW, format="gemini")
    messages = chat.format.parse(content)
    (back,) = chat.format.render(messages)
    assert types.Content.model_validate(back).model_dump(exclude_none=True) == content.model_dump(exclude_none=True)
    assert chat.format.parse(types.Content.model_validate(back)) == messages


def test_recorded_contents_are_equal_after_conversion(transcripts: Path):
    count, format = 0, get_format("gemini")
    for recorded in recorded_lists(transcripts):
        for content in format.render([message for message in recorded if message.role != "system"]):
            own = types.Content.model_validate(content)
            (back,) = format.render(format.parse(own))
            assert types.Content.model_validate(back) == own
            count += 1
    assert count > 1_000


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_page("google-adk.md", tmp_path, monkeypatch)
