"""Summaries in the background, sync and async: threads, tasks, closing, cancelling, and a killed process.

Nothing sleeps: a summarizer waits at a gate that the test opens. Warnings are errors here, so a coroutine that is never
awaited, or a pending task that is destroyed, fails a test.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from foveate import AsyncConversation, Conversation, StoreError, View
from foveate.background.tasks import TaskJob, Tasks
from foveate.background.threads import Threads
from foveate.edits import Task
from foveate.open import grouped, open_async_conversation
from foveate.policies import compact_on_overflow
from foveate.stores.memory import MemoryStore
from foveate.summarizers import SummaryRequest
from foveate.testing import say, text_of, user

from .shells import opened, refusals, texts

COMPACT = compact_on_overflow(ahead=0.5, keep_recent=0.25, framing="{summary}", digest=False)
SIZE: dict[str, Any] = {"window": 11_000, "reserve": 1_000}
HERE = Path(__file__).resolve().parent


class Gate:
    """A summarizer that waits until the test opens the gate."""

    def __init__(self, said: str | BaseException = "In short.") -> None:
        self.open = threading.Event()
        self.begun = threading.Event()
        self.threads: list[threading.Thread] = []
        self.said = said

    def __call__(self, request: SummaryRequest) -> str:
        self.threads.append(threading.current_thread())
        self.begun.set()
        assert self.open.wait(120)
        if isinstance(self.said, BaseException):
            raise self.said
        return self.said


def ask(chat: Conversation, number: int) -> View:
    if number > 1:
        chat.record(say(f"a{number - 1} " + text_of(490, number)))
    chat.append(user(f"q{number} " + text_of(490, number)))
    return chat.prepare()


def talk(chat: Conversation, first: int, last: int) -> View:
    for number in range(first, last):
        ask(chat, number)
    return ask(chat, last)


def jobs(one: Conversation | AsyncConversation) -> list[Any]:
    return [asked.job for asked in one._session.prefetch._pending.values() if asked.job]


def ended(chat: Conversation) -> None:
    """Wait until the background work has ended."""
    for job in jobs(chat):
        job.wait()


def tasks(records: list[Any]) -> list[tuple[str, int, str]]:
    made = [edit for record in records for edit in record.edits if isinstance(edit, Task)]
    return [(task.state, task.attempt, task.reason) for task in made]


# -------------------------------------------------------------------------------------------------------------- threads


def test_summary_is_written_in_a_thread_meanwhile():
    gate = Gate()
    chat = opened(policy=(COMPACT,), summarizer=gate, **SIZE)
    talk(chat, 1, 9)
    assert gate.begun.wait(60)
    assert (gate.threads[0] is threading.current_thread(), gate.threads[0].daemon) == (False, True)
    assert texts(chat.view)[0].startswith("q1 ")
    gate.open.set()
    ended(chat)
    talk(chat, 10, 11)
    assert texts(chat.view)[0] == "In short."
    assert tasks(chat.journal.records()) == [("done", 1, "")]


def test_conversation_waits_for_the_thread_if_it_must():
    gate = Gate()
    chat = opened(policy=(COMPACT,), summarizer=gate, **SIZE)
    talk(chat, 1, 10)
    threading.Timer(0.05, gate.open.set).start()
    assert texts(talk(chat, 11, 11))[0] == "In short."
    assert len(gate.threads) == 1


def test_wait_for_a_summary_ends_with_the_patience():
    """F16."""
    gate = Gate()
    chat = opened(policy=(COMPACT,), summarizer=gate, background=Threads(patience=0.01), **SIZE)
    view = talk(chat, 1, 11)
    assert (view.tokens <= 10_000, refusals(chat, view)) == (True, [])
    assert tasks(chat.journal.records())[0] == ("failed", 1, "no answer came in time")
    gate.open.set()


def test_eager_thread_background_takes_due_summaries():
    gate = Gate()
    policy = compact_on_overflow(threshold=0.5, framing="{summary}")
    chat = opened(policy=(policy,), summarizer=gate, background=True, **SIZE)
    assert texts(talk(chat, 1, 7))[0].startswith("q1 ")
    gate.open.set()
    ended(chat)
    assert texts(talk(chat, 8, 8))[0] == "In short."


def test_system_exit_in_a_summarizer_ends_only_the_attempt():
    gate = Gate(SystemExit(3))
    chat = opened(policy=(COMPACT,), summarizer=gate, **SIZE)
    talk(chat, 1, 8)
    gate.open.set()
    ended(chat)
    talk(chat, 9, 9)
    state, attempt, why = tasks(chat.journal.records())[0]
    assert (state, attempt, "SystemExit(3)" in why) == ("failed", 1, True)


def test_closing_does_not_wait_and_a_late_thread_does_no_harm():
    gate = Gate()
    chat = opened(policy=(COMPACT,), summarizer=gate, **SIZE)
    talk(chat, 1, 8)
    assert gate.begun.wait(60)
    chat.close()
    gate.open.set()
    gate.threads[0].join(60)
    assert not gate.threads[0].is_alive()


def test_closing_from_another_thread_releases_a_waiting_conversation():
    gate = Gate()
    chat = opened(policy=(COMPACT,), summarizer=gate, **SIZE)
    talk(chat, 1, 10)
    assert gate.begun.wait(60)
    threading.Timer(0.05, chat.close).start()
    with pytest.raises(StoreError, match="closed"):
        talk(chat, 11, 11)
    assert gate.threads[0].is_alive()
    gate.open.set()


def test_other_threads_append_while_a_summary_is_written():
    """F31."""
    gate = Gate()
    chat = opened(policy=(COMPACT,), summarizer=gate, **SIZE)
    talk(chat, 1, 7)
    assert gate.begun.wait(60)
    writers = [threading.Thread(target=chat.append, args=(f"note {n}",)) for n in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    gate.open.set()
    ended(chat)
    view = talk(chat, 8, 11)
    assert texts(view)[0] == "In short."
    assert sorted(text for text in texts(view) if text.startswith("note")) == [f"note {n}" for n in range(8)]


def test_async_summarizer_in_a_sync_conversation_is_refused():
    async def summarizer(request: SummaryRequest) -> str:
        return "In short."

    chat = opened(policy=(COMPACT,), summarizer=summarizer, **SIZE)
    talk(chat, 1, 8)
    ended(chat)
    talk(chat, 9, 9)
    state, _, why = tasks(chat.journal.records())[0]
    assert (state, "only an async conversation" in why) == ("failed", True)
    talk(chat, 10, 10)
    chat.close()
    gc.collect()


# ---------------------------------------------------------------------------------------------------------------- tasks


async def async_talk(chat: AsyncConversation, first: int, last: int) -> View:
    for number in range(first, last + 1):
        if number > 1:
            await chat.record(say(f"a{number - 1} " + text_of(490, number)))
        await chat.append(user(f"q{number} " + text_of(490, number)))
        view = await chat.prepare()
    return view


def run(story: Awaitable[None]) -> None:
    """Run an async test; every complaint of the event loop fails it."""
    told: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        await story

    asyncio.run(main())
    gc.collect()
    assert told == []


@pytest.mark.parametrize("is_async", [True, False])
def test_summary_is_written_in_a_task_meanwhile(is_async: bool):
    async def story() -> None:
        let_go = asyncio.Event()

        async def later(request: SummaryRequest) -> str:
            await let_go.wait()
            return "In short."

        gate = Gate()
        chat = await open_async_conversation(
            "c", policy=(COMPACT,), summarizer=later if is_async else gate, **grouped(SIZE)
        )
        view = await async_talk(chat, 1, 9)
        assert texts(view)[0].startswith("q1 ")
        let_go.set()
        gate.open.set()
        for job in jobs(chat):
            await job.wait()
        view = await async_talk(chat, 10, 11)
        assert texts(view)[0] == "In short."
        assert tasks(await chat.journal.records()) == [("done", 1, "")]
        await chat.close()

    run(story())


def test_needed_task_is_awaited_while_other_tasks_run():
    async def story() -> None:
        let_go = asyncio.Event()

        async def later(request: SummaryRequest) -> str:
            await let_go.wait()
            return "In short."

        chat = await open_async_conversation("c", policy=(COMPACT,), summarizer=later, **grouped(SIZE))
        await async_talk(chat, 1, 10)
        waiting = asyncio.ensure_future(async_talk(chat, 11, 11))
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert not waiting.done()
        let_go.set()
        assert texts(await waiting)[0] == "In short."
        await chat.close()

    run(story())


def test_hanging_task_is_abandoned_after_its_time_limit():
    """F16."""

    async def story() -> None:
        async def hangs(request: SummaryRequest) -> str:
            await asyncio.Event().wait()
            return ""

        chat = await open_async_conversation(
            "c", policy=(COMPACT,), summarizer=hangs, **grouped({"background": Tasks(patience=0.01), **SIZE})
        )
        view = await async_talk(chat, 1, 11)
        assert view.tokens <= 10_000
        assert tasks(await chat.journal.records())[0] == ("failed", 1, "no answer came in time")
        await chat.close()

    run(story())


def test_cancelled_wait_leaves_the_summary_for_the_next_call():
    async def story() -> None:
        let_go = asyncio.Event()

        async def later(request: SummaryRequest) -> str:
            await let_go.wait()
            return "In short."

        chat = await open_async_conversation("c", policy=(COMPACT,), summarizer=later, **grouped(SIZE))
        await async_talk(chat, 1, 10)
        await chat.append(user(text_of(990)))
        waiting = asyncio.ensure_future(chat.prepare())
        for _ in range(50):
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        let_go.set()
        assert texts(await chat.prepare())[0] == "In short."
        assert await chat.journal.verify() == []
        await chat.close()

    run(story())


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
def test_ended_loop_leaves_no_task_and_no_coroutine(closes: bool, is_async: bool):
    gates: list[Gate] = []
    cancelled: list[str] = []
    begun: list[bool] = []

    async def story() -> None:
        async def hangs(request: SummaryRequest) -> str:
            try:
                begun.append(True)
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append("summary")
                raise
            return ""

        gates.append(Gate())
        chat = await open_async_conversation(
            "c", policy=(COMPACT,), summarizer=hangs if is_async else gates[0], store=MemoryStore(), **grouped(SIZE)
        )
        await async_talk(chat, 1, 7)
        async with asyncio.timeout(60):
            while not (begun or gates[0].begun.is_set()):
                await asyncio.sleep(0.001)
        if closes:
            await chat.close()
            assert cancelled == ["summary"] * is_async

    run(story())
    assert cancelled == ["summary"] * is_async
    for gate in gates:
        gate.open.set()
        for thread in gate.threads:
            thread.join(60)


def test_late_coroutine_is_closed():
    async def story() -> None:
        gate = threading.Event()

        async def never() -> str:
            return "nobody reads this"

        def slow() -> Any:
            assert gate.wait(60)
            return never()

        job = TaskJob(slow, 1.0)
        await asyncio.sleep(0)
        await asyncio.wait([job.cancel()])
        gate.set()
        with pytest.raises(RuntimeError, match="cancelled"):
            job.result()
        for thread in threading.enumerate():
            if thread.name == "foveate-summary":
                await asyncio.to_thread(thread.join, 60)

    run(story())


# ---------------------------------------------------------------------------------------------------------------- kill


def test_kill_during_a_summary_leaves_no_trace(tmp_path: Path):
    """F30."""
    path = tmp_path / "chat.db"
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent.parent / "src")}
    arguments = [sys.executable, str(HERE / "prefetch_child.py"), str(path)]
    child = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    lines = []
    while not lines or not lines[-1].startswith("asked"):
        lines.append(child.stdout.readline())
        assert lines[-1], "the child ended"
    child.kill()
    child.stdout.close()
    child.wait()
    with opened(policy=(COMPACT,), summarizer=lambda _: "In short.", store=f"sqlite:///{path}", **SIZE) as chat:
        assert (chat.journal.verify(), chat.journal.records(), chat.view.preparing) == ([], [], ())
        assert texts(chat.view)[0].startswith("q1 ")
        last = len(chat) // 2 + 1
        view = talk(chat, last + 1, 11)
        ended(chat)
        view = talk(chat, 12, 12)
        assert texts(view)[0] == "In short."
        assert chat.journal.verify() == []
