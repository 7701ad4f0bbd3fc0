"""The words for authors of messages that libraries write in place of a role."""

from __future__ import annotations

from typing import Final

__all__ = ["is_author"]

_AUTHORS: Final = frozenset(
    {"human", "user", "ai", "assistant", "bot", "model", "system", "developer", "tool", "function", "chat"}
    | {"HumanMessage", "AIMessage", "AIMessageChunk", "SystemMessage", "ToolMessage", "FunctionMessage", "ChatMessage"}
)


def is_author(kind: object) -> bool:
    """Return whether a `type` names the author of a message. No provider has a part or an item of such a type."""
    return isinstance(kind, str) and kind in _AUTHORS
