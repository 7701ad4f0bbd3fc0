"""Facts that are kept while views grow: equal to facts made anew, and made from what is new."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate.core import growing
from foveate.core.call_context import Budget
from foveate.core.growing import Growing, Marks
from foveate.core.messages import Message, Text
from foveate.core.stamps import Stamp
from foveate.core.view import Entry, View
from foveate.core.view_facts import INDEXES

BUDGET = Budget(1_000, 0, 10**6, 10)


def entry(number: int) -> Entry:
    message = Message("user", (Text(str(number)),))
    return Entry(number, str(number), message, message, Stamp(1, 0, 1, "user"), tokens=number)


def fact(added: list[int], name: str = "") -> Growing[list[int]]:
    """Return the positions of all entries, as a fact that notes each entry that is added."""

    def add(state: list[int], one: Entry) -> None:
        added.append(one.position)
        state.append(one.position)

    return Growing(list, add, list.copy, name=name, kind=list[int])


changes = st.tuples(st.sampled_from(["append", "append", "edit", "drop", "look back"]), st.integers(0, 60))


@given(st.lists(changes, max_size=30))
def test_a_fact_of_a_growing_view_equals_one_made_anew(steps: list[Any]):
    positions, marks = fact([]), Marks()
    entries: list[Entry] = []
    for number, (change, at) in enumerate(steps):
        if change == "append":
            entries += [entry(number * 100 + part) for part in range(at)]
        elif change == "edit" and entries:
            entries[-1 - at % len(entries)] = entry(number * 100 + 99)
        elif change == "drop":
            del entries[at : at + 3]
        shown = entries[:at] if change == "look back" else entries
        view = View(tuple(shown), 1, BUDGET, marks=marks)
        assert positions.of(view) == [one.position for one in shown]
        assert view.tokens == sum(one.tokens for one in shown)


@given(st.lists(changes, max_size=30), st.integers(0, 30))
def test_a_restored_fact_equals_one_made_anew(steps: list[Any], restored: int):
    """The conversation is opened again at one of the steps, and grows on."""
    positions, marks = fact([], "positions"), Marks()
    entries: list[Entry] = []
    for number, (change, at) in enumerate(steps):
        if number == restored:
            facts, marks = marks.saved(tuple(entries)), Marks()
            marks.restore(facts, tuple(entries))
        if change == "append":
            entries += [entry(number * 100 + part) for part in range(at)]
        elif change == "edit" and entries:
            entries[-1 - at % len(entries)] = entry(number * 100 + 99)
        elif change == "drop":
            del entries[at : at + 3]
        shown = tuple(entries[:at] if change == "look back" else entries)
        assert positions.of(View(shown, 1, BUDGET, marks=marks)) == [one.position for one in shown]


def test_a_restored_fact_adds_only_the_newest_entries():
    added: list[int] = []
    positions, marks = fact(added, "positions"), Marks()
    unnamed = fact([])
    entries = tuple(map(entry, range(1_000)))
    for known in (positions, unnamed):
        known.after(entries, marks)
    facts = marks.saved(entries)
    assert [*facts] == ["positions"]
    added.clear()
    again = Marks()
    again.restore(facts, entries)
    assert positions.after((*entries, entry(1_000)), again) == list(range(1_001))
    assert 1 <= len(added) <= 2 * growing.STEP + 1
    added.clear()
    assert fact(added, "other positions").after(entries, again) == list(range(1_000))
    assert len(added) == 1_000


def test_a_restored_fact_of_another_shape_is_made_anew():
    positions, marks, entries = fact([], "positions"), Marks(), tuple(map(entry, range(100)))
    positions.after(entries, marks)
    facts, again = marks.saved(entries), Marks()
    again.restore(facts, entries)
    texts = Growing[list[str]](
        list, lambda state, one: state.append(one.id), list.copy, name="positions", kind=list[str]
    )
    assert texts.after(entries, again) == [one.id for one in entries]


@pytest.mark.parametrize("edited", [None, 29, 30])
@pytest.mark.parametrize("when", ["before the save and shown", "before the save", "after it"])
def test_a_value_is_taken_unless_its_entries_were_edited(edited: int | None, when: str):
    """It is about the first 30 entries."""
    marks, entries = Marks(), tuple(map(entry, range(40)))
    marks.show(entries)
    marks.leave("value", entries, 30, lambda: "newest")
    marks.leave("value", entries[:20], 10, lambda: "of an earlier call")
    changed = entries if edited is None else (*entries[:edited], entry(100), *entries[edited + 1 :])
    if when == "before the save and shown":
        marks.show(changed)
    saved = entries if when == "after it" else changed
    again = Marks()
    again.restore(marks.saved(saved), saved)
    assert again.take("other value", changed, str) is None
    assert again.take("value", changed, str) == (None if edited == 29 else "newest")
    assert again.take("value", changed, str) is None  # Only once.


def test_a_value_of_another_shape_is_not_taken():
    marks, entries = Marks(), tuple(map(entry, range(40)))
    marks.show(entries)
    marks.leave("value", entries, 30, lambda: "newest")
    marks.leave("half", entries, 30, lambda: "\ud83d")  # Half of a surrogate pair cannot be saved.
    again = Marks()
    again.restore(marks.saved(entries), entries)
    assert again.take("value", entries, int) is None
    assert again.take("half", entries, str) is None


def test_only_what_follows_an_edit_is_added_again():
    added: list[int] = []
    positions, marks = fact(added), Marks()
    entries = [entry(number) for number in range(1_000)]
    view = View(tuple(entries), 1, BUDGET, marks=marks)
    positions.of(view)
    for grown in ([*entries, entry(1_000)], [*entries[:990], entry(1_001), *entries[991:]]):
        added.clear()
        positions.of(replace(view, entries=tuple(grown)))
        assert 1 <= len(added) <= 24
    positions.of(replace(view, entries=tuple(entries[:200])))  # An earlier call does not drop what is kept.
    added.clear()
    positions.of(view)
    assert len(added) <= 24


def test_a_long_view_is_worked_out_with_few_marks():
    """A mark for each step of a long view would take quadratic memory, although few marks are kept."""
    copies: list[int] = []

    def copy(state: list[int]) -> list[int]:
        copies.append(len(state))
        return state.copy()

    positions = Growing[list[int]](list, lambda state, one: state.append(one.position), copy)
    positions.of(View(tuple(entry(number) for number in range(4_000)), 1, BUDGET))
    assert 1 <= len(copies) <= 12


def test_marks_have_the_same_places_until_the_view_grew_by_a_step():
    for size in range(growing.STEP * 20 + 1, growing.STEP * 21 + 1):
        assert growing.mark_places(size) is growing.mark_places(growing.STEP * 21)
    assert growing.mark_places(growing.STEP * 21 + 1) != growing.mark_places(growing.STEP * 21)


def test_a_view_that_only_grows_costs_what_is_new():
    """The state moves on with the views: it is neither made anew nor copied, but for a mark now and then."""
    added, copies, marks = list[int](), list[int](), Marks()

    def copy(state: list[int]) -> list[int]:
        copies.append(len(state))
        return state.copy()

    def add(state: list[int], one: Entry) -> None:
        added.append(one.position)
        state.append(one.position)

    positions = Growing[list[int]](list, add, copy)
    entries = tuple(entry(number) for number in range(1_000))
    positions.of(View(entries, 1, BUDGET, marks=marks))
    added.clear()
    copies.clear()
    for number in range(1_000, 1_100, 2):
        entries = (*entries, entry(number), entry(number + 1))
        assert positions.of(View(entries, 1, BUDGET, marks=marks)) == list(range(number + 2))
    assert added == list(range(1_000, 1_100))
    assert len(copies) <= 7


def test_an_edit_costs_at_most_what_follows_a_mark_before_it():
    """Marks are farther apart the older they are, so an edit never costs many times what follows it."""
    added, marks = list[int](), Marks()
    positions = fact(added)
    entries = [entry(number) for number in range(4_000)]
    for at in (3_990, 3_900, 3_500, 3_000, 2_000, 1_500):
        positions.of(View(tuple(entries), 1, BUDGET, marks=marks))
        added.clear()
        edited = [*entries[:at], entry(at + 10_000), *entries[at + 1 :]]
        positions.of(View(tuple(edited), 1, BUDGET, marks=marks))
        assert len(added) <= 2 * (len(entries) - at) + 32
        entries = edited


def test_facts_about_a_huge_view_are_released(monkeypatch: pytest.MonkeyPatch):
    added: list[int] = []
    known, marks, entries = fact(added), Marks(), tuple(map(entry, range(100)))
    for most, count in ((100, 100), (99, 200)):
        monkeypatch.setattr(growing, "_MARKED_MAX", most)
        known.after(entries, marks)
        marks.release_huge()
        known.after(entries, marks)
        assert len(added) == count


def test_the_beginning_of_a_view_leaves_the_view_as_it_is():
    positions, marks = fact([]), Marks()
    entries = tuple(entry(number) for number in range(40))
    whole, beginning = (View(some, 1, BUDGET, marks=marks) for some in (entries, entries[:20]))
    assert positions.of(whole) == list(range(40))
    assert positions.of(beginning) == list(range(20))
    assert positions.of(whole) == list(range(40))
    assert positions.of(beginning) == list(range(20))


def test_an_entry_that_cannot_be_added_leaves_no_half_made_state():
    is_broken = True

    def add(state: list[int], one: Entry) -> None:
        state.append(one.position)
        if is_broken and one.position == 30:
            raise ValueError("The store does not answer.")

    positions, marks = Growing[list[int]](list, add, list.copy), Marks()
    entries = tuple(entry(number) for number in range(40))
    view = View(entries, 1, BUDGET, marks=marks)
    with pytest.raises(ValueError, match="does not answer"):
        positions.of(view)
    is_broken = False
    assert positions.of(view) == list(range(40))


@given(st.lists(changes, max_size=30))
def test_an_entry_is_found_by_its_id_in_any_view(steps: list[Any]):
    marks, entries = Marks(), list[Entry]()
    for number, (change, at) in enumerate(steps):
        if change == "append":
            entries += [entry(number * 100 + part) for part in range(at)]
        elif change == "edit" and entries:
            entries[-1 - at % len(entries)] = entry(number * 100 + 99)
        elif change == "drop":
            del entries[at : at + 3]
        shown = entries[:at] if change == "look back" else entries
        view = View(tuple(shown), 1, BUDGET, marks=marks)
        assert [view.index_of(str(one)) for one in range(number * 100 + 100)] == [
            next((index for index, each in enumerate(shown) if each.position == one), None)
            for one in range(number * 100 + 100)
        ]


def test_the_index_of_a_long_conversation_forgets_old_ids():
    """Each view shows other messages, as after a summary. The index holds few of those that are gone."""
    marks = Marks()
    for number in range(0, 40_000, 10):
        view = View(tuple(entry(number + part) for part in range(10)), 1, BUDGET, marks=marks)
        assert view.index_of(str(number + 3)) == 3
        assert view.index_of(str(number - 7)) is None
    assert len(INDEXES.of(view).by_id) <= 1_200
