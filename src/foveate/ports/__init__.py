"""The protocols that foveate's shell stands on, and the plain values they exchange.

Whoever writes a store, a token counter, a format or a clock implements one of these and passes the matching kit in
`foveate.testing`. Nothing here does anything. One file for each of those who implement them; all names are here.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.stamps import StampRow
from .catalog import Catalog, Database
from .formats import Format, Rendered
from .kept import IMPORTING, Appended, Branch, Erased, Finding, Found, Head, Stray, Tail
from .models import Cost, Delta, Model, StreamingModel, TokenCounter, Whole
from .store import Store
from .summarizing import Background, Elsewhere, Handed, Job, Summarizer
from .watching import Fact, Watch

__all__ = [
    "IMPORTING",
    "Appended",
    "Background",
    "Branch",
    "Catalog",
    "Clock",
    "Cost",
    "Database",
    "Delta",
    "Elsewhere",
    "Erased",
    "Fact",
    "Finding",
    "Format",
    "Found",
    "Handed",
    "Head",
    "Job",
    "Model",
    "Rendered",
    "StampRow",
    "Store",
    "Stray",
    "StreamingModel",
    "Summarizer",
    "Tail",
    "TokenCounter",
    "Watch",
    "Whole",
]

Clock = Callable[[], int]
"""Milliseconds since 1970."""
