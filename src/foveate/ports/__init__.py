"""The protocols between foveate and stores, formats, models and counters, and the values that they exchange.

To write your own, implement a protocol and pass its kit in `foveate.testing`.
"""

from __future__ import annotations

from ..core.runs import LockHolder
from ..core.stamps import StampRow
from .completed_store import complete
from .formats import Format, Rendered
from .models import Cost, CostOf, Delta, Gatherer, Model, StreamEnd, StreamingModel, TokenCounter
from .observer import Fact, Observer
from .opened_models import AsyncModel, SyncModel
from .reply_streams import AsyncReplyStream, ReplyStream
from .store import (
    Audits,
    Database,
    Erases,
    HasCatalog,
    Imports,
    KeepsRuns,
    Lists,
    Locks,
    Releases,
    Rewinds,
    SavesViews,
    Searches,
    Store,
    append,
)
from .summarizers import Background, CompactionRequest, Job, Prompts, RemoteBackground, Summarizer
from .values import (
    IMPORTING,
    Branch,
    Changes,
    Clock,
    Erasure,
    Finding,
    Head,
    LinkedRows,
    Listed,
    Orphan,
    SearchHit,
    StoredMessage,
    wall_clock,
)

__all__ = [
    "IMPORTING",
    "AsyncModel",
    "AsyncReplyStream",
    "Audits",
    "Background",
    "Branch",
    "Changes",
    "Clock",
    "CompactionRequest",
    "Cost",
    "CostOf",
    "Database",
    "Delta",
    "Erases",
    "Erasure",
    "Fact",
    "Finding",
    "Format",
    "Gatherer",
    "HasCatalog",
    "Head",
    "Imports",
    "Job",
    "KeepsRuns",
    "LinkedRows",
    "Listed",
    "Lists",
    "LockHolder",
    "Locks",
    "Model",
    "Observer",
    "Orphan",
    "Prompts",
    "Releases",
    "RemoteBackground",
    "Rendered",
    "ReplyStream",
    "Rewinds",
    "SavesViews",
    "SearchHit",
    "Searches",
    "StampRow",
    "Store",
    "StoredMessage",
    "StreamEnd",
    "StreamingModel",
    "Summarizer",
    "SyncModel",
    "TokenCounter",
    "append",
    "complete",
    "wall_clock",
]
