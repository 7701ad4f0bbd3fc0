"""The application's facts about a message: values in, JSON text in the stamp, values out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from ..errors import BadInput
from .ids import is_erased_metadata
from .scalars import plain_scalar

__all__ = ["encode_metadata", "is_metadata", "read_metadata", "read_metadata_as"]

T = TypeVar("T")


def is_metadata(value: object) -> bool:
    """Return whether this can be metadata: a dict, a dataclass, a Struct of msgspec or a model of pydantic."""
    if isinstance(value, type):
        return False
    return isinstance(value, Mapping | msgspec.Struct) or dataclasses.is_dataclass(value) or _can_dump(value)


def encode_metadata(value: object) -> str:
    """Return metadata as the JSON text of an object. Raises ValueError, TypeError or RecursionError if it is none."""
    plain = dict(value) if isinstance(value, Mapping) else _plain(value)
    if not isinstance(plain, dict):
        raise TypeError(f"a {type(value).__name__} is written as {plain!r:.40}, which is not an object")
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)
    text.encode()  # Half of a surrogate pair cannot be stored.
    return text


def read_metadata(text: str) -> dict[str, Any]:
    """Return the metadata in a stamp as a new dict; empty if there is none, or if it was erased."""
    if not text or is_erased_metadata(text):
        return {}
    return cast(dict[str, Any], json.loads(text))


def read_metadata_as(text: str, kind: type[T]) -> T:
    """Return the metadata in a stamp as a value of this type. Raises BadInput if it is none, or if it was erased."""
    name = getattr(kind, "__name__", str(kind))
    if is_erased_metadata(text):
        raise BadInput(f"The metadata of this message was erased, so it is no {name}. Check `metadata` first.")
    try:
        if callable(validate := getattr(kind, "model_validate_json", None)):  # A model of pydantic.
            return cast(T, validate(text or "{}"))
        return msgspec.json.decode(text or "{}", type=kind)
    except (ValueError, TypeError) as error:
        shown = f"{text:.80}" if text else "missing"
        raise BadInput(f"The metadata of this message is no {name}: {error}. It is {shown}.") from error


def _can_dump(value: object) -> bool:
    return callable(getattr(value, "model_dump", None))


def _plain(value: Any) -> Any:
    """Return a typed value as plain JSON values. Raises TypeError for other values."""
    if isinstance(value, msgspec.Struct) or dataclasses.is_dataclass(value):
        return msgspec.to_builtins(value, enc_hook=_plain)
    if _can_dump(value):
        return value.model_dump(mode="json")
    return plain_scalar(value)
