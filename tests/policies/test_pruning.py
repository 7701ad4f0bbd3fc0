"""Pruning of old tool outputs: the scenarios of the document, then windows, settings and invariants.

A result has 4 tokens more than its text, so `result(10_000)` has exactly 10,000.
"""

from __future__ import annotations

import pytest
from conversation.shells import opened, texts
from core.story import ANTHROPIC, OPENAI, Story
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.core.call_context import Budget
from foveate.core.edits import Hide, Pin, Replace, Restore, Span, Summarize, Target
from foveate.core.messages import Media, Message, Text, ToolResult
from foveate.core.planner import make_plan
from foveate.core.sizes import MESSAGE_TOKENS, estimate, tokens_of
from foveate.errors import BadSetting
from foveate.formats.openai import OpenAIChat
from foveate.policies import filter_tool_results, load_policies, prune_tool_outputs
from foveate.policies.pruning import MINIMUM, PART_MAX, PROTECT
from foveate.testing import answer, call, calls, chat, say, system, text_of, user
from foveate.testing.strategies import histories

CLEARED = "[Old tool result content cleared]"
AS_DOCUMENTED = prune_tool_outputs(placeholder=CLEARED)
PLENTY = Budget(10**9, 0, 10**12, 10**6)
MANY = settings(max_examples=settings.default.max_examples * 2)


def result(call_id: str, tokens: int, **options: object) -> Message:
    """Return a result of so many tokens."""
    return answer(call_id, text_of(tokens - 4), **options)


def run(*sizes: int, tool: str = "grep") -> list[Message]:
    """Return a user message, a call with its result for each size, oldest first, and another user message."""
    messages: list[Message] = [user("u")]
    for n, tokens in enumerate(sizes):
        messages += [call(f"c{n}", tool), result(f"c{n}", tokens, name=tool)]
    return [*messages, user("u")]


def cleared_numbers(story: Story, policy: object = AS_DOCUMENTED) -> list[int]:
    """Apply the plan. Return the numbers of the cleared results, from 0."""
    plan = make_plan(story.projection, story.frame(PLENTY), [policy], ())
    if plan.edits:
        story.edit(*plan.edits)
    positions = [row.position for row in story.rows if row.message.role == "tool"]
    named_messages = {edit.target.message for edit in plan.edits}
    return [n for n, position in enumerate(positions) if story.id(position) in named_messages]


def prune_run(*messages: Message, policy: object = AS_DOCUMENTED) -> list[int]:
    return cleared_numbers(Story(*messages), policy)


# -------------------------------------------------------------------------------------------- scenarios of the document


def test_2_4_03_tokens_are_a_quarter_of_the_characters():
    lengths = [0, 1, 4, 5, 199_996, 200_000, 400_000]
    assert [min(estimate("x" * length), PART_MAX) for length in lengths] == [0, 1, 1, 2, 49_999, 50_000, 50_000]
    wire = {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x" * 8}]}
    (message,) = OpenAIChat().parse(wire)
    assert tokens_of(message) == MESSAGE_TOKENS + 2


def test_2_4_04_the_older_of_two_outputs_is_cleared():
    conversation = opened(policy=(AS_DOCUMENTED,), window=1_000_000)
    messages = chat(
        user("u"),
        call("a", "grep", pattern="x"),
        result("a", 50_000, state="error"),
        user("u"),
        call("b"),
        result("b", 50_000),
        user("u"),
    )
    conversation.append(messages)
    view = conversation.prepare()
    assert [entry.position for entry in view if entry.shrunk] == [3]
    assert view.entries[2].message == answer("a", CLEARED, state="error")
    assert [entry.message for entry in view if not entry.shrunk] == [m for m in messages if m is not messages[2]]
    (receipt,) = conversation.journal.receipts()
    assert (receipt.policies, receipt.turn, receipt.tokens_saved) == (("prune",), view.turn, 50_000 - 13)
    assert (receipt.tokens_after, receipt.bytes_after) == (view.tokens, view.bytes)
    assert conversation.journal.records()[0].time > 0
    assert conversation.original("m3") == messages[2]


def test_2_4_05_outputs_inside_the_window_stay():
    assert prune_run(*run(10_000, 10_000, 10_000)) == []


def test_2_4_06_outputs_wait_until_the_minimum():
    assert prune_run(*run(15_000, 15_000, 15_000, 15_000)) == []
    assert prune_run(*run(*[15_000] * 6)) == [0, 1, 2]


def test_2_4_07_exactly_the_minimum_is_not_enough():
    only = prune_tool_outputs(placeholder=CLEARED, protect_counts="tool_outputs")
    assert prune_run(*run(20_000, 40_000), policy=only) == []
    assert prune_run(*run(20_001, 40_000), policy=only) == [0]
    assert prune_run(*run(20_001, 39_999), policy=only) == []  # the window ends in the older one, which is protected


def test_2_4_08_the_oldest_of_three_outputs_is_cleared():
    messages = chat(user("u"), calls("a", "b", "c"), *(result(id, 30_000) for id in "abc"), user("u"))
    assert prune_run(*messages) == [0]


def test_2_4_09_one_output_larger_than_the_window_is_protected():
    assert prune_run(*run(50_000)) == []
    assert prune_run(*run(200_000)) == []


def test_2_4_10_outputs_of_protected_tools_stay_uncounted():
    def said(first_tool: str) -> list[Message]:
        other = run(15_000, 45_000)
        return [user("u"), call("s", first_tool), result("s", 50_000), *other]

    assert prune_run(*said("skill")) == []
    assert prune_run(*said("grep")) == [0, 1]
    both = prune_tool_outputs(placeholder=CLEARED, protected_tools={"grep"})
    assert prune_run(*said("grep"), policy=both) == []
    assert prune_run(*said("skill"), policy=both) == [0]


def test_protected_tools_may_be_patterns():
    messages = [user("u"), call("s", "memory_read"), result("s", 50_000), *run(15_000, 45_000)]
    assert prune_run(*messages) == [0, 1]
    assert prune_run(*messages, policy=prune_tool_outputs(placeholder=CLEARED, protected_tools=["memory_*"])) == []
    assert prune_run(*messages, policy=prune_tool_outputs(placeholder=CLEARED, protected_tools=["memory?"])) == [0, 1]
    messages = [user("u"), call("s", "memory"), result("s", 50_000), *run(15_000, 45_000)]
    assert prune_run(*messages, policy=prune_tool_outputs(placeholder=CLEARED, protected_tools=["memory_*"])) == [0, 1]


def test_2_4_11_unfinished_outputs_are_never_cleared():
    messages = run(50_000, 50_000, 50_000)
    messages[2] = result("c0", 50_000, state="interrupted", name="grep")
    assert prune_run(*messages) == [1]
    dead = [user("u"), call("x"), *run(50_000)]
    assert prune_run(*dead) == []


@pytest.mark.parametrize(("spared", "gone"), [(True, []), (False, [0])])
def test_2_4_12_protect_current_turn_spares_the_current_turn(spared, gone):
    policy = prune_tool_outputs(placeholder=CLEARED, protect_current_turn=spared)
    messages = run(50_000, 50_000)[:-1]  # no new user input
    assert prune_run(*messages, policy=policy) == gone
    assert prune_run(*messages, user("u"), policy=policy) == [0]
    note = [*messages, Message("user", (Text(" "),))]  # an empty history
    assert prune_run(*note, policy=policy) == gone


def test_2_4_13_a_summary_is_never_cleared_or_counted():
    story = Story(*run(30_000, 30_000, 30_000))
    story.edit(Summarize(Span(story.id(4), story.id(5)), text_of(50_000)))
    assert cleared_numbers(story) == []  # 60,000 tokens of results: one protects the other
    story.say(*run(30_000)[1:])
    assert cleared_numbers(story) == [0]
    assert texts(story.view())[3] == text_of(50_000)


def test_2_4_14_pruning_twice_changes_nothing_the_second_time():
    conversation = opened(policy=(AS_DOCUMENTED,), window=1_000_000)
    conversation.append(run(50_000, 50_000, 50_000))
    first = texts(conversation.prepare())
    conversation.record(say("ok"))
    conversation.append(user("u"))
    assert texts(conversation.prepare())[: len(first)] == first
    assert len(conversation.journal.receipts()) == 1


# ----------------------------------------------------------------------------------------------------------- the window


def test_all_messages_fill_the_window_unless_only_outputs_count():
    messages = [*run(15_000, 15_000), say(text_of(40_000)), user("u")]
    assert prune_run(*messages) == [0, 1]
    assert prune_run(*messages, policy=prune_tool_outputs(protect_counts="tool_outputs")) == []


def test_the_message_at_the_edge_is_inside_the_window():
    messages = [*run(25_000)[:-1], user(text_of(988)), call("b"), result("b", 38_997), user("u")]
    assert sum(entry.tokens for entry in Story(*messages).view().entries[3:]) == 40_000
    assert prune_run(*messages) == [0]
    messages[3] = user(text_of(987))
    assert prune_run(*messages) == []  # one token less: the window ends in the older result


def test_no_message_counts_for_more_than_part_max():
    capped = prune_tool_outputs(placeholder=CLEARED, protect=1_000, minimum=600, part_max=500)
    assert prune_run(*run(9_000, 9_000, 9_000), policy=capped) == []  # 500 and 500 fill the window, 500 do not
    assert prune_run(*run(9_000, 9_000, 9_000, 9_000), policy=capped) == [0, 1]


def test_cleared_results_count_by_their_present_size():
    story = Story(*run(50_000, 50_000))
    assert cleared_numbers(story) == [0]
    story.say(*run(30_000)[1:])
    assert cleared_numbers(story) == []  # 30,000 and what is left of 50,000 fill the window
    story.say(*run(30_000)[1:])
    assert cleared_numbers(story) == [1]


# ---------------------------------------------------------------------------------------------------- untouched results


def test_an_output_no_longer_than_its_placeholder_stays():
    pixel = Media("image/png", "base64", "AAAA")
    policy = prune_tool_outputs(protect=10, minimum=0, placeholder=CLEARED)
    messages = [user("u"), call("a"), answer("a", "ok"), call("b"), answer("b", "x" * len(CLEARED)), call("c")]
    messages += [answer("c", "x" * (len(CLEARED) + 1)), call("d"), answer("d", "", pixel), user("u"), say("x" * 80)]
    assert prune_run(*messages, policy=policy) == [2, 3]


def test_pins_and_expanded_results_stay():
    story = Story(*run(25_000, 25_000, 25_000, 50_000))
    story.edit(Pin(Target(story.id(3))), Restore((Target(story.id(5)),)))
    assert cleared_numbers(story) == [2]
    story.say(say("ok"), user("u"))
    assert cleared_numbers(story) == [1]  # its call has ended


def test_replaced_results_are_skipped_but_not_omitted_images():
    story = Story(*run(30_000, 50_000))
    story.edit(Replace(Target(story.id(3)), (Text(text_of(30_000)),)))
    assert cleared_numbers(story) == []
    pixel = Media("image/png", "base64", "AAAA")
    story = Story(user("u"), call("a"), answer("a", text_of(30_000), pixel), *run(50_000))
    story.edit(Replace(Target(story.id(3), (0, 1)), (Text("[Media omitted]"),)))
    assert cleared_numbers(story) == [0]
    assert texts(story.view())[2] == CLEARED
    story.edit(Restore((Target(story.id(3)),)))
    assert story.projection.entries()[2].message == story.rows[2].message


def test_a_late_result_is_pruned_like_any_other():
    story = Story(user("u"), call("a"))
    story.say(result("a", 30_000), turn=2)
    story.say(*run(50_000)[1:])
    assert cleared_numbers(story) == [0]
    assert texts(story.view())[3] == f"[Result for call a of tool, which came late]\n{CLEARED}"


def test_only_tool_outputs_are_cleared():
    messages = [system(text_of(30_000)), user(text_of(30_000)), say(text_of(30_000)), call("a", x=text_of(30_000))]
    assert prune_run(*messages, answer("a"), *run(50_000)) == []


def test_the_default_placeholder_names_the_handle():
    conversation = opened(policy="prune", window=1_000_000, expand=True)
    conversation.append(run(50_000, 50_000))
    shown = texts(conversation.prepare())[2]
    assert shown.startswith("[Old tool result content cleared: ")
    assert shown.endswith('; expand("m3")]')
    assert conversation.expand("m3") == conversation.history()[2].message
    assert texts(conversation.prepare())[2] == text_of(49_996)


# ------------------------------------------------------------------------------------------------------------- settings


def test_the_defaults_are_those_of_the_document():
    assert (PROTECT, MINIMUM, PART_MAX) == (40_000, 20_000, 50_000)
    (policy,), floor = load_policies("prune")
    assert floor
    story = Story(*run(50_000, 50_000))
    assert [edit.target for edit in policy(story.view())] == [Target(story.id(3))]


@pytest.mark.parametrize("setting", ["protect", "minimum", "part_max"])
def test_negative_settings_are_refused(setting):
    with pytest.raises(BadSetting, match="0 or more"):
        prune_tool_outputs(**{setting: -1})


def test_zero_is_no_special_case():
    # An empty window still protects the newest message, in which it ends.
    everything = prune_tool_outputs(protect=0, minimum=0)
    assert prune_run(*run(100, 100, 100), policy=everything) == [0, 1, 2]
    assert prune_run(*run(100, 100, 100), policy=prune_tool_outputs(protect=0, minimum=300)) == []
    assert prune_run(*run(100, 100, 101), policy=prune_tool_outputs(protect=0, minimum=300)) == [0, 1, 2]


# ----------------------------------------------------------------------------------------------------------- invariants


def test_an_empty_result_stays():
    story = Story(calls("a", "b"), Message("tool", (ToolResult("a"),)))
    assert cleared_numbers(story, prune_tool_outputs(protect=0, minimum=0, placeholder="[c]")) == []


@MANY
@given(
    history=histories(),
    protect=st.integers(0, 3_000),
    minimum=st.integers(0, 800),
    profile=st.sampled_from([OPENAI, ANTHROPIC]),
)
def test_pruning_is_idempotent_and_spares_the_window(history, protect, minimum, profile):
    policy = prune_tool_outputs(protect=protect, minimum=minimum, placeholder="[c]")
    story = Story(*history, profile=profile)
    before = story.view()
    gone = cleared_numbers(story, policy)
    after = story.view()
    assert cleared_numbers(story, policy) == []
    assert after.tokens <= before.tokens
    assert len(after) == len(before)
    changed = {e.position for e in after if e.edits}
    assert len(changed) == len(gone)
    filled = 0
    for old, new in zip(reversed(before.entries), reversed(after.entries), strict=True):
        if filled < protect:
            assert new.message == old.message
        filled += old.tokens


@MANY
@given(history=histories(), keep=st.integers(0, 3), protect=st.integers(0, 500))
def test_policies_leave_cleared_results_alone(history, keep, protect):
    story = Story(*history)
    cleared_numbers(story, prune_tool_outputs(protect=protect, minimum=0))
    shrunk = {entry.position for entry in story.projection.entries() if entry.shrunk}
    plan = make_plan(story.projection, story.frame(PLENTY), [filter_tool_results(keep=keep)], ())
    assert shrunk.isdisjoint(story.where(edit.target.message for edit in plan.edits).values())


def test_hidden_results_do_not_count():
    story = Story(*run(30_000, 30_000, 30_000))
    story.edit(Hide(Span(story.id(4), story.id(7))))
    assert cleared_numbers(story) == []


# ---------------------------------------------------------------------------------------------------- windows as shares


def test_protect_may_be_a_share_of_the_usable_tokens():
    story = Story(*run(3_000, 3_000, 3_000, 3_000))
    policy = prune_tool_outputs(protect=0.1, minimum=0)
    old = {}
    for window in (20_000, 40_000, 100_000):
        plan = make_plan(story.projection, story.frame(Budget(window, 0, 10**12, 10**6)), [policy], ())
        old[window] = [edit.reason for edit in plan.edits]
    assert old == {
        20_000: ["older than the newest 2,000 tokens"] * 3,
        40_000: ["older than the newest 4,000 tokens"] * 2,
        100_000: [],
    }


@pytest.mark.parametrize(
    "shares", [{"protect": 1.0}, {"protect_reads": 2.5}, {"protect": float("nan")}, {"protect": -0.1}]
)
def test_a_share_of_one_or_more_is_refused(shares: dict):
    with pytest.raises(BadSetting, match="of prune_tool_outputs is"):
        prune_tool_outputs(**shares)
