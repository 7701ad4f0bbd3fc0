"""Appending: messages with what is said beside them become rows of a chain, all or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct, structs

from ..core import ids, wire
from ..core.counting import tokens_of
from ..core.enrich import own_message
from ..core.messages import Message
from ..core.outlines import outline_of_stamp
from ..core.snapshots import Row
from ..core.stamps import Expanded, Kept, Lease, Origin, Retention, Stamp, Stop, Usage
from ..errors import BadInput, TipMoved
from ..ports import Appended
from .state import State, row_of
from .steps import ATTEMPTS, Step

__all__ = ["NOTHING_SAID", "About", "Addition", "Appending"]

_ORIGINS: dict[str, Origin] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_TYPES: dict[str, Origin] = {
    **dict.fromkeys(
        ["action-result", "sub-agent-result", "loop-result", "tool-result", "client-tool-result"],
        "tool",
    ),
    "retry-context": "derived",
}
"""What an application's own types of messages are, if they are not what their role says."""


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
    expanded: Expanded | None = None
    """For what the conversation itself says."""
    step: str = ""
    """The step of an agent's run that it comes from."""
    call: int = 0
    """On a reply: the number of the model call that it answers, where only one reply may; 0: nobody asks."""
    stop: Stop | None = None
    """On a reply: why it ended."""

    def origin_of(self, message: Message) -> Origin:
        """Where a message came from: as was said, else by its type, else by its role."""
        kind = self.lease.message_type if self.lease and message.role == "user" else ""
        return self.origin or _TYPES.get(kind) or _ORIGINS[message.role]


NOTHING_SAID = About()
"""Messages that speak for themselves."""

Addition = Callable[[Sequence[Message], About], Step[tuple[Sequence[Message], About]]]
"""Adds to messages that are about to be appended, and says so."""


class Appending(State):
    """The steps that add messages."""

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
        for _ in range(ATTEMPTS):
            if after is not None and after != self.head.tip:
                return (yield from self._append_after(after, messages, about, addition))
            if addition:
                messages, about = yield from addition(messages, about)
                addition = None
            if about.call and self._is_answered(about.call):
                raise TipMoved(
                    f"Somebody else has answered call {about.call} of {self.head.name!r} first. This reply was not "
                    f"added; go on from theirs."
                )
            bodies = [wire.encode_message(message) for message in messages]
            rows = self._chained(messages, bodies, about)
            try:
                self.head = yield partial(self.store.append, self.head, rows)
            except TipMoved:
                before = self.head.position
                yield from self.refresh()
                if about.step and (there := (yield from self._led_to(about.step, bodies, before))):
                    return there
                if after and not (yield partial(self.store.locate, self.head, [after])):
                    raise  # The conversation departed from the past that holds it.
                continue
            for row, message in zip(rows, messages, strict=True):
                self.projection.append(Row(row.position, row.id, message, row.stamp, len(row.body)))
            last = rows[-1]
            self._seen = structs.replace(self._seen, position=last.position, tip=last.id, seal=last.seal)
            if any(message.role == "assistant" for message in messages):
                self._asked = None
                self._measure()
            yield from self._maybe_snapshot()
            return tuple(row.id for row in rows)
        raise TipMoved(f"Other writers kept extending {self.head.name!r}; {ATTEMPTS} attempts did not get through.")

    def _is_answered(self, call: int) -> bool:
        """Whether there is a reply to a model call, or to a later one."""
        entries = reversed(self.projection.entries())
        newest = next((entry.stamp for entry in entries if entry.stamp.origin == "assistant"), None)
        return newest is not None and newest.turn >= call

    def _led_to(self, step: str, bodies: Sequence[bytes], after: int) -> Step[tuple[str, ...]]:
        """What came meanwhile from this very step of an agent's run: one who took the run over, or was taken over, has
        said it already. None: an empty tuple.
        """
        rows: list[Appended] = yield partial(self.store.messages, self.head, after + 1, self.head.position)
        found = [row for row in rows if row.stamp.step == step and row.body in bodies]
        return tuple(row.id for row in found) if len(found) == len(bodies) else ()

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
            own = own_message(row_of(row).message, row.stamp)
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
                about.expanded,
                about.step,
                about.stop if message.role == "assistant" else None,
            )
            digest = ids.body_hash(body)
            parent = ids.message_id(parent, digest)
            link = ids.seal(link, parent, outline_of_stamp(stamp))
            position += 1
            rows.append(Appended(position, parent, link, stamp, body, digest))
        return rows
