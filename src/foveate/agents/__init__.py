"""Agents in conversations of any length: chat agents, ReAct agents and loop agents.

Names are imported on first use.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from ..core.catalog import Action, Binding, Prompt
    from .agent import AsyncChatAgent, AsyncReActAgent, ChatAgent, ReActAgent
    from .builder import AgentBuilder
    from .events import (
        AgentEvent,
        MessageLifecycleEvent,
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
    from .limits import Limits
    from .loop_agent import AsyncLoopAgent, LoopAgent
    from .plugins import Todo, TodoList, WorkingDirectory
    from .tools import OutcomeUnknown, Tool, ToolFailed, tool

_MODULES = {
    "..core.catalog": ("Action", "Binding", "Prompt"),
    ".agent": ("AsyncChatAgent", "AsyncReActAgent", "ChatAgent", "ReActAgent"),
    ".builder": ("AgentBuilder",),
    ".events": (
        "AgentEvent",
        "MessageLifecycleEvent",
        "ModelReplied",
        "Outcome",
        "ReasoningDelta",
        "RunEnded",
        "SubAgentEvent",
        "TextDelta",
        "ToolAnswered",
        "ToolCalled",
        "ViewChanged",
    ),
    ".limits": ("Limits",),
    ".loop_agent": ("AsyncLoopAgent", "LoopAgent"),
    ".plugins": ("Todo", "TodoList", "WorkingDirectory"),
    ".tools": ("OutcomeUnknown", "Tool", "ToolFailed", "tool"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

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
    "OutcomeUnknown",
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


if not _typing.TYPE_CHECKING:  # A type checker then reports names that do not exist.

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(_import_module(_MODULE_OF[name], __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
