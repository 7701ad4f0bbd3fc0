"""`foveate worker`: jobs, status, missing packages and signals."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SRC = Path(__file__).resolve().parent.parent.parent / "src"
HIDDEN = "import sys; sys.modules['procrastinate'] = None; from foveate.__main__ import main; sys.exit(main())"


def python(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", *arguments],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_missing_extra_is_named() -> None:
    child = python("-c", HIDDEN, "worker", "status", "--store", "postgresql://nowhere/chats")
    out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (2, "")
    assert err == 'foveate: A queue of jobs needs: pip install "foveate[worker]".\n'


def test_help_of_worker_has_examples(run: Any) -> None:
    code, out, _ = run("worker", "--help")
    assert (code, "Example: foveate worker --store postgresql://" in " ".join(out.split())) == (0, True)
    code, out, _ = run("worker", "status", "--help")
    assert (code, "Example: foveate worker status --store postgresql://" in " ".join(out.split())) == (0, True)


def test_log_line_of_a_job_stays_one_line() -> None:
    from foveate.cli.worker import _Formatter

    record = logging.LogRecord("foveate.worker", logging.INFO, "", 0, "job 1 compact %s", ("a\nb\x1b",), None)
    assert _Formatter("%(levelname)s %(message)s").format(record) == "INFO job 1 compact a␊b␛"


class TestWithAQueue:
    """Tests that need procrastinate and a server."""

    @pytest.fixture(autouse=True)
    def needs(self) -> None:
        pytest.importorskip("procrastinate", reason="procrastinate is not installed (the extra `worker`)")

    def test_worker_refuses_a_sqlite_file(self, run: Any) -> None:
        code, out, err = run("worker", "--store", "sqlite:///chat.db", "--summarizer", "digest")
        assert (code, out) == (2, "")
        assert err.startswith("foveate: A queue of jobs needs a PostgreSQL store")

    def test_worker_runs_jobs_and_status_lists_them(self, run: Any, postgres_url: str) -> None:
        from foveate import Options, open_conversation
        from foveate.ops.worker import enqueue
        from foveate.testing import say, text_of

        assert run("worker", "upgrade", "--store", postgres_url) == (0, "The queue is up to date.\n", "")
        assert run("worker", "status", "--store", postgres_url)[1] == "0 waiting, 0 running, 0 done, 0 failed\n"
        with open_conversation(
            "support-456", store=postgres_url, window=10_000, options=Options(tenant="acme")
        ) as chat:
            for number in range(6):
                chat.append([{"role": "user", "content": text_of(500, number)}, say("Yes.")])
            chat.append("And now?")
        done = enqueue(postgres_url, "support-456", tenant="acme", now=True)
        failed = enqueue(postgres_url, "nobody")
        code, out, err = run("worker", "--once", "--store", postgres_url, "--summarizer", "digest", "--policy", "none")
        assert (code, out) == (0, "")
        log = [line.split(maxsplit=2)[2] for line in err.splitlines()]
        place = postgres_url.partition("@")[2]
        assert log[0] == f"INFO running the jobs in postgresql://postgres@{place}"
        assert log[1].startswith(f"INFO job {done} compact support-456: turn 7: compact made 2 edits")
        assert log[2].startswith(f"ERROR job {failed} compact nobody: attempt 1, failed for good: NoSuchConversation: ")
        assert log[3:] == ["INFO stopped"]

        code, out, _ = run("worker", "status", "--store", postgres_url)
        lines = out.splitlines()
        assert (code, lines[0]) == (0, "0 waiting, 0 running, 1 done, 1 failed")
        assert lines[1].split()[:4] == ["job", "what", "conversation", "state"]
        assert lines[2].split()[:5] == [str(failed), "compact", "nobody", "failed", "1"]
        assert "NoSuchConversation: There is no conversation 'nobody'" in lines[2]
        assert "acme/support-456" in run("worker", "status", "--all", "--store", postgres_url)[1]
        rows = [json.loads(line) for line in run("worker", "status", "--json", "--store", postgres_url)[1].splitlines()]
        assert [(row["id"], row["tenant"], row["state"]) for row in rows] == [
            (done, "acme", "done"),
            (failed, "", "failed"),
        ]
        enqueue(postgres_url, "", "erase-tenant", tenant="acme")
        lines = run("worker", "status", "--store", postgres_url)[1].splitlines()
        assert [line.split()[1:4] for line in lines if "erase" in line] == [["erase", "acme/*", "waiting"]]

    @pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
    def test_signal_ends_the_worker(self, postgres_url: str, number: int) -> None:
        child = python("-m", "foveate", "worker", "--store", postgres_url, "--summarizer", "digest")
        assert child.stderr is not None
        assert "running the jobs in" in child.stderr.readline()
        child.send_signal(number)
        out, err = child.communicate(timeout=120)
        assert (child.returncode, out) == (0, "")
        assert err.splitlines()[-1].endswith("INFO stopped")
