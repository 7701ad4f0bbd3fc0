"""Which conversation a model call of Microsoft Agent Framework belongs to."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final, NamedTuple

from agent_framework import ChatContext, FunctionInvocationContext, FunctionMiddleware

from .host import Path

__all__ = ["SubAgents", "path_of"]

_RUN: Final = "foveate_conversation"
"""The property of a run's first message that holds the name of its conversation. It is not sent."""


class _Caller(NamedTuple):
    """The tool call that is running."""

    path: Path
    session_id: str
    key: str


_CALLER: Final[ContextVar[_Caller | None]] = ContextVar("foveate_caller", default=None)


class SubAgents(FunctionMiddleware):
    """Tells the agents that a tool runs which conversation they belong to."""

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        if context.session is None:
            return await call_next()
        session_id = context.session.session_id
        key = f"{context.function.name}:{context.metadata.get('call_id', '')}"
        token = _CALLER.set(_Caller(_path(session_id), session_id, key))
        try:
            await call_next()
        finally:
            _CALLER.reset(token)


def path_of(context: ChatContext) -> Path:
    """Return the name of the call's conversation: that of the session, or one that stays the same in the run."""
    if context.session is not None:
        return _path(context.session.session_id)
    own = f"run-{uuid.uuid4().hex}"
    if context.messages:  # The framework copies the messages for each run.
        own = str(context.messages[0].additional_properties.setdefault(_RUN, own))
    return _path(own)


def _path(session_id: str) -> Path:
    """Return the name of a session's conversation, which is a child of the one whose tool call is running."""
    caller = _CALLER.get()
    if caller is None:
        return (session_id,)
    return (*caller.path, caller.key if session_id == caller.session_id else session_id)
