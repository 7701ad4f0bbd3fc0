"""One completion for the client of several chat completions.

The pieces of a call of ours are left out, and later calls take their numbers. The completions after the first go on
with its id. Only the first of several choices can have calls of ours (`WireRequest` sends no others).
"""

from __future__ import annotations

import re
from typing import Any

from .answer import IsOurs
from .events import StreamEvent, write_event
from .usage import continued

__all__ = ["ChatSplice"]

_DONE = b"data: [DONE]\n\n"
_SAME = ("id", "created", "model", "system_fingerprint", "service_tier")
"""Fields of the first completion that all its pieces have."""
_JOINED = ("content", "reasoning_content", "reasoning", "refusal")
"""Fields of a message whose texts follow each other."""
_ENDS = ("tool_calls", "stop", "function_call")
"""Reasons of a completion with whole calls. Some servers name `stop` although there are calls."""


_OBJECTS = re.compile(rb"(?:data: \{[^\n]*\n\n)+")
"""Pieces of completions, as most servers write them."""
_READ = re.compile(rb'"(?:tool_calls|usage)"')
"""Keys of the pieces that are read before a call of ours begins."""


class ChatSplice:
    """See `Splice`."""

    def __init__(self, is_ours: IsOurs) -> None:
        self._is_ours = is_ours
        self._is_first = True
        self._head: dict[str, Any] = {}  # the fields that every piece has at the client
        self._before: dict[str, Any] = {}  # usage of the completions before this one
        self._message: dict[str, Any] = {}  # of whole completions for the client
        self._begin()

    def _begin(self) -> None:
        self._calls: list[tuple[object, bool]] = []  # the id of each call, and whether it is ours
        self._numbers: dict[object, int] = {}  # places in `_calls`, by the numbers of pieces
        self._usage: dict[str, Any] | None = None
        self._end: dict[str, Any] | None = None  # the piece with the reason, if it waits
        self._report: dict[str, Any] | None = None  # the piece with the usage, if it waits
        self._whole: dict[str, Any] = {}
        self._has_done = False
        self.asks_only_us = False
        self.is_changed = not self._is_first

    def continue_with_next(self) -> None:
        """See `Splice`."""
        self._before, self._is_first = continued(self._before, self._usage), False
        self._begin()

    # --------------------------------------------------------------------------------------------------------- streams

    def passing(self, piece: bytes, start: int) -> int:
        """See `Splice`."""
        if not self._head or self.is_changed:
            return start
        read = _READ.search(piece, start)
        objects = _OBJECTS.match(piece, start, read.start() if read is not None else len(piece))
        return objects.end() if objects is not None else start

    def add(self, event: StreamEvent) -> bytes:
        """See `Splice`."""
        if event.is_done:
            self._has_done = True
            if self._end is None:  # Some servers name no reason.
                self.asks_only_us = self._asks_only_us("stop")
            return b"" if self.asks_only_us else self._ending() + event.raw
        if self._head and not self.is_changed and _READ.search(event.content) is None:
            return event.raw  # Most events are such.
        data = event.data
        if data is None or "choices" not in data:
            return event.raw
        if self._is_first and not self._head:
            self._head = {key: data[key] for key in _SAME if key in data}
        if usage := data.get("usage"):
            self._usage = dict(usage)
        choice = next((choice for choice in data["choices"] or () if not choice.get("index")), None)
        if choice is None:
            if not self.is_changed:
                return event.raw
            self._report = data
            return b""
        shown = self._shown_calls(choice)
        if not self.is_changed:
            return event.raw
        return self._changed(data, choice, shown)

    def _shown_calls(self, choice: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the pieces of calls for the client, with their numbers there."""
        shown: list[dict[str, Any]] = []
        for piece in (choice.get("delta") or {}).get("tool_calls") or ():
            number = self._number_of(piece)
            if not self._calls[number][1]:
                others = sum(not is_ours for _, is_ours in self._calls[:number])
                shown.append({**piece, "index": others})
        return shown

    def _number_of(self, piece: dict[str, Any]) -> int:
        """Return the place of the call that a piece belongs to. Some servers number no call, or all alike."""
        index, id = piece.get("index"), piece.get("id")
        name = (piece.get("function") or piece.get("custom") or {}).get("name")
        known = self._numbers.get(index) if index is not None else len(self._calls) - 1
        if known is not None and known >= 0:
            is_same = id == self._calls[known][0] if id else index is not None
            if not name or is_same:
                return known
        self._calls.append((id, self._is_ours(name or "")))
        self.is_changed |= self._calls[-1][1]
        self._numbers[index] = len(self._calls) - 1
        return len(self._calls) - 1

    def _changed(self, data: dict[str, Any], choice: dict[str, Any], shown: list[dict[str, Any]]) -> bytes:
        """Return the piece for the client, without the calls of ours and without the reason, which waits."""
        delta = {key: value for key, value in (choice.get("delta") or {}).items() if key != "tool_calls"}
        if not self._is_first:
            delta.pop("role", None)  # Clients join the texts of this field too.
        if shown:
            delta["tool_calls"] = shown
        data = {**data, **self._head}
        if choice.get("finish_reason"):
            self._end = {**data, "choices": [{**choice, "delta": {}}]}
            self.asks_only_us = self._asks_only_us(choice["finish_reason"])
        if not any(value not in (None, "") for value in delta.values()):
            return b""
        if "usage" in data:
            data["usage"] = None
        return write_event({**data, "choices": [{**choice, "delta": delta, "finish_reason": None}]})

    def _asks_only_us(self, reason: object) -> bool:
        return bool(self._calls) and all(is_ours for _, is_ours in self._calls) and reason in _ENDS

    def _ending(self) -> bytes:
        """Return the pieces that waited, with the usage of all completions."""
        pieces = [piece for piece in (self._end, self._report) if piece is not None]
        if pieces and self._usage is not None:
            for piece in pieces[:-1]:
                if "usage" in piece:
                    piece["usage"] = None
            pieces[-1]["usage"] = continued(self._before, self._usage)
        self._end = self._report = None
        return b"".join([write_event({**piece, **self._head}) for piece in pieces])

    def close(self) -> bytes:
        """See `Splice`."""
        if self._end is None:
            return _DONE if self.asks_only_us else b""
        if self.asks_only_us:
            self._end["choices"][0]["finish_reason"] = "stop"
        return self._ending() + (_DONE if self._has_done else b"")

    def failure(self, error: dict[str, Any]) -> bytes:
        """See `Splice`."""
        return write_event({"error": error["error"]})

    # ---------------------------------------------------------------------------------------------------- whole answers

    def receive(self, reply: dict[str, Any]) -> None:
        """See `Splice`."""
        self._usage = reply.get("usage")
        choice = reply["choices"][0]
        message = dict(choice["message"])
        shown: list[Any] = []
        for call in message.pop("tool_calls", None) or ():
            is_ours = self._is_ours(str((call.get("function") or call.get("custom") or {}).get("name")))
            self._calls.append((call.get("id"), is_ours))
            self.is_changed |= is_ours
            if not is_ours:
                shown.append(call)
        for key in _JOINED:
            before, now = self._message.get(key), message.get(key)
            if isinstance(before, str) and isinstance(now, str | None):
                message[key] = before + (now or "")
        self._message = {**self._message, **message, **({"tool_calls": shown} if shown else {})}
        self._head = self._head or {key: reply[key] for key in _SAME if key in reply}
        self._whole = reply
        self.asks_only_us = self._asks_only_us(choice.get("finish_reason") or "stop")

    def joined(self) -> dict[str, Any]:
        """See `Splice`."""
        ending = {"finish_reason": "stop"} if self.asks_only_us else {}
        choice = {**self._whole["choices"][0], "message": self._message, **ending}
        usage = {"usage": continued(self._before, self._usage)} if self._usage else {}
        return {**self._whole, **self._head, "choices": [choice], **usage}
