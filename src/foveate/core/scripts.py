"""Characters of the world's scripts: classes for regular expressions, and cuts that leave letters and emoji whole."""

from __future__ import annotations

import unicodedata

__all__ = ["MARKS", "SPACED_MARKS", "UNSPACED", "beginning_of", "whole_end"]

SPACED_MARKS = (
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\u0483-\u0489"  # all, Cyrillic
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"  # Arabic
    "\u0711\u0730-\u074a\u07a6-\u07b0"  # Syriac, Thaana
    "\u0900-\u0903\u093a-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7\u09e2\u09e3\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71"
    "\u0a75\u0a81-\u0a83\u0abc-\u0acd\u0ae2\u0ae3\u0b01-\u0b03\u0b3c-\u0b57\u0b62\u0b63\u0b82\u0bbe-\u0bd7\u0c00-\u0c04"
    "\u0c3c-\u0c56\u0c62\u0c63\u0c81-\u0c83\u0cbc-\u0cd6\u0ce2\u0ce3\u0d00-\u0d03\u0d3b-\u0d57\u0d62\u0d63\u0d81-\u0d83"
    "\u0dca-\u0df3"  # India, Sri Lanka
    "\u135d-\u135f\u180b-\u180d"  # Ethiopic, Mongolian
    "\u200c\u200d"  # joiners inside of words
)
"""Marks that belong to the letter before them, in scripts with spaces between words. Python's `\\w` lacks them."""

MARKS = (
    f"{SPACED_MARKS}\u3099\u309a"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f35\u0f37\u0f39\u0f71-\u0f87"  # Thai to Tibetan
    "\u102b-\u103e\u1056-\u1059\u105e-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u17b4-\u17d3"  # Burmese, Khmer
)
"""The marks of all scripts."""

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Chinese characters, Hangul syllables: no space need stand between two words."""

_JOINERS = "\u200c\u200d"
_FOLLOWING = "\u0e33\u0eb3"
"""Vowels of Thai and Lao that stand in part above the letter before them."""
_BACK = 64
"""Characters that a letter or an emoji may have. A longer row of marks is cut inside."""
_VIRAMA = 9
"""The combining class of signs that join two letters of an Indian script."""


def beginning_of(text: str, most: int) -> str:
    """Return the first `most` characters of a text, or fewer, so that no letter and no emoji is cut inside."""
    return text[: whole_end(text, max(0, most))]


def whole_end(text: str, end: int) -> int:
    """Return the last position up to `end` that is inside of no letter with its marks, and of no emoji."""
    if end >= len(text) or text[end].isascii():
        return end
    place = end
    while place > max(0, end - _BACK) and _is_inside(text, place):
        place -= 1
    is_whole = not _is_inside(text, place) if place else unicodedata.category(text[0])[0] != "M"
    return place if is_whole else end


def _is_inside(text: str, place: int) -> bool:
    """Return whether the characters on both sides of a position are seen as one."""
    before, after = text[place - 1], text[place]
    if after in _JOINERS or after in _FOLLOWING or unicodedata.category(after)[0] == "M" or before == _JOINERS[1]:
        return True
    if "\u1160" <= after <= "\u11ff" or "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True  # Parts of a Hangul syllable, colours of skin, and letters of a flag.
    if _is_half_flag(before) and _is_half_flag(after):
        first = place
        while first and _is_half_flag(text[first - 1]):
            first -= 1
        return (place - first) % 2 == 1
    return unicodedata.combining(before) == _VIRAMA and after.isalpha()


def _is_half_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
