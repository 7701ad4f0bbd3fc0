"""Numbers with their nouns: `1 message`, `2 messages`."""

from __future__ import annotations

__all__ = ["plural"]


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, which is given in the singular. A comma separates thousands.

    >>> plural(1, "message"), plural(2_000, "entry"), plural(0, "match")
    ('1 message', '2,000 entries', '0 matches')
    """
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"
