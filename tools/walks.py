"""Count the files that six walks through the package cross: `python tools/walks.py [--files WALK]`.

A file is crossed when one of its functions is called, or one of its generators resumed, while the walk is made. Lazy
imports inside a walk do not count. The figures show how many places a reader has to visit to follow one operation.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import foveate
from foveate import Conversation, ReActAgent, open_conversation, tool
from foveate.testing import ScriptedModel

PACKAGE = f"{Path(foveate.__file__).parent}/"
NATURAL = {
    "append -> row": 12,
    "row -> request body": 20,
    "policy -> journal -> view": 28,
    "expand, by program": 16,
    "expand, by model": 16,
    "one tool call of an agent": 38,
    "erase": 24,
}
"""The files that each walk needs if every idea has one file and every call is plain."""


@contextmanager
def walk(crossed: set[str]) -> Iterator[None]:
    """Add the files of the package in which a function is called, in any thread."""

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(PACKAGE):
            crossed.add(code.co_filename.removeprefix(PACKAGE))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def opened(folder: str, policy: str, **more: Any) -> Conversation:
    store = f"sqlite:///{folder}/walk.db"
    return open_conversation("walk", store=store, format="anthropic", window=20_000, policy=policy, **more)


def call(id: str, name: str, **arguments: object) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": arguments}]}


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}


def filled(folder: str) -> None:
    """Store a conversation whose twelve results need to be shrunk."""
    with opened(folder, "none") as chat:
        chat.append("Read the files.")
        for number in range(12):
            chat.record(call(f"c{number}", "read_file", path=f"f{number}.py"))
            chat.append(result(f"c{number}", "a line of text\n" * 400))


def shrunk_handle(chat: Conversation) -> str:
    return next(entry.handle for entry in chat.view if entry.shrunk)


def walks() -> dict[str, set[str]]:
    """Make each walk once, on SQLite, and return the files that it crossed."""
    crossed: dict[str, set[str]] = {name: set() for name in NATURAL}
    with tempfile.TemporaryDirectory() as folder:
        filled(folder)
        with opened(folder, "none") as chat, walk(crossed["append -> row"]):
            chat.append("Now fix the bug.")
        with opened(folder, "none") as chat, walk(crossed["row -> request body"]):
            chat.body(system="Be brief.")
    with tempfile.TemporaryDirectory() as folder:
        filled(folder)
        with opened(folder, "prune", expand=True) as chat:
            with walk(crossed["policy -> journal -> view"]):
                chat.prepare()
            with walk(crossed["expand, by program"]):
                chat.expand(shrunk_handle(chat))
            with walk(crossed["expand, by model"]):
                chat.record(call("x", "expand", handle=shrunk_handle(chat)))
                chat.body()
            with walk(crossed["erase"]):
                chat.privacy.erase("m5")
    with tempfile.TemporaryDirectory() as folder:

        @tool
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        model = ScriptedModel([call("a", "add", a=2, b=3), "Five."])
        agent = ReActAgent(model, tools=[add], store=f"sqlite:///{folder}/walk.db", window=20_000)
        with agent, walk(crossed["one tool call of an agent"]):
            agent.run("Add 2 and 3.")
    return crossed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", metavar="WALK", help="also list the files of this walk")
    wanted = parser.parse_args().files
    for name, files in walks().items():
        print(f"{len(files):4} files, natural {NATURAL[name]:3}: {name}")
        if name == wanted:
            print(*(f"        {file}" for file in sorted(files)), sep="\n")


if __name__ == "__main__":
    main()
