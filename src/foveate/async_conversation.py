"""A conversation for asyncio: the methods of `Conversation`, awaited. Apart, since asyncio is slow to import."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .background.tasks import OneLoop, finished
from .core.edits import Edit, Pin, Record, Unpin
from .core.events import Event
from .core.messages import Message, ToolCall, ToolResult
from .core.planner import Plan
from .core.receipts import Receipt
from .core.runs import AgentRun, AgentRunStep, LockHolder
from .core.stamps import Lease, Origin, PartRetention, Usage
from .core.totals import Totals
from .core.view import View
from .engine import Engine, Step
from .errors import BadSetting
from .expansion.answering import Expanding
from .expansion.excerpts import Excerpt
from .expansion.hits import Hit
from .expansion.placing import Where
from .plugins import Plugin
from .ports import Cost, Erasure, Finding
from .shell import NOT_EXPANDING, Fix, HistoryEntry, RepairReport, Shell

if TYPE_CHECKING:
    from .core.context import Context
    from .core.retention import Ages
    from .engine.aging import Aged

__all__ = ["AsyncConversation"]

T = TypeVar("T")
_GIVEN_UP = 1.0
"""Seconds that a cancelled task has to end before it is left to itself."""


class AsyncConversation(Shell):
    """The same for asyncio: every method that touches the store is awaited, and the store works in a thread."""

    def __init__(
        self,
        engine: Engine,
        *,
        on_event: Callable[[Event], object] | None = None,
        plugins: Sequence[Plugin] = (),
        expanding: Expanding = NOT_EXPANDING,
        owns_store: bool = True,
        reopen: Callable[[str], Awaitable[AsyncConversation]] | None = None,
    ) -> None:
        super().__init__(engine, on_event, plugins, expanding)
        self._lock = OneLoop()
        self._owns_store = owns_store
        self._reopen = reopen

    async def _do(self, step: Step[T]) -> T:
        async with self._lock:
            return await self._perform(step)

    async def _perform(self, step: Step[T]) -> T:
        result: Any = None
        cancelled: asyncio.CancelledError | None = None
        try:
            effect = next(step)
            while cancelled is None:
                work = asyncio.ensure_future(asyncio.to_thread(effect))
                cancelled = await finished(work)
                try:
                    answer = work.result()
                    if inspect.iscoroutine(answer) and cancelled is not None:
                        answer.close()  # Nobody waits for it any more.
                    elif inspect.isawaitable(answer):
                        answer = await answer
                except Exception as error:
                    effect = step.throw(error)
                else:
                    effect = step.send(answer)
        except StopIteration as done:
            result = done.value
        except Exception:
            if cancelled is None:
                raise
        finally:
            step.close()  # At once: what it still holds must not be found held by the next step.
        if cancelled is not None:
            raise cancelled
        return result  # type: ignore[no-any-return]

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
        step: str = "",
        owner: str = "",
    ) -> tuple[str, ...]:
        """See `Conversation.append`."""
        about = self._about(time, origin, lease, kept, metadata, step)
        return await self._do(self._for(owner, self._append(message, after, about)))

    async def plan(self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = ()) -> Plan:
        """See `Conversation.plan`."""
        async with self._lock:
            self._weigh(system, tools)
            return self._engine.plan()

    async def prepare(
        self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = (), messages: object = None
    ) -> View:
        """See `Conversation.prepare`."""
        return await self._do(self._prepare(system, tools, messages))

    async def prompt(
        self,
        *,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        messages: object = None,
        owner: str = "",
    ) -> dict[str, Any]:
        """See `Conversation.prompt`."""
        async with self._lock:
            return self._prompted(await self._perform(self._for(owner, self._prepare(system, tools, messages))))

    async def body(self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """See `Conversation.body`."""
        async with self._lock:
            return self._bodied(await self._perform(self._prepare(system, tools, None)))

    async def record(
        self, reply: object, *, usage: Usage | None = None, step: str = "", call: int = 0, owner: str = ""
    ) -> str:
        """See `Conversation.record`."""
        return await self._do(self._for(owner, self._record(reply, usage, step, call)))

    async def refused(self, error: BaseException, *, owner: str = "") -> dict[str, Any]:
        """See `Conversation.refused`."""
        async with self._lock:
            return self._prompted(await self._perform(self._for(owner, self._refused(error))))

    @overload
    async def expand(self, handle: str | int, *, where: Where = "view", reason: str = "") -> Message: ...
    @overload
    async def expand(self, handle: str | int, *, lines: str | int | Sequence[int]) -> Excerpt: ...
    @overload
    async def expand(self, handle: str | int, *, items: str | int | Sequence[int]) -> Excerpt: ...
    @overload
    async def expand(self, handle: str | int, *, pattern: str) -> Excerpt: ...

    async def expand(
        self,
        handle: str | int,
        *,
        lines: str | int | Sequence[int] | None = None,
        items: str | int | Sequence[int] | None = None,
        pattern: str | None = None,
        where: Where = "view",
        reason: str = "",
    ) -> Message | Excerpt:
        """See `Conversation.expand`."""
        parts = {"lines": lines, "items": items, "pattern": pattern}
        return await self._do(self._expanded(handle, parts, where, reason))

    async def search(self, words: str, *, limit: int = 10) -> list[Hit]:
        """See `Conversation.search`."""
        return await self._do(self._search(words, limit))

    async def open_calls(self) -> tuple[ToolCall, ...]:
        """See `Conversation.open_calls`."""
        async with self._lock:
            return self._expander.open_calls()

    async def answer(self, call: object) -> ToolResult:
        """See `Conversation.answer`."""
        return await self._do(self._answer(call))

    async def original(self, handle: str) -> Message:
        """See `Conversation.original`."""
        return (await self._do(self._original(handle)))[0]

    async def originals(self, handle: str) -> tuple[Message, ...]:
        """See `Conversation.originals`."""
        return await self._do(self._original(handle))

    async def edit(self, *edits: Edit) -> Receipt:
        """See `Conversation.edit`."""
        return await self._do(self._edit(edits, "edit"))

    async def compact(self, focus: str = "") -> Receipt:
        """See `Conversation.compact`."""
        return await self._do(self._compact(focus))

    async def undo(self, what: Receipt | int) -> Receipt:
        """See `Conversation.undo`."""
        return await self._do(self._undo(what))

    async def pin(self, handle: str) -> Receipt:
        """See `Conversation.pin`."""
        return await self._do(self._pin(handle, Pin))

    async def unpin(self, handle: str) -> Receipt:
        """See `Conversation.unpin`."""
        return await self._do(self._pin(handle, Unpin))

    async def fork(self, name: str, *, at: int | None = None) -> AsyncConversation:
        """See `Conversation.fork`."""
        await self._do(self._fork(name, at))
        if self._reopen is None:
            raise BadSetting("This conversation was put together by hand; open the fork by its name.")
        return await self._reopen(name)

    async def history(self, first: int = 1, last: int | None = None) -> list[HistoryEntry]:
        """See `Conversation.history`."""
        return await self._do(self._history(first, last))

    async def records(self) -> list[Record]:
        """See `Conversation.records`."""
        return await self._do(self._records())

    async def receipts(self, after: int = 0) -> list[Receipt]:
        """See `Conversation.receipts`."""
        return await self._do(self._receipts(after))

    async def events(self, since: int = 0) -> list[Event]:
        """See `Conversation.events`."""
        return await self._do(self._events(since))

    async def keep_run(self, run: AgentRun, *, owner: str = "") -> None:
        """See `Conversation.keep_run`."""
        await self._do(self._keep_run(run, owner))

    async def keep_step(self, step: AgentRunStep, *, owner: str = "") -> None:
        """See `Conversation.keep_step`."""
        await self._do(self._keep_step(step, owner))

    async def claim(self, owner: str, instead_of: LockHolder | None = None) -> LockHolder:
        """See `Conversation.claim`."""
        return await self._do(self._claim(owner, instead_of))

    async def release(self, owner: str) -> None:
        """See `Conversation.release`."""
        await self._do(self._release(owner))

    async def runs(self) -> list[AgentRun]:
        """See `Conversation.runs`."""
        return await self._do(self._runs())

    async def steps(self, run: str, after: int = 0) -> list[AgentRunStep]:
        """See `Conversation.steps`."""
        return await self._do(self._steps(run, after))

    async def totals(self) -> Totals:
        """See `Conversation.totals`."""
        return await self._do(self._totals())

    async def context(self, *, cost: Cost | None = None) -> Context:
        """See `Conversation.context`."""
        return await self._do(self._context(cost))

    async def as_of(self, turn: int) -> View:
        """See `Conversation.as_of`."""
        return await self._do(self._as_of(turn))

    async def explain(self, handle: str) -> str:
        """See `Conversation.explain`."""
        return await self._do(self._explain(handle))

    async def mends(self) -> list[Fix]:
        """See `Conversation.mends`."""
        async with self._lock:
            return self._mends()

    async def repair(self) -> RepairReport:
        """See `Conversation.repair`."""
        return await self._do(self._repair())

    async def verify(self) -> list[Finding]:
        """See `Conversation.verify`."""
        return await self._do(self._verify())

    async def erase(self, handle: str | int, *, reason: str = "", who: str = "") -> Erasure:
        """See `Conversation.erase`."""
        return await self._do(self._erase(handle, reason, who))

    async def age(self, ages: Ages, *, reason: str = "age", who: str = "", dry_run: bool = False) -> Aged:
        """See `Conversation.age`."""
        return await self._do(self._age(ages, reason, who, dry_run))

    async def erasures(self) -> list[Erasure]:
        """See `Conversation.erasures`."""
        return await self._do(self._erasures())

    async def leftovers(self) -> tuple[int, list[Finding]]:
        """See `Conversation.leftovers`."""
        return await self._do(self._leftovers())

    async def refresh(self) -> None:
        """See `Conversation.refresh`."""
        await self._do(self._engine.refresh())

    async def close(self) -> None:
        """See `Conversation.close`."""
        given_up = [task for task in self._engine.ahead.close() if isinstance(task, asyncio.Future)]
        if given_up:  # So that no loop ends with a task that has not heard of it yet.
            await asyncio.wait(given_up, timeout=_GIVEN_UP)
        if self._owns_store:
            await asyncio.to_thread(self._engine.store.close)

    async def __aenter__(self) -> AsyncConversation:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
