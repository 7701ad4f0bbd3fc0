"""How far a page has seen a conversation."""

from __future__ import annotations

from msgspec import Struct

from ...ports import Head

__all__ = ["Place"]


class Place(Struct, frozen=True):
    """The end of a conversation at some time: its branch, newest message, newest edit and newest erasure."""

    branch: int
    position: int
    number: int
    erased: int

    def __str__(self) -> str:
        """Return the place as one word, for a form and for the id of an event."""
        return f"{self.branch}.{self.position}.{self.number}.{self.erased}"

    @staticmethod
    def read(text: str) -> Place | None:
        """Return the place that a word names, or None."""
        parts = text.split(".")
        if len(parts) != 4 or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
            return None
        return Place(*map(int, parts))

    @staticmethod
    def of(head: Head) -> Place:
        """Return the place at the end of a conversation."""
        return Place(head.branch, head.position, head.number, head.erased)

    def has_past_of(self, other: Place) -> bool:
        """Return whether both places have the same past, as far as numbers tell."""
        return (self.branch, self.erased) == (other.branch, other.erased)
