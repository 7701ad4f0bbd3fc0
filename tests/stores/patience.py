"""A PostgreSQL store that is patient but for a while: what must come has all the time it takes on a slow machine, and
only a failure that a test waits for comes soon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from waiting import until

from foveate.errors import StoreError
from foveate.stores.postgres import PostgresStore
from foveate.stores.postgres.pool import Connections

__all__ = ["impatient", "in_time"]

T = TypeVar("T")


@contextmanager
def impatient(
    store: PostgresStore | Connections, *, wait: float | None = None, answer: float | None = None
) -> Iterator[None]:
    """Meanwhile the store waits only so many seconds for a connection, and for a server that is silent on one of those
    that it has now. Connections that are made meanwhile are as patient as ever.
    """
    connections = store if isinstance(store, Connections) else store._driver._connections
    before = connections._url

    def be(wait: float, answer: float) -> None:
        connections._url = before._replace(wait=wait, answer=answer)
        connections._pool.timeout = wait
        for connection in list(connections._pool._pool):
            connection.answer = answer

    be(before.wait if wait is None else wait, before.answer if answer is None else answer)
    try:
        yield
    finally:
        be(before.wait, before.answer)


def in_time(work: Callable[[], T]) -> T:
    """Retry until the store does not fail any more, because the server may still run an earlier request."""
    found: list[T] = []

    def is_done() -> bool:
        try:
            found.append(work())
        except StoreError:
            return False
        return True

    until(is_done)
    return found[0]
