"""A headless Chromium for tests: pages that record each fault, screenshots, and the check of accessibility."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

__all__ = [
    "LOOKS",
    "SCREENSHOTS",
    "WIDE",
    "Look",
    "Pages",
    "check_accessibility",
    "chromium_path",
    "screenshot",
    "wait_for_jobs",
]

ROOT = Path(__file__).resolve().parent.parent.parent
SCREENSHOTS = Path(os.environ.get("FOVEATE_TEST_SCREENSHOTS", ROOT / "build" / "screenshots"))
"""The folder of screenshots. Each run writes them again."""
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_TIME_LIMIT_MS = 30_000
"""Of each step in the browser. A busy machine is not a fault."""


class Look(NamedTuple):
    """A color scheme and a width of the window, in pixels."""

    scheme: str = "light"
    width: int = 1280

    def __str__(self) -> str:
        return f"{self.scheme}-{self.width}"


WIDE = Look()
LOOKS = [Look(scheme, width) for scheme in ("light", "dark") for width in (1280, 390)]


def chromium_path() -> str:
    """Return the path of a Chromium: `FOVEATE_TEST_CHROMIUM`, or one found by its name. Skips the test without one.

    One without a window takes half of the CPU.
    """
    path = os.environ.get("FOVEATE_TEST_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("no Chromium is installed: `apt-get install chromium`, or name one in FOVEATE_TEST_CHROMIUM")
    return path


class Pages:
    """Opens pages in a browser, and records what none of them may do.

    A fault is an error or a warning in the console (the browser reports violations of the content security policy
    there), an exception in a script, a dialog, a new window, a failed response, or a request to another origin, which
    is not sent.
    """

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self._origins: set[str] = set()
        self.faults: list[str] = []
        self.requests: list[str] = []
        self._expected: list[str] = []

    def open(self, url: str, look: Look = WIDE, **options: Any) -> Any:
        """Return a page in a new browser profile, at this URL. `options` are those of a browser context."""
        self._origins.add(_origin(url))
        size = {"width": look.width, "height": 900 if look.width > 800 else 844}
        context = self._browser.new_context(
            viewport=size, color_scheme=look.scheme, reduced_motion="reduce", service_workers="block", **options
        )
        context.set_default_timeout(_TIME_LIMIT_MS)
        self._contexts.append(context)
        context.route(lambda asked: _origin(asked) not in self._origins, self._refuse)
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("console", self._read_console)
        context.on("weberror", lambda event: self._add(f"exception: {event.error}"))
        context.on("dialog", self._close_dialog)
        context.on("response", self._read_response)
        page = context.new_page()
        context.on("page", lambda window: self._add(f"new window: {window.url}"))
        page.goto(url)
        return page

    def expect(self, *words: str) -> None:
        """Record no fault that contains one of these words from here on."""
        self._expected += words

    def close(self) -> None:
        """Close every page."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()

    def _add(self, fault: str) -> None:
        if not any(words in fault for words in self._expected):
            self.faults.append(fault)

    def _refuse(self, route: Any) -> None:
        self._add(f"request to another origin: {route.request.url[:200]}")
        route.abort()

    def _read_console(self, message: Any) -> None:
        if message.type in ("error", "warning", "assert"):
            self._add(f"console {message.type}: {message.text}")

    def _close_dialog(self, dialog: Any) -> None:
        self._add(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _read_response(self, response: Any) -> None:
        if response.status >= 400:
            self._add(f"{response.status} for {response.url}")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def wait_for_jobs(page: Any) -> None:
    """Wait for the end of the background jobs that the page shows. It loads itself again at the end of each."""
    page.locator('[data-status="running"], [data-status="waiting"]').first.wait_for(state="detached")
    page.wait_for_load_state()


def screenshot(page: Any, name: str, *, whole: bool = False) -> Path:
    """Write a screenshot of the visible part, or of the whole page, and return its path."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"{name}.png"
    page.screenshot(path=path, full_page=whole, animations="disabled")
    return path


def check_accessibility(page: Any) -> None:
    """Fail with the serious and critical findings of axe-core on this page, and if it scrolls sideways."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    findings = [
        f"{found['impact']} {found['id']}: {node['html'][:200]} ({node['failureSummary'][:300]})"
        for found in axe.Axe().run(page).response["violations"]
        if found["impact"] in ("serious", "critical")
        for node in found["nodes"][:3]
    ]
    assert not findings, "\n".join(findings)
    excess = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert excess <= 0, f"the page is {excess} pixels wider than the window"
