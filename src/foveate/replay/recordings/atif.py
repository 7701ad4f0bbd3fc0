"""Reader for ATIF trajectories (Agent Trajectory Interchange Format, versions 1.0 to 1.8): one JSON document.

An agent's step holds its text, its calls and, in `observation`, their results. An observation without a call id answers
the step's only call, if it has one; otherwise it becomes a user message, as the format's own agents showed it. Steps
copied from an earlier trajectory are part of the conversation; sub-agents' trajectories are side chains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, convert

from ...core.messages import Content, Media, Message, Opaque, Part, Reasoning, Text, ToolResult
from ...core.stamps import Usage
from ...errors import BadMessage
from .recording import (
    Reader,
    RecordedMessage,
    Recording,
    as_list,
    as_object,
    collect_notes,
    make_call,
    make_usage,
    most_common_model,
    to_json,
    to_milliseconds,
)
from .source import Sample, Source

__all__ = ["READER"]


class _Call(Struct, frozen=True):
    tool_call_id: str
    function_name: str
    arguments: Any = {}


class _Result(Struct, frozen=True):
    source_call_id: str | None = None
    content: Any = None


class _Observation(Struct, frozen=True):
    results: list[_Result] = []


class _Step(Struct, frozen=True):
    source: str
    step_id: Any = None
    message: Any = ""
    timestamp: Any = None
    model_name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    metrics: Any = None


def _recognises(sample: Sample) -> bool:
    match sample.document:
        case {"schema_version": str(version), "steps": list()}:
            return version.upper().startswith("ATIF")
        case {"agent": dict(), "steps": [{"source": str(), "message": _}, *_]}:
            return True
        case _:
            return False


def _read(source: Source) -> Recording:
    return _recording(source, source.object())


def _recording(source: Source, trajectory: dict[str, Any]) -> Recording:
    agent = as_object(trajectory.get("agent"))
    messages: list[RecordedMessage] = []
    models = [str(agent.get("model_name") or "")]
    for place, value in enumerate(as_list(trajectory.get("steps")), 1):
        with source.guard(0, f"step {place}"):
            step = convert(value, _Step)
            messages.extend(_messages(step))
            models.append(step.model_name or "")
    chains: list[Recording] = []
    for place, value in enumerate(as_list(trajectory.get("subagent_trajectories")), 1):
        with source.guard(0, f"sub-agent {place}"):
            chains.append(_recording(source, convert(value, dict[str, Any])))
    counted = Counter({"side-chain lines": sum(len(chain.messages) for chain in chains)})
    return Recording(
        source.path,
        READER.name,
        tuple(messages),
        most_common_model(models),
        tuple(tool for tool in as_list(agent.get("tool_definitions")) if isinstance(tool, dict)),
        str(trajectory.get("session_id") or trajectory.get("trajectory_id") or ""),
        collect_notes(messages, counted),
        tuple(chains),
    )


READER = Reader("atif", _recognises, _read)


def _messages(step: _Step) -> Iterator[RecordedMessage]:
    time = to_milliseconds(step.timestamp)
    name = "" if step.step_id is None else str(step.step_id)
    text_parts: tuple[Part, ...] = _content(step.message)
    calls = tuple(make_call(call.tool_call_id, call.function_name, call.arguments) for call in step.tool_calls or ())
    match step.source:
        case "agent":
            reasoning = (Reasoning(step.reasoning_content, format="atif"),) if step.reasoning_content else ()
            if parts := (*reasoning, *text_parts, *calls):
                yield RecordedMessage(Message("assistant", parts), 0, time, _usage(step.metrics), name)
        case "system" | "user":
            if text_parts:
                yield RecordedMessage(Message(step.source, text_parts), 0, time, id=name)
        case _:
            raise BadMessage(f"The source is {step.source!r}. ATIF knows system, user and agent.")
    for result in step.observation.results if step.observation else ():
        call_id = result.source_call_id or (calls[0].call_id if len(calls) == 1 else "")
        content = _content(result.content)
        if call_id:
            yield RecordedMessage(Message("tool", (ToolResult(call_id, content),)), 0, time, id=name)
        elif content:
            yield RecordedMessage(Message("user", content), 0, time, id=name, origin="plugin")


def _content(content: Any) -> tuple[Content, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(_part(part) for part in content) if isinstance(content, list) else ()


def _part(part: Any) -> Content:
    match part:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image", "source": {"path": str(path), **rest}}:
            return Media(str(rest.get("media_type", "")), "url", path)
        case {"type": str(kind)}:
            return Opaque("atif", kind, to_json(part))
        case _:
            return Text(to_json(part))


def _usage(metrics: object) -> Usage | None:
    figures = as_object(metrics)
    return make_usage(
        whole=figures.get("prompt_tokens"),
        cache_read=figures.get("cached_tokens"),
        output=figures.get("completion_tokens"),
    )
