"""Agents on conversations that never outgrow their window: a chat agent, a ReAct agent, and a loop agent.

What is named here is imported when it is first asked for.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from ..core.catalog import Action, Binding, Prompt
    from .builder import AgentBuilder
    from .chat import AsyncChatAgent, ChatAgent
    from .events import AgentEvent, Answered, Called, Changed, Ended, Inside, Outcome, Replied, Said, Thought
    from .lifecycle import MessageLifecycleEvent
    from .limits import Limits
    from .loop import AsyncLoopAgent, LoopAgent
    from .plugins import Todo, TodoList, WorkingDirectory
    from .react import AsyncReActAgent, ReActAgent
    from .tools import Tool, ToolFailed, tool

__all__ = [
    "Action",
    "AgentBuilder",
    "AgentEvent",
    "Answered",
    "AsyncChatAgent",
    "AsyncLoopAgent",
    "AsyncReActAgent",
    "Binding",
    "Called",
    "Changed",
    "ChatAgent",
    "Ended",
    "Inside",
    "Limits",
    "LoopAgent",
    "MessageLifecycleEvent",
    "Outcome",
    "Prompt",
    "ReActAgent",
    "Replied",
    "Said",
    "Thought",
    "Todo",
    "TodoList",
    "Tool",
    "ToolFailed",
    "WorkingDirectory",
    "tool",
]

_LATER = {
    "AgentBuilder": ".builder",
    "Action": "..core.catalog",
    "AgentEvent": ".events",
    "Answered": ".events",
    "AsyncChatAgent": ".chat",
    "AsyncLoopAgent": ".loop",
    "AsyncReActAgent": ".react",
    "Binding": "..core.catalog",
    "Called": ".events",
    "Changed": ".events",
    "ChatAgent": ".chat",
    "Ended": ".events",
    "Inside": ".events",
    "Limits": ".limits",
    "LoopAgent": ".loop",
    "MessageLifecycleEvent": ".lifecycle",
    "Outcome": ".events",
    "Prompt": "..core.catalog",
    "ReActAgent": ".react",
    "Replied": ".events",
    "Said": ".events",
    "Thought": ".events",
    "Todo": ".plugins",
    "TodoList": ".plugins",
    "Tool": ".tools",
    "WorkingDirectory": ".plugins",
    "ToolFailed": ".tools",
    "tool": ".tools",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_LATER[name], __name__), name)
    return value
