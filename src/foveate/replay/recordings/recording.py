"""Values that readers return: a recorded conversation and its messages.

A recording is read once and never changed. It holds the conversation that the model saw last, complete and in order.
Everything else in the file is kept apart: side chains (conversations of sub-agents), branches (messages that a rewind
left behind) and counts of lines without a message. No readable content is dropped silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    "RecordedMessage",
    "Recording",
    "as_list",
    "as_object",
    "collect_notes",
    "make_call",
    "make_usage",
    "most_common_model",
    "to_json",
    "to_milliseconds",
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
"""The kinds of notes, in the order of display, each with its singular.

Interrupted calls were stopped by a person or never answered. Replaced items stand in the record of a native compaction,
in place of the history. Made-up ids belong to formats that record calls without ids. Other lines carry no message
(settings, progress, snapshots, titles).
"""


class RecordedMessage(Struct, frozen=True):
    """One recorded message."""

    message: Message
    """The message."""
    line: int
    """The first line of the file with this message, from 1; 0 if the file is one JSON document."""
    time: int | None = None
    """Milliseconds since 1970."""
    usage: Usage | None = None
    """Of a reply: the billed usage, if recorded."""
    id: str = ""
    """The recording's id of the message, if it has one."""
    origin: Origin | None = None
    """The source, if the role does not show it: `summary` of a native compaction, `plugin` of the agent program."""
    stop: Stop | None = None
    """Of a reply: why it ended, if recorded."""


class Recording(Struct, frozen=True):
    """One recorded conversation."""

    path: str
    """The file; `FILE#1` or `FILE#NAME` for one of several conversations in it."""
    format: str
    """The reader's name (see `READERS`)."""
    messages: tuple[RecordedMessage, ...]
    """System prompts, if recorded, are messages of the role `system`."""
    model: str = ""
    """The model of most replies."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Tool definitions as recorded, in the shape of their format."""
    name: str = ""
    """The session's id, or on a side chain the sub-agent's."""
    notes: Mapping[str, int] = {}
    """Counts by kind (see KINDS), without zeros."""
    side_chains: tuple[Recording, ...] = ()
    """Conversations of sub-agents, in the order they began."""
    provider: str = ""
    """The format of the provider in whose form the messages are recorded, such as `gemini`; "" for any other form."""
    branches: tuple[Recording, ...] = ()
    """Messages that rewinds left behind, in order. A branch holds only the messages after its fork point."""

    def notes_text(self) -> str:
        """Return the notes as text: `1 native compaction, 30 other lines`; empty if there are none."""
        return ", ".join(
            f"{count:,} {KINDS.get(kind, kind) if count == 1 else kind}" for kind, count in self.notes.items()
        )


class Reader(Struct, frozen=True):
    """One recorded format: a name and two functions."""

    name: str
    recognises: Callable[[Sample], bool]
    """Returns whether the beginning of a file looks like this format. Never raises."""
    read: Callable[[Source], Recording | Sequence[Recording]]
    """Returns the recording in a source, or all of them. The source decides whether damage stops the reading."""


def collect_notes(messages: Iterable[RecordedMessage], counted: Mapping[str, int]) -> dict[str, int]:
    """Return the notes of a recording: the counts of its messages plus `counted`, the reader's counts."""
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


def most_common_model(models: Iterable[str]) -> str:
    """Return the model named most often, ignoring empty names."""
    named = Counter(model for model in models if model)
    return named.most_common(1)[0][0] if named else ""


def to_milliseconds(value: object) -> int | None:
    """Return a recorded time in milliseconds since 1970.

    Accepts an ISO date and time (UTC if it has no zone), seconds, or milliseconds. Returns None for a missing or
    invalid time, because the message is still valid.
    """
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value)
            return round((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000)
        except (ValueError, OverflowError):  # Not a date, or one that its zone moves outside the calendar.
            return None
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
        # 100 billion seconds after 1970 is the year 5138; 100 billion milliseconds is 1973.
        return round(value if abs(value) >= 100e9 else value * 1000)
    return None


def make_usage(
    *,
    input: object = None,
    whole: object = None,
    cache_read: object = None,
    cache_write: object = None,
    output: object,
    reasoning: object = None,
) -> Usage | None:
    """Return the usage of a call from recorded figures, or None if all are missing.

    An invalid figure counts as unknown.

    A format whose input figure includes cached tokens passes it as `whole` instead of `input`.
    """

    def count(figure: object) -> int | None:
        if isinstance(figure, int) and not isinstance(figure, bool) and 0 <= figure < 2**53:
            return figure
        return None

    cached = count(cache_read)
    uncached = count(input)
    if (everything := count(whole)) is not None:
        uncached = max(0, everything - (cached or 0))
    usage = Usage(uncached, cached, count(cache_write), count(output), count(reasoning))
    return usage if usage != Usage() else None


def to_json(value: object) -> str:
    """Return a JSON value as compact text. Raises BadMessage if it is nested too deeply or is not JSON."""
    return to_text(value, "A recorded value")


def as_object(value: object) -> dict[str, Any]:
    """Return an object, or an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a list, or an empty one for any other value."""
    return value if isinstance(value, list) else []


def make_call(call_id: str, name: str, arguments: object) -> ToolCall:
    """Return a call whose arguments are recorded as a JSON value or as JSON text."""
    return ToolCall(call_id, name, arguments if isinstance(arguments, str) else to_json(arguments))
