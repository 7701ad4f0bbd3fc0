"""One conversation used from threads and from tasks: both sides share the session and its lock."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from foveate import open_async_conversation, open_conversation
from foveate.core.summaries import SummaryRequest
from foveate.errors import BadSetting
from foveate.policies import compact_on_overflow
from foveate.stores.memory import MemoryStore
from foveate.testing import say, text_of, user

from .shells import opened, texts


def test_aio_side_sees_what_the_sync_side_appends():
    chat = opened()
    chat.append(user("a"))

    async def story() -> None:
        await chat.aio.append(user("b"))
        assert (await chat.aio.prompt())["messages"] == chat.prompt()["messages"]
        await chat.aio.record(say("c"))

    asyncio.run(story())
    chat.append(user("d"))
    assert texts(chat.view) == texts(chat.aio.view) == ["a", "b", "c", "d"]
    assert chat.aio is chat.aio
    assert chat.aio.sync is chat
    assert chat.journal.verify() == []


def test_sync_side_of_an_async_conversation_is_the_same_conversation():
    async def story() -> Any:
        chat = await open_async_conversation("c", window=10_000)
        await chat.append("a")
        await asyncio.to_thread(chat.sync.append, "b")
        return chat

    chat = asyncio.run(story())
    chat.sync.append("c")
    assert [row.message.text for row in chat.sync.history()] == ["a", "b", "c"]


def test_threads_and_tasks_lose_nothing():
    chat = opened(policy="keep-last-2")

    def work(who: int) -> None:
        for n in range(20):
            chat.append(user(f"t{who}.{n}"))
            chat.prepare()

    async def play() -> None:
        async def task(who: int) -> None:
            for n in range(20):
                await chat.aio.append(user(f"a{who}.{n}"))
                await chat.aio.prepare()
                assert len(chat.aio.view) <= len(chat)

        await asyncio.gather(*(task(who) for who in range(3)))

    threads = [threading.Thread(target=work, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    asyncio.run(play())
    for thread in threads:
        thread.join(60)
    said = [row.message.text for row in chat.history()]
    assert sorted(said) == sorted(f"{kind}{who}.{n}" for kind in "ta" for who in range(3) for n in range(20))
    assert chat.journal.verify() == []


def test_an_async_summarizer_serves_a_conversation_opened_in_sync_code():
    async def summarizer(request: SummaryRequest) -> str:
        await asyncio.sleep(0)
        return "In short."

    policy = compact_on_overflow(threshold=0.5, framing="{summary}")
    chat = opened(policy=(policy,), summarizer=summarizer, window=11_000)

    async def story() -> list[str]:
        for n in range(1, 9):
            await chat.aio.append([user(f"q{n} " + text_of(490, n)), say(f"a{n} " + text_of(490, n))])
        await chat.aio.append(user("and now?"))
        return texts(await chat.aio.prepare())

    assert asyncio.run(story())[0] == "In short."


def test_waiting_for_the_own_event_loop_is_refused():
    """A sync call in the thread of an event loop that must run a summarizer first would wait for ever."""
    store = MemoryStore()

    async def story() -> None:
        begun, let_go = asyncio.Event(), asyncio.Event()

        async def slow(content: object) -> str:
            begun.set()
            await let_go.wait()
            return "seen"

        slow.name = "slow"  # type: ignore[attr-defined]
        chat = await open_async_conversation("c", store=store, window=10_000, plugins=[slow])  # type: ignore[list-item]
        waiting = asyncio.ensure_future(chat.append("go"))
        await begun.wait()
        assert texts(chat.view) == []
        with pytest.raises(BadSetting, match="Await the"):
            chat.sync.append("now")
        let_go.set()
        await waiting
        assert texts(chat.view)[0].startswith("go")

    asyncio.run(story())


def test_a_cancelled_operation_ends_between_two_store_calls():
    class Slow(MemoryStore):
        def __init__(self) -> None:
            super().__init__()
            self.begun, self.go, self.calls = threading.Event(), threading.Event(), 0
            self.is_slow = False

        def messages(self, *arguments: Any) -> Any:
            self.calls += 1
            if self.is_slow:
                self.begun.set()
                assert self.go.wait(60)
            return super().messages(*arguments)

    async def story() -> None:
        store = Slow()
        chat = await open_async_conversation("c", store=store, window=10_000)
        await chat.append(["a", "b"])
        store.is_slow, before = True, store.calls
        task = asyncio.ensure_future(chat.journal.events())
        await asyncio.to_thread(store.begun.wait, 60)
        task.cancel()
        store.is_slow = False
        store.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.calls == before + 1
        assert len(await chat.history()) == 2

    asyncio.run(story())


def test_aio_side_has_every_member_of_the_sync_side():
    """`needs` was missing."""
    chat = open_conversation("sides", window=8_000)
    for sync, aio in ((chat, chat.aio), (chat.journal, chat.aio.journal), (chat.privacy, chat.aio.privacy)):
        assert {name for name in dir(sync) if name[0] != "_"} - {*dir(aio)} <= {"aio"}
    chat.append("Hello.")
    assert chat.aio.needs == chat.needs
