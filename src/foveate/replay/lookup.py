"""How much of what calls used could be read where it was used, and what it would have taken to fetch the rest.

Readable means: some entry of the view holds it. Reachable means: a handle in the view leads to it, and it really is in
what the conversation returns for that handle. What no handle leads to is fetched too, at the price of looking first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from ..core.messages import Message
from ..core.sizes import tokens_of
from ..core.view import Prices, View
from .measure import Bill, share
from .mending import Mending
from .references import Positions, References, Used, call_lines, call_text, identifiers, whole_lines
from .visible import Sort, Visible

__all__ = ["Counts", "Lookup"]


class Counts(Struct):
    """How many things were used, how many of them the view showed, and how many more a handle led to."""

    used: int = 0
    visible: int = 0
    reached: int = 0

    @property
    def visible_share(self) -> float | None:
        return share(self.visible, self.used)

    @property
    def reachable_share(self) -> float | None:
        return share(self.visible + self.reached, self.used)


class Lookup:
    """Follows a replay: reads each message, looks at each view, and compares what was used with what was shown."""

    def __init__(self, originals: Callable[[str], Iterable[Message]], prices: Prices) -> None:
        """`originals`: what a handle brings back."""
        self._fetch = originals
        self._references = References()
        self._sizes: list[int] = []
        self._behind: dict[str, tuple[frozenset[str], frozenset[str]]] = {}  # handle -> identifiers and lines behind it
        self._visible = Visible()
        self.mending = Mending(prices)
        self.recall, self.said, self.quoted = Counts(), Counts(), Counts()

    def read(self, message: Message) -> Used:
        """Take in the next message of the history, and tell what it used of the earlier ones."""
        self._sizes.append(tokens_of(message))
        return self._references.read(message)

    def look(self, view: View, bill: Bill, used: Used) -> int:
        """Look in the view of a request for what its answer used; return how many things are missing, which get mended.

        The answer has been read already, so the history is as long as it was before that.
        """
        self._visible.look(view.entries)
        self.mending.carry(bill)
        missing = 0
        wanted: dict[int, int] = {}  # position -> tokens of an original to be fetched
        requests = 1

        def reads(name: str) -> bool:
            visible = self._visible.identifier
            return visible(name) or (name in used.escaped and all(map(visible, identifiers(name[1:]))))

        for counts, things, shown, kind in (
            (self.recall, used.recall, reads, 0),
            (self.said, used.said, reads, 0),
            (self.quoted, used.quoted, self._visible.line, 1),
        ):
            for thing, positions in things.items():
                counts.used += 1
                if shown(thing):
                    counts.visible += 1
                    continue
                missing += 1
                found = self._reach(thing, kind, positions)
                counts.reached += found is not None
                if self.mending.lacks(positions):
                    position = positions[-1] if found is None else found
                    wanted[position] = self._sizes[position - 1]
                    requests = 2 if found is None else requests
        if wanted:
            self.mending.fetch(wanted, view_tokens=bill.tokens, length=len(self._sizes) - 1, requests=requests)
        return missing

    def tokens(self) -> dict[Sort, int]:
        """Tokens of the view that was looked at last, by what they are."""
        return self._visible.tokens

    def _reach(self, thing: str, kind: int, positions: Positions) -> int | None:
        """The position of a message that holds this and that a handle in the view brings back, if there is one."""
        for handle, position in self._visible.handles(positions):
            if handle not in self._behind:
                self._behind[handle] = _readable(self._fetch(handle))
            if thing in self._behind[handle][kind]:
                return position
        return None


def _readable(messages: Iterable[Message]) -> tuple[frozenset[str], frozenset[str]]:
    """The identifiers and the whole lines in messages."""
    names: set[str] = set()
    lines: set[str] = set()
    for message in messages:
        names |= identifiers(message.text) | identifiers(call_text(message.calls))
        lines |= whole_lines(message.text) | call_lines(message.calls)
    return frozenset(names), frozenset(lines)
