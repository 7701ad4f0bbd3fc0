"""Reader for exports of ChatGPT: `conversations.json`, or one conversation of it.

Each conversation is a tree of nodes in `mapping`; the path from `current_node` to the root is what the person saw
last, all else are branches. A message to a tool is a call, which the tool's message answers. Replies in a row are one
message. The export has no ids of calls, no token counts and no files. Sources: docs/chatgpt-data-export-format.md of
mitkury/chatgpt-export-parser, and the content types that other readers of exports list, 2026.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, convert

from ...core.messages import Content, Media, Message, Opaque, Part, Reasoning, Text, ToolResult
from ...core.stamps import Origin
from .recording import (
    Reader,
    RecordedMessage,
    Recording,
    as_list,
    as_object,
    collect_notes,
    make_call,
    most_common_model,
    to_json,
    to_milliseconds,
)
from .source import Sample, Source, decode_or_nothing
from .tree import Node, unravel

__all__ = ["READER"]


class _Author(Struct, frozen=True):
    role: str = ""
    name: str | None = None


class _Message(Struct, frozen=True):
    id: str = ""
    author: _Author = _Author()
    create_time: Any = None
    content: dict[str, Any] = {}
    metadata: Any = None
    recipient: str | None = None


class _Line(Struct, frozen=True):
    """One node of the tree."""

    parent: str | None = None
    message: _Message | None = None


def _recognises(sample: Sample) -> bool:
    values = list(sample.lines) or [sample.document]
    return any(_is_chat(value) or (isinstance(value, list) and any(map(_is_chat, value[:8]))) for value in values)


def _is_chat(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def _read(source: Source) -> list[Recording]:
    found = [chat for _, value in source.values() for chat in (value if isinstance(value, list) else [value])]
    return [_recording(source, place, as_object(chat)) for place, chat in enumerate(filter(_is_chat, found), 1)]


READER = Reader("chatgpt", _recognises, _read)


def _recording(source: Source, place: int, chat: Mapping[str, Any]) -> Recording:
    nodes: list[Node] = []
    mapping = as_object(chat.get("mapping"))
    for key, value in _in_order(mapping, chat.get("current_node")):
        with source.guard(0, f"conversation {place}, node {key}"):
            line = convert(value, _Line)
            nodes.append(Node(len(nodes) + 1, key, line.parent or "", line, line.message is not None))
    threads = unravel(nodes) or [[]]
    counted: Counter[str] = Counter({"rewound lines": sum(len(thread) for thread in threads[1:])})
    messages = tuple(_recorded(source, place, threads[0], counted))
    branches = []
    for thread in threads[1:]:
        if left := tuple(_recorded(source, place, thread, Counter())):
            branches.append(Recording(source.path, READER.name, left, notes=collect_notes(left, {})))
    models = (
        str(as_object(node.line.message.metadata).get("model_slug") or "") for node in threads[0] if node.is_message
    )
    return Recording(
        source.path,
        READER.name,
        messages,
        most_common_model(models),
        name=str(chat.get("conversation_id") or chat.get("id") or ""),
        notes=collect_notes(messages, counted),
        branches=tuple(branches),
    )


def _in_order(mapping: Mapping[str, Any], current: object) -> list[tuple[str, Any]]:
    """Return the nodes with each after its parent, and the path to the current node last."""
    path: list[str] = []
    key = current if isinstance(current, str) else ""
    while key in mapping and key not in path:
        path.append(key)
        key = str(as_object(mapping[key]).get("parent") or "")
    on_path = set(path)
    return [(key, mapping[key]) for key in [*(key for key in mapping if key not in on_path), *reversed(path)]]


def _recorded(source: Source, place: int, nodes: list[Node], counted: Counter[str]) -> Iterator[RecordedMessage]:
    thread = _Thread()
    for node in nodes:
        message: _Message | None = node.line.message
        if message is None:
            continue
        with source.guard(0, f"conversation {place}, node {node.key}"):
            counted["other lines"] += not thread.add(message)
    yield from thread.finish()


class _Thread:
    """The messages of one path, with calls and their results in pairs."""

    def __init__(self) -> None:
        self._done: list[RecordedMessage] = []
        self._reply: list[Part] = []
        self._head: _Message = _Message()
        self._open: list[tuple[str, str]] = []  # Calls without a result: id and tool.

    def add(self, message: _Message) -> bool:
        """Add the next message. Returns whether it has content for the model."""
        role, parts = message.author.role, list(_parts(message.content))
        if not parts:
            return False
        if role == "assistant":
            if not self._reply:
                self._head = message
            if message.recipient not in (None, "", "all"):
                self._open.append((message.id, str(message.recipient)))
                parts = [make_call(message.id, str(message.recipient), _arguments(parts))]
            self._reply += parts
        elif role == "tool":
            self._answer(message, parts)
        else:
            is_context = message.content.get("content_type") in ("user_editable_context", "model_editable_context")
            origin: Origin | None = "plugin" if is_context else None
            self._put(Message("system" if role == "system" else "user", tuple(parts)), message, origin)
        return True

    def finish(self) -> list[RecordedMessage]:
        """Complete the open reply, and return the messages."""
        if self._reply:
            reply = Message("assistant", tuple(self._reply))
            self._done.append(RecordedMessage(reply, 0, to_milliseconds(self._head.create_time), id=self._head.id))
            self._reply = []
        return self._done

    def _answer(self, message: _Message, parts: list[Part]) -> None:
        """Add a tool's message: the result of the open call, or more of the last result."""
        tool = message.author.name or ""
        content: tuple[Content, ...] = tuple(part for part in parts if isinstance(part, Content))
        call = next((call for call in self._open if call[1] == tool), self._open[0] if self._open else None)
        if call is not None:
            self._open.remove(call)
            self._put(Message("tool", (ToolResult(call[0], content, "ok", tool or call[1]),)), message)
            return
        last = self._done[-1].message.result if self._done and not self._reply else None
        if last is not None:
            result = ToolResult(last.call_id, (*last.content, *content), last.state, last.name)
            head = self._done.pop()
            self._done.append(RecordedMessage(Message("tool", (result,)), 0, head.time, id=head.id))
        else:
            self._put(Message("user", tuple(parts)), message, "plugin")

    def _put(self, message: Message, source: _Message, origin: Origin | None = None) -> None:
        self.finish()
        self._done.append(RecordedMessage(message, 0, to_milliseconds(source.create_time), id=source.id, origin=origin))


def _arguments(parts: list[Part]) -> str:
    """Return the arguments of a call: its text, which may be JSON or code."""
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    return text if isinstance(decode_or_nothing(text.encode()), dict) else to_json({"text": text})


def _parts(content: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of a content, by its type."""
    match content.get("content_type"):
        case "thoughts":
            for thought in map(as_object, as_list(content.get("thoughts"))):
                text = "\n".join(str(thought[key]) for key in ("summary", "content") if thought.get(key))
                if text:
                    yield Reasoning(text, format=READER.name)
        case "reasoning_recap":
            return
        case "user_editable_context":
            text = "\n".join(str(content[key]) for key in ("user_profile", "user_instructions") if content.get(key))
            if text:
                yield Text(text)
        case "model_editable_context":
            if isinstance(context := content.get("model_set_context"), str) and context:
                yield Text(context)
        case _:
            for part in as_list(content.get("parts")):
                yield from _part(part)
            for key in ("text", "result"):
                if isinstance(output := content.get(key), str) and output:
                    yield Text(output)


def _part(part: Any) -> Iterator[Part]:
    if isinstance(part, str):
        if part:
            yield Text(part)
        return
    fields = as_object(part)
    kind, pointer = str(fields.get("content_type") or ""), fields.get("asset_pointer")
    if isinstance(pointer, str):
        yield Media("image/png" if "image" in kind else "", "file", pointer)
    elif isinstance(text := fields.get("text"), str) and text:
        yield Text(text)
    elif fields:
        yield Opaque(READER.name, kind or "part", to_json(fields))
