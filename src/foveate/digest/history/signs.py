"""Signs: what a statement is for, by the words of `lexicon.py`."""

from __future__ import annotations

import re
import unicodedata
from functools import reduce
from itertools import repeat
from operator import or_

from ...core.caches import cached
from ...core.scripts import MARKS
from .lexicon import ARROW, PHRASES, SMALL_TALK, WIDE_SIGNS, WORDS, Sign

__all__ = ["Sign", "possible_signs", "signs_of"]

_WORD = re.compile(rf"[^\W\d](?:[^\W\d]|[{MARKS}])*(?:['-][^\W\d](?:[^\W\d]|[{MARKS}])*)*")
_PHRASES_WITH: dict[str, list[tuple[int, re.Pattern[str]]]] = {}
"""The phrases with each word, and their signs."""
for _sign, _lines in PHRASES.items():
    for _line in _lines.strip().splitlines():
        _triggers, _, _pattern = _line.lstrip().partition(": ")
        _phrase = _sign, re.compile(_pattern)
        for _word in _triggers.split():
            _PHRASES_WITH.setdefault(_word, []).append(_phrase)
_KNOWN: dict[str, int] = {}
"""The signs of each word."""
for _sign, _list in WORDS.items():
    for _word in _list:
        _KNOWN[_word] = _KNOWN.get(_word, 0) | _sign
_POSSIBLE = {
    word: reduce(or_, (sign for sign, _ in _PHRASES_WITH.get(word, ())), _KNOWN.get(word, 0))
    for word in _KNOWN.keys() | _PHRASES_WITH.keys()
}
"""The signs of each word and of the phrases with it."""
_TYPESET = "—–…“”→"
"""Characters that often stand between English words."""
_SPACES = bytes(32 if chr(code) in '\n\t0123456789!"#$%&()*+,./:;<=>?@[\\]^`{|}~' else code for code in range(256))
_WIDE_SIGN = {sign: re.compile(pattern) for sign, pattern in WIDE_SIGNS.items()}
_VALUE = re.compile(
    r"(?:\b(?:is|are|was|to|at|by|in|of|equals|becomes|ist|sind|auf|est|sont|es|son|é|è|sono)\s+(?:now |the |a )?"
    r"|[=:：→]\s*|[为是はが]\s?)[\"'`«“$€£]?(?:\w*\d|[A-Z][\w.-]|[a-z]+[_./@-]\w)"
)
_SPECIFIC = re.compile(r"[\dA-Z_@/\"“«「`=:：→はがА-ЯÀ-Þ]|[.-]\w|[为是]")
_DIGIT = re.compile(r"\d")
_REMINDS = re.compile(
    r"(?:don't|do not|never|not to) (?:forget|ignore)|vergiss nicht|nicht vergessen|n'oublie(?:z)? pas|no olvides"
)
"""Reminders, which withdraw nothing."""
_DENIES = re.compile(
    r"\W*(?:not|nicht) (?!all|every|sure|yet|only|bad|much|a |the |that|so|really|too|very|alle|nur)\S"
)
"""A sentence that begins with `not`: it names what does not hold."""
_WIDE = re.compile(r"[\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""A letter of a script for which `WIDE_SIGNS` has signs."""
_VOWEL_SIGNS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670]")
"""Signs that Hebrew and Arabic texts may have or leave out."""
_LONGEST = 1_000
"""Characters of a statement that are searched for signs: a longer one is data."""
_LONGEST_TALK = 120
"""Characters of small talk."""


def signs_of(statement: str) -> int:
    """Return the signs of a statement."""
    plain = _plain(statement[:_LONGEST])
    if "for" in plain or "verg" in plain or "olvid" in plain or "oubli" in plain:
        plain = _REMINDS.sub(" ", plain)
    found = _words_of(plain)
    telling = _POSSIBLE.keys() & found  # Few words are.
    signs = reduce(or_, map(_KNOWN.get, telling, repeat(0)), 0)
    for word in _PHRASES_WITH.keys() & telling:
        for sign, pattern in _PHRASES_WITH[word]:
            if not signs & sign and (match := pattern.search(plain)) and _has_phrase(plain, match):
                signs |= sign
    if signs & Sign.NEGATION and _DENIES.match(plain):
        signs |= Sign.CHANGE
    if (">" in plain or "→" in plain) and ARROW.search(plain):
        signs |= Sign.CHANGE
    if not plain.isascii() and _WIDE.search(plain):
        for sign, pattern in _WIDE_SIGN.items():
            if pattern.search(plain):
                signs |= sign
    if _SPECIFIC.search(statement, 1, _LONGEST):
        signs |= Sign.SPECIFIC
        if _VALUE.search(statement, 0, _LONGEST):
            signs |= Sign.VALUE
    if found and len(statement) <= _LONGEST_TALK and not SMALL_TALK.isdisjoint(found[:2]):
        different = set(found)
        if len(different - SMALL_TALK) <= len(different) // 6 and not _DIGIT.search(statement):
            signs |= Sign.SMALL_TALK
    if plain.rstrip("\"'”») ").endswith(("?", "？", "؟")):
        signs |= Sign.QUESTION
    return signs


def _plain(text: str) -> str:
    """Return a text in the letters of the lexicon: small, each with its accents as one, without vowel signs."""
    plain = text.casefold()
    if plain.isascii():
        return plain
    return _VOWEL_SIGNS.sub("", unicodedata.normalize("NFC", plain).replace("’", "'"))


def _has_phrase(plain: str, match: re.Match[str] | None) -> bool:
    """Return whether a phrase begins with a whole word, at this match or later. To search for that is slower."""
    while match is not None:
        begin = match.start()
        if begin == 0 or not (plain[begin - 1].isalnum() or plain[begin - 1] == "_"):
            return True
        match = match.re.search(plain, begin + 1)
    return False


@cached(256)  # A sentence may be looked at twice: in its paragraph, and as a statement.
def possible_signs(sentence: str) -> int:
    """Return the signs that the words of a sentence allow: those of `signs_of` and more, at a fifth of the cost.

    Signs that no word shows (a question, a value, numbers and names, small talk) are left out.
    """
    plain = _plain(sentence)
    if not plain.isascii() and _WIDE.search(plain):
        return ~Sign.NONE
    signs = reduce(or_, map(_POSSIBLE.get, _words_of(plain), repeat(0)), 0)
    return signs | Sign.CHANGE if signs & Sign.NEGATION and _DENIES.match(plain) else signs


def _words_of(plain: str) -> list[str]:
    """Return the words of a text in small letters. An identifier such as `max_depth` is one word."""
    if not plain.isascii():
        for mark in _TYPESET:
            plain = plain.replace(mark, " ")
    if plain.isascii():
        found = plain.replace("--", " ").encode().translate(_SPACES).decode().split()
    else:
        found = _WORD.findall(plain)
    if "_" in plain:
        found = [word.strip("_") if word[0] == "_" else word for word in found]  # "_never_"
    return [word.strip("'-") for word in found] if "'" in plain else found
