"""Which edits of a journal still stand, worked out from the journal alone.

The projection forgets the edits of what it hides, and those that were taken back. This file tells them again: for
messages that come back, and for a `Restore` that is undone. It knows ids, places and numbers, no messages.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from .edits import Edit, Hide, Path, Pin, Replace, Restore, Span, Summarize, Target, Task, Unpin, path_of, paths_overlap

__all__ = ["EffectiveEdits", "gaps", "inverse_edits", "unpinned"]


class EffectiveEdits:
    """The edits that no `Restore` has taken out, after the numbered edits of a journal from its beginning.

    `where` tells the positions of the messages that are named; what it does not know, a `Restore` of a span leaves
    alone. Edits numbered in `without` are left out, as if they had not been made.
    """

    def __init__(
        self, edits: Iterable[tuple[int, Edit]], where: Mapping[str, int], without: Container[int] = ()
    ) -> None:
        self.pins: dict[tuple[str, Path], str] = {}
        """What is pinned, by message and path, and who pinned it."""
        self.parts: dict[str, dict[int, Edit]] = {}
        """Edits of the content of one message, by its id and by their numbers."""
        self.covers: dict[int, Hide | Summarize] = {}
        """Hidden and summarised runs, by number."""
        self.holes: dict[int, set[int]] = {}
        """Positions that are shown again inside a run, by the number of the run."""
        self._where = where
        for number, edit in edits:
            if number not in without:
                self._take(number, edit)

    def numbered(self) -> dict[int, Edit]:
        """All of them, by number."""
        return {**self.covers, **{number: edit for parts in self.parts.values() for number, edit in parts.items()}}

    def is_at(self, id: str, first: int, last: int) -> bool:
        """Whether the message with this id is one of these positions."""
        return first <= self._where.get(id, 0) <= last

    def _take(self, number: int, edit: Edit) -> None:
        match edit:
            case Replace(target=target) | Hide(target=Target(path=(_, *_)) as target):
                self.parts.setdefault(target.message, {})[number] = edit
            case Hide() | Summarize():
                self.covers[number] = edit
                self.holes[number] = set()
            case Restore(targets=targets, edits=numbers):
                for cancelled in numbers:
                    self.covers.pop(cancelled, None)
                    for parts in self.parts.values():
                        parts.pop(cancelled, None)
                for named in targets:
                    self._restore_parts(named)
                    self._open_covers(named)
            case Pin(target=target):
                self.pins[target.message, target.path] = edit.policy
            case Unpin(target=target):
                of_message = {path for id, path in self.pins if id == target.message}
                for path in of_message - set(unpinned(of_message, target.path)):
                    del self.pins[target.message, path]
            case Task():
                pass

    def _restore_parts(self, named: Target | Span) -> None:
        if isinstance(named, Target):
            parts = self.parts.get(named.message, {})
            for number in [number for number, edit in parts.items() if paths_overlap(path_of(edit), named.path)]:
                del parts[number]
        elif run := self.run_of(named):
            for message in [id for id in self.parts if self.is_at(id, *run)]:
                del self.parts[message]

    def _open_covers(self, named: Target | Span) -> None:
        run = self.run_of(named)
        if run is None:
            return
        for number, cover in list(self.covers.items()):
            covered = self.run_of(cover.span if isinstance(cover, Summarize) else cover.target)
            if covered is None or covered[1] < run[0] or run[1] < covered[0]:
                continue
            if run[0] <= covered[0] and covered[1] <= run[1]:
                del self.covers[number]
            else:
                self.holes[number].update(range(max(run[0], covered[0]), min(run[1], covered[1]) + 1))

    def run_of(self, named: Target | Span) -> tuple[int, int] | None:
        """First and last position of what is named; None where an end is unknown."""
        first, last = (named.first, named.last) if isinstance(named, Span) else (named.message, named.message)
        return (self._where[first], self._where[last]) if first in self._where and last in self._where else None


def unpinned(paths: Iterable[Path], path: Path) -> list[Path]:
    """Which pins of a message are left once what is pinned at `path`, and inside of it, is unpinned."""
    return [pinned for pinned in paths if pinned[: len(path)] != path]


def gaps(now: EffectiveEdits, then: EffectiveEdits) -> dict[int, list[tuple[int, int]]]:
    """What to do about each hidden run of `then`, by its number: the positions in it, as runs, that must be hidden
    again where the run stands `now`, and those that must be shown again where it has to be made again.
    """
    remade = _remade(now, then)
    found: dict[int, list[tuple[int, int]]] = {}
    for number in then.covers:
        wrong = then.holes[number] if number in remade else now.holes[number] - then.holes[number]
        runs = found[number] = []
        for position in sorted(wrong):
            if runs and runs[-1][1] == position - 1:
                runs[-1] = (runs[-1][0], position)
            else:
                runs.append((position, position))
    return found


def inverse_edits(
    now: EffectiveEdits, then: EffectiveEdits, between: Mapping[int, list[tuple[int, int]]], ids: Mapping[int, str]
) -> list[Edit]:
    """Edits that make stand again what stands in `then`, and nothing else, where `now` stands.

    `between`: their `gaps`; `ids`: of the messages at the ends of these.
    """
    remade, standing, wanted = _remade(now, then), now.numbered(), then.numbered()
    back: list[Edit] = []
    if cancelled := sorted(number for number in standing if number not in wanted or number in remade):
        back.append(Restore((), tuple(cancelled)))
    reopened: set[str] = set()
    for number, cover in then.covers.items():
        spans = tuple(Target(ids[a]) if a == b else Span(ids[a], ids[b]) for a, b in between[number])
        if number not in remade:
            back += [Hide(span) for span in spans]
            continue
        back.append(cover)
        if spans:
            back.append(Restore(spans))
            reopened |= {id for id in then.parts if any(then.is_at(id, *run) for run in between[number])}
    for id, parts in then.parts.items():
        kept = {number: edit for number, edit in parts.items() if number in standing}
        for number, edit in parts.items():
            if id in reopened or (number not in standing and not _is_outdone(number, edit, kept)):
                back.append(edit)
    back += [Unpin(Target(*pin)) for pin in sorted(now.pins.keys() - then.pins.keys())]
    gone = then.pins.keys() - {pin for pin in now.pins if pin in then.pins and not _is_unpinned(pin, now, then)}
    back += [Pin(Target(*pin), then.pins[pin]) for pin in sorted(gone)]
    return back


def _remade(now: EffectiveEdits, then: EffectiveEdits) -> set[int]:
    """Runs that have to be made again: those that are gone, and newer ones over the same messages, to stay on top."""
    remade: dict[int, tuple[int, int]] = {}
    for number, cover in then.covers.items():
        first, last = then.run_of(cover.span if isinstance(cover, Summarize) else cover.target) or (1, 0)
        if number not in now.covers or any(first <= end and start <= last for start, end in remade.values()):
            remade[number] = (first, last)
    return set(remade)


def _is_outdone(number: int, edit: Edit, kept: Mapping[int, Edit]) -> bool:
    """Whether a newer edit of the same part stands, which made again this one would wrongly replace."""
    return any(newer > number and paths_overlap(path_of(other), path_of(edit)) for newer, other in kept.items())


def _is_unpinned(pin: tuple[str, Path], now: EffectiveEdits, then: EffectiveEdits) -> bool:
    """Whether taking back the pins that are too many takes this one with them."""
    id, path = pin
    return any(other == id and not unpinned([path], outer) for other, outer in now.pins.keys() - then.pins.keys())
