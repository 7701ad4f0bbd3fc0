"""The SQL store: one store for every SQL database, made of parts that share a driver.

Each part owns some tables and is given the driver, and nothing else of the store. Writes pack their bodies before the
transaction begins, in the thread of the caller, so that locks are held as short as possible. A write states what it
expects to find, and writes nothing if it finds something else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Self

from ...core.catalog import Action, Binding, Prompt
from ...core.edits import Record
from ...core.runs import AgentRun, AgentRunStep, LockHolder
from ...core.stamps import StampRow
from ...ports import (
    Branch,
    Changes,
    Clock,
    Erasure,
    Finding,
    Head,
    Listed,
    Orphan,
    SearchHit,
    StoredMessage,
    wall_clock,
)
from .branches import Branches
from .catalog import Catalog
from .census import Census
from .driver import Driver
from .eraser import Eraser
from .journal import Journal
from .messages import Messages
from .migrate import bring_up_to_date
from .releases import Releases
from .runs import Locks, Runs
from .search import Search

__all__ = ["SqlStore"]


class SqlStore:
    """Conversations in a SQL database. Threads may share it; it is a context manager that closes itself.

    `clock` dates migrations.
    """

    def __init__(self, driver: Driver, *, clock: Clock | None = None) -> None:
        try:
            bring_up_to_date(driver, clock or wall_clock)
        except BaseException:
            driver.close()
            raise
        self._driver = driver
        self._branches = Branches(driver)
        self._messages = Messages(driver)
        self._journal = Journal(driver)
        self._runs = Runs(driver)
        self._locks = Locks(driver)
        self._search = Search(driver)
        self._eraser = Eraser(driver, self._search)
        self._releases = Releases(driver, self._journal)
        self._catalog = Catalog(driver)
        self._census = Census(driver, self._catalog)

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------- conversations and messages

    def open(self, tenant: str, name: str, *, create: bool = True) -> Head:
        return self._branches.open(tenant, name, create)

    def names(self, tenant: str) -> list[str]:
        return self._branches.names(tenant)

    def recent(
        self, tenant: str, *, words: Sequence[str] = (), first: int = 0, limit: int = 50
    ) -> tuple[list[Listed], int]:
        return self._branches.recent(tenant, words, first, limit)

    def fork(self, head: Head, name: str, position: int, number: int) -> Head:
        return self._branches.fork(head, name, position, number)

    def repoint(self, head: Head, position: int, number: int, keep: str) -> Head:
        return self._branches.repoint(head, position, number, keep)

    def branches(self, head: Head) -> list[Branch]:
        return self._branches.branches(head)

    def rename(self, tenant: str, names: Mapping[str, str]) -> None:
        self._branches.rename(tenant, names)

    def extend(self, head: Head, make: Callable[[Changes], Sequence[StoredMessage]], *, owner: str = "") -> Changes:
        return self._messages.extend(head, make, owner)

    def changes(self, head: Head) -> Changes:
        return self._messages.changes(head)

    def messages(self, head: Head, first: int, last: int) -> list[StoredMessage]:
        return self._messages.messages(head, first, last)

    def get_many(self, head: Head, positions: Sequence[int]) -> list[StoredMessage]:
        return self._messages.get_many(head, positions)

    def stamps(self, head: Head, first: int, last: int) -> list[StampRow]:
        return self._messages.stamps(head, first, last)

    def locate(self, head: Head, ids: Sequence[str]) -> dict[str, int]:
        return self._messages.locate(head, ids)

    def search(self, head: Head, query: str, limit: int = 20) -> list[SearchHit]:
        return self._search.search(head, query, limit)

    def index_words(self, head: Head) -> Iterator[int]:
        """Index the words of a conversation up to `head`, in steps, as a search does; yield the messages of each step.

        Raises StoreError. It may be interrupted after any step, and continues there.
        """
        return self._search.catch_up(head)

    # --------------------------------------------------------------------------------------------------- the journal

    def commit(self, head: Head, record: Record, record_id: str) -> Head:
        now = self._journal.commit(head, record, record_id)
        self._search.keep_up(now)
        return now

    def release(self, head: Head, record: Record, record_id: str, outlines: Mapping[int, bytes]) -> Head:
        now = self._releases.release(head, record, record_id, outlines)
        self._search.keep_up(now)
        return now

    def commit_all(self, head: Head, records: Sequence[tuple[str, Record]]) -> Head:
        return self._journal.commit_all(head, records)

    def records(self, head: Head, after: int = 0) -> list[tuple[str, Record]]:
        return self._journal.records(head, after)

    def snapshot(self, head: Head) -> tuple[int, int, bytes] | None:
        return self._journal.snapshot(head)

    def save_snapshot(self, head: Head, position: int, number: int, body: bytes, view: Sequence[bytes] = ()) -> None:
        self._journal.save_snapshot(head, position, number, body, view)

    def saved_view(self, head: Head, position: int, number: int) -> Iterable[bytes]:
        return self._journal.saved_view(head, position, number)

    # ------------------------------------------------------------------------------------------------- runs and locks

    def put_run(self, head: Head, run: AgentRun, *, owner: str = "") -> None:
        self._runs.put_run(head, run, owner)

    def put_step(self, head: Head, step: AgentRunStep, *, owner: str = "") -> None:
        self._runs.put_step(head, step, owner)

    def runs(self, head: Head) -> list[AgentRun]:
        return self._runs.runs(head)

    def steps(self, head: Head, run: str, after: int = 0) -> list[AgentRunStep]:
        return self._runs.steps(head, run, after)

    def acquire_lock(self, head: Head, owner: str, replaces: LockHolder | None = None) -> LockHolder:
        return self._locks.acquire(head, owner, replaces)

    def heartbeat(self, head: Head, owner: str) -> bool:
        return self._locks.heartbeat(head, owner)

    def release_lock(self, head: Head, owner: str) -> None:
        self._locks.release(head, owner)

    # -------------------------------------------------------------------------------------------- erasing and imports

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
    ) -> Erasure:
        return self._eraser.erase(
            head,
            spans,
            runs=runs,
            keep_shown=keep_shown,
            seen=seen,
            is_still=is_still,
            who=who,
            reason=reason,
            time=time,
        )

    def erasures(self, head: Head) -> list[Erasure]:
        return self._eraser.erasures(head)

    def add_erasure(self, head: Head, erasure: Erasure) -> None:
        self._eraser.add_erasure(head, erasure)

    def find_residue(self, head: Head) -> tuple[int, list[Finding]]:
        return self._eraser.find_residue(head)

    def discard(self, head: Head, prefix: str) -> None:
        self._eraser.discard(head, prefix)

    def vacuum(self) -> None:
        self._eraser.vacuum()

    # ------------------------------------------------------------------------------------------------- the whole store

    def tenants(self) -> dict[str, int]:
        return self._census.tenants()

    def census(self, tenant: str | None = None) -> Iterator[Head | Orphan]:
        return self._census.census(tenant)

    def verify(self, head: Head) -> list[Finding]:
        return self._census.verify(head)

    def check_database(self) -> tuple[list[Finding], list[str]]:
        return self._driver.check()

    # --------------------------------------------------------------------------------------------------- the catalog

    def put_action(self, tenant: str, action: Action) -> None:
        self._catalog.put_action(tenant, action)

    def put_binding(self, tenant: str, binding: Binding) -> None:
        self._catalog.put_binding(tenant, binding)

    def put_prompt(self, tenant: str, prompt: Prompt) -> None:
        self._catalog.put_prompt(tenant, prompt)

    def actions(self, tenant: str) -> list[Action]:
        return self._catalog.actions(tenant)

    def bindings(self, tenant: str, agent: str = "") -> list[Binding]:
        return self._catalog.bindings(tenant, agent)

    def prompts(self, tenant: str) -> list[Prompt]:
        return self._catalog.prompts(tenant)

    def drop_action(self, tenant: str, name: str) -> bool:
        return self._catalog.drop_action(tenant, name)

    def drop_binding(self, tenant: str, agent: str, action: str) -> bool:
        return self._catalog.drop_binding(tenant, agent, action)

    def drop_prompt(self, tenant: str, name: str) -> bool:
        return self._catalog.drop_prompt(tenant, name)
