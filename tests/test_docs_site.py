"""The documentation site: links, order, completeness of the reference, and the pages in a real browser.

The browser tests are slow, and need the extra `docs` and a Chromium.
"""

from __future__ import annotations

import ast
import html.parser
import importlib
import posixpath
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from foveate.errors import MissingExtra

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools" / "docs_site"), str(ROOT / "tests" / "inspector")]

LINK = re.compile(r'(?:\]\(|src="|srcset=")([^)"\s]+)[)"]')
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python.*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SOURCES = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "design").glob("*.md"),
        *ROOT.glob("*.md"),
        ROOT / "examples" / "README.md",
        ROOT / "tests" / "README.md",
    ]
)
PAGES = (
    "index.html",
    "getting-started.html",
    "concepts/what-pays.html",
    "guides/conversations.html",
    "reference/all-settings.html",
    "reference/api/foveate.edits.html",
)
"""The pages that the browser tests open."""


def anchors_of(path: Path) -> set[str]:
    """Return the anchors of the headings of a Markdown page, as GitHub makes them."""
    text = re.sub(r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = [re.sub(r"[^\w\- ]", "", title.lower()).strip() for title in HEADING.findall(text)]
    return {title.replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_to_files_and_headings(path: Path):
    dead = []
    for target in LINK.findall(CODE.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        aim = (path.parent / name).resolve() if name else path
        if not aim.exists() or (anchor and anchor not in anchors_of(aim)):
            dead.append(target)
    assert dead == []


@pytest.mark.slow
def test_public_names_and_fields_have_docstrings():
    pytest.importorskip("griffe", reason="griffelib is not installed (the extra `docs`)")
    api = importlib.import_module("api")
    assert list(api.undocumented()) == []


INTERNAL = {
    "foveate.conversation.session.Session",
    "foveate.conversation.sync.Reopen",
    "foveate.core.growing.Marks",
    "foveate.core.originals.Original",
    "foveate.core.planner.Begun",
}
"""Types of arguments and fields that no program uses: those of the constructors of `Conversation`, `Journal` and
`Privacy`, and of `View`, `Entry` and `Plan`.
"""


def test_types_in_public_signatures_have_public_names():
    """Else a program cannot name the type of a value that it has, and the reference does not describe it."""
    pytest.importorskip("griffe", reason="griffelib is not installed (the extra `docs`)")
    api = importlib.import_module("api")
    assert [(where, kind) for where, kind in api.unexported() if kind not in INTERNAL] == []


def test_a_type_without_a_public_name_is_reported(monkeypatch):
    pytest.importorskip("griffe", reason="griffelib is not installed (the extra `docs`)")
    api = importlib.import_module("api")
    fewer = {path: place for path, place in api.places().items() if place.name not in ("Record", "Urgency")}
    monkeypatch.setattr(api, "places", lambda: fewer)
    found = set(api.unexported())
    assert ("foveate.ports.Store.commit(record)", "foveate.core.edits.Record") in found
    assert ("foveate.ports.Store.records()", "foveate.core.edits.Record") in found
    assert ("foveate.summarizers.NeedsSummary.when", "foveate.core.summaries.Urgency") in found


def test_reference_covers_the_public_names():
    pytest.importorskip("griffe", reason="griffelib is not installed (the extra `docs`)")
    api = importlib.import_module("api")
    import foveate

    assert api.exported("foveate") == sorted(foveate.__all__, key=str.lower)
    assert "def fallback(*summarizers: Summarizer" in api.page("foveate.summarizers")  # A submodule has the same name.
    page = api.page("foveate.edits")
    assert "## Replace { #replace }" in page
    assert "| `reason`: `str` = `''` | Why the edit was made. |" in page


def test_module_docstrings_have_no_aligned_columns():
    """Markdown joins such lines to one paragraph."""
    pytest.importorskip("griffe", reason="griffelib is not installed (the extra `docs`)")
    api = importlib.import_module("api")
    docstrings = {name: api.prose(api.loaded(name), name) for name in api.MODULES}
    assert [name for name, text in docstrings.items() if re.search(r"^\w\S* {2,}\S", text, re.MULTILINE)] == []


def test_every_public_name_can_be_imported():
    """Of names that are imported at their first use, a type checker sees only another import of the same name."""
    pytest.importorskip("griffe", reason="griffelib is not installed (the extra `docs`)")
    api = importlib.import_module("api")
    missing = []
    for name in api.MODULES:
        with suppress(ImportError):  # An integration without its framework.
            module = importlib.import_module(name)
            for public in api.exported(name):
                try:
                    getattr(module, public)
                except MissingExtra:
                    pass
                except (AttributeError, ImportError):
                    missing.append(f"{name}.{public}")
    assert missing == []


def test_examples_use_public_names_only():
    """A name that the reference does not have may change without a notice."""
    pytest.importorskip("griffe", reason="griffelib is not installed (the extra `docs`)")
    api = importlib.import_module("api")
    private = set()
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        blocks = PYTHON.findall(text) if path.suffix == ".md" else [text]
        private |= {(path.name, name) for name in names_of(blocks, FENCED.sub("", text)) if not is_public(api, name)}
    assert private == set()


def names_of(blocks: list[str], prose: str) -> set[str]:
    """Return the dotted names of foveate in code, and those of functions that a text calls."""
    names = set(re.findall(r"\bfoveate(?:\.[A-Za-z]\w*)+(?=\()", prose))
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            match node:
                case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "foveate":
                    names |= {f"{module}.{alias.name}" for alias in node.names}
                case ast.Attribute() if re.fullmatch(r"foveate(?:\.\w+)+", ast.unparse(node)):
                    names.add(ast.unparse(node))
    return names


def is_public(api: Any, name: str) -> bool:
    """Return whether a dotted name is a public module, a public name of one, or a member of such a name."""
    parts = name.split(".")
    places = ((".".join(parts[:count]), parts[count]) for count in range(1, len(parts)))
    return any(module == name or module.startswith(f"{name}.") for module in api.MODULES) or any(
        module in api.MODULES and public in api.exported(module) for module, public in places
    )


def test_tables_come_from_the_code():
    pytest.importorskip("cyclopts", reason="cyclopts is not installed (the extra `cli`)")
    tables = importlib.import_module("tables")
    pages = tables.pages()
    assert "## foveate replay { #foveate-replay }" in pages["reference/commands.md"]
    assert "| [`filter`](all-settings.md#filter) | `keep = 5` |" in pages["reference/presets.md"]
    assert "`FOVEATE_PRUNE_PROTECT`" in pages["reference/all-settings.md"]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built once for this module."""
    pytest.importorskip("zensical", reason="zensical is not installed (the extra `docs`)")
    pytest.importorskip("griffe", reason="griffelib is not installed (the extra `docs`)")
    folder = tmp_path_factory.mktemp("build")
    command = [sys.executable, str(ROOT / "tools" / "docs_site" / "build.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return Path(folder) / "site"


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page of the site."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors.update(filter(None, (values.get("id"), values.get("name"))))
        if tag == "a" and (link := values.get("href")):
            self.links.append(link)
        elif tag in ("img", "script", "source", "link"):
            self.loaded.extend(filter(None, (values.get("src"), values.get("srcset"), values.get("href"))))


@pytest.mark.slow
def test_links_of_the_site_lead_somewhere(site):
    pages = {path.relative_to(site).as_posix(): Page(path) for path in site.rglob("*.html")}
    pages.pop("404.html")
    dead = []
    for name, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme:
                dead += [f"{name} loads {link}"] if link in page.loaded and parts.scheme != "data" else []
                continue
            aim = (
                posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) if parts.path else name
            )
            if not (site / aim).exists() or (
                parts.fragment and aim in pages and unquote(parts.fragment) not in pages[aim].anchors
            ):
                dead.append(f"{name}: {link}")
    assert dead == []
    assert len(pages) > 100


@pytest.mark.slow
def test_llms_lists_every_page(site):
    text = (site / "llms.txt").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[.+\]\((.+\.md)\)", text, re.MULTILINE)
    assert sorted(listed) == sorted(path.relative_to(site).as_posix() for path in site.rglob("*.md"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra `dev`)")
    browsing = importlib.import_module("browsing")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browsing.chromium_path(), args=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        )
        yield browser
        browser.close()


class Quiet(SimpleHTTPRequestHandler):
    """Serves the files of the site, without a log."""

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    """The address of the site. The check of accessibility reads style sheets, which needs a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_pages_are_readable_and_load_nothing_from_elsewhere(address, browser, scheme, width):
    browsing = importlib.import_module("browsing")
    look = browsing.Look(scheme, width)
    pages = browsing.Pages(browser)
    try:
        for name in PAGES:
            page = pages.open(f"{address}/{name}", look)
            browsing.screenshot(page, f"docs-{name.replace('/', '-')[:-5]}-{look}")
            browsing.check_accessibility(page)
    finally:
        pages.close()
    assert pages.faults == []


@pytest.mark.slow
def test_search_works_from_the_file_system(site, browser):
    browsing = importlib.import_module("browsing")
    pages = browsing.Pages(browser)
    try:
        page = pages.open((site / "index.html").as_uri())
        page.get_by_role("button", name="Search").first.click()
        page.locator("input[aria-label=Search]").fill("checkpoint")
        page.get_by_text(re.compile(r"^[1-9]\d* results$")).first.wait_for()
    finally:
        pages.close()
    assert pages.faults == []
