"""What both shells hand out of a history: its messages, and what had to differ so that a provider takes them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ..core.messages import Message
from ..core.stamps import Stamp

__all__ = ["Fix", "HistoryEntry", "RepairReport"]


class HistoryEntry(Struct, frozen=True):
    """A message of the history: what was said, where, and its facts."""

    position: int
    id: str
    message: Message
    stamp: Stamp

    @property
    def handle(self) -> str:
        return f"m{self.position}"


class Fix(Struct, frozen=True):
    """One thing that had to differ from what was appended, so that the provider takes it."""

    handle: str
    why: str


class RepairReport(Struct, frozen=True):
    """A legal copy of a conversation, and what it took."""

    body: dict[str, Any]
    """In wire form: `messages`, and `system` where the format keeps it apart."""
    changes: tuple[Fix, ...]
