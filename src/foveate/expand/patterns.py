"""Regular expressions with a time limit, by the package `regex`.

Patterns come from a model or a stranger. The standard library's `re` cannot be stopped, and neither can the compilation
of a pattern, so a pattern that would take long to compile is refused beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from ..errors import BadInput, MissingExtra

__all__ = ["MAX_LENGTH", "SECONDS", "find"]

SECONDS = 1.0
"""Time limit of one pattern in one text."""
MAX_LENGTH = 500
"""Characters of a pattern."""
_MAX_REPETITIONS = 10_000
"""Limit of the product of all repetition counts in a pattern: each is compiled that often."""

_LITERAL = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?#[^)]*", re.DOTALL)
"""An escaped character, a set or a comment, in which parentheses and braces mean themselves."""
_VERBOSE = re.compile(r"\(\?[A-Za-z01]*x")
"""The flag x. With it, white space and comments may stand within a reference or a count."""
_RECURSION = re.compile(r"\(\?(?:R|\d|[+-]\d|&|P>)")
"""A reference of a pattern to itself or to one of its groups: memory that it takes has no limit."""
_REPEATED = re.compile(r"\{(\d*),?(\d*)\}")


def find(pattern: str, text: str, seconds: float = SECONDS) -> Iterator[tuple[int, int]]:
    """Yield start and end of each match, in order; `^` and `$` match at lines.

    Raises BadInput, at any match, if the pattern is wrong or takes too long, and MissingExtra without the package.
    """
    try:
        import regex
    except ImportError as error:
        raise MissingExtra("Expanding by a pattern", "expand") from error
    if len(pattern) > MAX_LENGTH:
        raise BadInput(f"A pattern has {MAX_LENGTH} characters at most; this one has {len(pattern):,}.")
    syntax = _LITERAL.sub(".", pattern)
    if _VERBOSE.search(syntax):
        raise BadInput("The pattern has the flag x, which ignores white space. Leave out the flag and the white space.")
    if _RECURSION.search(syntax):
        raise BadInput("The pattern refers to itself, as (?R) does. Write out what it repeats.")
    counts = (max(1, *(int(number[:9] or 1) for number in ends)) for ends in _REPEATED.findall(syntax))
    if prod(counts) > _MAX_REPETITIONS:
        raise BadInput("The pattern repeats too often. Use * or + instead of large numbers.")
    try:
        compiled = regex.compile(pattern, regex.MULTILINE)
        if compiled.flags & regex.REVERSE:
            raise BadInput("The pattern searches backwards, as (?r) makes it. Leave out the flag r.")
        for match in compiled.finditer(text, timeout=seconds, concurrent=True):
            yield match.span()
    except TimeoutError:
        raise BadInput(
            f"The pattern took longer than {seconds:g} s. Make it simpler: no repetition inside of a repetition, plain "
            "words where they do."
        ) from None
    except (regex.error, RecursionError, OverflowError, ValueError, MemoryError, KeyError, IndexError) as error:
        reason = str(error) or type(error).__name__
        raise BadInput(f"The pattern is no regular expression: {reason[:200]}.") from error
