"""The index of readable content in a view."""

from __future__ import annotations

import pytest
from replay_values import entry

from foveate.core.edits import Span
from foveate.core.messages import ToolCall, assistant, system, tool_result, user
from foveate.replay.lookup import KINDS, ViewIndex, content_kind

RESULT = tool_result("c", "the file src/app.py holds\n  3→    a whole line of the program")


def shrunk(position: int, text: str):
    return entry(position, tool_result("c", text), source=RESULT, shrunk=((0,),))


def test_content_is_readable_while_it_is_in_the_view():
    visible = ViewIndex()
    whole, other = entry(1, RESULT), entry(2, user("look at doc_17.txt"))
    seen = []
    for entries in ([whole], [whole, other], [shrunk(1, "[Omitted]"), other]):
        visible.update(entries)
        seen.append(
            (
                visible.has_identifier("src/app.py"),
                visible.has_identifier("doc_17.txt"),
                visible.has_line("a whole line of the program"),
            )
        )
    assert seen == [(True, False, True), (True, True, True), (False, True, False)]


def test_content_of_two_entries_is_readable_until_both_leave():
    visible = ViewIndex()
    first, second, last = entry(1, RESULT), entry(2, RESULT), entry(3, user("bye"))
    seen = []
    for entries in ([first, second], [second, last], [last]):
        visible.update(entries)
        seen.append(visible.has_identifier("src/app.py"))
    assert seen == [True, True, False]


def test_calls_are_readable_with_the_lines_in_their_arguments():
    visible = ViewIndex()
    call = ToolCall("c", "edit_file", '{"new": "x\\na line of twenty-five characters"}')
    visible.update([entry(1, assistant("ok", call))])
    assert [visible.has_identifier("edit_file"), visible.has_line("a line of twenty-five characters")] == [True, True]


def test_prose_of_the_assistant_shows_identifiers_but_no_lines():
    visible = ViewIndex()
    visible.update([entry(1, assistant("It says in src/app.py:\na whole line of the program"))])
    assert [visible.has_identifier("src/app.py"), visible.has_line("a whole line of the program")] == [True, False]


def test_summaries_are_readable():
    visible = ViewIndex()
    visible.update([entry(1, user("So far: src/app.py was read."), kind="summary", span=Span("a", "b"))])
    assert visible.has_identifier("src/app.py")


def test_handles_of_placeholders_lead_to_their_messages_newest_first():
    visible = ViewIndex()
    summary = entry(3, user('Summary. expand("m3-m17") brings it back.'), kind="summary", span=Span("a", "b"))
    visible.update([shrunk(1, '[Cleared; expand("m1")]'), shrunk(2, "[Cleared]"), summary])
    assert [list(visible.handles((1, 2))), list(visible.handles((1, 9, 20)))] == [
        [("m1", 1)],
        [("m3-m17", 9), ("m1", 1)],
    ]
    visible.update([entry(1, RESULT)])
    assert list(visible.handles((1, 9))) == []


def test_a_handle_in_replaced_arguments_is_found_despite_escapes():
    visible = ViewIndex()
    call = assistant("", ToolCall("c", "write", '{"note": "see expand(\\"m4\\")"}'))
    visible.update([entry(4, call, shrunk=((0,),))])
    assert list(visible.handles((4,))) == [("m4", 4)]


def test_text_that_only_looks_like_a_handle_leads_nowhere():
    visible = ViewIndex()
    visible.update([entry(1, tool_result("c", 'the docs say expand("m1")'))])
    assert list(visible.handles((1,))) == []


@pytest.mark.parametrize(
    ("shown", "sort"),
    [
        (entry(1, system("rules")), "system"),
        (entry(1, user("hi")), "user"),
        (entry(1, assistant("hi")), "assistant"),
        (entry(1, RESULT), "results_full"),
        (entry(1, user("[Result, late]"), source=RESULT, kind="note"), "results_full"),
        (shrunk(1, '[Cleared; expand("m1")]'), "placeholders"),
        (shrunk(1, "words " * 100), "results_shrunk"),
        (entry(1, tool_result("c", "[No result]"), kind="stand-in"), "placeholders"),
        (entry(1, user("So far"), kind="summary"), "summaries"),
        (entry(0, user("[Begin]"), kind="stand-in"), "user"),
    ],
)
def test_every_entry_has_one_kind(shown, sort):
    assert content_kind(shown) == sort


def test_tokens_are_counted_by_kind():
    visible = ViewIndex()
    visible.update(
        [entry(1, system("rules"), tokens=5), entry(2, user("hi"), tokens=7), entry(3, user("ho"), tokens=1)]
    )
    visible.update([entry(1, system("rules"), tokens=5), entry(3, user("ho"), tokens=1), entry(4, RESULT, tokens=50)])
    assert visible.tokens == dict.fromkeys(KINDS, 0) | {"system": 5, "user": 1, "results_full": 50}
