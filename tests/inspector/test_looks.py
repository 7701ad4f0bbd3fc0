"""Each page in a real browser: light and dark, wide and narrow, with a check of its accessibility and a screenshot."""

from __future__ import annotations

import pytest
from browsing import LOOKS, Look, check_accessibility, screenshot, wait_for_jobs

pytestmark = pytest.mark.slow

PAGES = {
    "list": "/",
    "search": "/?q=fix",
    "conversation": "/c/store/granary",
    "kinds": "/c/store/kinds",
    "plan": "/c/store/granary/plan?policy=frugal",
    "journal": "/c/store/granary/journal",
    "more": "/c/store/granary/more?m=m12",
    "erase": "/c/store/granary/erase?m=m12",
    "spending": "/c/store/granary/spending",
    "compare-turns": "/c/store/granary/compare?left=40&right=43",
    "compare-policies": "/c/store/fix-login/compare?policies=prune,balanced",
    "content": "/c/store/kinds/content?m=3&part=0.0",
    "search-messages": "/c/store/granary/search?q=invoice",
    "missing": "/c/store/none",
}


@pytest.mark.parametrize("look", LOOKS, ids=str)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_its_window(pages, sample_site, name, look):
    if name == "missing":
        pages.expect("404 ")
    page = pages.open(sample_site + PAGES[name], look)
    wait_for_jobs(page)
    screenshot(page, f"{name}-{look}")
    screenshot(page, f"{name}-{look}-whole", whole=True)
    check_accessibility(page)


def test_a_dark_page_is_printed_dark_on_light(pages, sample_site):
    page = pages.open(f"{sample_site}/c/store/kinds", Look("dark", 1280))
    page.emulate_media(media="print", color_scheme="dark")
    check_accessibility(page)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("main .button:visible, main button:visible").count() == 0


def test_titles_of_charts_stand_above_their_bars(pages, sample_site):
    page = pages.open(f"{sample_site}/c/store/granary")
    page.locator("#timeline .title").first.wait_for(state="attached")
    overlap = """all => all.map(one => {
        const plot = one.closest(".plot").getBoundingClientRect();
        return Math.max(0, one.getBoundingClientRect().bottom - plot.top);
    })"""
    assert page.eval_on_selector_all("#timeline .title", overlap) == [0, 0]


@pytest.mark.parametrize("width", [1280, 390])
def test_actions_of_a_row_stand_next_to_its_size(pages, sample_site, width):
    page = pages.open(f"{sample_site}/c/store/granary", Look("light", width))
    row = page.locator("#rows [data-row]").first
    row.focus()
    action, size = (row.locator(one).last.bounding_box() for one in (".about > .acts a", ".about > .size"))
    assert 0 <= size["x"] - action["x"] - action["width"] <= 20
    frame = row.bounding_box()  # The outline of the focused row.
    assert size["x"] + size["width"] <= frame["x"] + frame["width"] - 4


def test_sizes_of_rows_stand_below_one_another(pages, sample_site):
    page = pages.open(f"{sample_site}/c/store/granary", Look("light", 390))
    right = "all => all.map(one => Math.round(one.getBoundingClientRect().right))"
    assert len(set(page.eval_on_selector_all("#rows .about > .size", right))) == 1


@pytest.mark.parametrize("path", ["/c/store/granary", "/c/store/granary/plan"])
def test_trail_of_a_narrow_page_ends_with_the_page(pages, sample_site, path):
    page = pages.open(sample_site + path, Look("light", 360))
    trail, last = page.locator(".trail").bounding_box(), page.locator(".trail [aria-current=page]").bounding_box()
    assert last["x"] + min(last["width"], 24) <= trail["x"] + trail["width"]
