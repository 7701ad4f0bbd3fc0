"""Characters of the world's scripts."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from foveate.cli.text import brief, shortened
from foveate.core.scripts import beginning_of, whole_end
from foveate.digest import describe, digest
from foveate.policies.placeholders import cut_text

PIECES = [
    *("a", "е", " ", "仓", "é", "e\u0301\u0323", "क्षि", "न्त्र", "กำ", "น้ำ", "ב\u05bc\u05b0", "م\u064f\u0651"),
    *("👨‍👩‍👧‍👦", "👩🏽‍💻", "🇯🇵", "❤\ufe0f", "\u1100\u1161\u11a8", "か\u3099", "می\u200c"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.integers(0, 80))
def test_no_cut_is_inside_of_a_letter_or_an_emoji(pieces, most):
    text = "".join(pieces)
    ends = {0} | {match.end() for match in regex.finditer(r"\X", text)}
    end = whole_end(text, most)
    assert end in ends or end > len(text)
    assert max((place for place in ends if place <= most), default=0) - end <= 8  # A conjunct is one letter here.
    assert beginning_of(text, most) == text[:end]


def test_a_row_of_marks_without_end_is_cut_where_it_is_asked():
    assert whole_end("a" + "\u0301" * 500, 300) == 300
    assert whole_end("\u0301" * 10, 4) == 4
    assert (whole_end("", 5), beginning_of("abc", -1)) == (5, "")


def test_a_letter_that_does_not_fit_is_left_out():
    assert beginning_of("e\u0301\u0323", 1) == ""


@pytest.mark.parametrize("piece", ["e\u0301", "क्षि", "👩🏽‍💻", "น้ำ"])
def test_texts_are_cut_between_letters(piece):
    """What remains of each line is a row of whole pieces."""
    text = piece * 400
    for most in range(100, 100 + len(piece)):
        for cut in (
            cut_text(text, most, "m1").partition("\n")[0],
            brief(text, most).removesuffix("…"),
            shortened(text, width=most).removesuffix("…"),
            digest(text, most).text.partition("\n")[2].partition(" …")[0].lstrip("1 "),
        ):
            assert cut == piece * (len(cut) // len(piece))
    gist = describe(text).gist.removesuffix("…")
    assert gist == piece * (len(gist) // len(piece))
