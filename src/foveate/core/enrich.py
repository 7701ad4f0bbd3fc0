"""One stored message of what somebody said and what plugins add to it, each part with how long it is shown.

A plugin's block may be shown now and not later, later and not now, or both. Nothing is stored twice for that: the
message holds every block once, in order, and says of each when it is shown. What is to be seen now is the message
without what comes later; what is to be kept is the message without what was for now. `policies/retain_blocks.py` turns
that into edits; nothing in here knows of views, plugins as programs, or conversations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..errors import BadMessage, BadSetting
from .messages import Content, Media, Message, Opaque, Part, Text
from .stamps import PartRetention, Stamp

__all__ = [
    "HEADER",
    "SPACING",
    "AdditionalContent",
    "EnrichedMessage",
    "display_parts",
    "enrich",
    "own_message",
    "persistent_parts",
    "retained_parts",
]

HEADER = "\n### PLUGIN {name} CONTEXT ###\n"
"""Stands before what one plugin adds."""
SPACING = "\n"
"""Stands behind each content that a plugin adds."""


class AdditionalContent(Struct, frozen=True):
    """What a plugin adds to a message, and for how long.

    Raises BadSetting where a field is of another kind than it says.
    """

    content: tuple[Text | Media, ...] | str
    """Blocks, in order; blank texts are left out. A list is taken as well, and a str as one text."""
    display_on_current_message: bool = True
    """Whether the model sees it at the coming call."""
    save_to_history: bool | int = False
    """Whether it sees it at later calls: True for good, a number for so many calls, counted by later messages with
    retention; False, 0 and less: no.
    """

    def __post_init__(self) -> None:
        if type(self.display_on_current_message) is not bool:
            raise BadSetting(f"display_on_current_message= is True or False, not {self.display_on_current_message!r}.")
        if type(self.save_to_history) not in (bool, int):  # A bool is an int; a float, even 2.0, is neither.
            raise BadSetting(f"save_to_history= is True, False or a whole number, not {self.save_to_history!r}.")
        if not isinstance(self.content, str) and not _are_blocks(self.content):
            raise BadSetting(f"content= is a text or a tuple of Text and Media, not {self.content!r:.100}.")

    @property
    def blocks(self) -> tuple[Text | Media, ...]:
        """What is to be added: the content without texts that are blank."""
        blocks = (Text(self.content),) if isinstance(self.content, str) else tuple(self.content)
        return tuple(block for block in blocks if not isinstance(block, Text) or block.text.strip())

    @property
    def calls(self) -> int | None:
        """For how many later calls it stays; None: for good."""
        if isinstance(self.save_to_history, bool):
            return None if self.save_to_history else 0
        return max(0, self.save_to_history)


class EnrichedMessage(Struct, frozen=True):
    """A message as it is stored, and how long each of its parts is shown: what `append(..., kept=...)` takes."""

    message: Message
    kept: tuple[PartRetention, ...]


def enrich(
    message: Message,
    added: Iterable[tuple[str, Iterable[AdditionalContent]]],
    *,
    header: str = HEADER,
    spacing: str = SPACING,
) -> EnrichedMessage:
    """The message with what plugins add behind its own parts: per plugin a header, then each content and a spacing.

    `added`: pairs of a plugin's name and its contents, in order. Into a tool result is added what it holds. Contents
    without a block, and those that are neither shown nor saved, are left out, and so is a header with nothing under it.
    Texts are never joined: each block keeps its own time. Raises BadMessage for what no plugin may add to: words of the
    model and system prompts.
    """
    if message.role not in ("user", "tool"):
        raise BadMessage(f"Plugins add to what users say and tools answer, not to a message of role {message.role}.")
    own = retained_parts(message)
    parts: list[Part] = list(own)
    kept = [PartRetention()] * len(own)

    def add(block: Part, shown: bool, calls: int | None, plugin: str) -> None:
        parts.append(block)
        kept.append(PartRetention(shown, calls, plugin))

    for plugin, contents in added:
        lasting = [one for one in contents if one.blocks and (one.display_on_current_message or one.calls != 0)]
        if lasting and header:
            is_shown = any(one.display_on_current_message for one in lasting)
            add(Text(header.replace("{name}", plugin)), is_shown, _longest(one.calls for one in lasting), plugin)
        for one in lasting:
            for block in (*one.blocks, *([Text(spacing)] if spacing else [])):
                add(block, one.display_on_current_message, one.calls, plugin)
    return EnrichedMessage(_with_parts(message, parts), tuple(kept))


def display_parts(message: Message, kept: Sequence[PartRetention]) -> tuple[Part, ...]:
    """What of an enriched message is shown at its first call. Raises BadMessage where a part has no Kept."""
    return tuple(part for part, one in _paired(message, kept) if one.shown)


def persistent_parts(
    message: Message, kept: Sequence[PartRetention]
) -> tuple[tuple[Part, ...], tuple[int | None, ...]]:
    """What of an enriched message is there for later calls, and the policy of each of these parts: for how many calls,
    None for good. Raises BadMessage where a part has no Kept.
    """
    lasting = [(part, one.calls) for part, one in _paired(message, kept) if one.calls != 0]
    return tuple(part for part, _ in lasting), tuple(calls for _, calls in lasting)


def retained_parts(message: Message) -> tuple[Part, ...]:
    """The parts that have a time of their own: those of the message, or of the tool result it carries."""
    result = message.result
    return result.content if result else message.parts


def own_message(message: Message, stamp: Stamp) -> Message | None:
    """The message as it was handed in, without what plugins added; None where there was none but what they added, and
    for what the conversation itself said.
    """
    if stamp.expanded:
        return None
    kept = stamp.retention.parts if stamp.retention else ()
    if not any(one.plugin for one in kept) or len(kept) != len(retained_parts(message)):
        return message
    own = [part for part, one in _paired(message, kept) if not one.plugin]
    return None if stamp.origin == "plugin" and not own else _with_parts(message, own)


def _longest(calls: Iterable[int | None]) -> int | None:
    """For good, if any is; else the largest number."""
    times = [*calls]
    return None if None in times else max((time for time in times if time is not None), default=0)


def _paired(message: Message, kept: Sequence[PartRetention]) -> list[tuple[Part, PartRetention]]:
    parts = retained_parts(message)
    if len(parts) != len(kept):
        raise BadMessage(f"There are {len(kept)} times for {len(parts)} parts; each part needs its own.")
    return list(zip(parts, kept, strict=True))


def _with_parts(message: Message, parts: Sequence[Part]) -> Message:
    result = message.result
    if result is None:
        return message if len(parts) == len(message.parts) else replace(message, parts=tuple(parts))
    if len(parts) == len(result.content):
        return message
    content: tuple[Content, ...] = tuple(part for part in parts if isinstance(part, Text | Media | Opaque))
    return replace(message, parts=(replace(result, content=content),))


def _are_blocks(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(block, Text | Media) for block in value)
