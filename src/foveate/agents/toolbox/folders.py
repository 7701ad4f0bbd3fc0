"""A folder that tools may touch, and nothing beside it: where a path leads is found out before it is opened.

A fence against the mistakes of a model, not a prison: a program that swaps a link between the look and the opening
gets out, and so does a shell. Knows nothing of tools.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from ...errors import BadSetting
from ..tools import ToolFailed

__all__ = ["SKIPPED", "Folder"]

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
"""Folders that are not looked into unless they are named: what is in them was written by programs."""

_MOST_BYTES = 4_000_000
"""A larger file is no text that a model could work on."""
_MOST_NAME = 200
"""Characters of a path that are said again."""
_LOOKED_AT = 8_192
"""Bytes at the beginning that tell a text from something else, as git does it."""


class Folder:
    """A folder, and what is in it. Raises BadSetting where there is no such folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self.root = Path(path).expanduser().resolve(strict=True)
        except (OSError, TypeError, ValueError, RuntimeError) as error:
            raise BadSetting(f"There is no folder {str(path)!r:.200} for tools to work in: {error}.") from error
        if not self.root.is_dir():
            raise BadSetting(f"{str(path)!r:.200} is not a folder. Tools need one to work in.")

    def place(self, name: str) -> Path:
        """Where a path leads, relative to the folder or absolute, links followed. Raises ToolFailed for one that leads
        out of the folder.
        """
        said = name[:_MOST_NAME]
        try:
            place = (self.root / name).resolve()
            place.exists()  # Raises for a name that is too long.
        except (OSError, ValueError, RuntimeError) as error:  # Null bytes, names too long, links in a circle.
            raise ToolFailed(f"{said!r} is no path: {str(error)[:_MOST_NAME]}.") from error
        if place != self.root and self.root not in place.parents:
            raise ToolFailed(f"{said} is outside of the folder that may be used. Paths are relative to it.")
        return place

    def name_of(self, place: Path) -> str:
        """A place as its users write it: relative, with `/` between; `.` for the folder itself."""
        return place.relative_to(self.root).as_posix()

    def file(self, name: str) -> Path:
        """The regular file of this name. Raises ToolFailed where there is none."""
        place = self.place(name)
        try:
            mode = place.stat().st_mode
        except OSError:
            near = self._near(place)
            raise ToolFailed(
                f"There is no file {name[:_MOST_NAME]}." + (f" Did you mean {near}?" if near else "")
            ) from None
        if stat.S_ISDIR(mode):
            raise ToolFailed(f"{name} is a folder. List it.")
        if not stat.S_ISREG(mode):  # To read a pipe or a device might wait for ever.
            raise ToolFailed(f"{name} is no regular file.")
        return place

    def text(self, name: str) -> str:
        """What a file holds, its line ends as they are. Raises ToolFailed for what is no text, or too large."""
        place = self.file(name)
        size = place.stat().st_size
        if size > _MOST_BYTES:
            raise ToolFailed(f"{name} has {size:,} bytes, too many to be read. Search it, or look at a part of it.")
        try:
            body = place.read_bytes()
        except OSError as error:
            raise ToolFailed(f"{name} cannot be read: {error.strerror}.") from error
        if (text := _decoded(body)) is None:
            raise ToolFailed(f"{name} is no text ({size:,} bytes of {_kind(body)}).")
        return text

    def walk(self, start: Path, pattern: str = "*", *, deep: bool = True) -> Iterator[Path]:
        """Files and folders under `start` whose name, or path under the folder, fits `pattern`, in order of name; links
        that lead out are left out, and links to folders are not followed. Folders of programs are not looked into.
        """
        levels = [_scan(start)]  # A list, not recursion: a folder may be nested deeper than Python's stack.
        while levels:
            found = next(levels[-1], None)
            if found is None:
                levels.pop()
                continue
            place = Path(found.path)
            if found.is_symlink() and not self._is_inside(place):
                continue
            if _fits(place.name, pattern) or _fits(self.name_of(place), pattern):
                yield place
            if deep and found.is_dir(follow_symlinks=False) and found.name not in SKIPPED:
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
        """Another file of that name, for a model that forgot the folder."""
        for number, found in enumerate(self.walk(self.root)):
            if found.name == place.name and os.path.isfile(found):
                return self.name_of(found)
            if number > 5_000:
                break
        return ""


def _scan(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Return the entries of a folder in order of name; none if it cannot be read."""
    try:
        return iter(sorted(os.scandir(folder), key=lambda entry: entry.name))
    except OSError:
        return iter(())


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or (pattern.startswith("**/") and fnmatchcase(name, pattern[3:]))


def _decoded(body: bytes) -> str | None:
    if b"\0" in body[:_LOOKED_AT]:
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
    return "binary data" if b"\0" in body[:_LOOKED_AT] else "another encoding than UTF-8"
