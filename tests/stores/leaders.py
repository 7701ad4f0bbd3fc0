"""Child processes that continue conversations while a test damages their server, and the checks afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

from waiting import until

from foveate.core import wire
from foveate.stores.postgres import PostgresStore

__all__ = ["TOLD", "Leaders", "check"]

HERE = Path(__file__).resolve().parent
SRC = HERE.parent.parent / "src"
TOLD = {"not known whether", "cannot be reached", "lost again and again", "Other writers"}
"""Words of the errors that a caller may get while its server is away."""


class Leader:
    """A child process that continues a conversation, and its output so far."""

    def __init__(self, url: str, name: str, conversation: str, count: int) -> None:
        self.name, self.conversation, self.count = name, conversation, count
        self.lines: list[list[str]] = []
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "leader_child.py"), url, name, conversation, str(count)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SRC), str(HERE)])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # The pool logs each failed connection.
            text=True,
        )
        self._reader = threading.Thread(target=self._read)

    def begin(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdin is not None
        assert self.process.stdout.readline() == "ready\n"
        self._reader.start()
        self.process.stdin.write("\n")
        self.process.stdin.close()

    def said(self) -> int:
        return sum(line[0] == "said" for line in self.lines)

    def end(self) -> int:
        code = self.process.wait(timeout=300)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):
                self.lines.append(line.split(maxsplit=2) if not line.startswith("failed") else ["failed", line])


class Leaders:
    """Several of them. As a context manager it ends all of them."""

    def __init__(self, url: str, conversations: list[str], count: int) -> None:
        self.all = [Leader(url, f"w{n}", name, count) for n, name in enumerate(conversations)]
        for one in self.all:
            one.begin()

    def until(self, share: float) -> None:
        """Wait until each has appended this share of its messages."""
        until(lambda: all(one.said() >= one.count * share or one.process.poll() is not None for one in self.all), 300)

    def told(self) -> Counter[str]:
        """Return the reported failures, by the beginning of the error."""
        failed = [line[1] for one in self.all for line in one.lines if line[0] == "failed"]
        return Counter(next((mark for mark in TOLD if mark in said), said) for said in failed)

    def end(self) -> None:
        """Wait until all have appended everything."""
        assert [one.end() for one in self.all] == [0] * len(self.all)
        assert [one.said() for one in self.all] == [one.count for one in self.all]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self.all:
            one.process.kill()
            one.process.wait()
            if one._reader.ident is not None:
                one._reader.join()


def check(url: str, leaders: Leaders) -> dict[str, int]:
    """Check that every acknowledged write is stored once, in its writer's order, and that every chain is valid.

    Return the number of messages of each conversation.
    """
    counts = {}
    with PostgresStore(url) as store:
        for name in sorted({one.conversation for one in leaders.all}):
            head = store.open("", name, create=False)
            assert store.verify(head) == []
            texts = [wire.decode_message(row.body).text for row in store.messages(head, 1, head.position)]
            said = [tuple(text.split()[:2]) for text in texts]
            ours = [one for one in leaders.all if one.conversation == name]
            assert Counter(said) == Counter((one.name, str(turn)) for one in ours for turn in range(one.count))
            for one in ours:
                assert [int(turn) for who, turn in said if who == one.name] == list(range(one.count))
            journal = {(str(record.last), id) for id, record in store.records(head)}
            edited = {(line[1], line[2].strip()) for one in ours for line in one.lines if len(line) == 3}
            assert {(number, id) for number, id in edited if not number.startswith("w")} - journal == set()
            counts[name] = head.position
    return counts
