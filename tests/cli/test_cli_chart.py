"""The line chart in the terminal."""

from __future__ import annotations

from foveate.cli.chart import Line, Piece, draw

BRAILLE = " " + "".join(map(chr, range(0x2800, 0x2900)))


def text(rows: list[list[Piece]]) -> list[str]:
    return ["".join(piece.text for piece in row).rstrip() for row in rows]


def test_chart_draws_a_line_with_its_name_and_round_numbers():
    assert text(draw([Line("all", [250 * turn for turn in range(1, 101)])], width=34, height=5)) == [
        "      │                  ⢀⣀⡤⠖⠚ all",
        "  20k │              ⣀⡤⠴⠚⠉",
        "  10k │         ⣀⡤⠖⠚⠉⠁",
        "      │    ⣀⣠⠴⠒⠋⠁",
        "    0 │⣠⠴⠒⠋⠁",
        "      └───────────────────────",
        "                 50         100",
    ]


def test_chart_keeps_the_dots_and_name_of_each_line():
    rows = draw([Line("up", [1, 2, 3, 4]), Line("flat", [1, 1, 1, 1])], width=40, height=6)
    ends = [(piece.text.strip(BRAILLE), piece.line) for row in rows for piece in row]
    assert [end for end in ends if end[0] in ("up", "flat")] == [("up", 0), ("flat", 1)]
    assert {piece.line for row in rows for piece in row} == {-1, 0, 1}


def test_chart_gives_each_name_its_own_row():
    rows = text(draw([Line("one", [1, 5]), Line("two", [2, 5])], width=40, height=6))
    assert sum(row.endswith("one") for row in rows) == sum(row.endswith("two") for row in rows) == 1


def test_chart_rows_fit_the_width():
    for width in (40, 80, 120):
        rows = draw([Line("a-policy-with-a-very-long-name-indeed", list(range(1, 400)))], width=width)
        assert rows
        assert max(map(len, text(rows))) <= width


def test_chart_without_data_is_empty():
    assert draw([]) == []
    assert draw([Line("one call", [100])]) == []
    assert draw([Line("nothing", [0, 0, 0])]) == []
    assert draw([Line("no room", [1, 2, 3])], width=20) == []
