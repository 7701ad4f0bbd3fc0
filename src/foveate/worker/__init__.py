"""Jobs beside conversations, kept in their PostgreSQL database and worked off by other processes.

Who wants something done says so with `enqueue`, or opens a conversation with `background=Queue(url)`; `foveate worker`
does it. The queue is procrastinate's (extra `worker`).

    Compaction          summing a conversation up; knows no queue         compacting.py
    Aging               what is over its age is erased                    aging.py
    ErasureJob, Vacuum     the other jobs, and doing each                    jobs.py
    JobState            how the jobs stand, and why some failed           states.py
    Queue, enqueue      putting jobs into the queue                       queue.py
    set_up              the queue's tables                                tables.py
    Worker              taking jobs out                                   running.py
    Backoff             when one that failed is tried again               retrying.py
"""

from __future__ import annotations

from ..errors import MissingExtra

try:
    import procrastinate as _  # noqa: F401
    import psycopg_pool as _pool  # noqa: F401
except ImportError as error:
    raise MissingExtra("A queue of jobs", "worker") from error

from .aging import Aging
from .compacting import Compaction
from .jobs import ErasureJob, Vacuum
from .queue import Queue, enqueue, enqueue_async
from .retrying import Backoff
from .running import Worker
from .states import JobState, job_states
from .tables import set_up

__all__ = [
    "Aging",
    "Backoff",
    "Compaction",
    "ErasureJob",
    "JobState",
    "Queue",
    "Vacuum",
    "Worker",
    "enqueue",
    "enqueue_async",
    "job_states",
    "set_up",
]
