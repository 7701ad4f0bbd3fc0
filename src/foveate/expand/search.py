"""Search for words in messages that are not shown whole, with the text around them.

The store finds the words; messages that the view shows whole are skipped, and so are the conversation's own messages,
originals that a policy withholds from the model, and blocks that plugins added for a limited number of calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from ..core.enrich import hides_lasting, lasting_message
from ..core.json_escapes import decode_escapes
from ..core.messages import Message, ToolCall
from ..core.scripts import whole_end
from ..stores.matches import places
from ..stores.words import Term, terms
from .originals import author_of, decoded, text_of
from .tool import NAMES

if TYPE_CHECKING:
    from ..conversation.edit import Editor
    from ..conversation.state import State

__all__ = ["Hit", "describe_hits", "hit_in", "search", "snippet_of"]

WIDTH = 160
"""Characters of a snippet."""
_MAX_PLACES = 500
"""Places of the words that are compared in one message."""
_MAX_MESSAGES = 2_000
"""Messages read from the store, at most, to find some that are not shown."""


class Hit(Struct, frozen=True):
    """A message that holds words of a search and is not shown whole."""

    handle: str
    """The message that has the words."""
    turn: int
    """The model call after which it came."""
    who: str
    """The tool it came from, or the role of its author."""
    line: int
    """The line of the original, from 1, with the first of the words in the snippet."""
    snippet: str
    """The words with the text around them, on one line."""
    is_hidden: bool
    """Whether nothing of it is shown; otherwise it is shown shortened."""
    score: float
    """The larger the better; comparable only within one search."""

    def __str__(self) -> str:
        return f"{self.handle} (turn {self.turn}, {self.who}, line {self.line:,}): {self.snippet}"


def search(state: State, editor: Editor, words: str, limit: int) -> list[Hit]:
    """Return the best `limit` messages that hold these words and are not shown whole, the best first."""
    wanted = terms(words)
    shown = {entry.position: entry for entry in state.followed().entries() if entry.outline is not None}
    hits: list[Hit] = []
    seen, asked = 0, max(4 * limit, 50)
    while wanted and len(hits) < limit:
        found = state.store.search(state.head, words, asked)
        scores = {match.position: match.score for match in found[seen:]}
        due = [at for at in scores if at not in shown or (hides_lasting(shown[at]) and shown[at].expandable)]
        rows = state.store.get_many(state.head, due) if due else []
        withheld = editor.withheld.among(rows)
        for row in sorted(rows, key=lambda row: due.index(row.position)):
            if row.id in withheld or row.stamp.expanded or not row.body:
                continue
            message = decoded(row)
            lasting = lasting_message(message, row.stamp)
            if lasting is not message and _is_only_in(message, lasting, wanted):
                continue
            hit = hit_in(
                f"m{row.position}",
                lasting,
                wanted,
                turn=row.stamp.turn,
                who=author_of(row),
                is_hidden=row.position not in shown,
                score=scores[row.position],
            )
            hits += [hit] if hit else []
        if len(found) < asked or asked >= _MAX_MESSAGES:
            break
        seen, asked = len(found), asked * 4
    return hits[:limit]


def hit_in(
    handle: str, message: Message, words: Sequence[Term], *, turn: int, who: str, is_hidden: bool, score: float
) -> Hit | None:
    """Return the best place for these words in a message; None if only a call of `expand` contains them."""
    asked = [part for part in message.parts if isinstance(part, ToolCall) and part.name in NAMES]
    if asked:
        rest = Message(message.role, tuple(part for part in message.parts if part not in asked))
        if not any(places(decode_escapes(text_of(rest)), words)):
            return None
    line, around = snippet_of(message, words)
    return Hit(handle, turn, who, line, around, is_hidden, score)


def snippet_of(message: Message, words: Sequence[Term]) -> tuple[int, str]:
    """Return the best place for these words in a message: its line, from 1, and the text around it, on one line."""
    text = decode_escapes(text_of(message))
    start, end = _best(text, words)
    low = max(0, min(start - (WIDTH - (end - start)) // 2, len(text) - WIDTH))
    low, high = whole_end(text, low), whole_end(text, min(len(text), low + WIDTH))
    snippet = " ".join(text[low:high].split())
    return text.count("\n", 0, start) + 1, f"{'…' if low else ''}{snippet}{'…' if high < len(text) else ''}"


def _is_only_in(message: Message, rest: Message, words: Sequence[Term]) -> bool:
    """Return whether a message has these words, and the rest of it has none of them."""
    if any(places(decode_escapes(text_of(rest)), words)):
        return False
    return not rest.parts or any(places(decode_escapes(text_of(message)), words))


def describe_hits(hits: Sequence[Hit], words: str) -> str:
    """Return the result of a search as the model reads it."""
    places = "1 place" if len(hits) == 1 else f"{len(hits)} places"
    head = f"[{places} for {words[:80]!r} in what is not shown whole, best first, each with its handle]"
    return "\n".join([head, *map(str, hits)])


def _best(text: str, words: Sequence[Term]) -> tuple[int, int]:
    """Return start and end of the piece, of a snippet's length at most, that holds most of the words.

    If no word is found with these letters, that is the beginning.
    """
    found = list(islice(places(text, words), _MAX_PLACES))
    best, most = (0, 0), 0
    first = 0
    for last, (_, end) in enumerate(found):
        while end - found[first][0] > WIDTH and first < last:
            first += 1
        distinct = len({text[a:b].casefold() for a, b in found[first : last + 1]})
        if distinct > most:
            best, most = (found[first][0], min(end, found[first][0] + WIDTH)), distinct
    return best
