"""Which conversation an agent of Google ADK belongs to."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from .host import Path

__all__ = ["enter_tool", "path_of"]


class _Caller(NamedTuple):
    """The agent that runs another one as its tool."""

    session_id: str
    path: Path


_CALLER: Final[ContextVar[_Caller | None]] = ContextVar("foveate_adk_caller", default=None)
"""ADK gives each tool a context."""


def enter_tool(context: Any) -> None:
    """Let the agent that the tool of this context runs know whose child it is."""
    _CALLER.set(_Caller(context.session.id, path_of(context)))


def path_of(context: Any) -> Path:
    """Return the name of an agent's conversation: `app/user/session`, and for further agents `app/user/session/agent`.

    Ids of sessions are unique for one user of one app only.
    """
    run, session, caller = context.get_invocation_context(), context.session, _CALLER.get()
    agent, branch, node = run.agent, run.branch or "", run.node_path or ""
    path: Path = (session.app_name, session.user_id, session.id)
    if caller is not None and caller.session_id != session.id:  # An agent as a tool has a session for each call.
        path = (*caller.path, f"{agent.root_agent.name}:{session.id}")
    # An agent without the contents of the session starts with an empty list in each run.
    if getattr(agent, "include_contents", "") == "none" or getattr(agent, "mode", "") == "single_turn":
        return (*path, f"{agent.name}:{run.invocation_id}:{branch}:{node}".rstrip(":"))
    if branch or "/" in node or agent.name != agent.root_agent.name:
        path = (*path, f"{agent.name}:{branch}".rstrip(":"))
    return (*path, run.isolation_scope) if run.isolation_scope else path
