"""Runs of a word index: packed, read by key, merged, and without some of their messages."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.stores.codec import DamagedBody
from foveate.stores.postings import PackedPiece, PackedRun, gather, merge, pack_piece, pack_run, without

KEYS = st.sets(st.sampled_from(["rain", "rains", "wind", "wi", "数", "fermé/fr", "x" * 64]))
MESSAGES = st.lists(st.tuples(st.integers(1, 300), KEYS), max_size=12).map(
    lambda gaps: [(sum(gap for gap, _ in gaps[: index + 1]), keys) for index, (_, keys) in enumerate(gaps)]
)


def positions(messages: list[tuple[int, set[str]]]) -> dict[str, list[int]]:
    return {
        key: [position for position, keys in messages if key in keys] for key in set().union(*(k for _, k in messages))
    }


@given(MESSAGES)
def test_packed_run_has_the_positions_of_each_key(messages):
    run = PackedRun(1, pack_run(gather(1, messages)))
    assert {key: run.positions(key) for key in positions(messages)} == positions(messages)
    assert run.keys() == sorted(positions(messages))
    assert [run.positions(key) for key in ("rai", "ain", "none")] == [[]] * 3
    assert run.keys_with("r") == sorted(key for key in positions(messages) if key.startswith("r"))
    assert run.keys_with("z") == []
    assert run.holding(range(1, 5_000)) == {position for position, keys in messages if keys}


@given(st.lists(KEYS, max_size=8))
def test_piece_has_the_positions_of_each_key(messages):
    numbered = list(enumerate(messages, 7))
    piece = PackedPiece(7, pack_piece(messages))
    assert {key: piece.positions(key) for key in positions(numbered)} == positions(numbered)
    assert [piece.positions(key) for key in ("rai", "ain", "none")] == [[]] * 3
    assert piece.keys_with("r") == {key for key in positions(numbered) if key.startswith("r")}
    assert [set(keys) for keys in piece.messages()] == (messages or [set()])
    assert piece.holding(range(20)) == {position for position, keys in numbered if keys}


@given(MESSAGES, st.lists(st.integers(0, 12), max_size=3))
def test_merged_runs_are_the_run_of_all_messages(messages, cuts):
    places = sorted({0, *(min(cut, len(messages)) for cut in cuts), len(messages)})
    parts = [messages[begin:end] for begin, end in pairwise(places)]
    runs = [(part[0][0], gather(part[0][0], part)) for part in parts if part]
    first = messages[0][0] if messages else 1
    assert merge(runs) == gather(first, messages)


@given(MESSAGES, st.integers(0, 11))
def test_message_between_others_is_merged_in_its_place(messages, at):
    one, rest = messages[at : at + 1], messages[:at] + messages[at + 1 :]
    runs = [(1, gather(1, rest)), *((position, gather(position, [(position, keys)])) for position, keys in one)]
    assert merge(runs) == gather(1, messages)


@given(MESSAGES, st.sets(st.integers(0, 11)))
def test_run_without_messages_is_the_run_of_the_others(messages, gone):
    run = gather(1, messages)
    removed = {position: keys for index, (position, keys) in enumerate(messages) if index in gone}
    rest = [(position, keys) for index, (position, keys) in enumerate(messages) if index not in gone]
    assert without(run, 1, removed) == any(removed.values())
    assert run == gather(1, rest)


@pytest.mark.slow
def test_largest_run_is_packed():
    messages = [(position, {"every", *(["last"] if position == 65_535 else [])}) for position in range(1, 65_536)]
    run = PackedRun(1, pack_run(gather(1, messages)))
    assert run.positions("last") == [65_535]
    assert len(run.positions("every")) == 65_535


@pytest.mark.parametrize("stored", [b"", b"no zlib", None, pack_run({})[:-6]])
def test_damaged_run_is_reported(stored):
    with pytest.raises(DamagedBody):
        PackedRun(1, stored)


@pytest.mark.parametrize("stored", [b"", b"no zlib", None, pack_piece([{"rain"}])[:-6]])
def test_damaged_piece_is_reported(stored):
    with pytest.raises(DamagedBody):
        PackedPiece(1, stored)
