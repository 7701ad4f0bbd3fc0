"""What runs in the background of a conversation: in threads, or in tasks of asyncio (imported where it is needed)."""

from __future__ import annotations

from .threads import Threads

__all__ = ["Threads"]
