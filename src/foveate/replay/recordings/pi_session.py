"""Reads sessions of the pi coding agent: JSON Lines, first the session, then one entry a line.

Entries of newer versions form a tree by `parentId`, those of older ones a list. Messages are in pi's own shape. What
the person ran with a shell command of their own is told to the model as a user's message, as pi tells it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, structs

from ...core.messages import Content, Media, Message, Part, Reasoning, State, Text, ToolResult
from ...core.stamps import Origin, Usage
from ...formats.stops import stop_named
from .recording import (
    Reader,
    Recorded,
    Recording,
    billed,
    call_of,
    compact,
    fields_of,
    milliseconds,
    notes_about,
    reply_model,
)
from .source import Sample, Source
from .tree import Node, unravel

__all__ = ["READER"]


class _Said(Struct, frozen=True, rename="camel"):
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
    said: _Said | None = None


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
        line = source.shaped(number, value, _Line)
        if line is not None and line.type == "message":
            said = source.shaped(number, line.message, _Said)
            line = structs.replace(line, said=said) if said else None
        if line is None:
            continue
        if line.type == "session":
            name = name or line.id
            counted["other lines"] += 1
            continue
        before = nodes[-1].key if nodes else ""
        # A list has no ids: each entry follows the one before it. So does an entry whose parent was damaged.
        known = line.parent_id if line.parent_id in keys else before
        parent = "" if line.id and line.parent_id is None else known
        says = line.said is not None or line.type in (*_SUMMARIES, "custom_message")
        keys.add(line.id)
        nodes.append(Node(number, line.id or f"line {number}", parent or "", line, says))
    threads = unravel(nodes) or [[]]
    counted["rewound lines"] += sum(len(thread) for thread in threads[1:])
    branches = tuple(_thread(source, name, thread, Counter()) for thread in threads[1:])
    return structs.replace(_thread(source, name, threads[0], counted), branches=branches)


def _thread(source: Source, name: str, nodes: list[Node], counted: Counter[str]) -> Recording:
    messages: list[Recorded] = []
    models: list[str] = []
    for node in nodes:
        line: _Line = node.line
        counted["native compactions"] += line.type == "compaction"
        with source.guard(node.number):
            message = _message(line)
            if message is None:
                failed = line.said is not None and line.said.role == "assistant"
                counted["failed replies" if failed else "other lines"] += 1
                continue
            if line.said is not None and message.role == "assistant":
                models.append(line.said.model)
            usage = _usage(line.said.usage) if line.said else None
            origin: Origin | None = (
                "summary" if line.type in _SUMMARIES else "plugin" if line.type == "custom_message" else None
            )
            stop = stop_named(line.said.stop_reason) if line.said and message.role == "assistant" else None
            time = milliseconds(line.timestamp)
            messages.append(Recorded(message, node.number, time, usage, line.id, origin, stop))
    return Recording(
        source.path, READER.name, tuple(messages), reply_model(models), (), name, notes_about(messages, counted)
    )


READER = Reader("pi", _recognises, _read)


def _message(line: _Line) -> Message | None:
    """The message that an entry says; None if it says nothing to the model."""
    said = line.said
    if said is None:
        text = line.summary if line.type in _SUMMARIES else line.content if line.type == "custom_message" else None
        parts = tuple(_parts(text))
        return Message("user", parts) if parts else None
    match said.role:
        case "user" | "custom":
            return Message("user", tuple(_parts(said.content)))
        case "assistant":
            parts = tuple(_parts(said.content))
            return Message("assistant", parts) if parts else None
        case "toolResult":
            content: tuple[Content, ...] = tuple(part for part in _parts(said.content) if isinstance(part, Content))
            state: State = "error" if said.is_error else "ok"
            if (
                said.is_error
                and content
                and isinstance(content[-1], Text)
                and "aborted" in content[-1].text[-80:].lower()
            ):
                state = "interrupted"
            return Message("tool", (ToolResult(said.tool_call_id, content, state, said.tool_name),))
        case "bashExecution":
            return Message("user", (Text(f"Ran `{said.command}`\n```\n{said.output}\n```"),))
        case "compactionSummary" | "branchSummary":
            return Message("user", (Text(said.summary),))
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
                yield call_of(call_id, name, rest.get("arguments", {}))
            case {"type": "image", "data": str(data), **rest}:
                yield Media(str(rest.get("mimeType", "")), "base64", data)
            case _:
                yield Text(compact(block))


def _usage(usage: object) -> Usage | None:
    """None where the call failed before anything was billed."""
    figures = fields_of(usage)
    names = ("input", "cacheRead", "cacheWrite", "output")
    if not any(figures.get(name) for name in names):
        return None
    fresh, read, written, output = (figures.get(name) for name in names)
    return billed(input=fresh, cache_read=read, cache_write=written, output=output)
