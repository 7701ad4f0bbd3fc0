"""A provider with the API of Amazon Bedrock: Claude by script. It writes and reads frames without foveate."""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from servers import Exchange, RawProvider

from foveate.testing import ScriptedModel
from foveate.testing.responses import events
from foveate.testing.script import IllegalRequest, ProviderError, ScriptedReply

METRICS = "amazon-bedrock-invocationMetrics"
EXCEPTIONS = {400: "ValidationException", 403: "AccessDeniedException", 429: "ThrottlingException"}


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """Return a frame, with headers that are texts."""
    head = b"".join(
        struct.pack("B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    rest = struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return prelude + rest + struct.pack(">I", zlib.crc32(prelude + rest))


def chunk(event: dict[str, Any] | bytes) -> bytes:
    """Return the frame of an event of Anthropic's, as Bedrock writes it."""
    content = event if isinstance(event, bytes) else json.dumps(event, separators=(",", ":")).encode()
    payload = json.dumps({"bytes": b64encode(content).decode(), "p": "abcdefghijk"}, separators=(",", ":")).encode()
    return frame({":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}, payload)


def exception(kind: str, message: str) -> bytes:
    """Return the frame of an error in a stream."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps({"message": message}).encode())


def frames_in(stream: bytes) -> Iterator[tuple[bytes, dict[str, str], bytes]]:
    """Yield each frame with its headers and its payload. Raises AssertionError for a wrong length or CRC."""
    at = 0
    while at < len(stream):
        size, head, check = struct.unpack_from(">III", stream, at)
        raw = stream[at : at + size]
        assert len(raw) == size, "the last frame is cut"
        assert check == zlib.crc32(raw[:8])
        assert raw[-4:] == struct.pack(">I", zlib.crc32(raw[:-4]))
        headers, place = {}, 12
        while place < 12 + head:
            end = place + 1 + raw[place]
            name, (kind, length) = raw[place + 1 : end].decode(), struct.unpack_from(">BH", raw, end)
            assert kind == 7
            headers[name], place = raw[end + 3 : end + 3 + length].decode(), end + 3 + length
        yield raw, headers, raw[12 + head : -4]
        at += size


def events_in(stream: bytes) -> list[dict[str, Any]]:
    """Return the events in the frames of a stream."""
    found = []
    for _, headers, payload in frames_in(stream):
        assert headers == {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
        fields = json.loads(payload)
        assert fields.keys() == {"bytes", "p"}
        found.append(json.loads(b64decode(fields["bytes"])))
    return found


def as_sse(stream: bytes) -> bytes:
    """Return the server-sent events that Anthropic would have sent."""
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events_in(stream))


def framed(response: dict[str, Any], number: int = 0) -> list[bytes]:
    """Return the frames of a response. `number`: that of the call, which its metrics have."""
    usage = response["usage"]
    found = []
    for raw in events(response):
        event = json.loads(raw.partition(b"data: ")[2])
        if event["type"] == "message_stop":
            counts = {"inputTokenCount": usage["input_tokens"], "outputTokenCount": usage["output_tokens"]}
            event[METRICS] = {**counts, "invocationLatency": 100 + number, "firstByteLatency": 10}
        found.append(chunk(event))
    return found


class BedrockProvider(RawProvider):
    """Answers `invoke` and `invoke-with-response-stream`, and refuses what Bedrock refuses."""

    def __init__(self, script: Iterable[Any], **options: Any) -> None:
        """`options`: those of `ScriptedModel`."""
        self.model = ScriptedModel(script, "anthropic", **options)
        self.illegal: list[Any] = []
        self.sent: list[bytes] = []
        """The bodies of all answers."""
        super().__init__(self._reply)

    def _reply(self, exchange: Exchange) -> None:
        _, _, model, method = exchange.target.split("/", 3)
        try:
            answered = self._answered(unquote(model), json.loads(exchange.body))
        except ProviderError as error:
            kind = EXCEPTIONS.get(error.status_code, "InternalServerException")
            content = json.dumps({"message": error.message}).encode()
            self._send(exchange, error.status_code, "application/json", content, f"x-amzn-ErrorType: {kind}\r\n")
            return
        if method == "invoke":
            self._send(exchange, 200, "application/json", json.dumps(answered.response).encode())
            return
        frames = framed(answered.response, len(self.sent))
        if answered.cut is not None:
            frames = frames[: len(frames) // 2]
            if answered.cut.error is not None:
                frames.append(exception("throttlingException", answered.cut.error.message))
            else:
                frames[-1] = frames[-1][:-9]
        self._send(exchange, 200, "application/vnd.amazon.eventstream", b"".join(frames))

    def _answered(self, model: str, body: dict[str, Any]) -> ScriptedReply:
        fields = {**body, "model": model}
        refused = {"model", "stream", "betas"} & body.keys()
        if refused or fields.pop("anthropic_version", None) != "bedrock-2023-05-31":
            self.illegal.append(body)
            raise _failure(f"extraneous key {sorted(refused)} is not permitted")
        betas = fields.pop("anthropic_beta", [])
        if not isinstance(betas, list) or len(set(betas)) < len(betas):
            self.illegal.append(body)
            raise _failure("invalid beta flag")
        try:
            return self.model.answer(fields)
        except IllegalRequest as error:
            self.illegal.append(error)
            raise _failure(str(error)) from error

    def _send(self, exchange: Exchange, status: int, kind: str, content: bytes, more: str = "") -> None:
        self.sent.append(content)
        head = f"HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{more}"
        exchange.connection.sendall(head.encode() + b"Connection: close\r\n\r\n" + content)


def _failure(message: str) -> ProviderError:
    return ProviderError(400, {"error": {"message": message}})
