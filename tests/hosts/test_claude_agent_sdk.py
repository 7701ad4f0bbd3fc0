"""The Claude Agent SDK: long results become digests, with the real SDK, its command line, and a server on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

sdk = pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")
CLAUDE = Path(sdk.__file__).parent / "_bundled" / "claude"
if not CLAUDE.exists():
    pytest.skip("the wheel of claude-agent-sdk for this platform has no command line", allow_module_level=True)

from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, HookMatcher, ResultMessage, create_sdk_mcp_server
from hypothesis import given
from hypothesis import strategies as st
from pages import run_page
from scenario import ANSWER, CALLS, QUESTION, exact_tokens, largest, log_text, reader

import foveate
from foveate import Message
from foveate.errors import BadInput, BadSetting, StoreError
from foveate.hosts.claude_agent_sdk import FoveateTools, texts_of, with_texts
from foveate.testing import Failure, ScriptedModel, call, say
from foveate.testing.server import StubServer

LOGS = "mcp__logs__read_log"
EXPAND, SEARCH = "mcp__foveate__expand", "mcp__foveate__search_history"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home of the command line, which also is its working directory."""
    for name in ("ANTHROPIC_AUTH_TOKEN", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@sdk.tool("read_log", "Return the log with a number.", {"number": int})
async def read_log(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": log_text(arguments["number"])}]}


def options(server: StubServer, home: Path, **more: Any) -> ClaudeAgentOptions:
    env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "none", "HOME": str(home)}
    env |= {"CLAUDE_CONFIG_DIR": str(home / ".claude"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    env |= {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}
    given: dict[str, Any] = {"model": "claude-haiku-4-5", "thinking": {"type": "disabled"}, "setting_sources": []}
    given |= {"mcp_servers": {"logs": create_sdk_mcp_server("logs", tools=[read_log])}}
    given |= {"allowed_tools": [LOGS, "Bash", "Read", "Agent"], "tools": ["Bash", "Read", "Agent"]}
    return ClaudeAgentOptions(env=env, cwd=home, **{**given, **more})


def run(given: ClaudeAgentOptions, text: str = QUESTION) -> ResultMessage:
    async def main() -> ResultMessage:
        found = [
            message async for message in sdk.query(prompt=text, options=given) if isinstance(message, ResultMessage)
        ]
        return found[-1]

    return asyncio.run(main())


def scripted(script: Callable[[Mapping[str, Any]], Any]) -> ScriptedModel:
    """Return a model that answers requests without tools, such as the one for a title, with a word."""
    return ScriptedModel(lambda request: script(request) if request.get("tools") else say("Logs"), "anthropic")


def replies(*items: Message | Failure) -> ScriptedModel:
    left = iter(items)
    return scripted(lambda request: next(left, say(ANSWER)))


def results(request: Mapping[str, Any]) -> list[str]:
    """Return the texts of the results in a request, those of expansions left out."""
    blocks = [
        block for message in request["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    return [json.dumps(block["content"]) for block in blocks if block["type"] == "tool_result"]


def test_a_hundred_results_reach_the_model_as_digests(home: Path):
    model = scripted(reader(tool=LOGS))
    tools = FoveateTools("t1", least=2_000)
    with StubServer(model) as server:
        assert run(tools.options(options(server, home))).result == ANSWER
        assert server.illegal == []
    assert len(model.requests) == CALLS + 1
    last = results(model.requests[-1])
    assert len(last) == CALLS
    assert all(f"m{2 * number + 2}" in text for number, text in enumerate(last))
    assert max(map(len, last)) < 0.3 * len(log_text(57))
    stored = [row.message.text for row in tools.conversation.history() if row.message.role == "tool"]
    assert stored == [log_text(number) for number in range(CALLS)]
    managed = largest(model) - exact_tokens(model.requests[0])
    assert managed < 0.35 * sum(exact_tokens({"content": text}) for text in stored)


def test_without_the_hook_the_results_are_sent_whole(home: Path):
    model = scripted(reader(5, tool=LOGS))
    with StubServer(model) as server:
        run(options(server, home))
    assert all("Line 58 of log" in text for text in results(model.requests[-1]))


def test_the_model_expands_and_searches(home: Path):
    lines = call("e0", EXPAND, handle="m2", lines="31")
    model = replies(call("c0", LOGS, number=57), lines, call("s0", SEARCH, words="disk full"), say(ANSWER))
    tools = FoveateTools("t1", least=2_000)
    with StubServer(model) as server:
        run(tools.options(options(server, home)))
        assert server.illegal == []
    names = {tool["name"] for tool in model.requests[0]["tools"]}
    assert {EXPAND, SEARCH} <= names
    first, expansion, hits = results(model.requests[-1])
    assert "m2" in first
    assert "Line 30 of log 57: ERROR, the disk" in expansion
    assert "m2" in hits
    assert len({json.dumps(request["tools"]) for request in model.requests}) == 1


def test_an_unknown_handle_is_a_result_that_the_model_can_read(home: Path):
    model = replies(call("e0", EXPAND, handle="m99"), say(ANSWER))
    with StubServer(model) as server:
        assert run(FoveateTools("t1").options(options(server, home))).result == ANSWER
    assert "m99" in results(model.requests[-1])[0]


def test_output_of_a_command_keeps_its_shape(home: Path):
    model = replies(call("c0", "Bash", command="seq 1 4000", description="Count"), say(ANSWER))
    tools = FoveateTools("t1")
    with StubServer(model) as server:
        run(tools.options(options(server, home)))
        assert server.illegal == []
    assert len(results(model.requests[-1])[0]) < 6_000
    assert tools.conversation.original("m2").text.split() == [str(number) for number in range(1, 4001)]


def test_files_that_are_read_stay_whole(home: Path):
    (home / "long.txt").write_text(log_text(1) + log_text(2))
    model = replies(call("c0", "Read", file_path=str(home / "long.txt")), say(ANSWER))
    tools = FoveateTools("t1", least=2_000)
    with StubServer(model) as server:
        run(tools.options(options(server, home)))
    assert "Line 59 of log 2" in results(model.requests[-1])[0]
    assert len(tools.conversation) == 0


def test_a_session_that_is_resumed_expands_older_results(home: Path):
    url = f"sqlite:///{home}/chats.db"
    first, second = (
        replies(call("c0", LOGS, number=57), say("Later.")),
        replies(call("c1", LOGS, number=3), call("e0", EXPAND, handle="m2", lines="31"), say(ANSWER)),
    )
    session = None
    for model in (first, second):
        tools = FoveateTools("t1", url, least=2_000)
        with StubServer(model) as server:
            session = run(tools.options(options(server, home, resume=session))).session_id
            assert server.illegal == []
        tools.close()
    texts = results(second.requests[-1])
    assert len(texts) == 3
    assert "m4" in texts[1]
    assert "Line 30 of log 57: ERROR" in texts[2]
    with foveate.open_store(url) as store:
        assert store.names("") == ["t1"]


def test_results_of_a_sub_agent_become_digests_too(home: Path):
    main = iter([call("d0", "Agent", description="Read", prompt="SUBTASK", subagent_type="helper"), say(ANSWER)])
    sub = iter([call("c0", LOGS, number=57), call("e0", EXPAND, handle="m2", lines="31"), say("One error.")])
    model = scripted(lambda request: next(sub if "SUBTASK" in json.dumps(request["messages"][0]) else main))
    helper = AgentDefinition(description="Reads logs.", prompt="Read.", tools=[LOGS, EXPAND], background=False)
    tools = FoveateTools("t1", least=2_000)
    with StubServer(model) as server:
        assert run(tools.options(options(server, home, agents={"helper": helper}))).result == ANSWER
        assert server.illegal == []
    (inner,) = [request for request in model.requests if len(results(request)) == 2]
    assert "m2" in results(inner)[0]
    assert "Line 30 of log 57: ERROR" in results(inner)[1]


def test_parallel_results_have_handles_of_their_own(home: Path):
    parts = [part for number in range(4) for part in call(f"c{number}", LOGS, number=number).parts]
    model = replies(Message("assistant", tuple(parts)), say(ANSWER))
    tools = FoveateTools("t1", least=2_000)
    with StubServer(model) as server:
        run(tools.options(options(server, home)))
        assert server.illegal == []
    for number, text in enumerate(results(model.requests[-1])):
        (handle,) = [f"m{n}" for n in (2, 4, 6, 8) if f"m{n}\\" in text or f"m{n}]" in text]
        assert tools.conversation.original(handle).text == log_text(number)


def test_a_refused_request_is_sent_again_with_the_digest(home: Path):
    model = replies(call("c0", LOGS, number=57), Failure(529, retry_after=0), say(ANSWER))
    tools = FoveateTools("t1", least=2_000)
    with StubServer(model) as server:
        assert run(tools.options(options(server, home))).result == ANSWER
        assert server.illegal == []
    assert len(tools.conversation) == 2


def test_a_fault_leaves_the_result_as_it_is(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    tools = FoveateTools("t1")

    def fails(*arguments: object, **options: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(tools.conversation, "append", fails)
    given = {"tool_name": "Bash", "tool_use_id": "c0", "tool_input": {}, "tool_response": {"stdout": 9_000 * "a"}}
    with caplog.at_level(logging.WARNING, "foveate"):
        assert asyncio.run(tools.shorten(given, "c0", None)) == {}
    assert "The disk is full." in caplog.text


def test_options_of_the_program_stay():
    async def own(input: Any, id: str | None, context: Any) -> Any:
        return {}

    own_hook = HookMatcher(matcher="Bash", hooks=[own])
    given = ClaudeAgentOptions(
        hooks={"PostToolUse": [own_hook]}, mcp_servers={"logs": {"command": "logs"}}, max_turns=3
    )
    tools = FoveateTools("t1")
    changed = tools.options(given)
    assert (changed.hooks or {})["PostToolUse"][0] is own_hook
    assert list(changed.mcp_servers) == ["logs", "foveate"]
    assert changed.max_turns == 3
    assert (given.hooks, given.allowed_tools) == ({"PostToolUse": [own_hook]}, [])
    with pytest.raises(BadInput, match="dictionary"):
        tools.options(ClaudeAgentOptions(mcp_servers="servers.json"))
    with pytest.raises(BadSetting, match="share"):
        FoveateTools("t1", share=1.0)


SHAPES = st.recursive(
    st.one_of(st.text(max_size=5), st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "data", "text"]), inner)
    ),
)


@given(SHAPES)
def test_an_output_without_long_texts_is_equal(value: Any):
    assert with_texts(value, {}) == value
    changed = with_texts(value, {text: text + "!" for text in texts_of(value)})
    assert sorted(texts_of(changed)) == sorted(text + "!" for text in texts_of(value))


def test_the_page_runs(home: Path, monkeypatch: pytest.MonkeyPatch):
    run_page("claude-agent-sdk.md", home, monkeypatch)
