"""Facts that are kept while views grow: equal to facts made anew, and made from what is new."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate.core.growing import Growing, Marks
from foveate.core.messages import Message, Text
from foveate.core.stamps import Stamp
from foveate.core.view import Budget, Entry, View

BUDGET = Budget(1_000, 0, 10**6, 10)


def entry(number: int) -> Entry:
    message = Message("user", (Text(str(number)),))
    return Entry(number, str(number), message, message, Stamp(1, 0, 1, "user"), tokens=number)


def fact(added: list[int]) -> Growing[list[int]]:
    """Return the positions of all entries, as a fact that notes each entry that is added."""

    def add(state: list[int], one: Entry) -> None:
        added.append(one.position)
        state.append(one.position)

    return Growing(list, add, list.copy)


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
    assert 1 <= len(copies) <= 8


def test_a_state_that_is_changed_changes_no_other():
    positions = fact([])
    view = View(tuple(entry(number) for number in range(40)), 1, BUDGET)
    positions.of(view).clear()
    assert positions.of(view) == list(range(40))
