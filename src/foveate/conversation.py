"""The shell: a conversation as its users hold it, sync and async.

Both classes perform the steps of one engine (`engine.py`): here is only who waits for the store, and how what users
hand in and get back is read and written. Every method leaves the conversation as it was if it raises.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from .core import wire
from .core.edits import Edit, Pin, Target, Unpin
from .core.events import Event, added, of_record
from .core.explain import explain
from .core.journal import Record
from .core.messages import Message
from .core.planner import Plan
from .core.profiles import Profile
from .core.receipts import Receipt, receipt_of
from .core.stamps import Origin, Stamp, Usage
from .core.view import Budget, View
from .engine import Engine, Step
from .errors import BadMessage, BadSetting, UnknownHandle
from .mirror import Mirror
from .ports import Appended, Finding, Format, Head

__all__ = ["AsyncConversation", "Conversation", "Historic", "Mend", "Repaired"]

T = TypeVar("T")
_log = logging.getLogger("foveate")


class Historic(Struct, frozen=True):
    """A message of the history: what was said, where, and its facts."""

    position: int
    id: str
    message: Message
    stamp: Stamp

    @property
    def handle(self) -> str:
        return f"m{self.position}"


class Mend(Struct, frozen=True):
    """One thing that had to differ from what was appended, so that the provider takes it."""

    handle: str
    why: str


class Repaired(Struct, frozen=True):
    """A legal copy of a conversation, in wire form, and what it took."""

    messages: list[dict[str, Any]]
    changes: tuple[Mend, ...]


class _Shell:
    """What both shells share: reading what is handed in, writing what is handed out. Never waits."""

    def __init__(self, engine: Engine, on_event: Callable[[Event], object] | None = None) -> None:
        self._engine = engine
        self._on_event = on_event
        self._mirror: Mirror | None = None
        self._asked_with: tuple[object, Sequence[Mapping[str, Any]]] = (None, ())

    @property
    def name(self) -> str:
        """The name this conversation was opened under."""
        return self._engine.head.name

    @property
    def head(self) -> Head:
        """Where the conversation stands: its tip and its newest edit."""
        return self._engine.head

    @property
    def tip(self) -> str:
        """Id of the newest message; "" while there is none."""
        return self._engine.head.tip

    @property
    def format(self) -> Format:
        """The wire format that messages are read from and prompts written in."""
        return self._engine.format

    @property
    def profile(self) -> Profile:
        """The demands of the provider."""
        return self._engine.profile

    @property
    def budget(self) -> Budget:
        """What a request may hold, as far as it is known by now."""
        return self._engine.budget()

    @property
    def view(self) -> View:
        """What the model would see now without any new edit."""
        return self._engine.view()

    def __len__(self) -> int:
        """Number of messages in the history."""
        return self._engine.head.position

    def __repr__(self) -> str:
        head = self._engine.head
        return f"<{type(self).__name__} {head.name!r}: {head.position} messages, {head.number} edits>"

    # What follows are steps and readings that both shells perform in their own way.

    def _read(self, given: object) -> list[Message]:
        if isinstance(given, Message):
            return [given]
        if isinstance(given, list | tuple) and not _is_blocks(given):
            return [message for item in given for message in self._read(item)]
        return list(self._engine.format.parse(given))

    def _append(
        self,
        given: object,
        after: str | None,
        time: int | None,
        origin: Origin | None,
        usage: Usage | None = None,
    ) -> Step[tuple[str, ...]]:
        messages = self._read(given)
        _check_results(messages)
        before = self._engine.head.position
        ids = yield from self._engine.append(messages, after=after, time=time, origin=origin, usage=usage)
        if self._on_event and self._engine.head.position > before:
            rows = yield lambda: self._engine.store.messages(self.head, before + 1, self.head.position)
            self._tell(added(row.position, row.id, row.stamp) for row in rows)
        return ids

    def _settle(self, system: object, tools: Sequence[Mapping[str, Any]], messages: object) -> Step[View]:
        if messages is not None:
            yield from self._follow(messages)
        self._asked_with = (system, tools)
        self._engine.weigh(system, tools)
        before = self._engine.head.number
        view = yield from self._engine.settle()
        yield from self._tell_edits(before)
        return view

    def _follow(self, given: object) -> Step[None]:
        """Make the history hold the whole list `given`: append its new tail, fork where it departs."""
        if not isinstance(given, list | tuple):
            raise BadMessage(f"messages= takes the whole list of messages, not {type(given).__name__}.")
        if self._mirror is None or self._mirror.tip != self.tip:
            rows = yield lambda: self._engine.store.messages(self.head, 1, self.head.position)
            self._mirror = Mirror([_decoded(row) for row in rows], self.tip)
        mirror, self._mirror = self._mirror, None  # Read anew if anything below fails.
        shared, tail = mirror.compare(given, self._read)
        if shared < self._engine.head.position:
            kept = yield from self._engine.depart(shared)
            _log.info("%s departs from its past after m%d; the former course is kept as %s", self.name, shared, kept)
        yield from self._append(tail, None, None, None)
        mirror.settled(self.tip)
        self._mirror = mirror

    def _record(self, reply: object, usage: Usage | None) -> Step[str]:
        if isinstance(reply, Message):
            message, billed = reply, usage
        else:
            message, parsed = self._engine.format.parse_reply(reply)
            billed = usage or (parsed if parsed != Usage() else None)
        if message.role != "assistant":
            raise BadMessage(f"record() takes the model's answer, not a message of role {message.role}; use append().")
        mirrored = self._mirror is not None and self._mirror.tip == self.tip
        ids = yield from self._append(message, None, None, None, billed)
        if self._mirror is not None and mirrored:
            self._mirror.recorded(message, self.tip)
        self._engine.answered()
        before = self._engine.head.number
        yield from self._engine.plan_after_reply()
        yield from self._tell_edits(before)
        return ids[-1]

    def _edit(self, edits: Sequence[Edit], author: str) -> Step[Receipt]:
        record = yield from self._engine.edit(edits, author)
        self._tell(of_record(record))
        return receipt_of(record)

    def _expand(self, handle: str) -> Step[Message]:
        parsed, rows = yield from self._engine.named(handle)
        before = self._engine.head.number
        rows = yield from self._engine.expand(handle)
        yield from self._tell_edits(before)
        return _part(_decoded(rows[0]), parsed.path, handle)

    def _original(self, handle: str) -> Step[tuple[Message, ...]]:
        parsed, rows = yield from self._engine.named(handle)
        return tuple(_part(_decoded(row), parsed.path, handle) for row in rows)

    def _pin(self, handle: str, edit: type[Pin] | type[Unpin]) -> Step[Receipt]:
        _, rows = yield from self._engine.named(handle)
        name = "pin" if edit is Pin else "unpin"
        return (yield from self._edit([edit(Target(row.id), reason=f"{handle} was named") for row in rows], name))

    def _undo(self, what: Receipt | int) -> Step[Receipt]:
        first, last = (what, what) if isinstance(what, int) else (what.first, what.last)
        record = yield from self._engine.undo(first, last)
        self._tell(of_record(record))
        return receipt_of(record)

    def _records(self) -> Step[list[Record]]:
        found = yield lambda: self._engine.store.records(self.head)
        return [record for _, record in found]

    def _history(self, first: int, last: int | None) -> Step[list[Historic]]:
        end = self.head.position if last is None else last
        rows = yield lambda: self._engine.store.messages(self.head, first, end)
        return [Historic(row.position, row.id, _decoded(row), row.stamp) for row in rows]

    def _explain(self, handle: str) -> Step[str]:
        parsed, _ = yield from self._engine.named(handle)
        records = yield from self._records()
        by_number = {number: record for record in records for number, _ in record.numbered()}
        entries = [entry for entry in self.view.entries if entry.position <= parsed.first <= entry.last]
        if not entries:
            return f"{handle} is not shown: its content is blank or an edit hides it."
        return "\n".join(explain(entry, by_number) for entry in entries)

    def _events(self, since: int) -> Step[list[Event]]:
        rows = yield lambda: self._engine.store.messages(self.head, 1, self.head.position)
        records = yield from self._records()
        events = [added(row.position, row.id, row.stamp) for row in rows]
        events += [event for record in records for event in of_record(record)]
        return sorted((event for event in events if event.time >= since), key=lambda event: (event.time, event.turn))

    def _mends(self) -> list[Mend]:
        return [Mend(entry.handle, entry.mended) for entry in self.view.entries if entry.mended]

    def _repair(self) -> Step[Repaired]:
        rows = yield from self._history(1, None)
        shown = {entry.position for entry in self.view.entries} | {
            position for entry in self.view.entries if entry.span for position in range(entry.position, entry.last + 1)
        }
        left_out = [
            Mend(row.handle, "a message without content is refused") for row in rows if row.position not in shown
        ]
        messages = self._engine.format.render(entry.message for entry in self.view.entries)
        return Repaired(messages, (*self._mends(), *left_out))

    def _prompted(self, view: View) -> dict[str, Any]:
        system, tools = self._asked_with
        return self._engine.format.prompt(view, profile=self.profile, system=system, tools=tools)

    def _refused(self, error: BaseException) -> Step[View]:
        self._engine.refused(error)
        return (yield from self._settle(*self._asked_with, None))

    def _tell_edits(self, before: int) -> Step[None]:
        if self._on_event and self._engine.head.number > before:
            records = yield lambda: self._engine.store.records(self.head, before)
            for _, record in records:
                self._tell(of_record(record))

    def _tell(self, events: Iterable[Event]) -> None:
        if self._on_event is None:
            return
        for event in events:
            try:
                self._on_event(event)
            except Exception:  # Whoever listens can neither break a run nor change it.
                _log.exception("a listener failed on %s", event.kind)


class Conversation(_Shell):
    """A conversation that never outgrows its window. Made by `open_conversation`; may be used from several threads."""

    def __init__(
        self,
        engine: Engine,
        *,
        on_event: Callable[[Event], object] | None = None,
        owns_store: bool = True,
        reopen: Callable[[str], Conversation] | None = None,
    ) -> None:
        super().__init__(engine, on_event)
        self._lock = threading.RLock()
        self._owns_store = owns_store
        self._reopen = reopen

    def _do(self, step: Step[T]) -> T:
        with self._lock:
            try:
                effect = next(step)
                while True:
                    try:
                        answer = effect()
                    except BaseException as error:  # The step decides what a failure of the store means.
                        effect = step.throw(error)
                    else:
                        effect = step.send(answer)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]

    def append(
        self, message: object, *, after: str | None = None, time: int | None = None, origin: Origin | None = None
    ) -> tuple[str, ...]:
        """Add what was said at the tip, all or nothing, and return the ids of the messages added.

        `message`: a wire message of the conversation's format (dict or SDK object), a list of them, tool-result
        blocks, a core `Message`, or a str (the user said it). `after`: id of the message it follows; a retry that
        names it adds nothing twice. `time`: milliseconds since 1970, by default the clock's. `origin`: where it
        came from, if its role does not say. Raises BadMessage, and TipMoved if something else follows `after`.
        """
        return self._do(self._append(message, after, time, origin))

    def plan(self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = ()) -> Plan:
        """A dry run: the edits the next prompt would commit, and the views before and after. Changes nothing."""
        with self._lock:
            self._engine.weigh(system, tools)
            return self._engine.plan()

    def settle(
        self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = (), messages: object = None
    ) -> View:
        """Plan, commit and check, and return the view: `prompt` without writing it down."""
        return self._do(self._settle(system, tools, messages))

    def prompt(
        self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = (), messages: object = None
    ) -> dict[str, Any]:
        """The keyword arguments of the SDK call for the next turn; commits the plan that makes them fit.

        `messages`: the whole list, for whoever keeps one: its new tail is appended, and where it departs from the
        history the conversation forks (the former course is kept under its name with `~1`, `~2`, ...). `system` and
        `tools` are counted and passed through. Raises BadSetting if neither window nor model is known, DoesNotFit
        if system prompt and pending request alone do not fit.
        """
        with self._lock:
            return self._prompted(self._do(self._settle(system, tools, messages)))

    def body(self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """Like `prompt`, as the JSON bytes of the request body, without cache marks."""
        with self._lock:
            view = self._do(self._settle(system, tools, None))
            return self.format.body(view, profile=self.profile, system=system, tools=tools)

    def record(self, reply: object, *, usage: Usage | None = None) -> str:
        """Add the model's answer and what it was billed; returns its id.

        `reply`: the SDK's response, its dict form, or a core `Message`. What the provider measured calibrates later
        estimates.
        """
        return self._do(self._record(reply, usage))

    def refused(self, error: BaseException) -> dict[str, Any]:
        """The provider said the prompt is too long: learn the limit, plan smaller, and return the new prompt.

        Raises `error` itself if it says something else, and Refused if a prompt is refused twice in a row.
        """
        with self._lock:
            return self._prompted(self._do(self._refused(error)))

    def expand(self, handle: str) -> Message:
        """The original behind a handle, which the next view shows again. For a span: its first message."""
        return self._do(self._expand(handle))

    def original(self, handle: str) -> Message:
        """What was appended, whatever the view shows of it. Changes nothing. Raises UnknownHandle."""
        return self._do(self._original(handle))[0]

    def originals(self, handle: str) -> tuple[Message, ...]:
        """The same for all messages of a span such as `m3-m17`."""
        return self._do(self._original(handle))

    def edit(self, *edits: Edit) -> Receipt:
        """Commit edits of your own. Raises BadEdit, and changes nothing, where one cannot apply."""
        return self._do(self._edit(edits, "edit"))

    def undo(self, what: Receipt | int) -> Receipt:
        """Take back what a receipt, or the edit with a number, did. Returns the receipt of that."""
        return self._do(self._undo(what))

    def pin(self, handle: str) -> Receipt:
        """Keep a message as it is shown now: no policy may shrink or hide it."""
        return self._do(self._pin(handle, Pin))

    def unpin(self, handle: str) -> Receipt:
        """Take a pin back."""
        return self._do(self._pin(handle, Unpin))

    def fork(self, name: str, *, at: int | None = None) -> Conversation:
        """A new conversation that shares the past up to message number `at` (default: all of it)."""
        self._do(self._engine.fork(name, at))
        if self._reopen is None:
            raise BadSetting("This conversation was put together by hand; open the fork by its name.")
        return self._reopen(name)

    def history(self, first: int = 1, last: int | None = None) -> list[Historic]:
        """Everything that was appended, from message number `first` to `last`, whatever the view shows."""
        return self._do(self._history(first, last))

    def records(self) -> list[Record]:
        """The journal: every commit that changed the view, in order."""
        return self._do(self._records())

    def receipts(self) -> list[Receipt]:
        """What each applied plan and each edit by hand did, in order."""
        return [receipt_of(record) for record in self.records()]

    def events(self, since: int = 0) -> list[Event]:
        """Everything that happened, in order of time, from `since` (milliseconds since 1970) on."""
        return self._do(self._events(since))

    def as_of(self, turn: int) -> View:
        """What the model saw at call number `turn`."""
        return self._do(self._engine.as_of(turn))

    def explain(self, handle: str) -> str:
        """Why the message behind a handle looks as it does in the view, in sentences."""
        return self._do(self._explain(handle))

    def mends(self) -> list[Mend]:
        """What differs in the view from what was appended only because the provider would refuse it."""
        with self._lock:
            return self._mends()

    def repair(self) -> Repaired:
        """A legal copy of the view in wire form, and each change that it took. Nothing of the history is lost."""
        return self._do(self._repair())

    def verify(self) -> list[Finding]:
        """Re-hash everything that is stored of this conversation and report what is wrong, and where."""
        return self._do(_verify(self._engine))

    def refresh(self) -> None:
        """Take in what other processes appended or edited."""
        self._do(self._engine.refresh())

    def close(self) -> None:
        """Save a snapshot and let go of the store, if this conversation opened it."""
        if self._owns_store:
            self._engine.store.close()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class AsyncConversation(_Shell):
    """The same for asyncio: every method that touches the store is awaited, and the store works in a thread."""

    def __init__(
        self,
        engine: Engine,
        *,
        on_event: Callable[[Event], object] | None = None,
        owns_store: bool = True,
        reopen: Callable[[str], Awaitable[AsyncConversation]] | None = None,
    ) -> None:
        super().__init__(engine, on_event)
        self._lock = asyncio.Lock()
        self._owns_store = owns_store
        self._reopen = reopen

    async def _do(self, step: Step[T]) -> T:
        async with self._lock:
            return await self._perform(step)

    async def _perform(self, step: Step[T]) -> T:
        try:
            effect = next(step)
            while True:
                try:
                    # Shielded: a cancelled task must not leave a write done in the store and unknown to the engine.
                    answer = await asyncio.shield(asyncio.to_thread(effect))
                except Exception as error:
                    effect = step.throw(error)
                else:
                    effect = step.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    async def append(
        self, message: object, *, after: str | None = None, time: int | None = None, origin: Origin | None = None
    ) -> tuple[str, ...]:
        """See `Conversation.append`."""
        return await self._do(self._append(message, after, time, origin))

    async def plan(self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = ()) -> Plan:
        """See `Conversation.plan`."""
        async with self._lock:
            self._engine.weigh(system, tools)
            return self._engine.plan()

    async def settle(
        self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = (), messages: object = None
    ) -> View:
        """See `Conversation.settle`."""
        return await self._do(self._settle(system, tools, messages))

    async def prompt(
        self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = (), messages: object = None
    ) -> dict[str, Any]:
        """See `Conversation.prompt`."""
        async with self._lock:
            return self._prompted(await self._perform(self._settle(system, tools, messages)))

    async def body(self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """See `Conversation.body`."""
        async with self._lock:
            view = await self._perform(self._settle(system, tools, None))
            return self.format.body(view, profile=self.profile, system=system, tools=tools)

    async def record(self, reply: object, *, usage: Usage | None = None) -> str:
        """See `Conversation.record`."""
        return await self._do(self._record(reply, usage))

    async def refused(self, error: BaseException) -> dict[str, Any]:
        """See `Conversation.refused`."""
        async with self._lock:
            return self._prompted(await self._perform(self._refused(error)))

    async def expand(self, handle: str) -> Message:
        """See `Conversation.expand`."""
        return await self._do(self._expand(handle))

    async def original(self, handle: str) -> Message:
        """See `Conversation.original`."""
        return (await self._do(self._original(handle)))[0]

    async def originals(self, handle: str) -> tuple[Message, ...]:
        """See `Conversation.originals`."""
        return await self._do(self._original(handle))

    async def edit(self, *edits: Edit) -> Receipt:
        """See `Conversation.edit`."""
        return await self._do(self._edit(edits, "edit"))

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
        await self._do(self._engine.fork(name, at))
        if self._reopen is None:
            raise BadSetting("This conversation was put together by hand; open the fork by its name.")
        return await self._reopen(name)

    async def history(self, first: int = 1, last: int | None = None) -> list[Historic]:
        """See `Conversation.history`."""
        return await self._do(self._history(first, last))

    async def records(self) -> list[Record]:
        """See `Conversation.records`."""
        return await self._do(self._records())

    async def receipts(self) -> list[Receipt]:
        """See `Conversation.receipts`."""
        return [receipt_of(record) for record in await self.records()]

    async def events(self, since: int = 0) -> list[Event]:
        """See `Conversation.events`."""
        return await self._do(self._events(since))

    async def as_of(self, turn: int) -> View:
        """See `Conversation.as_of`."""
        return await self._do(self._engine.as_of(turn))

    async def explain(self, handle: str) -> str:
        """See `Conversation.explain`."""
        return await self._do(self._explain(handle))

    async def mends(self) -> list[Mend]:
        """See `Conversation.mends`."""
        async with self._lock:
            return self._mends()

    async def repair(self) -> Repaired:
        """See `Conversation.repair`."""
        return await self._do(self._repair())

    async def verify(self) -> list[Finding]:
        """See `Conversation.verify`."""
        return await self._do(_verify(self._engine))

    async def refresh(self) -> None:
        """See `Conversation.refresh`."""
        await self._do(self._engine.refresh())

    async def close(self) -> None:
        """See `Conversation.close`."""
        if self._owns_store:
            await asyncio.to_thread(self._engine.store.close)

    async def __aenter__(self) -> AsyncConversation:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


def _verify(engine: Engine) -> Step[list[Finding]]:
    found: list[Finding] = yield lambda: engine.store.verify(engine.head)
    return found


def _decoded(row: Appended) -> Message:
    return wire.decode_message(row.body) if row.body else Message("user", ())


def _part(message: Message, path: tuple[int, ...], handle: str) -> Message:
    """The message, or a message that holds only the part at `path`."""
    if not path:
        return message
    try:
        part: Any = message.parts[path[0]]
        if len(path) == 2:
            part = part.content[path[1]]
    except (IndexError, AttributeError):
        raise UnknownHandle(handle, f"That message has {len(message.parts)} parts.") from None
    return Message(message.role, (part,))


def _is_blocks(given: Sequence[object]) -> bool:
    """Whether a list is the blocks of one message (tool results), not a list of messages."""
    return bool(given) and all(isinstance(item, Mapping) and "role" not in item and "type" in item for item in given)


def _check_results(messages: Sequence[Message]) -> None:
    for message in messages:
        if message.role == "tool" and (len(message.parts) != 1 or message.result is None):
            raise BadMessage("A message of role tool holds exactly one ToolResult; append one message per result.")
        if message.role != "tool" and any(type(part).__name__ == "ToolResult" for part in message.parts):
            raise BadMessage(f"A ToolResult belongs in a message of role tool, not {message.role}.")
