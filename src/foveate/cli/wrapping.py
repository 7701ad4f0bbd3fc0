"""Wrapping of text at words, piece by piece as a model streams it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from rich.cells import cell_len

__all__ = ["Wrapper", "output_width", "wrapped"]

_TOKENS = re.compile(r"\n|(?:(?![\n\xa0\u202f])\s)+|(?:\S|[\xa0\u202f]| (?=%))+")
"""Ends of lines, spaces, and words. No line ends at a no-break space, or between a figure and its percent sign."""
_LEAST = 20
"""Columns. Text in a narrower output is not wrapped."""


def output_width() -> int | None:
    """Return the columns of standard output: of its terminal, else of COLUMNS; None for an output without a width."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) else None


def wrapped(text: str, width: int | None) -> str:
    """Return a text with line ends between words. `width`: columns; None: do not wrap."""
    wrapper = Wrapper()
    return "".join(piece for piece, _ in (*wrapper.feed(text, "", width), *wrapper.flush(width)))


class Wrapper:
    """Breaks lines between words. A wrapped line begins with the white space of its first line.

    A word that may continue in the next piece is held back until it is complete. Longer words than a line stay whole.
    """

    def __init__(self) -> None:
        self._column = 0
        """Cells on the current line."""
        self._indent = ""
        """The white space at the beginning of the current line."""
        self._is_in_indent = True
        self._space = ("", "")
        """White space that is not printed yet, and its style."""
        self._word: list[tuple[str, str]] = []
        """Pieces of a word that is not printed yet, with their styles."""

    def feed(self, text: str, style: str, width: int | None) -> list[tuple[str, str]]:
        """Return the next pieces to print, with their styles. `width`: columns of the output; None: do not wrap."""
        if width is None or width < _LEAST:
            return _merged([*self.flush(width), (text, style)])
        return _merged(self._feed(text, style, width))

    def flush(self, width: int | None) -> list[tuple[str, str]]:
        """Return everything that is held back."""
        return _merged(self._flush(width))

    def _feed(self, text: str, style: str, width: int) -> Iterator[tuple[str, str]]:
        for token in _TOKENS.findall(text):
            if token == "\n":
                yield from self._flush(width)
                yield token, style
                self._column, self._indent, self._is_in_indent = 0, "", True
            elif not token.isspace():
                self._word.append((token, style))
            elif self._is_in_indent and not self._word:
                self._indent += token
                self._column += cell_len(token)
                yield token, style
            else:
                yield from self._end_word(width)
                self._space = (self._space[0] + token, style)

    def _flush(self, width: int | None) -> Iterator[tuple[str, str]]:
        yield from self._end_word(width)
        if self._space[0]:
            self._column += cell_len(self._space[0])
            yield self._space
        self._space = ("", "")

    def _end_word(self, width: int | None) -> Iterator[tuple[str, str]]:
        if not self._word:
            return
        cells = sum(cell_len(text) for text, _ in self._word)
        space = cell_len(self._space[0])
        if width is not None and self._column + space + cells > width and not self._is_in_indent:
            indent = self._indent if len(self._indent) <= width // 2 else ""
            yield f"\n{indent}", self._space[1]
            self._column = cell_len(indent)
        elif self._space[0]:
            yield self._space
            self._column += space
        yield from self._word
        self._column += cells
        if width and self._column > width:  # The terminal has broken the word.
            self._column %= width
        self._word, self._space, self._is_in_indent = [], ("", ""), False


def _merged(pieces: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join neighbours of the same style."""
    return [("".join(text for text, _ in group), style) for style, group in groupby(pieces, key=itemgetter(1))]
