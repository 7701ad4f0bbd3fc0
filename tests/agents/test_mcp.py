"""Tools of MCP servers: definitions, results, servers that die, hang or cannot be reached."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from foveate import (
    AgentBuilder,
    AsyncChatAgent,
    ChatAgent,
    Limits,
    LoopAgent,
    Media,
    ReActAgent,
    StoreError,
    Text,
    Tool,
)
from foveate.agents.toolbox import ToolFailed, mcp
from foveate.errors import BadInput, BadSetting, MissingExtra
from foveate.stores.memory import MemoryStore
from foveate.testing import ScriptedModel, call, calls, check_body

from .agents import plain, store_failing_at
from .loop.scripts import act, done, texts

sdk = pytest.importorskip("mcp", reason="mcp is not installed (the extra `mcp`)")

SERVER = Path(__file__).with_name("mcp_server.py")
SMALL_SERVER = SERVER.with_name("small_mcp_server.py")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def command(log: Path, server: Path = SMALL_SERVER) -> list[str]:
    return [sys.executable, str(server), str(log)]


def carried_out(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def results(agent: ChatAgent) -> list[tuple[str, str]]:
    found = [row.message.result for row in agent.conversation.history()]
    return [(result.state, result.text) for result in found if result]


@pytest.mark.parametrize("server", [SERVER, SMALL_SERVER], ids=["of the SDK", "small"])
def test_the_tools_of_a_server_are_tools_of_an_agent(log: Path, server: Path):
    """The NovaCore document: `WithMcp(config)`."""
    script = [
        calls(call("c1", "add", a=1, b=2), call("c2", "screenshot"), call("c3", "Find_Town", name="Oz")),
        "Done.",
    ]
    model = ScriptedModel(script)
    with mcp(command(log, server)) as tools, ChatAgent(model, tools=tools, window=50_000) as agent:
        agent.send("Go.")
        parts = agent.conversation.history()[3].message.parts[0]
        assert results(agent) == [("ok", "3"), ("ok", "The page:"), ("error", "There is no town Oz.")]
    assert [tool.name for tool in tools] == ["add", "pay", "send", "sleep", "screenshot", "Find Town"]
    assert [tool.is_repeatable for tool in tools] == [True, False, False, False, False, False]
    assert (tools[0].description, list(tools[0].parameters["properties"])) == ("Add two numbers.", ["a", "b"])
    assert parts.content == (Text("The page:"), Media("image/png", "base64", "iVBORw0KGgo="))
    with pytest.raises(ToolFailed, match="The connection to the MCP server is closed"):
        tools[0](a=1, b=2)


@pytest.mark.parametrize("format", [pytest.param("anthropic", marks=pytest.mark.slow), "openai"])
def test_a_server_that_dies_in_a_call_is_started_again(log: Path, format: str):
    """The call is not repeated; later calls work; every request is legal."""
    script = [call("c1", "pay", amount=7), call("c2", "add", a=1, b=2), "Done."]
    model = ScriptedModel(script, format)
    with mcp(command(log)) as tools, ChatAgent(model, tools=tools, window=50_000) as agent:
        assert agent.send("Go.").run.state == "done"
        (state, text), answer = results(agent)
    assert state == "interrupted"
    assert text == (
        "It is not known whether pay was carried out: the MCP server demo ended while it was going on. Look what "
        "became of it before you call it again."
    )
    assert answer == ("ok", "3")
    assert carried_out(log) == ["pay 7", "add 1 2"]
    assert [check_body(format, request) for request in model.requests] == [[], [], []]


@pytest.mark.slow
def test_a_call_that_gets_no_answer_fails_after_the_timeout(log: Path):
    server = mcp(command(log))
    with server as tools:
        by_name = {tool.name: tool for tool in tools}
        assert server._connection is not None
        server._connection._timeout = 3.0  # Not that of connecting, which may take longer on a busy machine.
        with pytest.raises(ToolFailed, match=r"sleep did not answer within 3 seconds and was given up"):
            by_name["sleep"]()
        server._connection._timeout = 60
        assert content(by_name["add"](a=1, b=2)) == "3"
    assert carried_out(log) == ["sleep", "add 1 2"]


def content(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.slow
def test_a_server_that_dies_between_calls_is_started_again(log: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("foveate.agents.toolbox.mcp_tools._IDLE", 0.0)
    with mcp(command(log)) as tools:
        by_name = {tool.name: tool for tool in tools}
        with pytest.raises(ToolFailed):
            by_name["pay"](amount=1)
        assert [content(by_name["add"](a=n, b=1)) for n in (1, 2)] == ["2", "3"]
    assert carried_out(log) == ["pay 1", "add 1 1", "add 2 1"]


@pytest.mark.parametrize(
    ("server", "error"),
    [
        (["no-such-command-anywhere"], "The MCP server no-such-command-anywhere cannot be reached: .*No such file"),
        ([sys.executable, "-c", "pass"], "cannot be reached"),
        ("http://127.0.0.1:9/mcp", "The MCP server 127.0.0.1 cannot be reached"),
    ],
)
def test_a_server_that_cannot_be_reached_is_an_error(server: Any, error: str):
    with pytest.raises(BadInput, match=error):
        mcp(server, timeout=20).open()


@pytest.mark.parametrize(
    ("server", "options", "error"),
    [
        ("npx server", {}, "server= must be a URL or a list"),
        ({"command": "npx", "arguments": []}, {}, "unknown key arguments"),
        (None, {}, "server= must be a command, a URL"),
        ([], {}, "server= must be a command, a URL"),
        (["npx"], {"only": "add"}, "only= must be a list of names"),
        (["npx"], {"timeout": 0}, "timeout="),
    ],
)
def test_wrong_servers_and_options_are_refused(server: Any, options: dict[str, Any], error: str):
    with pytest.raises(BadSetting, match=error):
        mcp(server, **options)


def test_tools_can_be_chosen_renamed_and_approved(log: Path):
    chosen = {"command": command(log)[0], "args": command(log)[1:], "env": {}}
    with mcp(chosen, only=["add", "pay"], prefix="demo_", needs_approval=["pay"]) as tools:
        assert [(tool.name, tool.needs_approval) for tool in tools] == [("demo_add", False), ("demo_pay", True)]
        assert content(tools[0](a=1, b=2)) == "3"
        with pytest.raises(ToolFailed, match="It is not known whether demo_pay was carried out"):
            tools[1](amount=1)
    with pytest.raises(BadSetting, match=r"The MCP server demo has no tool subtract\. It has Find Town, add, pay"):
        mcp(command(log), only=["subtract"]).open()


def test_the_builder_opens_servers_and_closing_the_agent_closes_them(log: Path):
    builder = AgentBuilder().use(ScriptedModel([call("c1", "add", a=1, b=2), "Done."])).with_window(50_000)
    with builder.with_mcp(command(log), only=["add"]).build_react_agent() as agent:
        agent.run("Go.")
        (server,) = agent._closed_with_it
    assert carried_out(log) == ["add 1 2"]
    assert server._connection is None


@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_the_documented_browser_agent_keeps_the_last_snapshot(log: Path, format: str):
    """The NovaCore document, example 2: `WithMcp` and `WithToolResultFiltering(KeepRecent = 1)`."""
    model = ScriptedModel([*(call(f"c{number}", "screenshot") for number in range(4)), "Example Domain"], format)
    builder = AgentBuilder().use(model).with_mcp(command(log)).with_tool_result_filtering(keep_recent=1)
    with builder.with_window(50_000).with_expanding(False).build_react_agent() as agent:
        assert str(agent.run("Navigate to example.com and find the heading")) == "Example Domain"
        entries = [entry for entry in agent.conversation.prepare().entries if entry.is_result]
    assert [(entry.message.result.text, entry.images) for entry in entries if entry.message.result] == [
        *[("[Omitted]", 0)] * 3,
        ("The page:", 1),
    ]
    bodies = [json.dumps(request) for request in model.requests]
    assert [(body.count("iVBORw0KGgo="), body.count("[Omitted]")) for body in bodies] == [
        (0, 0),
        *((1, number) for number in range(4)),
    ]


@pytest.mark.slow
def test_every_kind_of_agent_closes_its_servers(log: Path):
    builder = AgentBuilder().with_window(50_000).with_mcp(command(log), only=["add"])
    with builder.use(ScriptedModel([act(("add", {"a": 1, "b": 2})), done()])).build_loop_agent() as loop_agent:
        assert loop_agent.run("Go.").run.state == "done"
        (server,) = loop_agent._closed_with_it
    assert server._connection is None

    async def main() -> None:
        script = [call("c1", "add", a=1, b=3), "Done."]
        asynchronous = builder.use(ScriptedModel(script, asynchronous=True))
        async with asynchronous.build_async_chat_agent() as agent:
            await agent.send("Go.")
            (server,) = agent._closed_with_it
        assert server._connection is None

    asyncio.run(main())
    assert carried_out(log) == ["add 1 2", "add 1 3"]


@pytest.mark.slow
def test_calls_that_run_together_when_the_server_dies_all_fail(log: Path):
    script = [
        calls(call("c1", "sleep"), call("c2", "pay", amount=7)),
        calls(call("c3", "add", a=1, b=2), call("c4", "add", a=2, b=2)),
        "Done.",
    ]
    with mcp(command(log)) as tools, ChatAgent(ScriptedModel(script), tools=tools, window=50_000) as agent:
        agent.send("Go.")
        first, second, *others = results(agent)
    assert "whether sleep was carried out" in first[1]
    assert "whether pay was carried out" in second[1]
    assert others == [("ok", "3"), ("ok", "4")]
    assert sorted(set(carried_out(log)) - {"sleep"}) == ["add 1 2", "add 2 2", "pay 7"]
    assert len(carried_out(log)) <= 4  # The server may die before it begins to sleep.


def test_a_loop_agent_calls_tools_of_a_server(log: Path):
    model = ScriptedModel([act(("Find Town", {"name": "Oz"})), done()])
    with mcp(command(log)) as tools, LoopAgent(model, actions=tools, window=50_000, policy="off") as agent:
        agent.run("Go.")
        assert "Find Town, which failed:\nThere is no town Oz." in texts(model.requests[1])[2]


@pytest.mark.parametrize("is_step", [pytest.param(True, marks=pytest.mark.slow), False])
def test_sub_agents_at_once_go_on_when_their_server_dies(log: Path, is_step: bool):
    """Each pays, and the server dies each time, perhaps while another one sends. Nothing is repeated."""
    tasks = ["ada", "bob", "cid"]

    def play(request: dict[str, Any]) -> Any:
        first, *rest = request["messages"]
        task = first["content"] if isinstance(first["content"], str) else first["content"][0]["text"]
        match task, len(rest):
            case "Go.", 0 if is_step:
                chosen = [{"name": "clerk", "message": task} for task in tasks]
                return json.dumps({"nextStep": {"type": "Sub-Agent", "subAgents": chosen}})
            case "Go.", 0:
                return calls(*(call(f"c{number}", "clerk", task=task) for number, task in enumerate(tasks)))
            case "Go.", _:
                return done("All paid.") if is_step else "All paid."
            case _, 0:
                return act(("pay", {"amount": tasks.index(task)}))
            case _, 2:
                return act(("send", {"to": task}))
        return done(f"{task} is served.")

    with mcp(command(log)) as tools:
        clerk = LoopAgent(name="clerk", actions=[*tools])
        model = ScriptedModel(play)
        kind = LoopAgent if is_step else ReActAgent
        with kind(model, sub_agents=[clerk], window=50_000) as agent:
            assert agent.run("Go.").text == "All paid."
            rows = [row.message.text for row in agent.conversation.history() if row.position in (3, 4, 5)]
    assert [f"{task} is served." in row for task, row in zip(tasks, rows, strict=True)] == [True] * 3
    effects = carried_out(log)
    assert effects
    assert len(effects) == len(set(effects))
    assert [refusals for request in model.requests if (refusals := check_body("anthropic", request))] == []


def test_async_agents_use_a_connection_in_their_own_loop(log: Path):
    async def main() -> list[str]:
        model = ScriptedModel([call("c1", "pay", amount=1), call("c2", "add", a=1, b=2), "Done."], asynchronous=True)
        async with mcp(command(log)) as tools, AsyncChatAgent(model, tools=tools, window=50_000) as agent:
            await agent.send("Go.")
            return [row.message.text for row in await agent.conversation.history() if row.message.result]

    lost, answer = asyncio.run(main())
    assert lost.startswith("It is not known whether pay was carried out")
    assert answer == "3"
    assert carried_out(log) == ["pay 1", "add 1 2"]


def test_an_open_session_is_used_and_stays_open():
    server = sdk.server.MCPServer("memory")

    @server.tool()
    def double(n: int) -> int:
        return 2 * n

    async def main() -> tuple[str, int]:
        async with sdk.Client(server) as client:
            with pytest.raises(BadSetting, match="An open session belongs to its event loop"):
                mcp(client).open()
            async with mcp(client.session) as (tool,):
                answer = content(await tool(n=2))
            async with mcp(client, prefix="x ") as tools:
                assert tools[0].name == "x double"
            return answer, len((await client.list_tools()).tools)

    assert asyncio.run(main()) == ("4", 1)


def test_a_server_that_nobody_closes_ends_with_its_tools(log: Path):
    server = mcp(command(log))
    server.open()
    thread = server._thread
    assert thread is not None
    del server
    gc.collect()
    assert not thread._thread.is_alive()


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtra, match=r'pip install "foveate\[mcp\]"'):
        mcp(["npx"])


# --------------------------------------------------------------------------------------------- runs that break off


def asks(request: dict[str, Any]) -> Any:
    """Answer by the number of results, so that a request can be repeated."""
    count = str(request["messages"]).count("'type': 'tool_result'")
    if count == 0:
        return calls(call("c1", "send", to="x"), call("c2", "add", a=1, b=2), call("c3", "send", to="y"))
    return call("c4", "pay", amount=7) if count == 3 else "Done."


def break_off(n: int, tools: Any, log: Path) -> bool:
    """Run an agent whose store fails at its n-th operation, and resume it. Return whether it failed."""
    log.unlink(missing_ok=True)
    kept = MemoryStore()
    store, countdown = store_failing_at(kept, n, after=n % 2 == 0)
    with suppress(StoreError), ChatAgent(ScriptedModel(asks), tools=tools, store=store, **plain()) as first:
        first.send("Go.")
    model = ScriptedModel(asks)
    with ChatAgent(model, tools=tools, store=kept, **plain()) as last:
        outcome = last.resume() if len(last.conversation) else last.send("Go.")
        assert (outcome.text, outcome.run.state) == ("Done.", "done")
        assert len(results(last)) == 4
    assert [check_body("anthropic", request) for request in model.requests] == [[]] * len(model.requests)
    effects = [line for line in carried_out(log) if not line.startswith("add")]
    assert sorted(effects) == sorted(set(effects))
    return countdown.is_dead


@pytest.mark.slow
def test_nothing_is_sent_twice_wherever_the_store_fails(log: Path):
    with mcp(command(log)) as tools:
        kept = [tool for tool in tools if tool.name != "pay"]
        paid = Tool(name="pay", call=lambda amount: "paid", parameters={"type": "object", "properties": {"amount": {}}})
        n = 1
        while break_off(n, [*kept, paid], log):
            n += 1
    assert n > 30


@pytest.mark.slow
def test_nothing_is_sent_twice_if_the_server_dies_too(log: Path):
    with mcp(command(log)) as tools:
        n = 1
        while break_off(n, tools, log):
            n += 1
    assert n > 30


@pytest.mark.slow
@pytest.mark.parametrize(("format", "policy"), [("anthropic", "balanced"), ("openai", "expire")])
def test_three_hundred_turns_with_a_server_that_dies_again_and_again(log: Path, format: str, policy: str):
    def turn(request: dict[str, Any]) -> Any:
        number = len(model.requests)
        if number == 300:
            return "Done."
        if number % 20 == 7:
            return calls(call(f"c{number}", "pay", amount=number), call(f"d{number}", "add", a=number, b=1))
        if number % 3:
            return call(f"c{number}", "send", to=f"{number} " + "x" * 900)
        return calls(call(f"c{number}", "screenshot"), call(f"d{number}", "Find_Town", name=f"Oz {number}"))

    model = ScriptedModel(turn, format)
    limits = Limits(turns=400)
    with (
        mcp(command(log)) as tools,
        ChatAgent(model, tools=tools, window=20_000, policy=policy, limits=limits) as agent,
    ):
        assert agent.send("Go.").run.state == "done"
        assert agent.conversation.journal.verify() == []
    assert [refusals for request in model.requests if (refusals := check_body(format, request))] == []
    assert len(model.requests) == 300
    effects = [line for line in carried_out(log) if line.startswith(("pay", "send"))]
    assert len(effects) == len(set(effects)) > 200


CHILD = """
import sys
from foveate import ChatAgent
from foveate.agents.toolbox import mcp
from foveate.testing import ScriptedModel, call

server, log, store = sys.argv[1:]
model = ScriptedModel([call("c1", "add", a=1, b=2), call("c2", "sleep")])
with mcp([sys.executable, server, log]) as tools:
    ChatAgent(model, tools=tools, store=store, window=50_000).send("Go.")
"""


@pytest.mark.slow
def test_a_killed_run_does_not_repeat_its_call(log: Path, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chat.db"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(SERVER), str(log), url])
    until(lambda: "sleep" in carried_out(log))
    child.send_signal(signal.SIGKILL)
    child.wait()
    model = ScriptedModel(["Done."])
    with mcp(command(log)) as tools, ChatAgent(model, tools=tools, store=url, window=50_000, lock_timeout=60) as agent:
        assert agent.resume().text == "Done."
        assert results(agent)[0] == ("ok", "3")
        assert results(agent)[1][1].startswith("It is not known whether sleep was carried out")
    assert carried_out(log) == ["add 1 2", "sleep"]
    assert check_body("anthropic", model.requests[0]) == []
