"""Reader for sessions of the pi coding agent: JSON Lines, one entry a line.

Entries of newer versions form a tree by `parentId`, those of older versions a list. Messages are in pi's own shape. A
shell command that the person ran appears as a user message, as pi shows it to the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, structs

from ...core.messages import Content, Media, Message, Part, Reasoning, ResultState, Text, ToolResult
from ...core.stamps import Origin, Usage
from ...formats.stops import recorded_stop
from .recording import (
    Reader,
    RecordedMessage,
    Recording,
    as_object,
    collect_notes,
    make_call,
    make_usage,
    most_common_model,
    to_json,
    to_milliseconds,
)
from .source import Sample, Source
from .tree import Node, unravel

__all__ = ["READER"]


class _Body(Struct, frozen=True, rename="camel"):
    role: str
    content: Any = None
    model: str = ""
    usage: Any = None
    stop_reason: Any = None
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    command: str = ""
    output: str = ""
    summary: str = ""


class _Line(Struct, frozen=True, rename="camel"):
    type: str = ""
    id: str = ""
    parent_id: str | None = None
    timestamp: Any = None
    message: Any = None
    summary: Any = None
    content: Any = None
    body: _Body | None = None


_SUMMARIES = ("compaction", "branch_summary")


def _recognises(sample: Sample) -> bool:
    first = sample.lines[0] if sample.lines else None
    session = isinstance(first, dict) and first.get("type") == "session" and "cwd" in first
    return session or any(
        isinstance(value, dict)
        and value.get("type") == "message"
        and isinstance(value.get("message"), dict)
        and "role" in value["message"]
        for value in sample.lines
    )


def _read(source: Source) -> Recording:
    name = ""
    counted: Counter[str] = Counter()
    nodes: list[Node] = []
    keys: set[str] = set()
    for number, value in source.lines():
        line = source.convert(number, value, _Line)
        if line is not None and line.type == "message":
            body = source.convert(number, line.message, _Body)
            line = structs.replace(line, body=body) if body else None
        if line is None:
            continue
        if line.type == "session":
            name = name or line.id
            counted["other lines"] += 1
            continue
        before = nodes[-1].key if nodes else ""
        # A list has no ids: each entry follows the entry before it. So does an entry with a damaged parent.
        known = line.parent_id if line.parent_id in keys else before
        parent = "" if line.id and line.parent_id is None else known
        has_message = line.body is not None or line.type in (*_SUMMARIES, "custom_message")
        keys.add(line.id)
        nodes.append(Node(number, line.id or f"line {number}", parent or "", line, has_message))
    threads = unravel(nodes) or [[]]
    counted["rewound lines"] += sum(len(thread) for thread in threads[1:])
    branches = tuple(_thread(source, name, thread, Counter()) for thread in threads[1:])
    return structs.replace(_thread(source, name, threads[0], counted), branches=branches)


def _thread(source: Source, name: str, nodes: list[Node], counted: Counter[str]) -> Recording:
    messages: list[RecordedMessage] = []
    models: list[str] = []
    for node in nodes:
        line: _Line = node.line
        counted["native compactions"] += line.type == "compaction"
        with source.guard(node.number):
            message = _message(line)
            if message is None:
                failed = line.body is not None and line.body.role == "assistant"
                counted["failed replies" if failed else "other lines"] += 1
                continue
            if line.body is not None and message.role == "assistant":
                models.append(line.body.model)
            usage = _usage(line.body.usage) if line.body else None
            origin: Origin | None = (
                "summary" if line.type in _SUMMARIES else "plugin" if line.type == "custom_message" else None
            )
            stop = recorded_stop(line.body.stop_reason) if line.body and message.role == "assistant" else None
            time = to_milliseconds(line.timestamp)
            messages.append(RecordedMessage(message, node.number, time, usage, line.id, origin, stop))
    return Recording(
        source.path, READER.name, tuple(messages), most_common_model(models), (), name, collect_notes(messages, counted)
    )


READER = Reader("pi", _recognises, _read)


def _message(line: _Line) -> Message | None:
    """Return the message of an entry, or None if it has none for the model."""
    body = line.body
    if body is None:
        text = line.summary if line.type in _SUMMARIES else line.content if line.type == "custom_message" else None
        parts = tuple(_parts(text))
        return Message("user", parts) if parts else None
    match body.role:
        case "user" | "custom":
            return Message("user", tuple(_parts(body.content)))
        case "assistant":
            parts = tuple(_parts(body.content))
            return Message("assistant", parts) if parts else None
        case "toolResult":
            content: tuple[Content, ...] = tuple(part for part in _parts(body.content) if isinstance(part, Content))
            state: ResultState = "error" if body.is_error else "ok"
            if (
                body.is_error
                and content
                and isinstance(content[-1], Text)
                and "aborted" in content[-1].text[-80:].lower()
            ):
                state = "interrupted"
            return Message("tool", (ToolResult(body.tool_call_id, content, state, body.tool_name),))
        case "bashExecution":
            return Message("user", (Text(f"Ran `{body.command}`\n```\n{body.output}\n```"),))
        case "compactionSummary" | "branchSummary":
            return Message("user", (Text(body.summary),))
        case _:
            return None


def _parts(content: Any) -> Iterator[Part]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks if isinstance(blocks, list) else []:
        match block:
            case {"type": "text", "text": str(text)}:
                yield Text(text)
            case {"type": "thinking", "thinking": str(text), **rest}:
                yield Reasoning(text, str(rest.get("thinkingSignature") or ""), format="pi")
            case {"type": "toolCall", "id": str(call_id), "name": str(name), **rest}:
                yield make_call(call_id, name, rest.get("arguments", {}))
            case {"type": "image", "data": str(data), **rest}:
                yield Media(str(rest.get("mimeType", "")), "base64", data)
            case _:
                yield Text(to_json(block))


def _usage(usage: object) -> Usage | None:
    """Return the usage; None if the call failed before the provider billed anything."""
    figures = as_object(usage)
    names = ("input", "cacheRead", "cacheWrite", "output")
    if not any(figures.get(name) for name in names):
        return None
    uncached, cached, written, output = (figures.get(name) for name in names)
    return make_usage(input=uncached, cache_read=cached, cache_write=written, output=output)
