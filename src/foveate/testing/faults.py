"""Failures made on purpose: the n-th operation fails, before or after it took effect.

At two levels. `FailingStore` wraps any store and fails whole operations, to test who uses a store; `FailingDatabase`
those of its catalog too. `failing_connection` makes the statements of a SQLite connection fail (BEGIN, COMMIT and
ROLLBACK are statements too), to test the store itself. Run what is to be tested for n = 1, 2, ... until the countdown
is not used up: then every operation has failed once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, TypeVar

from ..core.catalog import Action, Binding, Prompt
from ..core.edits import Record
from ..core.runs import AgentRun, AgentRunStep, Claim
from ..errors import StoreError
from ..ports import Appended, Branch, Catalog, Database, Erased, Finding, Found, Head, StampRow, Store, Stray, Tail

__all__ = ["Countdown", "FailingDatabase", "FailingStore", "failing_connection"]

T = TypeVar("T")


class Countdown:
    """Says which operation fails: the n-th from now, once; `after` it took effect, or else before. With n = 0, none."""

    def __init__(self, n: int = 0, *, after: bool = False) -> None:
        self._lock = Lock()
        self._after = after
        self.start(n)

    def start(self, n: int) -> None:
        """Count anew: let the n-th operation from now fail."""
        self._left = n
        self.count = 0
        """Operations since."""

    def run(self, operation: Callable[[], T], failure: Callable[[], Exception]) -> T:
        """What `operation` returns; on the n-th call `failure` is raised instead of it, or after it."""
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
        """Whether the failure has happened."""
        return self._left <= 0


class FailingStore:
    """A store whose operations fail as the countdown says, with a StoreError. `close` never fails."""

    def __init__(self, store: Store, countdown: Countdown) -> None:
        self._store = store
        self._countdown = countdown

    def open(self, tenant: str, name: str, *, create: bool = True) -> Head:
        return self._run("open", lambda: self._store.open(tenant, name, create=create))

    def append(self, head: Head, rows: Sequence[Appended], *, owner: str = "") -> Head:
        return self._run("append", lambda: self._store.append(head, rows, owner=owner))

    def extend(self, head: Head, make: Callable[[Tail], Sequence[Appended]], *, owner: str = "") -> Tail:
        return self._run("extend", lambda: self._store.extend(head, make, owner=owner))

    def tail(self, head: Head) -> Tail:
        return self._run("tail", lambda: self._store.tail(head))

    def commit(self, head: Head, record: Record, record_id: str) -> Head:
        return self._run("commit", lambda: self._store.commit(head, record, record_id))

    def commit_all(self, head: Head, records: Sequence[tuple[str, Record]]) -> Head:
        return self._run("commit_all", lambda: self._store.commit_all(head, records))

    def messages(self, head: Head, first: int, last: int) -> list[Appended]:
        return self._run("messages", lambda: self._store.messages(head, first, last))

    def stamps(self, head: Head, first: int, last: int) -> list[StampRow]:
        return self._run("stamps", lambda: self._store.stamps(head, first, last))

    def pick(self, head: Head, positions: Sequence[int]) -> list[Appended]:
        return self._run("pick", lambda: self._store.pick(head, positions))

    def locate(self, head: Head, ids: Sequence[str]) -> dict[str, int]:
        return self._run("locate", lambda: self._store.locate(head, ids))

    def search(self, head: Head, query: str, limit: int = 20) -> list[Found]:
        return self._run("search", lambda: self._store.search(head, query, limit))

    def records(self, head: Head, after: int = 0) -> list[tuple[str, Record]]:
        return self._run("records", lambda: self._store.records(head, after))

    def fork(self, head: Head, name: str, position: int, number: int) -> Head:
        return self._run("fork", lambda: self._store.fork(head, name, position, number))

    def repoint(self, head: Head, position: int, number: int, keep: str) -> Head:
        return self._run("repoint", lambda: self._store.repoint(head, position, number, keep))

    def branches(self, head: Head) -> list[Branch]:
        return self._run("branches", lambda: self._store.branches(head))

    def rename(self, tenant: str, names: Mapping[str, str]) -> None:
        return self._run("rename", lambda: self._store.rename(tenant, names))

    def snapshot(self, head: Head) -> tuple[int, int, bytes] | None:
        return self._run("snapshot", lambda: self._store.snapshot(head))

    def save_snapshot(self, head: Head, position: int, number: int, body: bytes) -> None:
        return self._run("save_snapshot", lambda: self._store.save_snapshot(head, position, number, body))

    def names(self, tenant: str) -> list[str]:
        return self._run("names", lambda: self._store.names(tenant))

    def tenants(self) -> dict[str, int]:
        return self._run("tenants", self._store.tenants)

    def census(self, tenant: str | None = None) -> Iterator[Head | Stray]:
        return self._run("census", lambda: iter(list(self._store.census(tenant))))

    def put_run(self, head: Head, run: AgentRun, *, owner: str = "") -> None:
        return self._run("put_run", lambda: self._store.put_run(head, run, owner=owner))

    def put_step(self, head: Head, step: AgentRunStep, *, owner: str = "") -> None:
        return self._run("put_step", lambda: self._store.put_step(head, step, owner=owner))

    def claim(self, head: Head, owner: str, instead_of: Claim | None = None) -> Claim:
        return self._run("claim", lambda: self._store.claim(head, owner, instead_of))

    def beat(self, head: Head, owner: str) -> bool:
        return self._run("beat", lambda: self._store.beat(head, owner))

    def release(self, head: Head, owner: str) -> None:
        return self._run("release", lambda: self._store.release(head, owner))

    def runs(self, head: Head) -> list[AgentRun]:
        return self._run("runs", lambda: self._store.runs(head))

    def steps(self, head: Head, run: str, after: int = 0) -> list[AgentRunStep]:
        return self._run("steps", lambda: self._store.steps(head, run, after))

    def erase(
        self,
        head: Head,
        spans: Sequence[tuple[int, int]],
        *,
        runs: bool | Collection[str] = False,
        keep_shown: bool = False,
        seen: Sequence[Head] = (),
        is_still: bool = False,
        who: str = "",
        reason: str = "",
        time: int = 0,
    ) -> Erased:
        def erase() -> Erased:
            how: dict[str, Any] = {"runs": runs, "keep_shown": keep_shown, "seen": seen, "is_still": is_still}
            return self._store.erase(head, spans, **how, who=who, reason=reason, time=time)

        return self._run("erase", erase)

    def erasures(self, head: Head) -> list[Erased]:
        return self._run("erasures", lambda: self._store.erasures(head))

    def keep_erasure(self, head: Head, erased: Erased) -> None:
        return self._run("keep_erasure", lambda: self._store.keep_erasure(head, erased))

    def discard(self, head: Head, prefix: str) -> None:
        return self._run("discard", lambda: self._store.discard(head, prefix))

    def leftovers(self, head: Head) -> tuple[int, list[Finding]]:
        return self._run("leftovers", lambda: self._store.leftovers(head))

    def vacuum(self) -> None:
        return self._run("vacuum", self._store.vacuum)

    def verify(self, head: Head) -> list[Finding]:
        return self._run("verify", lambda: self._store.verify(head))

    def close(self) -> None:
        self._store.close()

    def _run(self, name: str, operation: Callable[[], T]) -> T:
        return self._countdown.run(operation, lambda: StoreError(f"{name} was made to fail."))


class FailingDatabase(FailingStore):
    """A store with a catalog whose operations fail as the countdown says."""

    def __init__(self, store: Database, countdown: Countdown) -> None:
        super().__init__(store, countdown)
        self._catalog: Catalog = store

    def put_action(self, tenant: str, action: Action) -> None:
        return self._run("put_action", lambda: self._catalog.put_action(tenant, action))

    def put_binding(self, tenant: str, binding: Binding) -> None:
        return self._run("put_binding", lambda: self._catalog.put_binding(tenant, binding))

    def put_prompt(self, tenant: str, prompt: Prompt) -> None:
        return self._run("put_prompt", lambda: self._catalog.put_prompt(tenant, prompt))

    def actions(self, tenant: str) -> list[Action]:
        return self._run("actions", lambda: self._catalog.actions(tenant))

    def bindings(self, tenant: str, agent: str = "") -> list[Binding]:
        return self._run("bindings", lambda: self._catalog.bindings(tenant, agent))

    def prompts(self, tenant: str) -> list[Prompt]:
        return self._run("prompts", lambda: self._catalog.prompts(tenant))

    def drop_action(self, tenant: str, name: str) -> bool:
        return self._run("drop_action", lambda: self._catalog.drop_action(tenant, name))

    def drop_binding(self, tenant: str, agent: str, action: str) -> bool:
        return self._run("drop_binding", lambda: self._catalog.drop_binding(tenant, agent, action))

    def drop_prompt(self, tenant: str, name: str) -> bool:
        return self._run("drop_prompt", lambda: self._catalog.drop_prompt(tenant, name))


def failing_connection(countdown: Countdown, code: int = sqlite3.SQLITE_IOERR) -> type[sqlite3.Connection]:
    """A class of SQLite connections that all count on `countdown`, and fail with this code of SQLite's.

    Hand it to `sqlite3.connect(factory=...)`. What fails is `execute` and `executemany`; they go on working afterwards.
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
