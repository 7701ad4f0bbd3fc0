"""One TOML file, read whole: its tables, and the line on which each of its values stands.

Knows nothing of what the names in it mean.
"""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

from ...errors import BadSetting
from .said import Place, flat

__all__ = ["LARGEST", "TomlFile"]

LARGEST = 64 * 1024
"""Bytes of the largest file that is read: far above what anybody writes by hand."""

_LONGEST = 200
"""Lines of a statement, above which the lines of what follows are not looked for: that would take too long."""


class TomlFile:
    """A TOML file. Raises BadSetting, naming file and line, where it cannot be read or is no TOML."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.path, self.name = path, name or str(path)
        self._text = _text(path, self.name)
        self.tables = _parsed(self._text, self.name)

    def line_of(self, place: Place) -> int:
        """The line on which the value of this place begins, or the header of that table, from 1; 0: unknown."""
        return self._lines.get(place, 0)

    @cached_property
    def _lines(self) -> dict[Place, int]:
        """Each statement of the file is read by itself, so that no second grammar of TOML is needed to find it."""
        import tomllib

        found: dict[Place, int] = {}
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
                continue  # The statement goes on in the next line.
            is_header = pending.lstrip().startswith("[")
            pending = ""
            for place, _ in flat(tables):
                if is_header:
                    header = place
                for length in range(1, len(place) + 1):
                    found.setdefault(place[:length] if is_header else header + place[:length], first)
        return found


def _text(path: Path, name: str) -> str:
    try:
        kind = os.stat(path).st_mode
        content = _content(path) if S_ISREG(kind) else b""
    except FileNotFoundError:
        raise BadSetting(f"There is no file {name}.") from None
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have.
        raise BadSetting(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if not S_ISREG(kind):
        raise BadSetting(f"{name} is {'a folder' if S_ISDIR(kind) else 'no ordinary file'}; name a TOML file.")
    if len(content) > LARGEST:
        raise BadSetting(f"{name} is larger than {LARGEST:,} bytes: it cannot be a file of settings.")
    try:
        return content.decode("utf-8-sig")  # Some editors put a byte order mark before what they save.
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadSetting(f"{name}, line {line}: this is no UTF-8; save the file as UTF-8.") from error


def _content(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(LARGEST + 1)


def _parsed(text: str, name: str) -> dict[str, Any]:
    import tomllib  # Where no file is read it need not be imported.

    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise BadSetting(f"{name} holds lists in lists that are too deep.") from error
    except ValueError as error:
        said = str(error)
        at = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", said)
        if at is None:
            raise BadSetting(f"{name} is no TOML: {said}.") from error
        line = int(at[1]) if at[1] else text.rstrip("\n").count("\n") + 1
        column = f" (column {at[2]})" if at[2] else " (the file ends here)"
        raise BadSetting(f"{name}, line {line}: this is no TOML: {said[: at.start()]}{column}.") from error
