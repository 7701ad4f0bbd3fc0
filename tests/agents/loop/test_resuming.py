"""Resuming a loop agent: the same requests follow, and nothing is done twice."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from msgspec.structs import replace
from sweeps import STEP, by_thirds

from foveate import AsyncLoopAgent, BadInput, Limits, LoopAgent, open_store
from foveate.agents import ModelReplied, tool
from foveate.core.messages import assistant, user
from foveate.core.runs import AgentRun
from foveate.errors import StoreError
from foveate.policies import PRESET_NAMES
from foveate.ports import Database
from foveate.testing import ScriptedModel
from foveate.testing.faults import Countdown, failing_store
from foveate.types import Lease

from .scripts import act, ask, done, expand, fail, hand, next_step, options, scripted_agent, texts, think

SCRIPT = [
    act("look", "note"),
    think("so"),
    hand("reader", "Read."),
    act("look"),
    done("read"),
    next_step(type="expand-message", message="m3", lines="1"),
    expand("m3"),
    "no step",
    act("note"),
    done("all"),
]


class World:
    """A store that outlives the agent, actions that count, and a model."""

    def __init__(self, store: Database | None = None, **more: Any) -> None:
        self.store = store or open_store("memory:")
        self.done: Counter[str] = Counter()
        self.more = more
        self.answered: dict[str, str] = {}
        self.requests: list[dict[str, Any]] = []

    def agent(self, store: Any, *, asynchronous: bool = False) -> Any:
        """Return an agent whose model answers by the number of earlier answers: a repeated call is the same."""
        counts = self.done

        def look() -> str:
            """Look."""
            counts["look"] += 1
            return "x" * 900

        def note() -> str:
            """Write a note."""
            counts["note"] += 1
            return "noted"

        def play(request: dict[str, Any]) -> str:
            key = json.dumps(request, sort_keys=True)
            if key not in self.answered:
                self.answered[key] = SCRIPT[len(self.answered)]
                self.requests.append(request)
            return self.answered[key]

        actions = [tool(look, is_repeatable=True, lease=Lease(1, "compact")), tool(note, is_repeatable=True)]
        kind = AsyncLoopAgent if asynchronous else LoopAgent
        inner = kind(name="reader", actions=actions)
        model = ScriptedModel(play, asynchronous=asynchronous)
        return kind(model, actions=actions, sub_agents=[inner], **options(store=store, **self.more))


def straight(**more: Any) -> World:
    world = World(**more)
    with world.agent(world.store) as agent:
        assert agent.run("Go.").text == "all"
    return world


def rest_of(agent: LoopAgent) -> Any:
    """Resume until the run is done."""
    try:
        return agent.resume()
    except BadInput:
        return agent.run("Go.")


def check_every(stride: int, *, after: bool, first: int = 2, **more: Any) -> None:
    """The store fails at its n-th operation; a new agent resumes the run."""
    expected = straight(**more)
    n = first
    while True:
        world, countdown = World(**more), Countdown(n, after=after)
        broken = world.agent(failing_store(world.store, countdown))
        with suppress(StoreError):
            broken.run("Go.")
        broken.close()
        with world.agent(world.store) as agent:
            outcome = rest_of(agent)
            assert (n, outcome.text, outcome.run.state) == (n, "all", "done")
        assert world.requests == expected.requests, f"the store failed at operation {n}"
        if not countdown.is_used_up:
            assert n > 90
            return
        n += stride


@pytest.mark.parametrize("after", [False, True])
def test_the_same_requests_follow_after_any_store_failure(after: bool):
    check_every(23, after=after)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_the_same_requests_follow_after_any_store_failure_thorough(after: bool):
    check_every(1, after=after)


PRESETS = ["keep-last-1" if name == "keep-last-N" else name for name in PRESET_NAMES if name != "off"]


@pytest.mark.slow
@pytest.mark.parametrize("policy", PRESETS)
@pytest.mark.filterwarnings("ignore:keep_recent")
def test_the_same_requests_follow_under_every_preset(policy: str):
    """The presets take turns: together they fail every operation, before and after its effect."""
    for after in (False, True):
        first = 2 + PRESETS.index(policy)
        check_every(len(PRESETS), after=after, first=first, policy=policy, summarizer="first-characters", window=3_000)


CHILD = """
import os, signal, sys
from pathlib import Path
from foveate import LoopAgent
from foveate.agents import tool
from foveate.testing import ScriptedModel

folder, step = Path(sys.argv[1]), sys.argv[2]

def count(name):
    with (folder / name).open("a") as file:
        file.write("x")

def write() -> str:
    \"\"\"Write, and be killed.\"\"\"
    count("write")
    os.kill(os.getpid(), signal.SIGKILL)

def look() -> str:
    \"\"\"Look, and be killed.\"\"\"
    count("look")
    os.kill(os.getpid(), signal.SIGKILL)

def note() -> str:
    \"\"\"Note.\"\"\"
    count("note")
    return "noted"

serial = {"is_parallel": False}
actions = [tool(note, **serial), tool(write, **serial), tool(look, is_repeatable=True, **serial)]
LoopAgent(ScriptedModel([step]), name="sage", actions=actions, window=100_000, store=f"sqlite:///{folder}/chat.db").run("Go.")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(
    ("killing", "told", "times"),
    [
        (
            "write",
            "Result of write (2 of 3), which failed:\nIt is not known whether write was carried out: the run broke off "
            "while it was going on. Look what became of it before you call it again.",
            1,
        ),
        ("look", "Result of look (2 of 3):\ndone again", 2),
    ],
)
def test_another_process_resumes_after_a_kill_in_an_action(tmp_path: Path, killing: str, told: str, times: int):
    step = act("note", killing, "note")
    child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path), step], timeout=120)
    assert child.returncode == -signal.SIGKILL

    def again(name: str) -> str:
        with (tmp_path / name).open("a") as file:
            file.write("x")
        return "done again"

    def note() -> str:
        """Note."""
        return again("note")

    def write() -> str:
        """Write."""
        return again("write")

    def look() -> str:
        """Look."""
        return again("look")

    actions = [
        tool(note, is_parallel=False),
        tool(write, is_parallel=False),
        tool(look, is_repeatable=True, is_parallel=False),
    ]
    agent, model = scripted_agent([done()], actions=actions, store=f"sqlite:///{tmp_path}/chat.db")
    with agent:
        assert agent.resume().run.turns == 2
    assert texts(model.requests[0])[2:] == [
        "Result of note (1 of 3):\nnoted",
        told,
        "Result of note (3 of 3):\ndone again",
    ]
    assert len((tmp_path / killing).read_text()) == times
    assert len((tmp_path / "note").read_text()) == 2


def test_resume_returns_the_outcome_of_a_done_or_waiting_run():
    for last, state in ((done("all"), "done"), (ask("Which?"), "waiting")):
        store = open_store("memory:")
        agent, _ = scripted_agent([last], store=store)
        agent.run("Go.")
        again, model = scripted_agent([], store=store)
        outcome = again.resume()
        assert (outcome.run.state, outcome.text) == (state, {"done": "all", "waiting": "Which?"}[state])
        assert model.requests == []


def test_a_failed_task_fails_again_without_a_call():
    store = open_store("memory:")
    agent, _ = scripted_agent([fail("no key")], store=store)
    agent.run("Go.")
    again, model = scripted_agent([], store=store)
    assert (again.resume().run.reason, model.requests) == ("no key", [])


def test_resume_after_a_limit_begins_a_new_run():
    store = open_store("memory:")
    agent, _ = scripted_agent([think("a"), think("b")], store=store, limits=Limits(turns=2))
    assert agent.run("Go.").run.reason == "turns"
    again, model = scripted_agent([done("all")], store=store, limits=Limits(turns=2), new_id=lambda: "other")
    assert again.resume().text == "all"
    assert texts(model.requests[0]) == ["Go.", think("a"), "Go on: a", think("b"), "Go on: b"]
    assert [(run.id, run.state) for run in again.conversation.journal.runs()] == [("r1", "stopped"), ("other", "done")]


def test_an_error_of_the_provider_is_raised_and_resume_continues():
    store = open_store("memory:")
    agent, _ = scripted_agent([think("a"), RuntimeError("no line")], store=store)
    with pytest.raises(RuntimeError, match="no line"):
        agent.run("Go.")
    assert agent.conversation.journal.runs()[0].reason == "RuntimeError: no line"
    again, model = scripted_agent([done("all")], store=store)
    assert again.resume().text == "all"
    assert texts(model.requests[0]) == ["Go.", think("a"), "Go on: a"]


@pytest.mark.parametrize(
    "steps",
    [
        [act("look", "note")],
        [act("look"), think(), expand("m3")],
        [act("look"), think(), next_step(type="expand-message", message="m3", lines="1")],
        [act("look"), expand("m99")],
        [hand("reader", "Read."), done("read")],
        ["no step"],
        [think("so")],
    ],
    ids=["actions", "expand", "part", "refused", "sub-agent", "no step", "retry"],
)
@pytest.mark.parametrize("how", [{}, {"merge_results": True, "announce_expansions": True}], ids=["plain", "told"])
def test_resume_sends_the_same_request_after_a_connection_error(steps: list[str], how: dict[str, Any]):
    def look() -> str:
        """Look."""
        return "x" * 900

    def note() -> str:
        """Note."""
        return "noted"

    store = open_store("memory:")
    setup = {
        "store": store,
        "actions": [tool(look, lease=Lease(1, "compact")), note],
        "sub_agents": [LoopAgent(name="reader")],
        **how,
    }
    agent, model = scripted_agent([*steps, ConnectionError("no line")], **setup)
    with pytest.raises(ConnectionError):
        agent.run("Go.")
    again, other = scripted_agent([done("all")], **setup)
    assert again.resume().text == "all"
    assert other.requests == [model.requests[-1]]


def test_the_use_of_sub_agents_counts_after_a_resume():
    store = open_store("memory:")
    setup = {"store": store, "sub_agents": [LoopAgent(name="reader")], "limits": Limits(turns=5)}
    agent, _ = scripted_agent(
        [hand("reader", "Read."), think(), think(), done("read"), ConnectionError("no line")], **setup
    )
    with pytest.raises(ConnectionError):
        agent.run("Go.")
    again, model = scripted_agent([think()] * 9, **setup)
    assert again.resume().run.reason == "turns"
    assert len(model.requests) == 1  # One of its own turns and three of the reader were used before.


def test_closing_the_stream_stops_the_run():
    store = open_store("memory:")
    agent, _ = scripted_agent([think("a"), think("b"), done()], store=store)
    stream = agent.stream("Go.")
    for event in stream:
        if isinstance(event, ModelReplied) and event.turn == 2:
            break
    stream.close()  # type: ignore[attr-defined]
    (run,) = agent.conversation.journal.runs()
    assert (run.state, run.reason) == ("stopped", "the consumer closed the stream")
    again, model = scripted_agent([done("all")], store=store)
    assert again.resume().text == "all"
    assert texts(model.requests[0])[-1] == "Go on: b"


def test_another_task_closes_a_run_that_broke_off():
    world = World()
    broken = world.agent(failing_store(world.store, Countdown(40)))
    with pytest.raises(StoreError):
        broken.run("Go.")
    runs = broken.conversation.journal.runs()
    assert len(runs) == 1
    agent, _ = scripted_agent([done("other")], store=world.store, new_id=lambda: "other")
    assert agent.run("Something else.").text == "other"
    assert [(run.id, run.state) for run in agent.conversation.journal.runs()] == [
        ("r1", runs[0].state),
        ("other", "done"),
    ]


def test_resume_raises_before_any_run():
    agent, _ = scripted_agent([])
    with agent, pytest.raises(BadInput, match="There is nothing to resume: sage has not run in 'sage'"):
        agent.resume()


def test_an_async_agent_resumes_a_run_of_a_sync_one():
    expected, world = straight(), World()
    with pytest.raises(StoreError):
        world.agent(failing_store(world.store, Countdown(75))).run("Go.")

    async def later() -> str:
        async with world.agent(world.store, asynchronous=True) as agent:
            return (await agent.resume()).text

    assert asyncio.run(later()) == "all"
    assert world.requests == expected.requests


def test_another_task_closes_steps_of_a_run_that_broke_off():
    store = open_store("memory:")
    one, _ = scripted_agent([think()], store=store, limits=Limits(turns=1))
    one.run("First.")
    (run,) = one.conversation.journal.runs()
    one.conversation._agent.keep_run(replace(run, state="running", reason="", ended=0, turns=0))
    step = one.conversation.journal.steps(run.id)[0]
    one.conversation._agent.keep_step(replace(step, number=9, state="running", message="", ended=0))
    two, _ = scripted_agent([done()], store=store, new_id=lambda: "two")
    two.run("Second.")
    first, second = two.conversation.journal.runs()
    assert ((first.state, first.reason, first.turns), second.state) == (("stopped", "it broke off", 1), "done")
    assert [(step.kind, step.state, step.error) for step in two.conversation.journal.steps(run.id)] == [
        ("model", "done", ""),
        ("retry", "done", ""),
        ("model", "failed", "The run broke off before the model had answered."),
    ]


def test_resume_reads_only_the_end_of_the_history():
    store = open_store("memory:")
    read: list[int] = []
    one, _ = scripted_agent([think("a"), think("b")], store=store, limits=Limits(turns=2))
    one.conversation.append([user(f"It was said, {number}.") for number in range(3_000)])
    one.run("Go.")
    (run,) = one.conversation.journal.runs()
    one.conversation._agent.keep_run(replace(run, state="running", reason="", ended=0))
    two, model = scripted_agent([done("all")], store=store)
    chat = two.conversation
    history = chat.history

    def counted(first: int = 1, last: int | None = None) -> Any:
        rows = history(first, last)
        read.append(len(rows))
        return rows

    chat.history = counted  # type: ignore[method-assign]
    assert two.resume().text == "all"
    assert texts(model.requests[0])[-1] == "Go on: b"
    assert sum(read) <= 150


def test_resume_appends_a_task_that_was_not_appended():
    store = open_store("memory:")
    one, _ = scripted_agent([], store=store)
    one.conversation.append([user(f"It was said, {number}.") for number in range(300)])
    one.conversation.record(assistant("Yes."))
    one.conversation._agent.keep_run(AgentRun("r1", "sage", "sage", "Go.", begun=1))
    two, model = scripted_agent([done("all")], store=store)
    assert two.resume().text == "all"
    assert texts(model.requests[0])[-2:] == ["Yes.", "Go."]


def test_two_tasks_at_once_wait_for_each_other():
    store, found = open_store("memory:"), list[str]()
    agents = [scripted_agent([done(name)], store=store, new_id=lambda name=name: name)[0] for name in ("a", "b", "c")]
    threads = [Thread(target=lambda one=one: found.append(one.run("Go.").text)) for one in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["a", "b", "c"]
    chat = agents[0].conversation
    chat.refresh()
    roles = [row.message.role for row in chat.history()]
    assert roles == ["user", "assistant"] * 3


@pytest.mark.parametrize("after", [False, True])
@by_thirds
def test_an_end_that_could_not_be_stored_is_stored_by_the_next_task(after: bool, n: int):
    failed = True
    while failed:
        countdown = Countdown(after=after)
        store = failing_store(open_store("memory:"), countdown)
        answers = [act("look"), think("so"), done("one"), done("two"), done("three"), done("four")]
        agent, _ = scripted_agent(
            answers, store=store, actions=[tool(lambda: "seen", name="look", description="Look.")]
        )
        with agent:
            chat = agent.conversation
            countdown.start(n)
            with suppress(StoreError):
                agent.run("Go.")
            failed = countdown.is_used_up
            countdown.start(0)
            agent.run("Go on.")
            assert "running" not in [run.state for run in chat.journal.runs()]
            assert "running" not in [step.state for run in chat.journal.runs() for step in chat.journal.steps(run.id)]
        n += STEP
    assert n > 20
