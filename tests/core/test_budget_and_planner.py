"""The budget and the planner: sizes, order of policies, honest edits, and a pause after each edit."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate.core.budget import NEAR, TARGET, Excess, aim_at, default_reserve, measure_excess, overflows
from foveate.core.call_context import Budget
from foveate.core.checker import check
from foveate.core.edits import Edit, Hide, Pin, Replace, Restore, Span, Summarize, Target, Unpin
from foveate.core.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, assistant
from foveate.core.planner import Plan, Stage, make_plan
from foveate.core.sizes import IMAGE_TOKENS, estimate, images_of, tokens_of
from foveate.core.stamps import Usage
from foveate.core.summaries import NeedsSummary, SummaryRequest
from foveate.core.view import View
from foveate.errors import DoesNotFit
from foveate.policies import FLOOR
from foveate.testing import answer, call, say, system, text_of, user
from foveate.testing.strategies import edits, histories

from .story import ANTHROPIC, Story, values

MANY = settings(max_examples=settings.default.max_examples * 4)
PIXEL = Media("image/png", "base64", "AAAA")


def plan_of(story: Story, *policies: object, floor: object = (), budget: Budget | None = None) -> Plan:
    return make_plan(story.projection, story.frame(budget or Budget(10**6, 0, 10**9, 10**6)), policies, floor)


def shortens(position: int, text: str = "[short]"):
    def policy(view: View) -> Iterator[Edit]:
        for entry in view:
            if entry.position == position:
                yield Replace(Target(entry.id), (Text(text),), "shortens", f"is m{position}")

    return policy


def says(*items: Edit):
    return lambda view: items


# ------------------------------------------------------------------------------------------------------------- counting


def test_a_text_counts_a_quarter_of_its_characters_rounded_up():
    assert [estimate("x" * n) for n in (0, 1, 4, 5, 8, 9)] == [0, 1, 1, 2, 2, 3]
    assert estimate("żółw") == 1


def test_a_message_counts_its_parts_plus_four_tokens():
    assert tokens_of(Message("user")) == 4
    assert tokens_of(Message("user", (Text("x" * 8), Text("y")))) == 4 + 2 + 1
    assert tokens_of(assistant("", ToolCall("id", "grep", '{"a":1}'))) == 4 + 3  # "grep {"a":1}"
    assert tokens_of(answer("a", "x" * 8, PIXEL)) == 4 + 2 + IMAGE_TOKENS
    assert tokens_of(Message("assistant", (Reasoning("x" * 8), Reasoning(encrypted="y" * 12)))) == 4 + 2 + 3
    assert tokens_of(Message("user", (Opaque("a", "k", "x" * 8),))) == 4 + 2
    pdf = Media("application/pdf", "base64", "x" * 200_000)
    assert tokens_of(Message("user", (pdf,))) == 4 + 10_000
    assert tokens_of(Message("user", (Text("one two"),)), lambda text: len(text.split())) == 4 + 2


def test_prompt_that_was_read_several_times_overflows_only_if_it_is_large():
    assert overflows(Usage(input=900, output=200), 1_000)
    assert not overflows(Usage(input=900, output=200, sent=300), 1_000)
    assert not overflows(Usage(input=900, output=200, sent=0), 1_000)
    assert overflows(Usage(input=900, output=200, sent=2_000), 1_000)


def test_media_in_a_block_that_is_kept_whole_count_like_other_media():
    """Such as a generated image, a PDF that the provider fetched, and pages that only the provider can read."""
    image = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8) + struct.pack(">II", 512, 512) + bytes(90_000)).decode()
    pdf = b64encode(b"%PDF-1.5 " + b"/Type /Page " * 3 + bytes(90_000)).decode()

    def tokens(block: dict[str, object]) -> int:
        return tokens_of(Message("assistant", (Opaque("any", "any", json.dumps(block)),)))

    for held, mime in ((image, "image/png"), (pdf, "application/pdf")):
        alone = tokens_of(Message("assistant", (Media(mime, "base64", held),)))
        for block in ({"source": {"data": held}}, {"url": f"data:{mime};base64,{held}"}):
            assert alone <= tokens(block) <= alone + 20 < 10_000
    encrypted = "gAAA" + "x" * 9_996
    assert 2_500 < tokens({"a": {"encrypted_content": encrypted}}) < 2_520
    assert tokens_of(Message("user", (Opaque("a", "k", f'{{"e":"{encrypted}"}}'),)), len) == 4 + 8 + 2_500


def test_images_count_anywhere_and_documents_do_not():
    assert images_of(Message("user", (PIXEL, Text("x"), Media("", "file", "f")))) == 2
    assert images_of(answer("a", "x", PIXEL, Media("application/pdf", "base64", ""))) == 1


# --------------------------------------------------------------------------------------------------------------- budget


def test_usable_is_window_minus_reserve_by_scale_minus_overhead():
    assert Budget(10_000, 1_000, 500, 5).usable == 9_000
    assert Budget(10_000, 1_000, 500, 5, overhead=200).usable == 8_800
    assert Budget(10_000, 1_000, 500, 5, overhead=200, scale=2.0).usable == 4_300
    assert Budget(10_000, 1_000, 500, 5, overhead=200, scale=0.5).usable == 17_800
    assert Budget(1_000, 0, 500, 5, overhead=5_000).usable == -4_000
    assert Budget(10_000, 0, 500, 5, overhead_bytes=120).usable_bytes == 380


@given(
    tokens=st.integers(0, 40_000),
    window=st.integers(1_000, 40_000),
    overhead=st.integers(0, 2_000),
    unmeasured=st.integers(0, 40_000),
    scale=st.sampled_from([0.25, 0.5, 1.0, 1.25, 4.0]),
    doubt=st.sampled_from([0.0, 0.25, 0.5]),
)
def test_a_view_exceeds_a_limit_if_it_has_more_than_the_usable_tokens(
    tokens: int, window: int, overhead: int, unmeasured: int, scale: float, doubt: float
):
    """But for one token, by which a usable size may be rounded down."""
    budget = Budget(window, window // 10, 500, 5, overhead, 0, scale, doubt, unmeasured)
    needed, limit = budget.needed(tokens)
    assert (needed > limit) is (tokens > budget.usable) or tokens == budget.usable + 1
    assert limit in (window, window - window // 10)


def test_the_reserve_is_a_tenth_of_the_window_up_to_20_000():
    assert [default_reserve(window) for window in (1_000, 128_000, 200_000, 1_000_000)] == [100, 12_800, 20_000, 20_000]


def sized(tokens: int, size: int, images: int, budget: Budget) -> View:
    entry = replace(Story(user("x")).projection.entries()[0], tokens=tokens, bytes=size, images=images)
    return View((entry,), 1, budget)


def test_the_excess_is_the_size_above_the_usable_budget():
    budget = Budget(1_100, 100, 2_000, 4)
    assert measure_excess(sized(1_000, 2_000, 4, budget)) == Excess()
    assert not measure_excess(sized(1_000, 2_000, 4, budget))
    assert measure_excess(sized(1_001, 2_003, 6, budget)) == Excess(1, 3, 2)


def test_the_target_lowers_only_the_units_in_excess():
    budget = Budget(2_200, 200, 4_000, 8, overhead=500, overhead_bytes=400, scale=1.0)
    view = sized(1_400, 3_500, 7, budget)
    assert TARGET == 0.75
    assert measure_excess(aim_at(view, Excess(tokens=1))) == Excess(1_400 - 1_125, 0, 0)
    assert measure_excess(aim_at(view, Excess(bytes=1))) == Excess(0, 3_500 - 2_700, 0)
    assert measure_excess(aim_at(view, Excess(images=1))) == Excess(0, 0, 1)
    assert measure_excess(aim_at(view, Excess())) == Excess()
    assert measure_excess(aim_at(view, Excess(tokens=1), NEAR)) == Excess(1_400 - 1_200, 0, 0)
    less_than_nothing = sized(10, 1, 0, Budget(100, 0, 10**6, 9, overhead=300))
    assert (
        measure_excess(aim_at(less_than_nothing, Excess(tokens=1))).tokens >= measure_excess(less_than_nothing).tokens
    )


# ------------------------------------------------------------------------------------------------------------- policies


def test_each_policy_sees_the_edits_of_the_policies_before_it():
    story = Story(user("go"), say("a long answer " * 9), user("on"))
    seen: list[list[str]] = []

    def watches(view: View) -> tuple[Edit, ...]:
        seen.append([entry.message.text for entry in view])
        return ()

    plan = plan_of(story, watches, shortens(2, "[shorter]"), watches, shortens(2), watches)
    assert [texts[1] for texts in seen] == ["a long answer " * 9, "[shorter]", "[short]"]
    assert [edit.content[0].text for edit in plan.edits] == ["[shorter]", "[short]"]
    assert plan.after.entries[1].edits == (1, 2)


def test_a_plan_changes_nothing_until_it_is_applied():
    story = Story(user("go"), say("a long answer " * 9), user("on"))
    before = values(story.projection)
    plan = make_plan(story.projection, story.frame(Budget(10**6, 0, 10**9, 9)), [shortens(2)], FLOOR)
    assert bool(plan)
    assert values(story.projection) == before
    story.edit(*plan.edits)
    assert [entry.message for entry in plan.after] == [entry.message for entry in story.projection.entries()]


def test_a_plan_without_policies_and_excess_is_empty():
    story = Story(user("go"))
    plan = make_plan(story.projection, story.frame(Budget(10**6, 0, 10**9, 9)), [], FLOOR)
    assert not plan
    assert (plan.edits, plan.tokens_saved, plan.before is plan.after) == ((), 0, True)


def test_edits_carry_the_sizes_before_and_after():
    story = Story(system("rules"), user("go"), *(m for n in range(4) for m in (say("x" * 400), user("y" * 40))))
    span = Span(story.id(3), story.id(8))
    plan = plan_of(story, says(Summarize(span, "told " * 4, "p")), shortens(9), says(Pin(Target(story.id(2)))))
    summary, short, pin = plan.edits
    assert (summary.tokens_before, summary.tokens_after) == (3 * (104 + 14), 4 + 5)
    assert (short.tokens_before, short.tokens_after) == (104, 6)
    assert isinstance(pin, Pin)
    assert plan.tokens_saved == plan.before.tokens - plan.after.tokens
    assert plan.tokens_saved == sum(e.tokens_before - e.tokens_after for e in (summary, short))
    assert plan.before.bytes - plan.after.bytes > 1_000


def test_messages_kept_in_a_span_count_before_and_after():
    story = Story(user("go"), say("x" * 400), say("y" * 400), user("on"))
    story.edit(Pin(Target(story.id(2))))
    plan = plan_of(story, says(Hide(Span(story.id(1), story.id(3)))))
    assert (plan.edits[0].tokens_before, plan.edits[0].tokens_after) == (5 + 104 + 104, 104)


# -------------------------------------------------------------------------------------------------------- left out


def left_out() -> Story:
    story = Story(
        system("rules"),
        user("old"),
        assistant("so", ToolCall("a", "t", '{"x":1}')),
        answer("a", "found"),
        say("hidden one"),
        say("hidden two"),
        say("hidden three"),
        say("pinned"),
        user("new"),
    )
    story.edit(
        Hide(Span(story.id(5), story.id(7))), Pin(Target(story.id(8))), Replace(Target(story.id(4)), (Text("x"),))
    )
    return story


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: Replace(Target(s.id(1)), (Text("no rules"),)),
        lambda s: Hide(Target(s.id(1))),
        lambda s: Replace(Target(s.id(9)), (Text("no request"),)),
        lambda s: Hide(Target(s.id(9), (0,))),
        lambda s: Replace(Target(s.id(8)), (Text("no pin"),)),
        lambda s: Hide(Target(s.id(8))),
        lambda s: Replace(Target(s.id(6)), (Text("hidden already"),)),
        lambda s: Replace(Target("0" * 40), (Text("of nobody"),)),
        lambda s: Replace(Target(s.id(3), (1,)), (Text("no object"),)),
        lambda s: Replace(Target(s.id(3)), (Text("the call must stay"),)),
        lambda s: Replace(Target(s.id(2), (4,)), (Text("no such part"),)),
        lambda s: Hide(Target(s.id(3), (1,))),
        lambda s: Replace(Target(s.id(4)), (Text("x"),)),
        lambda s: Hide(Span(s.id(5), s.id(7))),
        lambda s: Hide(Span(s.id(6), s.id(9))),
        lambda s: Hide(Span(s.id(4), s.id(2))),
        lambda s: Summarize(Span(s.id(2), s.id(6)), "an end it does not see"),
        lambda s: Summarize(Span(s.id(2), s.id(4)), "  "),
        lambda s: Restore((Target(s.id(6)),)),
        lambda s: Restore((Span(s.id(4), s.id(8)),)),
        lambda s: Restore((), (1,)),
        lambda s: Restore((), (77,)),
        lambda s: Restore((Target("0" * 40),)),
        lambda s: Pin(Target(s.id(8))),
        lambda s: Pin(Target(s.id(6))),
        lambda s: Unpin(Target(s.id(2))),
    ],
)
def test_forbidden_unknown_and_ineffective_edits_are_left_out(edit):
    story = left_out()
    result = edit(story)
    assert not plan_of(story, says(result))
    good = shortens(2, "[o]")
    plan = plan_of(story, lambda view: [result, *good(view), result])
    assert [type(one) for one in plan.edits] == [Replace]
    assert plan.edits[0].target == Target(story.id(2))
    story.edit(*plan.edits)
    assert values(story.projection) == values(story.folded())


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: Replace(Target(s.id(2)), (Text("old"),)),  # the mark of a check without a change
        lambda s: Restore((Target(s.id(4)),)),
        lambda s: Restore((Target(s.id(2)),)),  # a new lease
        lambda s: Unpin(Target(s.id(8))),
        lambda s: Hide(Target(s.id(3))),
        lambda s: Summarize(Span(s.id(5), s.id(7)), "told"),
        lambda s: Summarize(Span(s.id(2), s.id(7)), "told"),
        lambda s: Replace(Target(s.id(3), (1,)), (Text("{}"),)),
    ],
)
def test_effective_edits_stay_in_the_plan(edit):
    story = left_out()
    plan = plan_of(story, says(edit(story)))
    assert len(plan.edits) == 1
    again = Story()
    again.__dict__.update(story.__dict__)
    again.edit(*plan.edits)
    assert [entry.message for entry in again.projection.entries()] == [entry.message for entry in plan.after]


def test_a_repeated_edit_is_recorded_once():
    """A policy without memory leads to no new record and no rewritten prefix."""
    story = Story(user("go"), say("a long answer " * 9), user("on"))
    story.edit(*plan_of(story, shortens(2)).edits)
    assert not plan_of(story, shortens(2))


@MANY
@given(history=histories(max_size=12), data=st.data())
def test_any_edits_of_a_policy_leave_a_legal_stable_view(history, data):
    story = Story(*history, profile=ANTHROPIC)
    for _ in range(3):
        result = data.draw(edits([row.id for row in story.rows], max_size=5))
        plan = make_plan(story.projection, story.frame(Budget(10**6, 0, 10**9, 9)), [says(*result)], ())
        if plan.edits:
            story.edit(*plan.edits)
        assert values(story.projection) == values(story.folded())
        assert [entry.message for entry in plan.after] == [entry.message for entry in story.projection.entries()]
        protected = [row for row in story.rows if row.message.role == "system" and row.message.has_content]
        shown = {entry.position: entry for entry in plan.after}
        assert all(shown[row.position].shrunk == () for row in protected)
        if any(entry.message.role != "system" for entry in plan.after):
            assert check(plan.after, ANTHROPIC) == []


# ---------------------------------------------------------------------------------------------------------- the floor


def results(count: int, size: int = 400) -> Story:
    story = Story(user("go"))
    for n in range(count):
        story.say(call(f"c{n}"), answer(f"c{n}", text_of(size, n)))
    return story


def test_the_floor_does_not_run_without_excess():
    def never(view: View) -> Iterator[Edit]:
        raise AssertionError("not needed")
        yield

    assert not plan_of(results(3), floor=[Stage(never)], budget=Budget(10_000, 0, 10**9, 9))


def test_the_floor_does_not_run_in_a_draft():
    """The plan is made again with the answer to the request, which may make the view fit."""
    request = NeedsSummary(SummaryRequest("test", (user("u"),), 100), lambda answer: ())
    climbed: list[View] = []

    def watches(view: View) -> tuple[Edit, ...]:
        climbed.append(view)
        return ()

    story, floor = results(4), [Stage(watches)]
    arguments = (story.projection, story.frame(Budget(1_100, 100, 10**6, 8)), [says(request)], floor)
    plan = make_plan(*arguments, is_draft=lambda plan: bool(plan.requests))
    assert plan.is_tight
    assert plan.requests == (request.request,)
    assert not climbed
    with pytest.raises(DoesNotFit):
        make_plan(*arguments)
    assert climbed


def test_a_stage_sees_the_target_and_a_last_resort_the_budget():
    story = results(4)
    seen: list[tuple[int, int, int]] = []

    def watches(view: View) -> tuple[Edit, ...]:
        seen.append((view.budget.usable, view.budget.usable_bytes, view.budget.max_images))
        return ()

    budget = Budget(1_100, 100, 10**6, 8)
    with pytest.raises(DoesNotFit):
        plan_of(story, floor=[Stage(watches), Stage(watches, is_last_resort=True)], budget=budget)
    assert seen == [(750, 10**6, 8), (1_000, 10**6, 8)]


def test_stages_run_until_the_target_and_last_resorts_until_it_fits():
    story, climbed = results(9, 100), []

    def clears(position: int):
        def policy(view: View) -> Iterator[Edit]:
            climbed.append(position)
            yield from shortens(position)(view)

        return policy

    budget = Budget(950, 0, 10**9, 9)  # the view has 9 x (104 + 6) + 5 = 995 tokens, the target is 712
    stages = [Stage(clears(3)), Stage(clears(5), is_last_resort=True), *(Stage(clears(n)) for n in (7, 9, 11, 13))]
    plan = plan_of(story, floor=stages, budget=budget)
    assert climbed == [3, 7, 9]
    assert plan.after.tokens == 995 - 3 * 98 == 701


def test_a_stage_that_does_not_shrink_is_skipped():
    story = results(3)
    budget = Budget(1_000, 0, 10**9, 9)
    grows = shortens(3, "longer " * 900)
    same = shortens(3, text_of(400, 0))
    plan = plan_of(story, floor=[Stage(grows), Stage(same), Stage(shortens(5)), Stage(shortens(7))], budget=budget)
    assert [edit.target for edit in plan.edits] == [Target(story.id(5)), Target(story.id(7))]


def test_a_stage_that_trades_one_excess_for_another_is_skipped():
    """Fewer bytes for more images are no progress if both are in excess."""
    story = Story(user("go"), say("x" * 3_000), Message("user", (PIXEL, PIXEL, PIXEL)), user("on"))
    budget = Budget(10**6, 0, 2_000, 2)

    def swaps(view: View) -> Iterator[Edit]:
        yield Replace(Target(story.id(2)), (PIXEL, PIXEL))

    with pytest.raises(DoesNotFit):
        plan_of(story, floor=[Stage(swaps)], budget=budget)
    plan = plan_of(story, floor=[Stage(swaps), *FLOOR], budget=budget)
    assert measure_excess(plan.after) == Excess()
    assert Target(story.id(2)) not in [edit.target for edit in plan.edits if edit.content == (PIXEL, PIXEL)]


@pytest.mark.parametrize(
    ("budget", "needed", "usable", "unit"),
    [
        (Budget(1_000, 100, 10**9, 9), 2_004, 900, "tokens"),
        (Budget(1_000, 100, 10**9, 9, overhead=50, scale=2.0), 4_108, 900, "tokens"),
        (Budget(4_000, 100, 10**9, 9, overhead=50, scale=4.0), 8_216, 3_900, "tokens"),
        # A new message is not scaled by a ratio below 1, and the counter may be too low for it.
        (Budget(1_000, 100, 10**9, 9, overhead=50, scale=0.25, unmeasured=2_004), 2_017, 900, "tokens"),
        (Budget(2_100, 0, 10**9, 9, doubt=0.1, unmeasured=10**9), 2_227, 2_100, "tokens"),
        (Budget(10**6, 0, 5_000, 9, overhead_bytes=70), 8_051 + 70, 5_000, "bytes"),
    ],
)
def test_does_not_fit_names_needed_and_usable_size(budget, needed, usable, unit):
    story = Story(user("x" * 8_000))
    assert story.view().bytes == 8_051
    with pytest.raises(DoesNotFit) as caught:
        plan_of(story, floor=FLOOR, budget=budget)
    assert (caught.value.needed, caught.value.usable, caught.value.unit) == (needed, usable, unit)
    assert f"{needed:,} {unit}" in str(caught.value)


def test_too_many_images_are_reported_as_images():
    story = Story(Message("user", (PIXEL,) * 5))
    with pytest.raises(DoesNotFit) as caught:
        plan_of(story, floor=FLOOR, budget=Budget(10**6, 0, 10**9, 3))
    assert (caught.value.needed, caught.value.usable, caught.value.unit) == (5, 3, "images")


def test_without_a_floor_the_excess_stays():
    plan = plan_of(results(3), budget=Budget(100, 0, 10**9, 9))
    assert measure_excess(plan.after).tokens > 1_000


@pytest.mark.parametrize(
    "shape", ["results", *(pytest.param(shape, marks=pytest.mark.slow) for shape in ("talk", "mixed", "tiny"))]
)
def test_the_floor_leaves_room_for_further_messages(shape):
    """Trigger and target differ. Otherwise the floor frees just enough once older results are placeholders, and
    rewrites the prefix on almost every turn.
    """
    message, given, turns = {
        "results": (5, 400, 150),
        "talk": (300, 60, 150),
        "mixed": (300, 400, 150),
        "tiny": (40, 10, 300),
    }[shape]
    budget = Budget(8_000, 0, 10**9, 9)
    story = Story(user("go"))
    edited: list[int] = []
    for n in range(turns):
        story.say(
            assistant(text_of(message, n), ToolCall(f"c{n}", "t", f'{{"n":{n}}}')), answer(f"c{n}", text_of(given, n))
        )
        plan = plan_of(story, floor=FLOOR, budget=budget)
        if plan.edits:
            story.edit(*plan.edits)
            edited.append(story.turn)
            assert measure_excess(plan.after) == Excess()
            assert plan.after.tokens <= 8_000 * NEAR
    assert len(edited) > 2
    assert min(b - a for a, b in pairwise(edited)) >= 8_000 * (1 - NEAR) // (message + given + 20)
