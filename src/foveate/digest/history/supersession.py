"""Supersession: the statements that later ones replace.

A later value for the same key replaces the older one. A correction replaces the statement that shares most of its
topic, and what it names as no longer valid; one without a topic ("no, make it 40") replaces the newest value of the
same kind. A permission replaces a prohibition of the same act. Two statements that are merely alike stay apart: where
they differ in a second place, both hold.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from .claims import (
    REPLACED_BY,
    Claim,
    claims_of,
    holds,
    inherit,
    is_other,
    meant_value,
    sets_item,
    shares_lead_in,
)
from .contrasts import completed, contrast
from .cues import (
    clauses_of,
    contradicts,
    is_addition,
    is_bound,
    is_exclusive,
    is_new_goal,
    is_short_correction,
    is_withdrawal,
    named_things,
    without_permission,
    without_release,
)
from .likeness import Likeness, rarity
from .signs import Sign
from .terms import Terms, kind_of_value, shape_of_value, terms_of
from .versions import Versions
from .weights import Statement, announces_step

__all__ = ["Superseded", "find_superseded"]

_PRONOUN = re.compile(r"(?:it|they|es|il|elle|ele|ela|он|она|它)\b", re.IGNORECASE)
_NO_LONGER = " [no longer: "
_POSTED = 40
"""Sentences of one term that are compared, the newest first."""
_RAREST = 12
"""Terms of a sentence by which older ones are found, the rarest first."""
_COMPARED = 12
"""Older sentences that are compared word by word, those with most in common."""
_BACK = 12
"""Sentences back to which a correction without a topic reaches."""
_BACK_TURNS = 4
"""Messages back to which it reaches."""
_SHORT_TOPIC = 2
"""Terms of a correction without a topic that are no values."""
_LONGEST = 400
"""Characters of a statement with its correction in one line."""
_FLIP_SCORE = 0.45
"""Share of a prohibition that a permission repeats, at least."""
_SAME_SCORE = 0.8
"""Share of both statements that are the same but for a denial."""
_GOAL_SCORE = 0.25
_DOCUMENT = 24
"""Statements of a message above which it is a pasted text or a report, which corrects nothing that was said."""
_ALSO = 0.6
"""Part of the likelihood of the likeliest older version that others need, if a model says what the user decided."""
_SPOKEN = 4
"""Statements of a message that may correct itself."""


class Superseded(Struct, frozen=True):
    """The statements that later ones replaced."""

    texts: Mapping[int, str]
    """The new text of each statement by index: "" for those that are replaced as a whole."""
    goals: frozenset[int]
    """Indices of the statements that replaced a goal."""
    values: frozenset[str]
    """The values that are replaced."""
    items: frozenset[str]
    """The values with their keys that left a list."""
    heirs: Mapping[int, int]
    """Corrections by index, and the statements whose place they take."""
    followed: Mapping[int, int]
    """Statements by index, and the later statements that may replace them."""
    removed: Mapping[int, int]
    """Statements by index that lost a sentence, and the later ones that replaced it."""
    together: Mapping[int, int]
    """Statements by index, and earlier ones of the same message that are about the same older statement."""


def find_superseded(statements: Sequence[Statement]) -> Superseded:
    """Return what later statements replace. `statements` are in the order of the history."""
    search = _Search(statements)
    for index in range(len(statements)):
        search.visit(index)
    return Superseded(
        search.left(),
        frozenset(search.goals),
        frozenset(search.values),
        frozenset(search.items),
        search.heirs,
        search.followers(),
        search.removed,
        search.together,
    )


class _Search:
    """Compares each sentence with older ones that share terms with it."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = statements
        self.by_owner = [claims_of(index, statement) for index, statement in enumerate(statements)]
        self.claims: list[Claim] = []
        self.posted: defaultdict[str, list[int]] = defaultdict(list)
        self.goals: set[int] = set()
        self.current_goals: list[int] = []
        self.values: set[str] = set()
        self.heirs: dict[int, int] = {}
        self.items: set[str] = set()
        self.followed: dict[int, tuple[Claim, Claim, float]] = {}
        """Statements by index: a sentence, the later one that may replace it, and how likely that is."""
        self.removed: dict[int, int] = {}
        self.together: dict[int, int] = {}
        self.sizes = Counter(statement.turn for statement in statements)
        """How many statements each message has."""
        self.likeness = Likeness(statements, self.by_owner, self.posted)
        self.versions = Versions(self.likeness, self.by_owner)

    def visit(self, index: int) -> None:
        """Compare the sentences of a statement with older ones, then add them."""
        statement = self.statements[index]
        begun, claims = len(self.claims), self.by_owner[index]
        for before, claim in pairwise(claims):
            if _PRONOUN.match(claim.text):
                claim.terms = inherit(before.terms, claim.terms)
        if statement.speaker == "assistant" and announces_step(statement.text):
            return  # It is done soon, and is no version of anything.
        is_chatter = statement.speaker in ("assistant", "tool") and statement.kind == "said"
        announced = Sign.NONE  # "Scratch that." is about the next sentence.
        for claim in claims:
            claim.signs |= announced
            announced = claim.signs & Sign.CHANGE
            is_guess = claim.signs & Sign.HEDGE and not claim.signs & Sign.BINDING
            is_question = bool(claim.signs & Sign.QUESTION)
            if claim.key or is_guess or (is_question and (is_chatter or not contradicts(claim.text))):
                continue
            older = self._older(claim)
            self._update_items([old for old in older if old.key], claim)
            older = [old for old in older if not (old.key or shares_lead_in(old.text, claim.text))]
            if is_chatter or is_question:
                self._follow_likeliest(claim, older, is_done=False)
            elif statement.speaker != "tool":
                self._revise(claim, older)
        if statement.speaker == "tool" and statement.kind == "said":
            return
        self.claims += claims
        for number, claim in enumerate(claims, begun):
            claim.number = number
            for term in claim.terms.places:
                self.posted[term].append(number)
        if statement.kind == "goal" or index in self.goals:
            self.current_goals += range(begun, len(self.claims))

    def left(self) -> dict[int, str]:
        """Return what is left of the statements that lost a sentence or hold an outdated value."""
        left: dict[int, str] = {}
        for owner, claims in enumerate(self.by_owner):
            if not any(claim.is_gone or claim.outdated or claim.is_changed for claim in claims):
                continue
            kept = [claim for claim in claims if not claim.is_gone]
            if claims[0].key:
                about = self.statements[owner].text.partition(claims[0].text)[0]
                left[owner] = about + ", ".join(claim.text for claim in kept) if kept else ""
                continue
            # A sentence that only qualifies a replaced one goes with it, unless it binds.
            if claims[0].is_gone and not any(claim.signs & (Sign.BINDING | Sign.VALUE) for claim in kept):
                kept = [claim for claim in kept if claim.is_changed]
            outdated = sorted(frozenset[str]().union(*(claim.outdated for claim in kept)))
            note = f"{_NO_LONGER}{', '.join(outdated)}]" if outdated and kept else ""
            text = " ".join(claim.text for claim in kept)
            left[owner] = text if note and _NO_LONGER in text else text + note
        return left

    def followers(self) -> dict[int, int]:
        """Return the statements that are followed, and the later ones.

        Of two links of a chain that are about different sentences of one statement, the likelier one holds.
        """
        weaker = set()
        for old, (_, new, score) in self.followed.items():
            if (link := self.followed.get(new.owner)) and link[0] is not new:
                weaker.add(old if score < link[2] else new.owner)
        return {
            self.together.get(old, old): new.owner for old, (_, new, _) in self.followed.items() if old not in weaker
        }

    # ------------------------------------------------------------------------------------------------- comparing

    def _older(self, claim: Claim) -> list[Claim]:
        """Return the older sentences that have most in common and that this one may replace, the newest first."""
        shared: defaultdict[int, float] = defaultdict(float)
        rarest = sorted(claim.terms.places, key=lambda term: len(self.posted.get(term, ())))
        for term in rarest[:_RAREST]:
            posted = self.posted.get(term, ())
            for number in posted[-_POSTED:]:
                shared[number] += rarity(len(posted))
        ranked = sorted(shared, key=lambda number: (-shared[number], -number))[: 2 * _COMPARED]
        older = [old for old in map(self.claims.__getitem__, ranked) if not old.is_gone]
        alike = [old for old in older if self._may_compare(claim, old)][:_COMPARED]
        return sorted(alike, key=lambda old: -old.number)

    def _may_compare(self, new: Claim, old: Claim) -> bool:
        """Return whether a sentence may be a newer version of another one, by where both stand."""
        later, earlier = self.statements[new.owner], self.statements[old.owner]
        if not (later.turn or earlier.turn):
            return False  # The summary before has settled its own statements.
        if later.turn and self.sizes[later.turn] > _DOCUMENT:
            return False
        if earlier.turn and later.confirms == earlier.turn:
            return False  # The model says it again.
        is_spoken = bool(new.signs & Sign.CHANGE) and self.sizes[later.turn] <= _SPOKEN
        return (later.turn != earlier.turn or is_spoken) and self.likeness.may_be_about_one(old, new)

    def _may_replace(self, new: Claim, old: Claim) -> bool:
        """Return whether one statement may correct the other. Questions, and the summary before, stay as they are."""
        later, earlier = self.statements[new.owner], self.statements[old.owner]
        is_asked = bool(old.signs & Sign.QUESTION) or not (later.turn or earlier.turn)
        return later.may_correct(earlier) and not is_asked

    def _revise(self, claim: Claim, compared: Sequence[Claim]) -> None:
        """Replace what a sentence corrects: older values, what it names, prohibitions that it lifts."""
        is_strong = bool(claim.signs & Sign.CHANGE)
        is_done = False
        older = [old for old in compared if not old.signs & Sign.QUESTION or self.statements[old.owner].kind == "open"]
        for names in named_things(claim.text) if is_strong and older else ():
            for old in older:
                is_meant = holds(old, claim, names) and not is_other(old, claim, names)
                if not old.is_gone and is_meant and self.likeness.is_sure(old, claim):
                    self._replace(old, claim)
                    is_done |= self.statements[old.owner].is_authoritative
        older = [old for old in older if not old.is_gone]
        adds = bool(older) and is_addition(claim.text)
        if not is_done and not adds:
            is_done = self._lift(claim, older) or self._replace_best(claim, older)
        for old in older if claim.terms.values and not adds else ():
            if old.is_gone:
                continue
            is_settled = bool(old.signs & Sign.HEDGE) and self.likeness.settles(old.terms, claim.terms)
            is_newer = is_settled or self.likeness.is_newer_value_of(old, claim)
            if is_newer and self.likeness.is_sure(old, claim):
                self._replace(old, claim)
                is_done = True
        if not is_done and is_short_correction(claim.text):
            is_done = self._refer_back(claim)
        if is_strong and not is_done and is_withdrawal(claim.text):
            self._withdraw(claim, older)
        if adds:
            compared = [old for old in compared if is_exclusive(old.text)]
        self._follow_likeliest(claim, compared, is_done)
        self._correct_goal(claim, older)

    def _follow_likeliest(self, claim: Claim, older: Sequence[Claim], is_done: bool) -> None:
        """Show a sentence behind the older one that it may be a newer version of, if there is one.

        `is_done`: whether it replaces another sentence, so that those about other things have no newer version.
        """
        others = [old for old in older if not old.is_gone]
        if is_done and not self.statements[claim.owner].confirms:
            others = [old for old in others if not contrast(old.terms, claim.terms).is_apart]
        likely = [(self.versions.score(old, claim), old) for old in others]
        score, best = max(likely, key=lambda pair: pair[0], default=(0.0, None))
        if best is None or best.owner == claim.owner or score == 0.0:
            return
        confirms = self.statements[claim.owner].confirms
        least = _ALSO * score if confirms else score
        outdated = contrast(best.terms, claim.terms).old
        for likelihood, old in likely:
            is_echo = likelihood > 0.0 and (outdated in old.terms.values or bool(old.signs & Sign.QUESTION))
            if (likelihood < least and not is_echo) or old.owner == claim.owner:
                continue
            _, other, most = self.followed.get(old.owner, (old, claim, 0.0))
            if other.owner != claim.owner and self._are_spoken_together(other, claim):
                self.together[claim.owner] = self.together.get(other.owner, other.owner)
            if likelihood >= most:
                self.followed[old.owner] = old, claim, likelihood

    def _are_spoken_together(self, one: Claim, other: Claim) -> bool:
        """Return whether two sentences stand in one short message."""
        turn = self.statements[one.owner].turn
        return turn == self.statements[other.owner].turn and bool(turn) and self.sizes[turn] <= _SPOKEN

    def _replace_best(self, claim: Claim, older: Sequence[Claim]) -> bool:
        """Replace the older sentence that the newer one most likely corrects, if there is one."""
        best, best_score = None, (False, 0.0)
        for old in older:
            score = self.likeness.score(old, claim)
            rank = self.statements[old.owner].is_authoritative, score
            if score and rank > best_score and self.likeness.is_sure(old, claim):
                best, best_score = old, rank
        if best is not None:
            self._replace(best, claim)
        return best is not None

    # ------------------------------------------------------------------------------------------------- replacing

    def _lift(self, claim: Claim, older: Sequence[Claim]) -> bool:
        """Replace a prohibition that a permission lifts, a duty that a release lifts, and what a denial denies."""
        if not older:
            return False
        permits, releases = without_permission(claim.text), without_release(claim.text)
        denies, is_done = claim.denies, False
        for old in older:  # All of them: the model may have repeated the words of the user.
            was_denied = old.denies
            if was_denied and permits is not None and not (denies and releases is None):
                variants, least = [permits, *clauses_of(permits)], _FLIP_SCORE
            elif not was_denied and releases is not None:
                variants, least = [releases, *clauses_of(releases)], _FLIP_SCORE
            elif was_denied != denies:
                variants, least = [claim.text, *clauses_of(claim.text)], _SAME_SCORE
            else:
                continue
            is_same = any(self.likeness.repeats(old.plain, terms_of(text), least) for text in variants)
            if is_same and self.likeness.is_sure(old, claim):
                self._replace(old, claim)
                is_done = True
        return is_done

    def _update_items(self, items: Sequence[Claim], claim: Claim) -> None:
        """Replace the values of lists whose keys a sentence sets. A key of several lists is ambiguous."""
        updated = [item for item in items if sets_item(item, claim)]
        if len({self.statements[item.owner].text.partition(": ")[0] for item in updated}) == 1:
            for item in updated:
                self._remove(item, claim)
                self.items.add(item.text)
            self.heirs.setdefault(claim.owner, updated[0].owner)

    def _refer_back(self, claim: Claim) -> bool:
        """Replace the newest value of the same shape, if a correction of the user names no topic."""
        statement = self.statements[claim.owner]
        is_said = statement.speaker in ("user", "system") and bool(statement.turn) and not statement.confirms
        if not is_said or self.sizes[statement.turn] > _DOCUMENT:
            return False
        main = claim.clauses[0] if claim.clauses and claim.clauses[0].values else claim.terms
        named = frozenset[str]().union(*named_things(claim.text))
        new = main.values - named
        topic = {term for term in main.topic if self.posted.get(term)}
        if len(main.topic) > _SHORT_TOPIC or not new:
            return False
        shapes = {shape_of_value(value) for value in new}
        near = [old for old in self.claims[-_BACK:] if self._is_near(old, claim) and topic <= old.terms.all]
        for old in reversed(near):
            values = {value for value in old.terms.values - new if shape_of_value(value) in shapes}
            narrows = {term for term in main.qualifying - old.terms.all if kind_of_value(term) == "name"}
            if (old.denies and not claim.denies and not is_bound(old.text)) or (narrows and len(main.all) > 1):
                continue
            if values and not new & old.terms.all and (not named or named & old.terms.all):
                same = [other for other in near if values & other.terms.values and self._may_replace(claim, other)]
                same = [other for other in same if other is old or self._is_echo(other, old)]
                if not same:  # Only questions have the value, and a correction replaces none.
                    continue
                for other in same:
                    self._remove(other, claim)
                best = max(same, key=lambda one: (self.statements[one.owner].is_authoritative, len(one.terms.all)))
                self._complete(best, claim, main)
                return True
        return False

    def _is_echo(self, old: Claim, new: Claim) -> bool:
        """Return whether two sentences with the same value follow each other, or are about the same."""
        distance = self.statements[new.owner].turn - self.statements[old.owner].turn
        return distance <= 1 or bool(old.terms.topic & new.terms.topic)

    def _is_near(self, old: Claim, claim: Claim) -> bool:
        """Return whether a sentence was said so shortly before another one that it needs no topic."""
        earlier, later = self.statements[old.owner], self.statements[claim.owner]
        is_recent = bool(earlier.turn) and later.turn - earlier.turn <= _BACK_TURNS
        return is_recent and not old.is_gone and not old.key and old.owner != claim.owner

    def _complete(self, old: Claim, claim: Claim, new: Terms) -> None:
        """Show a correction without a topic next to the statement whose value it replaces."""
        difference = contrast(old.terms, new)
        base = old.text.partition(REPLACED_BY)[0].rstrip(". ")
        text = f"{base}{REPLACED_BY}{claim.text})"
        self._remove(old, claim)
        if difference.old:
            self._forget(frozenset((difference.old,)), old.terms, claim, _BACK)
        if len(text) <= _LONGEST:
            claim.text, claim.terms, claim.cut, claim.is_changed = text, completed(old.terms, new), (), True
            claim.without_permits = None
            self.heirs[claim.owner] = old.owner

    def _withdraw(self, claim: Claim, older: Sequence[Claim]) -> None:
        """Replace the newest statement of the same speaker, if the two have a term or a kind of value in common."""
        statement = self.statements[claim.owner]
        if statement.speaker not in ("user", "system"):
            return
        for old in reversed(self.claims[-40:]):
            earlier = self.statements[old.owner]
            if earlier.speaker != statement.speaker or old.is_gone or old.owner == claim.owner:
                continue
            kinds = {kind_of_value(value) for value in old.terms.values}
            values = claim.terms.values
            if old in older or not values or any(kind_of_value(value) in kinds for value in values):
                self._replace(old, claim)
            return

    def _correct_goal(self, claim: Claim, older: Sequence[Claim]) -> None:
        """Replace the goal, if a correction of the user speaks of it."""
        statement = self.statements[claim.owner]
        is_said = bool(statement.turn) and statement.speaker != "assistant" and not statement.confirms
        if not claim.signs & Sign.CHANGE or not is_said:
            return  # The summary before has settled its own statements.
        goals = [goal for goal in (self.claims[number] for number in self.current_goals) if not goal.is_gone]
        terms = claim.terms
        shares = [
            self.likeness.share(goal.terms, terms, contrast(goal.terms, terms)) for goal in goals if goal in older
        ]
        speaks_of_it = bool(claim.signs & Sign.GOAL) and max(shares, default=0.0) >= _GOAL_SCORE
        if goals and (claim.owner in self.goals or speaks_of_it or is_new_goal(statement.text)):
            for goal in goals:
                self._remove(goal, claim)
            self.goals.add(claim.owner)

    def _main_goal(self) -> int | None:
        """Return the index of the statement that says what all is about: the first of the current goal."""
        return next((goal.owner for goal in map(self.claims.__getitem__, self.current_goals) if not goal.is_gone), None)

    def _replace(self, old: Claim, new: Claim) -> None:
        """Mark a sentence as replaced, and older ones that repeat its value.

        Of a sentence with several facts, the value that is meant is marked as outdated.
        """
        a, b = old.terms, new.terms
        values = a.values - b.all
        if old.owner == self._main_goal():
            if self.statements[new.owner].is_authoritative:
                self.goals.add(new.owner)
            self._remove(old, new)
            return
        if _PRONOUN.match(new.text) and self.statements[new.owner].is_authoritative:
            self._complete(old, new, b)
            return
        corrected = contrast(a, b).old
        if len(values) > 1 and b.values and a.topic - b.all:
            values = frozenset((corrected or meant_value(a, b, values),))
            self._outdate(old, values, new)
        else:
            self._remove(old, new)
        if corrected or b.values:  # Its other values are only not said again.
            values &= {corrected}
        self._forget(values, a, new, _POSTED)

    def _forget(self, values: frozenset[str], old: Terms, new: Claim, most: int) -> None:
        """Mark the values of older sentences that repeat those of a replaced one and are about the same."""
        self.values |= values
        about = old.all | new.terms.all
        for value in values:
            for claim in map(self.claims.__getitem__, self.posted.get(value, ())[-most:]):
                topic = claim.terms.topic
                is_about = bool(topic) and 2 * len(topic & about) >= len(topic)
                if (
                    not claim.is_gone
                    and is_about
                    and self._may_replace(new, claim)
                    and not contrast(claim.terms, old).old
                ):
                    self._outdate(claim, values & claim.terms.values, new)

    def _outdate(self, claim: Claim, values: frozenset[str], new: Claim) -> None:
        """Mark values of a sentence as replaced. A sentence without another value goes, and any of the model."""
        statement = self.statements[claim.owner]
        if statement.is_authoritative and not statement.confirms and claim.terms.values - values:
            claim.outdated |= frozenset(claim.terms.shown.get(value, value) for value in values)
        else:
            self._remove(claim, new)

    def _remove(self, old: Claim, new: Claim) -> None:
        old.is_gone = True
        if old.owner < new.owner:
            self.removed[old.owner] = new.owner
