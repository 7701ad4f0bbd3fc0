"""The protocols between foveate and stores, formats, models and counters, and the values that they exchange.

To write your own, implement a protocol and pass its kit in `foveate.testing`.
"""

from __future__ import annotations

from ..core.stamps import StampRow
from .formats import Format, Rendered
from .models import Cost, Delta, Gatherer, Model, StreamingModel, TokenCounter, Whole
from .store import (
    Audits,
    Database,
    Erases,
    HasCatalog,
    Imports,
    KeepsRuns,
    Locks,
    Rewinds,
    SavesViews,
    Searches,
    Store,
    append,
    complete,
)
from .summarizing import Background, Elsewhere, Handed, Job, Summarizer
from .values import (
    IMPORTING,
    Branch,
    Changes,
    Clock,
    Erasure,
    Finding,
    Head,
    Orphan,
    SearchHit,
    StoredMessage,
    wall_clock,
)
from .watching import Fact, Watch

__all__ = [
    "IMPORTING",
    "Audits",
    "Background",
    "Branch",
    "Changes",
    "Clock",
    "Cost",
    "Database",
    "Delta",
    "Elsewhere",
    "Erases",
    "Erasure",
    "Fact",
    "Finding",
    "Format",
    "Gatherer",
    "Handed",
    "HasCatalog",
    "Head",
    "Imports",
    "Job",
    "KeepsRuns",
    "Locks",
    "Model",
    "Orphan",
    "Rendered",
    "Rewinds",
    "SavesViews",
    "SearchHit",
    "Searches",
    "StampRow",
    "Store",
    "StoredMessage",
    "StreamingModel",
    "Summarizer",
    "TokenCounter",
    "Watch",
    "Whole",
    "append",
    "complete",
    "wall_clock",
]
