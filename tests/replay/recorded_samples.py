"""Small recordings, written by hand for these tests, and functions that write them to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def write_lines(path: Path, *lines: Any) -> Path:
    """Write JSON Lines of these values; bytes and text are written unchanged."""
    bodies = [
        line if isinstance(line, bytes) else line.encode() if isinstance(line, str) else json.dumps(line).encode()
        for line in lines
    ]
    path.write_bytes(b"".join(body + b"\n" for body in bodies))
    return path


def write_document(path: Path, value: Any) -> Path:
    """Write one JSON document of several lines."""
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


class Session:
    """Builds a Claude Code session. Each method adds a line whose parent is the line before it, or `after`."""

    def __init__(self, **envelope: Any) -> None:
        self.lines: list[Line] = []
        self.envelope = {"sessionId": "s1", "isSidechain": False, **envelope}
        self.tip: str | None = None

    def add(self, type: str, *, after: str | None = "", **fields: Any) -> str:
        number = len(self.lines) + 1
        line = {
            "parentUuid": self.tip if after == "" else after,
            **self.envelope,
            "type": type,
            "uuid": f"u{number}",
            "timestamp": f"2026-01-02T03:04:{number:02d}.500Z",
            **fields,
        }
        self.lines.append(line)
        if not line["isSidechain"] or self.envelope["isSidechain"]:
            self.tip = line["uuid"]
        return str(line["uuid"])

    def user(self, content: Any, **fields: Any) -> str:
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def reply(self, name: str, *blocks: Line, output: int = 7, **fields: Any) -> str:
        """Add one line of a response: its blocks, under the response's `message.id`."""
        usage = {
            "input_tokens": 3,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "output_tokens": output,
        }
        message = {"role": "assistant", "id": name, "model": "claude-x", "content": list(blocks), "usage": usage}
        return self.add("assistant", message=message, **fields)

    def result(self, call_id: str, content: Any, *, is_error: bool = False, **fields: Any) -> str:
        block: Line = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return self.user([{**block, "is_error": True} if is_error else block], **fields)


def text(words: str) -> Line:
    return {"type": "text", "text": words}


def call(call_id: str, name: str = "Bash", **arguments: Any) -> Line:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


PIXEL = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K"}}


def rollout(*payloads: tuple[str, Line]) -> list[Line]:
    """Return rollout lines, a second apart."""
    return [
        {"timestamp": f"2026-01-02T03:04:{second:02d}.000Z", "type": type, "payload": payload}
        for second, (type, payload) in enumerate(payloads)
    ]


def item(type: str, **fields: Any) -> tuple[str, Line]:
    return "response_item", {"type": type, **fields}


def message(role: str, words: str, **fields: Any) -> tuple[str, Line]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": words}], **fields)


def tokens(total: int, **last: int) -> tuple[str, Line]:
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
    return "event_msg", {"type": "token_count", "info": info}
