"""Break-even of edits, and deferred edits, compared with a reference that remembers every call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from math import inf

import pytest
from core.story import ANTHROPIC, PLENTY, Story
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate.core.call_context import Budget, CallContext, Prices
from foveate.core.economy import break_even, flush_cost, is_cold, reasoning_cost, saving
from foveate.core.edits import Edit, Hide, Pin, Replace, Restore, Span, Summarize, Target
from foveate.core.messages import Media, Message, Reasoning, Text, ToolCall
from foveate.core.planner import CostlyPolicy, Policy
from foveate.core.summaries import NeedsSummary, SummaryRequest
from foveate.core.view import View
from foveate.errors import BadSetting
from foveate.policies import deferral
from foveate.policies.deferral import _key, _WaitingEdits, _Wanted, when_it_pays
from foveate.policies.pruning import prune_tool_outputs
from foveate.policies.recaps import recap_batches
from foveate.policies.tool_result_filter import filter_tool_results
from foveate.replay import replay
from foveate.testing import agent_run, answer, call, chat, say, text_of, user

PRICES = Prices()
WARM = CallContext(0, 1.0)
PIXEL = Media("image/png", "base64", "AAAA")


def result(call_id: str, tokens: int) -> Message:
    """Return a result of this many tokens."""
    return answer(call_id, text_of(tokens - 4))


def steps(*sizes: int) -> list[Message]:
    """Return a request, then a call and its result for each size. The result of call n has the position 2n + 1."""
    message = [user("u")]
    for n, tokens in enumerate(sizes, 1):
        message += [call(f"c{n}"), result(f"c{n}", tokens)]
    return message


def warm(story: Story, budget: Budget = PLENTY, call: CallContext = WARM) -> View:
    return replace(story.view(budget), call=call)


def clears(*positions: int, after: int = 0) -> Policy:
    """Return a policy that replaces the results at these positions by `[x]` (5 tokens), from the call `after` on."""

    def policy(view: View) -> Iterator[Edit]:
        for entry in view.entries:
            if entry.position in positions and not entry.shrunk and view.turn >= after:
                yield Replace(Target(entry.id), (Text("[x]"),), "clears", "wanted")

    return policy


def handles(view: View, edits: list[Edit]) -> list[str]:
    return [entry.handle for entry in view for edit in edits if entry.id == edit.target.message]


# ----------------------------------------------------------------------------------------------------------- arithmetic


def test_break_even_at_anthropic_is_11_5_times_tail_over_savings():
    assert break_even(1_000, 1_000, PRICES) == pytest.approx(11.5)
    assert break_even(10_000, 20_000, PRICES) == pytest.approx(23)
    assert break_even(1_000, 1_000, Prices(read=0.1, write=1.0)) == pytest.approx(9)


def test_an_edit_at_the_end_pays_at_once():
    assert break_even(1, 0, PRICES) == 0
    assert break_even(0, 0, PRICES) == 0
    assert break_even(0, 1, PRICES) == inf
    assert break_even(-5, 1, PRICES) == inf


def test_every_edit_is_free_if_writing_costs_no_more_than_reading():
    assert flush_cost(1_000, Prices(read=1.0, write=1.0)) == 0
    assert break_even(1, 1_000, Prices(read=1.0, write=0.5)) == 0
    assert (flush_cost(-3, PRICES), saving(1_000, PRICES)) == (0, 100)


def test_a_cache_is_cold_after_its_lifetime_and_at_first():
    view = Story(user("u")).view()
    ages = (None, 0.0, 300.0, 300.1)
    assert [is_cold(replace(view, call=CallContext(0, age)), PRICES) for age in ages] == [True, False, False, True]
    assert not is_cold(replace(view, call=CallContext(0, 300.1)), Prices(cache_seconds=3_600))


# -------------------------------------------------------------------------------------------------- when edits are made


def test_edits_are_made_when_the_waste_equals_their_cost():
    """m3 saves 995 tokens, 99.5 per call, and is due from the fourth call on. After it, 2,305 tokens were sent before,
    and 30 more with each call: 99.5 (T - 3) >= 1.15 (2,305 + 30 (T - 4)) holds from T = 44 on.
    """
    story, patient = Story(*steps(1_000, 2_294)), when_it_pays(clears(3, after=4))
    built = []
    for n in range(3, 50):
        story.say(call(f"c{n}"), result(f"c{n}", 24))
        built += [story.turn + 1] if patient(warm(story)) else []
    assert built == [44, 45, 46, 47, 48, 49, 50]


def test_the_price_of_long_requests_is_wasted_while_edits_could_avoid_it():
    """The view has 3,341 + 30 (T - 4) tokens, so it is above 3,500 from T = 10 on. Each long call costs 3,500 * 0.1 * 4
    more: 99.5 (T - 3) + 1,400 (T - 9) >= 1.15 (2,305 + 30 (T - 4)) holds from T = 11 on.
    """

    def first(long_from: int, **budget: float) -> int:
        story = Story(*steps(1_000, 2_294))
        patient = when_it_pays(clears(3, after=4), prices=Prices(long_from=long_from, long_factor=5.0))
        for n in range(3, 60):
            story.say(call(f"c{n}"), result(f"c{n}", 24))
            if patient(warm(story, replace(PLENTY, **budget))):
                break
        return story.turn + 1

    assert (first(3_500), first(0)) == (11, 44)
    assert first(3_800, overhead=300) == 11  # The limit is one for the whole request.
    assert first(3_500, scale=0.5) == 44  # The provider counts half of the tokens.
    assert first(2_000) == 44  # The requests would stay long.


def test_removing_new_messages_costs_nothing():
    """The end of the view is written in any case, so waiting gains nothing."""
    view = warm(Story(*steps(1_000, 9_000, 1_000)))
    assert [handles(view, when_it_pays(clears(at))(view)) for at in (7, 5, 3)] == [["m7"], ["m5"], []]


def test_edits_that_invalidate_reasoning_wait_longer():
    """Each of the 4 messages after m3 thinks 100 tokens: losing them costs 4 x 100 x 5 / 2 = 1,000 tokens."""

    def built(call: CallContext) -> int:
        story, patient = Story(*steps(1_000, 500), profile=ANTHROPIC), when_it_pays(clears(3, after=7))
        for n in range(3, 200):
            thought = Reasoning(text_of(100) if n < 7 else "", "c2ln", format="anthropic")
            story.say(Message("assistant", (thought, ToolCall(f"c{n}", "t"))), result(f"c{n}", 20))
            if patient(warm(story, call=call)):
                return n
        return 200

    free, bound = built(WARM), built(replace(WARM, binds_reasoning=True))
    assert 7 < free < bound < 200


def test_edits_behind_the_reasoning_do_not_pay_for_it():
    thought = Message("assistant", (Reasoning(text_of(9_000), "c2ln", format="anthropic"), Text("Well.")))
    story = Story(user("u"), thought, *steps(3_000, 40, 40)[1:], profile=ANTHROPIC)
    view = replace(warm(story), call=replace(WARM, binds_reasoning=True))
    assert reasoning_cost(9_000, PRICES) == 22_500
    edits = when_it_pays(clears(4))
    assert edits(view) == edits(warm(story))


def test_an_edit_without_savings_waits_until_it_is_free():
    view = warm(Story(*steps(5, 9_000, 10)))
    assert when_it_pays(clears(3))(view) == []
    assert len(when_it_pays(clears(3))(replace(view, call=CallContext(0, 301.0)))) == 1


def test_a_warm_prefix_is_not_rewritten_for_little():
    """F26: other systems rewrote 219,000 cached tokens to save a few thousand."""
    story = Story(*steps(3_000, *[10_000] * 20))
    view = warm(story, call=CallContext(0, 20.0))
    assert len(list(clears(3)(view))) == 1
    assert when_it_pays(clears(3))(view) == []
    assert handles(view, when_it_pays(clears(3))(replace(view, call=CallContext(0, 301.0)))) == ["m3"]
    assert handles(view, when_it_pays(clears(3), prices=Prices(cache_seconds=19))(view)) == ["m3"]


def test_edits_never_wait_forever():
    """F16: writing never pays at these prices, but the edits of an excess view do not wait."""
    dear = Prices(write=1e9)
    view = warm(Story(*steps(1_000, 1_000, 1_000, 100)), Budget(10_000, 0, 10**9, 10**6))
    assert len(when_it_pays(clears(3, 5, 7), prices=dear)(view)) == 0
    full = replace(view, budget=Budget(view.tokens - 1, 0, 10**9, 10**6))
    assert len(when_it_pays(clears(3), prices=dear)(full)) == 1
    fits = replace(view, budget=Budget(view.tokens, 0, 10**9, 10**6))
    assert len(when_it_pays(clears(3), prices=dear)(fits)) == 0
    assert len(when_it_pays(clears(3), prices=dear, threshold=0.999)(fits)) == 1


@pytest.mark.parametrize("budget", [Budget(10**6, 0, 10, 10**6), Budget(10**6, 0, 10**9, 0)], ids=["bytes", "images"])
def test_excess_bytes_and_images_never_wait(budget: Budget):
    story = Story(user("u"), call("a"), answer("a", text_of(2_000), PIXEL), *steps(9_000)[1:])
    assert len(when_it_pays(clears(3), prices=Prices(write=1e9))(warm(story, budget))) == 1
    assert when_it_pays(clears(3), prices=Prices(write=1e9))(warm(story)) == []


def test_pins_restores_and_summary_requests_never_wait():
    story = Story(*steps(1_000, 9_000, 10))
    wish = NeedsSummary(SummaryRequest("test", (user("u"),), 100), lambda answer: ())
    pin, shown = Pin(Target(story.id(2))), Restore((Target(story.id(3)),))
    soft = Replace(Target(story.id(3)), (Text("[x]"),))
    assert when_it_pays(lambda view: [pin, soft, wish, shown])(warm(story)) == [pin, wish, shown]


def test_deferral_needs_neither_clock_nor_state():
    """Called twice for one view, or for the same conversation folded again, it returns the same edits."""
    story, patient = Story(*steps(*[1_000] * 12)), when_it_pays(prune_tool_outputs(protect=3_000, minimum=0))
    view = warm(story)
    again = replace(view, entries=tuple(story.folded().entries()))
    assert patient(view) == patient(view) == patient(again) != []


# -------------------------------------------------------------------------------------------- against one who remembers


class Remembers:
    """A reference policy that keeps a sum from call to call."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.wasted = self.left = 0.0

    def __call__(self, view: View) -> list[Edit]:
        edits = list(self.policy(view))
        if not edits:
            return []
        sizes = {entry.id: entry.tokens for entry in view.entries}
        saved = sum(sizes[edit.target.message] - 4 - -(-len(edit.content[0].text) // 4) for edit in edits)
        self.wasted += 0.1 * saved
        first = min(entry.position for entry in view.entries for edit in edits if entry.id == edit.target.message)
        old = [entry for entry in view.entries if entry.stamp.turn < view.turn - 1 and entry.position >= first]
        self.left = 1.15 * max(0, sum(entry.tokens for entry in old) - saved) - self.wasted
        return edits if self.left <= 0 else []


@settings(max_examples=settings.default.max_examples * 2)
@given(
    st.lists(st.integers(10, 3_000), min_size=1, max_size=40),
    st.sampled_from((prune_tool_outputs(protect=2_000, minimum=0), filter_tool_results(keep=3))),
)
def test_edits_come_at_the_same_call_as_with_a_remembered_sum(sizes: list[int], policy: Policy):
    """If certainty would take many calls of the policy, it may be a little early or late."""
    story, patient, remembers = Story(user("u")), when_it_pays(policy), Remembers(policy)
    for n, tokens in enumerate(sizes):
        story.say(call(f"c{n}"), result(f"c{n}", tokens))
        view = warm(story)
        built, would = patient(view), remembers(view)
        assert built == would or abs(remembers.left) < 0.1 * remembers.wasted
        if built:
            story.edit(*built)
            remembers.wasted = 0.0


def test_an_edit_counts_from_the_first_call_at_which_it_was_due():
    """m7 was due when it was new, but not alone: for m3, which saves nothing, the tokens between would be written."""
    story, patient, remembers = Story(*steps(5, 9_000)), when_it_pays(clears(3, 7)), Remembers(clears(3, 7))
    built, would = [], []
    for n, tokens in enumerate([1_000, *[10] * 150]):
        story.say(call(f"d{n}"), result(f"d{n}", tokens))
        built.append(bool(patient(warm(story))))
        would.append(bool(remembers(warm(story))))
    assert built == would
    assert built.index(True) > 80


def test_an_expanded_message_counts_from_its_expansion():
    """Its earlier turns were not wasted, because it was small then. The policy itself does not consider that."""
    sizes = [1_000, *[30] * 60]
    story, untouched = Story(*steps(*sizes)), Story(*steps(*sizes))
    story.edit(Replace(Target(story.id(3)), (Text("[x]"),)), turn=10)
    story.edit(Restore((Target(story.id(3)),)), turn=60)
    assert len(list(clears(3)(warm(story)))) == 1
    assert when_it_pays(clears(3))(warm(story)) == []
    assert len(when_it_pays(clears(3))(warm(untouched))) == 1


def noting(turns: list[int]) -> Policy:
    """Return a policy that prunes, and adds the turn of each view that it is asked about to a list."""
    prune = prune_tool_outputs(protect=4_000, minimum=0)

    def policy(view: View) -> Iterator[Edit]:
        turns.append(view.turn)
        yield from prune(view)

    return policy


def test_a_policy_runs_for_few_earlier_calls():
    turns: list[int] = []
    most = 0
    story, patient = Story(user("u")), when_it_pays(noting(turns))
    for n in range(250):
        story.say(call(f"c{n}"), result(f"c{n}", 100 + n % 7 * 50))
        turns.clear()
        if built := patient(warm(story)):
            story.edit(*built)
        assert turns[0] == story.turn + 1
        most = max(most, len(turns))
    assert len(story.records) > 4
    assert 2 < most <= 11


def test_conversations_that_share_a_policy_keep_their_own_earlier_calls():
    def turns_asked_about(stories: list[Story]) -> list[int]:
        turns: list[int] = []
        patient = when_it_pays(noting(turns), patience=3)
        for n in range(120):
            for story in stories:
                story.say(call(f"c{n}"), result(f"c{n}", 100 + n % 7 * 50))
                if built := patient(warm(story)):
                    story.edit(*built)
        return turns

    alone = turns_asked_about([Story(user("u"))])
    together = turns_asked_about([Story(user("u")), Story(user("u"))])
    assert sorted(together) == sorted(2 * alone)


# -------------------------------------------------------------------------------------------------- many kinds of edits


def saves(built: Callable[[Story], Edit], *messages: Message) -> int:
    """Return the estimated savings of an edit."""
    story = Story(*messages, *steps(5_000, 10)[1:])
    edit = built(story)
    return _WaitingEdits.measure(warm(story), [_Wanted(_key(edit), edit)], {}).total


def test_waiting_edits_are_measured_once_while_the_view_grows(monkeypatch: pytest.MonkeyPatch):
    story, measured = Story(*steps(5_000, 10)), list[str]()
    measure = deferral._measure
    monkeypatch.setattr(deferral, "_measure", lambda view, key, edit: measured.append(key) or measure(view, key, edit))
    edits = [Hide(Target(story.id(position)), "test") for position in (3, 5)]
    policy, view = when_it_pays(lambda view: edits), warm(story)
    policy(view)
    assert len(measured) == 2
    policy(replace(view, turn=view.turn + 1))
    assert len(measured) == 2


def test_the_savings_of_an_edit_are_its_effect_on_the_view():
    message = chat(user("u"), call("a"), answer("a", text_of(400), PIXEL), say(text_of(100)))

    def at(position: int, *path: int) -> Callable[[Story], Target]:
        return lambda story: Target(story.id(position), path)

    def whole(story: Story) -> Span:
        return Span(story.id(2), story.id(4))

    note = (Text("x" * 40),)
    call_tokens = 4 + 2  # `tool {}`
    assert saves(lambda s: Replace(at(3)(s), note), *message) == 400 + 1_600 - 10
    assert saves(lambda s: Replace(at(3, 0, 1)(s), note), *message) == 1_600 - 10
    assert saves(lambda s: Replace(at(4, 0)(s), note), *message) == 100 - 10
    assert saves(lambda s: Hide(at(3, 0, 0)(s)), *message) == 400
    assert saves(lambda s: Hide(at(4)(s)), *message) == 104
    assert saves(lambda s: Hide(whole(s)), *message) == call_tokens + 2_004 + 104
    assert saves(lambda s: Summarize(whole(s), "x" * 40), *message) == call_tokens + 2_004 + 104 - 14
    kept = lambda s: Summarize(whole(s), "x" * 40, keep=(s.id(3),))  # noqa: E731
    assert saves(kept, *message) == call_tokens + 104 - 14


def test_an_edit_of_an_unknown_place_saves_nothing():
    story = Story(*steps(1_000, 9_000))
    nowhere = [Replace(Target("nobody"), ()), Hide(Span("no", "body"))]
    odd = [*nowhere, Hide(Target(story.id(3), (7, 7)))]
    assert when_it_pays(lambda view: nowhere)(warm(story)) == nowhere  # The planner drops them, as always.
    assert when_it_pays(lambda view: odd)(warm(story)) == []
    assert when_it_pays(lambda view: [*odd, *clears(5)(view)])(warm(story)) == [*odd, *clears(5)(warm(story))]


def test_recaps_are_deferred():
    messages = [
        message for n in range(12) for message in (user(f"Step {n}."), say(f"recap - step {n}\n{text_of(150, n)}"))
    ]
    story = Story(*messages, user("Go on."))
    recap = recap_batches(keep_first_user=True)
    wanted, built = list(recap(warm(story))), when_it_pays(recap)(warm(story))
    assert len(wanted) > 8
    assert built in ([], wanted)
    assert when_it_pays(recap, prices=Prices(write=1e9))(warm(story)) == []


# ----------------------------------------------------------------------------------------------------- several policies


def test_several_policies_wait_together_and_the_first_wins():
    story = Story(*steps(1_000, 1_000, 100))
    other = lambda view: [Replace(Target(story.id(p)), (Text("[y]"),), "other") for p in (3, 5)]  # noqa: E731
    view = replace(warm(story), call=CallContext(0, None))
    edits = when_it_pays([clears(3), other])(view)
    assert [(edit.policy, edit.target.message) for edit in edits] == [("clears", story.id(3)), ("other", story.id(5))]


@pytest.mark.parametrize(("idle", "written"), [(None, ["m7"]), (1.0, ["m3", "m5", "m7"])])
def test_no_text_is_written_for_a_message_that_a_summary_replaces_at_once(idle: float | None, written: list[str]):
    """Of a list that is taken over, most superseded results are folded in the same plan."""
    story, asked = Story(*steps(1_000, 1_000, 1_000)), list[str]()

    def write(view: View, taken: Set[str]) -> Iterator[Edit]:
        for entry in view.entries:
            if entry.is_result and entry.id not in taken:
                asked.append(entry.handle)
                yield Replace(Target(entry.id), (Text("[x]"),), "writes")

    fold = lambda view: [Summarize(Span(story.id(2), story.id(5)), "In short.", "folds")]  # noqa: E731
    policy = when_it_pays([CostlyPolicy(write), fold], prices=Prices(write=1e9))
    edits = policy(replace(warm(story), call=CallContext(0, idle)))
    assert asked[:3] == written
    assert idle or [edit.policy for edit in edits] == ["writes", "folds"]


def test_edits_that_pay_take_the_others_along():
    """One of them rewrites the prefix from m3 on; the other one costs nothing more."""
    story = Story(*steps(4_000, 300, *[40] * 30))
    view = warm(story)
    assert len(when_it_pays(clears(3))(view)) == 1
    late = clears(5, after=view.turn)
    assert when_it_pays(late)(view) == []
    assert handles(view, when_it_pays([clears(3), late])(view)) == ["m3", "m5"]


# ---------------------------------------------------------------------------------------------------- settings and runs


@pytest.mark.parametrize("wrong", [0, -1, 1.1])
def test_an_invalid_threshold_is_refused(wrong: float):
    with pytest.raises(BadSetting, match="threshold of when_it_pays is"):
        when_it_pays(clears(3), threshold=wrong)


def test_flags_of_policies_hold_for_the_deferred_policy():
    both = when_it_pays([clears(3), filter_tool_results(keep=7)])
    assert (both.tool_results_keep, both.__name__) == (7, "when_it_pays")
    assert (both.needs_summarizer, both.optional) == (False, False)


def test_a_sliding_limit_moves_in_batches():
    """F34: "keep the last ten" rewrote a part of the prefix before every call and cost more than no policy."""
    run = agent_run(100, seed=4)
    slides, waits = (
        replay(run, policy=(policy,)).row
        for policy in (filter_tool_results(keep=10), when_it_pays(filter_tool_results(keep=10)))
    )
    assert slides.prefix_rewrites > 60
    assert waits.prefix_rewrites < 20
    assert waits.cost < 0.8 * slides.cost
    assert waits.lost_messages == waits.illegal_views == 0


# --------------------------------------------------------------------------------------------------- patience and parts


def first_made(policy: Policy, calls: int = 160) -> tuple[int, list[str]]:
    """Return the call of the first edits, and these edits. Each call adds 24 tokens."""
    story = Story(*steps(1_000, 2_294))
    for n in range(3, calls):
        story.say(call(f"c{n}"), result(f"c{n}", 24))
        view = warm(story)
        if edits := list(policy(view)):
            return story.turn + 1, handles(view, edits)
    return 0, []


def test_patience_multiplies_the_cost_to_wait_for():
    """The model may request removed content again, which also costs. As above, with 2 x 1.15: 99.5 (T - 3) >= 2.3
    (2,305 + 30 (T - 4)) holds from T = 175 on; with 0.5 x 1.15 from T = 19 on.
    """
    due = clears(3, after=4)
    assert [first_made(when_it_pays(due, patience=patience), 200)[0] for patience in (0.5, 1.0, 2.0)] == [19, 44, 175]
    assert first_made(when_it_pays(due, patience=0))[0] == 4
    with pytest.raises(BadSetting, match="patience"):
        when_it_pays(due, patience=-1)


def test_partly_edits_near_the_end_go_first():
    """20,000 tokens follow result 3; few tokens follow the results 9 and 11."""
    message = steps(300, 20_000, 20, 2_000, 2_000)
    wanted = clears(3, 9, 11)
    whole, partly = [], []
    for policy, built in ((when_it_pays(wanted), whole), (when_it_pays(wanted, partly=True), partly)):
        story = Story(*message)
        for n in range(6, 12):
            story.say(call(f"c{n}"), result(f"c{n}", 24))
            built.append(handles(warm(story), list(policy(warm(story)))))
    assert whole != partly
    assert next(filter(None, partly)) in (["m9", "m11"], ["m11"])
    assert next(filter(None, whole), ["m3", "m9", "m11"]) == ["m3", "m9", "m11"]
