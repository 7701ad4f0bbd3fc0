"""Reading of messages of the AI SDK's user interface (`UIMessage`, versions 4 to 6), in every format.

Such a message has `parts`; one of the assistant may hold several model calls, each with its tool calls and their
outputs. Each call of the model becomes a message, followed by a result for each output. Parts for people only (sources,
data) stay in the history as Opaque, and are not sent. Source: `packages/ai/src/ui/ui-messages.ts` of vercel/ai.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.messages import (
    Content,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultState,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from ..errors import BadMessage
from .blocks import as_dict, describe, get_string, make_extra
from .json import to_text

__all__ = ["NAME", "is_ui_message", "read_ui_message"]

NAME = "ai_sdk"

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}
_KNOWN = frozenset({"role", "parts", "content", "metadata"})
_LEGACY_TOOL = "tool-invocation"
_DATA_URL = re.compile(r"data:([^;,]*+)(?=;)[^,]*;base64,")
_DENIED = "The user did not allow this call"


def is_ui_message(value: object) -> bool:
    """Return whether this is a message of the AI SDK's user interface: each part has a `type`."""
    if not isinstance(value, Mapping) or "parts" not in value:
        return False
    role, parts = value.get("role"), value.get("parts")
    if not isinstance(role, str) or role not in _ROLES:
        return False
    if not isinstance(parts, list | tuple):
        return False
    if not parts:
        return "id" in value and "content" not in value
    return all(isinstance(part, Mapping) and isinstance(part.get("type"), str) for part in parts)


def read_ui_message(value: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the messages in a message for which `is_ui_message` is true. Raises BadMessage."""
    role = _ROLES[value["role"]]
    extra = make_extra(NAME, value, _KNOWN, "message")
    block = _Block(role)
    for place, part in enumerate(value["parts"]):
        block.add(dict(part), f"parts[{place}]")
    block.close()
    messages = block.messages or [Message(role)]
    return (Message(role, messages[0].parts, "", extra), *messages[1:]) if extra else tuple(messages)


class _Block:
    """The parts of one model call, and the results of its calls."""

    def __init__(self, role: Role) -> None:
        self.messages: list[Message] = []
        """Complete messages."""
        self._role = role
        self._parts: list[Part] = []
        self._results: list[ToolResult] = []

    def add(self, part: dict[str, Any], where: str) -> None:
        kind = part["type"]
        if kind == "step-start":
            self.close()
            return
        is_call = self._role == "assistant" and (kind == "dynamic-tool" or kind.startswith("tool-"))
        if is_call:
            self._add_call(part, where)
            return
        content = _content(part, where)
        if self._results and not isinstance(content, Opaque):
            self.close()  # The model wrote this after it had read the results.
        self._parts.append(content)

    def _add_call(self, part: dict[str, Any], where: str) -> None:
        if part["type"] == _LEGACY_TOOL:
            inner = as_dict(part.get("toolInvocation"), f"{where}.toolInvocation")
            state = "output-available" if inner.get("state") == "result" else str(inner.get("state"))
            part = {**inner, "state": state, "input": inner.get("args"), "output": inner.get("result")}
            name = get_string(inner, "toolName", where)
        elif part["type"] == "dynamic-tool":
            name = get_string(part, "toolName", where)
        else:
            name = part["type"].removeprefix("tool-")
        if part.get("state") in ("input-streaming", "partial-call"):
            return  # The arguments are incomplete.
        call_id = get_string(part, "toolCallId", where)
        arguments = part.get("input", part.get("rawInput"))
        text = arguments if isinstance(arguments, str) else to_text({} if arguments is None else arguments, where)
        self._parts.append(ToolCall(call_id, name, text))
        if (output := _output(part, where)) is not None:
            self._results.append(ToolResult(call_id, output[0], output[1], name))

    def close(self) -> None:
        """End the message, and append the results of its calls."""
        if self._parts:
            self.messages.append(Message(self._role, tuple(self._parts)))
        self.messages += [Message("tool", (result,)) for result in self._results]
        self._parts, self._results = [], []


def _content(part: dict[str, Any], where: str) -> Text | Media | Reasoning | Opaque:
    match part:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "text"}:
            raise BadMessage(f"{where}.text is {describe(part.get('text'))}. It must be a string.")
        case {"type": "reasoning"}:
            return _reasoning(part)
        case {"type": "file", "url": str(url)}:
            mime, name = str(part.get("mediaType") or ""), str(part.get("filename") or "")
            if data := _DATA_URL.match(url):
                return Media(mime or data[1], "base64", url[data.end() :], name)
            return Media(mime, "url", url, name)
        case {"type": "file", "data": str(data), "mimeType": str(mime)}:  # Version 4.
            return Media(mime, "base64", data)
        case _:
            return Opaque(NAME, part["type"], to_text(part, where))


def _reasoning(part: dict[str, Any]) -> Reasoning:
    text = part.get("text", part.get("reasoning"))
    match part.get("providerMetadata"):
        case {"anthropic": {"signature": str(signature)}}:
            return Reasoning(str(text or ""), signature, "", "anthropic")
        case {"anthropic": {"redactedData": str(data)}}:
            return Reasoning("", "", data, "anthropic")
        case _:
            return Reasoning(str(text or ""), format=NAME)


def _output(part: dict[str, Any], where: str) -> tuple[tuple[Content, ...], ResultState] | None:
    """Return the content and the state of a call's output; None if there is none yet."""
    match part.get("state"):
        case "output-available" | "completed":
            output = part.get("output")
            return (Text(output if isinstance(output, str) else to_text(output, f"{where}.output")),), "ok"
        case "output-error":
            return (Text(str(part.get("errorText") or "The tool failed.")),), "error"
        case "output-denied":
            approval = part.get("approval")
            reason = approval.get("reason") if isinstance(approval, Mapping) else ""
            return (Text(f"{_DENIED}: {reason}" if reason else f"{_DENIED}."),), "error"
        case _:
            return None
