"""Answers that the user stops: kept, marked, billed, and continued."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest

from foveate import (
    AsyncChatAgent,
    AsyncLoopAgent,
    AsyncReActAgent,
    ChatAgent,
    LoopAgent,
    ReActAgent,
    StoreError,
    Text,
    open_conversation,
    tool,
)
from foveate.agents import ReasoningDelta, RunEnded, SubAgentEvent, TextDelta
from foveate.agents.tool_calls import CONTINUE_STOPPED
from foveate.conversation import aio
from foveate.core.messages import Message, Reasoning, ToolCall
from foveate.core.stamps import Usage, is_interrupted
from foveate.core.totals import sum_usage
from foveate.models.anthropic import anthropic_model
from foveate.stores.memory import MemoryStore
from foveate.testing import ScriptedModel, SlowReply, call, calls
from foveate.testing.server import StubServer

from .agents import agent, async_agent, history_of, plain, requests, store_failing_at

FORMATS = pytest.mark.parametrize("format", ["anthropic", "openai", "openai_responses", "gemini"])


def reply(format: str) -> Message:
    parts = (
        Reasoning("Let me think about it.", format=format),
        Text("I look at the door, and at the window."),
        ToolCall("c1", "look", '{"at": "the door"}'),
        ToolCall("c2", "look", '{"at": "the window"}'),
    )
    return Message("assistant", parts)


def script(format: str) -> Callable[[dict[str, Any]], Any]:
    """Return a model that calls two tools, and then answers; its answers depend on the request alone."""

    def answer(request: dict[str, Any]) -> Any:
        said = str(request)
        return "Both are closed, as far as I can see." if "seen the window" in said else reply(format)

    return answer


def looking(done: list[str]) -> Any:
    @tool(is_parallel=False)
    def look(at: str) -> str:
        """Look."""
        done.append(at)
        return f"seen {at}"

    return look


def check(chat: Any, texts: list[str], done: list[str]) -> None:
    """Assert that a conversation is in order. `texts`: what the consumer saw of each reply."""
    rows = chat.history()
    replies = [row for row in rows if row.message.role == "assistant"]
    assert ["".join(part.text for part in row.message.parts if isinstance(part, Text)) for row in replies] == texts
    runs = chat.journal.runs()
    assert sum(run.turns for run in runs) == len(replies)
    used = Usage()
    for row in replies:
        assert row.stamp.usage is not None
        used = sum_usage(used, row.stamp.usage)
    assert sum_usage(*(run.usage for run in runs), *[Usage()] * (2 - len(runs))) == used
    totals = chat.totals()
    assert (totals.usage.input, totals.usage.output) == (used.input, used.output)
    assert len(done) == len(set(done))
    assert chat.journal.verify() == []
    assert "running" not in [step.state for run in runs for step in chat.journal.steps(run.id)]


class Watch:
    """What a consumer sees: the texts of each reply, as far as they were shown."""

    def __init__(self) -> None:
        self.replies: list[str] = []
        self.is_open = False
        self.has_begun = False

    def see(self, event: object) -> None:
        match event:
            case TextDelta(text):
                self.begin()
                self.replies[-1] += text
            case ReasoningDelta():
                self.begin()
            case _ if type(event).__name__ == "ModelReplied":
                self.begin()
                self.is_open = False

    def begin(self) -> None:
        if not self.is_open:
            self.replies.append("")
            self.is_open = True

    def stop(self) -> None:
        self.is_open = False


@pytest.mark.slow
@FORMATS
@pytest.mark.parametrize("then", ["resume", "send"])
def test_a_chat_can_be_stopped_after_every_event(format: str, then: str):
    whole = len(list(agent(script(format), format, tools=[looking([])]).stream("Look.")))
    for count in range(1, whole):
        done: list[str] = []
        seen = Watch()
        with agent(script(format), format, tools=[looking(done)]) as one:
            stream = one.stream("Look.")
            for _ in range(count):
                seen.see(next(stream))
            stream.close()
            was_open = seen.is_open
            seen.stop()
            run = one.conversation.journal.runs()[0]
            assert (run.state, run.reason) == ("stopped", "the consumer closed the stream")
            newest = one.conversation.history()[-1]
            if was_open:
                assert newest.message.role == "assistant"
                assert newest.stamp.stop is not None
                assert newest.stamp.stop.kind == "interrupted"
            for event in one.stream("Go on.") if then == "send" else one.stream():
                seen.see(event)
            check(one.conversation, seen.replies, done)
            assert sorted(done) == ["the door", "the window"]
            notes = [text for role, text in history_of(one.conversation) if text == CONTINUE_STOPPED]
            assert len(notes) == (then == "resume" and was_open and newest.message.text.strip() != "")
            assert one.conversation.totals().calls_estimated == was_open


def test_the_model_sees_what_it_had_said():
    with agent(["one two three four five", "six seven"]) as one:
        stream = one.stream("Count.")
        said = [next(stream) for _ in range(3)]
        stream.close()
        assert one.resume().text == "six seven"
        assert history_of(one.conversation) == [
            ("user", "Count."),
            ("assistant", "".join(event.text for event in said if isinstance(event, TextDelta))),
            ("user", CONTINUE_STOPPED),
            ("assistant", "six seven"),
        ]
        assert [row.stamp.origin for row in one.conversation.history()][2] == "derived"
        assert [run.state for run in one.conversation.journal.runs()] == ["done"]
        seen = requests(one)[1]["messages"]
        assert [message["role"] for message in seen] == ["user", "assistant", "user"]
        assert seen[1]["content"][0]["text"] == "one two three"


def test_another_input_follows_what_was_said():
    with agent(["one two three four five", "Fine."]) as one:
        stream = one.stream("Count.")
        next(stream)
        stream.close()
        assert one.send("Stop counting.").text == "Fine."
        assert [text for _, text in history_of(one.conversation)] == ["Count.", "one ", "Stop counting.", "Fine."]
        assert [run.state for run in one.conversation.journal.runs()] == ["stopped", "done"]


def test_an_answer_can_be_stopped_twice():
    with agent(["one two three", "four five six", "seven"]) as one:
        for _ in range(2):
            stream = one.stream("Count.") if not len(one.conversation) else one.stream()
            next(stream)
            stream.close()
        one.resume()
        assert [text for _, text in history_of(one.conversation)] == [
            "Count.",
            "one ",
            CONTINUE_STOPPED,
            "four ",
            CONTINUE_STOPPED,
            "seven",
        ]


def test_calls_of_a_stopped_answer_are_never_carried_out():
    """The user may have stopped it because of them."""
    done: list[str] = []
    deleting = calls(call("c1", "look", at="the door"), text="I delete everything now.")
    with agent([deleting, "As you wish."], tools=[looking(done)]) as one:
        stream = one.stream("Clean up.")
        for event in stream:
            if isinstance(event, TextDelta) and "now" in event.text:
                break
        stream.close()
        assert one.send("No!").text == "As you wish."
    assert done == []


def test_an_exception_records_nothing_of_the_answer():
    """It may be sent again; the rest of a broken answer is no wish of the user."""
    with agent(["one two three", "Hello."]) as one:
        stream = one.stream("Count.")
        next(stream)
        with pytest.raises(ValueError, match="the screen broke"):
            stream.throw(ValueError("the screen broke"))
        assert history_of(one.conversation) == [("user", "Count.")]
        assert one.resume().text == "Hello."


class StoppingModel(ScriptedModel):
    """Raises an error instead of the n-th piece of a stream, as Ctrl-C does while a program waits."""

    def __init__(self, *arguments: Any, error: BaseException, place: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.error, self.place = error, place

    def stream(self, body: Any) -> Any:
        if self._asynchronous:
            return self._stopped_later(body)
        return self._stopped(body)

    def _stopped(self, body: Any) -> Iterator[Any]:
        pieces = list(super().stream(body))
        for number, piece in enumerate(pieces):
            if number == self.place and len(self.requests) == 1:
                raise self.error
            yield piece

    async def _stopped_later(self, body: Any) -> Any:
        for number, piece in enumerate([piece async for piece in super().stream(body)]):
            if number == self.place and len(self.requests) == 1:
                raise self.error
            yield piece


@pytest.mark.slow
@FORMATS
def test_ctrl_c_while_the_program_waits_keeps_the_answer(format: str):
    for place in itertools.count():
        done: list[str] = []
        error = KeyboardInterrupt()
        model = StoppingModel(script(format), format, error=error, place=place)
        seen: list[str] = []
        with ChatAgent(model, tools=[looking(done)], **plain()) as one:
            try:
                seen = [event.text for event in one.stream("Look.") if isinstance(event, TextDelta)]
                assert place > 5
                return
            except KeyboardInterrupt:
                said = [text for role, text in history_of(one.conversation) if role == "assistant"]
                assert said == ([] if place == 0 else said)
                assert seen == []
            assert one.conversation.journal.runs()[0].reason == "KeyboardInterrupt"
            watch = Watch()
            for event in one.stream():
                watch.see(event)
            replies = [row for row in one.conversation.history() if row.message.role == "assistant"]
            check(one.conversation, [*said, *watch.replies], done)
            assert len(replies) == 2 + (place > 0)


class HangingModel(ScriptedModel):
    """Waits for ever after the first pieces of its first answer."""

    def __init__(self, script: Any, pieces: int) -> None:
        super().__init__(script, asynchronous=True)
        self.pieces, self.hangs = pieces, asyncio.Event()

    async def stream(self, body: Any) -> Any:
        number = 0
        async for piece in super().stream(body):
            if number == self.pieces and len(self.requests) == 1:
                self.hangs.set()
                await asyncio.Event().wait()
            yield piece
            number += 1


@pytest.mark.parametrize("kind", [AsyncChatAgent, AsyncReActAgent, AsyncLoopAgent])
def test_a_cancelled_task_keeps_the_answer(kind: Any):
    """The task is cancelled while it waits for the n-th piece of the answer."""
    final = '{"taskComplete": true, "message": "one two three"}' if kind is AsyncLoopAgent else "one two three"

    async def play(count: int) -> bool:
        seen: list[str] = []
        model = HangingModel(lambda _: final, count)
        async with kind(model, **{**plain(), "policy": "expire", "name": "sage"}) as one:

            async def listen() -> None:
                async with aclosing(one.stream("Count.")) as stream:
                    async for event in stream:
                        seen.append(event.text if isinstance(event, TextDelta) else "")

            task = asyncio.ensure_future(listen())
            waiting = asyncio.ensure_future(model.hangs.wait())
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if task.done():
                return False
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            rows = await one.conversation.history()
            assert [row.message.text for row in rows[1:]] == (["".join(seen)] if count else [])
            assert [row.stamp.stop.kind for row in rows[1:]] == ["interrupted"] * (count > 0)
            outcome = await one.resume()
            assert (outcome.text, outcome.run.state) == ("one two three", "done")
            assert outcome.run.turns == (2 if count else 1)
            assert len(await one.conversation.history()) == (4 if count else 2)
            return True

    count = 0
    while asyncio.run(play(count)):
        count += 1
    assert count > 2


class LateWorkers:
    """Threads that begin an operation only some steps of the event loop later."""

    def __init__(self, workers: ThreadPoolExecutor) -> None:
        self.workers = workers

    def submit(self, *call: Any, steps: int = 3) -> None:
        if steps:
            asyncio.get_running_loop().call_soon(lambda: self.submit(*call, steps=steps - 1))
        else:
            self.workers.submit(*call)


@pytest.mark.parametrize("where", ["model", "consumer"])
@pytest.mark.parametrize("kind", [AsyncChatAgent, AsyncLoopAgent])
def test_a_task_that_is_cancelled_again_and_again_keeps_the_answer(
    kind: Any, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A cancel scope of AnyIO, in which Starlette streams a response, cancels each await until the task ends."""
    late = LateWorkers(aio._workers())
    monkeypatch.setattr(aio, "_workers", lambda: late)
    words = '{"taskComplete": true, "message": "one two three"}'

    async def play() -> list[str]:
        model = HangingModel(lambda _: words, 3)
        store = f"sqlite:///{tmp_path}/chats.db"  # Its calls are awaited, unlike those of a store in memory.
        async with kind(model, **{**plain(), "name": "sage", "store": store}) as one:

            async def listen() -> None:
                async with aclosing(one.stream("Count.")) as stream:
                    async for event in stream:
                        seen.append(event.text)
                        if where == "consumer":
                            model.hangs.set()
                            await asyncio.Event().wait()

            def cancel() -> None:
                if not task.done():
                    task.cancel()
                    asyncio.get_running_loop().call_soon(cancel)

            seen: list[str] = []
            task = asyncio.ensure_future(listen())
            await model.hangs.wait()
            cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            rows, (run,) = await one.conversation.history(), await one.conversation.journal.runs()
            assert (run.state, [row.stamp.stop.kind for row in rows[1:]]) == ("stopped", ["interrupted"])
            return ["".join(seen), *[row.message.text for row in rows[1:]]]

    seen, stored = asyncio.run(play())
    assert seen
    assert stored == seen


def test_an_async_stream_that_is_closed_keeps_the_answer():
    async def play() -> list[tuple[str, str]]:
        async with async_agent(["one two three", "four"]) as one:
            async with aclosing(one.stream("Count.")) as stream:
                async for _ in stream:
                    break
            await one.resume()
            return [(row.message.role, row.message.text) for row in await one.conversation.history()]

    assert asyncio.run(play()) == [
        ("user", "Count."),
        ("assistant", "one "),
        ("user", CONTINUE_STOPPED),
        ("assistant", "four"),
    ]


def test_an_async_stream_that_the_end_of_the_loop_closes_raises_nothing(caplog: pytest.LogCaptureFixture):
    """Nothing can be awaited then: the run breaks off, without a RuntimeError in the log of asyncio."""
    store = MemoryStore()

    async def leave() -> None:
        async for _ in async_agent(["one two three"], store=store).stream("Count."):
            break

    async def go_on() -> str:
        async with async_agent(["four"], store=store, lock_timeout=0, new_id=lambda: "r2") as one:
            return (await one.resume()).text

    asyncio.run(leave())
    assert asyncio.run(go_on()) == "four"
    assert caplog.records == []


def test_a_sync_model_of_an_async_agent_keeps_the_answer():
    async def play() -> list[str]:
        async with AsyncChatAgent(ScriptedModel(["one two three", "four"]), **plain()) as one:
            async with aclosing(one.stream("Count.")) as stream:
                async for _ in stream:
                    break
            return [row.message.text for row in await one.conversation.history()]

    assert asyncio.run(play()) == ["Count.", "one "]


@pytest.mark.parametrize("after", [False, True])
def test_a_stop_with_a_failing_store_loses_no_more_than_the_answer(after: bool):
    """The store fails at its n-th operation, while the answer is being recorded or before."""
    n, is_dead = 1, True
    while is_dead:
        kept = MemoryStore()
        store, countdown = store_failing_at(kept, n, after=after)
        with suppress(StoreError), agent(["one two three"], store=store) as one:
            stream = one.stream("Count.")
            next(stream)
            stream.close()
        with agent(["four", "five"], store=kept) as two:
            two.resume() if len(two.conversation) else two.send("Count.")
            texts = [text for _, text in history_of(two.conversation)]
            assert texts in (["Count.", "four"], ["Count.", "one ", CONTINUE_STOPPED, "four"])
            check(two.conversation, [text for role, text in history_of(two.conversation) if role == "assistant"], [])
        n, is_dead = n + 1, countdown.is_dead
    assert n > 8


def test_a_stop_while_the_reply_is_being_recorded_records_it_once(caplog: pytest.LogCaptureFixture):
    """The answer was whole: it is neither cut nor doubled. A warning said that another writer had answered."""

    class Stopping:
        def __init__(self, agent: ChatAgent) -> None:
            self.record, self.left = agent.conversation._agent.record, 1
            agent.conversation._agent.record = self  # type: ignore[method-assign, assignment]

        def __call__(self, *arguments: Any, **facts: Any) -> str:
            id = self.record(*arguments, **facts)
            if self.left:
                self.left = 0
                raise KeyboardInterrupt
            return id

    with agent(["one two three"]) as one:
        Stopping(one)
        with pytest.raises(KeyboardInterrupt):
            list(one.stream("Count."))
        assert history_of(one.conversation) == [("user", "Count."), ("assistant", "one two three")]
        assert one.conversation.history()[1].stamp.stop is not None
        assert one.conversation.history()[1].stamp.stop.kind == "end"  # type: ignore[union-attr]
        (run,) = one.conversation.journal.runs()
        assert [step.state for step in one.conversation.journal.steps(run.id)] == ["done"]
        assert run.turns == 1
        outcome = one.resume()
        assert (outcome.text, outcome.run.state, outcome.run.turns) == ("one two three", "done", 1)
        check(one.conversation, ["one two three"], [])
    assert caplog.records == []


def test_a_real_stream_keeps_the_providers_counts_and_thinking():
    server = StubServer(ScriptedModel([SlowReply(reply("anthropic"), 30), "Fine."], "anthropic"))
    with server:
        import anthropic

        client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
        with ChatAgent(anthropic_model("claude-haiku-4-5", client), tools=[looking([])], **plain()) as one:
            stream = one.stream("Look.")
            said = ""
            for event in stream:
                said += event.text if isinstance(event, TextDelta) else ""
                if "door" in said:
                    break
            stream.close()
            row = one.conversation.history()[1]
            reasoning, text = row.message.parts
            assert isinstance(reasoning, Reasoning)
            assert reasoning.signature
            assert isinstance(text, Text)
            assert text.text == said
            assert row.stamp.usage is not None
            assert row.stamp.usage.prompt_tokens == server.models[""].billed[0].total
            assert one.resume().text == "Fine."
            sent = server.models[""].requests[1]["messages"][1]["content"]
            assert [block["type"] for block in sent] == ["thinking", "text"]


def test_a_typed_answer_that_was_stopped_is_asked_for_again():
    with ReActAgent(ScriptedModel(["4 2", "42"]), result_type=int, **plain()) as one:
        stream = one.stream("How many?")
        next(stream)
        stream.close()
        assert one.resume().value == 42


# ---------------------------------------------------------------------------------------------------------- loop agents


DONE = '{"taskComplete": true, "message": "It is done."}'


def loop(script: Any, store: Any = None, **options: Any) -> LoopAgent:
    keywords = {**plain(store=store or MemoryStore()), "policy": "expire", "name": "sage", **options}
    return LoopAgent(ScriptedModel(script), **keywords)


def test_a_loop_agent_answers_again_after_a_stop_at_any_event():
    act = '{"nextStep": {"type": "Actions", "actions": [{"name": "look", "params": {"at": "the door"}}]}}'

    def answer(request: dict[str, Any]) -> str:
        return DONE if "seen the door" in str(request) else act

    whole = len(list(loop(answer, actions=[looking([])]).stream("Look.")))
    for count in range(1, whole):
        done: list[str] = []
        seen = Watch()
        with loop(answer, actions=[looking(done)]) as one:
            stream = one.stream("Look.")
            for _ in range(count):
                seen.see(next(stream))
            stream.close()
            seen.stop()
            for event in one.stream():
                seen.see(event)
            check(one.conversation, seen.replies, done)
            assert done == ["the door"]
            assert [run.state for run in one.conversation.journal.runs()] == ["done"]


def test_a_new_task_of_a_loop_agent_follows_what_was_said():
    with loop([DONE, DONE]) as one:
        stream = one.stream("First.")
        next(stream)
        stream.close()
        assert one.run("Second.").text == "It is done."
        assert [role for role, _ in history_of(one.conversation)] == ["user", "assistant", "user", "assistant"]
        assert [run.state for run in one.conversation.journal.runs()] == ["stopped", "done"]


def test_a_sub_agent_that_is_stopped_continues():
    hand = '{"nextStep": {"type": "Sub-Agent", "subAgent": {"name": "reader", "message": "Read."}}}'
    store = MemoryStore()

    def build(script: list[str]) -> LoopAgent:
        reader = LoopAgent(name="reader", description="Reads.", window=100_000, policy="expire")
        return loop(script, store, sub_agents=[reader])

    with build([hand, DONE]) as one:
        stream = one.stream("Read it.")
        said = ""
        for event in stream:
            inner = getattr(event, "event", None)
            if isinstance(inner, TextDelta):
                said += inner.text
                if len(said) > 10:
                    break
        stream.close()
    names = [name for name in store.names("") if "/" in name]
    with build([DONE, DONE]) as two:
        events = list(two.stream())
        assert isinstance(events[-1], RunEnded)
        assert events[-1].outcome.text == "It is done."
        inner_chat = open_conversation(names[0], store=store, window=100_000, format="anthropic")
        assert [text for role, text in history_of(inner_chat) if role == "assistant"] == [said, DONE]


def test_sub_agents_at_once_keep_what_they_had_said():
    """Each is stopped in the middle of its own answer; nothing that was shown is lost, and nothing is done twice."""
    places = ["north", "east", "south"]
    hand = [{"name": "reader", "message": place} for place in places]
    handed = json.dumps({"nextStep": {"type": "Sub-Agent", "subAgents": hand}})

    def answer(request: dict[str, Any]) -> str:
        said = str(request["messages"])
        if "Read all." in said:
            return DONE if "is clear" in said else handed
        place = next(place for place in places if place in str(request["messages"][0]))
        if "seen " in said or "It is not known whether look was carried out" in said:
            return json.dumps({"taskComplete": True, "message": f"{place} is clear."})
        look = {"type": "Actions", "actions": [{"name": "look", "params": {"at": place}}]}
        return json.dumps({"nextStep": look})

    count, has_ended = 1, False
    while not has_ended:
        done: list[str] = []
        store = MemoryStore()
        shown: dict[str, str] = {}
        reader = LoopAgent(name="reader", description="Reads.", actions=[looking(done)])
        with loop(answer, store, sub_agents=[reader]) as one:
            stream = one.stream("Read all.")
            for event in itertools.islice(stream, count):
                if isinstance(event, SubAgentEvent) and isinstance(event.event, TextDelta):
                    shown[event.step] = shown.get(event.step, "") + event.event.text
                has_ended = isinstance(event, RunEnded)
            stream.close()
            if not has_ended:
                assert one.resume().text == "It is done."
            assert [run.state for run in one.conversation.journal.runs()] == ["done"]
            assert one.conversation.journal.verify() == []
        assert sorted(done) == sorted(places)
        for step, text in shown.items():
            with open_conversation(f"sage/{step}", store=store, window=100_000, format="anthropic") as inner:
                rows = [row for row in inner.history() if row.message.role == "assistant"]
                assert "".join(row.message.text for row in rows).startswith(text.rstrip())
                (run,) = inner.journal.runs()
                assert (run.state, run.turns) == ("done", len(rows))
                assert inner.totals().calls_estimated == sum(is_interrupted(row.stamp.stop) for row in rows)
        count += 11
    assert count > 30
