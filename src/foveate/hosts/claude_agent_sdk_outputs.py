"""Outputs of Claude Code's tools: values of any shape, with texts and files in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["texts_of", "with_texts"]

_BYTES: Final = frozenset({"base64", "data"})
"""Fields of an output that hold a file, not a text."""


def texts_of(value: Any) -> Iterator[str]:
    """Yield the texts of a tool's output, files left out."""
    match value:
        case str():
            yield value
        case dict():
            for key, inner in value.items():
                if key not in _BYTES:
                    yield from texts_of(inner)
        case list():
            for inner in value:
                yield from texts_of(inner)


def with_texts(value: Any, others: Mapping[str, str]) -> Any:
    """Return a tool's output in the same shape, with other texts in place of some."""
    match value:
        case str():
            return others.get(value, value)
        case dict():
            return {key: inner if key in _BYTES else with_texts(inner, others) for key, inner in value.items()}
        case list():
            return [with_texts(inner, others) for inner in value]
        case _:
            return value
