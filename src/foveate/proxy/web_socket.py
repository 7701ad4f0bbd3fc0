"""A WebSocket connection of a client: each frame is served as a POST request, and the events become frames."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import msgspec

from ..requests.events import EventSplitter, StreamEvent
from .client import Channel
from .frames import Frame, FrameError, ResponseLists, error_frame, limits_frame, on_lane, read_frame, request_headers

__all__ = ["RESTART", "Connection"]

_log = logging.getLogger("foveate.proxy")
App = Callable[[Any, Any, Any], Awaitable[None]]
Receive = Callable[[], Awaitable[Channel]]
Send = Callable[[Channel], Awaitable[None]]

RESTART: Final = 1012
"""The code with which a connection closes because the server stops. Source: the registry of RFC 6455."""
_BROKEN: Final = 1011
_TOO_BIG: Final = 1009
_IN_FLIGHT_MAX: Final = 16
"""Responses of one connection at the same time. Source: OpenAI's guide to its WebSocket mode."""
_ENDINGS: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_CONTINUED: Final = _ENDINGS[:2]
"""Ends of responses that the next frame may follow."""


class Connection:
    """One connection after its handshake was accepted."""

    def __init__(self, app: App, scope: Any, receive: Receive, send: Send, limit: int) -> None:
        """`app`: serves POST requests. `scope`: that of the handshake. `limit`: bytes of the frames that wait."""
        self._app, self._scope, self._receive, self._send, self._limit = app, scope, receive, send, limit
        self._lists = ResponseLists()
        self._lanes: dict[str, _Lane] = {}
        self._slots = asyncio.Semaphore(_IN_FLIGHT_MAX)
        self._waiting = 0  # bytes of the frames that wait
        self._is_open = True
        self.gone = asyncio.Event()
        """Set when the client closed the connection."""

    async def serve(self) -> None:
        """Answer frames until the client closes the connection, or the server stops."""
        reader = asyncio.create_task(self._read())
        try:
            await reader
            await asyncio.gather(*(lane.task for lane in self._busy()))
            await self.close(RESTART)
        finally:
            reader.cancel()
            for lane in self._lanes.values():
                lane.task.cancel()
            await asyncio.gather(reader, *(lane.task for lane in self._lanes.values()), return_exceptions=True)

    def _busy(self) -> list[_Lane]:
        return [lane for lane in self._lanes.values() if not lane.task.done()]

    async def _read(self) -> None:
        """Give each frame to its lane. Returns when no frame is served any more."""
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                break
            text = message.get("bytes") or (message.get("text") or "").encode("utf-8", "surrogatepass")
            try:
                await self._take(text)
            except FrameError as error:
                await self._refuse(error)
        if message.get("code") == RESTART:  # The answers that have begun may end.
            for lane in self._lanes.values():
                lane.frames.clear()
                lane.has_next.set()
            gone = asyncio.create_task(self._disconnected())
            while (busy := self._busy()) and not gone.done():
                await asyncio.wait([gone, *(lane.task for lane in busy)], return_when="FIRST_COMPLETED")
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            if not busy:
                return
        self._is_open = False
        self.gone.set()

    async def _disconnected(self) -> None:
        while (await self._receive())["type"] != "websocket.disconnect":
            pass

    async def _take(self, text: bytes) -> None:
        frame = read_frame(text)
        self._lists.check_lane(frame)
        if self._waiting + frame.size > self._limit:
            await self.close(_TOO_BIG)
            return
        self._waiting += frame.size
        lane = self._lanes.get(frame.lane)
        if lane is None or lane.task.done():
            lane = self._lanes[frame.lane] = _Lane()
            lane.frames.append(frame)
            lane.task = asyncio.create_task(self._answer_all(lane))
        else:
            lane.frames.append(frame)
            lane.has_next.set()

    async def _answer_all(self, lane: _Lane) -> None:
        """Answer the frames of a lane in their order."""
        while lane.frames and self._is_open:
            async with self._slots:
                if not lane.frames:  # The server stops.
                    return
                frame = lane.frames.pop(0)
                self._waiting -= frame.size
                if not lane.frames:
                    lane.has_next.clear()
                try:
                    await self._answer(frame, lane)
                except FrameError as error:
                    await self._refuse(error)
                except Exception:
                    _log.exception("A frame could not be answered.")
                    await self.close(_BROKEN)

    async def _answer(self, frame: Frame, lane: _Lane) -> None:
        items = self._lists.whole(frame)
        if frame.is_warmup and items is not None:
            for event in self._lists.warmed(frame, items):
                await self.write(event)
            return
        exchange = _Exchange(self, frame, items, lane)
        await self._app(self._request_scope(frame), exchange.receive, exchange.send)
        if not exchange.is_answered:  # The provider's answer was cut. The client sees what it saw by POST.
            await self.close(_BROKEN)

    def _request_scope(self, frame: Frame) -> dict[str, Any]:
        kept = {key: self._scope[key] for key in ("path", "raw_path", "query_string") if key in self._scope}
        headers = request_headers(self._scope["headers"], frame)
        return {"type": "http", "method": "POST", **kept, "headers": headers}

    def answered(self, frame: Frame, response: str, items: list[bytes] | None, output: list[bytes]) -> None:
        """Keep the list behind a response, before the client gets the end of it."""
        self._lists.answered(frame, response, items, output)

    async def write(self, event: bytes) -> None:
        """Send an event as a frame."""
        await self._put({"type": "websocket.send", "text": event.decode()})

    async def close(self, code: int) -> None:
        """Close the connection."""
        await self._put({"type": "websocket.close", "code": code})
        self._is_open = False

    async def _put(self, message: Channel) -> None:
        if self._is_open:
            try:
                await self._send(message)
            except OSError:  # The connection is lost.
                self._is_open = False
                self.gone.set()

    async def _refuse(self, error: FrameError) -> None:
        await self.write(error_frame(error.lane, 400, msgspec.json.encode({"error": error.error}), {}))


class _Lane:
    """The frames of one lane that wait, and the task that answers them."""

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.has_next = asyncio.Event()


class _Exchange:
    """The ASGI channels of one frame: its body as that of a POST request, and the answer as frames."""

    def __init__(self, connection: Connection, frame: Frame, items: list[bytes] | None, lane: _Lane) -> None:
        self._connection, self._frame, self._sent, self._lane = connection, frame, items, lane
        self._body: bytes | None = frame.body(items)
        self._splitter = EventSplitter()
        self._status, self._headers, self._content = 0, dict[str, str](), bytearray()
        self._is_stream = False
        self._items: dict[int, bytes] = {}
        self._ended = asyncio.Event()
        self.is_answered = False
        """Whether the client got the end of the response, or an error."""

    async def receive(self) -> Channel:
        """Return the body; then wait until the client closes the connection, or goes on behind the response's end."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        gone = asyncio.create_task(self._connection.gone.wait())
        next_frame = asyncio.create_task(self._next())
        try:
            await asyncio.wait((gone, next_frame), return_when="FIRST_COMPLETED")
        finally:
            gone.cancel()
            next_frame.cancel()
        return {"type": "http.disconnect"}

    async def _next(self) -> None:
        await self._ended.wait()
        await self._lane.has_next.wait()

    async def send(self, message: Channel) -> None:
        """Take a piece of the answer."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]}
            is_plain = self._headers.get("content-encoding", "identity") == "identity"
            kind = self._headers.get("content-type", "")
            self._is_stream = self._status == 200 and is_plain and kind.startswith("text/event-stream")
            if self._is_stream and (limits := limits_frame(self._frame.lane, self._headers)) is not None:
                await self._connection.write(limits)
            return
        is_last = not message.get("more_body", False)
        if self._is_stream:
            for event in self._splitter.feed(message.get("body", b"")):
                await self._pass(event)
            if is_last and (rest := self._splitter.rest()) is not None:
                await self._pass(rest)
            return
        self._content += message.get("body", b"")
        if is_last:
            await self._fail()

    async def _pass(self, event: StreamEvent) -> None:
        data = event.data
        if data is None:
            return
        kind = data.get("type")
        if kind == "response.output_item.done" and isinstance(data.get("output_index"), int) and "item" in data:
            item = msgspec.json.decode(event.content, type=dict[str, msgspec.Raw])["item"]
            self._items[data["output_index"]] = bytes(item)
        elif kind in _ENDINGS:
            self.is_answered = True
            self._ended.set()
            if kind in _CONTINUED:
                self._keep(data.get("response"))
        await self._connection.write(on_lane(self._frame.lane, event.content))

    def _keep(self, response: Any) -> None:
        """Keep the list behind a response that may be continued."""
        if isinstance(response, dict) and isinstance(response.get("id"), str):
            output = [self._items[place] for place in sorted(self._items)]
            if not output:  # Some servers send the items at the end only.
                output = [msgspec.json.encode(item) for item in response.get("output") or ()]
            self._connection.answered(self._frame, response["id"], self._sent, output)

    async def _fail(self) -> None:
        """Send an error, or the answer of a provider that did not stream, as an error."""
        status = self._status
        if status < 400:
            status, self._content = HTTPStatus.BAD_GATEWAY, bytearray(b"The provider did not answer with a stream.")
        self.is_answered = True
        await self._connection.write(error_frame(self._frame.lane, status, bytes(self._content), self._headers))
