"""Estimate of a text's tokens by its scripts and kinds of content, without a vocabulary.

An estimate is a weighted sum of counts: each ASCII character, each start of a run of one class (letters, digits,
punctuation, ...), each other character by its block of 128 code points, and the characters of words that are not common
in English or in code. The weights come from real vocabularies (`token_weights.py`, fitted by `tools/fit_tokens.py`).

The counts use whole-string operations, since a loop over characters takes a hundred times as long: `bytes.translate`
looks up weights, `zlib.adler32` adds them, and shifted big integers find the starts of runs. Long texts are measured in
slices that are spread over the whole text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from zlib import adler32

from .token_weights import WEIGHTS

__all__ = ["BLOCK_UNIT", "BYTE_UNIT", "CLASSES", "CLASS_COUNT", "ESTIMATES", "blocks_of", "estimator", "word_shares"]

ESTIMATES = tuple(WEIGHTS)
"""Names of the vocabularies that can be estimated."""

BYTE_UNIT = 80
"""Weights of ASCII characters are multiples of 1/80 token. At most 127 of them keep the sum of a slice below 65,521,
the modulus of Adler-32.
"""
BLOCK_UNIT = 20
"""Weights of other characters are multiples of 1/20 token for each UTF-16 unit, at most 63."""
_SLICE = 512
"""Characters of a slice."""
_WHOLE = 2_048
"""Texts up to this length are measured whole, longer ones in this many characters and a quarter of the rest."""


def _classes() -> bytes:
    table = bytearray([6]) * 128 + bytearray([7]) * 128  # Control characters, and bytes of other characters.
    for code in range(33, 127):
        character = chr(code)
        table[code] = 0 if character.islower() else 1 if character.isupper() else 2 if character.isdigit() else 5
    table[ord(" ")] = 3
    table[9:14] = bytes([4]) * 5
    return bytes(table)


CLASSES = _classes()
"""Class of each UTF-8 byte: small letter, capital, digit, space, line break or tab, punctuation, control, other."""
CLASS_COUNT = 8


def _folded() -> bytes:
    """Return an even number below 128 for each high byte of a UTF-16 unit: large scripts have one for all bytes."""
    limits = ((0x34, 0), (0x4E, 104), (0xA0, 106), (0xAC, 108), (0xD8, 110), (0xDC, 112), (0xE0, 114), (0xF9, 116))
    last = {0xFE: 120, 0xFF: 122}
    numbers = [next((number for limit, number in limits if high < limit), last.get(high, 118)) for high in range(256)]
    return bytes(2 * high if high < 0x34 else numbers[high] for high in range(256))


_HIGH = _folded()
_LOW = bytes(low >> 7 for low in range(256))

_COMMON_WORDS = """
    a about add after all also an and any are array as async at await be because been but by can class code const
    could data def default did do does each else error except export false file first for from function get have he
    her him his how i id if import in int into is it its just key let like line list make many may me message model
    more most must my name need new no none not null number object of on one only open or other our out path please
    print private public raise read request response result return run same see self set she should so some static
    string such test text than that the their them then there these they this time to true try two type up use used
    user using value var very void was we were what when where which while who will with would write you your
    A And For He I If In It She The This To We You
    bạn bị cho các có của không là một này người những trong và với được đã
    без было в вы для его если и из или к как который может на не но о от по при с так то у что это
"""
"""Words that are common in English texts, in code and its messages, and in Vietnamese and Russian, which vocabularies
cover better than other languages of the same letters.
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_AFTER_CYRILLIC = "\u0530"
"""Words of Latin, Greek and Cyrillic letters sort before it."""
_FEW_KNOWN = 0.3
"""Texts with a smaller share of common words are not plain English; their words take more tokens."""
_LONG_WORD = 18
"""Longer runs of letters are hardly words."""
_WORDS = 140
"""Characters of each of the three places where words are looked up."""


def blocks_of(text: str) -> bytes:
    """Return for each UTF-16 unit of a text a number below 128 that stands for its block of 128 code points."""
    wide = text.encode("utf-16-le", "surrogatepass")
    high, low = wide[1::2].translate(_HIGH), wide[::2].translate(_LOW)
    return (int.from_bytes(high, "little") | int.from_bytes(low, "little")).to_bytes(len(high), "little")


def word_shares(text: str) -> tuple[float, float]:
    """Return the share of characters in words that are not common, and in runs of letters too long for words."""
    size = len(text)
    if size > 3 * _WORDS:
        middle = (size - _WORDS) // 2
        text = f"{text[:_WORDS]} {text[middle : middle + _WORDS]} {text[-_WORDS:]}"
        size = 3 * _WORDS + 2
    words = [word for word in text.split() if word < _AFTER_CYRILLIC and word.isalpha()]
    if not words:
        return 0.0, 0.0
    letters = len("".join(words))
    long = sum([len(word) for word in words if len(word) > _LONG_WORD]) if letters > _LONG_WORD else 0
    known = (sum(map(_COMMON.__contains__, words)) + 1) / (len(words) + 4)
    strangeness = max(0.0, 1 - known / _FEW_KNOWN)
    return (letters - long) / size * strangeness, long / size


@cache
def estimator(family: str) -> Callable[[str], int]:
    """Return the function that estimates tokens of a text in this vocabulary. Raises KeyError for an unknown name."""
    of_bytes, of_starts, of_blocks, unit, unknown, long = WEIGHTS[family]
    bits = bytes.fromhex(of_starts)
    byte_table = bytes.fromhex(of_bytes) + bytes(128)
    start_table = bytes(bits[number] for number in CLASSES)
    block_table = bytes.fromhex(of_blocks) + bytes(128)

    def measure(text: str) -> float:
        """Return the tokens of a slice, without those of unknown words."""
        data = text.encode("utf-8", "surrogatepass")
        classes = int.from_bytes(data.translate(start_table), "little")
        tokens = (adler32(data.translate(byte_table), 0) & 0xFFFF) / BYTE_UNIT
        tokens += unit * (classes ^ (classes & (classes << 8))).bit_count()
        if len(data) > len(text):
            tokens += (adler32(blocks_of(text).translate(block_table), 0) & 0xFFFF) / BLOCK_UNIT
        return tokens

    def estimate(text: str) -> int:
        size = len(text)
        if size <= _SLICE:
            tokens = measure(text)
        else:
            starts = _slices(size)
            measured = sum([measure(text[start : start + _SLICE]) for start in starts])
            tokens = measured * size / sum([min(_SLICE, size - start) for start in starts])
        unknown_share, long_share = word_shares(text)
        tokens += size * (unknown * unknown_share + long * long_share)
        if text.isascii():
            tokens = min(tokens, size)  # A vocabulary of bytes has no shorter token: a long line of one letter.
        return max(-int(-tokens // 1), 1 if text else 0)

    return estimate


def _slices(size: int) -> list[int]:
    """Return where the measured slices of a text of this size begin."""
    if size <= _WHOLE:
        return list(range(0, size, _SLICE))
    last = (_WHOLE + (size - _WHOLE) // 4) // _SLICE - 1
    room = size - (last + 1) * _SLICE
    # Uneven gaps: with even ones, the slices of a table would show the same columns again and again.
    return [index * _SLICE + room * index // last - index % last * 89 % 64 for index in range(last + 1)]
