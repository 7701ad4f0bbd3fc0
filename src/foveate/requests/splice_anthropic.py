"""One message for the client of several messages of Anthropic's.

The blocks of a call of ours are left out, and later blocks take their numbers. The messages after the first go on with
the numbers, without a beginning of their own.
"""

from __future__ import annotations

import re
from typing import Any

from .answer import IsOurs
from .events import StreamEvent, write_event
from .usage import continued

__all__ = ["AnthropicSplice"]

_PASSING = re.compile(rb"(?:event: (?:content_block_delta|content_block_stop|message_stop|ping)\ndata: [^\n]*\n\n)+")
"""Events, as Anthropic writes them, that change nothing while the client gets all blocks with their own numbers."""
_METRICS = "amazon-bedrock-invocationMetrics"
"""The key of the tokens that Amazon Bedrock counts, in the last event."""


class AnthropicSplice:
    """See `Splice`."""

    def __init__(self, is_ours: IsOurs) -> None:
        self._is_ours = is_ours
        self._is_first = True
        self._shown = 0  # blocks that the client has
        self._before: dict[str, Any] = {}  # usage of the answers before this one
        self._metrics_before: dict[str, Any] = {}  # the same, as Bedrock counts it
        self._start: dict[str, Any] = {}  # the first message, without its content
        self._content: list[Any] = []  # blocks of whole answers for the client
        self._begin()

    def _begin(self) -> None:
        self._places: dict[int, int | None] = {}  # numbers of the blocks at the client; None: ours
        self._is_renumbered = False  # whether a block has another number at the client
        self._has_others = False  # whether the client has a call of this answer
        self._usage: dict[str, Any] = {}
        self._metrics: dict[str, Any] = {}
        self._end: dict[str, Any] | None = None  # the event that ends the message, if it waits
        self._whole: dict[str, Any] = {}
        self.asks_only_us = False
        self.is_changed = not self._is_first

    def continue_with_next(self) -> None:
        """See `Splice`."""
        self._before, self._is_first = continued(self._before, self._usage), False
        self._metrics_before = continued(self._metrics_before, self._metrics)
        self._begin()

    # --------------------------------------------------------------------------------------------------------- streams

    def passing(self, piece: bytes, start: int) -> int:
        """See `Splice`."""
        passing = None if self.is_changed or self._is_renumbered else _PASSING.match(piece, start)
        return passing.end() if passing is not None else start

    def add(self, event: StreamEvent) -> bytes:
        """See `Splice`."""
        if event.name == "content_block_delta" and not (self.is_changed or self._is_renumbered):
            return event.raw  # Most events are such.
        data = event.data or {}
        match data.get("type"):
            case "message_start":
                self._usage = dict(data["message"].get("usage") or {})
                return event.raw if self._is_first else b""
            case "content_block_start":
                block, index = data["content_block"], data["index"]
                is_call = block.get("type") == "tool_use"
                if is_call and self._is_ours(block["name"]):
                    self._places[index], self.is_changed = None, True
                    return b""
                self._has_others |= is_call
                self._places[index] = self._shown
                self._is_renumbered |= index != self._shown
                self._shown += 1
                return self._numbered(event, index)
            case "content_block_delta" | "content_block_stop":
                return self._numbered(event, data["index"])
            case "message_delta":
                usage = data.get("usage") or {}
                self._usage |= {key: value for key, value in usage.items() if value is not None}
                if not self.is_changed:
                    return event.raw
                self._end = data
                return b""
            case "message_stop" if self._end is not None:
                self.asks_only_us = self._asks_only_us(self._end["delta"].get("stop_reason"))
                self._metrics = dict(data.get(_METRICS) or {})
                if self.asks_only_us:
                    return b""
                return self._ending() + (self._stop() if self._metrics_before else event.raw)
            case _:
                return event.raw

    def _numbered(self, event: StreamEvent, index: int) -> bytes:
        place = self._places[index]
        if place is None:
            return b""
        return event.raw if place == index else write_event({**(event.data or {}), "index": place}, event.name)

    def _asks_only_us(self, stop: object) -> bool:
        return None in self._places.values() and not self._has_others and stop == "tool_use"

    def _ending(self) -> bytes:
        """Return the event that ends the message, with the usage of all answers."""
        if self._end is None:
            return b""
        end = self._end if self._is_first else {**self._end, "usage": continued(self._before, self._usage)}
        return write_event(end, "message_delta")

    def _stop(self) -> bytes:
        """Return the last event, with the metrics of all answers."""
        metrics = continued(self._metrics_before, self._metrics)
        return write_event({"type": "message_stop", **({_METRICS: metrics} if metrics else {})}, "message_stop")

    def close(self) -> bytes:
        """See `Splice`."""
        if self._end is None or not self.asks_only_us:
            return b""  # The message has ended, or was cut.
        self._end["delta"] = {**self._end["delta"], "stop_reason": "end_turn"}
        return self._ending() + self._stop()

    def failure(self, error: dict[str, Any]) -> bytes:
        """See `Splice`."""
        return write_event({"type": "error", **error}, "error")

    # ---------------------------------------------------------------------------------------------------- whole answers

    def receive(self, reply: dict[str, Any]) -> None:
        """See `Splice`."""
        self._usage = dict(reply.get("usage") or {})
        shown: list[Any] = []
        for number, block in enumerate(reply["content"]):
            is_call = block.get("type") == "tool_use"
            if is_call and self._is_ours(block["name"]):
                self._places[number], self.is_changed = None, True
            else:
                self._has_others |= is_call
                shown.append(block)
        self._content += shown
        self._start = self._start or reply
        self._whole = reply
        self.asks_only_us = self._asks_only_us(reply.get("stop_reason"))

    def joined(self) -> dict[str, Any]:
        """See `Splice`."""
        ending = {"stop_reason": "end_turn"} if self.asks_only_us else {}
        usage = {"usage": continued(self._before, self._usage)} if self._usage else {}
        return {**self._whole, "id": self._start.get("id"), "content": self._content, **usage, **ending}
