"""Tables, charts and sentences on standard output, and progress on standard error.

Output has colours only on a terminal, without NO_COLOR. Lines wrap at words.
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
from .tables import table_lines
from .text import one_line, printable
from .wrapping import Wrapper, output_width

__all__ = [
    "COLOURS",
    "console",
    "encodable",
    "heading",
    "print_chart",
    "print_table",
    "progress",
    "say",
    "status_line",
    "time_bar",
]

COLOURS = ("blue", "red", "green", "magenta", "yellow", "cyan")
_PLAIN = {"\N{NARROW NO-BREAK SPACE}": ",", UNKNOWN: "-", "→": "->", "…": "...", "·": "-", "│": "|"}
_INTERVAL = 0.2
"""Seconds between two updates of a status line."""


class _Console(Console):
    """A console that raises BrokenPipeError when the reader of standard output is gone."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Return a console for the present standard output."""
    return _Console(highlight=False, soft_wrap=True, markup=False, emoji=False)


def say(text: str = "", style: str = "") -> None:
    """Print one or several lines."""
    _put([(text, style)])


def heading(text: str, note: str = "") -> None:
    """Print a bold line, and a dim note behind it."""
    _put([(text, "bold"), (f"  {note}" if note else "", "dim")])


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """Print a table: the first `left` columns aligned to the left, the others to the right."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    for line, is_title in table_lines(titles, cells, left=left, room=output_width()):
        say(line, "bold" if is_title else "")
    say()


def print_chart(title: str, lines: Sequence[Line]) -> None:
    """Print a line chart, if it has data and standard output can encode it."""
    width = min(output_width() or 100, 120)
    rows = [] if _is_ascii() else draw(lines, width=width)
    if not rows:
        return
    heading(title)
    for row in rows:
        _put([(piece.text, COLOURS[piece.line % len(COLOURS)] if piece.line >= 0 else "dim") for piece in row])
    say()


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[float, int, str], None] | None]:
    """Show a progress bar on standard error. Yields a function to update it, or None without a terminal."""
    if not total or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[item]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, item="")

        def update(done: float, of: int, name: str) -> None:
            bar.update(task, completed=done, total=of, item=name[-40:].replace("[", "\\["))

        yield update


@contextmanager
def time_bar(title: str) -> Iterator[Callable[[int, float, str], None] | None]:
    """Show a bar of elapsed time on standard error. Yields a function to update it, or None without a terminal.

    The function takes the number of replays done, the elapsed share of the time, and the present stage.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(title),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[item]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0, item="")

        def update(done: int, elapsed: float, stage: str) -> None:
            bar.update(task, completed=elapsed, item=f"{stage}, {done:,} replays")

        yield update


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """Show one line on standard error, if that is a terminal. Yields a function that replaces its text."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    last = time.monotonic()

    def update(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > _INTERVAL:
            last = time.monotonic()
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()

    try:
        yield update
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def encodable(text: str) -> str:
    """Replace characters that standard output cannot encode."""
    if not _is_ascii():
        return text
    for fine, coarse in _PLAIN.items():
        text = text.replace(fine, coarse)
    return text.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding)


def _is_ascii() -> bool:
    """Return whether standard output cannot encode Unicode."""
    return "utf" not in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()


def _put(pieces: Sequence[tuple[str, str]]) -> None:
    """Print the pieces of a line with their styles, and make control characters visible."""
    wrapper, width = Wrapper(), output_width()
    texts = [(encodable(printable(text)).expandtabs(), style) for text, style in pieces]
    wrapped = [part for text, style in texts for part in wrapper.feed(text, style, width)]
    console().print(Text.assemble(*wrapped, *wrapper.flush(width)))
