"""A conversation for asyncio: the methods of `Conversation`, awaited. Imported when needed: asyncio is slow to load.

Each method runs the synchronous one in a worker thread, with the same arguments. A user's async summarizer or plugin is
awaited on the event loop of the call, in the context of the operation: a span that is current there is current for it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial, wraps
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, overload

from ..background.tasks import LoopLock, Tasks
from ..background.threads import Threads
from ..core.call_context import Budget
from ..core.messages import Message
from ..core.needs import Needs
from ..core.view import View
from ..expand.excerpts import Excerpt
from ..ports import Format
from .calls import OperationCancelled
from .journal import Journal, Privacy
from .sync import Conversation

__all__ = ["AsyncAgentAccess", "AsyncConversation", "AsyncJournal", "AsyncPrivacy"]

P = ParamSpec("P")
T = TypeVar("T")
_GRACE = 1.0
"""Seconds that a cancelled background task has to end before it is abandoned."""
_POLL = 1.0
"""Seconds between looks at whether the event loop was closed, or Python ends."""
_WAIT_FOR_LOCK = 0.02
"""Seconds between looks at whether an operation was cancelled while it waits for another one."""
_WAIT_FOR_VIEW = 0.02
"""Seconds that a look at the view waits for an operation in progress."""
_MAX_THREADS = 1_000
"""Operations at the same time, at most. Threads are reused, so few exist where few are needed."""

_pool: ThreadPoolExecutor | None = None


def _workers() -> ThreadPoolExecutor:
    """Return the worker threads. Not the loop's own: these could all be waiting for async summarizers."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="foveate")
    return _pool


def _forget_workers() -> None:
    """Start without workers in a forked process, which has none of the threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def _is_python_ending() -> bool:
    """Return whether Python waits for the worker threads in order to end: then the pool refuses work."""
    try:
        _workers().submit(bool)
    except RuntimeError:
        return True
    return False


class _LoopOperation:
    """One operation: it runs in a worker thread, and awaits users' code on the loop of the task that started it."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._changed = asyncio.Event()
        self._request: tuple[Callable[[], Any], Context, Future[Any]] | None = None
        self._is_waiting = False
        self._outcome: Future[Any] | None = None

    async def run(self, chat: Conversation, function: Callable[[], T]) -> T:
        """Run a function of the conversation in a worker thread.

        If the task is cancelled, wait for the thread first: what it writes must be known before the next operation.
        """
        _workers().submit(copy_context().run, self._work, chat, function)
        cancelled: asyncio.CancelledError | None = None
        while self._outcome is None:
            try:
                await self._changed.wait()
                self._changed.clear()
                await self._serve()
            except asyncio.CancelledError as error:
                cancelled, self.is_cancelled = error, True
        if cancelled is not None:
            raise cancelled
        value: T = self._outcome.result()
        return value

    def _work(self, chat: Conversation, function: Callable[[], Any]) -> None:
        outcome: Future[Any] = Future()
        session = chat._session
        try:
            while not session.lock.try_acquire(_WAIT_FOR_LOCK):
                if self.is_cancelled:
                    raise OperationCancelled
            before, session.caller.operation = session.caller.operation, self
            try:
                session.caller.check_cancelled()
                session.lock.recover()
                if session.state.last_view is None:
                    session.state.view()  # For those who look while this operation is in progress.
                outcome.set_result(function())
            finally:
                session.caller.operation = before
                session.lock.release()
        except BaseException as error:
            outcome.set_exception(error)
        self._outcome = outcome
        with suppress(RuntimeError):  # If the loop was closed, no task waits any more.
            self._loop.call_soon_threadsafe(self._changed.set)

    async def _serve(self) -> None:
        """Await what the worker thread asks for."""
        if self._request is None:
            return
        (function, context, reply), self._request = self._request, None
        if self.is_cancelled:
            reply.set_exception(OperationCancelled())
            return
        try:
            value = context.run(function)
            if isinstance(value, Awaitable):
                value = await self._loop.create_task(_result_of(value), context=context)
            reply.set_result(value)
        except asyncio.CancelledError:
            reply.set_exception(OperationCancelled())
            raise
        except BaseException as error:
            reply.set_exception(error)

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Await on the event loop, and return the result to the worker thread."""
        try:
            return self.call(lambda: awaitable)
        finally:
            if inspect.iscoroutine(awaitable) and inspect.getcoroutinestate(awaitable) == inspect.CORO_CREATED:
                awaitable.close()  # The operation was cancelled before it was awaited.

    def call(self, function: Callable[[], Any]) -> Any:
        """Call a function in the thread of the event loop, and await what it returns."""
        reply: Future[Any] = Future()
        self._request, self._is_waiting = (function, copy_context(), reply), True
        try:
            self._loop.call_soon_threadsafe(self._changed.set)
            while True:
                try:
                    return reply.result(_POLL)
                except TimeoutError:
                    if reply.done():
                        return reply.result()
                    if self._loop.is_closed() or _is_python_ending():
                        raise OperationCancelled from None
        except RuntimeError:
            if not self._loop.is_closed():
                raise
            raise OperationCancelled from None
        finally:
            self._request, self._is_waiting = None, False

    def blocks_this_thread(self) -> bool:
        """Return whether the operation waits for the event loop that runs in the calling thread."""
        return self._is_waiting and self._thread == threading.get_ident()


async def _result_of(awaitable: Awaitable[T]) -> T:
    return await awaitable


class _Side(Protocol):
    """An object whose methods run those of `sync` in a worker thread."""

    sync: Any

    async def _run(self, function: Callable[[], T]) -> T: ...


def _awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[_Side, P], Coroutine[Any, Any, T]]:
    """Return a method that runs `method` of the synchronous object, with its signature and its docstring."""

    @wraps(method)
    async def run(self: _Side, /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self._run(partial(method, self.sync, *arguments, **options))

    return run


class AsyncConversation:
    """A `Conversation` for asyncio: methods that use the store are awaited. Made by `open_async_conversation`."""

    def __init__(self, sync: Conversation) -> None:
        self.sync: Conversation = sync
        """The same conversation for synchronous code. Use it in threads other than that of the event loop."""
        self._session = sync._session
        self._lock = LoopLock()
        self._agent = AsyncAgentAccess(self)
        self.journal: AsyncJournal = AsyncJournal(self)
        """See `Conversation.journal`."""
        self.privacy: AsyncPrivacy = AsyncPrivacy(self)
        """See `Conversation.privacy`."""
        prefetch = self._session.prefetch
        if type(prefetch.background) is Threads:  # Async summarizers need the event loop.
            prefetch.background = Tasks.like(prefetch.background)
        sync._aio = self

    async def _run(self, function: Callable[[], T]) -> T:
        async with self._lock:
            return await _LoopOperation().run(self.sync, function)

    # -------------------------------------------------------------------------------------------------------- values

    @property
    def name(self) -> str:
        """See `Conversation.name`."""
        return self.sync.name

    @property
    def tip(self) -> str:
        """See `Conversation.tip`."""
        return self.sync.tip

    @property
    def view(self) -> View:
        """See `Conversation.view`. While an operation is in progress, this may be the view before it."""
        state, lock = self._session.state, self._session.lock
        if lock.try_acquire(_WAIT_FOR_VIEW):
            try:
                lock.recover()
                return state.view()
            finally:
                lock.release()
        return self.sync.view if state.last_view is None else state.last_view

    @property
    def budget(self) -> Budget:
        """See `Conversation.budget`."""
        return self.sync.budget

    @property
    def format(self) -> Format:
        """See `Conversation.format`."""
        return self.sync.format

    @property
    def needs(self) -> Needs:
        """See `Conversation.needs`. Waits for an operation in progress."""
        return self.sync.needs

    def __len__(self) -> int:
        """Number of messages in the history."""
        return len(self.sync)

    def __repr__(self) -> str:
        return repr(self.sync).replace("<Conversation", "<AsyncConversation")

    # ------------------------------------------------------------------------------------------------------- methods

    append = _awaited(Conversation.append)
    lease = _awaited(Conversation.lease)
    follow = _awaited(Conversation.follow)
    prompt = _awaited(Conversation.prompt)
    body = _awaited(Conversation.body)
    body_parts = _awaited(Conversation.body_parts)
    prepare = _awaited(Conversation.prepare)
    request_items = _awaited(Conversation.request_items)
    answers = _awaited(Conversation.answers)
    plan = _awaited(Conversation.plan)
    apply_plan = _awaited(Conversation.apply_plan)
    record = _awaited(Conversation.record)
    bill = _awaited(Conversation.bill)
    discard = _awaited(Conversation.discard)
    retry_smaller = _awaited(Conversation.retry_smaller)
    refresh = _awaited(Conversation.refresh)

    @overload
    async def expand(
        self, handle: str | int, *, where: Literal["view", "tail", "auto"] = "view", reason: str = ""
    ) -> Message: ...
    @overload
    async def expand(self, handle: str | int, *, lines: str | int | Sequence[int]) -> Excerpt: ...
    @overload
    async def expand(self, handle: str | int, *, items: str | int | Sequence[int]) -> Excerpt: ...
    @overload
    async def expand(self, handle: str | int, *, pattern: str) -> Excerpt: ...

    @wraps(Conversation.expand)
    async def expand(self, handle: str | int, **options: Any) -> Message | Excerpt:
        """See `Conversation.expand`."""
        return await self._run(partial(self.sync.expand, handle, **options))

    search = _awaited(Conversation.search)
    open_calls = _awaited(Conversation.open_calls)
    answer = _awaited(Conversation.answer)
    expansion = _awaited(Conversation.expansion)
    original = _awaited(Conversation.original)
    originals = _awaited(Conversation.originals)

    edit = _awaited(Conversation.edit)
    undo = _awaited(Conversation.undo)
    pin = _awaited(Conversation.pin)
    unpin = _awaited(Conversation.unpin)
    compact = _awaited(Conversation.compact)

    async def fork(self, name: str, *, at: str | int | None = None) -> AsyncConversation:
        """See `Conversation.fork`."""
        return AsyncConversation(await self._run(partial(self.sync.fork, name, at=at)))

    history = _awaited(Conversation.history)
    listed = _awaited(Conversation.listed)
    explain = _awaited(Conversation.explain)
    as_of = _awaited(Conversation.as_of)
    context = _awaited(Conversation.context)
    totals = _awaited(Conversation.totals)
    parent = _awaited(Conversation.parent)
    children = _awaited(Conversation.children)
    fixes = _awaited(Conversation.fixes)

    async def close(self) -> None:
        """See `Conversation.close`."""
        tasks = [task for task in self._session.prefetch.close() if isinstance(task, asyncio.Future)]
        if tasks:  # So that no loop ends with a task that does not know of its cancellation yet.
            await asyncio.wait(tasks, timeout=_GRACE)
        await asyncio.to_thread(self._session.save_at_close)
        if self.sync._owns_store:
            self._session.exchange.is_closed = True
            await asyncio.to_thread(self._session.state.store.close)

    async def __aenter__(self) -> AsyncConversation:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class AsyncJournal:
    """See `Journal`."""

    def __init__(self, chat: AsyncConversation) -> None:
        self._run, self.sync = chat._run, chat.sync.journal

    records = _awaited(Journal.records)
    receipts = _awaited(Journal.receipts)
    events = _awaited(Journal.events)
    verify = _awaited(Journal.verify)
    repair = _awaited(Journal.repair)
    runs = _awaited(Journal.runs)
    steps = _awaited(Journal.steps)


class AsyncPrivacy:
    """See `Privacy`."""

    def __init__(self, chat: AsyncConversation) -> None:
        self._run, self.sync = chat._run, chat.sync.privacy

    erase = _awaited(Privacy.erase)
    apply_retention = _awaited(Privacy.apply_retention)
    erasures = _awaited(Privacy.erasures)
    residue = _awaited(Privacy.residue)


class AsyncAgentAccess:
    """Internal: `AgentAccess`, whose methods that touch the store are awaited."""

    _DIRECT = frozenset(
        {"head", "store", "profile", "window", "answers_expand", "heartbeat", "session", "observe", "choice_for"}
    )

    def __init__(self, chat: AsyncConversation) -> None:
        self._chat = chat

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._chat.sync._agent, name)
        if name in self._DIRECT:
            return value
        return lambda *arguments, **options: self._chat._run(partial(value, *arguments, **options))
