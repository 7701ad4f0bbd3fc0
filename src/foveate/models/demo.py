"""The model `demo`: offline, without a key, with the same answers each time.

It is a small program, not a language model, and reports that. It uses the tools of the request, reads their real
results, and expands shrunk ones, so that a user can watch all features of foveate. `demo_replies.py` decides on the
answer; this module writes it in the providers' wire formats, streams it and computes a bill.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from hashlib import blake2b
from itertools import takewhile
from typing import Any

from ..core.messages import Message, ToolCall
from ..core.sizes import estimate
from ..core.stamps import Usage
from ..errors import BadSetting
from ..formats import get_format
from ..ports import Delta, StreamEnd
from ..ports.reply_streams import AsyncReplyStream, JoinedPieces, ReplyStream
from .demo_replies import answer_to
from .demo_request import ToolSet

__all__ = ["WINDOW", "DemoModel", "PromptTooLong", "demo_model"]

_PIECE = re.compile(r"\s*\S+\s*?(?=\s|$)|\s+")
_FORMATS = ("openai", "anthropic")
WINDOW = 16_000
"""Tokens. The window is small, so that a conversation soon outgrows it."""


def demo_model(
    format: str = "openai", *, pace: float = 0.0, window: int = WINDOW, asynchronous: bool = False
) -> DemoModel:
    """Return a model that needs neither a key nor a network, in the format `openai` or `anthropic`.

    `pace`: the delay between two pieces of a streamed answer, in seconds. `window`: the largest prompt that it accepts,
    in tokens. `asynchronous`: the answers are awaitable. Raises BadSetting.
    """
    if format not in _FORMATS:
        raise BadSetting(f"Format of the demo must be {' or '.join(_FORMATS)}, not {format!r:.60}.")
    if isinstance(pace, bool) or not isinstance(pace, int | float) or not 0 <= pace <= 10:
        raise BadSetting(f"pace= must be a number of seconds from 0 to 10, not {pace!r:.60}.")
    if type(window) is not int or window < 1:
        raise BadSetting(f"window= must be a whole number of tokens above 0, not {window!r:.60}.")
    return DemoModel(format, pace, window, asynchronous=asynchronous)


class PromptTooLong(ValueError):
    """A prompt is larger than the demo's window. A provider refuses such a prompt with this status and these words."""

    status_code = 400

    def __init__(self, tokens: int, window: int) -> None:
        self.tokens, self.window = tokens, window
        super().__init__(f"prompt is too long: {tokens:,} tokens > {window:,} maximum")


class DemoModel:
    """The demo model (see `demo_model`). It is a `ports.StreamingModel`; several threads may use it.

    Its bill imitates a provider's: the part that is the same as in the last request counts as read from the cache, the
    rest as new.
    """

    def __init__(
        self, format: str = "openai", pace: float = 0.0, window: int = WINDOW, *, asynchronous: bool = False
    ) -> None:
        self.name: str = "demo"
        self.format: str = format
        self.pace: float = pace
        self.window: int = window
        self.asynchronous: bool = asynchronous
        """Whether callers await `complete` and iterate over `stream` with `async for`."""
        self._before: list[str] = []
        """The last request in pieces, as a provider's cache would hold it."""

    def complete(self, body: Mapping[str, Any]) -> Any:
        """Return the response to a request, as plain values; as an awaitable if the model is asynchronous.

        Raises PromptTooLong for a request that is larger than the window, and BadMessage for one that it cannot read.
        """
        if self.asynchronous:
            return self._complete_async(body)
        return self._response(*self._answer(body))

    def stream(self, body: Mapping[str, Any]) -> Any:
        """Yield the response word by word, and finally all of it. The iterator is asynchronous if the model is."""
        arrived = JoinedPieces(self.format)
        if self.asynchronous:
            return AsyncReplyStream(self._stream_async(body, arrived), arrived.partial)
        return ReplyStream(self._stream(body, arrived), arrived.partial)

    def close(self) -> Any:
        """Do nothing; other models close their connections here. Returns an awaitable if the model is asynchronous."""
        return _done() if self.asynchronous else None

    async def _complete_async(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._response(*self._answer(body))

    def _stream(self, body: Mapping[str, Any], arrived: JoinedPieces) -> Generator[Delta | StreamEnd]:
        for piece in self._parts(body, arrived):
            yield piece
            if self.pace and isinstance(piece, Delta):
                time.sleep(self.pace)

    async def _stream_async(self, body: Mapping[str, Any], arrived: JoinedPieces) -> AsyncGenerator[Delta | StreamEnd]:
        import asyncio

        for piece in self._parts(body, arrived):
            yield piece
            if self.pace and isinstance(piece, Delta):
                await asyncio.sleep(self.pace)

    def _parts(self, body: Mapping[str, Any], arrived: JoinedPieces) -> Iterator[Delta | StreamEnd]:
        message, usage, mark = self._answer(body)
        pieces = [Delta("text", piece) for piece in _PIECE.findall(message.text)]
        pieces += [Delta("call", call.arguments, call.name) for call in message.calls]
        for piece in pieces:
            arrived.add(piece)
            yield piece
        yield StreamEnd(self._response(message, usage, mark))

    def _answer(self, body: Mapping[str, Any]) -> tuple[Message, Usage, str]:
        """Return the reply to a request, its usage, and an id unique to the request."""
        pieces = [json.dumps(_unmarked(piece), sort_keys=True, default=str) for piece in _pieces(body)]
        mark = blake2b("".join(pieces).encode(errors="replace"), digest_size=6).hexdigest()
        before, self._before = self._before, pieces
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(before, pieces, strict=False))))
        read, new = sum(map(estimate, pieces[:same])), sum(map(estimate, pieces[same:]))
        if read + new > self.window:
            raise PromptTooLong(read + new, self.window)
        format = get_format(self.format)
        history = [message for wire in body.get("messages", ()) for message in format.parse(wire)]
        message = answer_to(history, ToolSet(body.get("tools") or ()), mark)
        output = estimate(message.text) + sum(estimate(call.name + call.arguments) for call in message.calls)
        return message, Usage(0, read, new, max(1, output)), mark

    def _response(self, message: Message, usage: Usage, mark: str) -> dict[str, Any]:
        written = _anthropic if self.format == "anthropic" else _openai
        return written(message, usage, mark)


async def _done() -> None:
    """Return at once."""


def _pieces(body: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parts of a request in the order in which providers cache them."""
    yield [body.get("tools"), body.get("system")]
    yield from body.get("messages", ())


def _unmarked(value: Any) -> Any:
    """Return the value without cache marks, which are not part of a message."""
    match value:
        case Mapping():
            return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
        case list() | tuple():
            return [_unmarked(item) for item in value]
        case _:
            return value


def _anthropic(message: Message, usage: Usage, mark: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    content += [
        {"type": "tool_use", "id": call.call_id, "name": call.name, "input": json.loads(call.arguments)}
        for call in message.calls
    ]
    return {
        "id": f"msg_{mark}",
        "type": "message",
        "role": "assistant",
        "model": "demo",
        "content": content,
        "stop_reason": "tool_use" if message.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": usage.output,
        },
    }


def _openai(message: Message, usage: Usage, mark: str) -> dict[str, Any]:
    reply: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if message.calls:
        reply["tool_calls"] = [_openai_call(call) for call in message.calls]
    prompt, output = usage.prompt_tokens or 0, usage.output or 0
    return {
        "id": f"chatcmpl-{mark}",
        "object": "chat.completion",
        "created": 0,
        "model": "demo",
        "choices": [{"index": 0, "finish_reason": "tool_calls" if message.calls else "stop", "message": reply}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        },
    }


def _openai_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
