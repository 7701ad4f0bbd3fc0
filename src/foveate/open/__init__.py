"""Opening: picks the store, format, counter and policies of a conversation by their names.

This is the only place that knows concrete leaves; everything else receives them.
"""

from __future__ import annotations

from ..expand.patterns import find as find_pattern
from .conversations import open_async_conversation, open_conversation, open_without_window
from .options import KEYWORDS, Options, grouped
from .registry import check_price, cost_of, open_model, open_store, open_summarizer

__all__ = [
    "KEYWORDS",
    "Options",
    "check_price",
    "cost_of",
    "find_pattern",
    "grouped",
    "open_async_conversation",
    "open_conversation",
    "open_model",
    "open_store",
    "open_summarizer",
    "open_without_window",
]
