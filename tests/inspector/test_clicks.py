"""A person's way through the inspector, in a real browser: the mouse, the keys, forms, and pages without a script."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browsing import WIDE, Look, screenshot
from serving import served

from foveate import open_conversation
from foveate.errors import StoreError
from foveate.inspector import build_app, sources
from foveate.inspector.pages import conversation
from foveate.open import open_store

pytestmark = pytest.mark.slow

GRANARY = "/c/store/granary"


def rows(page: Any) -> Any:
    """Return the locator of the messages that the page shows."""
    return page.locator("#rows [data-row]")


def title(page: Any) -> str:
    return str(page.locator("h1").inner_text())


def test_the_search_leads_to_a_conversation_and_back(pages, sample_site):
    page = pages.open(sample_site)
    page.keyboard.press("/")
    page.keyboard.type("weekly report")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=weekly*")
    links = page.locator('main a[href^="/c/store/"]')
    assert links.all_inner_texts() == ["team/weekly report"]
    links.first.click()
    page.wait_for_url("**/c/store/*")
    assert title(page) == "team/weekly report"
    page.keyboard.press("g")
    page.keyboard.press("l")
    page.wait_for_url(f"{sample_site}/")


def test_a_turn_is_reached_by_its_number_and_by_keys(pages, sample_site):
    page = pages.open(sample_site + GRANARY)
    page.get_by_label("Turn", exact=True).fill("40")
    page.keyboard.press("Enter")
    page.wait_for_url("**turn=40*")
    assert page.get_by_role("heading", name="What the model saw in turn 40").count() == 1
    page.locator("h1").click()
    page.keyboard.press("]")
    page.wait_for_url("**turn=41*")
    page.keyboard.press("[")
    page.wait_for_url("**turn=40*")


def test_a_click_on_the_chart_shows_that_turn(pages, sample_site):
    page = pages.open(sample_site + GRANARY)
    chart = page.locator("#chart svg").last
    box = chart.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    page.wait_for_url("**turn=*")
    turn = int(re.search(r"turn=(\d+)", page.url)[1])
    assert 60 < turn < 130
    assert f"turn {turn}" in page.locator("#seen").inner_text()


def test_pointing_at_the_chart_shows_the_sizes_of_a_turn(pages, sample_site):
    page = pages.open(sample_site + GRANARY)
    box = page.locator("#chart svg").last.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    assert re.search(r"tokens shown\s+\d+,\d{3}\s", page.locator("#chart .tip").inner_text())


def test_screen_readers_hear_the_sizes_of_a_turn(pages, sample_site):
    page = pages.open(sample_site + GRANARY)
    page.locator("#timeline").focus()
    page.keyboard.press("Home")
    assert "Turn 1" in page.get_by_role("status").filter(has_text="tokens shown").inner_text()


def test_an_error_of_the_server_is_shown_in_its_own_words(pages, sample_site):
    page = pages.open(sample_site + GRANARY)
    pages.expect("404 ")
    link = page.locator("#rows a[data-detail]").first
    link.evaluate("link => { link.href = link.href.replace(/m=[0-9]+/, 'm=9999') }")
    link.click()
    page.locator("#said.shown").wait_for()
    assert re.fullmatch(r"The view of turn \d+ does not show message 9999\.", page.locator("#said").inner_text())


def test_details_of_a_long_row_come_into_sight(pages, sample_site):
    page = pages.open(sample_site + GRANARY)
    page.set_viewport_size({"width": 390, "height": 260})
    row = page.locator("#rows .k-user").first
    assert row.bounding_box()["height"] > 260
    row.evaluate("row => { row.focus(); row.scrollIntoView(); }")
    page.keyboard.press("Enter")
    row.locator(".opened").wait_for()
    assert 0 <= row.locator(".opened").bounding_box()["y"] < 260


def test_a_summary_opens_into_the_messages_it_stands_for(pages, sample_site):
    page = pages.open(sample_site + GRANARY)
    before = page.locator("[data-row]").count()
    page.locator("[data-covered]").first.click()
    page.locator("[data-row]").nth(before).wait_for()
    screenshot(page, "covered")


def test_keys_move_over_the_messages_and_open_them(pages, sample_site):
    page = pages.open(sample_site + GRANARY)
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("j")
    focused = page.evaluate("document.activeElement.dataset.row")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.dataset.row") != focused
    page.keyboard.press("?")
    assert page.get_by_role("dialog").count() == 1
    screenshot(page, "keys")
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0


@pytest.mark.parametrize("look", [WIDE, Look("dark", 390)], ids=str)
def test_the_command_palette_finds_actions_and_conversations(pages, sample_site, look):
    page = pages.open(sample_site + GRANARY, look)
    page.keyboard.press("Control+k")
    page.keyboard.type("receipts")
    screenshot(page, f"palette-{look}")
    page.keyboard.press("Enter")
    page.wait_for_url("**/journal*")
    page.keyboard.press("Control+k")
    page.keyboard.type("fix-login")
    page.get_by_role("option", name=re.compile("fix-login")).first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/c/store/fix-login*")


def test_long_conversations_load_their_rows_while_one_scrolls(pages, sample_site):
    page = pages.open(sample_site + GRANARY + "?turn=120")
    total = int(page.locator("#rows").get_attribute("data-total") or 0)
    for _ in range(40):
        page.mouse.wheel(0, 5_000)
        page.wait_for_timeout(50)
        if rows(page).count() >= total:
            break
    assert rows(page).count() >= min(total, 20)
    assert page.locator("#further").is_hidden()  # All rows can be scrolled to.
    screenshot(page, "scrolled")


def test_links_lead_over_the_rows_among_which_a_page_scrolls(pages, sample_site, monkeypatch):
    """The link to further rows led to the second forty, which the page scrolled to anyway."""
    monkeypatch.setattr(conversation, "STEP", 5)
    monkeypatch.setattr(conversation, "SPAN", 10)
    page = pages.open(sample_site + GRANARY + "?turn=120")
    total = int(page.locator("#rows").get_attribute("data-total") or 0)
    assert total > 20
    further, back = page.locator(".seen a[rel=next]"), page.locator(".seen a[rel=prev]")
    assert further.inner_text() == f"Rows 11 to 20 of {total}"
    further.click()
    page.wait_for_url("**at=10*")
    assert page.locator(".seen a[rel=next]").inner_text() == f"Rows 21 to {min(30, total)} of {total}"
    assert back.inner_text() == f"Rows 1 to 10 of {total}"
    back.click()
    page.wait_for_url("**at=5*")
    assert back.is_hidden()


def test_expanding_and_undoing_change_the_view(changing_site, pages):
    page = pages.open(changing_site + GRANARY)
    button = page.get_by_role("button", name="Expand").first
    handle = button.locator("xpath=ancestor::*[@data-row]").first.get_attribute("data-row")
    before = page.locator("#seen + p").inner_text()
    button.click()
    page.wait_for_url("**notice=*")
    notice = page.locator(".notice")
    screenshot(page, "expanded")
    assert page.locator("#seen + p").inner_text() != before, handle
    notice.get_by_role("button", name="Undo").click()
    page.wait_for_load_state()
    assert page.locator("#seen + p").inner_text() == before


def test_pinning_marks_a_message_until_it_is_unpinned(changing_site, pages):
    page = pages.open(changing_site + GRANARY)
    rows(page).nth(1).focus()
    page.keyboard.press("p")
    page.wait_for_url("**notice=*")
    assert page.locator(".kind.pin").count() == 1
    page.get_by_role("button", name="Unpin").first.click()
    page.wait_for_load_state()
    page.locator(".kind.pin").first.wait_for(state="detached")


def test_an_action_leads_back_to_its_row(changing_site, pages):
    """The page began again with the first rows, so that a row below them was lost."""
    page = pages.open(changing_site + GRANARY)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.locator("#rows[data-complete=yes]").wait_for()
    row = rows(page).last
    handle = row.get_attribute("id")
    row.focus()
    page.keyboard.press("p")
    page.wait_for_url("**m=*")
    assert page.locator(f"#{handle} .kind.pin").is_visible()
    assert 0 <= page.locator(f"#{handle}").bounding_box()["y"] < 900
    assert page.evaluate("document.activeElement.id") == handle


def test_the_search_in_messages_leads_to_the_message_by_keys(pages, sample_site):
    page = pages.open(sample_site + GRANARY)
    for key in ("/", *"invoice", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**/search?q=invoice")
    page.locator("[data-row]").first.wait_for()
    screenshot(page, "search-messages")
    page.keyboard.press("j")
    handle = page.evaluate("document.activeElement.dataset.row")
    page.keyboard.press("Enter")
    page.wait_for_url("**/covered*")
    assert title(page) == f"{handle} of granary"
    assert page.locator("details.fold:not([open])").count() == 0


def test_a_plan_is_shown_applied_and_undone(changing_site, pages):
    page = pages.open(changing_site + GRANARY)
    page.get_by_role("link", name="Plan", exact=True).click()
    page.get_by_label("Policy").select_option("frugal")
    page.get_by_label("Window").fill("20000")
    page.get_by_role("button", name="Plan again").click()
    page.wait_for_url("**window=20000*")
    page.get_by_role("button", name=re.compile("Apply")).click()
    page.wait_for_url("**notice=*")
    screenshot(page, "applied")
    page.goto(changing_site + GRANARY + "/journal")
    count = page.locator(".receipt").count()
    page.locator(".receipt").get_by_role("button", name="Undo").first.click()
    page.wait_for_url("**notice=*")
    assert page.locator(".receipt").count() == count + 1


def test_erasing_needs_the_word_and_removes_the_text(changing_site, pages):
    page = pages.open(changing_site + GRANARY + "/erase?m=m8")
    page.get_by_label(re.compile("to confirm")).fill("yes")
    page.get_by_role("button", name="Erase for good").click()
    page.locator(".notice.problem").wait_for()
    page.get_by_label(re.compile("to confirm")).fill("erase")
    page.get_by_role("button", name="Erase for good").click()
    page.locator(".notice:not(.problem)").wait_for()
    screenshot(page, "erased")
    pages.expect("404 ")
    page.goto(changing_site + GRANARY + "/content?m=8&part=0")
    assert title(page) == "Error 404"


def test_a_fork_opens_as_a_conversation_of_its_own(changing_site, pages):
    page = pages.open(changing_site + GRANARY + "/more?m=m20")
    page.get_by_label("Name of the fork").fill("granary / second try")
    page.get_by_role("button", name="Fork").click()
    page.wait_for_url("**second*")
    assert title(page) == "granary / second try"
    assert "20 messages" in page.locator("main").inner_text()


def test_a_running_conversation_updates_by_itself(pages, tmp_path):
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with open_store(url) as store, open_conversation("live", store=store, window=100_000) as chat:
        chat.append("First question")
        with served(build_app(store)) as site:
            page = pages.open(f"{site}/c/store/live")
            assert rows(page).count() == 1
            chat.prepare()
            chat.record({"role": "assistant", "content": "An answer that comes later"})
            page.get_by_text("An answer that comes later").first.wait_for()
            screenshot(page, "live")
            pages.close()


def test_a_live_page_says_why_it_is_refused_and_goes_on(pages, store, monkeypatch):
    refusals: list[Exception] = []

    def open_stored(*arguments):
        if refusals:
            raise refusals[0]
        return original(*arguments)

    original = sources.open_stored
    monkeypatch.setattr(sources, "open_stored", open_stored)
    app = build_app(store)
    pages.expect("500 ")
    with served(app) as site:
        page = pages.open(f"{site}/c/store/a~2Fb")
        page.locator("#live").wait_for(state="attached")
        refusals.append(StoreError("The disk is full."))
        app.state.page.sources("")["store"]._open.clear()
        page.evaluate("dispatchEvent(new Event('pagehide')); dispatchEvent(new Event('pageshow'))")
        page.get_by_text("This page does not update. The disk is full.").wait_for()
        refusals.clear()
        page.get_by_text("The page updates again.").wait_for()
        pages.close()


@pytest.mark.parametrize("path", ["/", GRANARY, f"{GRANARY}?turn=40", f"{GRANARY}/journal", f"{GRANARY}/plan"])
def test_pages_work_without_a_script(pages, sample_site, path):
    page = pages.open(sample_site + path, java_script_enabled=False)
    assert page.locator("h1").count() == 1
    assert page.locator("[data-opens=palette]").is_hidden()  # The palette needs the script.
    for link in page.locator("main a[href]").all()[:5]:
        assert (link.get_attribute("href") or "").startswith(("/", "#"))


def test_a_form_works_without_a_script(changing_site, pages):
    page = pages.open(changing_site + GRANARY, java_script_enabled=False)
    page.get_by_role("button", name="Expand").first.click()
    page.wait_for_url("**notice=*")
    assert page.locator(".notice").count() == 1
