"""Types of the values that calls return or take, for annotations and for values made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .conversation import Fix, HistoryEntry, Journal, Privacy, RepairReport
from .conversation.caller_list import Followed, ListItem
from .conversation.request_items import RequestItem, RequestItems
from .core.call_context import CallContext, Prices
from .core.context import Context, ContextKind
from .core.events import Event, EventKind
from .core.lazy_names import lazy_names
from .core.messages import Content, Extra, Part, ResultState, Role
from .core.needs import Needs
from .core.planner import OpenRequest
from .core.profiles import Profile
from .core.stamps import (
    CompactMode,
    Expansion,
    ExpirationMode,
    Lease,
    Origin,
    PartRetention,
    Retention,
    Stamp,
    Stop,
    StopKind,
)
from .core.totals import ModelTotals, Totals
from .core.view import EntryKind, ListPlace, PinnedPart

if TYPE_CHECKING:
    from .conversation.aio import AsyncJournal, AsyncPrivacy
    from .open.pool import ConversationUse
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "AsyncJournal": ".conversation.aio",
            "AsyncPrivacy": ".conversation.aio",
            "ConversationUse": ".open.pool",
        },
    )

__all__ = [
    "AsyncJournal",
    "AsyncPrivacy",
    "CallContext",
    "CompactMode",
    "Content",
    "Context",
    "ContextKind",
    "ConversationUse",
    "EntryKind",
    "Event",
    "EventKind",
    "Expansion",
    "ExpirationMode",
    "Extra",
    "Fix",
    "Followed",
    "HistoryEntry",
    "Journal",
    "Lease",
    "ListItem",
    "ListPlace",
    "ModelTotals",
    "Needs",
    "OpenRequest",
    "Origin",
    "Part",
    "PartRetention",
    "PinnedPart",
    "Prices",
    "Privacy",
    "Profile",
    "RepairReport",
    "RequestItem",
    "RequestItems",
    "ResultState",
    "Retention",
    "Role",
    "Stamp",
    "Stop",
    "StopKind",
    "Totals",
]
