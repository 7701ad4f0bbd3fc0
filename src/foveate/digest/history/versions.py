"""Versions: how likely one sentence may be a newer version of another, without being sure.

Two sentences may be versions of one thing if they say something about the same subject, or have a name or rare words in
common and differ in one value. A difference in two values means two things. Sentences of a model need more in common,
because it repeats the same words in every message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .claims import Claim
from .contrasts import DENIALS, Contrast, contrast, unit_of
from .cues import named_things, speaks_of_all
from .likeness import SHORT_MESSAGE, Likeness, is_other_value, may_be_alike
from .signs import Sign
from .terms import Terms, kind_of_value, shape_of_value
from .weights import Statement

__all__ = ["Versions"]

_EXACT, _NAMED = 0.15, 0.25
"""Share of the smaller clause that the other one has too, at least, if a word announces a change of what an identifier,
or a name, stands for."""
_OTHER, _ALIKE = 0.45, 0.6
"""The same for two words in common: with another value or a word of change, and with a name alone."""
_ONE, _ONE_TOPIC = 0.45, 0.3
"""Share of both clauses that is the same, at least, if they have one word in common, and if it is all that the older
one is about."""
_MODEL, _SUBJECT = 0.5, 0.5
"""The same for a sentence of a model, and the share of the smaller clause if both have one subject."""
_RESULT, _LABELLED = 0.5, 2
"""Share of the smaller clause, and words in common, if the newer one is the line of a result."""
_WITH_CUE = 0.32
"""The same for what a user says with a word of change after a sentence of a model."""
_SPOKEN, _WRITTEN = 12, 24
"""Statements of a message that a person may have typed, and of one whose statements may have newer versions."""
_PROHIBITED = 2
"""Words that a prohibition and a confirmation share, if the second may be a newer version."""
_FEW_TOPICS = 2
"""Words of a clause besides its values, at most, if a newer version of it may repeat no more than its number or day."""
_TWICE = 2
"""Sentences that begin alike, and are no formula yet."""
_BEGINNING = 4
"""Words of a beginning."""
_SAME_ITEM = 2.0
"""Score of two items with one label below the same line."""
_NEAR = 2
"""Messages between two sentences, at most, of which the second may only name another number."""
_LIFTED = 0.75
"""Share of both clauses that is the same, at least, if one denies what the other one says."""
_NAME = 0.5
"""Score that each name in common adds."""


class Versions:
    """Finds out how likely sentences are newer versions of older ones."""

    def __init__(self, likeness: Likeness, claims: Sequence[Sequence[Claim]]) -> None:
        self._likeness = likeness
        self._statements = likeness.statements
        self._begins = Counter(_beginning(claim.text) for of_statement in claims for claim in of_statement)

    def score(self, old: Claim, new: Claim) -> float:
        """Return how likely a sentence is a newer version of an older one; 0.0 if it is not, above 1.0 with a value."""
        later, earlier = self._statements[new.owner], self._statements[old.owner]
        if later.turn == earlier.turn or (old.signs | new.signs) & Sign.SMALL_TALK:
            return 0.0
        if later.speaker == "tool":
            return self._of_result(old, new, earlier)
        if old.signs & Sign.QUESTION and earlier.speaker == "assistant" and earlier.kind != "open":
            return 0.0
        if self._likeness.are_same_item(old, new):
            return _SAME_ITEM
        common = old.terms.all & new.terms.all
        if not any(map(self._likeness.is_rare, common)) and not new.signs & (Sign.CHANGE | Sign.UPDATE):
            return 0.0
        if old.denies and not later.may_correct(earlier):
            return 0.0
        if later.confirms and old.denies and len(common) < _PROHIBITED:
            return 0.0
        if len(common) == 1 and (self._is_usual(old) or self._is_usual(new)):
            return 0.0
        is_gone = self._names_as_gone(old, new)
        is_strong = is_gone or bool(new.signs & Sign.CHANGE or old.signs & (Sign.HEDGE | Sign.OPEN | Sign.FAILURE))
        is_cue = is_strong or (later.is_authoritative and self._announces(new))
        is_between_users = later.is_authoritative and earlier.is_authoritative
        if (is_between_users or (is_cue and later.speaker == "user")) and self._is_spoken(later, earlier):
            pairs = [pair for pair in _clauses(old, new) if is_gone or not _are_about_two_things(*pair)]
            return max((self._of_user(old, new, *pair, is_strong, is_cue) for pair in pairs), default=0.0)
        if not is_strong and old.signs & new.signs & Sign.BINDING:
            return 0.0
        is_about = is_strong and not old.denies and bool(old.terms.values & new.terms.values)
        if not (later.is_authoritative or is_about or len(common) > 1):
            return 0.0
        return max(
            self._of_one_subject(old, new),
            self._of_model(old, new, later.is_authoritative, is_strong, is_about, is_gone),
        )

    def _of_user(self, old: Claim, new: Claim, a: Terms, b: Terms, is_strong: bool, is_cue: bool) -> float:
        """Return how likely a clause that a user wrote is a newer version of an older one."""
        common = (a.all & b.all) - DENIALS
        rare = [term for term in common if self._likeness.is_rare(term)]
        topics = a.qualifying | frozenset(list(a.places)[:1])
        is_purpose = bool(new.signs & (Sign.CHANGE | Sign.UPDATE) and common & b.qualifying & topics)
        if not (rare or is_purpose):
            return 0.0
        if _name_things_outside(old.terms, a, new.terms, b):
            return 0.0
        difference = contrast(a, b)
        if difference.is_twofold and not is_strong:
            return 0.0
        names = _names_among(rare, a, b)
        is_value = _gives_other(a, b)
        if difference.is_subject and not (is_value or names or is_cue or _may_give_other(a, b)):
            return 0.0
        is_same = _have_one_subject(a, b) or (is_value and _begin_alike(a, b))
        if not (is_value or is_same or new.signs & Sign.UPDATE) and self._is_formula(old, new):
            return 0.0
        things = _count_things(common, a)
        is_amount = len(common) > 1 and _are_amounts(a, difference.old, b, difference.new)
        is_other_limit = is_value and bool(names or is_same or is_amount) and not (old.denies and new.denies)
        if old.signs & new.signs & Sign.BINDING and not (is_cue or is_other_limit):
            return 0.0  # Rules add up.
        sameness, share = self._likeness.sameness(difference), self._likeness.containment(difference)
        is_other_name = _swaps(names, a, b) or old.denies != new.denies
        is_exact = any(shape_of_value(term) != "name" for term in names)
        if is_same and (is_value or things > 1):
            is_likely = True
        elif (is_exact or (names and things > 1)) and (is_strong or (is_cue and is_other_name)):
            is_likely = share >= (_EXACT if is_exact else _NAMED)
        elif things > 1:
            is_value = is_value and not _is_unsited_name(difference, a, b)
            is_other = is_value or is_strong or is_purpose or _may_give_other(a, b)
            is_other = is_other or speaks_of_all(old.text) != speaks_of_all(new.text)
            is_likely = share >= (_OTHER if is_other or is_cue else _ALIKE) and (is_other or bool(names))
        else:
            is_value = is_value and difference.is_sited and (new.denies or not old.denies)
            is_all = not difference.gone and kind_of_value(difference.old or "x") != "name"
            is_confirmed = bool(self._statements[new.owner].confirms) and is_value
            is_of_name = bool(names) and is_value and kind_of_value(difference.old) == "number"
            is_likely = sameness >= (_ONE_TOPIC if is_all or is_purpose or is_confirmed or is_of_name else _ONE)
            is_likely = is_likely or self._is_next_label(old, new, a, b, difference)
            is_likely = is_likely and not _name_others(difference, a, b)
            is_lifted = bool(old.signs & Sign.BINDING and new.signs & Sign.SPECIFIC) and not difference.old
            is_denied = old.denies != new.denies and (is_exact or (is_lifted and sameness >= _LIFTED))
            is_likely = is_likely and (is_value or is_purpose or is_denied or bool(new.signs & Sign.CHANGE))
        return sameness + _NAME * len(names) + is_value + is_same if is_likely else 0.0

    def _is_next_label(self, old: Claim, new: Claim, a: Terms, b: Terms, difference: Contrast) -> bool:
        """Return whether a message soon behind another one gives a number to the same word: `platform 9`."""
        distance = self._statements[new.owner].turn - self._statements[old.owner].turn
        is_number = bool(difference.old) and kind_of_value(difference.old) == "number"
        return is_number and distance <= _NEAR and _have_one_label(a, b, difference)

    @staticmethod
    def _names_as_gone(old: Claim, new: Claim) -> bool:
        """Return whether a sentence says that a value of an older one is gone: `deleted release/7`."""
        shared = old.terms.values & new.terms.values
        return bool(shared) and any(names <= old.terms.all and names & shared for names in named_things(new.text))

    def _of_result(self, old: Claim, new: Claim, earlier: Statement) -> float:
        """Return how likely the line of a result shows that something is no longer as an older sentence says.

        No result changes what a user wants.
        """
        if earlier.is_authoritative and earlier.kind in ("goal", "rule"):
            return 0.0
        best = 0.0
        for a in old.variants:
            names = [
                name
                for name in _names_among(a.all, a, new.terms)
                if self._likeness.is_rare(name) and shape_of_value(name) != "name"
            ]
            if not names or len(a.all & new.terms.all) < _LABELLED:
                continue
            difference = contrast(a, new.terms)
            is_other = _swaps(names, a, new.terms) or _have_one_label(a, new.terms, difference)
            if is_other and self._likeness.containment(difference) >= _RESULT:
                best = max(best, self._likeness.sameness(difference) + _NAME * len(names))
        return best

    def _of_one_subject(self, old: Claim, new: Claim) -> float:
        """Return how likely a sentence says something new about the same named thing."""
        best = 0.0
        for a, b in _clauses(old, new) if _names_among(old.terms.all, old.terms, new.terms) else ():
            names = [name for name in _names_among(a.subject & b.subject, a, b) if self._likeness.is_rare(name)]
            if names and len(a.subject & b.subject) > 1 and _have_one_subject(a, b):
                difference = contrast(a, b)
                if self._likeness.containment(difference) >= _SUBJECT and not difference.is_twofold:
                    best = max(best, self._likeness.sameness(difference))
        return best

    def _of_model(
        self, old: Claim, new: Claim, is_by_user: bool, is_strong: bool, is_about: bool, is_gone: bool
    ) -> float:
        """Return how likely a sentence is a newer version of an older one, if a model wrote one of them."""
        least = (_WITH_CUE if is_strong else _OTHER) if is_by_user else _MODEL
        best = 0.0
        for terms, difference in self._likeness.differences(old, new):
            common = difference.common
            if not any(map(self._likeness.is_rare, common)) or (difference.is_twofold and not is_strong):
                continue
            if not is_gone and _are_about_two_things(old.terms, terms):
                continue
            if len(common) == 1 and (_name_others(difference, old.terms, terms) or not difference.is_sited):
                continue
            is_value = is_other_value(old.terms, terms, difference)
            is_value = is_value or (len(common) > 2 and _gives_other(old.terms, terms))
            is_likely = is_about or (is_by_user and (is_value or is_strong))
            is_likely = is_likely and (is_gone or not difference.is_subject)
            is_same = is_value and (_have_one_subject(old.terms, terms) or _begin_alike(old.terms, terms))
            score = self._likeness.sameness(difference)
            if len(common) > 2:
                is_denied = old.denies != new.denies and score >= _LIFTED
                is_same = is_same or is_denied or _are_amounts(old.terms, difference.old, terms, difference.new)
            is_named = is_gone and len(common) > 1
            if (is_likely or is_same) and (score >= least or is_named):
                best = max(best, score + is_value + _NAME * len(_names_among(common, old.terms, terms)))
        return best

    def _announces(self, new: Claim) -> bool:
        """Return whether a sentence, or another one of its short message, has a word of change."""
        if new.signs & Sign.UPDATE or bool(self._statements[new.owner].confirms):
            return True
        turn = self._statements[new.owner].turn
        return len(self._likeness.terms_of_turn(turn)) <= SHORT_MESSAGE and any(
            claim.signs & Sign.CHANGE for claim in self._likeness.by_turn[turn]
        )

    def _is_spoken(self, later: Statement, earlier: Statement) -> bool:
        """Return whether two statements stand in messages that people may have written."""
        sizes = self._likeness.by_turn
        return (not later.turn or len(sizes[later.turn]) <= _SPOKEN) and (
            not earlier.turn or len(sizes[earlier.turn]) <= _WRITTEN
        )

    def _is_usual(self, claim: Claim) -> bool:
        """Return whether a sentence begins like several others, without any change in between."""
        return self._begins[_beginning(claim.text)] > _TWICE

    def _is_formula(self, old: Claim, new: Claim) -> bool:
        """Return whether two sentences begin alike without a change, or like a third one: they are no versions."""
        begin = _beginning(old.text)
        return begin == _beginning(new.text) and (self._begins[begin] > _TWICE or not new.signs & Sign.CHANGE)


def _clauses(old: Claim, new: Claim) -> list[tuple[Terms, Terms]]:
    """Return the sentences and their clauses that have enough in common."""
    return [(a, b) for a in old.variants for b in new.variants if may_be_alike(a, b)]


def _beginning(text: str) -> str:
    return " ".join(text.casefold().split(maxsplit=_BEGINNING)[:_BEGINNING])


def _names_among(terms: Sequence[str] | frozenset[str], old: Terms, new: Terms) -> list[str]:
    """Return those of these terms that are names in both clauses."""
    return [term for term in terms if term in old.values and term in new.values and kind_of_value(term) == "name"]


def _gives_other(old: Terms, new: Terms) -> bool:
    """Return whether a clause gives a value of the shape of one that an older clause has."""
    shapes = {shape_of_value(value) for value in old.values - new.all}
    repeated = old.values & new.values
    if len(repeated) < len(old.all & new.all):  # "14 days is too short for the logs, 30"
        shapes |= {shape for value in repeated if (shape := shape_of_value(value)) != "name"}
    return any(shape_of_value(value) in shapes for value in new.values - old.all)


def _is_unsited_name(difference: Contrast, old: Terms, new: Terms) -> bool:
    """Return whether two clauses differ in names that stand in different places, and in further values."""
    if difference.is_sited or not difference.old or kind_of_value(difference.old) != "name":
        return False
    return not (difference.gone.isdisjoint(old.values) and difference.come.isdisjoint(new.values))


def _count_things(common: frozenset[str], terms: Terms) -> int:
    """Return how many things common terms of a clause name: the words of one name are one thing."""
    names = [term for term in common if term in terms.values and kind_of_value(term) == "name"]
    return len(common) - sum(terms.links[name][0] in common and not terms.links[name][1] for name in names)


def _are_about_two_things(old: Terms, new: Terms) -> bool:
    """Return whether two clauses have no more than numbers or days in common, such as `until January`.

    It is one thing if the older clause says little else, and the newer one changes or denies it.
    """
    if any(kind_of_value(term) in ("name", "state") for term in (old.all & new.all) - DENIALS):
        return False
    return len(old.topic) > _FEW_TOPICS or not (_gives_other(old, new) or not new.all.isdisjoint(DENIALS))


def _are_amounts(old: Terms, a: str, new: Terms, b: str) -> bool:
    """Return whether two values are numbers of one unit: `90 euros` and `70 euros`."""
    if not a or kind_of_value(a) != "number":
        return False
    return unit_of(old, a) == unit_of(new, b) != ""


def _have_one_label(old: Terms, new: Terms, difference: Contrast) -> bool:
    """Return whether the same word stands before the two values in which clauses differ."""
    if difference.old not in old.values or shape_of_value(difference.old) != shape_of_value(difference.new):
        return False
    label = old.links[difference.old][0]
    # Words that a pronoun stands for have no place in their clause.
    return difference.new in new.links and label == new.links[difference.new][0] != ""


def _swaps(names: Sequence[str], old: Terms, new: Terms) -> bool:
    """Return whether a clause has another identifier besides one of those in common."""
    shapes = {shape_of_value(name) for name in names} - {"name"}
    return any(shape_of_value(value) in shapes for value in new.values - old.all)


def _may_give_other(old: Terms, new: Terms) -> bool:
    """Return whether one clause begins with a word that may be a name, and the other one has another name."""
    for one, other in ((old, new), (new, old)):
        if one.opening and one.opening not in other.all:
            return any(shape_of_value(value) == "name" for value in other.values - one.all)
    return False


def _name_things_outside(old: Terms, a: Terms, new: Terms, b: Terms) -> bool:
    """Return whether two sentences name different things outside of two of their clauses."""
    one, other = (
        {term for term in whole.values - part.all if kind_of_value(term) == "name"}
        for whole, part in ((old, a), (new, b))
    )
    return bool(one and other) and one.isdisjoint(new.all) and other.isdisjoint(old.all)


def _name_others(difference: Contrast, old: Terms, new: Terms) -> bool:
    """Return whether each of two clauses has a name of its own besides the value in which they differ."""
    own = difference.gone & old.values, difference.come & new.values
    return all(any(kind_of_value(value) == "name" for value in values) for values in own)


def _have_one_subject(old: Terms, new: Terms) -> bool:
    """Return whether two clauses have the same words before `is` or `has`, or one of them some of these words."""
    a, b = old.subject, new.subject
    if not a or not b or not (a <= b or b <= a):
        return False
    return len(a & b) > 1 or max(a, key=old.places.__getitem__) == max(b, key=new.places.__getitem__)


def _begin_alike(old: Terms, new: Terms) -> bool:
    """Return whether two clauses have their first two terms or more in common, and not all of them."""
    begins = 0
    for one, other in zip(old.places, new.places, strict=False):
        if one != other:
            break
        begins += 1
    return 1 < begins < min(len(old.places), len(new.places))
