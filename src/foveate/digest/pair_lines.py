"""Lines that are a key with its value: `key: value`, `key = value` or `metric{labels} 17`."""

from __future__ import annotations

import re

from ..core.scripts import MARKS

__all__ = ["is_pair", "split_pair"]

_PAIR = re.compile(
    rf"([ \t]*)((?:- +)*)(?:export |set )?([\"']?)((?!\d)[\w$][\w{MARKS}$./-]*(?: [\w{MARKS}$./()-]+){{0,3}})\3"
    r"[ \t]*(:(?=\s|\Z)|：|=(?!=))[ \t]*(.*)"
)
_METRIC = re.compile(r"([A-Za-z_:][\w:]*)(\{.{0,400}\})? (-?(?:\d[\d.eE+-]*|NaN|[+-]?Inf))(?: \d+)?\Z")
_NO_VALUE = (";", "{", "(", "\\", "=>")
"""Endings of lines that are code."""
_WORDS_MOST = 8
"""Words of a value. A longer text is a sentence."""


def split_pair(row: str) -> tuple[str, str] | None:
    """Return the key and the value of a line `key: value`, `key = value` or `metric{labels} 17`; None for another."""
    match = _PAIR.match(row)
    if match is None:
        metric = _METRIC.match(row)
        return (f"{metric[1]}{metric[2] or ''}", metric[3]) if metric else None
    value = match[6].rstrip().rstrip(",")
    if value.endswith(_NO_VALUE) or value.count(" ") >= _WORDS_MOST or (match[5] == "=" and "(" in value):
        return None
    return match[4], value


def is_pair(row: str) -> bool:
    """Return whether a line is a key with its value."""
    pair = split_pair(row)
    return pair is not None and pair[1] != ""
