"""Sources of settings: each value with the place that set it, and layers of values laid over each other."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

from msgspec import Struct

from ...errors import BadSetting

__all__ = [
    "DEFAULT",
    "LARGEST",
    "Layer",
    "Level",
    "Place",
    "Source",
    "Sourced",
    "TomlFile",
    "flatten",
    "merge",
    "nested",
    "shorten",
    "suggest",
    "without",
]

Place = tuple[str, ...]
"""The path of a value: the names of its tables, then its own, such as `("prune", "protect")`."""

LARGEST = 64 * 1024
"""Bytes of the largest file that is read."""

_LONGEST = 200
"""Lines of the longest statement in which line numbers are looked for: longer ones would take too long."""


class Level(IntEnum):
    """The kind of a source. A higher level takes precedence."""

    DEFAULT = 0
    PRESET = 1
    FILE = 2
    ENVIRONMENT = 3
    KEYWORD = 4


class Source(Struct, frozen=True, eq=False):
    """The source of a value. `str()` names it: `foveate.toml, line 3: prune.protect`, `default`."""

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
    def phrase(self) -> str:
        """The source and its setting, inside a sentence."""
        is_bare = self.level is Level.PRESET and self.file is None and self.place
        return f"{self}: {'.'.join(self.place)}" if is_bare else str(self)

    @property
    def subject(self) -> str:
        """The same at the beginning of a sentence; a file name keeps its letters."""
        return self.phrase if self.level is Level.FILE else self.phrase[0].upper() + self.phrase[1:]

    def at(self, place: Place, file: TomlFile | None = None) -> Source:
        """Return the source of one value of this level."""
        return Source(self.level, self.name, file or self.file, place)


DEFAULT = Source(Level.DEFAULT, "default")


class Sourced(Struct, frozen=True):
    """A value and its source."""

    value: object
    source: Source


Layer = Mapping[Place, Sourced]
"""The values that one source sets, or several sources together, by their places."""


def flatten(table: Mapping[str, object], above: Place = ()) -> Iterator[tuple[Place, object]]:
    """Yield the values of nested tables with their places; an empty table counts as a value."""
    for name, value in table.items():
        place = (*above, str(name))
        if isinstance(value, Mapping) and value:
            yield from flatten(value, place)
        else:
            yield place, value


def nested(layer: Layer, below: Place) -> object:
    """Return the value at a place, or the nested tables below it."""
    if below in layer:
        return layer[below].value
    tables: dict[str, object] = {}
    for place in layer:
        if place[: len(below)] == below and place[len(below)] not in tables:
            tables[place[len(below)]] = nested(layer, (*below, place[len(below)]))
    return tables


def merge(lower: Layer, higher: Layer) -> dict[Place, Sourced]:
    """Lay one layer over another. Tables are merged name by name; any other value is replaced as a whole."""
    merged = dict(lower)
    for place, sourced in higher.items():
        inside = [other for other in merged if other[: len(place)] == place and other != place]
        if inside and sourced.value == {}:
            continue
        for other in inside:
            del merged[other]
        for length in range(1, len(place)):
            merged.pop(place[:length], None)
        merged[place] = sourced
    return merged


def without(layer: Layer, below: Place) -> dict[Place, Sourced]:
    """Return a layer without the value at a place and those below it."""
    return {place: sourced for place, sourced in layer.items() if place[: len(below)] != below}


def shorten(value: object) -> str:
    """Return a value for an error message, in few characters."""
    if isinstance(value, bool):
        return str(value).lower()  # As files and the environment write it.
    if isinstance(value, str) and len(value) <= 60:
        return repr(value)
    return reprlib.repr(value)


def suggest(name: object, known: Iterable[str]) -> str:
    """Return ` Did you mean protect?` if a known name is similar, else nothing."""
    from difflib import get_close_matches

    folded = {candidate.lower(): candidate for candidate in known}
    asked = str(name)[:200].lower()
    close = get_close_matches(asked, list(folded), n=1, cutoff=0.6)
    if not close and len(asked) > 3:  # `turns` is far from `expiration_turns`, but means it.
        close = [candidate for candidate in folded if asked in candidate]
    return f" Did you mean {folded[close[0]]}?" if len(close) == 1 else ""


class TomlFile:
    """A TOML file: its tables, and the line of each value. Raises BadSetting, with file and line, for a bad file."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.path, self.name = path, name or str(path)
        self._text = _read(path, self.name)
        self.tables = _parse(self._text, self.name)

    def line_of(self, place: Place) -> int:
        """Return the line on which a value or the header of a table begins, from 1; 0 if it is unknown."""
        return self._lines.get(place, 0)

    @cached_property
    def _lines(self) -> dict[Place, int]:
        """The lines of all values. Each statement is parsed alone, so that no second grammar of TOML is needed."""
        import tomllib

        lines: dict[Place, int] = {}
        header: Place = ()
        first, pending = 1, ""
        for number, line in enumerate(self._text.split("\n"), 1):
            first = first if pending else number
            pending += line + "\n"
            try:
                tables = tomllib.loads(pending)
            except (ValueError, RecursionError):
                if number - first > _LONGEST:
                    break
                continue  # The statement continues on the next line.
            is_header = pending.lstrip().startswith("[")
            pending = ""
            for place, _ in flatten(tables):
                if is_header:
                    header = place
                for length in range(1, len(place) + 1):
                    lines.setdefault(place[:length] if is_header else header + place[:length], first)
        return lines


def _read(path: Path, name: str) -> str:
    try:
        mode = os.stat(path).st_mode
        content = b""
        if S_ISREG(mode):
            with open(path, "rb") as file:
                content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise BadSetting(f"There is no file {name}.") from None
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have.
        raise BadSetting(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if not S_ISREG(mode):
        raise BadSetting(f"{name} is {'a folder' if S_ISDIR(mode) else 'no ordinary file'}; name a TOML file.")
    if len(content) > LARGEST:
        raise BadSetting(f"{name} is larger than {LARGEST:,} bytes: it cannot be a file of settings.")
    try:
        return content.decode("utf-8-sig")  # Some editors write a byte order mark first.
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadSetting(f"{name}, line {line}: this is no UTF-8; save the file as UTF-8.") from error


def _parse(text: str, name: str) -> dict[str, Any]:
    import tomllib  # Programs that read no file need not import it.

    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise BadSetting(f"{name} holds lists in lists that are too deep.") from error
    except ValueError as error:
        reason = str(error)
        position = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", reason)
        if position is None:
            raise BadSetting(f"{name} is no TOML: {reason}.") from error
        line = int(position[1]) if position[1] else text.rstrip("\n").count("\n") + 1
        column = f" (column {position[2]})" if position[2] else " (the file ends here)"
        raise BadSetting(f"{name}, line {line}: this is no TOML: {reason[: position.start()]}{column}.") from error
