"""Following a list of messages that the caller keeps: the history and the view become what the list shows.

New messages are appended. Edits in the journal hide the messages that the caller removed, and replace the content that
it edited. If the list departs from the history, the conversation forks, and its former course is kept under another
name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from msgspec import Struct

from ..core.edits import (
    CALLER,
    COMPACTED,
    Edit,
    Hide,
    Replace,
    Restore,
    Span,
    Summarize,
    Target,
    Task,
    ends_of,
    target_of,
)
from ..core.events import Event
from ..core.messages import Message
from ..core.stamps import Lease, Origin
from ..core.wire import encode_message
from ..errors import BadInput, BadMessage, ConflictError, NoSuchConversation
from ..expand.originals import decoded
from ..policies.message_terms import MECHANISMS
from ..ports import StoredMessage
from . import validate
from .append import OwnFacts
from .caller_edits import edits_between
from .caller_history import CallerHistory
from .edit import Editor
from .instrumentation import Reporter
from .journal_search import number_at, number_before
from .list_comparison import Changes, Comparison
from .list_items import Item, Known, NewList, ReadMessage, item_ranges
from .message_reader import check_results
from .state import State
from .weak_methods import weakly

__all__ = ["CallerList", "Followed", "ListItem"]

_log = logging.getLogger("foveate")
_ATTEMPTS = 5
"""How often a list is compared again after another writer came first."""
_STEM = 480
"""Characters of the name that an earlier course of a conversation begins with: stores take 500."""
_FORMER_MAX = 64
"""Former courses of one conversation that are kept under their own names. Further ones are hidden in place."""
_GONE = "the caller's list no longer has it"
_COPY = "it shows a message again that the caller's list no longer has"
_BACK = "the caller's list has it again"
_UNDONE = "the caller's list no longer has all that this summary is about"
_EARLIER = "the caller's list went back to before this edit"


class ListItem(Struct, frozen=True):
    """An item of a caller's list with facts about it."""

    message: object
    """The message, in any form that `append` takes, or a list of the messages in this item."""
    key: str = ""
    """The caller's id of the item. An item with a known key and other content is an edited message."""
    metadata: object = None
    """The application's facts about it, as for `append`."""
    origin: Origin | None = None
    """Its origin; None: the role shows it. A result of a tool in a user's message has the origin `"tool"`."""
    lease: Lease | None = None
    """When it expires."""


class Followed(Struct, frozen=True):
    """The changes that a list made."""

    added: tuple[str, ...] = ()
    """Ids of the appended messages."""
    hidden: int = 0
    """Messages that the caller removed."""
    edited: int = 0
    """Messages that the caller edited."""
    restored: int = 0
    """Removed messages that the list shows again."""
    former: str = ""
    """The name under which the former course is kept, if the list departed from the history."""
    reason: str = ""
    """Why it departed, in one sentence."""


Add = Callable[[Sequence[ReadMessage]], tuple[str, ...]]
"""Appends messages after the newest one."""


class _List(NamedTuple):
    """The arguments of one call."""

    values: Sequence[object]
    ranges: Sequence[range] | None
    """The indices in the caller's list of each value; None: one for each."""
    read: Callable[[Any], object] | None
    ignore_removals: bool
    is_request: bool
    """Whether a request follows, which needs something to send."""


class _Rewind(NamedTuple):
    """A list that ends before the history: the conversation goes back there at the next request."""

    request: _List
    position: int
    tip: str
    """The newest message of the history; if others follow, nothing goes back."""
    reason: str


class CallerList:
    """The list of messages that the caller of one conversation keeps."""

    def __init__(
        self,
        state: State,
        editor: Editor,
        reporter: Reporter,
        read: Callable[[object], list[ReadMessage]],
        add: Add,
    ) -> None:
        self._state, self._editor, self._reporter = state, editor, reporter
        self._read_value, self._add = read, add
        self._history: CallerHistory | None = None
        self._branch: tuple[int, int | None, int] | None = None
        self._rewind: _Rewind | None = None

    def follow(
        self,
        messages: object,
        read: Callable[[Any], object] | None = None,
        *,
        ignore_removals: bool = False,
        is_request: bool = False,
    ) -> Followed:
        """Make the history and the view what the list shows.

        `is_request`: whether a request follows. Raises BadInput then for a list with nothing to send.
        """
        if not isinstance(messages, list | tuple):
            raise BadMessage(f"messages= takes the whole list of messages, not {type(messages).__name__}.")
        if read is not None:
            validate.function("read=", read)
        validate.instance("ignore_removals=", ignore_removals, bool, "True or False")
        values: Sequence[object] = messages
        ranges: Sequence[range] | None = None
        if read is None:
            self._history = self._caught_up()  # The format learns where the messages of the history begin.
            values = self._state.format.group(messages)
            ranges = None if values is messages else item_ranges(messages, values)
        return self._follow(_List(values, ranges, read, ignore_removals, is_request))

    def _follow(self, request: _List, *, may_fork: bool = True) -> Followed:
        self._rewind = None
        former = reason = ""
        total = Followed()
        for _ in range(_ATTEMPTS):
            try:
                changes, new, history = self._compare(request, may_fork=may_fork)
                _check_new(changes, new)
                if request.is_request:
                    _check_sendable(chain(islice(history.items, new.known), new.fresh))
                if changes.fork_at is not None and not changes.is_rewind:
                    former, reason = self._depart(changes.fork_at, changes.reason)
                    changes, new, history = self._compare(request, may_fork=False)
                followed, is_alone = self._apply(changes, new, history)
            except ConflictError:  # Another writer came first: compare again.
                self._state.refresh()
                self.forget()
                continue
            total = Followed(
                total.added + followed.added,
                total.hidden + followed.hidden,
                total.edited + followed.edited,
                total.restored + followed.restored,
                former,
                reason,
            )
            if not is_alone:  # The list has to be compared with the messages of the other writer too.
                continue
            if changes.is_rewind and changes.fork_at is not None:
                self._rewind = _Rewind(request, changes.fork_at, self._state.head.tip, changes.reason)
            return total
        raise self._conflict()

    def _conflict(self) -> ConflictError:
        return ConflictError(
            f"Other writers kept changing {self._state.head.label}; {_ATTEMPTS} attempts failed. Try again later."
        )

    @property
    def is_shorter(self) -> bool:
        """Return whether the list ends before the history, which then goes back there at the next request."""
        return self._rewind is not None

    def depart(self, messages: Sequence[Message] = ()) -> None:
        """Go back to where the list ends, if it ends before the history and nothing was appended since.

        `messages`: those that follow there. Raises BadMessage if one of them cannot be stored, and changes nothing.
        """
        if self._rewind is not None:
            check_results(messages)
            for message in messages:
                encode_message(message)
        for _ in range(_ATTEMPTS):
            rewind, self._rewind = self._rewind, None
            if rewind is None or rewind.tip != self._state.head.tip:
                return
            try:
                self._depart(rewind.position, rewind.reason)
            except ConflictError:  # Another writer came first: compare again.
                self._state.refresh()
                self.forget()
                self._follow(rewind.request)
            else:  # The journal up to there lacks the later edits of the caller.
                self._follow(rewind.request, may_fork=False)
                return
        raise self._conflict()

    def is_edited(self) -> bool:
        """Return whether the last list found edits that do not repeat what the caller did to it."""
        return self._history is None or self._history.is_edited

    def tokens(self) -> int:
        """Return the tokens of all messages that the caller did not remove; 0 if no list was followed."""
        if self._history is None:
            return 0
        self._history = self._caught_up()
        return self._history.tokens

    def forget(self) -> None:
        """Drop what is kept of the list only for speed."""
        self._history = self._rewind = None

    # ------------------------------------------------------------------------------------------------------ comparing

    def _compare(self, request: _List, *, may_fork: bool) -> tuple[Changes, NewList, CallerHistory]:
        history = self._caught_up()
        self._history = None  # Read again if anything below fails.

        def read_item(value: object) -> list[ReadMessage]:
            return self._read(value if request.read is None else request.read(value))

        new = history.read(request.values, request.ranges, read_item)

        def edits_of(known: Known, message: Message) -> list[Edit] | None:
            return edits_between(known.id, self._stored(known.position), message, known.edits)

        comparison = Comparison(history, new, edits_of, keeps_removed=request.ignore_removals, may_fork=may_fork)
        return comparison.changes(), new, history

    def _read(self, value: object) -> list[ReadMessage]:
        if not isinstance(value, ListItem):
            return self._read_value(value)
        metadata = validate.metadata(value.metadata)
        if value.origin is not None:
            validate.origin(value.origin)
        if value.lease is not None:
            validate.lease(value.lease)
        key = validate.text("key=", value.key)
        return [
            ReadMessage(
                message,
                OwnFacts(
                    metadata or facts.metadata, f"{key}#{number}" if key and number else key, value.origin, value.lease
                ),
            )
            for number, (message, facts) in enumerate(self._read_value(value.message))
        ]

    def _stored(self, position: int) -> Message:
        (row,) = self._state.store.get_many(self._state.head, [position])
        return decoded(row)

    def _caught_up(self) -> CallerHistory:
        """Return the history as lists show it, up to the head."""
        state, history = self._state, self._history
        state.follow_head()
        head = state.head
        branch = head.root, head.branch, head.erased
        if history is None or branch != self._branch or history.position > head.position:
            history = CallerHistory(weakly(self._stored))
        if history.position < head.position:
            history.add_rows(self._rows_after(history.position))
        if history.number < head.number:
            records = [record for _, record in state.store.records(head, history.number)]
            if True in [history.add_record(record) for record in records]:
                history.forget_list()  # Another process followed another list.
        self._branch = branch
        return history

    def _rows_after(self, position: int) -> list[tuple[StoredMessage, Message]]:
        """Return the rows after this position, and their messages."""
        state = self._state
        rows, messages = state.added
        if rows and rows[0].position == position + 1 and rows[-1].id == state.head.tip:
            pairs = list(zip(rows, messages, strict=True))
        else:
            pairs = [(row, decoded(row)) for row in state.store.messages(state.head, position + 1, state.head.position)]
        for _, message in pairs:
            state.format.learn(message)
        return pairs

    # ------------------------------------------------------------------------------------------------------- applying

    def _apply(self, changes: Changes, new: NewList, history: CallerHistory) -> tuple[Followed, bool]:
        """Commit the edits, and append the tail.

        Return what changed, and whether no other writer appended meanwhile.
        """
        state = self._state
        edits = self._edits(changes, history)
        if edits:
            before, places = state.head.number, self._reporter.places()
            record = self._editor.commit(edits, CALLER)
            history.add_record(record)
            self._reporter.commits(before, places)
        added: tuple[str, ...] = ()
        shown = list(changes.shown)
        is_alone = True
        if changes.tail:
            position = history.position  # The commit above may have found messages of another writer behind it.
            messages = [new.message(spot.item, spot.part) for spot in changes.tail]
            state.calls.is_taken_over |= not position
            added = tuple(id for id in self._add(messages) if not history.has(id))
            read = {id(message): spot.traits for (message, _), spot in zip(messages, changes.tail, strict=True)}
            indices = iter(history.add_rows(self._rows_after(position), read))
            index = next(indices, None)
            for spot in changes.tail:  # An answer to a call that was answered before is not added.
                if index is not None and history.known[index].says(spot):
                    shown.append((index, spot))
                    index = next(indices, None)
            is_alone = index is None
        history.accept(new, shown, changes.absent)
        self._history = history
        state.list_places = history.places
        counts = len(changes.hidden), len(changes.edited), len(changes.restored)
        return Followed(added, *counts), is_alone

    def _edits(self, changes: Changes, history: CallerHistory) -> list[Edit]:
        """Return the edits that repeat what the caller did to its list."""
        edits: list[Edit] = []
        if changes.restored:
            restored = history.runs_of(changes.restored)
            edits.append(Restore(tuple(map(_target, restored)), (), CALLER, _BACK))
            for index in changes.restored:  # Restored as it was appended, which is not what the list has.
                edits += history.edits_of(index)
        for _, own in changes.edited:
            edits += own
        for index in (*changes.hidden, *(index for index, _ in changes.edited)):
            for id in history.copies.get(history.known[index].id, ()):
                if self._state.projection.holds(id):
                    edits.append(Hide(Target(id), CALLER, _COPY))
        if changes.hidden:
            entries = self._state.projection.entries()
            shown = {entry.position for entry in entries if entry.outline is not None}
            listed = {index for index, _ in changes.shown}
            ranges = history.runs_of(changes.hidden, shown, listed=listed)
            why = COMPACTED if changes.is_compaction else _GONE
            edits += [Hide(_target(ends), CALLER, why) for ends in ranges]
        if changes.undone and not changes.is_compaction:
            undone = sorted(history.known[index].position for index in changes.undone)
            if numbers := self._state.projection.summaries_of(undone):
                edits.insert(0, Restore((), numbers, CALLER, _UNDONE))
        if changes.went_back is not None and not changes.is_compaction:
            numbers = self._shrunk_before(history, changes.went_back)
            edits[:0] = [Restore((), numbers, CALLER, _EARLIER)] if numbers else []
        return edits

    def _shrunk_before(self, history: CallerHistory, index: int) -> tuple[int, ...]:
        """Return the edits of the newest messages before a removed reply that policies made since that reply.

        These messages were old then, and are the newest again: as many as were removed. Older ones stay as they are,
        since the cached prefix has them so. Two kinds are left out: edits by the age of a message in calls, which has
        not changed, and summaries of an attempt, which may have cost a model call and are true as long as the list has
        their messages.
        """
        state = self._state
        newest = {message.id for message in history.known[max(0, 2 * index - len(history.known)) : index]}
        since = number_before(state.store, state.head, history.known[index].position)
        numbers: list[int] = []
        for _, record in state.store.records(state.head, since):
            lasting = {*MECHANISMS.values(), *(edit.policy for edit in record.edits if isinstance(edit, Task))}
            for number, edit in record.numbered() if record.author == "plan" else ():
                if not isinstance(edit, Replace | Hide | Summarize) or edit.policy in lasting:
                    continue
                if ends_of(target_of(edit))[1] in newest:
                    numbers.append(number)
        return tuple(numbers)

    # --------------------------------------------------------------------------------------------------------- forking

    def _depart(self, position: int, why: str) -> tuple[str, str]:
        """Go back to a position; return the name of the former course, and why, in one sentence.

        If many former courses are kept, this one is not: it is hidden. Its name is "".
        """
        state = self._state
        tip, former = state.head.tip, ""
        number = self._free_number()
        if number <= _FORMER_MAX:
            former = self.go_back(position, number)
            end = f"the former course is kept as {former}"
        else:
            end = f"the former course is hidden, since {_FORMER_MAX} are kept already"
        reason = f"{why[0].upper()}{why[1:]}; {end}."
        _log.debug("%s: %s", state.head.log_name, reason)
        turn, now = state.projection.facts.turn, state.clock()
        self._reporter.emit([Event("list-departed", turn, now, tip, position, policy=CALLER, reason=reason)])
        return former, reason

    def go_back(self, position: int, number: int | None = None) -> str:
        """Continue from an earlier message. The later ones are kept under a new name, which is returned.

        `number`: of the former course, if it is known.
        """
        state = self._state
        name = f"{self._stem}~{number or self._free_number()}"
        state.head = state.store.repoint(state.head, position, number_at(state.store, state.head, position), name)
        state.follow_head()
        return name

    @property
    def _stem(self) -> str:
        return self._state.head.name[:_STEM]

    def _free_number(self) -> int:
        """Return a free number for a former course, found with few reads: a tenant may have millions of names."""
        low, high = 0, 1
        while self._is_taken(f"{self._stem}~{high}"):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._is_taken(f"{self._stem}~{middle}") else (low, middle)
        return high

    def _is_taken(self, name: str) -> bool:
        try:
            self._state.store.open(self._state.head.tenant, name, create=False)
        except NoSuchConversation:
            return False
        return True


def _check_sendable(items: Iterable[Item]) -> None:
    """Raise BadInput if the items of a list hold no message but those of the system."""
    content = "is empty"
    for traits in chain.from_iterable(item.traits for item in items):
        if traits.role != "system":
            return
        content = "has only system messages"
    # Following it would hide the rest of the history.
    raise BadInput(f"messages= {content}, so there is nothing to send. Pass the whole list, or leave it out.")


def _check_new(changes: Changes, new: NewList) -> None:
    """Raise BadMessage if a new message cannot be stored. Edits and departures come first, and nothing undoes them."""
    if changes.fork_at is not None:
        messages = new.all_messages()
    elif changes.hidden or changes.restored or changes.edited:
        messages = [new.message(spot.item, spot.part) for spot in changes.tail]
    else:
        return
    for message, _ in messages:
        encode_message(message)


def _target(ends: tuple[str, str]) -> Target | Span:
    return Target(ends[0]) if ends[0] == ends[1] else Span(*ends)
