"""Statements that a digest shows as one: repetitions, parts of a message, and older ones before a later one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .sections import BETWEEN
from .weights import NOT_BY_USER, Statement

__all__ = ["append", "join", "without_copies"]

_JOINED = 700
"""Characters of a line with older statements and a later one."""


def without_copies(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements without repetitions: the newest of equal ones, with the largest weight.

    A model or a tool that repeats what others said makes it no newer.
    """
    newest: dict[str, Statement] = {}
    for statement in statements:
        key = _key(statement.text)
        before = newest.get(key)
        if before is not None and statement.is_from_others and not before.is_from_others:
            before.weight = max(before.weight, statement.weight)
            continue
        newest.pop(key, None)
        if before is not None:
            if before.kind == "goal" or before.weight > statement.weight:
                statement.kind, statement.weight = before.kind, max(before.weight, statement.weight)
            if before.is_authoritative:
                statement.speaker = before.speaker
        newest[key] = statement
    return list(newest.values())


def append(first: Statement, second: Statement) -> None:
    """Add the words of a statement to those of another one of its message."""
    if second.weight > first.weight:
        first.kind, first.speaker = second.kind, second.speaker
    first.text, first.weight, second.text = f"{first.text} {second.text}", first.weight + second.weight, ""


def join(
    statements: Sequence[Statement],
    pairs: Iterable[tuple[Statement, Statement]],
    removed: Mapping[int, Statement],
) -> set[str]:
    """Put older statements in front of the later ones that may replace them. Returns the words of the older ones.

    `pairs`: an older and a later statement each. `removed`: the statements that replace others, by the identity of
    those.
    """
    places = {id(statement): place for place, statement in enumerate(statements) if statement.text}
    copies = {_key(statement.text): statement for statement in statements}
    later: dict[int, Statement] = {}
    for old, new in pairs:
        while not new.text and id(new) in removed:
            new = removed[id(new)]
        old, new = (
            statement if id(statement) in places else copies.get(_key(statement.text), statement)
            for statement in (old, new)
        )
        if places.get(id(old), len(places)) < places.get(id(new), -1):
            later[id(old)] = new
    others = {id(statement) for statement in statements if statement.is_from_others}
    gone: set[str] = set()
    for old in [statement for statement in statements if id(statement) in later]:
        newest = later[id(old)]
        while id(newest) in later:
            newest = later[id(newest)]
        text = old.text.rstrip(". ")
        if len(newest.shown) + len(text) > _JOINED:
            continue
        is_binding = old.is_authoritative and old.kind in ("rule", "goal")
        if is_binding and newest.own_words:  # The model may have said more than the user.
            newest.text, newest.own_words, newest.confirms = newest.own_words, "", 0
            others.discard(id(newest))
        elif is_binding and id(newest) in others and not newest.text.endswith(NOT_BY_USER):
            newest.text += NOT_BY_USER
        newest.earlier += f"{BETWEEN if newest.earlier else ''}{text}"
        newest.weight += old.weight
        newest.speaker = old.speaker if old.is_authoritative or newest.speaker == "tool" else newest.speaker
        if newest.kind in ("asked", "said") or old.kind in ("rule", "goal"):
            newest.kind = old.kind
        gone.add(old.text)
        old.text = ""
    return gone


def _key(text: str) -> str:
    """Return what is the same in equal statements."""
    return text.casefold().strip(" .!")
