"""Exact counters by name."""

from __future__ import annotations

import time

import pytest

import foveate
from foveate.counters import counter_named
from foveate.errors import BadSetting, MissingExtra


def test_a_counter_by_name_counts_exactly():
    pytest.importorskip("toktok", reason="toktok-rs is not installed (the extra `tokens`)")
    assert counter_named("o200k")("hello world") == 2
    assert counter_named("cl100k")("你好，世界") == 6
    assert counter_named("o200k")("") == 0


def test_a_conversation_takes_the_name_of_a_counter():
    pytest.importorskip("toktok", reason="toktok-rs is not installed (the extra `tokens`)")
    chat = foveate.open_conversation("c", window=10_000, options=foveate.Options(counter="o200k"))
    chat.append({"role": "user", "content": "hello world"})
    assert chat.view.tokens == 2 + 4


def test_characters_count_a_quarter():
    chat = foveate.open_conversation("c", window=10_000, options=foveate.Options(counter="characters"))
    chat.append({"role": "user", "content": "x" * 41})
    assert chat.view.tokens == 11 + 4


def test_an_unknown_counter_is_refused_with_the_names():
    with pytest.raises(BadSetting, match=r"counter= is 'gpt2'\. Pass a function .* o200k, cl100k"):
        foveate.open_conversation("c", window=10_000, options=foveate.Options(counter="gpt2"))


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setattr("foveate.counters.find_spec", lambda package: None)
    with pytest.raises(MissingExtra, match=r'counter="o200k" needs: pip install "foveate\[tokens\]"'):
        counter_named("o200k")


@pytest.mark.parametrize("letter", ["a", "é", "中", " ", "0", "😀", "\n", "\ud800"])
def test_a_long_run_of_one_letter_is_counted_in_bounded_time(letter):
    """Some tokenizers take quadratic time for a run that their pattern does not split."""
    pytest.importorskip("toktok", reason="toktok-rs is not installed (the extra `tokens`)")
    count = counter_named("o200k")
    count("x")  # Loads the vocabulary.
    start = time.process_time()
    assert count(letter * 1_000_000) >= 1_000
    assert time.process_time() - start < 5
