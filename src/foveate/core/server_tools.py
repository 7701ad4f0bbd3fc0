"""Server tools: the use of a tool that the provider runs, and its result.

Anthropic's server tools (web search, web fetch, code execution, tool search, advisor, MCP) write two blocks into the
assistant's messages: the use, and a result that names it. The result is usually in the same message. After a pause, or
after calls of the client's tools, it is in a later message of the same turn. A request with only one of the two is
refused.

Gemini writes `toolCall` and `toolResponse` with one id (Google Search, Maps, URL context, file search), and
`executableCode` and `codeExecutionResult`, mostly without ids. Google asks to return all of them. They may be in
consecutive messages too: the SDK's chats keep each piece of a stream as a content of its own.

OpenAI writes `program` and `program_output` with one call id, and so `multi_agent_call` and its output. A program may
call the client's tools: its output then follows in the response to their results.

This module reads the pairs, and writes a result where none will come.

Sources: Anthropic's page on server tools, Google's pages on code execution and on combining built-in tools with
functions, OpenAI's page on programmatic tool calling, and the types of the SDKs `anthropic` 2.14, `google-genai` 2.34
and `openai` 3.57.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from .caches import cached
from .messages import Message, Opaque, Part

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

__all__ = ["ServerBlock", "closing_result", "follow_uses", "pair_key", "partner_of", "server_block", "server_blocks"]

_USES = frozenset({"server_tool_use", "mcp_tool_use"})
_RESULT = "_tool_result"
_GEMINI_USES = {"toolCall": "toolResponse", "executableCode": "codeExecutionResult"}
_GEMINI = frozenset({*_GEMINI_USES, *_GEMINI_USES.values()})
_OPENAI_USES = {"program": "program_output", "multi_agent_call": "multi_agent_call_output"}
_OPENAI = frozenset({*_OPENAI_USES, *_OPENAI_USES.values()})


_ID_MAX = 64
"""Characters of an id of OpenAI."""
_CACHED_MAX = 2_000
"""Characters of a block that a cache may hold."""

T = TypeVar("T")


class ServerBlock(msgspec.Struct, frozen=True, gc=False):
    """The part of a block that decides about pairs."""

    is_use: bool
    """Whether this is the use; otherwise it is the result."""
    id: str
    """Id of the use. The result repeats it. Empty if the block has none."""
    result_kind: str
    """Kind of the block for the result, such as `web_search_tool_result`."""
    format: str = "anthropic"
    """The format it came from."""
    tool: str = ""
    """Gemini's name of the tool, such as `GOOGLE_SEARCH_WEB`, or OpenAI's of an action, such as `spawn_agent`."""

    @property
    def may_wait(self) -> bool:
        """Return whether a request may end before the result: the provider continues the turn (not Gemini)."""
        return self.format != "gemini"


class _Head(msgspec.Struct):
    id: str = ""
    tool_use_id: str = ""
    call_id: str = ""
    action: str = ""
    name: str = ""


def server_block(part: Part) -> ServerBlock | None:
    """Return what this part is to a server tool; None if it is neither use nor result."""
    if type(part) is not Opaque:
        return None
    if part.format == "anthropic" and (part.kind in _USES or part.kind.endswith(_RESULT)):
        return _of(_read, part)
    if part.format == "openai_responses" and part.kind in _OPENAI:
        head, result_kind = _of(_head, part), _OPENAI_USES.get(part.kind, part.kind)
        return ServerBlock(part.kind in _OPENAI_USES, head.call_id, result_kind, part.format, head.action)
    return _of(_read_gemini, part) if part.format == "gemini" and part.kind in _GEMINI else None


def server_blocks(message: Message) -> list[tuple[int, ServerBlock]]:
    """Return the uses and results of server tools in a message, each with the index of its part."""
    return [
        (index, block)
        for index, part in enumerate(message.parts)
        if type(part) is Opaque and (block := server_block(part)) is not None
    ]


def pair_key(block: ServerBlock, place: str, open_uses: Iterable[str]) -> str:
    """Return a key for a use, or the key of the open use that a result belongs to; "" if there is none.

    `place`: names this block. Without ids, a result belongs to the oldest open use of its kind that has no id.
    """
    nameless = f"{block.result_kind}@"
    if block.is_use:
        return block.id or (nameless + place if block.format == "gemini" else "")
    if block.id:
        return block.id if block.id in open_uses else ""
    return next((key for key in open_uses if key.startswith(nameless)), "") if block.format == "gemini" else ""


def follow_uses(message: Message, place: str, open_uses: dict[str, ServerBlock]) -> None:
    """Add the uses in a message to those that are open, and remove those whose results it has.

    `place`: names the message.
    """
    for index, block in server_blocks(message):
        key = pair_key(block, f"{place}.{index}", open_uses)
        if block.is_use:
            open_uses[key] = block
        else:
            open_uses.pop(key, None)


def partner_of(parts: Sequence[Part], index: int) -> int | None:
    """Return the index of the other half of a pair in the same message; None if there is none."""
    if not 0 <= index < len(parts) or server_block(parts[index]) is None:
        return None
    open_uses: dict[str, int] = {}
    for other, part in enumerate(parts):
        block = server_block(part)
        key = pair_key(block, str(other), open_uses) if block is not None else ""
        if block is None or not key:
            continue
        if block.is_use:
            open_uses[key] = other
        else:
            pair = (open_uses.pop(key), other)
            if index in pair:
                return pair[0] + pair[1] - index
    return None


def closing_result(use: ServerBlock, text: str) -> Opaque:
    """Return a result for a use that gets none: the provider's own error `unavailable`.

    `text`: the error for MCP tools, for Gemini and for OpenAI, which have no such error.
    """
    kind = use.result_kind
    if use.format == "openai_responses":
        return Opaque(use.format, kind, _text({"type": kind, "call_id": use.id, **_closing_fields(use, text)}))
    if use.format == "gemini":
        return Opaque("gemini", kind, _text({kind: _closing_inner(use, text)}))
    body: dict[str, object] = {"type": kind, "tool_use_id": use.id}
    if kind == "mcp_tool_result":
        body |= {"is_error": True, "content": [{"type": "text", "text": text}]}
    else:
        body["content"] = {"type": f"{kind}_error", "error_code": "unavailable"}
    return Opaque("anthropic", kind, _text(body))


def _closing_fields(use: ServerBlock, text: str) -> dict[str, object]:
    if use.result_kind == "program_output":
        return {"id": f"prog_out_{use.id}"[:_ID_MAX], "result": text, "status": "incomplete"}
    return {"action": use.tool, "output": [{"type": "output_text", "text": text}]}


def _closing_inner(use: ServerBlock, text: str) -> dict[str, object]:
    inner: dict[str, object] = {"id": use.id} if use.id else {}
    if use.result_kind == "codeExecutionResult":
        return {**inner, "outcome": "OUTCOME_FAILED", "output": text}
    return {**inner, "toolType": use.tool, "response": {"error": text}}


def _text(body: dict[str, object]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _of(read: _lru_cache_wrapper[T], part: Opaque) -> T:
    """Return what `read` finds in a block. The cache holds no long block, such as a fetched document: to read its ids
    again takes a millisecond for each megabyte, and the blocks of closed conversations must leave the memory.
    """
    return read(part) if len(part.body) <= _CACHED_MAX else read.__wrapped__(part)


@cached(4_096)
def _head(part: Opaque) -> _Head:
    try:
        return msgspec.json.decode(part.body, type=_Head)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _Head()


@cached(4_096)
def _read(part: Opaque) -> ServerBlock:
    head = _of(_head, part)
    if part.kind not in _USES:
        return ServerBlock(False, head.tool_use_id, part.kind)
    if part.kind == "mcp_tool_use":
        return ServerBlock(True, head.id, "mcp_tool_result")
    name = "tool_search" if head.name.startswith("tool_search") else head.name
    return ServerBlock(True, head.id, f"{name}{_RESULT}")


@cached(4_096)
def _read_gemini(part: Opaque) -> ServerBlock:
    try:
        whole: Any = msgspec.json.decode(part.body)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        whole = None
    inner = whole.get(part.kind) if isinstance(whole, dict) else None
    fields = inner if isinstance(inner, dict) else {}
    id, tool = (value if isinstance(value := fields.get(key), str) else "" for key in ("id", "toolType"))
    is_use = part.kind in _GEMINI_USES
    return ServerBlock(is_use, id, _GEMINI_USES.get(part.kind, part.kind), "gemini", tool)
