"""Types of the values that calls return or take, for annotations and for values made by hand."""

from __future__ import annotations

from .conversation import Fix, HistoryEntry, RepairReport
from .conversation.caller_list import Followed, ListItem
from .core.context import Context
from .core.events import Event
from .core.messages import Extra, Part
from .core.profiles import Profile
from .core.stamps import Lease, PartRetention, Stamp
from .core.totals import Totals
from .core.view import CallContext, ListPlace, Prices

__all__ = [
    "CallContext",
    "Context",
    "Event",
    "Extra",
    "Fix",
    "Followed",
    "HistoryEntry",
    "Lease",
    "ListItem",
    "ListPlace",
    "Part",
    "PartRetention",
    "Prices",
    "Profile",
    "RepairReport",
    "Stamp",
    "Totals",
]
