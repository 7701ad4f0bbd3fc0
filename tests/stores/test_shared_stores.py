"""One conversation in several threads and tasks, one object or many, on both databases; the loop never waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foveate import ConflictError, Conversation, open_async_conversation, open_conversation, open_store
from foveate.open import grouped
from foveate.testing import BodyChecker, call, say, user
from foveate.testing.builders import answer
from foveate.testing.rows import chain


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    is_sqlite = request.param == "sqlite"
    at = f"sqlite:///{tmp_path}/c.db?" if is_sqlite else request.getfixturevalue("postgres_url") + "&"
    with open_store(at + "wait=120") as store:  # type: ignore[attr-defined]
        yield store


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Run the action in this many threads at once; raise the error of any of them."""
    failed: list[BaseException] = []

    def run(n: int) -> None:
        try:
            work(n)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert failed == []


def turn(chat: Conversation, who: str, n: int) -> None:
    """Append a question, a call, its result and an answer, as one of several threads."""
    chat.append(user(f"{who}.{n} asks"))
    chat.prepare()
    chat.record(call(f"{who}-{n}", "look"))
    chat.append(answer(f"{who}-{n}", f"{who}.{n} found"))
    chat.prepare()
    chat.record(say(f"{who}.{n} says"))


def check(store: Any, name: str, whos: list[str], turns: int) -> None:
    """Every message is stored once, in the order of its writer, and the view is legal."""
    with open_conversation(name, store=store, window=100_000, policy="none") as chat:
        assert chat.journal.verify() == []
        rows = chat.history()
        assert len(rows) == len(whos) * turns * 4
        for who in whos:
            steps = [step for n in range(turns) for step in (f"{who}.{n} asks", f"{who}-{n}", f"{who}.{n} says")]
            own = [row.message.calls[0].call_id if row.message.calls else row.message.text for row in rows]
            assert [said for said in own if said in steps] == steps
        results = [row.message.result.call_id for row in rows if row.message.result]
        assert sorted(results) == sorted(f"{who}-{n}" for who in whos for n in range(turns))
        assert BodyChecker("openai").check(chat.prompt()) == []


def test_threads_share_one_object(store: Any) -> None:
    with open_conversation("c", store=store, window=100_000, policy="none") as chat:
        in_threads(3, lambda n: [turn(chat, f"t{n}", k) for k in range(2)])
    check(store, "c", [f"t{n}" for n in range(3)], 2)


def test_threads_have_an_object_each_of_one_conversation_and_one_store(store: Any) -> None:
    def work(n: int) -> None:
        with open_conversation("c", store=store, window=100_000, policy="none") as chat:
            for k in range(2):
                turn(chat, f"t{n}", k)

    open_conversation("c", store=store, window=100_000).close()
    in_threads(3, work)
    check(store, "c", [f"t{n}" for n in range(3)], 2)


@pytest.mark.parametrize("objects", [1, 3])
def test_tasks_share_one_object_or_have_one_each(store: Any, objects: int) -> None:
    async def work(chat: Any, who: str) -> None:
        for n in range(2):
            await chat.append(user(f"{who}.{n} asks"))
            await chat.prepare()
            await chat.record(call(f"{who}-{n}", "look"))
            await chat.append(answer(f"{who}-{n}", f"{who}.{n} found"))
            await chat.prepare()
            await chat.record(say(f"{who}.{n} says"))

    async def main() -> None:
        keywords: dict[str, Any] = {"store": store, "window": 100_000, "policy": "none"}
        chats = [await open_async_conversation("c", **grouped(keywords)) for _ in range(objects)]
        await asyncio.gather(*(work(chats[n % objects], f"t{n}") for n in range(3)))
        for chat in chats:
            await chat.close()

    asyncio.run(main())
    check(store, "c", [f"t{n}" for n in range(3)], 2)


def test_writers_of_one_conversation_get_equal_shares(
    request: pytest.FixtureRequest, store: Any, tmp_path: Path
) -> None:
    """Each writer has its own connections, as processes have. PostgreSQL serves writers in order; SQLite serves any of
    them.

    They continue until each has finished its part: a delayed writer finishes later, one that the others exclude never
    does.
    """
    is_sqlite = "sqlite" in request.node.name
    at = f"sqlite:///{tmp_path}/c.db?wait=120" if is_sqlite else request.getfixturevalue("postgres_url") + "&wait=120"
    counts, start = [0] * 6, threading.Barrier(6)
    part, most = 10, 1000

    def work(n: int) -> None:
        with open_conversation("c", store=at, window=1_000_000, policy="none") as chat:
            start.wait(60)
            while min(counts) < part and max(counts) < most:
                chat.append(user(f"{n}.{counts[n]}"))
                counts[n] += 1

    in_threads(6, work)
    assert min(counts) >= part, counts


def test_append_or_refresh_reads_messages_of_another_object(store: Any) -> None:
    one, other = (open_conversation("c", store=store, window=100_000, policy="none") for _ in range(2))
    one.append(user("a"))
    assert (len(one), len(other)) == (1, 0)
    other.append(user("b"))
    assert [entry.message.text for entry in other.view] == ["a", "b"]
    assert [entry.message.text for entry in one.view] == ["a"]
    one.refresh()
    assert [entry.message.text for entry in one.view] == ["a", "b"]


def test_result_names_the_tool_that_another_writer_called_meanwhile(store: Any) -> None:
    """The name is looked up in the others' messages when the writer has its turn."""
    one, other = (open_conversation("c", store=store, window=100_000, policy="none") for _ in range(2))
    one.append([user("go"), call("x", "look")])
    other.append(answer("x", "found"))
    assert [row.stamp.source for row in other.history()] == ["", "", "look"]
    assert [row.stamp.turn for row in other.history()] == [0, 1, 1]


@pytest.mark.slow
def test_hundred_conversations_do_not_block_the_loop(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads wait for the database; the loop's thread never takes a connection."""
    from foveate.stores.postgres.pool import Connections

    borrowers: list[int] = []
    borrow = Connections.borrow

    def noted(pool: Connections) -> Any:
        borrowers.append(threading.get_ident())
        return borrow(pool)

    async def work(store: Any, n: int) -> None:
        chat = await open_async_conversation(f"c{n}", store=store, window=100_000, policy="balanced")
        for k in range(2):
            await chat.append(user(f"{n}.{k} asks"))
            await chat.prompt()
            await chat.record(say(f"{n}.{k} says"))
        await chat.close()

    async def main(store: Any) -> int:
        await asyncio.gather(*(work(store, n) for n in range(100)))
        return threading.get_ident()

    with open_store(postgres_url + "&wait=120") as store:  # type: ignore[attr-defined]
        monkeypatch.setattr(Connections, "borrow", noted)
        loop = asyncio.run(main(store))
    assert len(borrowers) >= 500  # Of each conversation: opened, and four times written to.
    assert loop not in borrowers


def test_writer_far_behind_reads_before_it_extends(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others would wait while it reads, so it is refused, reads without a lock, and retries."""
    monkeypatch.setattr("foveate.stores.sql.messages._BEHIND_MAX", 3)
    one, other = (open_conversation("c", store=store, window=100_000, policy="none") for _ in range(2))
    for n in range(5):
        one.append(user(f"{n}"))
    with pytest.raises(ConflictError, match="it has 5 messages"):
        store.extend(other._agent.head, lambda tail: chain([user("late")], tail.head))
    other.append(user("late"))
    assert [row.message.text for row in other.history()] == ["0", "1", "2", "3", "4", "late"]
    assert other.journal.verify() == []
