"""Responses of the providers: as JSON values, SDK objects, deltas and server-sent events.

The content is a message, and the usage is an argument. The event sequences follow the references of both APIs.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any, Final

from ..core.messages import Message, Reasoning, Text
from ..ports import Delta
from .gemini import gemini_deltas, gemini_events, sdk_fields
from .openai_responses import response_deltas, response_events
from .usage import BilledTokens, tokens_of, unmarked

__all__ = [
    "SIGNED",
    "Reply",
    "anthropic_events",
    "anthropic_response",
    "as_reply",
    "as_sent",
    "as_values",
    "deltas",
    "error_event",
    "events",
    "gemini_reply",
    "openai_events",
    "openai_response",
    "sign",
    "split_words",
]

SIGNED: Final = "signed-"
"""Prefix of signatures made here."""


class Reply(SimpleNamespace):
    """A response like the SDK's: nested attributes, and `model_dump()`."""

    def model_dump(self, *, exclude_none: bool = False, **_: object) -> dict[str, Any]:
        """Return plain values like the SDK's objects, without empty fields if `exclude_none`."""
        plain: dict[str, Any] = _dumped(self, exclude_none)
        return plain


def sign(request: Mapping[str, Any], position: int) -> str:
    """Return the signature of thinking after the first `position` messages of a request."""
    before = [request.get("system"), request.get("tools"), request["messages"][:position]]
    return SIGNED + blake2b(json.dumps(unmarked(before)).encode(), digest_size=12).hexdigest()


def anthropic_response(reply: Message, number: int, billed: BilledTokens, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response of the Messages API. Thinking without a signature is signed."""
    content: list[dict[str, Any]] = []
    for part in reply.parts:
        match part:
            case Text(text):
                content.append({"citations": None, "text": text, "type": "text"})
            case Reasoning(encrypted=data) if data:
                content.append({"data": data, "type": "redacted_thinking"})
            case Reasoning(text, signature):
                signature = signature or sign(request, len(request["messages"]))
                content.append({"signature": signature, "thinking": text, "type": "thinking"})
    for call in reply.calls:
        arguments = json.loads(call.arguments)
        content.append({"id": call.call_id, "input": arguments, "name": call.name, "type": "tool_use"})
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
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "type": "message",
        "usage": usage,
    }


def openai_response(reply: Message, number: int, billed: BilledTokens, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response of chat completions. Readable reasoning is in the field that compatible servers use."""
    thought = "\n".join(part.text for part in reply.parts if isinstance(part, Reasoning) and part.text)
    calls = [
        {"id": call.call_id, "function": {"arguments": call.arguments, "name": call.name}, "type": "function"}
        for call in reply.calls
    ]
    message = {
        "content": reply.text or (None if calls else ""),
        "refusal": None,
        "role": "assistant",
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": calls or None,
    }
    if thought:
        message["reasoning_content"] = thought
    output = tokens_of({"content": reply.text, "calls": calls, "thought": thought}) - 4
    reasoning = tokens_of({"thought": thought}) - 4
    usage = {
        "completion_tokens": output,
        "prompt_tokens": billed.total,
        "total_tokens": billed.total + output,
        "completion_tokens_details": {"reasoning_tokens": reasoning},
        "prompt_tokens_details": {"cached_tokens": billed.read},
    }
    choice = {"finish_reason": "tool_calls" if calls else "stop", "index": 0, "logprobs": None, "message": message}
    return {
        "id": f"chatcmpl-{number:04}",
        "choices": [choice],
        "created": 1_790_000_000 + number,
        "model": request.get("model", "scripted"),
        "object": "chat.completion",
        "usage": usage,
    }


def as_reply(value: Mapping[str, Any]) -> Reply:
    """Return plain values as an object. A tool's input and result stay dicts, as in the SDKs."""

    def inner(key: str, item: Any) -> Any:
        if isinstance(item, Mapping) and key not in ("input", "args", "response"):
            return as_reply(item)
        return [inner(key, element) for element in item] if isinstance(item, list) else item

    return Reply(**{key: inner(key, item) for key, item in value.items()})


def gemini_reply(response: Mapping[str, Any]) -> Reply:
    """Return a response of Gemini as its SDK gives it: with the SDK's names, and with `text`."""
    reply = as_reply(sdk_fields(response))
    parts = [part for candidate in reply.candidates[:1] for part in candidate.content.parts or ()]
    reply.text = "".join(part.text for part in parts if part.text and not part.thought) or None
    return reply


def _dumped(value: Any, exclude_none: bool) -> Any:
    if isinstance(value, Reply):
        fields = vars(value).items()
        return {key: _dumped(item, exclude_none) for key, item in fields if item is not None or not exclude_none}
    return [_dumped(item, exclude_none) for item in value] if isinstance(value, list) else copy.deepcopy(value)


def as_values(value: Any) -> Any:
    """Return a request as plain values, including replies of the SDK in it."""
    if isinstance(value, Reply):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {key: as_values(item) for key, item in value.items()}
    return [as_values(item) for item in value] if isinstance(value, list | tuple) else copy.deepcopy(value)


_WORD = re.compile(r"\s*\S+\s*|\s+")


def deltas(response: Mapping[str, Any]) -> Iterator[Delta]:
    """Yield the deltas of a response of any provider, in order."""
    if "candidates" in response:
        yield from gemini_deltas(response, split_words)
    elif "output" in response:
        yield from response_deltas(response, split_words)
    elif "choices" in response:
        for choice in response["choices"][:1]:
            yield from _of_openai(choice["message"])
    else:
        for block in response.get("content", ()):
            yield from _of_anthropic(block)


def split_words(text: str) -> Sequence[str]:
    """Return a text as a list of words."""
    return _WORD.findall(text)


def _of_anthropic(block: Mapping[str, Any]) -> Iterator[Delta]:
    match block:
        case {"type": "text", "text": text}:
            yield from (Delta("text", piece) for piece in split_words(text))
        case {"type": "thinking", "thinking": text}:
            yield from (Delta("reasoning", piece) for piece in split_words(text))
        case {"type": "tool_use", "name": name, "input": arguments}:
            yield from _call(name, json.dumps(arguments, ensure_ascii=False) if arguments else "")


def _of_openai(message: Mapping[str, Any]) -> Iterator[Delta]:
    yield from (Delta("reasoning", piece) for piece in split_words(message.get("reasoning_content") or ""))
    yield from (Delta("text", piece) for piece in split_words(message.get("content") or ""))
    for call in message.get("tool_calls") or ():
        if function := call.get("function"):
            yield from _call(function["name"], function["arguments"])


def _call(name: str, arguments: str) -> Iterator[Delta]:
    yield Delta("call", "", name)
    yield from (Delta("call", piece) for piece in split_words(arguments))


def anthropic_events(response: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the events of a response of the Messages API."""
    usage = response.get("usage") or {}
    start = {**response, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _event({"type": "message_start", "message": start})
    for index, block in enumerate(response.get("content", ())):
        empty, updates = _block_events(block)
        yield _event({"type": "content_block_start", "index": index, "content_block": empty})
        if not index:
            yield _event({"type": "ping"})
        for delta in updates:
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    end = {key: response.get(key) for key in ("stop_reason", "stop_sequence")}
    output = {"output_tokens": usage.get("output_tokens", 0)}
    yield _event({"type": "message_delta", "delta": end, "usage": output})
    yield _event({"type": "message_stop"})


def openai_events(response: Mapping[str, Any], *, usage: bool) -> Iterator[bytes]:
    """Yield the events of a chat completion. `usage`: with a final chunk of its usage."""
    head = {key: value for key, value in response.items() if key not in ("choices", "usage", "object")}
    head = {**head, "object": "chat.completion.chunk"}
    for choice in response["choices"]:
        for delta in _deltas(choice["message"]):
            yield _data({**head, "choices": [{"index": choice["index"], "delta": delta, "finish_reason": None}]})
        end = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
        yield _data({**head, "choices": [end]})
    if usage:
        yield _data({**head, "choices": [], "usage": response["usage"]})
    yield b"data: [DONE]\n\n"


def events(response: Mapping[str, Any], *, usage: bool = True) -> Iterator[bytes]:
    """Yield the server-sent events of a response of any provider. `usage`: as for `openai_events`."""
    response = as_sent(response)
    if "candidates" in response:
        yield from gemini_events(response, split_words)
    elif "output" in response:
        numbered = enumerate(response_events(response, split_words))
        yield from (_event({**event, "sequence_number": number}) for number, event in numbered)
    elif "choices" in response:
        yield from openai_events(response, usage=usage)
    else:
        yield from anthropic_events(response)


def as_sent(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response as its API writes it: without the keys of blocks and messages that only the SDK shows as None.

    Some clients refuse null there.
    """
    sent = dict(response)
    if "choices" in response:
        sent["choices"] = [
            {**choice, "message": _without_none(choice["message"], but=("content", "refusal"))}
            for choice in response["choices"]
        ]
    elif isinstance(content := response.get("content"), list):
        sent["content"] = [_without_none(block) for block in content]
    return sent


def _without_none(values: Mapping[str, Any], but: Sequence[str] = ()) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None or key in but}


def error_event(body: Mapping[str, Any]) -> bytes:
    """Return an error event for the middle of a stream, as its provider writes it."""
    return _event(body) if "type" in body else _data(body)


def _block_events(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the start of a block, and the events that complete it."""
    match block:
        case {"type": "text", "text": text}:
            return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in split_words(text)]
        case {"type": "thinking", "thinking": text, "signature": signature}:
            updates: list[dict[str, Any]] = [
                {"type": "thinking_delta", "thinking": piece} for piece in split_words(text)
            ]
            updates.append({"type": "signature_delta", "signature": signature})
            return {**block, "thinking": "", "signature": ""}, updates
        case {"type": "tool_use", "input": arguments}:
            words = split_words(json.dumps(arguments, ensure_ascii=False)) if arguments else ()
            pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *words)]
            return {**block, "input": {}}, pieces
    return dict(block), []


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": message["role"], "content": ""}
    for key, value in sorted(message.items(), key=lambda item: not item[0].startswith("reasoning")):
        match key, value:
            case "role" | "tool_calls", _:
                continue
            case "content" | "reasoning_content" | "reasoning" | "refusal", str(text):
                for piece in split_words(text):
                    yield {key: piece}
            case _ if value not in (None, []):
                yield {key: value}
    for index, call in enumerate(message.get("tool_calls") or ()):
        kind = call["type"]
        field = "arguments" if kind == "function" else "input"
        yield {"tool_calls": [{"index": index, **call, kind: {**call[kind], field: ""}}]}
        for piece in split_words(call[kind][field]):
            yield {"tool_calls": [{"index": index, kind: {field: piece}}]}


def _event(values: Mapping[str, Any]) -> bytes:
    return f"event: {values['type']}\n".encode() + _data(values)


def _data(values: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(values, ensure_ascii=False).encode() + b"\n\n"
