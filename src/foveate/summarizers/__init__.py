"""Who writes the summaries that policies ask for. A summarizer is a function: `SummaryRequest -> text`."""

from __future__ import annotations

from ..errors import BadSetting
from ..ports import Summarizer
from .first_characters import first_characters

__all__ = ["KNOWN", "first_characters", "summarizer_named"]

KNOWN = ("first-characters",)
"""Names that settings know. A program may hand in a function of its own instead."""


def summarizer_named(name: str) -> Summarizer:
    """The summarizer of this name. Raises BadSetting for one that there is not."""
    if name == "first-characters":
        return first_characters()
    raise BadSetting(f"There is no summarizer {name!r}. Known: {', '.join(KNOWN)}; or hand in a function of your own.")
