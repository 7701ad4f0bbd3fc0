"""Memory of one process over thousands of turns with a managed window; it must not grow.

A separate process reports Python's allocations after a tenth of the turns and after all.
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
from databases import FigureRow

from foveate import open_conversation

_WINDOW = 16_000
"""Tokens: a dozen turns, so that summaries are made all the time."""
_TEXT = 1_000
"""Characters of each text."""


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield megabytes allocated after a tenth of the turns, and after all."""
    count = 200 if quick else 5_000
    command = [sys.executable, __file__, f"sqlite:///{folder}/long.db", str(count)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    report = json.loads(child.stdout.splitlines()[-1])
    note = f"{report['messages']:,} messages, {report['edits']:,} edits, {report['live']} live"
    yield f"held after {count // 10:,} turns", report["early"], "MB", None, None, f"{report['early_live']} live"
    yield f"held after {count:,} turns", report["late"], "MB", report["early"], None, note
    yield (
        "held by the caches of the process",
        report["caches"],
        "MB",
        None,
        None,
        "bounded, for all conversations",
    )


def main(store: str, count: int) -> None:
    exchanges = [(cut(call, _TEXT), cut(result, _TEXT)) for call, result in islice(turns(), count)]
    gc.collect()
    tracemalloc.start()
    report: dict[str, float] = {}
    with open_conversation(
        "long", store=store, format="openai", policy="prune-and-compact", summarizer="digest", window=_WINDOW
    ) as chat:
        chat.append("Do all of it, one after the other.")
        for n, (call, result) in enumerate(exchanges, 1):
            chat.record(call)
            chat.append(result)
            chat.format.body(chat.prepare(), profile=chat._agent.profile)
            if n in (count // 10, count):
                held = _held()
                _empty_caches()
                report |= {"late": _held()} if n == count else {"early": _held(), "early_live": len(chat.view)}
                report["caches"] = held - _held()
        report |= {"messages": len(chat), "edits": chat._agent.head.number, "live": len(chat.view)}
    print(json.dumps(report))


def _held() -> float:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 1e6


def _empty_caches() -> None:
    """Empty the caches of policies, which hold about a thousand recent messages of any conversation."""
    for cache in gc.get_objects():
        if isinstance(cache, functools._lru_cache_wrapper):
            cache.cache_clear()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
