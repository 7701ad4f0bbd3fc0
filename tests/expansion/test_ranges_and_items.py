"""Which lines or items are meant, and what the items of a text are: always pieces of it, to the byte."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foveate.errors import BadInput
from foveate.expand.excerpts import Range, read_range
from foveate.expand.items import items_of


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("40-80", Range(40, 80)),
        (" 40 – 80 ", Range(40, 80)),
        ("40..80", Range(40, 80)),
        ("L4-L9", Range(4, 9)),
        ("40:80", Range(40, 80)),
        ("3 to 5", Range(3, 5)),
        ("40", Range(40, 40)),
        ("40-", Range(40, 0)),
        ("-20", Range(0, 20)),
        ("#7", Range(7, 7)),
        (7, Range(7, 7)),
        ([40, 50], Range(40, 50)),
        ((3,), Range(3, 3)),
    ],
)
def test_range_is_read_in_common_notations(said, meant):
    assert read_range(said, "Lines") == meant


@pytest.mark.parametrize(
    "said", ["0-5", "5-3", "", "-", "a", "1,2,3", "40-80-90", True, 2.5, None, [1, 2, 3], [], {}, 0]
)
def test_invalid_range_is_refused_with_an_example(said):
    with pytest.raises(BadInput, match=r'Items are told as "40-80" \(from 1, both ends included\)'):
        read_range(said, "Items")


def test_range_is_cut_to_the_text():
    assert [Range(2, 9).within(5), Range(4, 0).within(5), Range(0, 2).within(5), Range(0, 9).within(5)] == [
        (2, 5),
        (4, 5),
        (4, 5),
        (1, 5),
    ]
    assert [Range(6, 9).within(5), Range(1, 1).within(0), Range(0, 3).within(0)] == [None, None, None]
    assert [str(one) for one in (Range(2, 9), Range(4, 0), Range(0, 2), Range(3, 3))] == ["2-9", "4-", "-2", "3"]


@pytest.mark.parametrize(
    ("text", "what", "items"),
    [
        ('[1, {"a": [2]}, "s, t"]', "elements", ["1", '{"a": [2]}', '"s, t"']),
        (
            ' {"total": 2, "hits": [{"id": 1}, {"id": 2}]}\n',
            "elements of hits",
            ['{"id": 1}', '{"id": 2}'],
        ),
        ('{"a": 1, "b": {"c": [2]}}', "entries", ['"a": 1', '"b": {"c": [2]}']),
        ('{"hits": 0, "hits": [1, 2, 3]}', "elements of hits", ["1", "2", "3"]),
        ('{"a": 1}\n{"a": 2}\n', "records", ['{"a": 1}', '{"a": 2}']),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", "rows", ["| 1 | 2 |", "| 3 | 4 |"]),
        ('id,name,city\n1,"Ann\nLee",Rome\n2,Bo,Oslo\n3,Cy,Bonn\n4,D,E\n', "rows", None),
        ("diff --git a b\n@@ -1 +1 @@\n-a\n\n", "lines", None),
        ("diff --git a b\n@@ -1 +1 @@\n-a\n@@ -9 +9 @@\n+b\n", "hunks", ["@@ -1 +1 @@\n-a\n", "@@ -9 +9 @@\n+b\n"]),
        ("diff --git a b\n+a\ndiff --git c d\n+b\n", "files", ["diff --git a b\n+a\n", "diff --git c d\n+b\n"]),
        ("name: a\nsize: 1\n\nname: b\nsize: 2\n\n\nname: c\nsize: 3\n", "records", None),
        ("drwx one\n-rw- two\n\n", "lines", ["drwx one", "-rw- two"]),
        ("     1\timport os\n     2\t\n     3\tdef f():\n", "lines", None),
        ("a.py:3:\t\treturn x\nb.py:4:\t\treturn y\nb.py:5:\t\treturn z\n", "lines", None),
        ("[1, 2", "lines", ["[1, 2"]),
        ("[]", "elements", []),
        ("", "lines", []),
        ("\n \n", "lines", []),
    ],
)
def test_items_of_a_text_make_up_the_text(text, what, items):
    found = items_of(text)
    pieces = [text[start:end] for start, end in found.spans()]
    assert found.what == what
    assert found.count() == len(pieces)
    if items is not None:
        assert pieces == items


def test_table_rows_are_counted_without_the_header():
    text = 'id,name,city\n1,"Ann\nLee",Rome\n2,Bo,Oslo\n3,Cy,Bonn\n4,Di,Ulm\n5,Ed,Ulm\n6,Fa,Ulm\n7,Gi,Ulm\n8,Ha,Ulm\n'
    text += "9,Io,Ulm\n" * 20
    found = items_of(text)
    assert (found.what, found.header, found.count()) == ("rows", "id,name,city", 28)
    start, end = next(found.spans())
    assert text[start:end] == '1,"Ann\nLee",Rome'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(value=st.lists(JSON, max_size=6), indent=st.sampled_from([None, 0, 2]))
def test_elements_of_a_json_list_are_cut_whole(value, indent):
    text = json.dumps(value, indent=indent)
    assert [json.loads(text[start:end]) for start, end in items_of(text).spans()] == value


@given(text=st.text(alphabet='ab1 \n\t\r,;|"[]{}:\u2028-', max_size=60))
@example('{"a":[1,2]')
@example("[" * 50)
def test_items_of_any_text_are_ordered_and_not_blank(text):
    found = items_of(text)
    spans = list(found.spans())
    assert found.count() == len(spans)
    assert all(text[start:end].strip() for start, end in spans)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))


@pytest.mark.parametrize(
    "text",
    ["a" * 10**7, "\n" * 10**7, "[" * 10**7, '"' * 10**7, " " * 10**7, "[]" * (5 * 10**6), "שלום " * 2_000_000],
    ids=["one-character", "line-feeds", "brackets", "quotation-marks", "spaces", "pairs", "right-to-left"],
)
def test_ten_megabytes_are_searched_in_bounded_time(text):
    """No figure is checked: what took time that grows with the square would not come to an end here."""
    found = items_of(text)
    assert found.what == ("lines" if text[0] == "\n" else "pieces of 1,000 characters")
    assert found.count() == (0 if text[0] == "\n" else len(text) // 1_000)


def test_text_without_lines_is_offered_in_pieces():
    escaped = "meta=None content=[Text(text='" + "a line\\nand \\\\nothing\\n\\n" * 300 + "')]"
    found = items_of(escaped)
    pieces = [escaped[start:end] for start, end in found.spans()]
    assert (found.what, len(pieces)) == ("escaped lines", 601)
    assert pieces[:3] == ["meta=None content=[Text(text='a line", "and \\\\nothing", "a line"]
    minified = "var a=1;" * 2_000
    found = items_of(minified)
    assert found.what == "pieces of 1,000 characters"
    assert "".join(minified[start:end] for start, end in found.spans()) == minified
