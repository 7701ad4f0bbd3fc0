"""Shapes of facts: how one is said, and the words that a summary must show of it.

A shape is a template. Its texts have slots such as `{person}` or `{port2}`, which `vocabulary.py` fills. A text that
begins with `system:`, `assistant:` or `tool:` belongs to that role, every other to the user. One that begins with
`next:` follows at once. `<long>` stands for some sentences of background.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

__all__ = ["KINDS", "NOT", "Fact", "Kind", "Shape", "shape"]

Kind = Literal["rule", "decision", "value", "change", "pair", "buried", "system", "question", "failure", "hedge"]
KINDS: tuple[Kind, ...] = get_args(Kind)

NOT = (
    "not|never|no|none|don't|doesn't|didn't|isn't|aren't|cannot|can't|won't|mustn't|shouldn't|hasn't|without|nothing|"
    "neither|nor|forbidden|off-limits|refuse*|avoid*"
)
"""Words of which one must stand in the statement of a prohibition or a negation."""


class Shape(NamedTuple):
    """A template of one fact."""

    name: str
    kind: Kind
    says: tuple[tuple[str, ...], ...]
    """The texts in their order in time; each is a choice of wordings."""
    keep: tuple[str, ...]
    """Tokens that must stand together. `a|b` accepts either, and `stem*` every word with that beginning."""
    old: tuple[str, ...] = ()
    """Tokens of the statement that a later one replaces."""
    other: tuple[str, ...] = ()
    """Tokens of the second of two facts that look alike."""
    hedge: str = ""
    """The token among `keep` that qualifies the rest: without it the statement says something else."""


class Fact(NamedTuple):
    """A shape with its slots filled, as it stands in one conversation."""

    shape: str
    kind: Kind
    place: str
    """The third of the conversation in which it is said last: start, middle or end."""
    says: tuple[str, ...]
    keep: tuple[str, ...]
    old: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    hedge: str = ""


def shape(
    kind: Kind,
    name: str,
    *says: str | Sequence[str],
    keep: Iterable[str],
    old: Iterable[str] = (),
    other: Iterable[str] = (),
    hedge: str = "",
) -> Shape:
    """Return a shape. Each of `says` is a text, or a list of wordings of the same."""
    wordings = tuple((text,) if isinstance(text, str) else tuple(text) for text in says)
    return Shape(name, kind, wordings, tuple(keep), tuple(old), tuple(other), hedge)
