"""Put jobs into the queue: with a call, in the caller's transaction, or as the background of a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import JobDeferrer
from psycopg.rows import tuple_row

from ...conversation import validate
from ...core.retention import Ages, read_ages
from ...errors import BadSetting
from ...ports import CompactionRequest
from .jobs import SUMMARIZING, CompactionJob, ErasureJob, Job, RetentionJob, VacuumJob, task_of
from .tables import Tables

__all__ = ["QUEUE", "JobKind", "Queue", "defer", "enqueue", "enqueue_async"]

QUEUE = "foveate"
"""The name of the queue: procrastinate's tables may have other queues too."""
ERASING_FIRST = 10
"""The priority of erasing and retention; that of other jobs is 0."""

JobKind = Literal["age", "compact", "erase", "erase-tenant", "vacuum"]
"""The kinds of jobs: for a conversation, for a tenant, or for the whole store."""

_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "age": ("ages", "who", "reason"),
    "compact": ("focus", "now", "number"),
    "erase": ("handle", "who", "reason"),
    "erase-tenant": ("who", "reason"),
    "vacuum": (),
}
"""The arguments of each job besides the conversation and the tenant."""

_PATH = "SELECT current_setting('search_path')"
_SET_PATH = "SELECT set_config('search_path', %s, true)"


class Queue:
    """The queue in the database of a store.

    `url`: that of the store, `postgresql://...`. As the `background=` of a conversation, `foveate worker` writes its
    summaries in another process: with `eager` every summary that the view can wait for, else only those that a policy
    requests ahead. A finished summary is in the view at the next call. The conversation never waits: it writes a
    summary that it needs now itself. The caller closes the queue. Raises BadSetting for another kind of URL, and
    StoreError if the database cannot be used.
    """

    def __init__(self, url: str, *, eager: bool = True) -> None:
        self.eager = eager
        """Whether the background asks for a summary before the window is full."""
        self._tables = Tables(url)
        # Never opened: each job gets a connection.
        self._app = App(connector=PsycopgConnector())

    def request_compaction(self, wanted: CompactionRequest) -> None:
        """Enqueue the compaction that a conversation requests, unless it is waiting already."""
        is_wanted = bool(SUMMARIZING.intersection(wanted.policies))
        self.put(
            CompactionJob(
                wanted.name,
                wanted.tenant,
                wanted.number,
                is_wanted,
                window=wanted.window,
                reserve=wanted.reserve,
                format=wanted.format,
            )
        )

    def put(self, job: Job, connection: psycopg.Connection[Any] | None = None) -> int | None:
        """Put a job into the queue; return its number, or None if an equal job is waiting. `connection`: see
        `enqueue`.
        """
        self._tables.make()
        if connection is not None:
            return self._put_in_transaction(job, connection)
        with self._tables.connection() as own:
            return self._put(job, own)

    def _put_in_transaction(self, job: Job, connection: psycopg.Connection[Any]) -> int | None:
        ours = self._path()
        cursor = connection.cursor(row_factory=tuple_row)
        before = _first(cursor.execute(_PATH).fetchone())  # This begins the caller's transaction, if there is none.
        try:
            with connection.transaction():  # An equal waiting job violates a key, which rolls back only this part.
                cursor.execute(_SET_PATH, (ours,))
                number = self._put(job, connection, raises=True)
                cursor.execute(_SET_PATH, (before,))
            return number
        except AlreadyEnqueued:
            return None

    async def put_in_transaction(self, job: Job, connection: psycopg.AsyncConnection[Any]) -> int | None:
        """Put a job into the queue in the transaction of an async connection."""
        await asyncio.to_thread(self._tables.make)
        ours = await asyncio.to_thread(self._path)
        cursor = connection.cursor(row_factory=tuple_row)
        before = _first(await (await cursor.execute(_PATH)).fetchone())
        try:
            async with connection.transaction():
                await cursor.execute(_SET_PATH, (ours,))
                number = await defer(self._app, job, connection)
                await cursor.execute(_SET_PATH, (before,))
            return number
        except AlreadyEnqueued:
            return None
        except ConnectorException as error:
            raise self._tables.failure(error) from error

    def _put(self, job: Job, connection: psycopg.Connection[Any], *, raises: bool = False) -> int | None:
        try:
            return _deferrer(self._app, job, connection).defer(**msgspec.to_builtins(job))
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
        """Close the connections. The jobs stay."""
        self._tables.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def enqueue(
    store: str | Queue,
    conversation: str,
    what: JobKind = "compact",
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
    """Put a job for `foveate worker` into the queue. Return its number, or None if an equal job is waiting.

    `store`: the URL of the store, or a Queue, which is faster for many jobs. `connection`: put the job in with the
    transaction of this psycopg connection; the conversation need not exist before its commit.

    `compact`: as the policies require; with `now`, or with a `focus` for the summary, even if no policy requires it.
    `number`: the newest edit that the caller knows (`Receipt.last`); nothing is done if a summary was written
    since. `erase`: the messages of a `handle`, or the whole conversation; `who` and `reason` are recorded.
    `erase-tenant`: all conversations of the tenant. `vacuum`: remove erased data from the files. The conversation is ""
    for both. `age`: apply retention rules to a conversation or, with "", to all of the tenant; `ages` as for
    `Privacy.apply_retention`, None: those of the worker.

    Raises BadSetting for wrong values and for arguments of another job, and StoreError if the database cannot be used.
    """
    _check_connection(connection, psycopg.Connection, "enqueue")
    job = _job(conversation, what, tenant, focus, now, number, handle, who, reason, ages)
    if isinstance(store, Queue):
        return store.put(job, connection)
    with Queue(store) as queue:
        return queue.put(job, connection)


async def enqueue_async(
    store: str | Queue,
    conversation: str,
    what: JobKind = "compact",
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
    """Put a job into the queue without blocking the loop: see `enqueue`. `connection`: a psycopg AsyncConnection."""
    _check_connection(connection, psycopg.AsyncConnection, "enqueue_async")
    job = _job(conversation, what, tenant, focus, now, number, handle, who, reason, ages)
    queue = store if isinstance(store, Queue) else await asyncio.to_thread(Queue, store)
    try:
        if connection is None:
            return await asyncio.to_thread(queue.put, job)
        return await queue.put_in_transaction(job, connection)
    finally:
        if queue is not store:
            await asyncio.to_thread(queue.close)


async def defer(app: App, job: Job, connection: psycopg.AsyncConnection[Any] | None = None) -> int:
    """Put a job into the queue with procrastinate's app; return its number. Raises AlreadyEnqueued."""
    return await _deferrer(app, job, connection).defer_async(**msgspec.to_builtins(job))


def _check_connection(connection: object, kind: type[object], function: str) -> None:
    if connection is not None and not isinstance(connection, kind):
        own = type(connection)
        raise BadSetting(
            f"connection of {function} is a {own.__module__}.{own.__name__}. Pass a psycopg.{kind.__name__}, in "
            "the transaction to which the job belongs."
        )


def _deferrer(app: App, job: Job, connection: object) -> JobDeferrer:
    return app.configure_task(
        task_of(job),
        queue=QUEUE,
        lock=job.lock,
        queueing_lock=job.waiting_lock,
        # A job that waits for its next attempt blocks all others of its lock, except those with a higher priority.
        priority=ERASING_FIRST if isinstance(job, ErasureJob | RetentionJob) else 0,
        connection=connection,
    )


def _job(
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
) -> Job:
    validate.text("The name of a conversation", conversation)
    for name, text in (("tenant", tenant), ("focus", focus), ("handle", handle), ("who", who), ("reason", reason)):
        validate.text(f"{name}=", text)
    validate.instance("now=", now, bool, "True or False")
    if number is not None:
        validate.integer("number= (of an edit)", number)
    # An ignored argument may widen a job: `erase` with a `number` would erase the whole conversation.
    arguments = {"focus": focus, "now": now, "number": number, "handle": handle}
    arguments |= {"who": who, "reason": reason, "ages": ages}
    taken = _ARGUMENTS.get(what, tuple(arguments))
    for name, value in arguments.items():
        if name not in taken and not (value is None or value is False or value == ""):
            allowed = ", ".join(f"{each}=" for each in taken) or "none"
            raise BadSetting(f"{name}= is no argument of the job {what!r}. Leave it out; its arguments are: {allowed}.")
    if what in ("compact", "erase") and not conversation:
        raise BadSetting(f"{what!r} needs the name of a conversation.")
    if what in ("erase-tenant", "vacuum") and conversation:
        raise BadSetting(f"{what!r} is not for a single conversation. Call enqueue(store, '', {what!r}).")
    match what:
        case "compact":
            return CompactionJob(conversation, tenant, number, now or bool(focus), focus)
        case "erase":
            return ErasureJob(conversation, tenant, handle, who, reason)
        case "erase-tenant" if tenant:
            return ErasureJob(None, tenant, "", who, reason)
        case "erase-tenant":
            raise BadSetting("erase-tenant needs a tenant. Name the tenant: tenant='acme'.")
        case "vacuum":
            return VacuumJob()
        case "age":
            rules = () if ages is None else tuple(map(str, read_ages(ages)))
            return RetentionJob(conversation or None, tenant, rules, who, reason or "age")
    raise BadSetting(f"A job is age, compact, erase, erase-tenant or vacuum, not {what!r:.60}.")


def _first(row: Any) -> str:
    return str(row[0]) if row else ""
