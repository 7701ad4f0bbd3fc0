"""Many processes write one conversation, some are killed, and the server crashes: nothing is lost or doubled."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

from waiting import until

from foveate.core import wire
from foveate.stores.postgres import PostgresStore

HERE = Path(__file__).resolve().parent
SRC = HERE.parent.parent / "src"


class Writer:
    """A child process that writes, and its acknowledgements so far."""

    def __init__(self, url: str, name: str, count: int) -> None:
        self.name = name
        self.lines: list[list[str]] = []
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SRC), str(HERE)])}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "writing_child.py"), url, name, str(count)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        self._reader = threading.Thread(target=self._read)

    def begin(self) -> None:
        self._reader.start()
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.close()

    def count_acknowledged(self) -> int:
        """Return the number of acknowledged messages."""
        return sum(line[0] == "said" for line in self.lines)

    def until(self, count: int) -> None:
        """Wait until it acknowledged this many messages, or ended."""
        until(lambda: self.count_acknowledged() >= count or self.process.poll() is not None, 300)

    def end(self) -> int:
        """Wait until it has ended; return its exit code."""
        code = self.process.wait(timeout=300)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):  # The last line of a killed process may be cut.
                self.lines.append(line.split())


def check(url: str, writers: list[Writer]) -> None:
    """Check that every acknowledged message is stored once, and each writer's messages in their order."""
    with PostgresStore(url) as store:
        head = store.open("acme", "one", create=False)
        assert store.verify(head) == []
        texts = [wire.decode_message(row.body).text for row in store.messages(head, 1, head.position)]
        edits = [record.first for _, record in store.records(head)]
    starts = [tuple(text.split()[:2]) for text in texts]
    assert [author for author, count in Counter(starts).items() if count > 1] == []
    for writer in writers:
        turns = [int(turn) for name, turn in starts if name == writer.name]
        assert turns == list(range(len(turns)))
        acknowledged = [int(line[2]) for line in writer.lines if line[0] == "said"]
        assert len(turns) - len(acknowledged) in (0, 1)  # One more where it was killed before it could say so.
    reported = [int(line[1]) for writer in writers for line in writer.lines if line[0] == "edited"]
    assert (len(reported), set(reported) - set(edits)) == (len(set(reported)), set())


def check_killed(url: str, count: int, each: int, kills: int, seed: int) -> None:
    random = Random(seed)
    writers = [Writer(url, f"w{n}", each) for n in range(count)]
    for writer in writers:
        writer.begin()
    for writer in writers[:kills]:
        enough = random.randrange(1, each // 2)
        writer.until(enough)
        writer.process.kill()
    codes = [writer.end() for writer in writers]
    assert codes[kills:] == [0] * (count - kills)
    assert [line for writer in writers for line in writer.lines if line[0] == "failed"] == []
    assert [writer.count_acknowledged() for writer in writers[kills:]] == [each] * (count - kills)
    check(url, writers)


@pytest.mark.slow
def test_processes_write_one_conversation_and_one_is_killed(postgres_url: str) -> None:
    check_killed(postgres_url + "&wait=60", count=3, each=30, kills=1, seed=1)


@pytest.mark.slow
def test_eight_writers_lose_nothing_when_half_are_killed(postgres_url: str) -> None:
    check_killed(postgres_url + "&wait=60", count=8, each=250, kills=4, seed=2)


@pytest.mark.slow
def test_server_crash_under_load_loses_nothing_acknowledged(postgres: Any) -> None:
    server = type(postgres).shared(Path(postgres.folder).with_name(f"foveate-postgres-own-{uuid.uuid4().hex[:8]}"))
    try:
        url = server.url() + "?wait=60"
        writers = [Writer(url, f"w{n}", 150) for n in range(4)]
        for writer in writers:
            writer.begin()
        for goal in (20, 60, 100):
            for writer in writers:
                writer.until(goal)
            server.crash()
            server.start()
        assert [writer.end() for writer in writers] == [0] * 4
        assert [writer.count_acknowledged() for writer in writers] == [150] * 4
        check(url, writers)
    finally:
        server.release()


FORK = """
import os, sys
from foveate.errors import StoreError
from foveate.ports import append
from foveate.stores.postgres import PostgresStore

store = PostgresStore(sys.argv[1])
head = store.open("acme", "one")
child = os.fork()
if child == 0:
    try:
        append(store, head, [])
    except StoreError as error:
        print("was opened before this process was forked" in str(error), flush=True)
    store.close()
    with PostgresStore(sys.argv[1]) as own:
        print("its own:", own.names("acme"), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(store.names("acme"))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_store_is_not_used_after_os_fork_and_is_closed_at_exit(postgres_url: str) -> None:
    child = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", FORK, postgres_url],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert child.stdout.splitlines() == ["True", "its own: ['one']", "['one']"]
    assert (child.stderr, child.returncode) == ("", 0)
