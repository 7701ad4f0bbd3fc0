"""Blocks of a reply that requests leave out, because another model continued the reply.

If a model of Anthropic declines in the middle of a reply, another one may go on in the same message (`fallbacks`). A
block `fallback` marks the place and stays there. The thinking and the calls of the client's tools before the last one
are void, and so is the use of a server tool without its result: the API asks to leave them out, and the calls get no
result.

Source: Anthropic's page "Refusals and fallback", and the types of the SDK `anthropic` 2.14.
"""

from __future__ import annotations

from collections.abc import Sequence

from .messages import Opaque, Part, Reasoning
from .server_tools import partner_of, server_block

__all__ = ["VOID_CALL", "is_fallback", "void_parts"]

VOID_CALL = "tool_use"
"""The kind of an Opaque that is a void call."""

_VOID = frozenset({VOID_CALL, "connector_text"})
_NONE = frozenset[int]()


def is_fallback(part: Part) -> bool:
    """Return whether this is the place where another model continued the reply."""
    return isinstance(part, Opaque) and part.kind == "fallback" and part.format == "anthropic"


def void_parts(parts: Sequence[Part]) -> frozenset[int]:
    """Return the indices of the parts that requests leave out."""
    last = 0
    for index, part in enumerate(parts):
        if type(part) is Opaque and is_fallback(part):
            last = index
    return frozenset([index for index in range(last) if _is_void(parts, index)]) if last else _NONE


def _is_void(parts: Sequence[Part], index: int) -> bool:
    part = parts[index]
    if not isinstance(part, Opaque):
        return isinstance(part, Reasoning)
    block = server_block(part)
    return part.kind in _VOID or (block is not None and block.is_use and partner_of(parts, index) is None)
