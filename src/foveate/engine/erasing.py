"""Erasing: the store does it, and the view is read anew; what a lost summary stood for comes back where it fits."""

from __future__ import annotations

from functools import partial

from ..core.edits import Restore
from ..core.snapshots import Cover
from ..errors import BadInput
from ..ports import Erasure
from .editing import Editing
from .steps import Step

__all__ = ["Erasing"]

_ROWS = 100
"""Messages weighed at a time."""


class Erasing(Editing):
    """The steps that take out of the history what must not be there any more."""

    def erase(self, handle: str | int, who: str, reason: str) -> Step[Erasure]:
        """Erase the messages behind a handle. What tells of it elsewhere in the tree goes with it."""
        parsed = yield from self._parsed(handle)
        if parsed.path:
            raise BadInput(f"{handle} names a part; a message is erased as a whole: erase m{parsed.first}.")
        yield from self.refresh()  # Else, in a store that went back, the handle may name another message.
        yield from self.named(handle)
        erase = partial(self.store.erase, self.head, [(parsed.first, parsed.last)])
        done: Erasure = yield partial(erase, who=who, reason=reason, time=self.clock())
        yield from self.refresh()
        if done.number:
            yield from self.bring_back()
        return done

    def bring_back(self) -> Step[None]:
        """Show the originals of summaries that are erased, the newest first, as far as there is room for them now.

        What is too much stays away, under a note that something was erased; whoever wants it can expand it.
        """
        lost, view = self.projection.erased_summaries(), self.view()
        room, numbers = view.budget.usable - view.tokens, list[int]()
        tops = [one for one in lost if not any(_lies_in(one, other) for other in lost)]
        for top in sorted(tops, key=lambda cover: cover.last, reverse=True):
            tokens = yield from self._weigh_span(top, room)
            if tokens <= room:
                room -= tokens
                numbers += [one.number for one in lost if one.lies_in(top.first, top.last)]
        if numbers:
            why = "what their summaries told of was erased"
            yield from self.edit([Restore(edits=tuple(sorted(numbers)), reason=why)], "erase")

    def _weigh_span(self, cover: Cover, room: int) -> Step[int]:
        """Tokens of a span's originals; where they are more than the room, some number above it."""
        tokens = 0
        for first in range(cover.first, cover.last + 1, _ROWS):
            last = min(first + _ROWS - 1, cover.last)
            rows = yield partial(self.store.messages, self.head, first, last)
            tokens += sum(row.stamp.tokens for row in rows if row.body)
            if tokens > room:
                break
        return tokens


def _lies_in(one: Cover, other: Cover) -> bool:
    return one is not other and one.lies_in(other.first, other.last) and one.number < other.number
