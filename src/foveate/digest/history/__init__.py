"""The digest of a history: its goal, rules, values, steps and names, without a model."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.messages import Message

__all__ = ["binding_statements", "digest_messages"]


def digest_messages(
    messages: Sequence[Message], room: int, *, previous: str = "", required: Sequence[str] = (), focus: str = ""
) -> str:
    """Return the digest of a history in at most `room` characters.

    `messages`: the messages, oldest first. `previous`: the summary of the messages before them, by this function or by
    a model, which the digest carries on. `required`: names that the digest must contain, as far as a quarter of the
    room holds them. `focus`: words whose lines weigh more.
    """
    from .writing import write_digest  # Its patterns take time to compile, and many programs need none.

    return write_digest(messages, room, previous, required, focus)


def binding_statements(messages: Sequence[Message], previous: str = "") -> list[str]:
    """Return the statements that bind the next reader, oldest first, without those that later ones replace.

    They are the rules of users, of system messages and of the summary before (`previous`).
    """
    from .writing import find_binding

    return find_binding(messages, previous)
