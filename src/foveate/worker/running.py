"""Taking jobs out of the queue and doing them, until somebody says that it is enough.

procrastinate hands out the jobs: one of a conversation at a time, each to one worker. What it leaves to its users is
here: jobs whose worker died are given to others, reasons of failures are kept, and old jobs are thrown away.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

import msgspec
from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.periodic import PeriodicTask
from procrastinate.tasks import Task

from .. import given
from ..background.tasks import finished
from ..background.threads import ThreadJob
from ..core.retention import Age, Ages, read_ages
from ..errors import BadSetting, StoreError
from ..open import open_store
from ..ports import Database, Summarizer
from ..stores.postgres.pool import Patient
from .aging import Aging
from .compacting import Opening
from .jobs import TASKS, Wanted, done
from .queue import QUEUE
from .retrying import ATTEMPTS, PAUSE, Backoff
from .tables import Tables, told_of

__all__ = ["Worker", "app_of", "until_empty"]

_log = logging.getLogger("foveate.worker")

_KEPT_HOURS = 7 * 24
"""How long a job that ended can be looked at."""
_LOOK_SECONDS = 5.0
_END_SECONDS = 30.0
"""What procrastinate may take to write down where everything stands, behind the patience with running jobs."""

Attempted = tuple[int | None, int]
"""A job by its number, and how often it was tried before."""
Work = Callable[[Wanted, bool], str]
"""Does a job, and tells what came of it. The flag: whether no other attempt follows."""
Reason = Callable[[int, int, str], object]
"""Keeps why an attempt failed: number of the job, of the attempt, the reason."""
Lost = Callable[[], object]
"""Told that what a job came to could not be written down."""


class Worker:
    """Works off the queue of a store.

    `url`: of the store. `summarizer`: who writes, a name or a function. `policy`, `window`, `reserve`, `model`,
    `format` and `settings` are those of `open_conversation`; window and format of the conversation that asks count
    where nothing is said here.

    `ages`: by which things age where a job of that kind names none; `ages_at`: when all conversations of the store are
    looked through for what is over its age, as a line of a crontab in UTC, such as `17 3 * * *`. Of several workers one
    does it.

    `concurrency`: jobs at a time. `attempts` of a job at most, `pause` seconds and then twice as many apart.
    `patience`: seconds that running jobs get when it is told to stop, before they are given back. `stalled`: seconds
    without a sign of life after which a worker is taken for dead.

    Raises BadSetting for what is not allowed, MissingExtra where the SDK of a model is not installed, and StoreError
    where the database cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        summarizer: str | Summarizer,
        policy: Any = None,
        window: int | None = None,
        reserve: int | None = None,
        model: str | None = None,
        format: str | None = None,
        settings: Any = None,
        ages: Ages | None = None,
        ages_at: str = "",
        concurrency: int = 1,
        attempts: int = ATTEMPTS,
        pause: float = PAUSE,
        patience: float = 30.0,
        stalled: float = 30.0,
    ) -> None:
        given.whole("concurrency= (jobs at a time)", concurrency, 1)
        given.whole("attempts= (of a job)", attempts, 1)
        if not (pause >= 0 and patience >= 0 and stalled > 0):
            raise BadSetting("pause= and patience= are seconds, 0 or more, and stalled= is more than 0.")
        told_of(url)  # What is wrong with it is said first.
        self._ages = () if ages is None else read_ages(ages)
        self._ages_at = _checked_line(ages_at, self._ages)
        self._opening = Opening(summarizer, policy, window, reserve, model, format, settings).checked()
        self._url, self._concurrency, self._backoff = url, concurrency, Backoff(attempts, pause)
        self._patience, self._stalled = patience, stalled
        self._tables = Tables(url)
        self._begun = 0  # jobs, one that is tried again each time

    def run(self, *, once: bool = False) -> None:
        """Work until SIGINT or SIGTERM; with `once` until nothing waits that is due now."""
        asyncio.run(self.run_async(once=once))

    async def run_async(self, *, once: bool = False, signals: bool = True) -> None:
        """The same in a loop that runs already. Cancelled, it ends as on a signal. `signals`: whether to mind them."""
        asked, lost = asyncio.Event(), asyncio.Event()
        with _minded(asked) if signals else nullcontext():
            await asyncio.to_thread(self._tables.make)
            store = await asyncio.to_thread(open_store, self._url)
            connector = PsycopgConnector(
                conninfo=self._tables.told.conninfo, min_size=1, max_size=self._concurrency + 3, timeout=30.0
            )
            app = app_of(
                connector,
                lambda wanted, is_last: self._do(store, wanted, is_last),
                self._backoff,
                self._tables.add_reason,
                lost.set,
                ages_at=self._ages_at,
            )
            try:
                async with app.open_async():
                    await self._rescue(app)
                    _log.info("working off the jobs in %s", self._tables.told.place)
                    ends = asyncio.Event()
                    looking = asyncio.create_task(self._look_after(app, ends), name="foveate rescue")
                    try:
                        await self._work(app, asked, lost, once=once)
                    finally:
                        ends.set()
                        await _ended(looking)
            except ConnectorException as error:
                raise self._lost() from error
            finally:
                await asyncio.to_thread(store.close)
            _log.info("stopped")

    def _lost(self) -> StoreError:
        return StoreError(
            f"The connection to {self._tables.told.place} was lost. What ran is given to others when they notice. "
            f"Start the worker again when the database is there."
        )

    def _do(self, store: Database, wanted: Wanted, is_last: bool) -> str:
        self._begun += 1
        return done(store, wanted, self._opening, is_last=is_last, ages=self._ages)

    async def _work(self, app: App, asked: asyncio.Event, lost: asyncio.Event, *, once: bool) -> None:
        """Work until it is asked to end, or, `once`, until nothing waits. `lost`: a job ended, and that could not be
        written down. It is taken for running until this worker gives no sign of life any more.
        """
        run = partial(
            app.run_worker_async,
            queues=[QUEUE],
            name="foveate",
            wait=not once,
            concurrency=self._concurrency,
            install_signal_handlers=False,
            shutdown_graceful_timeout=self._patience,
            # A job that is tried again, or taken from a dead worker, is not told of: it is looked for.
            fetch_job_polling_interval=min(_LOOK_SECONDS, self._stalled / 2),
            update_heartbeat_interval=self._stalled / 3,
            stalled_worker_timeout=self._stalled,
        )
        working = asyncio.create_task(until_empty(run, lambda: self._begun) if once else run())
        waiting, losing = asyncio.create_task(asked.wait()), asyncio.create_task(lost.wait())
        try:
            await asyncio.wait({working, waiting, losing}, return_when=asyncio.FIRST_COMPLETED)
            if losing.done():
                raise self._lost()
            if working.done():
                await working
                if not once:  # procrastinate ends by itself where it cannot listen or tell that it lives.
                    raise self._lost()
        finally:
            await _ended(waiting)
            await _ended(losing)
            await _ended(working, self._patience + _END_SECONDS)  # Cancelled, it lets running jobs end first.

    def close(self) -> None:
        """Let go of the connections."""
        self._tables.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def _look_after(self, app: App, ends: asyncio.Event) -> None:
        """Look for dead workers from time to time. `ends`: whether this one is to end, if a cancellation is lost.

        Who is found dead at two looks is. At the first it may be that all of this machine stood still: whoever looks
        before the others, and before it gave a sign of life itself, would take the jobs of all, its own among them.
        """
        silent: set[Attempted] = set()
        while not ends.is_set():
            await asyncio.sleep(self._stalled / 2)
            try:
                silent = await self._rescue(app, silent)
            except Exception as error:  # The database is away, for example; it is looked again later.
                _log.warning("dead workers could not be looked for: %s", error)

    async def _rescue(self, app: App, dead: set[Attempted] | None = None) -> set[Attempted]:
        """Give the jobs of dead workers to others, one rescuer at a time, and throw old jobs away. Of the jobs whose
        worker is silent those in `dead`; None: all. The others, which may be by the next look.
        """
        jobs, silent = app.job_manager, set[Attempted]()
        held: list[Patient] = []  # Known here although whoever waits for it may be cancelled.
        try:
            await _whole(lambda: held.extend(self._tables.hold()))
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
                await _whole(partial(self._tables.let_go, connection))

    async def _give_back(self, app: App, job: Job, held: Patient) -> None:
        assert job.id is not None
        await _whole(partial(self._tables.add_reason, job.id, job.attempts + 1, "its worker died", held))
        if self._backoff.is_last(job.attempts):
            await app.job_manager.finish_job(job, Status.FAILED, delete_job=False)
            _log.error("job %s %s: failed for good: its worker died", job.id, _name(job))
        else:
            await app.job_manager.retry_job(job)
            _log.warning("job %s %s: its worker died, it is given to another", job.id, _name(job))


def app_of(
    connector: BaseAsyncConnector, work: Work, backoff: Backoff, keep_reason: Reason, lost: Lost, *, ages_at: str = ""
) -> App:
    """procrastinate's app with foveate's tasks. What they do is handed in: nothing of it is needed to test.

    `ages_at`: when everything is looked through for what is over its age, as a line of a crontab; "": never by itself.
    """
    app = App(connector=connector)
    for name, kind in TASKS.items():
        task = app.task(name=name, queue=QUEUE, pass_context=True, retry=backoff)(
            _task(kind, work, backoff, keep_reason, lost)
        )
        if ages_at and kind is Aging:
            every = Aging()
            app.periodic(cron=ages_at, queue=QUEUE, lock=every.lock, queueing_lock=every.waiting_lock)(task)
    return app


def _checked_line(line: str, ages: tuple[Age, ...]) -> str:
    """A line of a crontab. Raises BadSetting where it is none, or there are no ages to look through for."""
    if not line:
        return ""
    if not ages:
        raise BadSetting("What is looked for then? Name the ages too: ages=, or a table [ages] in foveate.toml.")
    given.text("ages_at=", line)
    try:
        _ = PeriodicTask(
            Task(_nothing, blueprint=App(connector=PsycopgConnector()), queue=QUEUE), line, "", {}
        ).croniter
    except ValueError as error:
        raise BadSetting(f"ages_at= is a line of a crontab, such as 17 3 * * *; not {line!r:.60} ({error}).") from error
    return line


def _nothing() -> None:
    """Stands for a task where only its line is looked at."""


def _task(
    kind: type[Wanted], work: Work, backoff: Backoff, keep_reason: Reason, lost: Lost
) -> Callable[..., Coroutine[Any, Any, str]]:
    """What procrastinate calls for a job."""

    def noted(task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception():
            lost()

    async def run(context: JobContext, /, **said: Any) -> str:
        job, began = context.job, time.monotonic()
        assert job.id is not None
        whole = asyncio.current_task()  # procrastinate's; it fails where what came of the job cannot be written down.
        assert whole is not None
        whole.add_done_callback(noted)
        try:
            wanted = msgspec.convert(said, kind)
            told = await _in_thread(lambda: work(wanted, backoff.is_last(job.attempts)))
        except BaseException as error:
            broken_off = isinstance(error, asyncio.CancelledError)
            reason = "its worker was told to stop" if broken_off else f"{type(error).__name__}: {error}"
            await asyncio.to_thread(keep_reason, job.id, job.attempts + 1, reason)
            again = backoff.get_retry_decision(exception=error, job=job) is not None
            left = "it is tried again" if again else "failed for good"
            level = logging.WARNING if again else logging.ERROR
            _log.log(level, "job %s %s: attempt %d, %s: %s", job.id, _name(job), job.attempts + 1, left, reason)
            raise
        _log.info("job %s %s: %s (%.1f s)", job.id, _name(job), told, time.monotonic() - began)
        return told

    return run


async def until_empty(run: Callable[[], Coroutine[Any, Any, None]], begun: Callable[[], int]) -> None:
    """Run again and again until a run begins nothing. `begun`: how many jobs were begun so far.

    procrastinate ends a run where all that waits is waiting for a job of the same conversation that still runs.
    """
    before = -1
    while before != (before := begun()):
        await run()


@contextmanager
def _minded(asked: asyncio.Event) -> Iterator[None]:
    """Take SIGTERM and SIGINT for a request to end."""
    loop, minded = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)
    with suppress(NotImplementedError):  # Where loops know no signals, they end the process at once.
        for number in minded:
            loop.add_signal_handler(number, asked.set)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            for number in minded:
                loop.remove_signal_handler(number)


async def _ended(task: asyncio.Task[Any], soon: float = 1.0) -> None:
    """Cancel a task, and wait until it has ended. It is cancelled again where that takes longer than `soon` seconds: a
    connection that is lost just when a query on it is cancelled raises its own error instead, and a loop goes on.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=soon)
    if not task.cancelled():
        task.result()


async def _whole(call: Callable[[], object]) -> None:
    """Make a call that uses a connection, to its end: whoever is cancelled meanwhile is told afterwards."""
    work = asyncio.ensure_future(asyncio.to_thread(call))
    if cancelled := await finished(work):
        work.exception()  # It counts for less.
        raise cancelled
    work.result()


async def _in_thread(call: Callable[[], str]) -> str:
    """What a call returns that waits. Not in a pool: one that hangs would hold up the end of the process."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with suppress(RuntimeError):  # The loop may be closed by then.
            loop.call_soon_threadsafe(ended.set)

    job = ThreadJob(call, then=tell)
    await ended.wait()
    return str(job.result())


def _name(job: Job) -> str:
    about = job.task_kwargs.get("conversation") or job.task_kwargs.get("tenant") or ""
    return f"{job.task_name.rpartition('.')[2]} {about}".rstrip()
