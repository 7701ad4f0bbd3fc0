"""Jobs of a queue in memory: handing out, retries, and return. No database, no waiting."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("procrastinate", reason="procrastinate is not installed (the extra `worker`)")
pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.jobs import Job
from procrastinate.testing import InMemoryConnector

from foveate.core.summaries import Summary, SummaryRequest
from foveate.errors import BadSetting, NoSuchConversation, NoSummary
from foveate.open import Options, open_conversation
from foveate.ops.worker import Backoff, CompactionJob, ErasureJob, VacuumJob, Worker, enqueue, enqueue_async
from foveate.ops.worker.jobs import OpenSettings, compact, run_job
from foveate.ops.worker.queue import QUEUE, JobKind, defer
from foveate.ops.worker.worker import make_app, until_empty
from foveate.stores.memory import MemoryStore
from foveate.testing import text_of

Told = list[tuple[int, int, str]]


def worked_off(
    *wanted: CompactionJob, work: Callable[[CompactionJob, bool], str], attempts: int = 3, concurrency: int = 1
) -> tuple[list[tuple[str, int]], Told]:
    """Return the final state of each job (status, attempts), and the failed attempts (job, attempt, reason)."""
    connector, reasons = InMemoryConnector(), []
    begun: list[CompactionJob] = []

    def noted(one: Any, is_last: bool) -> str:
        begun.append(one)
        return work(one, is_last)

    async def main() -> None:
        app = make_app(connector, noted, Backoff(attempts, 0), lambda *reports: reasons.append(reports), lambda: None)
        async with app.open_async():
            for one in wanted:
                await defer(app, one)
            run = partial(
                app.run_worker_async,
                queues=[QUEUE],
                wait=False,
                concurrency=concurrency,
                install_signal_handlers=False,
                listen_notify=False,
            )
            await until_empty(run, lambda: len(begun))

    asyncio.run(main())
    return [(job["status"], job["attempts"]) for job in connector.jobs.values()], reasons


def test_job_is_done_once() -> None:
    done: list[tuple[CompactionJob, bool]] = []

    def work(wanted: CompactionJob, is_last: bool) -> str:
        done.append((wanted, is_last))
        return "done"

    wanted = CompactionJob("support-456", "acme", 7, True, "the API", 32_000, 2_000, "anthropic")
    assert worked_off(wanted, work=work) == ([("succeeded", 1)], [])
    assert done == [(wanted, False)]


def test_failing_job_is_retried_and_keeps_its_reasons() -> None:
    lasts: list[bool] = []

    def work(wanted: CompactionJob, is_last: bool) -> str:
        lasts.append(is_last)
        raise OSError(f"no quota {len(lasts)}")

    states, reasons = worked_off(CompactionJob("c"), work=work)
    assert (states, lasts) == ([("failed", 3)], [False, False, True])
    assert reasons == [(1, number, f"OSError: no quota {number}") for number in (1, 2, 3)]


def test_job_that_succeeds_at_the_second_attempt_is_done() -> None:
    tries: list[int] = []

    def work(wanted: CompactionJob, is_last: bool) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise NoSummary(["model: it is down"])
        return "done"

    states, reasons = worked_off(CompactionJob("c"), work=work)
    assert (states, reasons) == ([("succeeded", 2)], [(1, 1, "NoSummary: model: it is down")])


@pytest.mark.parametrize("error", [NoSuchConversation("c"), BadSetting("policy= is wrong.")])
def test_permanent_failure_is_not_retried(error: Exception) -> None:
    def work(wanted: CompactionJob, is_last: bool) -> str:
        raise error

    assert worked_off(CompactionJob("c"), work=work)[0] == [("failed", 1)]


def test_a_failed_job_prints_nothing_in_a_program_without_logging(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """procrastinate logs a traceback with all arguments of the job. The queue has the reason."""

    def work(wanted: CompactionJob, is_last: bool) -> str:
        raise NoSuchConversation("c")

    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    _, reasons = worked_off(CompactionJob("c"), work=work)
    assert reasons == [(1, 1, "NoSuchConversation: There is no conversation 'c' in this store.")]
    assert capsys.readouterr().err == ""


def test_pauses_double() -> None:
    backoff, job = Backoff(5, 10), Job(queue=QUEUE, lock=None, queueing_lock=None, task_name="foveate.compact")
    asked = [backoff.get_retry_decision(exception=OSError(), job=job.evolve(attempts=n)) for n in range(5)]
    moments = [decision.retry_at for decision in asked if decision and decision.retry_at]
    apart = [(later - earlier).total_seconds() for earlier, later in pairwise(moments)]
    assert (len(moments), [round(seconds, -1) for seconds in apart]) == (4, [10, 20, 40])


def test_jobs_of_one_conversation_wait_for_each_other_and_others_do_not() -> None:
    running: dict[str, int] = {}
    most: dict[str, int] = {}
    both = threading.Barrier(2, timeout=60)  # Passed only where two conversations are worked on at once.

    def work(wanted: CompactionJob, is_last: bool) -> str:
        name = wanted.conversation
        running[name] = running.get(name, 0) + 1
        most[name] = max(most.get(name, 0), running[name])
        if wanted.focus == "0":
            both.wait()
        running[name] -= 1
        return "done"

    jobs = [CompactionJob(name, focus=str(number)) for number in range(3) for name in ("a", "b")]
    states, reasons = worked_off(*jobs, work=work, concurrency=4)
    assert (states, reasons, most) == ([("succeeded", 1)] * 6, [], {"a": 1, "b": 1})


def test_job_behind_another_of_its_conversation_is_done_too() -> None:
    """procrastinate's own run would end while the first one runs, and leave the second."""

    def work(wanted: CompactionJob, is_last: bool) -> str:
        threading.Event().wait(0.05)
        return "done"

    jobs = [CompactionJob("c", focus=str(number)) for number in range(2)]
    assert worked_off(*jobs, work=work, concurrency=4) == ([("succeeded", 1)] * 2, [])


def test_equal_job_is_queued_once() -> None:
    async def main() -> None:
        app = make_app(InMemoryConnector(), lambda wanted, is_last: "", Backoff(), lambda *reports: None, lambda: None)
        async with app.open_async():
            for other in (
                CompactionJob("c"),
                CompactionJob("c", "acme"),
                CompactionJob("c", focus="x"),
                CompactionJob("d"),
            ):
                await defer(app, other)
            with pytest.raises(AlreadyEnqueued):
                await defer(app, CompactionJob("c", number=9, window=5_000))

    asyncio.run(main())


def test_unfinished_job_is_returned_when_its_worker_ends() -> None:
    connector, reasons = InMemoryConnector(), []
    begun, let_go = threading.Event(), threading.Event()

    def work(wanted: CompactionJob, is_last: bool) -> str:
        begun.set()
        let_go.wait(60)
        return "too late"

    async def main() -> None:
        app = make_app(connector, work, Backoff(1, 3600), lambda *reports: reasons.append(reports), lambda: None)
        async with app.open_async():
            await defer(app, CompactionJob("c"))
            worker = asyncio.create_task(
                app.run_worker_async(
                    queues=[QUEUE], install_signal_handlers=False, listen_notify=False, shutdown_graceful_timeout=0.01
                )
            )
            await asyncio.to_thread(begun.wait, 60)
            worker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await worker

    asyncio.run(main())
    let_go.set()
    (job,) = connector.jobs.values()
    assert (job["status"], job["scheduled_at"] <= datetime.now(UTC)) == ("todo", True)
    assert reasons == [(1, 1, "its worker was stopped")]


# --------------------------------------------------------------------------------------------------- doing the work


def filled() -> MemoryStore:
    store = MemoryStore()
    with open_conversation("c", store=store, window=100_000, policy="none") as chat:
        for number in range(6):
            chat.append([{"role": "user", "content": text_of(900, number)}, {"role": "assistant", "content": "Yes."}])
        chat.append("And now?")
    return store


def stand_in(request: SummaryRequest) -> Summary:
    return Summary("In short, all of them asked for " + ", ".join(request.required), "digest", ("model: it is down",))


def test_fallback_summarizer_writes_only_at_the_last_attempt() -> None:
    store, wanted = filled(), CompactionJob("c", is_wanted=True, window=10_000)
    opening = OpenSettings(stand_in, "none")
    with pytest.raises(NoSummary, match="it is down"):
        compact(store, wanted, opening, is_last=False)
    assert store.records(store.open("", "c")) == []
    reports = compact(store, wanted, opening, is_last=True)
    assert reports.startswith("turn 7: compact made 2 edits")
    assert reports.count("digest") == 1


@pytest.mark.parametrize("nothing", ["", " ", None, 5, Summary("")])
def test_summarizer_without_a_text_is_called_again(nothing: Any) -> None:
    store, wanted = filled(), CompactionJob("c", is_wanted=True, window=10_000)
    opening = OpenSettings(lambda request: nothing, "none")
    with pytest.raises(NoSummary, match="returned no text"):
        compact(store, wanted, opening, is_last=False)
    assert store.records(store.open("", "c")) == []
    assert "written by digest" in compact(store, wanted, opening, is_last=True)


def test_async_summarizer_is_refused() -> None:
    async def summarize(request: SummaryRequest) -> str:
        return "In short."

    store, wanted = filled(), CompactionJob("c", is_wanted=True, window=10_000)
    with pytest.raises(BadSetting, match="cannot await its summarizer"):
        compact(store, wanted, OpenSettings(summarize, "none"), is_last=True)
    assert store.records(store.open("", "c")) == []


def test_job_opens_no_conversation_that_there_is_not() -> None:
    store = MemoryStore()
    with pytest.raises(NoSuchConversation):
        compact(store, CompactionJob("c"), OpenSettings("digest"), is_last=True)
    assert store.names("") == []


def test_job_that_is_not_due_is_not_done() -> None:
    opening = OpenSettings("digest", "none", window=100_000)
    assert compact(filled(), CompactionJob("c"), opening, is_last=False) == "nothing to do"


def test_compact_job_needs_a_window() -> None:
    with pytest.raises(BadSetting, match="The window of 'c' is not known"):
        compact(filled(), CompactionJob("c"), OpenSettings("digest", "none"), is_last=False)


def test_erase_job_covers_handle_conversation_and_tenant() -> None:
    store = filled()
    for tenant in ("acme", "other"):
        with open_conversation("d", store=store, policy="off", options=Options(tenant=tenant)) as chat:
            chat.append("Secret.")
    orders = (ErasureJob("c", handle="m3"), ErasureJob("c"), ErasureJob("c"), ErasureJob(None, "acme"))
    reports = [run_job(store, order, OpenSettings("digest"), is_last=False) for order in orders]
    assert reports == [
        "1 message erased",
        "12 messages erased",
        "0 messages erased",
        "1 message erased in 1 conversation",
    ]
    with open_conversation("c", store=store, policy="off") as chat:
        assert (chat.journal.verify(), chat.privacy.residue()) == ([], (13, []))
    assert [row.body != b"" for row in store.messages(store.open("other", "d"), 1, 1)] == [True]


def test_erasure_records_author_and_reason() -> None:
    store = filled()
    run_job(store, ErasureJob("c", handle="m1-m2", who="ann", reason="asked to"), OpenSettings("digest"), is_last=False)
    (erased,) = store.erasures(store.open("", "c"))
    assert (erased.who, erased.reason, erased.handles, erased.time > 0) == ("ann", "asked to", "m1-m2", True)


def test_erasing_an_unknown_conversation_or_tenant_does_nothing() -> None:
    store = filled()
    with pytest.raises(NoSuchConversation):
        run_job(store, ErasureJob("d"), OpenSettings("digest"), is_last=False)
    with pytest.raises(BadSetting, match="Name the tenant"):
        run_job(store, ErasureJob(None), OpenSettings("digest"), is_last=False)
    assert store.names("") == ["c"]


def test_room_is_given_back() -> None:
    assert run_job(filled(), VacuumJob(), OpenSettings("digest"), is_last=False) == "done"


@pytest.mark.parametrize(
    ("conversation", "what", "arguments"),
    [
        ("c", "erase", {"number": 0}),
        ("c", "erase", {"focus": "the address"}),
        ("c", "erase", {"now": True}),
        ("", "erase-tenant", {"tenant": "acme", "handle": "m3"}),
        ("c", "age", {"handle": "m3", "ages": {"all": "9 days"}}),
        ("c", "compact", {"handle": "m3-m9"}),
        ("", "vacuum", {"reason": "asked to"}),
    ],
)
def test_arguments_of_another_job_are_refused(conversation: str, what: JobKind, arguments: dict[str, Any]) -> None:
    """They were ignored, so that an erasure of some messages could become one of the whole conversation."""
    with pytest.raises(BadSetting, match=f"= is no argument of the job '{what}'. Leave it out; its arguments are: "):
        enqueue("postgresql://x", conversation, what, **arguments)


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (lambda: enqueue("sqlite:///chat.db", "c"), "A queue of jobs needs a PostgreSQL store"),
        (lambda: enqueue(MemoryStore(), "c"), "A queue of jobs needs a PostgreSQL store"),  # type: ignore[arg-type]
        (lambda: enqueue("memory:", "c"), "background=True"),
        (lambda: enqueue("postgresql://x", "c", "export"), "A job is .* not 'export'"),
        (lambda: enqueue("postgresql://x", "c", "vacuum"), "'vacuum' is not for a single conversation"),
        (lambda: enqueue("postgresql://x", "c", "erase-tenant", tenant="acme"), "is not for a single conversation"),
        (lambda: enqueue("postgresql://x", "", "erase", tenant="acme"), "needs the name of a conversation"),
        (lambda: enqueue("postgresql://x", "", "erase-tenant"), "Name the tenant"),
        (lambda: enqueue("postgresql://x", 7), "The name of a conversation"),
        (lambda: enqueue("postgresql://x", "c", number=-1), "number= "),
        (lambda: enqueue("postgresql://x", "c", connection=Path("x")), "is a pathlib.*Path. Pass a psycopg.Conn"),  # type: ignore[arg-type]
        (lambda: asyncio.run(enqueue_async("postgresql://x", "c", connection=object())), "Pass a psycopg.AsyncC"),  # type: ignore[arg-type]
        (lambda: Worker("postgresql://x", summarizer="nope"), "There is no summarizer 'nope'"),
        (lambda: Worker("postgresql://x", summarizer="digest", policy="nope"), "There is no policy 'nope'"),
        (lambda: Worker("postgresql://x", summarizer="digest", window=0), "window= "),
        (lambda: Worker("postgresql://x", summarizer=""), "A worker needs a summarizer"),
        (lambda: Worker("postgresql://x", summarizer="digest", concurrency=0), "concurrency= "),
        (lambda: Worker("postgresql://x", summarizer="digest", pause=-1), "pause= and patience= are seconds"),
    ],
)
def test_invalid_values_are_refused(call: Callable[[], Any], cause: str) -> None:
    with pytest.raises(BadSetting, match=cause):
        call()
