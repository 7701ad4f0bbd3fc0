"""Regular expressions that cannot hang whoever looks for them: time-limited, by the package `regex`.

Patterns come from a model or a stranger. The standard library's `re` cannot be stopped; nor can the compiling of a
pattern, so what would take long to compile is refused by its looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from .errors import BadInput, MissingExtra

__all__ = ["LONGEST", "SECONDS", "find"]

SECONDS = 1.0
"""How long one pattern may look through one text."""
LONGEST = 500
"""Characters of a pattern."""
MOST_REPEATED = 10_000
"""All numbers of repetitions in a pattern, multiplied: each is compiled as often."""

_REPEATED = re.compile(r"\{(\d*),?(\d*)\}")


def find(pattern: str, text: str, seconds: float = SECONDS) -> Iterator[tuple[int, int]]:
    """Start and end of each match, in order; `^` and `$` are those of lines.

    Raises BadInput, when the first match or a later one is asked for, where the pattern is wrong or takes too long, and
    MissingExtra where the package is not installed.
    """
    try:
        import regex
    except ImportError as error:
        raise MissingExtra("Expanding by a pattern", "expand") from error
    if len(pattern) > LONGEST:
        raise BadInput(f"A pattern has {LONGEST} characters at most; this one has {len(pattern):,}.")
    if prod(max(1, *(int(number[:9] or 1) for number in ends)) for ends in _REPEATED.findall(pattern)) > MOST_REPEATED:
        raise BadInput("The pattern repeats too often. Use * or + instead of large numbers.")
    try:
        compiled = regex.compile(pattern, regex.MULTILINE)
        for match in compiled.finditer(text, timeout=seconds, concurrent=True):
            yield match.span()
    except TimeoutError:
        raise BadInput(
            f"The pattern took longer than {seconds:g} s. Make it simpler: no repetition inside of a repetition, plain "
            "words where they do."
        ) from None
    except (regex.error, RecursionError, OverflowError, ValueError, MemoryError, KeyError, IndexError) as error:
        said = str(error) or type(error).__name__
        raise BadInput(f"The pattern is no regular expression: {said[:200]}.") from error
