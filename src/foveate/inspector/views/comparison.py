"""Comparison of two views: their entries side by side, aligned by the messages that they show. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ...core.view import Entry

__all__ = ["Comparison", "PairStatus", "Sum", "ViewPair", "compare"]

PairStatus = Literal["same", "changed", "left", "right"]
"""`same`: both views show the message in one form; `changed`: in two forms; `left`, `right`: only one view shows it."""


class ViewPair(Struct, frozen=True):
    """An entry of the left view, of the right one, or both for the same message."""

    status: PairStatus
    """How the two sides differ."""
    left: Entry | None
    """The entry of the left view; None if that view does not show the message."""
    right: Entry | None
    """The entry of the right view; None if that view does not show the message."""
    covered_by: Entry | None = None
    """The entry of the other view that stands for this message among others, such as a fold or a summary."""

    @property
    def saved(self) -> int:
        """Return how many tokens the right side has less than the left one; negative if it has more."""
        return (self.left.tokens if self.left else 0) - (self.right.tokens if self.right else 0)


class Sum(Struct, frozen=True):
    """The entries of one status."""

    status: PairStatus
    """The status."""
    entries: int
    """Number of pairs."""
    left: int
    """Tokens on the left side."""
    right: int
    """Tokens on the right side."""


class Comparison(Struct, frozen=True):
    """Two views side by side."""

    pairs: tuple[ViewPair, ...]
    """In the order of the messages."""
    sums: tuple[Sum, ...]
    """For each status that occurs, in the order of `PairStatus`."""
    left: int
    """Tokens of the left view."""
    right: int
    """Tokens of the right view."""
    shared: int
    """Number of messages that both views show. 0 if the views belong to different histories."""


def compare(left: Sequence[Entry], right: Sequence[Entry]) -> Comparison:
    """Compare two views of one history, of a fork and its parent, or of a history and its replay.

    Entries are aligned by the id of their message. Ids are hashes of a message and all before it, so two histories
    agree up to the message where they part.
    """
    pairs = _pairs(left, right)
    sums = []
    for status in ("same", "changed", "left", "right"):
        group = [pair for pair in pairs if pair.status == status]
        if group:
            sides = [(pair.left.tokens if pair.left else 0, pair.right.tokens if pair.right else 0) for pair in group]
            sums.append(Sum(status, len(group), sum(left for left, _ in sides), sum(right for _, right in sides)))
    return Comparison(
        tuple(pairs),
        tuple(sums),
        sum(entry.tokens for entry in left),
        sum(entry.tokens for entry in right),
        sum(pair.left is not None and pair.right is not None for pair in pairs),
    )


_Key = tuple[str, bool, str, int]


def _keys(entries: Sequence[Entry]) -> list[_Key]:
    """Return a key for each entry. Several entries of one message differ by their kind and their order."""
    seen: dict[tuple[str, bool, str], int] = {}
    keys: list[_Key] = []
    for entry in entries:
        key = (entry.id, entry.span is not None, entry.kind if entry.kind in ("stand-in", "continuation") else "")
        seen[key] = seen.get(key, 0) + 1
        keys.append((*key, seen[key]))
    return keys


def _pairs(left: Sequence[Entry], right: Sequence[Entry]) -> list[ViewPair]:
    left_keys, right_keys = _keys(left), _keys(right)
    in_left, on_right = set(left_keys), dict(zip(right_keys, right, strict=True))
    left_spans, right_spans = _Spans(left), _Spans(right)
    pairs: list[ViewPair] = []
    paired: set[_Key] = set()
    at = 0
    for entry, key in zip(left, left_keys, strict=True):
        while at < len(right) and (
            right_keys[at] in paired or (right_keys[at] not in in_left and _is_before(right[at], entry))
        ):
            if right_keys[at] not in paired:
                pairs.append(ViewPair("right", None, right[at], left_spans.over(right[at])))
            at += 1
        twin = on_right.get(key)
        if twin is None:
            pairs.append(ViewPair("left", entry, None, right_spans.over(entry)))
        else:
            paired.add(key)
            is_same = entry is twin or entry.message == twin.message
            pairs.append(ViewPair("same" if is_same else "changed", entry, twin))
    pairs += [
        ViewPair("right", None, entry, left_spans.over(entry))
        for entry, key in zip(right[at:], right_keys[at:], strict=True)
        if key not in paired
    ]
    return pairs


def _is_before(entry: Entry, other: Entry) -> bool:
    """Return whether an entry stands before another one. A summary stands before the first message of its span."""

    def place(each: Entry) -> tuple[int, int]:
        return each.position, -each.last if each.span is not None else 1

    return place(entry) < place(other)


class _Spans:
    """The entries of a view that stand for several messages."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._spans = sorted((entry for entry in entries if entry.last > entry.position), key=lambda each: each.last)

    def over(self, entry: Entry) -> Entry | None:
        """Return the entry that stands for the message of `entry` among others, or None."""
        return next((span for span in self._spans if span.position <= entry.position and entry.last <= span.last), None)
