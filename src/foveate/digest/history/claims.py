"""Claims: the sentences of statements, and how two of them relate."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from .contrasts import completed, contrast, unit_of
from .cues import clauses_of, introduces, is_negative, without_permission
from .signs import Sign, signs_of
from .statements import ANSWERED, split_sentences
from .terms import Terms, kind_of_value, shape_of_value, terms_of
from .weights import Statement

__all__ = [
    "REPLACED_BY",
    "Claim",
    "claims_of",
    "gives_other_value",
    "holds",
    "inherit",
    "is_newer_value",
    "is_nominal",
    "is_other",
    "is_quantity",
    "is_same_item",
    "label_of_item",
    "meant_value",
    "sets_item",
    "shares_lead_in",
]

REPLACED_BY = " (replaced by: "
"""Stands between a statement and the correction without a topic that changes its value."""
_PAIR_LIST = re.compile(r"(?P<about>[^=]{1,200}?): (?P<pairs>[\w.\-/\[\]% ]{1,41}?(?:\s?=\s?|: )\S.*)")
_ITEM = re.compile(r"[^:]{1,80}: [^:,;.!?]{1,60}: (?=\S)")
"""The line above an item of a list, and the label of the item."""
_TERMS = 7
"""Terms of a sentence for each of a key, at most: a long sentence that has the words is about something else."""
_WORDS = frozenset(("name", "state"))
"""Shapes of values that any other value may replace."""
_KEY = 2
"""Words of a key up to which a sentence about its value has all of them; of a longer one it may lack one."""
_PAIR = re.compile(r"(?P<key>[\w.\-/\[\]% ]{1,41}?)(?:\s?=\s?|: )\S")


class Claim(Struct, gc=False):
    """A sentence of a statement."""

    owner: int
    text: str
    terms: Terms
    signs: int
    cut: tuple[Terms, ...] | None = None
    """The terms of each clause, if there are several; None until they are asked for."""
    denies: bool = False
    """Whether it forbids or denies."""
    is_gone: bool = False
    is_changed: bool = False
    outdated: frozenset[str] = frozenset()
    number: int = 0
    """Its rank among all sentences by age: larger is later."""
    key: frozenset[str] = frozenset()
    """For an item of a list of values with their keys, the terms of its key."""
    without_permits: Terms | None = None
    """Its terms without the words that permit; None until they are asked for."""

    @property
    def clauses(self) -> tuple[Terms, ...]:
        """Return the terms of each clause, if there are several."""
        if self.cut is None:
            self.cut = tuple(map(terms_of, clauses_of(self.text)))
        return self.cut

    @property
    def plain(self) -> Terms:
        """Return its terms without the words that permit."""
        if self.without_permits is None:
            text = without_permission(self.text)
            self.without_permits = self.terms if text is None else terms_of(text)
        return self.without_permits

    @property
    def variants(self) -> tuple[Terms, ...]:
        """Return the terms of the whole sentence and of each clause."""
        return (self.terms, *self.clauses)


def claims_of(index: int, statement: Statement) -> list[Claim]:
    """Return the sentences of a statement, or the items of a list of values with their keys."""
    text = statement.text
    if (match := _PAIR_LIST.fullmatch(text)) and statement.speaker in ("tool", "summary"):
        items = match["pairs"].split(", ")
        keys = [_PAIR.match(item) for item in items]
        if all(keys):
            return [
                Claim(index, item, terms_of(item), statement.signs, key=terms_of(key["key"]).all or frozenset(("",)))
                for item, key in zip(items, keys, strict=True)
                if key is not None
            ]
    base, replaced_by, newer = text.partition(REPLACED_BY)
    if replaced_by:
        return [Claim(index, text, completed(terms_of(base), terms_of(newer)), statement.signs, (), is_negative(text))]
    if f"?{ANSWERED}" in text:
        return [Claim(index, text, terms_of(text), statement.signs & ~Sign.QUESTION)]
    sentences = split_sentences(text)
    return [
        Claim(
            index,
            sentence,
            terms_of(sentence),
            statement.signs if len(sentences) == 1 else signs_of(sentence),
            None,
            is_negative(sentence),
        )
        for sentence in sentences
    ]


def _link(terms: Terms, term: str) -> str:
    """Return what stands before a term; "" for nothing, and for a term that completes the sentence from another."""
    return terms.links.get(term, ("", ""))[1]


def shares_lead_in(one: str, other: str) -> bool:
    """Return whether two sentences are items below the same line, and not values of the same label."""
    before, colon, rest = one.partition(": ")
    is_shared = bool(colon) and other.startswith(f"{before}: ") and rest.count(" ") > 2
    return is_shared and other.count(" ", len(before)) > 3 and not is_same_item(one, other)


def is_same_item(one: str, other: str) -> bool:
    """Return whether two sentences are items with the same label below the same line, and not equal."""
    label = label_of_item(one)
    return bool(label) and other.startswith(label) and one != other


def label_of_item(text: str) -> str:
    """Return the label of an item, with the line above its list; "" if it has none."""
    label = _ITEM.match(text)
    return label[0] if label is not None else ""


def sets_item(item: Claim, claim: Claim) -> bool:
    """Return whether a sentence gives another value for the key of an item."""
    terms = claim.terms
    if len(terms.all) > _TERMS * len(item.key):
        return False
    missing = item.key - terms.all
    if missing and (len(missing) > 1 or len(item.key) <= _KEY or not item.key & terms.values):
        return False
    new = {term for term in terms.places if term not in item.terms.all}
    values = {
        term for term in new if term in terms.assigned or term in terms.linked or _link(terms, term) in ("to", "=")
    }
    is_change = claim.signs & (Sign.CHANGE | Sign.UPDATE) or any(term in terms.assigned for term in values)
    shapes = {shape_of_value(value) for value in item.terms.values - item.key}
    is_fit = shapes <= _WORDS or not shapes.isdisjoint(map(shape_of_value, values))
    return bool(values and is_change and is_fit)


_NOMINAL = re.compile(
    r"(?:\b(?:is|are|was|ist|sind|est|es|é|è)\s+(?:a|an|the|our|my|your|ein\w*|der|die|das|une?|le|la|el|los|uma?|il|lo)\b)"
    r"|\A\W*(?:\w[\w.-]*\s?){1,4}[:=：]\s",
    re.IGNORECASE,
)


def is_quantity(terms: Terms, number: str) -> bool:
    """Return whether a noun follows a number: `14 chairs`, but not `table 14`."""
    return bool(unit_of(terms, number))


def is_nominal(text: str) -> bool:
    """Return whether a statement equates its topic with a noun, or labels a value: then it has only one."""
    return bool(_NOMINAL.search(text))


def inherit(before: Terms, terms: Terms) -> Terms:
    """Add the topic of the sentence before to a sentence that begins with a pronoun."""
    topic = [term for term in before.places if term not in before.values]
    places = dict.fromkeys(topic, 0) | dict(terms.places)
    return replace(terms, places=places, all=frozenset(places))


def is_newer_value(old: Terms, new: Terms, is_change: bool) -> bool:
    """Return whether two sentences differ in nothing but the value after `is`, `=`, `at` and the like.

    `is_change`: whether the newer one announces a change: then it may have further words after its topic.
    """
    common, gone, come = old.all & new.all, old.all - new.all, new.all - old.all
    if not common or not gone or not come or len(gone) > 3 or len(come) > 4:
        return False
    before, after = gone & old.linked, come & (new.values if is_change else new.linked)
    if not before or not after:
        return False
    if {kind_of_value(term) for term in before}.isdisjoint(kind_of_value(term) for term in after):
        return False
    first, second = min(old.places[term] for term in before), min(new.places[term] for term in after)
    begins = min(new.places[term] for term in common)
    # A term that differs before the value is another subject: both statements hold.
    return all(old.places[term] >= first for term in gone) and all(
        new.places[term] >= second or (is_change and new.places[term] > begins and term not in new.qualifying)
        for term in come
    )


def gives_other_value(old: Terms, new: Terms) -> bool:
    """Return whether the newer sentence has a value of the kind of one that the older one has."""
    kinds = {kind_of_value(value) for value in old.values - new.all} | ({"name"} if old.assigned else set())
    return any(kind_of_value(value) in kinds for value in (new.values | new.assigned) - old.all)


def holds(old: Claim, new: Claim, names: frozenset[str]) -> bool:
    """Return whether an older sentence is about a thing that a newer one names as no longer valid."""
    numbers = {name for name in names if kind_of_value(name) == "number"}
    is_held = bool(numbers) and numbers <= old.terms.all and 2 * len(names & old.terms.all) >= len(names)
    if not is_held and not names <= old.terms.all:
        return False
    if old.signs & Sign.NEGATION and not new.signs & Sign.BINDING:
        return False
    rest = (old.terms.all & new.terms.all) - names
    return bool(rest) or len(old.terms.all) <= len(names) + 1 or introduces(old.text)


def is_other(old: Claim, new: Claim, names: frozenset[str]) -> bool:
    """Return whether a sentence is about another thing than the one that names something as no longer valid."""
    difference = contrast(old.terms, new.terms)
    is_two = difference.is_apart or difference.is_subject or (bool(difference.old) and old.denies != new.denies)
    return is_two and difference.old not in names


def meant_value(old: Terms, new: Terms, values: frozenset[str]) -> str:
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
