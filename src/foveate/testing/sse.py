"""A whole response as the server-sent events in which each provider streams it.

Knows the sequence of events of both APIs, as their references describe it, and nothing of sockets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .pieces import small

__all__ = ["anthropic_events", "error_event", "openai_events"]


def anthropic_events(response: Mapping[str, Any]) -> Iterator[bytes]:
    """The events of a response of the Messages API."""
    usage = response.get("usage") or {}
    begun = {**response, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _event({"type": "message_start", "message": begun})
    for index, block in enumerate(response.get("content", ())):
        empty, grown = _opened(block)
        yield _event({"type": "content_block_start", "index": index, "content_block": empty})
        if not index:
            yield _event({"type": "ping"})
        for delta in grown:
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    ended = {key: response.get(key) for key in ("stop_reason", "stop_sequence")}
    said = {"output_tokens": usage.get("output_tokens", 0)}
    yield _event({"type": "message_delta", "delta": ended, "usage": said})
    yield _event({"type": "message_stop"})


def openai_events(response: Mapping[str, Any], *, usage: bool) -> Iterator[bytes]:
    """The events of a chat completion; with a chunk of its `usage` where that was asked for."""
    head = {key: value for key, value in response.items() if key not in ("choices", "usage", "object")}
    head = {**head, "object": "chat.completion.chunk"}
    for choice in response["choices"]:
        for delta in _deltas(choice["message"]):
            yield _data({**head, "choices": [{"index": choice["index"], "delta": delta, "finish_reason": None}]})
        ended = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
        yield _data({**head, "choices": [ended]})
    if usage:
        yield _data({**head, "choices": [], "usage": response["usage"]})
    yield b"data: [DONE]\n\n"


def error_event(body: Mapping[str, Any]) -> bytes:
    """An error that is told in the middle of a stream, as its provider writes it."""
    return _event(body) if "type" in body else _data(body)


def _opened(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it begins, and what is added to it."""
    match block:
        case {"type": "text", "text": text}:
            return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in small(text)]
        case {"type": "thinking", "thinking": text, "signature": signature}:
            grown: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": piece} for piece in small(text)]
            grown.append({"type": "signature_delta", "signature": signature})
            return {**block, "thinking": "", "signature": ""}, grown
        case {"type": "tool_use", "input": given}:
            written = small(json.dumps(given, ensure_ascii=False)) if given else ()
            pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *written)]
            return {**block, "input": {}}, pieces
    return dict(block), []


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": message["role"], "content": ""}
    for key, value in sorted(message.items(), key=lambda item: not item[0].startswith("reasoning")):
        match key, value:
            case "role" | "tool_calls", _:
                continue
            case "content" | "reasoning_content" | "reasoning" | "refusal", str(text):
                for piece in small(text):
                    yield {key: piece}
            case _ if value not in (None, []):
                yield {key: value}
    for index, call in enumerate(message.get("tool_calls") or ()):
        kind = call["type"]
        field = "arguments" if kind == "function" else "input"
        yield {"tool_calls": [{"index": index, **call, kind: {**call[kind], field: ""}}]}
        for piece in small(call[kind][field]):
            yield {"tool_calls": [{"index": index, kind: {field: piece}}]}


def _event(said: Mapping[str, Any]) -> bytes:
    return f"event: {said['type']}\n".encode() + _data(said)


def _data(said: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(said, ensure_ascii=False).encode() + b"\n\n"
