"""Duplicates: a repeated result is shown once, and the older one points to it with the differences."""

from __future__ import annotations

import time

import pytest
from conversation.shells import opened, texts
from core.story import Story
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.edits import Pin, Restore, Target
from foveate.core.messages import Media
from foveate.errors import BadSetting
from foveate.policies import dedupe, filter_tool_results, supersede
from foveate.policies.duplicates import COMPARED_MAX, missing_pieces, similarity_marks
from foveate.testing import answer, call, text_of, user

LISTING = "".join(f"src/part_{n}/main.py   {n * 37 % 900} bytes\n" for n in range(40))
OTHER = "".join(f"docs/page_{n}.md   {n * 11 % 700} bytes\n" for n in range(40))


def pointers(*results: str, policy=None, states: dict[int, str] | None = None) -> dict[str, str]:
    """Return the text that the policy shows for each replaced result, by handle."""
    story = Story(user("go"))
    for n, text in enumerate(results):
        story.say(call(f"c{n}", "t"), answer(f"c{n}", text, state=(states or {}).get(n, "ok")))
    entries = {entry.id: entry.handle for entry in story.view()}
    edits = (policy or dedupe())(story.view())
    return {entries[edit.target.message]: edit.content[0].text for edit in edits}


def test_the_newest_of_equal_results_stays():
    shown = pointers(LISTING, OTHER, LISTING, LISTING)
    assert sorted(shown) == ["m3", "m7"]
    assert shown["m3"].startswith("[Same as m9: ")
    assert shown["m3"].endswith('expand("m3")]')
    assert shown["m7"].startswith("[Same as m9: ")


def test_a_pointer_to_a_similar_result_holds_the_differences():
    shown = pointers(LISTING + 'old ["line"]\n', LISTING + "a new line\n")
    assert list(shown) == ["m3"]
    assert shown["m3"].startswith("[Same as m5 but for: old ('line'): ")


def test_a_pointer_names_another_order_of_lines():
    lines = LISTING.splitlines()
    assert pointers("\n".join(reversed(lines)), LISTING)["m3"].startswith("[Same as m5 but for order and repetitions: ")


def test_a_result_with_long_differences_stays():
    assert pointers(LISTING + "x" * 20_000, LISTING) == {}
    assert pointers(LISTING + "\n".join(f"line {n} of another kind" for n in range(20)), LISTING) == {}
    assert pointers(LISTING + "old line\n", LISTING, policy=dedupe(most_told=0)) == {}
    assert pointers(LISTING, LISTING, policy=dedupe(most_told=0)) != {}


def test_short_and_different_results_stay():
    assert pointers("ok", "ok") == {}
    assert pointers(LISTING, OTHER) == {}
    assert pointers(text_of(400), text_of(400, 1)) == {}


def test_unfinished_results_do_not_count():
    assert pointers(LISTING, LISTING, states={0: "interrupted"}) == {}
    assert pointers(LISTING, LISTING, states={1: "interrupted"}) == {}


def test_pins_expanded_results_and_images_stay():
    story = Story(user("go"))
    for n in range(4):
        story.say(call(f"c{n}", "t"), answer(f"c{n}", LISTING, *([Media("image/png", "base64", "AA")] * (n == 2))))
    story.edit(Pin(Target(story.id(3))), Restore((Target(story.id(5)),)))
    assert list(dedupe()(story.view())) == []


def test_shrunk_results_are_neither_changed_nor_pointed_to():
    chat = opened(policy=(filter_tool_results(keep=1, placeholder="[gone]"), dedupe()))
    chat.append([user("go"), call("a"), answer("a", LISTING), call("b"), answer("b", LISTING)])
    assert texts(chat.prepare())[2] == "[gone]"
    both = opened(policy=(supersede(), dedupe()))
    both.append([user("go"), call("a", "bash", command="ls"), answer("a", LISTING)])
    both.append([call("b", "bash", command="ls"), answer("b", LISTING)])
    assert texts(both.prepare())[2].startswith("[Superseded by m5")


def test_a_second_run_changes_nothing():
    chat = opened(policy=(dedupe(),))
    chat.append([user("go"), call("a"), answer("a", LISTING), call("b"), answer("b", LISTING)])
    number = (chat.prepare(), chat._agent.head.number)[1]
    assert (chat.prepare(), chat._agent.head.number)[1] == number == 1
    chat.expand("m3")
    assert texts(chat.prepare())[2] == LISTING


def test_negative_numbers_are_refused():
    with pytest.raises(BadSetting):
        dedupe(least=-1)
    with pytest.raises(BadSetting):
        dedupe(most_told=-1)


@given(st.lists(st.text(min_size=1, max_size=30), min_size=5, max_size=60), st.data())
def test_missing_pieces_finds_a_lost_line(lines: list[str], data: st.DataObject):
    whole = answer("a", "\n".join(lines))
    gone = data.draw(st.integers(0, len(lines) - 1))
    other = answer("b", "\n".join(lines[:gone] + lines[gone + 1 :]))
    assert similarity_marks(whole)[0] == similarity_marks(answer("c", whole.text))[0]
    pieces = {piece.strip() for piece in lines[gone].split("\n")}
    assert set(missing_pieces(whole, other)) <= pieces | {lines[gone].strip()}
    assert missing_pieces(other, whole) == ()


def test_hostile_texts_take_bounded_time():
    size = 3_000_000
    texts = ["a" * size, "a,b;" * (size // 4), "\n" * size, "x\n" * (size // 2), "[" * size]
    began = time.process_time()
    for text in [*texts, *(text[:COMPARED_MAX] for text in texts)]:
        similarity_marks(answer("a", text))
        pointers(text, text + "b")
    assert time.process_time() - began < 15
