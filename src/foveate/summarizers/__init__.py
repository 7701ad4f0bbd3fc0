"""Who writes the summaries that policies ask for. A summarizer is a function: `SummaryRequest -> text`."""

from __future__ import annotations

from .fallback import first_characters

__all__ = ["first_characters"]
