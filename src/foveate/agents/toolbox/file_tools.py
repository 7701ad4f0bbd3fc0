"""Tools for the files of one folder: list, read, write, edit."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ...core.plurals import plural
from ..tools import Tool, ToolFailed, tool
from .folder import Folder, line_cut, lines_of

__all__ = ["files"]

_CHARACTERS_MAX = 24_000
"""Of one result: about 6,000 tokens."""
_LINE_MAX = 2_000
_LISTED_MAX = 200


def files(folder: str | os.PathLike[str], *, read_only: bool = False, needs_approval: bool = False) -> tuple[Tool, ...]:
    """Return `list_files`, `read_file`, `write_file` and `edit_file` for the files of `folder`.

    `read_only`: only the first two. `needs_approval`: the last two need approval. Raises BadSetting if there is no such
    folder.
    """
    home = Folder(folder)

    def list_files(path: str = ".", pattern: str = "*", deep: bool = False) -> str:
        """List a folder: names, sizes in bytes, folders with a slash behind them.

        Args:
            path: The folder.
            pattern: Only names or paths that fit this, such as *.py or src/*.md.
            deep: Whether to list what is in folders, too.
        """
        start = home.place(path)
        if not os.path.isdir(start):
            raise ToolFailed(f"There is no folder {path[:200]}.")
        places = list(islice(home.walk(start, pattern, deep=deep), 10_000))
        listed = [_listed(home, place) for place in places[:_LISTED_MAX]]
        if len(places) > _LISTED_MAX:
            more = f"{len(places) - _LISTED_MAX:,}{' or more' if len(places) == 10_000 else ''}"
            listed.append(f"[... {more} others: name a folder below, or a narrower pattern ...]")
        return "\n".join(listed) or "(nothing)"

    def read_file(path: str, start_line: int = 1, end_line: int | None = None) -> str:
        """Read a text file, or some of its lines.

        Args:
            path: The file.
            start_line: The first line to read, from 1.
            end_line: The last line to read; the file's end if left out.
        """
        return _read(home.text(path), path, start_line, end_line)

    def write_file(path: str, content: str) -> str:
        """Write a text file: a new one, or all of one that is there.

        Args:
            path: The file. Folders that are missing are made.
            content: All that the file is to hold.
        """
        place = home.place(path)
        is_new = not place.exists()
        if not is_new:
            place = home.file(path)
        _write(home, place, path, content)
        lines = len(lines_of(content))
        return f"{'Made' if is_new else 'Wrote'} {path}: {plural(lines, 'line')}."

    def edit_file(path: str, old: str, new: str, all: bool = False) -> str:
        """Replace a piece of a text file, given to the letter, by another.

        Args:
            path: The file.
            old: The text to replace, exactly as it stands in the file, with enough around it to be there only once.
            new: The text to put in its place.
            all: Replace it wherever it stands.
        """
        text = home.text(path)
        old, new = _with_ends_of(text, old, new)
        places = list(_places(text, old))
        if not places:
            raise ToolFailed(f"{path} does not hold this text: {_why_not(text, old)}. Read it, and copy it exactly.")
        if len(places) > 1 and not all:
            lines = ", ".join(str(_line(text, at)) for at in places[:10])
            raise ToolFailed(
                f"{path} holds this text {len(places)} times, in lines {lines}. Give more around it, or all=true."
            )
        if old == new:
            raise ToolFailed("Old and new are the same text.")
        _write(home, home.file(path), path, text.replace(old, new))
        if len(places) > 1:
            return f"Replaced {len(places)} places in {path}."
        first = _line(text, places[0])
        return f"Replaced in {path}, line {first}:\n{_around(text.replace(old, new), first, new)}"

    reading = (tool(list_files, is_repeatable=True), tool(read_file, is_repeatable=True))
    if read_only:
        return reading
    writing = (write_file, edit_file)  # Not in parallel: two edits of one file would undo each other.
    return (*reading, *(tool(function, needs_approval=needs_approval, is_parallel=False) for function in writing))


def _listed(home: Folder, place: Path) -> str:
    name = home.name_of(place)
    if os.path.isdir(place):
        return f"{name}/"
    try:
        return f"{name} {place.stat().st_size:,}"
    except OSError:
        return name


def _read(text: str, path: str, start_line: int, end_line: int | None) -> str:
    lines = lines_of(text)
    count = len(lines)
    first = max(1, start_line)
    last = count if end_line is None else min(end_line, count)
    if count == 0:
        return f"({path} is empty)"
    if first > count:
        raise ToolFailed(f"{path} has {count:,} lines, so none from {first:,} on.")
    if last < first:
        raise ToolFailed(f"The last line, {end_line}, is before the first, {first}.")
    shown: list[str] = []
    room = _CHARACTERS_MAX
    for line in lines[first - 1 : last]:
        cut = line_cut(line, _LINE_MAX)
        if room < len(cut) and shown:
            break
        shown.append(cut)
        room -= len(cut) + 1
    until = first + len(shown) - 1
    if until < last:
        shown.append(f"[... lines {first:,} to {until:,} of {count:,}; start_line={until + 1} shows more ...]")
    elif (first, last) != (1, count):
        shown.append(f"[lines {first:,} to {last:,} of {count:,}]")
    return "\n".join(shown)


def _write(home: Folder, place: Path, path: str, text: str) -> None:
    """Write a file as a whole: a reader sees the old or the new file, also after a crash."""
    if ".git" in home.name_of(place).lower().split("/"):
        raise ToolFailed(f"{path} belongs to git, which runs what is written there. Use git's own commands.")
    temporary = place.with_name(f".{secrets.token_hex(8)}.part")
    try:
        body = text.encode()
        home.make_parents(place)
        with open(temporary, "xb") as file:
            file.write(body)
        if place.exists():
            os.chmod(temporary, stat.S_IMODE(place.stat().st_mode))
        os.replace(temporary, place)
    except (OSError, UnicodeEncodeError) as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise ToolFailed(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}.") from error


def _with_ends_of(text: str, old: str, new: str) -> tuple[str, str]:
    """Return both texts with the line ends of the file: models always write `\\n`."""
    if "\r\n" in text and "\r" not in old + new:
        return old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    return old, new


def _places(text: str, old: str) -> Iterator[int]:
    at = text.find(old) if old else -1
    while at >= 0:
        yield at
        at = text.find(old, at + len(old))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _why_not(text: str, old: str) -> str:
    if not old.strip():
        return "it is blank"
    first = old.strip().splitlines()[0].strip()
    near = [number for number, line in enumerate(lines_of(text), 1) if first in line]
    if not near:
        return f"no line has {line_cut(first, 80)!r}"
    return f"line {near[0]} begins like it, and goes on, or is indented, in another way"


def _around(text: str, first: int, new: str) -> str:
    """Return the changed lines, with two lines around them."""
    lines = lines_of(text)
    begin, end = max(0, first - 3), min(len(lines), first + max(1, len(lines_of(new))) + 1)
    shown = [line_cut(line, 200) for line in lines[begin:end]]
    return "\n".join([*shown[:20], *(["[...]"] if len(shown) > 20 else [])])
