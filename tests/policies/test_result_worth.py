"""Results that are worth their place in the view."""

from __future__ import annotations

import pytest
from core.story import Story
from msgspec.structs import replace

from foveate.core.call_context import Budget, CallContext, Prices
from foveate.core.messages import Message
from foveate.core.planner import make_plan
from foveate.core.view import View
from foveate.policies import fold, shrink_to_digest
from foveate.policies.result_worth import EXPANDED, EXPLORING, WINDOW, needed_results
from foveate.testing import answer, call, user

PLENTY = Budget(10**6, 0, 10**12, 10**6)
CACHED, UNCACHED = Prices(), Prices(read=1.0, write=1.0)
CODE = "".join(f"def handler_{n}(request):\n\treturn request.items[{n}]\n\n" for n in range(60))
PATH = "src/handlers.py"


def read(name: str = "read", path: str = PATH, text: str = CODE) -> list[Message]:
    return [call(name, "read_file", path=path), answer(name, text)]


def edit(name: str, path: str = "src/other.py", state: str = "ok") -> list[Message]:
    return [call(name, "edit_file", path=path, old_string="a", new_string="b"), answer(name, "Done.", state=state)]


def story_of(*turns: list[Message]) -> Story:
    story = Story(user("Rename the handlers. " * 4_000))  # A view of 20,000 tokens.
    for messages in turns:
        story.say(*messages)
    return story


def view_of(story: Story, *, prices: Prices = CACHED, budget: Budget = PLENTY) -> View:
    view = story.view(budget)
    return replace(view, call=CallContext(prices=prices))


def needed_ids(view: View) -> set[str]:
    return {view.entries[index].id for index in needed_results(view)}


def is_needed(story: Story, position: int = 3, **facts: object) -> bool:
    return story.id(position) in needed_ids(view_of(story, **facts))


def commands(count: int, start: int = 0) -> list[list[Message]]:
    return [
        [call(f"c{n}", "bash", command=f"make {n}"), answer(f"c{n}", f"Built target {n}.\n" * 30)]
        for n in range(start, start + count)
    ]


def test_a_new_result_stays_and_an_old_one_is_not_needed():
    listing = [call("a", "grep", pattern="x"), answer("a", CODE)]
    assert is_needed(story_of(listing))
    assert not is_needed(story_of(listing, *commands(20)))


def test_files_are_needed_longer_than_other_results():
    listing = [call("a", "grep", pattern="x"), answer("a", CODE)]
    turns = [edit("w"), *commands(2)]
    assert is_needed(story_of(read(), *turns))
    assert not is_needed(story_of(listing, *turns))


def test_a_file_read_while_exploring_stays_until_the_edits_begin():
    exploring = commands(2 * EXPLORING)
    assert is_needed(story_of(read(), *exploring))
    assert is_needed(story_of(read(), *exploring, edit("w")))
    assert not is_needed(story_of(read(), *exploring, edit("w"), *commands(40, start=100)))


def test_a_failed_edit_does_not_end_the_exploring():
    story = story_of(read(), edit("w", state="error"), *commands(EXPLORING))
    assert is_needed(story)


def test_an_edit_of_the_file_renews_the_need_for_it():
    turns = [edit("w1"), *commands(40)]
    assert not is_needed(story_of(read(), *turns, edit("w2")))
    assert is_needed(story_of(read(), *turns, edit("w2", PATH)))


def test_a_changed_file_is_needed_for_fewer_calls_than_an_unchanged_one():
    """Its lines mostly are in newer results, or in the edits."""
    turns = [edit("w"), *commands(5)]
    assert is_needed(story_of(read(), edit("w1"), *turns))
    assert not is_needed(story_of(read(), edit("w1", PATH), *turns))


def test_an_edit_in_a_fold_counts_as_a_change_of_its_file():
    """A policy sees only the view, so it reads the folded call."""
    turns = [edit("w1"), read(), edit("w2", PATH), *commands(6)]
    story = story_of(*turns)
    assert not is_needed(story, 5)
    folded = make_plan(story.projection, story.frame(PLENTY), [fold(protect=0, stretch=1, min_share=0)], ())
    story.edit(*[each for each in folded.edits if each.span.first != story.id(4)])
    assert not is_needed(story, 5)
    assert is_needed(story_of(*[edit("w2") if turn == turns[2] else turn for turn in turns]), 5)


def test_an_old_small_result_outlives_a_large_one():
    """Fetching costs a request that reads the view, so a small result is not worth the trip."""
    large, small = read("l", "a.py", CODE * 8), read("s", "b.py", CODE[:1_800])
    story = story_of(edit("w"), large, small, *commands(10))
    needed = needed_ids(view_of(story))
    assert story.id(5) not in needed
    assert story.id(7) in needed


@pytest.mark.parametrize(("prices", "needed"), [(CACHED, True), (UNCACHED, False)])
def test_prices_decide_whether_a_result_stays(prices: Prices, needed: bool):
    """Without a cache each request pays for the whole view, so a result must be used sooner to stay."""
    story = story_of(edit("w"), read(text=CODE[:3_000]), *commands(8))
    assert is_needed(story, 5, prices=prices) is needed


def test_results_beyond_the_window_are_not_needed():
    story = story_of(read("a"), read("b", "b.py", CODE * 4))
    room = Budget(int(3_000 / WINDOW), 0, 10**12, 10**6)
    assert is_needed(story)
    assert not is_needed(story, budget=room)


def test_a_fold_with_an_edit_ends_the_exploring():
    """The calls in a fold count: a policy sees only the view."""
    story = story_of(read(), *commands(1), edit("w"), *commands(16, start=50))
    view = view_of(story)
    folded = make_plan(story.projection, story.frame(PLENTY), [fold(protect=0, stretch=1, min_share=0)], ())
    story.edit(*[each for each in folded.edits if each.span.first != story.id(2)])
    assert story.id(3) not in needed_ids(view)
    assert not is_needed(story)


def test_fold_and_shrink_by_worth_leave_needed_results_whole():
    story = story_of(*commands(3), read("a"), *commands(3, start=10), read("late", "b.py"))
    policies = [
        fold(protect=0, stretch=10_000, min_share=0, by_worth=True),
        shrink_to_digest(by_worth=True, protect_said=0),
    ]
    plan = make_plan(story.projection, story.frame(PLENTY), policies, ())
    whole = {entry.id for entry in plan.after.entries if entry.is_result and not entry.shrunk}
    assert {story.id(9), story.id(17)} <= whole
    assert [(each.span.first, each.span.last) for each in plan.edits] == [
        (story.id(2), story.id(7)),
        (story.id(10), story.id(15)),
    ]


def test_shrink_by_worth_gives_its_reason():
    story = story_of([call("a", "grep", pattern="x"), answer("a", CODE)], *commands(20))
    plan = make_plan(story.projection, story.frame(PLENTY), [shrink_to_digest(by_worth=True)], ())
    assert [each.reason for each in plan.edits] == ["a later use is too unlikely"]


def test_an_expanded_message_stays_for_a_while():
    """The model asked for it. A fold that hides it again soon makes the model ask again."""
    story = story_of([call("a", "grep", pattern="x"), answer("a", CODE)], *commands(EXPANDED + 10))
    view = view_of(story)
    at = next(index for index, entry in enumerate(view.entries) if entry.id == story.id(3))

    def is_needed_after(calls: int) -> bool:
        expanded = replace(view.entries[at], renewed=view.turn - calls)
        entries = (*view.entries[:at], expanded, *view.entries[at + 1 :])
        return story.id(3) in needed_ids(replace(view, entries=entries))

    assert [is_needed_after(calls) for calls in (1, EXPANDED - 1, EXPANDED)] == [True, True, False]
