"""Supersession: the statements that later ones replace.

A later value for the same key replaces the older one. A correction replaces the statement that shares most of its
topic, and what it names as no longer valid. Two statements that are merely alike stay apart: where they differ in
their subject, both hold.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from .signs import Sign, one_of, signs_of, words
from .statements import split_sentences
from .terms import Terms, kind_of_value, terms_of
from .weights import Statement

__all__ = ["Superseded", "find_superseded"]

_NAMED = re.compile(
    r"(?<!\w)(?:"
    + one_of(r"""
        instead of|rather than|in place of|no longer(?: (?:use|using|need|want))?|replac(?:e|es|ed|ing)
        drop(?:ped|ping)?|forget|scrap|abandon|cancel(?:led)?|not|from|ignore|disregard|any ?more|scratch|statt
        anstatt|nicht mehr|nicht|vergiss|au lieu (?:de |d')|plutôt que|oublie|ne \w+ plus|en vez de|en lugar de
        ya no|olvida|em vez de|já não|esqueça|invece (?:di|del)|non più|dimentica|вместо|больше не|забудь
    """)
    + r")\s+(?:(?:about|the|using|use|to|in|on|at|with|for|das|die|den|le|la|les|el|los|o|a|il) )*"
    r"(\S+(?:\s+\S+){0,3})",
    re.IGNORECASE,
)
"""The words, at most four, that a correction names as no longer valid."""
_NAMED_WIDE = re.compile(
    r"(?:不再(?:用|使用)?|而不是|取消|忘掉|作废|不用)([^，。；,.]{1,12})|([^、。,.はを]{1,12})(?:ではなく|の代わりに|をやめ)"
)
_AFTER_NAMED = re.compile(
    r"[,.;:!?](?=\s)|[，。；]"
    r"|\b(?:but|with|to|for|and|in|on|any ?more|entirely|sondern|durch|mais|par|sino|por|mas|ma)\b"
)
_BACKWARD = re.compile(
    r"(?<!\w)(?:"
    + one_of(r"""
        scratch that|forget (?:that|it|this|what)|never ?mind|ignore that|disregard that|take that back|vergiss das
        oublie ça|oubliez ça|olvida eso|olvídalo|esqueça isso|dimenticalo|забудь это
    """)
    + ")",
    re.IGNORECASE,
)
"""A withdrawal of what was said just before."""
_NEW_GOAL = re.compile(
    r"(?<!\w)(?:"
    + one_of(r"""
        change of plan|new (?:plan|goal|task|objective)
        (?:goal|task|plan|objective|aim) (?:is|has changed|changed|changes)|switch entirely|das (?:neue )?ziel ist
        neues ziel|planänderung|changement de plan|cambio de plan|mudança de plan|cambio di
    """)
    + ")",
    re.IGNORECASE,
)
_DENIALS = words("not never no nicht nie kein pas jamais nunca não non mai не")
"""Terms that say nothing about a topic."""
_PRONOUN = re.compile(r"(?:it|they|es|il|elle|ele|ela|он|она|它)\b", re.IGNORECASE)
_POSTED = 40
"""Sentences of one term that are compared, the newest first."""
_RAREST = 12
"""Terms of a sentence by which older ones are found, the rarest first."""
_SCORE = 0.22
"""Share of the topic that a correction and what it corrects have in common, at least."""
_WEAK_SCORE = 0.6
"""The same for a sentence that only says `now` or `new`."""
_OTHER_SUBJECT = 0.2
"""Part of the score that is left if two sentences differ in their subject too."""
_GOAL_SCORE = 0.25
_GUESS_SCORE = 0.2
"""The same for a guess and a later sentence that is sure."""


class Superseded(Struct, frozen=True):
    """The statements that later ones replaced."""

    texts: Mapping[int, str]
    """The rest of each statement by index: "" for those that are replaced as a whole."""
    goals: frozenset[int]
    """Indices of the statements that replaced a goal."""
    values: frozenset[str]
    """The values that are replaced."""


class _Claim(Struct, gc=False):
    """A sentence of a statement."""

    owner: int
    text: str
    terms: Terms
    signs: int
    is_gone: bool = False
    outdated: frozenset[str] = frozenset()


def find_superseded(statements: Sequence[Statement]) -> Superseded:
    """Return what later statements replace. `statements` are in the order of the history."""
    search = _Search(statements)
    for index in range(len(statements)):
        search.visit(index)
    return Superseded(search.left(), frozenset(search.goals), frozenset(search.values))


class _Search:
    """Compares each sentence with older ones that share terms with it."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = statements
        self.claims: list[_Claim] = []
        self.posted: defaultdict[str, list[int]] = defaultdict(list)
        self.goals: set[int] = set()
        self.current_goals: list[int] = []
        self.values: set[str] = set()

    def visit(self, index: int) -> None:
        """Compare the sentences of a statement with older ones, then add them."""
        statement = self.statements[index]
        begun = len(self.claims)
        sentences = split_sentences(statement.text)
        claims = [
            _Claim(index, text, terms_of(text), statement.signs if len(sentences) == 1 else signs_of(text))
            for text in sentences
        ]
        for before, claim in pairwise(claims):
            if _PRONOUN.match(claim.text):
                claim.terms = _inherit(before.terms, claim.terms)
        announced = Sign.NONE  # "Scratch that." is about the next sentence.
        for claim in claims:
            claim.signs |= announced
            announced = claim.signs & Sign.CHANGE
            if not claim.signs & (Sign.QUESTION | Sign.HEDGE):
                if claim.signs & (Sign.CHANGE | Sign.UPDATE):
                    self._correct(claim)
                self._renew(claim)
        self.claims += claims
        for number, claim in enumerate(claims, begun):
            for term in claim.terms.places:
                self.posted[term].append(number)
        if statement.kind == "goal" or index in self.goals:
            self.current_goals += range(begun, len(self.claims))

    def left(self) -> dict[int, str]:
        """Return what is left of the statements that lost a sentence or hold an outdated value."""
        by_owner: defaultdict[int, list[_Claim]] = defaultdict(list)
        for claim in self.claims:
            by_owner[claim.owner].append(claim)
        left: dict[int, str] = {}
        for owner, claims in by_owner.items():
            if not any(claim.is_gone or claim.outdated for claim in claims):
                continue
            kept = [claim for claim in claims if not claim.is_gone]
            # A sentence that only qualifies a replaced one goes with it, unless it binds.
            if claims[0].is_gone and not any(claim.signs & (Sign.BINDING | Sign.VALUE) for claim in kept):
                kept = []
            outdated = sorted(frozenset[str]().union(*(claim.outdated for claim in kept)))
            note = f" [no longer: {', '.join(outdated)}]" if outdated and kept else ""
            text = " ".join(claim.text for claim in kept)
            left[owner] = text if note and "[no longer: " in text else text + note
        return left

    # ------------------------------------------------------------------------------------------------- comparing

    def _older(self, claim: _Claim) -> list[_Claim]:
        """Return the older sentences that share a term and that this one may replace, the newest first."""
        found: set[int] = set()
        rarest = sorted(claim.terms.places, key=lambda term: len(self.posted.get(term, ())))
        for term in rarest[:_RAREST]:
            found.update(self.posted.get(term, ())[-_POSTED:])
        older = (self.claims[number] for number in sorted(found, reverse=True))
        return [one for one in older if not one.is_gone and self._may_replace(claim, one)]

    def _may_replace(self, new: _Claim, old: _Claim) -> bool:
        """Return whether the speaker of one statement may correct the other: a model corrects no rule of a user."""
        if old.signs & Sign.QUESTION:
            return False
        later, earlier = self.statements[new.owner], self.statements[old.owner]
        return later.is_authoritative or not (earlier.is_authoritative and earlier.kind in ("rule", "goal"))

    def _renew(self, claim: _Claim) -> None:
        """Replace older values of the same key, and guesses about the same topic."""
        is_change = bool(claim.signs & (Sign.CHANGE | Sign.UPDATE))
        for old in self._older(claim) if claim.terms.values else ():
            is_settled = bool(old.signs & Sign.HEDGE) and self._settles(old.terms, claim.terms)
            if is_settled or _is_newer_value(old.terms, claim.terms, is_change):
                self._replace(old, claim)

    def _settles(self, guess: Terms, new: Terms) -> bool:
        """Return whether a sentence says for sure what another one guesses."""
        return _gives_other_value(guess, new) and self._score(guess, new, False) >= _GUESS_SCORE

    def _correct(self, claim: _Claim) -> None:
        """Replace what a correction corrects."""
        is_strong = bool(claim.signs & Sign.CHANGE)
        named = _named(claim.text) if is_strong else []
        older = self._older(claim)
        best, best_score, is_done = None, 0.0, False
        for old in older:
            if any(_holds(old, claim, names) for names in named):
                self._replace(old, claim)
                is_done = True
                continue
            score = self._score(old.terms, claim.terms, is_strong)
            if score > best_score:
                best, best_score = old, score
        has_value = best is not None and _gives_other_value(best.terms, claim.terms)
        least = _SCORE if is_strong else _WEAK_SCORE
        if best is not None and not is_done and best_score >= least and (is_strong or has_value):
            self._replace(best, claim)
        elif is_strong and not is_done and _BACKWARD.search(claim.text):
            self._withdraw(claim, older)
        self._correct_goal(claim, older)

    def _score(self, old: Terms, new: Terms, is_strong: bool) -> float:
        """Return the share of the topic that two sentences have in common; rare terms count more."""
        common = (old.all & new.all) - _DENIALS
        if not common or not (is_strong or common - old.values):
            return 0.0
        topic_a, topic_b = old.all - (old.values - common), new.all - (new.values - common)
        score = self._sum(common) / max(0.1, min(self._sum(topic_a), self._sum(topic_b)))
        extra = self._sum(topic_a - common)
        score *= 1.0 - 0.3 * extra / max(0.1, extra + self._sum(common))  # A sentence about this alone is meant.
        if (old.values - old.linked - common) and (new.values - new.linked - common):
            score *= 0.6  # Both name a subject, and not the same one.
        if topic_a - common and topic_b - common:
            score *= 0.8
        return score * _OTHER_SUBJECT if _differ_in_subject(old, new) else score

    def _sum(self, terms: Iterable[str]) -> float:
        return sum([1.0 / (1.0 + math.sqrt(len(self.posted.get(term, ())))) for term in terms])

    # ------------------------------------------------------------------------------------------------- replacing

    def _withdraw(self, claim: _Claim, older: Sequence[_Claim]) -> None:
        """Replace the newest statement of the same speaker, if the two have a term or a kind of value in common."""
        statement = self.statements[claim.owner]
        if statement.speaker not in ("user", "system"):
            return
        for old in reversed(self.claims[-40:]):
            earlier = self.statements[old.owner]
            if earlier.speaker != statement.speaker or old.is_gone or old.owner == claim.owner:
                continue
            kinds = {kind_of_value(one) for one in old.terms.values}
            values = claim.terms.values
            if old in older or not values or any(kind_of_value(one) in kinds for one in values):
                self._replace(old, claim)
            return

    def _correct_goal(self, claim: _Claim, older: Sequence[_Claim]) -> None:
        """Replace the goal, if a correction of the user speaks of it."""
        statement = self.statements[claim.owner]
        if not claim.signs & Sign.CHANGE or statement.speaker == "assistant":
            return
        goals = [one for one in (self.claims[number] for number in self.current_goals) if not one.is_gone]
        scores = [self._score(one.terms, claim.terms, True) for one in goals if one in older]
        speaks_of_it = bool(claim.signs & Sign.GOAL) and max(scores, default=0.0) >= _GOAL_SCORE
        if goals and (claim.owner in self.goals or speaks_of_it or _NEW_GOAL.search(statement.text)):
            for goal in goals:
                goal.is_gone = True
            self.goals.add(claim.owner)

    def _replace(self, old: _Claim, new: _Claim) -> None:
        """Mark a sentence as replaced, and older ones that repeat its value.

        Of a sentence with several facts, the value that is meant is marked as outdated.
        """
        a, b = old.terms, new.terms
        values = a.values - b.all
        if self.statements[old.owner].kind == "goal":
            if self.statements[new.owner].is_authoritative:
                self.goals.add(new.owner)
            old.is_gone = True
            return
        if len(values) > 1 and b.values and a.topic - b.all:
            values = frozenset((_meant(a, b, values),))
            self._outdate(old, values)
        else:
            old.is_gone = True
        self.values |= values
        about = a.all | b.all
        for value in values:
            for one in map(self.claims.__getitem__, self.posted[value][-_POSTED:]):
                topic = one.terms.topic
                if not one.is_gone and topic and 2 * len(topic & about) >= len(topic) and self._may_replace(new, one):
                    self._outdate(one, values & one.terms.values)

    def _outdate(self, claim: _Claim, values: frozenset[str]) -> None:
        """Mark values of a sentence as replaced. A sentence without another value goes, and any of the model."""
        if self.statements[claim.owner].is_authoritative and claim.terms.values - values:
            claim.outdated |= values
        else:
            claim.is_gone = True


def _inherit(before: Terms, terms: Terms) -> Terms:
    """Add the topic of the sentence before to a sentence that begins with a pronoun."""
    places = dict.fromkeys(before.topic, 0) | dict(terms.places)
    return replace(terms, places=places, all=frozenset(places))


def _is_newer_value(old: Terms, new: Terms, is_change: bool) -> bool:
    """Return whether two sentences differ in nothing but the value after `is`, `=`, `at` and the like.

    `is_change`: whether the newer one announces a change: then it may have further words after its topic.
    """
    common, gone, come = old.all & new.all, old.all - new.all, new.all - old.all
    if not common or not gone or not come or len(gone) > 3 or len(come) > 4:
        return False
    before, after = gone & old.linked, come & (new.values if is_change else new.linked)
    if not before or not after:
        return False
    if {kind_of_value(one) for one in before}.isdisjoint(kind_of_value(one) for one in after):
        return False
    first, second = min(old.places[one] for one in before), min(new.places[one] for one in after)
    begins = min(new.places[one] for one in common)
    # A term that differs before the value is another subject: both statements hold.
    return all(old.places[one] >= first for one in gone) and all(
        new.places[one] >= second or (is_change and new.places[one] > begins and one not in new.qualifying)
        for one in come
    )


def _differ_in_subject(old: Terms, new: Terms) -> bool:
    """Return whether two sentences are about different things: each narrows its topic, or each has a name first."""
    gone, come = old.all - new.all, new.all - old.all
    if gone & old.qualifying - old.values and come & new.qualifying - new.values:
        return True
    return _begins_with_name(old, gone) and _begins_with_name(new, come)


def _begins_with_name(terms: Terms, differing: frozenset[str]) -> bool:
    """Return whether a name comes before another kind of value, among the terms that differ."""
    values = sorted(differing & terms.values, key=lambda value: (terms.places[value], value))
    kinds = [kind_of_value(value) for value in values]
    return len(kinds) > 1 and kinds[0] == "name" and kinds[-1] != "name"


def _gives_other_value(old: Terms, new: Terms) -> bool:
    """Return whether the newer sentence has a value of the kind of one that the older one has."""
    kinds = {kind_of_value(one) for one in old.values - new.all} | ({"name"} if old.assigned else set())
    return any(kind_of_value(one) in kinds for one in (new.values | new.assigned) - old.all)


def _named(text: str) -> list[frozenset[str]]:
    """Return the terms of each thing that a correction names as no longer valid."""
    found = [match[1] for match in _NAMED.finditer(text)]
    found += [match[1] or match[2] for match in _NAMED_WIDE.finditer(text)]
    return [terms for words in found if (terms := terms_of(_AFTER_NAMED.split(f"{words} ")[0]).all)]


def _holds(old: _Claim, new: _Claim, names: frozenset[str]) -> bool:
    """Return whether an older sentence is about a thing that a newer one names as no longer valid."""
    if not names <= old.terms.all:
        return False
    if old.signs & Sign.NEGATION and not new.signs & Sign.BINDING:
        return False
    rest = (old.terms.all & new.terms.all) - names
    return bool(rest) or len(old.terms.all) <= len(names) + 1


def _meant(old: Terms, new: Terms, values: frozenset[str]) -> str:
    """Return the value of a sentence with several facts that a correction means: the nearest to their topic."""
    kinds = {kind_of_value(value) for value in new.values}
    common = [old.places[term] for term in old.all & new.all]
    return min(
        sorted(values),
        key=lambda value: (
            kind_of_value(value) not in kinds,
            min((abs(old.places[value] - place) for place in common), default=0),
        ),
    )
