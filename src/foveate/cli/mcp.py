"""`foveate mcp`: an MCP server through which a model reads what its conversation no longer shows."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ..errors import BadSetting, MissingExtra
from .text import complain

__all__ = ["mcp"]

TOKEN = "FOVEATE_MCP_TOKEN"
"""The environment variable with the bearer token of an HTTP server."""


def mcp(
    *names: str,
    store: str | None = None,
    tenant: str | None = None,
    all_: Annotated[bool, Parameter(name="--all")] = False,
    window: int = 200_000,
    claude_code: bool = False,
    codex: bool = False,
    project: Path | None = None,
    http: int | None = None,
    host: str = "127.0.0.1",
) -> int:
    """Serve conversations to an MCP client, whose model can then search and expand what it no longer sees.

    The server speaks over standard input and output, or over HTTP. It reads only the conversations that are named, of
    a store of foveate, or the recorded sessions of Claude Code or Codex.

    Example: `claude mcp add foveate -- foveate mcp --claude-code`, or `foveate mcp fix-login --store chats.db`

    Parameters
    ----------
    names
        Conversations in the store. The first one counts where a call names none.
    store
        The store: a SQLite file or a URL (default: from the settings).
    tenant
        The tenant in the store (default: from the settings, else the empty one).
    all_
        Serve all conversations of the tenant.
    window
        Tokens of the client's window (default: 200000).
    claude_code
        Serve the sessions that Claude Code records of this project.
    codex
        Serve the sessions that Codex records of this project.
    project
        The project's folder, or one session's file (default: the current folder).
    http
        Serve streamable HTTP at this port, at the path /mcp. Clients send the bearer token in FOVEATE_MCP_TOKEN;
        if that is not set, a new token is printed.
    host
        The address to listen at (default: 127.0.0.1).
    """
    from ..mcp import SessionFiles, Source, StoredConversations, build_server

    source: Source
    if claude_code or codex:
        if names or all_ or store is not None or (claude_code and codex):
            raise BadSetting("Choose one of --claude-code, --codex, and conversations of a store.")
        client: Literal["claude-code", "codex"] = "claude-code" if claude_code else "codex"
        source = SessionFiles(client, project)
        if project is not None and not project.exists() and not source.names():
            raise BadSetting(f"There is no folder {project}, and {client} recorded no session in it.")
    else:
        if project is not None:
            raise BadSetting("--project belongs to --claude-code and --codex.")
        from .db.target import Where, check_exists, located

        url, place, owner = located(Where(store, tenant))
        check_exists(place)
        source = StoredConversations(url, names, all_names=all_, tenant=owner, window=window)
    if http is not None:
        _check_address(host, http)
    if http is None:
        signal.signal(signal.SIGINT, _stop)
        build_server(source).run("stdio")
        return 0
    try:
        from ..mcp.server import protected
    except ImportError as error:
        raise MissingExtra("An MCP server", "mcp") from error
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(32)
    if not os.environ.get(TOKEN):
        print(f"{TOKEN} is not set. The token of this run is {token}", file=sys.stderr)
    address = f"http://{host}:{http}"
    print(f"Serving {address}/mcp", file=sys.stderr)
    build_server(source, **protected(token, address)).run("streamable-http", host=host, port=http)
    return 0


def _stop(*_: object) -> None:
    """End the process on Ctrl-C: a thread of the SDK waits for input, and Python would wait for the thread."""
    complain("Stopped.")
    os._exit(130)


def _check_address(host: str, port: int) -> None:
    """Raise BadSetting if no server can listen there."""
    if not 0 < port < 65_536:
        raise BadSetting(f"--http must be a port from 1 to 65535, not {port}.")
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise BadSetting(f"The server cannot listen at {host}:{port}: {reason}. Choose another port.") from error
