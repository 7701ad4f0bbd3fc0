"""Likeness: how likely one sentence is a newer version of another, judged by their terms and signs."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from .claims import Claim, gives_other_value, is_newer_value, is_nominal, is_quantity, is_same_item, label_of_item
from .contrasts import DENIALS, Contrast, contrast
from .signs import Sign, signs_of
from .terms import Terms, kind_of_value, shape_of_value
from .weights import Statement

__all__ = ["SHORT_MESSAGE", "Likeness", "is_other_value", "may_be_alike", "rarity"]

_SCORE = 0.22
"""Share of the topic that a correction and what it corrects have in common, at least."""
_WEAK_SCORE = 0.45
"""The same for a sentence that only says `now` or `new`."""
_FEW_TERMS = 7
"""Terms of a statement that may be about what a single one of them says."""
SHORT_MESSAGE = 40
"""Different terms of a message whose clauses speak of one thing."""
_PLAIN_SCORE = 0.7
"""The same for a sentence that announces no change."""
_GUESS_SCORE = 0.2
"""The same for a guess and a later sentence that is sure."""
_SURE, _SURE_OF_MODEL, _SURE_FROM_AFAR = 0.35, 0.5, 0.75
"""Share of both sentences that is the same, at least, if one replaces the other; from afar, if a model says the newer.

A report of a model often shares words with what was said long before, and hardly ever corrects it.
"""
_NEAR = 4
"""Messages between two sentences, at most, that do not stand far apart."""
_GOAL_NEAR = 40
"""Messages after the goal in which a correction of the user corrects it, if it only shares a word with it."""
_LONG = 14
"""Terms of a sentence above which it replaces nothing, and nothing replaces it."""
_LEAST = 0.32
"""Share of both sentences that is the same, at least, if they are compared."""
_FEW_WORDS = 4
"""Terms of a sentence, without values, of which one may be all that it has in common with another."""
_LEAD_IN = 2
"""Spaces in a line with a colon that introduces a list."""
_OPENING = 4
"""Spaces in a line with a colon, at most, that announces a correction."""
_LABELLED = 3
"""Spaces of a text after a colon, at most, that is the value of a label."""
_MARKUP = "|<=>❯{[+$#@-"
"""Beginnings of lines that no person wrote as a sentence."""
_FLAG, _TAG = re.compile(r"--\w"), re.compile(r"</?[a-z][\w-]*>")
"""An option of a command at the beginning, which is no markup, and a tag."""
_IN_VALUES = 4
"""Words of both sentences, at most, that are parts of their values."""
_USUAL = 6
"""Sentences above which a term that they share says little."""


class Likeness:
    """Compares sentences. `posted`: the sentences so far that have each term."""

    def __init__(
        self,
        statements: Sequence[Statement],
        claims: Sequence[Sequence[Claim]],
        posted: Mapping[str, Sequence[int]],
    ) -> None:
        self.statements = statements
        self.posted = posted
        self.by_turn: defaultdict[int, list[Claim]] = defaultdict(list)
        for statement, of_statement in zip(statements, claims, strict=True):
            self.by_turn[statement.turn] += of_statement
        self.said: dict[int, frozenset[str]] = {}
        """The terms of each message, as far as they are known."""
        self._new: Claim | None = None
        self._known: dict[int, list[tuple[Terms, Contrast]]] = {}
        """The differences of the newest compared sentence from older ones, by their identity."""

    def may_be_about_one(self, old: Claim, new: Claim) -> bool:
        """Return whether two sentences may be about one thing. Most pairs are not, which few looks show."""
        if self.are_same_item(old, new):
            return True
        if self._is_material(old) or self._is_material(new):
            return False
        if self.statements[old.owner].kind == "goal":
            return True
        return not old.terms.all.isdisjoint(new.terms.all) and any(
            may_be_alike(a, b) for a in old.variants for b in new.variants
        )

    def are_same_item(self, old: Claim, new: Claim) -> bool:
        """Return whether two sentences are items of two reports, with a label that each report has only once."""
        if not is_same_item(old.text, new.text):
            return False
        label = label_of_item(old.text)
        return all(self._count_beginning(claim, label) == 1 for claim in (old, new))

    def _count_beginning(self, claim: Claim, text: str) -> int:
        """Return how many sentences of a sentence's message begin with a text."""
        return sum(other.text.startswith(text) for other in self.by_turn[self.statements[claim.owner].turn])

    @staticmethod
    def _shares_enough(old: Terms, new: Terms) -> bool:
        """Return whether two sentences share so many terms that their sameness may be large enough."""
        if not new.all or len(old.all) > _LONG or len(new.all) > _LONG:
            return False
        common = old.all & new.all
        if not (len(common) > 1 or common & old.values or (common and len(old.topic) <= _FEW_WORDS)):
            return False
        others = len(old.all - old.values - common) + len(new.all - new.values - common)
        return 2 * len(common) >= _LEAST * (2 * len(common) + others - _IN_VALUES)

    def is_sure(self, old: Claim, new: Claim) -> bool:
        """Return whether two sentences are so much alike that the newer one, if it corrects anything, corrects this."""
        later, earlier = self.statements[new.owner], self.statements[old.owner]
        is_about_goal = bool(new.signs & Sign.GOAL) or later.turn - earlier.turn <= _GOAL_NEAR
        is_by_user = later.is_authoritative and not later.confirms
        if earlier.kind == "goal" and is_by_user and new.signs & Sign.CHANGE and is_about_goal:
            return True
        if later.speaker == earlier.speaker == "assistant" and not new.signs & Sign.CHANGE:
            return False
        is_of_model = not (later.is_authoritative and earlier.is_authoritative)
        is_by_model = is_of_model or bool(later.confirms)
        if not later.may_correct(earlier):
            return False
        least = _SURE_OF_MODEL if is_of_model else _SURE
        if is_by_model and later.turn - earlier.turn > _NEAR:
            least = _SURE_FROM_AFAR
        return any(
            bool(difference.common & old.terms.topic)
            and (len(difference.common) > 1 or max(len(old.terms.all), len(new.terms.all)) <= _FEW_TERMS)
            and self.sameness(difference) >= least
            and (self._sets_value(old, new, terms, difference) if is_by_model else self._is_one_topic(new, difference))
            for terms, difference in self.differences(old, new)
        )

    def differences(self, old: Claim, new: Claim) -> list[tuple[Terms, Contrast]]:
        """Return the terms of a sentence and of its clauses that say enough, each with how an older one differs."""
        if new is not self._new:
            self._new = new
            self._known.clear()
        key = id(old)
        if key not in self._known:
            pairs = [
                (terms, contrast(old.terms, terms)) for terms in new.variants if self._shares_enough(old.terms, terms)
            ]
            self._known[key] = [
                (terms, difference)
                for terms, difference in pairs
                if len(common := difference.common) > 1
                or common & old.terms.values
                or len(old.terms.topic) <= _FEW_WORDS
            ]
        return self._known[key]

    @staticmethod
    def _is_one_topic(new: Claim, difference: Contrast) -> bool:
        """Return whether a sentence announces a change, or at most one of two has words of its own."""
        return bool(new.signs & Sign.CHANGE) or not (difference.gone and difference.come)

    def _sets_value(self, old: Claim, new: Claim, terms: Terms, difference: Contrast) -> bool:
        """Return whether a sentence gives another value of the same shape for what an older one is about."""
        if not is_other_value(old.terms, terms, difference):
            return False
        if new.signs & Sign.CHANGE or old.signs & Sign.HEDGE:
            return True
        return difference.is_linked or (
            kind_of_value(difference.old) == "number" and is_quantity(old.terms, difference.old)
        )

    def sameness(self, difference: Contrast) -> float:
        """Return the share of two sentences that is the same, without their values; rare terms count more."""
        common = 2 * self.weight_of(difference.common)
        return common / max(0.01, common + self.weight_of(difference.gone) + self.weight_of(difference.come))

    def _is_material(self, claim: Claim) -> bool:
        """Return whether a sentence is markup, a row of a table, or an item below a line of a model's report."""
        speaker = self.statements[claim.owner].speaker
        if speaker == "tool":
            return False
        if (claim.text[0] in _MARKUP and not _FLAG.match(claim.text)) or _TAG.search(claim.text):
            return True
        before, _, rest = claim.text.partition(": ")
        if before.count(" ") < _LEAD_IN or speaker not in ("assistant", "summary"):
            return False
        if ": " not in rest and (
            rest.count(" ") <= _LABELLED or (speaker == "summary" and before.count(" ") <= _OPENING)
        ):
            return False  # A value with its label, or a sentence of a user.
        if before.count(" ") <= _OPENING and signs_of(before) & Sign.CHANGE:
            return False  # "I was wrong: ..."
        return not claim.signs & Sign.CHANGE or "**" in rest or self._count_beginning(claim, f"{before}: ") > 1

    def containment(self, difference: Contrast) -> float:
        """Return the share of the smaller of two sentences that the other one has too, without their values."""
        common = self.weight_of(difference.common)
        return common / max(0.01, common + min(self.weight_of(difference.gone), self.weight_of(difference.come)))

    def is_rare(self, term: str) -> bool:
        """Return whether few sentences have a term."""
        return len(self.posted.get(term, ())) <= _USUAL

    def settles(self, guess: Terms, new: Terms) -> bool:
        """Return whether a sentence says for sure what another one guesses."""
        difference = contrast(guess, new)
        if difference.is_apart:
            return False
        return gives_other_value(guess, new) and self.share(guess, new, difference) >= _GUESS_SCORE

    def score(self, old: Claim, claim: Claim) -> float:
        """Return how likely a sentence corrects another one; 0.0 if it does not."""
        if old.denies and self.statements[old.owner].kind == "rule" != self.statements[claim.owner].kind:
            return 0.0  # A report corrects no prohibition.
        return max((self._score(old, claim, *pair) for pair in self.differences(old, claim)), default=0.0)

    def _score(self, old: Claim, claim: Claim, new: Terms, difference: Contrast) -> float:
        if not difference.common or difference.is_apart:
            return 0.0
        if len(difference.common) == 1 and max(len(old.terms.all), len(new.all)) > _FEW_TERMS:
            return 0.0  # A word in common among many.
        is_denied = old.denies != claim.denies
        if not difference.old and not difference.gone and not is_denied:
            return 0.0  # It says the same again.
        is_strong = bool(claim.signs & Sign.CHANGE)
        is_dismissed = self._is_dismissed(old, claim, difference)
        if difference.is_subject and not (is_strong or is_dismissed):
            return 0.0
        if difference.is_subject and (is_denied or (difference.come and new is claim.terms)):
            return 0.0
        share = self.share(old.terms, new, difference)
        if is_denied and difference.old and not is_dismissed:
            return 0.0  # "A is stable." and "B is no longer stable."
        is_long = max(len(old.terms.all), len(new.all)) > 2 * _FEW_TERMS
        if is_dismissed or (is_strong and difference.old):
            return share if share >= (_WEAK_SCORE if is_long else _SCORE) else 0.0
        if is_strong and new is claim.terms:
            return share if share >= (_SCORE if is_denied else _WEAK_SCORE) else 0.0
        if not (difference.common - old.terms.values):
            return 0.0
        if claim.signs & Sign.UPDATE and gives_other_value(old.terms, new):
            return share if share >= _WEAK_SCORE else 0.0
        return share if self._is_same_frame(old, claim, difference) else 0.0

    def _is_same_frame(self, old: Claim, claim: Claim, difference: Contrast) -> bool:
        """Return whether two sentences are the same but for the value, so that no word need announce a change."""
        later, earlier = self.statements[claim.owner], self.statements[old.owner]
        if not difference.old or later.turn == earlier.turn or later.speaker == "assistant" != earlier.speaker:
            return False
        if old.denies or claim.denies:
            return False  # Prohibitions add up.
        kind = kind_of_value(difference.old)
        if kind in ("number", "day"):
            is_value = difference.is_linked or is_quantity(old.terms, difference.old)
            is_fit = kind == kind_of_value(difference.new) and is_value
        elif difference.old in old.terms.values:
            is_fit = difference.is_linked and not difference.gone and not difference.come
        else:
            is_same = not difference.gone and not difference.come and difference.is_linked
            is_key = bool(difference.common & old.terms.qualifying & claim.terms.qualifying)  # "the colour of the logo"
            is_fit = is_same and (is_key or (is_nominal(old.text) and is_nominal(claim.text)))
        common = self.weight_of(difference.common)
        whole = 2 * common + self.weight_of(difference.gone) + self.weight_of(difference.come)
        return is_fit and 2 * common >= _PLAIN_SCORE * whole

    def _is_dismissed(self, old: Claim, claim: Claim, difference: Contrast) -> bool:
        """Return whether the message of a newer sentence speaks of the older value in another clause."""
        later, earlier = self.statements[claim.owner], self.statements[old.owner]
        if not later.turn or later.turn == earlier.turn or not difference.come | {difference.new} - {""}:
            return False
        gone = difference.gone | {difference.old} - {""}
        dismissed = gone & (old.terms.values | old.terms.assigned | {difference.old})
        return len(self.terms_of_turn(later.turn)) <= SHORT_MESSAGE and any(
            not dismissed.isdisjoint(other.terms.all)
            for other in self.by_turn[later.turn]
            if not other.signs & Sign.QUESTION
        )

    def terms_of_turn(self, turn: int) -> frozenset[str]:
        """Return the terms of a message."""
        if turn not in self.said:
            self.said[turn] = frozenset[str]().union(*(claim.terms.all for claim in self.by_turn[turn]))
        return self.said[turn]

    def share(self, old: Terms, new: Terms, difference: Contrast) -> float:
        """Return the share of the topic that two sentences have in common; rare terms count more."""
        common = self.weight_of(difference.common)
        if not common:
            return 0.0
        extra = self.weight_of(difference.gone - old.values)
        score = common / max(0.1, common + min(extra, self.weight_of(difference.come - new.values)))
        score *= 1.0 - 0.3 * extra / max(0.1, extra + common)  # A sentence about this alone is meant.
        if difference.gone & old.values - old.linked and difference.come & new.values - new.linked:
            score *= 0.6  # Both name a subject, and not the same one.
        if difference.old and not difference.is_sited:
            score *= 0.6
        return score * 0.8 if difference.gone - old.values and difference.come - new.values else score

    def weight_of(self, terms: Iterable[str]) -> float:
        """Return the sum of the weights of terms; rare ones weigh more."""
        return math.fsum([rarity(len(self.posted[term]) if term in self.posted else 1) for term in terms])

    def is_newer_value_of(self, old: Claim, claim: Claim) -> bool:
        is_change = bool(claim.signs & (Sign.CHANGE | Sign.UPDATE))
        if not is_change and self.statements[old.owner].turn == self.statements[claim.owner].turn:
            return False  # Items of one list.
        return is_newer_value(old.terms, claim.terms, is_change) and not contrast(old.terms, claim.terms).is_apart

    def repeats(self, old: Terms, new: Terms, least: float) -> bool:
        """Return whether a statement is about the same act as an older one, and about nothing narrower."""
        common, further = self.weight_of((old.all & new.all) - DENIALS), new.all - old.all - DENIALS
        if not common or not further.isdisjoint(new.values | new.qualifying):
            return False
        gone, come = self.weight_of(old.all - new.all - DENIALS), self.weight_of(further)
        if come > common or common < least * (common + gone) or common < (2 * least - 0.6) * (common + come):
            return False
        difference = contrast(old, new)  # Last, since most pairs have too little in common.
        return not (difference.old or difference.is_apart)


def is_other_value(old: Terms, new: Terms, difference: Contrast) -> bool:
    """Return whether the values in which two sentences differ have the same shape."""
    a, b = difference.old, difference.new
    return a in old.values and b in new.values and shape_of_value(a) == shape_of_value(b)


def may_be_alike(old: Terms, new: Terms) -> bool:
    """Return whether two clauses have a fourth of the shorter one in common."""
    a, b = old.all, new.all
    if len(a) > _LONG or len(b) > _LONG or a.isdisjoint(b):
        return False
    return 4 * len(a & b) >= min(len(a), len(b))


def rarity(times: int) -> float:
    """Return the weight of a term that so many sentences have."""
    return 1.0 / (1.0 + math.sqrt(times))
