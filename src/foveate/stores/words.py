"""Words of messages and of queries: the same for every store, so that every store finds the same.

    a word            letters and digits, without case and without accents: `Café` is `cafe`
    a name            several words in a row: `src/foo/bar_baz.py` is src, foo, bar, baz, py
    a hump            `fooBar` is the word `foobar`, and also, in a second row, `foo` and `bar`
    no spaces         each character of Chinese, Japanese, Korean, Thai and similar scripts is a word, so that any part
                      of a sentence is found without a dictionary

An index holds the keys of a message, each once: stems of its words and of the parts of its names, and the parts joined,
so that `getUserId`, `get_user_id` and `GET-USER-ID` share the keys get, user, id, getuser, userid and getuserid. A stem
of another language than English carries the language (`verbindung/de`): the same letters may be another word there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from ..core import wire
from ..core.caches import cached, register
from ..core.json_escapes import decode_escapes
from ..core.messages import Message, Text, ToolCall, ToolResult
from ..core.scripts import UNSPACED
from .languages import ENGLISH, LANGUAGES, language_of, stem, stop_words

__all__ = [
    "KEYS_VERSION",
    "ROW_MAX",
    "TERMS_MAX",
    "TEXT_MAX",
    "RowFinder",
    "Term",
    "Words",
    "contains",
    "cut",
    "keys_of",
    "keys_of_piece",
    "pieces_in",
    "terms",
    "text_of",
]

KEYS_VERSION = 3
"""The version of the keys and of their stored form. Increase it with every change of them: indexes of another version
are built again.
"""

TEXT_MAX = 65_536
"""Characters of a message that are searched: the first ones. A longer message is a file."""

TERMS_MAX = 24
"""Words and phrases of a query that count: the first ones."""

ROW_MAX = 64
"""Words of one term that count: the first ones."""

_WORD_MAX = 64
"""Characters of a word that count, so that base64 does not fill the index."""

_PARTS_MAX = 8
"""Parts of a name that are joined, at most; a name with more is base64 or a sentence."""

_KNOWN_MAX = 65_536
"""Words whose keys are remembered."""

_MARKS = "\u0900-\u0963\u0966-\u0dff"
"""Letters of the scripts of India with their vowel signs, which are not word characters in Python."""

_ASCII = re.compile(r"[A-Za-z0-9]+")
_ANY = re.compile(rf"[\w{_MARKS}]+")
_ACCENT = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670]+")
"""Accents, the vowel signs of Hebrew and Arabic, and the line that stretches an Arabic word."""
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_HAS_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_QUOTED = re.compile(r'"([^"]*)"|([^\s"]+)')
_PIECES = re.compile(rf"[\w{_MARKS}-]+")
_ASCII_PIECES = re.compile(r"[A-Za-z0-9_-]+")
"""Words, also several that are joined by `_` or `-`."""
_JOINED = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-]+[A-Za-z0-9]+)+")
"""A name whose parts are joined by `_` or `-`."""
_NUMBER = re.compile(r"[0-9]{4,}|[0-9]+[a-zA-Z]\w*")
"""A part of a date or of a random id, which is not joined with others."""


class Words(NamedTuple):
    """The words of a text, in two rows."""

    words: list[str]
    humps: list[str]
    """The parts of the words that have humps."""


class Term(NamedTuple):
    """One word, name or phrase of a query."""

    row: tuple[str, ...]
    """Its words. A message with several must contain them in a row."""
    keys: tuple[tuple[str, ...], ...]
    """For each word the keys that it may have in an index."""
    joined: str = ""
    """The key of a name whose parts are joined, if any: a message that has it contains the name."""
    is_stop: bool = False
    """Whether it says little about a text."""
    is_exact: bool = False
    """Whether it is quoted: its words stand as they are."""


def text_of(body: bytes) -> str:
    """Return the searched text of a message with these canonical bytes; "" if it is erased or unreadable.

    Texts, texts of tool results, names and arguments of calls are searched; reasoning, media and opaque parts are not.
    Letters that JSON has as escapes are letters.
    """
    if not body:
        return ""
    try:
        message = wire.decode_message(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    return decode_escapes("\n".join(_texts(message)))[:TEXT_MAX]


def keys_of(text: str) -> set[str]:
    """Return the keys of the first TEXT_MAX characters of a text."""
    text = text[:TEXT_MAX]
    pieces = set(_ASCII_PIECES.findall(text) if text.isascii() else _PIECES.findall(_spaced(text)))
    language = language_of(pieces)
    return set().union(*map(_key_caches[language].__getitem__, pieces))


def pieces_in(text: str) -> Iterator[re.Match[str]]:
    """Yield the pieces of a text as they stand: words, and names with their joined parts."""
    return _ASCII_PIECES.finditer(text) if text.isascii() else _places().finditer(text)


@cache  # Ranges of so many characters are slow to compile, and most texts have none of them.
def _places() -> re.Pattern[str]:
    return re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])[\w{_MARKS}\u0300-\u036f-])+")


def keys_of_piece(piece: str, language: str) -> tuple[str, ...]:
    """Return the keys of one piece of a text in this language."""
    return _key_caches[language][piece]


def cut(text: str) -> Words:
    """Return the words of the first TEXT_MAX characters of a text."""
    words = _words_in(text[:TEXT_MAX])
    humps = [hump for word in words if not (word.islower() or word.isdigit()) for hump in _humps(word)]
    return Words([word[:_WORD_MAX].casefold() for word in words], humps)


def terms(query: str) -> list[Term]:
    """Return the terms of a query, each once and at most TERMS_MAX: quoted words in a row, all others word by word.

    A name is one term of several words, since it must be found whole.
    """
    asked: dict[tuple[str, ...], Term] = {}
    query = query[:TEXT_MAX]
    language = language_of(cut(query).words[: TERMS_MAX * 4])
    for phrase, word in _QUOTED.findall(query):
        term = _term(phrase or word, language, is_exact=bool(phrase))
        if term.row:
            asked.setdefault(term.row, term)
        if len(asked) == TERMS_MAX:
            break
    return list(asked.values())


class RowFinder:
    """Finds words in a row in one text."""

    def __init__(self, text: str) -> None:
        self._text = text[:TEXT_MAX]
        self._folded = ""

    def has(self, row: Sequence[str]) -> bool:
        """Return whether the text contains these words in a row: plain words, or the parts of one name.

        Signs may stand between them. `user id` is in `getUserId`, in `user_id` and in `user, id`.
        """
        if not self._folded:
            self._text = self._text if self._text.isascii() else _unaccented(self._text)
            self._folded = self._text.casefold()
            if len(self._folded) != len(self._text):  # As of `Straße`: then no word has humps.
                self._text = self._folded
        for match in _row_pattern(tuple(row)).finditer(self._folded):
            begin, end = match.span()
            while begin and self._text[begin - 1].isalnum():
                begin -= 1
            while end < len(self._text) and self._text[end].isalnum():
                end += 1
            if contains(cut(self._text[begin:end]), row):
                return True
        return False


@cached(64)
def _row_pattern(row: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"[\W_]*".join(map(re.escape, row)))


def contains(text: Words, row: Sequence[str]) -> bool:
    """Return whether a text contains these words in a row, in one of its two rows."""
    return _row_contains(tuple(row), text.words) or _row_contains(tuple(row), text.humps)


def _row_contains(wanted: tuple[str, ...], row: list[str]) -> bool:
    size, first = len(wanted), wanted[0]
    return any(word == first and tuple(row[at : at + size]) == wanted for at, word in enumerate(row))


def _term(text: str, language: str, *, is_exact: bool) -> Term:
    words = cut(text).words[:ROW_MAX]
    joined = ""
    if not is_exact and len(words) == 1 and (humps := _humps(text.strip("".join(_EDGES)))):
        joined, words = stem("".join(humps), ENGLISH), humps
    elif not is_exact and 1 < len(words) <= _PARTS_MAX and _JOINED.fullmatch(text.strip("".join(_EDGES))):
        joined = stem("".join(words), ENGLISH)
    is_stop = not is_exact and len(words) == 1 and (words[0] in stop_words(language) or words[0] in stop_words(ENGLISH))
    return Term(tuple(words), tuple(map(_possible_keys, words)), joined, is_stop, is_exact)


_EDGES = tuple(".,:;!?()[]{}<>'`*")
"""Signs around a name that do not belong to it."""


def _possible_keys(word: str) -> tuple[str, ...]:
    """Return the keys that a word of a query may have in a text of any language."""
    return tuple(dict.fromkeys(_key(word, language) for language in LANGUAGES))


def _key(word: str, language: str) -> str:
    stemmed = stem(word, language)
    is_marked = language != ENGLISH and language != "ru" and len(word) > 3 and word.isalpha() and word < "\u0250"
    return f"{stemmed}/{language}" if is_marked else stemmed


def _keys(piece: str, language: str) -> tuple[str, ...]:
    """Return the keys of the words of a piece of text, of their humps, and of its joined parts."""
    if piece.islower() and piece.isalpha() and len(piece) <= _WORD_MAX:
        return (_key(piece.casefold(), language),)
    words = _words_in(piece)
    keys: list[str] = []
    parts: list[str] = []
    for word in words:
        humps = [] if word.islower() or word.isdigit() else _humps(word)
        plain = word[:_WORD_MAX].casefold()
        # A name is a name in every language.
        keys += [stem(plain, ENGLISH), *(_key(hump, language) for hump in humps)] if humps else [_key(plain, language)]
        parts += humps or [plain]
    if 1 < len(parts) <= _PARTS_MAX and parts[0][0].isalpha() and not any(map(_NUMBER.fullmatch, parts)):
        keys += [stem("".join(parts)[:_WORD_MAX], ENGLISH), *_joins(parts)]
    return tuple(keys)


class _KeyCache(dict[str, tuple[str, ...]]):
    """The keys of pieces of texts in one language, worked out at the first use: most pieces come again."""

    __slots__ = ("__weakref__", "_language")

    def __init__(self, language: str) -> None:
        self._language = language
        register(self)

    def __missing__(self, piece: str) -> tuple[str, ...]:
        keys = _keys(piece, self._language)
        if len(piece) <= _WORD_MAX:
            if len(self) >= _KNOWN_MAX:
                self.clear()
            self[piece] = keys
        return keys

    def cache_clear(self) -> None:
        self.clear()


_key_caches = {language: _KeyCache(language) for language in LANGUAGES}


def _joins(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of two neighbours each, if there are more: `getUserId` is found by `userid`."""
    if len(parts) == 2:
        return ()
    return tuple(stem(first + second, ENGLISH) for first, second in pairwise(parts))


def _words_in(text: str) -> list[str]:
    """Return the words of a text as they stand, without accents."""
    return _ASCII.findall(text) if text.isascii() else _ANY.findall(_spaced(text).replace("_", " "))


def _spaced(text: str) -> str:
    """Return a text without accents, and with spaces around each character of a script without spaces."""
    return _unspaced_character().sub(r" \g<0> ", _unaccented(text))


@cache
def _unspaced_character() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]")


def _unaccented(text: str) -> str:
    plain = _ACCENT.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", plain)  # One letter again where several characters form it, as in Hangul.


def _humps(word: str) -> list[str]:
    if len(word) > _WORD_MAX or not word or word[0].isdigit() or not _HAS_HUMP.search(word):
        return []
    pieces = _HUMP.findall(word)
    return [piece.casefold() for piece in pieces] if 1 < len(pieces) <= _PARTS_MAX else []


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
    """Yield every key, text and number in a JSON value, in order."""
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
