"""Words of messages and of queries, and the order of search results: the same for every store.

Text is cut into words here and not in a database, so that every store finds the same.

    a word            letters and digits, without case and without accents: `Café` is `cafe`
    an identifier     several words in a row: `src/foo/bar_baz.py` is src, foo, bar, baz, py
    a hump            `fooBar` is the word `foobar`, and also, in a second row, `foo` and `bar`
    no spaces         each character of Chinese, Japanese, Korean, Thai and similar scripts is a word, so that any part
                      of a sentence is found without a dictionary
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import log1p
from typing import Any, NamedTuple

import msgspec

from ..core import wire
from ..core.messages import Message, Text, ToolCall, ToolResult
from ..ports import SearchHit

__all__ = ["HITS_MAX", "TERMS_MAX", "TEXT_MAX", "Term", "Words", "best_hits", "contains", "cut", "terms", "words_of"]

TEXT_MAX = 65_536
"""Characters of a message that are searched: the first ones. A longer message is a file."""

TERMS_MAX = 24
"""Words and phrases of a query that count: the first ones."""

ROW_MAX = 64
"""Words of one term that count: the first ones."""

_WORD_MAX = 64
"""Characters of a word that count, so that base64 does not fill the index."""

_HUMPS_MAX = 8
"""Humps of a name at most; a word with more is base64."""

Term = tuple[str, ...]
"""Words in a row."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Chinese characters, Hangul syllables."""
_MARKS = "\u0900-\u0963\u0966-\u0dff"
"""Letters of the scripts of India with their vowel signs, which are not word characters in Python."""

_ASCII = re.compile(r"[A-Za-z0-9]+")
_ANY = re.compile(rf"[\w{_MARKS}]+")
_UNSPACED_ONE = re.compile(f"[{_UNSPACED}]")
_OTHERS = re.compile(r"[^\x00-\x7f]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_HAS_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_QUOTED = re.compile(r'"([^"]*)"|([^\s"]+)')


class Words(NamedTuple):
    """The words of a text, in two rows."""

    words: list[str]
    humps: list[str]
    """The parts of the words that have humps."""


def words_of(body: bytes) -> Words:
    """Return the words of a message with these canonical bytes; none if it is erased or unreadable.

    Texts, texts of tool results, names and arguments of calls are searched; reasoning, media and opaque parts are not.
    """
    if not body:
        return Words([], [])
    try:
        message = wire.decode_message(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Words([], [])
    return cut(_text(message))


def cut(text: str) -> Words:
    """Return the words of the first TEXT_MAX characters of a text."""
    text = text[:TEXT_MAX]
    if text.isascii():
        words = _ASCII.findall(text)
    else:
        plain = _OTHERS.sub(_plain, text.replace("_", " "))
        words = _ANY.findall(_UNSPACED_ONE.sub(r" \g<0> ", plain))
    humps = [hump for word in words if not (word.islower() or word.isdigit()) for hump in _humps(word)]
    return Words([word[:_WORD_MAX].casefold() for word in words], humps)


def terms(query: str) -> list[Term]:
    """Return the terms of a query, each once and at most TERMS_MAX: quoted words in a row, all others word by word.

    An identifier is one term of several words, since it must be found whole.
    """
    asked: dict[Term, None] = {}
    for phrase, word in _QUOTED.findall(query[:TEXT_MAX]):
        if row := tuple(cut(phrase or word).words[:ROW_MAX]):
            asked[row] = None
        if len(asked) == TERMS_MAX:
            break
    return list(asked)


def contains(text: Words, term: Term) -> bool:
    """Whether a text contains the words of a term in a row, in one of its two rows."""
    return _row_contains(term, text.words) or _row_contains(term, text.humps)


def _row_contains(term: Term, row: Sequence[str]) -> bool:
    if len(term) == 1:
        return term[0] in row
    size, first = len(term), term[0]
    return any(word == first and tuple(row[at : at + size]) == term for at, word in enumerate(row))


def _plain(others: re.Match[str]) -> str:
    """Return the characters without accents, composed again where several form one letter (as in Hangul)."""
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


# ---------------------------------------------------------------------------------------------------------- ranking

HITS_MAX = 1000
"""Messages per term, the newest, if no message contains the whole query. It bounds the work; a term that so many
contain is not significant.
"""

Holding = Callable[[Sequence[Term], int], list[int]]
"""Returns the positions of messages that contain all these terms, newest first, at most so many."""
WithBodies = Callable[[Sequence[int]], set[int]]
"""Returns the positions whose messages still have a body. Called for many at once: a database answers slowly."""


def best_hits(
    terms: Sequence[Term], limit: int, size: int, holding: Holding, with_bodies: WithBodies
) -> list[SearchHit]:
    """Return at most `limit` messages of a conversation with `size` messages, best first.

    Messages that contain all terms in a row come first, then others that contain every term, each newest first, then
    those that contain some, by weight. A term has the more weight the fewer messages contain it. The score is 1 if
    every term is contained, else the weight of the contained terms as a share of the weight of all.
    """
    if not terms or limit <= 0:
        return []
    in_a_row = tuple(word for term in terms for word in term)
    first = _whole([in_a_row], limit, holding, with_bodies) if len(terms) > 1 and len(in_a_row) <= ROW_MAX else []
    others = _whole(terms, limit + len(first), holding, with_bodies) if len(first) < limit else []
    hits = [SearchHit(position, 1.0) for position in dict.fromkeys([*first, *others])][:limit]
    if len(hits) < limit and len(terms) > 1:
        known = {hit.position for hit in hits}
        rest = (hit for hit in _some(terms, size, holding) if hit.position not in known)
        hits += islice(_with_bodies(rest, limit, with_bodies), limit - len(hits))
    return hits


def _whole(terms: Sequence[Term], limit: int, holding: Holding, with_bodies: WithBodies) -> list[int]:
    count = limit
    while True:
        positions = holding(terms, count)
        here = with_bodies(positions)
        if len(here) >= limit or len(positions) < count:
            return [position for position in positions if position in here][:limit]
        count *= 4  # Some of the newest are erased.


def _with_bodies(rest: Iterable[SearchHit], most: int, with_bodies: WithBodies) -> Iterator[SearchHit]:
    """Yield the hits whose messages still have a body, checked `most` at a time."""
    hits = iter(rest)
    while some := list(islice(hits, most)):
        here = with_bodies([hit.position for hit in some])
        yield from (hit for hit in some if hit.position in here)


def _some(terms: Sequence[Term], size: int, holding: Holding) -> Iterator[SearchHit]:
    """Yield the messages that contain at least one term, best first."""
    weights: defaultdict[int, float] = defaultdict(float)
    total = 0.0
    for term in terms:
        positions = holding([term], HITS_MAX)
        weight = log1p(size / (1 + len(positions)))
        total += weight
        for position in positions:
            weights[position] += weight
    for position, weight in sorted(weights.items(), key=lambda item: (item[1], item[0]), reverse=True):
        yield SearchHit(position, weight / total)
