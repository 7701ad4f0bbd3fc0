"""foveate: conversations of LLM agents that never outgrow the model's window.

The recent and relevant context stays sharp, the rest shrinks, nothing is lost, and every prompt is legal for its
provider:

    chat = foveate.open_conversation("fix-login", store="sqlite:///chat.db", format="anthropic", window=200_000)
    chat.append({"role": "user", "content": "Why does the login test fail?"})
    reply = client.messages.create(model=MODEL, max_tokens=4096, **chat.prompt(system=RULES, tools=TOOLS))
    chat.record(reply)
"""

from __future__ import annotations

import logging as _logging
import typing as _typing

from . import edits as edits
from . import errors as errors
from .conversation import Conversation
from .conversation.plugins import Plugin, plugin
from .core.call_context import Budget
from .core.conversation_names import child_name
from .core.lazy_names import lazy_names as _lazy_names
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
from .core.view import Entry, View
from .errors import BadInput, ConflictError, DoesNotFit, FoveateError, StoreError
from .open import Options, open_async_conversation, open_conversation, open_model, open_store
from .version import __version__ as __version__

if _typing.TYPE_CHECKING:
    from . import expand as expand
    from . import models as models
    from . import ops as ops
    from . import plugins as plugins
    from . import policies as policies
    from . import rules as rules
    from . import summarizers as summarizers
    from . import types as types
    from .agents.agent import AsyncChatAgent, AsyncReActAgent, ChatAgent, ReActAgent
    from .agents.builder import AgentBuilder
    from .agents.events import Outcome
    from .agents.limits import Limits
    from .agents.loop_agent import AsyncLoopAgent, LoopAgent
    from .agents.tools import Tool, tool
    from .conversation import AsyncConversation
    from .open.pool import Conversations

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
    "Conversations",
    "DoesNotFit",
    "Entry",
    "FoveateError",
    "Limits",
    "LoopAgent",
    "Media",
    "Message",
    "Opaque",
    "Options",
    "Outcome",
    "Plan",
    "Plugin",
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
    "child_name",
    "open_async_conversation",
    "open_conversation",
    "open_model",
    "open_store",
    "plugin",
    "system",
    "tool",
    "tool_result",
    "user",
]

if not _typing.TYPE_CHECKING:  # asyncio alone would double the time of `import foveate`.
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {
            "AgentBuilder": ".agents.builder",
            "AsyncChatAgent": ".agents.agent",
            "AsyncConversation": ".conversation.aio",
            "AsyncLoopAgent": ".agents.loop_agent",
            "AsyncReActAgent": ".agents.agent",
            "ChatAgent": ".agents.agent",
            "Conversations": ".open.pool",
            "Limits": ".agents.limits",
            "LoopAgent": ".agents.loop_agent",
            "Outcome": ".agents.events",
            "ReActAgent": ".agents.agent",
            "Tool": ".agents.tools",
            "expand": ".expand",
            "models": ".models",
            "ops": ".ops",
            "plugins": ".plugins",
            "policies": ".policies",
            "rules": ".rules",
            "summarizers": ".summarizers",
            "tool": ".agents.tools",
            "types": ".types",
        },
    )
