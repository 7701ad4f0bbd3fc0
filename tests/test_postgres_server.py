"""The PostgreSQL server that the processes of a test run share."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from waiting import until

ROOT = Path(__file__).resolve().parent.parent
ASK = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from postgres_server import Server
server = Server.shared(Path(sys.argv[2]))
print(server.port, flush=True)
sys.stdin.read()
"""


def test_shared_server_stops_when_its_last_process_ends(postgres: Any) -> None:
    folder = Path(tempfile.gettempdir()) / f"foveate-postgres-{uuid.uuid4().hex[:12]}"
    ours = type(postgres).shared(folder)
    other = subprocess.Popen(
        [sys.executable, "-c", ASK, str(ROOT / "tools"), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == ours.port
        ours.release()
        again = type(postgres).shared(folder)  # The other process still holds it.
        assert (again.port, again.is_ready()) == (ours.port, True)
        again.release()
        other.kill()
    until(lambda: not folder.exists())
    assert not ours.is_ready()
