"""Letters that JSON has as escapes: `\\u4f9b` for 供, as many libraries write it."""

from __future__ import annotations

import re

__all__ = ["decode_escapes"]

_ESCAPE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|.)")
_JOINERS = (0x200C, 0x200D)


def decode_escapes(text: str) -> str:
    """Return a text with the letters and signs that its escapes name.

    Escapes of ASCII and of invisible characters stay, so that JSON stays valid, and each line in its place.
    """
    return _ESCAPE.sub(_decoded, text) if "\\u" in text else text


def _decoded(escape: re.Match[str]) -> str:
    high, low, single = escape.groups()
    if high:
        return chr(0x10000 + (int(high, 16) - 0xD800 << 10) + int(low, 16) - 0xDC00)
    code = int(single, 16) if single else 0
    shown = code > 0x9F and (chr(code).isprintable() or code in _JOINERS)
    return chr(code) if shown else escape[0]
