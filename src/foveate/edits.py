"""Edits: the records that change what a conversation shows. Policies return them, and users apply them by hand."""

from __future__ import annotations

from .core.edits import (
    Bill,
    Edit,
    Hide,
    Path,
    Pin,
    Record,
    Replace,
    Restore,
    Span,
    Summarize,
    SummaryRole,
    Target,
    Task,
    Unpin,
)

__all__ = [
    "Bill",
    "Edit",
    "Hide",
    "Path",
    "Pin",
    "Record",
    "Replace",
    "Restore",
    "Span",
    "Summarize",
    "SummaryRole",
    "Target",
    "Task",
    "Unpin",
]
