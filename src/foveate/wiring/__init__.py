"""The one place that picks concrete leaves: which store, format, counter and policies a conversation is made of."""

from __future__ import annotations

from ..patterns import find as find_pattern
from .leaves import cost_of, open_model, open_store, open_summarizer
from .opening import open_async_conversation, open_conversation

__all__ = [
    "cost_of",
    "find_pattern",
    "open_async_conversation",
    "open_conversation",
    "open_model",
    "open_store",
    "open_summarizer",
]
