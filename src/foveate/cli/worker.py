"""`foveate worker`: run the jobs of a PostgreSQL database, and show their state."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from ..errors import BadSetting
from .db.target import AsJson, print_json
from .options import description, settings_of, store_url, unwrapped
from .text import one_line, printable

if TYPE_CHECKING:
    from ..ops.worker import JobState

__all__ = ["worker"]

_STATES: tuple[Literal["waiting", "running", "done", "failed"], ...] = ("waiting", "running", "done", "failed")


def work(
    *,
    store: str | None = None,
    summarizer: str | None = None,
    policy: str | None = None,
    window: int | None = None,
    concurrency: int = 1,
    attempts: int = 5,
    pause: float = 10.0,
    patience: float = 30.0,
    ages_at: str = "",
    once: bool = False,
) -> int:
    """Run jobs of programs, such as compacting, erasing and vacuuming, until it is stopped.

    Workers share the jobs; one worker at a time runs jobs of a conversation. On SIGTERM or Ctrl-C the worker finishes
    its running jobs, or returns them to the queue.

    Example: `foveate worker --store postgresql://ann@db.example/chats --summarizer anthropic:claude-haiku-4-5`

    Parameters
    ----------
    store
        URL of the database with the conversations (default: from the settings).
    summarizer
        The writer of summaries: digest, or a model (default: from the settings).
    policy
        A preset or a TOML file, the same as in the programs (default: from the settings).
    window
        The model's window in tokens (default: from the job, else from the settings).
    concurrency
        Number of jobs at a time (default: 1).
    attempts
        Largest number of attempts for a job (default: 5).
    pause
        Seconds before the second attempt; each later pause is twice as long (default: 10).
    patience
        Seconds that running jobs may take after a stop (default: 30).
    ages_at
        When to apply the [ages] of foveate.toml: a crontab line in UTC, such as "17 3 * * *" (default: never).
    once
        Run the jobs that wait now, then exit.
    """
    from ..ops.worker import Worker
    from ..settings import load_ages

    settings = settings_of(policy)
    url = settings["store"] if store is None else store_url(store)
    chosen = settings["summarizer"] if summarizer is None else summarizer
    if not isinstance(chosen, str):
        raise BadSetting("--summarizer must be a name, such as digest or anthropic:claude-haiku-4-5.")
    with (
        _logging(),
        Worker(
            url,
            summarizer=chosen,
            policy=policy,
            window=window,
            concurrency=concurrency,
            attempts=attempts,
            pause=pause,
            patience=patience,
            ages=load_ages(Path()) or None,
            ages_at=ages_at,
        ) as runner,
    ):
        runner.run(once=once)
    return 0


def status(
    *, store: str | None = None, all_: Annotated[bool, Parameter(name="--all")] = False, as_json: AsJson = False
) -> int:
    """Count the jobs in each state, and list those that wait, run or failed, with the reason.

    Example: `foveate worker status --store postgresql://ann@db.example/chats`

    Parameters
    ----------
    store
        URL of the database with the conversations (default: from the settings).
    all_
        List finished jobs too.
    """
    from ..ops.worker import job_states
    from .output import print_table, say

    jobs = job_states(_url(store))
    if as_json:
        print_json(jobs)
        return 0
    counts = Counter(job.state for job in jobs)
    say(", ".join(f"{counts[state]} {state}" for state in _STATES))
    rows = [
        (
            str(job.id),
            job.what,
            _name(job),
            job.state,
            str(job.attempts),
            _time(job.since),
            _time(job.next),
            job.reason or "-",
        )
        for job in jobs
        if all_ or job.state != "done"
    ]
    if rows:
        print_table(
            ("job", "what", "conversation", "state", "attempts", "since (UTC)", "next (UTC)", "reason"), rows, left=8
        )
    return 0


def upgrade(*, store: str | None = None) -> int:
    """Create the tables of the queue, or upgrade them to the installed version of procrastinate.

    The first use of a queue does the same. This command is for a database user who may create tables.

    Example: `foveate worker upgrade --store postgresql://ann@db.example/chats`

    Parameters
    ----------
    store
        URL of the database with the conversations (default: from the settings).
    """
    from ..ops.worker import set_up
    from .output import say

    set_up(_url(store))
    say("The queue is up to date.")
    return 0


def _url(store: str | None) -> str:
    return settings_of()["store"] if store is None else store_url(store)


worker = App(name="worker", help=description(work))
worker.default(unwrapped(work))
worker.command(unwrapped(upgrade), name="upgrade", help=description(upgrade))
worker.command(unwrapped(status), name="status", help=description(status))


class _Formatter(logging.Formatter):
    """Makes control characters visible, and keeps each message on one line: it holds names of conversations."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


@contextmanager
def _logging() -> Iterator[None]:
    """Log one line for each job to standard error."""
    log, handler = logging.getLogger("foveate.worker"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    level, others = log.level, [logging.getLogger(name) for name in ("procrastinate", "psycopg.pool")]
    levels = [other.level for other in others]
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    for other in others:
        other.setLevel(logging.CRITICAL)  # These loggers repeat the lines with all arguments of a job.
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        for other, before in zip(others, levels, strict=True):
            other.setLevel(before)


def _name(job: JobState) -> str:
    """Return the name of a job's conversation, or `acme/*` for all of a tenant."""
    return f"{job.tenant}/{job.conversation or '*'}" if job.tenant else job.conversation


def _time(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if moment else "-"
