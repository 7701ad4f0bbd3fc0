"""What foveate costs, measured in one run: `make bench`, or `python bench/run.py [NAME ...] [--json] [--quick]`.

CPU time, medians and 99th percentiles. Shared machines are noisy, so figures stand beside a floor that is measured in
the same run: what a program would need that does the bare work and nothing else. Quote the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import process_time
from typing import NamedTuple

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import messages, turns

from foveate import Conversation, Message, Span, Summarize, open_conversation
from foveate.core.wire import encode_message
from foveate.digest import digest
from foveate.formats import get_format

HUGE = 1_000_000_000


class Figure(NamedTuple):
    """One measured number, its floor of the same run, and what is aimed at."""

    what: str
    value: float
    unit: str
    floor: float | None = None
    aim: float | None = None
    note: str = ""


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def opened(store: str, policy: str = "none", window: int = HUGE, format: str = "openai") -> Conversation:
    return open_conversation("bench", store=store, format=format, policy=policy, window=window)


def filled(chat: Conversation, count: int) -> Conversation:
    """Append so many messages; in few transactions, since that is not what is measured here."""
    said = messages()
    while len(chat) < count:
        chat.append(list(islice(said, min(500, count - len(chat)))))
    return chat


def windowed(chat: Conversation, live: int) -> None:
    """Hide all but the newest `live` messages behind one summary."""
    rows = chat.history(1, len(chat) - live)
    chat.edit(Summarize(Span(rows[0].id, rows[-1].id), "What came before, in short."))


def take_turns(chat: Conversation, count: int) -> list[float]:
    """CPU milliseconds of so many turns: record a call, append its result, plan, commit, check, render to bytes."""
    took = []
    for call, result in islice(turns(), count):
        began = process_time()
        chat.record(call)
        chat.append(result)
        view = chat.settle()
        chat.format.body(view, profile=chat.profile)
        took.append((process_time() - began) * 1000)
    return took


def plain_turns(said: list[Message], count: int) -> list[float]:
    """What a program pays that keeps a plain list, manages nothing, and writes it as JSON for each request."""
    format = get_format("openai")
    sent = format.render(said)
    took = []
    for call, result in islice(turns(), count):
        sent += format.render([call, result])
        began = process_time()
        json.dumps({"messages": sent}, ensure_ascii=False).encode()
        took.append((process_time() - began) * 1000)
    return took


def turn(folder: Path, quick: bool) -> Iterator[Figure]:
    """A turn on a view of 1,000 messages, in memory and on SQLite, and with 100 times the history behind it."""
    count = 60 if quick else 200
    floor = plain_turns(list(islice(messages(), 1_000)), count)
    low, high = percentile(floor, 0.5), percentile(floor, 0.99)
    yield Figure("a plain list as JSON, 1,000 messages, p50", low, "ms", None, None, "the floor of what follows")
    medians = {}
    for policy in ("none", "prune", "balanced", "keep-last-5"):
        for store, aim in (("memory:", 2.0), (f"sqlite:///{folder}/turn-{policy}.db", 4.0)):
            kind = store.partition(":")[0]
            with filled(opened(store, policy), 1_000) as chat:
                chat.settle()
                took = take_turns(chat, count)
            medians[policy, kind] = percentile(took, 0.5)
            yield Figure(f"turn, 1,000 live, {policy}, {kind}, p50", medians[policy, kind], "ms", low, aim)
            yield Figure(f"turn, 1,000 live, {policy}, {kind}, p99", percentile(took, 0.99), "ms", high)
    history = 10_000 if quick else 100_000
    for store in ("memory:", f"sqlite:///{folder}/deep.db"):
        kind = store.partition(":")[0]
        with filled(opened(store), history) as chat:
            windowed(chat, 1_000)
            chat.settle()
            middle = percentile(take_turns(chat, count), 0.5)
        yield Figure(
            f"turn, 1,000 live of {history:,}, {kind}, p50",
            middle,
            "ms",
            medians["none", kind],
            None,
            "floor: 1,000 of 1,000",
        )
    with filled(opened("memory:"), 10_000) as chat:
        chat.settle()
        yield Figure("turn, 10,000 live, memory, p50", percentile(take_turns(chat, count), 0.5), "ms")


def append(folder: Path, quick: bool) -> Iterator[Figure]:
    """Appending one message in its own transaction, against the bare INSERT of its JSON."""
    said = list(islice(messages(), 300 if quick else 1_500))
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    bare.executescript("PRAGMA journal_mode=wal; PRAGMA synchronous=full; CREATE TABLE m (n INTEGER PRIMARY KEY, body)")
    floor = []
    for message in said:
        began = process_time()
        bare.execute("INSERT INTO m (body) VALUES (?)", (encode_message(message),))
        floor.append((process_time() - began) * 1000)
    bare.close()
    for kind, store in (("memory", "memory:"), ("sqlite", f"sqlite:///{folder}/append.db")):
        took = []
        with opened(store, "off") as chat:
            for message in said:
                began = process_time()
                chat.append(message)
                took.append((process_time() - began) * 1000)
        yield Figure(
            f"append, {kind}, mean", sum(took) / len(took), "ms", sum(floor) / len(floor), None, "floor: bare INSERT"
        )


def resume(folder: Path, quick: bool) -> Iterator[Figure]:
    """Opening a long conversation anew, in a process of its own: CPU, and the peak of what is allocated for it."""
    history = 10_000 if quick else 100_000
    store = f"sqlite:///{folder}/resume.db"
    with filled(opened(store), history) as chat:
        windowed(chat, 300)
        take_turns(chat, 5)
        chat._do(chat._engine.save_snapshot())
    child = subprocess.run(
        [sys.executable, __file__, "--resume", store], capture_output=True, text=True, check=True, env=os.environ
    )
    cpu, megabytes, entries = json.loads(child.stdout)
    yield Figure(f"resume {history:,} messages, {entries} live", cpu, "ms", None, 20)
    yield Figure(f"resume {history:,} messages, memory", megabytes, "MB", None, 50)


def resumed(store: str) -> None:
    """The child of `resume`: prints CPU milliseconds, megabytes and entries."""
    with tempfile.TemporaryDirectory() as folder:
        for store_of_another in 2 * [f"sqlite:///{folder}/warm-up.db"]:  # What is imported on demand is imported now.
            with opened(store_of_another) as chat:
                chat.append("hi")
                chat.settle()
                chat._do(chat._engine.save_snapshot())
    began = process_time()
    chat = opened(store)
    view = chat.view
    cpu = (process_time() - began) * 1000
    chat.close()
    tracemalloc.start()
    with opened(store) as chat:
        view = chat.view
        peak = tracemalloc.get_traced_memory()[1]
    print(json.dumps([cpu, peak / 1_000_000, len(view)]))


def disk(folder: Path, quick: bool) -> Iterator[Figure]:
    """Bytes on disk for each message, over the bytes of its JSON."""
    wanted = 500 if quick else 3_000
    kinds: dict[str, Callable[[int], bool]] = {
        "small messages": lambda size: size <= 400,
        "long results": lambda size: 3_000 <= size <= 20_000,
        "all kinds": lambda size: True,
    }
    for name, fits in kinds.items():
        chosen = list(islice((m for m in messages() if fits(len(encode_message(m)))), wanted))
        path = folder / f"disk-{name.split()[0]}.db"
        with opened(f"sqlite:///{path}", "off") as chat:
            for start in range(0, len(chosen), 50):
                chat.append(chosen[start : start + 50])
        size = sum(len(encode_message(message)) for message in chosen)
        aim = {"small messages": 1.2, "long results": 0.6}.get(name)
        yield Figure(f"disk, {name} (mean {size // len(chosen):,} bytes)", on_disk(path) / size, "x JSON", None, aim)


def on_disk(path: Path) -> int:
    """Bytes of a file once its log is in it."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


def prompt(folder: Path, quick: bool) -> Iterator[Figure]:
    """The keyword arguments for an SDK, for 1,000 messages: fresh dictionaries each time."""
    for format in ("openai", "anthropic"):
        with filled(opened("memory:", format=format), 1_000) as chat:
            chat.prompt()
            took = []
            for _ in range(30):
                began = process_time()
                given = chat.prompt()
                took.append((process_time() - began) * 1000)
            began = process_time()
            msgspec.json.decode(msgspec.json.encode(given))
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
    """Searching messages that are hidden behind one summary: rare words, common ones, some that stand together."""
    history = 10_000 if quick else 100_000
    path = folder / "search.db"
    with filled(opened(f"sqlite:///{path}"), history) as chat:
        windowed(chat, 300)
        store, size = chat._engine.store, on_disk(path)
        began = process_time()
        store.search(chat.head, "nothing-of-the-kind")
        indexing = (process_time() - began) * 1000 / history
        took = []
        for query in QUERIES * 10:
            began = process_time()
            store.search(chat.head, query)
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
    """The digest of a result of usual length, and of ten million characters of what is hard to read."""
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
    """Importing the package, in a process of its own, over importing nothing."""

    def cpu(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    yield Figure(
        "import foveate", min(cpu("import foveate") for _ in range(5)), "ms", min(cpu("") for _ in range(5)), 200
    )


def databases(folder: Path, quick: bool) -> Iterator[Figure]:
    """SQLite and PostgreSQL side by side, in wall-clock time (`databases.py`)."""
    from databases import measured

    for fields in measured(folder, quick):
        yield Figure(*fields)


def archives(folder: Path, quick: bool) -> Iterator[Figure]:
    """Exporting, importing and backing up, in wall-clock time (`archives.py`)."""
    from archives import measured

    for fields in measured(folder, quick):
        yield Figure(*fields)


EVERY = (turn, append, resume, disk, search, digesting, prompt, importing, databases, archives)
BENCHES = {bench.__name__: bench for bench in EVERY}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(BENCHES)} (default: all)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--resume", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.resume:
        resumed(given.resume)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in given.names or BENCHES:
            for figure in BENCHES[name](Path(folder), given.quick):
                print(json.dumps(figure._asdict()) if given.json else line(figure), flush=True)


def line(figure: Figure) -> str:
    floor = f"{figure.value / figure.floor:8.2f} x {figure.floor:.3f}" if figure.floor else " " * 16
    aim = "" if figure.aim is None else f"  aim < {figure.aim:g}{'' if figure.value < figure.aim else '  MISSED'}"
    return f"{figure.what:48} {figure.value:10.3f} {figure.unit:6} {floor}{aim}  {figure.note}".rstrip()


if __name__ == "__main__":
    main()
