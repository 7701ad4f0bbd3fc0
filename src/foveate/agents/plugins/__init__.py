"""Plugins for agents: the working directory, and a to-do list."""

from __future__ import annotations

from .directory import WorkingDirectory
from .todos import Todo, TodoList

__all__ = ["Todo", "TodoList", "WorkingDirectory"]
