"""A process whose agent resumes a conversation together with others.

Arguments: a store, a folder, and where the process is killed: `never`, `tool N` (in its N-th call of a tool) or
`store N before|after` (at the N-th operation of its store). With `still tool N` and `still model N` the process stops
there, until it is continued. It prints `ready`, waits for a line, resumes, and prints how that ended. Each call of a
tool is a line of the file `done`, each request to the model a line of `asked`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from foveate import ChatAgent, open_store, tool
from foveate.agents.lock import Heartbeat
from foveate.core.messages import Message
from foveate.errors import ConversationBusy
from foveate.ports import Database
from foveate.testing import ScriptedModel, call, calls
from foveate.testing.faults import failing_store

T = TypeVar("T")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stand_still() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def note(path: Path, line: str) -> None:
    """Append a line atomically."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def answered(request: dict[str, Any]) -> int:
    """Return the number of results in a request."""
    blocks = [block for message in request["messages"] if message["role"] == "user" for block in message["content"]]
    return sum(block["type"] == "tool_result" for block in blocks)


def asks(folder: Path, thinks: Callable[[], None]) -> Callable[[dict[str, Any]], Message | str]:
    """A model whose answer depends on the results so far."""

    def answer(request: dict[str, Any]) -> Message | str:
        results = answered(request)
        note(folder / "asked", str(results))
        thinks()
        match results:
            case 0:
                return calls(call("c1", "look", at="a"), call("c2", "send", to="x"), call("c3", "send", to="y"))
            case 3:
                return calls(call("c4", "send", to="z"), call("c5", "look", at="b"))
        return "All done."

    return answer


def nothing() -> None:
    pass


def agent(
    store: Database,
    folder: Path,
    dies: Callable[[], None] = nothing,
    thinks: Callable[[], None] = nothing,
    *,
    is_parallel: bool = True,
    **options: Any,
) -> ChatAgent:
    """`dies` is called at the end of each call of a tool, and `thinks` in each call of the model."""

    @tool(is_repeatable=True, is_parallel=is_parallel)
    def look(at: str) -> str:
        """Look."""
        note(folder / "done", f"look {at}")
        dies()
        return f"seen {at}"

    @tool(is_parallel=is_parallel)
    def send(to: str) -> str:
        """Send."""
        note(folder / "done", f"send {to}")
        dies()
        return f"sent {to}"

    model = ScriptedModel(asks(folder, thinks))
    name = folder.name if folder.name.isdecimal() else "one"
    return ChatAgent(model, tools=[look, send], store=store, conversation=name, window=100_000, **options)


class Killing:
    """A countdown that kills the process at its last operation."""

    def __init__(self, n: int, *, after: bool) -> None:
        self._left, self._after = n, after

    def run(self, operation: Callable[[], T], failure: Callable[[], Exception]) -> T:
        self._left -= 1
        if self._left == 0 and not self._after:
            die()
        result = operation()
        if self._left == 0:
            die()
        return result


def nth(n: int, then: Callable[[], None]) -> Callable[[], None]:
    """Calls the function at the n-th call."""
    counted: Iterator[int] = count(1)

    def call() -> None:
        if next(counted) == n:
            then()

    return call


def main(url: str, folder: Path, kind: str, *how: str) -> None:
    with open_store(url) as opened:
        store: Any = opened
        options: dict[str, Any] = {}
        match (kind, *how):
            case ("tool", n):
                options = {"dies": nth(int(n), die)}
            case ("still", "tool", n):
                options = {"dies": nth(int(n), stand_still), "is_parallel": False}
            case ("still", "model", n):
                options = {"thinks": nth(int(n), stand_still)}
            case ("store", n, when):
                store = failing_store(opened, Killing(int(n), after=when == "after"))  # type: ignore[arg-type]
        with agent(store, folder, **options) as one:
            if kind == "still":  # Without heartbeats: the process could stop during one, and hold the row.
                one._loop._lock._heartbeat = Heartbeat(interval=1e6)
            print("ready", flush=True)
            sys.stdin.readline()
            try:
                print(one.resume().text, flush=True)
            except ConversationBusy as error:
                print("taken over" if "Nothing was written" in str(error) else "at work", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
