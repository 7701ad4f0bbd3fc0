"""Encode values as bytes and decode them, version 1.

These bytes are hashed and stored. Messages and journal records are JSON, so a person can read a database. Stamps are
many and small, so they are MessagePack arrays. Decoding ignores unknown fields. A part of an unknown kind, or with an
unknown value, becomes `Opaque`, so this version can read a conversation of a newer version.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec.structs import astuple

from ..errors import BadEdit, BadMessage
from .edits import Record
from .messages import Message, Part, ToolResult
from .scalars import plain_scalar
from .stamps import Stamp

__all__ = [
    "VERSION",
    "decode_message",
    "decode_record",
    "decode_stamp",
    "encode_message",
    "encode_record",
    "encode_stamp",
    "plain_message",
]

VERSION = 1

_json = msgspec.json.Encoder(enc_hook=plain_scalar)
_message = msgspec.json.Decoder(Message)
_record = msgspec.json.Decoder(Record)
_pack = msgspec.msgpack.Encoder(enc_hook=plain_scalar)
_stamp = msgspec.msgpack.Decoder(Stamp)


def encode_message(message: Message) -> bytes:
    """Return the canonical bytes of a message.

    Raises BadMessage if a text holds half of a surrogate pair: no provider and no UTF-8 file can carry it.
    """
    try:
        # The encoder reserves up to half as much memory again; a copy does not, and a store in memory holds it.
        return bytes(memoryview(_json.encode(message)))
    except UnicodeEncodeError as error:
        raise BadMessage(
            "Message has half of a surrogate pair (an escape such as \\ud83d alone), which cannot be sent or stored."
            " Repair the text before appending: text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')."
        ) from error


def decode_message(body: bytes) -> Message:
    """Return the message with these canonical bytes. Raises msgspec.DecodeError if the bytes are invalid."""
    try:
        return _message.decode(body)
    except msgspec.ValidationError:
        message = json.loads(body)
        if not isinstance(message, dict) or not isinstance(message.get("parts", []), list):
            raise
        return msgspec.convert(_with_unknown_parts(message), Message)


def plain_message(message: Message) -> Message:
    """Return the message with every string as a plain `str`. Strings of derived types fail in some decoders."""
    parts: list[Part] = list(message.parts)
    for part in parts:
        if isinstance(part, ToolResult):
            parts += part.content  # Seen by this loop too.
        for name in part.__struct_fields__:
            value = getattr(part, name)
            if type(value) is not str and isinstance(value, str):
                return decode_message(encode_message(message))
    return message if type(message.name) is str else decode_message(encode_message(message))


def encode_record(record: Record) -> bytes:
    """Return the canonical bytes of a journal record. Raises BadEdit if a text holds half of a surrogate pair."""
    try:
        return _json.encode(record)
    except UnicodeEncodeError as error:
        raise BadEdit(
            "Edit has half of a surrogate pair in a text or reason, which cannot be stored. Repair the text."
        ) from error


def decode_record(body: bytes) -> Record:
    """Return the journal record with these canonical bytes."""
    return _record.decode(body)


def encode_stamp(stamp: Stamp) -> bytes:
    """Return the canonical bytes of a stamp, without the rare fields at its end if they are empty."""
    s = stamp
    if s.key:
        return _pack.encode(s)
    if s.model:
        return _pack.encode(astuple(s)[:-1])
    usage: object = s.usage
    if s.usage is not None and s.usage.sent is None:
        usage = astuple(s.usage)[:-1]
    expanded: object = s.expanded
    if s.expanded is not None and not s.expanded.is_listed:
        expanded = astuple(s.expanded)[:-1]
    common = (s.turn, s.time, s.tokens, s.origin, s.source, usage, s.estimate)
    if s.stop is not None:
        return _pack.encode((*common, s.lease, s.retention, s.metadata, expanded, s.step, s.stop))
    if s.step:
        return _pack.encode((*common, s.lease, s.retention, s.metadata, expanded, s.step))
    if s.expanded is not None:
        return _pack.encode((*common, s.lease, s.retention, s.metadata, expanded))
    if s.lease is None and s.retention is None and not s.metadata:
        return _pack.encode(common)
    return _pack.encode((*common, s.lease, s.retention, s.metadata))


def decode_stamp(body: bytes) -> Stamp:
    """Return the stamp with these canonical bytes."""
    return _stamp.decode(body)


def _with_unknown_parts(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message with each part that only a later version understands wrapped as Opaque."""

    def wrapped(part: Any) -> Any:
        kind, content = (part.get("type"), part.get("content")) if isinstance(part, dict) else ("", None)
        complete = {**part, "content": [wrapped(nested) for nested in content]} if isinstance(content, list) else part
        try:
            msgspec.convert(complete, Part)
        except msgspec.ValidationError:
            body = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
            return {"type": "opaque", "format": "foveate", "kind": str(kind), "body": body}
        return complete

    return {**message, "parts": [wrapped(part) for part in message.get("parts", [])]}
