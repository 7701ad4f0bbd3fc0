"""`WorkingDirectory`: a plugin that shows a folder to the model, and then its changes."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from ...conversation import validate
from ...conversation.plugins import are_results
from ...core.enrich import AdditionalContent
from ...core.messages import Part
from ...errors import BadSetting
from ..toolbox.folder import SKIPPED, Folder

__all__ = ["Ignored", "WorkingDirectory", "git_state"]

_ENTRIES_MAX = 5_000
"""Files and folders that are read, in about 50 ms."""
_CLOCK_SKEW = 10_000_000
"""Nanoseconds by which a file system's clock may be late."""


class WorkingDirectory:
    """A plugin that shows a folder: names and sizes of files, and the branch and commit of git.

    `save`: how long that stays in the view.

    - True (default): for good. The first message has the whole folder, later ones only its changes, so that sent
      messages never change. Every `whole_every` user inputs the whole folder comes again, because the earlier message
      may have been summarized.
    - False: the whole folder with every user input, for the coming call only.
    - A number: the whole folder, for so many later calls; again when they are over, or when something has changed.

    `after_tools`: also show changes after tool results, not only with the next user input. `max_lines`: limit of a
    message. `ignore`: patterns of names to leave out, in addition to the folder's `.gitignore` and to files that
    programs leave behind. One plugin serves one conversation. Raises BadSetting if there is no such folder.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] = ".",
        *,
        save: bool | int = True,
        after_tools: bool = False,
        max_lines: int = 60,
        whole_every: int = 50,
        ignore: Sequence[str] = (),
        name: str = "working directory",
    ) -> None:
        AdditionalContent("", save_to_history=save)  # Raises for a bad value.
        validate.integer("max_lines=", max_lines, 1)
        validate.integer("whole_every= (user inputs)", whole_every, 1)
        validate.instance("after_tools=", after_tools, bool, "True or False")
        self.name = name
        """The name of the plugin."""
        self._home = Folder(folder)
        if isinstance(ignore, str) or not all(isinstance(pattern, str) for pattern in ignore):
            raise BadSetting(f"ignore= must be a list of patterns, such as ['*.log'], not {ignore!r:.60}.")
        self._save, self._after_tools, self._max_lines, self._ignore = save, after_tools, max_lines, tuple(ignore)
        self._whole_every = whole_every
        self._shown: _Snapshot | None = None
        """The state that the model has seen."""
        self._inputs = 0
        """User inputs since the whole folder was shown."""

    def __call__(self, content: tuple[Part, ...], /) -> AdditionalContent | None:
        after_tools = are_results(content)
        if after_tools and not self._after_tools:
            return None
        snapshot = _snapshot(self._home, Ignored(self._home.root, self._ignore))
        self._inputs += not after_tools
        text = self._text(snapshot, self._shown)
        if not text:
            return None
        self._shown = snapshot
        return AdditionalContent(text, save_to_history=self._save)

    def _text(self, snapshot: _Snapshot, shown: _Snapshot | None) -> str:
        if self._save is True and shown is not None and self._inputs < self._whole_every:
            changes = list(_changes(shown, snapshot, self._home))
            return "\n".join(["Changed since you were last told:", *_cut(changes, self._max_lines)]) if changes else ""
        is_over = isinstance(self._save, bool) or self._inputs > self._save
        if shown is not None and not is_over and not any(_changes(shown, snapshot, self._home)):
            return ""
        self._inputs = 0
        head = f"{self._home.root}{snapshot.git and ', '}{snapshot.git}"
        return "\n".join([head, *_listing(snapshot, self._max_lines)])


class _Snapshot(NamedTuple):
    """The state of a folder."""

    files: dict[str, tuple[int, int]]
    """Size and modification time by path; (-1, 0) for a folder."""
    is_complete: bool
    at: int
    """Nanoseconds since 1970."""
    git: str


def _snapshot(home: Folder, ignored: Ignored) -> _Snapshot:
    at = time.time_ns() - _CLOCK_SKEW
    entries = dict(islice(_walk(str(home.root), ignored), _ENTRIES_MAX + 1))
    is_complete = len(entries) <= _ENTRIES_MAX
    if not is_complete:
        entries.popitem()
    return _Snapshot(entries, is_complete, at, git_state(home.root))


def _walk(root: str, ignored: Ignored) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield entries breadth first, so that a large folder still shows its top, sorted by name. Do not follow links."""
    waiting = deque([""])
    while waiting:
        folder = waiting.popleft()
        try:
            inside = sorted(os.scandir(os.path.join(root, folder)), key=lambda entry: entry.name)
        except OSError:
            continue  # It was removed, or cannot be read.
        for entry in inside:
            path = f"{folder}{entry.name}"
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                if ignored(path, is_folder) or (is_folder and entry.name in SKIPPED):
                    continue
                if is_folder:
                    waiting.append(f"{path}/")
                    yield f"{path}/", (-1, 0)
                else:
                    status = entry.stat(follow_symlinks=False)
                    yield path, (status.st_size, status.st_mtime_ns)
            except OSError:
                continue


def _listing(snapshot: _Snapshot, max_lines: int) -> list[str]:
    if not snapshot.files:
        return ["(empty)"]
    lines = [path if size < 0 else f"{path} {size:,}" for path, (size, _) in snapshot.files.items()]
    return _cut(lines, max_lines, "" if snapshot.is_complete else " or more")


def _cut(lines: list[str], max_lines: int, more: str = "") -> list[str]:
    if len(lines) <= max_lines and not more:
        return lines
    return [*lines[:max_lines], f"[and {len(lines[max_lines:]):,}{more} others]"]


def _changes(old: _Snapshot, new: _Snapshot, home: Folder) -> Iterable[str]:
    if old.git != new.git:
        yield f"{old.git or 'no git'} -> {new.git or 'no git'}"
    for path, (size, changed) in new.files.items():
        before = old.files.get(path)
        if before is None:
            if old.is_complete or changed >= old.at:  # An older file may have been beyond the limit.
                yield f"new: {path}" if size < 0 else f"new: {path} {size:,}"
        elif before != (size, changed):
            yield f"changed: {path} {before[0]:,} -> {size:,}" if before[0] != size else f"changed: {path} {size:,}"
    for path in old.files:
        if path not in new.files and not os.path.lexists(home.root / path):
            yield f"gone: {path}"


# ----------------------------------------------------------------------------------------------------------------- git

_GIT_FILE_MAX = 10_000_000
"""Bytes of a git file that are read."""
_OPERATIONS = {
    "MERGE_HEAD": "merging",
    "rebase-merge": "rebasing",
    "rebase-apply": "rebasing",
    "CHERRY_PICK_HEAD": "cherry-picking",
    "REVERT_HEAD": "reverting",
    "BISECT_LOG": "bisecting",
}


def git_state(folder: Path) -> str:
    """Return, for example, `git branch main at 0c8fbf5, merging`; "" if there is no repository.

    Only git's files are read: no program runs. Uncommitted changes are not reported: that needs reading all files.
    """
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return _state(place / ".git")
    return ""


def _state(git: Path) -> str:
    if git.is_file():  # A worktree or a submodule: the file names its folder.
        target = _read_git(git).removeprefix("gitdir:").strip()
        git = git.parent / target
    head = _read_git(git / "HEAD").strip()
    shared = git / (_read_git(git / "commondir").strip() or ".")
    if head.startswith("ref:"):
        name = head.removeprefix("ref:").strip()
        commit = _read_git(git / name).strip() or _read_git(shared / name).strip() or _packed(shared, name)
        where = f"git branch {name.removeprefix('refs/heads/')}"
        text = f"{where} at {commit[:7]}" if commit else f"{where}, no commit"
    elif head:
        text = f"git at {head[:7]}, no branch"
    else:
        return ""
    operations = [operation for file, operation in _OPERATIONS.items() if (git / file).exists()]
    return ", ".join([text, *dict.fromkeys(operations)])


def _packed(git: Path, name: str) -> str:
    for line in _read_git(git / "packed-refs").splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _read_git(place: Path) -> str:
    try:
        with place.open("rb") as file:
            return file.read(_GIT_FILE_MAX).decode("utf-8", "replace")
    except OSError:
        return ""


# ------------------------------------------------------------------------------------------------------- ignored files

LEFT_BY_PROGRAMS = ("*-wal", "*-shm", "*-journal", "*.pyc", "*.swp", "*~", ".DS_Store", ".*.part")
"""Among them the extra files of SQLite databases, which may belong to the conversation itself."""
_GITIGNORE_MAX = 100_000
"""Characters of a `.gitignore` that are read."""


class Ignored:
    """The ignore patterns of one folder. As in git, the last pattern that matches decides.

    Only the `.gitignore` of the folder itself is read. Patterns are those of `fnmatch`, in which a star also matches
    slashes, so more may be ignored than by git, but never in the folder itself.
    """

    def __init__(self, root: Path, more: Iterable[str]) -> None:
        patterns = [_pattern(line) for line in (*LEFT_BY_PROGRAMS, *more, *_lines(root / ".gitignore"))]
        # Neighbours of one kind become one regular expression: thousands of files are checked.
        self._rules = [
            (*kind, re.compile("|".join(translate(pattern) for *_, pattern in several)).match)
            for kind, several in groupby(patterns, key=itemgetter(0, 1, 2))
        ]

    def __call__(self, path: str, is_folder: bool) -> bool:
        """Return whether the file or folder with this relative path is ignored."""
        name = path.rpartition("/")[2]
        is_ignored = False
        for has_path, for_folders, ignores, matches in self._rules:
            if is_ignored != ignores and (is_folder or not for_folders) and matches(path if has_path else name):
                is_ignored = ignores
        return is_ignored


def _pattern(line: str) -> tuple[bool, bool, bool, str]:
    """Return whether the pattern is for whole paths, whether only for folders, whether it ignores; and the pattern."""
    ignores = not line.startswith("!")
    line = line.removeprefix("!")
    for_folders = line.endswith("/")
    line = line.rstrip("/")
    has_path = "/" in line.removeprefix("**/")
    return has_path, for_folders, ignores, line.removeprefix("**/").lstrip("/")


def _lines(place: Path) -> list[str]:
    try:
        with place.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_GITIGNORE_MAX)
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip(" /!") and not line.startswith("#")]
