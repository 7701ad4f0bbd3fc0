"""Partial replies: the parts that stay of a reply that the caller stopped before its end.

They must be legal in the next request. Calls are left out: they are not carried out, and an incomplete one has no valid
arguments. Reasoning that led to a part left out, or to nothing, keeps its readable text only: without its signature or
payload, formats that check reasoning do not send it, and the history still has it.

Sources: Anthropic's "Extended thinking" (signed blocks return unchanged, in their order) and the errors of OpenAI's
Responses API for a reasoning item without the item that followed it.
"""

from __future__ import annotations

from .messages import Message, Opaque, Part, Reasoning, Text, ToolCall
from .server_tools import partner_of, server_block

__all__ = ["partial_reply"]


def partial_reply(message: Message) -> Message:
    """Return the part of a stopped reply that may stay in the conversation. It may have no parts.

    Fields of the message itself are left out: they describe the complete reply.
    """
    parts = message.parts
    kept: list[Part] = []
    is_unchanged = True
    for index, part in enumerate(parts):
        if _is_left_out(parts, index):
            is_unchanged = is_unchanged and _is_blank(part)
            continue
        if isinstance(part, Reasoning) and not (is_unchanged and _leads_to_content(parts, index)):
            is_unchanged = False
            if not part.text.strip():
                continue
            part = Reasoning(part.text, format=part.format)
        kept.append(part)
    return Message(message.role, tuple(kept))


def _is_left_out(parts: tuple[Part, ...], index: int) -> bool:
    part = parts[index]
    if isinstance(part, ToolCall) or _is_blank(part):
        return True
    block = server_block(part) if isinstance(part, Opaque) else None
    return block is not None and partner_of(parts, index) is None


def _is_blank(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _leads_to_content(parts: tuple[Part, ...], index: int) -> bool:
    """Return whether the next part that is no reasoning is kept."""
    following = (i for i in range(index + 1, len(parts)) if not isinstance(parts[i], Reasoning))
    place = next(following, None)
    return place is not None and not _is_left_out(parts, place)
