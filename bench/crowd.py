"""A thousand active conversations on one PostgreSQL: eight processes compared with one process and with one thread.

Each conversation in turn gets a message, a prompt and an answer, so that consecutive turns belong to different
conversations. Each of these crowds works for some seconds, then the next one, in several rounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median
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
    conversations, seconds, rounds = (40, 0.3, 2) if quick else (1_000, 3.0, 5)
    floors: dict[str, float] = {}
    with shared_server() as server, ExitStack() as stack:
        kind = "postgres" if server else "sqlite"
        groups = {
            crowd: stack.enter_context(
                _started(
                    new_store(kind, folder, server, f"crowd-{crowd.processes}-{crowd.threads}"), crowd, conversations
                )
            )
            for crowd in CROWDS
        }
        reports: dict[Crowd, list[dict[str, Any]]] = {crowd: [] for crowd in CROWDS}
        rates: dict[Crowd, list[float]] = {crowd: [] for crowd in CROWDS}
        for _ in range(rounds):  # The crowds take turns, so that load affects all of them.
            for crowd, children in groups.items():
                done = _round(children, seconds)
                reports[crowd] += done
                rates[crowd].append(sum(len(report["took"]) for report in done) / seconds)
        for crowd in CROWDS:
            took = sorted(one for report in reports[crowd] for one in report["took"])
            cpu = sum(report["cpu"] for report in reports[crowd]) / len(took)
            active = len({name for report in reports[crowd] for name in report["active"]})
            spread = f"{min(rates[crowd]):.0f} to {max(rates[crowd]):.0f}; {active:,} conversations had a turn"
            for what, value, unit, note in (
                ("turns", median(rates[crowd]), "1/s", spread),
                ("a turn, p50", took[len(took) // 2], "ms", ""),
                ("a turn, p99", took[int(len(took) * 0.99)], "ms", ""),
                ("CPU of a turn", cpu, "ms", ""),
            ):
                yield f"{conversations:,} active, {crowd}, {kind}, {what}", value, unit, floors.get(what), None, note
                floors.setdefault(what, value)


@contextmanager
def _started(store: str, crowd: Crowd, conversations: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Start the processes of a crowd, and wait until all have opened their conversations."""
    open_store(store).close()
    share = conversations // crowd.processes
    children = [
        subprocess.Popen(
            [sys.executable, __file__, store, str(number), str(share), str(crowd.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(crowd.processes)
    ]
    try:
        for child in children:
            _answer(child)
        yield children
    finally:
        for child in children:
            child.communicate()


def _round(children: list[subprocess.Popen[str]], seconds: float) -> list[dict[str, Any]]:
    """Let the processes begin together, and return their reports."""
    for child in children:
        assert child.stdin is not None, "a pipe"
        child.stdin.write(f"{seconds}\n")
        child.stdin.flush()
    return [_answer(child) for child in children]


def _answer(child: subprocess.Popen[str]) -> Any:
    assert child.stdout is not None, "a pipe"
    return json.loads(child.stdout.readline())


def main(url: str, process: int, share: int, threads: int) -> None:
    """Open the conversations, take turns for each number of seconds that comes in, and print a report."""
    inputs = [cut(message, _TEXT) for message in islice(messages(), 2_000) if message.role in ("user", "assistant")]
    users = [message for message in inputs if message.role == "user"]
    replies = [message for message in inputs if message.role == "assistant" and not message.calls]
    with open_store(url) as store:  # type: ignore[attr-defined]
        chats = [open_conversation(f"{process}-{n}", store=store, window=100_000) for n in range(share)]
        for number, chat in enumerate(chats):  # The first turn of a conversation creates it.
            _turn(chat, users[number % len(users)], replies[number % len(replies)])
        turns = [cycle(chats[place::threads]) for place in range(threads)]
        print('"ready"', flush=True)
        while line := sys.stdin.readline():
            took: list[float] = []
            active: set[str] = set()
            ends, began = monotonic() + float(line), process_time()

            def work(own: Iterator[Any], took: list[float], active: set[str], ends: float) -> None:
                for number, chat in enumerate(own):
                    started = perf_counter()
                    _turn(chat, users[number % len(users)], replies[number % len(replies)])
                    took.append((perf_counter() - started) * 1000)
                    active.add(chat.name)
                    if monotonic() > ends:
                        return

            workers = [Thread(target=work, args=(own, took, active, ends)) for own in turns]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            cpu = (process_time() - began) * 1000
            print(json.dumps({"took": took, "cpu": cpu, "active": sorted(active)}), flush=True)
        for chat in chats:
            chat.close()


def _turn(chat: Any, question: Message, answer: Message) -> None:
    chat.append(question)
    chat.prompt()
    chat.record(answer)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
