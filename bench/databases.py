"""SQLite and PostgreSQL side by side: writes by one and by many processes, and turns in front of a long history.

Wall-clock time, since a server works where a process's CPU time does not show; and in one run, so that the machine is
the same for both. Both are as durable as by default: every write is on the disk when it is acknowledged.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import monotonic, perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from corpus import messages, turns
from postgres_server import NoServer, Server

from foveate import Conversation, Span, Summarize, open_conversation, open_store
from foveate.errors import StoreError, TipMoved
from foveate.testing.rows import chain

Measured = tuple[str, float, str, float | None, None, str]
"""The fields of a Figure of `run.py`."""

WRITERS = 8


def measured(folder: Path, quick: bool) -> Iterator[Measured]:
    """All figures; those of PostgreSQL have SQLite's as their floor."""
    try:
        server = Server.shared(Path(tempfile.gettempdir()) / f"foveate-postgres-{uuid.uuid4().hex[:8]}")
    except NoServer as error:
        print(f"without PostgreSQL: {error}", file=sys.stderr)
        server = None
    seconds, history = (1.0, 10_000) if quick else (4.0, 100_000)
    floors: dict[str, float] = {}
    for kind in ("sqlite", "postgres") if server else ("sqlite",):

        def url(name: str, kind: str = kind) -> str:
            if kind == "sqlite":
                return f"sqlite:///{folder}/{name}.db"
            assert server is not None
            return f"{made(server, name)}&pool=4"

        for what, value, unit in (*writing(url, seconds), *turning(url, history, 60 if quick else 200)):
            yield f"{what}, {kind}", value, unit, floors.get(what), None, ""
            floors.setdefault(what, value)
    if server:
        server.let_go()


def made(server: Server, name: str) -> str:
    """The URL of a new schema."""
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
    return f"{server.url()}?schema={name}"


def writing(url: Callable[[str], str], seconds: float) -> Iterator[tuple[str, float, str]]:
    """Appends of one message each, per second."""
    for count, shared, what in (
        (1, False, "appends, 1 writer"),
        (WRITERS, False, f"appends, {WRITERS} processes, a conversation each"),
        (WRITERS, True, f"appends, {WRITERS} processes, one conversation"),
    ):
        store = url(f"writing-{count}-{shared}")
        open_store(store).close()
        children = [
            subprocess.Popen(
                [sys.executable, __file__, store, "all" if shared else f"w{n}", str(seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for n in range(count)
        ]
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        for child in children:
            assert child.stdin is not None
            child.stdin.write("\n")
            child.stdin.flush()
        done = [child.communicate() for child in children]
        yield what, sum(int(said) for said, _ in done) / seconds, "1/s"


def write(store_url: str, name: str, seconds: float) -> int:
    """Append for so long, all processes at once; how many were acknowledged."""
    count = 0
    said = list(islice(messages(), 500))
    with open_store(store_url) as store:  # type: ignore[attr-defined]
        head = store.open("bench", name)
        print("ready", flush=True)
        sys.stdin.readline()
        ends = monotonic() + seconds
        while monotonic() < ends:
            try:
                head = store.append(head, chain([said[count % len(said)]], head))
                count += 1
            except TipMoved:
                head = store.open("bench", name)
            except StoreError as error:
                print(error, file=sys.stderr)
    return count


def turning(url: Callable[[str], str], history: int, count: int) -> Iterator[tuple[str, float, str]]:
    """Turns with 1,000 live messages: record a call, append its result, plan, commit, render to bytes."""
    for size in (1_000, history):
        store = url(f"turning-{size}")
        with open_conversation("bench", store=store, format="openai", policy="none", window=1_000_000_000) as chat:
            said = messages()
            while len(chat) < size:
                chat.append(list(islice(said, min(500, size - len(chat)))))
            if size > 1_000:
                rows = chat.history(1, size - 1_000)
                chat.edit(Summarize(Span(rows[0].id, rows[-1].id), "What came before, in short."))
            took = sorted(take_turns(chat, count))
        yield f"turn, 1,000 live of {size:,}, p50", took[len(took) // 2], "ms"
        yield f"turn, 1,000 live of {size:,}, p99", took[int(len(took) * 0.99)], "ms"


def take_turns(chat: Conversation, count: int) -> Iterator[float]:
    for n, (call, result) in enumerate(islice(turns(), count + 10)):
        began = perf_counter()
        chat.record(call)
        chat.append(result)
        chat.format.body(chat.settle(), profile=chat.profile)
        if n >= 10:  # The first ones fill caches.
            yield (perf_counter() - began) * 1000


if __name__ == "__main__":
    print(write(sys.argv[1], sys.argv[2], float(sys.argv[3])))
