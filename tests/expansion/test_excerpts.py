"""Lines, items and matches of an original: what is cut out is a piece of it, to the byte."""

from __future__ import annotations

import json
import re
import sys
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import open_conversation
from foveate.errors import BadInput, MissingExtra
from foveate.expand.excerpts import MOST_CHARACTERS, MOST_SHOWN, Excerpt, Range, count_lines, items, lines, matches
from foveate.expand.originals import content_of, text_of, text_of_all
from foveate.expand.patterns import find
from foveate.testing import answer, call, calls, say, thought, user

LOG = "".join(f"line {n}\n" for n in range(1, 31))


def test_lines_are_the_text_between_line_feeds():
    assert lines("m1", LOG, Range(3, 4)) == Excerpt("m1", "lines", "line 3\nline 4\n", 3, 4, 30, "lines")
    assert str(lines("m1", LOG, Range(30, 99))) == "[m1: lines 30 of 30]\nline 30\n"
    assert lines("m1", "a\r\nb\rc\u2028d\n\ne", Range(1, 1)).text == "a\r\n"
    assert lines("m1", "a\n\nb", Range(2, 3)).text == "\nb"


@given(text=st.text(alphabet="ab\n\r\u2028 ", max_size=40), data=st.data())
def test_any_line_ranges_join_to_the_text(text, data):
    total = count_lines(text)
    runs, at = [], 1
    while at <= total:
        last = data.draw(st.integers(at, total))
        runs.append(lines("m1", text, Range(at, last)))
        at = last + 1
    assert "".join(run.text for run in runs) == text
    assert all(count_lines(run.text) == run.last - run.first + 1 for run in runs)


def test_missing_lines_and_items_are_refused_with_their_count():
    with pytest.raises(BadInput, match=r"m1 has 30 lines; 31-40 are not among them"):
        lines("m1", LOG, Range(31, 40))
    with pytest.raises(BadInput, match=r"m1 has 2 items \(elements\); 3- are not among them"):
        items("m1", "[1, 2]", Range(3, 0))
    with pytest.raises(BadInput, match=r"m1 has 0 lines"):
        lines("m1", "", Range(1, 1))


def test_items_include_the_text_between_them():
    text = '{"total": 3, "hits": [{"id": 1}, {"id": 2},\n {"id": 3}]}'
    assert items("m1", text, Range(2, 3)) == Excerpt(
        "m1", "items", '{"id": 2},\n {"id": 3}', 2, 3, 3, "elements of hits"
    )
    table = "id,name,city\n" + "".join(f"{n},n{n},c{n}\n" for n in range(9))
    assert str(items("m1", table, Range(0, 1))) == "[m1: rows 9 of 9; columns: id,name,city]\n8,n8,c8"


def test_matches_have_numbers_and_surrounding_lines():
    assert str(matches("m1", LOG, r"line (7|9|20)$", find)) == (
        "[m1: matches 1-3 of 3]\n"
        "5-line 5\n6-line 6\n7:line 7\n8-line 8\n9:line 9\n10-line 10\n11-line 11\n"
        "--\n"
        "18-line 18\n19-line 19\n20:line 20\n21-line 21\n22-line 22"
    )


def test_empty_line_can_match():
    assert matches("m1", "a\n\nb", "^$", find).text == "1-a\n2:\n3-b"


def test_match_over_several_lines_marks_each_line():
    assert matches("m1", LOG, r"29\nline 30", find).text == "27-line 27\n28-line 28\n29:line 29\n30:line 30"


def test_very_long_line_shows_only_the_text_around_the_match():
    excerpt = matches("m1", "x" * 9_000 + "needle" + "y" * 9_000, "needle", find)
    assert re.fullmatch(r"1:…x{200}needley{194}…", excerpt.text)
    assert excerpt.note == "long lines and long matches are cut"


def test_many_matches_are_counted_and_the_first_shown():
    excerpt = matches("m1", "ab\n" * 5_000, "a", find)
    assert (excerpt.last, excerpt.total, excerpt.note) == (MOST_SHOWN, 1_000, "the first 1,000 were counted")
    assert len(matches("m1", ("a" * 390 + "\n") * 500, "^a", find).text) < MOST_CHARACTERS + 2_000


@given(
    text=st.text(alphabet="ab \n\r\u2028", max_size=80),
    pattern=st.sampled_from(["a", "b+", "a\nb", "^", "$", r"\Z", "x*", " $", r"(?s).*", "[ab]+"]),
)
def test_each_shown_line_has_its_number(text, pattern):
    try:
        excerpt = matches("m1", text, pattern, find)
    except BadInput:
        return
    there = text.split("\n")
    shown = [line for line in excerpt.text.split("\n") if re.match(r"\d+[:-]", line)]
    numbers = [int(re.match(r"\d+", line)[0]) for line in shown]
    assert shown == [f"{n}{line[len(str(n))]}{there[n - 1]}" for n, line in zip(numbers, shown, strict=True)]
    assert numbers == sorted(set(numbers))


# ------------------------------------------------------------------------------------------------------------ patterns


@pytest.mark.parametrize("pattern", ["(", "[b-a]", "*", "(?P<a", "a{2,1}", r"\p{Nope}", "(" * 5_000])
def test_invalid_pattern_is_refused_with_the_reason(pattern):
    with pytest.raises(BadInput, match="pattern"):
        list(find(pattern, "aaa"))


def test_slow_pattern_is_stopped():
    with pytest.raises(BadInput, match=r"took longer than 0\.05 s\. Make it simpler"):
        list(find(r"(?:a|aa)+$", "a" * 100 + "b", 0.05))


def test_pattern_that_compiles_slowly_is_refused():
    """`(a{10000}){1000}` takes thirteen seconds, and no time limit applies to that."""
    for pattern in ("(a{10000}){1000}", "a{1000000}", "((a{30}){30}){30}", "(a{,200}){200}"):
        with pytest.raises(BadInput, match="repeats too often"):
            list(find(pattern, "a"))
    assert list(find("a{2,3}b{1}", "aab")) == [(0, 3)]
    with pytest.raises(BadInput, match="500 characters at most"):
        list(find("a" * 501, "a"))


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?R)", "a(?0)?", "(a(?1)?)", "(?P<n>a(?&n)?)", "(?P<n>a(?P>n)?)"),
        *(r"\[(?R)]?", r"[\\](?R)]?", "[^]a](?R)]?", "[[a](?R)]?", "(?#[)(?R)?(?#])"),
    ],
)
def test_recursive_pattern_is_refused_before_it_takes_memory(pattern):
    """`(?R)` takes 0.8 GB within the second that a pattern may take."""
    with pytest.raises(BadInput, match="refers to itself"):
        next(find(pattern, "aaa"))
    assert list(find(r"\(?R", "R")) == [(0, 1)]


@pytest.mark.parametrize("pattern", ["[(?1]", "[](?R)]", r"[^\](?R)]", r"[\\](?:[(?&n)])?", "[{99999}]", "(?#(?R)a"])
def test_set_of_characters_may_look_like_a_reference_or_a_count(pattern):
    text = "R(?1)&n\\a]{9}"
    assert list(find(pattern, text)) == [match.span() for match in re.finditer(pattern, text)]


@pytest.mark.parametrize("pattern", ["(?x)(?P<n>a(?P >n)?)", "(?x:(a{10000 }){1000 })", "a(?ix)#[\n(?R)?#]"])
def test_pattern_with_the_flag_x_is_refused(pattern):
    """White space hid its references and counts."""
    with pytest.raises(BadInput, match="flag x"):
        next(find(pattern, "aaa"))


@pytest.mark.parametrize("pattern", ["(?r)b", "(?ri)B", "a|(?r:b)"])
def test_pattern_that_searches_backwards_is_refused(pattern):
    """Its matches would come last first, and get the numbers of other lines."""
    with pytest.raises(BadInput, match="searches backwards"):
        list(find(pattern, "a\nb\nc"))


def test_carets_and_dollars_match_at_lines():
    assert list(islice(find("^b$", "a\nb\nc"), 2)) == [(2, 3)]


def test_pattern_without_its_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(MissingExtra, match=r"foveate\[expand\]"):
        next(find("a", "a"))


# ----------------------------------------------------------------------------------------------------------- originals


def test_text_of_results_and_arguments_is_exact():
    assert text_of(answer("c", "a\r\nb")) == "a\r\nb"
    assert text_of(call("c", "f", x="y")) == '{"x":"y"}'
    assert text_of(calls("c", "d")) == "[calls tool]\n{}\n[calls tool]\n{}"
    assert text_of(thought("hm", say("so"))) == "so"
    assert content_of([("m1", "tool", answer("c", "a\r\nb"))]) == answer("c", "a\r\nb").result.content


def test_several_messages_are_shown_with_their_handles():
    assert text_of_all([("m1", "user", user("hi")), ("m2", "look", answer("c", "ok"))]) == (
        "[m1, user]\nhi\n[m2, look]\nok"
    )


# --------------------------------------------------------------------------------------------------------- transcripts


@pytest.mark.parametrize("source", ["SWE-agent", "kimi-cli", "tau-bench", "oh-my-posh", "pi-mono", "LiveMCPBench"])
def test_parts_of_recorded_results_expand_to_exact_bytes(transcripts, source):
    path = sorted((transcripts / "neutral" / source).glob("*.jsonl"))[0]
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()][:160]
    chat = open_conversation("recorded", window=400_000, policy="none")
    chat.append(rows)
    results = [entry for entry in chat.view if entry.is_result and len(entry.message.text) > 400][:12]
    assert results
    for entry in results:
        text, name = text_of(entry.message), entry.handle
        total = count_lines(text)
        cut = [lines(name, text, Range(at, min(at + 6, total))).text for at in range(1, total + 1, 7)]
        assert "".join(cut) == text
        last = items(name, text, Range(0, 3))
        assert last.text in text
        assert text.rstrip().endswith(last.text.rstrip()) or last.what.startswith(("elements", "entries"))
        shown = matches(name, text, r"\w{4,}", find)
        there = text.split("\n")
        for line in shown.text.split("\n"):
            if (number := re.match(r"(\d+)[:-]", line)) and "…" not in line:
                assert there[int(number[1]) - 1] == line[number.end() :]


def test_pattern_finds_letters_that_json_has_as_escapes():
    """A model sees the letters in a digest, and once searched for them in vain."""
    text = json.dumps({"状态": ["完成", "失败"], "n": 3}, indent=1)
    found = matches("m3", text, "失败", find)
    assert str(found).splitlines()[-3:] == ['4:  "失败"', "5- ],", '6- "n": 3']
    assert matches("m3", text, r"\\u5931", find).text.splitlines()[2] == r'4:  "\u5931\u8d25"'
