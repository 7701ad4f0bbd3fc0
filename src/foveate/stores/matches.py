"""Places of a query's words in a text, for snippets: by the same keys as in an index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .languages import ENGLISH, language_of, stem
from .spelling import similar
from .words import TEXT_MAX, Term, keys_of_piece, pieces_in

__all__ = ["places", "significant"]


def significant(asked: Sequence[Term]) -> Sequence[Term]:
    """Return the terms without stop words, unless there are no others."""
    return [term for term in asked if not term.is_stop] or asked


def places(text: str, asked: Sequence[Term]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each place with words of these terms, in order; of similar words if there is none.

    Quoted words must stand together. The first TEXT_MAX characters of the text are searched.
    """
    text = text[:TEXT_MAX]
    terms = significant(asked)
    phrases = [term.row for term in terms if term.is_exact and len(term.row) > 1]
    words = [term for term in terms if not (term.is_exact and len(term.row) > 1)]
    found = [*_phrase_places(text, phrases), *_word_places(text, words)] or _similar_places(text, words)
    yield from sorted(found)


def _phrase_places(text: str, rows: Sequence[Sequence[str]]) -> Iterator[tuple[int, int]]:
    for row in rows:
        pattern = r"[\W_]*".join(map(re.escape, row))
        yield from (match.span() for match in re.finditer(pattern, text, re.IGNORECASE))


def _word_places(text: str, asked: Sequence[Term]) -> list[tuple[int, int]]:
    wanted = {key for term in asked for keys in (*term.keys, (term.joined,)) for key in keys if key}
    if not wanted:
        return []
    pieces = list(pieces_in(text))
    language = language_of({match.group() for match in pieces})
    return [match.span() for match in pieces if not wanted.isdisjoint(keys_of_piece(match.group(), language))]


def _similar_places(text: str, asked: Sequence[Term]) -> list[tuple[int, int]]:
    forms = {form for term in asked for word in term.row for form in (word, stem(word, ENGLISH))}
    pieces = list(pieces_in(text))
    known = {match.group(): keys_of_piece(match.group(), ENGLISH) for match in pieces} if forms else {}
    keys = {key for some in known.values() for key in some}
    meant = {key for form in forms for key in similar(form, keys)}
    return [match.span() for match in pieces if not meant.isdisjoint(known.get(match.group(), ()))]
