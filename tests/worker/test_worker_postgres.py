"""Jobs in a real database: several workers, a killed worker, transactions, and conversations with a queue."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("procrastinate", reason="procrastinate is not installed (the extra `worker`)")
pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
from postgres_schemas import execute
from procrastinate import App
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.manager import JobManager
from procrastinate.schema import SchemaManager
from procrastinate.testing import InMemoryConnector
from psycopg.rows import dict_row
from waiting import until

from foveate import Conversation, open_conversation
from foveate.core.edits import Summarize
from foveate.errors import StoreError
from foveate.open import grouped
from foveate.ops.worker import JobState, Queue, Worker, enqueue, enqueue_async, job_states, set_up
from foveate.ops.worker.worker import _end
from foveate.policies import compact_on_overflow
from foveate.summarizers import SummaryRequest
from foveate.testing import say, text_of

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
SRC = HERE.parent.parent / "src"
COMPACT = compact_on_overflow(ahead=0.5, framing="{summary}")
SIZE: dict[str, Any] = {"window": 11_000, "reserve": 1_000}


def in_short(request: SummaryRequest) -> str:
    return "In short: " + ", ".join(request.required)


def nobody(request: SummaryRequest) -> str:
    raise AssertionError("the conversation asks in its own process")


def failing(request: SummaryRequest) -> str:
    raise OSError("no quota")


def work_off(url: str, summarizer: Any = in_short, **options: Any) -> None:
    with Worker(url, summarizer=summarizer, **{"policy": "none", "pause": 0, **options}) as worker:
        asyncio.run(worker.run_async(once=True, signals=False))


def filled(url: str, name: str = "c") -> str:
    """Return the URL, with a conversation of this name that can be compacted."""
    with open_conversation(name, store=url, policy="none", **grouped(SIZE)) as chat:
        for number in range(6):
            chat.append([{"role": "user", "content": f"{name} {text_of(500, number)}"}, say("Yes.")])
        chat.append("And now?")
    return url


def summaries(url: str, name: str = "c") -> list[str]:
    with open_conversation(name, store=url, policy="none", **grouped(SIZE)) as chat:
        assert chat.journal.verify() == []
        return [edit.text for record in chat.journal.records() for edit in record.edits if isinstance(edit, Summarize)]


def stand(url: str) -> list[tuple[str, int, str]]:
    return [(job.state, job.attempts, job.reason) for job in job_states(url)]


# ------------------------------------------------------------------------------------------------------ conversations


def talk(chat: Conversation, first: int, last: int) -> str:
    for number in range(first, last + 1):
        if number > 1:
            chat.record(say(f"a{number - 1} " + text_of(490, number)))
        chat.append(f"q{number} " + text_of(490, number))
        view = chat.prepare()
    return next(iter(view)).message.text[:9]


def test_next_view_shows_the_summaries_of_a_worker(postgres_url: str) -> None:
    with (
        Queue(postgres_url) as queue,
        open_conversation(
            "c",
            store=postgres_url,
            policy=(COMPACT,),
            summarizer=nobody,
            format="anthropic",
            **grouped({"background": queue, **SIZE}),
        ) as chat,
    ):
        talk(chat, 1, 7)
        assert stand(postgres_url) == [("waiting", 0, "")]
        work_off(postgres_url, policy=(COMPACT,))
        assert stand(postgres_url) == [("done", 1, "")]
        assert talk(chat, 8, 8) == "In short:"
    assert len(summaries(postgres_url)) == 1


def test_worker_that_comes_only_behind_the_reply_does_it_all_the_same(postgres_url: str) -> None:
    with (
        Queue(postgres_url) as queue,
        open_conversation(
            "c", store=postgres_url, policy=(COMPACT,), summarizer=nobody, **grouped({"background": queue, **SIZE})
        ) as chat,
    ):
        talk(chat, 1, 7)
        chat.record(say("a7 " + text_of(490, 7)))
        work_off(postgres_url, policy=(COMPACT,))
        chat.append("q8")
        assert next(iter(chat.prepare())).message.text.startswith("In short:")


@pytest.mark.parametrize("number", [0, None])
def test_worker_does_not_repeat_a_compaction(postgres_url: str, number: int | None) -> None:
    """F35: the worker is slow, and the conversation compacts itself before the worker's answer."""
    filled(postgres_url)

    def late(request: SummaryRequest) -> str:
        with open_conversation("c", store=postgres_url, policy="none", summarizer=in_short, **grouped(SIZE)) as chat:
            chat.compact()
        return "Too late. " + ", ".join(request.required)

    enqueue(postgres_url, "c", now=True, number=number)
    work_off(postgres_url, late)
    assert (stand(postgres_url), len(summaries(postgres_url))) == ([("done", 1, "")], 1)
    assert "Too late" not in summaries(postgres_url)[0]


# ------------------------------------------------------------------------------------------------------------- workers


def test_three_workers_never_work_on_one_conversation_at_once(postgres_url: str) -> None:
    for name in ("a", "b"):
        filled(postgres_url, name)
        for focus in ("this", "that", "these"):
            enqueue(postgres_url, name, focus=focus)
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    def slow(request: SummaryRequest) -> str:
        name = next(message.text[0] for message in request.messages if message.role == "user")
        running[name] += 1
        most[name] = max(most[name], running[name])
        threading.Event().wait(0.05)
        running[name] -= 1
        return in_short(request)

    workers = [threading.Thread(target=work_off, args=(postgres_url, slow)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
    assert stand(postgres_url) == [("done", 1, "")] * 6
    assert most == {"a": 1, "b": 1}
    assert summaries(postgres_url, "a")
    assert summaries(postgres_url, "b")


def test_job_of_a_killed_worker_is_done_by_another(postgres_url: str) -> None:
    filled(postgres_url)
    enqueue(postgres_url, "c", now=True)
    child = subprocess.Popen(
        [sys.executable, str(HERE / "worker_child.py"), postgres_url],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "asked\n"
    child.send_signal(signal.SIGKILL)
    child.wait(60)
    child.stdout.close()
    assert stand(postgres_url) == [("running", 0, "")]
    with Worker(postgres_url, summarizer=in_short, policy="none", stalled=1) as worker:

        async def main() -> None:
            task = asyncio.create_task(worker.run_async(signals=False))
            await asyncio.to_thread(until, lambda: stand(postgres_url)[0][0] == "done")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
    assert stand(postgres_url) == [("done", 2, "its worker died")]
    assert len(summaries(postgres_url)) == 1


def test_pool_of_one_takes_over_from_a_dead_worker(postgres_url: str) -> None:
    """The rescuer holds a connection while it stores the reason; it once waited for a second one and gave up."""
    enqueue(filled(postgres_url), "c", now=True)
    left_behind(postgres_url)
    with Worker(f"{postgres_url}&pool=1", summarizer=in_short, policy="none", stalled=0.01) as worker:
        asyncio.run(asyncio.wait_for(worker.run_async(once=True, signals=False), 120))
    assert stand(postgres_url) == [("done", 2, "its worker died")]


def left_behind(url: str) -> None:
    """Make the waiting job one whose worker died long ago."""
    with inside(url) as connection:
        connection.execute(
            "WITH dead AS (INSERT INTO procrastinate_workers (last_heartbeat) VALUES ('2020-01-01') RETURNING id) "
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT id FROM dead)"
        )


class Dying:
    """A database that fails during a check for dead workers: waiting and unlocking raise errors."""

    def __init__(self, *, answers: bool) -> None:
        self.is_asked, self._answers, self.job_manager = asyncio.Event(), answers, self

    def lock_rescue(self) -> list[Dying]:
        return [self]

    def unlock_rescue(self, held: Dying) -> None:
        raise StoreError("the connection is lost")

    async def get_stalled_jobs(self, **_: object) -> list[Any]:
        self.is_asked.set()
        try:
            return await asyncio.Event().wait() or []
        except asyncio.CancelledError:
            if self._answers:
                raise
            raise ConnectorException from None


@pytest.mark.parametrize("answers", [True, False])
def test_stop_request_survives_a_lost_database(postgres_url: str, answers: bool) -> None:
    async def main() -> None:
        database: Any = Dying(answers=answers)
        with Worker(postgres_url, summarizer=in_short, stalled=0.01) as worker:
            tables, worker._tables = worker._tables, database
            looking = asyncio.create_task(worker._rescue_regularly(database, ends := asyncio.Event()))
            await database.is_asked.wait()
            ends.set()
            ending = asyncio.create_task(_end(looking, soon=0.01))
            done, _ = await asyncio.wait({ending}, timeout=60)
            worker._tables = tables
            assert done == {ending}
            assert ending.exception() is None

    asyncio.run(main())


class Paused:
    """A database with a job whose worker was silent at the check, and a record of its later statements."""

    def __init__(self, job: int | None, *silent: bool) -> None:
        self.job_manager, self._silent, self.given_back, self.ends = self, iter(silent), [], asyncio.Event()
        self._job = Job(id=job, queue="foveate", lock=None, queueing_lock=None, task_name="foveate.compact", attempts=0)

    async def get_stalled_jobs(self, **_: object) -> list[Job]:
        is_silent = next(self._silent, None)
        if is_silent is None:
            self.ends.set()
        return [self._job] if is_silent else []

    async def retry_job(self, job: Job) -> None:
        self.given_back.append(job.id)

    async def delete_old_jobs(self, *_: object, **__: object) -> None:
        """No job is old."""


@pytest.mark.parametrize(
    ("silent", "given_back"),
    [([True, False, True, False], 0), ([True, True], 1), ([False, True, True, False], 1)],
)
def test_worker_is_dead_after_two_checks_without_heartbeat(
    postgres_url: str, silent: list[bool], given_back: int
) -> None:
    """Otherwise a machine that was suspended would take its own workers for dead at the first check."""
    number = enqueue(postgres_url, "c", now=True)

    async def main() -> list[int | None]:
        database: Any = Paused(number, *silent)
        with Worker(postgres_url, summarizer=in_short, stalled=0.01) as worker:
            await worker._rescue_regularly(database, database.ends)
        return list(database.given_back)

    assert asyncio.run(main()) == [number] * given_back


def test_job_whose_end_cannot_be_written_down_is_not_left_running(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker would go on sending heartbeats, and no worker would run it or other jobs of its conversation."""
    enqueue(filled(postgres_url), "c", now=True, number=0)

    async def broken(*_: object, **__: object) -> None:
        raise ConnectorException

    with monkeypatch.context() as patch:
        patch.setattr(JobManager, "finish_job", broken)
        with (
            Worker(postgres_url, summarizer=in_short, policy="none") as worker,
            pytest.raises(StoreError, match=r"was lost.* Other workers take over its running jobs"),
        ):
            asyncio.run(asyncio.wait_for(worker.run_async(signals=False), 300))
    assert stand(postgres_url) == [("running", 0, "")]
    work_off(postgres_url)
    assert (stand(postgres_url), len(summaries(postgres_url))) == ([("done", 2, "its worker died")], 1)


def test_worker_goes_on_after_another_one_ran_its_job(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """It stood still for so long that it counted as dead."""
    filled(postgres_url, "a")
    filled(postgres_url, "b")

    def late(request: SummaryRequest) -> str:
        execute(postgres_url, "UPDATE procrastinate_jobs SET status = 'succeeded' WHERE status = 'doing' AND id = 1")
        return in_short(request)

    enqueue(postgres_url, "a", now=True)
    enqueue(postgres_url, "b", now=True)
    work_off(postgres_url, late)
    assert [state for state, *_ in stand(postgres_url)] == ["done", "done"]
    assert "job 1 compact a: another worker ran it meanwhile, and its state stays" in caplog.messages


def test_worker_that_counted_as_dead_runs_jobs_again(postgres_url: str) -> None:
    """Other workers removed it from the table of workers while its process stood still."""
    filled(postgres_url, "a")
    filled(postgres_url, "b")
    enqueue(postgres_url, "a", now=True)
    with Worker(postgres_url, summarizer=in_short, policy="none", stalled=2) as worker:

        async def main() -> None:
            task = asyncio.create_task(worker.run_async(signals=False))
            await asyncio.to_thread(until, lambda: stand(postgres_url) == [("done", 1, "")])
            await asyncio.to_thread(execute, postgres_url, "DELETE FROM procrastinate_workers")
            await asyncio.to_thread(enqueue, postgres_url, "b", now=True)
            await asyncio.to_thread(until, lambda: task.done() or stand(postgres_url)[1][0] == "done")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())


def test_worker_with_once_that_counted_as_dead_runs_the_other_jobs(postgres_url: str) -> None:
    """It ended with a lost connection, and the job stayed in the queue."""
    filled(postgres_url, "a")
    filled(postgres_url, "b")

    def late(request: SummaryRequest) -> str:
        execute(postgres_url, "DELETE FROM procrastinate_workers")
        return in_short(request)

    enqueue(postgres_url, "a", now=True)
    enqueue(postgres_url, "b", now=True)
    work_off(postgres_url, late)
    assert [state for state, *_ in stand(postgres_url)] == ["done", "done"]


def test_worker_cut_off_during_a_check_leaves_no_connection(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other worker could ever check."""
    set_up(postgres_url)
    with (
        Worker(postgres_url, summarizer=in_short, stalled=0.01) as worker,
        Worker(postgres_url, summarizer=in_short) as other,
    ):

        async def main() -> None:
            hold, begun, follows = worker._tables.lock_rescue, threading.Event(), threading.Event()

            def slow() -> list[Any]:
                held = hold()
                begun.set()
                assert follows.wait(60)
                return held

            monkeypatch.setattr(worker._tables, "lock_rescue", slow)
            looking = asyncio.create_task(worker._rescue_regularly(App(connector=InMemoryConnector()), asyncio.Event()))
            await asyncio.to_thread(begun.wait, 60)
            assert other._tables.lock_rescue() == []
            looking.cancel()
            await asyncio.sleep(0)
            follows.set()
            with pytest.raises(asyncio.CancelledError):
                await looking

        asyncio.run(main())
        held = other._tables.lock_rescue()
        assert len(held) == 1
        other._tables.unlock_rescue(held[0])


def test_worker_runs_in_another_thread_than_the_main_one(postgres_url: str) -> None:
    enqueue(filled(postgres_url), "c", now=True)
    with Worker(postgres_url, summarizer=in_short, policy="none") as worker:
        thread = threading.Thread(target=worker.run, kwargs={"once": True})
        thread.start()
        thread.join(120)
    assert [job.state for job in job_states(postgres_url)] == ["done"]


def test_summarizer_that_fails_is_asked_again_and_the_reason_can_be_seen(postgres_url: str) -> None:
    filled(postgres_url)
    enqueue(postgres_url, "c", now=True)
    work_off(postgres_url, failing, attempts=3)
    assert stand(postgres_url) == [("failed", 3, "OSError: no quota")]
    assert summaries(postgres_url) == []


def test_job_that_is_tried_again_waits_for_its_time(postgres_url: str) -> None:
    filled(postgres_url)
    enqueue(postgres_url, "c", now=True)
    work_off(postgres_url, failing, pause=3600)
    (job,) = job_states(postgres_url)
    assert (job.state, job.attempts, job.reason) == ("waiting", 1, "OSError: no quota")
    assert job.next is not None
    assert job.since is not None
    assert 3500 < (job.next - job.since).total_seconds() <= 3600


# ------------------------------------------------------------------------------------------------------------ queueing


def test_job_is_put_in_by_the_transaction_of_the_caller_or_not_at_all(postgres_url: str) -> None:
    server = postgres_url.partition("?")[0]
    with Queue(postgres_url) as queue, psycopg.connect(server, row_factory=dict_row) as connection:
        enqueue(queue, "c", connection=connection)
        connection.rollback()
        path = connection.execute("SHOW search_path").fetchone()
        assert isinstance(enqueue(queue, "c", connection=connection), int)
        assert enqueue(queue, "c", connection=connection) is None  # It waits already, and the transaction goes on.
        assert connection.execute("SHOW search_path").fetchone() == path
        connection.rollback()
        assert stand(postgres_url) == []
        enqueue(queue, "c", connection=connection)
        connection.commit()
        assert stand(postgres_url) == [("waiting", 0, "")]


def test_connection_that_was_cut_while_it_was_at_rest_is_replaced(postgres_url: str) -> None:
    """A restart of the server cuts idle connections; each once made one job fail."""
    set_up(postgres_url)
    name = f"rest_{uuid.uuid4().hex[:8]}"
    with Queue(f"{postgres_url}&application_name={name}") as queue, inside(postgres_url) as connection:
        assert enqueue(queue, "a") is not None
        ours = "FROM pg_stat_activity WHERE application_name = %s"
        assert connection.execute(f"SELECT pg_terminate_backend(pid) {ours}".encode(), (name,)).fetchall()
        until(lambda: not connection.execute(f"SELECT 1 {ours}".encode(), (name,)).fetchall())
        assert enqueue(queue, "b") is not None
    assert [job.conversation for job in job_states(postgres_url)] == ["a", "b"]


def test_job_joins_the_transaction_of_an_async_connection(postgres_url: str) -> None:
    async def main() -> list[int | None]:
        async with await psycopg.AsyncConnection.connect(postgres_url.partition("?")[0]) as connection:
            first = await enqueue_async(postgres_url, "c", connection=connection)
            again = await enqueue_async(postgres_url, "c", connection=connection)
            await connection.rollback()
        return [first, again, await enqueue_async(postgres_url, "c"), await enqueue_async(postgres_url, "c")]

    first, again, second, at_last = asyncio.run(main())
    assert (isinstance(first, int), again, isinstance(second, int), at_last) == (True, None, True, None)
    assert stand(postgres_url) == [("waiting", 0, "")]


def test_erasing_and_giving_back_room_are_jobs_too(postgres_url: str) -> None:
    filled(postgres_url)
    filled(postgres_url, "d")
    with Queue(postgres_url) as queue:
        enqueue(queue, "c", "erase", handle="m1", who="ann")
        enqueue(queue, "d", "erase")
        enqueue(queue, "", "erase-tenant", tenant="acme")
        enqueue(queue, "", "vacuum")
    work_off(postgres_url)
    assert [(job.what, job.conversation, job.state) for job in job_states(postgres_url)] == [
        ("erase", "c", "done"),
        ("erase", "d", "done"),
        ("erase", "", "done"),
        ("vacuum", "", "done"),
    ]
    for name, erased in (("c", 1), ("d", 13)):
        with open_conversation(name, store=postgres_url, policy="off") as chat:
            assert (chat.journal.verify(), chat.privacy.residue()) == ([], (erased, []))


def test_erase_job_does_not_wait_for_a_job_in_retry(postgres_url: str) -> None:
    filled(postgres_url)
    enqueue(postgres_url, "c", now=True)
    work_off(postgres_url, failing, pause=3600)
    enqueue(postgres_url, "c", "erase")
    work_off(postgres_url)
    assert [(job.what, job.state) for job in job_states(postgres_url)] == [("compact", "waiting"), ("erase", "done")]


def test_jobs_tell_what_they_are(postgres_url: str) -> None:
    enqueue(postgres_url, "support-456", tenant="acme", now=True)
    (job,) = job_states(postgres_url)
    assert job.since is not None
    assert job == JobState(job.id, "compact", "support-456", "acme", "waiting", 0, job.since, None, "")


# -------------------------------------------------------------------------------------------------------------- tables


def inside(url: str) -> psycopg.Connection[Any]:
    """Return a separate connection to the schema of this URL."""
    server, _, schema = url.partition("?schema=")
    return psycopg.connect(server, autocommit=True, options=f"-c search_path={schema}")


def mark(url: str, words: str | None) -> str:
    """Set or read the migration of the tables."""
    with inside(url) as connection:
        if words is not None:
            connection.execute(f"COMMENT ON TABLE procrastinate_jobs IS '{words}'".encode())
        found = connection.execute("SELECT obj_description('procrastinate_jobs'::regclass, 'pg_class')").fetchone()
    return str(found and found[0])


def test_worker_needs_only_read_and_write_privileges(postgres_url: str) -> None:
    """Every user once marked the tables, which only their owner may do."""
    set_up(filled(postgres_url))
    user, rows = f"clerk_{uuid.uuid4().hex[:8]}", "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA"
    schema = postgres_url.partition("?schema=")[2]
    with inside(postgres_url) as connection:
        try:
            connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'secret'".encode())
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {user}".encode())
            connection.execute(f"GRANT {rows} {schema} TO {user}".encode())
            connection.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {user}".encode())
            url = f"postgresql://{user}:secret@{postgres_url.rpartition('@')[2]}"
            assert enqueue(url, "c", now=True) is not None
            work_off(url)
            assert stand(url) == [("done", 1, "")]
        finally:
            connection.execute(f"DROP OWNED BY {user}".encode())
            connection.execute(f"DROP ROLE {user}".encode())


def test_first_worker_creates_the_tables_once(postgres_url: str) -> None:
    assert job_states(postgres_url) == []
    threads = [threading.Thread(target=set_up, args=(postgres_url,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert mark(postgres_url, None).startswith("foveate brought these tables up to ")
    enqueue(postgres_url, "c")
    assert len(job_states(postgres_url)) == 1


def test_tables_of_an_older_procrastinate_are_brought_up_to_date(postgres_url: str) -> None:
    old = "03.03.00_01_pre_priority_lock_fetch_job.sql"
    files = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    with inside(postgres_url) as connection:
        for file in files:
            if file.name <= old:
                connection.execute(file.read_bytes())
    mark(postgres_url, f"foveate brought these tables up to {old}")
    filled(postgres_url)
    enqueue(postgres_url, "c", now=True)
    work_off(postgres_url, failing, attempts=2)
    assert mark(postgres_url, None) == f"foveate brought these tables up to {files[-1].name}"
    assert stand(postgres_url) == [("failed", 2, "OSError: no quota")]


def test_tables_of_a_newer_procrastinate_are_refused(postgres_url: str) -> None:
    set_up(postgres_url)
    mark(postgres_url, "foveate brought these tables up to 99.00.00_01_pre_later.sql")
    with pytest.raises(StoreError, match="newer procrastinate"):
        enqueue(postgres_url, "c")


def test_tables_that_another_program_looks_after_are_used_as_they_are(postgres_url: str) -> None:
    set_up(postgres_url)
    mark(postgres_url, "ours")
    enqueue(postgres_url, "c")
    assert (mark(postgres_url, None), len(job_states(postgres_url))) == ("ours", 1)
