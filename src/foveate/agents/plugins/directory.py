"""What is in a folder, and what changed there since the model was last told."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ... import given
from ...core.enrich import AdditionalContent
from ...core.messages import Part
from ...errors import BadSetting
from ..toolbox.folders import SKIPPED, Folder
from .git import git_state
from .ignored import Ignored

__all__ = ["WorkingDirectory"]

_MOST_LOOKED_AT = 5_000
"""Files and folders: some 50 ms."""
_CLOCKS_APART = 10_000_000
"""Nanoseconds by which a file system's clock may be behind."""


class WorkingDirectory:
    """A plugin that tells what is in a folder: names and sizes, and the branch and commit of git.

    `save`: for how long that is shown. True (the default): for good; it is told whole, and then what changed, and
    nothing while nothing did, so what was sent is never changed; and whole again with every so many inputs of the user
    (`whole_every`), since what was told may be summed up by then. False: whole, at the coming call alone, with all that
    the user says. A number: whole, for so many later calls, and told anew when they are over or something changed.
    `after_tools`: also tell what changed when tools have answered; else with what the user says next. `most`: lines at
    most. `ignore`: patterns of names that are left out, beside those of the folder's `.gitignore` and what programs
    leave behind. One plugin tells one conversation. Raises BadSetting where there is no such folder.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] = ".",
        *,
        save: bool | int = True,
        after_tools: bool = False,
        most: int = 60,
        whole_every: int = 50,
        ignore: Sequence[str] = (),
        name: str = "working directory",
    ) -> None:
        AdditionalContent("", save_to_history=save)  # Refuses what is no time.
        given.whole("most= (lines)", most, 1)
        given.whole("whole_every= (user inputs)", whole_every, 1)
        given.instance("after_tools=", after_tools, bool, "True or False")
        self.name = name
        self._home = Folder(folder)
        if isinstance(ignore, str) or not all(isinstance(one, str) for one in ignore):
            raise BadSetting(f"ignore= is a list of patterns, such as ['*.log'], not {ignore!r:.60}.")
        self._save, self._after_tools, self._most, self._ignore = save, after_tools, most, tuple(ignore)
        self._whole_every = whole_every
        self._told: _Look | None = None
        self._inputs = 0
        """User inputs since it was told whole."""

    def __call__(self, content: tuple[Part, ...], /) -> AdditionalContent | None:
        if not content and not self._after_tools:
            return None
        look, told = _look(self._home, Ignored(self._home.root, self._ignore)), self._told
        self._inputs += bool(content)
        text = self._news(look, told)
        if not text:
            return None
        self._told = look
        return AdditionalContent(text, save_to_history=self._save)

    def _news(self, look: _Look, told: _Look | None) -> str:
        if self._save is True and told is not None and self._inputs < self._whole_every:
            changes = list(_changes(told, look, self._home))
            return "\n".join(["Changed since you were last told:", *_cut(changes, self._most)]) if changes else ""
        is_over = isinstance(self._save, bool) or self._inputs > self._save
        if told is not None and not is_over and not any(_changes(told, look, self._home)):
            return ""
        self._inputs = 0
        return "\n".join([f"{self._home.root}{look.git and ', '}{look.git}", *_listing(look, self._most)])


class _Look(NamedTuple):
    """What was there at a moment."""

    files: dict[str, tuple[int, int]]
    """Size and time of change of each file, by its path; of a folder (-1, 0)."""
    is_all: bool
    at: int
    """Nanoseconds since 1970."""
    git: str


def _look(home: Folder, ignored: Ignored) -> _Look:
    at = time.time_ns() - _CLOCKS_APART
    found = dict(islice(_walk(str(home.root), ignored), _MOST_LOOKED_AT + 1))
    is_all = len(found) <= _MOST_LOOKED_AT
    if not is_all:
        found.popitem()
    return _Look(found, is_all, at, git_state(home.root))


def _walk(root: str, ignored: Ignored) -> Iterator[tuple[str, tuple[int, int]]]:
    """Breadth first, so that what is on top is told even where there is too much; by name. Links are not followed."""
    waiting = deque([""])
    while waiting:
        folder = waiting.popleft()
        try:
            inside = sorted(os.scandir(os.path.join(root, folder)), key=lambda one: one.name)
        except OSError:
            continue  # Gone by now, or not ours to read.
        for one in inside:
            path = f"{folder}{one.name}"
            try:
                is_folder = one.is_dir(follow_symlinks=False)
                if ignored(path, is_folder) or (is_folder and one.name in SKIPPED):
                    continue
                if is_folder:
                    waiting.append(f"{path}/")
                    yield f"{path}/", (-1, 0)
                else:
                    about = one.stat(follow_symlinks=False)
                    yield path, (about.st_size, about.st_mtime_ns)
            except OSError:
                continue


def _listing(look: _Look, most: int) -> list[str]:
    if not look.files:
        return ["(empty)"]
    lines = [path if size < 0 else f"{path} {size:,}" for path, (size, _) in look.files.items()]
    return _cut(lines, most, "" if look.is_all else " or more")


def _cut(lines: list[str], most: int, more: str = "") -> list[str]:
    if len(lines) <= most and not more:
        return lines
    return [*lines[:most], f"[and {len(lines[most:]):,}{more} others]"]


def _changes(old: _Look, new: _Look, home: Folder) -> Iterable[str]:
    if old.git != new.git:
        yield f"{old.git or 'no git'} -> {new.git or 'no git'}"
    for path, (size, changed) in new.files.items():
        before = old.files.get(path)
        if before is None:
            if old.is_all or changed >= old.at:  # Else it may only have been too far down to be looked at.
                yield f"new: {path}" if size < 0 else f"new: {path} {size:,}"
        elif before != (size, changed):
            yield f"changed: {path} {before[0]:,} -> {size:,}" if before[0] != size else f"changed: {path} {size:,}"
    for path in old.files:
        if path not in new.files and not os.path.lexists(home.root / path):
            yield f"gone: {path}"
