"""foveate: conversations of LLM agents that never outgrow the model's window.

What matters stays sharp, the rest shrinks, nothing is lost, and every prompt is legal for its provider::

    chat = foveate.open_conversation("fix-login", store="sqlite:///chat.db", format="anthropic", window=200_000)
    chat.append({"role": "user", "content": "Why does the login test fail?"})
    reply = client.messages.create(model=MODEL, max_tokens=4096, **chat.prompt(system=RULES, tools=TOOLS))
    chat.record(reply)
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

from .conversation import Conversation
from .core.edits import Edit, Hide, Pin, Replace, Restore, Span, Summarize, Target, Task, Unpin
from .core.events import Event
from .core.messages import (
    Extra,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_result,
    user,
)
from .core.planner import Plan, Policy
from .core.profiles import Profile
from .core.receipts import Receipt
from .core.rules import Violation, check, cut_points
from .core.stamps import Kept, Lease, Stamp, Usage
from .core.summaries import Answer, NeedsSummary, SummaryRequest
from .core.view import Budget, Entry, Moment, Prices, View
from .errors import (
    BadEdit,
    BadInput,
    BadMessage,
    BadSetting,
    BadTranscript,
    Damaged,
    DoesNotFit,
    FoveateError,
    IllegalView,
    MissingExtra,
    NoSuchConversation,
    NotExpandable,
    Refused,
    StalePlan,
    StoreError,
    TipMoved,
    UnknownFormat,
    UnknownHandle,
)
from .shell import Historic, Mend, Repaired
from .wiring import open_async_conversation, open_conversation, open_store

if _typing.TYPE_CHECKING:
    from .async_conversation import AsyncConversation
    from .policies.filter_tool_results import filter_tool_results
    from .policies.prune_tool_outputs import prune_tool_outputs
    from .policies.recap_batches import recap_batches
    from .policies.recap_settings import recap_settings

__version__ = "0.1.0.dev0"

__all__ = [
    "Answer",
    "AsyncConversation",
    "BadEdit",
    "BadInput",
    "BadMessage",
    "BadSetting",
    "BadTranscript",
    "Budget",
    "Conversation",
    "Damaged",
    "DoesNotFit",
    "Edit",
    "Entry",
    "Event",
    "Extra",
    "FoveateError",
    "Hide",
    "Historic",
    "IllegalView",
    "Kept",
    "Lease",
    "Media",
    "Mend",
    "Message",
    "MissingExtra",
    "Moment",
    "NeedsSummary",
    "NoSuchConversation",
    "NotExpandable",
    "Opaque",
    "Part",
    "Pin",
    "Plan",
    "Policy",
    "Prices",
    "Profile",
    "Reasoning",
    "Receipt",
    "Refused",
    "Repaired",
    "Replace",
    "Restore",
    "Span",
    "StalePlan",
    "Stamp",
    "StoreError",
    "Summarize",
    "SummaryRequest",
    "Target",
    "Task",
    "Text",
    "TipMoved",
    "ToolCall",
    "ToolResult",
    "UnknownFormat",
    "UnknownHandle",
    "Unpin",
    "Usage",
    "View",
    "Violation",
    "assistant",
    "check",
    "cut_points",
    "filter_tool_results",
    "open_async_conversation",
    "open_conversation",
    "open_store",
    "prune_tool_outputs",
    "recap_batches",
    "recap_settings",
    "system",
    "tool_result",
    "user",
]


_LATER = {
    "AsyncConversation": ".async_conversation",
    "filter_tool_results": ".policies.filter_tool_results",
    "prune_tool_outputs": ".policies.prune_tool_outputs",
    "recap_batches": ".policies.recap_batches",
    "recap_settings": ".policies.recap_settings",
}
"""What is imported only when it is asked for: asyncio alone would double the time, and few need every policy."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_LATER[name], __name__), name)
    return value
