"""One conversation: append -> plan -> commit -> view, as steps that a shell performs.

Every method that touches the store is a generator: it yields what the store should do and gets the answer back. So
`Conversation` and `AsyncConversation` differ only in how they perform a step, and nothing here waits. State changes
only after the store has said yes: a failure anywhere leaves the conversation as it was.

    State       where it stands in its store, what it shows     state.py
    Appending   messages become rows of a chain                 appending.py
    Asking      whoever writes summaries is asked               asking.py
    Planning    policies and summaries make a plan              planning.py
    Compacting  a summary that was asked for                    compacting.py
    Beside      summing up for others, no call being made       beside.py
    Editing     edits by hand, expanding, undoing               editing.py
    Erasing     what must not be in the history any more        erasing.py
    LettingGo   what was kept long enough; beside the others    aging.py
    Summing     what all of it came to                      summing.py
    Engine      forks, other courses, views of earlier calls    here
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..core.projection import Projection
from ..core.view import View
from ..errors import BadSetting, NoSuchConversation
from ..ports import Head
from .appending import NOTHING_SAID, About, Addition
from .beside import Beside
from .erasing import Erasing
from .steps import Effect, Step
from .summing import Summing

if TYPE_CHECKING:
    from ..core.retention import Age
    from .aging import Aged

__all__ = ["NOTHING_SAID", "About", "Addition", "Effect", "Engine", "Step"]

_STEM = 480
"""Characters of a name that the name of its former course begins with: stores take 500."""


class Engine(Beside, Erasing, Summing):
    """The state of one open conversation, and the steps that change it."""

    def age(self, ages: Sequence[Age], who: str, reason: str, *, dry_run: bool) -> Step[Aged]:
        """Erase what is over its age, see `LettingGo`."""
        from .aging import LettingGo  # Few need it, and it would take time whenever foveate is imported.

        return (yield from LettingGo(self).age(ages, who, reason, dry_run=dry_run))

    def fork(self, name: str, position: int | None = None) -> Step[Head]:
        """A new conversation that shares the past up to `position` (default: all of it), and its edits."""
        at = self.head.position if position is None else position
        if not 0 <= at <= self.head.position:
            raise BadSetting(f"This conversation has {self.head.position} messages; it cannot be forked at {at}.")
        yield from self.refresh()  # Else, in a store that went back, it would share another past.
        number = yield from self._number_at(at)
        made: Head = yield partial(self.store.fork, self.head, name, at, number)
        return made

    def depart(self, position: int) -> Step[str]:
        """Go on from an earlier message; what came after it is kept under a name of its own, which is returned."""
        number = yield from self._number_at(position)
        keep = yield from self._free_name(self.head.name[:_STEM])
        self.head = yield partial(self.store.repoint, self.head, position, number, keep)
        yield from self._load()
        self._asked = None
        return keep

    def _free_name(self, stem: str) -> Step[str]:
        """The stem with a number that is free, found by asking for few names: a tenant may have millions."""
        low, high = 0, 1
        while (yield from self._is_taken(f"{stem}~{high}")):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if (yield from self._is_taken(f"{stem}~{middle}")) else (low, middle)
        return f"{stem}~{high}"

    def _is_taken(self, name: str) -> Step[bool]:
        try:
            yield partial(self.store.open, self.head.tenant, name, create=False)
        except NoSuchConversation:
            return False
        return True

    def _number_at(self, position: int) -> Step[int]:
        if position == self.head.position:
            return self.head.number
        return (yield from self._number_before(position + 1, self.head.number))

    def as_of(self, turn: int) -> Step[View]:
        """What the model saw at call `turn`, folded anew from history and journal."""
        if turn < 1:
            raise BadSetting(f"Turns are counted from 1; there is no turn {turn}.")
        found = yield partial(self.store.records, self.head)
        records = [record for _, record in found if record.turn <= turn]
        past = Projection(self.profile, self.counter)
        yield from self._fold_all(past, self.head.position, records, before_turn=turn)
        return View(past.entries(), turn, self.limits.budget(), newest_input=past.facts.last_input)
