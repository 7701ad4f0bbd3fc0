"""Frames of AWS's event streams, as Amazon Bedrock writes them, made and read without foveate."""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

from foveate.testing.responses import events

METRICS = "amazon-bedrock-invocationMetrics"
"""The key of the tokens that Bedrock counts, in the last event."""


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
