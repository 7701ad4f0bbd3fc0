"""Rules of Anthropic's Messages API for a single message.

The reader returns the facts that its neighbours need, and the problems of the message alone. Unknown fields of a
message are refused. Unknown block types and unknown fields of blocks pass unless `strict`: the API refuses those that
*it* does not know, but it learns new ones faster than this module, and its own blocks return to it. Known blocks of
other providers are always refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import field

from .media import is_large, source_faults
from .values import CALL_ID, Facts, encodes, strings, unknown_keys

__all__ = ["SERVER_USES", "THINKING", "AnthropicFacts", "AnthropicReader"]

THINKING: Final = ("thinking", "redacted_thinking")
USER_ONLY: Final = frozenset({"tool_result", "image", "document", "search_result"})
SERVER_USES: Final = frozenset({"server_tool_use", "mcp_tool_use"})
ASSISTANT_ONLY: Final = frozenset({"tool_use", "thinking", "redacted_thinking"})
IN_RESULTS: Final = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})
FOREIGN: Final = frozenset(
    {"image_url", "input_audio", "file", "refusal", "input_text", "output_text", "input_image", "function_call"}
)
KEYS: Final[dict[str, frozenset[str]]] = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control"}),
    "document": frozenset({"type", "source", "title", "context", "citations", "cache_control"}),
    "search_result": frozenset({"type", "source", "title", "content", "citations", "cache_control"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
}
NO_EXTRA: Final = "Extra inputs are not permitted"
NO_SURROGATES: Final = "str is not valid UTF-8: surrogates not allowed"
NO_MATCH: Final = "String should match pattern '^[a-zA-Z0-9_-]+$'"


MESSAGE_KEYS: Final = {
    "user": frozenset({"role", "content", "output_config"}),
    "assistant": frozenset({"role", "content"}),
    "system": frozenset({"role", "content", "output_config", "clear_at"}),
}
"""The keys of a message that the API knows. It refuses all others."""


SYSTEM_BLOCKS: Final = ("text", "tool_addition", "tool_removal")


class AnthropicFacts(Facts):
    """The facts of a message: its calls and answers, its begin and end."""

    kinds: list[str] = field(default_factory=list)
    """The types of its blocks, in order."""
    calls: list[tuple[str, int]] = field(default_factory=list)
    """Ids of calls, each with the index of its block."""
    answers: list[tuple[str, int]] = field(default_factory=list)
    served: list[tuple[str, str, int]] = field(default_factory=list)
    """Blocks of server tools in order: kind, id of the use, index of the block."""
    last_text: str | None = None
    """The text at its end, if it ends with text."""
    marks: list[tuple[str, str]] = field(default_factory=list)
    """Cache marks: path and lifetime."""
    compactions: list[tuple[int, bool]] = field(default_factory=list)
    """Compaction blocks with content: the index, and whether the block is signed."""
    documents: int = 0
    large: list[str] = field(default_factory=list)
    """Paths of images that are too large among many."""


class AnthropicReader:
    """Reads messages one by one."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict

    def read(self, message: object) -> AnthropicFacts:
        """Return the facts and problems of one message."""
        facts = AnthropicFacts()
        if not isinstance(message, dict):
            facts.fault("shape", "", "Input should be an object")
            return facts
        role, content = message.get("role"), message.get("content")
        if role not in MESSAGE_KEYS:
            facts.fault("role", ".role", f"Input should be 'user', 'assistant' or 'system', got {role!r}")
        else:
            facts.role = str(role)
            for key in unknown_keys(message, MESSAGE_KEYS[facts.role]):
                facts.fault("keys", f".{key}", NO_EXTRA)
        if isinstance(content, str):
            facts.last_text = content
            if content:
                facts.kinds.append("text")
                self._text(content, ".content", facts)
        elif isinstance(content, list):
            for index, block in enumerate(content):
                self._block(block, f".content[{index}]", facts)
        elif content is not None or role != "system":
            facts.fault("content", ".content", "Input should be a valid string or list of blocks")
        if role == "system":
            self._system(message, facts)
        return facts

    def _system(self, message: Mapping[str, Any], facts: AnthropicFacts) -> None:
        clear_at, output = message.get("clear_at"), message.get("output_config")
        if output is not None and not isinstance(output, dict):
            facts.fault("system", ".output_config", "Input should be an object")
        if not facts.kinds and not output:
            facts.fault("empty", ".content", "system content must contain at least one block")
        for place, kind in enumerate(facts.kinds):
            if kind not in SYSTEM_BLOCKS:
                problem = "role 'system' supports text, tool_addition, and tool_removal blocks only"
                facts.fault("system", f".content[{place}]", problem)
        if clear_at not in (None, "never", "next_user_message"):
            facts.fault("system", ".clear_at", "Input should be 'next_user_message' or 'never'")
        if clear_at != "next_user_message":
            return
        scoped = "on a turn-scoped system message (clear_at: 'next_user_message')"
        if output is not None:
            facts.fault("system", ".output_config", f"output_config is not permitted {scoped}")
        if any(kind != "text" for kind in facts.kinds):
            facts.fault("system", ".content", "a turn-scoped system message supports text blocks only")
        for path, _ in facts.marks:
            facts.fault("cache", f"{path}.cache_control", f"cache_control is not permitted {scoped}")

    def _block(self, block: object, path: str, facts: AnthropicFacts) -> None:
        kind = block.get("type") if isinstance(block, dict) else None
        facts.last_text = None
        facts.kinds.append(str(kind))
        if not isinstance(block, dict) or not isinstance(kind, str):
            facts.fault("block", path, "each block must be an object with a `type`")
            return
        if kind == "text":
            text = block.get("text")
            facts.last_text = text if isinstance(text, str) else None
            self._text(text, f"{path}.text", facts)
        elif kind == "tool_use":
            self._tool_use(block, path, facts)
        elif kind == "tool_result":
            self._tool_result(block, path, facts)
        elif kind in THINKING:
            self._thinking(kind, block, path, facts)
        elif kind == "image" or kind == "document":
            self._media(kind, block, path, facts)
        else:
            self._other(kind, block, path, facts)
        if facts.role == "user" and kind in ASSISTANT_ONLY:
            facts.fault("block", path, f"`{kind}` blocks can only be in `assistant` messages")
        elif facts.role == "assistant" and kind in USER_ONLY:
            facts.fault("block", path, f"`{kind}` blocks can only be in `user` messages")
        if "cache_control" in block and kind not in THINKING:
            self._mark(block["cache_control"], path, facts)
        if self.strict:
            self._keys(kind, block, path, facts)

    def _text(self, text: object, path: str, facts: AnthropicFacts) -> None:
        if not isinstance(text, str):
            facts.fault("content", path, "Input should be a valid string")
            return
        facts.size += len(text)
        if not text:
            facts.fault("empty", path, "text content blocks must be non-empty")
        elif text.isspace():
            facts.fault("empty", path, "text content blocks must contain non-whitespace text")
        elif not encodes(text):
            facts.fault("utf8", path, NO_SURROGATES)

    def _tool_use(self, block: Mapping[str, Any], path: str, facts: AnthropicFacts) -> None:
        call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
        if isinstance(call_id, str) and CALL_ID(call_id):
            facts.calls.append((call_id, len(facts.kinds) - 1))
        else:
            facts.fault("call-id", f"{path}.id", f"{NO_MATCH}, got {call_id!r}")
        if not isinstance(name, str) or not 0 < len(name) <= 200 or not encodes(name):
            facts.fault("name", f"{path}.name", "String should have at least 1 and at most 200 characters")
        if not isinstance(arguments, dict):
            facts.fault("arguments", f"{path}.input", "Input should be a valid dictionary")
            return
        try:
            facts.size += len(msgspec.json.encode(arguments))
        except (TypeError, ValueError, RecursionError):  # Half of a surrogate pair is also a ValueError.
            facts.fault("arguments", f"{path}.input", "the input cannot be written as JSON in UTF-8")

    def _tool_result(self, block: Mapping[str, Any], path: str, facts: AnthropicFacts) -> None:
        call_id, content, is_error = block.get("tool_use_id"), block.get("content"), block.get("is_error")
        if isinstance(call_id, str) and CALL_ID(call_id):
            facts.answers.append((call_id, len(facts.kinds) - 1))
        else:
            facts.fault("call-id", f"{path}.tool_use_id", f"{NO_MATCH}, got {call_id!r}")
        if is_error is not None and not isinstance(is_error, bool):
            facts.fault("content", f"{path}.is_error", "Input should be a valid boolean")
        elif is_error and not content:
            facts.fault("empty", f"{path}.content", "content cannot be empty if `is_error` is true")
        if isinstance(content, str):
            facts.size += len(content)
            if not encodes(content):
                facts.fault("utf8", f"{path}.content", NO_SURROGATES)
        elif isinstance(content, list):
            for place, part in enumerate(content):
                self._nested(part, f"{path}.content[{place}]", bool(is_error), facts)
        elif content is not None:
            facts.fault("content", f"{path}.content", "Input should be a valid string or list of blocks")

    def _nested(self, part: object, path: str, is_error: bool, facts: AnthropicFacts) -> None:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(kind, str):
            facts.fault("block", path, "each block must be an object with a `type`")
            return
        misplaced = kind in FOREIGN or kind in ASSISTANT_ONLY or kind in SERVER_USES or kind.endswith("tool_result")
        if kind == "text":
            self._text(part.get("text"), f"{path}.text", facts)
        elif kind == "image" or kind == "document":
            self._media(kind, part, path, facts)
        elif misplaced or (self.strict and kind not in IN_RESULTS):
            facts.fault("block", path, f"Input tag {kind!r} does not match any of the tags of a tool result")
        if is_error and kind != "text":
            facts.fault("block", path, "all content must be type `text` if `is_error` is true")
        if "cache_control" in part:
            self._mark(part["cache_control"], path, facts)
        if self.strict:
            self._keys(kind, part, path, facts)

    def _thinking(self, kind: str, block: Mapping[str, Any], path: str, facts: AnthropicFacts) -> None:
        for name in ("thinking", "signature") if kind == "thinking" else ("data",):
            value = block.get(name)
            # A model that hides its thinking sends an empty text, but never an empty signature.
            if not isinstance(value, str) or (not value and name != "thinking"):
                facts.fault("thinking", f"{path}.{name}", "Field required")
                continue
            facts.size += len(value)
            if not encodes(value):
                facts.fault("utf8", f"{path}.{name}", NO_SURROGATES)
        if block.get("cache_control") is not None:
            facts.fault("cache", f"{path}.cache_control", NO_EXTRA)

    def _media(self, kind: str, block: Mapping[str, Any], path: str, facts: AnthropicFacts) -> None:
        source = block.get("source")
        facts.images += kind == "image"
        facts.documents += kind == "document"
        for problem in source_faults(kind, source):
            facts.fault("media", f"{path}.source", problem)
        data = source.get("data") if isinstance(source, dict) else None
        if isinstance(data, str):
            facts.size += len(data)
            if kind == "image" and is_large(data):
                facts.large.append(f"{path}.source")

    def _other(self, kind: str, block: Mapping[str, Any], path: str, facts: AnthropicFacts) -> None:
        if kind in FOREIGN or (self.strict and kind not in KEYS):
            facts.fault("block", path, f"Input tag {kind!r} found using 'type' does not match any of the expected tags")
            return
        if kind in SERVER_USES or kind.endswith("_tool_result"):
            name = "id" if kind in SERVER_USES else "tool_use_id"
            use = block.get(name)
            if isinstance(use, str) and CALL_ID(use):
                facts.served.append((kind, use, len(facts.kinds) - 1))
            else:
                facts.fault("call-id", f"{path}.{name}", f"{NO_MATCH}, got {use!r}")
            if facts.role == "user":
                facts.fault("block", path, f"`{kind}` blocks can only be in `assistant` messages")
        elif kind == "compaction" and (content := block.get("content")) is not None:
            facts.compactions.append((len(facts.kinds) - 1, bool(block.get("signature"))))
            if not isinstance(content, str) or not content:
                facts.fault("compaction", f"{path}.content", "String should have at least 1 character")
        for text in strings(block):
            facts.size += len(text)
            if not encodes(text):
                facts.fault("utf8", path, NO_SURROGATES)

    def _mark(self, mark: object, path: str, facts: AnthropicFacts) -> None:
        if mark is None:
            return
        ttl = mark.get("ttl") or "5m" if isinstance(mark, dict) and mark.get("type") == "ephemeral" else None
        if ttl not in ("5m", "1h"):
            facts.fault("cache", f"{path}.cache_control", "Input should be an ephemeral mark of '5m' or '1h'")
        else:
            facts.marks.append((path, str(ttl)))

    def _keys(self, kind: str, block: Mapping[str, Any], path: str, facts: AnthropicFacts) -> None:
        for key in unknown_keys(block, KEYS.get(kind, block)):
            facts.fault("keys", f"{path}.{key}", NO_EXTRA)
