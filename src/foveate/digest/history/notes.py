"""Notes of the engine: the words that stand in a view for content that it does not show.

A digest reads the messages of a view. A note in them says only how long a text was and which handle shows it, so it is
no statement of anybody.
"""

from __future__ import annotations

import re

__all__ = ["without_notes"]

_NOTE = re.compile(
    r"\[(?P<cut>cut: )?[^\[\]\n]*"
    r'(?:\bexpand\(\\*"m[^\[\]\n]*|[;:] m\d+(?:\.\d+)*|\bm\d+ (?:are|is) hidden to fit the window\b[^\[\]\n]*)\]'
)
"""A note in both forms: with a call of `expand`, and with the handle alone."""
_SIGNS = ("; m", ": m", "expand(", "hidden to fit")
"""A text with a note has one of these."""


def without_notes(text: str) -> str:
    """Return a text without notes. An ellipsis stands where a sentence was cut."""
    if "[" not in text or not any(map(text.__contains__, _SIGNS)):
        return text
    return _NOTE.sub(_in_place_of, text).replace("\n …", " …")


def _in_place_of(note: re.Match[str]) -> str:
    before = note.string[: note.start()].rstrip()[-1:]
    return " …" if note["cut"] and before not in (".", "!", "?", "…") else ""
