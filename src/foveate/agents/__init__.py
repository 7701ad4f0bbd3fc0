"""Agents in conversations of any length: chat agents, ReAct agents and loop agents.

Names are imported on first use.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from ..core.catalog import Action, Binding, Prompt
    from ..core.runs import AgentRun, AgentRunStep, RunState, StepKind, StepState
    from .agent import AsyncChatAgent, AsyncReActAgent, ChatAgent, ReActAgent
    from .builder import AgentBuilder
    from .config import Closable
    from .events import (
        AgentEvent,
        LifecycleKind,
        LifecycleListener,
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
    from .limits import Limits, RunTotal
    from .loop_agent import AsyncLoopAgent, LoopAgent
    from .plugins import Todo, TodoList, WorkingDirectory
    from .sub_agents import SubAgent
    from .tool_calls import Approve
    from .tools import Invokable, OutcomeUnknown, Tool, ToolFailed, ToolSource, tool

_MODULES = {
    "..core.catalog": ("Action", "Binding", "Prompt"),
    "..core.runs": ("AgentRun", "AgentRunStep", "RunState", "StepKind", "StepState"),
    ".agent": ("AsyncChatAgent", "AsyncReActAgent", "ChatAgent", "ReActAgent"),
    ".builder": ("AgentBuilder",),
    ".config": ("Closable",),
    ".events": (
        "AgentEvent",
        "LifecycleKind",
        "LifecycleListener",
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
    ".limits": ("Limits", "RunTotal"),
    ".loop_agent": ("AsyncLoopAgent", "LoopAgent"),
    ".plugins": ("Todo", "TodoList", "WorkingDirectory"),
    ".sub_agents": ("SubAgent",),
    ".tool_calls": ("Approve",),
    ".tools": ("Invokable", "OutcomeUnknown", "Tool", "ToolFailed", "ToolSource", "tool"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Action",
    "AgentBuilder",
    "AgentEvent",
    "AgentRun",
    "AgentRunStep",
    "Approve",
    "AsyncChatAgent",
    "AsyncLoopAgent",
    "AsyncReActAgent",
    "Binding",
    "ChatAgent",
    "Closable",
    "Invokable",
    "LifecycleKind",
    "LifecycleListener",
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
    "RunState",
    "RunTotal",
    "StepKind",
    "StepState",
    "SubAgent",
    "SubAgentEvent",
    "TextDelta",
    "Todo",
    "TodoList",
    "Tool",
    "ToolAnswered",
    "ToolCalled",
    "ToolFailed",
    "ToolSource",
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
