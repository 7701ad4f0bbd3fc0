"""Reader for OpenHands event streams.

A file is a record with a `history`, a list of events, or JSON Lines of events.

An action of the agent carries the model's whole response; the actions of one response become one message. An
observation answers its call by id, or, if the model called no function, the action that it names as its cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, convert, structs

from ...core.messages import Content, Media, Message, Part, Text, ToolResult
from ...core.stamps import Usage
from ...errors import BadTranscript
from ...formats.stops import recorded_stop
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


class _Response(Struct, frozen=True):
    id: str = ""
    model: str | None = ""
    choices: list[dict[str, Any]] = []
    usage: Any = None


class _CallOf(Struct, frozen=True):
    tool_call_id: str = ""
    function_name: str = ""
    model_response: _Response | None = None


class _Event(Struct, frozen=True):
    id: Any = None
    timestamp: Any = None
    source: str | None = ""
    message: Any = None
    action: str | None = None
    observation: str | None = None
    cause: Any = None
    content: Any = None
    args: Any = None
    extras: Any = None
    tool_call_metadata: _CallOf | None = None


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and "source" in value and ("action" in value or "observation" in value)


def _events(value: Any) -> list[Any]:
    """Return the events in a record or a list, or an empty list if it holds none."""
    events = as_list(value.get("history") if isinstance(value, dict) else value)
    return events if any(_is_event(each) for each in events[:5]) else []


def _recognises(sample: Sample) -> bool:
    return any(_is_event(value) or _events(value) for value in [*sample.lines, sample.document])


def _read(source: Source) -> Recording:
    values = list(source.values())
    events = [(line, "", value) for line, value in values if _is_event(value)]
    name = ""
    if not events:
        records = [(line, value) for line, value in values if _events(value)]
        if len(records) > 1:
            problem = f"it holds {len(records)} recordings."
            raise BadTranscript(source.path, records[1][0], problem, "Give each its own file.")
        for line, record in records:
            name = str(as_object(record).get("instance_id") or "")
            events = [(line, f"event {place}", value) for place, value in enumerate(_events(record), 1)]
    stream = _Stream()
    for line, what, value in events:
        with source.guard(line, what):
            stream.add(line, convert(value, _Event))
    messages = tuple(stream.messages)
    model = most_common_model(stream.models)
    return Recording(
        source.path, READER.name, messages, model, stream.tools, name, collect_notes(messages, stream.counted)
    )


READER = Reader("openhands", _recognises, _read)


class _Stream:
    """State while reading one event stream."""

    def __init__(self) -> None:
        self.line = 0
        self.messages: list[RecordedMessage] = []
        self.models: list[str] = []
        self.tools: tuple[Any, ...] = ()
        self.counted: Counter[str] = Counter()
        self.responses: set[str] = set()
        self.caused: dict[str, str] = {}

    def add(self, line: int, event: _Event) -> None:
        """Add the next event, from this line."""
        self.line = line
        called = event.tool_call_metadata
        args = as_object(event.args)
        content_value = event.content or event.message or ""
        text = content_value if isinstance(content_value, str) else to_json(content_value)
        if event.observation is not None:
            call_id = called.tool_call_id if called else self.caused.get(str(event.cause), "")
            if call_id:
                content: tuple[Content, ...] = (Text(text), *_images(event.extras))
                self._append(
                    event, Message("tool", (ToolResult(call_id, content, name=called.function_name if called else ""),))
                )
            elif event.observation == "error":
                self._append(event, Message("user", (Text(text),)), from_program=True)
            else:
                self.counted["other lines"] += 1
        elif called is not None and called.model_response is not None:
            self._reply(event, called.model_response)
        elif event.action == "system":
            self.tools = tuple(tool for tool in as_list(args.get("tools")) if isinstance(tool, dict))
            self._append(event, Message("system", (Text(str(args.get("content") or text)),)))
        elif event.action == "message":
            shown: tuple[Part, ...] = (Text(str(args.get("content") or text)), *_images(args))
            self._append(event, Message("user" if event.source == "user" else "assistant", shown))
        elif event.source == "agent" and event.action not in _SILENT:
            # Without function calling the program parsed the action from the text, so the call needs a made-up id.
            call_id = f"event-{event.id}"
            self.caused[str(event.id)] = call_id
            arguments = {key: value for key, value in args.items() if key not in ("thought", "confirmation_state")}
            thought = str(args.get("thought") or "")
            parts: tuple[Part, ...] = (Text(thought),) if thought else ()
            self.counted["made-up ids"] += 1
            self._append(event, Message("assistant", (*parts, make_call(call_id, str(event.action), arguments))))
        else:
            self.counted["native compactions" if event.action == "condensation" else "other lines"] += 1

    def _reply(self, event: _Event, response: _Response) -> None:
        from ...formats.openai import OpenAIChat

        if response.id in self.responses or not response.choices:
            return  # Another action of a response that was added before.
        self.responses.add(response.id)
        self.models.append(response.model or "")
        body = as_object(response.choices[0].get("message"))
        wire = {"role": "assistant", "content": body.get("content")}
        if body.get("tool_calls"):
            wire["tool_calls"] = body["tool_calls"]
        for message in OpenAIChat().parse(wire):
            self._append(event, message)
            stop = recorded_stop(response.choices[0].get("finish_reason"))
            self.messages[-1] = structs.replace(self.messages[-1], usage=_usage(response.usage), stop=stop)

    def _append(self, event: _Event, message: Message, *, from_program: bool = False) -> None:
        name = "" if event.id is None else str(event.id)
        time = to_milliseconds(event.timestamp)
        self.messages.append(RecordedMessage(message, self.line, time, None, name, "plugin" if from_program else None))


_SILENT = (None, "recall", "change_agent_state", "null", "condensation", "condensation_request")


def _images(fields: Any) -> Iterator[Media]:
    for url in as_list(as_object(fields).get("image_urls")):
        head, comma, data = str(url).partition(",")
        embedded = comma and head.startswith("data:") and head.endswith(";base64")
        yield Media(head[5:-7], "base64", data) if embedded else Media("", "url", str(url))


def _usage(usage: object) -> Usage | None:
    figures = as_object(usage)
    return make_usage(
        whole=figures.get("prompt_tokens"),
        cache_read=as_object(figures.get("prompt_tokens_details")).get("cached_tokens"),
        output=figures.get("completion_tokens"),
    )
