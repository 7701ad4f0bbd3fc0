"""What a search found: where, who said it, and the words with what stands around them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from ..core.messages import Message, ToolCall
from .originals import text_of
from .tool import NAMES

__all__ = ["Hit", "hit_in", "told", "words_of"]

WIDTH = 160
"""Characters of a snippet."""
_MOST = 500
"""Places of the words that are weighed against each other, in one message."""
_WORD = re.compile(r'"([^"]+)"|(\w+)')


class Hit(Struct, frozen=True):
    """A message that holds words that were looked for, and is not shown whole."""

    handle: str
    turn: int
    """The model call after which it came."""
    who: str
    """The tool that said it, or the role of who did."""
    line: int
    """The line of the original, from 1, where the snippet begins."""
    snippet: str
    """The words with what stands around them, on one line."""
    is_hidden: bool
    """Whether nothing of it is shown; else it is shown shortened."""
    score: float
    """The larger the better; only to be compared within one search."""

    def __str__(self) -> str:
        return f"{self.handle} (turn {self.turn}, {self.who}, line {self.line:,}): {self.snippet}"


def words_of(query: str) -> list[str]:
    """The words and the phrases of a query."""
    return [phrase or word for phrase, word in _WORD.findall(query)]


def hit_in(
    handle: str, message: Message, words: Sequence[str], *, turn: int, who: str, is_hidden: bool, score: float
) -> Hit | None:
    """The best place for these words in a message; None where only a call of `expand` asked for them."""
    asked = [part for part in message.parts if isinstance(part, ToolCall) and part.name in NAMES]
    text = text_of(message)
    if asked:
        rest = Message(message.role, tuple(part for part in message.parts if part not in asked))
        if not any(_places(text_of(rest), words)):
            return None
    start, end = _best(text, words)
    low = max(0, min(start - (WIDTH - (end - start)) // 2, len(text) - WIDTH))
    high = min(len(text), low + WIDTH)
    snippet = " ".join(text[low:high].split())
    around = f"{'…' if low else ''}{snippet}{'…' if high < len(text) else ''}"
    return Hit(handle, turn, who, text.count("\n", 0, start) + 1, around, is_hidden, score)


def told(hits: Sequence[Hit], words: str) -> str:
    """What the model reads of a search that found something."""
    places = "1 place" if len(hits) == 1 else f"{len(hits)} places"
    head = f"[{places} for {words[:80]!r} in what is not shown whole, best first; expand a handle to see more]"
    return "\n".join([head, *map(str, hits)])


def _places(text: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    if not words:
        return
    pattern = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in sorted(words, key=len, reverse=True))
    yield from (match.span() for match in re.finditer(pattern, text, re.IGNORECASE))


def _best(text: str, words: Sequence[str]) -> tuple[int, int]:
    """Start and end of the run, as long as a snippet at most, that holds most of the words; the beginning if none is
    found by these letters.
    """
    places = list(islice(_places(text, words), _MOST))
    best, most = (0, 0), 0
    first = 0
    for last, (_, end) in enumerate(places):
        while end - places[first][0] > WIDTH and first < last:
            first += 1
        distinct = len({text[a:b].casefold() for a, b in places[first : last + 1]})
        if distinct > most:
            best, most = (places[first][0], min(end, places[first][0] + WIDTH)), distinct
    return best
