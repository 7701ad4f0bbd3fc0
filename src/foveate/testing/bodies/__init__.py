"""What a provider would refuse in a finished request body: the second opinion.

Written from the providers' references and from the error messages people have met, and apart from the rules by which
views are made, so that one can catch the other's mistakes. It looks at the wire alone: dicts and lists, or the JSON
bytes of the whole body. It costs a few microseconds a message, so it can stand before every call, simulated or real.

    >>> body = {"messages": [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "a", "content": "ok"}]}
    >>> [refusal.rule for refusal in check_body("openai", body)]
    ['pairing']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ...errors import BadSetting
from .anthropic import AnthropicRules
from .openai import OpenAIRules
from .values import strings

__all__ = ["RULES", "BodyChecker", "Refusal", "check_body"]

RULES: Final[dict[str, str]] = {
    "json": "the body is JSON",
    "shape": "lists hold objects of the documented shape",
    "messages": "there is at least one message",
    "role": "roles are those the provider knows",
    "first": "the first message is the user's (Anthropic)",
    "content": "content is a string or a list of blocks, and null only where calls stand in for it",
    "empty": "no empty message, text, list of calls or error result",
    "block": "each kind of block stands where the provider takes it",
    "pairing": "each call is answered once, right after the message that made it; each answer has its call (F01, F02)",
    "order": "answers come first in their turn, and nothing is said between calls and answers (Anthropic)",
    "call-id": "call ids are unique, not empty, not too long, and of the characters the provider takes",
    "name": "names of tools and speakers are of the characters the provider takes",
    "arguments": "arguments are JSON, as an object or as text (F08)",
    "keys": "a strict reader finds no key it does not know (F09)",
    "utf8": "every text can be written as UTF-8",
    "media": "images and documents are of a type, size and number the provider takes, their base64 is valid (F06)",
    "thinking": "thinking is signed, does not end a message, and starts an open tool loop (Anthropic)",
    "trailing": "the final assistant message does not end in white space (Anthropic)",
    "prefill": "the user has the last word, for models that want it so (Anthropic)",
    "cache": "at most four cache marks, on blocks that may have one, the long-lived first (Anthropic)",
    "system": "the system prompt stands where the provider looks for it, as text",
    "tools": "tool definitions have a name and a schema",
    "size": "the body and its parts are within the provider's limits (F07)",
}
"""Every rule, by the name that refusals carry."""

PROVIDERS: Final = {"anthropic": AnthropicRules, "openai": OpenAIRules, "openai_chat": OpenAIRules}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing a provider would refuse."""

    rule: str
    """A name of `RULES`."""
    where: str
    """For example `messages[3].content[1]`, counted from 0 as in the body."""
    says: str
    """What the provider says, in essence."""
    provider: str

    def __str__(self) -> str:
        return f"{self.where}: {self.says} [{self.provider}, {self.rule}]"


def check_body(provider: str, body: Mapping[str, Any] | bytes, *, strict: bool = False) -> list[Refusal]:
    """What `provider` ("anthropic" or "openai") would refuse in this request body; nothing: an empty list.

    `body` is what is sent, as Python values or as JSON bytes; `messages` is required, and what stands beside it
    (system, tools, model, thinking) is checked where given. `strict` adds what a gateway refuses that knows the
    documented fields only (F09). Raises BadSetting for a provider it does not know.
    """
    return BodyChecker(provider, strict=strict).check(body)


class BodyChecker:
    """`check_body` for a conversation that grows: messages it has read before are not read again.

    Only bytes are remembered, never Python values, which might have changed since. So a body that comes as bytes, or
    whose `messages` are the JSON bytes of each message, is checked quickest. What messages say alone is remembered;
    pairs and order are judged anew over the whole list each time.
    """

    def __init__(self, provider: str, *, strict: bool = False) -> None:
        if provider not in PROVIDERS:
            raise BadSetting(f"No body rules for provider {provider!r}. Known: {', '.join(PROVIDERS)}.")
        self.provider = provider
        self._rules: Any = PROVIDERS[provider](strict=strict)
        self._read: list[tuple[bytes | None, Any]] = []

    def check(self, body: Mapping[str, Any] | bytes) -> list[Refusal]:
        """What the provider would refuse in this body; nothing: an empty list."""
        size = 0
        if not isinstance(body, Mapping):
            size = len(body)
            try:
                body = _opened(body)
            except (ValueError, RecursionError) as error:
                return [self._refusal("json", "", f"the body is not a JSON object: {error}")]
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            return [self._refusal("messages", "messages", "at least one message is required")]
        facts = self._facts(messages)
        found = [
            self._refusal(rule, f"messages[{position}]{path}", says)
            for position, one in enumerate(facts)
            if one.faults
            for rule, path, says in one.faults
        ]
        found += [self._refusal(*fault) for fault in self._rules.judge(facts, body)]
        limit: int = self._rules.bytes_max
        # JSON writes a character in six bytes at most: an exact count is needed only near the limit.
        if not size and sum([one.size for one in facts]) + sum(map(len, strings(body.get("system")))) > limit // 12:
            size = _size(body)
        if size > limit:
            found.append(self._refusal("size", "", f"Request exceeds the maximum size: {size} bytes > {limit}"))
        return found

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

    def _refusal(self, rule: str, where: str, says: str) -> Refusal:
        return Refusal(rule, where, says, self.provider)


def _opened(body: bytes) -> dict[str, Any]:
    """A JSON body as values, its messages still bytes. Raises ValueError or RecursionError."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    values = {key: msgspec.json.decode(value) for key, value in fields.items() if key != "messages"}
    try:
        values["messages"] = [*map(bytes, msgspec.json.decode(fields["messages"], type=list[msgspec.Raw]))]
    except (KeyError, msgspec.ValidationError):
        values["messages"] = None
    return values


def _decoded(message: bytes) -> object:
    try:
        return msgspec.json.decode(message)
    except (ValueError, RecursionError):
        return None  # What is no JSON is no message: it is refused for its shape.


def _size(body: Mapping[str, Any]) -> int:
    """Bytes of the body as JSON; 0 where it cannot be written, which is refused for another reason."""
    messages = [msgspec.Raw(one) if isinstance(one, bytes) else one for one in body["messages"]]
    try:
        return len(msgspec.json.encode({**body, "messages": messages}))
    except (TypeError, ValueError, RecursionError):
        return 0
