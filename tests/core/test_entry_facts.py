"""Facts about single entries: held by the entries, and saved and restored with them."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from foveate.core.entry_facts import EntryFact, restore_entry_facts, saved_entry_facts
from foveate.core.messages import Message, Text
from foveate.core.stamps import Stamp
from foveate.core.view import Entry


def entry(number: int) -> Entry:
    message = Message("user", (Text(str(number)),))
    return Entry(number, str(number), message, message, Stamp(1, 0, 1, "user"))


def restored(facts: dict[str, dict[int, msgspec.Raw]]) -> list[Entry]:
    """Return five entries that hold the facts after they were written and read."""
    entries = [entry(number) for number in range(5)]
    kind = dict[str, dict[int, msgspec.Raw]]
    restore_entry_facts(msgspec.msgpack.decode(msgspec.msgpack.encode(facts), type=kind), entries)
    return entries


def test_a_restored_fact_equals_the_saved_one():
    names = EntryFact[tuple[str, ...]]("names 1", tuple[str, ...])
    entries = [entry(number) for number in range(5)]
    for number in (1, 3):
        names.remember(entries[number], ("a",) * number)
    assert [names.of(one) for one in restored(saved_entry_facts(entries))] == [None, ("a",), None, ("a",) * 3, None]


@pytest.mark.parametrize("name", ["names 1", "names 2"])
def test_a_fact_of_another_name_or_shape_is_not_known(name: str):
    names, sizes = EntryFact[str]("names 1", str), EntryFact[int](name, int)
    one = entry(0)
    names.remember(one, "a")
    again = restored(saved_entry_facts([one]))[0]
    assert sizes.of(again) is None
    sizes.remember(again, 7)
    assert sizes.of(again) == 7


def test_a_restored_fact_that_was_not_asked_for_is_not_saved_again():
    names = EntryFact[str]("names 1", str)
    one = entry(0)
    names.remember(one, "a")
    again = restored(saved_entry_facts([one]))
    assert saved_entry_facts(again) == {}
    assert names.of(again[0]) == "a"
    assert [*saved_entry_facts(again)] == ["names 1"]


def test_a_copy_of_an_entry_has_no_facts_of_it():
    names = EntryFact[str]("names 1", str)
    one = entry(0)
    names.remember(one, "a")
    assert names.of(replace(one, renewed=2)) is None
    assert saved_entry_facts([replace(one, renewed=2)]) == {}


def test_a_fact_with_half_of_a_surrogate_pair_is_not_saved():
    names = EntryFact[str]("names 1", str)
    entries = [entry(0), entry(1)]
    names.remember(entries[0], "\ud83d")
    names.remember(entries[1], "a")
    assert [names.of(one) for one in restored(saved_entry_facts(entries))][:2] == [None, "a"]
