"""`foveate worker`: works off the jobs that lie in a conversation's PostgreSQL database, and tells how they stand."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ..errors import BadSetting
from .db.target import AsJson, print_json
from .options import description, settings_of
from .text import printable

if TYPE_CHECKING:
    from ..worker import JobState
    from ..worker.states import State

__all__ = ["worker"]

_STATES: tuple[State, ...] = ("waiting", "running", "done", "failed")


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
    """Sum up conversations, erase and vacuum, as programs have asked for it, until it is stopped.

    Each conversation is worked on by one worker at a time, however many there are. On SIGTERM or Ctrl-C running jobs
    are ended, or given back.

    Example: `foveate worker --store postgresql://ann@db.example/chats --summarizer anthropic:claude-haiku-4-5`

    Parameters
    ----------
    store
        URL of the conversations' database (as settings say).
    summarizer
        Who writes the summaries, such as `digest` or the name of a model (as settings say).
    policy
        A preset's name or file, the one that the programs have (as settings say).
    window
        Of the model, in tokens (as the conversation that asks says, or settings).
    concurrency
        Jobs at a time.
    attempts
        How often a job is tried at most.
    pause
        Seconds before the second attempt; each later one waits twice as long.
    patience
        Seconds that running jobs get to end when it is stopped.
    ages_at
        When everything is looked through for what is over its age, as a line of a crontab in UTC, such as "17 3 * * *"
        (never). How old things may be says the table [ages] of foveate.toml.
    once
        Work off what waits now, then end.
    """
    from ..settings.ages import ages_in
    from ..worker import Worker

    settings = settings_of(policy)
    url = settings["store"] if store is None else store
    chosen = settings["summarizer"] if summarizer is None else summarizer
    if not isinstance(chosen, str):
        raise BadSetting("--summarizer is a name, such as digest or anthropic:claude-haiku-4-5.")
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
            ages=ages_in(Path()) or None,
            ages_at=ages_at,
        ) as one,
    ):
        one.run(once=once)
    return 0


def status(
    *, store: str | None = None, all_: Annotated[bool, Parameter(name="--all")] = False, as_json: AsJson = False
) -> int:
    """Tell how many jobs there are in each state, which wait or run, and why some failed.

    Example: `foveate worker status --store postgresql://ann@db.example/chats`

    Parameters
    ----------
    store
        URL of the conversations' database (as settings say).
    all_
        List those that are done too.
    """
    from ..worker import job_states
    from .output import print_table, say

    jobs = job_states(settings_of()["store"] if store is None else store)
    if as_json:
        print_json(jobs)
        return 0
    counts = Counter(job.state for job in jobs)
    say(", ".join(f"{counts[state]} {state}" for state in _STATES))
    rows = [
        (
            str(job.id),
            job.what,
            _named(job),
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
    """Make the tables of the queue, or bring them up to the procrastinate that is installed.

    It is done when a queue is first used, too; here by a user who may create tables.

    Example: `foveate worker upgrade --store postgresql://ann@db.example/chats`

    Parameters
    ----------
    store
        URL of the conversations' database (as settings say).
    """
    from ..worker import set_up
    from .output import say

    set_up(settings_of()["store"] if store is None else store)
    say("The queue is up to date.")
    return 0


worker = App(name="worker", help=description(work))
worker.default(work)
worker.command(upgrade, name="upgrade", help=description(upgrade))
worker.command(status, name="status", help=description(status))


class _Formatter(logging.Formatter):
    """Makes control characters in log lines visible: names of conversations must not steer the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


@contextmanager
def _logging() -> Iterator[None]:
    """Say a line for each job on standard error."""
    log, handler = logging.getLogger("foveate.worker"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    level, others = log.level, [logging.getLogger(name) for name in ("procrastinate", "psycopg.pool")]
    levels = [other.level for other in others]
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    for other in others:
        other.setLevel(logging.CRITICAL)  # They tell the same again, with all that a job says.
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        for other, before in zip(others, levels, strict=True):
            other.setLevel(before)


def _named(job: JobState) -> str:
    return f"{job.tenant}/{job.conversation}" if job.tenant else job.conversation


def _time(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if moment else "-"
