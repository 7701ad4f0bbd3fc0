"""Supersession: which statements a later one replaces.

A later value for the same key replaces the older one. A correction replaces the statement that shares most of its
topic, and what it names as no longer valid. Two statements that are merely alike stay apart: where they differ in
their subject, both hold.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from .signs import Sign
from .terms import Terms, kind_of_value, terms_of
from .weights import Statement

__all__ = ["Superseded", "find_superseded"]

_NAMED = re.compile(
    r"(?<!\w)(?:instead of|rather than|in place of|no longer(?: (?:use|using|need|want|the))?|replac(?:e|es|ed|ing)|drop(?:ped|ping)?|forget"
    r"|scrap|abandon|cancel(?:led)?|not|from|ignore|disregard|any ?more|scratch|statt|anstatt|nicht mehr|nicht|vergiss|au lieu (?:de |d')"
    r"|plutôt que|oublie|ne \w+ plus|en vez de|en lugar de|ya no|olvida|em vez de|já não|esqueça|invece (?:di|del)|non più|dimentica"
    r"|вместо|больше не|забудь)\s+(?:about |the |using |use |to |das |die |den |le |la |les |el |los |o |a |il )*"
    r"(\S+(?:\s+\S+){0,3})",
    re.IGNORECASE,
)
"""What a correction names as no longer valid: up to four words."""
_NAMED_WIDE = re.compile(r"(?:不再(?:用|使用)?|而不是|取消|忘掉|作废|不用)([^，。；,.]{1,12})|([^、。,.はを]{1,12})(?:ではなく|の代わりに|をやめ)")
_BACKWARD = re.compile(
    r"(?<!\w)(?:scratch that|forget (?:that|it|this|what)|never ?mind|ignore that|disregard that|take that back|vergiss das|oublie ça"
    r"|oubliez ça|olvida eso|olvídalo|esqueça isso|dimenticalo|забудь это)",
    re.IGNORECASE,
)
"""A withdrawal of what was said just before."""
_POSTED = 40
"""Statements of one term that are compared, the newest first."""
_SCORE = 0.5
"""Share of the topic that a correction and what it corrects have in common."""
_WEAK_SCORE = 0.7
"""The same for a sentence that only says `now` or `new`."""
_GOAL_SCORE = 0.3


class Superseded(Struct, frozen=True):
    """What later statements replaced."""

    indices: frozenset[int]
    """Indices of the statements that are replaced."""
    goals: frozenset[int]
    """Indices of the statements that replaced a goal."""
    values: frozenset[str]
    """The values that are replaced."""
    outdated: Mapping[int, set[str]]
    """Values of statements that stay, because they hold other facts too."""


def find_superseded(statements: Sequence[Statement]) -> Superseded:
    """Return what later statements replace. `statements` are in the order of the history."""
    search = _Search(statements)
    for index in range(len(statements)):
        search.visit(index)
    return Superseded(frozenset(search.gone), frozenset(search.goals), frozenset(search.values), search.outdated)


class _Search:
    """Compares each statement with older ones that share terms with it."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = statements
        self.terms = [terms_of(statement.text) for statement in statements]
        self.posted: defaultdict[str, list[int]] = defaultdict(list)
        self.gone: set[int] = set()
        self.goals: set[int] = set()
        self.current_goals: list[int] = []
        self.values: set[str] = set()
        self.outdated: dict[int, set[str]] = {}

    def visit(self, index: int) -> None:
        """Compare a statement with the older ones, then add it to them."""
        statement, terms = self.statements[index], self.terms[index]
        if not statement.signs & (Sign.QUESTION | Sign.HEDGE):
            if statement.signs & (Sign.CHANGE | Sign.UPDATE):
                self._correct(index)
            self._renew(index)
        for term in terms.places:
            self.posted[term].append(index)
        if statement.kind == "goal" or index in self.goals:
            self.current_goals = [one for one in self.current_goals if one not in self.gone] + [index]

    def _older(self, index: int) -> list[int]:
        """Return the older statements that share a term and that this one may replace, the newest first."""
        found: set[int] = set()
        for term in self.terms[index].places:
            found.update(self.posted[term][-_POSTED:])
        return [one for one in sorted(found, reverse=True) if one not in self.gone and self._may_replace(index, one)]

    def _may_replace(self, new: int, old: int) -> bool:
        """Return whether the speaker of one statement may correct the other: a model corrects no rule of a user."""
        later, earlier = self.statements[new], self.statements[old]
        return later.is_authoritative or not (earlier.is_authoritative and earlier.kind in ("rule", "goal"))

    def _renew(self, index: int) -> None:
        """Replace older values of the same key."""
        for old in self._older(index):
            if self._is_newer_value(self.terms[old], self.terms[index]) and not (
                self.statements[old].signs & Sign.QUESTION
            ):
                self._replace(old, index)

    @staticmethod
    def _is_newer_value(old: Terms, new: Terms) -> bool:
        """Return whether two statements differ in nothing but the value after `is`, `=`, `at` and the like."""
        gone, come = old.all - new.all, new.all - old.all
        if not gone or not come or len(gone) > 3 or len(come) > 3 or not (old.all & new.all) - old.values:
            return False
        before, after = gone & old.linked, come & new.linked
        if not before or not after:
            return False
        if {kind_of_value(one) for one in before}.isdisjoint(kind_of_value(one) for one in after):
            return False
        first, second = min(old.places[one] for one in before), min(new.places[one] for one in after)
        # A term that differs before the value is another subject: both statements hold.
        return all(old.places[one] >= first for one in gone) and all(new.places[one] >= second for one in come)

    def _correct(self, index: int) -> None:
        """Replace what a correction corrects."""
        statement, terms = self.statements[index], self.terms[index]
        is_strong = bool(statement.signs & Sign.CHANGE)
        named = self._named(statement.text) if is_strong else []
        older = self._older(index)
        best, best_score = -1, 0.0
        for old in older:
            if self.statements[old].signs & Sign.QUESTION:
                continue
            if any(self._holds(old, index, names) for names in named):
                self._replace(old, index)
                continue
            score = self._score(old, index)
            if score > best_score:
                best, best_score = old, score
        least = _SCORE if is_strong else _WEAK_SCORE
        if best >= 0 and best not in self.gone and best_score >= least and (is_strong or terms.linked or terms.assigned):
            self._replace(best, index)
        elif statement.speaker in ("user", "system") and is_strong and _BACKWARD.search(statement.text):
            self._withdraw(index, older)
        self._correct_goal(index, older)

    def _score(self, old: int, new: int) -> float:
        """Return the share of the topic that two statements have in common, rare terms first."""
        a, b = self.terms[old], self.terms[new]
        common = a.all & b.all
        if not common - a.values and not (common and self.statements[new].signs & Sign.CHANGE):
            return 0.0
        topic_a, topic_b = a.all - (a.values - common), b.all - (b.values - common)
        score = self._sum(common) / max(0.1, min(self._sum(topic_a), self._sum(topic_b)))
        extra = self._sum(topic_a - common)
        score *= 1.0 - 0.3 * extra / max(0.1, extra + self._sum(common))  # A statement about this alone is meant.
        if (a.values - a.linked - common) and (b.values - b.linked - common):
            score *= 0.6  # Both name a subject, and not the same one.
        if topic_a - common and topic_b - common:
            score *= 0.8
        return score

    def _sum(self, terms: Iterable[str]) -> float:
        return sum(1.0 / (1.0 + len(self.posted[term]) ** 0.5) for term in terms)

    @staticmethod
    def _named(text: str) -> list[frozenset[str]]:
        """Return the terms of each thing that a correction names as no longer valid."""
        found = [match[1] for match in _NAMED.finditer(text)]
        found += [match[1] or match[2] for match in _NAMED_WIDE.finditer(text)]
        named = []
        for words in found:
            words = re.split(r"[,.;:!?，。；]|\b(?:but|with|to|for|and|in|on|sondern|mais|sino|mas|ma|durch|por|par)\b", words)[0]
            if terms := terms_of(words).all:
                named.append(terms)
        return named

    def _holds(self, old: int, new: int, names: frozenset[str]) -> bool:
        """Return whether an older statement is about a thing that a newer one names as no longer valid."""
        a, b = self.terms[old], self.terms[new]
        if not names <= a.all:
            return False
        if self.statements[old].signs & Sign.NEGATION and not self.statements[new].signs & Sign.BINDING:
            return False
        rest = (a.all & b.all) - names
        return bool(rest) or len(a.all) <= len(names) + 1

    def _withdraw(self, index: int, older: Sequence[int]) -> None:
        """Replace the newest statement of the same speaker, if the two have a term or a kind of value in common."""
        statement, terms = self.statements[index], self.terms[index]
        for old in range(index - 1, max(-1, index - 40), -1):
            earlier = self.statements[old]
            if earlier.speaker != statement.speaker or old in self.gone or earlier.position == statement.position:
                continue
            kinds = {kind_of_value(one) for one in self.terms[old].values}
            if old in older or not terms.values or any(kind_of_value(one) in kinds for one in terms.values):
                self._replace(old, index)
            return

    def _correct_goal(self, index: int, older: Sequence[int]) -> None:
        """Replace the goal, if a correction of the user speaks of it."""
        statement = self.statements[index]
        if not statement.signs & Sign.CHANGE or statement.speaker == "assistant":
            return
        goals = [one for one in self.current_goals if one not in self.gone]
        scores = [self._score(one, index) for one in goals if one in older]
        speaks_of_it = bool(statement.signs & Sign.GOAL)
        if goals and (index in self.goals or speaks_of_it and max(scores, default=0.0) >= _GOAL_SCORE):
            self.gone.update(goals)
            self.goals.add(index)

    def _replace(self, old: int, new: int) -> None:
        """Mark a statement as replaced, and older ones that repeat its value.

        Of a statement with several facts, the value that is meant is marked as outdated.
        """
        a, b = self.terms[old], self.terms[new]
        values = a.values - b.all
        if self.statements[old].kind == "goal":
            if self.statements[new].is_authoritative:
                self.goals.add(new)
            self.gone.add(old)
            return
        if len(values) > 1 and b.values and a.topic - b.all:
            values = frozenset((self._meant(a, b, values),))
            self._outdate(old, values)
        else:
            self.gone.add(old)
        self.values |= values
        about = a.all | b.all
        for value in values:
            for one in self.posted[value][-_POSTED:]:
                topic = self.terms[one].topic
                if one < new and one not in self.gone and topic and 2 * len(topic & about) >= len(topic):
                    if self._may_replace(new, one):
                        self._outdate(one, values & self.terms[one].values)

    @staticmethod
    def _meant(old: Terms, new: Terms, values: frozenset[str]) -> str:
        """Return the value of a statement with several facts that a correction means: the nearest to their topic."""
        kinds = {kind_of_value(value) for value in new.values}
        common = [old.places[term] for term in old.all & new.all]
        return min(
            sorted(values),
            key=lambda value: (
                kind_of_value(value) not in kinds,
                min((abs(old.places[value] - place) for place in common), default=0),
            ),
        )

    def _outdate(self, index: int, values: frozenset[str]) -> None:
        """Mark values of a statement as replaced. A statement without another value goes, and any of the model."""
        statement, terms = self.statements[index], self.terms[index]
        if statement.is_authoritative and terms.values - values:
            self.outdated.setdefault(index, set()).update(values)
        else:
            self.gone.add(index)
