"""The words of a text, and the terms of a query."""

from __future__ import annotations

import pytest

from foveate.core import wire
from foveate.core.messages import ToolCall, assistant
from foveate.stores.words import TERMS_MAX, TEXT_MAX, Words, contains, cut, keys_of, terms, text_of


@pytest.mark.parametrize(
    ("text", "words", "humps"),
    [
        ("The quick, brown fox.", "the quick brown fox", ""),
        ("src/foo/bar_baz.py:12", "src foo bar baz py 12", ""),
        ("fooBar FooBar foobar", "foobar foobar foobar", "foo bar foo bar"),
        ("getHTTPResponse2", "gethttpresponse2", "get http response 2"),
        ("README OK Http iPhone", "readme ok http iphone", "i phone"),
        ("café naïve Ångström ﬁne", "cafe naive angstrom fine", ""),
        ("cafe\u0301 e\u0301", "cafe e", ""),
        ("Straße STRASSE ẞ", "strasse strasse ss", ""),
        ("数据库 ABC数", "数 据 库 abc 数", ""),
        ("カタカナとﾊﾝｶｸ", "カ タ カ ナ と ハ ン カ ク", ""),
        ("서버를", "서 버 를", ""),
        ("हिन्दी। भाषा", "हिन्दी भाषा", ""),
        ("עִבְרִית ضَرَبَ", "עברית ضرب", ""),
        ("3.14 1_000 0xFF", "3 14 1 000 0xff", ""),
        ("½ Ⅷ ①", "1 2 viii 1", ""),
        ("🎉 -- \x00 \ud83d …", "", ""),
        ("", "", ""),
    ],
)
def test_text_is_cut_into_words(text, words, humps):
    assert cut(text) == Words(words.split(), humps.split())


def test_long_row_of_characters_counts_by_its_beginning_and_has_no_humps():
    blob = "aGVsbG8gd29ybGQh" * 100
    assert cut(blob) == Words([blob[:64].lower()], [])


def test_call_arguments_are_indexed_without_escapes():
    body = wire.encode_message(assistant("Look:", ToolCall("c1", "grep", '{"pattern":"a\\tb","count":[2,null,true]}')))
    assert cut(text_of(body)) == Words(["look", "grep", "pattern", "a", "b", "count", "2"], [])


def test_arguments_nested_too_deeply_to_read_are_taken_as_text():
    body = wire.encode_message(assistant("", ToolCall("c1", "run", "[" * 100_000 + '"deep"' + "]" * 100_000)))
    assert cut(text_of(body)).words == ["run"]
    body = wire.encode_message(assistant("", ToolCall("c1", "run", "[" * 5_000 + '"deep"' + "]" * 5_000)))
    assert cut(text_of(body)).words == ["run", "deep"]


@pytest.mark.parametrize("body", [b"", b"no json", b"\xff\xfe", b'{"role":"nobody"}', b"[]"])
def test_unreadable_body_has_no_words(body):
    assert text_of(body) == ""


def test_first_characters_of_a_giant_text_are_cut():
    assert len(cut("ab " * TEXT_MAX).words) == -(-TEXT_MAX // 3)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("rain Wind rain", [("rain",), ("wind",)]),
        ('"rain wind" snow', [("rain", "wind"), ("snow",)]),
        ("src/a_b.py", [("src", "a", "b", "py")]),
        ('say "hi', [("say",), ("hi",)]),
        ('a"b c"d', [("a",), ("b", "c"), ("d",)]),
        ('"" . ""', []),
        ("fooBar", [("foo", "bar")]),
        ('"fooBar"', [("foobar",)]),
    ],
)
def test_query_asks_for_words_and_rows_of_words(query, asked):
    assert [term.row for term in terms(query)] == asked


def test_pasted_page_asks_for_its_beginning():
    rows = [term.row for term in terms(" ".join(f"w{n}" for n in range(1000)))]
    assert rows == [(f"w{n}",) for n in range(TERMS_MAX)]
    assert [term.row for term in terms("/".join(f"w{n}" for n in range(1000)))] == [tuple(f"w{n}" for n in range(64))]


def test_row_of_words_stands_in_one_of_both_rows():
    text = cut("fooBar baz qux")
    asked = [("foo", "bar"), ("foobar", "baz"), ("baz", "qux"), ("bar", "baz"), ("qux", "baz"), ("foo",), ("fo",)]
    assert [contains(text, row) for row in asked] == [True, True, True, False, False, True, False]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("the files were parsed", "the file were pars"),
        ("getUserId", "getuserid get user id getuser userid"),
        ("get_user_id", "getuserid get user id getuser userid"),
        ("GET-USER-ID", "getuserid get user id getuser userid"),
        ("src/app.py", "src app py"),
        ("2026-11-23 550e8400-e29b", "2026 11 23 550e8400 e29b"),
        ("Und die Verbindungen werden wieder geschlossen", "und die verbindung/de werd/de wied/de geschloss/de"),
        ("ошибки соединений", "ошибк соединен"),
        ("数据库", "数 据 库"),
        ("", ""),
    ],
)
def test_text_has_keys(text, keys):
    assert keys_of(text) == set(keys.split())


def test_query_finds_words_of_any_language():
    (term,) = terms("Verbindungen")
    assert term.keys[0][0] == "verbindungen"
    assert keys_of("Die Verbindung ist wieder da und wird nicht geschlossen") & set(term.keys[0]) == {"verbindung/de"}


@pytest.mark.parametrize("query", ["how is the", "wie wird das wieder"])
def test_function_words_of_a_query_are_stop_words(query):
    assert all(term.is_stop for term in terms(query))
