"""Actions, keys, the command palette and live pages in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from browsing import LOOKS, Look, check_accessibility, screenshot
from prepared import play
from serving import served

from foveate import Conversation, Message, open_conversation
from foveate.edits import Span, Summarize, Task
from foveate.inspector import build_app
from foveate.testing import agent_run, answer, call, say, user

pytestmark = pytest.mark.slow

PATH = "/c/store/run"
NOTICE = ".notice p"


@pytest.fixture
def url(tmp_path) -> str:
    """A SQLite store with an agent's conversation whose old results are shrunk, and a short one."""
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    run = agent_run(30, 9, result_chars=(2_000, 8_000))
    play(url, "run", [*run, user("And now?")], policy="keep-last-20")
    with open_conversation("a short one", store=url, window=50_000) as chat:
        chat.append("Hello")
    return url


@pytest.fixture
def site(url) -> Iterator[str]:
    with served(build_app(url)) as site:
        yield site


def opened(url: str) -> Conversation:
    return open_conversation("run", store=url, policy="off", expand=True)


def shrunk(url: str) -> list[str]:
    with opened(url) as chat:
        return [entry.handle for entry in chat.view if entry.shrunk]


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.closest('[data-row]')?.dataset.row ?? ''"))


def test_keys_move_over_rows_and_act_on_them(site, pages, url):
    page = pages.open(f"{site}{PATH}")
    press(page, "j")
    first = focused(page)
    press(page, "j", "j", "k")
    assert first
    assert focused(page) not in ("", first)
    handle = shrunk(url)[0]
    page.locator(f"#{handle}").focus()
    press(page, "e")
    page.locator(NOTICE).wait_for()
    page.wait_for_load_state()
    assert page.locator(NOTICE).inner_text().startswith(f"{handle} is shown whole again")
    assert handle not in shrunk(url)
    press(page, "u")  # Undoes what was just done.
    page.get_by_text("is undone.").wait_for()
    page.wait_for_load_state()  # Keys count once the scripts have run.
    assert handle in shrunk(url)
    page.locator("#m3").focus()
    press(page, "p")
    page.get_by_text("m3 is pinned: no policy may shrink or hide it.").wait_for()


def test_message_about_an_action_is_in_sight_and_can_be_closed(site, pages, url):
    page = pages.open(f"{site}{PATH}")
    page.locator("#m30").get_by_role("button", name="Pin").click()
    notice = page.locator(NOTICE)
    page.get_by_role("button", name="Close").wait_for()  # The page's script adds it.
    page.wait_for_function("window.scrollY > 0")  # At the message, far below the top of the page.
    assert 0 <= notice.bounding_box()["y"] < 300
    assert "notice=" not in page.url
    page.get_by_role("button", name="Close").click()
    notice.wait_for(state="hidden")


def test_keys_are_text_while_a_person_types(site, pages, url):
    page = pages.open(f"{site}{PATH}/plan")
    page.locator("#focus").focus()
    page.keyboard.type("jkepu?/[]gl")
    assert page.locator("#focus").input_value() == "jkepu?/[]gl"
    assert page.url == f"{site}{PATH}/plan"
    assert page.locator("dialog[open]").count() == 0


def test_g_l_leads_to_the_list_and_slash_searches_there(site, pages):
    page = pages.open(f"{site}{PATH}")
    press(page, "g", "l")
    page.wait_for_url(f"{site}/")
    press(page, "/")
    assert page.evaluate("document.activeElement.type") == "search"


def test_question_mark_shows_the_keys_and_escape_closes_them(site, pages):
    page = pages.open(f"{site}{PATH}")
    press(page, "?")
    page.get_by_role("dialog", name="Keys").wait_for()
    check_accessibility(page)
    press(page, "Escape")
    page.get_by_role("dialog").wait_for(state="hidden")


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_palette_offers_actions_and_conversations(site, pages, look: Look):
    page = pages.open(f"{site}{PATH}", look)
    page.locator("#m3").focus()
    press(page, "Control+k")
    field = page.get_by_role("combobox", name="Action or conversation")
    field.fill("short")
    page.get_by_role("option", name="a short one").wait_for()
    check_accessibility(page)
    screenshot(page, f"palette-{look}")
    chosen = field.get_attribute("aria-activedescendant")
    assert page.locator(f"#{chosen}").get_attribute("aria-selected") == "true"
    press(page, "Tab")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "combobox"  # The focus stays inside.
    press(page, "Enter")
    page.wait_for_url("**/a~20short~20one")


def test_palette_closes_and_gives_the_focus_back(site, pages):
    page = pages.open(f"{site}{PATH}")
    page.locator("#m3").focus()
    press(page, "Control+k")
    page.get_by_role("option", name=re.compile("Receipts")).wait_for()
    press(page, "Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert focused(page) == "m3"
    press(page, "Control+k")
    page.get_by_role("combobox").fill("receipts")
    press(page, "Enter")
    page.wait_for_url(f"{site}{PATH}/journal")


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_plan_is_looked_at_applied_and_undone(site, pages, url, look: Look):
    before = shrunk(url)
    page = pages.open(f"{site}{PATH}/plan", look)
    page.get_by_label("Window").fill("8000")
    page.get_by_role("button", name="Plan again").click()
    page.locator("details summary").first.click()
    check_accessibility(page)
    screenshot(page, f"plan-{look}")
    page.get_by_role("button", name=re.compile(r"Apply \d+")).click()
    page.get_by_text(re.compile(r"^The plan is applied: ")).wait_for()
    assert shrunk(url) != before
    page.locator(".notice").get_by_role("button", name="Undo").click()
    page.get_by_text("are undone.").wait_for()
    assert shrunk(url) == before


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_erasing_shows_what_it_erases_and_asks_for_a_word(site, pages, url, look: Look):
    page = pages.open(f"{site}{PATH}/more?m=m3", look)
    check_accessibility(page)
    page.get_by_role("link", name="Erase m3").click()
    page.get_by_role("heading", name=re.compile("This erases 1.message")).wait_for()
    check_accessibility(page)
    screenshot(page, f"erase-{look}")
    page.get_by_label("Type erase to confirm").fill("erase")
    page.get_by_role("button", name="Erase for good").click()
    page.get_by_text("m3 is erased for good").wait_for()
    with opened(url) as chat:
        assert [erasure.handles for erasure in chat.privacy.erasures()] == ["m3"]


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_receipts_can_be_undone_one_by_one(site, pages, url, look: Look):
    page = pages.open(f"{site}{PATH}/journal", look)
    check_accessibility(page)
    screenshot(page, f"journal-{look}")
    press(page, "j", "u")
    page.locator(NOTICE).get_by_text(re.compile("undone")).wait_for()
    assert "/journal" in page.url


def test_actions_work_without_scripts(site, pages, url):
    page = pages.open(f"{site}{PATH}", java_script_enabled=False)
    page.locator("#m3").get_by_role("button", name="Pin").click()
    assert page.locator(NOTICE).inner_text().startswith("m3 is pinned")
    page.locator(".notice").get_by_role("button", name="Undo").click()
    assert "undone" in page.locator(NOTICE).inner_text()


# -------------------------------------------------------------------------------------------------------------- live


def test_live_page_shows_what_another_process_appends(site, pages, url):
    page = pages.open(f"{site}{PATH}")
    with opened(url) as chat:
        page.wait_for_function("document.getElementById('live') !== null")
        count = len(chat)
        chat.append(user("Written while you look."))
        page.get_by_text(f"m{count + 1}: user").wait_for()
        page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
        page.locator(f"#m{count + 1}").wait_for()
        assert "Written while you look." in page.locator(f"#m{count + 1}").inner_text()
        chat.append([call("late"), answer("late", "done")])
        page.locator(f"#m{count + 3}").wait_for()
        assert page.locator(f"#m{count + 1}").count() == 1


def test_live_page_has_the_rows_and_numbers_of_a_new_page(site, pages, url):
    """Answers came without a row, stand-ins for them stayed, and the numbers above the rows were the first ones."""
    look = "() => [...document.querySelectorAll('#messages, #seen, #seen-sizes')].map(one => one.textContent)"
    page = pages.open(f"{site}{PATH}")
    page.locator("#live").wait_for(state="attached")
    rows_of(page)
    calls = [part for number in range(3) for part in call(f"new_{number}", "read").parts]
    with opened(url) as chat:
        for message in (Message("assistant", tuple(calls)), *(answer(f"new_{number}", "found") for number in range(3))):
            if message.role == "assistant":
                chat.prepare()
                chat.record(message)
            else:
                chat.append(message)
            page.locator("#messages").get_by_text(f"{len(chat)} messages").wait_for()
            new = pages.open(f"{site}{PATH}")
            assert rows_of(page)[-5:] == rows_of(new)[-5:]
            assert page.evaluate(look) == new.evaluate(look)
            new.close()


@pytest.mark.parametrize(("first", "last"), [(0, -8), (4, 9)], ids=["many messages", "few messages"])
def test_live_page_has_the_rows_of_a_new_page_after_a_fold(site, pages, url, first, last):
    """An edit of many messages ended the updates, and the next message hid that. A small one moved rows not loaded."""
    with opened(url) as chat:
        chat.append([user(f"More {number}") for number in range(120)])
        page = pages.open(f"{site}{PATH}")
        page.locator("#live").wait_for(state="attached")
        ids = [entry.id for entry in chat.history()]
        chat.edit(Summarize(Span(ids[first], ids[last]), "What was done.", "mine", "older"))
        page.locator("#live").get_by_text("mine: 1 edit").wait_for()
        chat.append(user("Written while you look."))
        page.locator("#messages").get_by_text(f"{len(chat)} messages").wait_for()
        new = pages.open(f"{site}{PATH}")
        assert all_rows_of(page) == all_rows_of(new)


def test_live_page_keeps_what_a_person_reads_after_a_wide_edit(site, pages, url):
    with opened(url) as chat:
        chat.append([user(f"More {number}") for number in range(120)])
        page = pages.open(f"{site}{PATH}?m={len(chat) - 20}")
        page.locator("#live").wait_for(state="attached")
        handle = f"m{len(chat) - 20}"
        page.locator(f"#{handle} a[data-detail]").first.click()
        page.locator(f"#{handle} .opened").wait_for()
        page.evaluate(f"document.getElementById('{handle}').scrollIntoView()")
        page.locator(f"#{handle}").focus()
        top = f"document.getElementById('{handle}').getBoundingClientRect().top"
        before = page.evaluate(top)
        ids = [entry.id for entry in chat.history()]
        chat.edit(Summarize(Span(ids[0], ids[-40]), "What was done.", "mine", "older"))
        page.locator("#rows[data-total='40']").wait_for()
        page.locator("#seen-sizes").get_by_text("40 entries").wait_for()
        assert abs(page.evaluate(top) - before) < 3
        assert page.locator(f"#{handle} .opened").count() == 1
        assert focused(page) == handle


def test_live_page_follows_the_newest_row_after_a_wide_edit(site, pages, url):
    with opened(url) as chat:
        chat.append([user(f"More {number}") for number in range(120)])
        page = pages.open(f"{site}{PATH}?m={len(chat)}")
        page.locator("#live").wait_for(state="attached")
        rows_of(page)
        page.evaluate("dispatchEvent(new Event('pagehide'))")
        ids = [entry.id for entry in chat.history()]
        chat.edit(Summarize(Span(ids[0], ids[-100]), "What was done.", "mine", "older"))
        chat.append([user("Written while you look\n\n" * 9) for _ in range(60)])
        page.evaluate("dispatchEvent(new Event('pageshow'))")  # All of it arrives at once.
        page.locator(f"#m{len(chat)}").wait_for()
        page.wait_for_function(  # The rows between arrive after it, and the page follows.
            """row => {
                const end = document.getElementById(row).getBoundingClientRect().bottom;
                return 0 < end && end < 903;
            }""",
            arg=f"m{len(chat)}",
        )


def all_rows_of(page: Any) -> list[str]:
    """Return the names of all rows, after scrolling over them."""
    page.wait_for_function("""() => {
        const chunk = document.querySelector("#rows .chunk.empty");
        chunk?.scrollIntoView();
        return chunk === null;
    }""")
    return page.eval_on_selector_all("#rows [data-row]", "all => all.map(one => one.dataset.row)")


def rows_of(page: Any) -> list[str]:
    """Return the names of the rows that are loaded, after scrolling to the last one."""
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    page.locator("#rows[data-complete=yes]").wait_for()
    return page.eval_on_selector_all("#rows [data-row]", "all => all.map(one => one.dataset.row)")


def test_live_page_replaces_the_rows_that_an_edit_changed(site, pages, url):
    page = pages.open(f"{site}{PATH}")
    page.wait_for_function("document.getElementById('live') !== null")
    handle = shrunk(url)[0]
    page.locator(f"#{handle}").focus()
    with opened(url) as chat:
        chat.expand(handle)
    page.get_by_text(f"{handle} is shown whole again").wait_for()
    page.locator(f"#{handle}.fresh").wait_for()
    assert page.locator(f"#{handle}").get_by_role("button", name="Expand").count() == 0
    assert focused(page) == handle


def test_live_page_keeps_what_a_person_reads_in_its_place(site, pages, url):
    page = pages.open(f"{site}{PATH}")
    page.wait_for_function("document.getElementById('live') !== null")
    page.locator("#m12").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('m12').scrollIntoView()")
    top = page.evaluate("document.getElementById('m12').getBoundingClientRect().top")
    with opened(url) as chat:
        chat.expand(shrunk(url)[0])  # A row above it grows.
        chat.append(say("And more below."))
    page.get_by_text("is shown whole again").wait_for()
    page.locator(".fresh").first.wait_for()
    assert abs(page.evaluate("document.getElementById('m12').getBoundingClientRect().top") - top) < 3


def test_live_page_tells_of_summaries_under_way(site, pages, url):
    page = pages.open(f"{site}{PATH}")
    page.wait_for_function("document.getElementById('live') !== null")
    with opened(url) as chat:
        chat.edit(Task("compact", "pending"))
        page.locator("#live[data-state=pending]").get_by_text("compact: a summary is being written").wait_for()
        chat.edit(Task("compact", "failed", reason="no answer"))
        page.locator("#live[data-state=failed]").get_by_text("compact: the summary failed: no answer").wait_for()


def test_live_page_of_an_earlier_turn_stays_as_it_is(site, pages, url):
    page = pages.open(f"{site}{PATH}?turn=5")
    page.wait_for_function("document.getElementById('live') !== null")
    rows = page.locator("[data-row]").count()
    with opened(url) as chat:
        chat.append(user("Later."))
    page.get_by_text("This page shows an earlier turn.").wait_for()
    assert page.locator("[data-row]").count() == rows


def test_live_page_offers_to_load_again_after_an_erasure(site, pages, url):
    page = pages.open(f"{site}{PATH}")
    page.wait_for_function("document.getElementById('live') !== null")
    with opened(url) as chat:
        chat.privacy.erase("m3")
    page.get_by_role("link", name="Load the page again").click()
    page.wait_for_load_state()
    page.locator("#m5").wait_for()


def test_receipt_of_one_message_is_undone_from_its_details(site, pages, url):
    handle = shrunk(url)[0]
    page = pages.open(f"{site}{PATH}")
    page.locator(f"#{handle}").focus()
    press(page, "Enter")
    page.locator(f"#{handle} .detail summary").first.click()
    page.locator(f"#{handle} .detail").get_by_role("button", name="Undo").click()
    page.locator(NOTICE).get_by_text("undone").wait_for()
    assert handle not in shrunk(url)


def test_brackets_lead_to_the_turns_before_and_after(site, pages):
    page = pages.open(f"{site}{PATH}?turn=7")
    page.get_by_role("link", name="Turn 6").wait_for()
    press(page, "[")
    page.wait_for_url("**turn=6*")
    page.get_by_role("link", name="Turn 7").wait_for()
    press(page, "]")
    page.wait_for_url("**turn=7*")


def test_button_in_the_bar_opens_the_palette(site, pages):
    page = pages.open(f"{site}/")
    page.get_by_role("button", name="Commands").click()
    page.get_by_role("combobox", name="Action or conversation").wait_for()
