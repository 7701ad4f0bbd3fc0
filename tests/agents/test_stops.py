"""Replies that were cut off, refused, filtered or paused, and how agents handle them."""

from __future__ import annotations

from typing import Any

import pytest

from foveate import ChatAgent, LoopAgent, ReActAgent, tool
from foveate.agents import ModelReplied
from foveate.agents.tool_calls import CONTINUE
from foveate.core.stamps import Stop
from foveate.errors import StoreError
from foveate.stores.memory import MemoryStore
from foveate.testing import ScriptedModel, StoppedReply, call, calls

from .agents import agent, async_agent, history_of, plain, requests, store_failing_at

CUT = {"anthropic": "max_tokens", "openai": "length"}
PROVIDERS = pytest.mark.parametrize("provider", ["anthropic", "openai"])


def counted(done: list[str]) -> Any:
    @tool
    def send(to: str = "all") -> str:
        """Send."""
        done.append(to)
        return f"sent to {to}"

    return send


@PROVIDERS
def test_the_reason_why_a_reply_ended_is_stored(provider: str):
    script = [call("c1", "send", to="x"), StoppedReply("A stop that came later.", "tired")]
    with agent(script, provider, tools=[counted([])]) as one:
        events = list(one.stream("Go."))
        said = {"anthropic": "tool_use", "openai": "tool_calls"}[provider]
        expected = [Stop("calls", said), Stop("other", "tired")]
        replies = [row for row in one.conversation.history() if row.message.role == "assistant"]
        assert [row.stamp.stop for row in replies] == expected
        assert [event.stop for event in events if isinstance(event, ModelReplied)] == expected
        assert one.conversation.journal.runs()[0].state == "done"
        assert one.conversation.journal.verify() == []


@PROVIDERS
def test_a_reply_that_was_cut_off_is_no_answer(provider: str):
    script = [StoppedReply("The first half, ", CUT[provider]), "and the second half."]
    with agent(script, provider) as one:
        outcome = one.send("Tell me all.")
        assert (outcome.text, outcome.is_done) == ("The first half, ", False)
        assert (outcome.run.state, outcome.run.reason) == ("stopped", "length")
        outcome = one.resume()
        assert (outcome.text, outcome.run.state, outcome.run.reason) == ("and the second half.", "done", "")
        assert history_of(one.conversation) == [
            ("user", "Tell me all."),
            ("assistant", "The first half, "),
            ("user", CONTINUE),
            ("assistant", "and the second half."),
        ]
        assert [row.stamp.origin for row in one.conversation.history()][2] == "derived"
        assert [run.task for run in one.conversation.journal.runs()] == ["Tell me all.", "Tell me all."]
        assert one.resume() == outcome


def test_another_input_can_follow_a_reply_that_was_cut_off():
    with agent([StoppedReply("The first half, ", "max_tokens"), "Fine."]) as one:
        one.send("Tell me all.")
        assert one.send("Never mind.").text == "Fine."
        assert [text for _, text in history_of(one.conversation)][2:] == ["Never mind.", "Fine."]


@PROVIDERS
def test_a_call_that_was_cut_off_is_not_carried_out(provider: str):
    """Its arguments may be readable and mean something else."""
    done: list[str] = []
    cut = StoppedReply(calls(call("c1", "send", to="x"), call("c2", "send")), CUT[provider])
    with agent([cut, "Done."], provider, tools=[counted(done)]) as one:
        assert one.send("Go.").text == "Done."
        results = [row.message.result for row in one.conversation.history() if row.message.result]
        assert [(result.call_id, result.text.partition(":")[0]) for result in results if result] == [
            ("c1", "sent to x"),
            ("c2", "send was not called"),
        ]
    assert done == ["x"]


@pytest.mark.parametrize("after", [False, True])
def test_a_call_that_was_cut_off_is_not_carried_out_after_a_resume(after: bool):
    n, died = 1, True
    while died:
        kept, done = MemoryStore(), list[str]()
        store, countdown = store_failing_at(kept, n, after=after)

        def script(request: dict[str, Any]) -> Any:
            is_answered = any(block["type"] == "tool_result" for block in request["messages"][-1]["content"])
            return (
                "Done."
                if is_answered
                else StoppedReply(calls(call("c1", "send", to="x"), call("c2", "send")), "max_tokens")
            )

        try:
            with ChatAgent(ScriptedModel(script), tools=[counted(done)], store=store, **plain()) as agent:
                agent.send("Go.")
        except StoreError:
            pass
        with ChatAgent(ScriptedModel(script), tools=[counted(done)], store=kept, **plain()) as two:
            outcome = two.resume() if len(two.conversation) else two.send("Go.")
            assert outcome.text == "Done."
        assert done in (["x"], [])
        n, died = n + 1, countdown.is_dead
    assert n > 15


@pytest.mark.parametrize(
    ("provider", "reason", "why"),
    [("anthropic", "refusal", "refusal"), ("openai", "content_filter", "filtered")],
)
def test_a_refusal_is_no_answer(provider: str, reason: str, why: str):
    with agent([StoppedReply("I would rather", reason), "Fine."], provider, result_type=int) as one:
        outcome = one.send("Do harm.")
        assert (outcome.text, outcome.run.state, outcome.run.reason) == ("I would rather", "failed", why)
        again = one.resume()  # The outcome is returned again without a model call.
        assert (again.text, again.run) == (outcome.text, outcome.run)
        assert len(requests(one)) == 1


def test_an_empty_refusal_stays_one_after_another_input():
    store = MemoryStore()
    with agent([StoppedReply("", "refusal")], store=store) as one:
        one.send("Do harm.")
    with agent(["Fine."], store=store, new_id=lambda: "z") as two:
        two.send("Hello.")
        assert [(run.state, run.reason) for run in two.conversation.journal.runs()] == [
            ("failed", "refusal"),
            ("done", ""),
        ]


def test_a_refusal_of_openai_is_recognized():
    response = {
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "refusal": "I cannot help with that."}}]
    }
    with agent([response], "openai") as one:
        outcome = one.send("Do harm.")
        assert (outcome.text, outcome.run.state, outcome.run.reason) == (
            "I cannot help with that.",
            "failed",
            "refusal",
        )


def test_calls_of_a_refused_reply_are_not_carried_out():
    done: list[str] = []
    with agent([StoppedReply(call("c1", "send", to="x"), "refusal")], tools=[counted(done)]) as one:
        assert one.send("Go.").run.reason == "refusal"
        assert history_of(one.conversation)[-1] == (
            "tool",
            "send was not called, for the answer that called it was refused.",
        )
        assert one.conversation.open_calls() == ()
    assert done == []


def test_a_paused_reply_is_continued():
    """A paused turn with the provider's own tools is sent back unchanged."""
    paused = {
        "role": "assistant",
        "type": "message",
        "content": [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "rain"}}],
        "stop_reason": "pause_turn",
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    with agent([paused, "It rains."]) as one:
        assert one.send("Does it rain?").text == "It rains."
        assert [message["role"] for message in requests(one)[1]["messages"]] == ["user", "assistant"]
        assert one.conversation.journal.runs()[0].turns == 2


def test_an_async_agent_behaves_the_same():
    import asyncio

    async def later() -> list[str]:
        async with async_agent([StoppedReply("Half, ", "max_tokens"), "whole."]) as agent:
            first = await agent.send("Tell me.")
            return [first.run.reason, (await agent.resume()).text]

    assert asyncio.run(later()) == ["length", "whole."]


@pytest.mark.parametrize("after", [False, True])
def test_a_reply_that_was_cut_off_is_never_an_answer_after_a_failure(after: bool):
    n, died = 1, True
    while died:
        kept = MemoryStore()
        store, countdown = store_failing_at(kept, n, after=after)

        def script(request: dict[str, Any]) -> Any:
            said = [block["text"] for message in request["messages"] for block in message["content"]]
            return "and whole." if CONTINUE in said else StoppedReply("Half, ", "max_tokens")

        try:
            with ChatAgent(ScriptedModel(script), store=store, **plain()) as agent:
                assert agent.send("Go.").run.reason == "length"
        except StoreError:
            pass
        with ChatAgent(ScriptedModel(script), store=kept, **plain()) as two:
            outcome = two.resume() if len(two.conversation) else two.send("Go.")
            if outcome.run.reason == "length":  # The reply had not been recorded.
                outcome = two.resume()
            assert (outcome.text, outcome.run.state) == ("and whole.", "done")
            assert [text for _, text in history_of(two.conversation)] == ["Go.", "Half, ", CONTINUE, "and whole."]
            assert {run.state for run in two.conversation.journal.runs()} <= {"done", "stopped"}
        n, died = n + 1, countdown.is_dead
    assert n > 8


def test_a_react_agent_stops_at_a_reply_that_was_cut_off():
    with ReActAgent(ScriptedModel([StoppedReply("{", "max_tokens"), "7"]), result_type=int, **plain()) as agent:
        assert agent.run("How many?").run.reason == "length"
        assert agent.resume().value == 7


def loop(script: list[Any]) -> tuple[LoopAgent, ScriptedModel]:
    model = ScriptedModel(script)
    return LoopAgent(model, **{**plain(), "policy": "expire", "name": "sage"}), model


DONE = '{"taskComplete": true, "message": "done"}'


def test_a_loop_agent_learns_that_its_step_was_cut_off():
    one, model = loop([StoppedReply('{"nextStep": {"type": "Act', "max_tokens"), DONE])
    with one:
        assert one.run("Go.").text == "done"
    assert "it was cut off, for it was as long as it may be; say less" in str(model.requests[1]["messages"][-1])


def test_a_loop_agent_carries_out_a_complete_step_of_a_cut_reply():
    one, _ = loop([StoppedReply(DONE + " And now I", "max_tokens")])
    with one:
        assert one.run("Go.").text == "done"


def test_a_refusal_ends_the_run_of_a_loop_agent():
    one, model = loop([StoppedReply("No.", "refusal")])
    with one:
        outcome = one.run("Go.")
        assert (outcome.run.state, outcome.run.reason, outcome.text) == ("failed", "refusal", "No.")
    assert len(model.requests) == 1


def test_chat_shows_that_an_answer_was_cut_off(capsys: pytest.CaptureFixture[str]):
    from foveate.agents import Outcome, RunEnded
    from foveate.cli.chat.rendering import ScreenState, render
    from foveate.core.runs import AgentRun

    def line(state: Any, reason: str) -> str:
        run = AgentRun("r1", "chat", "one", state=state, reason=reason)
        return "".join(piece.text for piece in render(ScreenState(), RunEnded(Outcome("", run)))[1])

    assert "the provider cut the answer at its largest length. /resume continues it." in line("stopped", "length")
    assert "the model refuses to answer" in line("failed", "refusal")
    assert "a filter of the provider cut the answer" in line("failed", "filtered")
