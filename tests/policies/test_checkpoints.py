"""Rolling checkpoints: the table and scenarios of the document, then schedule, limits and invariants."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest
from conversation.shells import opened, refusals, texts, wire
from core.story import ANTHROPIC, OPENAI
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate import Conversation, open_async_conversation, open_conversation
from foveate.core.checker import check
from foveate.core.edits import Span, Summarize, Task
from foveate.core.messages import Message
from foveate.core.plain_handles import plain_text
from foveate.core.summaries import SummaryRequest
from foveate.core.view import Entry, View
from foveate.errors import BadSetting, DoesNotFit
from foveate.policies import load_policies
from foveate.policies.checkpoints import BACKGROUND, PLAIN, checkpoint, checkpoint_edit
from foveate.policies.frames import unframe_summary
from foveate.policies.recaps import recap_batches
from foveate.policies.span_selection import MessageNumbers
from foveate.policies.tool_result_filter import filter_tool_results
from foveate.replay.recordings import read_recording
from foveate.testing import answer, call, calls, chat, say, system, text_of, user
from foveate.testing.strategies import histories, runs
from foveate.testing.stubs import ScriptedSummarizer

AS_DOCUMENTED = checkpoint(template=PLAIN)


def numbered_summarizer() -> ScriptedSummarizer:
    """Answers S1, S2, ..."""
    numbers = iter(range(1, 10**6))
    return ScriptedSummarizer([lambda _: f"S{next(numbers)}"])


def start_chat(policy: Any = AS_DOCUMENTED, summarizer: Any = None, **options: Any) -> Conversation:
    options.setdefault("window", 1_000_000)
    return opened(policy=policy, summarizer=summarizer or numbered_summarizer(), **options)


def post(chat: Conversation, messages: Iterable[Message]) -> None:
    """Append messages. Before each message of the assistant a call is prepared."""
    for message in messages:
        if message.role == "assistant":
            chat.prepare()
            chat.record(message)
        else:
            chat.append(message)


def append_turns(chat: Conversation, until: int) -> None:
    """Append questions and answers up to this number of messages, system prompts not counted."""
    there = sum(row.message.role != "system" for row in chat.history())
    post(chat, (say(f"answer {n}") if n % 2 == 0 else user(f"question {n}") for n in range(there + 1, until + 1)))


def shown_positions(view: View) -> list[int]:
    """Return the positions of messages that are shown whole, without system prompts."""
    return [entry.position for entry in view if entry.source is not None and entry.message.role != "system"]


def summaries(view: View) -> list[str]:
    return [entry.message.text for entry in view if entry.kind == "summary"]


def covered_handles(chat: Conversation) -> list[tuple[str, ...]]:
    """Return the handles of the first and last message of each checkpoint in the journal."""
    where = {row.id: f"m{row.position}" for row in chat.history()}
    edits = (edit for record in chat.journal.records() for edit in record.edits if isinstance(edit, Summarize))
    return [(where[edit.span.first], where[edit.span.last]) for edit in edits]


def task_states(chat: Conversation) -> list[tuple[str, int, int]]:
    """Return (state, attempt, turn) of each task in the journal."""
    edits = (edit for record in chat.journal.records() for edit in record.edits if isinstance(edit, Task))
    return [(task.state, task.attempt, task.turn) for task in edits]


def run(first: int, last: int) -> list[int]:
    return list(range(first, last + 1))


# -------------------------------------------------------------------------------------------- scenarios of the document


def test_5_4_01_at_99_messages_there_is_no_checkpoint():
    summarizer = numbered_summarizer()
    chat = start_chat(summarizer=summarizer)
    append_turns(chat, 99)
    assert (shown_positions(chat.prepare()), summarizer.requests) == (run(1, 99), [])


def test_5_4_02_at_100_messages_one_checkpoint_covers_90():
    chat = start_chat()
    append_turns(chat, 100)
    assert covered_handles(chat) == [("m1", "m90")]
    assert shown_positions(chat.view) == run(91, 100)
    assert summaries(chat.view) == ["[Conversation summary up to turn 89]: S1"]
    assert len(chat.history()) == 100


def test_5_4_03_at_105_messages_15_stay():
    chat = start_chat()
    append_turns(chat, 105)
    assert (covered_handles(chat), shown_positions(chat.prepare())) == ([("m1", "m90")], run(91, 105))


def test_5_4_04_at_110_messages_the_second_checkpoint_is_due():
    chat = start_chat()
    append_turns(chat, 110)
    assert (covered_handles(chat), shown_positions(chat.view)) == ([("m1", "m90"), ("m1", "m100")], run(101, 110))
    assert len(chat.history()) == 110


def test_5_4_05_at_200_messages_there_are_eleven_checkpoints():
    chat = start_chat()
    append_turns(chat, 120)
    assert (len(covered_handles(chat)), shown_positions(chat.view), len(chat.history())) == (3, run(111, 120), 120)
    append_turns(chat, 200)
    assert (len(covered_handles(chat)), shown_positions(chat.view), len(chat.history())) == (11, run(191, 200), 200)


def test_5_4_06_each_summary_carries_the_previous_one_on():
    summarizer = numbered_summarizer()
    chat = start_chat(summarizer=summarizer)
    chat.append(system("Be brief."))
    append_turns(chat, 105)
    roles = [(entry.message.role, entry.handle) for entry in chat.prepare()]
    assert roles[:3] == [("system", "m1"), ("user", "m2"), ("user", "m92")]
    append_turns(chat, 110)
    assert summaries(chat.view) == ["[Conversation summary up to turn 99]: S2"]
    second = summarizer.requests[1]
    assert second.previous == "S1"
    assert second.target < 500  # no longer than its messages
    assert [message.text for message in second.messages] == [row.message.text for row in chat.history(92, 101)]


def test_5_4_07_a_system_prompt_is_not_counted_and_stays_first(tmp_path):
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    chat = start_chat(store=store)
    chat.append(system("Be brief."))
    append_turns(chat, 99)
    assert covered_handles(chat) == []
    for until in (100, 110, 500):
        append_turns(chat, until)
        assert chat.view.entries[0].message == system("Be brief.")
        assert shown_positions(chat.view) == run(until - 8, until + 1)
    chat.close()
    assert start_chat(store=store).prepare().entries[0].message == system("Be brief.")


def test_5_4_08_a_checkpoint_leaves_ten_when_the_count_jumps():
    chat = start_chat()
    append_turns(chat, 98)
    chat.append([user(f"more {n}") for n in range(5)])
    assert (shown_positions(chat.prepare()), covered_handles(chat)) == (run(94, 103), [("m1", "m93")])
    for n in range(104, 113):
        chat.append(user(f"more {n}"))
        chat.prepare()
    assert len(covered_handles(chat)) == 1
    chat.append(user("more 113"))
    assert (shown_positions(chat.prepare()), covered_handles(chat)[1:]) == (run(104, 113), [("m1", "m103")])


def test_5_4_09_a_call_and_its_results_stay_together():
    chat = start_chat()
    append_turns(chat, 89)
    post(chat, [calls("a", "b"), answer("a", "one"), answer("b", "two")])  # 90, 91 and 92
    append_turns(chat, 100)
    assert covered_handles(chat) == [("m1", "m89")]
    assert [entry.message for entry in chat.view.entries[1:4]] == [
        calls("a", "b"),
        answer("a", "one"),
        answer("b", "two"),
    ]
    assert refusals(chat) == []


@pytest.mark.parametrize("pairs", [60, 110, 200])
def test_5_4_10_the_store_keeps_every_message_in_order(pairs):
    chat = start_chat()
    append_turns(chat, 2 * pairs)
    messages = [f"{('answer', 'question')[n % 2]} {n}" for n in range(1, 2 * pairs + 1)]
    assert [row.message.text for row in chat.history()] == messages


def test_5_4_11_a_resumed_conversation_continues_the_count(tmp_path):
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    summarizer = numbered_summarizer()
    with start_chat(store=store, summarizer=summarizer) as chat:
        append_turns(chat, 104)
        post(chat, [user("q"), call("toolu_7"), answer("toolu_7", "seven"), say("so"), user("q"), say("end")])
        before = wire(chat, chat.view)
        assert shown_positions(chat.view) == run(101, 110)
    with start_chat(store=store, summarizer=summarizer) as chat:
        assert wire(chat, chat.view) == before
        assert chat.view.entries[8].message == say("so")
        assert [e.message.result.call_id for e in chat.view if e.message.result] == ["toolu_7"]
        append_turns(chat, 119)
        assert len(covered_handles(chat)) == 2
        append_turns(chat, 120)
        assert (covered_handles(chat)[2], shown_positions(chat.view)) == (("m1", "m110"), run(111, 120))
        assert summarizer.requests[2].previous == "S2"


def test_5_4_12_a_failing_summarizer_changes_nothing_and_is_asked_again():
    summarizer = ScriptedSummarizer([OSError("down"), "S"])
    chat = start_chat(summarizer=summarizer)
    append_turns(chat, 100)
    assert (shown_positions(chat.view), covered_handles(chat)) == (run(1, 100), [])
    assert chat.journal.events()[-1].kind == "compaction-failed"
    assert "OSError" in chat.journal.events()[-1].reason
    append_turns(chat, 102)
    assert (shown_positions(chat.view), covered_handles(chat)) == (run(93, 102), [("m1", "m92")])
    assert len(summarizer.requests) == 2


def test_5_4_13_wrong_settings_are_refused_and_low_ones_warn():
    with pytest.raises(BadSetting, match="summarizer="):
        open_conversation("c", window=9_000, policy=(AS_DOCUMENTED,))
    for options in (
        {"trigger_at": 10, "keep_recent": 10},
        {"trigger_at": 5, "keep_recent": 10},
        {"keep_recent": 0},
        {"retrigger": "never"},
        {"template": "no place for it"},
        {"target": 0},
        {"tool_results_keep": -1},
    ):
        with pytest.raises(BadSetting, match="checkpoint"):
            checkpoint(**options)
    with pytest.warns(UserWarning, match="keep_recent=3 is very low"):
        checkpoint(keep_recent=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint(keep_recent=5, trigger_at=6)


@pytest.mark.parametrize("messages", ['{"summary":"S"}', "S", '```json\n{"summary": "S"}\n```', "  S\n"])
def test_5_4_19_a_json_answer_and_a_plain_one_give_the_same_checkpoint(messages):
    chat = start_chat(summarizer=ScriptedSummarizer([messages]))
    append_turns(chat, 100)
    assert summaries(chat.view) == ["[Conversation summary up to turn 89]: S"]


def test_5_4_19_the_policy_continues_from_a_checkpoint_by_hand():
    summarizer = numbered_summarizer()
    chat = start_chat(summarizer=summarizer)
    chat.append(system("Be brief."))
    append_turns(chat, 6)
    chat.edit(checkpoint_edit(chat.view, 3, "What I think of it.", template=PLAIN))
    assert shown_positions(chat.prepare()) == [6, 7]
    assert summaries(chat.view) == ["[Conversation summary up to turn 3]: What I think of it."]
    append_turns(chat, 15)
    assert summarizer.requests == []  # 9 new messages since the checkpoint
    append_turns(chat, 16)
    assert (shown_positions(chat.view), len(summarizer.requests)) == (run(8, 17), 1)
    assert summarizer.requests[0].previous == "What I think of it."
    assert [message.text for message in summarizer.requests[0].messages][:1] == ["question 5"]


def test_the_rhythm_of_a_checkpoint_by_hand_is_that_of_the_table(tmp_path):
    """A checkpoint over 90 of 100 messages, brought from elsewhere: the next ones are due at 110 and 120."""
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    with start_chat("none", store=store) as chat:
        append_turns(chat, 100)
        chat.edit(checkpoint_edit(chat.view, 89, "From elsewhere.", template=PLAIN))
    with start_chat(store=store) as resumed:
        spans = {}
        for count in (109, 110, 119, 120):
            append_turns(resumed, count)
            spans[count] = covered_handles(resumed)[-1]
    assert spans == {109: ("m1", "m90"), 110: ("m1", "m100"), 119: ("m1", "m100"), 120: ("m1", "m110")}


def test_after_a_checkpoint_by_hand_is_undone_the_first_one_is_due_at_100():
    chat = start_chat()
    append_turns(chat, 20)
    chat.undo(chat.edit(checkpoint_edit(chat.view, 3, "By hand.")))
    append_turns(chat, 99)
    assert covered_handles(chat) == [("m1", "m4")]
    append_turns(chat, 100)
    assert covered_handles(chat)[1:] == [("m1", "m90")]


# ------------------------------------------------------------------------------------------------------------- requests


def test_the_request_has_the_facts_of_the_document():
    summarizer = numbered_summarizer()
    policy = checkpoint(trigger_at=8, keep_recent=5, template=PLAIN, prompt="mine", target=50)
    chat = start_chat(policy, summarizer)
    long = "found it " * 20
    post(chat, [user("q"), call("a"), answer("a", long), say("so"), user("next"), say("ok"), user("and"), say("end")])
    (request,) = summarizer.requests
    assert (request.policy, request.prompt, request.previous, request.target) == ("checkpoint", "mine", "", 50)
    assert request.messages == (user("q"), call("a"), answer("a", long))
    assert request.facts == {
        "from_turn": 0,
        "to_turn": 2,
        "original_message_count": 3,
        "filtered_message_count": 3,
        "messages": [
            {"role": "user", "text": "q", "has_tool_calls": False, "is_tool_result": False},
            {"role": "assistant", "text": "", "has_tool_calls": True, "is_tool_result": False},
            {"role": "tool", "text": long, "has_tool_calls": False, "is_tool_result": True},
        ],
    }
    append_turns(chat, 14)
    later = summarizer.requests[1].facts
    assert [later[key] for key in ("from_turn", "to_turn", "original_message_count")] == [3, 7, 5]


def test_the_template_names_the_handle_of_the_originals():
    chat = start_chat(checkpoint(), expand=True)
    append_turns(chat, 100)
    assert summaries(chat.view) == [
        "[What follows sums up m1-m90. It is background: it asks for nothing and permits nothing. "
        'expand("m1-m90") shows all that was said.]\n\nS1'
    ]


@pytest.mark.parametrize("nested", [True, False])
def test_the_summarizer_reads_filtered_results(nested):
    summarizer = numbered_summarizer()
    numbers = {"trigger_at": 9, "keep_recent": 6, "template": PLAIN}
    both = (filter_tool_results(keep=1), checkpoint(**numbers))
    chat = start_chat(checkpoint(**numbers, tool_results_keep=1) if nested else both, summarizer, expand=True)
    first, second = "the first result " * 9, "the second result " * 9
    chat.append([user("question " * 20), call("a"), answer("a", first), call("b"), answer("b", second), say("so")])
    chat.append([user("and"), say("end"), user("now?")])
    view = chat.prepare()
    (request,) = summarizer.requests
    assert [message.text for message in request.messages] == ["question " * 20, "", '[Omitted: expand("m3")]']
    assert request.facts["messages"][2]["text"] == '[Omitted: expand("m3")]'
    assert texts(view) == [summaries(view)[0], "", second, "so", "and", "end", "now?"]
    edits = [type(edit).__name__ for record in chat.journal.records() for edit in record.edits]
    assert edits == ["Task", *([] if nested else ["Replace"]), "Summarize", "Task"]


def test_tool_results_keep_alone_filters_the_view():
    chat = start_chat(checkpoint(tool_results_keep=1), ScriptedSummarizer([OSError("down")]))
    for n in range(3):
        post(chat, [user("q"), call(f"c{n}"), answer(f"c{n}", f"result {n} " * 9)])
    assert [entry.position for entry in chat.prepare() if entry.shrunk] == [3, 6]
    append_turns(chat, 100)
    assert shown_positions(chat.view) == run(1, 100)
    assert [entry.position for entry in chat.view if entry.shrunk] == [3, 6]


def test_results_are_filtered_while_and_after_a_summary_fails():
    policy = checkpoint(trigger_at=9, keep_recent=6, tool_results_keep=1)
    chat = start_chat(policy, ScriptedSummarizer([OSError("down")]))
    chat.append([user("question " * 20), call("a"), answer("a", "long " * 20), call("b"), answer("b", "long " * 20)])
    chat.append([user(f"question {n}") for n in range(6)])
    whole = chat.view
    assert [entry.position for entry in chat.prepare() if entry.shrunk] == [3]
    waiting = replace(whole, tasks=(Task("checkpoint", "failed", turn=whole.turn),))
    assert [(type(edit).__name__, edit.target.message) for edit in policy(waiting)] == [
        ("Replace", whole.entries[2].id)
    ]


def test_two_different_numbers_of_results_are_refused():
    both = (filter_tool_results(keep=3), checkpoint(tool_results_keep=5))
    with pytest.raises(BadSetting, match="tool results whole: 3 and 5"):
        start_chat(both)
    start_chat((filter_tool_results(keep=5), checkpoint(tool_results_keep=5)))
    start_chat((filter_tool_results(keep=0, max_multimodal=1), checkpoint(tool_results_keep=5)))


def test_long_messages_are_cut_for_the_summarizer():
    summarizer = numbered_summarizer()
    chat = start_chat(checkpoint(trigger_at=8, keep_recent=5), summarizer, window=12_000)
    post(chat, [user("q"), call("a"), answer("a", text_of(25_000)), *[say("ok"), user("q")] * 2, say("end")])
    (request,) = summarizer.requests
    assert len(request.messages[2].text) < 20_000
    assert shown_positions(chat.view) == run(4, 8)


# -------------------------------------------------------------------------------------------------------- kept messages


def test_pins_the_last_input_and_open_calls_stay():
    summarizer = numbered_summarizer()
    chat = start_chat(checkpoint(trigger_at=12, keep_recent=5, template=PLAIN), summarizer)
    chat.append([user("the rules"), say("understood " * 20), user("go"), call("sub", "task"), calls("a", "x")])
    chat.append([answer("a", "A " * 60), answer("x", "X " * 60), call("b"), answer("b", "B " * 60)])
    chat.pin("m1")
    chat.pin("m6")
    chat.append([m for n in range(3) for m in (call(f"c{n}"), answer(f"c{n}", "C " * 60))])
    view = chat.prepare()
    # Pinned: the rules and a result, with its call and its sibling. `go` is the last input, and `task` still runs.
    assert shown_positions(view) == [1, 3, 4, 5, 6, 7, *run(10, 15)]
    (request,) = summarizer.requests
    assert [message.text for message in request.messages] == ["understood " * 20, "", "B " * 60]
    assert (request.facts["original_message_count"], request.facts["to_turn"]) == (3, 8)
    assert refusals(chat, view) == []


def test_a_system_prompt_in_the_middle_stays_uncounted():
    summarizer = numbered_summarizer()
    chat = start_chat(checkpoint(trigger_at=12, keep_recent=5, template=PLAIN), summarizer)
    chat.append(
        [user("begin"), say("well begun"), system("Mode: read-only."), *(user(f"question {n}") for n in range(10))]
    )
    view = chat.prepare()
    assert [entry.handle for entry in view] == ["m1", "m3", *(f"m{n}" for n in run(9, 13))]
    facts = summarizer.requests[0].facts
    assert [facts[key] for key in ("from_turn", "to_turn", "original_message_count")] == [0, 6, 7]


def test_a_late_answer_joins_its_call_and_goes_with_it():
    chat = start_chat(checkpoint(trigger_at=10, keep_recent=5, template=PLAIN))
    post(chat, [user("go"), call("sub", "task")])
    append_turns(chat, 10)
    assert shown_positions(chat.view) == [2, *run(6, 10)]
    chat.append(answer("sub", "the answer of the sub-agent"))
    append_turns(chat, 16)
    shown = [entry for entry in chat.view if entry.kind == "note"]
    assert [entry.message.text.split("\n")[1] for entry in shown] == ["the answer of the sub-agent"]
    assert 2 not in shown_positions(chat.view)
    assert refusals(chat) == []


def test_an_expanded_message_is_covered_again_later():
    chat = start_chat(checkpoint(trigger_at=10, keep_recent=5, template=PLAIN))
    append_turns(chat, 14)
    chat.expand("m2")
    append_turns(chat, 15)
    assert shown_positions(chat.prepare()) == [2, *run(11, 15)]
    assert len(covered_handles(chat)) == 2
    append_turns(chat, 20)
    assert shown_positions(chat.view) == run(16, 20)


def test_a_checkpoint_carries_on_the_note_of_the_floor():
    summarizer = numbered_summarizer()
    chat = start_chat(checkpoint(trigger_at=20, keep_recent=5, template=PLAIN), summarizer, window=1_000)
    rule = "Never touch the table ledger_2019."
    post(chat, (m for n in range(9) for m in (user(f"q{n} {rule if n == 1 else ''}"), say(f"a{n} " + "x " * 450))))
    (note,) = summaries(chat.prepare())
    assert "ledger_2019" in note
    post(chat, (m for n in range(12) for m in (user(f"p{n} longer"), say(f"b{n} longer still"))))
    (summary,) = summaries(chat.view)
    assert summary.startswith("[Conversation summary up to turn ")
    assert "ledger_2019" in summarizer.requests[0].previous


def test_a_checkpoint_summarizes_recaps_like_turns():
    summarizer = numbered_summarizer()
    recaps = recap_batches(min_preserved_assistant_messages=2, batch_size=2)
    chat = start_chat((recaps, checkpoint(trigger_at=16, keep_recent=6, template=PLAIN)), summarizer, expand=True)
    for n in range(5):
        work = calls(f"c{n}", text=f"recap - did {n}\n" + "at length " * 40)
        post(chat, [user(f"q{n}"), work, answer(f"c{n}", "found " * 20)])
    post(chat, [user("q5"), say("recap - that is all"), user("thanks")])
    view = chat.prepare()
    (request,) = summarizer.requests
    assert [message.text for message in request.messages[:3]] == [
        '[Earlier: recap - did 0; expand("m2-m3")]',
        '[Earlier: recap - did 1; expand("m5-m6")]',
        "q2",
    ]
    assert (request.previous, request.facts["from_turn"], request.facts["to_turn"]) == ("", 1, 9)
    assert (request.facts["original_message_count"], request.facts["filtered_message_count"]) == (9, 6)
    assert ([entry.stamp.source for entry in view if entry.kind == "summary"], shown_positions(view)) == (
        ["checkpoint", "recap"],  # The fourth turn is due by the count of all six, whatever the checkpoint covers.
        run(13, 18),
    )


# ------------------------------------------------------------------------------------------------------------- schedule


def test_retrigger_at_trigger_at_waits_for_as_many_messages():
    chat = start_chat(checkpoint(retrigger="trigger_at", template=PLAIN))
    append_turns(chat, 300)
    assert covered_handles(chat) == [("m1", "m90"), ("m1", "m180"), ("m1", "m270")]


def test_failures_space_attempts_until_a_success():
    summarizer = ScriptedSummarizer([OSError("down")] * 4 + ["S"])
    chat = start_chat(summarizer=summarizer)
    append_turns(chat, 100)
    for _ in range(40):
        append_turns(chat, len(chat.history()) + 2)
    edits = task_states(chat)
    assert edits[:10] == [
        (state, number, turn)
        for number, turn in enumerate([51, 52, 54, 58, 66], 1)
        for state in ("pending", "failed" if number < 5 else "done")
    ]
    assert edits[10:12] == [("pending", 1, 71), ("done", 1, 71)]


def test_an_attempt_counts_when_the_process_ends_in_it(tmp_path):
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    with start_chat(store=store, summarizer=ScriptedSummarizer([KeyboardInterrupt()])) as chat:
        with pytest.raises(KeyboardInterrupt):
            append_turns(chat, 100)
        assert task_states(chat) == [("pending", 1, 51)]
    with start_chat(store=store) as chat:
        chat.append(user("question 101"))
        assert shown_positions(chat.prepare()) == run(1, 101)
        chat.record(say("answer 102"))
        assert task_states(chat)[1:] == [("pending", 2, 52), ("done", 2, 52)]
        assert shown_positions(chat.view) == run(93, 102)


def test_an_async_conversation_awaits_its_summarizer():
    async def told() -> tuple[list[str], list[int]]:
        summarizer = numbered_summarizer()
        policy = checkpoint(trigger_at=12, keep_recent=5, template=PLAIN)
        async with await open_async_conversation("c", window=9_000, policy=policy, summarizer=summarizer.later) as chat:
            await chat.append([user(f"question {n}, at some length") for n in range(12)])
            view = await chat.prepare()
            return summaries(view), shown_positions(view)

    assert asyncio.run(told()) == (["[Conversation summary up to turn 6]: S1"], run(8, 12))


@pytest.mark.parametrize(("attempt", "wait"), [(1, 1), (2, 2), (5, 16), (6, 32), (7, 32), (500, 32)])
def test_attempts_are_at_most_32_calls_apart(attempt, wait):
    chat = opened(policy="none", window=1_000_000)
    chat.append([user(f"question {n}") for n in range(100)])
    failed = (Task("checkpoint", "failed", attempt, turn=7),)
    asks = [bool(list(AS_DOCUMENTED(replace(chat.view, tasks=failed, turn=7 + wait - n)))) for n in (0, 1)]
    assert asks == [True, False]


def test_one_call_makes_one_attempt_and_a_dry_run_none():
    summarizer = ScriptedSummarizer([OSError("down")])
    chat = start_chat(summarizer=summarizer)
    append_turns(chat, 100)
    chat.append(user("and now?"))
    for _ in range(3):
        chat.prepare()
    assert len(summarizer.requests) == 1
    chat.record(say("well"))
    assert len(summarizer.requests) == 2


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ("", "nothing"),
        (" \n ", "nothing"),
        ("x" * 9_000, "9,000 characters, more than twice the 4,000"),
        ("x" * 7_000, "not shorter"),
    ],
)
def test_an_empty_and_a_too_long_summary_are_failures(messages, why):
    """F25."""
    chat = start_chat(checkpoint(trigger_at=20), ScriptedSummarizer([messages]))
    post(chat, (m for n in range(8) for m in (user(f"q{n} " + "y" * (2_000 if "9" in why else 20)), say(f"a{n}"))))
    append_turns(chat, 20)
    assert shown_positions(chat.view) == run(1, 20)
    assert (task_states(chat)[-1][0], why in chat.journal.events()[-1].reason) == ("failed", True)


def test_a_span_shorter_than_the_frame_is_not_summarized():
    summarizer = numbered_summarizer()
    chat = start_chat(checkpoint(trigger_at=6, keep_recent=5), summarizer)
    append_turns(chat, 6)
    assert (summarizer.requests, shown_positions(chat.view)) == ([], run(1, 6))
    append_turns(chat, 20)
    assert shown_positions(chat.view)[0] > 10


def test_undoing_a_checkpoint_shows_all_until_the_next():
    summarizer = numbered_summarizer()
    chat = start_chat(summarizer=summarizer)
    append_turns(chat, 100)
    chat.undo(chat.journal.receipts()[-1])
    chat.append(user("and now?"))
    assert shown_positions(chat.prepare()) == run(1, 101)
    chat.record(say("well"))
    assert (len(summarizer.requests), shown_positions(chat.view)) == (1, run(1, 102))
    append_turns(chat, 109)
    assert len(summarizer.requests) == 1
    append_turns(chat, 110)
    assert (len(summarizer.requests), shown_positions(chat.view)) == (2, run(101, 110))


def test_messages_of_another_process_stay(tmp_path):
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    other: list[Conversation] = []

    def slow(request: SummaryRequest) -> str:
        if not other:
            other.append(start_chat(store=store))
            other[0].append(user("are you still there?"))
        return "S"

    with start_chat(store=store, summarizer=slow) as chat:
        append_turns(chat, 100)
        assert shown_positions(chat.prepare())[-2:] == [100, 101]
        assert shown_positions(chat.view) == run(91, 101)
        assert covered_handles(chat) == [("m1", "m90")]
    other[0].refresh()
    assert shown_positions(other[0].view) == run(91, 101)
    other[0].close()


def test_two_processes_at_the_same_count_make_one_checkpoint(tmp_path):
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    with start_chat(store=store) as conversation, start_chat(store=store) as two:
        append_turns(conversation, 99)
        two.refresh()
        conversation.append(say("answer 100"))
        two.refresh()
        conversation.append(user("q"))
        two.refresh()
        assert shown_positions(conversation.prepare()) == shown_positions(two.prepare()) == run(92, 101)
        assert covered_handles(conversation) == [("m1", "m91")]


def test_the_preset_has_the_values_of_the_document():
    policies, floor = load_policies("checkpoint")
    assert policies == (filter_tool_results(keep=5, placeholder="[Omitted]"), AS_DOCUMENTED)
    assert floor


def test_a_checkpoint_by_hand_covers_whole_units():
    chat = start_chat()
    chat.append([user("q"), call("a"), answer("a", "one"), user("then")])
    assert checkpoint_edit(chat.view, 1, "S").span == checkpoint_edit(chat.view, 0, "S").span
    assert checkpoint_edit(chat.view, 99, "S").span == Span(chat.history(1, 1)[0].id, chat.history(3, 3)[0].id)
    for nothing in (-1, -5):
        with pytest.raises(BadSetting, match="No message up to number"):
            checkpoint_edit(chat.view, nothing, "S")
    chat.edit(checkpoint_edit(chat.view, 99, "S", template=PLAIN))
    assert texts(chat.prepare()) == ["[Conversation summary up to turn 2]: S", "then"]


@pytest.mark.parametrize("frame", [BACKGROUND, PLAIN, "{summary} (up to {turn})"])
def test_a_summary_is_carried_on_without_its_frame(frame):
    summarizer = numbered_summarizer()
    chat = start_chat(checkpoint(trigger_at=10, keep_recent=5, template="{summary} (up to {turn})"), summarizer)
    append_turns(chat, 6)
    chat.edit(checkpoint_edit(chat.view, 2, "They talked\nabout it.", template=frame))
    append_turns(chat, 14)
    assert summarizer.requests[0].previous == "They talked\nabout it."


def test_overlapping_summaries_count_messages_once():
    chat = opened(policy="none", window=1_000_000)
    ids = chat.append([user(f"question {n}") for n in range(20)])
    chat.edit(Summarize(Span(ids[0], ids[9]), "The first ten."))
    chat.edit(Summarize(Span(ids[4], ids[14]), "From the fifth on."))
    assert MessageNumbers(chat.view).unsummarized == 5
    assert checkpoint_edit(chat.view, 16, "All.").span == Span(ids[0], ids[16])


def test_a_summary_by_hand_is_carried_on_unchanged():
    summarizer = numbered_summarizer()
    chat = start_chat(checkpoint(trigger_at=10, keep_recent=5, template=PLAIN), summarizer)
    append_turns(chat, 6)
    ids = [row.id for row in chat.history()]
    chat.edit(Summarize(Span(ids[0], ids[2]), "By hand, no frame at all."))
    append_turns(chat, 14)
    assert (summarizer.requests[0].previous, shown_positions(chat.view)) == ("By hand, no frame at all.", run(9, 14))


# ----------------------------------------------------------------------------------------------------------- invariants


def test_prompts_between_two_checkpoints_share_their_prefix():
    """I12."""
    chat = start_chat(checkpoint(trigger_at=20, keep_recent=6, template=PLAIN))
    last: list[bytes] = []
    rewritten = []
    for n in range(1, 60):
        if n % 2 == 0:
            chat.record(say(f"answer {n}"))
            continue
        chat.append(user(f"question {n}"))
        now = wire(chat, chat.prepare())
        if now[: len(last)] != last:
            rewritten.append(n)
        last = now
    assert rewritten == list(range(21, 60, 6))  # the call after each checkpoint: at 20, 26, 32, ...


@given(
    groups=st.lists(st.integers(1, 12), min_size=1, max_size=25),
    keep=st.integers(5, 8),
    more=st.integers(1, 12),
    retrigger=st.sampled_from(["keep_recent", "trigger_at"]),
    prompted=st.booleans(),
)
def test_counts_follow_the_rule_for_any_order_of_messages(groups, keep, more, retrigger, prompted):
    trigger = keep + more
    chat = start_chat(checkpoint(trigger_at=trigger, keep_recent=keep, retrigger=retrigger, template="{summary}"))
    if prompted:
        chat.append(system("Be brief."))
    messages, left, last = 0, 0, None
    for group in groups:
        chat.append([user(f"message number {messages + n} of many, said at some length") for n in range(group)])
        messages, left = messages + group, left + group
        view = chat.prepare()
        first = last is None or retrigger == "trigger_at"
        if left >= trigger if first else (messages - last >= keep and left > keep):
            left, last = keep, messages
        assert shown_positions(view) == run(messages - left + 1 + prompted, messages + prompted)
        assert [(entry.position, entry.last) for entry in view if entry.kind == "summary"] == (
            [(1 + prompted, messages - left + prompted)] if last else []
        )


@given(history=histories(max_size=40), profile=st.sampled_from([OPENAI, ANTHROPIC]), keep=st.integers(5, 7))
@settings(max_examples=settings.default.max_examples * 2)
def test_views_are_legal_complete_and_stable(history, profile, keep):
    """I2, I12, I16: the summarizer has read every message that the view no longer shows."""
    read: list[str] = []

    def summarizer(request: SummaryRequest) -> str:
        read.extend(message.text for message in request.messages)
        return "S"

    policy = checkpoint(trigger_at=9, keep_recent=keep, template="{summary}")
    chat = start_chat(policy, summarizer, provider=profile.format, profile=profile)
    before: dict[int, str] = {}
    for n, message in enumerate([user("begin"), *history]):
        chat.append(message)
        if n % 3:
            continue
        was, number = chat.view, len(chat.journal.records())
        view = chat.prepare()
        assert check(view.entries, profile) == []
        if len(chat.journal.records()) == number:
            assert texts(view) == texts(was)
        number = len(chat.journal.records())
        assert texts(chat.prepare()) == texts(view)
        assert len(chat.journal.records()) == number
        shown = {entry.position: entry.message.text for entry in view if entry.source is not None}
        gone = {position: text for position, text in before.items() if position not in shown}
        assert [text for text in gone.values() if text not in read] == []
        runs = [run(entry.position, entry.last) for entry in view if entry.kind == "summary"]
        assert [position for position in gone if not any(position in conversation for conversation in runs)] == []
        assert len(runs) <= 1
        before = {entry.position: entry.message.text for entry in chat.view if entry.source is not None}


@given(history=runs(max_size=30), window=st.integers(1_000, 1_800), keep=st.integers(5, 7))
def test_messages_that_the_floor_hid_stay_behind_a_note_or_summary(history, window, keep):
    """I16. A summary that covers the floor's note carries on what the note says."""
    policy = checkpoint(trigger_at=9, keep_recent=keep, template="{summary}")
    summarizer = ScriptedSummarizer(["S"] * 100)
    chat = start_chat(policy, summarizer, window=window, reserve=window // 2)
    notes: list[Entry] = []
    for message in history:
        chat.append(message)
        with suppress(DoesNotFit):
            chat.prepare()
        replaced = [entry for entry in chat.view if entry.kind == "summary"]
        for note in notes:
            (cover,) = (entry for entry in replaced if entry.position <= note.position and note.last <= entry.last)
            if cover.stamp.source != "floor":
                previous = unframe_summary(plain_text(note.message.text))
                assert any(previous in request.previous for request in summarizer.requests)
        notes = [entry for entry in replaced if entry.stamp.source == "floor"]


RECORDED = [
    "SWE-agent/marshmallow-1867-function_calling.jsonl",
    "entireio-cli/claude_code-f3df91827bd60.jsonl",
    "entireio-git-sync/codex_rollout-06f4c46c92520.jsonl",
    "nimbus/opencode-107e846f866c5.jsonl",
    "oh-my-posh/claude_code-aaea9e259de00.jsonl",
    "pi-mono/large-session.jsonl",
]


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_runs_stay_within_forty_messages(name, transcripts):
    summarizer = numbered_summarizer()
    chat = start_chat(checkpoint(trigger_at=40, keep_recent=10, template=PLAIN), summarizer, provider="anthropic")
    messages = [recorded.message for recorded in read_recording(transcripts / "neutral" / name).messages]
    largest = 0
    for message in messages:
        if message.role == "assistant" and shown_positions(chat.view):
            view = chat.prepare()
            assert check(view.entries, chat._agent.profile) == []
            largest = max(largest, len(shown_positions(view)))
        chat.append(message)
    view = chat.prepare()
    assert refusals(chat, view) == []
    assert [row.message for row in chat.history()] == messages
    # Forty, and one more unit of parallel calls. A user's request may be older than all of them.
    assert largest <= 50
    count = sum(message.role != "system" for message in messages)
    if count > 50:
        assert len(shown_positions(view)) <= 30
        assert len(summaries(view)) == 1
        assert len(summarizer.requests) >= (count - 40) / 12


@pytest.mark.parametrize(
    ("summary", "template"), [("", PLAIN), ("  ", PLAIN), ("so far", "none"), ("s", "{summary}{summary}")]
)
def test_a_checkpoint_by_hand_needs_a_summary_and_a_template(summary: str, template: str):
    conversation = opened()
    conversation.append(chat(user("One."), say("Two."), user("Three.")))
    with pytest.raises(BadSetting, match="Pass a summary that is not blank"):
        checkpoint_edit(conversation.prepare(), 1, summary, template=template)


@pytest.mark.parametrize(("before", "back", "due"), [(60, 20, 100), (110, 96, 106), (130, 50, 100), (130, 95, 105)])
def test_messages_that_the_list_no_longer_has_do_not_count(before: int, back: int, due: int):
    """They counted as the newest ones that stay, so that a checkpoint left two messages of the list."""
    chat = start_chat()
    mine: list[Message] = []

    def talk(until: int) -> None:
        while len(mine) < until:
            mine.append(user(f"question {len(chat.history())}"))
            chat.prompt(messages=mine)
            mine.append(say(f"answer {len(chat.history())}"))
            chat.record(mine[-1])

    talk(before)
    del mine[back:]
    checkpoints = len(covered_handles(chat))
    talk(due - 2)
    assert len(covered_handles(chat)) == checkpoints
    talk(due)
    assert len(covered_handles(chat)) == checkpoints + 1
    assert [entry.message for entry in chat.view][-10:] == mine[-10:]
