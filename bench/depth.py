"""Costs of work after a past of any length, on SQLite and PostgreSQL (`past.py` builds the past).

The sizes alternate: each step runs at every size before the next step. So other work of the machine and its disk
affects all sizes alike. With all turns of one size in sequence, the slowest percent would show only the worst moment of
the disk.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import tracemalloc
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import turns
from databases import FigureRow, new_store, shared_server
from past import LIVE, build, settle

from foveate import Conversation, Message, open_conversation, open_store
from foveate.edits import Edit, Span, Summarize
from foveate.ports import Database

HUGE = 1_000_000_000
_WARM = 10
"""Turns before the measured ones. They fill caches, and make the pending edits."""
_COLLECT = 50
"""Turns between two garbage collections, which run outside the measured time."""


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield all figures, each with that of the shortest history in the same database."""
    sizes = (1_000, 3_000) if quick else (1_000, 100_000, 1_000_000)
    with shared_server() as server:
        kinds = ("sqlite", "postgres") if server else ("sqlite",)
        urls = {
            kind: {size: without_search(new_store(kind, folder, server, f"depth{size}")) for size in sizes}
            for kind in kinds
        }
        for size in sizes:
            stores = [open_store(urls[kind][size]) for kind in kinds]
            began = perf_counter()
            build(stores, "bench", size)
            yield f"filling, {size:,} messages", (perf_counter() - began), "s", None, None, "in all databases"
            for kind, store in zip(kinds, stores, strict=True):
                store.close()  # type: ignore[attr-defined]
                settle(urls[kind][size])
        count, resumes = (10, 2) if quick else (500, 30)
        for kind in kinds:
            stores_of = urls[kind]
            yield from turn_figures(kind, "first after resume", resuming(stores_of, resumes))
            yield from turn_figures(kind, "steady", turning(stores_of, "none", count))
            if kind == "postgres":
                yield from log_figures(stores_of, 5 if quick else 100)
            yield from resume_figures(kind, stores_of, 1 if quick else 5)
            yield from operation_figures(kind, stores_of)
            yield from turn_figures(kind, "editing", turning(stores_of, "keep-last-5", count))


def without_search(url: str) -> str:
    """Return the URL without a word index. The index is updated later, so here the whole filling would be pending."""
    return f"{url}{'&' if '?' in url else '?'}search=off"


def turn_figures(kind: str, what: str, took: dict[int, Timings]) -> Iterator[FigureRow]:
    least = min(took)
    for size, one in took.items():
        name = f"{what} turn, {LIVE:,} of {size:,}, {kind}"
        for share in (0.5, 0.99):
            floor = None if size == least else took[least].p(share)
            note = f"CPU {one.cpu_p(share):.2f}, which is x {one.cpu_p(share) / took[least].cpu_p(share):.2f}"
            yield f"{name}, p{share * 100:.0f}", one.p(share), "ms", floor, None, note


def resume_figures(kind: str, stores: dict[int, str], times: int) -> Iterator[FigureRow]:
    results: dict[int, list[tuple[float, float, int]]] = {size: [] for size in stores}
    for _ in range(times):
        for size, url in stores.items():
            results[size].append(resumed(url))
    least = results[min(results)]
    for size, some in results.items():
        name = f"resume {size:,}, {some[0][2]:,} live, {kind}"
        yield f"{name}, CPU", min(one[0] for one in some), "ms", min(one[0] for one in least), None, ""
        yield f"{name}, memory", some[0][1], "MB", least[0][1], None, ""


def log_figures(stores: dict[int, str], count: int) -> Iterator[FigureRow]:
    """Yield the bytes that steady turns write into the server's log right after a checkpoint. PostgreSQL writes a whole
    page when it is first touched, so most bytes belong to the index of ids, whose pages are touched in random order.
    """
    import psycopg

    floor = None
    for size, url in stores.items():
        with psycopg.connect(url.partition("?")[0], autocommit=True) as connection, open_chat(url) as chat:

            def end(connection: psycopg.Connection[tuple[int]] = connection) -> int:
                row = connection.execute("SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT)").fetchone()
                return row[0] if row else 0

            connection.execute("CHECKPOINT")
            began = end()
            for exchange in islice(turns(), count):
                turn(chat, exchange)
            value = (end() - began) / count / 1000
        yield f"log of a steady turn, {size:,}, postgres", value, "kB", floor, None, "right after a checkpoint"
        floor = floor or value


def operation_figures(kind: str, stores: dict[int, str]) -> Iterator[FigureRow]:
    sizes = [size for size in stores if size > 2 * LIVE]
    first: dict[str, float] = {}
    for size in sizes:
        for what, value in looking(stores[size], size):
            yield f"{what}, of {size:,}, {kind}, CPU", value, "ms", first.get(what), None, ""
            first.setdefault(what, value)


def open_chat(store: str | Database, policy: str = "none") -> Conversation:
    return open_conversation("bench", store=store, format="openai", policy=policy, window=HUGE)


class Timings:
    """Wall-clock and CPU milliseconds of repeated work."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def time(self, work: Callable[[], object]) -> None:
        wall, cpu = perf_counter(), process_time()
        work()
        self.wall.append((perf_counter() - wall) * 1000)
        self.cpu.append((process_time() - cpu) * 1000)

    def p(self, share: float) -> float:
        return _share(self.wall, share)

    def cpu_p(self, share: float) -> float:
        return _share(self.cpu, share)


def _share(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def turn(chat: Conversation, exchange: tuple[Message, Message]) -> None:
    """Append a call and its result, plan, commit, check, and render to bytes."""
    call, result = exchange
    chat.record(call)
    chat.append(result)
    chat.format.body(chat.prepare(), profile=chat._agent.profile)


def turning(stores: dict[int, str], policy: str, count: int) -> dict[int, Timings]:
    """Take `count` turns at each size, the same ones at all. Each round begins with another size."""
    chats = {size: open_chat(url, policy) for size, url in stores.items()}
    took = {size: Timings() for size in stores}
    order = list(stores)
    for n, exchange in enumerate(islice(turns(), _WARM + count)):
        if n % _COLLECT == 0:
            gc.collect()
        for size in order[n % len(order) :] + order[: n % len(order)]:
            one = took[size] if n >= _WARM else Timings()
            one.time(partial(turn, chats[size], exchange))
    for chat in chats.values():
        chat.close()
    return took


def resuming(stores: dict[int, str], rounds: int) -> dict[int, Timings]:
    """Take the first turn of a program that opens its store, alternating the sizes."""
    took = {size: Timings() for size in stores}

    def begin(url: str, exchange: tuple[Message, Message]) -> None:
        with open_chat(url) as chat:
            turn(chat, exchange)

    for n, exchange in enumerate(islice(turns(), rounds + 1)):
        for size, url in stores.items():
            gc.collect()
            if n:
                took[size].time(partial(begin, url, exchange))
            else:  # Lazy imports happen now.
                begin(url, exchange)
    return took


def resumed(store: str) -> tuple[float, float, int]:
    """Return CPU milliseconds, the peak allocation in megabytes, and the messages shown, for opening in a new
    process.
    """
    child = subprocess.run(
        [sys.executable, __file__, store], stdout=subprocess.PIPE, text=True, check=True, env=os.environ
    )
    cpu, megabytes, live = json.loads(child.stdout.splitlines()[-1])
    return cpu, megabytes, live


def looking(url: str, size: int) -> Iterator[tuple[str, float]]:
    """Yield milliseconds of other operations after a past of this length, with their names."""
    took: list[tuple[str, float]] = []

    def timed(what: str, work: Callable[[], object], times: int = 1) -> None:
        one = Timings()
        for _ in range(times):
            one.time(work)
        took.append((what, one.cpu_p(0.5)))

    with open_chat(url, "off") as chat:
        ids = [row.id for row in chat.history(size // 2, size // 2 + 19)]
        store, head = chat._agent.store, chat._agent.head
        timed("find 20 messages by their ids", lambda: store.locate(head, ids), 9)
        timed("read the last 20 messages", lambda: chat.history(len(chat) - 19), 9)
        timed("read 20 messages in the middle", lambda: chat.history(size // 2, size // 2 + 19), 9)
        timed("sum up a hundred more", lambda: chat.edit(_older(chat)))
        timed("undo that summary", lambda: chat.undo(chat._agent.head.number))
        timed("expand one of the last that were hidden", lambda: chat.expand(f"m{size - LIVE - 100}"))
        timed("expand one in the middle", lambda: chat.expand(f"m{size // 2}"))
        timed("undo that expansion", lambda: chat.undo(chat._agent.head.number))
        timed("fork at the end", lambda: chat.fork(f"{uuid.uuid4()}").close())
        timed("save a snapshot", lambda: chat._agent.save_snapshot(), 3)
    yield from took


def _older(chat: Conversation) -> Edit:
    """Return a summary of all hidden messages and a hundred more."""
    entries = [entry for entry in chat.view.entries if entry.kind == "message"]
    return Summarize(Span(chat.history(1, 1)[0].id, entries[100].id), "All that came before, and a little more.")


def _resume(store: str) -> None:
    """The child process of `resumed`."""
    with tempfile.TemporaryDirectory() as folder:
        for warm in 2 * [f"sqlite:///{folder}/warm-up.db"]:  # Lazy imports happen now.
            with open_chat(warm) as chat:
                chat.append("hi")
                chat.prepare()
                chat._agent.save_snapshot()
    if not store.startswith("sqlite"):
        open_store(store).close()  # type: ignore[attr-defined]
    began = process_time()
    with open_chat(store) as chat:
        chat.view  # noqa: B018 - it is made when it is looked at.
        cpu = (process_time() - began) * 1000
    tracemalloc.start()
    with open_chat(store) as chat:
        live = len(chat.view)
        print(json.dumps([cpu, tracemalloc.get_traced_memory()[1] / 1_000_000, live]))


if __name__ == "__main__":
    _resume(sys.argv[1])
