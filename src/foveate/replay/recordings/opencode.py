"""Reader for OpenCode: one JSON document with a session's `info` and `messages`, exported or from its data folder.

An assistant message holds its calls together with their results. In older versions it also holds several model calls,
each begun by a `step-start`. Every model call becomes one message, followed by the results of its calls; a call that
never ended has no result. A revert leaves a branch; the summary of a native compaction is marked.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, structs

from ...core.messages import Content, Extra, Media, Message, Part, Reasoning, ResultState, Text, ToolCall, ToolResult
from ...core.stamps import Origin, Stop, Usage
from ...formats.stops import recorded_stop
from .opencode_store import is_stored, stored_document
from .recording import (
    Reader,
    RecordedMessage,
    Recording,
    as_list,
    as_object,
    collect_notes,
    make_usage,
    most_common_model,
    to_json,
    to_milliseconds,
)
from .source import Sample, Source

__all__ = ["READER"]


class _Time(Struct, frozen=True):
    created: Any = None
    start: Any = None
    end: Any = None
    compacted: Any = None


class _State(Struct, frozen=True):
    status: str = "pending"
    input: Any = None
    output: Any = None
    error: Any = None
    attachments: list[dict[str, Any]] = []
    time: _Time = _Time()


class _Part(Struct, frozen=True):
    type: str = ""
    text: str = ""
    ignored: bool | None = False
    synthetic: bool | None = False
    callID: str = ""
    tool: str = ""
    state: _State | None = None
    metadata: Any = None
    mime: str = ""
    url: str = ""
    filename: str | None = ""
    tokens: Any = None
    reason: Any = None


class _Info(Struct, frozen=True):
    role: str = ""
    id: str = ""
    time: _Time = _Time()
    modelID: str = ""
    tokens: Any = None
    summary: Any = None
    error: Any = None


class _Entry(Struct, frozen=True):
    info: _Info
    parts: list[dict[str, Any]] = []

    def content_parts(self, counted: Counter[str]) -> list[_Part]:
        """Return the parts with content, and count the unknown ones."""
        content_parts = [convert(part, _Part) for part in self.parts if part.get("type") in _KINDS]
        counted["other lines"] += sum(part.get("type") not in (*_KINDS, *_SILENT) for part in self.parts)
        return content_parts


_KINDS = ("text", "reasoning", "tool", "file", "step-start", "step-finish")
_SILENT = ("snapshot", "patch")


def _recognises(sample: Sample) -> bool:
    match sample.document:
        case {"info": dict(), "messages": [{"info": {"role": str()}, "parts": list()}, *_]}:
            return True
        case _:
            return is_stored(sample.document)


def _read(source: Source) -> Recording:
    document = source.object()
    if is_stored(document):
        document = stored_document(Path(source.path), document)
    info = as_object(document.get("info"))
    reverted_at = as_object(info.get("revert")).get("messageID")
    counted: Counter[str] = Counter()
    kept: list[RecordedMessage] = []
    rewound: list[RecordedMessage] = []
    models: list[str] = []
    target = kept
    for place, value in enumerate(as_list(document.get("messages")), 1):
        with source.guard(0, f"message {place}"):
            entry = convert(value, _Entry)
            if reverted_at and entry.info.id == reverted_at:
                target = rewound
            models.append(entry.info.modelID)
            target.extend(_assistant(entry, counted) if entry.info.role == "assistant" else _user(entry, counted))
    counted["rewound lines"] += len(rewound)
    branch = (Recording(source.path, READER.name, tuple(rewound), notes=collect_notes(rewound, {})),) if rewound else ()
    return Recording(
        source.path,
        READER.name,
        tuple(kept),
        most_common_model(models),
        name=str(info.get("id") or ""),
        notes=collect_notes(kept, counted),
        branches=branch,
    )


READER = Reader("opencode", _recognises, _read)


def _user(entry: _Entry, counted: Counter[str]) -> list[RecordedMessage]:
    parts: list[Part] = []
    parts_with_content = entry.content_parts(counted)
    for part in parts_with_content:
        if part.type == "text" and not part.ignored:
            parts.append(Text(part.text))
        elif part.type == "file":
            parts.append(_media(part.mime, part.url, part.filename))
    origin: Origin | None = "plugin" if all(part.synthetic for part in parts_with_content) else None
    return [_recorded(entry, Message("user", tuple(parts)), origin=origin)] if parts else []


def _assistant(entry: _Entry, counted: Counter[str]) -> list[RecordedMessage]:
    """Read one message for each model call, each followed by its results."""
    summary = entry.info.summary is True
    counted["native compactions"] += summary
    done: list[RecordedMessage] = []
    parts: list[Part] = []
    results: list[RecordedMessage] = []
    usage: Usage | None = None
    stop: Stop | None = None

    def close() -> None:
        nonlocal usage, stop
        if parts:
            reply = _recorded(entry, Message("assistant", tuple(parts)), usage, "summary" if summary else None)
            done.append(structs.replace(reply, stop=stop))
        done.extend(results)
        parts.clear()
        results.clear()
        usage = stop = None

    for part in entry.content_parts(counted):
        match part.type:
            case "step-start":
                close()
            case "text":
                parts.append(Text(part.text))
            case "reasoning":
                parts.append(_reasoning(part))
            case "tool":
                state = part.state or _State()
                parts.append(ToolCall(part.callID, part.tool, to_json(state.input if state.input is not None else {})))
                results.extend(_result(entry, part, state))
                counted["natively cleared results"] += state.time.compacted is not None
            case "step-finish":
                usage, stop = _usage(part.tokens), recorded_stop(part.reason)
            case _:
                parts.append(_media(part.mime, part.url, part.filename))
    if usage is None and not done:
        usage = _usage(entry.info.tokens)
    close()
    counted["failed replies"] += not done and entry.info.error is not None
    return done


def _usage(tokens: object) -> Usage | None:
    figures = as_object(tokens)
    cache = as_object(figures.get("cache"))
    return make_usage(
        input=figures.get("input"),
        cache_read=cache.get("read"),
        cache_write=cache.get("write"),
        output=figures.get("output"),
        reasoning=figures.get("reasoning"),
    )


def _recorded(
    entry: _Entry, message: Message, usage: Usage | None = None, origin: Origin | None = None
) -> RecordedMessage:
    return RecordedMessage(message, 0, to_milliseconds(entry.info.time.created), usage, entry.info.id, origin)


def _reasoning(part: _Part) -> Reasoning:
    extra = Extra("opencode", to_json({"metadata": part.metadata})) if part.metadata else None
    return Reasoning(part.text, format="opencode", extra=extra)


def _result(entry: _Entry, part: _Part, state: _State) -> list[RecordedMessage]:
    """Return the result of a call; an empty list if the call never ended."""
    result_state: ResultState = "ok"
    match state.status:
        case "completed":
            text = _text(state.output)
        case "error":
            text = _text(state.error)
            result_state = "interrupted" if "abort" in text.lower() else "error"
        case _:
            return []
    nested = [
        _media(str(file.get("mime", "")), str(file.get("url", "")), file.get("filename")) for file in state.attachments
    ]
    content: tuple[Content, ...] = (Text(text), *nested)
    message = Message("tool", (ToolResult(part.callID, content, result_state, part.tool),))
    return [RecordedMessage(message, 0, to_milliseconds(state.time.end), id=entry.info.id)]


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else to_json(value)


def _media(mime: str, url: str, name: str | None) -> Media:
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Media(mime or head[5:-7], "base64", data, name or "")
    return Media(mime, "url", url, name or "")
