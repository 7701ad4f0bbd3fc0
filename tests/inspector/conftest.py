"""Fixtures of the inspector's tests: stores to show, a served inspector, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="starlette is not installed (the extra `inspect`)")
pytest.importorskip("jinja2", reason="Jinja2 is not installed (the extra `inspect`)")

from browsing import Pages, chromium_path
from clients import client_of
from hostile import fill_hostile
from prepared import fill_sample
from serving import served
from starlette.testclient import TestClient

from foveate import open_conversation
from foveate.inspector import build_app
from foveate.open import open_store
from foveate.ports import Store


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


@pytest.fixture(scope="module")
def sample_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an inspector that shows the sample conversations. Tests that change some use `changing_site`."""
    url = f"sqlite:///{tmp_path_factory.mktemp('sample') / 'chats.db'}"
    fill_sample(url)
    with served(build_app(url)) as site:
        yield site


@pytest.fixture
def changing_site(tmp_path) -> Iterator[str]:
    """The URL of an inspector of a store of the test's own, with the sample conversations.

    Named before `pages` by a test, so that the pages are closed before the server.
    """
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    fill_sample(url)
    with served(build_app(url)) as site:
        yield site


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an inspector that shows the hostile conversations, one of them with a line of 10 MB."""
    url = f"sqlite:///{tmp_path_factory.mktemp('hostile') / 'chats.db'}"
    fill_hostile(url, line=10_000_000)
    with served(build_app(url)) as site:
        yield site


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    """A SQLite store with the conversation `a/b`."""
    with open_store(f"sqlite:///{tmp_path / 'chats.db'}") as opened:
        with open_conversation("a/b", store=opened, window=100_000) as chat:
            chat.append("Hello <script>alert(1)</script>")
            chat.record({"role": "assistant", "content": "Good day"})
        yield opened


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    """A client of the pages of `store`."""
    with client_of(build_app(store)) as opened:
        yield opened
