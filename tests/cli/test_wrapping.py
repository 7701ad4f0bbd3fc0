"""Wrapping at words: the same text for any pieces, no line too wide, nothing lost."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from foveate.cli.wrapping import Wrapper, output_width


def wrapped(*pieces: str, width: int | None = 20) -> str:
    wrapper = Wrapper()
    parts = [part for piece in pieces for part in wrapper.feed(piece, "", width)]
    return "".join(text for text, _ in [*parts, *wrapper.flush(width)])


def test_lines_break_between_words_and_keep_their_indent():
    assert wrapped("The ship of chapter one sails on.\n") == "The ship of chapter\none sails on.\n"
    assert wrapped("  * read_file src/login.py 20 tokens") == "  * read_file\n  src/login.py 20\n  tokens"
    assert wrapped("船" * 9 + " " + "船" * 3) == "船" * 9 + "\n" + "船" * 3


def test_a_word_in_several_pieces_is_not_broken():
    assert wrapped("The ship of ch", "ap", "ter", " one") == "The ship of chapter\none"
    assert list(Wrapper().feed("never hel", "", 20)) == [("never", "")]


def test_text_is_unchanged_without_a_width():
    text = "  a long line with many words that no terminal limits\nand another one  "
    assert wrapped(text, width=None) == text
    assert Wrapper().feed("never hel", "bold", None) == [("never hel", "bold")]


def test_words_longer_than_a_line_stay_whole():
    assert wrapped("see https://example.org/a/very/long/address now") == (
        "see\nhttps://example.org/a/very/long/address\nnow"
    )


@given(st.text(alphabet="ab 船\n", max_size=200), st.lists(st.integers(0, 200)), st.integers(20, 40))
def test_pieces_do_not_change_the_lines(text, cuts, width):
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    out = wrapped(*pieces, width=width)
    assert out == wrapped(text, width=width)
    assert out.split() == text.split()
    for line in out.split("\n"):
        assert cell_len(line.rstrip()) <= width or len(line.split()) == 1


def test_columns_limit_output_that_is_no_terminal(monkeypatch):
    assert output_width() is None
    monkeypatch.setenv("COLUMNS", "72")
    assert output_width() == 72
    monkeypatch.setenv("COLUMNS", "wide")
    assert output_width() is None


def test_line_ends_neither_in_a_figure_nor_before_its_percent_sign():
    assert wrapped("It costs the model 64\u202f000 tokens", width=22) == "It costs the model\n64\u202f000 tokens"
    assert wrapped("It costs the model 33 % more", width=21) == "It costs the model\n33 % more"
