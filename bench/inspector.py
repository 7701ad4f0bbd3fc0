"""The inspector's pages: milliseconds of an answer, and to the first paint in Chromium; bytes of the largest answer.

The server runs in a process of its own, as `foveate inspect` does. Without Chromium or playwright there are no figures
of painting. The many conversations of a list are copies, because to write each would take longer than all benchmarks.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import cut, messages
from databases import FigureRow

from foveate import Message, open_conversation
from foveate.stores.lineage import root_of
from foveate.stores.sqlite import SqliteStore

_LONG = "long"
_TEXT = 3_000
"""Characters of the longest text of a message."""
_TIMES = 7
_FIRST_PAGE, _CONVERSATION, _LARGEST = 300.0, 800.0, 500.0
"""The aims: milliseconds to the first page, to the first paint of a long conversation, and kilobytes of an answer."""
_PAINTED = """() => new Promise(done => new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (one.name === 'first-contentful-paint') done(one.startTime)
}).observe({type: 'paint', buffered: true}))"""
_TABLES = ("conversation", "tree", "branch", "message")


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield times and sizes of the list, and of a long conversation."""
    count = 200 if quick else 100_000
    length = 300 if quick else 20_000
    few, many, long = (folder / f"inspector-{name}.db" for name in ("few", "many", "long"))
    write_copies(few, 20)
    write_copies(many, count)
    write_long(long, length)
    with browser() as chromium:
        for path, what, target, aim in (
            (few, "list of 20 conversations", "/", _FIRST_PAGE),
            (many, f"list of {count:,} conversations", "/", _FIRST_PAGE),
            (many, f"search in {count:,} conversations", "/?q=task+77", _FIRST_PAGE),
            (long, f"conversation of {length:,} messages", f"/c/store/{_LONG}", _CONVERSATION),
        ):
            with served(path) as port:
                first = get(port, target)[0]
                yield f"inspector, {what}, first answer", first, "ms", None, None, "of a new process"
                took, size = zip(*(get(port, target) for _ in range(_TIMES)), strict=True)
                yield f"inspector, {what}, answer, p50", median(took), "ms", None, aim, ""
                yield f"inspector, {what}, size", max(size) / 1000, "kB", None, _LARGEST, ""
                if chromium is not None:
                    yield from _painted(chromium, port, target, what, aim)


def _painted(chromium: Any, port: int, target: str, what: str, aim: float) -> Iterator[FigureRow]:
    """Yield the time to the first contentful paint, and the size of the largest answer to that page."""
    took, largest = [], 0
    for _ in range(_TIMES):
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}{target}")
        took.append(page.evaluate(_PAINTED))
        sizes = "performance.getEntries().map(one => one.decodedBodySize || 0)"
        largest = max(largest, *page.evaluate(sizes))
        context.close()
    yield f"inspector, {what}, first paint, p50", median(took), "ms", None, aim, "in Chromium"
    yield f"inspector, {what}, largest answer", largest / 1000, "kB", None, _LARGEST, ""


def write_long(path: Path, length: int) -> None:
    """Store one conversation of so many messages, planned at each of its calls."""
    store = SqliteStore(path, synchronous="normal")
    with store, open_conversation(_LONG, store=store, window=100_000, policy="prune") as chat:
        batch: list[Message] = []
        for message in islice(messages(), length):
            if message.role == "assistant":
                chat.append(batch)
                batch.clear()
                chat.prepare()
                chat.record(cut(message, _TEXT))
            else:
                batch.append(cut(message, _TEXT))
        chat.append(batch)


def write_copies(path: Path, count: int) -> None:
    """Store so many conversations of two messages: one real one, and copies of its rows under other names."""
    with open_conversation("task 0", store=f"sqlite:///{path}", window=100_000) as chat:
        chat.append("Why does the login test fail?")
        chat.prepare()
        chat.record({"role": "assistant", "content": "The cookie is never set."})
    with sqlite3.connect(path) as connection:
        for table in _TABLES:
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            places = ", ".join("?" * len(names))
            copies = (
                [_copied(name, value, number) for name, value in zip(names, row, strict=True)]
                for number in range(1, count)
                for row in rows
            )
            connection.executemany(f"INSERT INTO {table} VALUES ({places})", copies)
    connection.close()


def _copied(column: str, value: object, number: int) -> object:
    match column:
        case "root" | "home":
            return root_of("", f"task {number}")
        case "name":
            return f"task {number}"
        case _:
            return value


def get(port: int, target: str) -> tuple[float, int]:
    """Return the milliseconds of a request, and the bytes of its answer. Raises RuntimeError if it is refused."""
    began = perf_counter()
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", target)
    answer = connection.getresponse()
    size = len(answer.read())
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"The inspector answers {answer.status} to {target}.")
    return (perf_counter() - began) * 1000, size


@contextmanager
def served(path: Path) -> Iterator[int]:
    """Run `foveate inspect` on a store during the block. Yields its port."""
    command = [sys.executable, "-m", "foveate", "inspect", str(path), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            match = re.search(r"http://127\.0\.0\.1:(\d+)", process.stderr.readline())
            if match is None:
                raise RuntimeError(f"foveate inspect does not serve: {process.stderr.read()}")
            yield int(match[1])
        finally:
            process.terminate()


@contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium for the block. Yields None without one."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    path = os.environ.get("FOVEATE_TEST_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        path = None
    if path is None:
        yield None
        return
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path)
        yield chromium
        chromium.close()
