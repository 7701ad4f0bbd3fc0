"""A bound on how long somebody may think. Knows nothing of what is asked."""

from __future__ import annotations

import contextvars
import math
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from ..errors import BadSetting

__all__ = ["awaited", "bounded", "check_timeout", "tied"]

T = TypeVar("T")


def check_timeout(timeout: object) -> None:
    """Raises BadSetting for what is neither None nor a number of seconds above 0."""
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise BadSetting(f"timeout= is a number of seconds above 0, or None for as long as it takes, not {timeout!r}.")


def bounded(call: Callable[[], T], timeout: float | None, of: float | None = None) -> T:
    """What `call` returns or raises; TimeoutError if it takes longer than `timeout` seconds (None: it may).

    `of`: the seconds that were allowed in all, to be told where only the rest of them is left.

    It runs in a thread of its own, since nothing else can be left: one that never comes back is abandoned, and does not
    keep the process from ending.
    """
    if timeout is None:
        return call()
    answer: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(context.run(call))
        except BaseException as error:  # Raised again where the answer is waited for.
            raised.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=run, name="foveate summarizer", daemon=True)
    thread.start()
    thread.join(timeout)
    if raised:
        raise raised[0]
    if not answer:
        raise TimeoutError(f"no answer within {of or timeout:g} seconds")
    return answer[0]


async def awaited(answer: Awaitable[Any], timeout: float | None, of: float | None = None) -> Any:
    """The same for what is awaited, which is cancelled."""
    import asyncio  # Slow to import, and whoever awaits has it already.

    try:
        return await asyncio.wait_for(answer, timeout)
    except TimeoutError:
        if timeout is None:
            raise
        raise TimeoutError(f"no answer within {of or timeout:g} seconds") from None


def tied(later: Coroutine[Any, Any, T], waits_for: object) -> Coroutine[Any, Any, T]:
    """The same coroutine; if it is dropped without having begun, what it would have waited for is closed with it."""
    close = getattr(waits_for, "close", None)
    if close is not None:
        weakref.finalize(later, close).atexit = False
    return later
