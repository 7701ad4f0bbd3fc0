"""Enriched messages: a message with the parts that plugins add and their retention.

A plugin's block may be visible now, later, or both. The message stores each block once, in order, with its retention.
The current call sees the message without blocks for later, and later calls see it without blocks for now.
`policies/block_retention.py` makes edits of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..errors import BadMessage, BadSetting
from .edits import Path
from .messages import Content, Media, Message, Opaque, Part, Text
from .stamps import PartRetention, Stamp

if TYPE_CHECKING:
    from .view import Entry

__all__ = [
    "HEADER",
    "SPACING",
    "AdditionalContent",
    "EnrichedMessage",
    "display_parts",
    "enrich",
    "has_additions",
    "hides_lasting",
    "lasting_message",
    "own_message",
    "persistent_parts",
    "retained_parts",
    "transient_paths",
]

HEADER = "\n### PLUGIN {name} CONTEXT ###\n"
"""The text before the content of one plugin."""
SPACING = "\n"
"""The text after each content of a plugin."""


_MOST_CALLS = 2**63 - 1
"""The largest number that every store can keep."""


class AdditionalContent(Struct, frozen=True):
    """Content that a plugin adds to a message, and how long it is visible.

    Raises BadSetting if a field has a wrong type.
    """

    content: tuple[Text | Media, ...] | str
    """Blocks, in order; blank texts are skipped. May also be a list, or a str for one text."""
    display_on_current_message: bool = True
    """Whether the model sees it at the coming call."""
    save_to_history: bool | int = False
    """Whether the model sees it at later calls. True: at all of them; a number: at this many, counted in later messages
    with retention; False or a number below 1: at none.
    """

    def __post_init__(self) -> None:
        if type(self.display_on_current_message) is not bool:
            raise BadSetting(
                f"display_on_current_message= must be True or False, not {self.display_on_current_message!r}."
            )
        if type(self.save_to_history) not in (bool, int):  # A bool is an int. A float, even 2.0, is neither.
            raise BadSetting(f"save_to_history= must be True, False or a whole number, not {self.save_to_history!r}.")
        if self.save_to_history > _MOST_CALLS:
            raise BadSetting(
                f"save_to_history= must be at most 2**63 - 1, not {self.save_to_history}. Pass True for all calls."
            )
        if not isinstance(self.content, str) and not _are_blocks(self.content):
            raise BadSetting(f"content= must be a str or a tuple of Text and Media, not {self.content!r:.100}.")

    @property
    def blocks(self) -> tuple[Text | Media, ...]:
        """Return the content without blank texts."""
        blocks = (Text(self.content),) if isinstance(self.content, str) else tuple(self.content)
        return tuple(block for block in blocks if not isinstance(block, Text) or block.text.strip())

    @property
    def calls(self) -> int | None:
        """Return the number of later calls that see it; None for all."""
        if isinstance(self.save_to_history, bool):
            return None if self.save_to_history else 0
        return max(0, self.save_to_history)


class EnrichedMessage(Struct, frozen=True):
    """A message to store, and the retention of each of its parts: the arguments of `append(..., kept=...)`."""

    message: Message
    """The message."""
    kept: tuple[PartRetention, ...]
    """The retention of each part."""


def enrich(
    message: Message,
    added: Iterable[tuple[str, Iterable[AdditionalContent]]],
    *,
    header: str = HEADER,
    spacing: str = SPACING,
) -> EnrichedMessage:
    """Return the message with the contents of plugins after its own parts: per plugin a header, then each content and
    `spacing`.

    `added`: pairs of a plugin's name and its contents, in order. A tool result receives them inside. Skipped are
    contents without blocks, contents that are neither visible nor saved, and headers without contents. Texts are never
    joined, because each block has its own retention. Raises BadMessage for messages of the model and system prompts.
    """
    if message.role not in ("user", "tool"):
        raise BadMessage(
            f"Plugins cannot add to a message of role {message.role}. They add to user messages and tool results."
        )
    own = retained_parts(message)
    parts: list[Part] = list(own)
    kept = [PartRetention()] * len(own)

    def add(block: Part, shown: bool, calls: int | None, plugin: str) -> None:
        parts.append(block)
        kept.append(PartRetention(shown, calls, plugin))

    for plugin, contents in added:
        lasting = [item for item in contents if item.blocks and (item.display_on_current_message or item.calls != 0)]
        if lasting and header:
            is_shown = any(item.display_on_current_message for item in lasting)
            add(Text(header.replace("{name}", plugin)), is_shown, _longest(item.calls for item in lasting), plugin)
        for item in lasting:
            for block in (*item.blocks, *([Text(spacing)] if spacing else [])):
                add(block, item.display_on_current_message, item.calls, plugin)
    return EnrichedMessage(_with_parts(message, parts), tuple(kept))


def display_parts(message: Message, kept: Sequence[PartRetention]) -> tuple[Part, ...]:
    """Return the parts that the first call sees. Raises BadMessage if a part has no retention."""
    return tuple(part for part, retention in _paired(message, kept) if retention.shown)


def persistent_parts(
    message: Message, kept: Sequence[PartRetention]
) -> tuple[tuple[Part, ...], tuple[int | None, ...]]:
    """Return the parts of an enriched message for later calls, and the number of calls for each, None for all.

    Raises BadMessage if a part has no retention.
    """
    lasting = [(part, retention.calls) for part, retention in _paired(message, kept) if retention.calls != 0]
    return tuple(part for part, _ in lasting), tuple(calls for _, calls in lasting)


def retained_parts(message: Message) -> tuple[Part, ...]:
    """Return the parts with their own retention: those of the message, or of its tool result."""
    result = message.result
    return result.content if result else message.parts


def has_additions(stamp: Stamp) -> bool:
    """Return whether plugins added parts to the message with this stamp."""
    return stamp.retention is not None and any(part.plugin for part in stamp.retention.parts)


def own_message(message: Message, stamp: Stamp) -> Message | None:
    """Return the message without the parts of plugins.

    Returns None if plugins added all its parts, and for expansions that no list of the program has.
    """
    if stamp.expanded is not None and not stamp.expanded.is_listed:
        return None
    kept = stamp.retention.parts if stamp.retention else ()
    if not has_additions(stamp) or len(kept) != len(retained_parts(message)):
        return message
    own = [part for part, retention in _paired(message, kept) if not retention.plugin]
    return None if stamp.origin == "plugin" and not own else _with_parts(message, own)


def transient_paths(message: Message, stamp: Stamp) -> frozenset[Path]:
    """Return the paths of the blocks that plugins added for a limited number of calls."""
    kept = stamp.retention.parts if stamp.retention else ()
    prefix = (0,) if message.result is not None else ()
    return frozenset((*prefix, i) for i, part in enumerate(kept) if part.plugin and part.calls is not None)


def lasting_message(message: Message, stamp: Stamp) -> Message:
    """Return the message without the blocks that plugins added for a limited number of calls."""
    if not transient_paths(message, stamp):
        return message
    kept = stamp.retention.parts if stamp.retention else ()
    if len(kept) != len(retained_parts(message)):
        return message
    lasting = [part for part, retention in _paired(message, kept) if not retention.plugin or retention.calls is None]
    return _with_parts(message, lasting)


def hides_lasting(entry: Entry) -> bool:
    """Return whether an entry does not show all of its message, apart from blocks of plugins for a limited number of
    calls.
    """
    if not entry.shrunk or entry.outline is None:
        return False
    return not transient_paths(entry.outline, entry.stamp).issuperset(entry.shrunk)


def _longest(calls: Iterable[int | None]) -> int | None:
    """Return None (all calls) if one of the numbers is None, otherwise the largest number."""
    times = [*calls]
    return None if None in times else max((time for time in times if time is not None), default=0)


def _paired(message: Message, kept: Sequence[PartRetention]) -> list[tuple[Part, PartRetention]]:
    parts = retained_parts(message)
    if len(parts) != len(kept):
        raise BadMessage(f"The message has {len(parts)} parts, but {len(kept)} retentions. Pass one for each part.")
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
