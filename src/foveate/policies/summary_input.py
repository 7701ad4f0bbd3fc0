"""What a summarizer is given to read, small enough for its window, and the frame that a summary is shown in.

The messages stay legal on their own: units are left out whole. Reasoning is left out, since only the conversation it
was thought in may show it. Knows nothing of when a summary is due or whether it is good.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

from msgspec.structs import replace

from ..core.messages import Content, Media, Message, Part, Reasoning, Text, ToolCall, ToolResult, user
from ..core.rules import cut_points
from ..core.sizes import tokens_of
from ..core.view import Entry
from .placeholders import cut, shrink_arguments

__all__ = ["framed", "summary_input", "unframed"]

_STEPS = (
    (0, False),  # as it is
    *((keep, False) for keep in (32_000, 16_000, 8_000, 4_000, 2_000)),
    *((keep, True) for keep in (8_000, 4_000, 2_000, 1_000, 500)),
)
"""Characters that are kept of long results, and whether also of other texts; tried one after the other."""
_BEGIN = (0, 5, 8)
"""The first step that is tried, at each level."""
_LEFT_OUT = "[{count} earlier messages left out]"


def summary_input(entries: Sequence[Entry], room: int, *, level: int = 0) -> tuple[tuple[Message, ...], int]:
    """The messages to read, and their size in tokens as the conversation counts them: at most `room`.

    If they are too much, media are told by name and long results cut, no more than needed, then texts and arguments; at
    last the oldest units are left out behind a note. `level`: how hard to begin with, 0 to 2, for a further attempt.
    Nothing at all if nothing fits.
    """
    whole = sum(tokens_of(entry.message) for entry in entries)
    scale = sum(entry.tokens for entry in entries) / max(1, whole)
    messages: list[Message] = []
    for keep, everything in _STEPS[_BEGIN[min(level, len(_BEGIN) - 1)] :]:
        messages = [_cut(entry, keep, everything) for entry in entries]
        size = scale * sum(map(tokens_of, messages))
        if size <= room:
            return tuple(message for message in messages if message.parts), int(size)
    return _newest(messages, cut_points(entries), room, scale)


def framed(framing: str, handle: str, summary: str) -> str:
    """The text that stands for what the handle names."""
    return framing.replace("{handle}", handle).replace("{summary}", summary)


def unframed(text: str, framing: str) -> str:
    """The summary in a framed text; another text as it is."""
    found = _pattern(framing).fullmatch(text)
    return found["summary"] if found else text


@cache
def _pattern(framing: str) -> re.Pattern[str]:
    pieces = {"{summary}": "(?P<summary>.*)", "{handle}": r"m\d+(?:-m\d+)?", "{turn}": r"\d+"}
    written = re.split(r"(\{summary\}|\{handle\}|\{turn\})", framing)
    return re.compile("".join(pieces.get(piece, re.escape(piece)) for piece in written), re.DOTALL)


def _newest(
    messages: Sequence[Message], points: Sequence[int], room: int, scale: float
) -> tuple[tuple[Message, ...], int]:
    """The newest units that fit, behind a note that tells how much is missing."""
    sizes = [0.0, *accumulate(scale * tokens_of(message) for message in messages)]
    note = user(_LEFT_OUT.format(count=len(messages)))
    cost = scale * tokens_of(note)
    for point in points:
        size = sizes[-1] - sizes[point] + cost
        if size <= room and point < len(messages):
            told = replace(user(_LEFT_OUT.format(count=point)), name="derived")
            return (told, *(message for message in messages[point:] if message.parts)), int(size)
    return (), 0


def _cut(entry: Entry, keep: int, everything: bool) -> Message:
    parts: list[Part] = [part for part in entry.message.parts if not isinstance(part, Reasoning)]
    if keep:
        parts = [_part(part, keep, everything or entry.is_result, entry.handle) for part in parts]
    return replace(entry.message, parts=tuple(parts), name=_speaker(entry))


def _speaker(entry: Entry) -> str:
    """What the user did not type is named after where it came from, or a summarizer would take it for the user's."""
    if entry.message.role != "user" or entry.is_input:
        return entry.message.name
    if entry.kind == "summary":
        return "summary"
    return (
        "tool" if entry.kind == "note" else entry.stamp.origin if entry.stamp.origin != "user" else entry.message.name
    )


def _part(part: Part, keep: int, cuts: bool, handle: str) -> Part:
    match part:
        case ToolCall() if cuts and len(part.arguments) > keep:
            return replace(part, arguments=shrink_arguments(part.arguments, keep, handle))
        case ToolResult():
            return replace(part, content=tuple(_content(one, keep, cuts, handle) for one in part.content))
        case Text() | Media():
            return _content(part, keep, cuts, handle)
        case _:
            return part


def _content(part: Content, keep: int, cuts: bool, handle: str) -> Content:
    match part:
        case Text() if cuts and len(part.text) > keep:
            return replace(part, text=cut(part.text, keep, handle))
        case Media():
            return Text(f"[Attached {part.mime or 'image'}{f': {part.name}' if part.name else ''}]")
        case _:
            return part
