"""Who writes the summaries that policies ask for. A summarizer is a function: `SummaryRequest -> text`.

first_characters    who spoke, and how it began: needs no model, and always has an answer
digest_history      what was asked, done, found and said, chosen by code: needs no model
model_summarizer    lets a model write, by prompts that you can replace
fallback            one after the other, until a summary is accepted
cached              what was written before is not asked for again
checked             judges what a function of your own writes, before it is used
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..core.summaries import Answer, NeedsSummary, Summary, SummaryRequest
from ..errors import BadSetting
from ..ports import Summarizer
from .fallback import checked, fallback
from .first_characters import first_characters

if TYPE_CHECKING:
    from .acceptance import accept
    from .cache import cached
    from .history import digest_history
    from .model import model_summarizer

__all__ = [
    "KNOWN",
    "Answer",
    "NeedsSummary",
    "Summary",
    "SummaryRequest",
    "accept",
    "cached",
    "checked",
    "digest_history",
    "fallback",
    "first_characters",
    "model_summarizer",
    "summarizer_named",
]

KNOWN = ("digest", "first-characters")
"""Names that need no model. A program may hand in a function of its own instead."""

_ALSO = {"first_characters": "first-characters", "first_chars": "first-characters"}
"""Other spellings."""


def summarizer_named(name: str) -> Summarizer:
    """The summarizer of this name, which needs no model. Raises BadSetting for one that there is not."""
    match _ALSO.get(name, name):
        case "first-characters":
            return first_characters()
        case "digest":
            from .history import digest_history

            return fallback(digest_history(), first_characters())
        case _:
            raise BadSetting(
                f"There is no summarizer {name!r}. Known: {', '.join(KNOWN)}, a model such as "
                "anthropic:claude-haiku-4-5; or hand in a function of your own."
            )


_LATER = {
    "accept": ".acceptance",
    "cached": ".cache",
    "digest_history": ".history",
    "model_summarizer": ".model",
}
"""What is imported only when it is asked for: settings look at names alone."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name], __name__), name)
    return value
