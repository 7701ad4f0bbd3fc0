"""One response for the client of several responses of OpenAI's Responses API.

The items of a call of ours are left out. Later items take their places, and all events are numbered without a gap.
"""

from __future__ import annotations

from typing import Any

from ..formats.responses.items import id_key
from ..formats.responses.read import CALLS
from .answer import IsOurs
from .events import StreamEvent, write_event
from .usage import continued

__all__ = ["ResponsesSplice"]

_BEGINNINGS = ("response.created", "response.in_progress", "response.queued")
_ENDINGS = ("response.completed", "response.incomplete")


class ResponsesSplice:
    """See `Splice`."""

    def __init__(self, is_ours: IsOurs) -> None:
        self._is_ours = is_ours
        self._is_first = True
        self._id: object = None
        self._next = 0  # the number of the next event at the client
        self._output: list[Any] = []  # the finished items that the client has
        self._before: dict[str, Any] = {}  # usage of the responses before this one
        self._begin()

    def _begin(self) -> None:
        self._places: dict[int, int | None] = {}  # places of the items at the client; None: ours
        self._first_place = len(self._output)
        self._items: dict[int, Any] = {}  # the finished items of this response for the client, by place there
        self._has_others = False  # whether the client answers a call of this response
        self._usage: dict[str, Any] = {}
        self._end: tuple[str, dict[str, Any]] | None = None  # the event that ends the response, if it waits
        self.asks_only_us = False
        self.is_changed = not self._is_first

    def continue_with_next(self) -> None:
        """See `Splice`."""
        self._before, self._is_first = continued(self._before, self._usage), False
        self._output += [self._items[place] for place in sorted(self._items)]
        self._begin()

    # --------------------------------------------------------------------------------------------------------- streams

    def passing(self, piece: bytes, start: int) -> int:
        """See `Splice`."""
        return start  # All events are read for their numbers.

    def add(self, event: StreamEvent) -> bytes:
        """See `Splice`."""
        data = event.data
        if data is None or "type" not in data:
            return event.raw
        kind = data["type"]
        if kind in _BEGINNINGS:
            if not self._is_first:
                return b""
            self._id = data["response"].get("id")
        elif kind in _ENDINGS:
            return self._ended(event, data)
        index = data.get("output_index")
        if not isinstance(index, int):
            return self._numbered(event, data)
        if index not in self._places:
            self._places[index] = self._place_of(data.get("item"))
        place = self._places[index]
        if place is None:
            return b""
        if kind == "response.output_item.done":
            self._items[place] = data["item"]
        return self._numbered(event, data if place == index else {**data, "output_index": place})

    def _place_of(self, item: Any) -> int | None:
        """Return the place of the next item at the client; None for a call of ours."""
        if isinstance(item, dict) and self._is_call(item):
            if self._is_ours(str(item.get("name"))):
                self.is_changed = True
                return None
            self._has_others = True
        return self._first_place + sum(place is not None for place in self._places.values())

    def _is_call(self, item: dict[str, Any]) -> bool:
        """Return whether this is a call that the client or the conversation answers."""
        kind = item.get("type")
        return kind in CALLS and isinstance(item.get(id_key(kind)), str) and item.get("execution") != "server"

    def _numbered(self, event: StreamEvent, data: dict[str, Any]) -> bytes:
        """Return an event with its number at the client."""
        number, own = data.get("sequence_number"), self._next
        if isinstance(number, int):
            if self._is_first and not self.is_changed:
                own = number  # Some servers do not begin with 0.
            self._next = own + 1
            if number != own:
                data = {**data, "sequence_number": own}
        return event.raw if data is event.data else write_event(data, event.name)

    def _ended(self, event: StreamEvent, data: dict[str, Any]) -> bytes:
        response = data["response"]
        self._usage = dict(response.get("usage") or {})
        if not self.is_changed:
            return self._numbered(event, data)
        self._end = event.name, data
        self.asks_only_us = self._asks_only_us(response.get("status"))
        return b"" if self.asks_only_us else self.close()

    def _asks_only_us(self, status: object) -> bool:
        return None in self._places.values() and not self._has_others and status in ("completed", None)

    def close(self) -> bytes:
        """See `Splice`."""
        if self._end is None:
            return b""
        name, data = self._end
        self._end = None
        data = {**data, "response": self._whole(data["response"])}
        return self._numbered(StreamEvent(b"", name, b""), data)

    def _whole(self, response: dict[str, Any]) -> dict[str, Any]:
        """Return the response for the client: all its items, and the usage of all responses."""
        output = [*self._output, *(self._items[place] for place in sorted(self._items))]
        usage = {"usage": continued(self._before, self._usage)} if self._usage else {}
        return {**response, "id": self._id or response.get("id"), "output": output, **usage}

    def failure(self, error: dict[str, Any]) -> bytes:
        """See `Splice`."""
        inner = error["error"]
        fields = {"code": inner.get("code") or inner.get("type"), "message": inner.get("message"), "param": None}
        # Clients look for the error in one of two places.
        return write_event({"type": "error", "sequence_number": self._next, **fields, "error": inner}, "error")

    # ---------------------------------------------------------------------------------------------------- whole answers

    def receive(self, reply: dict[str, Any]) -> None:
        """See `Splice`."""
        self._usage = dict(reply.get("usage") or {})
        self._id = self._id or reply.get("id")
        for index, item in enumerate(reply["output"]):
            place = self._places[index] = self._place_of(item)
            if place is not None:
                self._items[place] = item
        self._last = reply
        self.asks_only_us = self._asks_only_us(reply.get("status"))

    def joined(self) -> dict[str, Any]:
        """See `Splice`."""
        return self._whole(self._last)
