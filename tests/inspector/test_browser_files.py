"""Saved files in a browser: opened from disk, the script shows any call, and hostile text stays text."""

from __future__ import annotations

import re

import pytest
from browsing import LOOKS, Look, check_accessibility, screenshot
from hostile import MARK, fill_hostile
from prepared import demo_messages, play

from foveate import open_conversation
from foveate.inspector.saved.export import html_of
from foveate.inspector.saved.report import page as report_page
from foveate.inspector.sources import StoreSource
from foveate.replay.run import replay

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    url = f"sqlite:///{folder / 'chats.db'}"
    play(url, "demo", demo_messages()[:200], window=20_000)
    with open_conversation("demo", store=url, window=20_000, policy="off", format="anthropic") as chat:
        (folder / "demo.html").write_text(html_of(chat), "utf-8")
    return folder / "demo.html"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    messages = demo_messages()[:200]
    replays = [replay(messages, policy=policy, window=200_000, views=True) for policy in ("none", "keep-last-5")]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_page(replays, created="1 May 2026"), "utf-8")
    return path


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_saved_conversation_opens_from_disk(pages, saved, look):
    page = pages.open(saved.as_uri(), look)
    assert page.locator("h1").inner_text() == "demo"
    assert page.locator(".saved-rows article").count() > 5
    screenshot(page, f"file-{look}")
    check_accessibility(page)
    assert [url for url in pages.requests if not url.startswith(("file:", "data:"))] == []


def test_slider_and_chart_show_the_view_of_a_call(pages, saved):
    page = pages.open(saved.as_uri())
    where = page.locator("output[name=where]")
    last = page.locator("input[name=call]").get_attribute("max")
    assert re.fullmatch(rf"call {last}, before message \d+: \d+,\d{{3}} tokens", where.inner_text())
    page.locator("button[name=back]").click()
    assert where.inner_text().startswith(f"call {int(last) - 1}, ")
    page.locator("input[name=call]").focus()
    page.keyboard.press("Home")
    assert where.inner_text().startswith("call 1, before message ")
    assert page.locator(".saved-rows article").count() == 2
    assert page.locator("button[name=back]").is_disabled()
    plot = page.locator("[data-calls]")
    box = plot.bounding_box()
    plot.click(position={"x": box["width"] / 2, "y": 20})
    assert 40 < int(where.inner_text().split(",")[0].removeprefix("call ")) < 60


def test_report_shows_each_policy(pages, report):
    page = pages.open(report.as_uri(), Look("dark", 1280))
    page.locator("select[name=scene]").select_option(label="keep-last-5")
    assert page.locator(".saved-rows .is-placeholder").count() > 5
    page.locator("select[name=scene]").select_option(label="none")
    assert page.locator(".saved-rows .is-placeholder").count() == 0
    page.locator("[data-calls]").first.hover()
    assert re.search(r"tokens in the view\s+\d+,\d{3}\s", page.locator("#tip").inner_text())
    screenshot(page, "report-dark-1280")
    check_accessibility(page)


def test_hostile_conversations_do_nothing_in_a_saved_file(pages, tmp_path):
    url = f"sqlite:///{tmp_path / 'hostile.db'}"
    fill_hostile(url)
    source = StoreSource(url)
    for number, item in enumerate(source.list("", 0, 100).rows):
        with source.open(item.name) as chat:
            path = tmp_path / f"{number}.html"
            path.write_text(html_of(chat), "utf-8", errors="replace")
        page = pages.open(path.as_uri())
        for details in page.locator("details").all()[:60]:
            details.evaluate("details => { details.open = true; }")
        page.mouse.move(300, 300)
        assert page.evaluate(f"window.{MARK} === undefined")
    source.close()
