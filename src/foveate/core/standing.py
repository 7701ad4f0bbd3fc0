"""Which edits of a journal still stand, worked out from the journal alone.

The projection forgets the edits of what it hides, and those that were taken back. This file tells them again: for
messages that come back, and for a `Restore` that is undone. It knows ids, places and numbers, no messages.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from .edits import Edit, Hide, Path, Pin, Replace, Restore, Span, Summarize, Target, Unpin

__all__ = ["Standing", "meet", "path_of", "way_back"]


def meet(one: Path, other: Path) -> bool:
    """Whether one of two paths leads through the other: then neither shows its original unless both do."""
    return one[: len(other)] == other or other[: len(one)] == one


def path_of(edit: Edit) -> Path:
    """Where in its message an edit is made."""
    target = getattr(edit, "target", None)
    return target.path if isinstance(target, Target) else ()


class Standing:
    """The edits that no `Restore` has taken out, after the numbered edits of a journal from its beginning.

    `where` tells the positions of the messages that are named; what it does not know, a `Restore` of a span leaves
    alone. Edits numbered in `without` are left out, as if they had not been made.
    """

    def __init__(
        self, edits: Iterable[tuple[int, Edit]], where: Mapping[str, int], without: Container[int] = ()
    ) -> None:
        self.pinned: set[str] = set()
        self.parts: dict[str, dict[int, Edit]] = {}
        """Edits of the content of one message, by its id and by their numbers."""
        self.covers: dict[int, Hide | Summarize] = {}
        """Hidden and summarised runs, by number."""
        self.holes: dict[int, list[Target | Span]] = {}
        """What is shown again inside a run, by the number of the run."""
        self._where = where
        for number, edit in edits:
            if number not in without:
                self._take(number, edit)

    def numbered(self) -> dict[int, Edit]:
        """All of them, by number."""
        return {**self.covers, **{number: edit for parts in self.parts.values() for number, edit in parts.items()}}

    def _take(self, number: int, edit: Edit) -> None:
        match edit:
            case Replace(target=target) | Hide(target=Target(path=(_, *_)) as target):
                self.parts.setdefault(target.message, {})[number] = edit
            case Hide() | Summarize():
                self.covers[number] = edit
                self.holes[number] = []
            case Restore(targets=targets, edits=numbers):
                for cancelled in numbers:
                    self.covers.pop(cancelled, None)
                    for parts in self.parts.values():
                        parts.pop(cancelled, None)
                for named in targets:
                    self._restore_parts(named)
                    self._open_covers(named)
            case Pin(target=target):
                self.pinned.add(target.message)
            case Unpin(target=target):
                self.pinned.discard(target.message)

    def _restore_parts(self, named: Target | Span) -> None:
        if isinstance(named, Target):
            parts = self.parts.get(named.message, {})
            for number in [number for number, edit in parts.items() if meet(path_of(edit), named.path)]:
                del parts[number]
        elif run := self.run_of(named):
            for message in [id for id in self.parts if run[0] <= self._where.get(id, 0) <= run[1]]:
                del self.parts[message]

    def _open_covers(self, named: Target | Span) -> None:
        run = self.run_of(named)
        if run is None:
            return
        for number, cover in list(self.covers.items()):
            covered = self.run_of(_covered(cover))
            if covered is None or covered[1] < run[0] or run[1] < covered[0]:
                continue
            if run[0] <= covered[0] and covered[1] <= run[1]:
                del self.covers[number]
            else:
                self.holes[number].append(named)

    def run_of(self, named: Target | Span) -> tuple[int, int] | None:
        """First and last position of what is named; None where an end is unknown."""
        first, last = _ends(named)
        return (self._where[first], self._where[last]) if first in self._where and last in self._where else None


def way_back(now: Standing, then: Standing) -> list[Edit]:
    """Edits that make stand again what stands in `then`, and nothing else, where `now` stands."""
    standing, wanted = now.numbered(), then.numbered()
    back: list[Edit] = []
    if cancelled := tuple(sorted(number for number in standing if number not in wanted)):
        back.append(Restore((), cancelled))
    for number in sorted(number for number in wanted if number not in standing):
        if not _is_outdone(number, wanted[number], now):
            back.append(wanted[number])
        if shown := tuple(then.holes.get(number, ())):
            back.append(Restore(shown))
    for number in sorted(now.covers.keys() & then.covers.keys()):
        for hole in now.holes[number]:
            if hole not in then.holes[number]:
                back.append(Hide(_overlap(hole, _covered(now.covers[number]), now)))
    back += [Pin(Target(id)) for id in sorted(then.pinned - now.pinned)]
    back += [Unpin(Target(id)) for id in sorted(now.pinned - then.pinned)]
    return back


def _is_outdone(number: int, edit: Edit, now: Standing) -> bool:
    """Whether a newer edit of the same part stands, which made again this one would wrongly replace."""
    target = getattr(edit, "target", None)
    parts = now.parts.get(target.message, {}) if isinstance(target, Target) else {}
    return any(newer > number and meet(path_of(other), path_of(edit)) for newer, other in parts.items())


def _overlap(named: Target | Span, covered: Target | Span, now: Standing) -> Target | Span:
    if isinstance(named, Target):
        return Target(named.message)
    where = {id: run[0] for id in (*_ends(named), *_ends(covered)) if (run := now.run_of(Target(id)))}
    first = max(_ends(named)[0], _ends(covered)[0], key=lambda id: where.get(id, 0))
    last = min(_ends(named)[1], _ends(covered)[1], key=lambda id: where.get(id, 0))
    return Span(first, last)


def _ends(named: Target | Span) -> tuple[str, str]:
    return (named.first, named.last) if isinstance(named, Span) else (named.message, named.message)


def _covered(cover: Hide | Summarize) -> Target | Span:
    return cover.span if isinstance(cover, Summarize) else cover.target
