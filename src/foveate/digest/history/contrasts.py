"""Contrasts: in what two statements differ, and whether they are about the same thing.

Two statements about one thing differ in one place: its value. Two statements that differ in a second place too, such as
the noun that a word qualifies, the object of a verb or the word after the same preposition, are about different things.
"""

from __future__ import annotations

from msgspec import Struct

from .lexicon import words
from .terms import Terms, kind_of_value, shape_of_value

__all__ = ["DENIALS", "Contrast", "completed", "contrast", "unit_of"]

DENIALS = words("""
    not never no nicht nie kein pas jamais nunca não non mai не don't doesn't didn't isn't aren't wasn't can't cannot
    won't shouldn't mustn't hasn't haven't none nothing
    nobody
""")
"""Terms that say nothing about a topic."""
_NUMERIC = frozenset(("number", "day", "ordinal"))


_AT = words("at um à a em в alle às gegen")
"""Prepositions before an hour."""


class Contrast(Struct, frozen=True, gc=False):
    """The differences of an older and a newer statement."""

    common: frozenset[str]
    """The terms of both."""
    old: str
    """The older value; "" if the two do not give values of one kind."""
    new: str
    """The newer value."""
    gone: frozenset[str]
    """The terms of the older statement alone, without its value."""
    come: frozenset[str]
    """The terms of the newer statement alone, without its value."""
    is_apart: bool
    """Whether they differ in a second place, so that they are about different things."""
    is_subject: bool
    """Whether the value stands where statements name what they are about."""
    is_sited: bool
    """Whether both values stand in the same place, or are numbers or days."""
    is_linked: bool
    """Whether both values follow `is`, `=` or, for numbers and days, a preposition."""
    is_twofold: bool
    """Whether they differ in two values of the same shapes, or in a second place besides their beginnings."""


def contrast(old: Terms, new: Terms) -> Contrast:
    """Return the differences of two statements."""
    common = (old.all & new.all) - DENIALS
    gone, come = old.all - new.all - DENIALS, new.all - old.all - DENIALS
    inside = _aligned(old, new, common, gone, come)
    aligned = [*inside, *_first(old, new, gone, come, inside)]
    pair = _value_pair(old, new, gone, come, aligned)
    if pair is None:
        return Contrast(common, "", "", gone, come, bool(aligned), False, False, False, bool(inside))
    a, b = pair
    run_a, run_b = _run(old, a, gone), _run(new, b, come)
    if kind_of_value(a) in _NUMERIC:
        run_a, run_b = run_a & old.values, run_b & new.values  # "at most 8" and "at least 8"
        run_a |= {term for term in gone if _is_further(old, term)}
        run_b |= {term for term in come if _is_further(new, term)}
    are_others = _are_other_ones(old, new, gone) or _are_other_ones(new, old, come)
    left, added = (gone - run_a) & old.values, (come - run_b) & new.values
    is_apart = are_others or bool(left and added) or any(g not in run_a and c not in run_b for g, c in aligned)
    is_apart = is_apart or _count_two_things(old, a, new, b)
    is_twofold = is_apart and (
        are_others
        or any(g not in run_a and c not in run_b for g, c in inside)
        or not {shape_of_value(value) for value in left}.isdisjoint(shape_of_value(value) for value in added)
    )
    return Contrast(
        common,
        a,
        b,
        gone - run_a,
        come - run_b,
        is_apart,
        _is_subject(old, new, a, b, common),
        (a, b) in aligned or kind_of_value(a) in _NUMERIC or (_follows_link(old, a) and _follows_link(new, b)),
        _follows_link(old, a) and _follows_link(new, b),
        is_twofold,
    )


def _are_other_ones(one: Terms, other: Terms, own: frozenset[str]) -> bool:
    """Return whether two sentences say of which of several things they speak: `the upper shelf`, `the lower shelf`."""
    return bool(other.chosen) and any(term in own for term in _heads(one, other.chosen))


def _count_two_things(old: Terms, a: str, new: Terms, b: str) -> bool:
    """Return whether two numbers count two things of which both statements speak: `16 MB per file`, `36 files`."""
    if kind_of_value(a) != "number" or kind_of_value(b) != "number":
        return False
    one, other = unit_of(old, a), unit_of(new, b)
    return bool(one and other) and one != other and (other in old.all or one in new.all)


def unit_of(terms: Terms, value: str) -> str:
    """Return the term right behind a value, such as `files` in `36 files`; "" if there is none."""
    place = terms.places[value] + 1
    return next((term for term, other in terms.places.items() if other == place), "")


def _is_further(terms: Terms, term: str) -> bool:
    """Return whether a term is a further part of a date: the hour after the day."""
    if term not in terms.values or kind_of_value(term) not in _NUMERIC:
        return False
    return terms.links.get(term, ("", ""))[1] in _AT or shape_of_value(term) == "time"


def _follows_link(terms: Terms, term: str) -> bool:
    return term in terms.linked or term in terms.assigned


def _aligned(
    old: Terms, new: Terms, common: frozenset[str], gone: frozenset[str], come: frozenset[str]
) -> list[tuple[str, str]]:
    """Return the pairs of differing terms that stand in the same place of both statements."""
    if not gone or not come:
        return []
    heads_old, heads_new = _heads(old, common), _heads(new, common)
    pairs = []
    for g in gone:
        before, between = old.links.get(g, ("", ""))
        head = heads_old.get(g)
        for c in come:
            link = new.links.get(c, ("", ""))
            if (
                (head is not None and head == heads_new.get(c))
                or (between == link[1] == "" and before == link[0] and before in common)
                or (between == link[1] and between not in ("", "="))
            ):
                pairs.append((g, c))
    return pairs


def _first(
    old: Terms, new: Terms, gone: frozenset[str], come: frozenset[str], pairs: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return the first terms of both statements, if they differ and stand in the place of no other one."""
    if not gone or not come:
        return []
    g, c = next(iter(old.places)), next(iter(new.places))
    is_free = g in gone and c in come and not any(g == first or c == other for first, other in pairs)
    return [(g, c)] if is_free else []


def _heads(terms: Terms, common: frozenset[str]) -> dict[str, str]:
    """Return the common term that directly follows each term."""
    return {
        before: term
        for term, (before, between) in terms.links.items()
        if before and not between and term in common and terms.places[term] == terms.places[before] + 1
    }


def _value_pair(
    old: Terms, new: Terms, gone: frozenset[str], come: frozenset[str], aligned: list[tuple[str, str]]
) -> tuple[str, str] | None:
    """Return the two values of one kind that most likely stand for each other."""
    best, best_rank = None, (-1, 0, 0)
    sites = set(aligned)
    last = max(new.places, key=lambda one: new.places[one], default="")
    shapes = {c: shape_of_value(c) if c in new.values else "word" for c in come}
    for g in gone:
        shape = shape_of_value(g) if g in old.values else "word"
        if shape == "word" and not _follows_link(old, g) and not any(g == first for first, _ in aligned):
            continue
        for c, other in shapes.items():
            if other not in _FITTING[shape]:
                continue
            is_linked = _follows_link(old, g) + _follows_link(new, c)
            if shape == other == "word":
                is_likely = is_linked == 2 or (_follows_link(old, g) and c == last)
            else:
                is_likely = "word" not in (shape, other) or is_linked == 2 or (g, c) in sites
            if not is_likely:
                continue
            rank = 2 * is_linked + 2 * (shape == other) + ((g, c) in sites) + 2 * ("word" not in (shape, other))
            best_rank_new = (rank, old.places[g] + new.places[c], -len(g))
            if best_rank_new > best_rank or (best_rank_new == best_rank and best is not None and (g, c) < best):
                best, best_rank = (g, c), best_rank_new
    if best is None and len(sites) == 1:
        return aligned[0] if (aligned[0][0] in old.values) == (aligned[0][1] in new.values) else None
    if best is None and gone and come and not sites:
        g, c = (
            min(gone, key=lambda term: (old.places[term], term)),
            min(come, key=lambda term: (new.places[term], term)),
        )
        if _run(old, g, gone) == gone and _run(new, c, come) == come:
            return g, c  # They differ in one place alone.
    return best


_LIKE = (
    frozenset(("number", "time", "ordinal", "identifier")),
    frozenset(("name", "identifier", "word", "mailbox", "path", "address")),
    frozenset(("day", "ordinal", "number", "time")),
)


_FITTING = {
    shape: frozenset((shape,)).union(*(shapes for shapes in _LIKE if shape in shapes))
    for shape in (*frozenset[str]().union(*_LIKE), "state")
}
"""The shapes whose values may take the place of a value of each shape."""


def _run(terms: Terms, term: str, among: frozenset[str]) -> set[str]:
    """Return the terms that stand together with a term, such as the parts of a name."""
    run = {term}
    before = {term: link[0] for term, link in terms.links.items() if _touch(terms, link[0], term)}
    after = {term: other for other, term in before.items()}
    for step in (before, after):
        one = term
        while (one := step.get(one, "")) in among and one not in run:
            run.add(one)
    return run


def _touch(terms: Terms, before: str, after: str) -> bool:
    return before in terms.places and terms.places[after] == terms.places[before] + 1 and not terms.links[after][1]


def _is_subject(old: Terms, new: Terms, a: str, b: str, common: frozenset[str]) -> bool:
    """Return whether a statement names with this term what it is about."""
    if _follows_link(old, a) or _follows_link(new, b):
        return False
    order_a, order_b = list(old.places), list(new.places)
    head = _heads(old, common).get(a)
    if head is not None and head == _heads(new, common).get(b):
        return kind_of_value(a) != "number"  # "14 chairs", but "the blue team"
    if order_a[0] == a and order_b[0] == b:
        return True
    before_a, before_b = old.links.get(a, ("", "x")), new.links.get(b, ("", "x"))
    return before_a == before_b and before_a[0] in common and not before_a[1] and before_a[0] == order_a[0]


def completed(old: Terms, new: Terms) -> Terms:
    """Return the terms of an older statement with the value of a newer one, which alone has no topic."""
    pair = contrast(old, new)
    rename = {pair.old: pair.new} if pair.old else {}

    def renamed(terms: frozenset[str], more: frozenset[str]) -> frozenset[str]:
        return frozenset(rename.get(term, term) for term in terms) | more

    places = {rename.get(term, term): place for term, place in old.places.items()}
    end = max(places.values(), default=0)
    for term, place in new.places.items():
        places.setdefault(term, end + place)
    links = {
        rename.get(term, term): (rename.get(before, before), between) for term, (before, between) in old.links.items()
    }
    return Terms(
        places,
        renamed(old.values, new.values),
        renamed(old.linked, new.linked),
        renamed(old.assigned, new.assigned),
        renamed(old.qualifying, new.qualifying),
        {**new.links, **links},
        {**new.shown, **old.shown},
        frozenset(places),
    )
