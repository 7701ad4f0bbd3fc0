"""The search in one conversation finds messages in any form, and says what the next call shows of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from clients import client_of
from starlette.testclient import TestClient

from foveate import open_conversation
from foveate.edits import Hide, Span, Summarize, Target
from foveate.inspector import build_app
from foveate.open import open_store
from foveate.testing import answer, call, say, user

PATH = "/c/store/c/search"
ROW = re.compile(r'<li class="row" data-row="(m\d+)".*?<span class="acts"><a href="[^"]*">([^<]*)</a>', re.DOTALL)


@pytest.fixture
def client(tmp_path) -> Iterator[TestClient]:
    """A client of a conversation with the word in a summary, in a hidden message, and in one that is shown."""
    with open_store(f"sqlite:///{tmp_path / 'chats.db'}") as store:
        with open_conversation("c", store=store, window=50_000) as chat:
            chat.append([user("The zebra key"), say("Noted"), user("Where is the <b>zebra</b>?"), say("Here")])
            chat.append(
                [user("Read on"), call("a", "read", path="zebra.py"), answer("a", "one\ntwo zebra"), say("Done")]
            )
            ids = [entry.id for entry in chat.history()]
            chat.edit(Summarize(Span(ids[0], ids[1]), "Notes.", "mine", "older"))
            chat.edit(Hide(Target(ids[2]), "mine", "not needed"))
        with client_of(build_app(store)) as client:
            yield client


def test_search_says_how_the_next_call_shows_each_message(client):
    page = client.get(PATH, params={"q": "zebra"}).text
    assert dict(ROW.findall(page)) == {
        "m1": "in the summary m1-m2",
        "m3": "not shown",
        "m6": "shown as it was appended",
        "m7": "shown as it was appended",
    }
    assert "the &lt;b&gt;zebra&lt;/b&gt;?" in page
    assert "line 2" in page


def test_search_finds_no_erased_message(client):
    token = re.search(r'name="token" value="([^"]+)"', client.get("/c/store/c/erase?m=m1").text)[1]
    client.post("/c/store/c/act/erase", data={"token": token, "m": "m1", "confirm": "erase"})
    assert set(dict(ROW.findall(client.get(PATH, params={"q": "zebra"}).text))) == {"m3", "m6", "m7"}


@pytest.mark.parametrize(
    ("query", "answer"), [("", "Search in the messages"), ("giraffe", "No message has all of these words.")]
)
def test_search_without_a_match_says_so(client, query, answer):
    page = client.get(PATH, params={"q": query}).text
    assert answer in page
    assert ROW.findall(page) == []


def test_search_names_messages_with_similar_words_as_such(client):
    """After the last message with a secret was erased, those with similar words seemed to have it too."""
    page = client.get(PATH, params={"q": "zebru"}).text
    first, similar = page.split("with some of these words, or with similar ones")
    assert "No message has all of these words." in first
    assert set(dict(ROW.findall(similar))) == {"m1", "m3", "m6", "m7"}


def test_search_in_a_store_without_an_index_says_why(tmp_path):
    with open_store(f"sqlite:///{tmp_path / 'chats.db'}?search=off") as store:
        open_conversation("c", store=store, window=50_000).append("zebra")
        with client_of(build_app(store)) as client:
            assert "has no word index" in client.get(PATH, params={"q": "zebra"}).text
