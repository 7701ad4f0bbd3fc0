"""A client that keeps its own list, in front of a scripted model: requests and answers pass through `WireRequest`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from foveate import Conversation, Message, Reasoning, Text, ToolCall, open_conversation
from foveate.formats import gather
from foveate.requests import WireRequest, api_of
from foveate.stores.memory import MemoryStore
from foveate.testing import ScriptedModel
from foveate.testing.responses import events

PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions", "openai_responses": "/v1/responses"}
MODELS = {"anthropic": "claude-opus-4-5", "openai": "gpt-5", "openai_responses": "gpt-5", "gemini": "gemini-3-pro"}
CONTENTS = {"anthropic": "content", "gemini": "parts"}
EVENTS = 10**9
"""The size of pieces with one event each."""
_SCHEMA = {"type": "object", "properties": {}}
TOOLS: dict[str, Any] = {
    "anthropic": [{"name": "read", "input_schema": _SCHEMA}],
    "openai": [{"type": "function", "function": {"name": "read", "parameters": _SCHEMA}}],
    "openai_responses": [{"type": "function", "name": "read", "parameters": _SCHEMA}],
    "gemini": [{"functionDeclarations": [{"name": "read", "parametersJsonSchema": _SCHEMA}]}],
}


def expansion(id: str, arguments: str = '{"handle": "m3"}', *, text: str = "", thought: str = "") -> Message:
    """A reply that asks to expand something."""
    return reply(ToolCall(id, "expand", arguments), text=text, thought=thought)


def reply(*calls: ToolCall, text: str = "", thought: str = "") -> Message:
    """A reply with calls."""
    parts = [Reasoning(thought, format="anthropic")] if thought else []
    return Message("assistant", (*parts, *([Text(text)] if text else []), *calls))


def read(id: str) -> ToolCall:
    """A call of the client's own tool."""
    return ToolCall(id, "read", "{}")


class Client:
    """A program with one conversation."""

    def __init__(self, format: str, script: Any, *, store: MemoryStore | None = None, **options: Any) -> None:
        self.format, self.options = format, {"policy": "keep-last-1", "window": 50_000, "expand": None, **options}
        self.store = store or MemoryStore()
        self.model = ScriptedModel(script, format, binds_reasoning=options.get("model") is not None)
        self.name = options.pop("model", None) or MODELS[format]
        self.options.pop("model", None)
        self.items: list[Any] = []
        self.fields: dict[str, Any] = {"store": False} if format == "openai_responses" else {}
        if format == "anthropic":
            self.fields["max_tokens"] = 1000
        self.answers: list[dict[str, Any]] = []
        self.streams: list[bytes] = []
        self.chat = self.opened()

    def opened(self) -> Conversation:
        """Open the conversation again, as another process does."""
        return open_conversation("c", format=self.format, store=self.store, **self.options)

    def request(self, *, stream: bool = False) -> WireRequest:
        """Return the next request."""
        tools = TOOLS[self.format]
        body = {"tools": tools, **self.fields}
        if self.format == "gemini":
            method = "streamGenerateContent" if stream else "generateContent"
            api = api_of(f"/v1beta/models/{self.name}:{method}", "alt=sse")
        else:
            api = api_of(PATHS[self.format])
            body |= {"model": self.name, "stream": stream}
        assert api is not None
        body[api.messages] = self.items
        return WireRequest(self.chat, api, json.dumps(body).encode())

    def ask(self, *, stream: bool = False, size: int = 1000) -> dict[str, Any]:
        """Send the list, and add the answer to it. `size`: bytes of a piece of the stream, or EVENTS."""
        request = self.request(stream=stream)
        out = b""
        while True:
            response = self.model.answer(json.loads(request.content)).response
            if not stream:
                whole = request.received(json.dumps(response).encode())
                if whole is None:
                    assert request.follow_up == request.content
                    continue
                assert request.follow_up is None
                answer = json.loads(whole)
                break
            pieces = list(events(response, usage=True))
            if size != EVENTS:
                sent = b"".join(pieces)
                pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
            for piece in pieces:
                out += request.feed(piece)
            out += request.ended()
            if request.follow_up is None:
                answer = gathered(self.format, out)
                break
        self.streams.append(out)
        self.answers.append(answer)
        self.items += answered(self.format, answer)
        return answer

    def say(self, text: str) -> None:
        """Add a message of the user."""
        self.items.append(spoken(self.format, text))

    def give(self, text: str) -> None:
        """Add the results of all calls in the newest answer."""
        for id in calls_in(self.format, self.answers[-1]):
            self.items.append(result(self.format, id, text))
        if self.format in ("anthropic", "gemini"):  # One message for all.
            count, key = len(calls_in(self.format, self.answers[-1])), CONTENTS[self.format]
            blocks = [item[key][0] for item in self.items[-count:]]
            self.items[-count:] = [{"role": "user", key: blocks}]


def gathered(format: str, stream: bytes) -> dict[str, Any]:
    """Return the answer in a stream, which has one beginning, one end, and blocks in order."""
    check_stream(format, stream)
    gatherer = gather(format)
    gatherer.feed(stream)
    whole = gatherer.whole()
    assert whole is not None
    return whole


def events_in(stream: bytes) -> list[dict[str, Any]]:
    """Return the data of all events."""
    lines = [line.removeprefix(b"data: ") for line in stream.split(b"\n") if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


def check_stream(format: str, stream: bytes) -> None:
    """Assert what clients rely on."""
    data = events_in(stream)
    kinds = [each.get("type") for each in data]
    match format:
        case "anthropic":
            assert (kinds.count("message_start"), kinds.count("message_delta"), kinds.count("message_stop")) == (
                1,
                1,
                1,
            )
            assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
            starts = [each["index"] for each in data if each["type"] == "content_block_start"]
            stops = [each["index"] for each in data if each["type"] == "content_block_stop"]
            assert starts == stops == list(range(len(starts)))
        case "openai":
            assert len({each["id"] for each in data}) == 1
            assert sum(bool(choice.get("finish_reason")) for each in data for choice in each["choices"]) == 1
            assert sum("role" in choice["delta"] for each in data for choice in each["choices"]) <= 1
            assert sum(bool(each.get("usage")) for each in data) == 1
            assert stream.count(b"data: [DONE]") == 1
        case "gemini":
            assert len({each["responseId"] for each in data}) == 1
            reasons = [each["candidates"][0].get("finishReason") for each in data]
            assert [reason for reason in reasons if reason] == reasons[-1:]
        case _:
            assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
            assert (kinds.count("response.created"), kinds.count("response.completed")) == (1, 1)
            numbers = [each["sequence_number"] for each in data]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            added = [each["output_index"] for each in data if each["type"] == "response.output_item.added"]
            assert added == list(range(len(added)))
            done = [each["item"] for each in data if each["type"] == "response.output_item.done"]
            assert done == data[-1]["response"]["output"]
            assert data[-1]["response"]["id"] == data[0]["response"]["id"]


def answered(format: str, answer: Mapping[str, Any]) -> list[Any]:
    """Return the items that a client appends for an answer."""
    match format:
        case "anthropic":
            return [{"role": "assistant", "content": answer["content"]}] if answer["content"] else []
        case "openai":
            message = {key: value for key, value in answer["choices"][0]["message"].items() if value is not None}
            return [{"content": None, **message}] if message.keys() & {"content", "tool_calls"} else []
        case "gemini":
            content = answer["candidates"][0]["content"]
            return [content] if content["parts"] else []
        case _:
            return [{key: value for key, value in item.items() if value is not None} for item in answer["output"]]


def calls_in(format: str, answer: Mapping[str, Any]) -> list[str]:
    """Return the ids of the calls in an answer."""
    match format:
        case "anthropic":
            return [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
        case "openai":
            return [call["id"] for call in answer["choices"][0]["message"].get("tool_calls") or ()]
        case "gemini":
            parts = answer["candidates"][0]["content"]["parts"]
            return [part["functionCall"]["id"] for part in parts if "functionCall" in part]
        case _:
            return [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]


def text_in(format: str, answer: Mapping[str, Any]) -> str:
    """Return the text of an answer."""
    match format:
        case "anthropic":
            return "".join(block["text"] for block in answer["content"] if block["type"] == "text")
        case "openai":
            return answer["choices"][0]["message"].get("content") or ""
        case "gemini":
            return "".join(part.get("text", "") for part in answer["candidates"][0]["content"]["parts"])
        case _:
            parts = [part for item in answer["output"] for part in item.get("content") or ()]
            return "".join(part["text"] for part in parts if part["type"] == "output_text")


def spoken(format: str, text: str, role: str = "user") -> dict[str, Any]:
    """Return the item of a text that somebody said."""
    if format == "gemini":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    return {"role": role, "content": text}


def usage_in(format: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage in an answer."""
    usage: dict[str, Any] = answer["usageMetadata" if format == "gemini" else "usage"]
    return usage


def result(format: str, id: str, text: str) -> dict[str, Any]:
    """Return the item with the result of a call."""
    match format:
        case "anthropic":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}
        case "openai":
            return {"role": "tool", "tool_call_id": id, "content": text}
        case "gemini":
            response = {"id": id, "name": "read", "response": {"output": text}}
            return {"role": "user", "parts": [{"functionResponse": response}]}
        case _:
            return {"type": "function_call_output", "call_id": id, "output": text}


def said(request: Mapping[str, Any]) -> str:
    """Return a request as text, to look for words in it."""
    return msgspec.json.encode(request).decode()


def names_in(messages: Sequence[Message]) -> list[str]:
    """Return the names of all calls."""
    return [call.name for message in messages for call in message.calls]
