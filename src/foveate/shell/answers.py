"""What both shells hand out of a history: its messages, and what had to differ so that a provider takes them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ..core.messages import Message
from ..core.stamps import Stamp

__all__ = ["Historic", "Mend", "Repaired"]


class Historic(Struct, frozen=True):
    """A message of the history: what was said, where, and its facts."""

    position: int
    id: str
    message: Message
    stamp: Stamp

    @property
    def handle(self) -> str:
        return f"m{self.position}"


class Mend(Struct, frozen=True):
    """One thing that had to differ from what was appended, so that the provider takes it."""

    handle: str
    why: str


class Repaired(Struct, frozen=True):
    """A legal copy of a conversation, and what it took."""

    body: dict[str, Any]
    """In wire form: `messages`, and `system` where the format keeps it apart."""
    changes: tuple[Mend, ...]
