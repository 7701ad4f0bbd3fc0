"""A server that crashes while workers run jobs: all jobs end, and none is done twice."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("procrastinate", reason="procrastinate is not installed (the extra `worker`)")
pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
from procrastinate import PsycopgConnector
from waiting import until

from foveate import open_conversation
from foveate.core.edits import Summarize
from foveate.errors import StoreError
from foveate.open import grouped
from foveate.ops.worker import Worker, enqueue, job_states
from foveate.ops.worker import worker as module
from foveate.summarizers import SummaryRequest
from foveate.testing import say, text_of

pytestmark = pytest.mark.slow

NAMES = ("a", "b", "c", "d")
SIZE: dict[str, Any] = {"window": 11_000, "reserve": 1_000}


@pytest.fixture
def server(postgres: Any) -> Iterator[Any]:
    """Start a server for this test only."""
    server = type(postgres).shared(Path(postgres.folder).with_name(f"foveate-postgres-own-{uuid.uuid4().hex[:8]}"))
    yield server
    server.release()


def filled(url: str, name: str) -> None:
    with open_conversation(name, store=url, policy="none", **grouped(SIZE)) as chat:
        for number in range(6):
            chat.append([{"role": "user", "content": f"{name} {text_of(500, number)}"}, say("Yes.")])
        chat.append("And now?")
    enqueue(url, name, now=True)


def summaries(url: str, name: str) -> int:
    with open_conversation(name, store=url, policy="none", **grouped(SIZE)) as chat:
        assert (chat.journal.verify(), len(chat)) == ([], 13)
        return len([edit for record in chat.journal.records() for edit in record.edits if isinstance(edit, Summarize)])


def supervised(url: str, summarizer: Any, errors: list[str]) -> None:
    """Work until no job is left; restart a worker that gives up, as a supervisor does."""

    async def work() -> None:
        with Worker(url, summarizer=summarizer, policy="none", pause=0, stalled=2, patience=1) as worker:
            task = asyncio.create_task(worker.run_async(signals=False))
            while not task.done() and not await asyncio.to_thread(is_done, url) and time.monotonic() < end:
                await asyncio.sleep(0.05)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return

    end = time.monotonic() + 300
    while not is_done(url):
        assert time.monotonic() < end, (errors, stand(url))
        try:
            asyncio.run(work())
        except StoreError as error:
            errors.append(str(error))


def stand(url: str) -> dict[str, tuple[str, int]]:
    return {job.conversation: (job.state, job.attempts) for job in job_states(url)}


def is_done(url: str) -> bool:
    try:
        return all(job.state in ("done", "failed") for job in job_states(url))
    except StoreError:
        return False


def test_idle_worker_stops_although_the_database_is_away(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a database each statement waits for one, also those with which a worker signs off."""
    monkeypatch.setattr(module, "PsycopgConnector", lambda **options: PsycopgConnector(**{**options, "timeout": 9e9}))
    monkeypatch.setattr(module, "_AWAY_SECONDS", 0.01)
    monkeypatch.setattr(module, "_END_SECONDS", 9e9)

    async def main() -> None:
        with Worker(server.url(), summarizer="digest", policy="none") as worker:
            task = asyncio.create_task(worker.run_async(signals=False))
            await asyncio.to_thread(until, lambda: is_registered(server.url()))
            server.crash()
            task.cancel()
            done, _ = await asyncio.wait({task}, timeout=60)
            assert done == {task}
            assert isinstance(task.exception(), StoreError)

    asyncio.run(main())


def is_registered(url: str) -> bool:
    with psycopg.connect(url) as connection:
        try:
            return connection.execute("SELECT count(*) > 0 FROM procrastinate_workers").fetchone() == (True,)
        except psycopg.errors.UndefinedTable:
            return False


@pytest.mark.parametrize("end", ["crash", "stop"])
def test_jobs_go_on_after_the_server_went_away_in_the_middle_of_some(server: Any, end: str) -> None:
    url = server.url() + "?wait=30"
    for name in NAMES:
        filled(url, name)
    asked: list[str] = []
    errors: list[str] = []
    lock = threading.Lock()

    def summarizer(request: SummaryRequest) -> str:
        with lock:
            asked.append(next(message.text[0] for message in request.messages if message.role == "user"))
            if len(asked) in (1, 3):  # In the middle of a job, and once more in that of another one.
                getattr(server, end)()
                server.start()
        return "In short: " + ", ".join(request.required)

    supervised(url, summarizer, errors)
    assert {name: (state, 1 <= attempts <= 3) for name, (state, attempts) in stand(url).items()} == dict.fromkeys(
        NAMES, ("done", True)
    )
    assert [summaries(url, name) for name in NAMES] == [1, 1, 1, 1]
    assert [line for line in errors if "lost" not in line and "cannot be reached" not in line] == []
