"""The streamed answer that a program gets, made of the streams of the provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from ..requests import WireRequest

__all__ = ["AnswerStream"]


class AnswerStream:
    """The bytes of one answer, for synchronous and for asynchronous clients."""

    def __init__(self, inner: Any, call: WireRequest, send: Callable[[], Any]) -> None:
        """`inner`: the stream of the first response. `send`: sends `call` again, for a follow-up."""
        self._inner, self._call, self._send = inner, call, send
        self._has_ended = False

    def __iter__(self) -> Iterator[bytes]:
        call = self._call
        while True:
            for piece in self._inner:
                if shown := call.feed(piece):
                    yield shown
            self._has_ended = True
            if rest := call.ended():
                yield rest
            while call.follow_up is not None:
                self._inner.close()
                response = self._send()
                self._inner = response.stream
                if response.status_code == 200:
                    self._has_ended = False
                    break
                content = response.read()
                if not call.refused(response.status_code, content):
                    yield call.failure(response.status_code, content)
                    return
            else:
                return

    def close(self) -> None:
        self._inner.close()
        if not self._has_ended and self._call.is_complete:  # SDKs stop reading at the answer's end.
            self._has_ended = True
            self._call.ended()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        call = self._call
        while True:
            async for piece in self._inner:
                if shown := call.feed(piece):
                    yield shown
            self._has_ended = True
            if rest := await asyncio.to_thread(call.ended):
                yield rest
            while call.follow_up is not None:
                await self._inner.aclose()
                response = await self._send()
                self._inner = response.stream
                if response.status_code == 200:
                    self._has_ended = False
                    break
                content = await response.aread()
                if not await asyncio.to_thread(call.refused, response.status_code, content):
                    yield call.failure(response.status_code, content)
                    return
            else:
                return

    async def aclose(self) -> None:
        await self._inner.aclose()
        if not self._has_ended and self._call.is_complete:
            self._has_ended = True
            await asyncio.to_thread(self._call.ended)
