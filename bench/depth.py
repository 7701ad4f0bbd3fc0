"""A conversation of any length in front of the same live window: what its past costs, on SQLite and PostgreSQL.

The past is real text, cut short, that was managed as it came: every 200 messages a record of the journal shrinks
results and moves a summary on, so that a million messages have 5,000 records with 100,000 edits, and 1,000 are shown.
Before anything is measured the databases have settled what filling them left behind (`settled`).
"""

from __future__ import annotations

import gc
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import tracemalloc
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import cut, messages, turns
from databases import Measured, place, servers

from foveate import Conversation, Edit, Message, Replace, Span, Summarize, Target, Text, open_conversation, open_store
from foveate.core.ids import record_id
from foveate.core.journal import Record
from foveate.core.outlines import outline_of_record
from foveate.core.profiles import profile_for
from foveate.core.projection import Projection
from foveate.counters.estimate import EstimatingCounter
from foveate.engine.state import row_of
from foveate.formats import get_format
from foveate.ports import Appended, Database, Head
from foveate.testing.rows import chain

LIVE = 1_000
"""Messages that are shown, however long the history is."""
_RECORD = 200
"""Messages between two records of the journal."""
_EDITS = 20
"""Edits in each record."""
_TEXT = 240
"""Characters that a message of the past keeps of each text."""
HUGE = 1_000_000_000


def build(stores: Sequence[Database], name: str, size: int) -> None:
    """The same conversation of `size` messages in each of these stores, with the snapshot a program would have left."""
    heads = [store.open("", name) for store in stores]
    format = get_format("openai")
    shown = Projection(profile_for(format.name, ""), EstimatingCounter())
    first = ""
    recent: list[Appended] = []
    said = messages()
    while heads[0].position < size:
        count = min(_RECORD, size - heads[0].position)
        is_past = heads[0].position < size - LIVE
        rows = chain([cut(m, _TEXT) if is_past else m for m in islice(said, count)], heads[0])
        heads = [store.append(head, rows) for store, head in zip(stores, heads, strict=True)]
        for row in rows:
            shown.append(row_of(row))
        first = first or rows[0].id
        recent = [*recent, *rows][-(LIVE + _RECORD) :]
        if heads[0].position > LIVE:
            record = _record(heads[0], first, recent)
            shown.apply(record, {first: 1})
            id = record_id(heads[0].record, outline_of_record(record))
            heads = [store.commit(head, record, id) for store, head in zip(stores, heads, strict=True)]
    shot = shown.snapshot()
    for store, head in zip(stores, heads, strict=True):
        store.save_snapshot(head, shot.position, shot.number, shot.encode())


def _record(head: Head, first: str, recent: Sequence[Appended]) -> Record:
    """One record: older results are told in short, and what lies behind the live window is summed up."""
    hidden = recent[len(recent) - LIVE - 1]
    results = [row for row in recent[-LIVE:] if row.stamp.origin == "tool"][: _EDITS - 1]
    gone = (Text("[cleared]"),)
    edits: list[Edit] = [Replace(Target(row.id, (0,)), gone, "bench", "older than others") for row in results]
    said = f"What was said and done up to message {hidden.position}. " * 8
    edits.append(Summarize(Span(first, hidden.id), said, policy="bench", reason="the window moves on"))
    stamp = recent[-1].stamp
    return Record(head.number + 1, tuple(edits), stamp.turn, stamp.time, head.tip, head.position, author="plan")


def settled(url: str) -> None:
    """Do now what the database would do while something is measured, because of how it was filled."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///").partition("?")[0])) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return
    import psycopg

    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


# ------------------------------------------------------------------------------------------------------- measuring


def measured(folder: Path, quick: bool) -> Iterator[Measured]:
    """All figures, each beside that of the shortest history in the same database."""
    sizes = (1_000, 3_000) if quick else (1_000, 100_000, 1_000_000)
    with servers() as server:
        kinds = ("sqlite", "postgres") if server else ("sqlite",)
        urls = {kind: {size: _plain(place(kind, folder, server, f"depth{size}")) for size in sizes} for kind in kinds}
        for size in sizes:
            stores = [open_store(urls[kind][size]) for kind in kinds]
            began = perf_counter()
            build(stores, "bench", size)
            yield f"filling, {size:,} messages", (perf_counter() - began), "s", None, None, "in all databases"
            for kind, store in zip(kinds, stores, strict=True):
                store.close()  # type: ignore[attr-defined]
                settled(urls[kind][size])
        rounds, count, resumes = (1, 10, 2) if quick else (8, 50, 30)
        for kind in kinds:
            stores_of = urls[kind]
            yield from _of_turns(kind, "first after resume", resuming(stores_of, resumes))
            yield from _of_turns(kind, "steady", turning(stores_of, "none", rounds, count))
            yield from _of_resuming(kind, stores_of, 1 if quick else 3)
            yield from _of_looking(kind, stores_of)
            yield from _of_turns(kind, "editing", turning(stores_of, "keep-last-5", rounds, count))


def _plain(url: str) -> str:
    """Without an index of words, which follows at a distance: here it would lie behind by all that was filled in."""
    return f"{url}{'&' if '?' in url else '?'}search=off"


def _of_turns(kind: str, what: str, took: dict[int, Took]) -> Iterator[Measured]:
    least = min(took)
    for size, one in took.items():
        name = f"{what} turn, {LIVE:,} of {size:,}, {kind}"
        for share in (0.5, 0.99):
            floor = None if size == least else took[least].p(share)
            note = f"CPU {one.cpu_p(share):.2f}, which is x {one.cpu_p(share) / took[least].cpu_p(share):.2f}"
            yield f"{name}, p{share * 100:.0f}", one.p(share), "ms", floor, None, note


def _of_resuming(kind: str, stores: dict[int, str], times: int) -> Iterator[Measured]:
    found = {size: [resumed(url) for _ in range(times)] for size, url in stores.items()}
    least = found[min(found)]
    for size, some in found.items():
        name = f"resume {size:,}, {some[0][2]:,} live, {kind}"
        yield f"{name}, CPU", min(one[0] for one in some), "ms", min(one[0] for one in least), None, ""
        yield f"{name}, memory", some[0][1], "MB", least[0][1], None, ""


def _of_looking(kind: str, stores: dict[int, str]) -> Iterator[Measured]:
    sizes = [size for size in stores if size > 2 * LIVE]
    first: dict[str, float] = {}
    for size in sizes:
        for what, value in looking(stores[size], size):
            yield f"{what}, of {size:,}, {kind}, CPU", value, "ms", first.get(what), None, ""
            first.setdefault(what, value)


def opened(store: str | Database, policy: str = "none") -> Conversation:
    return open_conversation("bench", store=store, format="openai", policy=policy, window=HUGE)


class Took:
    """Wall-clock and CPU milliseconds of one thing that was done many times."""

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
    chat.format.body(chat.settle(), profile=chat.profile)


def turning(stores: dict[int, str], policy: str, rounds: int, count: int) -> dict[int, Took]:
    """So many turns at each size. The same ones, and the sizes in turn, so that all meet the same texts and machine."""
    said = list(islice(turns(), 10 + rounds * count))
    chats = {size: opened(url, policy) for size, url in stores.items()}
    took = {size: Took() for size in stores}
    for chat in chats.values():
        for exchange in said[:10]:  # The first ones fill caches, and make the edits that were left open.
            turn(chat, exchange)
    for start in range(10, len(said), count):
        for size, chat in chats.items():
            gc.collect()
            for exchange in said[start : start + count]:
                took[size].time(partial(turn, chat, exchange))
    for chat in chats.values():
        chat.close()
    return took


def resuming(stores: dict[int, str], rounds: int) -> dict[int, Took]:
    """The first turn of a program that opens its store and goes on, the sizes in turn."""
    took = {size: Took() for size in stores}

    def begin(url: str, exchange: tuple[Message, Message]) -> None:
        with opened(url) as chat:
            turn(chat, exchange)

    for n, exchange in enumerate(islice(turns(), rounds + 1)):
        for size, url in stores.items():
            gc.collect()
            if n:
                took[size].time(partial(begin, url, exchange))
            else:  # What is imported on demand is imported now.
                begin(url, exchange)
    return took


def resumed(store: str) -> tuple[float, float, int]:
    """CPU milliseconds, the peak of what is allocated in megabytes, and messages shown: opening in a new process."""
    child = subprocess.run(
        [sys.executable, __file__, store], stdout=subprocess.PIPE, text=True, check=True, env=os.environ
    )
    cpu, megabytes, live = json.loads(child.stdout.splitlines()[-1])
    return cpu, megabytes, live


def looking(url: str, size: int) -> Iterator[tuple[str, float]]:
    """Milliseconds that other things take once, in front of a past of this length, by what is done."""
    took: list[tuple[str, float]] = []

    def timed(what: str, work: Callable[[], object], times: int = 1) -> None:
        one = Took()
        for _ in range(times):
            one.time(work)
        took.append((what, one.cpu_p(0.5)))

    with opened(url, "off") as chat:
        ids = [row.id for row in chat.history(size // 2, size // 2 + 19)]
        store, head = chat._engine.store, chat.head
        timed("find 20 messages by their ids", lambda: store.locate(head, ids), 9)
        timed("read the last 20 messages", lambda: chat.history(len(chat) - 19), 9)
        timed("read 20 messages in the middle", lambda: chat.history(size // 2, size // 2 + 19), 9)
        timed("sum up a hundred more", lambda: chat.edit(_older(chat)))
        timed("undo that summary", lambda: chat.undo(chat.head.number))
        timed("expand one of the last that were hidden", lambda: chat.expand(f"m{size - LIVE - 100}"))
        timed("expand one in the middle", lambda: chat.expand(f"m{size // 2}"))
        timed("undo that expansion", lambda: chat.undo(chat.head.number))
        timed("fork at the end", lambda: chat.fork(f"{uuid.uuid4()}").close())
        timed("save a snapshot", lambda: chat._do(chat._engine.save_snapshot()), 3)
    yield from took


def _older(chat: Conversation) -> Edit:
    """A summary of all that is hidden and a hundred messages more."""
    entries = [entry for entry in chat.view.entries if entry.kind == "message"]
    return Summarize(Span(chat.history(1, 1)[0].id, entries[100].id), "All that came before, and a little more.")


def _resume(store: str) -> None:
    """The child of `resumed`."""
    with tempfile.TemporaryDirectory() as folder:
        for warm in 2 * [f"sqlite:///{folder}/warm-up.db"]:  # What is imported on demand is imported now.
            with opened(warm) as chat:
                chat.append("hi")
                chat.settle()
                chat._do(chat._engine.save_snapshot())
    if not store.startswith("sqlite"):
        open_store(store).close()  # type: ignore[attr-defined]
    began = process_time()
    with opened(store) as chat:
        chat.view  # noqa: B018 - it is made when it is looked at.
        cpu = (process_time() - began) * 1000
    tracemalloc.start()
    with opened(store) as chat:
        live = len(chat.view)
        print(json.dumps([cpu, tracemalloc.get_traced_memory()[1] / 1_000_000, live]))


if __name__ == "__main__":
    _resume(sys.argv[1])
