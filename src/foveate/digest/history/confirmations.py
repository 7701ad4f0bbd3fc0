"""Confirmations: sentences in which a model says what a user just decided.

People answer in fragments (`do it`, `10:30 pls, and 0.5%`), and the model's reply says in a whole sentence what now
holds: "The production release starts at 10:30, with a rollback above 0.5 % errors." Such a sentence is worth as much as
if the user had said it. It takes the place of the user's words if it has all their values, and they are a fragment or
it repeats most of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .signs import Sign
from .terms import Terms, terms_of
from .weights import Statement, weigh

__all__ = ["confirm", "is_agreement"]

_LONGEST = 260
"""Characters of a confirmation."""
_MOST = 3
"""Sentences at the beginning of a reply that may confirm."""
_TOPIC, _WHOLE_TOPIC = 2, 3
"""Words of a confirmation, without values, and of one that needs no words of the user: `The 3rd works` says not what
happens on that day.
"""
_FRAGMENT = 6
"""Words of a user, at most, that a confirmation replaces even if it repeats few of them."""
_REPEATED = 0.7
"""Share of longer words that it repeats, at least: `M05KNL is a trip to Rome` does not say that the user changes it."""
_AGREEMENT = 48
"""Characters of words that agree to what was proposed."""
_AGREES = re.compile(
    r"\W*(?:(?:oh|ah|hm+|well|and|then)\W+)*(?:yes|yep|yeah|ok(?:ay)?|fine|sure|good|great|nice|perfect|agreed|right|sounds"
    r"|do (?:it|that|so|both)|go (?:ahead|on|for)|please do|works|take (?:it|that)|let's|lets|makes sense|deal|done"
    r"|ja|gut|passt|mach|genau|klar|einverstanden|oui|d'accord|parfait|sí|si|vale|perfecto|hazlo|de acuerdo|sim|sì"
    r"|va bene|да|хорошо|давай)\b|\W*(?:好|可以|行|同意|はい|了解|좋아)",
    re.IGNORECASE,
)
_PROPOSES = re.compile(
    r"\b(?:i(?:'d| would| propose| suggest| recommend)|let's|we could|we should|should i|shall i|how about|proposal"
    r"|suggestion|recommend|propose|ich (?:würde|schlage)|vorschlag|wir könnten|je (?:propose|suggère)|propongo|sugiero"
    r"|podríamos|sugiro|proponho|proporrei|предлагаю)\b",
    re.IGNORECASE,
)


def is_agreement(text: str) -> bool:
    """Return whether a user agrees in a few words."""
    return len(text) <= _AGREEMENT and "?" not in text and _AGREES.match(text) is not None


def confirm(own: Sequence[Statement], reply: Sequence[Statement], proposed: Sequence[Statement], age: float) -> bool:
    """Give what a reply confirms, and what a user agreed to, the worth of a user's words. Return whether it confirms.

    `own`: the statements of the user's message; `reply`: those of the reply; `proposed`: those of the reply before, if
    the user agreed to it.
    """
    offers = [statement for statement in proposed if _PROPOSES.search(statement.text) and _may_confirm(statement)][-1:]
    candidates = [statement for statement in reply[:_MOST] if _may_confirm(statement)]
    requests: list[_Request] = []
    if candidates:  # Most short replies only ask or thank.
        requests = [_Request(statement) for statement in (*own, *offers) if statement.text and statement.kind != "goal"]
    is_confirmed = False
    for statement in candidates if requests else ():
        terms = terms_of(statement.text)
        values = _plain(terms.values)
        is_rule = bool(statement.signs & Sign.BINDING)
        echoed = [old for old in requests if old.is_in(terms, values, is_rule=is_rule)]
        if not echoed:
            continue
        statement.confirms = own[0].turn if own else 0
        if len(terms.topic) < _TOPIC:
            continue
        is_confirmed = True
        _raise(statement, age)
        if statement.signs & Sign.UPDATE or any(old.statement.signs & (Sign.CHANGE | Sign.UPDATE) for old in echoed):
            statement.signs |= Sign.CHANGE
        for request in echoed:
            old = request.statement
            if old in offers or old.signs & Sign.QUESTION or not request.values <= values:
                continue
            if (
                old.kind != "rule"
                and request.values
                and len(terms.topic) >= min(_WHOLE_TOPIC, len(request.terms.topic))
                and request.is_said_by(terms)
            ):
                statement.weight = max(statement.weight, old.weight)
                statement.own_words = f"{statement.own_words} {old.text}".lstrip()
                old.text = ""
    if not is_confirmed:
        for statement in offers:
            _raise(statement, age)
    return is_confirmed


def _may_confirm(statement: Statement) -> bool:
    is_sentence = bool(statement.text) and len(statement.text) <= _LONGEST
    return is_sentence and statement.speaker == "assistant" and not statement.signs & (Sign.QUESTION | Sign.SMALL_TALK)


class _Request:
    """A statement of a user, or a proposal that the user agreed to, that a reply may confirm."""

    __slots__ = ("statement", "terms", "values")

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.terms = terms_of(statement.text)
        self.values = _plain(self.terms.values)

    def is_in(self, reply: Terms, values: set[str], *, is_rule: bool) -> bool:
        """Return whether a sentence of a reply is about it: the sentence has a value of it, or two words.

        A sentence that does not bind says a rule again only if it has a number of it. `values`: those of the sentence.
        """
        statement = self.statement
        if statement.kind == "rule" and not (is_rule or statement.signs & Sign.QUESTION):
            return any(map(_has_digit, self.values & values))
        return not self.values.isdisjoint(values) or len(self.terms.all & reply.all) > 1

    def is_said_by(self, reply: Terms) -> bool:
        """Return whether a sentence of a reply says all that the statement says, or the statement is a fragment."""
        words = self.terms.all
        return len(self.statement.text.split()) <= _FRAGMENT or len(words & reply.all) >= _REPEATED * len(words)


def _plain(values: Iterable[str]) -> set[str]:
    """Return values without signs of currencies, and the last parts of paths."""
    return {value.strip("$€£").rpartition("/")[2] for value in values}


def _has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))


def _raise(statement: Statement, age: float) -> None:
    """Give a sentence of the model the worth of a user's. It is no rule: the user's own words bind."""
    kind = weigh(statement.text, "user", statement.position, age).kind
    if kind not in ("value", "decision", "open"):
        kind = "decision" if kind == "rule" else "value"
    of_user = weigh(statement.text, "user", statement.position, age, kind)
    statement.kind, statement.weight, statement.speaker = kind, of_user.weight, "user"
