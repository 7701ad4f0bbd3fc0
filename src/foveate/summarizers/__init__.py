"""Summarizers: functions that write the summaries that policies request (`SummaryRequest -> text`).

- `first_characters`: the role and the beginning of each message; needs no model and always answers
- `digest_history`: requests, steps, names and errors, chosen by code; needs no model
- `model_summarizer`: a model writes, from prompts that you can replace
- `fallback`: asks several in order, until a summary is accepted
- `cached`: keeps summaries, so that none is requested twice
- `checked`: checks the summaries of a function of your own
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.lazy_names import lazy_names
from ..core.summaries import Answer, NeedsSummary, Summary, SummaryRequest, Urgency
from ..errors import BadSetting
from ..ports import Summarizer
from .fallback import checked, fallback
from .first_characters import first_characters

if TYPE_CHECKING:
    from .acceptance import Verdict, accept
    from .cache import cached
    from .history import digest_history
    from .model import model_summarizer

__all__ = [
    "KNOWN",
    "Answer",
    "NeedsSummary",
    "Summary",
    "SummaryRequest",
    "Urgency",
    "Verdict",
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
"""Names of the summarizers that need no model."""

_ALSO = {"first_characters": "first-characters", "first_chars": "first-characters"}
"""Other spellings."""


def summarizer_named(name: str) -> Summarizer:
    """Return the summarizer of this name, which needs no model. Raises BadSetting for an unknown name."""
    check_name(name)
    if _ALSO.get(name, name) == "first-characters":
        return first_characters()
    from .history import digest_history

    return fallback(digest_history(), first_characters())


def check_name(name: str, hint: str = "") -> None:
    """Raise BadSetting, with a hint, if no summarizer without a model has this name."""
    if _ALSO.get(name, name) not in KNOWN:
        raise BadSetting(
            f"There is no summarizer {name!r}.{hint} Known: {', '.join(KNOWN)}, a model such as "
            "anthropic:claude-haiku-4-5; or pass a function of your own."
        )


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Verdict": ".acceptance",
            "accept": ".acceptance",
            "cached": ".cache",
            "digest_history": ".history",
            "model_summarizer": ".model",
        },
    )
