"""What changes a view by hand, or takes words out of the history for good. Steps that both shells perform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .. import given
from ..core.caches import clear_caches
from ..core.edits import Edit, Pin, Target, Unpin
from ..core.events import events_of_record
from ..core.messages import Message, ToolCall, ToolResult
from ..core.receipts import Receipt, receipt_of
from ..engine import Step
from ..errors import BadInput, BadSetting
from ..expansion.asking import Items, Lines, Matches
from ..expansion.excerpts import Excerpt
from ..expansion.originals import decoded, part_of
from ..expansion.placing import Where
from ..expansion.ranges import read_range
from ..ports import Erasure, Head
from .held import Held

if TYPE_CHECKING:
    from ..core.retention import Ages
    from ..engine.aging import Aged

__all__ = ["Editing"]


class Editing(Held):
    """The changes, but for those that are made to fit a request."""

    def _edit(self, edits: Sequence[Edit], author: str) -> Step[Receipt]:
        given.edits(tuple(edits))
        places = self._places()
        record = yield from self._engine.edit(edits, author)
        self._watching.recorded([record])
        self._tell(events_of_record(record, places))
        return receipt_of(record)

    def _compact(self, focus: str) -> Step[Receipt]:
        given.text("focus=", focus)
        before, places = self._engine.head.number, self._places()
        record = yield from self._engine.compact(focus)
        yield from self._tell_edits(before, places)
        return receipt_of(record)

    def _pin(self, handle: str, edit: type[Pin] | type[Unpin]) -> Step[Receipt]:
        parsed, rows = yield from self._engine.named(handle)
        for row in rows:
            part_of(decoded(row), parsed.path, handle)
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
        self._tell(events_of_record(record, places))
        return receipt_of(record)

    def _expand(self, handle: str | int, reason: str) -> Step[Message]:
        given.text("reason=", reason)
        parsed, rows = yield from self._engine.named(handle)
        original = part_of(decoded(rows[0]), parsed.path, str(handle))
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

    def _answer(self, call: object) -> Step[ToolResult]:
        wanted = _id_of(call)
        for one in self._expander.open_calls():
            if one.call_id == wanted:
                return (yield from self._expander.answer(one))
        raise BadInput(f"The newest reply has no call {wanted!r:.80} that waits for an answer; see open_calls().")

    def _fork(self, name: str, at: int | None) -> Step[Head]:
        given.name("The name of a fork", name)
        if at is not None:
            given.whole("at= (the number of a message)", at)
        return (yield from self._engine.fork(name, at))

    def _erase(self, handle: str | int, reason: str, who: str) -> Step[Erasure]:
        given.text("reason=", reason)
        given.text("who=", who)
        before, places = self._engine.head.number, self._places()
        done: Erasure = yield from self._engine.erase(handle, who, reason)
        self._forget()
        yield from self._tell_edits(before, places)
        return done

    def _age(self, ages: Ages, reason: str, who: str, dry_run: bool) -> Step[Aged]:
        from ..core.retention import read_ages  # What few need.

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
        clear_caches()


def _id_of(call: object) -> object:
    """The id of a call: of a ToolCall, or of the provider's block for one."""
    if isinstance(call, ToolCall):
        return call.call_id
    if isinstance(call, Mapping):
        return call.get("id")
    return call if isinstance(call, str) else getattr(call, "id", None)
