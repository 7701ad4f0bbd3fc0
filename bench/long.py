"""One process that goes on for thousands of turns while its window is managed: what it holds must not grow.

Measured in a process of its own: what Python holds after the first tenth of the turns and after all of them.
"""

from __future__ import annotations

import functools
import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import cut, turns
from databases import Measured

from foveate import open_conversation

_WINDOW = 16_000
"""Tokens: some dozen turns, so that summaries are made all the time."""
_TEXT = 1_000
"""Characters of each text."""


def measured(folder: Path, quick: bool) -> Iterator[Measured]:
    """Megabytes held after a tenth of the turns, and after all."""
    count = 200 if quick else 5_000
    command = [sys.executable, __file__, f"sqlite:///{folder}/long.db", str(count)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told = json.loads(child.stdout.splitlines()[-1])
    note = f"{told['messages']:,} messages, {told['edits']:,} edits, {told['live']} live"
    yield f"held after {count // 10:,} turns", told["early"], "MB", None, None, f"{told['early_live']} live"
    yield f"held after {count:,} turns", told["late"], "MB", told["early"], None, note
    yield (
        "held by the caches of the process",
        told["caches"],
        "MB",
        None,
        None,
        "bounded, for all conversations",
    )


def main(store: str, count: int) -> None:
    said = [(cut(call, _TEXT), cut(result, _TEXT)) for call, result in islice(turns(), count)]
    gc.collect()
    tracemalloc.start()
    told: dict[str, float] = {}
    with open_conversation(
        "long", store=store, format="openai", policy="prune-and-compact", summarizer="digest", window=_WINDOW
    ) as chat:
        chat.append("Do all of it, one after the other.")
        for n, (call, result) in enumerate(said, 1):
            chat.record(call)
            chat.append(result)
            chat.format.body(chat.prepare(), profile=chat.profile)
            if n in (count // 10, count):
                held = _held()
                _empty_caches()
                told |= {"late": _held()} if n == count else {"early": _held(), "early_live": len(chat.view)}
                told["caches"] = held - _held()
        told |= {"messages": len(chat), "edits": chat.head.number, "live": len(chat.view)}
    print(json.dumps(told))


def _held() -> float:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 1e6


def _empty_caches() -> None:
    """Empty what policies remember of the newest some thousand messages, whichever conversation they are of."""
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper):
            one.cache_clear()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
