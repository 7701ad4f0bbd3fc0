"""Conversion between JSON text and Python values, strict with callers and tolerant with models.

Values from callers become compact JSON text that keeps order and characters; values that are not JSON, or nested too
deeply for any provider, are refused. Text from a model that is not a JSON object gives None, never an exception.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from ..core.scalars import plain_scalar
from ..errors import BadMessage

__all__ = [
    "DEPTH",
    "body_parts",
    "copy_json",
    "decode",
    "dump_object",
    "encode",
    "join_body",
    "parse_object",
    "to_text",
]

DEPTH = 200
"""Levels of nesting that are accepted: far above real messages, far below what exhausts the stack."""


def to_text(value: object, where: str) -> str:
    """Return the compact JSON text of a value. `where` names the value in a BadMessage."""
    try:
        text = _encode(value).decode()
    except RecursionError:
        raise BadMessage(f"{where} is nested deeper than {DEPTH} levels. Flatten it, or send it as text.") from None
    except UnicodeEncodeError as error:
        raise BadMessage(
            f"{where} holds half of a surrogate pair (an escape such as \\ud83d on its own), which cannot be sent. "
            "Repair it first: text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')."
        ) from error
    except Exception as error:
        raise BadMessage(f"{where} cannot be written as JSON: {error}. Use plain JSON values.") from error
    # Both checks walk the whole value, so they run only if the text shows that they may find something.
    if text.count("[") + text.count("{") > DEPTH and _too_deep(value):
        raise BadMessage(f"{where} is nested deeper than {DEPTH} levels. Flatten it, or send it as text.")
    if "null" in text and _holds_infinity(value):
        raise BadMessage(f"{where} holds a number that is not finite, which JSON cannot express. Use null or a string.")
    return text


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the object in a JSON text, or None if the text is anything else. Half a surrogate pair becomes U+FFFD."""
    try:
        value = _decode(text)
    except RecursionError:
        return None
    except (msgspec.DecodeError, UnicodeEncodeError):
        value = _repaired(text)
    if not isinstance(value, dict):
        return None
    if text.count("[") + text.count("{") > DEPTH and _too_deep(value):
        return None
    return value


def encode(value: object) -> bytes:
    """Return the JSON bytes of a wire message."""
    try:
        return _encode(value)
    except UnicodeEncodeError as error:
        raise BadMessage(
            "A text holds half of a surrogate pair, which cannot be sent. "
            "Repair it first: text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')."
        ) from error


def decode(body: bytes) -> Any:
    """Return the value that `encode` wrote."""
    return msgspec.json.decode(body)


def copy_json(value: Any) -> Any:
    """Copy the containers of a JSON value. The strings in them are shared."""
    if type(value) is dict:
        copy = value.copy()
        for key, item in value.items():
            if type(item) is dict or type(item) is list:
                copy[key] = copy_json(item)
        return copy
    if type(value) is list:
        return [copy_json(item) if type(item) is dict or type(item) is list else item for item in value]
    return value


def dump_object(value: Any, where: str) -> Any:
    """Dump an SDK object, without the fields that were never set."""
    # Warnings off: pydantic warns about a block that is newer than the SDK, although it dumps it correctly.
    all_options = {"exclude_unset": True, "mode": "json", "by_alias": True, "warnings": False}
    for options in (all_options, {"exclude_unset": True}, {}):
        try:
            return value.model_dump(**options)
        except TypeError:
            continue  # Older or home-made versions of `model_dump` take fewer options.
        except Exception as error:
            raise BadMessage(f"{where}: model_dump() of a {type(value).__name__} failed: {error}.") from error
    raise BadMessage(f"{where}: model_dump() of a {type(value).__name__} cannot be called. Pass a dict instead.")


def _foreign(value: object) -> Any:
    """Dump an SDK object inside plain values, for the encoder."""
    if hasattr(value, "model_dump"):
        return dump_object(value, "a nested value")
    return plain_scalar(value)


_encode = msgspec.json.Encoder(enc_hook=_foreign).encode
_decode = msgspec.json.Decoder().decode


def _repaired(text: str) -> Any:
    """Return the value of a text whose only fault is halves of surrogate pairs, else None."""
    try:
        whole = json.dumps(json.loads(text), ensure_ascii=False, allow_nan=False)
        return _decode(whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError):  # The errors of msgspec and json are ValueErrors.
        return None


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(DEPTH):
        level = [item for each in level for item in _items(each) if isinstance(item, dict | list | tuple)]
        if not level:
            return False
    return True


def _holds_infinity(value: object) -> bool:
    """Return whether a value holds a NaN or an infinity, which the encoder writes as null."""
    level = [value]
    while level:
        if any(isinstance(each, float) and not math.isfinite(each) for each in level):
            return True
        level = [item for each in level for item in _items(each)]
    return False


def _items(value: object) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


_LONG = 16_384
"""Bytes that cost more to copy than a join with commas saves."""


def join_body(head: bytes, bodies: list[bytes]) -> bytes:
    """Return a request body: `head`, which ends with the bracket of the list of messages, then the messages.

    They are joined once, after the ends are added, because they may be megabytes. `bodies` is used up.
    """
    if not bodies:
        return head + b"]}"
    if len(bodies[0]) + len(bodies[-1]) > _LONG:
        return b"".join(body_parts(head, bodies))
    bodies[0] = head + bodies[0]
    bodies[-1] += b"]}"
    return b",".join(bodies)


def body_parts(head: bytes, bodies: Sequence[bytes]) -> list[bytes]:
    """Return the same request body in pieces: the messages themselves, and what stands between them."""
    parts = [b","] * (2 * len(bodies))
    parts[1::2] = bodies
    parts[:1] = [head]  # In place of the first comma.
    return [*parts, b"]}"]
