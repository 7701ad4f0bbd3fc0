"""The worker: takes jobs out of the queue and runs them until it is stopped.

procrastinate distributes the jobs: one per conversation at a time, each to one worker. This module adds the rest: jobs
of dead workers go to others, the reasons of failures are stored, and old jobs are deleted.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

import msgspec
import psycopg
from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job as QueuedJob
from procrastinate.jobs import Status
from procrastinate.periodic import PeriodicTask
from procrastinate.tasks import Task

from ...background.tasks import finished
from ...background.threads import ThreadJob
from ...conversation import validate
from ...core.catalog import Prompt
from ...core.retention import Age, Ages, read_ages
from ...errors import BadInput, BadSetting, NoSuchConversation, StoreError
from ...open import open_store
from ...policies import PolicyChoice
from ...ports import Database, Summarizer
from ...stores.postgres.pool import Patient
from .jobs import TASKS, Job, OpenSettings, RetentionJob, run_job
from .queue import QUEUE
from .tables import Tables, read_postgres_url

__all__ = ["Backoff", "Worker", "make_app", "until_empty"]

_log = logging.getLogger("foveate.worker")
_SILENT = logging.NullHandler()
"""Keeps the log of procrastinate, with a traceback for each failed attempt, off the terminal without logging."""

_KEPT_HOURS = 7 * 24
"""Hours for which ended jobs are kept."""
_POLL_SECONDS = 5.0
_AWAY_SECONDS = 5.0
"""Seconds without a connection after which a worker that ends stops waiting for the database."""
_END_SECONDS = 30.0
"""Seconds for procrastinate to store all states, after the patience with running jobs."""

Attempted = tuple[int | None, int]
"""The number of a job, and its earlier attempts."""
Work = Callable[[Job, bool], str]
"""Runs a job, and describes the result. The flag: whether no other attempt follows."""
Reason = Callable[[int, int, str], object]
"""Stores why an attempt failed: the number of the job, that of the attempt, the reason."""
Lost = Callable[[], object]
"""Called if the result of a job could not be stored."""


ATTEMPTS = 5
"""Attempts of a job, at most."""
PAUSE = 10
"""Seconds before the second attempt; the pause doubles each time."""
_PERMANENT = (BadInput, NoSuchConversation)


class Backoff(BaseRetryStrategy):
    """Retries a job: at most `attempts` attempts, `pause` seconds apart, doubled each time.

    A job whose worker is stopped goes back at once. A wrong setting or a missing conversation is not tried again.
    """

    def __init__(self, attempts: int = ATTEMPTS, pause: float = PAUSE) -> None:
        self.attempts, self.pause = attempts, pause

    def is_last(self, attempts: int) -> bool:
        """Return whether the current attempt is the last one. `attempts`: those before it."""
        return attempts + 1 >= self.attempts

    def get_retry_decision(self, *, exception: BaseException, job: QueuedJob) -> RetryDecision | None:
        """Return when to retry, for procrastinate; None: the job has failed for good."""
        if isinstance(exception, asyncio.CancelledError):
            return RetryDecision(retry_in={"seconds": 0})
        if isinstance(exception, _PERMANENT) or self.is_last(job.attempts):
            return None
        return RetryDecision(retry_in={"milliseconds": round(1000 * self.pause * 2**job.attempts)})


class Worker:
    """Runs the jobs in the queue of a store.

    `url`: that of the store. `summarizer`: a name or a function. `policy`, `window`, `reserve`, `model`, `format` and
    `settings` are those of `open_conversation`; without them the window and the format of the conversation are used.

    `ages`: the retention rules for jobs that name none. `ages_at`: when to apply them to all conversations of the
    store, as a crontab line in UTC, such as `17 3 * * *`; one of several workers does it.

    `concurrency`: jobs at a time. `attempts`: of a job at most, `pause` seconds apart, doubled each time. `patience`:
    seconds for running jobs after a request to stop, before they go back to the queue. `stalled`: seconds without a
    heartbeat after which a worker counts as dead.

    Raises BadSetting for wrong values, MissingExtra if the SDK of a model is not installed, and StoreError if the
    database cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        summarizer: str | Summarizer,
        policy: PolicyChoice | None = None,
        window: int | None = None,
        reserve: int | None = None,
        model: str | None = None,
        format: str | None = None,
        settings: Mapping[str, Any] | None = None,
        ages: Ages | None = None,
        ages_at: str = "",
        concurrency: int = 1,
        attempts: int = ATTEMPTS,
        pause: float = PAUSE,
        patience: float = 30.0,
        stalled: float = 30.0,
    ) -> None:
        validate.integer("concurrency= (jobs at a time)", concurrency, 1)
        validate.integer("attempts= (of a job)", attempts, 1)
        if not (pause >= 0 and patience >= 0 and stalled > 0):
            raise BadSetting("pause= and patience= are seconds, 0 or more, and stalled= is more than 0.")
        read_postgres_url(url)  # Its errors come first.
        self._ages = () if ages is None else read_ages(ages)
        self._ages_at = _crontab(ages_at, self._ages)
        self._settings = OpenSettings(summarizer, policy, window, reserve, model, format, settings).opened(
            self._stored_prompts
        )
        self._url, self._concurrency, self._backoff = url, concurrency, Backoff(attempts, pause)
        self._patience, self._stalled = patience, stalled
        self._tables = Tables(url)
        self._begun = 0  # Attempts so far.
        self._store: Database | None = None

    def _stored_prompts(self, tenant: str) -> list[Prompt]:
        """Return the prompts of a tenant, for the summarizer. It is used while jobs run."""
        return self._store.prompts(tenant) if self._store else []

    def run(self, *, once: bool = False) -> None:
        """Run jobs until SIGINT or SIGTERM; with `once` until no job is due."""
        asyncio.run(self.run_async(once=once))

    async def run_async(self, *, once: bool = False, signals: bool = True) -> None:
        """Run jobs in a running loop. Cancelling it stops it like a signal. `signals`: whether to handle signals."""
        asked, lost = asyncio.Event(), asyncio.Event()
        with _stop_on_signals(asked) if signals else nullcontext():
            await asyncio.to_thread(self._tables.make)
            store = self._store = await asyncio.to_thread(open_store, self._url)
            connector = PsycopgConnector(
                conninfo=self._tables.url.conninfo, min_size=1, max_size=self._concurrency + 3, timeout=30.0
            )
            app = make_app(
                connector,
                lambda job, is_last: self._run(store, job, is_last),
                self._backoff,
                self._tables.add_reason,
                lost.set,
                ages_at=self._ages_at,
            )
            try:
                async with app.open_async():
                    await self._rescue(app)
                    _log.info("running the jobs in %s", self._tables.url.place)
                    ends = asyncio.Event()
                    rescuing = asyncio.create_task(self._rescue_regularly(app, ends), name="foveate rescue")
                    try:
                        await self._work(app, connector, asked, lost, once=once)
                    finally:
                        ends.set()
                        await _end(rescuing)
            except ConnectorException as error:
                raise self._connection_lost() from error
            finally:
                await asyncio.to_thread(store.close)
            _log.info("stopped")

    def _connection_lost(self) -> StoreError:
        return StoreError(
            f"The connection to {self._tables.url.place} was lost. Other workers take over its running jobs. "
            f"Start the worker again when the database is available."
        )

    def _run(self, store: Database, job: Job, is_last: bool) -> str:
        self._begun += 1
        return run_job(store, job, self._settings, is_last=is_last, ages=self._ages)

    async def _work(
        self, app: App, connector: PsycopgConnector, asked: asyncio.Event, lost: asyncio.Event, *, once: bool
    ) -> None:
        """Run jobs until `asked` to stop or, with `once`, until none waits. `lost`: the end of a job was not stored, so
        it counts as running until this worker sends no heartbeat any more.
        """
        run = partial(
            app.run_worker_async,
            queues=[QUEUE],
            name="foveate",
            wait=not once,
            concurrency=self._concurrency,
            install_signal_handlers=False,
            shutdown_graceful_timeout=self._patience,
            # There is no notification for a job that is retried or rescued, so poll.
            fetch_job_polling_interval=min(_POLL_SECONDS, self._stalled / 2),
            update_heartbeat_interval=self._stalled / 3,
            stalled_worker_timeout=self._stalled,
        )
        registered = partial(_registered, run)
        working = asyncio.create_task(until_empty(registered, lambda: self._begun) if once else registered())
        waiting, losing = asyncio.create_task(asked.wait()), asyncio.create_task(lost.wait())
        try:
            await asyncio.wait({working, waiting, losing}, return_when=asyncio.FIRST_COMPLETED)
            if losing.done():
                raise self._connection_lost()
            if working.done():
                await working
                if not once:  # procrastinate ends if it cannot listen or send heartbeats.
                    raise self._connection_lost()
        finally:
            await _end(waiting)
            await _end(losing)
            leaving = asyncio.create_task(_leave_if_away(connector))
            await _end(working, self._patience + _END_SECONDS)  # It lets running jobs end first.
            await _end(leaving)

    def close(self) -> None:
        """Close the connections."""
        self._tables.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def _rescue_regularly(self, app: App, ends: asyncio.Event) -> None:
        """Rescue the jobs of dead workers from time to time. `ends`: set to stop, even if a cancellation is lost.

        A worker is dead if it is silent at two checks: at the first the whole machine may have stood still, and this
        worker would take the jobs of all, even its own.
        """
        silent: set[Attempted] = set()
        while not ends.is_set():
            await asyncio.sleep(self._stalled / 2)
            try:
                silent = await self._rescue(app, silent)
            except Exception as error:  # For example, the database is away. Tried again later.
                _log.warning("the jobs of dead workers could not be rescued: %s", error)

    async def _rescue(self, app: App, dead: set[Attempted] | None = None) -> set[Attempted]:
        """Return the jobs of dead workers to the queue, and delete old jobs; one worker does so at a time.

        Of the jobs with silent workers, only those in `dead` are returned; None: all. Returns the others.
        """
        jobs, silent = app.job_manager, set[Attempted]()
        held: list[Patient] = []  # Assigned even if the wait for it is cancelled.
        try:
            await _to_end(lambda: held.extend(self._tables.lock_rescue()))
            if not held:
                return silent
            for job in await jobs.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=self._stalled):
                if dead is None or (job.id, job.attempts) in dead:
                    await self._give_back(app, job, held[0])
                else:
                    silent.add((job.id, job.attempts))
            await jobs.delete_old_jobs(
                _KEPT_HOURS, queue=QUEUE, include_failed=True, include_cancelled=True, include_aborted=True
            )
            return silent
        finally:
            for connection in held:
                await _to_end(partial(self._tables.unlock_rescue, connection))

    async def _give_back(self, app: App, job: QueuedJob, held: Patient) -> None:
        assert job.id is not None
        await _to_end(partial(self._tables.add_reason, job.id, job.attempts + 1, "its worker died", held))
        if self._backoff.is_last(job.attempts):
            await app.job_manager.finish_job(job, Status.FAILED, delete_job=False)
            _log.error("job %s %s: failed for good: its worker died", job.id, _name(job))
        else:
            await app.job_manager.retry_job(job)
            _log.warning("job %s %s: its worker died; another one runs it", job.id, _name(job))


def make_app(
    connector: BaseAsyncConnector, work: Work, backoff: Backoff, keep_reason: Reason, lost: Lost, *, ages_at: str = ""
) -> App:
    """Return procrastinate's app with foveate's tasks, which call `work`.

    `ages_at`: when to apply retention rules to all conversations, as a crontab line; "": never.
    """
    logging.getLogger("procrastinate").addHandler(_SILENT)
    app = App(connector=connector)
    for name, kind in TASKS.items():
        task = app.task(name=name, queue=QUEUE, pass_context=True, retry=backoff)(
            _task(kind, work, backoff, keep_reason, lost)
        )
        if ages_at and kind is RetentionJob:
            every = RetentionJob()
            app.periodic(cron=ages_at, queue=QUEUE, lock=every.lock, queueing_lock=every.waiting_lock)(task)
    return app


def _crontab(line: str, ages: tuple[Age, ...]) -> str:
    """Return a crontab line. Raises BadSetting if it is none, or if there are no retention rules."""
    if not line:
        return ""
    if not ages:
        raise BadSetting("Retention needs rules. Pass ages=, or add an [ages] table to foveate.toml.")
    validate.text("ages_at=", line)
    try:
        _ = PeriodicTask(
            Task(_nothing, blueprint=App(connector=PsycopgConnector()), queue=QUEUE), line, "", {}
        ).croniter
    except ValueError as error:
        raise BadSetting(f"ages_at= is a crontab line, such as 17 3 * * *, not {line!r:.60} ({error}).") from error
    return line


def _nothing() -> None:
    """Do nothing: the check of a crontab line needs a task."""


def _task(
    kind: type[Job], work: Work, backoff: Backoff, keep_reason: Reason, lost: Lost
) -> Callable[..., Coroutine[Any, Any, str]]:
    """Return the function that procrastinate calls for a job."""

    def check_stored(job: QueuedJob, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and isinstance(error.__cause__, psycopg.errors.RaiseException):
            # A function of procrastinate refuses: the job has another state. This process stood still, for example.
            _log.warning("job %s %s: another worker ran it meanwhile, and its state stays", job.id, _name(job))
        elif error is not None:
            lost()

    async def run(context: JobContext, /, **fields: Any) -> str:
        job, began = context.job, time.monotonic()
        assert job.id is not None
        task = asyncio.current_task()  # procrastinate's; it fails if the result of the job cannot be stored.
        assert task is not None
        task.add_done_callback(partial(check_stored, job))
        try:
            request = msgspec.convert(fields, kind)
            result = await _in_thread(lambda: work(request, backoff.is_last(job.attempts)))
        except BaseException as error:
            is_cancelled = isinstance(error, asyncio.CancelledError)
            reason = "its worker was stopped" if is_cancelled else f"{type(error).__name__}: {error}"
            await asyncio.to_thread(keep_reason, job.id, job.attempts + 1, reason)
            again = backoff.get_retry_decision(exception=error, job=job) is not None
            outcome = "it is tried again" if again else "failed for good"
            level = logging.WARNING if again else logging.ERROR
            _log.log(level, "job %s %s: attempt %d, %s: %s", job.id, _name(job), job.attempts + 1, outcome, reason)
            raise
        _log.info("job %s %s: %s (%.1f s)", job.id, _name(job), result, time.monotonic() - began)
        return result

    return run


async def until_empty(run: Callable[[], Coroutine[Any, Any, None]], begun: Callable[[], int]) -> None:
    """Call `run` until a run starts no job. `begun` returns the number of started jobs.

    procrastinate ends a run if all waiting jobs are blocked by a running job of the same conversation.
    """
    before = -1
    while before != (before := begun()):
        await run()


async def _registered(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Call `run`, and again if other workers removed this one: its process stood still, so it counted as dead."""
    while True:
        try:
            return await run()
        except ConnectorException as error:
            if not isinstance(error.__cause__, psycopg.errors.ForeignKeyViolation):
                raise
            _log.warning("other workers took this one for dead, since it sent no heartbeat; it begins again")


@contextmanager
def _stop_on_signals(asked: asyncio.Event) -> Iterator[None]:
    """Set the event on SIGTERM and SIGINT, unless the loop cannot: on Windows, or outside of the main thread."""
    loop, signals = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)
    with suppress(NotImplementedError, RuntimeError):
        for number in signals:
            loop.add_signal_handler(number, asked.set)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            for number in signals:
                loop.remove_signal_handler(number)


async def _end(task: asyncio.Task[Any], soon: float = 1.0) -> None:
    """Cancel a task and wait until it ends; cancel it again every `soon` seconds.

    A connection that is lost during the cancellation raises its own error instead, and a loop would go on.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=soon)
    if not task.cancelled():
        task.result()


async def _leave_if_away(connector: PsycopgConnector) -> None:
    """Close the connections if the database is away, so that no statement waits for it any longer."""
    try:
        async with connector.pool.connection(timeout=_AWAY_SECONDS):
            return
    except psycopg.Error:
        await connector.pool.close(timeout=0)


async def _to_end(call: Callable[[], object]) -> None:
    """Run a call in a thread to its end; a cancellation meanwhile is raised afterwards."""
    work = asyncio.ensure_future(asyncio.to_thread(call))
    if cancelled := await finished(work):
        work.exception()  # Less important than the cancellation.
        raise cancelled
    work.result()


async def _in_thread(call: Callable[[], str]) -> str:
    """Run a blocking call in its own thread. A pool would wait for a hanging call at the end of the process."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def notify() -> None:
        with suppress(RuntimeError):  # The loop may be closed.
            loop.call_soon_threadsafe(ended.set)

    job = ThreadJob(call, then=notify)
    await ended.wait()
    return str(job.result())


def _name(job: QueuedJob) -> str:
    subject = job.task_kwargs.get("conversation") or job.task_kwargs.get("tenant") or ""
    return f"{job.task_name.rpartition('.')[2]} {subject}".rstrip()
