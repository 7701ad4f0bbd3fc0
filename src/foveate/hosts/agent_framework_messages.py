"""Messages of Microsoft Agent Framework as messages of foveate, and back.

A message of the framework may hold several results of tools. Each of them is a message of foveate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agent_framework import Content, Message

from ..core.messages import Message as CoreMessage
from ..core.messages import Role
from ..core.stamps import Usage
from .agent_framework_contents import content_of, grouped, part_contents, part_of, result_of
from .host import usage_of_totals

__all__ = ["groups", "messages_of", "to_agent_framework", "usage_of"]

_ROLES: Final[dict[str, Role]] = {"system": "system", "developer": "system", "assistant": "assistant"}


def messages_of(message: Message, format: str) -> list[CoreMessage]:
    """Return the messages of foveate in a message of the framework. `format`: the wire format of its client."""
    return [_message_of(message, group, format) for group in groups(message)]


def groups(message: Message) -> list[list[Content]]:
    """Return the contents behind each of `messages_of(message)`: a result alone, others together."""
    return grouped(message.contents, lambda last, next: "function_result" not in (last.type, next.type)) or [[]]


def to_agent_framework(
    message: CoreMessage, format: str, own: Message | None = None, kept: Sequence[Content] = ()
) -> Message:
    """Return a message of foveate as one of the framework.

    `own`, `kept`: the message that it was and its contents, which are used again for every part that is the same.
    """
    contents = _contents_of(message, format, kept)
    if own is None or _ROLES.get(own.role, own.role) != message.role:
        return Message(message.role, contents)
    return Message(
        own.role,
        contents,
        author_name=own.author_name,
        message_id=own.message_id,
        additional_properties=own.additional_properties,
    )


def usage_of(response: Any) -> Usage | None:
    """Return the usage of a reply. The framework's input tokens include those of the cache."""
    details = response.usage_details or {}
    if (total := details.get("input_token_count")) is None:
        return None
    read, write = details.get("cache_read_input_token_count"), details.get("cache_creation_input_token_count")
    output, reasoning = details.get("output_token_count"), details.get("reasoning_output_token_count")
    return usage_of_totals(total, read, write, output, reasoning)


def _message_of(message: Message, contents: list[Content], format: str) -> CoreMessage:
    if contents and contents[0].type == "function_result":
        return CoreMessage("tool", (result_of(contents[0], format),))
    parts = tuple(part_of(group, format) for group in part_contents(contents))
    return CoreMessage(_ROLES.get(message.role, "user"), parts)


def _contents_of(message: CoreMessage, format: str, kept: Sequence[Content]) -> list[Content]:
    if (result := message.result) is not None:
        old = kept[0] if kept else None
        if old is not None and result_of(old, format) == result:
            return [old]
        failure = (old.exception if old is not None else None) or ("failed" if result.state != "ok" else None)
        items = [content_of(part) for part in result.content]
        return [Content.from_function_result(result.call_id, result=items, exception=failure, id=old and old.id)]
    same = {part_of(group, format): group for group in part_contents(kept)}
    return [content for part in message.parts for content in same.get(part) or [content_of(part)]]
