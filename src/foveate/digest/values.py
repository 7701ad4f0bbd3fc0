"""The values of this package: what a text is, its digest, and a line of a text as its reader hands it on.

It knows no kinds of text and no rules of what is kept.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Description", "Digest", "Line", "Reading"]


class Description(Struct, frozen=True):
    """What a text is."""

    kind: str
    """For example `json`, `listing`, `log`, `diff`, `code`, `table`, `matches`, `page`, `prose`, `binary`."""
    characters: int
    lines: int
    items: int = 0
    """How many things of its kind it holds; 0 where it holds none."""
    item: str = ""
    """What they are, in the plural: `rows`, `files`, `matches`."""
    gist: str = ""
    """One line, at most 80 characters."""

    def __str__(self) -> str:
        size = f"{self.items:,} {self.item}" if self.items else f"{self.lines:,} lines"
        return f"{self.kind}, {self.characters:,} characters, {size}" + (f": {self.gist}" if self.gist else "")


class Digest(Struct, frozen=True):
    """A text in short."""

    text: str
    description: Description
    is_whole: bool = False
    """Whether nothing was left out, because the text is not longer than its digest would be."""


class Line(Struct, gc=False):
    """A line that may be kept, whole or abridged."""

    number: int
    """Its number in the text, from 1; 0 where it stands for several."""
    text: str
    """What may be kept of it, without indentation."""
    weight: float = 1.0
    """How much likelier than others its identifiers are wanted later."""
    must: int = 0
    """Whether it is kept as a whole before anything else, while there is room: 4 before 3 before 2 before 1."""
    mark: str = ""
    """What is shown before it however little of it is kept: its number in another file."""
    above: int = -1
    """Index of the line that says what this one belongs to and is shown with it: a file, a heading; -1 for none."""


class Reading(Struct):
    """A text as the reader of its kind hands it on."""

    lines: list[Line]
    note: str = ""
    """What the digest's first line says beside kind and size."""
