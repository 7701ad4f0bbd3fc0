"""foveate: conversations of LLM agents that never outgrow the model's window.

What matters stays sharp, the rest shrinks, nothing is lost, and every prompt is legal for its provider::

    chat = foveate.open_conversation("fix-login", store="sqlite:///chat.db", format="anthropic", window=200_000)
    chat.append({"role": "user", "content": "Why does the login test fail?"})
    reply = client.messages.create(model=MODEL, max_tokens=4096, **chat.prompt(system=RULES, tools=TOOLS))
    chat.record(reply)
"""

from __future__ import annotations

import logging as _logging
import typing as _typing
from importlib import import_module as _import_module

from .conversation import Conversation
from .core.edits import Edit, Hide, Pin, Replace, Restore, Span, Summarize, Target, Task, Unpin
from .core.enrich import AdditionalContent, EnrichedMessage, display_parts, enrich, persistent_parts
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
from .core.stamps import Lease, PartRetention, Stamp, Usage
from .core.summaries import Answer, NeedsSummary, Summary, SummaryRequest
from .core.totals import Totals
from .core.view import Budget, CallContext, Entry, Prices, View
from .errors import (
    BadEdit,
    BadInput,
    BadMessage,
    BadSetting,
    BadTranscript,
    BrokenStream,
    CompactionFailed,
    ConflictError,
    ConversationBusy,
    Damaged,
    DoesNotFit,
    FoveateError,
    IllegalView,
    MissingExtra,
    NoSuchConversation,
    NoSummary,
    NotExpandable,
    Refused,
    StoreError,
    StoreRolledBack,
    UnknownFormat,
    UnknownHandle,
)
from .plugins import Plugin, plugin
from .shell import Fix, HistoryEntry, RepairReport
from .wiring import open_async_conversation, open_conversation, open_model, open_store

if _typing.TYPE_CHECKING:
    from .agents.builder import AgentBuilder
    from .agents.chat import AsyncChatAgent, ChatAgent
    from .agents.events import Outcome
    from .agents.lifecycle import MessageLifecycleEvent
    from .agents.limits import Limits
    from .agents.loop import AsyncLoopAgent, LoopAgent
    from .agents.react import AsyncReActAgent, ReActAgent
    from .agents.tools import Tool, tool
    from .aging import age_conversation, age_database, age_tenant
    from .archive import backup, export_archive, import_archive, verify_head
    from .async_conversation import AsyncConversation
    from .core.context import Context
    from .core.economy import when_it_pays
    from .core.retention import Age
    from .engine.aging import Aged
    from .expansion import EXPAND_INSTRUCTION, Excerpt, Hit, expand_tool
    from .policies.checkpoint import checkpoint, checkpoint_edit
    from .policies.compact_on_overflow import compact_on_overflow
    from .policies.dedupe import dedupe
    from .policies.expire_results import expire_results
    from .policies.filter_tool_results import filter_tool_results
    from .policies.fold import fold
    from .policies.leases import effective_lease, most_aggressive
    from .policies.pins import pin_newest
    from .policies.prune_tool_outputs import prune_tool_outputs
    from .policies.recap_batches import recap_batches
    from .policies.recap_settings import recap_settings
    from .policies.retain_blocks import PluginRetention, retain_blocks
    from .policies.shrink_to_digest import shrink_to_digest
    from .policies.supersede import supersede

__version__ = "0.1.0.dev0"

# What is logged goes nowhere until a program says where.
_logging.getLogger("foveate").addHandler(_logging.NullHandler())

__all__ = [
    "EXPAND_INSTRUCTION",
    "AdditionalContent",
    "Age",
    "Aged",
    "AgentBuilder",
    "Answer",
    "AsyncChatAgent",
    "AsyncConversation",
    "AsyncLoopAgent",
    "AsyncReActAgent",
    "BadEdit",
    "BadInput",
    "BadMessage",
    "BadSetting",
    "BadTranscript",
    "BrokenStream",
    "Budget",
    "CallContext",
    "ChatAgent",
    "CompactionFailed",
    "ConflictError",
    "Context",
    "Conversation",
    "ConversationBusy",
    "Damaged",
    "DoesNotFit",
    "Edit",
    "EnrichedMessage",
    "Entry",
    "Event",
    "Excerpt",
    "Extra",
    "Fix",
    "FoveateError",
    "Hide",
    "HistoryEntry",
    "Hit",
    "IllegalView",
    "Lease",
    "Limits",
    "LoopAgent",
    "Media",
    "Message",
    "MessageLifecycleEvent",
    "MissingExtra",
    "NeedsSummary",
    "NoSuchConversation",
    "NoSummary",
    "NotExpandable",
    "Opaque",
    "Outcome",
    "Part",
    "PartRetention",
    "Pin",
    "Plan",
    "Plugin",
    "PluginRetention",
    "Policy",
    "Prices",
    "Profile",
    "ReActAgent",
    "Reasoning",
    "Receipt",
    "Refused",
    "RepairReport",
    "Replace",
    "Restore",
    "Span",
    "Stamp",
    "StoreError",
    "StoreRolledBack",
    "Summarize",
    "Summary",
    "SummaryRequest",
    "Target",
    "Task",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Totals",
    "UnknownFormat",
    "UnknownHandle",
    "Unpin",
    "Usage",
    "View",
    "Violation",
    "age_conversation",
    "age_database",
    "age_tenant",
    "assistant",
    "backup",
    "check",
    "checkpoint",
    "checkpoint_edit",
    "compact_on_overflow",
    "cut_points",
    "dedupe",
    "display_parts",
    "effective_lease",
    "enrich",
    "expand_tool",
    "expire_results",
    "export_archive",
    "filter_tool_results",
    "fold",
    "import_archive",
    "most_aggressive",
    "open_async_conversation",
    "open_conversation",
    "open_model",
    "open_store",
    "persistent_parts",
    "pin_newest",
    "plugin",
    "prune_tool_outputs",
    "recap_batches",
    "recap_settings",
    "retain_blocks",
    "shrink_to_digest",
    "supersede",
    "system",
    "tool",
    "tool_result",
    "user",
    "verify_head",
    "when_it_pays",
]


_LATER = {
    "Age": ".core.retention",
    "Aged": ".engine.aging",
    "AgentBuilder": ".agents.builder",
    "AsyncChatAgent": ".agents.chat",
    "AsyncConversation": ".async_conversation",
    "AsyncLoopAgent": ".agents.loop",
    "AsyncReActAgent": ".agents.react",
    "ChatAgent": ".agents.chat",
    "Context": ".core.context",
    "EXPAND_INSTRUCTION": ".expansion",
    "Excerpt": ".expansion",
    "Hit": ".expansion",
    "PluginRetention": ".policies.retain_blocks",
    "Limits": ".agents.limits",
    "LoopAgent": ".agents.loop",
    "MessageLifecycleEvent": ".agents.lifecycle",
    "Outcome": ".agents.events",
    "ReActAgent": ".agents.react",
    "Tool": ".agents.tools",
    "age_conversation": ".aging",
    "age_database": ".aging",
    "age_tenant": ".aging",
    "backup": ".archive",
    "checkpoint": ".policies.checkpoint",
    "checkpoint_edit": ".policies.checkpoint",
    "compact_on_overflow": ".policies.compact_on_overflow",
    "dedupe": ".policies.dedupe",
    "effective_lease": ".policies.leases",
    "expand_tool": ".expansion",
    "expire_results": ".policies.expire_results",
    "export_archive": ".archive",
    "filter_tool_results": ".policies.filter_tool_results",
    "fold": ".policies.fold",
    "import_archive": ".archive",
    "most_aggressive": ".policies.leases",
    "pin_newest": ".policies.pins",
    "prune_tool_outputs": ".policies.prune_tool_outputs",
    "recap_batches": ".policies.recap_batches",
    "recap_settings": ".policies.recap_settings",
    "retain_blocks": ".policies.retain_blocks",
    "shrink_to_digest": ".policies.shrink_to_digest",
    "supersede": ".policies.supersede",
    "tool": ".agents.tools",
    "verify_head": ".archive",
    "when_it_pays": ".core.economy",
}
"""What is imported only when it is asked for: asyncio alone would double the time, and few need every policy."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_LATER[name], __name__), name)
    return value
