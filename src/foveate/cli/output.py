"""Printing for people: tables, charts and sentences on standard output, a progress bar on standard error.

Colour only where a terminal shows it (and NO_COLOR is not set); a table that is wider than the terminal continues below
itself. What is printed comes from `replay/report.py`; nothing here decides what is said.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from ..replay.numbers import UNKNOWN
from .chart import Line, draw
from .text import printable

__all__ = ["COLOURS", "console", "encodable", "heading", "print_chart", "print_table", "progress", "say", "status_line"]

COLOURS = ("blue", "red", "green", "magenta", "yellow", "cyan")
_PLAIN = {"\N{NARROW NO-BREAK SPACE}": ",", UNKNOWN: "-", "→": "->", "…": "...", "·": "-", "│": "|"}


class _Console(Console):
    """A console that lets whoever runs the command know that nobody reads any more."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Standard output as it is now."""
    return _Console(highlight=False, soft_wrap=True, markup=False, emoji=False)


def say(text: str = "", style: str = "") -> None:
    """One line, or several."""
    _put([(text, style)])


def heading(text: str, beside: str = "") -> None:
    """A bold line, with something dim beside it."""
    _put([(text, "bold"), (f"  {beside}" if beside else "", "dim")])


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """A table whose first `left` columns are aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for columns in _blocks(widths, left, console().width if sys.stdout.isatty() else 10**6):
        for number, row in enumerate([titles, *rows]):
            cells = [
                row[column].ljust(widths[column]) if column < left else row[column].rjust(widths[column])
                for column in columns
            ]
            say("  ".join(cells).rstrip(), "" if number else "bold")
        say()


def print_chart(title: str, lines: Sequence[Line]) -> None:
    """A line chart, where there is something to draw and an encoding to draw it in."""
    width = min(console().width, 120) if sys.stdout.isatty() else 100
    rows = [] if _narrow_encoding() else draw(lines, width=width)
    if not rows:
        return
    heading(title)
    for row in rows:
        _put([(piece.text, COLOURS[piece.line % len(COLOURS)] if piece.line >= 0 else "dim") for piece in row])
    say()


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int, int, str], None] | None]:
    """A bar on standard error while something long runs; None where nobody would see it."""
    if total < 2 or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[at]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, at="")

        def tell(done: int, of: int, name: str) -> None:
            bar.update(task, completed=done, total=of, at=name[-40:].replace("[", "\\["))

        yield tell


def _blocks(widths: Sequence[int], left: int, room: int) -> list[list[int]]:
    """The columns of each part of a table: the left ones again in each, and as many others as there is room for."""
    fixed = list(range(left))
    blocks, block = [], list(fixed)
    for column in range(left, len(widths)):
        if len(block) > left and sum(widths[c] + 2 for c in [*block, column]) - 2 > room:
            blocks.append(block)
            block = list(fixed)
        block.append(column)
    return [*blocks, block]


def _put(pieces: Sequence[tuple[str, str]]) -> None:
    """Print pieces of a line, each with its style, with nothing in them that could steer the terminal."""
    console().print(Text.assemble(*[(encodable(printable(text)), style) for text, style in pieces]))


def encodable(text: str) -> str:
    """The same text in characters that standard output can write."""
    if not _narrow_encoding():
        return text
    for fine, coarse in _PLAIN.items():
        text = text.replace(fine, coarse)
    return text.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding)


def _narrow_encoding() -> bool:
    """Whether standard output cannot write what is beyond ASCII."""
    return "utf" not in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()


_INTERVAL = 0.2
"""Seconds."""


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """Something to tell how far it is, in a few words. They go to standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda words: None
        return
    last = time.monotonic()

    def tell(words: str) -> None:
        nonlocal last
        if time.monotonic() - last > _INTERVAL:
            last = time.monotonic()
            sys.stderr.write(f"\r{words}\x1b[K")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
