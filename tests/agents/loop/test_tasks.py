"""Tasks of loop agents: text, images, messages and earlier turns, also when the store fails while they begin."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from foveate import BadInput, LoopAgent, StoreError, open_store, tool
from foveate.core.messages import Media, Message, assistant, user
from foveate.testing import ScriptedModel
from foveate.testing.faults import Countdown, failing_store

from .scripts import act, ask, done, options, run_both, scripted_agent, texts

PIXEL = Media("image/png", "base64", "iVBORw0KGgo=")
TURNS = [user("Who are you?"), assistant("I am Sage."), user("Read a.py, as you promised.", PIXEL)]


@tool(is_repeatable=True)
def look() -> str:
    """Look around."""
    return "seen"


def history(agent: Any) -> list[Message]:
    return [row.message for row in agent.conversation.history()]


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_task_may_hold_an_image(provider: str):
    outcome, model = run_both([done("A pixel.")], user("What is it?", PIXEL), provider=provider)
    assert (outcome.text, outcome.run.task) == ("A pixel.", "What is it?")
    kinds = [block["type"] for block in model.requests[0]["messages"][-1]["content"]]
    assert kinds == (["text", "image"] if provider == "anthropic" else ["text", "image_url"])


def test_a_task_may_come_with_earlier_turns():
    agent, model = scripted_agent([act("look"), done("Read.")], actions=[look])
    with agent:
        outcome = agent.run(TURNS)
        assert history(agent)[:3] == TURNS
        assert [message["role"] for message in model.requests[0]["messages"]] == ["user", "assistant", "user"]
    assert (outcome.text, outcome.run.task, outcome.run.turns) == ("Read.", "Read a.py, as you promised.", 2)


def test_an_answer_to_a_question_may_hold_an_image():
    agent, _ = scripted_agent([ask("Which?"), done("Seen.")])
    with agent:
        assert agent.run("Look.").run.state == "waiting"
        assert agent.run([{"role": "user", "content": "This one."}, user("And this.", PIXEL)]).is_done
        assert agent.conversation.journal.runs()[-1].task == "This one.\nAnd this."


def test_the_record_of_a_run_holds_the_beginning_of_a_long_task():
    agent, _ = scripted_agent([done()])
    with agent:
        assert agent.run("x" * 3_000).run.task == "x" * 2_000 + "..."
        assert history(agent)[0].text == "x" * 3_000


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_task_with_earlier_turns_survives_any_store_failure(after: bool):
    """The images and the earlier turns are there once, whichever operation fails; nothing is asked twice."""
    n = 2
    while True:
        store, countdown = open_store("memory:"), Countdown(n, after=after)
        first, _ = scripted_agent([act("look"), done("Read.")], actions=[look], store=failing_store(store, countdown))
        with suppress(StoreError):
            first.run(TURNS)
        first.close()

        def play(request: Any) -> str:
            return done("Read.") if "Result of look:\nseen" in texts_of(request) else act("look")

        second = LoopAgent(ScriptedModel(play), actions=[look], **options(store=store, new_id=lambda: "other"))
        with second:
            try:
                outcome = second.resume()
            except BadInput:  # Nothing was appended.
                assert len(second.conversation) == 0
                outcome = second.run(TURNS)
            assert (outcome.text, outcome.run.state) == ("Read.", "done")
            assert outcome.run.task == "Read a.py, as you promised."
            assert [message.text for message in history(second)] == [
                *(message.text for message in TURNS),
                act("look"),
                "Result of look:\nseen",
                done("Read."),
            ]
            assert len(second.conversation.journal.runs()) == 1
        if not countdown.is_used_up:
            assert n > 20
            return
        n += 1


def texts_of(request: Any) -> list[str]:
    return texts({"messages": request["messages"][3:]})
