"""Appending: messages with what is said beside them become rows of a chain, all or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import structs

from ..core import ids, wire
from ..core.enrich import own_message
from ..core.messages import Message
from ..core.snapshots import Row
from ..errors import BadInput, ConflictError
from ..ports import Changes, StoredMessage, append
from .sealing import NOTHING_SAID, About, Batch
from .state import State, row_of
from .steps import ATTEMPTS, Step

__all__ = ["NOTHING_SAID", "About", "Addition", "Appending"]

Addition = Callable[[Sequence[Message], About], Step[tuple[Sequence[Message], About]]]
"""Adds to messages that are about to be appended, and says so."""


class Appending(State):
    """The steps that add messages."""

    appended: Sequence[StoredMessage] = ()
    """The rows that were added last."""

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
                raise ConflictError(
                    f"Somebody else has answered call {about.call} of {self.head.name!r} first. This reply was not "
                    f"added; go on from theirs."
                )
            batch = self._batch(messages, about)
            before = self.head.position
            try:
                if after is None:
                    made = yield from self._extend(batch, about.owner)
                else:
                    made = yield from self._add(batch, about.owner)
            except ConflictError:
                yield from self.refresh()
                if about.step and (there := (yield from self._led_to(about.step, batch.bodies, before))):
                    return there
                if after and not (yield partial(self.store.locate, self.head, [after])):
                    raise  # The conversation departed from the past that holds it.
                continue
            if any(message.role == "assistant" for message in messages):
                self._asked = None
                self._measure()
            return made
        raise ConflictError(
            f"Other writers kept extending {self.head.name!r}; {ATTEMPTS} attempts did not get through."
        )

    def _batch(self, messages: Sequence[Message], about: About) -> Batch:
        begun, estimate = (self._begun() if self._is_begun() else 0), self.limits.estimate
        past, clock, counter = self.projection, self.clock, self.counter
        return Batch(messages, about, past, clock=clock, counter=counter, begun=begun, estimate=estimate)

    def _extend(self, batch: Batch, owner: str) -> Step[tuple[str, ...]]:
        """Add messages wherever the tip is by then."""
        tail: Changes = yield partial(self.store.extend, self.head, batch.behind, owner=owner)
        yield from self._follow_up(lambda: self._move_on(tail, batch.messages))
        self.appended = batch.made
        return tuple(row.id for row in batch.made)

    def _add(self, batch: Batch, owner: str) -> Step[tuple[str, ...]]:
        """Add messages if nobody was first."""
        rows = batch.rows(self.head)
        self.head = yield partial(append, self.store, self.head, rows, owner=owner)
        for row, message in zip(rows, batch.messages, strict=True):
            self.projection.append(Row(row.position, row.id, message, row.stamp, len(row.body)))
        last = rows[-1]
        self._seen = structs.replace(self._seen, position=last.position, tip=last.id, seal=last.seal)
        self.appended = rows
        yield from self._follow_up()
        return tuple(row.id for row in rows)

    def _is_answered(self, call: int) -> bool:
        """Whether there is a reply to a model call, or to a later one."""
        entries = reversed(self.projection.entries())
        newest = next((entry.stamp for entry in entries if entry.stamp.origin == "assistant"), None)
        return newest is not None and newest.turn >= call

    def _led_to(self, step: str, bodies: Sequence[bytes], after: int) -> Step[tuple[str, ...]]:
        """What came meanwhile from this very step of an agent's run: one who took the run over, or was taken over, has
        said it already. None: an empty tuple.
        """
        rows: list[StoredMessage] = yield partial(self.store.messages, self.head, after + 1, self.head.position)
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
                    raise ConflictError(
                        f"Other messages follow {after!r} in {self.head.name!r}: its tip is {self.head.tip!r}, at "
                        f"position {self.head.position}. Append after that, or fork at position {start}."
                    )
                known.append(row.id)
            parent = row.id
        rest = yield from self.append(messages[len(known) :], after=parent, about=about, addition=addition)
        return (*known, *rest)
