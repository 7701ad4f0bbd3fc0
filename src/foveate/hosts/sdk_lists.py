"""The lists of messages in requests of the SDKs of OpenAI and Anthropic, and the conversations that they belong to."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from ..core.message_keys import message_key
from ..formats import get_format
from ..requests import api_for

if TYPE_CHECKING:
    from ..conversation import Conversation
    from ..core.messages import Message

__all__ = ["begins_with", "content_name", "first_message", "listed"]

_INSTRUCTIONS: Final = ("system", "developer")
"""Roles of messages that a program may change from request to request."""
_OPENING: Final = 4
"""Messages of a history among which its first one that is no instruction stands."""


def first_message(format: str, body: dict[str, Any]) -> Message | None:
    """Return the first message that is no instruction, which a list keeps as it grows."""
    given = listed(body[api_for(format).messages])
    first = next((item for item in given if not (isinstance(item, dict) and item.get("role") in _INSTRUCTIONS)), None)
    return None if first is None else next(iter(get_format(format).parse(first)), None)


def content_name(first: Message | None, body: dict[str, Any], user: str) -> str:
    """Return the name of a conversation by its first message. Cache marks, which move, do not count."""
    key = "" if first is None else message_key(first).hex()
    text = json.dumps([key, bool(body.get("tools")), user])
    return f"list-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def begins_with(chat: Conversation, first: Message | None) -> bool:
    """Return whether a conversation is empty, or has this first message."""
    rows = (row.message for row in chat.history(1, _OPENING) if row.message.role not in _INSTRUCTIONS)
    stored = next(rows, None)
    return stored is None or first is None or message_key(stored) == message_key(first)


def listed(given: Any) -> Any:
    """Return the messages of a request, which may be the user's words alone."""
    return [{"role": "user", "content": given}] if isinstance(given, str) else given
