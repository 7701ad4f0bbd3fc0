"""Properties of every digest: its length, its first line, and equality for equal texts."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.core.caches import clear_caches
from foveate.digest import Description, describe, digest, room_for

ALPHABETS = (
    "abcXYZ_09./-#@ \n",
    '{}[]":,\\ \n\t0a',
    "<>/=\"' ab\n&;",
    "\x00\x01\x1b[0m\ufffd\ud800\udfff ab\n",
    "שלום \u200f\u202e12\n",
    "+-@ diff/\n.:1",
    "|,;\t1a\n",
    "#*-> `ab.\n!",
)
ANY = st.one_of(
    st.text(max_size=600),
    *[st.text(alphabet=alphabet, max_size=1_500) for alphabet in ALPHABETS],
    st.lists(
        st.sampled_from(["def f_1():", "src/a_b.py:12: x_y_z", "ERROR: no_such_thing", "", '{"a_1": 2}', "x " * 99]),
        max_size=60,
    ).map("\n".join),
)


@settings(max_examples=settings.default.max_examples)
@given(text=ANY, room=st.one_of(st.none(), st.integers(0, 900)), handle=st.sampled_from(["", "m12", "m3.1"]))
def test_a_digest_is_never_longer_than_its_room_or_its_text(text, room, handle):
    short = digest(text, room, handle)
    if short.is_whole:
        assert short.text == text
    else:
        assert len(short.text) <= min(len(text), room_for(len(text)) if room is None else room)


@settings(max_examples=settings.default.max_examples)
@given(text=ANY)
def test_the_same_text_has_the_same_digest(text):
    once = digest(text, 200, "m1")
    clear_caches()
    assert digest(text, 200, "m1") == once


@settings(max_examples=settings.default.max_examples)
@given(text=ANY)
def test_the_first_line_names_the_kind_and_the_handle(text):
    short = digest(text, max(80, len(text) // 2), "m12")
    if not short.is_whole:
        first = short.text.split("\n")[0]
        assert first.startswith(f"[{short.description.kind}, ")
        assert 'expand("m12")' in first or len(first) == len(short.text)


@settings(max_examples=settings.default.max_examples)
@given(text=ANY)
def test_a_digest_holds_no_control_characters(text):
    short = digest(text, len(text) // 2)
    if not short.is_whole:
        short.text.encode()
        assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", short.text)


@settings(max_examples=settings.default.max_examples)
@given(text=ANY)
def test_a_description_is_one_line_with_true_counts(text):
    about = describe(text)
    assert isinstance(about, Description)
    assert about.characters == len(text)
    assert about.lines == text.count("\n") + (not text.endswith("\n") if text else 0)
    assert len(about.gist) <= 80
    assert "\n" not in str(about)
    assert about.items == 0 or about.item


@settings(max_examples=settings.default.max_examples)
@given(text=ANY)
def test_a_digest_has_a_digest(text):
    twice = digest(digest(text, len(text) * 3 // 4).text, len(text) // 4)
    assert len(twice.text) <= len(text)


def test_a_text_no_longer_than_its_digest_stays_whole():
    assert digest("short", 5) == digest("short", 900)
    assert digest("short", 5).text == "short"
    assert digest("short", 5).is_whole


def test_an_empty_text_has_an_empty_digest():
    assert (digest("").text, digest("").is_whole, describe("").kind) == ("", True, "empty")


def test_room_is_a_quarter_and_no_more_than_sixteen_thousand_characters():
    assert [room_for(size) for size in (0, 100, 8_000, 10_000_000)] == [0, 25, 2_000, 16_000]
