"""Actions on a stored conversation, by their forms: what they change, what they report, and what they refuse."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from clients import client_of
from prepared import play
from starlette.testclient import TestClient

from foveate import Conversation, open_conversation
from foveate.edits import Hide, Pin, Span, Summarize, Target
from foveate.inspector import Access, build_app
from foveate.open import open_store
from foveate.testing import agent_run, answer, call, say, text_of, user

ORIGIN = {"origin": "http://localhost:8788"}
NAME = "agent/run 1"
PATH = "/c/store/agent~2Frun~201"


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Path:
    """A file with a conversation whose old results are shrunk."""
    path = tmp_path_factory.mktemp("played") / "chats.db"
    run = agent_run(30, 9, result_chars=(2_000, 8_000))
    play(f"sqlite:///{path}", NAME, [*run, user("And now?")], policy="keep-last-20")
    return path


@pytest.fixture
def url(played, tmp_path) -> str:
    """A SQLite store with a copy of the played conversation."""
    return f"sqlite:///{shutil.copy(played, tmp_path / 'chats.db')}"


@pytest.fixture
def client(url) -> Iterator[TestClient]:
    with client_of(build_app(url)) as opened:
        yield opened


def opened(url: str, **options: Any) -> Conversation:
    return open_conversation(NAME, store=url, policy="off", expand=True, **options)


def shrunk(url: str) -> list[str]:
    with opened(url) as chat:
        return [entry.handle for entry in chat.view if entry.shrunk]


def token(client: TestClient) -> str:
    found = re.search(r'name="token" value="([0-9a-f]+)"', client.get(f"{PATH}/plan").text)
    assert found is not None
    return found[1]


def send(client: TestClient, action: str, **fields: object) -> str:
    """Send a form, follow its redirect, and return the text of the message on the page."""
    content = {"token": token(client), **{key: str(value) for key, value in fields.items()}}
    answered = client.post(f"{PATH}/act/{action}", data=content, headers=ORIGIN)
    assert answered.status_code == 303, answered.text
    page = client.get(answered.headers["location"])
    assert page.status_code == 200
    found = re.search(r'<div class="notice (?:done|problem)"[^>]*>\s*<p>(.*?)</p>', page.text, re.DOTALL)
    assert found is not None
    return unescape(found[1])


def numbers(text: str) -> tuple[int, int]:
    """Return the edits of the receipt that a message names."""
    found = re.search(r"receipt: edits? (\d+)(?: to (\d+))?\.", text)
    assert found is not None, text
    return int(found[1]), int(found[2] or found[1])


def test_expanding_shows_an_original_and_can_be_undone(client, url):
    handle, *others = shrunk(url)
    text = send(client, "expand", m=handle)
    assert text.startswith(f"{handle} is shown whole again from turn 31 on.")
    assert shrunk(url) == others
    first, last = numbers(text)
    assert send(client, "undo", first=first, last=last).startswith(f"Edit {first} is undone.")
    assert shrunk(url) == [handle, *others]


def test_pinning_twice_says_that_nothing_changed(client, url):
    assert send(client, "pin", m="m3").startswith("m3 is pinned: no policy may shrink or hide it.")
    assert send(client, "pin", m="m3") == "m3 is pinned already. Nothing changed."
    assert send(client, "unpin", m="m3").startswith("m3 is no longer pinned")
    assert send(client, "unpin", m="m3") == "m3 is not pinned. Nothing changed."


def test_undo_of_a_receipt_undoes_all_of_its_edits(client, url):
    with opened(url) as chat:
        receipt = max(chat.journal.receipts(), key=lambda one: len(one.edits))
    assert receipt.last > receipt.first
    before = len(shrunk(url))
    text = send(client, "undo", first=receipt.first, last=receipt.last)
    assert text.startswith(f"Edits {receipt.first} to {receipt.last} are undone.")
    assert len(shrunk(url)) == before - len(receipt.edits)


def test_message_after_an_action_has_a_button_that_undoes_it(client, url):
    handle = shrunk(url)[0]
    answered = client.post(f"{PATH}/act/expand", data={"token": token(client), "m": handle}, headers=ORIGIN)
    place = urlsplit(answered.headers["location"])
    assert (place.path, place.fragment) == (PATH, handle)
    page = client.get(answered.headers["location"]).text
    assert f'action="{PATH}/act/undo"' in page
    assert 'role="status"' in page


def test_plan_shows_what_it_changes_and_apply_changes_that(client, url):
    page = client.get(f"{PATH}/plan?policy=balanced&window=8000").text
    assert "tokens, chosen here; 200,000 is suggested" in page
    place = re.search(r'name="place" value="([\d.]+)"', page)
    shown = re.search(r"Apply (\d+).edits", page)
    assert place is not None
    assert shown is not None
    before = shrunk(url)
    text = send(client, "apply", place=place[1], policy="balanced", window=8_000)
    assert text.startswith(f"The plan is applied: {shown[1]} edits by")
    assert len(shrunk(url)) != len(before)
    first, last = numbers(text)
    send(client, "undo", first=first, last=last)
    assert shrunk(url) == before


def test_apply_is_refused_after_another_process_wrote(client, url):
    page = client.get(f"{PATH}/plan?policy=balanced&window=8000").text
    place = re.search(r'name="place" value="([\d.]+)"', page)
    assert place is not None
    with opened(url) as chat:
        chat.append(say("Another process went on."))
        before = len(chat.journal.records())
    text = send(client, "apply", place=place[1], policy="balanced", window=8_000)
    assert text == ("The conversation changed since this plan was shown. Read the new plan below. Nothing was changed.")
    with opened(url) as chat:
        assert len(chat.journal.records()) == before


def test_plan_says_where_its_settings_come_from(client):
    page = unescape(client.get(f"{PATH}/plan").text)
    assert "A store does not record the policy of a program." in page
    assert "from the default" in page
    assert "from the newest reply" in page
    assert 'value="claude-haiku-4-5"' in page


def test_plan_without_a_known_model_says_so(store):
    with client_of(build_app(store)) as client:
        page = client.get("/c/store/a~2Fb/plan").text
        chosen = client.get("/c/store/a~2Fb/plan?model=gpt-5-mini&window=16_000").text
    assert '<span class="soft">not known, so no money is shown</span>' in page
    assert '<span class="soft">chosen here</span>' in chosen
    assert 'value="16000"' in chosen


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("policy=/etc/passwd", "There is no policy '/etc/passwd' here."),
        ("summarizer=anthropic:claude-opus-4-5", "There is no summarizer 'anthropic:claude-opus-4-5' here."),
        ("window=12", "The window must be a number of tokens from 1,000 to 100,000,000, not '12'."),
    ],
)
def test_plan_with_a_wrong_setting_says_so(client, query, problem):
    answered = client.get(f"{PATH}/plan?{query}")
    assert answered.status_code == 200
    assert problem in unescape(answered.text)


def test_plan_that_cannot_fit_says_so(client, url):
    with opened(url) as chat:
        chat.append(user(text_of(12_000)))
    page = unescape(client.get(f"{PATH}/plan?window=8000").text)
    assert "are usable. Shorten one of them" in page


def test_compacting_with_a_focus_can_be_undone(client, url):
    text = send(client, "compact", focus="the results", summarizer="digest")
    assert text.startswith("The oldest part is shown as a summary that concentrates on 'the results', written by")
    with opened(url) as chat:
        assert any(entry.kind == "summary" for entry in chat.view)
    first, last = numbers(text)
    send(client, "undo", first=first, last=last)
    with opened(url) as chat:
        assert not any(entry.kind == "summary" for entry in chat.view)


def test_fork_at_a_message_shares_the_past(client, url):
    text = send(client, "fork", m="m5", fork="try/2")
    assert text == "try/2 is a fork of agent/run 1: it shares 5 messages with it."
    with open_store(url) as store:
        assert sorted(store.names("")) == [NAME, "try/2"]
    assert client.get("/c/store/try~2F2").status_code == 200


def test_erasing_needs_the_word_and_names_what_is_erased(client, url):
    page = unescape(client.get(f"{PATH}/erase?m=m3-m4").text)
    assert "This erases 2 messages" in page
    assert send(client, "erase", m="m3-m4", confirm="yes") == "Nothing was erased: type the word erase to confirm."
    with opened(url) as chat:
        original = chat.original("m3").text or chat.original("m3").calls
        assert original
    text = send(client, "erase", m="m3-m4", confirm="erase", who="Ada", reason="a secret")
    assert text.startswith("m3-m4 is erased for good: 2")
    with opened(url) as chat:
        (erasure,) = chat.privacy.erasures()
        assert (erasure.who, erasure.reason, erasure.messages) == ("Ada", "a secret", 2)
    assert send(client, "erase", m="m3-m4", confirm="erase") == "m3-m4 was erased before. Nothing changed."


@pytest.mark.parametrize(("handle", "last"), [("m2-m4", "m4"), ("m3.1", "m3"), ("m3", "m3"), ("", "")])
def test_page_of_a_message_forks_after_its_last_one(client, handle, last):
    """Regression: the form of a summary named a span, which every fork refuses."""
    page = client.get(f"{PATH}/more?m={handle}").text
    assert f'<input id="m" name="m" value="{last}"' in page
    assert ("Fork after " + last if last else "Fork the conversation") in page


def test_erase_page_names_forks_that_share_the_messages(client, url):
    send(client, "fork", m="m5", fork="shares")
    send(client, "fork", m="m2", fork="older")
    page = client.get(f"{PATH}/erase?m=m3").text
    assert "1 other conversation shares them and loses them too: shares." in page
    send(client, "fork", m="m5", fork="also")
    page = client.get(f"{PATH}/erase?m=m3").text
    assert "2 other conversations share them and lose them too: " in page


@pytest.mark.parametrize(
    ("action", "fields", "problem"),
    [
        ("expand", {"m": "m1"}, "m1 cannot be expanded: it is shown whole."),
        ("expand", {"m": "m999"}, "Nothing here is called 'm999'."),
        ("pin", {"m": "m2-m5"}, "m2-m5 stands for several messages"),
        ("expand", {}, "The form names no message."),
        ("undo", {"first": 9_999}, "The journal has edits 1 to"),
        ("undo", {"first": 1, "last": 9_999}, "The journal has no receipt of edits 1 to 9999."),
        ("fork", {"fork": NAME}, "There already is a conversation"),
        ("fork", {"fork": "x", "m": "m2-m4"}, "at= names one message"),
        ("fork", {}, "A fork needs a name."),
        ("erase", {"m": "m3.1", "confirm": "erase"}, "only whole messages are erased"),
    ],
)
def test_action_that_is_not_possible_says_why(client, url, action, fields, problem):
    with opened(url) as chat:
        before = chat.journal.records()
    assert problem in send(client, action, **fields)
    with opened(url) as chat:
        assert chat.journal.records() == before


def test_compacting_twice_says_that_there_is_nothing_to_compact(client):
    for _ in range(4):
        send(client, "compact")
    assert "There is nothing to compact" in send(client, "compact")


def test_form_without_the_token_or_of_another_site_is_refused(client, url):
    known = token(client)
    assert client.post(f"{PATH}/act/pin", data={"m": "m3"}, headers=ORIGIN).status_code == 403
    other = {"origin": "https://evil.example"}
    assert client.post(f"{PATH}/act/pin", data={"m": "m3", "token": known}, headers=other).status_code == 403
    assert client.get(f"{PATH}/act/pin?m=m3&token={known}").status_code == 405
    with opened(url) as chat:
        assert not any(entry.pins for entry in chat.view)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "null", "sec-fetch-site": "same-origin"}, 303),  # A browser sends this with our own forms.
        ({"origin": "null"}, 403),
        ({"origin": "null", "sec-fetch-site": "cross-site"}, 403),
        ({"origin": "null", "sec-fetch-site": "none"}, 403),
        ({"sec-fetch-site": "same-origin"}, 303),
        ({"origin": "http://localhost:8788", "sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_origin_without_a_name_counts_with_the_word_of_the_browser(client, headers, status):
    data = {"m": "m3", "token": token(client)}
    assert client.post(f"{PATH}/act/pin", data=data, headers=headers).status_code == status


def test_unknown_action_is_not_found(client):
    answered = client.post(f"{PATH}/act/explode", data={"token": token(client)}, headers=ORIGIN)
    assert answered.status_code == 404


def test_read_only_pages_have_no_forms_and_refuse_actions(client, url):
    known = token(client)
    with client_of(build_app(url, access=Access(is_read_only=True))) as reader:
        for page in ("plan?window=8000", "journal", "more?m=m3", "erase?m=m3"):
            answered = reader.get(f"{PATH}/{page}")
            assert answered.status_code == 200
            assert 'method="post"' not in answered.text
        assert reader.post(f"{PATH}/act/pin", data={"m": "m3", "token": known}, headers=ORIGIN).status_code == 403


def test_journal_lists_receipts_by_pages(client, url):
    with opened(url) as chat:
        for _ in range(40):
            chat.pin("m3")
            chat.unpin("m3")
        count = len(chat.journal.receipts())
    first = client.get(f"{PATH}/journal").text
    older = re.search(r'<a rel="next" href="([^"]+)"', first)
    assert older is not None
    second = client.get(unescape(older[1])).text
    assert first.count('data-row="') == 50
    assert second.count('data-row="') == count - 50
    assert len(first) < 500_000


def test_journal_names_the_messages_of_each_edit(client, url):
    with opened(url) as chat:
        ids = [entry.id for entry in chat.history(3, 6)]
        chat.edit(Pin(Target(ids[0]), "mine", "a rule"), Hide(Span(ids[1], ids[3]), "mine", "not needed"))
    page = client.get(f"{PATH}/journal").text
    assert f'pin <a href="{PATH}/more?m=m3">m3</a>' in page
    assert f'hide <a href="{PATH}/more?m=m4-m6">m4-m6</a>' in page
    assert '<summary data-open>2 edits <span class="soft">a rule; not needed</span></summary>' in page


def test_journal_offers_no_undo_of_an_erasure(client, url):
    """The button brought no text back. It hid the messages that the erasure shows instead of a summary."""
    with opened(url) as chat:
        ids = [entry.id for entry in chat.history(3, 6)]
        chat.edit(Summarize(Span(ids[0], ids[3]), "What was read.", "mine", "older"))
        chat.privacy.erase("m4")
        receipt = chat.journal.receipts()[-1]
    page = client.get(f"{PATH}/journal").text
    row = page.split(f'data-row="{receipt.first}"')[1].split('class="row"')[0]
    assert (receipt.author, "act/undo" in row, "act/undo" in page) == ("erase", False, True)


def test_journal_with_large_receipts_has_fewer_on_a_page(client, url):
    """A page of 50 receipts with 64 edits had 1.4 MB."""
    with opened(url) as chat:
        ids = [entry.id for entry in chat.history(1, 50)]
        for number in range(12):
            chat.edit(*(Pin(Target(id), "mine", f"rule {number}") for id in ids))
    page = client.get(f"{PATH}/journal").text
    assert page.count('data-row="') == 10
    assert len(page) < 500_000


def test_message_page_leads_to_its_original_and_its_row(client):
    page = client.get(f"{PATH}/more?m=m3").text
    assert f'<a href="{PATH}/covered?first=3&amp;last=3">As it was appended</a>' in page
    assert f'<a href="{PATH}?m=3#m3">In the view</a>' in page
    assert page.count(f"{PATH}/more?") == 0


def test_message_page_explains_and_offers_actions(client, url):
    handle = shrunk(url)[0]
    page = unescape(client.get(f"{PATH}/more?m={handle}").text)
    assert "keep-last" in page
    assert f'action="{PATH}/act/fork"' in page
    assert "Nothing here is called 'm999'" in unescape(client.get(f"{PATH}/more?m=m999").text)


def test_message_page_of_a_long_range_is_cut(store):
    with open_conversation("c", store=store, window=1_000_000, policy="off") as chat:
        chat.append([user(f"Question {number}") for number in range(250)])
    with client_of(build_app(store)) as client:
        page = unescape(client.get("/c/store/c/more?m=m1-m250").text)
    sentences = len(re.findall("<p>(?!<a)", page))
    rest = re.search(r"([0-9]+) further sentences not shown", page)
    assert (sentences, rest is not None and int(rest[1]) > 0) == (200, True)


def test_notice_of_another_tenant_or_a_made_up_one_is_not_shown(client):
    page = client.get(f"{PATH}/plan?notice=You+won%3Cb%3E")
    assert page.status_code == 200
    assert "You won" not in page.text
    assert 'class="notice' not in page.text


def test_palette_finds_conversations_by_name(client, url):
    with open_conversation("other", store=url, window=50_000) as chat:
        chat.append("Hi")
    found = client.get("/palette?q=agent").json()
    assert [(one["title"], one["url"]) for one in found] == [(NAME, PATH)]


def test_action_in_an_open_conversation_of_another_process_is_seen_there(client, url):
    with open_conversation(NAME, store=url, window=40_000, policy="none") as running:
        handle = shrunk(url)[0]
        send(client, "expand", m=handle)
        running.append([call("late"), answer("late", text_of(50))])
        view = running.prepare()
        assert not next(entry for entry in view if entry.handle == handle).shrunk
