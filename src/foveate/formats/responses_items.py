"""OpenAI Responses items to messages.

Items carry no name of their response. What comes between two outputs, or what others say, is taken as one response and
becomes one assistant message: reasoning, text and calls in their order.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import structs

from ..core.messages import (
    Content,
    Extra,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    State,
    Text,
    ToolCall,
    ToolResult,
)
from ..core.stamps import Origin, Usage
from ..errors import BadMessage
from .recording import Recorded, compact
from .source import Source

__all__ = ["FORMAT", "Items", "is_item"]

FORMAT = "openai_responses"

_CONTEXT = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "# AGENTS.md",
)
"""How user messages begin that the program wrote itself: they begin no turn of the person."""


def is_item(value: Any) -> bool:
    """Whether this is an item by which a conversation can be told, and nothing else."""
    match value:
        case (
            {"type": "message", "role": str()} | {"type": "reasoning", "summary": list()} | {"type": "web_search_call"}
        ):
            return True
        case {"type": str(kind), "call_id": str()}:
            return kind.endswith(("_call", "_call_output"))
        case _:
            return False


class Items:
    """Items go in with `add`; after `end`, `done` holds the messages. What carries no message is `counted`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.done: list[Recorded] = []
        self.counted: Counter[str] = Counter()
        self._parts: list[Part] = []
        self._line = 0
        self._time: int | None = None
        self._usage: Usage | None = None

    def add(self, line: int, time: int | None, item: Any) -> None:
        """Take in the next item."""
        with self.source.guard(line):
            self._add(line, time, item)

    def _add(self, line: int, time: int | None, item: Any) -> None:
        if not isinstance(item, dict):
            raise BadMessage("An item is no JSON object.")
        kind = str(item.get("type") or ("message" if "role" in item else ""))
        role = item.get("role")
        if kind == "message" and role != "assistant":
            self._other(line, time, item, role)
        elif kind.endswith("_output") and "call_id" in item:
            self.end()
            self.done.append(Recorded(Message("tool", (_result(item),)), line, time))
        elif kind == "reasoning" and not _reasoning(item):
            self.counted["other lines"] += 1  # It says that the model thought, and nothing of what.
        elif kind in ("compaction", "compaction_summary", "context_compaction"):
            self.end()
            self.counted["native compactions"] += 1
        elif kind == "message" or kind == "reasoning" or kind.endswith("_call"):
            if self._usage is not None:
                self.end()
            self._line, self._time = self._line or line, self._time or time
            self._parts += (
                _said(item) if kind == "message" else _reasoning(item) if kind == "reasoning" else (_call(kind, item),)
            )
        else:
            self.counted["other lines"] += 1

    def say(self, line: int, time: int | None, role: Role, text: str, origin: Origin | None = None) -> None:
        """Take in a text that is no item."""
        self.end()
        self.done.append(Recorded(Message(role, (Text(text),)), line, time, origin=origin))

    def bill(self, usage: Usage | None) -> None:
        """The response that is open, or else the last one, was billed so much, unless it was billed before."""
        if self._parts:
            self._usage = self._usage or usage
            return
        for place in range(len(self.done) - 1, -1, -1):
            if self.done[place].message.role == "assistant":
                if self.done[place].usage is None:
                    self.done[place] = structs.replace(self.done[place], usage=usage)
                return

    def end(self) -> None:
        """The open response is complete."""
        if self._parts:
            message = Message("assistant", tuple(self._parts))
            self.done.append(Recorded(message, self._line, self._time, self._usage))
        self._parts, self._line, self._time, self._usage = [], 0, None, None

    def split(self, turns: int) -> tuple[list[Recorded], list[Recorded]]:
        """What is done, before and from the beginning of the person's last `turns` turns."""
        begins = [
            place
            for place, entry in enumerate(self.done)
            if entry.message.role == "user" and not entry.message.text.startswith(_CONTEXT)
        ]
        place = begins[-turns:][0] if begins and turns > 0 else len(self.done)
        return self.done[:place], self.done[place:]

    def _other(self, line: int, time: int | None, item: dict[str, Any], role: object) -> None:
        self.end()
        if role not in ("system", "developer", "user"):
            raise BadMessage(f"A message has the role {role!r}.")
        # A developer's message is a system prompt; its extra field writes the role back.
        extra = Extra(FORMAT, '{"role":"developer"}') if role == "developer" else None
        message = Message("user" if role == "user" else "system", _said(item), extra=extra)
        origin: Origin | None = "plugin" if role == "user" and message.text.startswith(_CONTEXT) else None
        self.done.append(Recorded(message, line, time, origin=origin))


def _said(item: dict[str, Any]) -> tuple[Content, ...]:
    """The content of a message item. Fields of the item itself stay with its first text."""
    parts = [_content(block) for block in _listed(item.get("content"))]
    if (extra := _rest(item, "type", "role", "content")) and parts and isinstance(parts[0], Text):
        parts[0] = structs.replace(parts[0], extra=extra)
    return tuple(parts)


def _content(block: Any) -> Content:
    match block:
        case str():
            return Text(block)
        case {"type": "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text", "text": str(text)}:
            return Text(text)
        case {"type": "input_image", "image_url": str(url)}:
            head, comma, data = url.partition(",")
            if comma and head.startswith("data:") and head.endswith(";base64"):
                return Media(head[5:-7], "base64", data, extra=_rest(block, "type", "image_url"))
            return Media("", "url", url, extra=_rest(block, "type", "image_url"))
        case {"type": str(kind)}:
            return Opaque(FORMAT, kind, compact(block))
        case _:
            return Text(compact(block))


def _reasoning(item: dict[str, Any]) -> tuple[Part, ...]:
    blocks = [block for field in ("summary", "content") for block in _listed(item.get(field))]
    text = "\n\n".join(part.text for part in map(_content, blocks) if isinstance(part, Text))
    encrypted = str(item.get("encrypted_content") or "")
    if not text and not encrypted:
        return ()
    return (Reasoning(text, "", encrypted, FORMAT, _rest(item, "type", "summary", "content", "encrypted_content")),)


def _call(kind: str, item: dict[str, Any]) -> Part:
    """A call to answer; a call that the provider ran itself has no id to answer to, and stays opaque."""
    call_id = item.get("call_id")
    if not isinstance(call_id, str):
        return Opaque(FORMAT, kind, compact(item))
    if kind == "function_call":
        arguments = item.get("arguments", "{}")
        extra = _rest(item, "type", "call_id", "name", "arguments")
        return ToolCall(call_id, str(item.get("name", "")), _json_text(arguments), extra)
    if kind == "custom_tool_call":
        # Its input is free text; arguments are JSON everywhere else.
        arguments = compact({"input": item.get("input", "")})
        return ToolCall(call_id, str(item.get("name", "")), arguments, _rest(item, "call_id", "name", "input"))
    arguments = compact(item.get("action", item.get("arguments", {})))
    return ToolCall(
        call_id, str(item.get("name") or kind.removesuffix("_call")), arguments, _rest(item, "call_id", "action")
    )


def _result(item: dict[str, Any]) -> ToolResult:
    output = item.get("output")
    state: State = "ok"
    if isinstance(output, dict) and "content" in output:
        state = "error" if output.get("success") is False else "ok"
        output = output["content"]
    result = ToolResult(str(item.get("call_id")), tuple(_content(block) for block in _listed(output)), state)
    if result.text == "aborted" or result.text.startswith("aborted by user"):
        return structs.replace(result, state="interrupted")
    return result


def _listed(value: Any) -> list[Any]:
    """The blocks of a field that holds several, one, or none."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _json_text(value: object) -> str:
    return value if isinstance(value, str) else compact(value)


def _rest(item: dict[str, Any], *known: str) -> Extra | None:
    """The fields that the values do not know."""
    rest = {key: value for key, value in item.items() if key not in known}
    return Extra(FORMAT, compact(rest)) if rest else None
