"""What a reader of recorded conversations returns: the messages, and what was kept apart from them.

A recording is read once and never changed. It holds the conversation that the model last saw, in full and in order,
plus whatever else its file says: side chains (conversations of sub-agents), branches (what a rewind left behind) and,
counted by kind, everything that is no message. Nothing readable is dropped in silence. This file knows no file format
and opens no file: readers are one small file each, beside it, and `source.py` is what they read from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from ...core.messages import Message, ToolCall
from ...core.stamps import Origin, Stop, Usage
from ...formats.json import to_text
from .source import Sample, Source

__all__ = [
    "KINDS",
    "Reader",
    "Recorded",
    "Recording",
    "billed",
    "call_of",
    "compact",
    "fields_of",
    "items_of",
    "milliseconds",
    "notes_about",
    "reply_model",
]

KINDS = {
    "side-chain lines": "side-chain line",
    "rewound lines": "rewound line",
    "native compactions": "native compaction",
    "natively cleared results": "natively cleared result",
    "replaced items": "replaced item",
    "interrupted calls": "interrupted call",
    "results without a call": "result without a call",
    "reused ids": "reused id",
    "images": "image",
    "failed replies": "failed reply",
    "repeated lines": "repeated line",
    "made-up ids": "made-up id",
    "damaged lines": "damaged line",
    "other lines": "other line",
}
"""The kinds of notes, in the order they are told, each with its singular.

Interrupted calls were stopped by somebody or never answered; replaced items are what a native compaction put in place
of the history; made-up ids stand where a format records calls without ids; other lines carry no message (settings,
progress, snapshots, titles).
"""


class Recorded(Struct, frozen=True):
    """One message as it was recorded."""

    message: Message
    line: int
    """From 1: the (first) line of the file that says it. 0 where the file is one JSON document."""
    time: int | None = None
    """Milliseconds since 1970."""
    usage: Usage | None = None
    """On a reply: what its model call was billed, where that was recorded."""
    id: str = ""
    """The recording's own name for the message, where it has one."""
    origin: Origin | None = None
    """Where it came from, if the role does not say it: `summary` of a native compaction, `plugin` of the harness."""
    stop: Stop | None = None
    """On a reply: why it ended, where that was recorded."""


class Recording(Struct, frozen=True):
    """One recorded conversation."""

    path: str
    format: str
    """The reader's name: see `sniff.READERS`."""
    messages: tuple[Recorded, ...]
    """System prompts, where they were recorded, are messages of the role `system`."""
    model: str = ""
    """The model that gave most of the replies."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Tool definitions as recorded, in the shape of their format."""
    name: str = ""
    """The session's id; on a side chain, the sub-agent's."""
    notes: Mapping[str, int] = {}
    """How often each of KINDS occurs, those that do."""
    side_chains: tuple[Recording, ...] = ()
    """Conversations of sub-agents, in the order they began."""
    branches: tuple[Recording, ...] = ()
    """What rewinds left behind, in order. A branch holds what came after its fork point only."""

    def told(self) -> str:
        """The notes as one sentence: `1 native compaction, 30 other lines`. Empty if there is nothing to tell."""
        return ", ".join(
            f"{count:,} {KINDS.get(kind, kind) if count == 1 else kind}" for kind, count in self.notes.items()
        )


class Reader(Struct, frozen=True):
    """One way of reading: adding a format is one file with such a value, and one line in the table of `sniff.py`."""

    name: str
    recognises: Callable[[Sample], bool]
    """Whether the beginning of a file looks like this format. Never raises; the first reader in the table that says so
    reads."""
    read: Callable[[Source], Recording]
    """The recording in a source. Damage goes through the source, which stops or counts as its caller wished."""


def notes_about(messages: Iterable[Recorded], counted: Mapping[str, int]) -> dict[str, int]:
    """The notes of a recording: what its messages show by themselves, added to what the reader `counted`; kinds as in
    KINDS."""
    tally = Counter(counted)
    waiting: Counter[str] = Counter()
    seen: set[str] = set()
    for entry in messages:
        tally["images"] += sum(media.is_image for media in entry.message.media())
        for call in entry.message.calls:
            tally["reused ids"] += call.call_id in seen
            seen.add(call.call_id)
            waiting[call.call_id] += 1
        if (result := entry.message.result) is not None:
            tally["interrupted calls"] += result.state == "interrupted"
            if waiting[result.call_id]:
                waiting[result.call_id] -= 1
            else:
                tally["results without a call"] += 1
    tally["interrupted calls"] += waiting.total()
    return {kind: tally[kind] for kind in KINDS if tally[kind]}


def reply_model(models: Iterable[str]) -> str:
    """The model named most often, empty names apart."""
    named = Counter(model for model in models if model)
    return named.most_common(1)[0][0] if named else ""


def milliseconds(moment: object) -> int | None:
    """A recorded moment in milliseconds since 1970: an ISO date and time (UTC if it names no zone), or seconds, or
    milliseconds.

    None where it is missing or cannot be understood: a wrong time is no reason to refuse a message.
    """
    if isinstance(moment, str):
        try:
            read = datetime.fromisoformat(moment)
            return round((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp() * 1000)
        except (ValueError, OverflowError):  # No date; or one that its zone pushes out of the calendar.
            return None
    if isinstance(moment, int | float) and not isinstance(moment, bool) and abs(moment) < 1e15:
        # 100 billion seconds after 1970 is the year 5138; 100 billion milliseconds is 1973.
        return round(moment if abs(moment) >= 100e9 else moment * 1000)
    return None


def billed(
    *,
    input: object = None,
    whole: object = None,
    cache_read: object = None,
    cache_write: object = None,
    output: object = None,
    reasoning: object = None,
) -> Usage | None:
    """What a call was billed, from figures as recorded; what is no sensible number is unknown. None if all of it is.

    A format whose input figure includes what was cached hands it in as `whole`, in place of `input`.
    """

    def count(figure: object) -> int | None:
        if isinstance(figure, int) and not isinstance(figure, bool) and 0 <= figure < 2**53:
            return figure
        return None

    cached = count(cache_read)
    fresh = count(input)
    if (everything := count(whole)) is not None:
        fresh = max(0, everything - (cached or 0))
    usage = Usage(fresh, cached, count(cache_write), count(output), count(reasoning))
    return usage if usage != Usage() else None


def compact(value: object) -> str:
    """A JSON value as compact text. Raises BadMessage where it is nested too deeply or is no JSON."""
    return to_text(value, "A recorded value")


def fields_of(value: object) -> dict[str, Any]:
    """The object, or an empty one where the recording has anything else in its place."""
    return value if isinstance(value, dict) else {}


def items_of(value: object) -> list[Any]:
    """The list, or an empty one where the recording has anything else in its place."""
    return value if isinstance(value, list) else []


def call_of(call_id: str, name: str, arguments: object) -> ToolCall:
    """A call whose arguments were recorded as a JSON value, or as JSON text."""
    return ToolCall(call_id, name, arguments if isinstance(arguments, str) else compact(arguments))
