"""Requests that real clients sent to Anthropic: they are legal, and come back with the same meaning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foveate import open_conversation
from foveate.formats import get_format
from foveate.testing.bodies import check_body

Body = dict[str, Any]

CLIENTS = ["claude", "agent", "sdk", "mcpcc", "oc"]


@pytest.fixture(scope="module")
def wire(transcripts: Path) -> Path:
    folder = transcripts.parent / "wire"
    if not folder.is_dir():
        pytest.skip(f"no recorded requests: {folder} is missing")
    return folder


def requests(wire: Path, client: str) -> Iterator[Body]:
    for line in (wire / f"{client}.jsonl").read_text().splitlines():
        record = json.loads(line)
        if "/v1/messages" in record["path"] and isinstance(record["body"], dict):
            yield record["body"]


def meaning(message: Body) -> Body:
    """Return a message without cache marks, and with texts in the form of blocks."""
    role = {key: value for key, value in message.items() if key not in ("content", "type")}
    return {**role, "content": [plain(block) for block in blocks(message["content"])]}


def blocks(content: object) -> list[Body]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)  # type: ignore[call-overload]


def plain(block: Body) -> Body:
    block = {key: value for key, value in block.items() if key != "cache_control" and value is not None}
    if block["type"] == "tool_result":
        inner = [plain(part) for part in blocks(block.pop("content", []))]
        return {**block, "content": inner, "is_error": block.get("is_error", False)}
    return block


@pytest.mark.parametrize("client", CLIENTS)
def test_recorded_request_is_legal_and_comes_back(wire, client):
    for body in requests(wire, client):
        assert check_body("anthropic", body) == []
        format = get_format("anthropic")
        messages = [message for each in body["messages"] for message in format.parse(each)]
        assert [meaning(each) for each in format.render(messages)] == [meaning(each) for each in body["messages"]]


@pytest.mark.parametrize("client", CLIENTS)
def test_recorded_request_passes_through_a_conversation_unchanged(wire, client):
    """System messages in the middle keep their role, place and settings."""
    seen = 0
    for body in requests(wire, client):
        with open_conversation("c", store="memory:", model=body["model"], policy="none", expand=False) as chat:
            tools = body.get("tools", [])
            sent = chat.prompt(messages=body["messages"], system=body.get("system"), tools=tools)
            assert [meaning(each) for each in sent["messages"]] == [meaning(each) for each in body["messages"]]
            assert check_body("anthropic", {"model": body["model"], **sent}) == []
            assert not any(entry.legalized for entry in chat.view)
            seen += 1
    assert seen


def test_recorded_session_of_claude_code_comes_back(transcripts):
    seen = 0
    for path in sorted(transcripts.glob("raw/claude_code/**/*.jsonl")):
        for line in path.read_text().splitlines():
            message = json.loads(line).get("message")
            if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
                continue
            format = get_format("anthropic")
            wires = format.render(format.parse(message))
            kept = {"role": message["role"], "content": [block for wire in wires for block in wire["content"]]}
            assert meaning(kept) == meaning({"role": message["role"], "content": message["content"]})
            seen += 1
    assert seen > 100
