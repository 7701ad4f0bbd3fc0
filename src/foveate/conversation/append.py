"""Appending: messages and the facts about them become rows of a hash chain, all or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..core import ids, wire
from ..core.enrich import own_message
from ..core.ids import redacted_stamp
from ..core.messages import Message
from ..core.projection import Projection
from ..core.sizes import tokens_of
from ..core.snapshots import Row
from ..core.stamps import Expansion, Lease, Origin, PartRetention, Retention, Stamp, Stop, Usage, is_interrupted
from ..errors import BadInput, ConflictError
from ..ports import Changes, Clock, Head, LinkedRows, StoredMessage, TokenCounter, append
from . import validate
from .loading import row_of
from .state import ATTEMPTS, State

__all__ = [
    "NO_FACTS",
    "NO_OWN_FACTS",
    "Addition",
    "Appender",
    "MessageBatch",
    "MessageFacts",
    "OwnFacts",
    "facts_of",
]

_ORIGIN_OF_TYPE: dict[str, Origin] = {
    **dict.fromkeys(["action-result", "sub-agent-result", "loop-result", "tool-result", "client-tool-result"], "tool"),
    "retry-context": "derived",
}
"""The origin of an application's own types of messages, if it differs from their role."""


class OwnFacts(Struct, frozen=True):
    """Facts about one message of a batch."""

    metadata: str = ""
    """The application's facts, as JSON."""
    key: str = ""
    """The id of the message in the caller's list."""
    origin: Origin | None = None
    """Its origin; None: the role shows it."""
    lease: Lease | None = None
    """When it expires."""
    expanded: Expansion | None = None
    """For a result that shows an original again."""


NO_OWN_FACTS: OwnFacts = OwnFacts()


class MessageFacts(Struct, frozen=True):
    """Facts about appended messages that are not part of the messages."""

    time: int | None = None
    """Milliseconds since 1970; None: now."""
    origin: Origin | None = None
    usage: Usage | None = None
    lease: Lease | None = None
    kept: Mapping[int, tuple[PartRetention, ...]] = {}
    """The retention of each part, by the index of the message in the batch."""
    metadata: str = ""
    own: Mapping[int, OwnFacts] = {}
    """Facts of single messages, by their index in the batch. Empty ones are as for the whole batch."""
    expanded: Expansion | None = None
    """For messages that show an original again."""
    step: str = ""
    """The step of an agent's run that the messages come from."""
    call: int = 0
    """For a reply: the number of the model call it answers, if only one reply may; 0: not checked."""
    stop: Stop | None = None
    """For a reply: why it ended."""
    model: str = ""
    """For a reply: the model that wrote it, if the program named it."""
    owner: str = ""
    """The owner that must hold the lock of the conversation, or nothing is appended; "": not checked."""

    def after(self, count: int) -> MessageFacts:
        """Return the facts about the messages after the first `count` of a batch."""
        kept = {i - count: parts for i, parts in self.kept.items() if i >= count}
        own = {i - count: facts for i, facts in self.own.items() if i >= count}
        return replace(self, kept=kept, own=own)

    def origin_of(self, message: Message, index: int) -> Origin:
        """Return the origin of a message: the explicit one, else by its type, else by its role."""
        own = self.own.get(index, NO_OWN_FACTS)
        lease = own.lease or self.lease
        kind = lease.message_type if lease and message.role == "user" else ""
        return own.origin or self.origin or _ORIGIN_OF_TYPE.get(kind) or message.role


NO_FACTS: MessageFacts = MessageFacts()
_NO_ARGUMENTS = None, None, None, (), ""


def facts_of(
    time: int | None = None,
    origin: Origin | None = None,
    lease: Lease | None = None,
    kept: Sequence[PartRetention] = (),
    metadata: object = None,
    *,
    step: str = "",
) -> MessageFacts:
    """Return checked facts about a message. Raises BadSetting and BadInput."""
    if metadata is None and (time, origin, lease, kept, step) == _NO_ARGUMENTS:
        return NO_FACTS
    if time is not None:
        time = validate.integer("time= (milliseconds since 1970)", time)
    if origin is not None:
        validate.origin(origin)
    if lease is not None:
        validate.lease(lease)
    retention = validate.part_retention(kept)
    return MessageFacts(
        time,
        origin,
        None,
        lease,
        {0: retention} if retention else {},
        validate.metadata(metadata),
        step=validate.text("step=", step),
    )


Addition = Callable[[Sequence[Message], MessageFacts], tuple[Sequence[Message], MessageFacts]]
"""Adds content to messages that are about to be appended."""


class MessageBatch:
    """Messages that are appended together.

    `past`: the projection of what came before. `begun`: number of the model call that was begun and not answered yet,
    or 0. `estimate`: the counter's estimate for its prompt.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        facts: MessageFacts,
        past: Projection,
        *,
        clock: Clock,
        counter: TokenCounter,
        begun: int,
        estimate: int,
    ) -> None:
        self.bodies = [wire.encode_message(message) for message in messages]
        """Canonical bytes."""
        self.stored: Sequence[StoredMessage] = ()
        """The rows that were made last; these are stored once a store has taken them."""
        self.messages, self._facts, self._past, self._begun = messages, facts, past, begun
        self._clock, self._estimate = clock, estimate
        self._hashes = [ids.body_hash(body) for body in self.bodies]
        self._tokens = [tokens_of(message, counter) for message in messages]

    def rows(self, head: Head) -> list[StoredMessage]:
        """Return rows that follow a head at the end of the known past."""
        past = self._past.facts
        return self._rows(head, past.turn, self._begun, past.sequence, self._past.tool_of)

    def rows_after(self, tail: Changes) -> list[StoredMessage]:
        """Return rows that follow a head which others have moved on.

        Raises ConflictError if their messages may duplicate these or answer the same call.
        """
        newest = tail.newest()
        if newest is None:
            return self.rows(tail.head)
        past, facts, begun = self._past.facts, self._facts, self._begun
        turn, sequence = max(past.turn, newest.turn), past.sequence
        if begun or facts.kept or facts.call or facts.step:
            stamps = [row.stamp for row in tail.rows()]
            is_answered = any(stamp.origin == "assistant" for stamp in stamps)
            if (facts.call and is_answered) or (facts.step and any(stamp.step == facts.step for stamp in stamps)):
                raise ConflictError(
                    f"Other writers extended {tail.head.label} first and may have added this. Read it, then decide."
                )
            begun = 0 if is_answered else begun
            sequence = max([sequence, *(stamp.retention.sequence for stamp in stamps if stamp.retention)])

        def tool_of(call_id: str) -> str:
            return self._past.tool_of(call_id) or _tool_in(tail.rows(), call_id)

        return self._rows(tail.head, turn, max(begun, turn) if begun else 0, sequence, tool_of)

    def _rows(
        self, head: Head, turn: int, begun: int, sequence: int, tool_of: Callable[[str], str]
    ) -> list[StoredMessage]:
        facts = self._facts
        now = self._clock() if facts.time is None else facts.time
        parent, link = head.tip, head.seal
        turn, is_pending = begun or turn, bool(begun)
        rows = LinkedRows(head)
        tools: dict[str, str] = {}
        parts = zip(self.messages, self.bodies, self._hashes, self._tokens, strict=True)
        for i, (message, body, digest, tokens) in enumerate(parts):
            source, kept = "", facts.kept.get(i)
            sequence += 1 if kept else 0
            if message.role == "assistant":
                turn, is_pending = (turn if is_pending else turn + 1), False
                tools.update((call.call_id, call.name) for call in message.calls)
            elif (result := message.result) is not None:
                source = result.name or tools.get(result.call_id) or tool_of(result.call_id)
            is_reply = facts.usage is not None and message.role == "assistant"
            own = facts.own.get(i, NO_OWN_FACTS)
            is_measured = is_reply and not is_interrupted(facts.stop)
            stamp = Stamp(
                turn,
                now,
                tokens,
                facts.origin_of(message, i),
                source,
                facts.usage if is_reply else None,
                self._estimate if is_measured else 0,
                own.lease or facts.lease,
                Retention(sequence, kept) if kept else None,
                own.metadata or facts.metadata,
                own.expanded or facts.expanded,
                facts.step,
                facts.stop if message.role == "assistant" else None,
                facts.model if message.role == "assistant" else "",
                own.key,
            )
            parent = ids.message_id(parent, digest)
            link = ids.seal(link, parent, redacted_stamp(stamp))
            rows.append(StoredMessage(head.position + len(rows) + 1, parent, link, stamp, body, digest))
        self.stored = rows
        return rows


class Appender:
    """Adds messages to one conversation."""

    def __init__(self, state: State) -> None:
        self._state = state

    def append(
        self,
        messages: Sequence[Message],
        *,
        after: str | None = None,
        facts: MessageFacts = NO_FACTS,
        addition: Addition | None = None,
    ) -> tuple[str, ...]:
        """Add messages at the tip, or after the message `after`; messages that are there already are not added again.

        `addition` is called once, with the messages that are not there yet.
        """
        if not messages:
            return ()
        state = self._state
        state.follow_head()
        for _ in range(ATTEMPTS):
            if after is not None and after != state.head.tip:
                return self._append_after(after, messages, facts, addition)
            if addition:
                messages, facts = addition(messages, facts)
                addition = None
            if facts.call and self._is_answered(facts.call):
                raise ConflictError(
                    f"Another writer has answered call {facts.call} of {state.head.label} first. This reply was not "
                    f"added; continue from theirs."
                )
            batch = self._batch(messages, facts)
            before = state.head.position
            try:
                rows = self._extend(batch, facts.owner) if after is None else self._add(batch, facts.owner)
            except ConflictError:
                state.refresh()
                if facts.step and (stored := self._rows_of_step(facts.step, batch.bodies, before)):
                    return stored
                if after and not state.store.locate(state.head, [after]):
                    raise  # The conversation departed from the past that holds it.
                continue
            if any(message.role == "assistant" for message in messages):
                state.measure()
            state.added = rows, batch.messages
            return tuple(row.id for row in rows)
        raise ConflictError(
            f"Other writers kept extending {state.head.label}; {ATTEMPTS} attempts failed. Try again later."
        )

    def _batch(self, messages: Sequence[Message], facts: MessageFacts) -> MessageBatch:
        state = self._state
        begun = state.begun() if state.is_call_pending() else 0
        return MessageBatch(
            messages,
            facts,
            state.projection,
            clock=state.clock,
            counter=state.counter,
            begun=begun,
            estimate=state.limits.estimate,
        )

    def _extend(self, batch: MessageBatch, owner: str) -> Sequence[StoredMessage]:
        """Add messages wherever the tip is by then."""
        state = self._state
        tail = state.store.extend(state.head, batch.rows_after, owner=owner)
        state.follow_up(lambda: state.move_on(tail, batch.messages))
        return batch.stored

    def _add(self, batch: MessageBatch, owner: str) -> Sequence[StoredMessage]:
        """Add messages if no other writer was first."""
        state = self._state
        rows = batch.rows(state.head)
        state.head = append(state.store, state.head, rows, owner=owner)
        for row, message in zip(rows, batch.messages, strict=True):
            state.projection.append(Row(row.position, row.id, message, row.stamp, len(row.body)))
        state.appended(rows[-1])
        state.follow_up()
        return rows

    def _is_answered(self, call: int) -> bool:
        """Return whether there is a reply to a model call, or to a later one."""
        entries = reversed(self._state.projection.entries())
        newest = next((entry.stamp for entry in entries if entry.stamp.origin == "assistant"), None)
        return newest is not None and newest.turn >= call

    def _rows_of_step(self, step: str, bodies: Sequence[bytes], after: int) -> tuple[str, ...]:
        """Return the ids of these messages if another process has added them for the same step of an agent's run."""
        state = self._state
        rows = state.store.messages(state.head, after + 1, state.head.position)
        hashes = set(map(ids.body_hash, bodies))  # The bodies may be erased or released meanwhile.
        stored = [row for row in rows if row.stamp.step == step and row.body_hash in hashes]
        return tuple(row.id for row in stored) if len(stored) == len(bodies) else ()

    def _append_after(
        self,
        after: str,
        messages: Sequence[Message],
        facts: MessageFacts,
        addition: Addition | None,
    ) -> tuple[str, ...]:
        """Recognise the messages of a retry that follow `after`, and add the rest."""
        state = self._state
        start = 0
        if after:
            places = state.store.locate(state.head, [after])
            if after not in places:
                raise BadInput(f"The conversation {state.head.label} has no message {after!r} to append after.")
            start = places[after]
        parent = after
        known: list[str] = []
        for row in state.store.messages(state.head, start + 1, start + len(messages)):
            own = own_message(row_of(row).message, row.stamp)
            if own is not None:  # Skip messages that plugins appended.
                if len(known) == len(messages):
                    break
                message = messages[len(known)]
                expected = ids.message_id(parent, ids.body_hash(wire.encode_message(message)))
                if row.id != expected and own != message:
                    raise ConflictError(
                        f"Other messages follow {after!r} in {state.head.label}: its tip is {state.head.tip!r}, at "
                        f"position {state.head.position}. Append after that, or fork at position {start}."
                    )
                known.append(row.id)
            parent = row.id
        rest = self.append(messages[len(known) :], after=parent, facts=facts.after(len(known)), addition=addition)
        return (*known, *rest)


def _tool_in(rows: Sequence[StoredMessage], call_id: str) -> str:
    """Return the name of the tool of the newest call with this id."""
    for row in reversed(rows):
        message = wire.decode_message(row.body) if row.body else None
        for call in message.calls if message else ():
            if call.call_id == call_id:
                return call.name
    return ""
