"""A folder that limits file tools, and helpers that cut text to a size for models.

Paths are resolved before they are opened. This guards against mistakes of a model, not against attacks: a program that
swaps a link between the check and the opening escapes, and so does a shell. A hard link is an ordinary file: it can be
read here, even if its other name is outside of the folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from ...errors import BadSetting
from ..tools import ToolFailed

__all__ = ["SKIPPED", "Folder", "line_cut", "lines_of"]

SKIPPED = frozenset(
    (
        ".git",
        ".hg",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        "__pycache__",
        "node_modules",
    )
)
"""Folders that programs write. They are skipped unless they are named."""

_BYTES_MAX = 4_000_000
"""Of a file that is read as text."""
_NAME_MAX = 200
"""Characters of a path in a message."""
_SAMPLE = 8_192
"""Bytes at the beginning that decide whether a file is text, as in git."""


class Folder:
    """A folder and its files. Raises BadSetting if there is no such folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self.root = Path(path).expanduser().resolve(strict=True)
        except (OSError, TypeError, ValueError, RuntimeError) as error:
            raise BadSetting(f"There is no folder {str(path)!r:.200} for tools to work in: {error}.") from error
        if not self.root.is_dir():
            raise BadSetting(f"{str(path)!r:.200} is not a folder. Tools need one to work in.")

    def place(self, name: str) -> Path:
        """Resolve a path, relative to the folder or absolute, with its links. Raises ToolFailed for a path outside of
        the folder.
        """
        shown = name[:_NAME_MAX]
        try:
            place = (self.root / name).resolve()
            place.exists()  # Raises for a name that is too long.
        except (OSError, ValueError, RuntimeError) as error:  # Null bytes, names too long, links in a circle.
            raise ToolFailed(f"{shown!r} is no path: {str(error)[:_NAME_MAX]}.") from error
        if place != self.root and self.root not in place.parents:
            raise ToolFailed(f"{shown} is outside of the folder that may be used. Paths are relative to it.")
        return place

    def name_of(self, place: Path) -> str:
        """Return a place as a relative path with `/`; `.` for the folder itself."""
        return place.relative_to(self.root).as_posix()

    def file(self, name: str) -> Path:
        """Return the regular file of this name. Raises ToolFailed if there is none."""
        place = self.place(name)
        try:
            mode = place.stat().st_mode
        except OSError:
            near = self._near(place)
            raise ToolFailed(
                f"There is no file {name[:_NAME_MAX]}." + (f" Did you mean {near}?" if near else "")
            ) from None
        if stat.S_ISDIR(mode):
            raise ToolFailed(f"{name} is a folder. List it.")
        if not stat.S_ISREG(mode):  # Reading a pipe or a device may wait forever.
            raise ToolFailed(f"{name} is no regular file.")
        return place

    def text(self, name: str) -> str:
        """Return the text of a file with its own line ends. Raises ToolFailed if it is no text, or too large."""
        place = self.file(name)
        size = place.stat().st_size
        if size > _BYTES_MAX:
            raise ToolFailed(f"{name} has {size:,} bytes, too many to be read. Search it, or look at a part of it.")
        try:
            body = place.read_bytes()
        except OSError as error:
            raise ToolFailed(f"{name} cannot be read: {error.strerror}.") from error
        if (text := _decoded(body)) is None:
            raise ToolFailed(f"{name} is no text ({size:,} bytes of {_kind(body)}).")
        return text

    def walk(self, start: Path, pattern: str = "*", *, deep: bool = True) -> Iterator[Path]:
        """Yield files and folders under `start` whose name, or path in this folder, matches `pattern`, sorted by name.

        Links that lead out of the folder are skipped, links to folders are not followed, and neither are folders that
        programs write.
        """
        levels = [_scan(start)]  # A list, not recursion: a folder may be nested deeper than Python's stack.
        while levels:
            entry = next(levels[-1], None)
            if entry is None:
                levels.pop()
                continue
            place = Path(entry.path)
            if entry.is_symlink() and not self._is_inside(place):
                continue
            if _matches(place.name, pattern) or _matches(self.name_of(place), pattern):
                yield place
            if deep and entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED:
                levels.append(_scan(place))

    def make_parents(self, place: Path) -> None:
        """Make the folders above a place that do not exist."""
        missing = []
        while not place.parent.exists():
            place = place.parent
            missing.append(place)
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)

    def _is_inside(self, place: Path) -> bool:
        try:
            self.place(self.name_of(place))
        except ToolFailed:
            return False
        return os.path.exists(place)

    def _near(self, place: Path) -> str:
        """Return another file of that name, for a model that forgot the folder."""
        for number, other in enumerate(self.walk(self.root)):
            if other.name == place.name and os.path.isfile(other):
                return self.name_of(other)
            if number > 5_000:
                break
        return ""


def _scan(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Return the entries of a folder in order of name; none if it cannot be read."""
    try:
        return iter(sorted(os.scandir(folder), key=lambda entry: entry.name))
    except OSError:
        return iter(())


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or (pattern.startswith("**/") and fnmatchcase(name, pattern[3:]))


def _decoded(body: bytes) -> str | None:
    if b"\0" in body[:_SAMPLE]:
        return None
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _kind(body: bytes) -> str:
    for start, kind in ((b"\x89PNG", "a PNG image"), (b"\xff\xd8\xff", "a JPEG image"), (b"GIF8", "a GIF image")):
        if body.startswith(start):
            return kind
    for start, kind in ((b"%PDF", "a PDF document"), (b"PK\x03\x04", "a ZIP archive"), (b"SQLite format 3", "SQLite")):
        if body.startswith(start):
            return kind
    return "binary data" if b"\0" in body[:_SAMPLE] else "another encoding than UTF-8"


# ------------------------------------------------------------------------------------------------------- bounded text


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as editors and `grep` count them, without line ends."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def line_cut(line: str, limit: int) -> str:
    """Return a line, cut after `limit` characters, with a note."""
    return line if len(line) <= limit else f"{line[:limit]}... [{len(line) - limit:,} more characters]"
