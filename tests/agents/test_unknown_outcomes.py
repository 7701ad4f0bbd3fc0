"""Runs that must not be repeated: the error and the result say what is unknown, and what to do."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from foveate import BadInput, ChatAgent, LoopAgent, tool
from foveate.agents import OutcomeUnknown, ToolAnswered
from foveate.agents.concurrency import ThreadBatch
from foveate.core.messages import ResultState, Text, ToolResult
from foveate.errors import StoreError
from foveate.stores.memory import MemoryStore
from foveate.testing import Failure, ProviderError, ScriptedModel, StoppedReply, call, calls

from .agents import agent, async_agent, plain, requests, store_failing_at

OVERLOADED = Failure(529, message="Overloaded")


def pay(done: list[str]) -> Any:
    @tool
    def pay(to: str) -> str:
        """Pay."""
        done.append(to)
        return f"paid {to}"

    return pay


def states(chat: Any) -> list[tuple[ResultState, str]]:
    return [(row.message.result.state, row.message.result.text) for row in chat.history() if row.message.result]


def test_an_error_says_what_was_carried_out_and_how_to_continue():
    done: list[str] = []
    with agent([call("c1", "pay", to="Ada"), OVERLOADED, "Done."], tools=[pay(done)]) as one:
        with pytest.raises(ProviderError) as caught:
            one.send("Pay Ada.")
        assert caught.value.__notes__ == [
            "Run r1 is stored. resume() continues it; the same input, sent again, begins a new one. Carried out, and "
            "not repeated by resume(): pay (c1)."
        ]
        assert one.resume().text == "Done."
    assert done == ["Ada"]


def test_an_error_of_a_resumed_run_names_the_earlier_calls():
    done: list[str] = []
    with agent([call("c1", "pay", to="Ada"), OVERLOADED, OVERLOADED, "Done."], tools=[pay(done)]) as one:
        for run in (lambda: one.send("Pay Ada."), one.resume):
            with pytest.raises(ProviderError) as caught:
                run()
            assert "not repeated by resume(): pay (c1)." in caught.value.__notes__[0]
        assert one.resume().text == "Done."
    assert done == ["Ada"]


def test_an_error_without_calls_says_how_to_continue():
    with agent([OVERLOADED]) as one:
        with pytest.raises(ProviderError) as caught:
            one.send("Hi.")
        assert caught.value.__notes__ == [
            "Run r1 is stored. resume() continues it; the same input, sent again, begins a new one."
        ]


def test_an_error_before_the_run_has_no_note():
    with agent([]) as one, pytest.raises(BadInput) as caught:
        one.send(" ")
    assert not hasattr(caught.value, "__notes__")


def test_the_same_error_gets_its_note_once():
    error = ValueError("always the same")
    with agent([error, error]) as one:
        for _ in range(2):
            with pytest.raises(ValueError, match="always the same"):
                one.send("Hi.") if not len(one.conversation) else one.resume()
    assert len(error.__notes__) == 1


@pytest.mark.parametrize("kind", ["chat", "loop"])
def test_ctrl_c_during_a_call_says_that_its_outcome_is_unknown(kind: str, monkeypatch: pytest.MonkeyPatch):
    """The tool goes on in its thread. `resume` does not call it again, and the model is told to look."""
    done: list[str] = []
    began, release = threading.Event(), threading.Event()

    @tool
    def slow(to: str) -> str:
        """Pay slowly."""
        done.append(to)
        began.set()
        release.wait(20)
        return "paid"

    def interrupted(batch: ThreadBatch) -> Any:
        began.wait(20)
        raise KeyboardInterrupt

    one: Any
    if kind == "chat":
        one = agent([call("c1", "slow", to="Ada"), "I look first."], tools=[slow])
    else:
        step = '{"nextStep": {"type": "Actions", "actions": [{"name": "slow", "params": {"to": "Ada"}}]}}'
        model = ScriptedModel([step, '{"taskComplete": true, "message": "I look first."}'])
        one = LoopAgent(model, actions=[slow], **{**plain(), "policy": "expire", "name": "sage"})
    with one:
        with monkeypatch.context() as patched:
            patched.setattr(ThreadBatch, "next", interrupted)
            with pytest.raises(KeyboardInterrupt) as caught:
                list(one.stream("Pay Ada."))
        release.set()
        call_id = "c1" if kind == "chat" else "1.1"
        assert caught.value.__notes__ == [
            "Run r1 is stored. resume() continues it; the same input, sent again, begins a new one. Not known whether "
            f"carried out, and repeated only if the tool is repeatable: slow ({call_id})."
        ]
        (answered,) = [event for event in one.stream() if isinstance(event, ToolAnswered)]
        assert answered.result.state == "interrupted"
        assert answered.result.text.startswith("It is not known whether slow was carried out")
    assert done == ["Ada"]


def test_a_tool_may_report_an_unknown_outcome():
    @tool
    def order(article: str) -> str:
        """Order."""
        raise OutcomeUnknown("The shop did not answer. List your orders before you order again.")

    with agent([call("c1", "order", article="pen"), "I look."], tools=[order]) as one:
        events = [event for event in one.stream("Order a pen.") if isinstance(event, ToolAnswered)]
        text = "The shop did not answer. List your orders before you order again."
        assert [(event.result.state, event.result.text) for event in events] == [("interrupted", text)]
        (run,) = one.conversation.journal.runs()
        (step,) = [step for step in one.conversation.journal.steps(run.id) if step.kind == "action"]
        assert (step.state, step.error) == ("failed", f"Outcome unknown: {text}")


@pytest.mark.parametrize("after", [False, True])
def test_an_unknown_outcome_stays_one_after_a_crash(after: bool):
    """The process ends after the result was stored in its step, and before the model got it."""

    @tool
    def order() -> str:
        """Order."""
        raise OutcomeUnknown("Look first.")

    n, is_dead, unknown = 1, True, 0
    while is_dead:
        kept = MemoryStore()
        store, countdown = store_failing_at(kept, n, after=after)

        def script(request: dict[str, Any]) -> Any:
            return "Done." if "tool_result" in str(request) else call("c1", "order")

        try:
            with ChatAgent(ScriptedModel(script), tools=[order], store=store, **plain()) as one:
                one.send("Order.")
        except StoreError:
            pass
        with ChatAgent(ScriptedModel(script), tools=[order], store=kept, **plain()) as two:
            assert (two.resume() if len(two.conversation) else two.send("Order.")).text == "Done."
            ((state, text),) = states(two.conversation)
            assert state == "interrupted"
            unknown += text.startswith("It is not known whether order was carried out")
        n, is_dead = n + 1, countdown.is_dead
    assert 0 < unknown < n


def test_a_result_that_says_that_it_was_interrupted_is_kept_so():
    @tool
    def order() -> Any:
        """Order."""
        return ToolResult("", (Text("The line broke."),), "interrupted")

    with agent([call("c1", "order"), "Done."], tools=[order]) as one:
        one.send("Order.")
        assert states(one.conversation) == [("interrupted", "The line broke.")]


# ------------------------------------------------------------------------------------------------------- the newest run


def test_resuming_a_run_that_is_done_does_nothing():
    done: list[str] = []
    with agent([call("c1", "pay", to="Ada"), "Done."], tools=[pay(done)]) as one:
        outcome = one.send("Pay Ada.")
        assert [one.resume(), one.resume()] == [outcome, outcome]
        assert len(requests(one)) == 2
    assert done == ["Ada"]


def test_resuming_a_refused_run_does_nothing():
    with agent([StoppedReply("No.", "refusal")]) as one:
        outcome = one.send("Pay Ada.")
        assert (one.resume().run.state, len(requests(one))) == (outcome.run.state, 1)


def test_resuming_a_cancelled_run_repeats_no_call():
    """The task is cancelled while a tool runs."""
    done: list[str] = []

    async def play() -> list[tuple[ResultState, str]]:
        began = asyncio.Event()

        @tool
        async def pay(to: str) -> str:
            """Pay."""
            done.append(to)
            began.set()
            await asyncio.Event().wait()
            return "paid"

        script = [calls(call("c1", "pay", to="Ada")), "I look first."]
        async with async_agent(script, tools=[pay]) as one:
            task = asyncio.ensure_future(one.send("Pay Ada."))
            await began.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            assert "repeated only if the tool is repeatable: pay (c1)." in caught.value.__notes__[0]
            assert (await one.resume()).text == "I look first."
            rows = await one.conversation.history()
            return [(row.message.result.state, row.message.result.text) for row in rows if row.message.result]

    ((state, text),) = asyncio.run(play())
    assert state == "interrupted"
    assert text.startswith("It is not known whether pay was carried out")
    assert done == ["Ada"]
