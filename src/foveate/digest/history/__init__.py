"""The digest of a history: its goal, rules, values, steps and names, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.messages import Message
from ...core.readable import readable_messages

if TYPE_CHECKING:
    from .holding import Holding

__all__ = ["digest_messages", "holding_statements", "note_left_out"]


def digest_messages(
    messages: Sequence[Message], room: int, *, previous: str = "", required: Sequence[str] = (), focus: str = ""
) -> str:
    """Return the digest of a history in at most `room` characters.

    `messages`: the messages, oldest first. `previous`: the summary of the messages before them, by this function or by
    a model, which the digest carries on. `required`: names that the digest must contain, as far as a quarter of the
    room holds them. `focus`: words whose lines weigh more.
    """
    from .writing import write_digest  # Its patterns take time to compile, and many programs need none.

    return write_digest(readable_messages(messages), room, previous, required, focus)


def note_left_out(count: int, digest: str = "") -> str:
    """Return the note that stands for the oldest messages of a history of which only the newest are read."""
    return f"[{count} earlier messages left out]\n{digest}".rstrip()


def holding_statements(messages: Sequence[Message], previous: str = "") -> Holding:
    """Return the rules and the values that hold, oldest first, without those that later statements replace.

    They come from users, from system messages and from the summary before (`previous`).
    """
    from .writing import find_holding

    return find_holding(readable_messages(messages), previous)
