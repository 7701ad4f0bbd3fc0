"""Hidden ranges: the ends of ranges are found by id, and in constant time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foveate.core.edits import Hide, Span, Summarize
from foveate.core.hidden_ranges import HiddenRanges
from foveate.core.snapshots import Cover


def summary(number: int, first: int, last: int) -> Cover:
    return Cover(number, first, last, Summarize(Span(f"id{first}", f"id{last}"), "In short."), 1, 0)


class CountedList(list[Any]):
    """A list that counts how often a program iterates over it."""

    passes = 0

    def __iter__(self) -> Iterator[Any]:
        self.passes += 1
        return super().__iter__()

    def __reversed__(self) -> Iterator[Any]:
        self.passes += 1
        return super().__reversed__()


def test_positions_of_many_ends_take_one_pass():
    """The plan of a long history looks up both ends of each of its folds."""
    ranges = HiddenRanges([summary(n, 10 * n, 10 * n + 5) for n in range(1, 100)])
    covers = ranges.covers = CountedList(ranges.covers)
    for n in range(1, 100):
        assert (ranges.position_of(f"id{10 * n}"), ranges.position_of(f"id{10 * n + 5}")) == (10 * n, 10 * n + 5)
    assert covers.passes == 1


def test_ends_follow_added_and_removed_ranges():
    inner, outer = summary(1, 3, 5), summary(2, 2, 9)
    ranges = HiddenRanges([inner])
    assert [ranges.position_of(id) for id in ("id2", "id3", "id5", "id9")] == [None, 3, 5, None]
    ranges.add(outer)
    assert [ranges.position_of(id) for id in ("id2", "id3", "id5", "id9")] == [2, 3, 5, 9]
    twin = ranges.copy()
    assert list(ranges.remove(outer)) == [inner]
    assert [ranges.position_of(id) for id in ("id2", "id3", "id5", "id9")] == [None, 3, 5, None]
    assert twin.position_of("id9") == 9


def test_messages_at_the_ends_of_hidden_ranges_keep_their_positions():
    ranges = HiddenRanges([Cover(1, 4, 7, Hide(Span("id4", "id7")), 1, 0)])
    assert (ranges.position_of("id4"), ranges.position_of("id7"), ranges.position_of("id5")) == (4, 7, None)
