"""Responses of Gemini for a scripted model: as JSON values, under the SDK's names, and as server-sent events."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..core.messages import Message, Reasoning, Text
from ..ports import Delta
from .usage import BilledTokens, tokens_of

__all__ = ["gemini_deltas", "gemini_events", "gemini_response", "sdk_fields"]

Split = Callable[[str], Sequence[str]]
"""Returns the words of a text."""

_SIGNATURE = "c2lnbmVkLWhlcmU="
"""The thought signature of every first call and last text."""
_UNSET = ("text", "thought", "thought_signature", "inline_data", "function_call", "function_response")
"""Fields that a part of the SDK always has."""


def gemini_response(reply: Message, number: int, billed: BilledTokens, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a GenerateContentResponse. The first call, or the last text, has a thought signature.

    A call without an id is sent without one: its id is its name.
    """
    parts: list[dict[str, Any]] = []
    for part in reply.parts:
        match part:
            case Text(text):
                parts.append({"text": text})
            case Reasoning(text):
                parts.append({"text": text, "thought": True})
    signed = len(parts) - 1
    for call in reply.calls:
        own = {} if call.call_id == call.name else {"id": call.call_id}
        parts.append({"functionCall": {**own, "name": call.name, "args": json.loads(call.arguments)}})
    if reply.calls:
        signed = len(parts) - len(reply.calls)
    if parts:
        parts[signed]["thoughtSignature"] = _SIGNATURE
    thoughts = tokens_of([part for part in parts if part.get("thought")]) - 4
    written = tokens_of([part for part in parts if not part.get("thought")]) - 4
    usage = {
        "promptTokenCount": billed.total,
        "cachedContentTokenCount": billed.read,
        "candidatesTokenCount": written,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": billed.total + written + thoughts,
    }
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}
    model = str(request.get("model") or "scripted").rpartition("/")[2]
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": f"r{number:04}"}


def sdk_fields(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response under the SDK's names, with the fields that a part of the SDK always has."""
    fields: dict[str, Any] = _renamed(response)
    for candidate in fields["candidates"]:
        content = candidate["content"]
        content["parts"] = [{**dict.fromkeys(_UNSET), **part} for part in content["parts"]]
    return fields


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    names = {key: re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", key) for key in value}
    return {names[key]: item if key in ("args", "response") else _renamed(item) for key, item in value.items()}


def gemini_deltas(response: Mapping[str, Any], split: Split) -> Iterator[Delta]:
    """Yield the deltas of a response, in order."""
    for part in _parts_of(response):
        if call := part.get("functionCall"):
            yield Delta("call", "", call["name"])
            yield Delta("call", json.dumps(call.get("args") or {}, ensure_ascii=False))
        else:
            words = split(part.get("text", ""))
            yield from (Delta("reasoning" if part.get("thought") else "text", word) for word in words)


def gemini_events(response: Mapping[str, Any], split: Split) -> Iterator[bytes]:
    """Yield the events of a response: texts word by word, a signature in a part of its own, calls together."""
    head = {key: value for key, value in response.items() if key not in ("candidates", "usageMetadata")}
    for candidate in response.get("candidates", ()):
        pieces: list[list[dict[str, Any]]] = []
        for part in candidate["content"]["parts"]:
            if pieces and "functionCall" in part and "functionCall" in pieces[-1][-1]:
                pieces[-1].append(dict(part))
            else:
                pieces += [[piece] for piece in _pieces(part, split)]
        for parts in pieces[:-1]:
            content = {"parts": parts, "role": "model"}
            yield _data({**head, "candidates": [{"content": content, "index": candidate["index"]}]})
        # The last piece has the reason: clients drop an answer that has an event without parts.
        end = {**candidate, "content": {"parts": pieces[-1] if pieces else [], "role": "model"}}
        yield _data({**head, "candidates": [end], "usageMetadata": response.get("usageMetadata", {})})


def _pieces(part: Mapping[str, Any], split: Split) -> Iterator[dict[str, Any]]:
    if "text" not in part:
        yield dict(part)
        return
    thought = {"thought": True} if part.get("thought") else {}
    yield from ({"text": piece, **thought} for piece in split(part["text"]))
    if signature := part.get("thoughtSignature"):
        yield {"text": "", "thoughtSignature": signature}


def _parts_of(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    candidates = response.get("candidates") or [{}]
    parts: list[dict[str, Any]] = (candidates[0].get("content") or {}).get("parts") or []
    return parts


def _data(values: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(values, ensure_ascii=False).encode() + b"\r\n\r\n"
