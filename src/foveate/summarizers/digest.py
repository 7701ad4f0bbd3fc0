"""Summaries without a model that are worth reading: what was asked, done, found and said, in the words used there.

Everything in them is copied or counted by code, so nothing is invented, and the same request gives the same text. For
one message it is that message's digest; for a history a few sections, carried on from one summary to the next.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from ..core.summaries import SummaryRequest
from ..digest import digest
from ..ports import Summarizer
from .history import account

__all__ = ["digest_history"]


def digest_history() -> Summarizer:
    """A summarizer that needs no model, has the sections of the prompt for a history, and is never longer than asked.

    Goal and requests are the users' own words, nearly whole; then what was done, by tool and by what it was done to;
    the errors; names that were found, each in its line; and how the last answer ended. The summary before is carried on
    section by section, whoever wrote it. A message on its own is told by `foveate.digest`.
    """
    return _Digest()


class _Digest(Struct, frozen=True):
    """See `digest_history`."""

    name: ClassVar[str] = "digest"
    needs_no_model: ClassVar[bool] = True
    """Read by chains: it answers at once, and invents nothing."""

    def __call__(self, request: SummaryRequest) -> str:
        if len(request.messages) == 1 and "originalLength" in request.facts:
            return digest(request.messages[0].text, max(1, request.target)).text[: request.target]
        return account(request)
