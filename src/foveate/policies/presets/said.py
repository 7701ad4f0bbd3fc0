"""What was said about settings, value by value, and by whom; one level laid over another.

A place is a path of names: `("prune", "protect")`. Knows nothing of which names there are.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from .toml_file import TomlFile

__all__ = ["Level", "Place", "Said", "Saying", "Source", "flat", "nearest", "nested", "over", "shown", "unsaid"]

Place = tuple[str, ...]
"""Where a value belongs: the names of the tables it is in, then its own."""


class Level(IntEnum):
    """Who spoke; the higher level counts."""

    DEFAULT = 0
    PRESET = 1
    FILE = 2
    ENVIRONMENT = 3
    KEYWORD = 4


class Source(Struct, frozen=True, eq=False):
    """Where a value comes from. `str()` tells it: `foveate.toml, line 3: prune.protect`, `default`."""

    level: Level
    name: str
    file: TomlFile | None = None
    place: Place = ()

    def __str__(self) -> str:
        if self.file is None:
            return self.name
        line = self.file.line_of(self.place)
        return f"{self.name}, line {line}: {'.'.join(self.place)}" if line else f"{self.name}: {'.'.join(self.place)}"

    @property
    def told(self) -> str:
        """The source inside of a sentence that tells what is wrong with its value."""
        is_bare = self.level is Level.PRESET and self.file is None and self.place
        return f"{self}: {'.'.join(self.place)}" if is_bare else str(self)

    @property
    def subject(self) -> str:
        """The source at the beginning of such a sentence; a file keeps the letters of its name."""
        return self.told if self.level is Level.FILE else self.told[0].upper() + self.told[1:]


class Said(Struct, frozen=True):
    """A value, and where it comes from."""

    value: object
    source: Source


Saying = Mapping[Place, Said]
"""All that one level says, or several laid over each other."""


def flat(table: Mapping[str, object], before: Place = ()) -> Iterator[tuple[Place, object]]:
    """The values of nested tables with their places; an empty table counts as a value."""
    for name, value in table.items():
        place = (*before, str(name))
        if isinstance(value, Mapping) and value:
            yield from flat(value, place)
        else:
            yield place, value


def nested(saying: Saying, below: Place) -> object:
    """What is said below a place: one value, or nested tables of values."""
    if below in saying:
        return saying[below].value
    tables: dict[str, object] = {}
    for place in saying:
        if place[: len(below)] == below:
            name = place[len(below)]
            if name not in tables:
                tables[name] = nested(saying, (*below, name))
    return tables


def over(lower: Saying, higher: Saying) -> dict[Place, Said]:
    """Both, where the higher speaks last. Tables are merged name by name; what is no table is replaced as a whole."""
    merged = dict(lower)
    for place, said in higher.items():
        inside = [other for other in merged if other[: len(place)] == place and other != place]
        if inside and said.value == {}:
            continue
        for other in inside:
            del merged[other]
        for length in range(1, len(place)):
            merged.pop(place[:length], None)
        merged[place] = said
    return merged


def unsaid(saying: Saying, below: Place) -> dict[Place, Said]:
    """All that is said but what is said at a place and below it."""
    return {place: said for place, said in saying.items() if place[: len(below)] != below}


def shown(value: object) -> str:
    """A value in an error message: short, whatever it is."""
    if isinstance(value, bool):
        return str(value).lower()  # As files and the environment write it.
    if isinstance(value, str) and len(value) <= 60:
        return repr(value)
    return reprlib.repr(value)


def nearest(name: object, known: Iterable[str]) -> str:
    """` Did you mean protect?` where a known name is near, else nothing."""
    from difflib import get_close_matches

    folded = {one.lower(): one for one in known}
    asked = str(name)[:200].lower()
    close = get_close_matches(asked, list(folded), n=1, cutoff=0.6)
    if not close and len(asked) > 3:  # `turns` is far from `expiration_turns`, and yet means it.
        close = [one for one in folded if asked in one]
    return f" Did you mean {folded[close[0]]}?" if len(close) == 1 else ""
