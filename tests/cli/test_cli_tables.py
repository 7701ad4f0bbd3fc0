"""Tables in the width of the output."""

from __future__ import annotations

from foveate.cli.tables import table_lines

TITLES = ("policy", "cost", "all-in", "peak tokens")
ROWS = [("none", "100 %", "100 %", "122 108"), ("keep-last-5", "59 %", "101 %", "20 506")]
NOTES = ("mechanism", "what it does", "edits")
NOTED = [("prune", "Clears tool results that are older than a number of tokens.", "12"), ("fold", "", "3")]


def lines(titles, rows, room, left=1):
    found = [line for line, _ in table_lines(titles, rows, left=left, room=room)]
    assert room is None or max(map(len, found)) <= room
    return found


def test_table_that_fits_has_one_line_a_row():
    whole = [
        "policy        cost  all-in  peak tokens",
        "none         100 %   100 %      122 108",
        "keep-last-5   59 %   101 %       20 506",
    ]
    assert lines(TITLES, ROWS, None) == whole
    assert lines(TITLES, ROWS, 39) == whole


def test_titles_wrap_before_figures():
    assert lines(TITLES, ROWS, 35) == [
        "policy        cost  all-in     peak",
        "                             tokens",
        "none         100 %   100 %  122 108",
        "keep-last-5   59 %   101 %   20 506",
    ]


def test_table_of_figures_is_turned_if_it_is_too_wide():
    assert lines(TITLES, ROWS, 34) == [
        "policy          none  keep-last-5",
        "cost           100 %         59 %",
        "all-in         100 %        101 %",
        "peak tokens  122 108       20 506",
    ]


def test_longest_text_wraps_at_words():
    assert lines(NOTES, NOTED, 46, left=2) == [
        "mechanism  what it does                  edits",
        "prune      Clears tool results that are     12",
        "           older than a number of",
        "           tokens.",
        "fold                                         3",
    ]


def test_longest_text_goes_below_its_row_if_it_is_too_wide():
    assert [line for line, _ in table_lines(NOTES, NOTED, left=2, room=30)] == [
        "mechanism  edits",
        "  what it does",
        "prune         12",
        "  Clears tool results that are older than a number of tokens.",  # Wrapped when it is printed.
        "fold           3",
    ]


def test_rows_become_blocks_if_nothing_else_fits():
    assert lines(TITLES, ROWS, 24) == [
        "none",
        "  cost         100 %",
        "  all-in       100 %",
        "  peak tokens  122 108",
        "keep-last-5",
        "  cost         59 %",
        "  all-in       101 %",
        "  peak tokens  20 506",
    ]


def test_table_without_titles_or_rows_has_no_title_line():
    assert lines((), ROWS, None) == ["none         100 %  100 %  122 108", "keep-last-5   59 %  101 %   20 506"]
    assert table_lines((), []) == []


def test_columns_are_aligned_by_the_cells_of_wide_characters():
    rows = [("仓库对账", "12"), ("café\u0301", "3"), ("plain", "100")]
    assert lines(("name", "edits"), rows, None) == [
        "name      edits",
        "仓库对账     12",
        "café\u0301          3",
        "plain       100",
    ]
    wide = [("说明 很长 的 文字", "1"), ("", "2")]
    assert lines(("note", "n"), wide, None)[1:] == ["说明 很长 的 文字  1", "                   2"]
