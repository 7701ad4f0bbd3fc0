"""Text as safe markup: escaped, with control and invisible characters made visible.

A character that changes how other characters look, or that no font shows, becomes a small mark with its code point, so
that a page shows what a message holds. Joiners and selectors inside emoji stay, because they belong to a picture.
"""

from __future__ import annotations

import re
import unicodedata

from markupsafe import Markup, escape

__all__ = ["element", "mark_of", "marked", "visible"]

_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    r"\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    r"|(?<![\u2190-\u2bff\ufe0f\U0001f000-\U0001ffff])\u200d"
)
"""Controls (C0, C1), bidirectional controls, characters of no width, fillers, tags and halves of surrogate pairs."""
_CONTROLS = (
    "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI",
    "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US",
)  # fmt: skip
"""Abbreviations of the controls 0 to 31 (ECMA-48). Fonts often lack the pictures that Unicode has for these."""


def mark_of(character: str) -> str:
    """Return the text that stands for a hidden character: the abbreviation of a control, or the code point.

    >>> mark_of(chr(0)), mark_of(chr(0x202E))
    ('NUL', 'U+202E')
    """
    code = ord(character)
    if code < len(_CONTROLS):
        return _CONTROLS[code]
    return "DEL" if code == 0x7F else f"U+{code:04X}"


def marked(text: str) -> str:
    """Return a text with the marks of its hidden characters, for an attribute."""
    return _HIDDEN.sub(lambda match: mark_of(match[0]), text)


def visible(text: str) -> Markup:
    """Return a text as markup, escaped and with marks for hidden characters. Line breaks and tabs stay."""
    escaped = str(escape(text))
    return Markup(_HIDDEN.sub(_mark, escaped) if _HIDDEN.search(escaped) else escaped)


def element(tag: str, classes: str, inner: str | Markup) -> Markup:
    """Return an element with these classes around a text, which is escaped unless it is markup."""
    return Markup('<{0} class="{1}">{2}</{0}>').format(
        tag, classes, inner if isinstance(inner, Markup) else visible(inner)
    )


def _mark(match: re.Match[str]) -> str:
    character = match[0]
    name = unicodedata.name(character, "").lower() or _unnamed(ord(character))
    return f'<span class="c-control" title="U+{ord(character):04X} {name}">{mark_of(character)}</span>'


def _unnamed(code: int) -> str:
    return "half of a surrogate pair" if 0xD800 <= code <= 0xDFFF else "control character"
