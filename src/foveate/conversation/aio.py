"""A conversation for asyncio: the methods of `Conversation`, awaited. Imported when needed: asyncio is slow to load.

Each call runs the synchronous method in one worker thread. A user's async summarizer or plugin is awaited in the task
that made the call.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..background.tasks import LoopLock, Tasks
from ..background.threads import Threads
from ..core.edits import Edit, Record
from ..core.events import Event
from ..core.messages import Message, ToolCall, ToolResult
from ..core.planner import Plan
from ..core.receipts import Receipt
from ..core.runs import AgentRun, AgentRunStep
from ..core.stamps import Lease, Origin, PartRetention, Usage
from ..core.totals import Totals
from ..core.view import Budget, View
from ..expand.excerpts import Excerpt
from ..expand.expander import Place
from ..expand.search import Hit
from ..ports import Cost, Erasure, Finding, Format, Observer
from .calls import OperationCancelled
from .session import Fix, HistoryEntry, RepairReport
from .sync import Conversation, Tools

if TYPE_CHECKING:
    from ..core.context import Context
    from ..core.retention import Ages
    from .retention import RetentionReport

__all__ = ["AsyncAgentAccess", "AsyncConversation", "AsyncJournal", "AsyncPrivacy"]

T = TypeVar("T")
_GRACE = 1.0
"""Seconds that a cancelled background task has to end before it is abandoned."""
_POLL = 1.0
"""Seconds between looks at whether the event loop was closed."""
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


class _LoopOperation:
    """One operation: it runs in a worker thread, and awaits users' code in the task that started it."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._changed = asyncio.Event()
        self._request: tuple[Callable[[], Any], Future[Any]] | None = None
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
        return self._outcome.result()  # type: ignore[no-any-return]

    def _work(self, chat: Conversation, function: Callable[[], Any]) -> None:
        outcome: Future[Any] = Future()
        session = chat._session
        try:
            with session.lock:
                before, session.caller.operation = session.caller.operation, self
                try:
                    session.caller.check_cancelled()
                    if session.state.last_view is None:
                        session.state.view()  # For those who look while this operation is in progress.
                    outcome.set_result(function())
                finally:
                    session.caller.operation = before
        except BaseException as error:
            outcome.set_exception(error)
        self._outcome = outcome
        with suppress(RuntimeError):  # If the loop was closed, no task waits any more.
            self._loop.call_soon_threadsafe(self._changed.set)

    async def _serve(self) -> None:
        """Await what the worker thread asks for."""
        if self._request is None:
            return
        (function, reply), self._request = self._request, None
        if self.is_cancelled:
            reply.set_exception(OperationCancelled())
            return
        try:
            value = function()
            reply.set_result(await value if isinstance(value, Awaitable) else value)
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
        self._request, self._is_waiting = (function, reply), True
        try:
            self._loop.call_soon_threadsafe(self._changed.set)
            while True:
                try:
                    return reply.result(_POLL)
                except TimeoutError:
                    if reply.done():
                        return reply.result()
                    if self._loop.is_closed():
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


class AsyncConversation:
    """The same for asyncio: every method that touches the store is awaited. Made by `open_async_conversation`."""

    def __init__(self, sync: Conversation) -> None:
        self.sync = sync
        """The same conversation for synchronous code. Use it in threads other than that of the event loop."""
        self._session = sync._session
        self._lock = LoopLock()
        self._agent = AsyncAgentAccess(self)
        self.journal = AsyncJournal(self)
        """See `Conversation.journal`."""
        self.privacy = AsyncPrivacy(self)
        """See `Conversation.privacy`."""
        prefetch = self._session.prefetch
        if type(prefetch.background) is Threads:  # Async summarizers need the event loop.
            prefetch.background = Tasks.like(prefetch.background)
        sync._aio = self

    async def _run(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        async with self._lock:
            return await _LoopOperation().run(self.sync, partial(function, *arguments, **options))

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

    def __len__(self) -> int:
        """Number of messages in the history."""
        return len(self.sync)

    def __repr__(self) -> str:
        return repr(self.sync).replace("<Conversation", "<AsyncConversation")

    # ------------------------------------------------------------------------------------------------- the exchange

    async def append(
        self,
        message: object,
        *,
        after: str | None = None,
        time: int | None = None,
        origin: Origin | None = None,
        lease: Lease | None = None,
        kept: Sequence[PartRetention] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> tuple[str, ...]:
        """See `Conversation.append`."""
        facts: dict[str, Any] = {"time": time, "origin": origin, "lease": lease, "kept": kept, "metadata": metadata}
        return await self._run(self.sync.append, message, after=after, **facts)

    async def prompt(self, *, system: object = None, tools: Tools = (), messages: object = None) -> dict[str, Any]:
        """See `Conversation.prompt`."""
        return await self._run(self.sync.prompt, system=system, tools=tools, messages=messages)

    async def body(self, *, system: object = None, tools: Tools = ()) -> bytes:
        """See `Conversation.body`."""
        return await self._run(self.sync.body, system=system, tools=tools)

    async def prepare(self, *, system: object = None, tools: Tools = (), messages: object = None) -> View:
        """See `Conversation.prepare`."""
        return await self._run(self.sync.prepare, system=system, tools=tools, messages=messages)

    async def plan(self, *, system: object = None, tools: Tools = ()) -> Plan:
        """See `Conversation.plan`."""
        return await self._run(self.sync.plan, system=system, tools=tools)

    async def record(self, reply: object, *, usage: Usage | None = None) -> str:
        """See `Conversation.record`."""
        return await self._run(self.sync.record, reply, usage=usage)

    async def retry_smaller(self, error: BaseException) -> dict[str, Any]:
        """See `Conversation.retry_smaller`."""
        return await self._run(self.sync.retry_smaller, error)

    async def refresh(self) -> None:
        """See `Conversation.refresh`."""
        await self._run(self.sync.refresh)

    # ----------------------------------------------------------------------------------------------------- originals

    @overload
    async def expand(self, handle: str | int, *, where: Place = "view", reason: str = "") -> Message: ...
    @overload
    async def expand(self, handle: str | int, *, lines: str | int | Sequence[int]) -> Excerpt: ...
    @overload
    async def expand(self, handle: str | int, *, items: str | int | Sequence[int]) -> Excerpt: ...
    @overload
    async def expand(self, handle: str | int, *, pattern: str) -> Excerpt: ...

    async def expand(self, handle: str | int, **options: Any) -> Message | Excerpt:
        """See `Conversation.expand`."""
        return await self._run(self.sync.expand, handle, **options)

    async def search(self, words: str, *, limit: int = 10) -> list[Hit]:
        """See `Conversation.search`."""
        return await self._run(self.sync.search, words, limit=limit)

    async def open_calls(self) -> tuple[ToolCall, ...]:
        """See `Conversation.open_calls`."""
        return await self._run(self.sync.open_calls)

    async def answer(self, call: object) -> ToolResult:
        """See `Conversation.answer`."""
        return await self._run(self.sync.answer, call)

    async def original(self, handle: str | int) -> Message:
        """See `Conversation.original`."""
        return await self._run(self.sync.original, handle)

    async def originals(self, handle: str | int) -> tuple[Message, ...]:
        """See `Conversation.originals`."""
        return await self._run(self.sync.originals, handle)

    # --------------------------------------------------------------------------------------------------------- edits

    async def edit(self, *edits: Edit) -> Receipt:
        """See `Conversation.edit`."""
        return await self._run(self.sync.edit, *edits)

    async def undo(self, target: Receipt | int | None = None) -> Receipt:
        """See `Conversation.undo`."""
        return await self._run(self.sync.undo, target)

    async def pin(self, handle: str | int) -> Receipt | None:
        """See `Conversation.pin`."""
        return await self._run(self.sync.pin, handle)

    async def unpin(self, handle: str | int) -> Receipt | None:
        """See `Conversation.unpin`."""
        return await self._run(self.sync.unpin, handle)

    async def compact(self, focus: str = "") -> Receipt:
        """See `Conversation.compact`."""
        return await self._run(self.sync.compact, focus)

    async def fork(self, name: str, *, at: str | int | None = None) -> AsyncConversation:
        """See `Conversation.fork`."""
        return AsyncConversation(await self._run(self.sync.fork, name, at=at))

    # ------------------------------------------------------------------------------------------------------- reading

    async def history(self, first: int = 1, last: int | None = None) -> list[HistoryEntry]:
        """See `Conversation.history`."""
        return await self._run(self.sync.history, first, last)

    async def explain(self, handle: str | int) -> str:
        """See `Conversation.explain`."""
        return await self._run(self.sync.explain, handle)

    async def as_of(self, turn: int) -> View:
        """See `Conversation.as_of`."""
        return await self._run(self.sync.as_of, turn)

    async def context(self, *, cost: Cost | None = None) -> Context:
        """See `Conversation.context`."""
        return await self._run(self.sync.context, cost=cost)

    async def totals(self) -> Totals:
        """See `Conversation.totals`."""
        return await self._run(self.sync.totals)

    async def fixes(self) -> list[Fix]:
        """See `Conversation.fixes`."""
        return await self._run(self.sync.fixes)

    async def close(self) -> None:
        """See `Conversation.close`."""
        tasks = [task for task in self._session.prefetch.close() if isinstance(task, asyncio.Future)]
        if tasks:  # So that no loop ends with a task that does not know of its cancellation yet.
            await asyncio.wait(tasks, timeout=_GRACE)
        if self.sync._owns_store:
            await asyncio.to_thread(self._session.state.store.close)

    async def __aenter__(self) -> AsyncConversation:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class AsyncJournal:
    """See `Journal`."""

    def __init__(self, chat: AsyncConversation) -> None:
        self._run, self._sync = chat._run, chat.sync.journal

    async def records(self) -> list[Record]:
        """See `Journal.records`."""
        return await self._run(self._sync.records)

    async def receipts(self, after: int = 0) -> list[Receipt]:
        """See `Journal.receipts`."""
        return await self._run(self._sync.receipts, after)

    async def events(self, since: int = 0) -> list[Event]:
        """See `Journal.events`."""
        return await self._run(self._sync.events, since)

    async def verify(self) -> list[Finding]:
        """See `Journal.verify`."""
        return await self._run(self._sync.verify)

    async def repair(self) -> RepairReport:
        """See `Journal.repair`."""
        return await self._run(self._sync.repair)

    async def runs(self) -> list[AgentRun]:
        """See `Journal.runs`."""
        return await self._run(self._sync.runs)

    async def steps(self, run: str, after: int = 0) -> list[AgentRunStep]:
        """See `Journal.steps`."""
        return await self._run(self._sync.steps, run, after)


class AsyncPrivacy:
    """See `Privacy`."""

    def __init__(self, chat: AsyncConversation) -> None:
        self._run, self._sync = chat._run, chat.sync.privacy

    async def erase(self, handle: str | int, *, reason: str = "", who: str = "") -> Erasure:
        """See `Privacy.erase`."""
        return await self._run(self._sync.erase, handle, reason=reason, who=who)

    async def apply_retention(
        self, ages: Ages, *, reason: str = "age", who: str = "", dry_run: bool = False
    ) -> RetentionReport:
        """See `Privacy.apply_retention`."""
        return await self._run(self._sync.apply_retention, ages, reason=reason, who=who, dry_run=dry_run)

    async def erasures(self) -> list[Erasure]:
        """See `Privacy.erasures`."""
        return await self._run(self._sync.erasures)

    async def residue(self) -> tuple[int, list[Finding]]:
        """See `Privacy.residue`."""
        return await self._run(self._sync.residue)


class AsyncAgentAccess:
    """Internal: `AgentAccess`, whose methods that touch the store are awaited."""

    _DIRECT = frozenset({"head", "store", "profile", "window", "answers_expand", "heartbeat", "session"})

    def __init__(self, chat: AsyncConversation) -> None:
        self._chat = chat

    def observe(self, observer: Observer) -> None:
        """See `AgentAccess.observe`."""
        self._chat.sync._agent.observe(observer)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._chat.sync._agent, name)
        if name in self._DIRECT:
            return value
        return partial(self._chat._run, value)
