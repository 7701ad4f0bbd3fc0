"""Holding statements: the rules and values of users and system messages that no later statement replaces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .signs import Sign
from .terms import terms_of
from .weights import NOT_BY_USER, Statement

__all__ = ["Holding", "holding_among"]

_LENGTH_MAX = 300
"""Characters. A longer statement is not one rule or value."""
_CHANGE_MAX = 80
"""Characters of a change, such as `Make the limit 40 instead.`, that gives a value."""
_BINDS = re.compile(
    r"\b(?:never|must(?: not|n[’']t)?|always|do not|don[’']t|may not|cannot|not allowed|forbidden|off.?limits|at most"
    r"|at least|no (?:more|later|less|fewer) than|budget|deadline|only (?:use|in|on|after|with|if|when)"
    r"|\A(?:please )?only \w+ (?:in|on|at|after|during)\b"
    r"|without (?:my|our|the|an?) (?:ok|okay|approval|consent|permission|review)"
    r"|hands off|leave (?:\S+ ){1,4}(?:alone|as (?:it is|is))|(?:has|have|needs?) to be \w+ (?:by|before|until)"
    r"|(?:ask|check with|wait for|tell) (?:\S+ ){0,4}(?:first|before)|wait until"
    r"|(?:limit|maximum|minimum) (?:is|of)|niemals|nie|darf|dürfen|muss|müssen|immer|höchstens|jamais|toujours|interdit"
    r"|il faut|ne \w+ pas|nunca|siempre|prohibido|(?:no se )?(?:puede|debe)|sempre|proibido|vietato|non dev\w+"
    r"|нельзя|никогда|всегда|запрещено)\b|不要|不得|禁止|必须|预算|上限|必ず|しないで|絶対",
    re.IGNORECASE,
)
_EXACT = re.compile(r"\d|\w[_/@.]\w")
"""A number or an identifier."""


class Holding(NamedTuple):
    """The statements that hold, oldest first."""

    rules: list[str]
    """Prohibitions, duties and limits."""
    values: list[str]
    """Statements that give a number or an identifier."""


def holding_among(statements: Sequence[Statement]) -> Holding:
    """Return those of these statements that bind, and those that give a value. Guesses and questions do neither."""
    known = [
        statement
        for statement in statements
        if statement.is_authoritative and statement.speaker != "tool" and _may_hold(statement)
    ]
    rules = [text for statement in known if _BINDS.search(text := _holding_text(statement)) and _may_bind(statement)]
    values = [
        text for statement in known if not _BINDS.search(text := _holding_text(statement)) and _gives_value(statement)
    ]
    return Holding(rules, values)


def _may_hold(statement: Statement) -> bool:
    """Return whether a statement is short and sure, or only stands behind a rule."""
    if statement.text.endswith(NOT_BY_USER):
        return bool(statement.earlier)
    is_sure = not statement.signs & (Sign.QUESTION | Sign.HEDGE | Sign.SMALL_TALK)
    return is_sure and len(statement.text) <= _LENGTH_MAX


def _holding_text(statement: Statement) -> str:
    """Return the words of a statement, with those of the user before it if the user did not say it."""
    return statement.shown if statement.text.endswith(NOT_BY_USER) else statement.text


def _may_bind(statement: Statement) -> bool:
    """Return whether a statement with words that bind is a rule.

    The decisions and values of an earlier summary may be those of the model, or of a tool's result.
    """
    if statement.speaker == "summary":
        return statement.kind in ("rule", "goal")
    return statement.kind != "said" and not statement.confirms


def _gives_value(statement: Statement) -> bool:
    """Return whether a statement has a number or an identifier after `is`, `=` or the like, or in a short change."""
    if not _EXACT.search(statement.text):
        return False
    if statement.signs & Sign.CHANGE and statement.speaker == "user" and len(statement.text) <= _CHANGE_MAX:
        return True
    if not statement.signs & Sign.VALUE:
        return False
    terms = terms_of(statement.text)
    return bool(terms.assigned & terms.values)
