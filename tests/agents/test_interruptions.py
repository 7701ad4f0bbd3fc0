"""Runs that break off anywhere: nothing is done twice, nothing is lost, every request is legal."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest
from msgspec.structs import replace
from sweeps import STEP, by_thirds

from foveate import AsyncChatAgent, BadInput, ChatAgent, StoreError, tool
from foveate.agents.events import ToolAnswered, ToolCalled
from foveate.agents.limits import Limits
from foveate.stores.memory import MemoryStore
from foveate.testing import ScriptedModel, call, calls
from foveate.testing.faults import Countdown, FailingStore, failing_store

from .agents import agent, history_of, plain, requests, steps, store_failing_at


def results_in(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        block
        for message in request["messages"]
        if message["role"] == "user"
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def asks(request: dict[str, Any]) -> Any:
    """A model whose answer depends on the results so far, so that a request can be repeated."""
    match len(results_in(request)):
        case 0:
            return calls(call("c1", "look", at="a"), call("c2", "send", to="x"), call("c3", "nothing"), text="First.")
        case 3:
            return calls(call("c4", "send", to="y"), call("c5", "look", at="b"))
        case 5:
            return "All done."
    raise AssertionError("No request shows a part of the results of a reply.")


class World:
    """The effects of tools."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()

    def tools(self) -> list[Any]:
        @tool(is_repeatable=True)
        def look(at: str) -> str:
            """Look."""
            self.done[f"look {at}"] += 1
            return f"seen {at}"

        @tool(is_parallel=False)
        def send(to: str) -> str:
            """Send."""
            self.done[f"send {to}"] += 1
            return f"sent {to}"

        return [look, send]


def play(n: int, after: bool, *, again: int = 0) -> bool:
    """Run an agent whose store fails at its n-th operation, and resume it. Return whether it failed."""
    kept, world = MemoryStore(), World()
    store, countdown = store_failing_at(kept, n, after=after)
    try:
        with ChatAgent(ScriptedModel(asks), tools=world.tools(), store=store, **plain()) as first:
            assert first.send("Go.").text == "All done."
    except StoreError:
        pass
    for more in range(1, again + 1):  # It may die again while it resumes.
        dead, _ = store_failing_at(kept, n * more % 17 + 1, after=not after)
        try:
            with ChatAgent(ScriptedModel(asks), tools=world.tools(), store=dead, **plain()) as second:
                second.resume() if len(second.conversation) else second.send("Go.")
        except StoreError:
            pass
    with ChatAgent(ScriptedModel(asks), tools=world.tools(), store=kept, **plain()) as last:
        outcome = last.resume() if len(last.conversation) else last.send("Go.")
        chat = last.conversation
        assert (outcome.text, outcome.run.state) == ("All done.", "done")
        assert world.done["send x"] <= 1
        assert world.done["send y"] <= 1
        history = chat.history()
        results = [row.message.result for row in history if row.message.result]
        assert [result.call_id for result in results] == ["c1", "c2", "c3", "c4", "c5"]
        assert [row.message.text for row in history if row.message.role == "user"] == ["Go."]
        for result in results:
            if result.name == "send":  # The result is honest: the call was done, or its end is unknown.
                was_done = world.done[f"send {'x' if result.call_id == 'c2' else 'y'}"] == 1
                assert result.text.startswith("sent" if result.state == "ok" else "It is not known whether send")
                assert was_done or result.state == "interrupted"
        there = {f"{run.id}/{step.number}": step for run in chat.journal.runs() for step in chat.journal.steps(run.id)}
        for row in history:
            if row.message.result:  # The step holds the full result.
                step = there[row.stamp.step]
                assert (step.call, step.output) == (row.message.result.call_id, row.message.result.text)
                assert step.state == ("done" if row.message.result.state == "ok" else "failed")
                assert step.message == row.id
        assert [run.state for run in chat.journal.runs()] == ["done"]
        assert chat.journal.runs()[0].turns == 3
        assert chat.journal.verify() == []
    return countdown.is_dead


@pytest.mark.parametrize("after", [False, True])
@by_thirds
def test_a_run_that_dies_at_any_store_operation_can_be_resumed(after: bool, n: int):
    while play(n, after):
        n += STEP
    assert n > 30


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_run_that_dies_twice_repeats_nothing(after: bool):
    n = 1
    while play(n, after, again=2):
        n += 1


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_the_next_input_closes_a_run_that_died_anywhere(after: bool):
    n, died = 1, True
    while died:
        kept, world = MemoryStore(), World()
        store, countdown = store_failing_at(kept, n, after=after)
        try:
            with ChatAgent(ScriptedModel(asks), tools=world.tools(), store=store, **plain()) as first:
                first.send("Go.")
        except StoreError:
            pass
        options = plain(store=kept, new_id=lambda: "z")
        with ChatAgent(ScriptedModel(lambda _: "Fine."), tools=world.tools(), **options) as two:
            assert two.send("How is it?").text == "Fine."
            runs = two.conversation.journal.runs()
            assert runs[-1].id == "z"
            assert {run.state for run in runs[:-1]} <= {"done", "stopped"}
            assert "running" not in [state for _, _, state, _ in steps(two.conversation)]
            assert two.conversation.open_calls() == ()
        assert max(world.done["send x"], world.done["send y"]) <= 1
        n, died = n + 1, countdown.is_dead


@pytest.mark.parametrize("after", [False, True])
@by_thirds
def test_an_agent_continues_after_its_store_failed_once(after: bool, n: int):
    failed = True
    while failed:
        world, countdown = World(), Countdown(after=after)
        store = failing_store(MemoryStore(), countdown)
        with ChatAgent(ScriptedModel(asks), tools=world.tools(), store=store, **plain()) as agent:
            countdown.start(n)
            try:
                outcome = agent.send("Go.")
            except StoreError:
                outcome = agent.resume() if len(agent.conversation) else agent.send("Go.")
            failed = countdown.is_used_up
            countdown.start(0)
            assert outcome.text == "All done."
            assert max(world.done["send x"], world.done["send y"]) <= 1
            results = [row.message.result for row in agent.conversation.history() if row.message.result]
            assert [result.call_id for result in results] == ["c1", "c2", "c3", "c4", "c5"]
        n += STEP
    assert n > 30


def reading(request: dict[str, Any]) -> Any:
    done = len(results_in(request))
    return calls(call(f"c{done}", "look", at=f"{done}"), call(f"d{done}", "look", at="b")) if done < 8 else "All done."


@pytest.mark.parametrize("after", [False, True])
def test_a_resumed_run_sends_the_same_request(after: bool):
    """Byte for byte, in a window that is too small for all results."""

    def options(store: Any) -> dict[str, Any]:
        @tool(is_repeatable=True)
        def look(at: str) -> str:
            """Look."""
            return f"{at}: {'word ' * 300}"

        return plain(tools=[look], store=store, window=3_000, policy="prune")

    with ChatAgent(whole := ScriptedModel(reading), **options(MemoryStore())) as agent:
        agent.send("Go.")
        assert agent.conversation.journal.receipts()
    n, is_dead = 1, True
    while is_dead:
        kept = MemoryStore()
        store, countdown = store_failing_at(kept, n, after=after)
        try:
            with ChatAgent(first := ScriptedModel(reading), **options(store)) as agent:
                agent.send("Go.")
        except StoreError:
            pass
        with ChatAgent(second := ScriptedModel(reading), **options(kept)) as two:
            two.resume() if len(two.conversation) else two.send("Go.")
        replied = len(whole.requests) - len(second.requests)
        assert whole.requests[: len(first.requests)] == first.requests
        assert whole.requests[replied:] == second.requests
        assert replied in (len(first.requests), len(first.requests) - 1)  # The last reply may be missing.
        n, is_dead = n + 7, countdown.is_dead
    assert n > 30


def test_calls_left_open_by_another_program_have_an_unknown_end():
    world = World()
    with agent(["Fine."], tools=world.tools()) as one:
        one.conversation.append("Do it.")
        one.conversation.record(calls(call("c1", "look", at="a"), call("c2", "send", to="x")))
        one.send("And?")
        assert history_of(one.conversation)[2:] == [
            ("tool", "seen a"),
            (
                "tool",
                "It is not known whether send was carried out: the run broke off while it was going on. Look what "
                "became of it before you call it again.",
            ),
            ("user", "And?"),
            ("assistant", "Fine."),
        ]
        assert [(run.state, run.task) for run in one.conversation.journal.runs()] == [("done", ""), ("done", "And?")]
    assert world.done == {"look a": 1}


def test_a_fork_takes_the_result_of_an_open_call_from_its_step():
    store, world = MemoryStore(), World()
    with agent(asks, tools=world.tools(), store=store) as one:
        one.send("Go.")
        one.conversation.fork("other", at=2).close()
    with agent(asks, tools=world.tools(), store=store, conversation="other", new_id=lambda: "z") as two:
        assert two.resume().text == "All done."
        assert [run.id for run in two.conversation.journal.runs()] == ["z"]
    assert world.done == {"look a": 1, "send x": 1, "send y": 2, "look b": 2}


def test_resume_after_a_limit_begins_a_new_run():
    world = World()
    with agent(asks, tools=world.tools(), limits=Limits(turns=1)) as one:
        first = one.send("Go.")
        assert (first.run.state, first.run.reason, first.text) == ("stopped", "turns", "First.")
        second, third = one.resume(), one.resume()
        assert (second.run.state, third.run.state, third.text) == ("stopped", "done", "All done.")
        assert [run.id for run in one.conversation.journal.runs()] == ["r1", "r2", "r3"]
        assert [run.task for run in one.conversation.journal.runs()] == ["Go.", "Go.", "Go."]
        assert one.resume() == third
        assert len(requests(one)) == 3


def test_resume_raises_when_nothing_was_begun():
    with agent([]) as one, pytest.raises(BadInput, match="nothing to resume"):
        one.resume()


def test_a_stored_result_is_appended_without_a_call():
    """The process died after the result was stored and before it was appended."""
    found: list[tuple[str, str]] = []
    n = 1
    while ("c1", "done") not in found:
        kept, world, n = MemoryStore(), World(), n + 1
        store, _ = store_failing_at(kept, n, after=False)
        with suppress(StoreError), ChatAgent(ScriptedModel(asks), tools=world.tools(), store=store, **plain()) as one:
            one.send("Go.")
        with agent([], store=kept) as two:
            found = [(call_id, state) for _, call_id, state, _ in steps(two.conversation)]
            assert "tool" not in [role for role, _ in history_of(two.conversation)]
    with agent(asks, tools=world.tools(), store=kept) as two:
        events = list(two.stream())
        called = [event.call.call_id for event in events if isinstance(event, ToolCalled)]
        answered = [event.call.call_id for event in events if isinstance(event, ToolAnswered)]
    assert called == ["c2", "c3", "c4", "c5"]
    assert answered == ["c1", "c2", "c3", "c4", "c5"]
    assert world.done["look a"] == 1


@pytest.mark.parametrize("after", [False, True])
@by_thirds
def test_a_reused_call_id_is_another_call(after: bool, n: int):
    """Some servers number the calls of each reply from the beginning."""
    is_dead = True
    while is_dead:
        done: list[int] = []

        def count(done: list[int] = done) -> int:
            """Count."""
            done.append(1)
            return len(done)

        counting = tool(lambda: count(), name="count")
        kept = MemoryStore()
        store, countdown = store_failing_at(kept, n, after=after)

        def script(request: dict[str, Any]) -> Any:
            return call("c1", "count") if len(results_in(request)) < 3 else "Done."

        try:
            with ChatAgent(ScriptedModel(script, "anthropic"), tools=[counting], store=store, **plain()) as agent:
                agent.send("Count.")
        except StoreError:
            pass
        with ChatAgent(ScriptedModel(script), tools=[counting], store=kept, **plain()) as two:
            two.resume() if len(two.conversation) else two.send("Count.")
            said = [text for role, text in history_of(two.conversation) if role == "tool"]
        known = [text for text in said if not text.startswith("It is not known")]
        assert len(said) == 3
        assert known == sorted(set(known))
        assert len(done) <= 3
        n, is_dead = n + STEP, countdown.is_dead
    assert n > 30


def test_results_of_a_batch_are_stored_even_if_one_cannot_be():
    n, failed = 1, True
    while failed:
        countdown = Countdown()
        tools = [tool(lambda: "did a", name="a"), tool(lambda: "did b", name="b"), tool(lambda: "did c", name="c")]

        def script(request: dict[str, Any]) -> Any:
            return "Done." if results_in(request) else calls(call("c1", "a"), call("c2", "b"), call("c3", "c"))

        store = failing_store(MemoryStore(), countdown)
        with ChatAgent(ScriptedModel(script), tools=tools, store=store, **plain()) as agent:
            countdown.start(n)
            try:
                agent.send("Go.")
            except StoreError:
                agent.resume() if len(agent.conversation) else agent.send("Go.")
            failed = countdown.is_used_up
            countdown.start(0)
            said = [text for role, text in history_of(agent.conversation) if role == "tool"]
        assert len(said) == 3
        assert len([text for text in said if text.startswith("It is not known")]) < 3
        n += 1


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_the_conversation_answers_expand_wherever_a_run_dies(after: bool):
    def long() -> str:
        """Say much."""
        return "word " * 2_000

    def script(request: dict[str, Any]) -> Any:
        match len(results_in(request)):
            case 0:
                return call("c1", "long")
            case 1:
                return call("c2", "long")
            case 2:
                return calls(call("c3", "expand", search="word"), call("c4", "long"))
            case 4:
                return "Done."
        raise AssertionError("No request shows a part of the results of a reply.")

    options = plain(tools=[tool(long, is_repeatable=True)], expand=True, policy="keep-last-1")
    n, is_dead = 1, True
    while is_dead:
        kept = MemoryStore()
        store, countdown = store_failing_at(kept, n, after=after)
        with suppress(StoreError), ChatAgent(ScriptedModel(script), store=store, **options) as agent:
            agent.send("Go.")
        with ChatAgent(ScriptedModel(script), store=kept, **options) as two:
            two.resume() if len(two.conversation) else two.send("Go.")
            results = {row.message.result.call_id: row for row in two.conversation.history() if row.message.result}
        assert sorted(results) == ["c1", "c2", "c3", "c4"]
        assert results["c3"].stamp.expanded
        n, is_dead = n + 2, countdown.is_dead
    assert n > 30


class Cancelling:
    """A countdown that cancels the sending task at the n-th operation of the store."""

    def __init__(self, n: int) -> None:
        self.left = n
        self.task: asyncio.Task[Any] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    def run(self, operation: Callable[[], Any], failure: object) -> Any:
        self.left -= 1
        if self.left == 0 and self.loop and self.task:
            self.loop.call_soon_threadsafe(self.task.cancel)
        return operation()


@pytest.mark.slow
def test_a_send_that_is_cancelled_anywhere_can_be_resumed():
    async def play(n: int) -> bool:
        world, cancelling = World(), Cancelling(n)
        store: Any = failing_store(MemoryStore(), cast(Any, cancelling))
        options = plain(tools=world.tools(), store=store)
        async with AsyncChatAgent(ScriptedModel(asks, asynchronous=True), **options) as agent:
            await agent.open()
            cancelling.loop = asyncio.get_running_loop()
            cancelling.task = asyncio.ensure_future(agent.send("Go."))
            with suppress(asyncio.CancelledError):
                await cancelling.task
            was_cancelled, chat = cancelling.task.cancelled(), agent.conversation
            outcome = await (agent.resume() if len(chat) else agent.send("Go."))
            assert (outcome.text, outcome.run.state) == ("All done.", "done")
            assert max(world.done["send x"], world.done["send y"]) <= 1
            rows = [row for row in await chat.history() if row.message.result]
            assert [row.message.result.call_id for row in rows if row.message.result] == ["c1", "c2", "c3", "c4", "c5"]
            runs = await chat.journal.runs()
            made = {f"{run.id}/{step.number}": step for run in runs for step in await chat.journal.steps(run.id)}
            assert [made[row.stamp.step].output for row in rows] == [row.message.text for row in rows]
            assert {run.state for run in runs} == {"done"}
            return was_cancelled or cancelling.left <= 0

    n = 1
    while asyncio.run(play(n)):
        n += 1
    assert n > 30


@pytest.mark.parametrize("together", [False, True])
def test_a_stream_that_is_left_after_any_event_can_be_resumed(together: bool):
    def tools(world: World) -> list[Any]:
        return [replace(item, is_parallel=together, is_repeatable=False) for item in world.tools()]

    with agent(asks, tools=tools(World())) as one:
        heard = len(list(one.stream("Go.")))
    for events in range(1, heard):
        world = World()
        with agent(asks, tools=tools(world)) as one:
            stream = one.stream("Go.")
            for _ in range(events):
                next(stream)
            stream.close()
            run = one.conversation.journal.runs()[0]
            assert (run.state, run.reason) == ("stopped", "the consumer closed the stream")
            assert one.resume().text == "All done."
            assert max(world.done["send x"], world.done["send y"]) <= 1
            results = [row.message.result for row in one.conversation.history() if row.message.result]
            assert [result.call_id for result in results] == ["c1", "c2", "c3", "c4", "c5"]
            unknown = [result.call_id for result in results if result.text.startswith("It is not known")]
            assert unknown == [] or together  # Calls that run in parallel with the answered one are ignored.
            assert "c1" not in unknown


def test_a_stream_that_is_left_while_it_closes_a_run_leaves_none_running():
    """The next input answers open calls first. A stop during that left the earlier run as running."""
    world = World()
    with agent(asks, tools=world.tools()) as one:
        for content in ("Go.", "And now?"):
            stream = one.stream(content)
            next(event for event in stream if isinstance(event, ToolCalled))
            stream.close()
            (run,) = one.conversation.journal.runs()
            assert (run.state, run.reason) == ("stopped", "the consumer closed the stream")
        assert one.send("And now?").text == "All done."
        assert [run.state for run in one.conversation.journal.runs()] == ["stopped", "done"]


def test_a_model_call_stopped_while_storing_its_step_has_failed():
    """Regression: a `send` that was cancelled at that moment left a step `running` in a stopped run."""
    store, countdown = MemoryStore(), Countdown(after=True)

    class Stopping(FailingStore):
        def put_step(self, head: Any, step: Any, **named: Any) -> None:
            countdown.run(lambda: store.put_step(head, step, **named), lambda: cast(Any, KeyboardInterrupt()))

    with agent(["Hello."], store=Stopping(store, Countdown())) as one:
        countdown.start(1)
        with pytest.raises(KeyboardInterrupt):
            one.send("Hi.")
        (run,) = one.conversation.journal.runs()
        assert (run.state, [step.state for step in one.conversation.journal.steps(run.id)]) == ("stopped", ["failed"])
        assert one.send("Hi again.").text == "Hello."


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("follows", ["send", "resume"])
def test_an_end_that_could_not_be_stored_is_stored_later(after: bool, follows: str):
    """Regression: a model call had ended and the store failed, so its step stayed `running`."""
    n, failed = 1, True
    while failed:
        world, countdown = World(), Countdown(after=after)
        store = failing_store(MemoryStore(), countdown)
        with ChatAgent(ScriptedModel(asks), tools=world.tools(), store=store, **plain()) as agent:
            countdown.start(n)
            with suppress(StoreError):
                agent.send("Go.")
            failed = countdown.is_used_up
            countdown.start(0)
            if follows == "resume" and len(agent.conversation):
                agent.resume()
            else:
                agent.send("Go on.")
            runs = agent.conversation.journal.runs()
            assert "running" not in [run.state for run in runs]
            assert "running" not in [state for _, _, state, _ in steps(agent.conversation)]
            replies = [row for row in agent.conversation.history() if row.message.role == "assistant"]
            told_of = [
                step.message
                for run in runs
                for step in agent.conversation.journal.steps(run.id)
                if step.kind == "model"
            ]
            assert [row.id for row in replies] == [message for message in told_of if message]
            assert sum(run.turns for run in runs) == len(replies)
        n += 1
    assert n > 30
