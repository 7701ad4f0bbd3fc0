"""Each page in a real browser: light and dark, wide and narrow, with a check of its accessibility and a screenshot."""

from __future__ import annotations

import pytest
from browsing import LOOKS, check_accessibility, screenshot, wait_for_jobs

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


def test_titles_of_charts_stand_above_their_bars(pages, sample_site):
    page = pages.open(f"{sample_site}/c/store/granary")
    page.locator("#timeline .title").first.wait_for(state="attached")
    overlap = """all => all.map(one => {
        const plot = one.closest(".plot").getBoundingClientRect();
        return Math.max(0, one.getBoundingClientRect().bottom - plot.top);
    })"""
    assert page.eval_on_selector_all("#timeline .title", overlap) == [0, 0]
