"""Which lines or items are meant: `40-80`, `40-`, `-20`, `7`, as a person or a model writes it.

Numbers count from 1 and both ends are included. What a text has of them is not known here.
"""

from __future__ import annotations

import re
import reprlib

from msgspec import Struct

from ..errors import BadInput

__all__ = ["Range", "read_range"]

_NUMBER = r"[lL#]?(\d{1,12})"
_SHAPE = re.compile(rf"(?:{_NUMBER})?(?:\s*(-|–|—|:|\.\.|to)\s*(?:{_NUMBER})?)?")
"""Two numbers at most, with what people put between them."""


class Range(Struct, frozen=True):
    """From `first` to `last`, from 1, both included; `last` 0: to the end; `first` 0: the last `last` of them."""

    first: int
    last: int

    def within(self, total: int) -> tuple[int, int] | None:
        """First and last, of `total` that there are; None where none of them is meant."""
        if not self.first:
            first, last = max(1, total - self.last + 1), total
        else:
            first, last = self.first, min(self.last or total, total)
        return (first, last) if first <= last else None

    def __str__(self) -> str:
        if self.first == self.last:
            return str(self.first)
        return f"{self.first or ''}-{self.last or ''}"


def read_range(value: object, what: str) -> Range:
    """A range in any of its forms: text, a number, two numbers in a list. Raises BadInput, naming `what` it is of."""
    told = value
    if isinstance(value, list | tuple) and 1 <= len(value) <= 2 and all(type(one) is int for one in value):
        told = "-".join(map(str, value))
    elif type(value) is int:
        told = str(value)
    match = _SHAPE.fullmatch(told.strip()) if isinstance(told, str) else None
    ends = [int(end) for end in (match[1], match[3]) if end] if match else []
    if match and ends and min(ends) > 0 and ends == sorted(ends):
        if not match[2]:
            return Range(ends[0], ends[0])
        return Range(int(match[1] or 0), int(match[3] or 0))
    raise BadInput(
        f'{what} are told as "40-80" (from 1, both ends included), "40-" (to the end), "-20" (the last 20) or "7", not '
        f"{reprlib.repr(value)}."
    )
