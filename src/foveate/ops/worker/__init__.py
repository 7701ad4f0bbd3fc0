"""A queue of jobs in the PostgreSQL database of a store, and the worker that runs them. Needs the extra `worker`.

Put jobs in with `enqueue`, or open a conversation with `background=Queue(url)`; `foveate worker` runs them. The queue
is that of procrastinate.
"""

from __future__ import annotations

from ...errors import MissingExtra

try:
    import procrastinate as _  # noqa: F401
    import psycopg_pool as _pool  # noqa: F401
except ImportError as error:
    raise MissingExtra("A queue of jobs", "worker") from error

from .jobs import CompactionJob, ErasureJob, Job, RetentionJob, VacuumJob
from .queue import JobKind, Queue, enqueue, enqueue_async
from .tables import JobState, job_states, set_up
from .worker import Backoff, Worker

__all__ = [
    "Backoff",
    "CompactionJob",
    "ErasureJob",
    "Job",
    "JobKind",
    "JobState",
    "Queue",
    "RetentionJob",
    "VacuumJob",
    "Worker",
    "enqueue",
    "enqueue_async",
    "job_states",
    "set_up",
]
