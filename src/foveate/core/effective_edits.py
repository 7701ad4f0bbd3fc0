"""Effective edits: the edits of a journal that no later edit cancelled.

The projection drops the edits of hidden messages and cancelled edits. This module computes them again, for messages
that come back and for an undo of `Restore`. It works on ids, positions and numbers, without messages.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Set

from .edits import (
    Bill,
    Edit,
    Hide,
    Path,
    Pin,
    Replace,
    Restore,
    Span,
    Summarize,
    Target,
    Task,
    Unpin,
    ends_of,
    path_of,
    paths_overlap,
    released_by,
    target_of,
)

__all__ = ["EffectiveEdits", "gaps", "inverse_edits", "remade_covers", "remaining_pins"]


class EffectiveEdits:
    """The edits that no `Restore` cancelled, from the numbered edits of a journal since its beginning.

    Nothing cancels an edit that released the original.

    `where`: positions of the named messages. A `Restore` of a span skips unknown ones. `without`: numbers of edits to
    leave out, as if they had not been made. `kept`: positions that stayed visible in a range when it was made, by its
    number.
    """

    def __init__(
        self,
        edits: Iterable[tuple[int, Edit]],
        where: Mapping[str, int],
        without: Container[int] = (),
        kept: Mapping[int, Set[int]] = {},
    ) -> None:
        self.pins: dict[tuple[str, Path], str] = {}
        """The policy of each pin, by message id and path."""
        self.parts: dict[str, dict[int, Edit]] = {}
        """Edits of the content of one message, by its id and their numbers."""
        self.covers: dict[int, Hide | Summarize] = {}
        """Hidden and summarized ranges, by number."""
        self.holes: dict[int, set[int]] = {}
        """Visible positions inside a range, by the number of the range."""
        self._where, self._kept = where, kept
        for number, edit in edits:
            if number not in without or released_by(edit):
                self._take(number, edit)

    def numbered(self) -> dict[int, Edit]:
        """Return all effective edits, by number."""
        return {**self.covers, **{number: edit for parts in self.parts.values() for number, edit in parts.items()}}

    def is_at(self, id: str, first: int, last: int) -> bool:
        """Return whether the message with this id is at one of these positions."""
        return first <= self._where.get(id, 0) <= last

    def _take(self, number: int, edit: Edit) -> None:
        match edit:
            case Replace(target=target) | Hide(target=Target(path=(_, *_)) as target):
                self.parts.setdefault(target.message, {})[number] = edit
            case Hide() | Summarize():
                self.covers[number] = edit
                self.holes[number] = set(self._kept.get(number, ()))
            case Restore(targets=targets, edits=numbers):
                for cancelled in numbers:
                    if cancelled in self.covers and not released_by(self.covers[cancelled]):
                        del self.covers[cancelled]
                    for parts in self.parts.values():
                        if cancelled in parts and not released_by(parts[cancelled]):
                            del parts[cancelled]
                for named in targets:
                    self._restore_parts(named)
                    self._open_covers(named)
            case Pin(target=target):
                self.pins[target.message, target.path] = edit.policy
            case Unpin(target=target):
                of_message = {path for id, path in self.pins if id == target.message}
                for path in of_message - set(remaining_pins(of_message, target.path)):
                    del self.pins[target.message, path]
            case Task() | Bill():
                pass

    def _restore_parts(self, named: Target | Span) -> None:
        if isinstance(named, Target):
            parts = self.parts.get(named.message, {})
            _cancel(parts, named.path)
        elif span := self.range_of(named):
            for message in [id for id in self.parts if self.is_at(id, *span)]:
                _cancel(self.parts[message], ())

    def _open_covers(self, named: Target | Span) -> None:
        span = self.range_of(named)
        if span is None:
            return
        for number, cover in list(self.covers.items()):
            covered = self.range_of(target_of(cover))
            if covered is None or covered[1] < span[0] or span[1] < covered[0] or released_by(cover):
                continue
            if span[0] <= covered[0] and covered[1] <= span[1]:
                del self.covers[number]
            else:
                self.holes[number].update(range(max(span[0], covered[0]), min(span[1], covered[1]) + 1))

    def range_of(self, named: Target | Span) -> tuple[int, int] | None:
        """Return the first and last position of the target, or None if an end is unknown."""
        first, last = ends_of(named)
        return (self._where[first], self._where[last]) if first in self._where and last in self._where else None


def _cancel(parts: dict[int, Edit], path: Path) -> None:
    """Remove the edits at a path. Those that released the original stay: there is nothing to show in their place."""
    for number, edit in list(parts.items()):
        if paths_overlap(path_of(edit), path) and not released_by(edit):
            del parts[number]


def remaining_pins(paths: Iterable[Path], path: Path) -> list[Path]:
    """Return the paths whose pins remain after an unpin at `path`, which includes the paths inside it."""
    return [pinned for pinned in paths if pinned[: len(path)] != path]


def gaps(now: EffectiveEdits, then: EffectiveEdits) -> dict[int, list[tuple[int, int]]]:
    """Return the positions to change in each hidden range of `then`, as ranges, by number.

    These positions must be hidden again if the range is still effective `now`. They must be shown again if the range
    must be made again.
    """
    remade = remade_covers(now, then)
    gaps: dict[int, list[tuple[int, int]]] = {}
    for number in then.covers:
        wrong = then.holes[number] if number in remade else now.holes[number] - then.holes[number]
        ranges = gaps[number] = []
        for position in sorted(wrong):
            if ranges and ranges[-1][1] == position - 1:
                ranges[-1] = (ranges[-1][0], position)
            else:
                ranges.append((position, position))
    return gaps


def inverse_edits(
    now: EffectiveEdits, then: EffectiveEdits, between: Mapping[int, list[tuple[int, int]]], ids: Mapping[int, str]
) -> list[Edit]:
    """Return the edits that lead from the state `now` to the state `then`.

    `between`: their `gaps`; `ids`: ids of the messages at the ends of these, by position.
    """
    remade, effective, wanted = remade_covers(now, then), now.numbered(), then.numbered()
    back: list[Edit] = []
    if cancelled := sorted(number for number in effective if number not in wanted or number in remade):
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
            reopened |= {id for id in then.parts if any(then.is_at(id, *ends) for ends in between[number])}
    for id, parts in then.parts.items():
        kept = {number: edit for number, edit in parts.items() if number in effective}
        for number, edit in parts.items():
            if id in reopened or (number not in effective and not _is_outdone(number, edit, kept)):
                back.append(edit)
    back += [Unpin(Target(*pin)) for pin in sorted(now.pins.keys() - then.pins.keys())]
    gone = then.pins.keys() - {pin for pin in now.pins if pin in then.pins and not _is_unpinned(pin, now, then)}
    back += [Pin(Target(*pin), then.pins[pin]) for pin in sorted(gone)]
    return back


def remade_covers(now: EffectiveEdits, then: EffectiveEdits) -> set[int]:
    """Return the ranges to make again: cancelled ones, and newer ones over the same messages to stay on top."""
    remade: dict[int, tuple[int, int]] = {}
    for number, cover in then.covers.items():
        first, last = then.range_of(target_of(cover)) or (1, 0)
        if number not in now.covers or any(first <= end and start <= last for start, end in remade.values()):
            remade[number] = (first, last)
    return set(remade)


def _is_outdone(number: int, edit: Edit, kept: Mapping[int, Edit]) -> bool:
    """Return whether a newer effective edit changes the same part. Making this edit again would wrongly replace it."""
    return any(newer > number and paths_overlap(path_of(other), path_of(edit)) for newer, other in kept.items())


def _is_unpinned(pin: tuple[str, Path], now: EffectiveEdits, then: EffectiveEdits) -> bool:
    """Return whether removing the surplus pins also removes this one."""
    id, path = pin
    return any(other == id and not remaining_pins([path], outer) for other, outer in now.pins.keys() - then.pins.keys())
