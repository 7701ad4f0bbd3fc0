"""Benchmarks of foveate in one run: `make bench`, or `python bench/run.py [NAME ...] [--json] [--quick]`.

CPU time, medians and 99th percentiles. Shared machines are noisy, so each figure has a floor from the same run: the
time of a program that does only the bare work. Quote the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice, starmap
from pathlib import Path
from time import process_time
from typing import NamedTuple

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import messages, turns

from foveate import Conversation, Message, open_conversation
from foveate.core.wire import encode_message
from foveate.digest import digest
from foveate.edits import Span, Summarize
from foveate.formats import get_format

HUGE = 1_000_000_000


class Figure(NamedTuple):
    """One measured number, with its floor from the same run and its target."""

    what: str
    value: float
    unit: str
    floor: float | None = None
    aim: float | None = None
    note: str = ""


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def open_chat(store: str, policy: str = "none", window: int = HUGE, format: str = "openai") -> Conversation:
    return open_conversation("bench", store=store, format=format, policy=policy, window=window)


def fill(chat: Conversation, count: int) -> Conversation:
    """Append `count` messages, in few transactions, because appending is not measured here."""
    source = messages()
    while len(chat) < count:
        chat.append(list(islice(source, min(500, count - len(chat)))))
    return chat


def hide_all_but(chat: Conversation, live: int) -> None:
    """Hide all but the newest `live` messages behind one summary."""
    rows = chat.history(1, len(chat) - live)
    chat.edit(Summarize(Span(rows[0].id, rows[-1].id), "What came before, in short."))


def take_turns(chat: Conversation, count: int) -> list[float]:
    """Return CPU milliseconds of `count` turns: record a call, append its result, plan, commit, check, render
    to bytes.
    """
    took = []
    for call, result in islice(turns(), count):
        began = process_time()
        chat.record(call)
        chat.append(result)
        view = chat.prepare()
        chat.format.body(view, profile=chat._agent.profile)
        took.append((process_time() - began) * 1000)
    return took


def plain_turns(history: list[Message], count: int) -> list[float]:
    """Return the times of a program that keeps a plain list without management and writes it as JSON for each
    request.
    """
    format = get_format("openai")
    sent = format.render(history)
    took = []
    for call, result in islice(turns(), count):
        sent += format.render([call, result])
        began = process_time()
        json.dumps({"messages": sent}, ensure_ascii=False).encode()
        took.append((process_time() - began) * 1000)
    return took


def turn(folder: Path, quick: bool) -> Iterator[Figure]:
    """A turn on a view of 1,000 messages, in memory and on SQLite, and of 10,000."""
    count = 20 if quick else 200
    floor = plain_turns(list(islice(messages(), 1_000)), count)
    low, high = percentile(floor, 0.5), percentile(floor, 0.99)
    yield Figure("a plain list as JSON, 1,000 messages, p50", low, "ms", None, None, "the floor of what follows")
    for policy in ("none", "prune", "balanced", "keep-last-5"):
        for store, aim in (("memory:", 2.0), (f"sqlite:///{folder}/turn-{policy}.db", 4.0)):
            kind = store.partition(":")[0]
            with fill(open_chat(store, policy), 1_000) as chat:
                chat.prepare()
                took = take_turns(chat, count)
            middle = percentile(took, 0.5)
            yield Figure(f"turn, 1,000 live, {policy}, {kind}, p50", middle, "ms", low, aim)
            yield Figure(f"turn, 1,000 live, {policy}, {kind}, p99", percentile(took, 0.99), "ms", high)
    with fill(open_chat("memory:"), 10_000) as chat:
        chat.prepare()
        yield Figure("turn, 10,000 live, memory, p50", percentile(take_turns(chat, count), 0.5), "ms")


def growing(folder: Path, quick: bool) -> Iterator[Figure]:
    """Turns of the default policy while a conversation grows, by phase (`growing.py`)."""
    from growing import figures

    yield from starmap(Figure, figures(folder, quick))


def append(folder: Path, quick: bool) -> Iterator[Figure]:
    """Appends of one message in a transaction, compared with the bare INSERT of its JSON."""
    source = list(islice(messages(), 300 if quick else 1_500))
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    bare.executescript("PRAGMA journal_mode=wal; PRAGMA synchronous=full; CREATE TABLE m (n INTEGER PRIMARY KEY, body)")
    floor = []
    for message in source:
        began = process_time()
        bare.execute("INSERT INTO m (body) VALUES (?)", (encode_message(message),))
        floor.append((process_time() - began) * 1000)
    bare.close()
    for kind, store in (("memory", "memory:"), ("sqlite", f"sqlite:///{folder}/append.db")):
        took = []
        with open_chat(store, "off") as chat:
            for message in source:
                began = process_time()
                chat.append(message)
                took.append((process_time() - began) * 1000)
        yield Figure(
            f"append, {kind}, mean", sum(took) / len(took), "ms", sum(floor) / len(floor), None, "floor: bare INSERT"
        )


def on_disk(path: Path) -> int:
    """Return the bytes of a file after a checkpoint of its log."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


def prompt(folder: Path, quick: bool) -> Iterator[Figure]:
    """The keyword arguments for an SDK, for 1,000 messages: new dictionaries each time."""
    for format in ("openai", "anthropic"):
        with fill(open_chat("memory:", format=format), 1_000) as chat:
            chat.prompt()
            took = []
            for _ in range(30):
                began = process_time()
                kwargs = chat.prompt()
                took.append((process_time() - began) * 1000)
            began = process_time()
            msgspec.json.decode(msgspec.json.encode(kwargs))
            floor = (process_time() - began) * 1000
        yield Figure(
            f"prompt(), 1,000 live, {format}, p50", percentile(took, 0.5), "ms", floor, None, "floor: JSON copy"
        )


QUERIES = (
    "error",
    "the file",
    "src/main.py",
    '"no such file"',
    "import os xyzzy",
    "return self def the of to in is it for",
)


def search(folder: Path, quick: bool) -> Iterator[Figure]:
    """Searches in messages hidden behind one summary: rare words, common words, phrases."""
    history = 10_000 if quick else 100_000
    path = folder / "search.db"
    with fill(open_chat(f"sqlite:///{path}"), history) as chat:
        hide_all_but(chat, 300)
        store, size = chat._agent.store, on_disk(path)
        began = process_time()
        store.search(chat._agent.head, "nothing-of-the-kind")
        indexing = (process_time() - began) * 1000 / history
        took = []
        for query in QUERIES * 10:
            began = process_time()
            store.search(chat._agent.head, query)
            took.append((process_time() - began) * 1000)
    what = f"search {history:,} messages, sqlite"
    yield Figure(f"{what}, p50", percentile(took, 0.5), "ms", None, 50)
    yield Figure(f"{what}, slowest", max(took), "ms", None, 50)
    yield Figure("indexing for search, each message", indexing, "ms", None, None, "after commits and at a search")
    yield Figure("indexed file over the file without", on_disk(path) / size, "x")


HOSTILE = {
    "one line": "the quick brown fox ",
    "one character": "a",
    "nested brackets": "[",
    "binary": "".join(map(chr, range(256))),
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd ",
    "a bundle": 'function a(b,c){return b.foo_bar(c,"%d")};var x_1=1;',
    "short lines": "a\n",
}


def digesting(folder: Path, quick: bool) -> Iterator[Figure]:
    """Digests of a result of usual length, and of ten million characters that are hard to read."""
    took = []
    for number in range(100):
        text = "".join([f"    value_{n} = self.table_{n % 7}.get(key_{n + number}, default)\n" for n in range(130)])
        began = process_time()
        digest(text)
        took.append((process_time() - began) * 1000)
    yield Figure("digest of 8,000 characters, p50", percentile(took, 0.5), "ms")
    size = 1_000_000 if quick else 10_000_000
    for what, piece in HOSTILE.items():
        text = (piece * (size // len(piece) + 1))[:size]
        began = process_time()
        digest(text)
        yield Figure(f"digest of {size:,} characters: {what}", (process_time() - began) * 1000, "ms", None, 1_000)


def importing(folder: Path, quick: bool) -> Iterator[Figure]:
    """The import of the package in a separate process, compared with an empty program."""

    def cpu(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    yield Figure(
        "import foveate", min(cpu("import foveate") for _ in range(5)), "ms", min(cpu("") for _ in range(5)), 200
    )


def databases(folder: Path, quick: bool) -> Iterator[Figure]:
    """Appends one by one and in parallel, on SQLite and PostgreSQL, in wall-clock time (`databases.py`)."""
    from databases import figures

    yield from starmap(Figure, figures(folder, quick))


def depth(folder: Path, quick: bool) -> Iterator[Figure]:
    """Turns, resumes and other operations after 1,000, 100,000 and a million messages (`depth.py`)."""
    from depth import figures

    yield from starmap(Figure, figures(folder, quick))


def many(folder: Path, quick: bool) -> Iterator[Figure]:
    """Ten thousand conversations in one process (`many.py`)."""
    from many import figures

    yield from starmap(Figure, figures(folder, quick))


def crowd(folder: Path, quick: bool) -> Iterator[Figure]:
    """A thousand active conversations on one PostgreSQL, in one process and in eight (`crowd.py`)."""
    from crowd import figures

    yield from starmap(Figure, figures(folder, quick))


def long(folder: Path, quick: bool) -> Iterator[Figure]:
    """Memory of a process over thousands of turns (`long.py`)."""
    from long import figures

    yield from starmap(Figure, figures(folder, quick))


def sizes(folder: Path, quick: bool) -> Iterator[Figure]:
    """Bytes on disk for each message, in both databases (`sizes.py`)."""
    from sizes import figures

    yield from starmap(Figure, figures(folder, quick))


def archives(folder: Path, quick: bool) -> Iterator[Figure]:
    """Export, import and backup, in wall-clock time (`archives.py`)."""
    from archives import figures

    yield from starmap(Figure, figures(folder, quick))


def proxy(folder: Path, quick: bool) -> Iterator[Figure]:
    """A request through the proxy, compared with one that it only passes on (`proxy.py`)."""
    from proxy import figures

    yield from starmap(Figure, figures(folder, quick))


def retention(folder: Path, quick: bool) -> Iterator[Figure]:
    """Facts that digests of generated conversations lose (`retention/`)."""
    from retention.report import figures

    yield from starmap(Figure, figures(quick))


def inspector(folder: Path, quick: bool) -> Iterator[Figure]:
    """The inspector's pages: time of an answer and to the first paint, and sizes (`inspector.py`)."""
    from inspector import figures

    yield from starmap(Figure, figures(folder, quick))


def proxy_load(folder: Path, quick: bool) -> Iterator[Figure]:
    """Memory of streams held open and of many requests; only by its name (`proxy_load.py`)."""
    from proxy_load import figures

    yield from starmap(Figure, figures(folder, quick))


def proxy_pace(folder: Path, quick: bool) -> Iterator[Figure]:
    """Time to the first byte at 50 requests a second; only by its name (`proxy_pace.py`)."""
    from proxy_pace import figures

    yield from starmap(Figure, figures(folder, quick))


def proxy_peers(folder: Path, quick: bool) -> Iterator[Figure]:
    """A request through other proxies as well; only by its name (`proxy_peers.py`)."""
    from proxy_peers import figures

    yield from starmap(Figure, figures(folder, quick))


EVERY = (
    turn,
    growing,
    append,
    search,
    digesting,
    prompt,
    importing,
    long,
    sizes,
    databases,
    many,
    crowd,
    archives,
    depth,
    proxy,
    inspector,
    retention,
)
BENCHES = {bench.__name__: bench for bench in (*EVERY, proxy_load, proxy_pace, proxy_peers)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(BENCHES)} (default: those up to retention)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in BENCHES]:
        parser.error(f"there is no {unknown[0]!r}; choose of {', '.join(BENCHES)}")
    print(machine(), file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.names or [bench.__name__ for bench in EVERY]:
            for figure in BENCHES[name](Path(folder), arguments.quick):
                print(json.dumps(figure._asdict()) if arguments.json else line(figure), flush=True)


def machine() -> str:
    """Return a description of the machine and its load."""
    cores = os.cpu_count() or 1
    busy = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    python, sqlite = platform.python_version(), sqlite3.sqlite_version
    return f"{platform.system()}, {cores} cores, {busy}, Python {python}, SQLite {sqlite}"


def line(figure: Figure) -> str:
    floor = f"{figure.value / figure.floor:8.2f} x {figure.floor:.3f}" if figure.floor else " " * 16
    aim = "" if figure.aim is None else f"  aim < {figure.aim:g}{'' if figure.value < figure.aim else '  MISSED'}"
    return f"{figure.what:48} {figure.value:10.3f} {figure.unit:6} {floor}{aim}  {figure.note}".rstrip()


if __name__ == "__main__":
    main()
