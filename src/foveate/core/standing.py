"""Which edits of a journal still stand, worked out from the journal alone.

The projection forgets the edits of what it hides, and those that were taken back. This file tells them again: for
messages that come back, and for a `Restore` that is undone. It knows ids, places and numbers, no messages.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from .edits import Edit, Hide, Path, Replace, Restore, Span, Summarize, Target

__all__ = ["Standing", "meet", "path_of"]


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
            case _:
                pass

    def _restore_parts(self, named: Target | Span) -> None:
        if isinstance(named, Target):
            parts = self.parts.get(named.message, {})
            for number in [number for number, edit in parts.items() if meet(path_of(edit), named.path)]:
                del parts[number]
        elif run := self._run(named):
            for message in [id for id in self.parts if run[0] <= self._where.get(id, 0) <= run[1]]:
                del self.parts[message]

    def _open_covers(self, named: Target | Span) -> None:
        run = self._run(named)
        if run is None:
            return
        for number, cover in list(self.covers.items()):
            covered = self._run(cover.span if isinstance(cover, Summarize) else cover.target)
            if covered is None or covered[1] < run[0] or run[1] < covered[0]:
                continue
            if run[0] <= covered[0] and covered[1] <= run[1]:
                del self.covers[number]
            else:
                self.holes[number].append(named)

    def _run(self, named: Target | Span) -> tuple[int, int] | None:
        first, last = (named.first, named.last) if isinstance(named, Span) else (named.message, named.message)
        if first not in self._where or last not in self._where:
            return None
        return self._where[first], self._where[last]
