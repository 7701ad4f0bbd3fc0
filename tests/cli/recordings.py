"""Small recordings for tests of the command line."""

from __future__ import annotations

import json
from pathlib import Path


def call(call_id: str, name: str, arguments: object) -> dict:
    """Return an assistant message with one call."""
    function = {"name": name, "arguments": json.dumps(arguments) if not isinstance(arguments, str) else arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def write(path: Path, messages: list[dict]) -> Path:
    path.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    return path
