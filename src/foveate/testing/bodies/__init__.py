"""A check of finished request bodies, independent of the rules for views.

It follows the providers' references and their known error messages. It is written independently of the rules that make
views legal, so each can find errors of the other. It reads only the body: dicts and lists, or the JSON bytes of the
whole body. It costs a few microseconds per message, so it can run before every call.

    >>> body = {"messages": [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "a", "content": "ok"}]}
    >>> [refusal.rule for refusal in check_body("openai", body)]
    ['pairing']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ...errors import BadSetting
from .anthropic import AnthropicRules
from .gemini import GeminiRules
from .openai import OpenAIRules
from .openai_responses import ResponsesRules
from .values import strings

__all__ = ["RULES", "BodyChecker", "Refusal", "check_body"]

RULES: Final[dict[str, str]] = {
    "json": "the body is JSON",
    "shape": "lists hold objects of the documented shape",
    "messages": "there is at least one message",
    "role": "the provider knows each role",
    "first": "the first message is the user's (Anthropic)",
    "content": "content is a string or a list of blocks, and null only with calls instead",
    "empty": "no empty message, text, list of calls or error result",
    "block": "each kind of block is where the provider accepts it",
    "pairing": "each call is answered once, right after the message that made it; each answer has its call (F01, F02)",
    "order": "answers come first in their turn, and nothing is between calls and answers (Anthropic)",
    "call-id": "call ids are unique, not empty, not too long, and of the characters the provider accepts",
    "name": "names of tools and authors are of the characters the provider accepts",
    "arguments": "arguments are JSON, as an object or as text (F08)",
    "keys": "a strict reader knows every key (F09)",
    "utf8": "every text can be written as UTF-8",
    "media": "images and documents are of a type, size and number the provider accepts, with valid base64 (F06)",
    "thinking": "thinking is signed, does not end a message, and starts an open tool loop (Anthropic)",
    "trailing": "the final assistant message does not end in white space (Anthropic)",
    "prefill": "the last message is a user's, for models that require it (Anthropic)",
    "cache": "at most four cache marks, on blocks that allow one, the long-lived first (Anthropic)",
    "system": "system prompts and messages are where the provider expects them, with content that it accepts",
    "fallback": "where another model continued a reply, thinking and calls before that are left out (Anthropic)",
    "compaction": "a compaction block is where the provider expects it, unchanged and alone (Anthropic)",
    "tools": "tool definitions have a name and a schema",
    "size": "the body and its parts are within the provider's limits (F07)",
}
"""Every rule, by the name in refusals."""

PROVIDERS: Final[dict[str, Any]] = {
    "anthropic": AnthropicRules,
    "openai": OpenAIRules,
    "openai_chat": OpenAIRules,
    "openai_responses": ResponsesRules,
    "gemini": GeminiRules,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One problem that a provider would refuse."""

    rule: str
    """A name of `RULES`."""
    where: str
    """For example `messages[3].content[1]`, counted from 0 as in the body."""
    problem: str
    """The provider's error, in short."""
    provider: str
    """The provider."""

    def __str__(self) -> str:
        return f"{self.where}: {self.problem} [{self.provider}, {self.rule}]"


def check_body(provider: str, body: Mapping[str, Any] | bytes, *, strict: bool = False) -> list[Refusal]:
    """Return the problems in this request body that `provider` would refuse.

    `provider`: `anthropic`, `openai` (chat completions), `openai_responses` or `gemini`. `body`: the request as Python
    values or JSON bytes. `messages` (`input` for responses, `contents` for Gemini) is required; system, tools, model
    and thinking are checked if present. `strict` also refuses fields that are not documented, as some gateways do
    (F09). Raises BadSetting for an unknown provider.
    """
    return BodyChecker(provider, strict=strict).check(body)


class BodyChecker:
    """`check_body` for a growing conversation: it reads each message once.

    It remembers only bytes, because Python values may have changed. So bodies as bytes, or with the JSON bytes of each
    message in `messages`, are checked fastest. The results of single messages are remembered; pairs and order are
    checked again over the whole list.
    """

    def __init__(self, provider: str, *, strict: bool = False) -> None:
        if provider not in PROVIDERS:
            raise BadSetting(f"No body rules for provider {provider!r}. Known: {', '.join(PROVIDERS)}.")
        self.provider = provider
        """The format whose rules count."""
        self._rules: Any = PROVIDERS[provider](strict=strict)
        self._list_name: str = self._rules.list_name
        self._read: list[tuple[bytes | None, Any]] = []

    def check(self, body: Mapping[str, Any] | bytes) -> list[Refusal]:
        """Return the problems in this body that the provider would refuse."""
        size, key = 0, self._list_name
        if not isinstance(body, Mapping):
            size = len(body)
            try:
                body = _opened(body, key)
            except (ValueError, RecursionError) as error:
                return [self._refusal("json", "", f"the body is not a JSON object: {error}")]
        messages = body.get(key)
        if isinstance(messages, str) and key == "input":
            messages = [{"role": "user", "content": messages}]
        if not isinstance(messages, list) or not messages:
            return [self._refusal("messages", key, "at least one message is required")]
        facts = self._facts(messages)
        refusals = [
            self._refusal(rule, f"{key}[{position}]{path}", problem)
            for position, message in enumerate(facts)
            if message.faults
            for rule, path, problem in message.faults
        ]
        refusals += [self._refusal(*fault) for fault in self._rules.judge(facts, body)]
        limit: int = self._rules.bytes_max
        # JSON needs at most six bytes per character: an exact count is needed only near the limit.
        if not size and sum([message.size for message in facts]) + sum(map(len, _prompts(body))) > limit // 12:
            size = _size({**body, key: messages}, key)
        if size > limit:
            refusals.append(self._refusal("size", "", f"Request exceeds the maximum size: {size} bytes > {limit}"))
        return refusals

    def _facts(self, messages: Sequence[object]) -> list[Any]:
        before, self._read = self._read, []
        facts: list[Any] = []
        for position, message in enumerate(messages):
            if not isinstance(message, bytes):
                facts.append(self._rules.read(message))
                self._read.append((None, None))
                continue
            if position >= len(before) or before[position][0] != message:
                self._read.append((message, self._rules.read(_decoded(message))))
            else:
                self._read.append(before[position])
            facts.append(self._read[-1][1])
        return facts

    def _refusal(self, rule: str, where: str, problem: str) -> Refusal:
        return Refusal(rule, where, problem, self.provider)


def _prompts(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of the system prompt."""
    yield from strings([body.get("system"), body.get("instructions")])


def _opened(body: bytes, key: str) -> dict[str, Any]:
    """Return a JSON body as values, with messages as bytes. Raises ValueError or RecursionError."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    values = {name: msgspec.json.decode(value) for name, value in fields.items() if name != key}
    try:
        values[key] = [*map(bytes, msgspec.json.decode(fields[key], type=list[msgspec.Raw]))]
    except (KeyError, msgspec.ValidationError):
        values[key] = msgspec.json.decode(fields[key]) if key in fields else None
    return values


def _decoded(message: bytes) -> object:
    try:
        return msgspec.json.decode(message)
    except (ValueError, RecursionError):
        return None  # Invalid JSON is refused for its shape.


def _size(body: Mapping[str, Any], key: str) -> int:
    """Return the size of the body as JSON; 0 if it cannot be encoded, which another rule reports."""
    messages = [msgspec.Raw(item) if isinstance(item, bytes) else item for item in body[key]]
    try:
        return len(msgspec.json.encode({**body, key: messages}))
    except (TypeError, ValueError, RecursionError):
        return 0
