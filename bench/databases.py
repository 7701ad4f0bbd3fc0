"""SQLite and PostgreSQL compared: writes by one process and by many.

Wall-clock time, because a server's work is not in the process's CPU time; in one run, so that both have the same
machine. Both are as durable as by default: an acknowledged write is on disk.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from corpus import messages
from postgres_server import NoServer, Server

from foveate import open_store
from foveate.errors import ConflictError, StoreError
from foveate.testing.rows import chain

FigureRow = tuple[str, float, str, float | None, None, str]
"""The fields of a Figure of `run.py`."""

WRITERS = 8


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield all figures; those of PostgreSQL have SQLite's as their floor."""
    seconds = 0.3 if quick else 4.0
    floors: dict[str, float] = {}
    with shared_server() as server:
        for kind in ("sqlite", "postgres") if server else ("sqlite",):
            of_kind = partial(new_store, kind, folder, server)
            yield f"bare commits, 1 writer, {kind}", bare(of_kind("bare"), seconds), "1/s", None, None, "an INSERT each"
            for what, value, unit in writing(of_kind, seconds):
                yield f"{what}, {kind}", value, unit, floors.get(what), None, ""
                floors.setdefault(what, value)


@contextmanager
def shared_server() -> Iterator[Server | None]:
    """Provide a PostgreSQL server. Yields None and prints the reason if none can run."""
    try:
        server = Server.shared(Path(tempfile.gettempdir()) / f"foveate-postgres-{uuid.uuid4().hex[:8]}")
    except NoServer as error:
        print(f"without PostgreSQL: {error}", file=sys.stderr)
        yield None
        return
    try:
        yield server
    finally:
        server.release()


def new_store(kind: str, folder: Path, server: Server | None, name: str) -> str:
    """Return the URL of a new store in one of the two databases."""
    if kind == "sqlite":
        return f"sqlite:///{folder}/{name}.db"
    assert server is not None, "only a server has schemas"
    return f"{new_schema(server, name)}&pool=4"


def new_schema(server: Server, name: str) -> str:
    """Return the URL of a new schema."""
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
    return f"{server.url()}?schema={name}"


def bare(url: str, seconds: float) -> float:
    """Return how many commits per second only insert a text: the limit of the disk during this run."""
    if url.startswith("sqlite"):
        connection: Any = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = full")
        statement = "INSERT INTO bare (text) VALUES (?)"
    else:
        import psycopg

        connection = psycopg.connect(url.partition("?")[0], autocommit=True)
        statement = "INSERT INTO bare (text) VALUES (%s)"
    connection.execute("CREATE TABLE bare (text TEXT)")
    texts = [message.text for message in islice(messages(), 500)]
    count, ends = 0, monotonic() + seconds
    while monotonic() < ends:
        connection.execute(statement, (texts[count % len(texts)].replace("\0", ""),))
        count += 1
    connection.close()
    return count / seconds


def writing(url: Callable[[str], str], seconds: float) -> Iterator[tuple[str, float, str]]:
    """Yield appends of one message each, per second."""
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
        yield what, sum(int(output) for output, _ in done) / seconds, "1/s"


def write(store_url: str, name: str, seconds: float) -> int:
    """Append for `seconds`, all processes at once. Returns how many appends were acknowledged."""
    count = 0
    texts = list(islice(messages(), 500))
    with open_store(store_url) as store:  # type: ignore[attr-defined]
        head = store.open("bench", name)
        print("ready", flush=True)
        sys.stdin.readline()
        ends = monotonic() + seconds
        while monotonic() < ends:
            message = texts[count % len(texts)]
            try:  # Like a conversation: after all messages that others have appended.
                head = store.extend(head, lambda tail, message=message: chain([message], tail.head)).head
                count += 1
            except ConflictError:  # Others were hundreds of messages ahead.
                head = store.open("bench", name)
            except StoreError as error:
                print(error, file=sys.stderr)
    return count


if __name__ == "__main__":
    print(write(sys.argv[1], sys.argv[2], float(sys.argv[3])))
