"""A thousand active conversations on one PostgreSQL: eight processes compared with one process and with one thread.

Each conversation in turn gets a message, a prompt and an answer, so that consecutive turns belong to different
conversations. All processes begin together and take turns for some seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from threading import Thread
from time import monotonic, perf_counter, process_time
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import cut, messages
from databases import FigureRow, new_store, shared_server

from foveate import Message, open_conversation, open_store

_TEXT = 400
"""Characters of each text."""


class Crowd(NamedTuple):
    """How the conversations are spread."""

    processes: int
    threads: int
    """Of each process."""

    def __str__(self) -> str:
        many = f"{self.threads} threads" if self.threads > 1 else "one thread"
        return f"{self.processes} processes" if self.processes > 1 else f"one process, {many}"


CROWDS = (Crowd(1, 1), Crowd(1, 8), Crowd(8, 1))


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield turns per second, and the time and CPU of a turn. The floor is the process with one thread."""
    conversations, seconds = (40, 0.5) if quick else (1_000, 10.0)
    floors: dict[str, float] = {}
    with shared_server() as server:
        kind = "postgres" if server else "sqlite"
        for crowd in CROWDS:
            name = f"crowd-{crowd.processes}-{crowd.threads}"
            reports = _run(new_store(kind, folder, server, name), crowd, conversations, seconds)
            took = sorted(one for report in reports for one in report["took"])
            turns = len(took)
            for what, value, unit in (
                ("turns", turns / seconds, "1/s"),
                ("a turn, p50", took[turns // 2], "ms"),
                ("a turn, p99", took[int(turns * 0.99)], "ms"),
                ("CPU of a turn", sum(report["cpu"] for report in reports) / turns, "ms"),
                ("active conversations", sum(report["active"] for report in reports), ""),
            ):
                floor = floors.setdefault(what, value) if crowd != CROWDS[0] else None
                floors.setdefault(what, value)
                yield f"{conversations:,} active, {crowd}, {kind}, {what}", value, unit, floor, None, ""


def _run(store: str, crowd: Crowd, conversations: int, seconds: float) -> list[dict[str, Any]]:
    """Start the processes, let them begin together, and return their reports."""
    open_store(store).close()
    share = conversations // crowd.processes
    children = [
        subprocess.Popen(
            [sys.executable, __file__, store, str(number), str(share), str(crowd.threads), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(crowd.processes)
    ]
    for child in children:
        assert child.stdout is not None, "a pipe"
        assert child.stdout.readline() == "ready\n", "the process ended"
    for child in children:
        assert child.stdin is not None, "a pipe"
        child.stdin.write("\n")
        child.stdin.flush()
    return [json.loads(child.communicate()[0]) for child in children]


def main(url: str, process: int, share: int, threads: int, seconds: float) -> None:
    """Open the conversations, wait for the others, and print one report."""
    inputs = [cut(message, _TEXT) for message in islice(messages(), 2_000) if message.role in ("user", "assistant")]
    users = [message for message in inputs if message.role == "user"]
    replies = [message for message in inputs if message.role == "assistant" and not message.calls]
    took: list[float] = []
    active: set[str] = set()
    with open_store(url) as store:  # type: ignore[attr-defined]
        chats = [open_conversation(f"{process}-{n}", store=store, window=100_000) for n in range(share)]
        for number, chat in enumerate(chats):  # The first turn of a conversation opens it.
            _turn(chat, users[number % len(users)], replies[number % len(replies)])
        print("ready", flush=True)
        sys.stdin.readline()
        ends, began = monotonic() + seconds, process_time()

        def work(own: list[Any]) -> None:
            for number in count():
                chat = own[number % len(own)]
                started = perf_counter()
                _turn(chat, users[number % len(users)], replies[number % len(replies)])
                took.append((perf_counter() - started) * 1000)
                active.add(chat.name)
                if monotonic() > ends:
                    return

        workers = [Thread(target=work, args=(chats[place::threads],)) for place in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        cpu = (process_time() - began) * 1000
        for chat in chats:
            chat.close()
    print(json.dumps({"took": took, "cpu": cpu, "active": len(active)}), flush=True)


def _turn(chat: Any, question: Message, answer: Message) -> None:
    chat.append(question)
    chat.prompt()
    chat.record(answer)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5]))
