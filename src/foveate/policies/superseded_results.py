"""Superseded results: replace results that a later event made worthless.

These are a file that was read again, a read of a file that was changed since, a command, listing or search that was run
again, and a page or screenshot that a newer one replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from posixpath import basename
from typing import NamedTuple

from msgspec import Struct

from ..core.edits import Edit, Replace
from ..core.entry_facts import EntryFact
from ..core.planner import CostlyPolicy, Policy
from ..core.view import Entry, View
from ..errors import BadSetting
from .kinds import check_kinds
from .placeholders import is_longer, is_whole, replacement
from .placeholders import placeholder as fill
from .tool_kinds import (
    ASKS,
    LOOKS,
    READS,
    WRITES,
    CallKind,
    ClassifiedResult,
    GrowingResults,
    create_classifier,
    is_absolute,
    is_same_file,
    names_key,
)

__all__ = ["GRACE", "SUPERSEDED", "ResultTracker", "Superseded", "TrackedResult", "supersede"]

GRACE = 10
"""Turns that a read stays after its file was changed."""

SUPERSEDED = '[Superseded by {by}: {about}expand("{handle}")]'
"""Template for a superseded result. `{by}` is the handle of the message that replaced it."""

_NAME = "supersede"
_COMPARED_MAX = 64
"""Reads of one file before its last change whose lines are compared with a new read. A new read replaces older ones."""
_SIZE_RATIO = 4
"""A result of less than a quarter of the older one's size does not replace it: `unchanged`, `clicked`, `not found`."""


@check_kinds
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
    """Return a policy that replaces results which a later result made worthless.

    `reads`: tools that show a file. A read is superseded when the same lines are read again. After one of `writes`
    changed the file, a read is superseded when any of its lines are read again, or `grace` turns after the last change
    (None: never for that), since an edit needs the lines that it replaces. `asks`: commands, listings and searches,
    superseded by the same call. `looks`: tools that show a page or a screen; the newest `keep` with an image stay, and
    the newest `keep` without. `placeholder`: template with `{by}` and the fields of other placeholders.

    Both results must be finished. Results that another policy shrank, pinned results and results that were expanded for
    the coming call stay. Raises BadSetting for values out of range.
    """
    if keep < 1 or (grace is not None and grace < 0):
        raise BadSetting(
            f"keep and grace of supersede are {keep!r} and {grace!r}. Set keep to 1 or more, and grace to 0 or more."
        )
    results = GrowingResults(
        lambda: _SupersededSoFar(ResultTracker(keep)),
        create_classifier(reads, writes, looks, asks),
        name=f"supersede {keep} {names_key(reads, writes, looks, asks)}",
        kind=_SupersededSoFar,
    )
    known_edits = EntryFact[_KnownEdit](f"supersede edit {placeholder!a}", _KnownEdit)

    def edits(view: View, taken: Set[str]) -> Iterator[Edit]:
        known, entries = results.of(view), view.entries
        outdated = () if grace is None else known.tracker.outdated_reads(view.turn - grace)
        superseded = [*known.tracker.superseded, *outdated]
        for place, newer, reason in sorted(superseded, key=lambda item: entries[item.old].position):
            old = entries[place]
            if old.id not in taken and old.renewed < view.turn:
                edit = _edit(old, known_edits, placeholder, entries[newer].handle, reason)
                if edit is not None:
                    yield edit

    return CostlyPolicy(edits)


class _KnownEdit(Struct, frozen=True, gc=False, array_like=True):
    """The edit that replaces a result. It waits for many calls."""

    by: str
    reason: str
    edit: Replace | None
    """None if the placeholder is as long."""


def _edit(old: Entry, known_edits: EntryFact[_KnownEdit], placeholder: str, by: str, reason: str) -> Edit | None:
    """Return the edit that replaces a result; None if the placeholder is as long."""
    known = known_edits.of(old)
    if known is None or (known.by, known.reason) != (by, reason):
        text = fill(placeholder.replace("{by}", by), old)
        edit = replacement(old, text, _NAME, reason) if is_longer(old, text) else None
        known = _KnownEdit(by, reason, edit)
        known_edits.remember(old, known)
    return known.edit


def _is_replaceable(entry: Entry) -> bool:
    return is_whole(entry) and not entry.is_pinned()


class Superseded(NamedTuple):
    """A result that a later one made worthless, by their places."""

    old: int
    newer: int
    reason: str


class TrackedResult(Struct, frozen=True, gc=False, array_like=True):
    """A finished result."""

    place: int
    """Its place among all messages."""
    tokens: int
    """Its size, as appended."""
    turn: int
    """The turn in which it came."""
    may_go: bool = True
    """Whether it may be superseded."""


class _File(Struct):
    """The reads of one file: those since its last change, and those before."""

    current: dict[tuple[int, int], TrackedResult] = {}
    before_change: tuple[tuple[TrackedResult, tuple[int, int]], ...] = ()
    change: TrackedResult | None = None

    def copy(self) -> _File:
        return _File(self.current.copy(), self.before_change, self.change)


class ResultTracker(Struct):
    """Finds the superseded ones among results that are added in order, oldest first."""

    keep: int = 1
    """Looks at a page or a screen that stay, with an image and without."""
    superseded: list[Superseded] = []
    """The superseded results so far, in the order in which a later result replaced them."""
    _files: dict[str, _File] = {}  # By path.
    _own: set[str] = set()  # Paths of the files that no copy of this tracker shares.
    _changed: dict[str, None] = {}  # Paths of files with reads before their last change.
    # Paths by file name, and whether they are absolute: one, or several. All copies share it, so it may have files of
    # others.
    _namesakes: dict[tuple[str, bool], str | dict[str, None]] = {}
    _answers: dict[bytes, TrackedResult] = {}
    _looks: dict[bool, list[TrackedResult]] = {}  # With an image, and without.

    def add(self, result: TrackedResult, call: CallKind, *, is_error: bool, has_image: bool) -> None:
        """Add the next finished result of a call of this kind. `has_image`: only asked for a `look`."""
        match call.kind:
            case "ask":
                if (older := self._answers.get(call.question)) is not None:
                    self._mark(older, result, "asked again")
                self._answers[call.question] = result
            case "read" if not is_error:
                self._add_read(result, call.files[0], call.lines)
            case "write" if not is_error:
                for path in call.files:
                    self._add_change(result, path)
            case "look" if not is_error:
                self._add_look(result, has_image=has_image)
            case _:
                pass

    def copy(self) -> ResultTracker:
        """Return an independent copy. The two share files until one of them changes a file."""
        self._own.clear()
        looks = {has_image: looks.copy() for has_image, looks in self._looks.items()}
        return ResultTracker(
            self.keep,
            self.superseded.copy(),
            self._files.copy(),
            set(),
            self._changed.copy(),
            self._namesakes,
            self._answers.copy(),
            looks,
        )

    def outdated_reads(self, turn: int) -> Iterator[Superseded]:
        """Yield the reads of files whose last change was in this turn or earlier."""
        for file in map(self._files.__getitem__, self._changed):
            if file.change is not None and file.change.turn <= turn:
                for read, _ in file.before_change:
                    if read.may_go:
                        yield Superseded(read.place, file.change.place, "the file was changed")

    def _own_file(self, path: str) -> _File:
        """Return a file that may be changed."""
        if path not in self._own:
            self._files[path] = self._files[path].copy()
            self._own.add(path)
        return self._files[path]

    def _add_read(self, result: TrackedResult, path: str, lines: tuple[int, int]) -> None:
        if path not in self._files:
            self._files[path] = _File()
            self._own.add(path)
            self._note_name(path)
        file = self._own_file(path)
        if file.before_change:
            first_compared = len(file.before_change) - _COMPARED_MAX
            kept = []
            for index, (old, shown) in enumerate(file.before_change):
                if index < first_compared or (shown[0] <= lines[1] and lines[0] <= shown[1]):
                    self._mark(old, result, "read again after a change")
                else:
                    kept.append((old, shown))
            file.before_change = tuple(kept)
            if not file.before_change:
                del self._changed[path]
        older = file.current.get(lines)
        if older is None or _replaces(result, older):
            file.current[lines] = result
            if older is not None:
                self._mark(older, result, "read again")

    def _add_change(self, result: TrackedResult, path: str) -> None:
        """Record a change. A patch may name the file from another folder than the read, so similar paths count too."""
        name = basename(path)
        changed = [path] if path in self._files else []
        namesakes = self._paths(name, False)
        if not is_absolute(path):
            changed, namesakes = [], [*namesakes, *self._paths(name, True)]
        changed += [known for known in namesakes if known in self._files and is_same_file(known, path)]
        for known in changed:
            file = self._own_file(known)
            file.before_change += tuple([(read, lines) for lines, read in file.current.items()])
            file.current = {}
            file.change = result
            if file.before_change:
                self._changed[known] = None

    def _note_name(self, path: str) -> None:
        """Note the name of a file. Most names belong to one path, which takes less memory than a set of one."""
        key = basename(path), is_absolute(path)
        known = self._namesakes.setdefault(key, path)
        if isinstance(known, dict):
            known[path] = None
        elif known != path:
            self._namesakes[key] = {known: None, path: None}

    def _paths(self, name: str, absolute: bool) -> list[str]:
        """Return the known paths of files with this name."""
        known = self._namesakes.get((name, absolute))
        return [known] if isinstance(known, str) else [*(known or ())]

    def _add_look(self, result: TrackedResult, *, has_image: bool) -> None:
        looks = self._looks.setdefault(has_image, [])
        if looks and not _replaces(result, looks[-1]):
            return
        looks.append(result)
        if len(looks) > self.keep:
            self._mark(looks.pop(0), result, "looked again")

    def _mark(self, old: TrackedResult, newer: TrackedResult, reason: str) -> None:
        if old.may_go:
            self.superseded.append(Superseded(old.place, newer.place, reason))


def _replaces(newer: TrackedResult, older: TrackedResult) -> bool:
    """Return whether a result is large enough to stand for an older one. Compares the appended sizes."""
    return newer.tokens * _SIZE_RATIO >= older.tokens


class _SupersededSoFar(Struct):
    """The superseded results among entries that are added in order."""

    tracker: ResultTracker
    size: int = 0

    def copy(self) -> _SupersededSoFar:
        return _SupersededSoFar(self.tracker.copy(), self.size)

    def add(self, entry: Entry, result: ClassifiedResult | None) -> None:
        if result is not None and result[2].kind != "other":
            tracked = TrackedResult(self.size, entry.stamp.tokens, entry.stamp.turn, _is_replaceable(entry))
            has_image = result[2].kind == "look" and entry.outline is not None and any(entry.outline.media())
            self.tracker.add(tracked, result[2], is_error=result[1] == "error", has_image=has_image)
        self.size += 1
