"""Values of this package: descriptions, digests, and the lines that readers return."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..core.plurals import plural

__all__ = ["Declaration", "Description", "Digest", "Line", "Reading", "has_one"]


def has_one(text: str, signs: Sequence[str]) -> bool:
    """Return whether a text has one of these texts in it."""
    return any(map(text.__contains__, signs))


class Description(Struct, frozen=True):
    """A text in a few facts."""

    kind: str
    """For example `json`, `values`, `listing`, `log`, `diff`, `code`, `table`, `matches`, `page`, `prose`, `binary`."""
    characters: int
    """The length of the text."""
    lines: int
    """The number of its lines."""
    items: int = 0
    """The number of its items; 0 if it has none."""
    item: str = ""
    """The name of one of its items: `row`, `file`, `match`."""
    gist: str = ""
    """Its topic in one line of at most 80 characters."""

    @property
    def counted_items(self) -> str:
        """Return the number of its items with their name, or of its lines: `41 rows`, `1 line`."""
        return plural(self.items, self.item) if self.items else plural(self.lines, "line")

    def __str__(self) -> str:
        size = f"{plural(self.characters, 'character')}, {self.counted_items}"
        return f"{self.kind}, {size}" + (f": {self.gist}" if self.gist else "")


class Digest(Struct, frozen=True):
    """The short form of a text."""

    text: str
    """The digest."""
    description: Description
    """The facts about the whole text."""
    is_whole: bool = False
    """Whether the text is complete, because it is not longer than its digest."""


class Line(Struct, gc=False):
    """A line that a digest may show: whole, or by its names only."""

    number: int
    """The number that is shown before it; 0 for none."""
    text: str
    """Its text without indentation."""
    weight: float = 1.0
    """How much likelier than others its identifiers are used later."""
    must: int = 0
    """Its rank among the lines that stay whole while there is room, the highest first; 0 for the others."""
    brief: str = ""
    """A shorter text for a line with a rank, if there is no room for all texts; "" if there is none."""
    mark: str = ""
    """A text that is shown before it: `+` of a diff, or its number in another file."""
    depth: int = 0
    """The number of levels that it is indented."""
    above: int = -1
    """Index of the line that is shown above it, such as a file name or a heading; -1 for none."""
    item: bool = False
    """Whether it is one of many short entries, which are shown several in a line."""
    worth: float = 0.0
    """The worth of a pair or a row apart from its identifiers, compared with an identifier; 0 for other lines."""


class Declaration(Struct, gc=False):
    """A declaration in source code."""

    row: int
    """Index of its first row."""
    last: int
    """Index of the last row of its signature."""
    rank: int
    """4 for classes and functions, 3 for methods, 2 for constants, 1 for imports."""
    depth: int
    """The number of declarations around it."""
    text: str
    """Its signature in one line."""
    brief: str = ""
    """Its keyword and name."""


class Reading(Struct):
    """The lines that the reader of a kind returns."""

    lines: list[Line]
    """The lines in their order."""
    note: str = ""
    """A fact for the first line of the digest, after kind and size."""
