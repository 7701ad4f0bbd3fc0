"""Reader for Codex rollouts and for lists of OpenAI Responses items, which rollouts contain.

A rollout is JSON Lines of `{timestamp, type, payload}`. The conversation is its `response_item` lines; the base
instructions in `session_meta` are its system prompt; `token_count` events hold the usage of the call before them. Items
have no id of their response: all items between two tool outputs, user messages or token counts are one response, and
become one assistant message with reasoning, text and calls in their order.

Hosted calls (a web search) have no call id and no output item, because the provider ran them. They stay in their
message as opaque blocks. A rollback (`thread_rolled_back`) leaves a branch. A native compaction (`compacted`) is
counted, with the items that replaced the history; its summary, if readable, is kept as a marked message.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct, structs

from ...core.messages import Message, Part, Reasoning, Role, Text, ToolResult
from ...core.stamps import Origin, Usage
from ...errors import BadMessage
from ...formats.responses.items import is_of_model
from ...formats.responses.read import NAME, parts_of, read
from .recording import (
    Reader,
    RecordedMessage,
    Recording,
    as_list,
    as_object,
    collect_notes,
    make_usage,
    most_common_model,
    to_milliseconds,
)
from .source import Sample, Source

__all__ = ["FORMAT", "READER", "RESPONSES", "Items", "is_item"]

FORMAT = NAME

_CONTEXT = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "# AGENTS.md",
)
"""Beginnings of user messages that the program wrote itself. They begin no turn of the person."""


def is_item(value: Any) -> bool:
    """Return whether this is a Responses item that identifies the format."""
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
    """Collects items with `add`. After `end`, `done` holds the messages; items without a message are `counted`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.done: list[RecordedMessage] = []
        self.counted: Counter[str] = Counter()
        self._parts: list[Part] = []
        self._line = 0
        self._time: int | None = None
        self._usage: Usage | None = None

    def add(self, line: int, time: int | None, item: Any) -> None:
        """Add the next item."""
        with self.source.guard(line):
            self._add(line, time, item)

    def _add(self, line: int, time: int | None, item: Any) -> None:
        if not isinstance(item, dict):
            raise BadMessage("An item is not a JSON object.")
        kind = str(item.get("type") or ("message" if "role" in item else ""))
        if kind in ("compaction", "compaction_summary", "context_compaction"):
            self.end()
            self.counted["native compactions"] += 1
        elif kind == "message" and item.get("role") != "assistant":
            self._other(line, time, item)
        elif kind.endswith("_output") and "call_id" in item:
            self.end()
            self.done.append(RecordedMessage(Message("tool", (_result(item),)), line, time))
        elif kind in ("message", "reasoning") or (kind.endswith("_call") and is_of_model(item)):
            parts = parts_of([item])
            if parts and isinstance(parts[0], Reasoning) and not parts[0].text and not parts[0].encrypted:
                self.counted["other lines"] += 1  # Empty reasoning: it shows only that the model thought.
                return
            if self._usage is not None:
                self.end()
            self._line, self._time = self._line or line, self._time or time
            self._parts += parts
        else:
            self.counted["other lines"] += 1

    def say(self, line: int, time: int | None, role: Role, text: str, origin: Origin | None = None) -> None:
        """Add a text that is not an item."""
        self.end()
        self.done.append(RecordedMessage(Message(role, (Text(text),)), line, time, origin=origin))

    def bill(self, usage: Usage | None) -> None:
        """Set the usage of the open response, or of the last one, unless it has one."""
        if self._parts:
            self._usage = self._usage or usage
            return
        for place in range(len(self.done) - 1, -1, -1):
            if self.done[place].message.role == "assistant":
                if self.done[place].usage is None:
                    self.done[place] = structs.replace(self.done[place], usage=usage)
                return

    def end(self) -> None:
        """Complete the open response."""
        if self._parts:
            message = Message("assistant", tuple(self._parts))
            self.done.append(RecordedMessage(message, self._line, self._time, self._usage))
        self._parts, self._line, self._time, self._usage = [], 0, None, None

    def split(self, turns: int) -> tuple[list[RecordedMessage], list[RecordedMessage]]:
        """Split the finished messages at the beginning of the person's last `turns` turns."""
        starts = [
            place
            for place, entry in enumerate(self.done)
            if entry.message.role == "user" and not entry.message.text.startswith(_CONTEXT)
        ]
        place = starts[-turns:][0] if starts and turns > 0 else len(self.done)
        return self.done[:place], self.done[place:]

    def _other(self, line: int, time: int | None, item: dict[str, Any]) -> None:
        self.end()
        for message in read(item):
            is_context = message.role == "user" and message.text.startswith(_CONTEXT)
            origin: Origin | None = "plugin" if is_context else None
            self.done.append(RecordedMessage(message, line, time, origin=origin))


def _result(item: dict[str, Any]) -> ToolResult:
    """Return a result. Early rollouts have an object with `content` and `success` in the place of the output."""
    output, failed = item.get("output"), False
    if isinstance(output, dict) and "content" in output:
        failed = output.get("success") is False
        item = {**item, "output": output["content"]}
    if item.get("output") is None:
        item = {**item, "output": []}
    result = read(item)[0].result
    if result is None:
        raise BadMessage("An output answers no call.")
    if result.text == "aborted" or result.text.startswith("aborted by user"):
        return structs.replace(result, state="interrupted")
    return structs.replace(result, state="error") if failed else result


_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


class _Line(Struct, frozen=True):
    type: str = ""
    timestamp: Any = None
    payload: Any = None


def _recognises(sample: Sample) -> bool:
    return any(isinstance(value, dict) and value.get("type") in _TYPES and "payload" in value for value in sample.lines)


def _read(source: Source) -> Recording:
    rollout = _Rollout(source)
    for number, value in source.lines():
        if (line := source.convert(number, value, _Line)) is not None:
            rollout.add(number, line)
    return rollout.recording()


class _Rollout:
    """State while reading one rollout."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.items = Items(source)
        self.counted: Counter[str] = Counter()
        self.name = ""
        self.models: list[str] = []
        self.tools: tuple[dict[str, Any], ...] = ()
        self.total: Any = None
        self.branches: list[Recording] = []

    def add(self, number: int, line: _Line) -> None:
        time = to_milliseconds(line.timestamp)
        payload = as_object(line.payload)
        match line.type, payload.get("type"):
            case "response_item", _:
                self.items.add(number, time, payload)
            case "session_meta", _ if not self.name:
                self._begin(number, time, payload)
            case "turn_context", _:
                self.models.append(str(payload.get("model") or ""))
                self.counted["other lines"] += 1
            case "event_msg", "token_count":
                self._bill(payload.get("info"))
                self.counted["other lines"] += 1
            case "event_msg", "thread_rolled_back":
                self._roll_back(payload.get("num_turns"))
            case "compacted", _:
                self.counted["native compactions"] += 1
                self.counted["replaced items"] += len(as_list(payload.get("replacement_history")))
                self.items.end()
                if isinstance(summary := payload.get("message"), str) and summary:
                    self.items.say(number, time, "user", summary, "summary")
            case _:
                self.counted["other lines"] += 1

    def _begin(self, number: int, time: int | None, meta: dict[str, Any]) -> None:
        self.name = str(meta.get("id") or "session")
        instructions = meta.get("base_instructions") or meta.get("instructions")
        text = instructions.get("text") if isinstance(instructions, dict) else instructions
        if isinstance(text, str) and text:
            self.items.say(number, time, "system", text)
        self.tools = tuple(tool for tool in as_list(meta.get("dynamic_tools")) if isinstance(tool, dict))

    def _bill(self, info: object) -> None:
        """Record the usage of a call. The event repeats at each turn; its running total identifies repeats."""
        last, total = as_object(info).get("last_token_usage"), as_object(info).get("total_token_usage")
        if isinstance(last, dict) and total != self.total:
            self.total = total
            self.items.bill(
                make_usage(
                    whole=last.get("input_tokens"),
                    cache_read=last.get("cached_input_tokens"),
                    output=last.get("output_tokens"),
                    reasoning=last.get("reasoning_output_tokens"),
                )
            )

    def _roll_back(self, turns: object) -> None:
        """Move the person's last `turns` turns to a branch."""
        self.items.end()
        kept, rewound = self.items.split(turns if isinstance(turns, int) else 1)
        self.items.done = kept
        self.counted["rewound lines"] += len(rewound)
        if rewound:
            notes = collect_notes(rewound, {})
            self.branches.append(Recording(self.source.path, READER.name, tuple(rewound), notes=notes))

    def recording(self) -> Recording:
        self.items.end()
        messages = tuple(self.items.done)
        return Recording(
            self.source.path,
            READER.name,
            messages,
            most_common_model(self.models),
            self.tools,
            self.name,
            collect_notes(messages, self.counted + self.items.counted),
            provider=NAME,
            branches=tuple(self.branches),
        )


READER = Reader("codex", _recognises, _read)


def _recognises_items(sample: Sample) -> bool:
    values = list(sample.lines) or [sample.document]
    return any(is_item(item) for value in values for item in _items_of(value) or [])


def _items_of(value: Any) -> list[Any] | None:
    """Return the items in a value: a list of items, a request body, or an item. None for anything else."""
    if isinstance(value, dict) and isinstance(items := value.get("input"), list):
        return items
    if isinstance(value, dict) and ("type" in value or "role" in value):
        return [value]
    return value if isinstance(value, list) else None


def _read_items(source: Source) -> Recording:
    """Read a list of items, a request body (`{"input": [...], "instructions": ...}`), or JSON Lines of items.

    Early rollouts were such lines too, after one with `id`, `timestamp` and `instructions`.
    """
    items = Items(source)
    model, name = "", ""
    tools: tuple[Any, ...] = ()
    for number, value in source.values():
        items_found = _items_of(value)
        if isinstance(value, dict) and "type" not in value and "role" not in value:
            prompt = value.get("instructions")
            if isinstance(prompt, str) and prompt:
                items.say(number, to_milliseconds(value.get("timestamp")), "system", prompt)
            elif items_found is None:
                items.counted["other lines"] += 1
            model, name = str(value.get("model") or model), str(value.get("id") or name)
            tools = tuple(value["tools"]) if isinstance(value.get("tools"), list) else tools
        for item in items_found or []:
            items.add(number, None, item)
    items.end()
    messages = tuple(items.done)
    notes = collect_notes(messages, items.counted)
    return Recording(source.path, RESPONSES.name, messages, model, tools, name, notes, provider=NAME)


RESPONSES = Reader("openai_responses", _recognises_items, _read_items)
