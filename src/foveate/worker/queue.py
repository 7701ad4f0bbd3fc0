"""Putting jobs into the queue: by hand, in a transaction of the caller's, or as the background of a conversation."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import msgspec
import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import JobDeferrer
from psycopg.rows import tuple_row

from .. import given
from ..core.retention import Ages, read_ages
from ..errors import BadSetting
from ..ports import Handed
from .aging import Aging
from .compacting import BY_HAND, Compaction
from .jobs import ErasureJob, Vacuum, Wanted, task_of
from .tables import Tables

__all__ = ["QUEUE", "Queue", "What", "deferred", "enqueue", "enqueue_async"]

QUEUE = "foveate"
"""Name of the queue: procrastinate's tables may hold others beside it."""
ERASING_FIRST = 10
"""The priority of erasing; that of other jobs is 0."""

What = Literal["age", "compact", "erase", "erase-tenant", "vacuum"]
"""What can be done with a conversation, with all of a tenant's, or with the whole store."""

_PATH = "SELECT current_setting('search_path')"
_SET_PATH = "SELECT set_config('search_path', %s, true)"


class Queue:
    """The queue in the database of a store.

    `url`: of the store, `postgresql://...`. As the `background=` of a conversation it has summaries written by
    `foveate worker`, in another process: whatever the view fits without where it is `eager`, else only what a policy
    asks for ahead. What was written is in the view at the next call. The conversation waits for none: what it cannot do
    without it has written in its own process. Closed by whoever opened it. Raises BadSetting for another URL, and
    StoreError where the database cannot be used.
    """

    def __init__(self, url: str, *, eager: bool = True) -> None:
        self.eager = eager
        self._tables = Tables(url)
        # Never opened: each job goes in through a connection that is handed to it.
        self._app = App(connector=PsycopgConnector())

    def hand_on(self, wanted: Handed) -> None:
        """Have what a conversation wants done. It does nothing where that waits already."""
        is_wanted = bool(BY_HAND.intersection(wanted.policies))
        self.put(
            Compaction(
                wanted.name,
                wanted.tenant,
                wanted.number,
                is_wanted,
                window=wanted.window,
                reserve=wanted.reserve,
                format=wanted.format,
            )
        )

    def put(self, wanted: Wanted, connection: psycopg.Connection[Any] | None = None) -> int | None:
        """The number of the job; None where one that is enough waits already. `connection`: see `enqueue`."""
        self._tables.make()
        if connection is not None:
            return self._put_beside(wanted, connection)
        with self._tables.connection() as own:
            return self._put(wanted, own)

    def _put_beside(self, wanted: Wanted, connection: psycopg.Connection[Any]) -> int | None:
        ours = self._path()
        cursor = connection.cursor(row_factory=tuple_row)
        before = _first(cursor.execute(_PATH).fetchone())  # This begins the caller's transaction, if nothing did yet.
        try:
            with connection.transaction():  # One that waits already breaks a key, and undoes only this part then.
                cursor.execute(_SET_PATH, (ours,))
                job = self._put(wanted, connection, raises=True)
                cursor.execute(_SET_PATH, (before,))
            return job
        except AlreadyEnqueued:
            return None

    async def put_beside(self, wanted: Wanted, connection: psycopg.AsyncConnection[Any]) -> int | None:
        """`put` in a transaction of a connection that is awaited."""
        await asyncio.to_thread(self._tables.make)
        ours = await asyncio.to_thread(self._path)
        cursor = connection.cursor(row_factory=tuple_row)
        before = _first(await (await cursor.execute(_PATH)).fetchone())
        try:
            async with connection.transaction():
                await cursor.execute(_SET_PATH, (ours,))
                job = await deferred(self._app, wanted, connection)
                await cursor.execute(_SET_PATH, (before,))
            return job
        except AlreadyEnqueued:
            return None
        except ConnectorException as error:
            raise self._tables.failure(error) from error

    def _put(self, wanted: Wanted, connection: psycopg.Connection[Any], *, raises: bool = False) -> int | None:
        try:
            return _deferrer(self._app, wanted, connection).defer(**msgspec.to_builtins(wanted))
        except AlreadyEnqueued:
            if raises:
                raise
            return None
        except ConnectorException as error:
            raise self._tables.failure(error) from error

    def _path(self) -> str:
        with self._tables.connection() as own:
            return _first(own.execute("SELECT quote_ident(current_schema())").fetchone())

    def close(self) -> None:
        """Let go of the connections. Jobs stay."""
        self._tables.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def enqueue(
    store: str | Queue,
    conversation: str,
    what: What = "compact",
    *,
    tenant: str = "",
    focus: str = "",
    now: bool = False,
    number: int | None = None,
    handle: str = "",
    who: str = "",
    reason: str = "",
    ages: Ages | None = None,
    connection: psycopg.Connection[Any] | None = None,
) -> int | None:
    """Have something done with a conversation by `foveate worker`: the number of the job, or None where the same waits
    already.

    `store`: the URL of its store, or a Queue, which is quicker for many. `connection`: the job is put in by the
    transaction of this psycopg connection, and there if that commits. The conversation need not be there yet then.

    `compact`: as its policies ask for it; with `now`, or a `focus` that the summary is to dwell on, although none asks.
    `number`: of the newest edit that the caller knows (`chat.head.number`): where a summary came since, nothing is
    done. `erase`: the messages behind a `handle`, or all of the conversation; `who` and `reason` are kept.
    `erase-tenant` all conversations of the tenant; `vacuum` then gives back the room. The conversation is "" for both.
    `age`: what is over its age, in a conversation or, with "", in all of the tenant's; `ages` as `Conversation.age`
    takes them, None: those that the worker was started with.

    Raises BadSetting for what is not allowed, and StoreError where the database cannot be used.
    """
    wanted = _wanted(conversation, what, tenant, focus, now, number, handle, who, reason, ages)
    if isinstance(store, Queue):
        return store.put(wanted, connection)
    with Queue(store) as queue:
        return queue.put(wanted, connection)


async def enqueue_async(
    store: str | Queue,
    conversation: str,
    what: What = "compact",
    *,
    tenant: str = "",
    focus: str = "",
    now: bool = False,
    number: int | None = None,
    handle: str = "",
    who: str = "",
    reason: str = "",
    ages: Ages | None = None,
    connection: psycopg.AsyncConnection[Any] | None = None,
) -> int | None:
    """See `enqueue`. What waits, waits in a thread, or on the connection."""
    wanted = _wanted(conversation, what, tenant, focus, now, number, handle, who, reason, ages)
    queue = store if isinstance(store, Queue) else await asyncio.to_thread(Queue, store)
    try:
        if connection is None:
            return await asyncio.to_thread(queue.put, wanted)
        return await queue.put_beside(wanted, connection)
    finally:
        if queue is not store:
            await asyncio.to_thread(queue.close)


async def deferred(app: App, wanted: Wanted, connection: psycopg.AsyncConnection[Any] | None = None) -> int:
    """The number of the job, put in through the app. Raises AlreadyEnqueued."""
    return await _deferrer(app, wanted, connection).defer_async(**msgspec.to_builtins(wanted))


def _deferrer(app: App, wanted: Wanted, connection: object) -> JobDeferrer:
    return app.configure_task(
        task_of(wanted),
        queue=QUEUE,
        lock=wanted.lock,
        queueing_lock=wanted.waiting_lock,
        # procrastinate lets nobody past a job of the same lock that waits for its next attempt but who has precedence.
        priority=ERASING_FIRST if isinstance(wanted, ErasureJob | Aging) else 0,
        connection=connection,
    )


def _wanted(
    conversation: str,
    what: str,
    tenant: str,
    focus: str,
    now: bool,
    number: int | None,
    handle: str,
    who: str,
    reason: str,
    ages: Ages | None,
) -> Wanted:
    given.text("The name of a conversation", conversation)
    for name, text in (("tenant", tenant), ("focus", focus), ("handle", handle), ("who", who), ("reason", reason)):
        given.text(f"{name}=", text)
    given.instance("now=", now, bool, "True or False")
    if number is not None:
        given.whole("number= (of an edit)", number)
    if ages is not None and what != "age":
        raise BadSetting(f"ages= is for 'age' alone, not for {what!r:.60}.")
    if what in ("compact", "erase") and not conversation:
        raise BadSetting(f"Which conversation? {what!r} needs a name.")
    if what in ("erase-tenant", "vacuum") and conversation:
        raise BadSetting(f"{what!r} is about no single conversation: enqueue(store, '', {what!r}).")
    match what:
        case "compact":
            return Compaction(conversation, tenant, number, now or bool(focus), focus)
        case "erase":
            return ErasureJob(conversation, tenant, handle, who, reason)
        case "erase-tenant" if tenant:
            return ErasureJob(None, tenant, "", who, reason)
        case "erase-tenant":
            raise BadSetting("Whose conversations are to be erased? Name the tenant: tenant='acme'.")
        case "vacuum":
            return Vacuum()
        case "age":
            rules = () if ages is None else tuple(map(str, read_ages(ages)))
            return Aging(conversation or None, tenant, rules, who, reason or "age")
    raise BadSetting(f"What can be enqueued is age, compact, erase, erase-tenant and vacuum, not {what!r:.60}.")


def _first(row: Any) -> str:
    return str(row[0]) if row else ""
