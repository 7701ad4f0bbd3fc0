"""Reader for SWE-agent trajectories (`.traj`): one JSON document with a `history` and a `trajectory`.

With function calling, the history is a chat whose results name their calls in a list. Otherwise the model wrote its
command into its text, and the program answered as the user. Then the system prompt, the demonstration and the task come
from the history, and each step of the trajectory becomes a call to `shell`, with a made-up id, and its result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, convert

from ...core.messages import Message, Text, ToolCall, ToolResult
from .recording import Reader, RecordedMessage, Recording, as_list, as_object, collect_notes, to_json
from .source import Sample, Source

__all__ = ["READER"]


class _HistoryMessage(Struct, frozen=True):
    role: str
    content: Any = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_ids: list[str] | None = None


class _Step(Struct, frozen=True):
    action: str | None = ""
    observation: str | None = ""
    response: str | None = ""
    thought: str | None = ""


def _recognises(sample: Sample) -> bool:
    match sample.document:
        case {"trajectory": [{"action": _, "observation": _}, *_], "history": list()}:
            return True
        case _:
            return False


def _read(source: Source) -> Recording:
    document = source.object()
    history = [value for value in as_list(document.get("history")) if isinstance(value, dict)]
    counted: Counter[str] = Counter()
    if any(value.get("tool_calls") for value in history):
        messages = tuple(_from_history(source, history))
    else:
        end = next((place for place, value in enumerate(history) if value.get("role") == "assistant"), len(history))
        steps = as_list(document.get("trajectory"))
        messages = (*_from_history(source, history[:end]), *_from_trajectory(source, steps))
        counted["made-up ids"] = sum(len(entry.message.calls) for entry in messages)
    model = as_object(document.get("info")).get("model")
    return Recording(source.path, READER.name, messages, str(model or ""), notes=collect_notes(messages, counted))


READER = Reader("swe_agent", _recognises, _read)


def _from_history(source: Source, history: list[dict[str, Any]]) -> Iterator[RecordedMessage]:
    from ...formats.openai import OpenAIChat

    wire = OpenAIChat()
    for place, value in enumerate(history, 1):
        with source.guard(0, f"message {place} of the history"):
            entry = convert(value, _HistoryMessage)
            message: dict[str, Any] = {"role": entry.role, "content": entry.content}
            if entry.tool_calls:
                message["tool_calls"] = entry.tool_calls
            if entry.role == "tool":
                message["tool_call_id"] = (entry.tool_call_ids or [""])[0]
            for parsed in wire.parse(message):
                yield RecordedMessage(parsed, 0)


def _from_trajectory(source: Source, steps: list[Any]) -> Iterator[RecordedMessage]:
    for place, value in enumerate(steps, 1):
        with source.guard(0, f"step {place} of the trajectory"):
            step = convert(value, _Step)
            action = (step.action or "").strip()
            text_value = (step.thought if action else step.response) or step.response or ""
            text = (Text(text_value.strip()),) if text_value.strip() else ()
            call = (ToolCall(f"step-{place}", "shell", to_json({"command": action})),) if action else ()
            if text or call:
                yield RecordedMessage(Message("assistant", (*text, *call)), 0, id=str(place))
            if call:
                answer = ToolResult(f"step-{place}", (Text(step.observation or ""),), name="shell")
                yield RecordedMessage(Message("tool", (answer,)), 0, id=str(place))
            elif step.observation:
                yield RecordedMessage(Message("user", (Text(step.observation),)), 0, id=str(place), origin="plugin")
