"""Server tools: the use of a tool that the provider runs, and its result.

Anthropic's server tools (web search, web fetch, code execution, tool search, advisor, MCP) write two blocks into the
assistant's messages: the use, and a result that names it. The result is usually in the same message. After a pause, or
after calls of the client's tools, it is in a later message of the same turn. A request with only one of the two is
refused. This module reads the pairs, and writes a result where none will come.

Source: Anthropic's page on server tools, and the types of its SDK 2.12.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from .caches import cached
from .messages import Message, Opaque, Part

__all__ = ["ServerBlock", "closing_result", "partner_of", "server_block", "server_blocks"]

_FORMAT = "anthropic"
_USES = frozenset({"server_tool_use", "mcp_tool_use"})
_RESULT = "_tool_result"


class ServerBlock(msgspec.Struct, frozen=True, gc=False):
    """The part of a block that decides about pairs."""

    is_use: bool
    """Whether this is the use; otherwise it is the result."""
    id: str
    """Id of the use. The result repeats it. Empty if the block has none."""
    result_kind: str
    """Kind of the block for the result, such as `web_search_tool_result`."""


class _Head(msgspec.Struct):
    id: str = ""
    tool_use_id: str = ""
    name: str = ""


def server_block(part: Part) -> ServerBlock | None:
    """Return what this part is to a server tool; None if it is neither use nor result."""
    if type(part) is not Opaque or part.format != _FORMAT:
        return None
    return _read(part) if part.kind in _USES or part.kind.endswith(_RESULT) else None


def server_blocks(message: Message) -> list[tuple[int, ServerBlock]]:
    """Return the uses and results of server tools in a message, each with the index of its part."""
    return [
        (index, block)
        for index, part in enumerate(message.parts)
        if type(part) is Opaque and (block := server_block(part)) is not None
    ]


def partner_of(parts: Sequence[Part], index: int) -> int | None:
    """Return the index of the other half of a pair in the same message; None if there is none."""
    own = server_block(parts[index]) if 0 <= index < len(parts) else None
    if own is None or not own.id:
        return None
    for other, part in enumerate(parts):
        block = server_block(part)
        if block is not None and block.id == own.id and block.is_use != own.is_use:
            return other
    return None


def closing_result(use: ServerBlock, text: str) -> Opaque:
    """Return a result for a use that gets none: the provider's own error `unavailable`. `text` is for MCP tools."""
    kind = use.result_kind
    body: dict[str, object] = {"type": kind, "tool_use_id": use.id}
    if kind == "mcp_tool_result":
        body |= {"is_error": True, "content": [{"type": "text", "text": text}]}
    else:
        body["content"] = {"type": f"{kind}_error", "error_code": "unavailable"}
    return Opaque(_FORMAT, kind, json.dumps(body, ensure_ascii=False, separators=(",", ":")))


@cached(4_096)
def _read(part: Opaque) -> ServerBlock:
    try:
        head = msgspec.json.decode(part.body, type=_Head)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        head = _Head()
    if part.kind not in _USES:
        return ServerBlock(False, head.tool_use_id, part.kind)
    if part.kind == "mcp_tool_use":
        return ServerBlock(True, head.id, "mcp_tool_result")
    name = "tool_search" if head.name.startswith("tool_search") else head.name
    return ServerBlock(True, head.id, f"{name}{_RESULT}")
