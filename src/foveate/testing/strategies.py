"""Hypothesis strategies for histories, messages and edits, including invalid ones.

Hypothesis draws a few bytes, and `moves.py` makes messages of them. So an example costs half a millisecond, and a
failing one shrinks to the few moves that matter. This is the only module of `foveate.testing` that needs Hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ..core.edits import Edit
from ..core.messages import Message
from .moves import MOVES, NOWHERE, TEXTS, edit_of, history_of, message_of, run_of

__all__ = ["edits", "histories", "messages", "runs", "texts"]


_T = TypeVar("_T")


def texts() -> SearchStrategy[str]:
    """Return texts, ordinary ones first, then empty, blank, foreign, with control characters, without spaces."""
    return st.sampled_from(TEXTS)


def messages() -> SearchStrategy[Message]:
    """Return single messages of any role, also with parts that do not fit the role."""
    return _build(st.binary(min_size=1, max_size=9), lambda drawn: message_of(drawn[0] % 10, _moves(drawn[1:], 8)))


def histories(*, max_size: int = 24) -> SearchStrategy[list[Message]]:
    """Return invalid conversations, some of which occur in practice.

    Calls in parallel, interleaved, answered late, twice or never; answers to nothing; repeated, empty or strange ids;
    blank and empty messages; broken arguments; images in results; reasoning signed, unsigned and foreign; blocks of
    unknown kinds; system messages in the middle; no user at all. At most `max_size` messages.
    """
    # A move may add two messages.
    return _build(_draws(2, max_size), lambda drawn: history_of(_moves(drawn, len(MOVES)))[:max_size])


def runs(*, max_size: int = 12) -> SearchStrategy[list[Message]]:
    """Return valid conversations: each call answered at once, arguments are JSON objects, nothing blank.

    A user's request and at most `max_size` steps of the assistant, with the answers to its calls.
    """
    return _build(_draws(2, max_size), lambda drawn: run_of(_moves(drawn, 4)))


def edits(ids: Sequence[str], *, max_size: int = 12) -> SearchStrategy[list[Edit]]:
    """Return sequences of edits over these message ids, valid and invalid: wrong kinds, paths, spans and ids."""
    named = [*ids, *NOWHERE]

    def build(drawn: bytes) -> list[Edit]:
        chunks = zip(*[iter(drawn)] * 4, strict=False)
        return [
            edit_of(named, kind - 1, a % len(named), b % len(named), flavour) for kind, a, b, flavour in chunks if kind
        ]

    return _build(_draws(4, max_size), build)


@st.composite
def _build(draw: st.DrawFn, drawn: SearchStrategy[bytes], make: Callable[[bytes], _T]) -> _T:
    # A composite, not a map: a failing example is shown as values, not as bytes.
    return make(draw(drawn))


def _draws(width: int, count: int) -> SearchStrategy[bytes]:
    # By default Hypothesis draws few elements, too few for late answers.
    return st.binary(max_size=width * count) | st.binary(min_size=width * count // 3, max_size=width * count)


def _moves(drawn: bytes, kinds: int) -> list[tuple[int, int, int]]:
    """Return the moves of these bytes, two each: its kind, and the two numbers of its variant. Zero is no move, so
    shrinking removes moves.
    """
    pairs = zip(drawn[::2], drawn[1::2], strict=False)
    return [((kind - 1) % kinds, colour // 16, colour % 16) for kind, colour in pairs if kind]
