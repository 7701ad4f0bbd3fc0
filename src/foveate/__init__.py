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

from . import edits as edits
from . import errors as errors
from .conversation import Conversation
from .core.messages import (
    Media,
    Message,
    Opaque,
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
from .core.receipts import Receipt
from .core.stamps import Usage
from .core.view import Budget, Entry, View
from .errors import BadInput, ConflictError, DoesNotFit, FoveateError, StoreError
from .plugins import Plugin, plugin
from .wiring import open_async_conversation, open_conversation, open_model, open_store

if _typing.TYPE_CHECKING:
    from . import aging as aging
    from . import archive as archive
    from . import expansion as expansion
    from . import policies as policies
    from . import rules as rules
    from . import summarizers as summarizers
    from . import types as types
    from .agents.builder import AgentBuilder
    from .agents.chat import AsyncChatAgent, ChatAgent
    from .agents.events import Outcome
    from .agents.limits import Limits
    from .agents.loop import AsyncLoopAgent, LoopAgent
    from .agents.react import AsyncReActAgent, ReActAgent
    from .agents.tools import Tool, tool
    from .async_conversation import AsyncConversation
    from .core.economy import when_it_pays
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

# Log records go nowhere until the program configures logging.
_logging.getLogger("foveate").addHandler(_logging.NullHandler())

__all__ = [
    "AgentBuilder",
    "AsyncChatAgent",
    "AsyncConversation",
    "AsyncLoopAgent",
    "AsyncReActAgent",
    "BadInput",
    "Budget",
    "ChatAgent",
    "ConflictError",
    "Conversation",
    "DoesNotFit",
    "Entry",
    "FoveateError",
    "Limits",
    "LoopAgent",
    "Media",
    "Message",
    "Opaque",
    "Outcome",
    "Plan",
    "Plugin",
    "PluginRetention",
    "Policy",
    "ReActAgent",
    "Reasoning",
    "Receipt",
    "StoreError",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Usage",
    "View",
    "assistant",
    "checkpoint",
    "checkpoint_edit",
    "compact_on_overflow",
    "dedupe",
    "effective_lease",
    "expire_results",
    "filter_tool_results",
    "fold",
    "most_aggressive",
    "open_async_conversation",
    "open_conversation",
    "open_model",
    "open_store",
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
    "when_it_pays",
]

_LAZY = {
    "AgentBuilder": ".agents.builder",
    "AsyncChatAgent": ".agents.chat",
    "AsyncConversation": ".async_conversation",
    "AsyncLoopAgent": ".agents.loop",
    "AsyncReActAgent": ".agents.react",
    "ChatAgent": ".agents.chat",
    "Limits": ".agents.limits",
    "LoopAgent": ".agents.loop",
    "Outcome": ".agents.events",
    "PluginRetention": ".policies.retain_blocks",
    "ReActAgent": ".agents.react",
    "Tool": ".agents.tools",
    "checkpoint": ".policies.checkpoint",
    "checkpoint_edit": ".policies.checkpoint",
    "compact_on_overflow": ".policies.compact_on_overflow",
    "dedupe": ".policies.dedupe",
    "effective_lease": ".policies.leases",
    "expire_results": ".policies.expire_results",
    "filter_tool_results": ".policies.filter_tool_results",
    "fold": ".policies.fold",
    "most_aggressive": ".policies.leases",
    "pin_newest": ".policies.pins",
    "prune_tool_outputs": ".policies.prune_tool_outputs",
    "recap_batches": ".policies.recap_batches",
    "recap_settings": ".policies.recap_settings",
    "retain_blocks": ".policies.retain_blocks",
    "shrink_to_digest": ".policies.shrink_to_digest",
    "supersede": ".policies.supersede",
    "tool": ".agents.tools",
    "when_it_pays": ".core.economy",
}
"""Names and their modules, imported at the first use: asyncio alone would double the time of `import foveate`."""

_LAZY_MODULES = ("aging", "archive", "expansion", "policies", "rules", "summarizers", "types")
"""Public modules that are imported at the first use."""


def __getattr__(name: str) -> object:
    if name in _LAZY_MODULES:
        return _import_module(f".{name}", __name__)
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_LAZY[name], __name__), name)
    return value
