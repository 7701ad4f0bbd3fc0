"""How a reply looks on the wire, and as the object that an SDK makes of it.

Knows the response shapes of both providers and nothing of scripts: what is said is a message, what it cost is given.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any, Final

from ..core.messages import Message, Reasoning, Text
from .usage import Billed, tokens_of, unmarked

__all__ = ["SIGNED", "Reply", "anthropic_response", "openai_response", "shown", "sign", "wired"]

SIGNED: Final = "signed-"
"""What signatures begin with that were made here."""


class Reply(SimpleNamespace):
    """A response like the SDK's: its fields are attributes, all the way down, and `model_dump()` gives them back."""

    def model_dump(self, *, exclude_none: bool = False, **_: object) -> dict[str, Any]:
        """Plain values, as the SDK's objects give them; without the empty fields if `exclude_none`."""
        plain: dict[str, Any] = _dumped(self, exclude_none)
        return plain


def sign(request: Mapping[str, Any], position: int) -> str:
    """The signature of thinking that comes after the first `position` messages of a request."""
    before = [request.get("system"), request.get("tools"), request["messages"][:position]]
    return SIGNED + blake2b(json.dumps(unmarked(before)).encode(), digest_size=12).hexdigest()


def anthropic_response(said: Message, number: int, billed: Billed, request: Mapping[str, Any]) -> dict[str, Any]:
    """A response of the Messages API. Thinking without a signature is signed."""
    content: list[dict[str, Any]] = []
    for part in said.parts:
        match part:
            case Text(text):
                content.append({"citations": None, "text": text, "type": "text"})
            case Reasoning(encrypted=data) if data:
                content.append({"data": data, "type": "redacted_thinking"})
            case Reasoning(text, signature):
                signature = signature or sign(request, len(request["messages"]))
                content.append({"signature": signature, "thinking": text, "type": "thinking"})
    for call in said.calls:
        arguments = json.loads(call.arguments)
        content.append({"id": call.call_id, "caller": None, "input": arguments, "name": call.name, "type": "tool_use"})
    usage = {
        "cache_creation_input_tokens": billed.written,
        "cache_read_input_tokens": billed.read,
        "input_tokens": billed.plain,
        "output_tokens": tokens_of({"content": content}) - 4,
        "service_tier": "standard",
    }
    return {
        "id": f"msg_{number:04}",
        "content": content,
        "model": request.get("model", "scripted"),
        "role": "assistant",
        "stop_reason": "tool_use" if said.calls else "end_turn",
        "stop_sequence": None,
        "type": "message",
        "usage": usage,
    }


def openai_response(said: Message, number: int, billed: Billed, request: Mapping[str, Any]) -> dict[str, Any]:
    """A response of chat completions. Thoughts that can be read are in the field that compatible servers use."""
    thought = "\n".join(part.text for part in said.parts if isinstance(part, Reasoning) and part.text)
    asked = [
        {"id": call.call_id, "function": {"arguments": call.arguments, "name": call.name}, "type": "function"}
        for call in said.calls
    ]
    message = {
        "content": said.text or (None if asked else ""),
        "refusal": None,
        "role": "assistant",
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": asked or None,
    }
    if thought:
        message["reasoning_content"] = thought
    output = tokens_of({"content": said.text, "calls": asked, "thought": thought}) - 4
    reasoning = tokens_of({"thought": thought}) - 4
    usage = {
        "completion_tokens": output,
        "prompt_tokens": billed.total,
        "total_tokens": billed.total + output,
        "completion_tokens_details": {"reasoning_tokens": reasoning},
        "prompt_tokens_details": {"cached_tokens": billed.read},
    }
    choice = {"finish_reason": "tool_calls" if asked else "stop", "index": 0, "logprobs": None, "message": message}
    return {
        "id": f"chatcmpl-{number:04}",
        "choices": [choice],
        "created": 1_790_000_000 + number,
        "model": request.get("model", "scripted"),
        "object": "chat.completion",
        "usage": usage,
    }


def shown(value: Mapping[str, Any]) -> Reply:
    """Plain values as an object. A tool's input stays a dict, as the SDK leaves it."""

    def inner(key: str, one: Any) -> Any:
        if isinstance(one, Mapping) and key != "input":
            return shown(one)
        return [inner(key, each) for each in one] if isinstance(one, list) else one

    return Reply(**{key: inner(key, one) for key, one in value.items()})


def _dumped(value: Any, exclude_none: bool) -> Any:
    if isinstance(value, Reply):
        fields = vars(value).items()
        return {key: _dumped(one, exclude_none) for key, one in fields if one is not None or not exclude_none}
    return [_dumped(one, exclude_none) for one in value] if isinstance(value, list) else copy.deepcopy(value)


def wired(value: Any) -> Any:
    """A copy in plain values of what a caller hands to the SDK, replies of the SDK among it."""
    if isinstance(value, Reply):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {key: wired(one) for key, one in value.items()}
    return [wired(one) for one in value] if isinstance(value, list | tuple) else copy.deepcopy(value)
