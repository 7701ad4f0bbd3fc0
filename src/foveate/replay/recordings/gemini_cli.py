"""Reader for sessions of Gemini CLI: one JSON document, or JSON Lines that append to it.

A reply holds its calls together with their results in `toolCalls`; newer versions may also record the results as a
user's message, which then counts. In JSON Lines a message with a known id replaces the earlier one, `$rewindTo` takes
back a message and all after it, and `$set` with `messages` replaces the list: a native compaction, of which only the
new messages are added. Source: `packages/core/src/services/chatRecordingService.ts` of google-gemini/gemini-cli, 2026.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, convert

from ...core.messages import Message
from ...core.stamps import Origin, Usage
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

__all__ = ["READER"]


class _Record(Struct, frozen=True, rename="camel"):
    """One recorded message."""

    id: str
    type: str = ""
    timestamp: Any = None
    content: Any = None
    tool_calls: list[dict[str, Any]] | None = None
    thoughts: Any = None
    tokens: Any = None
    model: str | None = None


class _Entry(Struct, frozen=True):
    line: int
    record: _Record
    is_summary: bool = False


def _recognises(sample: Sample) -> bool:
    values = list(sample.lines) or [sample.document]
    return any(isinstance(value, dict) and "sessionId" in value and "projectHash" in value for value in values)


def _read(source: Source) -> Recording:
    chat = _Chat(source)
    for number, value in source.values():
        chat.add(number, as_object(value))
    side_chains = tuple(
        found
        for path in _sub_agent_files(source, chat.name)
        if (found := _read(Source(path, lenient=source.lenient))).messages
    )
    chat.counted["side-chain lines"] += sum(len(chain.messages) for chain in side_chains)
    return chat.recording(side_chains)


def _sub_agent_files(source: Source, name: str) -> list[Path]:
    """Return the files of sub-agents, which are in a folder named like the session."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:  # The folder of other sessions holds no sub-agents.
        return []
    try:
        files = sorted((Path(source.path).parent / name).glob("*.jsonl"))
        return [file for file in files if file.stat().st_size and file != Path(source.path)]
    except (OSError, ValueError):  # No folder can have this name.
        return []


READER = Reader("gemini_cli", _recognises, _read)


class _Chat:
    """State while reading one session."""

    def __init__(self, source: Source) -> None:
        self.name = ""
        self.counted: Counter[str] = Counter()
        self._source = source
        self._entries: dict[str, _Entry] = {}
        self._rewound: list[list[_Entry]] = []

    def add(self, number: int, value: Mapping[str, Any]) -> None:
        """Take the next line, or the whole document."""
        name = value.get("sessionId")
        self.name = self.name or (name if isinstance(name, str) else "")
        if isinstance(value.get("$rewindTo"), str):
            self._rewind(value["$rewindTo"])
        elif isinstance(update := value.get("$set"), dict):
            self.counted["other lines"] += 1
            if isinstance(update.get("messages"), list):
                self._replace(number, update["messages"])
        elif isinstance(value.get("messages"), list):
            for place, item in enumerate(value["messages"], 1):
                self._put(number, item, f"message {place}")
        elif "type" in value:
            self._put(number, value)
        else:
            self.counted["other lines"] += 1

    def _put(self, number: int, value: Any, what: str = "") -> None:
        if (record := self._record(number, value, what)) is not None:
            known = self._entries.get(record.id)
            self._entries[record.id] = _Entry(known.line if known else number, record)

    def _record(self, number: int, value: Any, what: str = "") -> _Record | None:
        with self._source.guard(number, what):
            return convert(value, _Record)
        return None

    def _rewind(self, name: str) -> None:
        """Move a message and all after it to a branch; all messages if it is unknown."""
        names = list(self._entries)
        start = names.index(name) if name in names else 0
        if left := [self._entries.pop(each) for each in names[start:]]:
            self._rewound.append(left)

    def _replace(self, number: int, values: list[Any]) -> None:
        """Add the new messages of a replaced list, each before the known message that follows it there."""
        records = [record for value in values if (record := self._record(number, value)) is not None]
        is_compaction = not self._entries.keys() <= {record.id for record in records}
        self.counted["native compactions"] += is_compaction
        merged: dict[str, _Entry] = {}
        new: list[_Record] = []
        before: dict[str, list[_Record]] = {}
        for record in records:
            if record.id in self._entries:
                before[record.id], new = new, []
            else:
                new.append(record)
        for name, entry in self._entries.items():
            for record in before.get(name, ()):
                merged[record.id] = _Entry(number, record, is_compaction and record.type == "user")
            merged[name] = entry
        for record in new:
            merged[record.id] = _Entry(number, record, is_compaction and record.type == "user")
        self._entries = merged

    def recording(self, side_chains: tuple[Recording, ...]) -> Recording:
        """Return everything added so far."""
        messages = tuple(self._recorded(list(self._entries.values()), self.counted))
        branches = []
        for entries in self._rewound:
            self.counted["rewound lines"] += len(entries)
            if left := tuple(self._recorded(entries, Counter())):
                path, name = self._source.path, READER.name
                branches.append(Recording(path, name, left, notes=collect_notes(left, {}), provider="gemini"))
        return Recording(
            self._source.path,
            READER.name,
            messages,
            most_common_model(entry.record.model or "" for entry in self._entries.values()),
            name=self.name,
            notes=collect_notes(messages, self.counted),
            side_chains=side_chains,
            provider="gemini",
            branches=tuple(branches),
        )

    def _recorded(self, entries: list[_Entry], counted: Counter[str]) -> Iterator[RecordedMessage]:
        answered = {name for entry in entries if entry.record.type == "user" for name in _answers(entry.record.content)}
        for entry in entries:
            record = entry.record
            if record.type not in ("user", "gemini"):
                counted["other lines"] += 1
                continue
            time, usage = to_milliseconds(record.timestamp), _usage(record.tokens)
            origin: Origin | None = "summary" if entry.is_summary else None
            with self._source.guard(entry.line):
                for message in _messages(record, answered):
                    is_reply = message.role == "assistant"
                    yield RecordedMessage(
                        message, entry.line, time, usage if is_reply else None, record.id if is_reply else "", origin
                    )


def _messages(record: _Record, answered: set[str]) -> Iterator[Message]:
    """Yield the message of a record, then the results of its calls that no other message holds."""
    from ...formats.gemini import Gemini

    parts = _parts(record.content)
    if record.type == "user":
        yield from Gemini().parse({"role": "user", "parts": parts}) if parts else ()
        return
    calls = record.tool_calls or []
    if not any("thought" in part for part in parts):
        parts = [*_thoughts(record.thoughts), *parts]
    named = [as_object(part.get("functionCall")).get("id") for part in parts]  # Not always texts.
    for call in calls:
        if call.get("id") not in named:
            fields = {"id": call.get("id"), "name": call.get("name"), "args": as_object(call.get("args"))}
            parts.append({"functionCall": fields})
    if parts:
        yield from Gemini().parse({"role": "model", "parts": parts})
    unanswered = [call for call in calls if not (isinstance(id := call.get("id"), str) and id in answered)]
    results = [part for call in unanswered for part in _result(call)]
    if results:
        yield from Gemini().parse({"role": "user", "parts": results})


def _parts(content: Any) -> list[dict[str, Any]]:
    """Return the parts of a content: a text, a part, or a list of both."""
    found = content if isinstance(content, list) else [content]
    parts = [{"text": part} if isinstance(part, str) else part for part in found if part]
    return [part for part in parts if isinstance(part, dict) and part.get("text") != ""]


def _thoughts(thoughts: Any) -> Iterator[dict[str, Any]]:
    for thought in map(as_object, as_list(thoughts)):
        text = "\n".join(str(thought[key]) for key in ("subject", "description") if thought.get(key))
        if text:
            yield {"text": text, "thought": True}


def _answers(content: Any) -> Iterator[str]:
    for part in _parts(content):
        if isinstance(name := as_object(part.get("functionResponse")).get("id"), str):
            yield name


def _result(call: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts with the result of a call; none if it was never answered."""
    parts = _parts(call.get("result"))
    if parts and not any("functionResponse" in part for part in parts):
        text = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
        response = {"id": call.get("id"), "name": call.get("name"), "response": {"output": text}}
        return [{"functionResponse": response}]
    return parts


def _usage(tokens: Any) -> Usage | None:
    """Return the usage. Gemini counts cached tokens in the input, and thoughts outside of the output."""
    figures = as_object(tokens)
    output, thoughts = figures.get("output"), figures.get("thoughts")
    if isinstance(output, int) and isinstance(thoughts, int):
        output += thoughts
    return make_usage(whole=figures.get("input"), cache_read=figures.get("cached"), output=output, reasoning=thoughts)
