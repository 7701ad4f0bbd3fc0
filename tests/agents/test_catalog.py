"""The catalog counts for agents of every kind, and is read again at each run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from foveate import AsyncChatAgent, AsyncLoopAgent, ChatAgent, LoopAgent, ReActAgent, open_store
from foveate.agents.tools import tool
from foveate.core.catalog import Action, Binding
from foveate.testing import ScriptedModel, call

from .loop.scripts import act, done, think

LONG = "x" * 900


@tool
def look(at: int = 0) -> str:
    """Look around."""
    return LONG


def catalog(length: int = 100, agent: str = "sage") -> Any:
    store = open_store("memory:")
    store.put_action("", Action("look", "Look at everything there is.", '{"properties": {"at": {"type": "integer"}}}'))
    store.put_binding("", Binding(agent, "look", 1, "compact", "first_chars", length))
    return store


def native(runs: int = 1) -> ScriptedModel:
    """Return a model that calls the tool, thinks, and answers, in each run."""
    script: list[Any] = []
    for run in range(runs):
        script += [call(f"c{run}", "look"), call(f"d{run}", "think"), "Seen."]
    return ScriptedModel(script, "openai")


THINK = tool(lambda: "Hm.", name="think", description="Think.")


def result_lengths(model: ScriptedModel, call_id: str) -> list[int]:
    """Return the length of a result in each request that has it."""
    return [
        len(message["content"])
        for request in model.requests
        for message in request["messages"]
        if message.get("tool_call_id") == call_id
    ]


def chat_agent(model: ScriptedModel, **options: Any) -> ChatAgent:
    return ChatAgent(model, name="sage", tools=[look, THINK], window=100_000, **options)


def test_bindings_set_the_leases_of_chat_and_react_agents():
    for kind, run in ((ChatAgent, "send"), (ReActAgent, "run")):
        model = native()
        with kind(model, name="sage", tools=[look, THINK], window=100_000, store=catalog()) as agent:
            getattr(agent, run)("Look.")
            leases = [row.stamp.lease for row in agent.conversation.history() if row.message.role == "tool"]
        whole, short = result_lengths(model, "c0")
        assert whole == 900
        assert short < 200
        assert [lease and lease.agent_action_id for lease in leases] == ["sage/look", None]


def test_bindings_set_the_leases_of_async_chat_agents():
    async def main() -> list[int]:
        script = [call("c0", "look"), call("d0", "think"), "Seen."]
        model = ScriptedModel(script, "openai", asynchronous=True)
        async with AsyncChatAgent(model, name="sage", tools=[look, THINK], window=100_000, store=catalog()) as agent:
            await agent.send("Look.")
        return result_lengths(model, "c0")

    whole, short = asyncio.run(main())
    assert (whole, short < 200) == (900, True)


@pytest.mark.parametrize(("options", "is_short"), [({"catalog": catalog()}, True), ({"catalog": False}, False)])
def test_catalog_of_a_chat_agent_can_be_another_store_or_none(options: dict[str, Any], is_short: bool):
    model = native()
    with chat_agent(model, **options) as agent:
        agent.send("Look.")
    assert (result_lengths(model, "c0")[1] < 200) == is_short


def test_changed_binding_counts_from_the_next_run_of_a_chat_agent():
    store, model = catalog(100), native(2)
    with chat_agent(model, store=store) as agent:
        agent.send("Look.")
        store.put_binding("", Binding("sage", "look", 1, "compact", "first_chars", 700))
        agent.send("Look again.")
    assert result_lengths(model, "c0")[1] < 200
    assert result_lengths(model, "c1") == [900, result_lengths(model, "c1")[1]]
    assert 700 < result_lengths(model, "c1")[1] < 800


def loop_lengths(model: ScriptedModel) -> list[list[int]]:
    return [
        [len(str(message["content"])) for message in request["messages"] if "Result of look" in str(message["content"])]
        for request in model.requests
    ]


LOOP_SCRIPT = [act("look"), think(), done(), act("look"), think(), done()]


def test_changed_binding_counts_from_the_next_run_of_a_loop_agent():
    store, model = catalog(100), ScriptedModel(LOOP_SCRIPT, "openai")
    with LoopAgent(model, name="sage", actions=[look], store=store, window=100_000) as agent:
        agent.run("Look.")
        store.put_binding("", Binding("sage", "look", 1, "compact", "first_chars", 700))
        agent.run("Look again.")
    assert loop_lengths(model)[2][0] < 200
    first, second = loop_lengths(model)[5]
    assert first < 200
    assert 700 < second < 800


def test_changed_binding_counts_from_the_next_run_of_an_async_loop_agent():
    async def main() -> ScriptedModel:
        store, model = catalog(100), ScriptedModel(LOOP_SCRIPT, "openai", asynchronous=True)
        async with AsyncLoopAgent(model, name="sage", actions=[look], store=store, window=100_000) as agent:
            await agent.run("Look.")
            store.drop_binding("", "sage", "look")
            await agent.run("Look again.")
        return model

    first, second = loop_lengths(asyncio.run(main()))[5]
    assert first < 200
    assert second > 900


def test_catalog_describes_the_tools_of_a_chat_agent():
    store, model = catalog(), native(2)
    with chat_agent(model, store=store) as agent:
        agent.send("Look.")
        store.put_action("", Action("look"))
        agent.send("Look again.")
    descriptions = [request["tools"][0]["function"] for request in (model.requests[0], model.requests[-1])]
    assert [tool["description"] for tool in descriptions] == ["Look at everything there is.", "Look around."]
    assert descriptions[0]["parameters"] == {"type": "object", "properties": {"at": {"type": "integer"}}}
    assert descriptions[1]["parameters"] == look.parameters


def test_catalog_describes_the_actions_of_a_loop_agent():
    store, model = catalog(), ScriptedModel(LOOP_SCRIPT, "openai")
    with LoopAgent(model, name="sage", actions=[look], store=store, window=100_000) as agent:
        agent.run("Look.")
        store.put_action("", Action("look"))
        agent.run("Look again.")
        assert "Look around." in agent.system
    first, last = (request["messages"][0]["content"] for request in (model.requests[0], model.requests[-1]))
    assert "Look at everything there is." in first
    assert "Look around." not in first
    assert last == agent.system
