"""Watchers: what they report of a conversation, to how many pages, and when they end. Waiting is a step of the test."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from foveate import Conversation, open_conversation
from foveate.edits import Task
from foveate.errors import StoreError
from foveate.inspector.pages.live import stream
from foveate.inspector.views.places import Place
from foveate.inspector.watchers import HEARTBEAT, News, Update, Watchers, read_updates
from foveate.policies import compact_on_overflow
from foveate.testing import answer, call, say, text_of, user
from foveate.testing.stubs import ScriptedSummarizer

NAME = "a"
WRITER = """
import sys
from foveate import open_conversation
with open_conversation("a", store=sys.argv[1], window=50_000) as chat:
    chat.append("written by another process")
    chat.pin("m1")
"""


def opened(url: str, **options: Any) -> Conversation:
    return open_conversation(NAME, store=url, **{"window": 50_000, "policy": "none", **options})


def place(chat: Conversation) -> Place:
    return Place.of(chat._session.head)


def news_of(chat: Conversation, seen: Place) -> News:
    return read_updates(chat._session.state.store, "", NAME, seen)


def kinds(updates: tuple[Update, ...]) -> list[str]:
    return [update.kind for update in updates]


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with opened(url) as chat:
        chat.append([user("Read it."), call("c1"), answer("c1", text_of(400))])
        chat.append([call("c2"), answer("c2", text_of(400)), say("Done.")])
    return url


# --------------------------------------------------------------------------------------------------- what is reported


def test_nothing_new_is_no_update(url):
    with opened(url) as chat:
        assert news_of(chat, place(chat)) == (place(chat), ())


def test_messages_of_another_process_are_reported(url):
    with opened(url) as chat:
        seen = place(chat)
        subprocess.run([sys.executable, "-c", WRITER, url], check=True, timeout=60)
        now, updates = news_of(chat, seen)
    assert (now.position, now.number) == (7, 1)
    assert kinds(updates) == ["message", "receipt"]
    message, receipt = updates
    assert (message.position, message.role, message.rows) == (7, "user", (7,))
    assert (receipt.first, receipt.last, receipt.rows) == (1, 1, (1,))


def test_messages_of_another_process_are_reported_in_postgresql(postgres_url):
    with opened(postgres_url) as chat:
        chat.append("Hello")
        seen = place(chat)
        subprocess.run([sys.executable, "-c", WRITER, postgres_url], check=True, timeout=60)
        _, updates = news_of(chat, seen)
    assert kinds(updates) == ["message", "receipt"]


def test_expansion_by_a_person_names_its_row(url):
    with opened(url, policy="keep-last-1", expand=True) as chat:
        chat.append(user("And?"))
        chat.prepare()
        seen = place(chat)
        chat.expand("m3")
        _, updates = news_of(chat, seen)
    assert kinds(updates) == ["receipt", "expanded"]
    assert updates[0].rows == (3,)
    assert updates[1].text == "m3 is shown whole again"


def test_expansion_by_the_model_is_reported(url):
    with opened(url, policy="keep-last-1", expand=True, format="anthropic") as chat:
        chat.append(user("And?"))
        chat.prepare()
        seen = place(chat)
        chat.record(
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "e1", "name": "expand", "input": {"handle": "m3"}}],
            }
        )
        _, updates = news_of(chat, seen)
    assert "expanded" in kinds(updates)


def test_summaries_under_way_are_reported(url):
    policy = compact_on_overflow()
    with opened(url, policy=policy, window=6_000, summarizer=ScriptedSummarizer(["Short."])) as chat:
        chat.append([one for n in range(12) for one in (user(text_of(300, n)), say(text_of(300, n + 50)))])
        chat.append(user("And?"))
        seen = place(chat)
        chat.prepare()
        _, updates = news_of(chat, seen)
    states = [update.state for update in updates if update.kind == "summary"]
    assert states == ["pending", "done"]
    assert "receipt" in kinds(updates)


def test_failed_summary_names_its_reason():
    with open_conversation(NAME, window=50_000, policy="none") as chat:
        chat.append("Hi")
        seen = place(chat)
        chat.edit(Task("compact", "failed", reason="the server is down"))
        (update,) = news_of(chat, seen)[1]
    assert (update.kind, update.state) == ("summary", "failed")
    assert update.text == "compact: the summary failed: the server is down"


def test_erasure_makes_pages_load_again(url):
    with opened(url) as chat:
        seen = place(chat)
        chat.privacy.erase("m3")
        now, updates = news_of(chat, seen)
    assert kinds(updates) == ["reload"]
    assert now.erased == 1


def test_page_that_is_far_behind_loads_again(url):
    with opened(url) as chat:
        seen = place(chat)
        chat.append([user(str(n)) for n in range(600)])
        assert kinds(news_of(chat, seen)[1]) == ["reload"]


def test_page_of_a_store_that_was_rolled_back_loads_again(url):
    with opened(url) as chat:
        ahead = Place(place(chat).branch, 99, 0, 0)
        assert kinds(news_of(chat, ahead)[1]) == ["reload"]


def test_conversation_that_does_not_exist_is_gone(url):
    with opened(url) as chat:
        assert kinds(read_updates(chat._session.state.store, "", "no such", place(chat))[1]) == ["gone"]


@pytest.mark.parametrize("text", ["", "1.2.3", "a.b.c.d", "1.2.3.-4", "1.2.3.4.5", "1.2.3.²"])
def test_id_that_is_no_place_is_ignored(text):
    assert Place.read(text) is None
    assert Place.read(str(Place(1, 2, 3, 4))) == Place(1, 2, 3, 4)


# ------------------------------------------------------------------------------------------------------------ watching


class Steps:
    """A wait that ends when the test says so."""

    def __init__(self) -> None:
        self.waits = 0
        self._next = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.waits += 1
        await self._next.wait()
        self._next.clear()

    def go(self) -> None:
        self._next.set()


class Story:
    """A conversation as a list of updates, read by a watcher."""

    def __init__(self) -> None:
        self.now = Place(1, 0, 0, 0)
        self.reads = 0
        self.error: Exception | None = None

    def add(self) -> None:
        self.now = Place(1, self.now.position + 1, 0, 0)

    async def read(self, seen: Place) -> News:
        self.reads += 1
        if self.error is not None:
            raise self.error
        positions = range(seen.position + 1, self.now.position + 1)
        return self.now, tuple(Update("message", position=position) for position in positions)


async def settle() -> None:
    """Let all tasks run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)


def told(test: Callable[[Story, Steps, Watchers], Any]) -> None:
    async def run() -> None:
        steps = Steps()
        await asyncio.wait_for(test(Story(), steps, Watchers(steps)), 30)

    asyncio.run(run())


def positions(news: News) -> list[int]:
    return [update.position for update in news[1]]


def test_one_watcher_reads_for_all_pages():
    async def test(story: Story, steps: Steps, watchers: Watchers) -> None:
        pages = [watchers.watch(("a",), story.read, story.now) for _ in range(5)]
        for page in pages:
            assert positions(await anext(page)) == []
        await settle()
        reads = story.reads
        story.add()
        steps.go()
        assert [positions(await anext(page)) for page in pages] == [[1]] * 5
        assert story.reads == reads + 1
        assert len(watchers) == 1
        for page in pages:
            await page.aclose()
        assert len(watchers) == 0

    told(test)


def test_watcher_ends_with_its_last_page():
    async def test(story: Story, steps: Steps, watchers: Watchers) -> None:
        before = asyncio.all_tasks()
        page = watchers.watch(("a",), story.read, story.now)
        await anext(page)
        assert asyncio.all_tasks() > before
        await page.aclose()
        await settle()
        assert (len(watchers), asyncio.all_tasks()) == (0, before)

    told(test)


def test_page_continues_where_its_last_event_was():
    async def test(story: Story, steps: Steps, watchers: Watchers) -> None:
        for _ in range(4):
            story.add()
        page = watchers.watch(("a",), story.read, story.now, Place(1, 2, 0, 0))
        assert positions(await anext(page)) == [3, 4]
        story.add()
        steps.go()
        assert positions(await anext(page)) == [5]
        await page.aclose()

    told(test)


def test_page_that_joins_late_gets_no_event_twice():
    async def test(story: Story, steps: Steps, watchers: Watchers) -> None:
        first = watchers.watch(("a",), story.read, story.now)
        await anext(first)
        await settle()
        story.add()  # The watcher has not seen it yet, and the new page reads it.
        late = watchers.watch(("a",), story.read, story.now, Place(1, 0, 0, 0))
        caught = positions(await anext(late))
        story.add()
        steps.go()
        while 2 not in caught:
            caught += positions(await anext(late))
        assert caught == [1, 2]
        for page in (first, late):
            await page.aclose()

    told(test)


def test_quiet_conversation_sends_heartbeats():
    async def test(story: Story, steps: Steps, watchers: Watchers) -> None:
        page = watchers.watch(("a",), story.read, story.now)
        await anext(page)
        beat = asyncio.ensure_future(anext(page))
        while not beat.done():
            steps.go()
            await settle()
        assert beat.result() == (story.now, ())
        assert steps.waits in (HEARTBEAT - 1, HEARTBEAT)
        await page.aclose()

    told(test)


def test_watcher_reports_a_failing_store_and_goes_on():
    async def test(story: Story, steps: Steps, watchers: Watchers) -> None:
        page = watchers.watch(("a",), story.read, story.now)
        await anext(page)
        await settle()
        story.error = StoreError("The database is down.")
        steps.go()
        assert (await anext(page))[1] == (Update("store", "No news: The database is down.", state="failed"),)
        steps.go()  # It says so once.
        await settle()
        story.error = None
        story.add()
        steps.go()
        back, added = (await anext(page))[1]
        assert (back.kind, back.state, added.position) == ("store", "done", 1)
        await page.aclose()

    told(test)


def test_stopping_the_server_ends_all_streams():
    async def test(story: Story, steps: Steps, watchers: Watchers) -> None:
        pages = [watchers.watch((name,), story.read, story.now) for name in "ab"]
        for page in pages:
            await anext(page)
        watchers.stop()
        assert [[news async for news in page] for page in pages] == [[], []]
        assert [news async for news in watchers.watch(("a",), story.read, story.now)] == []
        assert len(watchers) == 0

    told(test)


def test_stream_ends_when_its_page_is_gone():
    async def test(story: Story, steps: Steps, watchers: Watchers) -> None:
        gone = asyncio.Event()
        page = watchers.watch(("a",), story.read, story.now, gone=gone.wait)
        await anext(page)
        gone.set()
        assert [news async for news in page] == []
        assert len(watchers) == 0

    told(test)


def test_streams_end_when_the_conversation_is_gone():
    async def test(story: Story, steps: Steps, watchers: Watchers) -> None:
        async def read(seen: Place) -> News:
            return seen, (Update("gone", "It exists no more."),)

        page = watchers.watch(("a",), read, story.now)
        assert [kinds(updates) async for _, updates in page] == [[], ["gone"]]

    told(test)


def test_stream_is_written_as_server_sent_events():
    async def news() -> AsyncIterator[News]:
        yield Place(1, 2, 3, 0), ()
        yield Place(1, 3, 3, 0), (Update("message", "m3: <b>\n\nuser", 3, rows=(3,)),)

    async def read() -> list[bytes]:
        return [piece async for piece in stream(news())]

    assert asyncio.run(read()) == [
        b"retry: 2000\n\n",
        b"id: 1.2.3.0\n: \n\n",
        b'id: 1.3.3.0\ndata: [{"kind":"message","text":"m3: <b>\\n\\nuser","position":3,"rows":[3]}]\n\n',
    ]
