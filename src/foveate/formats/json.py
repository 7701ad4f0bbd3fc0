"""JSON text to Python values and back, where either may be odd.

What providers and users hand in is written as compact JSON text with its order and its letters kept; what is not
JSON, or is nested so deeply that no provider would take it, is refused by name. What is read back was perhaps written
by a model: where it is not a JSON object the answer is None, never an exception.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from ..errors import BadMessage

__all__ = ["DEPTH", "dumped", "encode", "fresh", "object_of", "text_of"]

DEPTH = 200
"""Levels of nesting that are taken: far above what anybody says, far below what exhausts a stack."""


def text_of(value: object, where: str) -> str:
    """The compact JSON text of a value. `where` names it in the BadMessage raised if it has none."""
    try:
        text = _encode(value).decode()
    except RecursionError:
        raise BadMessage(f"{where} is nested deeper than {DEPTH} levels. Flatten it, or send it as text.") from None
    except UnicodeEncodeError as error:
        raise BadMessage(
            f"{where} holds half of a surrogate pair (an escape such as \\ud83d on its own), which cannot be sent. "
            "Mend it first: text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')."
        ) from error
    except Exception as error:
        raise BadMessage(f"{where} cannot be written as JSON: {error}. Use plain JSON values.") from error
    # Both checks walk the value, so they are made only where there can be something to find.
    if text.count("[") + text.count("{") > DEPTH and _too_deep(value):
        raise BadMessage(f"{where} is nested deeper than {DEPTH} levels. Flatten it, or send it as text.")
    if "null" in text and _holds_infinity(value):
        raise BadMessage(
            f"{where} holds a number that is not finite, which JSON has no word for. Use null or a string."
        )
    return text


def object_of(text: str) -> dict[str, Any] | None:
    """The object that this JSON text says, or None where it says another thing. A half pair becomes U+FFFD."""
    try:
        value = _decode(text)
    except RecursionError:
        return None
    except (msgspec.DecodeError, UnicodeEncodeError):
        value = _mended(text)
    if not isinstance(value, dict):
        return None
    if text.count("[") + text.count("{") > DEPTH and _too_deep(value):
        return None
    return value


def encode(value: object) -> bytes:
    """The JSON bytes of a wire message."""
    try:
        return _encode(value)
    except UnicodeEncodeError as error:
        raise BadMessage(
            "A text holds half of a surrogate pair, which cannot be sent. "
            "Mend it first: text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')."
        ) from error


def fresh(value: Any) -> Any:
    """The same JSON value in new containers. The strings in them are shared."""
    if type(value) is dict:
        copy = value.copy()
        for key, item in value.items():
            if type(item) is dict or type(item) is list:
                copy[key] = fresh(item)
        return copy
    if type(value) is list:
        return [fresh(item) if type(item) is dict or type(item) is list else item for item in value]
    return value


def dumped(value: Any, where: str) -> Any:
    """What an SDK's object says about itself, without the fields that were never set."""
    # No warnings: a block newer than the SDK dumps well, but pydantic remarks on it.
    all_options = {"exclude_unset": True, "mode": "json", "by_alias": True, "warnings": False}
    for options in (all_options, {"exclude_unset": True}, {}):
        try:
            return value.model_dump(**options)
        except TypeError:
            continue  # An older or home-made `model_dump` takes fewer options.
        except Exception as error:
            raise BadMessage(f"{where}: model_dump() of a {type(value).__name__} failed: {error}.") from error
    raise BadMessage(f"{where}: model_dump() of a {type(value).__name__} cannot be called. Pass a dict instead.")


def _foreign(value: object) -> Any:
    """An SDK's object in the middle of plain values, for the encoder."""
    if hasattr(value, "model_dump"):
        return dumped(value, "a nested value")
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


_encode = msgspec.json.Encoder(enc_hook=_foreign).encode
_decode = msgspec.json.Decoder().decode


def _mended(text: str) -> Any:
    """The value of a text whose only fault is halves of surrogate pairs; None if there are others."""
    try:
        whole = json.dumps(json.loads(text), ensure_ascii=False, allow_nan=False)
        return _decode(whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError):  # msgspec's and json's errors are ValueErrors.
        return None


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(DEPTH):
        level = [item for each in level for item in _items(each) if isinstance(item, dict | list | tuple)]
        if not level:
            return False
    return True


def _holds_infinity(value: object) -> bool:
    """Whether a NaN or an infinity, which the encoder writes as null, is anywhere in here."""
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
