"""An MCP server that lets any client read what a conversation no longer shows: `build_server(source)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.lazy_names import lazy_names

if TYPE_CHECKING:
    from .server import build_server
    from .session_files import SessionFiles
    from .sources import Source, StoredConversations

__all__ = ["SessionFiles", "Source", "StoredConversations", "build_server"]


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "SessionFiles": ".session_files",
            "Source": ".sources",
            "StoredConversations": ".sources",
            "build_server": ".server",
        },
        extra=("An MCP server", "mcp"),
    )
