"""Fixtures of the inspector's tests: stores to show, a served inspector, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsing import Pages, chromium_path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium. It resolves no name, so that nothing leaves this computer."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra `dev`)")
    path = chromium_path()
    # The synchronous API runs a loop in this thread, where other tests start their own. So not for a whole session.
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        )
        yield browser
        browser.close()


@pytest.fixture
def pages(browser: Any) -> Iterator[Pages]:
    """Opens pages. The test fails at its end if one of them did what no page may do."""
    pages = Pages(browser)
    yield pages
    pages.close()
    assert pages.faults == []
