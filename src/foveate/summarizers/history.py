"""The digest of a history as a summarizer: what was asked, decided, done and found, in the words used there.

Code copies or counts everything in it, so nothing is invented, and the same request gives the same text.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from ..core.summaries import SummaryRequest
from ..digest import digest
from ..digest.history import digest_messages
from ..ports import Summarizer

__all__ = ["digest_history"]


def digest_history() -> Summarizer:
    """Return a summarizer that needs no model and never writes more than requested.

    A single message becomes its digest (`foveate.digest`).
    """
    return _Digest()


class _Digest(Struct, frozen=True):
    """A summarizer that writes the digest of a history."""

    name: ClassVar[str] = "digest"
    needs_no_model: ClassVar[bool] = True
    """Fallbacks read it: the answer comes at once and invents nothing."""

    def __call__(self, request: SummaryRequest) -> str:
        if len(request.messages) == 1 and "originalLength" in request.facts:
            return digest(request.messages[0].text, max(1, request.target)).text[: request.target]
        return digest_messages(
            request.everything,
            request.target,
            previous=request.previous,
            required=request.required,
            focus=request.focus,
        )
