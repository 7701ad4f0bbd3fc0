"""One response for the client of several responses of Gemini.

The parts with a call of ours are left out. The responses after the first go on with its id.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .answer import IsOurs
from .events import StreamEvent, write_event
from .usage import continued

__all__ = ["GeminiSplice"]

_SAME = ("responseId", "modelVersion", "createTime")
"""Fields of the first response that all its events have."""
_SAME_AROUND = ("traceId",)
"""The same, next to the response: Code Assist has it inside of an object."""
_INSIDE = "response"
_CALL = "functionCall"
_CANDIDATES = "candidates"
_USAGE = "usageMetadata"


class GeminiSplice:
    """See `Splice`."""

    def __init__(self, is_ours: IsOurs) -> None:
        self._is_ours = is_ours
        self._is_first = True
        self._head: dict[str, Any] = {}  # the fields that every event has at the client
        self._around: dict[str, Any] = {}  # those next to the response
        self._before: dict[str, Any] = {}  # usage of the responses before this one
        self._parts: list[Any] = []  # of whole responses for the client
        self._begin()

    def _begin(self) -> None:
        self._calls: list[bool] = []  # whether each call is ours
        self._is_open = False  # whether the arguments of the newest call go on
        self._usage: dict[str, Any] = {}
        self._end: tuple[dict[str, Any], dict[str, Any]] | None = None  # the event with the reason, if it waits
        self._whole: dict[str, Any] = {}
        self.asks_only_us = False
        self.is_changed = not self._is_first

    def continue_with_next(self) -> None:
        """See `Splice`."""
        self._before, self._is_first = continued(self._before, self._usage), False
        self._begin()

    # --------------------------------------------------------------------------------------------------------- streams

    def passing(self, piece: bytes, start: int) -> int:
        """See `Splice`. Each event has the usage so far, so all are read."""
        return start

    def add(self, event: StreamEvent) -> bytes:
        """See `Splice`."""
        outer = event.data
        data = _response(outer or {})
        if outer is None or not (_CANDIDATES in data or _USAGE in data):
            return event.raw
        if self._is_first:
            self._note_head(outer, data)
        self._usage = dict(data.get(_USAGE) or self._usage)
        candidate = _first(data)
        parts = self._shown_parts(candidate)
        if not self.is_changed:
            return event.raw
        if not candidate:  # An event with the usage alone.
            shown = {**data, **self._head, _USAGE: self._all_usage()}
            return b"" if self.asks_only_us else write_event(self._enclosed(outer, shown))
        content = {**(candidate.get("content") or {"role": "model"}), "parts": parts}
        shown = {**data, **self._head, _CANDIDATES: [{**candidate, "content": content}]}
        if candidate.get("finishReason"):
            self.asks_only_us = self._asks_only_us(candidate)
            if self.asks_only_us:  # It waits for the next response.
                self._end = outer, {**shown, _CANDIDATES: [{**candidate, "content": {**content, "parts": []}}]}
                del shown[_CANDIDATES][0]["finishReason"]
            elif usage := self._all_usage():  # Otherwise an event behind this one has it.
                shown[_USAGE] = usage
        is_shown = parts or "finishReason" in shown[_CANDIDATES][0]
        return write_event(self._enclosed(outer, shown)) if is_shown else b""

    def _note_head(self, outer: dict[str, Any], response: dict[str, Any]) -> None:
        self._head |= {key: response[key] for key in _SAME if key in response}
        self._around |= {key: outer[key] for key in _SAME_AROUND if key in outer}

    def _enclosed(self, outer: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
        """Return a response for the client in the place of the one that `outer` is, or has inside."""
        return response if _response(outer) is outer else {**outer, **self._around, _INSIDE: response}

    def _shown_parts(self, candidate: dict[str, Any]) -> list[Any]:
        """Return the parts for the client."""
        shown: list[Any] = []
        for part in (candidate.get("content") or {}).get("parts") or ():
            call = part.get(_CALL)
            if call is not None and (call.get("name") or not self._is_open):  # Arguments may follow, without the name.
                self._calls.append(self._is_ours(str(call.get("name"))))
                self.is_changed |= self._calls[-1]
            if call is not None:
                self._is_open = bool(call.get("willContinue"))
            if call is None or not self._calls[-1]:
                shown.append(part)
        return shown

    def _asks_only_us(self, candidate: dict[str, Any]) -> bool:
        return bool(self._calls) and all(self._calls) and candidate.get("finishReason") == "STOP"

    def _all_usage(self) -> dict[str, Any]:
        return continued(self._before, self._usage)

    def close(self) -> bytes:
        """See `Splice`."""
        if self._end is None or not self.asks_only_us:
            return b""
        outer, response = self._end
        return write_event(self._enclosed(outer, {**response, _USAGE: self._all_usage()}))

    def failure(self, error: dict[str, Any]) -> bytes:
        """See `Splice`. It is JSON in no event, as Google sends it: its SDK for JavaScript sees no other error."""
        return msgspec.json.encode({"error": {"code": 500, "status": "INTERNAL", **error["error"]}}) + b"\n\n"

    # ---------------------------------------------------------------------------------------------------- whole answers

    def receive(self, reply: dict[str, Any]) -> None:
        """See `Splice`."""
        response = _response(reply)
        self._usage = dict(response.get(_USAGE) or {})
        candidate = _first(response)
        self._parts += self._shown_parts(candidate)
        if self._is_first:
            self._note_head(reply, response)
        self._whole = reply
        self.asks_only_us = self._asks_only_us(candidate)

    def joined(self) -> dict[str, Any]:
        """See `Splice`."""
        response = _response(self._whole)
        candidate = _first(response)
        content = {**(candidate.get("content") or {"role": "model"}), "parts": self._parts}
        usage = {_USAGE: self._all_usage()} if self._usage else {}
        shown = {**response, **self._head, _CANDIDATES: [{**candidate, "content": content}], **usage}
        return self._enclosed(self._whole, shown)


def _response(outer: dict[str, Any]) -> dict[str, Any]:
    """Return the response that Code Assist has inside of an object, or this one."""
    inside = outer.get(_INSIDE)
    return inside if isinstance(inside, dict) else outer


def _first(response: dict[str, Any]) -> dict[str, Any]:
    """Return the first of several answers, which alone can have calls of ours."""
    return next((each for each in response.get(_CANDIDATES) or () if not each.get("index")), {})
