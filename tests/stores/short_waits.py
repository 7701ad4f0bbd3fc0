"""A PostgreSQL store whose waiting times are short only while a test expects a failure."""

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
    """Wait only this many seconds for a connection, and for a silent server on present connections.

    Connections that are made meanwhile have the usual times.
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
    """Retry until the store succeeds, because the server may still run an earlier request."""
    found: list[T] = []

    def is_done() -> bool:
        try:
            found.append(work())
        except StoreError:
            return False
        return True

    until(is_done)
    return found[0]
