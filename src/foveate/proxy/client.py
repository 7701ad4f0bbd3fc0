"""One request of a client: its body, and the answer to it, on the ASGI channels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, MutableMapping
from typing import Any

__all__ = ["BodyTooLarge", "ClientGone", "ClientRequest", "Header", "SlowBody"]

Header = tuple[bytes, bytes]
Channel = MutableMapping[str, Any]


class ClientGone(Exception):
    """The client closed the connection before its answer was complete."""


class BodyTooLarge(Exception):
    """The body of a request has more bytes than allowed."""


class SlowBody(Exception):
    """The body of a request stopped coming."""


class ClientRequest:
    """A request, read and answered piece by piece."""

    def __init__(
        self,
        scope: Channel,
        receive: Callable[[], Awaitable[Channel]],
        send: Callable[[Channel], Awaitable[None]],
        max_seconds: float,
    ) -> None:
        """`max_seconds`: the longest pause in the body."""
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        target = scope.get("raw_path") or scope["path"].encode()
        query = scope.get("query_string") or b""
        self.query: str = query.decode("latin-1")
        self.target: str = (target + b"?" + query if query else target).decode("latin-1")
        """Path and query as the client wrote them."""
        self.headers: list[Header] = scope["headers"]
        """Names are in lower case, in the order of the client."""
        self.values: dict[str, str] = {name.decode("latin-1"): value.decode("latin-1") for name, value in self.headers}
        """Values of the headers by names. A key in the query, as Google takes it, counts as the header with a key."""
        if key := next((pair[4:] for pair in self.query.split("&") if pair.startswith("key=")), ""):
            self.values["x-goog-api-key"] = self.values.get("x-goog-api-key") or key
        self.status = 0
        """Status of the answer; 0 before it begins."""
        self._receive, self._send, self._max_seconds = receive, send, max_seconds
        self._has_body = asyncio.Event()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives. Raises ClientGone, and SlowBody after a pause."""
        while not self._has_body.is_set():
            try:
                async with asyncio.timeout(self._max_seconds):
                    message = await self._receive()
            except TimeoutError as error:
                raise SlowBody from error
            if message["type"] == "http.disconnect":
                raise ClientGone
            if not message.get("more_body", False):
                self._has_body.set()
            if body := message.get("body"):
                yield body

    async def read(self, limit: int) -> bytes:
        """Return the whole body. Raises BodyTooLarge, ClientGone and SlowBody."""
        length = self.values.get("content-length", "")
        if length.isdigit() and int(length) > limit:
            raise BodyTooLarge
        pieces: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            size += len(piece)
            if size > limit:
                raise BodyTooLarge
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def while_connected(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, and cancel it if the client closes the connection. Raises ClientGone then."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._disconnected())
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientGone
            await task
        finally:
            for other in (task, gone):
                other.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    async def _disconnected(self) -> None:
        await self._has_body.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def start(self, status: int, headers: Iterable[Header]) -> None:
        """Begin the answer."""
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def write(self, piece: bytes) -> None:
        """Send a piece of the answer at once."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def finish(self, piece: bytes = b"") -> None:
        """Send the last piece of the answer."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": False})

    async def answer(self, status: int, headers: Iterable[Header], content: bytes) -> None:
        """Send a whole answer."""
        length = (b"content-length", str(len(content)).encode())
        await self.start(status, [*headers, length])
        await self.finish(content)
