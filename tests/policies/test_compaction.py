"""Compaction on overflow: the scenarios of the document, then faults known from other systems.

A message has 4 tokens more than its text, so `sized(user, 1_000)` has exactly 1,000.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from conversation.shells import opened, refusals, texts
from core.story import ANTHROPIC, OPENAI, Story
from hypothesis import given, settings
from hypothesis import strategies as st

import foveate
from foveate import DoesNotFit, StoreError, Usage
from foveate.core import summaries
from foveate.core.budget import occupied_tokens, overflows, usable_tokens
from foveate.core.call_context import Budget
from foveate.core.checker import check
from foveate.core.edits import Pin, Span, Summarize
from foveate.core.messages import Media, Message, Text
from foveate.core.sizes import tokens_of
from foveate.core.summaries import Answer, NeedsSummary, SummaryRequest
from foveate.core.view import View
from foveate.edits import Hide, Target, Task
from foveate.errors import BadSetting, CompactionFailed
from foveate.formats.openai import OpenAIChat
from foveate.open import grouped
from foveate.policies import compact_on_overflow, load_policies
from foveate.policies.summary_input import build_summary_input
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.summarizers import first_characters
from foveate.testing import agent_run, answer, call, calls, chat, say, system, text_of, thought, user
from foveate.testing.faults import Countdown, failing_store
from foveate.testing.strategies import histories
from foveate.testing.stubs import ScriptedSummarizer

AS_DOCUMENTED = compact_on_overflow(keep_recent=0, framing="{summary}", strict=True)
PLAIN = compact_on_overflow(keep_recent=0, framing="{summary}")
LARGE = {"window": 128_000, "reserve": 32_000}
SMALL = {"window": 11_000, "reserve": 1_000}
OVER = Budget(1_000_000, 0, 10**9, 10**6)
ALWAYS = 1e-9
"""A threshold that every view is above."""
MANY = settings(max_examples=settings.default.max_examples * 2)


def sized(make: Callable[[str], Message], tokens: int, seed: int = 0) -> Message:
    """Return a message of so many tokens."""
    return make(text_of(tokens - 4, seed))


def talk(count: int, tokens: int, *, first: int = 1) -> list[Message]:
    """Return `count` numbered messages of user and assistant in turns, with so many tokens each."""
    return [
        (user if number % 2 else say)(f"#{number} " + text_of(tokens - 4, number)[len(f"#{number} ") :])
        for number in range(first, first + count)
    ]


def edits_of(conversation: Any) -> list[Any]:
    return [edit for record in conversation.journal.records() for edit in record.edits]


def task_states(conversation: Any) -> list[tuple[str, int, str]]:
    return [(task.state, task.attempt, task.reason) for task in edits_of(conversation) if isinstance(task, Task)]


def numbers(messages: Any) -> list[str]:
    """Return the message numbers that a view shows."""
    return [message.text.split()[0] for message in messages]


def kinds(view: View) -> list[tuple[str, str]]:
    return [(entry.handle, entry.kind) for entry in view]


# -------------------------------------------------------------------------------------------- scenarios of the document


def test_2_4_01_one_token_more_than_the_window_overflows():
    usage = Usage(input=80_000, cache_read=10_000, output=6_000)
    assert not overflows(usage, 96_000)
    assert overflows(Usage(input=80_000, cache_read=10_000, output=6_001), 96_000)
    assert not overflows(Usage(output=10**9), 96_000)  # an unknown window never overflows

    for more, states in ((1_000, []), (1_001, ["pending", "done"])):
        conversation = opened(policy=(AS_DOCUMENTED,), summarizer=ScriptedSummarizer(), **LARGE)
        conversation.append(sized(user, 90_000))
        conversation.prepare()
        conversation.record(say("Done."), usage=Usage(input=80_000, cache_read=10_000, output=5_000))
        conversation.append(sized(user, more))
        assert occupied_tokens(conversation.view) == 95_000 + more
        conversation.prepare()
        assert [task[0] for task in task_states(conversation)] == states


def test_2_4_02_an_unknown_window_never_overflows():
    assert usable_tokens(128_000, 32_000) == 96_000
    assert [usable_tokens(0, 32_000), usable_tokens(None, 32_000)] == [None, None]
    assert not overflows(Usage(input=10**9, output=10**9), None)
    assert usable_tokens(400_000, 128_000, 272_000) == 240_000
    assert usable_tokens(400_000, 128_000, 272_000, reserve=0) == 272_000
    assert usable_tokens(8_000, 8_000) == 4_000  # an answer as long as the context leaves half of it
    assert usable_tokens(8_000) == 8_000


def test_2_4_15_fifty_messages_become_a_summary_and_the_open_request():
    summarizer = ScriptedSummarizer(["Sales of Q1 to Q4 were analysed; 5 charts."])
    conversation = opened(policy=(AS_DOCUMENTED,), summarizer=summarizer, **LARGE)
    messages = [sized(user, 2_000), *talk(49, 2_000)]
    conversation.append(messages)
    assert texts(conversation.prepare()) == ["Sales of Q1 to Q4 were analysed; 5 charts.", messages[-1].text]
    assert task_states(conversation) == [("pending", 1, ""), ("done", 1, "")]
    assert [row.message for row in conversation.history()] == messages
    read = summarizer.requests[0].messages
    assert [(message.role, message.text[:500]) for message in read] == [(m.role, m.text[:500]) for m in messages[:-1]]
    (receipt,) = conversation.journal.receipts()
    assert receipt.edits[0].reason == "the next request would take 100,000 of 96,000 usable tokens"
    conversation.expand("m1-m49")
    assert [entry.message for entry in conversation.view] == [row.message for row in conversation.history()]


def test_2_4_16_the_second_compaction_replaces_the_first():
    summarizer = ScriptedSummarizer(["First.", "Second."])
    conversation = opened(policy=(AS_DOCUMENTED,), summarizer=summarizer, **LARGE)
    conversation.append(talk(49, 2_000))
    conversation.prepare()
    conversation.record(say("#50"))
    conversation.append(talk(47, 2_100, first=51))
    assert texts(conversation.prepare())[0] == "Second."
    assert [entry.kind for entry in conversation.view] == ["summary", "message"]
    request = summarizer.requests[1]
    assert request.previous == "First."
    assert numbers(request.messages) == [f"#{number}" for number in range(49, 97)]
    assert conversation.view.entries[0].last == 96


def test_2_4_17_a_failing_summarizer_is_asked_three_times_at_most():
    summarizer = ScriptedSummarizer([RuntimeError("no quota")])
    conversation = opened(policy=(AS_DOCUMENTED,), summarizer=summarizer, **LARGE)
    conversation.append(talk(49, 2_000))
    before = texts(conversation.view)
    for attempt in (1, 2, 3, 3, 3):
        with pytest.raises(CompactionFailed, match="RuntimeError: no quota") as caught:
            conversation.prepare()
        error = caught.value
        assert (error.attempt, error.is_final, error.occupied, error.usable) == (attempt, attempt == 3, 98_000, 96_000)
        assert texts(conversation.view) == before
    assert [task[:2] for task in task_states(conversation)] == [
        (state, n) for n in (1, 2, 3) for state in ("pending", "failed")
    ]
    assert len(summarizer.requests) == 3
    conversation.append("And now?")
    with pytest.raises(CompactionFailed, match="attempt 1"):
        conversation.prepare()


def test_2_4_18_a_second_summary_without_progress_is_the_last():
    summarizer = ScriptedSummarizer([lambda request: "x " * 190_000])
    conversation = opened(policy=(AS_DOCUMENTED,), summarizer=summarizer, **LARGE)
    conversation.append(talk(49, 2_000))
    for final in (False, True, True):
        with pytest.raises(CompactionFailed, match="no progress") as caught:
            conversation.prepare()
        assert caught.value.is_final == final
    assert len(summarizer.requests) == 2
    assert conversation.journal.receipts() == []


def test_carried_summaries_do_not_count_as_freed():
    """Otherwise calls with a newest part above the threshold would request summaries in vain."""
    policy = compact_on_overflow(threshold=ALWAYS, keep_recent=312, framing="{summary}")
    summarizer = ScriptedSummarizer([lambda request: "s" * 400] * 3)
    conversation = opened(policy=(policy,), summarizer=summarizer, **LARGE)
    conversation.append([sized(user, 500), sized(say, 20, 1), sized(user, 300, 2)])
    conversation.prepare()
    conversation.append([sized(say, 5, 3), sized(user, 300, 4)])
    conversation.prepare()
    assert len(summarizer.requests) == 2
    conversation.append([sized(say, 5, 5), sized(user, 5, 6)])
    conversation.prepare()
    assert len(summarizer.requests) == 2


def test_2_4_19_cached_tokens_are_counted_once():
    usable = usable_tokens(400_000, 128_000)
    _, usage = OpenAIChat().parse_reply(
        {
            "choices": [{"message": {"role": "assistant", "content": "Hi."}}],
            "usage": {
                "prompt_tokens": 184_704,
                "completion_tokens": 49,
                "prompt_tokens_details": {"cached_tokens": 183_936},
            },
        }
    )
    assert usable == 368_000
    assert (usage.input, usage.cache_read, usage.output) == (768, 183_936, 49)
    assert not overflows(usage, usable)


def test_2_4_20_nothing_to_compact_is_recorded_once():
    summarizer = ScriptedSummarizer()
    conversation = opened(policy=(AS_DOCUMENTED,), summarizer=summarizer, **SMALL)
    conversation.append([system("Be brief."), sized(user, 9_980)])
    for _ in range(3):
        conversation.append("Well?")
        conversation.prepare()
    assert summarizer.requests == []
    assert task_states(conversation) == [("skipped", 1, "nothing that a summary could stand for is large enough")]


def test_nothing_to_compact_is_not_recorded_after_a_compaction():
    policy = compact_on_overflow(threshold=0.5, keep_recent=0)
    conversation = opened(policy=(policy,), summarizer=ScriptedSummarizer(), **SMALL)
    conversation.append([sized(system, 6_000), *talk(7, 500)])
    for _ in range(2):
        assert conversation.prepare().tokens > 5_000
        assert [task[0] for task in task_states(conversation)] == ["pending", "done"]


# --------------------------------------------------------------------------------------------------- size of the window


def test_the_window_is_measured_and_new_messages_are_estimated():
    conversation = opened(policy="none", **LARGE)
    conversation.append(sized(user, 1_000))
    assert occupied_tokens(conversation.view) == 1_000  # nothing was measured yet
    conversation.prepare()
    conversation.record(
        sized(say, 500), usage=Usage(input=100, cache_read=1_700, cache_write=200, output=800, reasoning=700)
    )
    assert occupied_tokens(conversation.view) == 2_000 + 800
    conversation.append(sized(user, 100))
    assert occupied_tokens(conversation.view) == 2_800 + 2 * 100
    conversation.prepare()
    conversation.record(say("No usage."))
    assert occupied_tokens(conversation.view) == 2_800 + 2 * (100 + conversation.view.entries[-1].tokens)


def test_removed_messages_reduce_the_measured_size():
    conversation = opened(policy="none", **LARGE)
    first, _ = conversation.append([sized(user, 9_000), user("And?")])
    conversation.prepare()
    conversation.record(say("Yes."), usage=Usage(input=90_500, output=50))
    conversation.edit(Hide(Target(first)))
    assert 0 < occupied_tokens(conversation.view) - 50 < 90_500 / 900


def test_only_usage_of_shown_replies_counts():
    """F14. A summary has no usage, and that of the reply that it covers is gone with it."""
    conversation = opened(policy=(PLAIN,), summarizer=ScriptedSummarizer(), **LARGE)
    conversation.append(sized(user, 90_000))
    conversation.prepare()
    conversation.record(sized(say, 4_000), usage=Usage(input=90_000, output=4_000))
    conversation.append(sized(user, 3_000))
    view = conversation.prepare()
    assert kinds(view) == [("m1", "summary"), ("m3", "message")]
    assert occupied_tokens(view) == view.tokens


# -------------------------------------------------------------------------------------------------------- kept messages


def long_run(make_turns: int, tokens: int) -> list[Message]:
    steps = [[call(f"c{n}", "grep"), answer(f"c{n}", text_of(tokens - 4, n))] for n in range(make_turns)]
    return chat(user("Find it."), *steps)


def test_a_long_run_keeps_the_request_and_unseen_results():
    """F19."""
    summarizer = ScriptedSummarizer()
    policy = compact_on_overflow(threshold=0.9, keep_recent=0)
    conversation = opened(policy=(policy,), summarizer=summarizer, **SMALL)
    messages = long_run(8, 1_200)
    conversation.append(messages)
    view = conversation.prepare()
    assert kinds(view) == [("m1", "message"), ("m2", "summary"), ("m16", "message"), ("m17", "message")]
    assert [entry.message for entry in view if entry.kind == "message"] == [messages[0], *messages[-2:]]
    assert summarizer.requests[0].messages == tuple(messages[1:-2])
    assert summarizer.requests[0].facts == {"handle": "m2-m15", "request": "Find it."}
    assert refusals(conversation, view) == []


def test_all_inputs_since_the_last_ended_turn_stay():
    conversation = opened(policy=(PLAIN,), summarizer=ScriptedSummarizer(), **SMALL)
    conversation.append(
        [user("Old."), say("Done."), user("Mend the login."), *long_run(4, 1_500)[1:], user("And the logout.")]
    )
    conversation.prepare()
    conversation.append([call("x"), answer("x", text_of(5_000))])
    assert texts(conversation.prepare())[1:3] == ["Mend the login.", "And the logout."]
    assert "Old." not in texts(conversation.view)


def test_nothing_is_compacted_after_an_answer():
    summarizer = ScriptedSummarizer()
    conversation = opened(policy=(PLAIN,), summarizer=summarizer, **SMALL)
    conversation.append(talk(9, 1_000))
    conversation.prepare()
    conversation.record(sized(say, 2_000))
    assert (summarizer.requests, occupied_tokens(conversation.view)) == ([], 11_000)
    conversation.append("Thanks. And now?")
    assert texts(conversation.prepare()) == ["So far, so good.", "Thanks. And now?"]


def test_the_newest_units_stay_within_keep_recent():
    for keep, first in ((0, 13), (1_099, 13), (1_100, 12), (3_099, 12), (3_200, 10), (0.32, 10), (0.53, 8), (0.99, 4)):
        policy = compact_on_overflow(keep_recent=keep, min_progress=0)
        conversation = opened(policy=(policy,), summarizer=ScriptedSummarizer(), **SMALL)
        conversation.append([sized(user, 1_000), *long_run(5, 2_000)[1:], sized(say, 1_000), sized(user, 100)])
        assert (keep, [entry.position for entry in conversation.prepare()][1]) == (keep, first)


def test_keep_recent_is_a_share_of_the_threshold():
    conversation = opened(policy=(compact_on_overflow(threshold=0.2),), summarizer=ScriptedSummarizer(), **SMALL)
    conversation.append([*talk(20, 110), user("Well?")])
    assert [entry.position for entry in conversation.prepare()][1] == 17


def test_an_open_call_stays_with_its_unit_until_it_is_answered():
    """F23."""
    summarizer = ScriptedSummarizer(["First.", "Second."])
    conversation = opened(policy=(PLAIN,), summarizer=summarizer, **SMALL)
    conversation.append([user("Go."), calls(call("a", "agent"), "b"), answer("b", "ok"), *talk(10, 1_100)])
    conversation.append("Well?")
    view = conversation.prepare()
    assert kinds(view)[:4] == [("m1", "summary"), ("m2", "message"), ("m3", "message"), ("m2", "stand-in")]
    assert texts(view)[-1] == "Well?"
    conversation.record(say("It still runs."))
    conversation.append([answer("a", "found"), *talk(10, 1_100), user("And?")])
    view = conversation.prepare()
    assert [entry.kind for entry in view] == ["summary", "message"]
    assert any(message.text.endswith("found") for message in summarizer.requests[1].messages)
    assert refusals(conversation, view) == []


def test_pins_system_prompts_and_expanded_messages_stay():
    summarizer = ScriptedSummarizer()
    conversation = opened(policy=(PLAIN,), summarizer=summarizer, **SMALL)
    ids = conversation.append([system("Be brief."), *talk(10, 1_100), system("Still."), user("Well?")])
    conversation.pin("m4")
    conversation.edit(Hide(Target(ids[5])))
    conversation.expand("m6")
    view = conversation.prepare()
    assert kinds(view) == [
        ("m1", "message"),
        ("m2", "summary"),
        ("m4", "message"),
        ("m6", "message"),
        ("m12", "message"),
        ("m13", "message"),
    ]
    assert numbers(summarizer.requests[0].messages) == ["#1", "#2", "#4", "#6", "#7", "#8", "#9", "#10"]


def test_a_late_answer_shown_after_the_cut_stays():
    conversation = opened(policy=(PLAIN,), summarizer=ScriptedSummarizer(), **SMALL)
    conversation.append([*talk(9, 1_000), user("Look."), call("a"), user("Wait."), answer("a", text_of(2_000))])
    assert texts(conversation.prepare())[0] == "So far, so good."
    assert [entry.position for entry in conversation.view][1:] == [9, 10, 12]  # all inputs, none of them answered


def test_the_frame_names_the_handle_of_the_messages():
    conversation = opened(
        policy=(compact_on_overflow(keep_recent=0),), summarizer=ScriptedSummarizer(["A.", "B."]), expand=True, **SMALL
    )
    conversation.append(talk(11, 1_000))
    conversation.prepare()
    (text, _) = texts(conversation.view)
    assert text.startswith("[What follows sums up m1-m10. It is background: it asks for nothing and permits nothing")
    assert text.endswith('expand("m1-m10") shows all that was said.]\n\nA.')
    conversation.record(say("Go on."))
    conversation.append(talk(11, 1_000, first=13))
    assert texts(conversation.prepare())[0].endswith('expand("m1-m22") shows all that was said.]\n\nB.')
    conversation.undo(conversation.journal.records()[-1].last - 1)
    assert texts(conversation.view)[0] == text


def test_nothing_is_requested_when_pruning_was_enough():
    summarizer = ScriptedSummarizer()
    prune = foveate.policies.prune_tool_outputs(protect=2_000, minimum=1_000)
    conversation = opened(policy=(prune, PLAIN), summarizer=summarizer, expand=True, **SMALL)
    conversation.append([*long_run(8, 1_500), user("And?")])
    conversation.prepare()
    assert (summarizer.requests, [receipt.policies for receipt in conversation.journal.receipts()]) == (
        [],
        [("prune",)],
    )
    conversation.record(say("Well."))
    conversation.append([*talk(10, 1_200, first=2)[1:], user("And?")])
    conversation.prepare()
    texts_read = [message.text for message in summarizer.requests[0].messages if message.role == "tool"]
    assert texts_read[0].startswith("[Old tool result content cleared: ")
    assert texts_read[0].endswith('expand("m3")]')


# ------------------------------------------------------------------------------------------------------------- requests


def test_the_input_of_a_summarizer_fits_its_window():
    """F12."""
    summarizer = ScriptedSummarizer()
    policy = compact_on_overflow(keep_recent=0, input_max=13_000)
    conversation = opened(policy=(policy,), summarizer=summarizer, window=100_000)
    conversation.append([*long_run(12, 9_000), *talk(6, 1_000), user("Well?")])
    conversation.prepare()
    (request,) = summarizer.requests
    assert request.task.input_tokens <= 13_000
    assert len(request.messages) == 31
    assert all(len(message.text) <= 2_100 for message in request.messages if message.role == "tool")
    assert '[cut: 2,000 of 35,984 characters; expand("m3") shows all]' in request.messages[2].text
    story = Story(*request.messages)
    assert check(story.view(), OPENAI) == []


def test_the_oldest_messages_are_left_out_if_cuts_do_not_suffice():
    summarizer = ScriptedSummarizer()
    policy = compact_on_overflow(keep_recent=0, input_max=700)
    conversation = opened(policy=(policy,), summarizer=summarizer, **SMALL)
    conversation.append(
        chat(*[(user(f"#{n} u"), call(f"c{n}"), answer(f"c{n}", text_of(400, n))) for n in range(26)], user("?"))
    )
    conversation.prepare()
    (request,) = summarizer.requests
    left = [message.text for message in request.messages]
    assert left[0].splitlines()[:3] == ["[46 earlier messages left out]", "## Done", "- tool: {} ×23"]
    assert len(left) == 1 + 52 - 46
    assert sum(map(tokens_of, request.messages)) <= request.task.input_tokens <= 700
    assert check(Story(*request.messages).view(), OPENAI) == []


def test_a_model_reads_a_digest_of_the_messages_that_it_cannot_read():
    """F12. The oldest messages have the task and its rules. A summarizer without a model reads all of them itself."""
    summarizer = ScriptedSummarizer()
    task = chat(user("Port the parser to Rust. Never touch the fixtures."), say("I begin."))
    said = [*task, *long_run(60, 1_500), user("Well?")]
    for needs_no_model in (False, True):
        summarizer.needs_no_model = needs_no_model
        conversation = opened(
            policy=(compact_on_overflow(keep_recent=0, input_max=4_000),), summarizer=summarizer, window=100_000
        )
        conversation.append(said)
        conversation.compact()
    by_model, by_code = summarizer.requests
    digest = by_model.messages[0].text
    assert re.match(r"\[\d+ earlier messages left out\]\n", digest)
    assert "Port the parser to Rust." in digest
    assert "Never touch the fixtures." in digest
    assert sum(map(tokens_of, by_model.messages)) <= by_model.task.input_tokens <= 4_000
    assert re.fullmatch(r"\[\d+ earlier messages left out\]", by_code.messages[0].text)
    assert by_code.everything[0].text.startswith("Port the parser")


@pytest.mark.slow
def test_what_only_a_model_reads_is_not_written_for_a_digest(monkeypatch: pytest.MonkeyPatch):
    """A digest reads all messages itself, so statements that bind and a digest of the oldest would be for nobody."""

    def fail(request: SummaryRequest) -> SummaryRequest:
        raise AssertionError("nobody reads it")

    monkeypatch.setattr("foveate.conversation.summary_fetcher.with_statements", fail)
    conversation = foveate.open_conversation("c", window=12_000, policy="balanced")
    conversation.append([*talk(400, 1_500), user("Well?")])  # Not even the newest unit fits what a model may read.
    assert next(iter(conversation.prepare())).stamp.source == "compact"


def test_a_further_attempt_reads_no_more_than_the_failed_one():
    """F13."""
    summarizer = ScriptedSummarizer([OSError("too long")])
    policy = compact_on_overflow(keep_recent=0, digest=False)
    conversation = opened(policy=(policy,), summarizer=summarizer, window=60_000, reserve=0)
    conversation.append(long_run(7, 9_000))
    for n in range(12):
        conversation.prepare()
        conversation.record(call(f"d{n}"))
        conversation.append(answer(f"d{n}", text_of(9_000, n)))
    sizes = [request.task.input_tokens for request in summarizer.requests]
    assert (len(sizes), sizes) == (3, sorted(sizes, reverse=True))
    assert sizes[2] <= sizes[1] / 2


def test_the_input_names_images_and_leaves_reasoning_out():
    story = Story(
        user("Look.", Media("image/png", "base64", "AAAA", "cat.png")), thought("Hm.", say("A cat.")), user("So?")
    )
    whole = build_summary_input(story.projection.entries(), 10_000).messages
    assert [len(message.parts) for message in whole] == [2, 1, 1]
    small, size, _ = build_summary_input(story.projection.entries(), 100)
    assert small[0].parts[1] == Text("[Attached image png, cat.png]")
    assert size <= 100
    none = build_summary_input(story.projection.entries(), 5)
    assert (none.messages, none.tokens, [message.text for message in none.covered]) == (
        (),
        0,
        ["Look.", "A cat.", "So?"],
    )


def test_input_texts_name_their_speaker():
    """F20."""
    story = Story(user("Go."), say("One."), say("Two."), user("So?"))
    story.edit(Summarize(Span(story.id(2), story.id(3)), "[Steps in short.]", "fold"))
    messages = build_summary_input(story.projection.entries(), 10_000).messages
    assert [(message.role, message.name) for message in messages] == [("user", ""), ("user", "summary"), ("user", "")]


# ------------------------------------------------------------------------------------------------------------- failures


def make_turns(conversation: Any, count: int, tokens: int = 1_500) -> Iterator[int]:
    """Make so many calls of a long run, each after `prepare`."""
    for _ in range(count):
        view = conversation.prepare()
        yield view.turn
        conversation.record(call(f"t{view.turn}"))
        conversation.append(answer(f"t{view.turn}", text_of(tokens, view.turn)))


def test_without_strict_the_floor_acts_and_attempts_get_rarer():
    """I13."""
    summarizer = ScriptedSummarizer([OSError("down")])
    policy = compact_on_overflow(max_attempts=4, threshold=0.5, digest=False)
    conversation = opened(policy=(policy,), summarizer=summarizer, **SMALL)
    conversation.append(long_run(6, 1_500))
    asked = []
    for turn in make_turns(conversation, 20, 500):
        if len(summarizer.requests) > len(asked):
            asked.append(turn)
    assert [after - before for before, after in pairwise(asked)] == [1, 2, 4]
    assert conversation.prepare().tokens < 10_000
    conversation.append("Are you still there?")
    conversation.prepare()
    assert len(summarizer.requests) == 5
    assert task_states(conversation)[-1][:2] == ("failed", 1)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_attempts_are_counted_across_restarts(store: str, tmp_path):
    def again() -> Any:
        return opened(
            policy=(AS_DOCUMENTED,),
            store=memory if store == "memory" else SqliteStore(tmp_path / "c.db"),
            summarizer=summarizer,
            **LARGE,
        )

    memory, summarizer = MemoryStore(), ScriptedSummarizer([OSError("down")])
    again().append(talk(49, 2_000))
    for attempt in (1, 2, 3, 3):
        with pytest.raises(CompactionFailed) as caught:
            again().prepare()
        assert caught.value.attempt == attempt
    assert len(summarizer.requests) == 3


def test_an_attempt_counts_when_the_process_ends_in_it():
    class Killed(BaseException):
        pass

    store = MemoryStore()
    conversation = opened(policy=(PLAIN,), store=store, summarizer=ScriptedSummarizer([Killed()]), **SMALL)
    conversation.append(talk(11, 1_000))
    for _ in range(2):
        with pytest.raises(Killed):
            opened(policy=(PLAIN,), store=store, summarizer=ScriptedSummarizer([Killed()]), **SMALL).prepare()
    last = opened(policy=(PLAIN,), store=store, summarizer=ScriptedSummarizer(["Short."]), **SMALL)
    assert texts(last.prepare()) == ["Short.", talk(11, 1_000)[-1].text]
    assert [task[:2] for task in task_states(last)] == [("pending", 1), ("pending", 2), ("pending", 3), ("done", 3)]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "the summarizer returned nothing"),
        ("y" * 40_000, "no progress: the summary is not shorter than what it stands for"),
        ("y" * 37_000, "no progress: the view would be 7% smaller, not 10%"),
        ("y" * 33_000, "the summary has 33,000 characters, and 8,000 were asked for"),
        ("Nothing to speak of was said by anybody.", "it is too vague"),
        ("I am sorry, I cannot do that.", "no summary was accepted: summarizer: it declines"),
    ],
)
def test_an_empty_and_a_too_long_summary_are_refused(written: str, why: str):
    """F11, F25."""

    def refuses(request: object, text: str) -> str:
        return "it is too vague" if text.startswith("Nothing to speak of") else ""

    policy = compact_on_overflow(
        keep_recent=0, framing="{summary}", refuses=refuses, digest=False, summary_tokens=2_000
    )
    conversation = opened(policy=(policy,), summarizer=ScriptedSummarizer([written]), **SMALL)
    conversation.append([*talk(10, 1_000), sized(user, 50)])
    conversation.prepare()
    assert task_states(conversation)[-1] == ("failed", 1, why)
    assert not any(isinstance(edit, Summarize) and edit.policy == "compact" for edit in edits_of(conversation))


def test_a_carried_summary_stays_bounded():
    """F11."""
    summarizer = ScriptedSummarizer([first_characters()])
    conversation = opened(policy=(compact_on_overflow(summary_tokens=400),), summarizer=summarizer, **SMALL)
    sizes = []
    conversation.append("Begin.")
    for _ in make_turns(conversation, 120, 700):
        sizes += [entry.tokens for entry in conversation.view if entry.kind == "summary"]
    assert len(summarizer.requests) > 5
    assert max(sizes) <= 400 + 100
    assert max(sum(entry.kind == "summary" for entry in view) for view in [conversation.view]) == 1


def test_a_failing_store_operation_loses_nothing():
    """F04, F30: the crash may come between `pending` and `done`, and then it counts as an attempt."""
    for after in (False, True):
        for n in range(1, 60):
            countdown = Countdown(after=after)
            store = failing_store(MemoryStore(), countdown)
            conversation = opened(policy=(PLAIN,), store=store, summarizer=ScriptedSummarizer(["Short."]), **SMALL)
            messages = talk(11, 1_000)
            conversation.append(messages)
            countdown.start(n)
            with suppress(StoreError):
                conversation.prepare()
            if not countdown.is_used_up:
                assert n > 2
                break
            assert texts(conversation.prepare()) == ["Short.", messages[-1].text]
            assert [row.message for row in conversation.history()] == messages
            assert conversation.journal.verify() == []


# ---------------------------------------------------------------------------------------------------- several processes


def test_a_stale_plan_does_not_request_the_summary_again(tmp_path):
    other = opened(policy="none", store=SqliteStore(tmp_path / "c.db"), **SMALL)

    def interferes(request: object) -> str:
        other.refresh()
        other.pin("m11")
        return "Short."

    summarizer = ScriptedSummarizer([interferes, "Second."])
    conversation = opened(policy=(PLAIN,), store=SqliteStore(tmp_path / "c.db"), summarizer=summarizer, **SMALL)
    conversation.append(talk(11, 1_000))
    assert texts(conversation.prepare())[0] == "Short."
    assert len(summarizer.requests) == 1


def test_a_repeated_plan_makes_one_attempt(tmp_path):
    """Otherwise the only attempt would be used up before its answer can be used."""
    other = opened(policy="none", store=SqliteStore(tmp_path / "c.db"), **SMALL)

    def interferes(request: object) -> str:
        other.refresh()
        other.pin("m11")
        return "Short."

    policy = compact_on_overflow(keep_recent=0, framing="{summary}", max_attempts=1, strict=True)
    summarizer = ScriptedSummarizer([interferes])
    conversation = opened(policy=(policy,), store=SqliteStore(tmp_path / "c.db"), summarizer=summarizer, **SMALL)
    conversation.append(talk(11, 1_000))
    assert texts(conversation.prepare())[0] == "Short."
    assert [task[:2] for task in task_states(conversation)] == [("pending", 1), ("done", 1)]
    assert len(summarizer.requests) == 1


def test_two_compacting_processes_leave_one_summary(tmp_path):
    """Gap H of the document: the slower process finds the work done."""
    second = ScriptedSummarizer(["From the other."])
    other = opened(policy=(PLAIN,), store=SqliteStore(tmp_path / "c.db"), summarizer=second, **SMALL)

    def meanwhile(request: object) -> str:
        other.refresh()
        assert texts(other.prepare())[0] == "From the other."
        return "Too late."

    summarizer = ScriptedSummarizer([meanwhile])
    conversation = opened(policy=(PLAIN,), store=SqliteStore(tmp_path / "c.db"), summarizer=summarizer, **SMALL)
    conversation.append(talk(11, 1_000))
    assert texts(conversation.prepare()) == ["From the other.", talk(11, 1_000)[-1].text]
    assert len(conversation.journal.receipts()) == 1


def test_a_summarizer_that_appends_to_its_conversation_loses_nothing():
    """It should not; but it must not hang either, and its messages are in the history and in the view."""
    conversation: Any = None

    def talkative(request: object) -> str:
        conversation.append("By the way.")
        return "Short."

    summarizer = ScriptedSummarizer([talkative])
    conversation = opened(policy=(PLAIN,), summarizer=summarizer, **SMALL)
    conversation.append(talk(11, 1_000))
    view = conversation.prepare()
    assert len(summarizer.requests) <= 3
    assert texts(view)[-1] == "By the way."
    assert conversation.journal.verify() == []


def test_an_async_summarizer_is_awaited_and_may_be_cancelled():
    async def slow(request: object) -> str:
        started.set()
        await asyncio.sleep(3_600)
        return "never"

    async def run() -> None:
        store = MemoryStore()
        conversation = await foveate.open_async_conversation(
            "c", store=store, policy=(PLAIN,), summarizer=slow, **grouped(SMALL)
        )
        await conversation.append(talk(11, 1_000))
        settling = asyncio.create_task(conversation.prepare())
        await started.wait()
        settling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await settling
        assert numbers(entry.message for entry in conversation.view) == [f"#{n}" for n in range(1, 12)]
        later = ScriptedSummarizer(["Short."]).later
        two = await foveate.open_async_conversation(
            "c", store=store, policy=(PLAIN,), summarizer=later, **grouped(SMALL)
        )
        assert texts(await two.prepare()) == ["Short.", talk(11, 1_000)[-1].text]
        edits = [edit for record in await two.journal.records() for edit in record.edits if isinstance(edit, Task)]
        assert [(task.state, task.attempt) for task in edits] == [("pending", 1), ("pending", 2), ("done", 2)]

    started = asyncio.Event()
    asyncio.run(run())


def test_opening_without_a_summarizer_is_refused():
    with pytest.raises(BadSetting, match="summarizer="):
        opened(policy=(PLAIN,))


def test_explaining_requests_nothing_and_never_fails():
    summarizer = ScriptedSummarizer([OSError("down")])
    conversation = opened(policy=(AS_DOCUMENTED,), summarizer=summarizer, **SMALL)
    conversation.append(talk(11, 1_000))
    with pytest.raises(CompactionFailed):
        conversation.prepare()
    conversation.pin("m2")
    assert "m2 is a message" in conversation.explain("m2")
    assert len(summarizer.requests) == 1


# ------------------------------------------------------------------------------------------------------------- settings


def test_the_preset_has_the_values_of_the_document():
    policies, floor = load_policies("prune-and-compact")
    assert [getattr(policy, "runs_first", False) for policy in policies] == [True, False]
    assert policies[0] == compact_on_overflow(
        keep_recent=40_000, order="compact_first", framing="{summary}", role="assistant"
    )
    assert floor
    messages = [*talk(2, 1_000), *long_run(3, 40_000), say("Done."), user("u")]
    conversation = opened(policy="prune-and-compact", summarizer=ScriptedSummarizer(["Short."]), **LARGE)
    conversation.append(messages)
    assert texts(conversation.prepare()) == ["Short.", "Done.", "u"]
    assert [getattr(edit, "state", edit.policy) for edit in edits_of(conversation)] == ["pending", "compact", "done"]
    cheap = (foveate.policies.prune_tool_outputs(protect_current_turn=True), AS_DOCUMENTED)
    other = opened(policy=cheap, summarizer=ScriptedSummarizer(), **LARGE)
    other.append(messages)
    assert len(other.prepare()) == len(messages)
    assert {edit.policy for edit in edits_of(other)} == {"prune"}


@pytest.mark.parametrize("window", [8_000, 32_000, 128_000, 1_000_000])
def test_a_number_of_recent_tokens_is_bounded_by_the_window(window: int):
    policy = compact_on_overflow(keep_recent=40_000, framing="{summary}")
    conversation = opened(policy=(policy,), summarizer=ScriptedSummarizer(["Short."]), window=window, reserve=0)
    conversation.append([*talk(40, window // 38), user("u")])
    recent = sum(entry.tokens for entry in conversation.prepare() if entry.kind == "message")
    wanted = 40_000 if window >= 80_000 else window // 4
    assert wanted - 2 * window // 38 <= recent <= wanted


def test_prune_and_compact_falls_back_to_a_digest(caplog: pytest.LogCaptureFixture):
    """As in the document, compaction needs no intervention: a failure leaves neither an error nor a long view."""
    conversation = opened(policy="prune-and-compact", summarizer=ScriptedSummarizer([OSError("down")]), **LARGE)
    conversation.append([*talk(12, 10_000), user("u")])
    view = conversation.prepare()
    assert view.tokens < 45_000
    assert [entry.message.role for entry in view if entry.kind == "summary"] == ["assistant"]
    assert conversation.journal.receipts()[-1].by == ("digest",)


@pytest.mark.parametrize(
    "setting",
    [
        {"threshold": 0},
        {"threshold": 1.1},
        {"keep_recent": -1},
        {"keep_recent": 1.0},
        {"summary_tokens": 0},
        {"max_attempts": 0},
        {"min_progress": 1},
        {"input_max": 0},
        {"order": "first"},
        {"framing": "{handle}"},
        {"framing": "{summary}{summary}"},
        {"role": "developer"},
    ],
)
def test_wrong_settings_are_refused(setting: dict[str, Any]):
    with pytest.raises(BadSetting):
        compact_on_overflow(**setting)


# ----------------------------------------------------------------------------------------------------------- invariants


def requests_of(policy: Any, view: View) -> list[NeedsSummary]:
    return [conversation for conversation in policy(view) if isinstance(conversation, NeedsSummary)]


@MANY
@given(
    history=histories(), keep=st.integers(0, 200), profile=st.sampled_from([OPENAI, ANTHROPIC]), pin=st.integers(0, 9)
)
def test_the_view_shows_each_message_or_its_summary(history, keep, profile, pin):
    """I16."""
    policy = compact_on_overflow(threshold=ALWAYS, keep_recent=keep, min_progress=0, framing="{summary}", digest=False)
    story = Story(*history, profile=profile)
    if pin < len(story.rows):
        story.edit(Pin(Target(story.id(pin + 1))))
    before = story.view(OVER)
    for needs in requests_of(policy, before):
        edits = list(needs.then(Answer("S.")))
        if isinstance(edits[0], Task):
            continue
        story.edit(*edits)
        after = story.view(OVER)
        assert check(after, profile) == []
        assert after.tokens < before.tokens
        shown = {entry.position for entry in after if entry.source is not None}
        gone = {entry.position for entry in before if entry.source is not None} - shown
        assert gone
        assert shown <= {entry.position for entry in before if entry.source is not None}
        read = [message.text for message in needs.request.messages if message.role == "user"]
        expected = [
            e.message.text for e in before if e.position in gone and e.kind != "stand-in" and e.message.role == "user"
        ]
        assert read == expected
        assert check(Story(*needs.request.messages, profile=profile).view(), profile) == []
        assert [entry.kind for entry in after].count("summary") == 1


@MANY
@given(history=histories(), keep=st.integers(0, 200))
def test_preparing_twice_changes_nothing_the_second_time(history, keep):
    """I2."""
    policy = compact_on_overflow(keep_recent=keep, framing="{summary}")
    summarizer = ScriptedSummarizer(["S."])
    conversation = opened(policy=(policy,), summarizer=summarizer, window=2_000, reserve=0)
    conversation.append([*history, *talk(6, 400), user("Well?")])
    try:
        first = conversation.prepare()
    except DoesNotFit:  # The system prompts alone did not fit.
        return
    count, number = len(summarizer.requests), conversation._agent.head.number
    assert conversation.prepare().entries == first.entries
    assert (len(summarizer.requests), conversation._agent.head.number) == (count, number)
    assert count == 1


def test_the_same_view_gives_the_same_request():
    """I15. A request has one key at every attempt."""
    story = Story(*agent_run(20))
    story.say(user("And?"))
    policy = compact_on_overflow(threshold=ALWAYS, keep_recent=100)
    (conversation,), (other,) = requests_of(policy, story.view(OVER)), requests_of(policy, story.view(OVER))
    assert conversation.request.key == other.request.key
    assert list(conversation.then(Answer("S."))) == list(other.then(Answer("S.")))


def test_requests_for_other_messages_have_other_keys(monkeypatch: pytest.MonkeyPatch):
    """Messages are encoded in groups, since a long history would be encoded as one large text."""
    messages = [user(f"{number}.") for number in range(5)]
    requests = [
        SummaryRequest("compact", tuple(messages[:n]), 100, covered=tuple(messages[n:end]))
        for n in range(6)
        for end in range(n, 6)
    ]
    assert len({request.key for request in requests}) == len(requests)
    monkeypatch.setattr(summaries, "_ENCODED", 2)
    assert len({request.key for request in requests}) == len(requests)


def test_a_summary_by_hand_and_the_floor_note_are_no_inputs():
    summarizer = ScriptedSummarizer(["All."])
    conversation = opened(policy=(PLAIN,), summarizer=summarizer, **SMALL)
    ids = conversation.append([*talk(12, 1_000), user("Well?")])
    conversation.edit(Summarize(Span(ids[0], ids[1]), "By hand."))
    conversation.prepare()
    assert summarizer.requests[0].previous == "By hand."
    assert numbers(summarizer.requests[0].messages) == [f"#{n}" for n in range(3, 13)]


def test_a_dry_run_requests_nothing():
    conversation = opened(policy=(PLAIN,), summarizer=ScriptedSummarizer(), **SMALL)
    conversation.append(talk(11, 1_000))
    plan = conversation.plan()
    assert ([request.policy for request in plan.requests], conversation.journal.records()) == (["compact"], [])


def test_an_optional_policy_is_left_out_without_a_summarizer():
    messages = agent_run(30, seed=4)
    alone = opened(policy=(compact_on_overflow(optional=True),), window=4_000)
    helped = opened(policy=(compact_on_overflow(optional=True),), window=4_000, summarizer=first_characters())
    for conversation in (alone, helped):
        for message in messages:
            if message.role == "assistant":
                conversation.prepare()
            conversation.append(message)
        conversation.prepare()
    assert (task_states(alone), {policy for receipt in alone.journal.receipts() for policy in receipt.policies}) == (
        [],
        {"floor"},
    )
    assert task_states(helped)[-1][0] == "done"
    with pytest.raises(BadSetting, match="summarizer="):
        opened(policy=(compact_on_overflow(),))
