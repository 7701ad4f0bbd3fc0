"""Reader for sessions of GitHub Copilot CLI: JSON Lines, an event a line, with the content in `data`.

A response of the model may be split into several `assistant.message` events with one `apiCallId`. Events with an
`agentId`, or of older versions with a `parentToolCallId`, belong to a sub-agent. A compaction keeps the summary.
Source: `nodejs/src/generated/session-events.ts` of github/copilot-sdk, 2026, generated from the program's own schema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from ...core.messages import Content, Media, Message, Part, Reasoning, ResultState, Text, ToolResult
from ...core.stamps import Origin, Usage
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
    to_milliseconds,
)
from .source import Sample, Source

__all__ = ["READER"]

_MESSAGES = ("user.message", "assistant.message", "system.message", "session.start", "tool.execution_complete")


class _Event(Struct, frozen=True, rename="camel"):
    type: str = ""
    data: dict[str, Any] = {}
    id: str = ""
    timestamp: Any = None
    agent_id: str | None = None


def _recognises(sample: Sample) -> bool:
    return any(
        isinstance(value, dict) and value.get("type") in _MESSAGES and isinstance(value.get("data"), dict)
        for value in sample.lines
    )


def _read(source: Source) -> Recording:
    main = _Thread(source)
    agents: dict[str, _Thread] = {}
    name = ""
    for number, value in source.lines():
        event = source.convert(number, value, _Event)
        if event is None:
            continue
        if event.type == "session.start":
            name = name or str(event.data.get("sessionId") or "")
        agent = event.agent_id or event.data.get("parentToolCallId")
        thread = agents.setdefault(str(agent), _Thread(source)) if agent else main
        with source.guard(number):
            thread.add(number, event)
    chains = tuple(thread.recording(agent) for agent, thread in agents.items() if thread.finish())
    main.counted["side-chain lines"] += sum(len(chain.messages) for chain in chains)
    return main.recording(name, chains)


READER = Reader("copilot", _recognises, _read)


class _Thread:
    """The conversation of the main agent, or of a sub-agent."""

    def __init__(self, source: Source) -> None:
        self.counted: Counter[str] = Counter()
        self._source = source
        self._done: list[RecordedMessage] = []
        self._models: list[str] = []
        self._prompt = ""
        self._reply: list[Part] = []  # the open response
        self._head = RecordedMessage(Message("assistant"), 0)

    def add(self, number: int, event: _Event) -> None:
        """Take the next event."""
        data = event.data
        time = to_milliseconds(event.timestamp)
        match event.type:
            case "assistant.message":
                self._extend(number, time, data)
            case "user.message":
                source = data.get("source")
                is_typed = source in (None, "", "user") and not data.get("isAutopilotContinuation")
                text = data.get("transformedContent") or data.get("content")
                parts: list[Part] = [Text(text)] if isinstance(text, str) and text else []
                parts.extend(_attachments(data))
                self._put(number, time, Message("user", tuple(parts)), event.id, None if is_typed else "plugin")
            case "system.message":
                self._set_prompt(number, time, data)
            case "tool.execution_complete":
                self._put(number, time, Message("tool", (_result(data),)), event.id)
            case "session.compaction_complete" if data.get("success") is not False:
                self.counted["native compactions"] += 1
                summary = data.get("summaryContent")
                if isinstance(summary, str) and summary:
                    self._put(number, time, Message("user", (Text(summary),)), event.id, "summary")
            case "session.truncation" | "session.context_cleared":
                self.counted["native compactions"] += 1
            case _:
                self.counted["other lines"] += 1

    def finish(self) -> list[RecordedMessage]:
        """Complete the open response, and return the messages."""
        if self._reply:
            message = Message("assistant", tuple(self._reply))
            head = self._head
            self._done.append(RecordedMessage(message, head.line, head.time, head.usage, head.id))
            self._reply = []
        return self._done

    def recording(self, name: str, chains: tuple[Recording, ...] = ()) -> Recording:
        """Return everything added so far."""
        messages = tuple(self.finish())
        return Recording(
            self._source.path,
            READER.name,
            messages,
            most_common_model(self._models),
            name=name,
            notes=collect_notes(messages, self.counted),
            side_chains=chains,
        )

    def _extend(self, number: int, time: int | None, data: Mapping[str, Any]) -> None:
        """Add a part of a response, or begin the next response."""
        name = str(data.get("apiCallId") or data.get("messageId") or "")
        if not self._reply or not name or name != self._head.id:
            self.finish()
            usage = make_usage(output=data.get("outputTokens"))
            self._head = RecordedMessage(Message("assistant"), number, time, usage, name)
            self._models.append(str(data.get("model") or ""))
        thought, text = data.get("reasoningText"), data.get("content")
        if isinstance(thought, str) and thought:
            self._reply.append(Reasoning(thought, format="copilot"))
        if isinstance(text, str) and text:
            self._reply.append(Text(text))
        for request in map(as_object, as_list(data.get("toolRequests"))):
            call_id, tool = str(request.get("toolCallId") or ""), str(request.get("name") or "")
            self._reply.append(make_call(call_id, tool, request.get("arguments") or {}))

    def _set_prompt(self, number: int, time: int | None, data: Mapping[str, Any]) -> None:
        """Take the system prompt. The program writes it again whenever it continues a session."""
        text = data.get("content")
        if not isinstance(text, str) or not text:
            return
        if self._prompt:
            self.counted["repeated lines" if text == self._prompt else "replaced items"] += 1
            return
        self._prompt = text
        self._put(number, time, Message("system", (Text(text),)))

    def _put(
        self, number: int, time: int | None, message: Message, name: str = "", origin: Origin | None = None
    ) -> None:
        self.finish()
        usage: Usage | None = None
        if message.parts:
            self._done.append(RecordedMessage(message, number, time, usage, name, origin))


def _attachments(data: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the files whose bytes are in the event, and the texts of selections."""
    for attached in map(as_object, as_list(data.get("attachments"))):
        content = attached.get("data")
        if attached.get("type") == "blob" and isinstance(content, str):
            name = str(attached.get("displayName") or "")
            yield Media(str(attached.get("mimeType") or ""), "base64", content, name)
        elif attached.get("type") == "selection" and isinstance(attached.get("text"), str):
            yield Text(attached["text"])


def _result(data: Mapping[str, Any]) -> ToolResult:
    result, error = as_object(data.get("result")), as_object(data.get("error"))
    state: ResultState = "ok" if data.get("success", True) else "error"
    text = result.get("content") if result else error.get("message")
    if state == "error" and error.get("code") in ("rejected", "denied", "aborted", "cancelled"):
        state = "interrupted"
    content: list[Content] = [Text(text if isinstance(text, str) else "")]
    for binary in map(as_object, as_list(result.get("binaryResultsForLlm"))):
        if isinstance(binary.get("data"), str):
            content.append(Media(str(binary.get("mimeType") or ""), "base64", binary["data"]))
    return ToolResult(str(data.get("toolCallId") or ""), tuple(content), state, str(data.get("toolName") or ""))
