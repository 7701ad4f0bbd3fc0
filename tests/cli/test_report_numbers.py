"""The format of figures."""

from __future__ import annotations

import pytest

from foveate.core.plurals import plural
from foveate.replay.numbers import brief, count, decimals, dollars, percent, ticks


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.768, "77 %"),
        (1, "100 %"),
        (0, "0 %"),
        (1.026, "103 %"),
        (0.9961, "99.6 %"),
        (0.004, "0.4 %"),
        (0.99999, "< 100 %"),
        (1.00001, "> 100 %"),
        (0.00001, "> 0 %"),
        (None, "–"),
    ],
)
def test_only_exact_shares_are_100_and_0_percent(share, text):
    assert percent(share) == text


def test_thousands_are_separated_by_a_comma():
    assert [count(value) for value in (0, 999, 1234, 1234567.4, None)] == [
        "0",
        "999",
        "1,234",
        "1,234,567",
        "–",
    ]


def test_money_keeps_significant_digits():
    assert [dollars(amount) for amount in (12.3, 1234.5, 0.04123, -0.04123, 0.5, 0, None)] == [
        "$12.30",
        "$1,234.50",
        "$0.0412",
        "-$0.0412",
        "$0.500",
        "$0.00",
        "–",
    ]


def test_numbers_on_an_axis_are_short():
    assert [brief(value) for value in (0, 0.5, 950, 2500, 150_000, 1_250_000)] == [
        "0",
        "0.5",
        "950",
        "2.5k",
        "150k",
        "1.25M",
    ]


@pytest.mark.parametrize("top", [1, 7, 12, 173_000, 205_000, 999_999, 5e9])
def test_ticks_are_few_round_numbers_within_the_axis(top):
    found = ticks(top)
    step = found[1] - found[0]
    assert found[0] == 0
    assert 2 <= len(found) <= 6
    assert found[-1] <= top < found[-1] + step
    assert f"{step:.0e}"[0] in "125"


def test_empty_axis_has_its_origin():
    assert ticks(0) == [0.0]


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "view", "1 view"),
        (0, "view", "0 views"),
        (2, "entry", "2 entries"),
        (2, "turkey", "2 turkeys"),
        (2_000, "match", "2,000 matches"),
    ],
)
def test_nouns_follow_their_number(number, noun, text):
    assert plural(number, noun) == text


def test_times_have_two_significant_digits():
    assert [decimals(value) for value in (0, 0.0842, 1.26, 35.4, None)] == ["0", "0.084", "1.3", "35", "–"]
