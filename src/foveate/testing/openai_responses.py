"""Responses of OpenAI's Responses API: as JSON values, deltas and server-sent events.

Source: the reference of the Responses API and its streaming events, November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.messages import Message, Reasoning, Text, ToolCall
from ..formats.responses.write import write
from ..ports import Delta
from .usage import BilledTokens, tokens_of

__all__ = ["response_deltas", "response_events", "response_of"]

ENCRYPTED = "gAAAA-"
"""Prefix of the encrypted content of reasoning that is made here."""
_OWN_ID = re.compile(r"(?:msg|rs|fc)_(\d{4})_")


def response_of(reply: Message, number: int, billed: BilledTokens, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response. Its items have ids that no item of the request has, and its reasoning an encrypted content."""
    given = request.get("input")
    ids = [str(item.get("id")) for item in given if isinstance(item, Mapping)] if isinstance(given, list) else []
    number = max([number, *[int(found[1]) + 1 for found in map(_OWN_ID.match, ids) if found]])
    output: list[dict[str, Any]] = []
    for part in reply.parts:
        id = f"{number:04}_{len(output)}"
        match part:
            case Text(text):
                content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
                item = {"id": f"msg_{id}", "type": "message", "role": "assistant", "content": content}
                output.append({**item, "status": "completed", "phase": None})
            case Reasoning(text, encrypted=encrypted):
                summary = [{"type": "summary_text", "text": text}] if text else []
                item = {"id": f"rs_{id}", "type": "reasoning", "summary": summary}
                output.append({**item, "encrypted_content": encrypted or f"{ENCRYPTED}{id}"})
            case ToolCall():
                [item] = write([Message("assistant", (part,))])
                output.append({"id": f"fc_{id}", "status": "completed", **item})
    thoughts = [item["summary"] for item in output if item["type"] == "reasoning"]
    size = tokens_of({"output": output}) - 4
    usage = {
        "input_tokens": billed.total,
        "input_tokens_details": {"cached_tokens": billed.read},
        "output_tokens": size,
        "output_tokens_details": {"reasoning_tokens": tokens_of({"thoughts": thoughts}) - 4},
        "total_tokens": billed.total + size,
    }
    return {
        "id": f"resp_{number:04}",
        "object": "response",
        "created_at": 1_790_000_000 + number,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": request.get("model", "scripted"),
        "output": output,
        "previous_response_id": None,
        "store": request.get("store", True),
        "usage": usage,
    }


def response_deltas(response: Mapping[str, Any], split: Any) -> Iterator[Delta]:
    """Yield the deltas of a response. `split` cuts a text into pieces."""
    for item in response["output"]:
        match item:
            case {"type": "message", "content": content}:
                for part in content:
                    yield from (Delta("text", piece) for piece in split(part.get("text") or part.get("refusal") or ""))
            case {"type": "reasoning", "summary": summary}:
                for part in summary:
                    yield from (Delta("reasoning", piece) for piece in split(part["text"]))
            case {"type": "function_call" | "custom_tool_call", "name": name}:
                yield Delta("call", "", name)
                yield from (Delta("call", piece) for piece in split(item.get("arguments", item.get("input"))))


def response_events(response: Mapping[str, Any], split: Any) -> Iterator[dict[str, Any]]:
    """Yield the events of a response, as values. `split` cuts a text into pieces."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        place = {"output_index": index, "item_id": item.get("id")}
        yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
        match item:
            case {"type": "message", "content": content}:
                for number, part in enumerate(content):
                    inside = {**place, "content_index": number}
                    kind, key = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
                    yield {"type": "response.content_part.added", **inside, "part": {**part, key: ""}}
                    for piece in split(part[key]):
                        yield {"type": f"response.{kind}.delta", **inside, "delta": piece}
                    yield {"type": f"response.{kind}.done", **inside, key: part[key]}
                    yield {"type": "response.content_part.done", **inside, "part": part}
            case {"type": "reasoning", "summary": summary}:
                for number, part in enumerate(summary):
                    inside = {**place, "summary_index": number}
                    kind, empty = "response.reasoning_summary", {**part, "text": ""}
                    yield {"type": f"{kind}_part.added", **inside, "part": empty}
                    for piece in split(part["text"]):
                        yield {"type": f"{kind}_text.delta", **inside, "delta": piece}
                    yield {"type": f"{kind}_text.done", **inside, "text": part["text"]}
                    yield {"type": f"{kind}_part.done", **inside, "part": part}
            case {"type": "function_call", "arguments": arguments}:
                for piece in split(arguments):
                    yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
                yield {"type": "response.function_call_arguments.done", **place, "arguments": arguments}
            case {"type": "custom_tool_call", "input": text}:
                for piece in split(text):
                    yield {"type": "response.custom_tool_call_input.delta", **place, "delta": piece}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    ends = "response.incomplete" if response.get("status") == "incomplete" else "response.completed"
    yield {"type": ends, "response": dict(response)}


def _begun(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as it is before its first piece."""
    empty = {"content": [], "arguments": "", "input": "", "summary": []}
    return {key: empty.get(key, value) for key, value in item.items() if key != "encrypted_content"}
