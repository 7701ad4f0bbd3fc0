"""JSON objects in a model's text, which may have words and fences around them, and equal texts for equal JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

__all__ = ["canonical_json", "objects_in"]

_ATTEMPTS = 50
"""How many failed attempts to read an object are made. Each costs time in proportion to the text."""


def canonical_json(text: str) -> str:
    """Return equal texts for equal JSON, regardless of order and white space; a text that is no JSON as it is."""
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="deterministic").decode()
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text


def objects_in(text: str, faults: list[str]) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Yield the outermost JSON objects in a text, from left to right, each with its start and its end in the text.

    Add the faults of others to `faults`.
    """
    at = text.find("{")
    while at >= 0 and len(faults) < _ATTEMPTS:
        try:
            fields, end = _DECODER.raw_decode(text, at)
            json.dumps(fields, ensure_ascii=False).encode()
        except UnicodeError:
            faults.append("a string holds half of a surrogate pair")
            end = at + 1
        except RecursionError:
            faults.append("it is nested too deeply")
            end = at + 1
        except ValueError as error:
            faults.append(str(error))
            end = at + 1
        else:
            yield fields, at, end
        at = text.find("{", end)


def _refuse_number(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


_DECODER = json.JSONDecoder(parse_constant=_refuse_number, strict=False)
"""Accepts line breaks in strings, which models often write, and no NaN or Infinity."""
