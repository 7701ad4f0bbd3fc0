"""Reader for plain chats: messages with a role, in JSON Lines or a document.

A document may be the list itself, or an object or list that holds it: a request body, a benchmark's record, a log
entry. Messages have the shape of OpenAI's chat completions, of Anthropic's Messages API or of the AI SDK's user
interface; blocks that only Anthropic has decide between the first two. A file may hold several conversations, such as
the examples of a fine-tuning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.messages import Message
from ...core.stamps import Origin
from ...errors import BadMessage, BadTranscript
from ...formats.ui_messages import is_ui_message
from .recording import Reader, RecordedMessage, Recording, as_list, as_object, collect_notes, to_milliseconds
from .source import Sample, Source

__all__ = ["READER"]

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_FIELDS = (
    "messages",
    "conversation",
    "conversations",
    "trajectory",
    "traj",
    "history",
    "chat",
    "dialog",
    "transcript",
    "input",
)
"""Fields that may hold the list of messages, in the order of search; after them, any field."""

_STAMPS = ("id", "timestamp", "time", "created_at")
"""Fields that the recorder added. They are not part of the message."""

_OPENAI_ROLES = ("developer", "tool", "function")
_ANTHROPIC_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking")


def _recognises(sample: Sample) -> bool:
    values = list(sample.lines) or [sample.document]
    return any(_is_message(value) for value in values) or any(_find(value) is not None for value in values)


def _read(source: Source) -> list[Recording]:
    values = list(source.values())
    counted: Counter[str] = Counter()
    if any(_is_message(value) for _, value in values):
        messages = [(line, value) for line, value in values if isinstance(value, dict) and "role" in value]
        counted["other lines"] = len(values) - len(messages)
        return [_recording(source, messages, {}, counted)]
    chats = [(line, chat, holder) for line, value in values for chat, holder in _chats(value)]
    if not chats:
        raise BadTranscript(source.path, 0, "it holds no message with a role.")
    if len(chats) == 1:
        counted["other lines"] = len(values) - 1
    return [_recording(source, [(line, value) for value in chat], holder, counted) for line, chat, holder in chats]


def _recording(
    source: Source, messages: list[tuple[int, Any]], holder: dict[str, Any], counted: Counter[str]
) -> Recording:
    recorded = tuple(_prompt(holder)) + tuple(_recorded(source, messages))
    tools = holder.get("tools") or holder.get("functions")
    model, name = holder.get("model"), holder.get("id")
    return Recording(
        source.path,
        READER.name,
        recorded,
        model if isinstance(model, str) else "",
        tuple(tool for tool in as_list(tools) if isinstance(tool, dict)),
        name if isinstance(name, str) else "",
        notes=collect_notes(recorded, counted),
        provider=_provider([value for _, value in messages], holder),
    )


READER = Reader("chat", _recognises, _read)


def _recorded(source: Source, messages: list[tuple[int, Any]]) -> Iterator[RecordedMessage]:
    from ...formats.anthropic import Anthropic
    from ...formats.openai import OpenAIChat

    wire = Anthropic() if any(_is_anthropic(value) for _, value in messages) else OpenAIChat()
    in_one_document = len({line for line, _ in messages}) < len(messages)
    for place, (line, value) in enumerate(messages, 1):
        with source.guard(line, f"message {place}" if in_one_document else ""):
            if not isinstance(value, dict):
                raise BadMessage("A message must be a JSON object with a role.")
            time = next((value[field] for field in _STAMPS[1:] if field in value), None)
            name = value.get("id")
            fields = {field: each for field, each in value.items() if field not in _STAMPS}
            metadata = as_object(fields.pop("metadata", None)) if is_ui_message(fields) else {}
            origin: Origin | None = "summary" if metadata.get("summary") is True else None
            for message in wire.parse(fields):
                of = name if isinstance(name, str) else ""
                yield RecordedMessage(message, line, to_milliseconds(time), id=of, origin=origin)


def _prompt(request: dict[str, Any]) -> Iterator[RecordedMessage]:
    """Read the system prompt of a request in Anthropic's shape, which is a separate field."""
    from ...formats.anthropic import Anthropic

    if isinstance(prompt := request.get("system"), str | list) and prompt:
        for message in Anthropic().parse({"role": "user", "content": prompt}):
            yield RecordedMessage(Message("system", message.parts), 0)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("role") not in _ROLES:
        return False
    return "content" in value or "tool_calls" in value or is_ui_message(value)


def _is_anthropic(value: Any) -> bool:
    content = value.get("content") if isinstance(value, dict) else None
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, dict) and block.get("type") in _ANTHROPIC_BLOCKS for block in blocks)


def _is_openai(value: Any) -> bool:
    return isinstance(value, dict) and ("tool_calls" in value or value.get("role") in _OPENAI_ROLES)


def _provider(messages: Sequence[Any], request: Mapping[str, Any]) -> str:
    """Return the format of the only provider that writes such messages; "" if others write them too."""
    if any(map(_is_anthropic, messages)) or "system" in request:
        return "anthropic"
    return "openai" if any(map(_is_openai, messages)) else ""


def _is_chat(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and _is_message(value[0])


def _chats(value: Any) -> list[tuple[list[Any], dict[str, Any]]]:
    """Return every conversation in a value, each with the object that holds it."""
    if not _is_chat(value) and isinstance(value, list):
        return [chat for chat in (_find(each) for each in value) if chat is not None]
    return [chat] if (chat := _find(value)) is not None else []


def _find(value: Any, depth: int = 2) -> tuple[list[Any], dict[str, Any]] | None:
    """Return the conversation in a value, with its holder: the first field of _FIELDS, else the longest list."""
    if _is_chat(value):
        return value, {}
    if depth == 0:
        return None
    if isinstance(value, list):
        return next((chat for each in value[:1] if (chat := _find(each, depth - 1)) is not None), None)
    if not isinstance(value, dict):
        return None
    for field in _FIELDS:
        if _is_chat(value.get(field)):
            return value[field], value
    chats = [each for each in value.values() if _is_chat(each)]
    if chats:
        return max(chats, key=len), value
    return next((chat for each in value.values() if isinstance(each, dict) and (chat := _find(each, depth - 1))), None)
