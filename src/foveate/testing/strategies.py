"""Hypothesis strategies for what conversations do to those who keep them: histories, messages, edits, the nasty kind.

Hypothesis draws a few bytes and `moves.py` makes messages of them. So an example costs half a millisecond, and a
failing one shrinks to the few moves that matter. This is the one file of `foveate.testing` that needs Hypothesis.
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
    """Texts, ordinary ones first: then empty and blank ones, foreign letters, control characters, no spaces at all."""
    return st.sampled_from(TEXTS)


def messages() -> SearchStrategy[Message]:
    """Single messages of any role, with parts that a role may have no business having."""
    return _made(st.binary(min_size=1, max_size=9), lambda drawn: message_of(drawn[0] % 10, _moves(drawn[1:], 8)))


def histories(*, max_size: int = 24) -> SearchStrategy[list[Message]]:
    """Conversations as they should not be, and sometimes are.

    Calls in parallel, interleaved, answered late, twice or never; answers to nothing; ids used again, empty or
    strange; blank and empty messages; broken arguments; images in results; reasoning signed, unsigned and foreign;
    blocks of unknown kinds; system messages in the middle; no user at all. At most `max_size` messages.
    """
    return _made(_draws(2, max_size), lambda drawn: history_of(_moves(drawn, len(MOVES))))


def runs(*, max_size: int = 12) -> SearchStrategy[list[Message]]:
    """Conversations as they should be: each call answered at once, arguments JSON objects, nothing blank.

    A user's request and at most `max_size` steps of the assistant, with the answers to what they call.
    """
    return _made(_draws(2, max_size), lambda drawn: run_of(_moves(drawn, 4)))


def edits(ids: Sequence[str], *, max_size: int = 12) -> SearchStrategy[list[Edit]]:
    """Sequences of edits over these message ids, sound and senseless: wrong kinds, paths and spans, ids of nobody."""
    named = [*ids, *NOWHERE]

    def made(drawn: bytes) -> list[Edit]:
        chunks = zip(*[iter(drawn)] * 4, strict=False)
        return [
            edit_of(named, kind - 1, a % len(named), b % len(named), flavour) for kind, a, b, flavour in chunks if kind
        ]

    return _made(_draws(4, max_size), made)


@st.composite
def _made(draw: st.DrawFn, drawn: SearchStrategy[bytes], make: Callable[[bytes], _T]) -> _T:
    # A composite, not a map: then a failing example is shown as the values it is, not as the bytes they were made of.
    return make(draw(drawn))


def _draws(width: int, count: int) -> SearchStrategy[bytes]:
    # Left alone, Hypothesis draws few elements, too few for anything to come late.
    return st.binary(max_size=width * count) | st.binary(min_size=width * count // 3, max_size=width * count)


def _moves(drawn: bytes, kinds: int) -> list[tuple[int, int, int]]:
    """Two bytes a move: what it is, and the two numbers that colour it. Zero is no move: shrinking forgets moves."""
    pairs = zip(drawn[::2], drawn[1::2], strict=False)
    return [((kind - 1) % kinds, colour // 16, colour % 16) for kind, colour in pairs if kind]
