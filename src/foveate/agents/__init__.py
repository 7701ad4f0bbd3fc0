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
    from .events import (
        AgentEvent,
        ModelReplied,
        Outcome,
        ReasoningDelta,
        RunEnded,
        SubAgentEvent,
        TextDelta,
        ToolAnswered,
        ToolCalled,
        ViewChanged,
    )
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
    "AsyncChatAgent",
    "AsyncLoopAgent",
    "AsyncReActAgent",
    "Binding",
    "ChatAgent",
    "Limits",
    "LoopAgent",
    "MessageLifecycleEvent",
    "ModelReplied",
    "Outcome",
    "Prompt",
    "ReActAgent",
    "ReasoningDelta",
    "RunEnded",
    "SubAgentEvent",
    "TextDelta",
    "Todo",
    "TodoList",
    "Tool",
    "ToolAnswered",
    "ToolCalled",
    "ToolFailed",
    "ViewChanged",
    "WorkingDirectory",
    "tool",
]

_LATER = {
    "AgentBuilder": ".builder",
    "Action": "..core.catalog",
    "AgentEvent": ".events",
    "ToolAnswered": ".events",
    "AsyncChatAgent": ".chat",
    "AsyncLoopAgent": ".loop",
    "AsyncReActAgent": ".react",
    "Binding": "..core.catalog",
    "ToolCalled": ".events",
    "ViewChanged": ".events",
    "ChatAgent": ".chat",
    "RunEnded": ".events",
    "SubAgentEvent": ".events",
    "Limits": ".limits",
    "LoopAgent": ".loop",
    "MessageLifecycleEvent": ".lifecycle",
    "Outcome": ".events",
    "Prompt": "..core.catalog",
    "ReActAgent": ".react",
    "ModelReplied": ".events",
    "TextDelta": ".events",
    "ReasoningDelta": ".events",
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
