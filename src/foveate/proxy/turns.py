"""One managed request: the client's body in, the view to the provider, the answer back, and the reply recorded."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeVar

import aiohttp
import msgspec

from ..conversation import Conversation
from ..core.needs import DROP_STALE_REASONING, Needs
from ..core.profiles import ASSUMED_WINDOW, profile_for
from ..errors import BadInput, ConflictError, FoveateError, StoreError, UnknownWindow
from ..open import Options
from ..open.pool import Conversations
from ..ports import Store
from ..requests import LENGTH_STATUSES, Api, ListMemory, RequestBody, WireRequest, add_betas, beta_header
from ..requests.aws_signature import is_signature
from .client import ClientRequest, Header
from .client_ids import session_in
from .recognition import Recognized, Recognizer
from .records import RequestRecord
from .savings import Savings
from .settings import ProxySettings
from .upstream import Upstream, decompressed, is_encoded, response_headers

__all__ = ["Outage", "Refused", "Turns", "copy"]

_log = logging.getLogger("foveate.proxy")
T = TypeVar("T")
_THREADS: Final = 16
_UNCOMPRESSED: Final = (b"accept-encoding", b"identity")
"""An answer that is not compressed can be read on its way."""
_STREAMS: Final = ("text/event-stream", "application/vnd.amazon.eventstream")
_MOST_WARNINGS: Final = 200


class Refused(Exception):
    """A strict proxy does not send a request without a view."""


class _Turn(NamedTuple):
    wire: WireRequest
    tenant: str
    end: bytes
    """The key of the last message of the list (`Recognized`)."""


class Turns:
    """The conversations of a proxy, and the requests that continue them."""

    def __init__(self, settings: ProxySettings, store: Store, upstream: Upstream) -> None:
        self._settings, self._store, self._upstream = settings, store, upstream
        self._recognizer, self._savings, self._lists = Recognizer(store), Savings(), ListMemory()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="foveate-proxy")
        self._threads.submit(self._savings.load)
        self._lock = threading.Lock()
        self._pools: dict[tuple[str, str], Conversations] = {}
        self._outage = Outage()
        self._warned: set[str] = set()
        self._unknown: set[str] = set()
        """Names of models whose window is not known; "" for requests without a name."""

    def close(self) -> None:
        """Wait for what is being written."""
        self._threads.shutdown()
        for pool in self._pools.values():
            pool.close()

    async def count(self, tenant: str) -> int:
        """Return the number of a tenant's conversations in the store."""
        return len(await self._in_thread(self._store.names, tenant))

    async def serve(self, client: ClientRequest, api: Api, tenant: str, record: RequestRecord) -> None:
        """Answer a request. Raises aiohttp.ClientError and TimeoutError of the provider, and Refused."""
        raw = await client.read(self._settings.max_body)
        began = perf_counter()
        turn, recognized = await self._prepare(client, api, tenant, raw, record)
        record.seconds = perf_counter() - began
        try:
            await client.while_connected(self._exchange(client, raw, api, turn, record))
        finally:  # The traceback of an error would keep it, and it marks the conversation as being served.
            del recognized

    # ----------------------------------------------------------------------------------------------------- the request

    async def _prepare(
        self, client: ClientRequest, api: Api, tenant: str, raw: bytes, record: RequestRecord
    ) -> tuple[_Turn | None, Recognized | None]:
        """Return the request with its view, and its conversation; None for one that is sent as it came."""
        record.bytes_before = record.bytes_after = len(raw)
        try:
            turn, recognized = await self._in_thread(self._with_view, client, api, tenant, raw, record)
        except Exception as error:  # Any fault of ours: the client gets its answer all the same.
            self._warn(error, record)
            if self._settings.is_strict:
                raise Refused(record.reason) from error
            return None, None
        if turn is not None:
            self._outage.end()
        return turn, recognized

    def _with_view(
        self, client: ClientRequest, api: Api, tenant: str, raw: bytes, record: RequestRecord
    ) -> tuple[_Turn | None, Recognized | None]:
        if is_signature(client.values.get("authorization", "")) and not self._upstream.signs(client):
            raise BadInput(
                "The signature of the request covers its body. Start the proxy with --upstream bedrock: it then signs."
            )
        encoding = client.values.get("content-encoding", "")
        content = decompressed(raw, encoding, self._settings.max_body) if encoding else raw
        owner = f"{tenant} {session_in(client.values)}"
        body = RequestBody(api, content, self._lists, owner)
        with self._outage.watch():  # Here, since a request waits for a thread while others wait for the store.
            recognized = self._recognizer.recognize(tenant, client.values, api, body)
            if recognized is None:
                if api.messages in body.fields and (state := body.state):
                    self._log_once(
                        f"A request is sent without a view: {state} lets the provider keep the history. Let the client "
                        "send whole lists, for example with store=False."
                    )
                return None, None
            record.conversation = recognized.name
            pool = self._pool(tenant, api.format)
            with pool.use(recognized.name) as chat:  # Until the request is made, not while it is answered.
                wire = self._request(chat, api, body)
                record.tokens_before, record.tokens_after = wire.tokens_history, wire.view.tokens
        record.outcome, record.bytes_after = "managed", len(wire.content)
        return _Turn(wire, tenant, recognized.end), recognized

    def _request(self, chat: Conversation, api: Api, body: RequestBody) -> WireRequest:
        """Return the request with its view. For a model whose window is not known, one is assumed."""
        model = body.model
        window = ASSUMED_WINDOW if model in self._unknown else None
        try:
            return WireRequest(chat, api, body, window=window, watch=self._outage.watch)
        except UnknownWindow as error:
            if len(self._unknown) < _MOST_WARNINGS:
                self._unknown.add(model)  # Its next request is not prepared twice.
            of_model = f" of model {error.model[:200]!r}" if error.model else ""
            self._log_once(
                f"Window{of_model} is not known. foveate assumes {ASSUMED_WINDOW:,} tokens, and fewer after the server "
                "refuses a request as too long. To name the window, start the proxy with --window TOKENS."
            )
            return WireRequest(chat, api, body, window=ASSUMED_WINDOW, watch=self._outage.watch)

    def _pool(self, tenant: str, format: str) -> Conversations:
        with self._lock:
            if (pool := self._pools.get((tenant, format))) is None:
                pool = self._pools[tenant, format] = Conversations(
                    self._store,
                    format=format,
                    policy=self._settings.policy,
                    window=self._settings.window,
                    options=Options(tenant=tenant or None),
                )
            return pool

    def _warn(self, error: Exception, record: RequestRecord) -> None:
        """Note why a request has no view, and log it once for each reason."""
        record.outcome = "unchanged"
        record.reason = f"{type(error).__name__}: {error}"[:500]
        is_ours = not isinstance(error, FoveateError | ValueError | RecursionError)
        self._log_once(f"A request is sent without a view. {record.reason}", error if is_ours else None)

    def _log_once(self, text: str, error: Exception | None = None) -> None:
        if text not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add(text)
            _log.warning("%s", text, exc_info=error)

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function in a thread. It runs to its end even if the client closes the connection."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._threads, partial(function, *arguments)))

    # ---------------------------------------------------------------------------------------------------- the exchange

    async def _exchange(
        self, client: ClientRequest, raw: bytes, api: Api, turn: _Turn | None, record: RequestRecord
    ) -> None:
        """Send the request, and again for each expansion and each refusal as too long. Answer the client."""
        wire = turn and turn.wire
        while True:
            if wire is None:
                body, changes = unchanged(client, api, raw)
            else:
                body, changes = wire.content, [_UNCOMPRESSED, (b"content-encoding", b""), *_betas(client, wire.betas)]
            changes.append((b"content-length", str(len(body)).encode()))
            async with self._upstream.send(client, body, changes=changes) as answer:
                record.answered(answer.status)
                if turn is None or wire is None or (is_encoded(answer) and not client.status):
                    return await copy(client, answer, record)
                is_stream = answer.content_type in _STREAMS and not is_encoded(answer)
                if answer.status != 200 or (client.status and not is_stream):  # No other answer continues a stream.
                    if not await self._failed(client, answer, turn, record):
                        return None
                else:
                    await (self._stream if is_stream else self._whole)(client, answer, turn, record)
                    if wire.follow_up is None:
                        return None
            record.expansions, record.retries = wire.expansions, wire.retries
            if wire.retries:
                record.bytes_after = len(wire.content)

    async def _stream(
        self, client: ClientRequest, answer: aiohttp.ClientResponse, turn: _Turn, record: RequestRecord
    ) -> None:
        """Send a stream on. Its end stays open if there is a follow-up."""
        wire = turn.wire
        if not client.status:
            await client.start(answer.status, self._headers(answer, record))
        try:
            async for piece in answer.content.iter_any():
                record.piece(len(piece))
                if shown := wire.feed(piece):
                    await client.write(shown)
        except (aiohttp.ClientError, TimeoutError):
            await client.write(await self._in_thread(self._ended, turn, record))
            if wire.follow_up is not None:  # The answer was whole: only the end of the connection went wrong.
                return
            raise
        except asyncio.CancelledError:  # Clients close the connection behind the last event, before the stream ends.
            record.is_complete = wire.is_complete
            await self._in_thread(self._ended, turn, record)
            raise
        record.is_complete = True
        rest = await self._in_thread(self._ended, turn, record)
        if wire.follow_up is None:
            await client.finish(rest)
        elif rest:
            await client.write(rest)

    async def _whole(
        self, client: ClientRequest, answer: aiohttp.ClientResponse, turn: _Turn, record: RequestRecord
    ) -> None:
        content = await answer.read()
        record.piece(len(content))
        shown = await self._in_thread(self._received, turn, content, record)
        if shown is not None:
            await client.answer(answer.status, self._headers(answer, record), shown)

    async def _failed(
        self, client: ClientRequest, answer: aiohttp.ClientResponse, turn: _Turn, record: RequestRecord
    ) -> bool:
        """Answer with the provider's error. Return whether the request is smaller instead, and to be sent again."""
        wire = turn.wire
        if answer.status not in LENGTH_STATUSES and not client.status:
            self._recognizer.note_answer(turn.tenant, record.conversation)
            await copy(client, answer, record)
            return False
        content = await answer.read()
        if await self._in_thread(wire.refused, answer.status, content):
            return True
        self._recognizer.note_answer(turn.tenant, record.conversation)
        if client.status:  # Its answer has begun.
            await client.finish(wire.failure(answer.status, content))
        else:
            await client.answer(answer.status, self._headers(answer, record), content)
        return False

    def _ended(self, turn: _Turn, record: RequestRecord) -> bytes:
        """Record the reply of a stream that ended, and return what the client still gets."""
        rest = turn.wire.ended()
        self._count(turn, record)
        return rest

    def _received(self, turn: _Turn, content: bytes, record: RequestRecord) -> bytes | None:
        """Record a whole reply, and return what the client gets; None if the request goes on."""
        shown = turn.wire.received(content)
        self._count(turn, record)
        return shown

    def _count(self, turn: _Turn, record: RequestRecord) -> None:
        """Note the recorded replies, and what they cost. No price and no fault of the count changes the answer."""
        wire = turn.wire
        self._recognizer.note_answer(turn.tenant, record.conversation)
        try:
            answered = wire.take_answered()
            if answered:
                self._outage.end()
            for call in answered[-1:]:
                self._recognizer.note_reply(turn.tenant, record.conversation, turn.end, call.id, call.reply)
            record.add_money(self._savings.count(wire.chat, wire.model, answered))
        except Exception as error:
            _log.warning("The cost of a request is not counted. %s: %s", type(error).__name__, error)

    def _headers(self, answer: aiohttp.ClientResponse, record: RequestRecord) -> list[Header]:
        return [*response_headers(answer.raw_headers, is_changed=True), *record.headers()]


async def copy(client: ClientRequest, answer: aiohttp.ClientResponse, record: RequestRecord) -> None:
    """Send an answer on, byte for byte, as it arrives."""
    await client.start(answer.status, [*response_headers(answer.raw_headers), *record.headers()])
    async for piece in answer.content.iter_any():
        record.piece(len(piece))
        await client.write(piece)
    await client.finish()


def _betas(client: ClientRequest, betas: tuple[str, ...]) -> list[Header]:
    """Return the header `anthropic-beta` with the client's values and those that the view needs."""
    if not betas:
        return []
    return [(b"anthropic-beta", beta_header(client.values.get("anthropic-beta", ""), betas).encode())]


def unchanged(client: ClientRequest, api: Api, raw: bytes) -> tuple[bytes, list[Header]]:
    """Return the client's body for a request without a view, and the headers to change.

    Earlier requests may have gone out shorter. A model that binds reasoning refuses it behind another prefix, so it is
    asked to drop such reasoning instead.
    """
    is_signed = is_signature(client.values.get("authorization", ""))
    if api.format != "anthropic" or b'"signature"' not in raw or is_signed:
        return raw, []
    try:
        body = RequestBody(api, raw)
        if not profile_for("anthropic", body.model).binds_reasoning:
            return raw, []
        fields = body.fields
        thinking = msgspec.json.decode(fields.get("thinking", b"{}"), type=dict[str, Any])
    except (ValueError, RecursionError):
        return raw, []
    options = Needs((), DROP_STALE_REASONING.options).added_to({"thinking": thinking})
    fields["thinking"] = msgspec.Raw(msgspec.json.encode(options["thinking"]))
    betas = add_betas(api, fields, DROP_STALE_REASONING.betas)
    return msgspec.json.encode(fields), _betas(client, betas)


_SLOW_SECONDS: Final = 1.0
"""A failure that took as long as this is an outage. Others cost no time: each request may try."""
_PAUSE_SECONDS: Final = 5.0
"""Time until a request tries the store again."""


class Outage:
    """Whether the store is known to be down. Used from several threads.

    A database that is down fails after its time limit, ten seconds by default, and the request goes on without a view.
    The requests behind it need not wait as long for the same answer.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._reason = ""
        self._next = 0.0

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Use the store during the block. Raises StoreError at once while it is down.

        After a pause one request may try; those that come until it knows more do not wait with it.
        """
        began = self._clock()
        with self._lock:
            if self._reason:
                if began < self._next:
                    raise StoreError(self._reason)
                self._next = began + _PAUSE_SECONDS
        try:
            yield
        except ConflictError:  # It answered.
            raise
        except StoreError as error:
            now = self._clock()
            if now - began >= _SLOW_SECONDS:
                with self._lock:
                    self._reason, self._next = str(error), now + _PAUSE_SECONDS
            raise

    def end(self) -> None:
        """Note that the store answered."""
        self._reason = ""
