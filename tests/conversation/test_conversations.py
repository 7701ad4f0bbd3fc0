"""`Conversations`: the open conversations of one store, for servers with many threads and event loops."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import foveate
from foveate import BadInput, Conversations, Options, StoreError
from foveate.core.summaries import SummaryRequest
from foveate.errors import BadSetting
from foveate.policies import compact_on_overflow
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import say, text_of, user
from foveate.testing.faults import Countdown, failing_store

from .shells import texts

COMPACT = compact_on_overflow(ahead=0.5, keep_recent=0.25, framing="{summary}", digest=False)
SIZE: dict[str, Any] = {"window": 11_000, "options": Options(reserve=1_000)}


def test_a_name_is_opened_once_and_shared():
    with Conversations(window=10_000) as conversations:
        chat = conversations.get("a")
        chat.append("hi")
        assert conversations.get("a") is chat
        assert conversations.get("b") is not chat
        assert texts(conversations.get("a").view) == ["hi"]
        assert asyncio.run(conversations.get_async("a")) is chat.aio


def test_options_count_for_every_conversation():
    options = Options(tenant="acme", reserve=500)
    store = MemoryStore()
    conversations = Conversations(store, window=9_000, format="anthropic", policy="none", options=options)
    for name in ("a", "b"):
        chat = conversations.get(name)
        assert (chat.format.name, chat.budget.window, chat.budget.reserve) == ("anthropic", 9_000, 500)
    assert conversations.get("a").format is not conversations.get("b").format
    assert (store.names("acme"), store.names("")) == (["a", "b"], [])


def test_conversations_that_were_not_used_for_longest_are_dropped():
    with Conversations(window=10_000, max_open=3) as conversations:
        kept = [conversations.get(name) for name in ("a", "b", "c")]
        conversations.get("a")
        conversations.get("d")
        assert (len(conversations), list(conversations._recent)) == (3, ["c", "a", "d"])
        assert conversations.get("b") is kept[1], "the program holds it"
        kept[1].append("hi")
        del kept
        for name in ("e", "f", "g"):
            conversations.get(name)
        gc.collect()
        assert set(conversations._known) == {"e", "f", "g"}
        assert texts(conversations.get("b").view) == ["hi"]


def test_conversations_in_use_are_not_dropped():
    with Conversations(window=10_000, max_open=1) as conversations, conversations.use("a") as chat:
        for name in ("b", "c"):
            conversations.get(name)
        assert set(conversations._recent) == {"a", "c"}
        assert conversations.get("a") is chat


def test_conversation_that_writes_a_summary_is_not_dropped():
    go = threading.Event()

    def summarizer(request: SummaryRequest) -> str:
        go.wait(30)
        return "In short."

    with Conversations(**SIZE, max_open=1, policy=(COMPACT,), summarizer=summarizer) as conversations:
        chat = conversations.get("a")
        for n in range(1, 12):
            chat.append([user(f"q{n} " + text_of(490, n)), say(f"a{n} " + text_of(490, n)), user("on")])
            chat.prepare()
            if chat._session.prefetch.is_running():
                break
        assert chat._session.is_busy()
        del chat
        conversations.get("b")
        assert set(conversations._recent) == {"a", "b"}
        go.set()
        assert len(conversations.get("a")) > 3


def test_names_are_opened_at_the_same_time_and_each_once():
    opened: list[str] = []
    both = threading.Barrier(2, timeout=30)

    class Slow(MemoryStore):
        def open(self, tenant: str, name: str, *, create: bool = True) -> Any:
            if name in ("a", "b") and name not in opened:
                opened.append(name)
                both.wait()  # Only if another name is opened meanwhile.
            return super().open(tenant, name, create=create)

    conversations = Conversations(Slow(), window=10_000)
    with ThreadPoolExecutor(8) as pool:
        chats = list(pool.map(conversations.get, ["a", "b"] * 4))
    assert (sorted(opened), len({id(chat) for chat in chats})) == (["a", "b"], 2)


def test_many_threads_and_loops_lose_nothing(tmp_path):
    names = [f"c{n}" for n in range(6)]

    def work(conversations: Conversations, who: int) -> None:
        for n in range(5):
            with conversations.use(names[(who + n) % 6]) as chat:
                before = len(chat)
                chat.append(user(f"s{who}.{n}"))
                chat.prompt()
                chat.record(say("ok"))
                assert len(chat) == before + 2

    async def play(conversations: Conversations, who: int) -> None:
        async def one(n: int) -> None:
            async with conversations.use(names[(who + n) % 6]) as chat:
                before = len(chat)
                await chat.append(user(f"a{who}.{n}"))
                await chat.prompt()
                await chat.record(say("ok"))
                assert len(chat) == before + 2

        await asyncio.gather(*(one(n) for n in range(5)))

    with Conversations(f"sqlite:///{tmp_path / 'c.db'}", window=10_000, max_open=2) as conversations:
        with ThreadPoolExecutor(6) as pool:
            jobs = [pool.submit(work, conversations, who) for who in range(3)]
            jobs += [pool.submit(lambda who: asyncio.run(play(conversations, who)), who) for who in range(3)]
            for job in jobs:
                job.result(120)
        chats = [conversations.get(name) for name in names]
        said = [row.message.text for chat in chats for row in chat.history() if row.message.role == "user"]
        assert sorted(said) == sorted(f"{kind}{who}.{n}" for kind in "sa" for who in range(3) for n in range(5))
        assert all(chat.journal.verify() == [] for chat in chats)
        assert conversations._uses == {}


def test_operations_of_several_loops_wait_for_each_other():
    conversations = Conversations(window=10_000)

    async def play(who: int) -> None:
        chat = await conversations.get_async("a")
        for n in range(10):
            await chat.append(user(f"{who}.{n}"))
            await chat.prepare()

    with ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(asyncio.run, play(who)) for who in range(4)]:
            job.result(60)
    assert len(conversations.get("a")) == 40


def test_background_summary_of_an_ended_loop_blocks_nothing():
    begun = threading.Event()

    async def summarizer(request: SummaryRequest) -> str:
        if not begun.is_set():
            begun.set()
            await asyncio.sleep(3_600)
        return "In short."

    conversations = Conversations(**SIZE, policy=(COMPACT,), summarizer=summarizer)

    async def play(n: int) -> None:
        chat = await conversations.get_async("a")
        await chat.append([user(f"q{n} " + text_of(490, n)), say(f"a{n} " + text_of(490, n)), user("on")])
        await chat.prepare()
        await chat.record(say("ok"))
        if chat._session.prefetch.is_running():
            await asyncio.to_thread(begun.wait, 30)

    for n in range(1, 16):
        asyncio.run(asyncio.wait_for(play(n), 30))
    assert begun.is_set()
    assert (conversations.get("a").journal.verify(), texts(conversations.get("a").view)[0]) == ([], "In short.")


def test_uses_of_a_name_take_turns():
    order: list[str] = []
    conversations = Conversations(window=10_000)
    first = conversations.use("a")
    first.__enter__()

    async def play() -> None:
        async def one(who: str) -> None:
            async with conversations.use("a"):
                order.append(who)

        tasks = []
        for who in ("x", "y", "z"):
            tasks.append(asyncio.ensure_future(one(who)))
            await asyncio.sleep(0)
        async with conversations.use("b"):
            order.append("b")
        tasks[1].cancel()
        await asyncio.sleep(0)
        first.__exit__(None, None, None)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert tasks[1].cancelled()

    asyncio.run(play())
    assert (order, conversations._uses) == (["b", "x", "z"], {})


def test_use_that_is_cancelled_at_its_turn_passes_the_name_on():
    conversations = Conversations(window=10_000)

    async def play() -> str:
        async def one() -> str:
            async with conversations.use("a"):
                return "done"

        first = conversations.use("a")
        first.__enter__()
        waiting = asyncio.ensure_future(one())
        await asyncio.sleep(0)
        first.__exit__(None, None, None)  # Its turn, which it has not noticed yet.
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return await asyncio.wait_for(one(), 30)

    assert (asyncio.run(play()), conversations._uses) == ("done", {})


def test_failure_in_a_use_or_an_opening_releases_the_name():
    countdown = Countdown()
    conversations = Conversations(failing_store(MemoryStore(), countdown), window=10_000)
    countdown.start(1)
    with pytest.raises(StoreError), conversations.use("a"):
        pass
    with pytest.raises(ZeroDivisionError), conversations.use("a"):
        raise ZeroDivisionError
    with conversations.use("a") as chat:
        chat.append("hi")
    assert (conversations._uses, conversations._opening) == ({}, {})


def test_wrong_settings_and_names_are_refused(tmp_path):
    for wrong in ({"window": 5}, {"max_open": 0}, {"format": object()}, {"policy": "no such"}, {"window": "big"}):
        with pytest.raises(BadInput):
            Conversations(f"sqlite:///{tmp_path / 'x.db'}", **{"window": 10_000, **wrong})
    assert not (tmp_path / "x.db").exists()
    conversations = Conversations(window=10_000)
    for name in ("", 5, None, "~importing x", "x" * 501):
        with pytest.raises(BadSetting):
            conversations.get(name)
        with pytest.raises(BadSetting), conversations.use(name):
            pass


def test_closed_conversations_refuse_and_keep_a_store_that_they_did_not_open(tmp_path):
    async def play(conversations: Conversations) -> None:
        async with conversations:
            chat = await conversations.get_async("a")
            await chat.append("hi")
        with pytest.raises(BadSetting, match="closed"):
            await conversations.get_async("a")

    with SqliteStore(tmp_path / "a.db") as store:
        asyncio.run(play(Conversations(store, window=10_000)))
        assert store.names("") == ["a"]
    conversations = Conversations(f"sqlite:///{tmp_path / 'a.db'}", window=10_000)
    chat = conversations.get("a")
    conversations.close()
    conversations.close()
    for refused in (lambda: conversations.get("a"), lambda: conversations.use("a").__enter__()):
        with pytest.raises(BadSetting, match="closed"):
            refused()
    with pytest.raises(StoreError):
        chat.append("on")


def test_each_request_may_name_its_model_if_the_opening_names_none():
    with Conversations(format="openai") as conversations:
        chat = conversations.get("a")
        chat.append("Hi.")
        chat.prompt(model="gpt-5")
        assert chat.view.budget.window == 272_000
        with pytest.raises(BadSetting, match="window"):
            chat.prompt()
        with pytest.raises(BadSetting, match="window"):
            chat.prompt(model="nobody-knows-me")
        chat.prompt(model="nobody-knows-me", window=8_000)
        assert chat.view.budget.window == 8_000


def test_function_as_a_tool_is_refused_with_the_way_to_define_it():
    def look(place: str) -> str:
        """Look at a place."""
        return place

    chat = foveate.open_conversation("tools", window=16_000)
    chat.append("Look.")
    with pytest.raises(foveate.errors.BadInput, match=r'foveate\.tool\(function\)\.wire\("openai"\)'):
        chat.prompt(tools=[look])
    assert [tool["function"]["name"] for tool in chat.prompt(tools=[foveate.tool(look).wire("openai")])["tools"]] == [
        "look",
        "expand",
    ]


def test_a_fork_of_everything_has_what_another_writer_appended():
    with MemoryStore() as store:
        options: dict[str, Any] = {"store": store, "format": "openai", "window": 8_000}
        one = foveate.open_conversation("trip", **options)
        one.append("One.")
        with foveate.open_conversation("trip", **options) as two:
            two.append("Two.")
        assert texts(one.fork("other").prepare()) == texts(one.prepare()) == ["One.", "Two."]
