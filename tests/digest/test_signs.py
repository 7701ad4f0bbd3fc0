"""Signs: texts that tell which lines a pattern need not search."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.digest import logs
from foveate.digest.languages import LANGUAGES, Language
from foveate.digest.logs import failure_signs, reports_failure
from foveate.digest.values import has_one

LETTERS = "aEeIiſıİ\u0307KkStſ failedtimeout:/.0E\t"
"""Letters that patterns without case take for others are among them."""


def lines_of(pattern: re.Pattern[str]) -> st.SearchStrategy[str]:
    return st.from_regex(pattern).map(lambda text: " ".join(text.split("\n")))


@settings(max_examples=settings.default.max_examples * 2)
@given(lines_of(logs._BAD) | st.text(LETTERS, max_size=30))
def test_signs_leave_out_no_line_with_a_failure(line: str) -> None:
    assert reports_failure(line, failure_signs(line)) == bool(logs._BAD.search(line))


@pytest.mark.parametrize(
    "word", ["faıled", "faİled", "miſsed error", "caſe fail", "timed out", "TIMEDOUT", "✗", "E\tx"]
)
def test_letters_that_stand_for_others_are_signs(word: str) -> None:
    assert reports_failure(word, failure_signs(word)) == bool(logs._BAD.search(word))


@settings(max_examples=settings.default.max_examples)
@given(lines_of(logs._FAILED))
def test_line_of_a_failed_test_has_a_sign(line: str) -> None:
    if logs._FAILED.match(line):
        assert has_one(line, logs._FAILED_SIGNS)


@settings(max_examples=settings.default.max_examples)
@given(lines_of(logs._LEVEL))
def test_line_with_a_level_has_a_sign(line: str) -> None:
    if logs._LEVEL.match(line):
        assert has_one(line, logs._LEVEL_SIGNS)


@pytest.mark.parametrize("language", [each for each in LANGUAGES if each.marks], ids=lambda each: each.name)
def test_sign_inside_a_line_has_a_mark_of_its_language(language: Language) -> None:
    @settings(max_examples=settings.default.max_examples)
    @given(lines_of(language.inside))
    def check(line: str) -> None:
        if language.inside.search(line):
            assert has_one(line, language.marks)

    check()
