"""Reads Codex rollouts, and plain lists of OpenAI Responses items, which is what a rollout's messages are.

A rollout is JSON Lines of `{timestamp, type, payload}`. The conversation is its `response_item` lines; the base
instructions in `session_meta` are its system prompt; `token_count` events tell what the call before them was billed.
Items carry no name of their response: what comes between two tool outputs, user messages or token counts is one
response, and one message here.

Hosted calls (a web search) carry no call id and no output item: the provider ran them. They stay in their message as
opaque blocks. A rollback (`thread_rolled_back`) leaves a branch; a native compaction (`compacted`) is counted, with
what it put in place of the history, and its summary, where it is readable, is kept as a marked message.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct

from .recording import Reader, Recording, billed, fields_of, items_of, milliseconds, notes_about, reply_model
from .responses_items import Items, is_item
from .source import Sample, Source

__all__ = ["READER", "RESPONSES"]

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
        if (line := source.shaped(number, value, _Line)) is not None:
            rollout.add(number, line)
    return rollout.recording()


class _Rollout:
    """What has been read so far of one rollout."""

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
        time = milliseconds(line.timestamp)
        payload = fields_of(line.payload)
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
                self.counted["replaced items"] += len(items_of(payload.get("replacement_history")))
                self.items.end()
                if isinstance(summary := payload.get("message"), str) and summary:
                    self.items.say(number, time, "user", summary, "summary")
            case _:
                self.counted["other lines"] += 1

    def _begin(self, number: int, time: int | None, meta: dict[str, Any]) -> None:
        self.name = str(meta.get("id") or "session")
        told = meta.get("base_instructions") or meta.get("instructions")
        text = told.get("text") if isinstance(told, dict) else told
        if isinstance(text, str) and text:
            self.items.say(number, time, "system", text)
        self.tools = tuple(tool for tool in items_of(meta.get("dynamic_tools")) if isinstance(tool, dict))

    def _bill(self, info: object) -> None:
        """Note what a call was billed. The event is repeated at each turn; its running total tells repeats apart."""
        last, total = fields_of(info).get("last_token_usage"), fields_of(info).get("total_token_usage")
        if isinstance(last, dict) and total != self.total:
            self.total = total
            self.items.bill(
                billed(
                    whole=last.get("input_tokens"),
                    cache_read=last.get("cached_input_tokens"),
                    output=last.get("output_tokens"),
                    reasoning=last.get("reasoning_output_tokens"),
                )
            )

    def _roll_back(self, turns: object) -> None:
        """The person went back by so many of their turns: what they left behind becomes a branch."""
        self.items.end()
        kept, left = self.items.split(turns if isinstance(turns, int) else 1)
        self.items.done = kept
        self.counted["rewound lines"] += len(left)
        if left:
            self.branches.append(Recording(self.source.path, READER.name, tuple(left), notes=notes_about(left, {})))

    def recording(self) -> Recording:
        self.items.end()
        messages = tuple(self.items.done)
        return Recording(
            self.source.path,
            READER.name,
            messages,
            reply_model(self.models),
            self.tools,
            self.name,
            notes_about(messages, self.counted + self.items.counted),
            branches=tuple(self.branches),
        )


READER = Reader("codex", _recognises, _read)


# ----------------------------------------------------------------------------------------- Responses items on their own


def _recognises_items(sample: Sample) -> bool:
    values = list(sample.lines) or [sample.document]
    return any(is_item(item) for value in values for item in _items_of(value) or [])


def _items_of(value: Any) -> list[Any] | None:
    """The items in a value: a list of items, a request body, or an item; None if it is none of these."""
    if isinstance(value, dict) and isinstance(items := value.get("input"), list):
        return items
    if isinstance(value, dict) and ("type" in value or "role" in value):
        return [value]
    return value if isinstance(value, list) else None


def _read_items(source: Source) -> Recording:
    """A list of items, a request body (`{"input": [...], "instructions": ...}`), or JSON Lines of items.

    Early rollouts were such lines too, after one with `id`, `timestamp` and `instructions`.
    """
    items = Items(source)
    model, name = "", ""
    tools: tuple[Any, ...] = ()
    for number, value in source.values():
        found = _items_of(value)
        if isinstance(value, dict) and "type" not in value and "role" not in value:
            prompt = value.get("instructions")
            if isinstance(prompt, str) and prompt:
                items.say(number, milliseconds(value.get("timestamp")), "system", prompt)
            elif found is None:
                items.counted["other lines"] += 1
            model, name = str(value.get("model") or model), str(value.get("id") or name)
            tools = tuple(value["tools"]) if isinstance(value.get("tools"), list) else tools
        for item in found or []:
            items.add(number, None, item)
    items.end()
    messages = tuple(items.done)
    return Recording(source.path, RESPONSES.name, messages, model, tools, name, notes_about(messages, items.counted))


RESPONSES = Reader("openai_responses", _recognises_items, _read_items)
