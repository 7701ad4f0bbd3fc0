"""Several agents in one conversation, in threads and processes: nothing is done twice, wherever one is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from itertools import cycle
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any

import pytest

from foveate import AsyncChatAgent, ChatAgent, ConflictError, StoreError, ToolResult, open_store, plugin, tool
from foveate.agents import lock
from foveate.agents.lock import forget_owner, new_owner
from foveate.errors import ConversationBusy
from foveate.ports import Database
from foveate.stores.memory import MemoryStore
from foveate.testing import ScriptedModel, call, calls

from .agents import store_failing_at
from .locking_child import agent

HERE = Path(__file__).resolve().parent
SRC = HERE.parent.parent / "src"
ONCE = Counter({"send x": 1, "send y": 1, "send z": 1})


def begun(store: Database, folder: Path) -> None:
    """Return a conversation whose agent died after a reply with three calls that were not begun."""
    with agent(store, folder) as one:
        left = one.stream("Go.")
        for event in left:
            if type(event).__name__ == "ToolCalled":
                break
        left.close()
        assert len(one.conversation.open_calls()) == 3
    (folder / "asked").unlink()


def lines(path: Path) -> Counter[str]:
    return Counter(path.read_text("utf-8").splitlines() if path.exists() else ())


def check_whole(store: Database, folder: Path, *, is_quiet: bool) -> None:
    """Check that the run ended and nothing was done twice. `is_quiet`: no process died, so no request was repeated."""
    done, asked = lines(folder / "done"), lines(folder / "asked")
    with agent(store, folder) as last:
        outcome, chat = last.resume(), last.conversation
        assert (outcome.text, outcome.run.state) == ("All done.", "done")
        done, asked = lines(folder / "done"), lines(folder / "asked")
        results = [row.message.result for row in chat.history() if row.message.result]
        assert [result.call_id for result in results] == ["c1", "c2", "c3", "c4", "c5"]
        replies = [row for row in chat.history() if row.message.role == "assistant"]
        assert [len(row.message.calls) for row in replies] == [3, 2, 0]
        assert [row.stamp.turn for row in replies] == [1, 2, 3]
        sent = {"c2": "send x", "c3": "send y", "c4": "send z"}
        for result in results:
            if result.call_id in sent:  # The result is honest: the call was done, or its end is unknown.
                was_done = done[sent[result.call_id]] == 1
                assert was_done if result.state == "ok" else "not known" in result.text
        assert [run.state for run in chat.journal.runs()] == ["done"]
        steps = [step for run in chat.journal.runs() for step in chat.journal.steps(run.id)]
        assert [step.number for step in steps] == [*range(1, len(steps) + 1)]
        assert "running" not in {step.state for step in steps}
        told = {row.stamp.step: row.id for row in chat.history() if row.message.result}
        assert {f"{step.run}/{step.number}": step.message for step in steps if step.kind == "action"} == told
        assert chat.journal.verify() == []
        owner = new_owner()
        assert chat._agent.acquire_lock(owner).owner == owner  # The lock is free.
        forget_owner(owner)
    assert all(count <= ONCE[line] for line, count in done.items() if line.startswith("send"))
    assert min(done["look a"], done["look b"]) >= 1
    if is_quiet:
        assert done == ONCE + Counter(["look a", "look b"])
        assert asked == Counter({"3": 1, "5": 1})


# ------------------------------------------------------------------------------------------------------------- threads


def resumed_together(agents: list[ChatAgent]) -> list[object]:
    """Resume several agents at once, each in its own thread, and return their outcomes."""
    barrier, found = Barrier(len(agents)), list[object]([None] * len(agents))

    def work(place: int) -> None:
        barrier.wait()
        try:
            found[place] = agents[place].resume().text
        except StoreError as error:
            found[place] = error

    threads = [Thread(target=work, args=(place,)) for place in range(len(agents))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_agents_that_resume_at_once_do_the_work_of_one(tmp_path: Path):
    store = MemoryStore()
    begun(store, tmp_path)
    agents = [agent(store, tmp_path) for _ in range(4)]
    assert resumed_together(agents) == ["All done."] * 4
    check_whole(store, tmp_path, is_quiet=True)


def survived(n: int, folder: Path, *, after: bool) -> bool:
    """Resume two agents at once, of which one's store fails at its n-th operation. Return whether it failed."""
    folder.mkdir()
    kept = MemoryStore()
    begun(kept, folder)
    with agent(kept, folder) as living:
        store, countdown = store_failing_at(kept, 1_000_000, after=after)
        doomed = agent(store, folder)
        countdown.left = n
        found = resumed_together([living, doomed])
        assert found[0] == "All done."
    assert isinstance(found[1], StoreError) or found[1] == "All done."
    check_whole(kept, folder, is_quiet=False)
    return countdown.is_dead


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_the_other_agent_continues_when_one_dies_at_any_operation(tmp_path: Path, after: bool):
    """All operations are tried, as the waiting agent may have few: every second one fails before it takes effect, the
    others after it.
    """
    died = [survived(n, tmp_path / str(n), after=after) for n in range(1 + after, 46, 2)]
    assert sum(died) > 1  # If it always comes second; more if it does the work


def test_async_agents_wait_for_each_other():
    """A waiting request can be cancelled, and has done nothing."""

    async def play() -> tuple[list[str], list[str]]:
        store, slow = MemoryStore(), asyncio.Event()

        @tool
        async def think() -> str:
            """Think."""
            await slow.wait()
            return "thought"

        def made(said: str) -> AsyncChatAgent:
            script = [call("c1", "think"), said] if said == "one" else [said]
            model = ScriptedModel(script, asynchronous=True)
            return AsyncChatAgent(model, tools=[think], store=store, conversation="chat", window=50_000)

        async with made("one") as one, made("two") as two, made("three") as three:
            working = asyncio.ensure_future(one.send("First."))
            while len(one.conversation) < 2:
                await asyncio.sleep(0)
            waiting, leaving = asyncio.ensure_future(two.send("Second.")), asyncio.ensure_future(three.send("Third."))
            await asyncio.sleep(0.05)
            leaving.cancel()
            assert not working.done()
            assert not waiting.done()
            slow.set()
            said = [(await working).text, (await waiting).text]
            await two.conversation.refresh()
            return said, [row.message.text for row in await two.conversation.history()]

    said, history = asyncio.run(play())
    assert said == ["one", "two"]
    assert history == ["First.", "", "thought", "one", "Second.", "two"]


def test_an_agent_appends_nothing_while_another_holds_the_lock(tmp_path: Path):
    store = MemoryStore()
    with agent(store, tmp_path) as one, agent(store, tmp_path, lock_timeout=0) as two:
        working = one.stream("Go.")
        next(working)
        for use in (lambda: two.send("And?"), two.resume):
            with pytest.raises(
                ConversationBusy, match="Conversation 'one' is busy: another agent did not finish within 0 seconds"
            ):
                use()
        assert list(working)[-1].outcome.text == "All done."
        assert two.send("And?").text == "All done."
        assert [row.message.text for row in two.conversation.history() if row.message.role == "user"] == ["Go.", "And?"]


def taken_over(store: Database, folder: Path, when: str, **late: Any) -> tuple[object, list[str]]:
    """Stop an agent at an event of this kind until another one has taken over, then continue it.

    Return its outcome, and the other one's results.
    """
    with agent(store, folder, **late) as one:
        working = one.stream()
        for event in working:
            if type(event).__name__ == when:
                break
        forget_owner(one._loop._lock.owner)  # As if its process had ended.
        with agent(store, folder) as two:
            assert two.resume().text == "All done."
            said = [row.message.result.text for row in two.conversation.history() if row.message.result]
        try:
            list(working)
        except StoreError as error:
            return error, said
        return None, said


@pytest.mark.parametrize("when", ["ToolCalled", "ToolAnswered", "ModelReplied"])
def test_an_agent_that_lost_its_lock_does_nothing_more(tmp_path: Path, when: str):
    store = MemoryStore()
    begun(store, tmp_path)
    error, said = taken_over(store, tmp_path, when)
    assert isinstance(error, ConversationBusy), error
    # Calls that were begun have an unknown end; the new owner carries out the others.
    begun_before = {"ToolCalled": [], "ToolAnswered": [1, 2], "ModelReplied": []}[when]
    expected = ["seen a", "sent x", "sent y", "sent z", "seen b"]
    for place, (text, wanted) in enumerate(zip(said, expected, strict=True)):
        assert text == wanted or (place in begun_before and "not known" in text)
    check_whole(store, tmp_path, is_quiet=False)
    assert lines(tmp_path / "asked") == Counter({"3": 1, "5": 1})


def test_plugin_content_is_not_repeated_by_an_agent_that_lost_its_lock():
    """The agent stops between the result of a tool and the prompt that shows it, to which a plugin adds content."""
    store = MemoryStore()

    @plugin(after_tools=True, save=True)
    def note(content: Any) -> str:
        return "Mind the gap." if isinstance(content[0], ToolResult) else ""

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    def made(*script: Any) -> ChatAgent:
        shared: dict[str, Any] = {"store": store, "conversation": "chat", "window": 50_000}
        return ChatAgent(ScriptedModel(list(script)), tools=[look], plugins=[note], **shared)

    with made(call("c1", "look"), "Never asked.") as first, made("Done.") as second:
        working = first.stream("Go.")
        next(event for event in working if type(event).__name__ == "ToolAnswered")
        forget_owner(first._loop._lock.owner)
        assert second.resume().text == "Done."
        with pytest.raises(ConversationBusy):
            list(working)
        texts = [row.message.text for row in second.conversation.history()]
        assert [text for text in texts if "Mind the gap." in text] == texts[3:4]
        assert len(texts) == 5


class Late:
    """A model that calls a function before it answers."""

    name, format, window = "anthropic:late", "anthropic", 50_000

    def __init__(self, before: Callable[[], object], answer: str) -> None:
        self._before, self._model = before, ScriptedModel([answer])

    def complete(self, body: Any) -> object:
        self._before()
        return self._model.complete(body)


def test_a_tool_result_of_an_agent_that_lost_its_lock_is_logged(caplog: pytest.LogCaptureFixture):
    """The model learns that the end is unknown; the log says that the call was carried out."""
    store = MemoryStore()
    shared: dict[str, Any] = {"store": store, "conversation": "chat", "window": 50_000}

    @tool
    def send() -> str:
        """Send."""
        forget_owner(first._loop._lock.owner)
        with ChatAgent(ScriptedModel(["I do not know."]), tools=[send], **shared) as second:
            assert second.resume().text == "I do not know."
        return "sent"

    with ChatAgent(ScriptedModel([call("c1", "send")]), tools=[send], **shared) as first:
        with pytest.raises(ConversationBusy):
            first.send("Go.")
        first.conversation.refresh()
        results = [row.message.text for row in first.conversation.history() if row.message.result]
        assert [text.partition(":")[0] for text in results] == ["It is not known whether send was carried out"]
    assert "send was carried out (c1), and its result could not be stored" in caplog.text


@pytest.mark.parametrize("is_async", [False, True])
def test_waiting_calls_are_not_made_after_the_lock_is_lost(is_async: bool):
    """There are more calls than may run at once. The new owner has answered that their end is unknown."""
    store, sent, owner, is_told = MemoryStore(), list[str](), list[str](), Event()
    shared: dict[str, Any] = {"store": store, "conversation": "chat", "window": 50_000}
    script = [calls(*(call(f"c{n}", "send", to=f"{n}") for n in range(1, 6)))]

    def listen(event: object, agent: Any) -> None:
        owner[:] = [agent._loop._lock.owner]
        if type(event).__name__ == "ToolAnswered":
            is_told.set()

    def send(to: str) -> str:
        sent.append(to)
        if to == "2":
            assert is_told.wait(60)
            forget_owner(owner[0])
            with ChatAgent(ScriptedModel(["I do not know."]), tools=[tool(send)], **shared) as other:
                assert other.resume().text == "I do not know."
        return "sent"

    async def send_later(to: str) -> str:
        async with asyncio.timeout(60):
            while to == "2" and not is_told.is_set():
                await asyncio.sleep(0)
        return send(to)

    async def play() -> None:
        tools = [tool(send_later, name="send")]
        model = ScriptedModel(script, asynchronous=True)
        agent = AsyncChatAgent(model, tools=tools, max_parallel=1, **shared)
        async with agent, aclosing(agent.stream("Go.")) as events:
            async for event in events:
                listen(event, agent)

    def play_without() -> None:
        with ChatAgent(ScriptedModel(script), tools=[tool(send)], max_parallel=1, **shared) as agent:
            for event in agent.stream("Go."):
                listen(event, agent)

    with pytest.raises(ConversationBusy):
        asyncio.run(play()) if is_async else play_without()
    assert sent == ["1", "2"]
    with ChatAgent(ScriptedModel([]), **shared) as last:
        results = [row.message.result for row in last.conversation.history() if row.message.result]
        assert ["not known" in result.text for result in results] == [False, True, True, True, True]


def test_a_late_reply_is_not_added_after_another_agent_answered():
    """The agent lost its lock during the model call."""
    store = MemoryStore()
    shared: dict[str, Any] = {"store": store, "conversation": "chat", "window": 50_000}

    def meanwhile() -> None:
        forget_owner(first._loop._lock.owner)
        with ChatAgent(ScriptedModel(["From the second."]), **shared) as second:
            assert second.resume().text == "From the second."

    with ChatAgent(Late(meanwhile, "From the first."), **shared) as first:
        with pytest.raises(ConversationBusy, match=r"lost the lock on 'chat'.*Nothing was written"):
            first.send("Who is there?")
        first.conversation.refresh()
        assert [row.message.text for row in first.conversation.history()] == ["Who is there?", "From the second."]
        assert [(run.state, run.result) for run in first.conversation.journal.runs()] == [("done", "From the second.")]
        steps = first.conversation.journal.steps(first.conversation.journal.runs()[0].id)
        assert [(step.kind, step.state) for step in steps] == [("model", "failed"), ("model", "done")]
        assert first.resume().text == "From the second."


def test_a_late_reply_of_an_agent_that_lost_its_lock_is_dropped():
    """The new owner's model call is still running; its reply is the only answer."""
    store, thinks, taken = MemoryStore(), Event(), Event()
    shared: dict[str, Any] = {"store": store, "conversation": "chat", "window": 50_000}
    raised: list[BaseException] = []

    def slow() -> None:
        thinks.set()
        assert taken.wait(60)

    def play() -> None:
        try:
            first.send("Who is there?")
        except ConversationBusy as error:
            raised.append(error)

    def meanwhile() -> None:
        taken.set()
        thread.join(60)

    first = ChatAgent(Late(slow, "From the first."), **shared)
    thread = Thread(target=play)
    thread.start()
    assert thinks.wait(60)
    forget_owner(owner := first._loop._lock.owner)
    with ChatAgent(Late(meanwhile, "From the second."), **shared) as second:
        assert second.resume().text == "From the second."
        (error,) = raised
        assert "Another agent has taken over the work in 'chat'" in str(error)
        assert isinstance(error, ConversationBusy)
        assert error.owner not in ("", owner)
        chat = second.conversation
        assert [row.message.text for row in chat.history()] == ["Who is there?", "From the second."]
        (run,) = chat.journal.runs()
        assert (run.state, run.turns) == ("done", 1)
        assert [(step.state, bool(step.message)) for step in chat.journal.steps(run.id)] == [
            ("failed", False),
            ("done", True),
        ]


def test_the_second_reply_to_one_turn_is_not_recorded(tmp_path: Path):
    """Two programs without an agent request the same turn; the second reply is refused."""
    store = MemoryStore()
    with agent(store, tmp_path) as one, agent(store, tmp_path) as two:
        chat, other = one.conversation, two.conversation
        chat.append("Hello.")
        other.refresh()
        turns = [(each, each.prepare().turn) for each in (chat, other)]
        chat.append("I say something more meanwhile.")
        assert [turn for _, turn in turns] == [1, 1]
        other._agent.record({"role": "assistant", "content": "Hello from two."}, call=1)
        with pytest.raises(ConflictError, match="Another writer has answered call 1 of 'one' first"):
            chat._agent.record({"role": "assistant", "content": "Hello from one."}, call=1)
        assert [row.message.text for row in other.history()] == [
            "Hello.",
            "I say something more meanwhile.",
            "Hello from two.",
        ]


def test_the_message_of_a_step_is_added_once(tmp_path: Path):
    store = MemoryStore()
    with agent(store, tmp_path) as one, agent(store, tmp_path) as two:
        one.conversation._agent.append("Hello.", step="r1/1")
        assert two.conversation._agent.append("Hello.", step="r1/1") == tuple(
            row.id for row in one.conversation.history()
        )
        two.conversation._agent.append("Hello.", step="r1/2")
        one.conversation.append("Hello.")
        assert [row.stamp.step for row in one.conversation.history()] == ["r1/1", "r1/2", ""]


# ----------------------------------------------------------------------------------------------------------- processes


class Child:
    """A process that runs `locking_child.py`."""

    def __init__(self, url: str, folder: Path, *dies: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SRC), str(HERE.parent.parent)])}
        command = [sys.executable, "-m", "tests.agents.locking_child", url, str(folder), *(dies or ("never",))]
        self._process = subprocess.Popen(
            command, env=environment, cwd=HERE.parent.parent, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def is_ready(self) -> bool:
        assert self._process.stdout is not None
        return self._process.stdout.readline() == "ready\n"

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def stands_still(self) -> bool:
        """Wait until the process is stopped or has ended. Return whether it is stopped."""
        _, status = os.waitpid(self._process.pid, os.WUNTRACED)
        return os.WIFSTOPPED(status)

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> str:
        """Return the last line of its output; "" if it was killed before."""
        said, _ = self._process.communicate(timeout=120)
        return said.strip()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'one.db'}"
    return str(request.getfixturevalue("postgres_url"))


def together(url: str, folder: Path, ends: list[tuple[str, ...]]) -> list[str]:
    """Resume in several processes at once, each killed at its place. Return their output."""
    children = [Child(url, folder, *dies) for dies in ends]
    ready = [child for child in children if child.is_ready()]  # A process may die before.
    for child in ready:
        child.go()
    return [child.end() for child in children]


@pytest.mark.slow
def test_processes_that_resume_at_once_do_the_work_of_one(url: str, tmp_path: Path):
    with open_store(url) as store:
        begun(store, tmp_path)
        assert together(url, tmp_path, [()] * 3) == ["All done."] * 3
        check_whole(store, tmp_path, is_quiet=True)


@pytest.mark.slow
def test_others_continue_after_a_process_is_killed_in_a_tool(url: str, tmp_path: Path):
    with open_store(url) as store:
        begun(store, tmp_path)
        said = together(url, tmp_path, [("tool", "1"), ()])
        assert said[1] == "All done."
        check_whole(store, tmp_path, is_quiet=False)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="Here no process can be made to stand still.")
@pytest.mark.parametrize(
    "where", ["model 1", *(pytest.param(where, marks=pytest.mark.slow) for where in ("model 2", "tool 2", "tool 4"))]
)
def test_a_stopped_process_does_nothing_when_it_wakes_without_its_lock(
    url: str, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
):
    with open_store(url) as store:
        begun(store, tmp_path)
        child = Child(url, tmp_path, "still", *where.split())
        assert child.is_ready()
        child.go()
        try:
            assert child.stands_still()
            with monkeypatch.context() as patched:  # Do not wait a minute.
                patched.setattr(lock, "_SILENCE", {"unknown": 0.0, "alive": 0.0})
                with agent(store, tmp_path, is_parallel=False) as second:
                    assert second.resume().text == "All done."
                    history = second.conversation.history()
            done, asked = lines(tmp_path / "done"), lines(tmp_path / "asked")
        finally:
            child.wake()
        assert child.end() == "taken over"
        assert (lines(tmp_path / "done"), lines(tmp_path / "asked")) == (done, asked)
        with agent(store, tmp_path) as last:
            assert last.conversation.history() == history
        check_whole(store, tmp_path, is_quiet=False)
    assert done == ONCE + Counter(["look a", "look b"])
    asked_twice = {"model 1": "3", "model 2": "5"}.get(where)  # The requests before it was stopped.
    assert asked == Counter(["3", "5", *([asked_twice] if asked_twice else [])])


@pytest.mark.slow
def test_nothing_is_done_twice_wherever_processes_are_killed(url: str, tmp_path: Path):
    """Two of three processes are killed at operations of their stores, before or after they take effect."""
    with open_store(url) as store:
        for n, (one, other) in zip(range(2, 42, 8), cycle([("before", "after"), ("after", "before")]), strict=False):
            (folder := tmp_path / str(n)).mkdir()
            begun(store, folder)
            ends = [("store", str(n), one), ("store", str(n + 7), other), ()]
            assert together(url, folder, ends)[2] == "All done."
            check_whole(store, folder, is_quiet=False)
