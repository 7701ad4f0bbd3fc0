"""The MCP server of `mcp_server.py` without a package, whose import takes a second. It has the same tools.

Argument: the file that lists what was carried out. Each call runs in its own thread, because some never end.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

log = Path(sys.argv[1])
SERVER = {"name": "demo", "version": ""}
VERSION = "2026-07-28"
UNCACHED = {"cacheScope": "private", "ttlMs": 0}
IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}

Result = dict[str, Any]


def tool(name: str, description: str, /, **types: str) -> dict[str, Any]:
    """Return the definition of a tool whose parameters have these types, and are all required."""
    properties = {parameter: {"type": type} for parameter, type in types.items()}
    schema = {"type": "object", "properties": properties, "required": list(types)}
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [
    {**tool("add", "Add two numbers.", a="integer", b="integer"), "annotations": {"readOnlyHint": True}},
    tool("pay", "Pay, and die before the answer.", amount="integer"),
    tool("send", "Send.", to="string"),
    tool("sleep", "Never answer."),
    tool("screenshot", "Show the page."),
    tool("Find Town", "Find a town.", name="string"),
]


def texts(*parts: str | dict[str, str], is_error: bool = False) -> Result:
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"content": content, "isError": is_error, "resultType": "complete"}


def called(name: str, arguments: dict[str, Any]) -> Result:
    """Carry out a call, and return its result."""
    if name != "Find Town":
        with log.open("a") as file:
            file.write(" ".join(map(str, (name, *arguments.values()))) + "\n")
    match name:
        case "add":
            return texts(str(arguments["a"] + arguments["b"]))
        case "pay":
            os._exit(3)
        case "send":
            return texts(f"sent {arguments['to']}")
        case "sleep":
            time.sleep(1_000)
        case "screenshot":
            return texts("The page:", IMAGE)
        case "Find Town":
            return texts(f"There is no town {arguments['name']}.", is_error=True)
    return texts("There is no such tool.", is_error=True)


def answer(request: dict[str, Any]) -> None:
    """Write the answer to a request."""
    match request["method"]:
        case "server/discover":
            result = {"capabilities": {"tools": {}}, "supportedVersions": [VERSION], **UNCACHED}
        case "tools/list":
            result = {"tools": TOOLS, **UNCACHED}
        case "tools/call":
            result = called(request["params"]["name"], request["params"].get("arguments") or {})
        case _:
            write({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
            return
    meta = {"io.modelcontextprotocol/serverInfo": SERVER}
    write({"id": request["id"], "result": {"resultType": "complete", "_meta": meta, **result}})


def write(message: dict[str, Any]) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


lock = threading.Lock()

if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            threading.Thread(target=answer, args=(message,), daemon=True).start()
