"""When a job that failed is tried again, and which failures no attempt can mend."""

from __future__ import annotations

import asyncio

from procrastinate import BaseRetryStrategy, RetryDecision
from procrastinate.jobs import Job

from ..errors import BadInput, NoSuchConversation

__all__ = ["ATTEMPTS", "PAUSE", "Backoff"]

ATTEMPTS = 5
"""How often a job is tried, at most."""
PAUSE = 10
"""Seconds before the second attempt; each later one waits twice as long as the one before."""
_PERMANENT = (BadInput, NoSuchConversation)


class Backoff(BaseRetryStrategy):
    """At most `attempts` attempts, `pause` seconds and then twice as many apart.

    One that was broken off since its worker is to end is given back at once. A wrong setting, or a conversation that
    there is not, is not tried again.
    """

    def __init__(self, attempts: int = ATTEMPTS, pause: float = PAUSE) -> None:
        self.attempts, self.pause = attempts, pause

    def is_last(self, attempts: int) -> bool:
        """Whether no other attempt follows the one that runs now. `attempts`: made before it."""
        return attempts + 1 >= self.attempts

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """What procrastinate asks after each failure; None: it has failed for good."""
        if isinstance(exception, asyncio.CancelledError):
            return RetryDecision(retry_in={"seconds": 0})
        if isinstance(exception, _PERMANENT) or self.is_last(job.attempts):
            return None
        return RetryDecision(retry_in={"milliseconds": round(1000 * self.pause * 2**job.attempts)})
