"""Caches of results by text: they hold few results, and none of the texts."""

from __future__ import annotations

import gc
import tracemalloc
from weakref import WeakSet

import pytest

from foveate.core.caches import cached_by_text, clear_caches
from foveate.policies import fold_text
from foveate.policies.names import names_of


class Result:
    """A result whose existence a weak reference sees."""


def test_results_that_grow_with_their_texts_are_held_for_few_characters():
    held: WeakSet[Result] = WeakSet()

    @cached_by_text(100, characters=40_000)
    def find(text: str) -> Result:
        held.add(result := Result())
        return result

    for length, count in ((500, 9), (4_000, 9), (30_000, 1), (300_000, 1)):
        held.clear()
        texts = [f"{number} of them ".ljust(length, ".") for number in range(20)]
        for text in texts:
            find(text)
        gc.collect()
        assert len(held) == count
        assert find(texts[-1]) is find(texts[-1])
    clear_caches()
    gc.collect()
    assert not held


def test_results_are_held_in_the_order_of_their_use():
    calls: list[str] = []

    @cached_by_text(2)
    def find(text: str, *, room: int = 0) -> int:
        calls.append(text[:1])
        return len(text) + room

    a, b, c = "a" * 500, "b" * 500, "c" * 500
    assert [find(text) for text in (a, b, a, c, a, b)] == [500] * 6
    assert calls == ["a", "b", "c", "b"]
    assert (find(b, room=1), find(b)) == (501, 500)
    assert calls == ["a", "b", "c", "b", "b"]
    clear_caches()
    find(b)
    assert calls[-2:] == ["b", "b"]


@pytest.mark.slow
def test_names_of_long_results_take_little_memory():
    """A string for each name takes nine times the memory of the text."""
    clear_caches()
    tracemalloc.start()
    try:
        characters = 0
        for number in range(30):
            text = " ".join(f"n{number}_{name}" for name in range(10_000))
            fold_text._describe_result(text)
            characters += len(text)
        del text
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 3 * characters, held / characters


def test_names_of_many_short_texts_take_little_memory():
    """A set of names for each text takes most of the memory of an open conversation of short messages."""
    clear_caches()
    names = "parser_1 reader_2 writer_3 lexer_4 src/main.py src/test.py"
    texts = [f"Request {number}: fix {names}." for number in range(4_000)]
    assert names_of(texts[7]) == set(names.split())
    tracemalloc.start()
    try:
        for text in texts:
            names_of(text)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 400 * len(texts), held / len(texts)
