"""Two context providers that agents use: what is in the working directory, and what is still to do."""

from __future__ import annotations

from .directory import WorkingDirectory
from .todos import Todo, TodoList

__all__ = ["Todo", "TodoList", "WorkingDirectory"]
