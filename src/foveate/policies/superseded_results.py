"""Results that a later event made worthless become placeholders that name what replaced them.

A file that was read again, a read of a file that was changed since, a command, a listing or a search that was run
again, a page or a screenshot that a newer one replaced. What each call did is told by `deeds.py`; this file follows
the results of a view in their order and finds those that nobody needs any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from posixpath import basename
from typing import NamedTuple

from ..core.edits import Edit
from ..core.planner import Policy
from ..core.view import Entry, View
from ..errors import BadSetting
from .placeholders import is_whole, outgrows, replacement
from .placeholders import placeholder as fill
from .tool_kinds import ASKS, LOOKS, READS, WRITES, Deed, deed_reader, is_absolute, is_same_file, results_with_deeds

__all__ = ["GRACE", "SUPERSEDED", "supersede"]

GRACE = 10
"""Turns for which a read stays after its file was changed."""

SUPERSEDED = '[Superseded by {by}: {about}expand("{handle}")]'
"""For a superseded result. `{by}` is the handle of what replaced it."""

_NAME = "supersede"
_COMPARED = 64
"""Of so many reads of one file before its last change the lines are compared with those of a new one; older ones go."""
_LEAST_SHARE = 4
"""What is less than a quarter of what it would replace says something else: `unchanged`, `clicked`, `no such page`."""


def supersede(
    *,
    reads: Collection[str] = READS,
    writes: Collection[str] = WRITES,
    looks: Collection[str] = LOOKS,
    asks: Collection[str] = ASKS,
    keep: int = 1,
    grace: int | None = GRACE,
    placeholder: str = SUPERSEDED,
) -> Policy:
    """A policy that replaces results which a later one made worthless.

    `reads`: tools that show a file. A read is superseded when the same lines of the file are read again, and once the
    file was changed by one of `writes`, when any of these lines are, or `grace` turns after the last change (an edit
    needs the lines that it replaces, and the next one often those beside them); None: only when they are read again.
    `asks`: commands, listings, searches, superseded when the same is asked again. `looks`: tools that show a page or
    a screen; of those with an image and of those without, the newest `keep` stay. `placeholder` may name
    `{by}`, the handle of what replaced it, and what the placeholders of others may.

    Only what a tool finished counts, on both sides. What others have shrunk, what is pinned and what was expanded for
    the coming call is left alone. Raises BadSetting for a `keep` below 1 and a negative `grace`.
    """
    if keep < 1 or (grace is not None and grace < 0):
        raise BadSetting(f"supersede needs keep >= 1 and grace >= 0, not keep={keep!r} and grace={grace!r}.")
    deed_of = deed_reader(reads, writes, looks, asks)

    def policy(view: View) -> Iterator[Edit]:
        found = _Found(keep)
        for entry, result, deed in results_with_deeds(view, deed_of):
            if deed.kind != "other":
                found.take(entry, deed, failed=result.state == "error")
        if grace is not None:
            found.outdate(view.turn - grace)
        for old, by, why in sorted(found.superseded, key=lambda one: one.old.position):
            if is_whole(old) and not old.is_pinned() and old.renewed < view.turn:
                text = fill(placeholder.replace("{by}", by.handle), old)
                if outgrows(old, text):
                    yield replacement(old, text, _NAME, why)

    return policy


class _Superseded(NamedTuple):
    old: Entry
    by: Entry
    why: str


class _File:
    """What is shown of one file: as it is now, and as it was before its last change."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.current: dict[tuple[int, int], Entry] = {}
        self.before: list[tuple[Entry, tuple[int, int]]] = []
        self.change: Entry | None = None


class _Found:
    """What was superseded among results that are taken in one after the other, oldest first."""

    def __init__(self, keep: int) -> None:
        self.superseded: list[_Superseded] = []
        self._keep = keep
        self._files: dict[str, _File] = {}
        self._namesakes: dict[tuple[str, bool], list[_File]] = {}  # by last name, and whether the path is absolute
        self._answers: dict[str, Entry] = {}
        self._looks: dict[bool, list[Entry]] = {}  # with an image, and without

    def take(self, entry: Entry, deed: Deed, *, failed: bool) -> None:
        match deed.kind:
            case "ask":
                if (older := self._answers.get(deed.question)) is not None:
                    self._add(older, entry, "asked again")
                self._answers[deed.question] = entry
            case "read" if not failed:
                self._read(entry, deed.files[0], deed.lines)
            case "write" if not failed:
                for path in deed.files:
                    self._change(entry, path)
            case "look" if not failed:
                self._look(entry)
            case _:
                pass

    def outdate(self, turn: int) -> None:
        """Give up reads of files that were changed last in this turn or before it."""
        for file in self._files.values():
            if file.change is not None and file.change.stamp.turn <= turn:
                for old, _ in file.before:
                    self._add(old, file.change, "the file was changed")

    def _read(self, entry: Entry, path: str, lines: tuple[int, int]) -> None:
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = _File(path)
            self._namesakes.setdefault((basename(path), is_absolute(path)), []).append(file)
        oldest = len(file.before) - _COMPARED
        before, file.before = file.before, []
        for index, (old, shown) in enumerate(before):
            if index < oldest or (shown[0] <= lines[1] and lines[0] <= shown[1]):
                self._add(old, entry, "read again after a change")
            else:
                file.before.append((old, shown))
        older = file.current.get(lines)
        if older is None or _replaces(entry, older):
            file.current[lines] = entry
            if older is not None:
                self._add(older, entry, "read again")

    def _change(self, entry: Entry, path: str) -> None:
        """A patch may name the file from another folder than the read did: rather one read too many is given up."""
        known, name = self._files.get(path), basename(path)
        changed = [] if known is None else [known]
        namesakes = self._namesakes.get((name, False), [])
        if not is_absolute(path):
            changed, namesakes = [], [*namesakes, *self._namesakes.get((name, True), [])]
        changed += [file for file in namesakes if is_same_file(file.path, path)]
        for file in changed:
            file.before += [(read, lines) for lines, read in file.current.items()]
            file.current = {}
            file.change = entry

    def _look(self, entry: Entry) -> None:
        looks = self._looks.setdefault(entry.source is not None and any(entry.source.media()), [])
        if looks and not _replaces(entry, looks[-1]):
            return
        looks.append(entry)
        if len(looks) > self._keep:
            self._add(looks.pop(0), entry, "looked again")

    def _add(self, old: Entry, by: Entry, why: str) -> None:
        self.superseded.append(_Superseded(old, by, why))


def _replaces(newer: Entry, older: Entry) -> bool:
    """Whether one is enough to stand for the other. As they were given: what is shown now may be less of either."""
    return newer.stamp.tokens * _LEAST_SHARE >= older.stamp.tokens
