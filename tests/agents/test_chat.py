"""The chat agent and the ReAct agent: sending, streaming, limits, failures, resuming, and the same with asyncio."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import threading
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from foveate import (
    AsyncChatAgent,
    AsyncReActAgent,
    BadInput,
    ChatAgent,
    DoesNotFit,
    Limits,
    LoopAgent,
    ReActAgent,
    Usage,
    open_conversation,
    tool,
)
from foveate.agents.agent import INSTRUCTION
from foveate.agents.events import (
    ModelReplied,
    ReasoningDelta,
    RunEnded,
    TextDelta,
    ToolAnswered,
    ToolCalled,
    ViewChanged,
)
from foveate.errors import BadSetting, MissingExtra
from foveate.expand import EXPAND_INSTRUCTION
from foveate.testing import CutReply, ProviderError, ScriptedModel, call, calls, say, thought

from .agents import agent, async_agent, history_of, plain, requests


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def overloaded() -> ProviderError:
    return ProviderError(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


def test_an_agent_answers_and_remembers():
    with agent(["Hello, Ada.", "You are Ada."], system="Be kind.") as one:
        assert str(one.send("I am Ada.")) == "Hello, Ada."
        outcome = one.send("Who am I?")
        assert (outcome.text, outcome.is_done, outcome.run.turns) == ("You are Ada.", True, 1)
        last = requests(one)[-1]
        assert [message["role"] for message in last["messages"]] == ["user", "assistant", "user"]
        assert last["system"][0]["text"].startswith("Be kind.\n")
        runs = one.conversation.journal.runs()
        assert [(run.id, run.agent, run.conversation, run.task, run.state, run.result) for run in runs] == [
            ("r1", "chat", "chat", "I am Ada.", "done", "Hello, Ada."),
            ("r2", "chat", "chat", "Who am I?", "done", "You are Ada."),
        ]
        assert runs[0].begun < runs[0].ended < runs[1].begun


def test_a_conversation_continues_by_its_name(tmp_path: Path):
    path = f"sqlite:///{tmp_path}/chat.db"
    with agent(["Hello."], store=path, conversation="support-456") as one:
        one.send("Hi.")
    with agent(["Still here."], store=path, conversation="support-456") as two:
        two.send("And now?")
        assert [role for role, _ in history_of(two.conversation)] == ["user", "assistant"] * 2
        assert len(requests(two)[0]["messages"]) == 3


def test_an_open_conversation_stays_open():
    with open_conversation("mine", format="openai", window=10_000) as chat:
        with ChatAgent(ScriptedModel(["Hi."], "openai"), conversation=chat) as agent:
            assert agent.conversation is chat
            agent.send("Hello.")
        assert len(chat.history()) == 2
        with pytest.raises(BadSetting, match="window, policy: an open conversation keeps its options"):
            ChatAgent(ScriptedModel([]), conversation=chat, window=3, policy="none")


def test_a_stream_yields_all_events_in_order():
    script = [thought("Add them.", calls(call("c1", "add", a=2, b=3), text="Let me see.")), say("It is 5.")]
    with agent(script, tools=[add]) as one:
        events = list(one.stream("2 + 3?"))
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Let me see.It is 5."
        assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "Add them."
        kinds = [type(event) for event in events if not isinstance(event, TextDelta | ReasoningDelta)]
        assert kinds == [ModelReplied, ToolCalled, ToolAnswered, ModelReplied, RunEnded]
        assert [event.turn for event in events if isinstance(event, ModelReplied)] == [1, 2]
        ended = events[-1]
        assert isinstance(ended, RunEnded)
        assert ended.outcome.text == "It is 5."


def test_a_stream_yields_changes_of_the_view():
    def read() -> str:
        """Read."""
        return "word " * 2_000

    script = [*(call(f"c{n}", "read") for n in range(6)), "Done."]
    with agent(script, tools=[read], policy="keep-last-2") as one:
        changes = [event.receipt for event in one.stream("Read.") if isinstance(event, ViewChanged)]
        assert changes == one.conversation.journal.receipts()
        assert len(changes) == 4


def test_closing_the_stream_stops_the_run_and_the_next_one_continues():
    with agent([call("c1", "add", a=1, b=1), "Two.", "Fine."], tools=[add]) as one:
        for event in one.stream("1 + 1?"):
            if isinstance(event, ModelReplied):
                break
        run = one.conversation.journal.runs()[0]
        assert (run.state, run.reason) == ("stopped", "the consumer closed the stream")
        assert one.resume().text == "Two."
        assert one.conversation.journal.runs()[0].state == "done"
        assert one.send("Thanks.").text == "Fine."


# -------------------------------------------------------------------------------------------------------------- limits


def test_a_limit_ends_a_run_after_all_calls_are_answered():
    script = [call(f"c{n}", "add", a=n, b=1) for n in range(3)]
    with agent([*script, "Stopped there.", "Done."], tools=[add], limits=Limits(turns=2)) as one:
        outcome = one.send("Count.")
        assert (outcome.run.state, outcome.run.reason, outcome.run.turns) == ("stopped", "turns", 2)
        assert [role for role, _ in history_of(one.conversation)] == ["user", *["assistant", "tool"] * 2]
        assert one.conversation.open_calls() == ()
        assert one.resume().text == "Stopped there."
        assert one.send("Go on.").text == "Done."


@pytest.mark.parametrize(
    ("limits", "reason", "turns"),
    [
        (Limits(tokens=1), "tokens", 1),
        (Limits(money=0.02), "money", 2),
        (Limits(seconds=0.001), "time", 0),
        (Limits(turns=None, money=0.05), "money", 5),
    ],
)
def test_a_run_that_reaches_a_limit_can_be_continued(limits: Limits, reason: str, turns: int):
    script = (call(f"c{n}", "add", a=n, b=1) for n in range(100))
    with agent(script, tools=[add], limits=limits, cost=lambda _: 0.01) as one:
        run = one.send("Count.").run
        assert (run.state, run.reason, run.turns) == ("stopped", reason, turns)
        assert run.cost == (pytest.approx(turns * 0.01) if turns else None)


def test_a_resumed_run_has_its_full_time_again():
    now = [0]
    with agent([overloaded(), "Hello."], limits=Limits(seconds=10), clock=lambda: now[0]) as one:
        with pytest.raises(ProviderError):
            one.send("Hi.")
        now[0] = 3_600_000
        assert one.resume().run.state == "done"


def test_a_limit_of_money_needs_a_price():
    with pytest.raises(BadSetting, match=r"limits.money needs the price of anthropic:scripted, which is unknown"):
        agent([], limits=Limits(money=1))


def test_a_limit_of_money_names_the_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(MissingExtra, match=r'pip install "foveate\[prices\]"') as raised:
        agent([], limits=Limits(money=1))
    assert "anthropic:scripted" in str(raised.value)


@pytest.mark.parametrize("bound", [0, -1, True, "3", float("nan"), float("inf")])
def test_a_limit_must_be_a_number_above_zero(bound: Any):
    with pytest.raises(BadSetting):
        Limits(turns=bound)


# ------------------------------------------------------------------------------------------------------------ failures


def test_an_error_of_the_provider_is_raised_and_resume_continues():
    with agent([overloaded(), "Hello."]) as one:
        with pytest.raises(ProviderError):
            one.send("Hi.")
        run = one.conversation.journal.runs()[0]
        assert (run.state, run.reason.split(":")[0]) == ("failed", "ProviderError")
        assert [step.state for step in one.conversation.journal.steps("r1")] == ["failed"]
        assert one.resume().text == "Hello."
        assert [(run.id, run.state, run.turns) for run in one.conversation.journal.runs()] == [("r1", "done", 1)]
    with agent([overloaded(), "Hello both."]) as one:
        with pytest.raises(ProviderError):
            one.send("Hi.")
        assert one.send("Hi?").text == "Hello both."
        assert history_of(one.conversation) == [("user", "Hi."), ("user", "Hi?"), ("assistant", "Hello both.")]


def test_a_broken_stream_raises_and_its_pieces_are_not_stored():
    with agent([CutReply(say("Hello there.")), "Hello."]) as one:
        with pytest.raises(ConnectionError):
            list(one.stream("Hi."))
        assert history_of(one.conversation) == [("user", "Hi.")]
        assert one.resume().text == "Hello."


def test_a_prompt_that_is_too_long_is_sent_again_smaller():
    def read(n: int) -> str:
        """Read."""
        return "word " * 1_500

    script = [*(call(f"c{n}", "read", n=n) for n in range(12)), "Done."]
    model = ScriptedModel(script, window=12_000)
    options = plain(window=60_000, tools=[read])  # The program assumes a larger window.
    with ChatAgent(model, **options) as agent:
        assert agent.send("Read.").text == "Done."
        assert agent.conversation.budget.window <= 12_000


def test_blank_or_wrong_input_is_refused():
    with agent([]) as one:
        for nothing in ("", "  \n"):
            with pytest.raises(BadInput, match="The input is blank"):
                one.send(nothing)
        with pytest.raises(BadInput):
            one.send(3)
        assert len(one.conversation) == 0
        assert one.conversation.journal.runs() == []


def test_an_input_can_be_a_list_of_messages():
    with agent(["A cat."]) as one:
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
        one.send({"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]})
        assert one.conversation.journal.runs()[0].task == "What is it?"


def test_a_keyboard_interrupt_stops_the_run_and_resume_continues():
    keys: list[BaseException | None] = [KeyboardInterrupt(), None]

    def approve(_: object) -> bool:
        if error := keys.pop(0):
            raise error
        return True

    options: dict[str, Any] = {"tools": [add], "approve": approve, "approve_all": True}
    with agent([call("c1", "add", a=1, b=1), "Two."], **options) as one:
        with pytest.raises(KeyboardInterrupt):
            one.send("1 + 1?")
        run = one.conversation.journal.runs()[0]
        assert (run.state, run.reason) == ("stopped", "KeyboardInterrupt")
        assert one.resume().text == "Two."


def test_tools_of_plugins_are_offered():
    class Calculator:
        name = "calculator"
        tools = (add,)

        def __call__(self, content: object) -> None: ...

    with agent([call("c1", "add", a=1, b=1), "Two."], plugins=[Calculator()]) as one:
        assert one.send("1 + 1?").text == "Two."
        assert history_of(one.conversation)[2] == ("tool", "2")
    with pytest.raises(BadSetting, match="Two tools have the name add"):
        agent([], plugins=[Calculator()], tools=[add])


def test_an_input_that_fits_no_window_raises_and_the_next_is_answered():
    with agent(["Fine."], window=2_000) as one:
        with pytest.raises(DoesNotFit):
            one.send("word " * 10_000)
        assert one.send("Sorry.").text == "Fine."
        assert [(run.state, len(run.task)) for run in one.conversation.journal.runs()] == [
            ("failed", 2_003),
            ("done", 6),
        ]


def test_a_second_call_at_the_same_time_is_refused():
    begun, go = threading.Event(), threading.Event()

    def wait() -> str:
        begun.set()
        go.wait(30)
        return "waited"

    with agent([call("c1", "wait"), "Done."], tools=[wait]) as one:
        outcomes: list[str] = []
        thread = threading.Thread(target=lambda: outcomes.append(one.send("Wait.").text))
        thread.start()
        begun.wait(30)
        with pytest.raises(BadInput, match="This agent is busy"):
            one.send("And?")
        go.set()
        thread.join()
        assert outcomes == ["Done."]


def test_a_stream_that_was_left_open_keeps_the_agent_busy():
    with agent(["One two.", "Three."]) as one:
        stream = one.stream("Count.")
        next(stream)
        with pytest.raises(BadInput, match="close the stream that you left early"):
            one.send("And?")
        stream.close()
        assert one.send("And?").text == "Three."


def test_a_sync_agent_refuses_an_async_model():
    with (
        ChatAgent(ScriptedModel(["Hi."], asynchronous=True), **plain()) as agent,
        pytest.raises(BadSetting, match="Build the async agent"),
    ):
        agent.send("Hello.")


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "nobody:x"},
        {"model": 3},
        {"conversation": 3},
        {"limits": 3},
        {"limits": {"turns": 3}},
        {"clock": 3},
        {"new_id": "x"},
        {"cost": 0.1},
        {"name": 3},
        {"result_type": ScriptedModel},
        {"options": 3},
        {"plugins": 3},
    ],
)
def test_wrong_arguments_of_an_agent_are_refused(wrong: dict[str, Any]):
    with pytest.raises(BadSetting):
        ChatAgent(**{"model": ScriptedModel([]), "window": 10_000, **wrong})
    with pytest.raises(BadSetting):
        AsyncChatAgent(**{"model": ScriptedModel([]), "window": 10_000, **wrong})


@pytest.mark.parametrize("kind", [ChatAgent, LoopAgent])
@pytest.mark.parametrize("id", [None, 3, ""])
def test_an_id_of_a_run_that_is_no_name_is_refused_before_the_append(kind: Any, id: Any):
    with kind(ScriptedModel(["Hi."]), window=10_000, new_id=lambda: id) as agent:
        with pytest.raises(BadSetting, match="new_id="):
            (agent.send if kind is ChatAgent else agent.run)("Hello.")
        assert len(agent.conversation) == 0


def test_an_unknown_keyword_is_refused():
    for kind in (ChatAgent, AsyncChatAgent):
        with pytest.raises(TypeError, match=rf"{kind.__name__}\(\) got an unexpected keyword argument 'windw'"):
            kind(ScriptedModel([]), windw=3)


def test_a_conversation_of_another_format_is_refused(tmp_path: Path):
    options = {"format": "openai", "window": 10_000, "store": f"sqlite:///{tmp_path}/chat.db"}
    with pytest.raises(BadSetting, match="'anthropic:scripted' uses the format 'anthropic', not 'openai'"):
        ChatAgent(ScriptedModel([]), **options)
    with pytest.raises(BadSetting, match="Leave format= out"):
        asyncio.run(AsyncChatAgent(ScriptedModel([]), **options).open())


def test_a_model_that_cannot_stream_gives_one_text_event():
    class Plain:
        name, format = "anthropic:plain", "anthropic"

        def __init__(self) -> None:
            self.complete = ScriptedModel(["Hello there."]).complete

    with ChatAgent(Plain(), **plain()) as agent:
        assert [event.text for event in agent.stream("Hi.") if isinstance(event, TextDelta)] == ["Hello there."]
        assert not [event for event in agent.stream() if isinstance(event, TextDelta)]


def test_options_are_added_to_every_request():
    with agent(["A.", "B."], options={"temperature": 0}) as one:
        one.send("1")
        list(one.stream("2"))
        assert [request["temperature"] for request in requests(one)] == [0, 0]


# --------------------------------------------------------------------------------------------------------------- ReAct


@dataclasses.dataclass
class Sum:
    """A sum."""

    value: int


def test_a_react_agent_works_on_a_task_until_it_is_done():
    model = ScriptedModel([calls(call("c1", "add", a=1, b=2), call("c2", "add", a=3, b=4)), "3 and 7."], "openai")
    with ReActAgent(model, tools=[add], **plain()) as agent:
        assert agent.run("Add 1 and 2, and 3 and 4.").text == "3 and 7."
        assert model.requests[0]["messages"][0]["content"] == f"{INSTRUCTION}\n\n{EXPAND_INSTRUCTION}"
        assert [event.outcome.text for event in agent.stream() if isinstance(event, RunEnded)] == ["3 and 7."]


@pytest.mark.parametrize("answer", ['{"value":5}', 'It is:\n```json\n{"value": "5"}\n```\n'])
def test_a_final_answer_can_have_a_type(answer: str):
    with ReActAgent(ScriptedModel(["Five.", answer]), result_type=Sum, system="Add.", **plain()) as agent:
        outcome = agent.run("2 + 3?")
        assert (outcome.value, outcome.run.state, outcome.run.turns) == (Sum(5), "done", 2)
        assert history_of(agent.conversation)[2] == (
            "user",
            "Your answer cannot be read: JSON is malformed: invalid character (byte 0). Answer again, with the JSON "
            "value alone.",
        )


def test_three_unreadable_answers_fail_the_run():
    with ReActAgent(ScriptedModel(["Five."] * 3 + ['{"value":5}']), result_type=Sum, **plain()) as agent:
        outcome = agent.run("2 + 3?")
        assert (outcome.value, outcome.run.state, outcome.run.turns) == (None, "failed", 3)
        assert outcome.run.reason.startswith("no answer of the type Sum in 3 tries: Your answer cannot be read")
        assert agent.resume().value == Sum(5)


# ------------------------------------------------------------------------------------------------------------- asyncio


def test_sync_and_async_agents_behave_the_same():
    async def play() -> None:
        async with async_agent([call("c1", "add", a=2, b=3), "It is 5.", "Yes."], tools=[add]) as agent:
            assert (await agent.send("2 + 3?")).text == "It is 5."
            events = [event async for event in agent.stream("Sure?")]
            assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Yes."
            assert (await agent.resume()).text == "Yes."
            assert [run.state for run in await agent.conversation.journal.runs()] == ["done", "done"]

    asyncio.run(play())


def test_an_async_agent_opens_its_conversation_on_first_use():
    async def play() -> None:
        agent = async_agent(["Hi."])
        with pytest.raises(BadInput, match=r"await agent\.open"):
            _ = agent.conversation
        await agent.close()
        first, second = await asyncio.gather(agent.open(), agent.open())
        assert first is second is agent.conversation
        await agent.close()

    asyncio.run(play())


def test_a_conversation_continues_after_a_cancelled_send():
    async def play() -> None:
        begun = asyncio.Event()

        @tool(is_repeatable=True)
        async def wait() -> str:
            begun.set()
            await asyncio.sleep(30 if len(begun_twice) == 0 else 0)
            return "waited"

        begun_twice: list[int] = []
        async with async_agent([call("c1", "wait"), "Done.", "Fine."], tools=[wait]) as agent:
            task = asyncio.ensure_future(agent.send("Wait."))
            await begun.wait()
            with pytest.raises(BadInput, match="busy"):
                await agent.send("And?")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            run = (await agent.conversation.journal.runs())[0]
            assert (run.state, run.reason) == ("stopped", "CancelledError")
            begun_twice.append(1)
            assert (await agent.resume()).text == "Done."
            assert (await agent.send("Thanks.")).text == "Fine."

    asyncio.run(play())


def test_leaving_an_async_stream_closes_it():
    async def play() -> None:
        async with async_agent([call("c1", "add", a=1, b=1), "Two."], tools=[add]) as agent:
            async with aclosing(agent.stream("1 + 1?")) as events:
                async for event in events:
                    if isinstance(event, ToolCalled):
                        break
            assert (await agent.conversation.journal.runs())[0].state == "stopped"
            assert (await agent.resume()).text == "Two."

    asyncio.run(play())


def test_an_async_react_agent_returns_a_result():
    async def play() -> Any:
        model = ScriptedModel(['{"value":5}'], asynchronous=True)
        async with AsyncReActAgent(model, result_type=Sum, **plain()) as agent:
            return (await agent.run("2 + 3?")).value

    assert asyncio.run(play()) == Sum(5)


@pytest.mark.parametrize("kind", [object, Path, 5, "Sum", "x" * 5_000])
def test_a_result_type_without_a_form_in_json_is_refused(kind: Any):
    """Models of pydantic are such types: the error has to say which types are none."""
    with pytest.raises(BadSetting, match="such as a dataclass, a TypedDict or a Struct of msgspec, not ") as caught:
        ReActAgent(ScriptedModel([]), result_type=kind, **plain())
    assert len(str(caught.value)) < 800


def test_usage_and_cost_of_a_run_are_the_sum_of_its_replies():
    def cost(usage: Usage) -> float:
        return float((usage.prompt_tokens or 0) + (usage.output or 0))

    with agent([call("c1", "add", a=2, b=3), "It is 5."], tools=[add], cost=cost) as one:
        run = one.send("2 + 3?").run
        usages = [row.stamp.usage for row in one.conversation.history() if row.stamp.usage]
        assert run.usage.output == sum(usage.output or 0 for usage in usages)
        assert run.cost == sum(map(cost, usages))


@pytest.mark.parametrize("dollars", [Decimal("0.5"), float("nan"), "0.5"])
def test_a_cost_is_a_finite_number(dollars: Any):
    """A Decimal raised a TypeError, and with NaN no limit of money was ever reached."""
    with agent(["Hello."], cost=lambda usage: dollars, limits=Limits(money=1.0)) as one:
        if isinstance(dollars, Decimal):
            assert one.send("Hi.").run.cost == 0.5
        else:
            with pytest.raises(BadSetting, match="It must return dollars, a finite number, or None"):
                one.send("Hi.")
            assert history_of(one.conversation)[-1] == ("assistant", "Hello.")


@pytest.mark.parametrize("system", [3, {"a"}, [3], ["ok", None, object()], b"bytes", lambda: "text"])
def test_a_wrong_system_prompt_is_refused(system: Any):
    with pytest.raises(BadSetting, match="system= must be a text, or a list of texts and blocks, not "):
        agent([], system=system)


@pytest.mark.parametrize("system", [None, "", "Be kind.", ["a", {"type": "text", "text": "b"}], {"text": "c"}, ()])
def test_a_system_prompt_is_accepted_in_any_form(system: Any):
    with agent(["Hello."], "openai", system=system) as one:
        assert one.send("Hi.").text == "Hello."


@pytest.mark.parametrize("asynchronous", [False, True])
def test_requests_follow_the_agents_model_in_an_open_conversation(asynchronous: bool):
    """The conversation was opened for another model: window, rules and prices are those of the agent's model."""

    def named(script: list[Any], name: str) -> ScriptedModel:
        model = ScriptedModel(script, "anthropic", asynchronous=asynchronous)
        model.name = name
        return model

    with open_conversation("talk", model="claude-haiku-4-5", policy="none") as chat:
        if asynchronous:

            async def talk() -> None:
                async with AsyncChatAgent(named(["One."], "anthropic:claude-opus-5"), conversation=chat.aio) as other:
                    await other.send("Hello.")

            asyncio.run(talk())
        else:
            with ChatAgent(named(["One."], "anthropic:claude-opus-5"), conversation=chat) as other:
                other.send("Hello.")
        assert chat.context().window == 1_000_000
        assert chat.history()[-1].stamp.model == "anthropic:claude-opus-5"
        assert chat.prepare().call.model == "claude-haiku-4-5"
        with ChatAgent(ScriptedModel(["Two."]), conversation=chat) as same:
            assert same.send("And?").text == "Two."


def test_an_open_conversation_without_a_model_keeps_its_window():
    model = ScriptedModel(["One."])
    model.name = "anthropic:claude-haiku-4-5"
    with open_conversation("talk", format="anthropic", window=9_000, policy="none") as chat:
        with ChatAgent(model, conversation=chat) as agent:
            agent.send("Hello.")
        assert chat.context().window == 9_000
        assert chat.history()[-1].stamp.model == "anthropic:claude-haiku-4-5"


@pytest.mark.parametrize("store", ["memory:", "sqlite"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_next_input_follows_a_shorter_list(store: str, asynchronous: bool, tmp_path: Path):
    """The conversation goes back before the run: an append of the run would come behind what the list lacks."""
    script: list[Any] = ["One.", call("c1", "add", a=1, b=2), "Two.", call("c2", "add", a=3, b=4), "Three."]
    options: dict[str, Any] = {"store": f"sqlite:///{tmp_path}/chat.db" if store == "sqlite" else store, "tools": [add]}

    async def use_async() -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
        async with async_agent(script, **options) as one:
            await one.send("First.")
            await one.send("Second.")
            await one.conversation.follow([{"role": "user", "content": "First."}])
            assert str(await one.send("Third.")) == "Three."
            return requests(one), [(row.message.role, row.message.text) for row in await one.conversation.history()]

    def use_sync() -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
        with agent(script, **options) as one:
            one.send("First.")
            one.send("Second.")
            one.conversation.follow([{"role": "user", "content": "First."}])
            assert str(one.send("Third.")) == "Three."
            return requests(one), history_of(one.conversation)

    sent, history = asyncio.run(use_async()) if asynchronous else use_sync()
    assert [len(request["messages"]) for request in sent] == [1, 3, 5, 1, 3]
    assert history == [
        ("user", "First."),
        ("user", "Third."),
        ("assistant", ""),
        ("tool", "7"),
        ("assistant", "Three."),
    ]


def test_a_shorter_list_waits_for_an_input_that_can_be_stored():
    with agent(["One.", "Two."]) as one:
        one.send("First.")
        one.conversation.follow([{"role": "user", "content": "First."}])
        with pytest.raises(BadInput):
            one.send([{"role": "robot", "content": "Second."}])
        assert history_of(one.conversation) == [("user", "First."), ("assistant", "One.")]
        one.send("Second.")
        assert history_of(one.conversation) == [("user", "First."), ("user", "Second."), ("assistant", "Two.")]


def test_resume_answers_the_end_of_a_shorter_list():
    with agent(["One.", "Two."]) as one:
        one.send("First.")
        one.conversation.follow([{"role": "user", "content": "First."}])
        assert str(one.resume()) == "Two."
        assert history_of(one.conversation) == [("user", "First."), ("assistant", "Two.")]


@pytest.mark.parametrize("store", ["memory:", "sqlite"])
def test_a_run_goes_on_when_a_list_becomes_shorter_meanwhile(store: str, tmp_path: Path):
    """It has locked its branch."""
    url = f"sqlite:///{tmp_path}/chat.db" if store == "sqlite" else store
    with agent([call("c1", "add", a=1, b=2), "Three.", "Four."], tools=[add], store=url) as one:
        for event in one.stream("First."):
            if isinstance(event, ToolAnswered):
                one.conversation.follow([{"role": "user", "content": "First."}])
        whole = [("user", "First."), ("assistant", ""), ("tool", "3"), ("assistant", "Three.")]
        assert history_of(one.conversation) == whole
        one.conversation.follow([{"role": "user", "content": "First."}])
        one.send("Second.")
        assert history_of(one.conversation) == [("user", "First."), ("user", "Second."), ("assistant", "Four.")]
