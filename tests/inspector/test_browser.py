"""The browser of these tests reports what a page may not do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from browsing import check_accessibility

pytestmark = pytest.mark.slow

POLICY = "default-src 'none'; script-src 'self'; img-src *"
BAD_PAGE = b"""<!doctype html><html lang=en><title>x</title><body><h1>Bad</h1><input>
<script>window.ran = true</script><img alt=x src=https://evil.example/x.png></body></html>"""


@pytest.fixture
def bad_page() -> Iterator[str]:
    """The URL of a page with an inline script, a foreign image and an input without a label."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            self.wfile.write(BAD_PAGE)

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_the_browser_reports_scripts_and_foreign_requests(pages, bad_page):
    page = pages.open(bad_page)
    assert page.evaluate("window.ran === undefined")
    faults, pages.faults = pages.faults, []
    assert any("Executing inline script violates" in fault for fault in faults)
    assert "request to another origin: https://evil.example/x.png" in faults


def test_the_check_of_accessibility_finds_a_missing_label(pages, bad_page):
    page = pages.open(bad_page)
    with pytest.raises(AssertionError, match="critical label"):
        check_accessibility(page)
    pages.faults = []
