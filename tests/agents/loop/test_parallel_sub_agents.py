"""Sub-agents at the same time: order, events, limits, stops, failures, and resuming."""

from __future__ import annotations

import _thread
import asyncio
import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing, suppress
from functools import cache
from typing import Any

import pytest

from foveate import AsyncLoopAgent, Limits, LoopAgent, open_conversation, open_store
from foveate.agents import ModelReplied, RunEnded, SubAgentEvent, TextDelta, ToolAnswered, ToolCalled, tool
from foveate.core.stamps import is_interrupted
from foveate.errors import StoreError
from foveate.policies import PRESET_NAMES
from foveate.testing import ScriptedModel
from foveate.testing.faults import Countdown, failing_store

from .scripts import act, done, next_step, options, texts, think

TASKS = ["north", "east", "south"]


def hand_all(*tasks: str, name: str = "reader") -> str:
    """Return a step that gives several tasks to sub-agents."""
    return next_step(type="Sub-Agent", subAgents=[{"name": name, "message": task} for task in tasks])


class Team:
    """An editor with readers. The model answers by the request alone, so a repeated request has the same answer."""

    def __init__(self, tasks: list[str] | None = None, *, together: bool = False, **more: Any) -> None:
        """`together`: the readers' first calls wait for each other, so they hang if they do not run at once."""
        self.tasks = TASKS if tasks is None else tasks
        self.store = more.pop("store", None) or open_store("memory:")
        self.more = more
        self.done: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self._barrier = threading.Barrier(len(self.tasks), timeout=60) if together else None
        self._lock = threading.Lock()

    def play(self, request: dict[str, Any]) -> Any:
        with self._lock:
            self.seen[json.dumps(request, sort_keys=True)] += 1
        task, *rest = texts(request)
        if task == "Go.":
            return hand_all(*self.tasks) if not rest else done("All read.")
        if not rest and self._barrier:
            self._barrier.wait()
        has_looked = any(text.startswith("Result of look") for text in rest)
        return done(f"{task} is clear.") if has_looked else act(("look", {"place": task}))

    def look(self, place: str) -> str:
        """Look around."""
        with self._lock:
            self.done[place] += 1
        return f"{place}: " + "trees " * 50

    def agent(self, store: Any = None, *, asynchronous: bool = False, repeatable: bool = True, **more: Any) -> Any:
        kind = AsyncLoopAgent if asynchronous else LoopAgent
        reader = kind(name="reader", actions=[tool(self.look, is_repeatable=repeatable)])
        model = ScriptedModel(self.play, asynchronous=asynchronous and self._barrier is None)
        return kind(model, sub_agents=[reader], **options(store=store or self.store, **{**self.more, **more}))

    def inner(self, step: int) -> Any:
        return open_conversation(f"sage/r1/{step}", store=self.store, format="anthropic", window=100_000)


RESULTS = [f"Result of the sub-agent reader ({place} of 3):\n{task} is clear." for place, task in enumerate(TASKS, 1)]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_sub_agents_of_one_step_work_at_the_same_time(asynchronous: bool):
    team = Team(together=True)

    async def later() -> Any:
        async with team.agent(asynchronous=True) as agent:
            return await agent.run("Go."), await agent.conversation.journal.steps("r1")

    if asynchronous:
        outcome, steps = asyncio.run(later())
    else:
        with team.agent() as agent:
            outcome = agent.run("Go.")
            steps = agent.conversation.journal.steps("r1")
    assert outcome.text == "All read."
    assert [(step.number, step.kind, step.call, step.input, step.output) for step in steps if step.kind != "model"] == [
        (number, "sub-agent", f"1.{number - 1}", task, f"{task} is clear.") for number, task in enumerate(TASKS, 2)
    ]
    chat = open_conversation("sage", store=team.store, format="anthropic", window=100_000)
    assert [row.message.text for row in chat.history() if row.stamp.origin == "tool"] == RESULTS
    for number, task in enumerate(TASKS, 2):
        (run,) = team.inner(number).journal.runs()
        assert (run.task, run.parent, run.state) == (task, f"r1/{number}", "done")
    assert set(team.done.values()) == {1}


def test_results_are_appended_in_the_order_of_the_tasks():
    """The first task ends last. Its result comes first."""
    team, last = Team(), threading.Event()
    play = team.play

    def waiting(request: dict[str, Any]) -> Any:
        if texts(request)[0] == "north":
            last.wait(60)
        return play(request)

    team.play = waiting  # type: ignore[method-assign]
    with team.agent() as agent:
        ended: list[str] = []
        answered: list[str] = []
        for event in agent.stream("Go."):
            match event:
                case SubAgentEvent(event=RunEnded(outcome)):
                    ended.append(outcome.text)
                    if len(ended) == 2:
                        last.set()
                case ToolAnswered(result=result):
                    answered.append(result.text)
        rows = [row.message.text for row in agent.conversation.history() if row.stamp.origin == "tool"]
    assert ended[-1] == "north is clear."
    assert answered == [f"{task} is clear." for task in TASKS]
    assert rows == RESULTS


@pytest.mark.parametrize("asynchronous", [False, True])
def test_each_event_says_whose_it_is(asynchronous: bool):
    team = Team(together=True)

    async def later() -> list[Any]:
        async with team.agent(asynchronous=True) as agent:
            return [event async for event in agent.stream("Go.")]

    events = asyncio.run(later()) if asynchronous else list(team.agent().stream("Go."))
    own = [type(event) for event in events if not isinstance(event, SubAgentEvent | TextDelta)]
    assert own == [ModelReplied, *[ToolCalled] * 3, *[ToolAnswered] * 3, ModelReplied, RunEnded]
    for number, task in enumerate(TASKS, 2):
        inner = [event.event for event in events if isinstance(event, SubAgentEvent) and event.step == f"r1/{number}"]
        assert [type(event) for event in inner if not isinstance(event, TextDelta)] == [
            *(ModelReplied, ToolCalled, ToolAnswered, ModelReplied, RunEnded)
        ]
        said = "".join(event.text for event in inner if isinstance(event, TextDelta))
        assert said == act(("look", {"place": task})) + done(f"{task} is clear.")


def test_max_parallel_limits_how_many_sub_agents_work_at_once():
    tasks = [f"t{number}" for number in range(6)]
    team, working, most = Team(tasks), set[str](), 0
    for event in team.agent(max_parallel=2).stream("Go."):
        match event:
            case SubAgentEvent(step=step, event=RunEnded()):
                working.discard(step)
            case SubAgentEvent(step=step):
                working.add(step)
                most = max(most, len(working))
    assert most == 2
    assert team.done == Counter(tasks)


def test_a_failing_sub_agent_is_a_result_and_the_others_continue():
    team = Team()
    play = team.play

    def failing(request: dict[str, Any]) -> Any:
        if texts(request)[0] == "east":
            raise RuntimeError("no line")
        return play(request)

    team.play = failing  # type: ignore[method-assign]
    with team.agent() as agent:
        assert agent.run("Go.").is_done
        rows = [row.message.text for row in agent.conversation.history() if row.stamp.origin == "tool"]
    failed = "Result of the sub-agent reader (2 of 3), which failed:\nreader failed: RuntimeError: no line"
    assert rows == [RESULTS[0], failed, RESULTS[2]]


def test_an_unknown_sub_agent_does_not_keep_the_others_from_working():
    team = Team()
    mixed = next_step(
        type="Sub-Agent", subAgents=[{"name": "writer", "message": "x"}, {"name": "reader", "message": "north"}]
    )
    play = team.play
    team.play = lambda request: mixed if texts(request) == ["Go."] else play(request)  # type: ignore[method-assign]
    with team.agent() as agent:
        assert agent.run("Go.").is_done
        rows = [row.message.text for row in agent.conversation.history() if row.stamp.origin == "tool"]
    assert rows == [
        "Result of the sub-agent writer (1 of 2), which failed:\nThere is no sub-agent 'writer'. Those you have: "
        "reader.",
        "Result of the sub-agent reader (2 of 2):\nnorth is clear.",
    ]


@pytest.mark.parametrize("turns", range(2, 9))
def test_sub_agents_at_once_never_exceed_the_turns_of_the_run(turns: int):
    """Eight calls are needed: two of the editor, and two of each reader."""
    team = Team()
    with team.agent(limits=Limits(turns=turns)) as agent:
        outcome = agent.run("Go.")
    assert team.seen.total() == min(turns, 8)
    assert outcome.is_done == (turns == 8)
    assert outcome.total.turns == min(turns, 8)


def test_the_outcome_has_the_total_with_all_sub_agents():
    team = Team(store=open_store("memory:"))
    editor = LoopAgent(name="editor", sub_agents=[LoopAgent(name="reader", actions=[team.look])])
    play = team.play

    def nested(request: dict[str, Any]) -> Any:
        if texts(request)[0] == "Edit.":
            return hand_all("Go.", "Go.", name="editor") if len(texts(request)) == 1 else done("Edited.")
        return play(request)

    def make(**more: Any) -> LoopAgent:
        model = ScriptedModel(nested)
        cost = {"cost": lambda usage: 0.5}
        return LoopAgent(model, sub_agents=[editor], **options(store=team.store, **cost, **more))

    with make() as agent:
        outcome = agent.run("Edit.")
    calls = 2 + 2 * (2 + 3 * 2)
    assert (outcome.run.turns, outcome.sub_agents.turns, outcome.total.turns) == (2, calls - 2, calls)
    assert (outcome.run.cost, outcome.total.cost) == (1.0, calls / 2)
    used = outcome.total.usage
    assert (used.output or 0) > (outcome.run.usage.output or 0) > 0
    with make(new_id=lambda: "r9") as again:
        assert again.resume().total == outcome.total  # From the records of the sub-agents.


def test_money_and_tokens_of_sub_agents_count_for_the_limits_of_the_run():
    for limits in (Limits(money=2.0), Limits(tokens=1)):
        team = Team()
        with team.agent(limits=limits, cost=lambda usage: 0.5) as agent:
            outcome = agent.run("Go.")
        assert outcome.run.state == "stopped"
        assert outcome.total.cost is not None
        assert outcome.total.cost <= 2.0 + 2 * 0.5  # Calls that had begun when the limit was reached.


# --------------------------------------------------------------------------------------------------------------- stops


def hanging(team: Team, never: threading.Event, waiting: threading.Semaphore) -> None:
    """Let the second call of each reader hang."""
    play = team.play

    def hang(request: dict[str, Any]) -> Any:
        if len(texts(request)) > 1 and texts(request)[0] != "Go.":
            waiting.release()
            never.wait(60)
        return play(request)

    team.play = hang  # type: ignore[method-assign]


def check_all_stopped(team: Team, chat: Any, reason: str) -> None:
    for each in (chat, *(team.inner(number) for number in (2, 3, 4))):
        (run,) = each.journal.runs()
        assert (run.state, run.reason) == ("stopped", reason)
        assert each._agent.acquire_lock("next").owner == "next"  # The lock is free.
        each._agent.release_lock("next")


def check_resumes(team: Team, interrupted: int = 3) -> None:
    """What was done is not done again. `interrupted`: messages of the requests whose calls the stop interrupted."""
    before = team.seen.copy()
    with team.agent() as agent:
        assert agent.resume().text == "All read."
        assert [row.message.text for row in agent.conversation.history() if row.stamp.origin == "tool"] == RESULTS
    assert team.done == Counter(TASKS)
    repeated = [json.loads(key) for key in team.seen if key in before and team.seen[key] > before[key]]
    assert {len(texts(request)) for request in repeated} <= {interrupted}


def test_closing_the_stream_stops_all_sub_agents():
    team, never, waiting = Team(), threading.Event(), threading.Semaphore(0)
    play = team.play
    hanging(team, never, waiting)
    with team.agent() as agent:
        stream = agent.stream("Go.")
        answered = 0
        for event in stream:
            answered += isinstance(event, SubAgentEvent) and isinstance(event.event, ToolAnswered)
            if answered == 3:
                break
        stream.close()
        check_all_stopped(team, agent.conversation, "the consumer closed the stream")
    never.set()
    team.play = play  # type: ignore[method-assign]
    check_resumes(team)


@pytest.fixture
def heeded_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C: a shell ignores it for background processes, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded_interrupts")
def test_an_interrupt_stops_all_sub_agents_at_once():
    team, never, waiting = Team(), threading.Event(), threading.Semaphore(0)
    play = team.play
    hanging(team, never, waiting)

    def interrupt() -> None:
        for _ in TASKS:
            waiting.acquire(timeout=60)
        _thread.interrupt_main()

    with team.agent() as agent:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            agent.run("Go.")
        check_all_stopped(team, agent.conversation, "KeyboardInterrupt")
    never.set()
    team.play = play  # type: ignore[method-assign]
    check_resumes(team)


def test_cancelling_the_task_stops_all_sub_agents():
    team, never, waiting = Team(), threading.Event(), threading.Semaphore(0)
    play = team.play

    async def hang(request: dict[str, Any]) -> Any:
        if len(texts(request)) > 1 and texts(request)[0] != "Go.":
            waiting.release()
            await asyncio.Event().wait()
        return play(request)

    class Model:
        name, format = "anthropic:scripted", "anthropic"
        inner = ScriptedModel(lambda request: play(request))

        async def complete(self, body: Any) -> Any:
            await hang(body)
            return self.inner.complete(body)

    async def later() -> None:
        reader = AsyncLoopAgent(name="reader", actions=[tool(team.look, is_repeatable=True)])
        async with AsyncLoopAgent(Model(), sub_agents=[reader], **options(store=team.store)) as agent:
            task = asyncio.ensure_future(agent.run("Go."))
            for _ in TASKS:
                await asyncio.to_thread(waiting.acquire, timeout=60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(later())
    chat = open_conversation("sage", store=team.store, format="anthropic", window=100_000)
    check_all_stopped(team, chat, "CancelledError")
    never.set()
    check_resumes(team)


def test_leaving_an_async_stream_stops_all_sub_agents():
    team = Team()

    async def later() -> None:
        async with team.agent(asynchronous=True) as agent, aclosing(agent.stream("Go.")) as events:
            async for event in events:
                if isinstance(event, SubAgentEvent):
                    break

    asyncio.run(later())
    stops = []
    for number in (2, 3, 4):
        assert {run.state for run in team.inner(number).journal.runs()} <= {"stopped"}
        stops += [row.stamp.stop for row in team.inner(number).history() if row.message.role == "assistant"]
    assert stops  # What had arrived is kept.
    assert all(is_interrupted(stop) for stop in stops)
    check_resumes(team, interrupted=1)


# ------------------------------------------------------------------------------------------------------------ resuming


PRESETS = ["keep-last-1" if name == "keep-last-N" else name for name in PRESET_NAMES if name != "off"]


@cache
def requests_of(policy: str) -> frozenset[str]:
    """Return the requests of a run that nothing interrupts."""
    team = Team(policy=policy, summarizer="first-characters")
    with team.agent() as agent:
        assert agent.run("Go.").text == "All read."
    return frozenset(team.seen)


def check_every(stride: int, *, after: bool, repeatable: bool, first: int = 2) -> None:
    """The store fails at its n-th operation; a new agent resumes the run. The presets take turns."""
    n = first
    while True:
        policy = PRESETS[n // 2 % len(PRESETS)]
        team, countdown = Team(policy=policy, summarizer="first-characters"), Countdown(n, after=after)
        broken = team.agent(failing_store(team.store, countdown), repeatable=repeatable)
        with suppress(StoreError):
            broken.run("Go.")
        broken.close()
        with team.agent(repeatable=repeatable) as agent:
            outcome = (
                agent.resume() if agent.conversation.journal.runs() or len(agent.conversation) else agent.run("Go.")
            )
            assert (n, outcome.text, outcome.run.state) == (n, "All read.", "done")
            rows = [row.message.text for row in agent.conversation.history()]
            steps = [step for step in agent.conversation.journal.steps("r1") if step.kind == "sub-agent"]
        assert [step.input for step in steps] == TASKS
        assert rows == ["Go.", hand_all(*TASKS), *RESULTS, done("All read.")], f"operation {n}"
        for step, task in zip(steps, TASKS, strict=True):
            inner = [row.message.text for row in team.inner(step.number).history()]
            assert (inner.count(task), len(inner), inner[-1]) == (1, 4, done(f"{task} is clear."))
        if repeatable:
            assert team.seen.keys() == requests_of(policy), f"operation {n} under {policy}"
        else:
            assert max(team.done.values()) == 1, f"operation {n}"
        if not countdown.is_used_up:
            assert n > 60
            return
        n += stride


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("repeatable", [False, True])
def test_a_run_resumes_after_any_store_failure(after: bool, repeatable: bool):
    check_every(17, after=after, repeatable=repeatable)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("repeatable", [False, True])
def test_a_run_resumes_after_any_store_failure_thorough(after: bool, repeatable: bool):
    """Together the cases fail every operation once before and once after its effect."""
    check_every(2, after=after, repeatable=repeatable, first=2 + repeatable)


def test_sub_agents_that_ended_are_not_run_again():
    """The store fails once east has its result; south and north go on in their conversations."""
    team, ended = Team(), threading.Event()
    play = team.play

    def breaking(request: dict[str, Any]) -> Any:
        if texts(request)[0] != "east" and len(texts(request)) > 1:
            ended.wait(60)
            raise KeyboardInterrupt
        return play(request)

    team.play = breaking  # type: ignore[method-assign]
    with team.agent() as agent:
        stream = agent.stream("Go.")
        while not ended.is_set():
            event = next(stream)
            if isinstance(event, SubAgentEvent) and isinstance(event.event, RunEnded):
                ended.set()
        with pytest.raises(KeyboardInterrupt) as raised:
            list(stream)
    assert raised.value.__notes__ == [
        "Run r1 is stored. resume() continues it; the same input, sent again, begins a new one. Carried out, and not "
        "repeated by resume(): reader (1.2). Sub-agents that resume() continues where they ended: reader (1.1), reader "
        "(1.3)."
    ]
    states = [step.state for step in agent.conversation.journal.steps("r1") if step.kind == "sub-agent"]
    assert states == ["running", "done", "running"]
    calls = team.seen.copy()
    team.play = play  # type: ignore[method-assign]
    check_resumes(team)
    new = [texts(json.loads(key))[0] for key in team.seen - calls]
    assert sorted(new) == ["Go.", "north", "south"]


def test_a_sub_agent_may_be_handed_several_tasks_in_later_steps():
    team = Team()
    play = team.play

    def twice(request: dict[str, Any]) -> Any:
        said = texts(request)
        return hand_all("west", "up") if said[0] == "Go." and len(said) == 5 else play(request)

    team.play = twice  # type: ignore[method-assign]
    with team.agent() as agent:
        assert agent.run("Go.").is_done
    assert team.done == Counter([*TASKS, "west", "up"])


def test_questions_for_approval_come_one_at_a_time():
    team, asking, most = Team(together=True), list[str](), 0
    threads: set[int] = set()

    def approve(call: Any) -> bool:
        nonlocal most
        asking.append(call.call_id)
        threads.add(threading.get_ident())
        most = max(most, len(asking))
        asking.remove(call.call_id)
        return True

    reader = LoopAgent(name="reader", actions=[tool(team.look, needs_approval=True)], approve=approve)
    with LoopAgent(ScriptedModel(team.play), sub_agents=[reader], **options(store=team.store)) as agent:
        assert agent.run("Go.").is_done
    assert (most, threads) == (1, {threading.get_ident()})


def test_a_step_of_one_sub_agent_that_an_earlier_version_stored_is_resumed():
    """Earlier versions stored one step, with the call `1.1`; the form is the same."""
    team = Team(["north"])
    play = team.play

    def broken(request: dict[str, Any]) -> Any:
        if len(texts(request)) > 1:
            raise KeyboardInterrupt
        return play(request)

    team.play = broken  # type: ignore[method-assign]
    with team.agent() as agent, pytest.raises(KeyboardInterrupt):
        agent.run("Go.")
    (step,) = [step for step in agent.conversation.journal.steps("r1") if step.kind == "sub-agent"]
    assert (step.call, step.state) == ("1.1", "running")
    team.play = play  # type: ignore[method-assign]
    with team.agent() as agent:
        assert agent.resume().is_done
    assert team.done == Counter(["north"])


def test_thinking_sub_agents_leave_turns_for_each_other():
    """Each sub-agent has limits of its own, within those of the run."""
    team = Team()
    play = team.play
    team.play = lambda request: think() if texts(request)[0] == "east" else play(request)  # type: ignore[method-assign]
    reader = LoopAgent(name="reader", actions=[team.look], limits=Limits(turns=4))
    with LoopAgent(ScriptedModel(lambda r: team.play(r)), sub_agents=[reader], **options(store=team.store)) as agent:
        outcome = agent.run("Go.")
        rows = [row.message.text for row in agent.conversation.history() if row.stamp.origin == "tool"]
    assert outcome.is_done
    assert outcome.total.turns == 2 + 2 + 4 + 2
    assert [row.partition("\n")[2].startswith("reader reached the limit of turns") for row in rows] == [
        False,
        True,
        False,
    ]
