"""The loop of a loop agent: every kind of step, invalid answers, and limits."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from foveate import AsyncLoopAgent, BadInput, Limits, LoopAgent, Media, Text, View, open_store
from foveate.agents import ModelReplied, RunEnded, TextDelta, ToolAnswered, ToolCalled, tool
from foveate.agents.plugins import TodoList
from foveate.core.catalog import Prompt
from foveate.edits import Pin, Target
from foveate.errors import BadSetting
from foveate.models.anthropic import AnthropicModel
from foveate.policies import expire_results
from foveate.testing import ScriptedModel, StubAnthropic, call
from foveate.types import Lease

from .scripts import act, ask, done, expand, fail, next_step, options, run_both, scripted_agent, texts, think


def look(place: str = "here") -> str:
    """Look somewhere."""
    return f"nothing at {place}"


def test_a_run_carries_out_actions_until_the_end():
    script = [act(("look", {"place": "a"}), ("look", {"place": "b"})), act("look"), done("Nothing.")]
    outcome, model = run_both(script, "Look around.", actions=[look])
    assert (str(outcome), outcome.run.state, outcome.run.turns) == ("Nothing.", "done", 3)
    assert texts(model.requests[2]) == [
        "Look around.",
        script[0],
        "Result of look (1 of 2):\nnothing at a",
        "Result of look (2 of 2):\nnothing at b",
        script[1],
        "Result of look:\nnothing at here",
    ]
    assert (
        len(
            {
                request["system"] if isinstance(request["system"], str) else str(request["system"][0]["text"])
                for request in model.requests
            }
        )
        == 1
    )


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_every_kind_of_step_gives_legal_requests(provider: str):
    script = [think(), act("look"), expand("m1"), "no step", act("fly"), ask("Where?")]
    outcome, model = run_both(script, actions=[look], provider=provider)
    assert (outcome.run.state, outcome.text) == ("waiting", "Where?")
    assert [request["messages"][-1]["role"] for request in model.requests] == ["user"] * 6


def test_actions_run_in_parallel_and_answer_in_order():
    first_may_end = threading.Event()

    def slow() -> str:
        """Wait for the other one."""
        assert first_may_end.wait(60)
        return "slow"

    def fast() -> str:
        """Let the other one end."""
        first_may_end.set()
        return "fast"

    agent, model = scripted_agent([act("slow", "fast"), done()], actions=[slow, fast])
    with agent:
        agent.run("Go.")
    assert texts(model.requests[1])[2:] == ["Result of slow (1 of 2):\nslow", "Result of fast (2 of 2):\nfast"]


def test_the_failure_of_an_action_is_its_result():
    def broken() -> str:
        """Fail."""
        raise ValueError("it is broken")

    script = [act("broken", "fly", ("look", {"plaice": "a"}), "look"), done()]
    outcome, model = run_both(script, actions=[look, broken])
    assert outcome.is_done
    assert texts(model.requests[1])[2:] == [
        "Result of broken (1 of 4), which failed:\nbroken failed: ValueError: it is broken",
        "Result of fly (2 of 4), which failed:\nThere is no action 'fly'. The actions you have: look, broken.",
        "Result of look (3 of 4), which failed:\nlook was not called, for its arguments are wrong: Object contains "
        "unknown field `plaice`. Call it again with a JSON object; it takes place (optional).",
        "Result of look (4 of 4):\nnothing at here",
    ]


def test_actions_that_need_approval_ask_for_it():
    asked: list[str] = []

    def approve(call: Any) -> bool | str:
        asked.append(call.name)
        return "not today"

    agent, model = scripted_agent(
        [act("erase", "look"), done()], actions=[look, tool(look, name="erase", needs_approval=True)], approve=approve
    )
    with agent:
        agent.run("Go.")
    assert asked == ["erase"]
    assert "not today" in texts(model.requests[1])[2]
    assert texts(model.requests[1])[3] == "Result of look (2 of 2):\nnothing at here"


def test_a_question_ends_the_run_and_the_answer_continues():
    agent, model = scripted_agent([ask("Which file?"), done("Read a.py.")], actions=[look])
    with agent:
        first, second = agent.run("Read the file."), agent.run("a.py")
        assert [(run.id, run.task, run.state, run.result) for run in agent.conversation.journal.runs()] == [
            ("r1", "Read the file.", "waiting", "Which file?"),
            ("r2", "a.py", "done", "Read a.py."),
        ]
    assert (first.text, second.text) == ("Which file?", "Read a.py.")
    assert texts(model.requests[1]) == ["Read the file.", ask("Which file?"), "a.py"]


def test_a_failed_task_has_the_reason_of_the_model():
    outcome, _ = run_both([fail("there is no key")])
    assert (outcome.run.state, outcome.run.reason, outcome.text) == ("failed", "there is no key", "")


def test_an_answer_without_a_step_is_returned_to_the_model():
    outcome, model = run_both(["I look.", next_step(type="fly"), done()])
    assert outcome.is_done
    assert texts(model.requests[2]) == [
        "Go.",
        "I look.",
        "Your answer could not be carried out: there is no JSON object in it with taskComplete and nextStep. Answer "
        "again, with one JSON object as your instructions describe it.",
        next_step(type="fly"),
        "Your answer could not be carried out: the type of nextStep is 'fly'; allowed: Actions, Sub-Agent, Chat, "
        "expand-message, Retry, Success, Failed. Answer again, with one JSON object as your instructions describe it.",
    ]


def test_too_many_answers_without_a_step_fail_the_run():
    outcome, model = run_both(["?"] * 10, max_invalid_steps=3)
    assert (outcome.run.state, len(model.requests)) == ("failed", 4)
    assert outcome.run.reason == (
        "4 answers in a row could not be carried out; of the last one: there is no JSON object in it with taskComplete "
        "and nextStep"
    )


def test_a_valid_step_resets_the_count_of_invalid_ones():
    outcome, _ = run_both(["?", "?", think(), "?", "?", done()], max_invalid_steps=2)
    assert outcome.is_done


def test_too_many_expansions_fail_the_run():
    looks = [tool(lambda: "x" * 900, name=f"look{n}", lease=Lease(1, "compact")) for n in range(6)]
    script = [act(*(one.name for one in looks)), think(), *(expand(f"m{n}") for n in range(3, 9)), "?", expand("m3")]
    outcome, model = run_both(script, actions=looks, max_expansions=3, max_invalid_steps=3)
    assert (outcome.run.state, len(model.requests)) == ("failed", 9)
    assert texts(model.requests[6])[-1] == (
        "Your answer could not be carried out: 3 messages in a row were expanded, and nothing else was done; choose "
        "another step. Answer again, with one JSON object as your instructions describe it."
    )


def test_an_expansion_can_be_announced():
    look5 = tool(lambda: "x" * 900, name="look", lease=Lease(1, "compact"))
    script = [act("look"), think(), expand("m3"), done()]
    _, model = run_both(script, actions=[look5], announce_expansions=True)
    assert texts(model.requests[3])[-2:] == [script[2], "[Expanded message m3 to full content at agent's request]"]


@pytest.mark.parametrize(
    ("limits", "reason", "turns"),
    [(Limits(turns=3), "turns", 3), (Limits(tokens=3_000), "tokens", 3), (Limits(seconds=0.01), "time", 2)],
)
def test_a_limit_ends_a_run_between_two_turns(limits: Limits, reason: str, turns: int):
    outcome, model = run_both([think("so"), act("look"), *[think()] * 9], actions=[look], limits=limits)
    assert (outcome.run.state, outcome.run.reason) == ("stopped", reason)
    assert len(model.requests) == outcome.run.turns
    assert outcome.run.turns >= turns - 1
    assert outcome.text.startswith('{"taskComplete": false')


def test_a_limit_of_money_works_with_a_known_price():
    outcome, model = run_both([think()] * 9, limits=Limits(money=1.0), cost=lambda usage: 0.4)
    assert (outcome.run.state, outcome.run.reason, len(model.requests)) == ("stopped", "money", 3)
    agent, _ = scripted_agent([], limits=Limits(money=1.0))
    with agent, pytest.raises(BadSetting, match="price"):
        agent.run("Go.")


def test_events_report_the_course_of_a_run():
    agent, _ = scripted_agent([act("look"), done()], actions=[look])
    with agent:
        events = list(agent.stream("Go."))
    kinds = [type(event) for event in events if not isinstance(event, TextDelta)]
    assert kinds == [ModelReplied, ToolCalled, ToolAnswered, ModelReplied, RunEnded]
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert said == act("look") + done()


def test_verbose_logs_the_steps(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, "foveate"):
        agent, _ = scripted_agent([think("hm"), act("look", "look"), ask("Where?")], actions=[look], verbose=True)
        with agent:
            agent.run("Go.")
    told = [record.getMessage() for record in caplog.records]
    assert told == ["[Turn 1] sage: Retry: hm", "[Turn 2] sage: Actions: look, look", "[Turn 3] sage: Chat: Where?"]


def test_results_expire_with_own_policies():
    long = tool(lambda: "x" * 900, name="look", lease=Lease(1, "compact"))
    agent, model = scripted_agent([act("look"), think(), done()], actions=[long], policy=[expire_results()])
    with agent:
        agent.run("Go.")
    assert [len(texts(request)[2]) < 600 for request in model.requests[1:]] == [False, True]
    assert texts(model.requests[2])[2].endswith("[Compacted: the first 500 of 916 characters; m3]")


PRESETS = [("balanced", True), ("prune", True), ("none", True), (None, True), (lambda view: (), True), ("off", False)]


@pytest.mark.parametrize(("policy", "expires"), PRESETS)
def test_leases_of_actions_count_under_every_policy_but_off(policy: Any, expires: bool):
    long = tool(lambda: "x" * 900, name="look", lease=Lease(1, "compact"))
    agent, model = scripted_agent([act("look"), think(), done()], actions=[long], policy=policy)
    with agent:
        agent.run("Go.")
    assert (len(texts(model.requests[2])[2]) < 600) == expires


def test_sync_agents_refuse_async_actions():
    async def wait() -> str:
        """Wait."""
        await asyncio.sleep(0)
        return "waited"

    async def later() -> str:
        model = ScriptedModel([act("wait"), done("ok")], asynchronous=True)
        async with AsyncLoopAgent(model, actions=[wait], **options()) as agent:
            return (await agent.run("Go.")).text

    assert asyncio.run(later()) == "ok"
    with pytest.raises(BadSetting, match="awaited"):
        scripted_agent([], actions=[wait])


def test_an_agent_without_a_model_raises():
    agent = LoopAgent(**options())
    with pytest.raises(BadSetting, match="Agent sage has no model"):
        agent.run("Go.")
    agent.close()


async def awaited(event: object) -> None: ...


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"name": " "}, "name= must not be blank"),
        ({"actions": [look, look]}, "Two tools have the name look"),
        ({"actions": "look"}, "actions"),
        ({"sub_agents": [look]}, "sub_agents= must be a list of agents"),
        ({"limits": 5}, "limits= must be a Limits"),
        ({"message_expiration_override": 3}, "message_expiration_override"),
        ({"message_expiration_override": Lease(-1)}, "expiration_turns is -1"),
        ({"result_lease": Lease(compact_length=0)}, "compact_length is 0"),
        ({"template": "{{ nme }}"}, "'nme' is undefined"),
        ({"template": "{% for %}"}, "The template of the prompt has a fault"),
        ({"max_invalid_steps": -1}, "max_invalid_steps="),
        ({"max_expansions": 1.5}, "max_expansions="),
        ({"verbose": 1}, "verbose="),
        ({"on_message_lifecycle": 5}, "on_message_lifecycle"),
        ({"on_message_lifecycle": awaited}, "on_message_lifecycle= is called and not awaited"),
        ({"max_parallel": 0}, "max_parallel="),
        ({"conversation": 7}, "conversation="),
        ({"instructions": None}, "instructions="),
    ],
)
def test_wrong_options_are_refused_before_anything_is_opened(wrong: dict[str, Any], told: str):
    with pytest.raises(BadSetting, match=told.replace("(", r"\(")):
        LoopAgent(ScriptedModel([]), **options(**wrong))


def test_unknown_keywords_raise_type_error():
    with pytest.raises(
        TypeError, match=r"LoopAgent\(\) got an unexpected keyword argument 'windw'. Did you mean window?"
    ):
        LoopAgent(ScriptedModel([]), **options(windw=3))


@pytest.mark.parametrize(("task", "error"), [(5, "message is a number"), ([], "The task is blank")])
def test_a_task_that_is_no_message_is_refused_and_leaves_nothing(task: object, error: str):
    agent, model = scripted_agent([])
    with agent:
        with pytest.raises(BadInput, match=error):
            agent.run(task)
        assert (len(agent.conversation), agent.conversation.journal.runs(), model.requests) == (0, [], [])


def test_a_blank_task_is_refused_and_leaves_nothing():
    agent, _ = scripted_agent([])
    with agent:
        with pytest.raises(BadInput, match="The task is blank"):
            agent.run(" \n")
        assert (agent.conversation.journal.runs(), len(agent.conversation)) == ([], 0)


def test_invented_names_are_shown_in_one_line():
    outcome, model = run_both([act("a\nb" * 200), done()], actions=[look])
    assert outcome.is_done
    assert (
        texts(model.requests[1])[-1].splitlines()[0]
        == f"Result of {' '.join(['a', *['ba'] * 199])[:80]}, which failed:"
    )


def test_an_agent_does_one_thing_at_a_time():
    agent, _ = scripted_agent([done(), done()])
    with agent:
        stream = agent.stream("Go.")
        next(stream)
        with pytest.raises(BadInput, match="This agent is busy"):
            agent.run("Something else.")
        stream.close()
        assert agent.run("Something else.").is_done


def test_a_cancelled_run_can_be_resumed():
    store = open_store("memory:")
    is_waiting = asyncio.Event()

    async def wait() -> str:
        """Wait for good."""
        if not is_waiting.is_set():
            is_waiting.set()
            await asyncio.Event().wait()
        return "again"

    def made_async(script: list[Any]) -> tuple[AsyncLoopAgent, ScriptedModel]:
        model = ScriptedModel(script, asynchronous=True)
        return AsyncLoopAgent(model, actions=[look, wait], **options(store=store)), model

    async def cancelled() -> str:
        agent, _ = made_async([act("look"), act("wait")])
        running = asyncio.ensure_future(agent.run("Go."))
        await is_waiting.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        (run,) = await agent.conversation.journal.runs()
        return run.state

    async def resumed() -> list[str]:
        agent, model = made_async([done()])
        assert (await agent.resume()).is_done
        return texts(model.requests[0])

    assert asyncio.run(cancelled()) == "stopped"
    assert asyncio.run(resumed())[2:] == [
        "Result of look:\nnothing at here",
        act("wait"),
        "Result of wait, which failed:\nIt is not known whether wait was carried out: the run broke off while it was "
        "going on. Look what became of it before you call it again.",
    ]


def test_a_stream_without_a_task_resumes_the_run():
    store = open_store("memory:")
    agent, _ = scripted_agent([think("a"), ConnectionError("no line")], store=store)
    with pytest.raises(ConnectionError):
        agent.run("Go.")
    again, _ = scripted_agent([done("all")], store=store)
    events = list(again.stream())
    assert isinstance(events[-1], RunEnded)
    assert events[-1].outcome.text == "all"


def test_tools_of_plugins_are_actions():
    class Notes:
        name = "notes"
        tools = (look,)

        def __call__(self, content: Any) -> None:
            return None

    agent, model = scripted_agent([act("look"), done()], plugins=[Notes()])
    with agent:
        assert agent.run("Go.").is_done
    assert texts(model.requests[1])[-1] == "Result of look:\nnothing at here"
    assert "## look" in agent.system


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_images_and_parts_of_a_result_are_shown(provider: str):
    image = Media("image/png", "base64", "aGk=")

    def photo() -> list[Text | Media]:
        """Take a photo."""
        return [Text("here"), image]

    agent, model = scripted_agent([act("photo"), think(), done()], actions=[photo], provider=provider)
    with agent:
        run = agent.run("Go.").run
        message = agent.conversation.history()[2].message
        (step,) = [step for step in agent.conversation.journal.steps(run.id) if step.kind == "action"]
    assert message.parts == (Text("Result of photo:\nhere"), image)
    assert "aGk=" in step.output
    assert "aGk=" in str(model.requests[1])


def test_a_failed_summary_is_replaced_by_the_first_characters():
    def broken(request: Any) -> str:
        raise ConnectionError("no line")

    long = tool(lambda: "x" * 900, name="look", lease=Lease(1, "compact", "summary"))
    agent, model = scripted_agent([act("look"), think(), think(), done()], actions=[long], summarizer=broken)
    with agent:
        assert agent.run("Go.").is_done
    note = "...\n\n[Compacted: the first 500 of 916 characters; m3]"
    assert [text[2][500:] for text in map(texts, model.requests[2:])] == [note] * 2


@pytest.mark.parametrize("has_own_catalog", [False, True])
def test_a_named_summarizer_uses_the_prompts_of_the_catalog(monkeypatch: pytest.MonkeyPatch, has_own_catalog: bool):
    pytest.importorskip("anthropic")
    client = StubAnthropic(lambda request: "short")
    monkeypatch.setattr(AnthropicModel, "_new_client", lambda self: client)
    catalog = open_store("memory:")
    catalog.put_prompt("", Prompt("Compact Agent Message", "Sum up: {{ text }}"))
    where = {"catalog": catalog} if has_own_catalog else {"store": catalog}
    long = tool(lambda: "x" * 900, name="look", lease=Lease(1, "compact", "summary"))
    script = [act("look"), think(), think(), done()]
    agent, _ = scripted_agent(script, actions=[long], summarizer="anthropic:claude-haiku-4-5", **where)
    with agent:
        agent.run("Go.")
    assert "Sum up: <text-" in str(client.requests[0]["messages"])


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"lines": "2-3"}, "[m3: lines 2-3 of 3,001]\nline 0\nline 1\n"),
        ({"pattern": "line 2999"}, "[m3: matches 1 of 1]\n2999-line 2997\n3000-line 2998\n3001:line 2999"),
    ],
)
def test_a_part_of_a_message_expires_like_the_message(asked: dict[str, Any], told: str):
    def big() -> str:
        """Read a big file."""
        return "\n".join(f"line {n}" for n in range(3_000))

    script = [act("big"), think(), next_step(type="expand-message", message="m3", **asked), think(), think(), done()]
    agent, model = scripted_agent(script, actions=[tool(big, lease=Lease(1, "remove"))])
    with agent:
        agent.run("Go.")
        row = agent.conversation.history()[6]
    assert (row.message.text, row.stamp.origin) == (told, "tool")
    assert row.stamp.lease == Lease(1, "remove", message_type="action-result", action_id="big")
    assert [told in texts(request) for request in model.requests] == [False, False, False, True, False, False]


@pytest.mark.parametrize(
    ("asked", "told"),
    [({"lines": "9-1"}, "lines"), ({"lines": "1-2", "items": "1-2"}, "Pass one of"), ({"pattern": "("}, "pattern")],
)
def test_a_part_that_does_not_exist_is_refused(asked: dict[str, Any], told: str):
    long = tool(lambda: "x\n" * 900, name="look", lease=Lease(1, "compact"))
    script = [act("look"), think(), next_step(type="expand-message", message="m3", **asked), done()]
    outcome, model = run_both(script, actions=[long])
    assert outcome.is_done
    refused = texts(model.requests[3])[-1]
    assert refused.startswith("Your answer could not be carried out: ")
    assert told in refused


def test_an_expansion_is_announced_if_its_step_is_pinned():
    def pin_replies(view: View) -> list[Pin]:
        """A policy that pins all messages of the model."""
        said = [entry for entry in view if entry.message.role == "assistant" and not entry.is_pinned()]
        return [Pin(Target(entry.id)) for entry in said]

    long = tool(lambda: "x" * 900, name="look", lease=Lease(1, "compact"))
    script = [act("look"), think(), expand("m3"), done()]
    outcome, model = run_both(script, actions=[long], policy=[expire_results(), pin_replies])
    assert outcome.is_done
    assert len(texts(model.requests[3])[2]) == 916
    assert texts(model.requests[3])[-2:] == [script[2], "[Expanded message m3 to full content at agent's request]"]


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_model_can_use_the_tool_expand_instead_of_the_step(provider: str):
    long = tool(lambda: "x" * 900, name="look", lease=Lease(1, "compact"))
    script = [act("look"), think(), call("c1", "expand", handle="m3"), done()]
    outcome, model = run_both(script, actions=[long], expand=True, provider=provider)
    assert outcome.is_done
    assert "x" * 900 in str(model.requests[3])
    assert "could not be carried out" not in str(model.requests[3])


def test_every_kind_of_step_is_stored():
    script = [think("hm"), act("look"), expand("m99"), ask("Where?")]
    agent, _ = scripted_agent(script, actions=[look])
    with agent:
        steps = agent.conversation.journal.steps(agent.run("Go.").run.id)
    assert [(step.kind, step.name, step.input, step.state) for step in steps if step.kind != "model"] == [
        ("retry", "retry", "hm", "done"),
        ("action", "look", "{}", "done"),
        ("expand", "m99", "it is needed", "failed"),
        ("chat", "chat", "Where?", "done"),
    ]


def test_the_next_task_does_not_read_all_runs_again(monkeypatch: pytest.MonkeyPatch):
    """Regression: each run read all earlier runs, so that its cost grew with the conversation."""
    agent, _ = scripted_agent([done("one"), done("two"), done("three")], store="memory:")
    with agent:
        agent.run("The first.")
        monkeypatch.setattr(type(agent.conversation.journal), "runs", lambda _: pytest.fail("All runs were read."))
        assert [agent.run(task).text for task in ("The second.", "The third.")] == ["two", "three"]


def test_the_tool_of_a_plugin_is_an_action():
    todo = {"todos": [{"text": "look around", "state": "doing"}]}
    agent, model = scripted_agent([act(("update_todos", todo)), done("ok")], plugins=[TodoList()])
    with agent:
        assert agent.run("Go.").text == "ok"
    assert "## update_todos" in agent.system
    assert texts(model.requests[1])[-1].startswith("Result of update_todos:\n")
    assert "look around" in texts(model.requests[1])[-1]


def test_the_next_task_follows_a_shorter_list():
    agent, model = scripted_agent([done("One."), done("Two."), done("Three.")], actions=[look])
    with agent:
        agent.run("First.")
        agent.run("Second.")
        agent.conversation.follow([{"role": "user", "content": "First."}])
        assert agent.run("Third.").text == "Three."
    assert texts(model.requests[2]) == ["First.", "Third."]
