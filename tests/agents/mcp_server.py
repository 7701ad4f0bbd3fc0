"""An MCP server of the tests, over standard input and output. Argument: the file that lists what was carried out."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import CallToolResult, ImageContent, TextContent, ToolAnnotations

log = Path(sys.argv[1])
server = MCPServer("demo", log_level="CRITICAL")
logging.disable(logging.CRITICAL)


def note(text: str) -> None:
    with log.open("a") as file:
        file.write(f"{text}\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    note(f"add {a} {b}")
    return a + b


@server.tool()
def pay(amount: int) -> str:
    """Pay, and die before the answer."""
    note(f"pay {amount}")
    os._exit(3)


@server.tool()
def send(to: str) -> str:
    """Send."""
    note(f"send {to}")
    return f"sent {to}"


@server.tool()
def sleep() -> str:
    """Never answer."""
    note("sleep")
    time.sleep(1_000)
    return ""


@server.tool()
def screenshot() -> CallToolResult:
    """Show the page."""
    note("screenshot")
    return CallToolResult(
        content=[TextContent(text="The page:"), ImageContent(data="iVBORw0KGgo=", mime_type="image/png")]
    )


@server.tool(name="Find Town")
def find(name: str) -> CallToolResult:
    """Find a town."""
    return CallToolResult(content=[TextContent(text=f"There is no town {name}.")], is_error=True)


if __name__ == "__main__":
    server.run()
