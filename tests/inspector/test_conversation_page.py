"""The page of a conversation: timeline, rows by pieces, details, originals, and what a summary stands for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import unescape

import pytest
from clients import client_of
from starlette.testclient import TestClient

from foveate import Message, Text, ToolCall, open_conversation, user
from foveate.conversation.past import Past
from foveate.core.stamps import Usage
from foveate.edits import Hide, Replace, Span, Summarize, Target
from foveate.inspector import build_app
from foveate.inspector.views.chart import chart_of
from foveate.inspector.views.timeline import timeline_of
from foveate.open import open_store
from foveate.ports import Store
from foveate.replay.run import replay
from foveate.stores.memory import MemoryStore
from foveate.testing import agent_run
from foveate.testing.builders import answer, call

ROW = re.compile(r'data-row="([^"]+)"')


@pytest.fixture(scope="module")
def long_store() -> Store:
    """A store with a long run under a policy, and one without a policy."""
    store = open_store("memory:")
    messages = agent_run(150, seed=6, result_chars=(50, 2_500))
    replay(messages, policy="balanced", window=30_000, provider="anthropic", store=store, name="run")
    replay(messages, policy="off", window=900_000, provider="anthropic", store=store, name="whole")
    return store


@pytest.fixture
def get(long_store: Store) -> Iterator[Callable[..., str]]:
    """Return the text of a page of the long store."""
    with client_of(build_app(long_store)) as client:

        def read(path: str, status: int = 200, **query: object) -> str:
            answered = client.get(f"/c/store/{path}", params=query, headers={"x-part": "1"})
            assert answered.status_code == status, answered.text[:500]
            assert len(answered.content) <= 500_000
            return answered.text

        yield read


def ready(get: Callable[..., str], name: str, **query: object) -> str:
    """Return the chart of a conversation when its figures are complete."""
    for _ in range(30):
        chart = get(f"{name}/chart", **query)
        if 'data-complete="yes"' in chart:
            return chart
    raise AssertionError(chart)


def test_page_shows_the_view_of_the_coming_call(get, long_store):
    page = get("run")
    chat = open_conversation("run", store=long_store, format="anthropic", policy="off")
    assert "The coming call" in page
    assert f'data-total="{len(chat.view)}"' in page
    rows = ROW.findall(page)
    assert len(rows) == 40
    assert len(set(rows)) == 40


def test_page_names_the_window_of_its_percentage():
    """A store does not know the window of the program that wrote it, so this one is that of the model."""
    store = MemoryStore()
    with open_conversation("c", store=store, model="claude-sonnet-4-5", window=20_000) as chat:
        chat.append("x" * 7_900)
        chat.record({"role": "assistant", "content": "yes", "model": "claude-sonnet-4-5"})
    with client_of(build_app(store)) as client:
        assert "of a window of 200,000, that of claude-sonnet-4-5." in client.get("/c/store/c").text


def test_row_of_many_calls_counts_them_by_tool():
    store = MemoryStore()
    calls = [ToolCall(f"c{number}", "edit" if number else "read", "{}") for number in range(17)]
    with open_conversation("c", store=store, window=20_000) as chat:
        chat.append(user("Go"))
        chat.append(Message("assistant", tuple(calls)))
    with client_of(build_app(store)) as client:
        page = client.get("/c/store/c").text
    assert '<span class="who">assistant <b>edit</b> × 16 <b>read</b></span>' in page


def test_stand_ins_between_messages_have_no_page_of_their_own():
    """Their rows had a link to an original that no message is."""
    store = MemoryStore()
    with open_conversation("c", store=store, format="openai", model="mistral-small", window=20_000) as chat:
        chat.append([user("One"), user("Two")])
        chat.record({"role": "assistant", "content": "yes", "model": "mistral-small"})
    with client_of(build_app(store)) as client:
        text = client.get("/c/store/c", params={"turn": 1}).text
    assert ROW.findall(text) == ["m1", "s2", "m2"]
    assert "Original and difference" not in text


def test_rows_of_all_pieces_are_the_view(get, long_store):
    chat = open_conversation("run", store=long_store, format="anthropic", policy="off")
    turn = chat.view.turn - 20
    view = Past(chat._session.state).view_at(turn)
    found: list[str] = []
    for at in range(0, len(view) + 40, 40):
        found += ROW.findall(get("run/rows", turn=turn, at=at))
    assert [row.split("_")[0] for row in found] == [entry.handle for entry in view]


def test_rows_are_found_by_position(get):
    assert ROW.findall(get("whole/rows", **{"from": 101, "to": 103})) == ["m101", "m102", "m103"]
    assert ROW.findall(get("whole", m=150))[0] == "m121"


def test_chart_has_the_figures_of_each_call(get, long_store):
    chart = ready(get, "run", turn=7)
    data = json.loads(unescape(re.search(r'data-figures="([^"]*)"', chart)[1]))
    # In the format that the page assumes: others join other messages, and so keep other ones in the cache.
    chat = open_conversation("run", store=long_store, format="openai", policy="off")
    figures = timeline_of(chat).follow(60)
    assert len(data["turn"]) <= 420
    assert data["spent"][-1] == pytest.approx(figures.total("cost"), rel=1e-5)
    assert data["spent_whole"][-1] == pytest.approx(figures.total("cost_unmanaged"), rel=1e-5)
    assert max(data["tokens"]) == max(figures.column("tokens"))
    assert 'class="chosen"' in chart
    assert "← Turn 6" in chart
    assert "Turn 8 →" in chart


def test_zoomed_chart_has_the_calls_of_its_range(get):
    chart = ready(get, "run", first=20, last=49)
    data = json.loads(unescape(re.search(r'data-figures="([^"]*)"', chart)[1]))
    assert (data["turn"][0], data["turn"][-1], len(data["turn"])) == (20, 49, 30)
    assert "All calls" in chart
    assert ready(get, "run", first=49, last=20).count("All calls") == 0


def test_turn_that_never_was_is_not_found(get):
    assert "there is no turn 9999" in get("run", 404, turn=9_999)
    get("run/entry", 404, m=99_999)
    get("run/rows", 400, turn="x")
    assert get("run", 400, turn="--3") == "turn must be a whole number, not '--3'."


def edited() -> tuple[Store, list[str]]:
    store = MemoryStore()
    with open_conversation("c", store=store, format="anthropic", window=50_000, policy="off") as chat:
        chat.append(user("Look at all of it."))
        for number in range(4):
            chat.prepare()
            chat.record(call(f"c{number}", "read", path=f"f{number}.py"), usage=Usage(10, 200, 30, 5))
            chat.append(answer(f"c{number}", "".join(f"line {n} of file {number}\n" for n in range(30))))
        ids = [entry.id for entry in chat.view]
        chat.edit(
            Replace(Target(ids[2]), (Text("line 1 of file 0\nline 7 of file 0\nmore is left out"),), "mine", "old")
        )
        chat.edit(Summarize(Span(ids[3], ids[4]), "The second file was read.", "mine", "older"))
        chat.edit(Hide(Span(ids[5], ids[6]), "mine", "not needed"))
        chat.pin("m9")
    return store, ids


@pytest.fixture
def small() -> Iterator[TestClient]:
    with client_of(build_app(edited()[0])) as client:
        yield client


def test_rows_say_what_was_left_out_and_why(small):
    page = small.get("/c/store/c").text
    assert ROW.findall(page) == ["m1", "m2", "m3", "m4", "g6", "m8", "m9"]
    row = re.search(r'<article class="[^"]*" id="m3".*?</article>', page, re.DOTALL)[0]
    assert ("is-digest" in row, "<b>mine</b> old" in row, "Original and difference" in row) == (True, True, True)
    assert "2 messages it stands for" in re.search(r'id="m4".*?</article>', page, re.DOTALL)[0]
    gap = re.search(r'id="g6".*?</article>', page, re.DOTALL)[0]
    assert ("2 messages not shown" in gap, "<b>mine</b> not needed" in gap) == (True, True)
    assert "is-pinned" in re.search(r'class="[^"]*" id="m9"', page)[0]


def test_original_is_shown_as_a_difference(small):
    entry = small.get("/c/store/c/entry?m=3", headers={"x-part": "1"}).text
    assert entry.count("c-removed") >= 10
    assert "more is left out" in entry
    assert "line 29 of file 0" in entry
    assert "Edit 1, turn" in entry
    assert "1 receipt" in entry
    page = small.get("/c/store/c/entry?m=3").text
    assert page.startswith("<!doctype html>")
    assert "m3" in page


def test_summary_opens_into_the_messages_it_stands_for(small):
    covered = small.get("/c/store/c/covered?first=4&last=5", headers={"x-part": "1"}).text
    assert ROW.findall(covered) == ["o4", "o5"]
    assert "line 3 of file 1" in covered


def test_erased_messages_are_marked():
    with open_conversation("c", store=(store := MemoryStore()), format="openai", window=8_000, policy="off") as chat:
        for message in (user("Look."), call("a", "read", path="x"), answer("a", "line"), user("And?"), user("")):
            chat.append(message)
        chat.privacy.erase("m2-m4")
    with client_of(build_app(store)) as client:
        covered = client.get("/c/store/c/covered?first=1&last=5", headers={"x-part": "1"}).text
        page = client.get("/c/store/c").text
    assert covered.count('<p class="soft">Erased.</p>') == 3
    assert ("4 messages not shown" in page, "blank, erased, or hidden by an edit" in page) == (True, True)


def test_long_ranges_open_by_pages(get):
    covered = get("whole/covered", first=1, last=200)
    assert ROW.findall(covered) == [f"o{position}" for position in range(1, 41)]
    assert "Messages 41 to 200" in covered


def test_billed_tokens_stand_next_to_estimates(small):
    for _ in range(30):
        chart = small.get("/c/store/c/chart?turn=2").text
        if 'data-complete="yes"' in chart:
            break
    assert "Billed: input 10, cache read 200, cache write 30, output 5" in chart
    assert "billed prompt" in chart


def test_billed_tokens_without_a_price_have_no_sum_of_money(small):
    """The sum was $0.00: no call has a model, so no price is known."""
    for _ in range(30):
        chart = small.get("/c/store/c/chart").text
        if 'data-complete="yes"' in chart:
            break
    assert "billed prompt" in chart
    assert "Billed, with answers" not in chart


def test_view_far_from_each_known_place_appears_when_it_is_read(get, monkeypatch):
    monkeypatch.setattr(Past, "is_near", lambda self, turn: False)
    page = get("run", turn=50)
    assert "appears when the history before it is read" in page
    assert ROW.findall(page) == []
    get("run/rows", 503, turn=51)


def test_chart_without_calls_is_none():
    chat = open_conversation("c", store=MemoryStore(), format="openai", window=1_000, policy="off")
    assert chart_of(timeline_of(chat).follow(10), window=1_000, usable=900) is None
