"""Time limits for calls and for awaitables."""

from __future__ import annotations

import contextvars
import math
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from ..errors import BadSetting

__all__ = ["await_with_timeout", "call_with_timeout", "check_timeout", "close_with"]

T = TypeVar("T")


def check_timeout(timeout: object) -> None:
    """Raise BadSetting for a value that is neither None nor a number of seconds above 0."""
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise BadSetting(f"Timeout must be a number of seconds above 0, or None for no limit, not {timeout!r}.")


def call_with_timeout(call: Callable[[], T], timeout: float | None, of: float | None = None) -> T:
    """Return the result of `call`. Raises TimeoutError if it takes longer than `timeout` seconds (None: no limit).

    `of`: the total seconds for the error, if `timeout` is only the rest of them. The call runs in its own thread; one
    that never returns is abandoned, and does not keep the process from ending.
    """
    if timeout is None:
        return call()
    answer: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(context.run(call))
        except BaseException as error:  # Raised again in the waiting thread.
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


async def await_with_timeout(answer: Awaitable[Any], timeout: float | None, of: float | None = None) -> Any:
    """Return the result of an awaitable. Raises TimeoutError as `call_with_timeout` does, and cancels it."""
    import asyncio  # Slow to import; a program that awaits has imported it already.

    try:
        return await asyncio.wait_for(answer, timeout)
    except TimeoutError:
        if timeout is None:
            raise
        raise TimeoutError(f"no answer within {of or timeout:g} seconds") from None


def close_with(later: Coroutine[Any, Any, T], waits_for: object) -> Coroutine[Any, Any, T]:
    """Return the same coroutine; if it is dropped before it begins, the inner awaitable is closed as well."""
    close = getattr(waits_for, "close", None)
    if close is not None:
        weakref.finalize(later, close).atexit = False
    return later
