"""Values of this package: descriptions, digests, and the lines that readers return."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Description", "Digest", "Line", "Reading"]


class Description(Struct, frozen=True):
    """A text in a few facts."""

    kind: str
    """For example `json`, `listing`, `log`, `diff`, `code`, `table`, `matches`, `page`, `prose`, `binary`."""
    characters: int
    lines: int
    items: int = 0
    """The number of its items; 0 if it has none."""
    item: str = ""
    """The name of its items in the plural: `rows`, `files`, `matches`."""
    gist: str = ""
    """Its topic in one line of at most 80 characters."""

    def __str__(self) -> str:
        size = f"{self.items:,} {self.item}" if self.items else f"{self.lines:,} lines"
        return f"{self.kind}, {self.characters:,} characters, {size}" + (f": {self.gist}" if self.gist else "")


class Digest(Struct, frozen=True):
    """The short form of a text."""

    text: str
    description: Description
    is_whole: bool = False
    """Whether the text is complete, because it is not longer than its digest."""


class Line(Struct, gc=False):
    """A line that a digest may keep, whole or abridged."""

    number: int
    """Its number in the text, from 1; 0 for a line that stands for several."""
    text: str
    """Its text without indentation."""
    weight: float = 1.0
    """How much likelier than others its identifiers are used later."""
    must: int = 0
    """Its rank among the lines that stay whole while there is room: 4 before 3 before 2 before 1; 0 for the others."""
    mark: str = ""
    """A text that is always shown before it: its number in another file."""
    above: int = -1
    """Index of the line that is shown above it, such as a file name or a heading; -1 for none."""


class Reading(Struct):
    """The lines that the reader of a kind returns."""

    lines: list[Line]
    note: str = ""
    """A fact for the first line of the digest, after kind and size."""
