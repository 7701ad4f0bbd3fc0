"""Planned failures: the n-th operation of a store, or of a SQLite connection, fails.

Run the code under test for n = 1, 2, ... until the countdown is not used up: then every operation has failed once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, TypeVar, cast

from ..errors import StoreError
from ..ports import Database

__all__ = ["Countdown", "FailingStore", "failing_connection", "failing_store"]

T = TypeVar("T")


class Countdown:
    """Decides which operation fails: the n-th from now, once, after or before its effect. With n = 0 none fails."""

    def __init__(self, n: int = 0, *, after: bool = False) -> None:
        self._lock = Lock()
        self._after = after
        self.start(n)

    def start(self, n: int) -> None:
        """Start counting again: the n-th operation from now fails."""
        self._left = n
        self.count = 0
        """Operations since the start."""

    def run(self, operation: Callable[[], T], failure: Callable[[], Exception]) -> T:
        """Run `operation` and return its result; on the n-th call raise `failure` instead of it, or after it."""
        with self._lock:
            self.count += 1
            self._left -= 1
            fails = self._left == 0
        if not fails:
            return operation()
        if self._after:
            operation()
        raise failure()

    @property
    def is_used_up(self) -> bool:
        """Return whether the failure has happened."""
        return self._left <= 0


def failing_store(store: Database, countdown: Countdown) -> Database:
    """Return a store whose operations fail with a StoreError as the countdown says. `close` never fails."""
    return cast("Database", FailingStore(store, countdown))


class FailingStore:
    """The object behind `failing_store`; subclasses may override an operation."""

    def __init__(self, store: Database, countdown: Countdown) -> None:
        self._store, self._countdown = store, countdown

    def close(self) -> None:
        self._store.close()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def run(*arguments: Any, **options: Any) -> Any:
            def operation() -> Any:
                result = method(*arguments, **options)
                return iter(list(result)) if name == "census" else result  # So that all of it is one operation.

            return self._countdown.run(operation, lambda: StoreError(f"{name} was made to fail."))

        return run


def failing_connection(countdown: Countdown, code: int = sqlite3.SQLITE_IOERR) -> type[sqlite3.Connection]:
    """Return a class of SQLite connections whose statements fail with this SQLite code as the countdown says.

    Pass it to `sqlite3.connect(factory=...)`. BEGIN, COMMIT and ROLLBACK are statements too. Later statements work.
    """

    def failure() -> Exception:
        error = sqlite3.OperationalError("made to fail")
        error.sqlite_errorcode = code
        return error

    class FailingConnection(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            return countdown.run(lambda: super(FailingConnection, self).execute(sql, parameters), failure)

        def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
            return countdown.run(lambda: super(FailingConnection, self).executemany(sql, parameters), failure)

    return FailingConnection
