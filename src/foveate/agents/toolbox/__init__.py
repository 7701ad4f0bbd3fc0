"""Tools that are ready to use: files, search, a shell, SQLite databases, MCP servers.

- `files`: list, read, write and edit the files of a folder
- `search`: find a pattern in the files of a folder
- `shell`: run commands in a folder; each asks for approval
- `sqlite`: read a database, or change it
- `mcp`: the tools of an MCP server

Each function takes the resource that its tools may use, and returns a tuple of tools:
`ChatAgent(model, tools=[*files("."), *search(".")])`. Results are bounded, and say how to get the rest. A tool that
fails raises `ToolFailed` with a sentence that helps the model. `mcp` returns a context manager instead, which opens the
connection and returns the tools; the server bounds their results.
"""

from __future__ import annotations

from ..tools import ToolFailed
from .database_tools import sqlite
from .file_tools import files
from .mcp_tools import McpServer, mcp
from .search_tools import search
from .shell_tools import shell, stop_commands

__all__ = ["McpServer", "ToolFailed", "files", "mcp", "search", "shell", "sqlite", "stop_commands"]
