"""Finds the JSON objects in what a model wrote, among its words and behind its fences. What they mean is not known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

__all__ = ["objects_in"]

_ATTEMPTS = 50
"""Places in a text at which an object may begin that are tried in vain. Each costs time with the length of the text."""


def objects_in(text: str, faults: list[str]) -> Iterator[dict[str, Any]]:
    """The JSON objects that stand in a text, from left to right; none that stands within another.

    What keeps others from being read is added to `faults`.
    """
    at = text.find("{")
    while at >= 0 and len(faults) < _ATTEMPTS:
        try:
            found, end = _DECODER.raw_decode(text, at)
            json.dumps(found, ensure_ascii=False).encode()
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
            yield found
        at = text.find("{", end)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


_DECODER = json.JSONDecoder(parse_constant=_no_number, strict=False)
"""Takes line breaks in strings, which models often write, and no numbers that JSON does not have."""
