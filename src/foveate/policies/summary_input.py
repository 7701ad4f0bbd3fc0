"""Input of a summarizer that fits its window, and the length and the role of a summary.

The messages are legal on their own, since whole units are left out. Reasoning is left out: only its own conversation
may show it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, get_args

from msgspec.structs import replace

from ..core.edits import SummaryRole
from ..core.messages import Content, Media, Message, Part, Reasoning, Text, ToolCall, ToolResult, user
from ..core.readable import describe_media, with_marks
from ..core.results import native_steps
from ..core.sizes import tokens_of
from ..core.summaries import SummaryRequest
from ..core.units import cut_points
from ..core.view import Entry
from ..digest.history import digest_messages, note_left_out
from ..errors import BadSetting
from .placeholders import cut_text, harmless_line, shrink_arguments

__all__ = [
    "SummaryInput",
    "all_messages",
    "build_summary_input",
    "check_role",
    "summary_tokens_max",
    "with_digest_of_left_out",
]

_CUTS = (
    (0, False),  # No cut.
    *((keep, False) for keep in (32_000, 16_000, 8_000, 4_000, 2_000)),
    *((keep, True) for keep in (8_000, 4_000, 2_000, 1_000, 500)),
)
"""Characters that are kept of long results, and whether this applies to other texts too. Tried in this order."""
_KEPT_LEAST = min(keep for keep, _ in _CUTS if keep)
_FIRST_CUTS = (0, 5, 8)
"""Index of the first cut to try, by level."""
_DIGEST_SHARE = 4
"""The digest of the oldest messages, if they are left out, takes at most one part in so many of the room."""


class SummaryInput(NamedTuple):
    """The messages that a summary covers, as summarizers read them."""

    messages: tuple[Message, ...]
    """The messages for a model. Empty if not even the newest unit fits its window."""
    tokens: int
    """Their size by the conversation's counter."""
    covered: tuple[Message, ...] = ()
    """All messages, whole, for a summarizer without a model; () if `messages` are these."""


def build_summary_input(entries: Sequence[Entry], room: int, *, level: int = 0) -> SummaryInput:
    """Return the messages for a summarizer, of at most `room` tokens by the conversation's counter.

    Steps of actions are shown as calls and tool results. If needed, media become their names and long results are
    cut, then other texts and arguments; finally the oldest units are left out, with a note, and room for their digest
    (`with_digest_of_left_out`). `level`: 0 to 2, the first cut to try; higher for a further attempt.
    """
    entries = native_steps(entries)
    sizes = [tokens_of(entry.message) for entry in entries]
    scale = sum([entry.tokens for entry in entries]) / max(1, sum(sizes))
    longest = [_longest_text(entry.message) for entry in entries]
    with_media = frozenset([index for index, entry in enumerate(entries) if _has_media(entry.message)])
    # Others do not change by any cut.
    may_change = [index for index, length in enumerate(longest) if length > _KEPT_LEAST or index in with_media]
    messages = [_cut_message(entry, 0, False) for entry in entries]
    sizes = [
        size if message is entry.message else tokens_of(message)
        for size, message, entry in zip(sizes, messages, entries, strict=True)
    ]
    whole = tuple([message for message in messages if message.parts])
    for keep, cuts_all in _CUTS[_FIRST_CUTS[min(level, len(_FIRST_CUTS) - 1)] :]:
        for index in may_change if keep else ():
            if longest[index] > keep or index in with_media:
                messages[index] = _cut_message(entries[index], keep, cuts_all)
                sizes[index] = tokens_of(messages[index])
        with_media = frozenset() if keep else with_media
        size = scale * sum(sizes)
        if size <= room:
            read = tuple([message for message in messages if message.parts])
            return SummaryInput(read, int(size), whole if keep else ())
    newest, tokens = _newest_units(messages, sizes, cut_points(entries), room, scale)
    return SummaryInput(newest, tokens, whole)


def with_digest_of_left_out(request: SummaryRequest) -> SummaryRequest:
    """Return the request with a digest of its oldest messages, if they are left out.

    It is called for each summary by a model, not for each plan: others read all messages, and a plan that waits for a
    summary asks for it again.
    """
    count = len(request.covered) - len(request.messages) + 1
    if count < 1 or request.messages[:1] != (_left_out_note(count),):
        return request
    newest = request.messages[1:]
    size = 4 * sum(map(tokens_of, newest))  # In characters; they have the rest of the room.
    room = min(request.target, size // (_DIGEST_SHARE - 1))
    oldest = request.covered[:count]
    return replace(request, messages=(_left_out_note(count, digest_messages(oldest, room)), *newest))


def all_messages(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """Return the messages of entries whole, for a summarizer without a model."""
    messages = [_cut_message(entry, 0, False) for entry in native_steps(entries)]
    return tuple([message for message in messages if message.parts])


def summary_tokens_max(usable: int) -> int:
    """Return the greatest length of a summary, in tokens, for a window with this number of usable tokens.

    It is 2,000 tokens, or a fortieth of a larger window: 4,500 tokens if the window has 200,000. It is at most a
    quarter of a small window, and 8,000 in any, which is as much as a model writes in one answer.
    """
    return max(1, min(usable // 4, max(2_000, usable // 40), 8_000))


def check_role(mechanism: str, role: object) -> None:
    """Raise BadSetting if no summary can have this role."""
    if role not in get_args(SummaryRole):
        raise BadSetting(f"role of {mechanism} is {role!r:.40}. Set it to one of {', '.join(get_args(SummaryRole))}.")


def _has_media(message: Message) -> bool:
    """Return whether a message has media. This runs for each message of a long history: a generator takes twice as
    long.
    """
    for part in message.parts:
        if isinstance(part, Media):
            return True
        if isinstance(part, ToolResult) and [nested for nested in part.content if isinstance(nested, Media)]:
            return True
    return False


def _longest_text(message: Message) -> int:
    """Return the length of the longest text or arguments in a message, which a cut may shorten."""
    lengths = [0]
    for part in message.parts:
        for content in part.content if isinstance(part, ToolResult) else (part,):
            match content:
                case Text(text=text) | ToolCall(arguments=text):
                    lengths.append(len(text))
                case _:
                    pass
    return max(lengths)


def _newest_units(
    messages: Sequence[Message], tokens: Sequence[int], points: Sequence[int], room: int, scale: float
) -> tuple[tuple[Message, ...], int]:
    """Return the newest units that fit together with a digest of the others. A note with their number comes first."""
    sizes = [0.0, *accumulate(scale * size for size in tokens)]
    note_size = scale * tokens_of(_left_out_note(len(messages))) + room / _DIGEST_SHARE
    for point in points:
        size = sizes[-1] - sizes[point] + note_size
        if size <= room and point < len(messages):
            note = _left_out_note(sum(1 for message in messages[:point] if message.parts))
            return (note, *(message for message in messages[point:] if message.parts)), int(size)
    return (), 0


def _left_out_note(count: int, digest: str = "") -> Message:
    return replace(user(note_left_out(count, digest)), name="derived")


def _cut_message(entry: Entry, keep: int, cuts_all: bool) -> Message:
    message = entry.message if entry.outline is None else with_marks(entry.message, entry.outline)
    parts: list[Part] = [part for part in message.parts if not isinstance(part, Reasoning)]
    if keep:
        parts = [_cut_part(part, keep, cuts_all or entry.is_result, entry.handle) for part in parts]
    role, name = "user" if entry.kind == "summary" else message.role, _speaker(entry)
    is_same = len(parts) == len(message.parts) and all(map(operator.is_, parts, message.parts))
    if is_same and role == message.role and name == message.name:
        return message
    return replace(message, role=role, parts=tuple(parts), name=name)


def _speaker(entry: Entry) -> str:
    """Return the name of a message. Text that the user did not write gets the name of its origin."""
    if entry.kind == "summary":
        return "summary"
    if entry.message.role != "user" or entry.is_input:
        return entry.message.name
    if entry.kind == "note":
        return "tool"
    return entry.stamp.origin if entry.stamp.origin != "user" else entry.message.name


def _cut_part(part: Part, keep: int, cuts_texts: bool, handle: str) -> Part:
    match part:
        case ToolCall() if cuts_texts and len(part.arguments) > keep:
            return replace(part, arguments=shrink_arguments(part.arguments, keep, handle))
        case ToolResult():
            content = tuple([_cut_content(nested, keep, cuts_texts, handle) for nested in part.content])
            is_same = all(map(operator.is_, content, part.content))
            return part if is_same else replace(part, content=content)
        case Text() | Media():
            return _cut_content(part, keep, cuts_texts, handle)
        case _:
            return part


def _cut_content(part: Content, keep: int, cuts_texts: bool, handle: str) -> Content:
    match part:
        case Text() if cuts_texts and len(part.text) > keep:
            return replace(part, text=cut_text(part.text, keep, handle))
        case Media():
            return Text(f"[Attached {harmless_line(describe_media(part))}]")
        case _:
            return part
