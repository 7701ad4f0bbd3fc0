"""The journal: the numbered edits of a conversation, in the records they were committed in.

A plan is committed as one record, or not at all. Edits are numbered from 1 over the whole journal, so that an edit
can be named (`why`, `undo`) for ever. Records are chained by hash like the messages are (`ids.record_id`).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from .edits import Edit

__all__ = ["Record"]


class Record(Struct, frozen=True, omit_defaults=True):
    """What one commit did to the view."""

    first: int
    """Number of its first edit; the others follow."""
    edits: tuple[Edit, ...]
    turn: int
    """The first model call that sees the change."""
    time: int
    """Milliseconds since 1970, by the conversation's clock."""
    tip: str
    """Id of the newest message when it was planned: what came later is not covered by it."""
    position: int
    """Position of that message."""
    tokens_before: int = 0
    tokens_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    author: str = ""
    """`plan` where policies made it, otherwise the call that did: `expand`, `pin`, `undo`, `edit`, ..."""

    @property
    def last(self) -> int:
        """Number of its last edit."""
        return self.first + len(self.edits) - 1

    def numbered(self) -> Iterator[tuple[int, Edit]]:
        """Its edits, each with its number."""
        return enumerate(self.edits, self.first)
