"""Edits: the records that change what a conversation shows. Policies return them, and users apply them by hand."""

from __future__ import annotations

from .core.edits import Bill, Edit, Hide, Pin, Replace, Restore, Span, Summarize, Target, Task, Unpin

__all__ = ["Bill", "Edit", "Hide", "Pin", "Replace", "Restore", "Span", "Summarize", "Target", "Task", "Unpin"]
