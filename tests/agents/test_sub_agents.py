"""Sub-agents of agents that call tools: several delegating calls in one reply."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from contextlib import suppress
from inspect import isawaitable
from itertools import count
from typing import Any

import pytest

from foveate import AsyncReActAgent, BadInput, ChatAgent, Limits, LoopAgent, ReActAgent, open_conversation, open_store
from foveate.agents import RunEnded, SubAgentEvent, ToolAnswered, ToolCalled, tool
from foveate.errors import BadSetting, StoreError
from foveate.open import Options
from foveate.testing import ScriptedModel, call, calls, say
from foveate.testing.faults import Countdown, failing_store
from foveate.types import Lease

TASKS = ["north", "east"]
PROVIDERS = ["anthropic", "openai"]


def content_of(message: dict[str, Any]) -> str:
    """Return the text of a message of a request."""
    content = message["content"]
    if isinstance(content, str):
        return content
    texts = [block.get("text") or block.get("content") or "" for block in content or ()]
    return "".join(text if isinstance(text, str) else text[0]["text"] for text in texts)


class Team:
    """A lead with scouts, one of each kind. The model answers by the request alone."""

    def __init__(self, *, together: bool = False, provider: str = "anthropic", store: Any = None) -> None:
        self.store = store or open_store("memory:")
        self.provider = provider
        self.done: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self._barrier = threading.Barrier(3, timeout=60) if together else None
        self._lock = threading.Lock()

    def play(self, request: dict[str, Any]) -> Any:
        with self._lock:
            self.seen[json.dumps(request, sort_keys=True)] += 1
        messages = [message for message in request["messages"] if message["role"] != "system"]
        task, is_first = content_of(messages[0]), len(messages) == 1
        match task:
            case "Go." if is_first:
                handed = [call("c1", "scout", task="north"), call("c3", "ranger", task="east")]
                return calls(handed[0], call("c2", "look", place="here"), handed[1], text="I send two.")
            case "Go.":
                return say("All seen.")
        if is_first and self._barrier:
            self._barrier.wait()
        if task == "east":
            act = {"type": "Actions", "actions": [{"name": "look", "params": {"place": task}}]}
            if is_first:
                return json.dumps({"taskComplete": False, "nextStep": act})
            return json.dumps({"taskComplete": True, "message": "east is clear."})
        return call("c1", "look", place=task) if is_first else say(f"{task} is clear.")

    def look(self, place: str) -> str:
        """Look around."""
        if place == "here" and self._barrier:
            self._barrier.wait()
        with self._lock:
            self.done[place] += 1
        return f"{place}: trees"

    def agent(self, kind: Any = ReActAgent, store: Any = None, *, repeatable: bool = True, **more: Any) -> Any:
        look = tool(self.look, is_repeatable=repeatable)
        ids = count(1)
        return kind(
            ScriptedModel(self.play, self.provider),
            name="lead",
            tools=[look],
            sub_agents=[
                ReActAgent(name="scout", description="Scouts on foot.", tools=[look]),
                LoopAgent(name="ranger", description="Rides.", actions=[look]),
            ],
            store=store or self.store,
            window=100_000,
            clock=lambda: 1,
            new_id=lambda: f"r{next(ids)}",
            **more,
        )


RESULTS = ["north is clear.", "here: trees", "east is clear."]


def value_of(value: Any) -> Any:
    """Return a value, awaited if it can be."""

    async def awaited() -> Any:
        return await value

    return asyncio.run(awaited()) if isawaitable(value) else value


def results_of(chat: Any) -> list[str]:
    return [row.message.text for row in chat.history() if row.message.role == "tool"]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("kind", [ReActAgent, AsyncReActAgent])
def test_delegating_calls_of_one_reply_run_at_once_with_its_tools(kind: Any, provider: str):
    """Two sub-agents and a tool wait for each other, so they hang if they do not run at the same time."""
    team = Team(together=True, provider=provider)

    async def later() -> Any:
        async with team.agent(kind) as agent:
            return [event async for event in agent.stream("Go.")], await agent.conversation.journal.steps("r1")

    if kind is ReActAgent:
        with team.agent() as agent:
            events = list(agent.stream("Go."))
            steps = agent.conversation.journal.steps("r1")
    else:
        events, steps = asyncio.run(later())
    assert isinstance(events[-1], RunEnded)
    outcome = events[-1].outcome
    assert (outcome.text, outcome.run.turns, outcome.total.turns) == ("All seen.", 2, 6)
    chat = open_conversation("lead", store=team.store, format=provider, window=100_000)
    assert results_of(chat) == RESULTS
    assert [(step.kind, step.name, step.output) for step in steps if step.kind != "model"] == [
        ("sub-agent", "scout", RESULTS[0]),
        ("action", "look", RESULTS[1]),
        ("sub-agent", "ranger", RESULTS[2]),
    ]
    own = [type(event) for event in events if isinstance(event, ToolCalled | ToolAnswered)]
    assert own == [*[ToolCalled] * 3, *[ToolAnswered] * 3]
    for agent_name, step in (("scout", "r1/2"), ("ranger", "r1/4")):
        inner = [event.event for event in events if isinstance(event, SubAgentEvent) and event.agent == agent_name]
        assert {event.step for event in events if isinstance(event, SubAgentEvent) and event.agent == agent_name} == {
            step
        }
        assert [type(event) for event in inner if isinstance(event, ToolCalled | ToolAnswered | RunEnded)] == [
            *(ToolCalled, ToolAnswered, RunEnded)
        ]
        (run,) = open_conversation(f"lead/{step}", store=team.store, format=provider, window=100_000).journal.runs()
        assert (run.agent, run.parent, run.state) == (agent_name, step, "done")


def test_the_model_reads_the_description_of_each_sub_agent():
    team = Team()
    with team.agent() as agent:
        agent.run("Go.")
    request = json.loads(next(key for key in team.seen if "I send two." not in key and '"Go."' in key))
    scout = next(item for item in request["tools"] if item["name"] == "scout")
    assert scout["description"].startswith("Scouts on foot.\n\nIt works on its own")
    assert scout["input_schema"]["required"] == ["task"]


def test_wrong_arguments_and_a_failing_sub_agent_are_error_results():
    def play(request: dict[str, Any]) -> Any:
        if content_of(request["messages"][0]) == "fail":
            raise RuntimeError("no line")
        if len(request["messages"]) > 1:
            return say("So be it.")
        return calls(call("c1", "scout"), call("c2", "scout", task="fail"), call("c3", "scout", task=" "))

    with ReActAgent(ScriptedModel(play), sub_agents=[ReActAgent(name="scout")], window=100_000) as agent:
        assert agent.run("Go.").is_done
        results = results_of(agent.conversation)
    assert results[0].startswith("scout was not called, for its arguments are wrong: task must be given")
    assert results[1] == "scout failed: RuntimeError: no line"
    assert results[2] == "scout failed: BadInput: The input is blank. Pass a text that asks for something."


@pytest.mark.parametrize("kind", [ReActAgent, AsyncReActAgent])
@pytest.mark.parametrize("scout", [ReActAgent, LoopAgent])
def test_an_error_of_approve_in_a_sub_agent_ends_the_run(kind: Any, scout: Any):
    team, answers = Team(), [OSError("The window is closed."), True]

    def approve(call: Any) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def play(request: dict[str, Any]) -> Any:
        messages = [message for message in request["messages"] if message["role"] != "system"]
        if content_of(messages[0]) == "Go.":
            return say("So be it.") if len(messages) > 1 else call("c1", "scout", task="mid")
        if content_of(messages[0]) == "mid":
            return say("Done.") if len(messages) > 1 else call("c1", "deep", task="east" if is_loop else "north")
        return team.play(request)

    is_loop = scout is LoopAgent
    look = tool(team.look, needs_approval=True)
    deep = scout(name="deep", **{"actions" if is_loop else "tools": [look]}, approve=approve)
    mid = ReActAgent(name="scout", sub_agents=[deep])
    agent = kind(ScriptedModel(play), sub_agents=[mid], store=team.store, window=100_000)
    with pytest.raises(OSError, match="The window is closed"):
        value_of(agent.run("Go."))
    assert not team.done
    assert value_of(agent.resume()).is_done
    assert team.done == {"east" if is_loop else "north": 1}
    value_of(agent.close())


@pytest.mark.parametrize("turns", range(2, 7))
def test_a_run_with_sub_agents_never_exceeds_its_turns(turns: int):
    team = Team()
    with team.agent(limits=Limits(turns=turns)) as agent:
        outcome = agent.run("Go.")
    assert team.seen.total() == outcome.total.turns == turns
    assert outcome.is_done == (turns == 6)


def test_the_result_of_a_sub_agent_has_its_own_lease():
    scout = ReActAgent(name="scout", result_lease=Lease(2, "remove"))
    script = [call("c1", "scout", task="Look."), say("Clear."), say("Seen.")]
    with ChatAgent(ScriptedModel(script), sub_agents=[scout], window=100_000) as agent:
        agent.send("Go.")
        lease = agent.conversation.history()[2].stamp.lease
    assert (lease.expiration_turns, lease.expiration_mode) == (2, "remove")


def test_an_agent_without_a_model_works_only_as_a_sub_agent():
    scout = ReActAgent(name="scout")
    for use in (lambda: scout.run("Go."), lambda: scout.conversation, scout.resume):
        with pytest.raises(BadSetting, match=r"Agent scout has no model\. Pass model="):
            use()
    scout.close()
    with pytest.raises(BadSetting, match="Agent scout has no model"):
        asyncio.run(AsyncReActAgent(name="scout").open())


def test_wrong_sub_agents_are_refused():
    model = ScriptedModel([])
    with pytest.raises(BadSetting, match="sub_agents= must be a list of agents"):
        ReActAgent(model, sub_agents=["scout"])  # type: ignore[list-item]
    with pytest.raises(BadSetting, match="Two helpers have the name 'scout'"):
        ReActAgent(model, sub_agents=[ReActAgent(name="scout"), LoopAgent(name="scout")])
    with pytest.raises(BadSetting, match="Two tools have the name look"):
        ReActAgent(model, tools=[Team().look], sub_agents=[ReActAgent(name="look")])
    chat = open_conversation("other", format="anthropic", window=100_000)
    with pytest.raises(BadSetting, match="Sub-agent scout has an open conversation"):
        ReActAgent(model, sub_agents=[ReActAgent(model, name="scout", conversation=chat)])
    with pytest.raises(BadSetting, match="result_lease"):
        ReActAgent(model, result_lease=Lease(-1))


@pytest.mark.parametrize("limits", [0, "", [], "20 turns"])
def test_limits_of_another_type_are_refused(limits: Any):
    with pytest.raises(BadSetting, match="limits= must be a Limits"):
        ReActAgent(ScriptedModel([]), limits=limits)


def test_a_loop_agent_may_have_sub_agents_that_call_tools():
    team = Team()
    step = {
        "type": "Sub-Agent",
        "subAgents": [{"name": "scout", "message": "north"}, {"name": "scout", "message": "up"}],
    }

    def play(request: dict[str, Any]) -> Any:
        if content_of(request["messages"][0]) != "Start.":
            return team.play(request)
        if len(request["messages"]) == 1:
            return json.dumps({"taskComplete": False, "nextStep": step})
        return json.dumps({"taskComplete": True, "message": "Seen."})

    lease = Lease(1, "compact", "first_chars", 5)
    scout = ReActAgent(name="scout", tools=[team.look])
    model = ScriptedModel(play)
    with LoopAgent(model, sub_agents=[scout], message_expiration_override=lease, window=100_000) as agent:
        assert agent.run("Start.").text == "Seen."
        rows = [row.message.text for row in agent.conversation.history() if row.stamp.origin == "tool"]
        (step_row,) = [
            row
            for row in agent.conversation.journal.steps(agent.conversation.journal.runs()[0].id)
            if row.input == "up"
        ]
        name = f"agent/{step_row.run}/{step_row.number}"
        store = agent.conversation._agent.store
        inner = open_conversation(name, store=store, format="anthropic", window=100_000).history()
    assert rows == [
        "Result of the sub-agent scout (1 of 2):\nnorth is clear.",
        "Result of the sub-agent scout (2 of 2):\nup is clear.",
    ]
    assert [row.stamp.lease.expiration_turns for row in inner if row.message.role == "tool"] == [1]
    assert not any("expand" in [item["name"] for item in request.get("tools", ())] for request in model.requests[:1])


def test_sub_agents_of_an_agent_in_an_open_conversation_share_its_store():
    team, store, tenant = Team(), open_store("memory:"), Options(tenant="t1")
    chat = open_conversation("lead", store=store, format="anthropic", window=100_000, options=tenant)
    scout = ReActAgent(name="scout", tools=[team.look])
    script = [
        call("c1", "scout", task="north"),
        call("c1", "look", place="north"),
        say("north is clear."),
        say("Seen."),
    ]
    with ReActAgent(ScriptedModel(script), conversation=chat, sub_agents=[scout], new_id=lambda: "r1") as agent:
        assert agent.run("Go.").is_done
    inner = open_conversation("lead/r1/2", store=store, format="anthropic", window=100_000, options=tenant)
    assert len(inner) == 4
    assert len(chat) == 4  # It is still open.


# ------------------------------------------------------------------------------------------------------------ resuming


def check_every(stride: int, *, repeatable: bool, first: int = 2) -> None:
    """The store fails at its n-th operation, before or after its effect; a new agent resumes the run."""
    expected = Team()
    with expected.agent() as agent:
        assert agent.run("Go.").text == "All seen."
    n = first
    while True:
        team, countdown = Team(), Countdown(n, after=n // 2 % 2 == 0)
        with suppress(StoreError):
            broken = team.agent(store=failing_store(team.store, countdown), repeatable=repeatable)
            broken.run("Go.")
        with team.agent(repeatable=repeatable) as agent:
            try:
                outcome = agent.resume()
            except BadInput:
                outcome = agent.run("Go.")
            assert (n, outcome.text, outcome.run.state) == (n, "All seen.", "done")
            results = results_of(agent.conversation)
            steps = [
                step for run in agent.conversation.journal.runs() for step in agent.conversation.journal.steps(run.id)
            ]
            assert len({step.call for step in steps if step.call}) == len([step for step in steps if step.call])
            for step in steps:
                if step.kind == "sub-agent":
                    name = f"lead/{step.run}/{step.number}"
                    inner = open_conversation(name, store=team.store, format="anthropic", window=100_000)
                    texts = [row.message.text for row in inner.history()]
                    assert (len(texts), sum(text in ("north", "east") for text in texts)) == (4, 1)
        assert [results[0], results[2]] == [RESULTS[0], RESULTS[2]]
        if repeatable:
            assert results == RESULTS
            assert team.seen.keys() == expected.seen.keys(), f"operation {n}"
        else:
            assert max(team.done.values()) == 1, f"operation {n}"
        if not countdown.is_used_up:
            assert n > 60
            return
        n += stride


@pytest.mark.parametrize("repeatable", [False, True])
def test_a_run_with_sub_agents_resumes_after_any_store_failure(repeatable: bool):
    check_every(19, repeatable=repeatable)


@pytest.mark.slow
@pytest.mark.parametrize("repeatable", [False, True])
def test_a_run_with_sub_agents_resumes_after_any_store_failure_thorough(repeatable: bool):
    """Together the cases fail every operation."""
    check_every(2, repeatable=repeatable, first=2 + repeatable)


def test_the_next_input_finishes_sub_agents_that_broke_off():
    team = Team()
    play = team.play

    def broken(request: dict[str, Any]) -> Any:
        if content_of(request["messages"][0]) != "Go." and len(request["messages"]) > 1:
            raise KeyboardInterrupt
        return play(request)

    team.play = broken  # type: ignore[method-assign]
    with team.agent() as agent, pytest.raises(KeyboardInterrupt):
        agent.run("Go.")
    assert [run.state for run in agent.conversation.journal.runs()] == ["stopped"]
    team.play = play  # type: ignore[method-assign]
    with team.agent() as agent:
        assert agent.run("Go.").text == "All seen."
        assert results_of(agent.conversation) == RESULTS
    assert set(team.done.values()) == {1}
