"""A conversation: history, view and plan of one dialogue, for synchronous code and for asyncio.

sync.py            Conversation, its journal and its privacy
aio.py             the same, awaited
session.py         the parts of an open conversation, and what they do together
exchange.py        from one request to the next
state.py           the place in the store, the projection, and commits
journal_search.py  the records that affect a message, in a long journal
request_items.py   the messages of a request as JSON, with the caller's own bytes
append.py          messages become rows of a chain
plan.py            policies and summaries make a plan
prefetch.py        summaries that are written in the background
edit.py            edits on request, expanding, undoing, erasing
retention.py       erasing by age
replies.py         late usage, withdrawn replies
past.py            views and sums of earlier calls
plugins.py         users' programs that add content to messages
agent_access.py    internal: for agents, workers and telemetry
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.lazy_names import lazy_names
from .journal import Journal, Privacy
from .session import Fix, HistoryEntry, RepairReport, Session
from .sync import Conversation

if TYPE_CHECKING:
    from .aio import AsyncConversation

__all__ = [
    "AsyncConversation",
    "Conversation",
    "Fix",
    "HistoryEntry",
    "Journal",
    "Privacy",
    "RepairReport",
    "Session",
]


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {"AsyncConversation": ".aio"})
