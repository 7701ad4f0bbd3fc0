"""Pins by tool name: the newest list of a tool stays word for word."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from conversation.shells import opened, refusals, texts
from core.story import ANTHROPIC, OPENAI, Story
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import Conversation
from foveate.core.call_context import Budget
from foveate.core.checker import check
from foveate.core.edits import Pin, Summarize, Target, Unpin
from foveate.core.messages import Media, Message, Text, ToolCall, assistant
from foveate.core.planner import Policy, make_plan
from foveate.core.view import PinnedPart
from foveate.errors import BadSetting, DoesNotFit
from foveate.policies import FLOOR
from foveate.policies.checkpoints import checkpoint
from foveate.policies.compaction import compact_on_overflow
from foveate.policies.floor import clear_newest
from foveate.policies.pins import pin_newest
from foveate.policies.pruning import prune_tool_outputs
from foveate.policies.recaps import recap_batches
from foveate.policies.tool_result_filter import filter_tool_results
from foveate.testing import answer, call, calls, say, system, text_of, user
from foveate.testing.strategies import histories

PLENTY = Budget(10**9, 0, 10**12, 10**6)
TODO = pin_newest(["todo_write"])


def todo(n: int, state: str = "ok") -> list[Message]:
    """Return the call in which the agent writes its list, and its answer."""
    written = call(f"t{n}", "todo_write", todos=[f"step {i}" for i in range(n)])
    return [written, answer(f"t{n}", f"The list has {n} steps.", state=state, name="todo_write")]


def pinned(story: Story, policy: Policy = TODO) -> list[tuple[int, tuple[PinnedPart, ...]]]:
    """Return the pins after this policy, by position."""
    plan = make_plan(story.projection, story.frame(PLENTY), [policy], ())
    if plan.edits:
        story.edit(*plan.edits)
    return [(entry.position, entry.pins) for entry in story.projection.entries() if entry.pins]


def by_policy(call_position: int, index: int = 0) -> list[tuple[int, tuple[PinnedPart, ...]]]:
    return [(call_position, (PinnedPart((index,), "pins"),)), (call_position + 1, (PinnedPart((), "pins"),))]


# -------------------------------------------------------------------------------------------------------- the mechanism


def test_only_the_newest_result_of_a_tool_is_pinned():
    story = Story(user("go"), *todo(1))
    assert pinned(story) == by_policy(2)
    story.say(say("ok"), *todo(2))
    assert pinned(story) == by_policy(5)
    count = len(story.records)
    assert (pinned(story), len(story.records)) == (by_policy(5), count)
    assert {edit.policy for record in story.records for edit in record.edits} == {"pins"}


def test_only_the_writing_part_of_parallel_calls_is_pinned():
    story = Story(user("go"), calls("a", call("t", "todo_write", todos=[]), text="Both."), answer("a"), answer("t"))
    assert pinned(story) == [(2, (PinnedPart((2,), "pins"),)), (4, (PinnedPart((), "pins"),))]


def test_each_tool_has_its_own_newest_results():
    story = Story(user("go"), *todo(1), call("p", "plan"), answer("p", "first A, then B"), *todo(2), *todo(3))
    assert [position for position, _ in pinned(story, pin_newest({"todo_write", "plan"}, keep=2))] == [
        4,
        5,
        6,
        7,
        8,
        9,
    ]


def test_a_failed_result_is_not_pinned():
    story = Story(user("go"), *todo(1), *todo(2, state="error"), *todo(3, state="interrupted"))
    assert pinned(story) == by_policy(2)


def test_pins_by_hand_do_not_change():
    story = Story(user("go"), *todo(1))
    story.edit(Pin(Target(story.id(3))), Pin(Target(story.id(1))))
    by_hand = [(1, (PinnedPart(),)), (3, (PinnedPart(),))]
    assert pinned(story) == [by_hand[0], by_policy(2)[0], by_hand[1]]
    story.say(*todo(2))
    assert pinned(story) == [*by_hand, *by_policy(4)]


def test_a_part_pinned_by_hand_survives_unpinning():
    story = Story(user("go"), *todo(1))
    pinned(story)
    story.edit(Pin(Target(story.id(3), (0,))))
    story.say(*todo(2))
    assert pinned(story) == [(3, (PinnedPart((0,)),)), *by_policy(4)]


def test_the_newest_result_is_pinned_again_after_an_unpin():
    story = Story(user("go"), *todo(1))
    pinned(story)
    story.edit(Unpin(Target(story.id(3))))
    assert pinned(story) == by_policy(2)


@pytest.mark.parametrize("tools", [[], "todo_write", [""], ()])
def test_tools_must_be_a_list_of_names(tools):
    with pytest.raises(BadSetting, match="list of tool names"):
        pin_newest(tools)


def test_keeping_none_is_refused():
    with pytest.raises(BadSetting, match="keep of pin_newest is 0"):
        pin_newest(["a"], keep=0)


# -------------------------------------------------------------------------------------------- pins survive all policies

RULES = "Never delete a test. Answer in Polish. Mode: read-only. 絶対に。"
LIST = "1. read the log  2. mend the parser  3. run the tests"
EVERY: dict[str, Callable[[], Sequence[Policy]]] = {
    "checkpoint": lambda: [checkpoint(trigger_at=20, keep_recent=5)],
    "compact": lambda: [compact_on_overflow()],
    "prune": lambda: [prune_tool_outputs(protect=100, minimum=0)],
    "filter": lambda: [filter_tool_results(keep=1, max_multimodal=0)],
    "recap": lambda: [recap_batches(min_preserved_assistant_messages=1, batch_size=1)],
    "floor": list,
    "all": lambda: [
        prune_tool_outputs(protect=100, minimum=0),
        filter_tool_results(keep=1),
        recap_batches(min_preserved_assistant_messages=1, batch_size=1),
        checkpoint(trigger_at=20, keep_recent=5),
        compact_on_overflow(),
    ],
}


def long_run(name: str, provider: str, *, window: int = 3_000) -> Conversation:
    """Return a run with pinned rules, a list and much work, and a summary that forgets everything."""
    policies = [TODO, *EVERY[name]()]
    chat = opened(policy=policies, provider=provider, window=window, reserve=100, summarizer=lambda _: "All went well.")
    chat.append([system("You mend parsers."), user(RULES), say("recap - understood\nI will.")])
    chat.pin("m2")
    tell = [call("t", "todo_write", todos=LIST), answer("t", f"Noted: {LIST}", name="todo_write")]
    for message in [*tell, *(m for n in range(30) for m in step(n))]:
        if message.role == "assistant":
            chat.prepare()
            chat.record(message)
        else:
            chat.append(message)
    return chat


def step(n: int) -> list[Message]:
    work = [call(f"c{n}", "run", n=n), answer(f"c{n}", text_of(150, n))]
    return [user(f"Go on with {n}."), *work, say(f"recap - did {n}\n{text_of(30, n)}")]


@pytest.mark.parametrize("provider", [pytest.param("openai", marks=pytest.mark.slow), "anthropic"])
@pytest.mark.parametrize("name", list(EVERY))
def test_pinned_rules_and_the_list_stay_word_for_word_under(name, provider):
    """F18, F22, F24."""
    chat = long_run(name, provider)
    view = chat.prepare()
    shown = {entry.position: entry for entry in view if entry.kind == "message"}
    assert shown[2].message == user(RULES)
    assert shown[5].message.text == f"Noted: {LIST}"
    assert shown[4].message.calls[0].arguments == json.dumps({"todos": LIST}, separators=(",", ":"))
    assert sum(entry.tokens for entry in view) < sum(row.stamp.tokens for row in chat.history()) / 2
    assert refusals(chat, view) == []
    for receipt in chat.journal.receipts():
        assert all(entry.message == user(RULES) for entry in chat.as_of(receipt.turn) if entry.position == 2)


def test_a_new_list_replaces_the_pinned_one():
    """F22."""
    chat = long_run("all", "openai")
    chat.append(todo(7))
    for message in (m for n in range(30, 45) for m in step(n)):
        chat.append(message)
        chat.prepare()
    view = chat.prepare()
    shown = "\n".join([*texts(view), *(one.arguments for entry in view for one in entry.message.calls)])
    assert "The list has 7 steps." in shown
    assert "step 6" in shown
    assert LIST not in shown


def test_pins_that_do_not_fit_raise_an_error():
    """F18."""
    chat = opened(policy=[TODO], window=1_100, reserve=510)
    chat.append([user(text_of(550)), say("I will."), user("Go.")])
    chat.pin("m1")
    chat.append(user("Go on, " * 20))
    with pytest.raises(DoesNotFit, match="pins"):
        chat.prepare()
    chat.unpin("m1")
    assert chat.prepare().tokens <= 590


# -------------------------------------------------------------------------------------------------------- pins on parts


def test_the_floor_shrinks_only_unpinned_parts():
    picture = Media("image/png", "base64", "A" * 4_000)
    long = assistant("x" * 9_000, ToolCall("a", "write", '{"text":"%s"}' % ("y" * 9_000)))
    chat = opened(policy="none", window=7_000, reserve=100)
    chat.append([Message("user", (Text("two"), picture, picture)), long, answer("a", "z" * 9_000), user("go")])
    chat.pin("m1.3")
    chat.pin("m2.1")
    view = chat.prepare()
    entries = {entry.position: entry.message for entry in view if entry.kind == "message"}
    assert entries[2].text == "x" * 9_000
    assert len(entries[2].calls[0].arguments) < 1_000
    assert len(entries[3].text) < 1_000
    assert entries[1].parts[2] == picture
    few = Budget(10**6, 0, 10**9, 1)
    story = Story(Message("user", (Text("two"), picture, picture)), say("ok"), user("go"))
    story.edit(Pin(Target(story.id(1), (2,))))
    plan = make_plan(story.projection, story.frame(few), [], FLOOR)
    assert plan.after.entries[0].message.parts[2] == picture
    assert plan.after.images == 1


def test_no_stage_and_no_filter_edits_a_pin():
    """An edit that is refused counts as freed, and too little else goes."""
    picture = Media("image/png", "base64", "A" * 4_000)
    many = json.dumps({"rows": list(range(2_000)), "text": "y" * 9_000})
    story = Story(
        Message("user", (Text("two"), picture, picture)),
        assistant("x" * 9_000, ToolCall("a", "write", many)),
        answer("a", "z" * 9_000),
        user("w" * 9_000, picture),
        say("v" * 9_000),
        user("go", picture),
    )
    pins = [(1, (2,)), (2, (0,)), (2, (1,)), (3, (0, 0)), (4, (0,)), (5, (0,))]
    story.edit(*(Pin(Target(story.id(position), path)) for position, path in pins))
    view = story.view(Budget(100, 0, 1_000, 0))
    policies = [*(rung.free for rung in FLOOR), filter_tool_results(keep=0, max_multimodal=0)]
    summarizer = [edit for policy in policies for edit in policy(view) if not isinstance(edit, Summarize)]
    where = story.where(edit.target.message for edit in summarizer)
    assert {(where[edit.target.message], edit.target.path) for edit in summarizer} == {(1, (1,)), (4, (1,))}
    newest = Story(user("go"), assistant("", ToolCall("a", "write", many)), answer("a"))
    newest.edit(Pin(Target(newest.id(2), (0,))))
    assert list(clear_newest(newest.view(Budget(100, 0, 1_000, 0)))) == []


# ----------------------------------------------------------------------------------------------------------- invariants


@given(
    history=histories(),
    keep=st.integers(1, 3),
    tools=st.sets(st.sampled_from(["tool", "read_file", "grep", "edit", "run_tests", ""]), min_size=1),
    profile=st.sampled_from([OPENAI, ANTHROPIC]),
)
@settings(max_examples=settings.default.max_examples * 2)
def test_pinning_is_stable_and_changes_no_content(history, keep, tools, profile):
    named = {entry.tool for entry in Story(*history).view() if entry.tool} | tools - {""} or {"tool"}
    stepwise, policy = Story(profile=profile), pin_newest(named, keep)
    for message in [user("go"), *history]:
        stepwise.say(message)
        pinned(stepwise, policy)
    at_once = Story(user("go"), *history, profile=profile)
    plain = [entry.message for entry in at_once.view()]
    marks = pinned(at_once, policy)
    assert [entry.message for entry in at_once.view()] == plain
    assert check(at_once.view().entries, profile) == []
    assert pinned(stepwise, policy) == marks
    count = len(at_once.records)
    pinned(at_once, policy)
    assert len(at_once.records) == count
