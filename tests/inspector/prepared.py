"""Builders of the stores that tests and benchmarks of the inspector show."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from foveate import Message, open_conversation
from foveate.core.messages import Media
from foveate.core.sizes import tokens_of
from foveate.core.stamps import Usage
from foveate.open import Options
from foveate.replay.recordings import read_recording
from foveate.testing.builders import agent_run, answer, call, say, user

__all__ = [
    "DEMO",
    "START",
    "demo_messages",
    "fill_sample",
    "long_run",
    "pixel",
    "play",
]

DEMO = Path(__file__).resolve().parent.parent.parent / "examples" / "data" / "demo.jsonl"
START = 1_760_000_000_000
"""The time of the first message: 9 October 2025."""


class SteppedClock:
    """A clock that a builder sets: each model call takes ten seconds, each result three."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


def play(store: str, name: str, messages: Iterable[Message], *, usage: bool = True, **options: Any) -> None:
    """Store a conversation as its agent would have: a plan and a recorded reply for each message of the assistant."""
    clock = SteppedClock()
    shown = 0
    settings = {"window": 40_000, "model": "claude-haiku-4-5", "policy": "balanced", **options}
    with open_conversation(name, store=store, options=Options(clock=clock), **settings) as conversation:
        for message in messages:
            clock.now += 10_000 if message.role == "assistant" else 3_000
            if message.role != "assistant":
                conversation.append(message)
                continue
            view = conversation.prepare()
            tokens = view.tokens
            read, shown = min(shown, tokens), tokens
            billed = Usage(0, read, tokens - read, tokens_of(message)) if usage else None
            conversation.record(message, usage=billed)


def demo_messages() -> list[Message]:
    """Return the messages of the project's demo recording."""
    return [recorded.message for recorded in read_recording(DEMO).messages]


def long_run(count: int) -> Iterator[Message]:
    """Yield exactly `count` messages of generated runs of an agent, one after another."""
    seed = 0
    while count > 0:
        # The last messages of a run may be cut off: the calls among them stay open, as in an interrupted session.
        for message in agent_run(min(200, count), seed=seed, result_chars=(100, 3_000)):
            if count == 0:
                return
            yield message
            count -= 1
        seed += 1


def fill_sample(store: str) -> None:
    """Store the demo recording, short conversations of agents, and one of each kind of content."""
    play(store, "granary", demo_messages())
    for seed, name in enumerate(("fix-login", "team/weekly report", "bücher-scan")):
        play(store, name, agent_run(25, seed=seed), window=12_000)
    play(store, "kinds", kinds())


def kinds() -> list[Message]:
    """Return a conversation with a result of each kind that the inspector shows in its own way."""
    table = "id,name,price\n" + "".join(f"{n},item {n},{n * 1.5:.2f}\n" for n in range(60))
    levels = ("INFO", "\x1b[33mWARN\x1b[0m", "\x1b[1;31mERROR\x1b[0m")
    log = "".join(f"2025-10-09 12:00:{n % 60:02} {levels[n % 3]} worker {n} answered\n" for n in range(200))
    diff = "--- a/cookie.py\n+++ b/cookie.py\n@@ -1,2 +1,2 @@\n def cookie():\n-    return None\n+    return 'id'\n"
    code = "def cookie(response):\n    '''Set the cookie.'''\n    response.headers['Set-Cookie'] = 'session'\n" * 30
    page = "<!doctype html><html><head><title>Shop</title></head><body><h1>Prices</h1><p>All of them.</p></body></html>"
    data = json.dumps({"rows": [{"id": n, "tags": ["a", "b"], "price": n / 2, "open": n % 2 == 0} for n in range(40)]})
    results = [
        ("read_table", {"path": "prices.csv"}, table),
        ("read_log", {"path": "worker.log"}, log),
        ("git_diff", {"path": "cookie.py"}, diff),
        ("read_file", {"path": "cookie.py"}, code),
        ("fetch", {"url": "https://shop.example/prices"}, page),
        ("query", {"sql": "SELECT * FROM prices"}, data),
    ]
    messages = [user("Show me each kind of result.")]
    for number, (tool, arguments, text) in enumerate(results):
        messages += [call(f"kind_{number}", tool, **arguments), answer(f"kind_{number}", text)]
    image = Media("image/png", "base64", base64.b64encode(pixel(64, 40)).decode())
    messages += [call("kind_image", "screenshot"), answer("kind_image", "The page as it looks.", image)]
    messages += [call("kind_error", "run_tests"), answer("kind_error", "E   KeyError: 'session'", state="error")]
    return [*messages, say("These are **all** kinds:\n\n- a table\n- a log\n\n```python\nprint('done')\n```")]


def pixel(width: int, height: int) -> bytes:
    """Return a PNG image of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x2b\x6c\xb0" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
