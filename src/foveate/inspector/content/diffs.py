"""Diffs for people: changed lines of two texts, the changed words inside them, and unified diffs that a tool printed.

The comparison is bounded. Texts that are too long are compared without their middle, or shown as removed and added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Literal

from markupsafe import Markup
from msgspec import Struct

from .characters import visible

__all__ = ["DiffRow", "Mark", "diff_lines", "mark_words", "render_diff_rows", "rows_of_patch"]

Mark = Literal[" ", "+", "-", "@", "#"]
"""Unchanged, added, removed, the begin of a hunk, the name of a file or another line about the diff."""

_CONTEXT = 3
_MOST_LINES = 1_500
"""Lines of one text that are compared, without those that both texts begin or end with."""
_MOST_WORDS = 200
"""Words of a line that are compared."""
_WORD = re.compile(r"\w+|\s+|.")
_ALIKE = 0.3
"""The share of a pair of lines that must be equal, so that words are marked and not the whole lines."""

_CLASSES: dict[str, str] = {" ": "c-same", "+": "c-added", "-": "c-removed", "@": "c-hunk", "#": "c-file"}

_MARKS: dict[str, Mark] = {"+": "+", "-": "-", " ": " "}
"""Marks of the lines of a hunk, by their first character."""


class DiffRow(Struct, frozen=True):
    """A line of a diff."""

    mark: Mark
    text: str
    """The line without its mark."""
    changed: tuple[tuple[int, int], ...] = ()
    """Start and end of the changed words in the text. Empty if the whole line changed or none of it."""
    cut: int = 0
    """Characters of the line that the text lacks."""


def diff_lines(old: str, new: str, context: int = _CONTEXT) -> list[DiffRow]:
    """Return the changed lines of two texts and their changed words, with `context` unchanged lines around."""
    before, after = old.split("\n"), new.split("\n")
    head = _equal_begin(before, after)
    tail = _equal_begin(before[head:][::-1], after[head:][::-1])
    left, right = before[head : len(before) - tail], after[head : len(after) - tail]
    rows = [DiffRow(" ", line) for line in before[max(0, head - context) : head]]
    if head > context:
        rows.insert(0, DiffRow("@", _skipped(head - context)))
    if len(left) > _MOST_LINES or len(right) > _MOST_LINES:
        rows += [DiffRow("-", line) for line in left] + [DiffRow("+", line) for line in right]
    else:
        rows += _compare(left, right, context)
    end = before[len(before) - tail :]
    rows += [DiffRow(" ", line) for line in end[:context]]
    if len(end) > context:
        rows.append(DiffRow("@", _skipped(len(end) - context)))
    return mark_words(rows)


def _compare(left: Sequence[str], right: Sequence[str], context: int) -> list[DiffRow]:
    rows: list[DiffRow] = []
    # Without `autojunk`, a line that occurs often would be looked for at each of its places: quadratic time.
    matcher = SequenceMatcher(None, left, right, autojunk=True)
    for kind, start, end, first, last in matcher.get_opcodes():
        if kind == "equal":
            same = left[start:end]
            if len(same) > 2 * context + 1:
                rows += [DiffRow(" ", line) for line in same[:context]]
                rows.append(DiffRow("@", _skipped(len(same) - 2 * context)))
                rows += [DiffRow(" ", line) for line in same[len(same) - context :]]
            else:
                rows += [DiffRow(" ", line) for line in same]
        else:
            rows += [DiffRow("-", line) for line in left[start:end]]
            rows += [DiffRow("+", line) for line in right[first:last]]
    return rows


def rows_of_patch(lines: Iterable[str]) -> list[DiffRow]:
    """Return the rows of a unified diff, or of a patch in the form of Codex (`*** Begin Patch`)."""
    rows: list[DiffRow] = []
    left = right = 0
    """Lines that the hunk still has, by its header: inside it, `--- x` is a removed line, not the name of a file."""
    for line in lines:
        begin = line[:1]
        inside = left > 0 or right > 0
        if hunk := _HUNK.match(line):
            left, right = (int(number[:9]) if number else 1 for number in hunk.groups())
            rows.append(DiffRow("@", line))
        elif line.startswith(("+++ ", "--- ")) and not inside:
            rows.append(DiffRow("#", line))
        elif mark := _MARKS.get(begin):
            left, right = left - (begin != "+"), right - (begin != "-")
            rows.append(DiffRow(mark, line[1:]))
        elif line.startswith("@@"):
            rows.append(DiffRow("@", line))
        else:
            rows.append(DiffRow("#", line))
            left = right = 0
    return mark_words(rows)


_HUNK = re.compile(r"@@+ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")


def mark_words(rows: Sequence[DiffRow]) -> list[DiffRow]:
    """Return the rows with the changed words of each removed line and the added line that replaces it."""
    done = list(rows)
    at = 0
    while at < len(done):
        removed = _stretch(done, at, "-")
        added = _stretch(done, removed, "+")
        if removed - at == added - removed:  # Blocks of another size have no line that stands for another.
            for first, second in zip(range(at, removed), range(removed, added), strict=True):
                old, new = _changed_words(done[first].text, done[second].text)
                done[first] = DiffRow("-", done[first].text, old)
                done[second] = DiffRow("+", done[second].text, new)
        at = max(added, at + 1)
    return done


def render_diff_rows(rows: Iterable[DiffRow]) -> list[Markup]:
    """Return the markup of each row, with its mark as the first character of the text."""
    return [
        Markup('<span class="{}">{}{}</span>').format(
            _CLASSES[row.mark], row.mark if row.mark in "+- " else "", _with_marks(row)
        )
        for row in rows
    ]


def _with_marks(row: DiffRow) -> Markup:
    pieces: list[str] = []
    at = 0
    for start, end in row.changed:
        if start < len(row.text):
            pieces += [visible(row.text[at:start]), f'<mark class="c-word">{visible(row.text[start:end])}</mark>']
            at = end
    pieces.append(visible(row.text[at:]))
    if row.cut:
        pieces.append(f'<span class="c-cut">… {len(row.text) + row.cut:,} characters in this line</span>')
    return Markup("".join(pieces))


def _changed_words(old: str, new: str) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Return the places of the words that differ; none if the lines have little in common."""
    if len(old) > 1_000 or len(new) > 1_000:
        return (), ()
    before, after = _WORD.findall(old), _WORD.findall(new)
    if not before or not after or len(before) > _MOST_WORDS or len(after) > _MOST_WORDS:
        return (), ()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    blocks = matcher.get_opcodes()
    same = sum([len("".join(before[start:end])) for kind, start, end, _, _ in blocks if kind == "equal"])
    if 2 * same < _ALIKE * (len(old) + len(new)):
        return (), ()
    changes = [block for block in blocks if block[0] != "equal"]
    return (
        _places(before, [(start, end) for _, start, end, _, _ in changes if end > start]),
        _places(after, [(start, end) for _, _, _, start, end in changes if end > start]),
    )


def _places(words: Sequence[str], spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return tuple([(starts[first], starts[last]) for first, last in spans])


def _equal_begin(left: Sequence[str], right: Sequence[str]) -> int:
    count = 0
    for old, new in zip(left, right, strict=False):
        if old != new:
            break
        count += 1
    return count


def _stretch(rows: Sequence[DiffRow], at: int, mark: Mark) -> int:
    while at < len(rows) and rows[at].mark == mark:
        at += 1
    return at


def _skipped(count: int) -> str:
    return f"{count:,} equal line{'' if count == 1 else 's'}"
