"""One conversation: append -> plan -> commit -> view, as steps that a shell performs.

Every method that touches the store is a generator: it yields what the store should do and gets the answer back. So
`Conversation` and `AsyncConversation` (`conversation.py`) differ only in how they perform a step, and nothing here
waits. State changes only after the store has said yes: a failure anywhere leaves the conversation as it was.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from inspect import iscoroutine
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from .core import ids, wire
from .core.counting import tokens_of
from .core.edits import Edit, Hide, Replace, Restore, Span, Summarize, Target, Task, Unpin, meet, named_by
from .core.enrich import own_message
from .core.handles import Handle, parse_handle
from .core.journal import Record
from .core.messages import Message
from .core.planner import Plan, Policy, Rung, draw_up
from .core.profiles import Profile
from .core.projection import Projection
from .core.rules import Checker
from .core.showing import applies
from .core.snapshots import Row, Snapshot
from .core.stamps import Kept, Lease, Origin, Retention, Stamp, Usage
from .core.standing import Standing, gaps, way_back
from .core.summaries import Answer, SummaryRequest, read_answer
from .core.view import Entry, Moment, Prices, View
from .errors import (
    BadEdit,
    BadInput,
    BadSetting,
    CompactionFailed,
    IllegalView,
    NotExpandable,
    StalePlan,
    TipMoved,
    UnknownHandle,
)
from .limits import Limits
from .ports import Appended, Clock, Format, Head, Store, Summarizer, TokenCounter

__all__ = ["NOTHING_SAID", "About", "Effect", "Engine", "Step"]

T = TypeVar("T")
Effect = Callable[[], Any]
"""Something the shell does: a call of the store."""
Step = Generator[Effect, Any, T]
"""Yields effects, receives what they return, returns T."""

_log = logging.getLogger("foveate")
_ATTEMPTS = 5
"""How often an append or a plan is tried anew after another writer came first."""
_ROUNDS = 3
"""How often the answers to a plan's questions may lead to further questions."""
_STEM = 480
"""Characters of a name that the name of its former course begins with: stores take 500."""
_ID = re.compile("[0-9a-f]{40}")
_SNAPSHOT_EVERY = 256
"""Messages and edits after which a snapshot is due, at least."""
_ORIGINS: dict[str, Origin] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_TYPES: dict[str, Origin] = {"retry-context": "derived"}
"""What an application's own types of messages are, if they are not results and not what their role says."""


class About(Struct, frozen=True):
    """What is said of messages when they are appended, beside the messages."""

    time: int | None = None
    """Milliseconds since 1970; None: now."""
    origin: Origin | None = None
    usage: Usage | None = None
    lease: Lease | None = None
    kept: Mapping[int, tuple[Kept, ...]] = {}
    """How long each part is shown, for messages with retention, by their place in what is appended, from 0."""
    metadata: str = ""

    def origin_of(self, message: Message) -> Origin:
        """Where a message came from: as was said, else by its type, else by its role."""
        kind = self.lease.message_type if self.lease else ""
        if self.origin or message.role != "user" or kind in ("", "user-input", "system"):
            return self.origin or _ORIGINS[message.role]
        return _TYPES.get(kind, "tool")


NOTHING_SAID = About()
"""Messages that speak for themselves."""

Addition = Callable[[Sequence[Message], About], Step[tuple[Sequence[Message], About]]]
"""Adds to messages that are about to be appended, and says so."""


_Begun = dict[str, tuple[Task, Task | None]]
"""Attempts that a plan has begun, and what stood before them, by policy."""


class Engine:
    """The state of one open conversation, and the steps that change it."""

    def __init__(
        self,
        store: Store,
        format: Format,
        profile: Profile,
        counter: TokenCounter,
        clock: Clock,
        *,
        policies: Sequence[Policy],
        floor: Sequence[Rung],
        limits: Limits,
        prices: Prices,
        summarizer: Summarizer | None = None,
    ) -> None:
        self.store, self.format, self.profile, self.counter, self.clock = store, format, profile, counter, clock
        self.policies, self.floor, self.prices = tuple(policies), tuple(floor), prices
        self.summarizer = summarizer
        self.limits = limits
        self.head: Head
        self.projection = Projection(profile, counter)
        self._checker = Checker(profile)
        self._turn = 0  # number of the model call that was begun last
        self._asked: tuple[str, int] | None = None  # tip and newest edit that the last, still unanswered call saw
        self._requested: int | None = None  # when the last request was made
        self._shown: tuple[Entry, ...] | None = None  # the view that was settled last
        self._branch: int | None = None  # that the projection shows
        self._saved = 0  # position + number at the last snapshot

    # ---------------------------------------------------------------------------------------------------- opening

    def open(self, tenant: str, name: str, *, create: bool = True) -> Step[None]:
        """Resume from the newest snapshot, or from the beginning."""
        self.head = yield partial(self.store.open, tenant, name, create=create)
        yield from self._load()

    def _load(self) -> Step[None]:
        found = yield partial(self.store.snapshot, self.head)
        projection = Projection(self.profile, self.counter)
        snapshot = Snapshot.decode(found[2]) if found else None
        if snapshot:
            rows = yield partial(self.store.pick, self.head, snapshot.positions())
            projection = Projection.resume(snapshot, map(_row, rows), self.profile, self.counter)
            self._saved = snapshot.position + snapshot.number
        self.projection = yield from self._caught_up(projection)
        self._measure()

    def _measure(self) -> None:
        """Let the newest measured prompt correct the estimates."""
        self.limits.measured(self.projection.facts.measured, self.projection.facts.estimated)
        self._branch, self._asked = self.head.branch, None

    def _caught_up(self, projection: Projection) -> Step[Projection]:
        """The same projection with what the store has beyond it."""
        rows = yield partial(self.store.messages, self.head, projection.position + 1, self.head.position)
        records = yield partial(self.store.records, self.head, projection.number)
        for one in _in_order(rows, [record for _, record in records]):
            if isinstance(one, Record):
                yield from self._fold(projection, one)
            else:
                projection.append(_row(one))
        if any(row.stamp.origin == "assistant" for row in rows):
            self._asked = None  # somebody has answered
        return projection

    def _fold(self, projection: Projection, record: Record) -> Step[None]:
        """Apply one record, fetching what it names or restores and the projection does not hold."""
        named = [id for id in named_by(record.edits) if not projection.holds(id)]
        where: dict[str, int] = {}
        if named:
            where = yield partial(self.store.locate, self.head, named)
        runs = projection.needs(record, where)
        projection.apply(record, where)
        missing = sorted({position for first, last in runs for position in projection.missing(first, last)})
        if missing:
            rows = yield partial(self.store.pick, self.head, missing)
            earlier = yield partial(self.store.records, self.head)
            records = [*(old for _, old in earlier if old.first < record.first), record]
            ends = named_by(Restore(edit.targets) for old in records for edit in old.edits if isinstance(edit, Restore))
            where = yield partial(self.store.locate, self.head, ends)
            projection.reveal(map(_row, rows), records, where)

    def refresh(self) -> Step[None]:
        """Take in what other writers did."""
        self.head = yield partial(self.store.open, self.head.tenant, self.head.name, create=False)
        yield from self._follow_head()

    def _follow_head(self) -> Step[None]:
        """Bring the projection to where the head is: after another writer, or after a failure in between."""
        if self._branch != self.head.branch:  # The conversation departed from the past that is shown.
            yield from self._load()
        elif (self.projection.position, self.projection.number) != (self.head.position, self.head.number):
            self.projection = yield from self._caught_up(self.projection.copy())

    # -------------------------------------------------------------------------------------------------- appending

    def append(
        self,
        messages: Sequence[Message],
        *,
        after: str | None = None,
        about: About = NOTHING_SAID,
        addition: Addition | None = None,
    ) -> Step[tuple[str, ...]]:
        """Add messages at the tip; after `after`, if named, where what is there already is not added twice.

        `addition` is called once, with those that are not there yet.
        """
        if not messages:
            return ()
        yield from self._follow_head()
        for _ in range(_ATTEMPTS):
            if after is not None and after != self.head.tip:
                return (yield from self._append_after(after, messages, about, addition))
            if addition:
                messages, about = yield from addition(messages, about)
                addition = None
            bodies = [wire.encode_message(message) for message in messages]
            rows = self._chained(messages, bodies, about)
            try:
                self.head = yield partial(self.store.append, self.head, rows)
            except TipMoved:
                yield from self.refresh()
                if after and not (yield partial(self.store.locate, self.head, [after])):
                    raise  # The conversation departed from the past that holds it.
                continue
            for row, message in zip(rows, messages, strict=True):
                self.projection.append(Row(row.position, row.id, message, row.stamp, len(row.body)))
            if any(message.role == "assistant" for message in messages):
                self._asked = None
                self._measure()
            yield from self._maybe_snapshot()
            return tuple(row.id for row in rows)
        raise TipMoved(f"Other writers kept extending {self.head.name!r}; {_ATTEMPTS} attempts did not get through.")

    def _append_after(
        self,
        after: str,
        messages: Sequence[Message],
        about: About,
        addition: Addition | None,
    ) -> Step[tuple[str, ...]]:
        """A retry: what already follows `after` is recognised, whatever was added to it; the rest is added if it is the
        tip.
        """
        start = 0
        if after:
            found = yield partial(self.store.locate, self.head, [after])
            if after not in found:
                raise BadInput(f"There is no message {after!r} in {self.head.name!r} to append after.")
            start = found[after]
        there = yield partial(self.store.messages, self.head, start + 1, start + len(messages))
        parent = after
        known: list[str] = []
        for row in there:
            own = own_message(_row(row).message, row.stamp)
            if own is not None:  # Else it is what plugins said in between.
                if len(known) == len(messages):
                    break
                message = messages[len(known)]
                expected = ids.message_id(parent, ids.body_hash(wire.encode_message(message)))
                if row.id != expected and own != message:
                    raise TipMoved(
                        f"Other messages follow {after!r} in {self.head.name!r}: its tip is {self.head.tip!r}, at "
                        f"position {self.head.position}. Append after that, or fork at position {start}."
                    )
                known.append(row.id)
            parent = row.id
        rest = yield from self.append(messages[len(known) :], after=parent, about=about, addition=addition)
        return (*known, *rest)

    def _chained(
        self,
        messages: Sequence[Message],
        bodies: Sequence[bytes],
        about: About,
    ) -> list[Appended]:
        now = self.clock() if about.time is None else about.time
        parent, link, position = self.head.tip, self.head.seal, self.head.position
        turn, asked = self.projection.facts.turn, bool(self._asked)
        if asked:
            turn = self._begun()
        rows: list[Appended] = []
        tools: dict[str, str] = {}
        sequence = self.projection.facts.sequence
        for i, (message, body) in enumerate(zip(messages, bodies, strict=True)):
            source = ""
            kept = about.kept.get(i)
            sequence += 1 if kept else 0
            if message.role == "assistant":
                turn, asked = (turn if asked else turn + 1), False
                tools.update((call.call_id, call.name) for call in message.calls)
            elif (result := message.result) is not None:
                source = result.name or tools.get(result.call_id) or self.projection.tool_of(result.call_id)
            is_reply = about.usage is not None and message.role == "assistant"
            stamp = Stamp(
                turn,
                now,
                tokens_of(message, self.counter),
                about.origin_of(message),
                source,
                about.usage if is_reply else None,
                self.limits.estimate if is_reply else 0,
                about.lease,
                Retention(sequence, kept) if kept else None,
                about.metadata,
            )
            digest = ids.body_hash(body)
            parent = ids.message_id(parent, digest)
            link = ids.seal(link, parent, wire.encode_stamp(stamp))
            position += 1
            rows.append(Appended(position, parent, link, stamp, body, digest))
        return rows

    # --------------------------------------------------------------------------------------------------- planning

    def _begun(self) -> int:
        """Model calls begun so far."""
        return max(self.projection.facts.turn, self._turn)

    def next_turn(self) -> int:
        """Number of the model call a view is for: the last one's again only if nothing changed since it was made."""
        return self._begun() if self._asked == (self.head.tip, self.head.number) else self._begun() + 1

    def frame(self, entries: tuple[Entry, ...]) -> View:
        """Entries as a view with the facts of this moment."""
        return self._framed(entries, tuple(self.projection.tasks.values()))

    def _framed(self, entries: tuple[Entry, ...], tasks: tuple[Task, ...]) -> View:
        now, turn, facts = self.clock(), self.next_turn(), self.projection.facts
        last = self._requested or facts.replied
        moment = Moment(now, (now - last) / 1000 if last else None, self.prices)
        return View(entries, turn, self.limits.budget(), moment, tasks, facts.retained(turn))

    def view(self) -> View:
        """What the model would see without any new edit."""
        return self.frame(self.projection.entries())

    def _require_window(self) -> None:
        if self.floor:
            self.limits.require_window()

    def plan(self) -> Plan:
        """A dry run: what `settle` would commit now, and what the model would see. Changes nothing."""
        self._require_window()
        return draw_up(self.projection, self.frame, self.policies, self.floor)[0]

    def settle(self) -> Step[View]:
        """Plan, commit and check: the view for the next model call, which begins with it."""
        self._require_window()
        yield from self._follow_head()
        answers: dict[str, Answer] = {}
        begun: _Begun = {}
        for _ in range(_ATTEMPTS):
            try:
                plan, draft = yield from self._answered(self.floor, answers, begun)
                if plan:
                    yield from self._commit(plan.edits, "plan", draft, plan.before, plan.after)
            except StalePlan:
                yield from self.refresh()
                continue
            break
        else:
            raise StalePlan(f"Other writers kept changing the view of {self.head.name!r}; plan again later.")
        view = self.view() if plan else plan.before
        if all(entry.message.role == "system" for entry in view.entries):
            raise BadInput("There is nothing to send: append a message first.")
        violations = self._checker.check(view.entries)
        if violations:
            raise IllegalView(violations)
        self._turn, self._asked, self._requested = view.turn, (self.head.tip, self.head.number), view.moment.now
        self._shown = view.entries
        self.limits.estimated(view)
        return view

    def plan_after_reply(self) -> Step[None]:
        """Let policies act once a reply is recorded, so that those that count do so at their count. No floor:
        nothing is sent.
        """
        if not self.policies or self.limits.window is None:
            return
        try:
            plan, draft = yield from self._answered((), {}, {})
            if plan:
                yield from self._commit(plan.edits, "plan", draft, plan.before, plan.after)
        except StalePlan:  # Whoever came first has planned; the next call plans anew.
            yield from self.refresh()

    def _answered(
        self, floor: Sequence[Rung], answers: dict[str, Answer], begun: _Begun
    ) -> Step[tuple[Plan, Projection]]:
        """A plan without open questions. `answers` and `begun` are added to, so that nothing is asked or counted twice
        where a plan must be made anew.
        """
        tasks = self._tasks_without(begun)

        def frame(entries: tuple[Entry, ...]) -> View:
            return self._framed(entries, tasks)

        for round in range(_ROUNDS + 1):
            try:
                plan, draft = draw_up(self.projection, frame, self.policies, floor, answers)
            except CompactionFailed as failed:
                if isinstance(failed.task, Task):
                    yield from self._begin([failed.task])  # What was tried is known, though no plan comes of it.
                raise
            if not plan.requests or round == _ROUNDS:
                break
            attempts = [request.task for request in plan.requests if request.task]
            for task in attempts:
                before = begun[task.policy][1] if task.policy in begun else self.projection.tasks.get(task.policy)
                begun[task.policy] = (task, before)
            yield from self._begin(attempts)
            for request in plan.requests:
                answers[request.key] = yield from self._summary(request)
        return plan, draft

    def _tasks_without(self, begun: _Begun) -> tuple[Task, ...]:
        """The newest task of each policy, as they stood before this plan asked anything."""
        standing = []
        for policy, task in self.projection.tasks.items():
            own, before = begun.get(policy, (None, None))
            standing.append(before if task == own else task)
        return tuple(task for task in standing if task is not None)

    def _begin(self, tasks: Sequence[Task]) -> Step[None]:
        """Write down what is about to be tried, so that an attempt counts even if the process ends in it, or what
        became of it.
        """
        if tasks:
            before, draft = self.view(), self.projection.copy()
            draft.apply(Record(self.head.number + 1, tuple(tasks), before.turn, before.moment.now, "", draft.position))
            yield from self._commit(tasks, "plan", draft, before, before)

    def _summary(self, request: SummaryRequest) -> Step[Answer]:
        if self.summarizer is None:
            return Answer(error="there is no summarizer")
        try:
            text = yield partial(self.summarizer, request)
        except Exception as error:  # Whatever a summarizer does, the conversation stays as it was.
            _log.warning("%s: the summarizer failed: %r", self.head.name, error)
            return Answer(error=f"the summarizer raised {type(error).__name__}: {error}")
        if iscoroutine(text):
            text.close()
            return Answer(error="the summarizer must be awaited, which only an async conversation can do")
        if not isinstance(text, str):
            return Answer(error=f"the summarizer returned {type(text).__name__}, not text")
        text = read_answer(text)
        return Answer(text) if text else Answer(error="the summarizer returned nothing")

    def _commit(self, edits: Sequence[Edit], author: str, draft: Projection, before: View, after: View) -> Step[Record]:
        record = Record(
            self.head.number + 1,
            tuple(edits),
            before.turn if author == "plan" else self._begun() + 1,
            before.moment.now,
            self.head.tip,
            self.head.position,
            before.tokens,
            after.tokens,
            before.bytes,
            after.bytes,
            author,
        )
        record_id = ids.record_id(self.head.record, wire.encode_record(record))
        self.head = yield partial(self.store.commit, self.head, record, record_id)
        self.projection = draft
        draft.number = record.last
        yield from self._follow_head()
        yield from self._maybe_snapshot()
        return record

    def _maybe_snapshot(self) -> Step[None]:
        seen = self.projection.position + self.projection.number
        if seen - self._saved >= max(_SNAPSHOT_EVERY, len(self.projection)):
            yield from self.save_snapshot()

    def save_snapshot(self) -> Step[None]:
        """Keep the projection, so that the next resume reads only what is visible."""
        snapshot = self.projection.snapshot()
        yield partial(self.store.save_snapshot, self.head, snapshot.position, snapshot.number, snapshot.encode())
        self._saved = snapshot.position + snapshot.number

    # ---------------------------------------------------------------------------------------------------- editing

    def edit(self, edits: Sequence[Edit], author: str = "edit") -> Step[Record]:
        """Commit edits made by hand. Raises BadEdit, and changes nothing, where one cannot apply."""
        if not edits:
            raise BadEdit("There is no edit to commit.")
        yield from self._follow_head()
        for _ in range(_ATTEMPTS):
            yield from self._validate(edits)
            before = self.view()
            draft = self.projection.copy()
            now = before.moment.now
            trial = Record(self.head.number + 1, tuple(edits), self._begun() + 1, now, "", draft.position)
            yield from self._fold(draft, trial)
            try:
                return (yield from self._commit(edits, author, draft, before, self.frame(draft.entries())))
            except StalePlan:
                yield from self.refresh()
        raise StalePlan(f"Other writers kept changing the view of {self.head.name!r}; try again later.")

    def _validate(self, edits: Sequence[Edit]) -> Step[None]:
        wanted = named_by(edits)
        where = yield partial(self.store.locate, self.head, wanted)
        unknown = [id for id in wanted if id not in where]
        if unknown:
            raise BadEdit(f"This conversation has no message {unknown[0]!r}.")
        unpinned = {edit.target.message for edit in edits if isinstance(edit, Unpin)}
        for edit in edits:
            if isinstance(edit, Replace | Hide) and isinstance(edit.target, Target):
                position = where[edit.target.message]
                if self.projection.is_protected(position, edit.target.path) or self.projection.refuses(edit):
                    raise BadEdit(
                        f"m{position} is a system prompt or the last user input, which the model must see as it was "
                        "said."
                    )
                if isinstance(edit, Replace) or edit.target.path:
                    yield from self._require_effect(edit, position)
                elif self.projection.is_pinned(edit.target.message) and edit.target.message not in unpinned:
                    raise BadEdit(f"m{position} is pinned; unpin it first.")
            if isinstance(edit, Summarize) and not edit.text.strip():
                raise BadEdit("A summary needs a text. To show nothing in place of a span, hide it.")
            span = _span_of(edit)
            if span and where[span.first] > where[span.last]:
                raise BadEdit(f"The span m{where[span.first]}-m{where[span.last]} ends before it begins.")
            if isinstance(edit, Restore) and any(not 1 <= number <= self.head.number for number in edit.edits):
                raise BadEdit(f"The journal has edits 1 to {self.head.number}; {edit.edits} are not all among them.")

    def _require_effect(self, edit: Replace | Hide, position: int) -> Step[None]:
        (row,) = yield partial(self.store.messages, self.head, position, position)
        if not applies(_row(row).message, edit):
            raise BadEdit(
                f"m{position} cannot be edited so. Either it has no such part, or it is reasoning, which stays with "
                "the calls it led to; a call or a result is hidden only with its message; a call's new arguments are "
                "one text, a JSON object."
            )

    def named(self, handle: str | int) -> Step[tuple[Handle, list[Appended]]]:
        """The messages behind a handle, as appended. Also taken: a message's id, and its index in the last view."""
        parsed = yield from self._parsed(handle)
        if parsed.last > self.head.position:
            raise UnknownHandle(str(handle), f"This conversation has messages m1 to m{self.head.position}.")
        rows = yield partial(self.store.messages, self.head, parsed.first, parsed.last)
        return parsed, rows

    def _parsed(self, handle: str | int) -> Step[Handle]:
        if isinstance(handle, str) and _ID.fullmatch(handle):
            where = yield partial(self.store.locate, self.head, [handle])
            if handle not in where:
                raise UnknownHandle(handle, "No message of this conversation has this id.")
            return Handle(where[handle], where[handle])
        if type(handle) is int:
            shown = self.projection.entries() if self._shown is None else self._shown
            if not 0 <= handle < len(shown) or not shown[handle].position:
                raise UnknownHandle(str(handle), f"The last view has messages 0 to {len(shown) - 1}.")
            return Handle(shown[handle].position, max(shown[handle].position, shown[handle].last))
        return parse_handle(handle)  # type: ignore[arg-type]

    def expand(self, handle: str | int, reason: str = "") -> Step[list[Appended]]:
        """Show the originals behind a handle again from the next view on, and return them."""
        yield from self._follow_head()
        parsed, rows = yield from self.named(handle)
        self._require_shrunk(str(handle), parsed)
        target = Target(rows[0].id, parsed.path) if len(rows) == 1 else Span(rows[0].id, rows[-1].id)
        yield from self.edit([Restore((target,), reason=reason or f"{handle} was asked for")], "expand")
        return rows

    def _require_shrunk(self, handle: str, parsed: Handle) -> None:
        """Raise NotExpandable where there is nothing to bring back, or where it must not be brought back."""
        inside = [entry for entry in self.projection.entries() if parsed.first <= entry.position <= parsed.last]
        there = {entry.position for entry in inside if entry.source is not None}
        is_hidden = any(position not in there for position in range(parsed.first, parsed.last + 1))
        shrunk = [one for one in inside if any(meet(path, parsed.path) for path in one.shrunk)]
        if any(not entry.expandable for entry in shrunk):
            raise NotExpandable(handle, "its original is kept from the model; `original` reads it")
        if not shrunk and not is_hidden:
            raise NotExpandable(handle, "it is shown whole")

    def undo(self, first: int, last: int) -> Step[Record]:
        """Take back the edits with these numbers: what they changed is shown as it was without them."""
        records = yield partial(self.store.records, self.head)
        numbered = [pair for _, record in records for pair in record.numbered()]
        if not 1 <= first <= last <= len(numbered):
            raise BadEdit(f"The journal has edits 1 to {self.head.number}, not all of {first} to {last}.")
        where = yield partial(self.store.locate, self.head, named_by(edit for _, edit in numbered))
        now, then = Standing(numbered, where), Standing(numbered, where, without=range(first, last + 1))
        between = gaps(now, then)
        ends = sorted({end for runs in between.values() for run in runs for end in run})
        rows = yield partial(self.store.pick, self.head, ends)
        back = way_back(now, then, between, {row.position: row.id for row in rows})
        if not back:
            raise BadEdit(f"Edits {first} to {last} changed nothing that could be taken back.")
        said = f"undoes edits {first} to {last}" if first < last else f"undoes edit {first}"
        return (yield from self.edit([edit if edit.reason else replace(edit, reason=said) for edit in back], "undo"))

    # ------------------------------------------------------------------------------------------- another past

    def fork(self, name: str, position: int | None = None) -> Step[Head]:
        """A new conversation that shares the past up to `position` (default: all of it), and its edits."""
        at = self.head.position if position is None else position
        if not 0 <= at <= self.head.position:
            raise BadSetting(f"This conversation has {self.head.position} messages; it cannot be forked at {at}.")
        number = yield from self._number_at(at)
        made: Head = yield partial(self.store.fork, self.head, name, at, number)
        return made

    def depart(self, position: int) -> Step[str]:
        """Go on from an earlier message; what came after it is kept under a name of its own, which is returned."""
        number = yield from self._number_at(position)
        taken = set((yield partial(self.store.names, self.head.tenant)))
        tries = range(1, len(taken) + 2)
        stem = self.head.name[:_STEM]
        keep = next(f"{stem}~{n}" for n in tries if f"{stem}~{n}" not in taken)
        self.head = yield partial(self.store.repoint, self.head, position, number, keep)
        yield from self._load()
        self._asked = None
        return keep

    def _number_at(self, position: int) -> Step[int]:
        if position == self.head.position:
            return self.head.number
        records = yield partial(self.store.records, self.head)
        return max((record.last for _, record in records if record.position <= position), default=0)

    def as_of(self, turn: int) -> Step[View]:
        """What the model saw at call `turn`, folded anew from history and journal."""
        if turn < 1:
            raise BadSetting(f"Turns are counted from 1; there is no turn {turn}.")
        rows = yield partial(self.store.messages, self.head, 1, self.head.position)
        records = yield partial(self.store.records, self.head)
        past = Projection(self.profile, self.counter)
        seen = [row for row in rows if row.stamp.turn < turn]
        for one in _in_order(seen, [record for _, record in records if record.turn <= turn]):
            if isinstance(one, Record):
                yield from self._fold(past, one)
            else:
                past.append(_row(one))
        return View(past.entries(), turn, self.limits.budget())


def _row(row: Appended) -> Row:
    message = wire.decode_message(row.body) if row.body else Message("user", ())
    return Row(row.position, row.id, message, row.stamp, len(row.body))


def _in_order(rows: Sequence[Appended], records: Sequence[Record]) -> Iterator[Appended | Record]:
    """Messages and records as they came: each record after the messages that were there when it was planned."""
    taken = 0
    for record in records:
        while taken < len(rows) and rows[taken].position <= record.position:
            yield rows[taken]
            taken += 1
        yield record
    yield from rows[taken:]


def _span_of(edit: Edit) -> Span | None:
    match edit:
        case Summarize(span=span) | Hide(target=Span() as span):
            return span
        case _:
            return None
