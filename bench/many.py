"""Ten thousand conversations, open at once in one process over one store: memory, latency, throughput, handles.

Half of them are synchronous, half asynchronous. After all are opened, each in turn gets a message, an answer and a
prompt, so that consecutive turns belong to different conversations.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import cut, messages
from databases import FigureRow, new_store, shared_server

from foveate import Message, open_async_conversation, open_conversation, open_store

_TURNS = 2
"""Turns of each conversation before the measured ones."""
_TEXT = 400
"""Characters of each text."""
_THREADS = 8
_TASKS = 64
"""Async conversations with a turn at the same time."""


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield the costs of so many open conversations, in a separate process, with PostgreSQL next to SQLite."""
    count = 100 if quick else 10_000
    floors: dict[str, float] = {}
    with shared_server() as server:
        for kind in ("sqlite", "postgres") if server else ("sqlite",):
            command = [sys.executable, __file__, new_store(kind, folder, server, "many"), str(count)]
            child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            for line in child.stdout.splitlines():
                what, value, unit = json.loads(line)
                yield f"{count:,} conversations, {what}, {kind}", value, unit, floors.get(what), None, ""
                floors.setdefault(what, value)


def main(url: str, count: int) -> None:
    inputs = [cut(message, _TEXT) for message in islice(messages(), 2_000) if message.role in ("user", "assistant")]
    with open_store(url) as store:  # type: ignore[attr-defined]
        asyncio.run(_run(store, count, inputs))


async def _run(store: object, count: int, inputs: list[Message]) -> None:
    """Print each figure as a line of JSON."""
    users = [message for message in inputs if message.role == "user"]
    replies = [message for message in inputs if message.role == "assistant" and not message.calls]
    number = iter(range(10**9))
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(_THREADS))

    def exchange() -> tuple[Message, Message]:
        n = next(number)
        return users[n % len(users)], replies[n % len(replies)]

    before, began = _resident(), perf_counter()
    plain = [open_conversation(f"plain {n}", store=store, window=100_000) for n in range(count // 2)]
    tasks = [await open_async_conversation(f"async {n}", store=store, window=100_000) for n in range(count // 2)]
    report("opened", count / (perf_counter() - began), "1/s")

    async def turn(chat: object) -> float:
        question, answer = exchange()
        began = perf_counter()
        await chat.append(question)
        await chat.prompt()
        await chat.record(answer)
        return (perf_counter() - began) * 1000

    def plain_turn(chat: object) -> float:
        question, answer = exchange()
        began = perf_counter()
        chat.append(question)
        chat.prompt()
        chat.record(answer)
        return (perf_counter() - began) * 1000

    for _ in range(_TURNS):
        took, cpu, began = [], process_time(), perf_counter()
        for chat in plain:
            took.append(plain_turn(chat))
        seconds = perf_counter() - began
        alone, alone_rate, cpu = sorted(took), len(took) / seconds, process_time() - cpu
        gate, took, began = asyncio.Semaphore(_TASKS), [], perf_counter()

        async def gated(chat: object, gate: asyncio.Semaphore = gate) -> float:
            async with gate:
                return await turn(chat)

        took = sorted(await asyncio.gather(*map(gated, tasks)))
        together = len(took) / (perf_counter() - began)
    report("turn, one at a time, p50", alone[len(alone) // 2], "ms")
    report("turn, one at a time, p99", alone[int(len(alone) * 0.99)], "ms")
    report("turn, one at a time, CPU", cpu * 1000 / len(alone), "ms")
    report("turns, one at a time", alone_rate, "1/s")
    report(f"turn, {_TASKS} at a time (async), p50", took[len(took) // 2], "ms")
    report(f"turn, {_TASKS} at a time (async), p99", took[int(len(took) * 0.99)], "ms")
    report(f"turns, {_TASKS} at a time (async)", together, "1/s")
    gc.collect()
    report("memory for each open conversation", (_resident() - before) / count / 1_000, "kB")
    handles = Path("/proc/self/fd")
    if handles.is_dir():
        report("open files of the process", len(list(handles.iterdir())), "")


def _resident() -> float:
    """Return the bytes that the process holds now, or its maximum if the system does not report the current size."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size if sys.platform == "darwin" else size * 1024


def report(what: str, value: float, unit: str) -> None:
    print(json.dumps([what, value, unit]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
