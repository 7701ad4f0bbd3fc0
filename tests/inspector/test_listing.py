"""The list: pages, search, figures, and a store with 100,000 conversations."""

from __future__ import annotations

import random
import sqlite3
import time

import pytest
from clients import client_of

from foveate import Options, open_conversation
from foveate.core.stamps import Usage
from foveate.edits import Span, Summarize
from foveate.inspector import build_app
from foveate.inspector.pages.listing import figures_of
from foveate.inspector.views.timeline import timeline_of
from foveate.open import cost_of, open_store


@pytest.fixture
def many(tmp_path):
    """A store with 120 conversations, each a second newer than the one before."""
    with open_store(f"sqlite:///{tmp_path / 'many.db'}") as opened:
        for number in range(120):
            with open_conversation(f"project/{number:03}", store=opened, window=100_000) as chat:
                chat.append("Hello", time=1_790_000_000_000 + 1000 * number)
        yield opened


def test_list_begins_with_the_newest_and_leads_to_the_next_page(many):
    with client_of(build_app(many)) as client:
        first = client.get("/").text
        second = client.get("/", params={"source": "store", "from": 50}).text
    assert "project/119" in first
    assert "project/069" not in first
    assert 'href="/?source=store&amp;from=50"' in first
    assert "51 to 100 of 120" in second
    assert "project/069" in second
    assert "2026-09-21" in second


def test_search_finds_names_with_all_words(many):
    with client_of(build_app(many)) as client:
        text = client.get("/", params={"q": "PROJECT 007"}).text
    assert "1 conversation<" in text
    assert "project/007" in text
    assert "No conversation has this in its name." in client_of(build_app(many)).get("/?q=nothing").text


@pytest.mark.parametrize("query", ["from=-5", "from=99999999", "from=&q=&source=none", "q=" + "x" * 5000])
def test_list_stands_any_query(client, query):
    assert client.get(f"/?{query}").status_code == 200


def test_page_after_the_end_is_the_last_one(many):
    """It had no rows, the words "No conversation yet", and the range 100,000 to 120."""
    with client_of(build_app(many)) as client:
        text = client.get("/", params={"source": "store", "from": 99_999}).text
    assert "101 to 120 of 120" in text
    assert "project/000" in text


def test_number_that_is_none_is_refused(client):
    assert client.get("/?from=ten").status_code == 400


def test_figures_are_those_of_the_conversation(client, store):
    cells = client.get("/figures", params={"source": "store", "name": ["a/b", "none"]}).json()
    assert ">1<" in cells["a/b"]
    assert "none" in cells
    with open_conversation("a/b", store=store, window=100_000) as chat:
        figures = figures_of(chat)
        assert (figures.turns, figures.shown, figures.whole) == (1, chat.view.tokens, chat.totals().tokens_history)
        assert (figures.saved, figures.health) == (0, "")


def test_savings_of_the_list_are_those_of_the_page(store):
    """Regression: after a pause, the list charged what follows an edit, which the cache no longer had anyway."""
    pytest.importorskip("genai_prices")
    now = 1_790_000_000_000
    with open_conversation(
        "pause", store=store, model="claude-haiku-4-5", policy="off", options=Options(clock=lambda: now)
    ) as chat:
        for number in range(6):
            now += 3_600_000 if number == 5 else 1_000
            chat.append(f"Part {number}: " + "word " * 1_000)
            if number == 5:
                first, last = chat.history()[0], chat.history()[1]
                chat.edit(Summarize(Span(first.id, last.id), "Part 0."))
            chat.prepare()
            chat.record({"role": "assistant", "content": "Noted."}, usage=Usage(10, 0, 1_000, 5))
        figures = timeline_of(chat, cost_of).follow(30)
        saved = figures.total("dollars_unmanaged") - figures.total("dollars")
        assert saved > 0
        assert figures_of(chat).dollars == pytest.approx(saved)


def test_figures_of_an_unknown_source_are_missing(client):
    assert client.get("/figures?source=none&name=a").status_code == 404


def test_health_names_a_view_over_its_window(store):
    with open_conversation("full", store=store, window=2_000, policy="off") as chat:
        chat.append("word " * 9_000)
        figures = figures_of(chat)
    assert (figures.health, figures.is_problem) == ("over the window", True)


def test_health_names_a_broken_chain(tmp_path):
    path = tmp_path / "chats.db"
    with open_store(f"sqlite:///{path}") as store, open_conversation("one", store=store, window=100_000) as chat:
        chat.append("Hello")
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE message SET body = zeroblob(9)")
    raw.close()
    with client_of(build_app(f"sqlite:///{path}")) as client:
        cells = client.get("/figures?source=store&name=one").json()
    assert "broken chain" in cells["one"]


def fill(path, count):
    """Write rows of so many conversations, without messages."""
    open_store(f"sqlite:///{path}").close()
    chance = random.Random(1)
    rows = [
        (chance.getrandbits(62), f"project-{number % 97}/session {number:06}", bytes(20), number)
        for number in range(count)
    ]
    with sqlite3.connect(path) as raw:
        raw.executemany(
            "INSERT INTO branch (tenant, root, branch, name, lineage, position, tip, seal, number, record, time) "
            "VALUES ('', ?1, 1, ?2, '[]', 0, ?3, ?3, 0, ?3, ?4)",
            rows,
        )
        raw.executemany("INSERT INTO conversation VALUES ('', ?1, ?2, ?1, 1)", [row[:2] for row in rows])
    raw.close()


@pytest.mark.slow
def test_list_of_100_000_conversations_does_not_hang(tmp_path):
    fill(tmp_path / "big.db", 100_000)
    with client_of(build_app(f"sqlite:///{tmp_path / 'big.db'}")) as client:
        client.get("/")
        seconds = []
        for query in ("", "?q=session+0999", "?source=store&from=50000"):
            began = time.process_time()
            answer = client.get(f"/{query}")
            seconds.append(time.process_time() - began)
            assert answer.status_code == 200
            assert len(answer.content) < 100_000
    assert max(seconds) < 20, seconds  # 0.2 on a computer of its own; `bench/inspector.py` measures it.
