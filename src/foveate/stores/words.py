"""What a message says, as words; and a query, as words that must stand in a row. The same for every store.

Text is cut here and not in a database, so that all of them find the same. It knows characters, no table and no rank.

    a word            letters and digits in a row, without case and without accents: `Café` is `cafe`
    an identifier     what stands between its signs are words of their own, and the whole is those words in a row:
                      `src/foo/bar_baz.py` is src, foo, bar, baz, py
    a hump            `fooBar` is the word `foobar`, and beside it, in a second row, `foo` and `bar`
    no spaces         each character of Chinese, Japanese, Korean, Thai and their like is a word, so that any piece of
                      a sentence is found as characters in a row, without a dictionary
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from ..core import wire
from ..core.messages import Message, Text, ToolCall, ToolResult

__all__ = ["ROW_MAX", "SAID_MAX", "TERMS_MAX", "Said", "Term", "cut", "said", "stands_in", "terms"]

SAID_MAX = 65_536
"""Characters of a message that are searched: the first ones. A longer one is a file, whose end nobody searches for."""

TERMS_MAX = 24
"""Words and phrases of a query that count: the first ones. Whoever pastes a page gets its beginning searched for."""

ROW_MAX = 64
"""Words of one term that count: the first ones. Who quotes more than that names one place all the same."""

_WORD_MAX = 64
"""Characters of a word that count, so that no blob swells an index."""

_HUMPS_MAX = 8
"""Humps up to which a word is a name somebody made; what has more is base64."""

Term = tuple[str, ...]
"""Words that stand in a row."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Chinese characters, Hangul syllables."""
_MARKS = "\u0900-\u0963\u0966-\u0dff"
"""Letters of India's scripts with their vowel signs, which Python does not count among a word's characters."""

_ASCII = re.compile(r"[A-Za-z0-9]+")
_ANY = re.compile(rf"[\w{_MARKS}]+")
_UNSPACED_ONE = re.compile(f"[{_UNSPACED}]")
_OTHERS = re.compile(r"[^\x00-\x7f]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_HAS_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_QUOTED = re.compile(r'"([^"]*)"|([^\s"]+)')


class Said(NamedTuple):
    """The words of a text, in two rows."""

    words: list[str]
    humps: list[str]
    """The pieces of those words that have humps."""


def said(body: bytes) -> Said:
    """The words of a message with these canonical bytes; of an erased or unreadable one, none.

    Its texts, its tool result's texts, the names of its calls and what their arguments say. Not what was thought, no
    media, nothing that is opaque.
    """
    if not body:
        return Said([], [])
    try:
        message = wire.decode_message(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Said([], [])
    return cut(_text(message))


def cut(text: str) -> Said:
    """The words of a text. What follows its first SAID_MAX characters is left out."""
    text = text[:SAID_MAX]
    if text.isascii():
        found = _ASCII.findall(text)
    else:
        plain = _OTHERS.sub(_plain, text.replace("_", " "))
        found = _ANY.findall(_UNSPACED_ONE.sub(r" \g<0> ", plain))
    humps = [hump for word in found if not (word.islower() or word.isdigit()) for hump in _humps(word)]
    return Said([word[:_WORD_MAX].casefold() for word in found], humps)


def terms(query: str) -> list[Term]:
    """What a query asks for, once each: what stands in quotation marks in a row, and all else word by word.

    An identifier is one term of several words, since it has to be found whole. At most TERMS_MAX.
    """
    asked: dict[Term, None] = {}
    for phrase, word in _QUOTED.findall(query[:SAID_MAX]):
        if row := tuple(cut(phrase or word).words[:ROW_MAX]):
            asked[row] = None
        if len(asked) == TERMS_MAX:
            break
    return list(asked)


def stands_in(term: Term, text: Said) -> bool:
    """Whether the words of a term stand in a row in one of the two rows of a text."""
    return _stands_in(term, text.words) or _stands_in(term, text.humps)


def _stands_in(term: Term, row: Sequence[str]) -> bool:
    if len(term) == 1:
        return term[0] in row
    size, first = len(term), term[0]
    return any(word == first and tuple(row[at : at + size]) == term for at, word in enumerate(row))


def _plain(others: re.Match[str]) -> str:
    """Characters without accents: what they stood on, put together again where it is one letter (as in Hangul)."""
    apart = unicodedata.normalize("NFKD", others.group())
    return unicodedata.normalize("NFC", "".join(sign for sign in apart if not _is_accent(sign)))


def _is_accent(sign: str) -> bool:
    return "\u0300" <= sign <= "\u036f" or "\u0591" <= sign <= "\u05c7" or "\u064b" <= sign <= "\u065f"


def _humps(word: str) -> list[str]:
    if len(word) > _WORD_MAX or word[0].isdigit() or not _HAS_HUMP.search(word):
        return []
    pieces = _HUMP.findall(word)
    return [piece.casefold() for piece in pieces] if 1 < len(pieces) <= _HUMPS_MAX else []


def _text(message: Message) -> str:
    return "\n".join(_texts(message))


def _texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        match part:
            case Text(text=text):
                yield text
            case ToolResult():
                yield part.text
            case ToolCall(name=name, arguments=arguments):
                yield name
                try:
                    yield from _strings([msgspec.json.decode(arguments)])
                except (msgspec.DecodeError, RecursionError):
                    yield arguments
            case _:
                pass


def _strings(values: Iterable[Any]) -> Iterator[str]:
    """Every key, text and number in a JSON value, in order."""
    for value in values:
        match value:
            case dict():
                for key, inner in value.items():
                    yield key
                    yield from _strings([inner])
            case list():
                yield from _strings(value)
            case None | bool():
                pass
            case _:
                yield str(value)
