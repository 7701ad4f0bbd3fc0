"""How the jobs of a queue stand, for people who look after it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from .queue import QUEUE
from .tables import Tables

__all__ = ["JobState", "State", "job_states"]

State = Literal["waiting", "running", "done", "failed"]

_STATES: dict[str, State] = {
    "todo": "waiting",
    "doing": "running",
    "succeeded": "done",
    "failed": "failed",
    "cancelled": "failed",
    "aborted": "failed",
}
_ALL = """
SELECT job.id, job.task_name, job.args, job.status::text, job.attempts, job.scheduled_at,
       (SELECT max(event.at) FROM procrastinate_events AS event
        WHERE event.job_id = job.id AND event.type <> 'scheduled'),
       (SELECT failure.reason FROM job_failure AS failure
        WHERE failure.job = job.id ORDER BY failure.attempt DESC LIMIT 1)
FROM procrastinate_jobs AS job WHERE job.queue_name = %s ORDER BY job.id"""


class JobState(Struct, frozen=True):
    """One job, and how it stands."""

    id: int
    what: str
    """`age`, `compact`, `erase` or `vacuum`."""
    conversation: str
    tenant: str
    state: State
    attempts: int
    """That have ended."""
    since: datetime | None
    """When it came into this state."""
    next: datetime | None
    """Not before this moment it is tried again; None: at once, or never."""
    reason: str
    """Why the newest attempt that failed did so; "" where none did."""


def job_states(url: str) -> list[JobState]:
    """The jobs in the queue of this store, oldest first; none where there is no queue. Those that ended are kept for a
    week.
    """
    tables = Tables(url)
    try:
        if not tables.are_there():
            return []
        with tables.connection() as connection:
            rows = connection.execute(_ALL.encode(), (QUEUE,)).fetchall()
    finally:
        tables.close()
    return [
        JobState(
            id,
            task.rpartition(".")[2],
            args.get("conversation") or "",
            args.get("tenant", ""),
            _STATES[status],
            attempts,
            since,
            scheduled if status == "todo" else None,
            reason or ("" if status not in ("cancelled", "aborted") else f"it was {status}"),
        )
        for id, task, args, status, attempts, scheduled, since, reason in rows
    ]
