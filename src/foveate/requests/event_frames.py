"""Frames of AWS's event streams, in which Amazon Bedrock streams answers.

A frame has a prelude (its length, the length of its headers, and the CRC of both), headers, a payload, and the CRC of
all that. The payload of most frames holds one event of the model's provider. Source: "Amazon Event Stream" in the
specification of Smithy 2.0, and the API reference of `InvokeModelWithResponseStream`.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from binascii import crc32
from collections.abc import Iterator
from struct import Struct, error
from typing import Any, Final, NamedTuple

import msgspec

from .events import write_event

__all__ = ["Frame", "FrameSplitter", "message_in", "write_chunk", "write_exception"]

_PRELUDE: Final = Struct(">III")
_CRC: Final = Struct(">I")
_HEADS: Final = _PRELUDE.size
_ENDS: Final = _CRC.size
_FRAME_MAX: Final = 2**25
"""Bytes of a frame. botocore takes 24 MB of payload."""
_SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of the value of a header, by its type. Those of the types 6 and 7 begin with their length."""
_TEXT: Final = 7
_EXCEPTIONS: Final = {
    400: "validationException",
    408: "modelTimeoutException",
    424: "modelStreamErrorException",
    429: "throttlingException",
    503: "serviceUnavailableException",
}
"""Exceptions of a stream, by the status of the same error outside a stream."""
_PADDING: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
"""As much of it as Bedrock likes stands in each payload, so that its length does not show that of a token."""
_UNKNOWN: Final = b": a frame without an event\n\n"
_DAMAGED: Final = write_event({"type": "error", "error": {"type": "error", "message": "A frame is damaged."}}, "error")


class _Payload(msgspec.Struct):
    event: bytes = msgspec.field(name="bytes")
    """In JSON it is a text in base64."""


class _Event(msgspec.Struct):
    type: str


_PAYLOAD: Final = msgspec.json.Decoder(_Payload)
_EVENT: Final = msgspec.json.Decoder(_Event)


class Frame(NamedTuple):
    """One frame."""

    raw: bytes
    """Its bytes as they came."""
    event: bytes
    """Its event as a server-sent event; an error for an exception and for a damaged frame."""


class FrameSplitter:
    """Splits the bytes of a stream, cut at any place, into its frames. All bytes come back in order."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._is_lost = False  # whether it is not known any longer where frames begin

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """Yield the frames that these bytes complete. After a damaged prelude, all bytes are one damaged frame."""
        self._rest += piece
        while len(self._rest) >= _HEADS and not self._is_lost:
            size = _size(self._rest)
            self._is_lost = not size
            if not 0 < size <= len(self._rest):
                break
            raw = bytes(self._rest[:size])
            del self._rest[:size]
            yield Frame(raw, _as_event(raw))
        if self._is_lost and self._rest:
            raw, self._rest = bytes(self._rest), bytearray()
            yield Frame(raw, _DAMAGED)

    def rest(self) -> bytes:
        """Return the bytes of a frame that is not complete."""
        return bytes(self._rest)


def _size(content: bytes | bytearray) -> int:
    """Return the bytes of the frame that begins here; 0 if none does."""
    size, headers, check = _PRELUDE.unpack_from(content)
    is_frame = check == crc32(content[: _HEADS - _ENDS]) and _HEADS + headers + _ENDS <= size <= _FRAME_MAX
    return size if is_frame else 0


def _as_event(raw: bytes) -> bytes:
    """Return the event in a frame as a server-sent event."""
    if _CRC.unpack(raw[-_ENDS:])[0] != crc32(raw[:-_ENDS]):
        return _DAMAGED
    begin = _HEADS + _PRELUDE.unpack_from(raw)[1]
    payload = raw[begin:-_ENDS]
    try:
        headers = dict(_headers(raw[_HEADS:begin]))
        if headers.get(":message-type", "event") != "event":
            return _exception_event(headers, payload)
        content = _PAYLOAD.decode(payload).event
        name = _EVENT.decode(content).type.encode()
    except (msgspec.MsgspecError, error, IndexError, KeyError, ValueError):
        return _UNKNOWN
    # Between the values of JSON, a line break is a space. Server-sent events have one line of data.
    return b"event: " + name + b"\ndata: " + b" ".join(content.splitlines()) + b"\n\n"


def _headers(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the headers that are texts. Raises IndexError, KeyError and the error of `struct` for a damaged one."""
    at = 0
    while at < len(content):
        end = at + 1 + content[at]
        name, kind = content[at + 1 : end].decode(), content[end]
        at = end + 1
        size = _SIZES[kind] if kind in _SIZES else int.from_bytes(content[at : at + 2])
        at += 0 if kind in _SIZES else 2
        if kind == _TEXT:
            yield name, content[at : at + size].decode()
        at += size


def _exception_event(headers: dict[str, str], payload: bytes) -> bytes:
    name = headers.get(":exception-type") or headers.get(":error-code") or "error"
    message = message_in(payload) or headers.get(":error-message", "")
    return write_event({"type": "error", "error": {"type": name, "message": message}}, "error")


def message_in(content: bytes) -> str:
    """Return the message of an error, in the form of AWS or of Anthropic, or else the text that it is."""
    try:
        fields: Any = msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError):
        fields = None
    for key in ("error", "message"):
        fields = fields.get(key, fields) if isinstance(fields, dict) else fields
    return fields if isinstance(fields, str) else content.decode(errors="replace")[:1000]


def write_chunk(event: bytes) -> bytes:
    """Return a frame with an event. `event`: its data, in JSON."""
    padding = _PADDING[: secrets.randbelow(len(_PADDING))]
    payload = b'{"bytes":"' + b64encode(event) + b'","p":"' + padding + b'"}'
    return _frame({":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}, payload)


def write_exception(status: int, content: bytes) -> bytes:
    """Return the frame that ends a stream with an error. `status`, `content`: those of an answer that is an error."""
    name = _EXCEPTIONS.get(status, "internalServerException")
    payload = msgspec.json.encode({"message": message_in(content) or f"The provider answered with status {status}."})
    return _frame({":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}, payload)


def _frame(headers: dict[str, str], payload: bytes) -> bytes:
    head = b"".join(
        bytes([len(name)]) + name.encode() + bytes([_TEXT]) + len(value).to_bytes(2) + value.encode()
        for name, value in headers.items()
    )
    lengths = Struct(">II").pack(_HEADS + len(head) + len(payload) + _ENDS, len(head))
    frame = b"".join((lengths, _CRC.pack(crc32(lengths)), head, payload))
    return frame + _CRC.pack(crc32(frame))
