"""Power cuts of Python's own SQLite, from a record of its system calls.

Needs Linux and `strace`. Elsewhere `test_sqlite_power.py` covers this with another SQLite whose files Python handles.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from store_states import scenario

pytest.importorskip("apsw", reason="apsw, which `disks.py` is made with, is not installed")
from disks import Event, Lost
from store_states import states_along_the_way
from test_sqlite_power import check

pytestmark = pytest.mark.slow

CALLS = "openat,close,pwrite64,ftruncate,fdatasync,fsync,unlink,write"
CALL = re.compile(r"\d+ +(\w+)\((.*)\) += (-?\d+)")
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def traced(folder: Path) -> list[Event]:
    """Return a process's system calls for files in this folder, and its acknowledgements."""
    strace = shutil.which("strace")
    if strace is None or sys.platform != "linux":
        pytest.skip("there is no strace here")
    here = Path(__file__).resolve().parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parents[1] / "src"), str(here)])}
    said, child = folder / "said", [sys.executable, str(here / "traced_child.py"), str(folder / "db" / "chat.db")]
    (folder / "db").mkdir()
    command = [strace, "-f", "-qq", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-o", str(said), *child]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        if "ptrace" in done.stderr:
            pytest.skip("nothing may be traced here")
        pytest.fail(done.stderr)
    return list(read(said.read_text("ascii"), str(folder / "db")))


def read(said: str, folder: str) -> list[Event]:
    """Return the events in the lines of strace that concern files of the folder."""
    names: dict[int, str] = {}
    """Of the open files, by their numbers; the folder's own is empty."""
    events = []
    for line in said.splitlines():
        match = CALL.match(line)
        if match is None or (match[3].startswith("-") and match[1] != "close"):
            continue
        call, given, result = match[1], match[2], int(match[3])
        texts = [bytes.fromhex(text.replace("\\x", "")) for text in TEXT.findall(given)]
        number = int(given.split(",")[0]) if given[0].isdigit() else -1
        if call == "write" and number == 1 and texts == [b"acknowledged\n"]:
            events.append(Event("acknowledged"))
        elif call in ("openat", "unlink"):
            path = texts[0].decode()
            if path == folder or os.path.dirname(path) == folder:
                name = path[len(folder) + 1 :]
                if call == "openat":
                    names[result] = name
                if not name.endswith("-shm") and name:
                    events.append(Event("open" if call == "openat" else "delete", name))
        elif call == "close":
            names.pop(number, None)
        elif (name := names.get(number)) is not None and not name.endswith("-shm"):
            rest = given.rsplit(", ", 1)[-1]
            match call:
                case "pwrite64":
                    assert len(texts[0]) == result
                    events.append(Event("write", name, int(rest), texts[0]))
                case "ftruncate":
                    events.append(Event("truncate", name, int(rest)))
                case "fdatasync" | "fsync":
                    events.append(Event("sync", name))
                case "write":
                    pytest.fail(f"SQLite writes in a way that is not understood: {line[:200]}")
    return events


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    return traced(tmp_path_factory.mktemp("traced"))


def test_power_cut_keeps_acknowledged_data_of_stock_sqlite(events: list[Event], tmp_path: Path) -> None:
    """F30."""
    along: list[dict[str, Any]] = states_along_the_way()
    lost, random, torn = Lost(folders=True), Random(19), 0
    for number, event in enumerate(events):
        lost.take(event)
        try:
            check(tmp_path, lost, lost.left(None), along)
            if not lost.is_settled:
                check(tmp_path, lost, lost.left(random), along)
                torn += 1
        except BaseException as error:
            error.add_note(f"the power went after event {number}: {event.kind} {event.name} at {event.at}")
            raise
    assert lost.acknowledged == len(scenario())
    assert torn > 20


def test_pythons_own_sqlite_syncs_before_each_acknowledgement(events: list[Event]) -> None:
    since, written = list[str](), 0
    for event in events:
        if event.kind == "acknowledged":
            if "write" in since:
                assert since[-1] == "sync"
                written += 1
            since = []
        elif event.name == "chat.db-wal" and event.kind in ("write", "sync"):
            since.append(event.kind)
    assert written >= len(scenario()) - 1
