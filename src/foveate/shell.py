"""What both shells share: reading what users hand in, writing what they get back. Never waits.

`Conversation` and `AsyncConversation` perform the steps in here, and those of the engine, each in its own way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from . import given
from .core.edits import Edit, Pin, Target, Task, Unpin
from .core.enrich import own_message
from .core.events import Event, of_message, of_record
from .core.explain import explain, held_back
from .core.journal import Record
from .core.messages import Message, ToolCall, ToolResult
from .core.profiles import Profile
from .core.receipts import Receipt, receipt_of
from .core.remembering import forget
from .core.runs import AgentRun, AgentRunStep, Claim
from .core.stamps import Kept, Lease, Origin, Stamp, Stop, Usage
from .core.totals import Totals
from .core.view import Budget, View
from .engine import NOTHING_SAID, About, Engine, Step
from .errors import BadInput, BadMessage, BadSetting, StoreError, TipMoved
from .expansion.answering import Expander, Expanding
from .expansion.asking import Items, Lines, Matches
from .expansion.excerpts import Excerpt
from .expansion.hits import Hit
from .expansion.originals import decoded as _decoded
from .expansion.originals import part_of as _part
from .expansion.placing import Where
from .expansion.ranges import read_range
from .expansion.tool import expand_tool, with_instruction, with_tool
from .mirror import Mirror
from .plugins import Panel, Plugin
from .ports import Cost, Erased, Finding, Format, Head, Store, Watch
from .watching import Watching

if TYPE_CHECKING:
    from .core.ages import Ages
    from .core.context import Context
    from .engine.aging import Aged

__all__ = ["Historic", "Mend", "Repaired", "Shell"]

_log = logging.getLogger("foveate")
_NESTED = "The system prompt or the tools are nested too deeply to be sent. Flatten them."
_ATTEMPTS = 5
"""How often a list is compared anew after another writer came first."""
_DEPTH = 2
"""Lists in lists that are still taken for messages: tools often return a list each."""


NOT_EXPANDING = Expanding()
"""Models are not told of the tool; programs expand what they like, but for patterns."""


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
    """A legal copy of a conversation, and what it took."""

    body: dict[str, Any]
    """In wire form: `messages`, and `system` where the format keeps it apart."""
    changes: tuple[Mend, ...]


class Shell:
    """A conversation without the waiting."""

    def __init__(
        self,
        engine: Engine,
        on_event: Callable[[Event], object] | None = None,
        plugins: Sequence[Plugin] = (),
        expanding: Expanding = NOT_EXPANDING,
    ) -> None:
        self._engine = engine
        self._expander = Expander(engine, expanding, self._say, self._expand)
        self._panel = Panel(plugins, self._left_out)
        self._on_event = on_event
        self._watching = Watching()
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
        return self._engine.limits.budget()

    @property
    def expands(self) -> bool:
        """Whether the model is offered the tool `expand`, and its calls are answered by the conversation itself."""
        return self._expander.how.is_on

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

    def _about(
        self,
        time: int | None,
        origin: Origin | None,
        lease: Lease | None,
        kept: Sequence[Kept],
        metadata: Mapping[str, Any] | None,
        step: str = "",
    ) -> About:
        """What is said of a message beside it, looked at before anything is done."""
        if time is not None:
            given.whole("time= (milliseconds since 1970)", time)
        if origin is not None:
            given.origin(origin)
        if lease is not None:
            given.lease(lease)
        times = given.kept(kept)
        return About(
            time,
            origin,
            None,
            lease,
            {0: times} if times else {},
            given.metadata(metadata),
            step=given.text("step=", step),
        )

    def _read(self, said: object, depth: int = 0) -> list[Message]:
        if isinstance(said, Message):
            return [given.message(said)]
        if isinstance(said, list | tuple) and not _is_blocks(said):
            if depth > _DEPTH:
                raise BadMessage("The messages are lists in lists in lists. Hand in one list of messages.")
            return [message for item in said for message in self._read(item, depth + 1)]
        return list(self._engine.format.parse(said))

    def _append(self, said: object, after: str | None = None, about: About = NOTHING_SAID) -> Step[tuple[str, ...]]:
        if after is not None:
            given.text("after= (the id of a message)", after)
        messages = self._read(said)
        _check_results(messages)
        given.retention(about.kept.get(0, ()), messages)
        if about.kept:
            self._warn_without_retention()
        return (yield from self._add(messages, after, about))

    def _warn_without_retention(self) -> None:
        from .policies.retain_blocks import RetainBlocks  # Few conversations have such messages.

        if not any(isinstance(policy, RetainBlocks) for policy in self._engine.policies):
            _log.warning(
                "%s: kept= is recorded, but no policy here acts on it: choose the preset `retain`, say [retain] in a "
                "file of settings, or name retain_blocks() among the policies.",
                self.name,
            )

    def _add(self, messages: Sequence[Message], after: str | None, about: About) -> Step[tuple[str, ...]]:
        before = self._engine.head.position
        ids = yield from self._engine.append(messages, after=after, about=about, addition=self._panel.add_to)
        if (self._on_event or self._watching) and self._engine.head.position > before:
            rows = yield lambda: self._engine.store.messages(self.head, before + 1, self.head.position)
            self._watching.appended(rows)
            places = self._places()
            told = (of_message(row.position, row.id, row.stamp, places.get(row.id)) for row in rows)
            self._tell(event for events in told for event in events)
        return ids

    def _settle(self, system: object, tools: Sequence[Mapping[str, Any]], messages: object) -> Step[View]:
        self._weigh(system, tools)
        if messages is not None:
            yield from self._follow(messages)
        self._asked_with = (system, tools or ())  # An SDK's caller may say None for no tools.
        yield from self._expander.answer_open(self._asked_with[1])  # A reply that was appended, or an end in between.
        yield from self._add_to_results()
        before, places = self._engine.head.number, self._places()
        if self._watching.is_behind(self.head.position):
            self._watching.resumes(self._engine.view(), (yield from self._records()), self.head.position)
        with self._watching.planning() as facts:
            view = yield from self._engine.settle()
            records = yield from self._tell_edits(before, places)
            self._watching.settled(view, records, facts)
        self._watching.count()
        return view

    def _add_to_results(self) -> Step[None]:
        """Append what plugins add to tool results that the coming call is the first to show."""
        made = yield from self._panel.after_results(self._engine.projection, self.tip)
        if made is not None:
            yield from self._say(made.message, About(origin="plugin", kept={0: made.kept}))

    def _say(self, message: Message, about: About) -> Step[None]:
        """Append what nobody handed in. A host's own list of messages goes along without it."""
        is_mirrored = self._mirror is not None and self._mirror.tip == self.tip
        yield from self._add([message], None, about)
        if self._mirror is not None and is_mirrored:
            self._mirror.settled(self.tip, len(self))

    def _weigh(self, system: object, tools: Sequence[Mapping[str, Any]]) -> None:
        self._engine.limits.weigh(*self._offered(system, tools or ()), self._engine.counter)

    def _offered(
        self, system: object, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[object, Sequence[Mapping[str, Any]]]:
        """What the model is told beside the view: as the host says, with the tool `expand` where it is on."""
        if not self._expander.how.is_on:
            return system, tools
        return with_instruction(system), with_tool(tools, self.format.name)

    def _left_out(self, plugin: str, why: str) -> None:
        _log.warning("%s: the plugin %s is left out: %s", self.name, plugin, why)
        turn, now = self._engine.projection.facts.turn, self._engine.clock()
        self._tell([Event("plugin-failed", turn, now, "", policy=plugin, reason=why)])

    def _follow(self, said: object) -> Step[None]:
        """Make the history hold the whole list `said`: append its new tail, fork where it departs."""
        if not isinstance(said, list | tuple):
            raise BadMessage(f"messages= takes the whole list of messages, not {type(said).__name__}.")
        for _ in range(_ATTEMPTS):
            try:
                return (yield from self._follow_once(said))
            except TipMoved:  # Another writer came first: what is shared with the list is found out anew.
                yield from self._engine.refresh()
                self._mirror = None
        raise TipMoved(f"Other writers kept changing {self.name!r}; {_ATTEMPTS} attempts did not get through.")

    def _follow_once(self, said: Sequence[object]) -> Step[None]:
        if self._mirror is None or self._mirror.tip != self.tip:
            rows = yield lambda: self._engine.store.messages(self.head, 1, self.head.position)
            self._mirror = Mirror([own_message(_decoded(row), row.stamp) for row in rows], self.tip)
        mirror, self._mirror = self._mirror, None  # Read anew if anything below fails.
        shared, tail = mirror.compare(said, self._read)
        if shared < self._engine.head.position:
            kept = yield from self._engine.depart(shared)
            _log.debug("%s departs from its past after m%d; the former course is kept as %s", self.name, shared, kept)
        yield from self._append(tail, self.tip)
        mirror.settled(self.tip, len(self))
        self._mirror = mirror

    def _record(self, reply: object, usage: Usage | None, step: str = "", call: int = 0) -> Step[str]:
        given.whole("call= (the number of a model call)", call)
        if usage is not None:
            given.instance("usage=", usage, Usage, "a Usage")
        stop: Stop | None = None
        if isinstance(reply, Message):
            message, billed = reply, usage
        else:
            message, parsed = self._engine.format.parse_reply(reply)
            stop = self._engine.format.stop_of(reply)
            billed = usage or (parsed if parsed != Usage() else None)
        if message.role != "assistant":
            raise BadMessage(f"record() takes the model's answer, not a message of role {message.role}; use append().")
        mirrored = self._mirror is not None and self._mirror.tip == self.tip
        ids = yield from self._append(
            message, about=About(usage=billed, step=given.text("step=", step), call=call, stop=stop)
        )
        if self._mirror is not None and mirrored:
            self._mirror.recorded(message, self.tip, len(self))
        self._engine.limits.answered()
        try:
            yield from self._expander.answer_open(self._asked_with[1])
        except StoreError as error:  # The reply is recorded all the same; the next prompt answers what is open.
            _log.warning("%s: the calls of expand are answered later: %s", self.name, error)
        before, places = self._engine.head.number, self._places()
        yield from self._engine.plan_after_reply()
        yield from self._tell_edits(before, places)
        self._watching.count()
        return ids[-1]

    def _edit(self, edits: Sequence[Edit], author: str) -> Step[Receipt]:
        given.edits(tuple(edits))
        places = self._places()
        record = yield from self._engine.edit(edits, author)
        self._watching.recorded([record])
        self._tell(of_record(record, places))
        return receipt_of(record)

    def _compact(self, focus: str) -> Step[Receipt]:
        given.text("focus=", focus)
        before, places = self._engine.head.number, self._places()
        record = yield from self._engine.compact(focus)
        yield from self._tell_edits(before, places)
        return receipt_of(record)

    def _expand(self, handle: str | int, reason: str) -> Step[Message]:
        given.text("reason=", reason)
        parsed, rows = yield from self._engine.named(handle)
        original = _part(_decoded(rows[0]), parsed.path, str(handle))
        before, places = self._engine.head.number, self._places()
        yield from self._engine.expand(handle, reason)
        yield from self._tell_edits(before, places)
        return original

    def _expanded(
        self,
        handle: str | int,
        parts: Mapping[str, str | int | Sequence[int] | None],
        where: Where,
        reason: str,
    ) -> Step[Message | Excerpt]:
        asked = {name: value for name, value in parts.items() if value is not None}
        if where not in ("view", "tail", "auto"):
            raise BadSetting(f"where= is view, tail or auto, not {where!r:.60}.")
        if len(asked) > 1 or (asked and where != "view"):
            raise BadSetting("Expand one of lines=, items= and pattern=; a part is returned, and has no where=.")
        match asked:
            case {"lines": wanted}:
                return (yield from self._expander.part(Lines(handle, read_range(wanted, "lines="))))
            case {"items": wanted}:
                return (yield from self._expander.part(Items(handle, read_range(wanted, "items="))))
            case {"pattern": wanted}:
                return (yield from self._expander.part(Matches(handle, given.text("pattern=", wanted))))
            case _ if where == "view":
                return (yield from self._expander.show_in_place(handle, given.text("reason=", reason)))
            case _:
                return (yield from self._expander.show(handle, where, given.text("reason=", reason)))

    def _search(self, words: str, limit: int) -> Step[list[Hit]]:
        given.text("What is searched for", words)
        return (yield from self._expander.search(words, given.whole("limit=", limit, 1)))

    def _answer(self, call: object) -> Step[ToolResult]:
        wanted = _id_of(call)
        for one in self._expander.open_calls():
            if one.call_id == wanted:
                return (yield from self._expander.answer(one))
        raise BadInput(f"The newest reply has no call {wanted!r:.80} that waits for an answer; see open_calls().")

    def watch(self, watch: Watch) -> None:
        """From now on let `watch` be told what this conversation does; only one is told, the newest."""
        given.like("watch()", watch, ("begin", "end", "did", "count"), "a Watch, such as `instrument` makes")
        self._watching.begin(self.name, watch)

    def expand_tool(self) -> dict[str, Any]:
        """The definition of the tool `expand` in this conversation's format, for hosts that offer it themselves."""
        return expand_tool("anthropic" if self.format.name == "anthropic" else "openai")

    def _original(self, handle: str) -> Step[tuple[Message, ...]]:
        parsed, rows = yield from self._engine.named(handle)
        return tuple(_part(_decoded(row), parsed.path, handle) for row in rows)

    def _pin(self, handle: str, edit: type[Pin] | type[Unpin]) -> Step[Receipt]:
        parsed, rows = yield from self._engine.named(handle)
        for row in rows:
            _part(_decoded(row), parsed.path, handle)
        name = "pin" if edit is Pin else "unpin"
        edits = [edit(Target(row.id, parsed.path), reason=f"{handle} was named") for row in rows]
        return (yield from self._edit(edits, name))

    def _undo(self, what: Receipt | int) -> Step[Receipt]:
        if not isinstance(what, Receipt):
            given.whole("What undo() takes, if not a Receipt,", what, 1)
        first, last = (what.first, what.last) if isinstance(what, Receipt) else (what, what)
        places = self._places()
        record = yield from self._engine.undo(first, last)
        self._watching.recorded([record])
        self._tell(of_record(record, places))
        return receipt_of(record)

    def _fork(self, name: str, at: int | None) -> Step[Head]:
        given.text("The name of a fork", name)
        if at is not None:
            given.whole("at= (the number of a message)", at)
        return (yield from self._engine.fork(name, at))

    def _as_of(self, turn: int) -> Step[View]:
        return (yield from self._engine.as_of(given.whole("A turn", turn, 1)))

    def _receipts(self, after: int = 0) -> Step[list[Receipt]]:
        records = yield from self._records(given.whole("after= (the number of an edit)", after))
        return [receipt_of(record) for record in records if not all(isinstance(edit, Task) for edit in record.edits)]

    def _records(self, after: int = 0) -> Step[list[Record]]:
        found = yield lambda: self._engine.store.records(self.head, after)
        return [record for _, record in found]

    def _history(self, first: int, last: int | None) -> Step[list[Historic]]:
        end = self.head.position if last is None else given.whole("The last message of a history", last)
        given.whole("The first message of a history", first)
        rows = yield lambda: self._engine.store.messages(self.head, first, end)
        return [Historic(row.position, row.id, _decoded(row), row.stamp) for row in rows]

    def _explain(self, handle: str) -> Step[str]:
        parsed, _ = yield from self._engine.named(handle)
        records = yield from self._records()
        by_number = {number: record for record in records for number, _ in record.numbered()}
        entries = [entry for entry in self.view.entries if entry.position <= parsed.first <= entry.last]
        if not entries:
            return f"{handle} is not shown: its content is blank or an edit hides it."
        told = [explain(entry, by_number) for entry in entries]
        for entry in entries:
            told += held_back(entry, self._engine.projection, self._engine.frame, self._engine.policies)
        return "\n".join(told)

    def _keep_run(self, run: AgentRun, owner: str) -> Step[None]:
        given.instance("What keep_run() takes", run, AgentRun, "an AgentRun")
        given.text("owner=", owner)
        yield lambda: self._engine.store.put_run(self.head, run, owner=owner)

    def _keep_step(self, step: AgentRunStep, owner: str) -> Step[None]:
        given.instance("What keep_step() takes", step, AgentRunStep, "an AgentRunStep")
        given.text("owner=", owner)
        yield lambda: self._engine.store.put_step(self.head, step, owner=owner)

    def _claim(self, owner: str, instead_of: Claim | None) -> Step[Claim]:
        given.text("The owner of a claim", owner)
        found: Claim = yield lambda: self._engine.store.claim(self.head, owner, instead_of)
        return found

    def _release(self, owner: str) -> Step[None]:
        given.text("The owner of a claim", owner)
        yield lambda: self._engine.store.release(self.head, owner)

    def pulse(self, owner: str) -> tuple[Store, Callable[[], bool]]:
        """The store, and a call, for another thread, that gives it a sign of life for a claim on this conversation,
        whatever is done here meanwhile, and returns whether `owner` still has it. It may raise StoreError.
        """
        store, head = self._engine.store, self.head
        return store, lambda: store.beat(head, owner)

    def _runs(self) -> Step[list[AgentRun]]:
        found: list[AgentRun] = yield lambda: self._engine.store.runs(self.head)
        return [run for run in found if run.conversation == self.name]

    def _steps(self, run: str, after: int) -> Step[list[AgentRunStep]]:
        given.text("The id of a run", run)
        given.whole("after= (the number of a step)", after)
        found: list[AgentRunStep] = yield lambda: self._engine.store.steps(self.head, run, after)
        return found

    def _totals(self) -> Step[Totals]:
        return (yield from self._engine.totals())

    def _context(self, cost: Cost | None) -> Step[Context]:
        from .core.context import context_of  # What only meters need.

        if cost is not None:
            given.callable_("cost=", cost)
        totals = yield from self._engine.totals()
        view = self._engine.view()
        _, tools = self._offered(*self._asked_with) if view.budget.overhead else (None, ())
        weight = self._engine.limits.weight(tools, self._engine.counter)
        used = next((entry.stamp.usage for entry in reversed(view.entries) if entry.stamp.usage), None)
        return context_of(
            view, totals, messages=len(self), tools=weight, last=used, count=self._engine.counter, cost=cost
        )

    def _events(self, since: int) -> Step[list[Event]]:
        given.whole("since= (milliseconds since 1970)", since)
        rows = yield lambda: self._engine.store.messages(self.head, 1, self.head.position)
        records = yield from self._records()
        events = [event for row in rows for event in of_message(row.position, row.id, row.stamp)]
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
        body = msgspec.json.decode(self._engine.format.body(self.view, profile=self.profile))
        return Repaired(body, (*self._mends(), *left_out))

    def _prompted(self, view: View) -> dict[str, Any]:
        system, tools = self._offered(*self._asked_with)
        try:
            return self._engine.format.prompt(view, profile=self.profile, system=system, tools=tools)
        except RecursionError:
            raise BadInput(_NESTED) from None

    def _bodied(self, view: View) -> bytes:
        system, tools = self._offered(*self._asked_with)
        try:
            return self._engine.format.body(view, profile=self.profile, system=system, tools=tools)
        except RecursionError:
            raise BadInput(_NESTED) from None

    def _refused(self, error: BaseException) -> Step[View]:
        given.instance("What refused() takes", error, BaseException, "the exception that the SDK raised")
        self._engine.limits.refused(error, self.view)
        return (yield from self._settle(*self._asked_with, None))

    def _verify(self) -> Step[list[Finding]]:
        found: list[Finding] = yield lambda: self._engine.store.verify(self.head)
        return found

    def _erase(self, handle: str | int, reason: str, who: str) -> Step[Erased]:
        given.text("reason=", reason)
        given.text("who=", who)
        before, places = self._engine.head.number, self._places()
        done: Erased = yield from self._engine.erase(handle, who, reason)
        self._forget()
        yield from self._tell_edits(before, places)
        return done

    def _age(self, ages: Ages, reason: str, who: str, dry_run: bool) -> Step[Aged]:
        from .core.ages import read_ages  # What few need.

        given.text("reason=", reason)
        given.text("who=", who)
        given.instance("dry_run=", dry_run, bool, "True or False")
        rules = read_ages(ages)
        before, places = self._engine.head.number, self._places()
        done: Aged = yield from self._engine.age(rules, who, reason, dry_run=dry_run)
        if done.erased:
            self._forget()
        yield from self._tell_edits(before, places)
        return done

    def _forget(self) -> None:
        """What is kept only to be quick must not outlive what it was made of."""
        self._mirror = None
        self.format.rendered(self.view, profile=self.profile)
        forget()

    def _erasures(self) -> Step[list[Erased]]:
        found: list[Erased] = yield lambda: self._engine.store.erasures(self.head)
        return found

    def _leftovers(self) -> Step[tuple[int, list[Finding]]]:
        found: tuple[int, list[Finding]] = yield lambda: self._engine.store.leftovers(self.head)
        return found

    def _places(self) -> dict[str, int]:
        """Where each message is in the view, by its id: for whoever listens."""
        return {entry.id: i for i, entry in enumerate(self.view.entries)} if self._on_event else {}

    def _tell_edits(self, before: int, places: Mapping[str, int]) -> Step[list[Record]]:
        """Tell of the commits since the edit numbered `before`, and return them; none where nobody listens."""
        if not (self._on_event or self._watching) or self._engine.head.number <= before:
            return []
        found = yield lambda: self._engine.store.records(self.head, before)
        records = [record for _, record in found]
        self._watching.recorded(records)
        for record in records:
            self._tell(of_record(record, places))
        return records

    def _tell(self, events: Iterable[Event]) -> None:
        if self._on_event is None:
            return
        for event in events:
            try:
                self._on_event(event)
            except Exception:  # Whoever listens can neither break a run nor change it.
                _log.exception("a listener failed on %s", event.kind)


def _id_of(call: object) -> object:
    """The id of a call: of a ToolCall, or of the provider's block for one."""
    if isinstance(call, ToolCall):
        return call.call_id
    if isinstance(call, Mapping):
        return call.get("id")
    return call if isinstance(call, str) else getattr(call, "id", None)


def _is_blocks(given: Sequence[object]) -> bool:
    """Whether a list is the blocks of one message (tool results), not a list of messages."""
    return bool(given) and all(isinstance(item, Mapping) and "role" not in item and "type" in item for item in given)


def _check_results(messages: Sequence[Message]) -> None:
    for message in messages:
        if message.role == "tool" and (len(message.parts) != 1 or message.result is None):
            raise BadMessage("A message of role tool holds exactly one ToolResult; append one message per result.")
        if message.role != "tool" and any(type(part).__name__ == "ToolResult" for part in message.parts):
            raise BadMessage(f"A ToolResult belongs in a message of role tool, not {message.role}.")
