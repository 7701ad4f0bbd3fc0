"""Agents in conversations of any length: chat agents, ReAct agents and loop agents.

Names are imported on first use.
"""

from __future__ import annotations

import typing as _typing

from ..core.lazy_names import lazy_names as _lazy_names

if _typing.TYPE_CHECKING:
    from ..core.catalog import Action, Binding, Prompt, lease_of
    from ..core.runs import AgentRun, AgentRunStep, RunState, StepKind, StepState
    from .agent import AsyncChatAgent, AsyncReActAgent, ChatAgent, ReActAgent
    from .builder import AgentBuilder
    from .config import Resource
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
    from .tool_calls import Approver
    from .tools import OutcomeUnknown, Tool, ToolFailed, ToolObject, ToolSource, tool

__all__ = [
    "Action",
    "AgentBuilder",
    "AgentEvent",
    "AgentRun",
    "AgentRunStep",
    "Approver",
    "AsyncChatAgent",
    "AsyncLoopAgent",
    "AsyncReActAgent",
    "Binding",
    "ChatAgent",
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
    "Resource",
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
    "ToolObject",
    "ToolSource",
    "ViewChanged",
    "WorkingDirectory",
    "lease_of",
    "tool",
]


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {
            "Action": "..core.catalog",
            "AgentBuilder": ".builder",
            "AgentEvent": ".events",
            "AgentRun": "..core.runs",
            "AgentRunStep": "..core.runs",
            "Approver": ".tool_calls",
            "AsyncChatAgent": ".agent",
            "AsyncLoopAgent": ".loop_agent",
            "AsyncReActAgent": ".agent",
            "Binding": "..core.catalog",
            "ChatAgent": ".agent",
            "LifecycleKind": ".events",
            "LifecycleListener": ".events",
            "Limits": ".limits",
            "LoopAgent": ".loop_agent",
            "MessageLifecycleEvent": ".events",
            "ModelReplied": ".events",
            "Outcome": ".events",
            "OutcomeUnknown": ".tools",
            "Prompt": "..core.catalog",
            "ReActAgent": ".agent",
            "ReasoningDelta": ".events",
            "Resource": ".config",
            "RunEnded": ".events",
            "RunState": "..core.runs",
            "RunTotal": ".limits",
            "StepKind": "..core.runs",
            "StepState": "..core.runs",
            "SubAgent": ".sub_agents",
            "SubAgentEvent": ".events",
            "TextDelta": ".events",
            "Todo": ".plugins",
            "TodoList": ".plugins",
            "Tool": ".tools",
            "ToolAnswered": ".events",
            "ToolCalled": ".events",
            "ToolFailed": ".tools",
            "ToolObject": ".tools",
            "ToolSource": ".tools",
            "ViewChanged": ".events",
            "WorkingDirectory": ".plugins",
            "lease_of": "..core.catalog",
            "tool": ".tools",
        },
    )
