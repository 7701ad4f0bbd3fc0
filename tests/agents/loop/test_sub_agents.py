"""Sub-agents: their conversations, the leases of their results, and their limits."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from foveate import AsyncLoopAgent, Limits, LoopAgent, ReActAgent, open_conversation, open_store
from foveate.agents import RunEnded, SubAgentEvent, ToolAnswered, ToolCalled, tool
from foveate.core.catalog import Action, Binding
from foveate.errors import BadSetting, StoreError
from foveate.stores.memory import MemoryStore
from foveate.testing import ScriptedModel, call
from foveate.testing.faults import Countdown, failing_store
from foveate.types import Lease

from .scripts import act, ask, done, expand, fail, hand, options, run_both, scripted_agent, texts, think


def look() -> str:
    """Look around."""
    return "x" * 900


def reader(**more: Any) -> LoopAgent:
    return LoopAgent(name="reader", description="Reads files.", **more)


def test_a_sub_agent_works_in_its_own_conversation():
    store = open_store("memory:")
    script = [hand("reader", "Read a.py."), act("look"), done("It is empty."), done("All read.")]
    agent, model = scripted_agent(script, store=store, sub_agents=[reader(actions=[look])])
    with agent:
        events = list(agent.stream("Read."))
        run = agent.conversation.journal.runs()[0]
        steps = agent.conversation.journal.steps(run.id)
    assert [type(event) for event in events if isinstance(event, ToolCalled | ToolAnswered | RunEnded)] == [
        ToolCalled,
        ToolAnswered,
        RunEnded,
    ]
    assert texts(model.requests[1]) == ["Read a.py."]
    assert texts(model.requests[3]) == ["Read.", script[0], "Result of the sub-agent reader:\nIt is empty."]
    assert [(step.number, step.kind, step.name, step.input, step.output) for step in steps] == [
        (1, "model", "anthropic:scripted", "", ""),
        (2, "sub-agent", "reader", "Read a.py.", "It is empty."),
        (3, "model", "anthropic:scripted", "", ""),
    ]
    inner = open_conversation("sage/r1/2", store=store, format="anthropic", window=100_000)
    (its_run,) = inner.journal.runs()
    assert (its_run.agent, its_run.parent, its_run.task, its_run.state) == ("reader", "r1/2", "Read a.py.", "done")
    assert [step.kind for step in inner.journal.steps(its_run.id)] == ["model", "action", "model"]


def test_events_of_sub_agents_are_in_the_outer_stream():
    inner = LoopAgent(name="finder", description="Finds files.", actions=[look])
    script = [hand("reader", "Read."), hand("finder", "Find."), act("look"), done("Found."), done("Read."), done()]
    agent, _ = scripted_agent(script, sub_agents=[reader(sub_agents=[inner])])

    def told(event: Any) -> tuple[str, ...]:
        if isinstance(event, SubAgentEvent):
            return (f"{event.agent} {event.step}", *told(event.event))
        return (type(event).__name__,)

    with agent:
        heard = [told(event) for event in agent.stream("Go.")]
    around = [one for one in heard if one[0] in ("ModelReplied", "ToolCalled", "ToolAnswered", "RunEnded")]
    assert around == [("ModelReplied",), ("ToolCalled",), ("ToolAnswered",), ("ModelReplied",), ("RunEnded",)]
    within = [item for item in heard if len(item) == 3]
    assert {one[:2] for one in within} == {("reader r1/2", "finder r2/2")}
    assert [one[2] for one in within if one[2] != "TextDelta"] == [
        *("ModelReplied", "ToolCalled", "ToolAnswered"),
        *("ModelReplied", "RunEnded"),
    ]
    assert ("reader r1/2", "TextDelta") in heard  # Streamed like the agent's own text.
    assert heard.index(("ToolCalled",)) < heard.index(("reader r1/2", "ToolCalled")) < heard.index(("ToolAnswered",))


def test_closing_the_stream_stops_agent_and_sub_agent():
    store = open_store("memory:")
    agent, _ = scripted_agent([hand("reader", "Read."), act("look")], store=store, sub_agents=[reader(actions=[look])])
    with agent:
        events = agent.stream("Go.")
        assert any(isinstance(event, SubAgentEvent) and isinstance(event.event, ToolCalled) for event in events)
        events.close()
        inner = open_conversation("sage/r1/2", store=store, format="anthropic", window=100_000)
        for chat in (agent.conversation, inner):
            assert [run.state for run in chat.journal.runs()] == ["stopped"]
            assert chat._agent.acquire_lock("next").owner == "next"


def test_sync_and_async_agents_behave_the_same():
    script = [hand("reader", "Read."), act("look"), done("Empty."), hand("reader", "Again."), done("Empty."), done()]
    outcome, _ = run_both(script, sub_agents=[reader(actions=[look])])
    assert outcome.is_done


def test_only_prompts_of_agents_with_sub_agents_mention_them():
    agent, _ = scripted_agent([], sub_agents=[reader()], actions=[look])
    assert "# Sub-Agents\n\n## reader\n\nReads files." in agent.system
    assert "# Actions\n\n## look" in agent.system
    assert "Sub-Agent" not in agent._config.sub_agents["reader"].system
    assert "Actions" not in agent._config.sub_agents["reader"].system


@pytest.mark.parametrize(("lease", "gone"), [(None, False), (Lease(1, "remove"), True)])
def test_the_result_of_a_sub_agent_has_its_own_lease(lease: Lease | None, gone: bool):
    script = [hand("reader", "Read."), done("x" * 900), think(), done()]
    outcome, model = run_both(script, sub_agents=[reader(result_lease=lease)], policy="balanced")
    assert outcome.is_done
    assert any("Result of the sub-agent" in text for text in texts(model.requests[2]))
    assert any("Result of the sub-agent" in text for text in texts(model.requests[3])) == (not gone)


def test_an_override_applies_to_sub_agents():
    script = [hand("reader", "Read."), act("look"), think(), expand("m3"), done("y" * 900), think(), done()]
    agent, model = scripted_agent(
        script, sub_agents=[reader(actions=[look])], message_expiration_override=Lease(1, "compact", "first_chars", 100)
    )
    with agent:
        agent.run("Go.")
    assert [len(texts(request)[2]) for request in model.requests[2:5]] == [916, 153, 916]
    assert [len(texts(request)[2]) for request in model.requests[5:]] == [932, 153]


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([fail("no key")], "Result of the sub-agent reader, which failed:\nreader gave up: no key"),
        (
            [ask("Which?")],
            "Result of the sub-agent reader:\nreader asks: Which?\nHand it the task again, with the answer.",
        ),
        (
            [RuntimeError("no line")],
            "Result of the sub-agent reader, which failed:\nreader failed: RuntimeError: no line",
        ),
        (
            [think("hm"), think("hm")],
            "Result of the sub-agent reader, which failed:\nreader reached the limit of turns before it was done. Its "
            f"last words: {think('hm')}",
        ),
    ],
)
def test_an_unfinished_sub_agent_gives_a_result(answers: list[Any], told: str):
    script = [hand("reader", "Read."), *answers, done()]
    outcome, model = run_both(script, sub_agents=[reader(limits=Limits(turns=2))])
    assert outcome.is_done
    assert texts(model.requests[-1])[-1] == told


def test_an_unknown_sub_agent_gives_an_error_result():
    outcome, model = run_both([hand("writer", "Write."), done()], sub_agents=[reader()])
    assert outcome.is_done
    assert texts(model.requests[1])[-1] == (
        "Result of the sub-agent writer, which failed:\nThere is no sub-agent 'writer'. Those you have: reader."
    )


def test_the_use_of_sub_agents_counts_for_the_outer_limits():
    writer = LoopAgent(name="writer", description="Writes.")
    editor = LoopAgent(name="editor", description="Edits.", sub_agents=[writer])
    script = [hand("editor", "1"), hand("writer", "2"), think(), think(), done("2"), done("1"), think(), think()]
    agent, model = scripted_agent([*script, done()], sub_agents=[editor], limits=Limits(turns=7))
    with agent:
        outcome = agent.run("Go.")
    assert (outcome.run.state, outcome.run.reason, outcome.run.turns) == ("stopped", "turns", 2)
    assert len(model.requests) == 7


def test_a_sub_agent_never_exceeds_the_remaining_limits():
    script = [think(), hand("reader", "Read."), *[think()] * 9]
    agent, model = scripted_agent(script, sub_agents=[reader(limits=Limits(turns=50))], limits=Limits(turns=5))
    with agent:
        assert agent.run("Go.").run.reason == "turns"
    assert len(model.requests) == 5


def test_a_sub_agent_has_the_bindings_of_its_name():
    store = open_store("memory:")
    assert isinstance(store, MemoryStore)
    store.put_action("", Action("look"))
    store.put_binding("", Binding("reader", "look", 1, "remove"))
    script = [act("look"), hand("reader", "Read."), act("look"), think(), done("x"), done()]
    agent, model = scripted_agent(script, store=store, actions=[look], sub_agents=[reader(actions=[look])])
    with agent:
        agent.run("Go.")
    assert [len(texts(request)) for request in model.requests] == [1, 3, 1, 3, 4, 5]


def test_a_sub_agent_can_have_its_own_model():
    own = ScriptedModel([done("Read.")], "openai")
    agent, model = scripted_agent(
        [hand("reader", "Read."), done()], sub_agents=[LoopAgent(own, name="reader", window=50_000)]
    )
    with agent:
        assert agent.run("Go.").is_done
    assert (len(own.requests), len(model.requests)) == (1, 2)


def test_ambiguous_names_are_refused():
    with pytest.raises(BadSetting, match="Two helpers have the name 'look'"):
        scripted_agent([], actions=[look], sub_agents=[LoopAgent(name="look")])
    with pytest.raises(BadSetting, match="Two helpers have the name 'reader'"):
        scripted_agent([], sub_agents=[reader(), reader()])


def test_a_sync_agent_refuses_async_sub_agents():
    async def wait() -> str:
        """Wait."""
        return "waited"

    with pytest.raises(BadSetting, match="awaited"):
        scripted_agent([], sub_agents=[AsyncLoopAgent(name="waiter", actions=[tool(wait)])])


def test_an_interrupt_in_a_sub_agent_stops_both_runs():
    store = open_store("memory:")

    def agent_of(script: list[Any]) -> tuple[LoopAgent, ScriptedModel]:
        def play(request: Any) -> Any:
            if not script:
                raise KeyboardInterrupt
            return script.pop(0)

        model = ScriptedModel(play)
        return LoopAgent(model, sub_agents=[reader(actions=[look])], **options(store=store)), model

    agent, _ = agent_of([hand("reader", "Read."), act("look")])
    with pytest.raises(KeyboardInterrupt):
        agent.run("Go.")
    assert [run.state for run in agent.conversation.journal.runs()] == ["stopped"]
    inner = open_conversation("sage/r1/2", store=store, format="anthropic", window=100_000)
    assert [run.state for run in inner.journal.runs()] == ["stopped"]
    again, model = agent_of([done("Read."), done()])
    assert again.resume().is_done
    assert [len(texts(request)) for request in model.requests] == [3, 3]
    inner.refresh()
    assert [run.state for run in inner.journal.runs()] == ["done"]


def test_lifecycle_events_of_sub_agents_reach_the_outer_listener():
    heard: list[tuple[str, str, str, str]] = []
    own: list[str] = []

    def listen(event: Any) -> None:
        heard.append((event.agent, event.conversation, event.type, event.reason))

    script = [hand("reader", "Read."), act("look"), think(), done("y"), done()]
    helper = reader(actions=[look], on_message_lifecycle=lambda event: own.append(event.agent))
    lease = Lease(1, "compact", "first_chars", 100)
    agent, _ = scripted_agent(
        script, sub_agents=[helper], message_expiration_override=lease, on_message_lifecycle=listen
    )
    with agent:
        agent.run("Go.")
    inner = [event for event in heard if event[0] == "reader"]
    assert {event[:2] for event in heard} == {("sage", "sage"), ("reader", "sage/r1/2")}
    assert [event[2] for event in inner].count("message-compacted") == 1
    assert ("reader", "sage/r1/2", "message-added", "action-result of look") in inner
    assert own == ["reader"] * len(inner)


def test_a_listener_hears_events_of_nested_sub_agents_once():
    """The listener of the middle agent hears its own events and those below it; the outer one hears all."""
    heard: dict[str, list[tuple[str, str, str]]] = {"outer": [], "middle": []}

    def listen(name: str) -> Any:
        return lambda event: heard[name].append((event.agent, event.type, event.message_id))

    finder = ReActAgent(name="finder", description="Finds files.", tools=[look])
    middle = reader(sub_agents=[finder], on_message_lifecycle=listen("middle"))
    script = [hand("reader", "Read."), hand("finder", "Find."), call("c1", "look"), "Found.", done("Read."), done()]
    agent, _ = scripted_agent(script, sub_agents=[middle], on_message_lifecycle=listen("outer"))
    with agent:
        assert agent.run("Go.").is_done
    assert {event[0] for event in heard["outer"]} == {"sage", "reader", "finder"}
    assert heard["middle"] == [event for event in heard["outer"] if event[0] != "sage"]
    assert len(set(heard["outer"])) == len(heard["outer"])


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_sub_agent_gets_its_task_once_whatever_operation_fails(after: bool):
    """The task is appended before the record of the run is stored: a failure between them repeats nothing."""
    n = 20
    while True:
        store, countdown = open_store("memory:"), Countdown(n, after=after)
        first, _ = scripted_agent(
            [hand("reader", "Read."), done("Read."), done()],
            sub_agents=[reader()],
            store=failing_store(store, countdown),
        )
        with suppress(StoreError):
            first.run("Go.")
        first.close()

        def play(request: Any) -> str:
            last = texts(request)[-1]
            return hand("reader", "Read.") if last == "Go." else done("Read.")

        with LoopAgent(ScriptedModel(play), sub_agents=[reader()], **options(store=store)) as agent:
            outcome = agent.resume() if len(agent.conversation) else agent.run("Go.")
            assert (n, outcome.run.state) == (n, "done")
        inner = open_conversation("sage/r1/2", store=store, format="anthropic", window=100_000)
        assert [row.message.text for row in inner.history()].count("Read.") == 1
        assert {run.parent for run in inner.journal.runs()} == {"r1/2"}
        if not countdown.is_used_up:
            return
        n += 1
