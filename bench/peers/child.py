"""Measures one library. The interpreter that has the library runs this file, which needs only the standard library.

`python child.py FILE` imports FILE, and then answers each line of JSON from standard input with one line.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sqlite3
import sys
import tracemalloc
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

from peer import Peer


def main() -> None:
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr  # Libraries print.
    os.dup2(2, 1)
    began = process_time()
    peer = load(sys.argv[1])
    child = Child(peer, (process_time() - began) * 1000)
    print(json.dumps(child.imported), file=answers, flush=True)
    for line in sys.stdin:
        name, arguments = json.loads(line)
        print(json.dumps(getattr(child, name)(**arguments)), file=answers, flush=True)
    os._exit(0)  # Threads of a library must not keep the process.


def load(file: str) -> Callable[..., Peer]:
    """Import a file by its path, because several have the name of their library, and return its class."""
    spec = importlib.util.spec_from_file_location(f"peer_{Path(file).stem}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Library


class Child:
    """The commands of the runner."""

    def __init__(self, library: Callable[..., Peer], imported: float) -> None:
        self.library, self.imported = library, imported
        self.growing: Peer | None = None

    def warm_up(self, folder: str, file: str) -> None:
        """Use the library once, so that what it imports and caches at the first use is not measured."""
        peer = self.library(folder, 100_000, 100)
        for message in flat(read(file, 0, 10)):
            peer.append(peer.convert([message]))
        peer.request()
        peer.close()

    def open(self, folder: str, window: int, newest: int) -> None:
        """Open the conversation that `turns` extends."""
        self.growing = self.library(folder, window, newest)
        gc.collect()

    def turns(self, file: str, first: int, last: int) -> dict[str, Any]:
        """Take turns: append the messages of a step, and build the next request. Returns CPU milliseconds of each."""
        peer, took, request = self.growing, [], None
        assert peer is not None, "open comes first"
        for step in read(file, first, last):
            messages = [peer.convert([message]) for message in step]
            began = process_time()
            for message in messages:
                peer.append(message)
            request = peer.request()
            took.append((process_time() - began) * 1000)
        return {"took": took, "shown": peer.calls(request)[0]}

    def fill(self, folder: str, file: str, window: int, newest: int, bulk: int, single: int) -> dict[str, Any]:
        """Store the messages of `bulk` steps at once, and of `single` more one by one. Returns costs of a message."""
        peer = self.library(folder, window, newest)
        together = flat(read(file, 0, bulk))
        apart = flat(read(file, bulk, bulk + single))
        first, others = peer.convert(together), [peer.convert([message]) for message in apart]
        began = process_time()
        peer.append(first)
        filled = process_time()
        for message in others:
            peer.append(message)
        ended = process_time()
        peer.request()
        peer.close()
        return {
            "import": (filled - began) * 1000 / len(together),
            "append": (ended - filled) * 1000 / len(apart),
            "disk": on_disk(folder) / (len(together) + len(apart)),
        }

    def resume(self, folder: str, window: int, newest: int, traced: bool) -> dict[str, Any]:
        """Open a conversation that another process has closed, and build the request. Returns time or memory."""
        gc.collect()
        if traced:
            tracemalloc.start()
        began = process_time()
        peer = self.library(folder, window, newest)
        request = peer.request()
        took = (process_time() - began) * 1000
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] if traced else 0
        count, calls, results = peer.calls(request)
        return {"took": took, "held": held, "shown": count, "parted": len(set(results) - set(calls))}


def read(file: str, first: int, last: int) -> list[list[dict[str, Any]]]:
    """Return steps of the file: each line has the messages of one."""
    with open(file, encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, first, last)]


def flat(steps: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [message for step in steps for message in step]


def on_disk(folder: str) -> int:
    """Return the bytes of all files, after a checkpoint of each SQLite log."""
    for log in Path(folder).rglob("*-wal"):
        connection = sqlite3.connect(str(log).removesuffix("-wal"))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
