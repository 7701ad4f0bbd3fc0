"""An MCP server that lets any client read what a conversation no longer shows: `build_server(source)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .server import build_server
    from .session_files import SessionFiles
    from .sources import Source, StoredConversations

__all__ = ["SessionFiles", "Source", "StoredConversations", "build_server"]


if not TYPE_CHECKING:  # A type checker then reports names that do not exist.

    def __getattr__(name: str) -> Any:
        """Import a name on first use, because the server needs the package `mcp`."""
        if name == "build_server":
            from ..errors import MissingExtra

            try:
                from .server import build_server
            except ImportError as error:
                raise MissingExtra("An MCP server", "mcp") from error
            return build_server
        if name == "SessionFiles":
            from .session_files import SessionFiles

            return SessionFiles
        if name in ("Source", "StoredConversations"):
            from . import sources

            return getattr(sources, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
