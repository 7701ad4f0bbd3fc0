"""Agents on conversations that never outgrow their window: a chat agent, a ReAct agent, and a loop agent.

What is named here is imported when it is first asked for.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from .chat import AsyncChatAgent, ChatAgent
    from .events import AgentEvent, Answered, Called, Changed, Ended, Outcome, Replied, Said, Thought
    from .lifecycle import MessageLifecycleEvent
    from .limits import Limits
    from .loop import AsyncLoopAgent, LoopAgent
    from .react import AsyncReActAgent, ReActAgent
    from .tools import Tool, ToolFailed, tool

__all__ = [
    "AgentEvent",
    "Answered",
    "AsyncChatAgent",
    "AsyncLoopAgent",
    "AsyncReActAgent",
    "Called",
    "Changed",
    "ChatAgent",
    "Ended",
    "Limits",
    "LoopAgent",
    "MessageLifecycleEvent",
    "Outcome",
    "ReActAgent",
    "Replied",
    "Said",
    "Thought",
    "Tool",
    "ToolFailed",
    "tool",
]

_LATER = {
    "AgentEvent": ".events",
    "Answered": ".events",
    "AsyncChatAgent": ".chat",
    "AsyncLoopAgent": ".loop",
    "AsyncReActAgent": ".react",
    "Called": ".events",
    "Changed": ".events",
    "ChatAgent": ".chat",
    "Ended": ".events",
    "Limits": ".limits",
    "LoopAgent": ".loop",
    "MessageLifecycleEvent": ".lifecycle",
    "Outcome": ".events",
    "ReActAgent": ".react",
    "Replied": ".events",
    "Said": ".events",
    "Thought": ".events",
    "Tool": ".tools",
    "ToolFailed": ".tools",
    "tool": ".tools",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_LATER[name], __name__), name)
    return value
