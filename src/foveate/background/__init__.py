"""Backgrounds for summaries: threads, and tasks of asyncio, which are imported only when needed."""

from __future__ import annotations

from .threads import ThreadJob, Threads

__all__ = ["ThreadJob", "Threads"]
