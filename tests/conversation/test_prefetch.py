"""Summaries in the background: when a call waits for them, uses them and drops them.

The tests run the background jobs by hand. A message counts 500 tokens, the window takes 10,000; a summary is requested
at 5,000 tokens and due at 10,000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from foveate import Conversation, Text, View
from foveate.core.budget import measure_excess
from foveate.edits import Hide, Pin, Replace, Restore, Span, Summarize, Target, Task
from foveate.errors import BadSetting, CompactionFailed
from foveate.policies import checkpoint, compact_on_overflow, expire_results
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.summarizers import Answer, NeedsSummary, Summary, SummaryRequest
from foveate.testing import answer, call, say, text_of, user
from foveate.testing.background import HandCranked
from foveate.testing.stubs import ScriptedSummarizer
from foveate.types import Lease

from .shells import opened, refusals, texts

COMPACT = compact_on_overflow(ahead=0.5, keep_recent=0.25, framing="{summary}")
SIZE = {"window": 11_000, "reserve": 1_000}


def story(
    background: Any, policy: Any = COMPACT, answers: Any = ("In short.",), **options: Any
) -> tuple[Conversation, ScriptedSummarizer]:
    asked = ScriptedSummarizer(answers)
    policies = policy if isinstance(policy, tuple) else (policy,)
    return opened(policy=policies, summarizer=asked, background=background, **{**SIZE, **options}), asked


def ask(one: Conversation, number: int) -> View:
    """Answer the open question, append a question of 500 tokens, and return the next view."""
    if number > 1:
        one.record(say(f"a{number - 1} " + text_of(490, number)))
    one.append(user(f"q{number} " + text_of(490, number)))
    return one.prepare()


def talk(one: Conversation, first: int, last: int) -> View:
    """Append questions with these numbers and answers between them, about 1,000 tokens each pair."""
    for number in range(first, last):
        ask(one, number)
    return ask(one, last)


def begins(view: View) -> list[str]:
    return [text.split(" ")[0] if text[:1] in "qa" else text for text in texts(view)]


def said(first: int, last: int) -> list[str]:
    """Return the first words of the messages of `talk`."""
    return [f"{who}{number}" for number in range(first, last + 1) for who in "qa"][:-1]


def tasks(one: Conversation) -> list[tuple[str, int, str]]:
    made = [edit for record in one.journal.records() for edit in record.edits if isinstance(edit, Task)]
    return [(task.state, task.attempt, task.reason) for task in made]


# ------------------------------------------------------------------------------------------------------ when it is made


def test_summary_is_prefetched_and_used_without_waiting():
    """F31: messages that arrive during the summary stay unchanged."""
    background = HandCranked()
    one, asked = story(background)
    talk(one, 1, 5)
    assert background.jobs == []
    talk(one, 6, 6)
    assert (len(background.jobs), one.view.preparing, asked.requests) == (1, ("compact",), [])
    talk(one, 7, 7)
    background.crank()
    view = talk(one, 8, 10)
    assert begins(view) == said(1, 10)
    assert one.journal.records() == []
    view = talk(one, 11, 11)
    assert begins(view) == ["In short.", *said(6, 11)]
    assert tasks(one) == [("done", 1, "")]
    assert (background.waits, len(asked.requests), view.preparing) == (0, 1, ())
    assert [message.text[:2] for message in asked.requests[0].messages] == [*said(1, 5), "a5"]
    assert refusals(one, view) == []
    assert one.journal.verify() == []
    (receipt,) = one.journal.receipts()
    assert "when it was asked for" in receipt.edits[0].reason


def test_prefetched_summary_keeps_what_a_due_one_would_keep():
    background = HandCranked()
    one, _ = story(background, compact_on_overflow(ahead=0.8, keep_recent=0.25))
    other, _ = story(False)
    for each in (one, other):
        talk(each, 1, 9)
    assert len(background.jobs) == 1
    background.crank()
    ahead, at_once = talk(one, 10, 11), talk(other, 10, 11)
    assert abs(len(ahead) - len(at_once)) <= 2


def test_conversation_waits_for_a_summary_that_it_needs():
    background = HandCranked()
    one, asked = story(background)
    talk(one, 1, 10)
    assert background.waits == 0
    assert begins(talk(one, 11, 11)) == ["In short.", *said(6, 11)]
    assert (background.waits, len(asked.requests)) == (1, 1)


def test_needless_summary_is_not_requested_in_a_full_window():
    def clears_when_full(view: View) -> Iterator[Replace]:
        if measure_excess(view):
            old = [entry for entry in view.entries[:-4] if entry.is_result and not entry.shrunk]
            yield from (Replace(Target(entry.id), (Text("[cleared]"),), "clears") for entry in old)

    background, other = HandCranked(), HandCranked()
    one, asked = story(background, (clears_when_full, COMPACT))
    two, _ = story(other, (COMPACT,))
    for each in (one, two):
        each.append("Go.")
        run(each, 1, 40)
    assert (background.jobs, asked.requests) == ([], [])
    assert other.jobs


def test_conversation_continues_while_the_view_fits():
    background = HandCranked()
    one, _ = story(background, compact_on_overflow(threshold=0.8, ahead=0.5, framing="{summary}"))
    view = talk(one, 1, 10)
    assert (begins(view), background.waits, len(background.jobs)) == (said(1, 10), 0, 1)
    background.crank()
    assert begins(talk(one, 11, 11))[0] == "In short."
    assert background.waits == 0


def test_prefetched_summaries_are_used_before_the_floor_cuts():
    def only_prepares(view: View) -> Iterator[NeedsSummary]:
        entries = view.entries[:9]
        if len(view) > 10 and "prepares" not in view.preparing and not any(entry.span for entry in view):
            span = Span(entries[0].id, entries[-1].id)
            request = SummaryRequest("prepares", tuple(entry.message for entry in entries), 100)
            yield NeedsSummary(request, lambda said: [Summarize(span, said.text, "prepares")], "ahead")

    background = HandCranked()
    one, _ = story(background, only_prepares)
    talk(one, 1, 9)
    background.crank()
    assert begins(talk(one, 10, 10)) == said(1, 10)
    assert begins(talk(one, 11, 11)) == ["In short.", "a5", *said(6, 11)]


def test_jump_over_the_threshold_works_as_without_a_background():
    background = HandCranked()
    one, asked = story(background)
    one.append([user("Go."), say(text_of(2_000)), user("And?"), say(text_of(8_000)), user("So?")])
    assert texts(one.prepare())[0] == "In short."
    assert (background.jobs, len(asked.requests)) == ([], 1)
    assert tasks(one) == [("pending", 1, ""), ("done", 1, "")]


def test_without_a_background_nothing_is_prefetched():
    for options in ({"background": False}, {"background": None, "summarizer": "first-characters"}):
        one = opened(policy=(COMPACT,), **{"summarizer": lambda request: "In short.", **SIZE, **options})
        talk(one, 1, 9)
        assert (one.view.preparing, one.journal.records()) == ((), [])
        talk(one, 10, 11)
        assert tasks(one) == [("pending", 1, ""), ("done", 1, "")]


def test_summary_names_its_author():
    background = HandCranked()
    one = opened(
        policy=(COMPACT,),
        summarizer=lambda request: Summary("In short.", "small-model", ("big-model: no quota",)),
        background=background,
        **SIZE,
    )
    talk(one, 1, 8)
    background.crank()
    talk(one, 9, 11)
    (receipt,) = one.journal.receipts()
    assert [(edit.by, edit.refused) for edit in receipt.edits if isinstance(edit, Summarize)] == [
        ("small-model", ("big-model: no quota",))
    ]


def test_dry_run_shows_the_prefetched_summary_and_changes_nothing():
    background = HandCranked()
    one, asked = story(background)
    talk(one, 1, 10)
    background.crank()
    one.append(user("q11 " + text_of(990)))
    ask_now = one.plan()
    assert [request.policy for request in ask_now.requests] == ["compact"]  # It is taken in by the next `prepare`.
    assert len(asked.requests) == 1
    assert begins(one.prepare())[0] == "In short."


def test_next_summary_continues_the_last_one():
    background = HandCranked()
    one, asked = story(background, answers=("S1", "S2"))
    talk(one, 1, 8)
    background.crank()
    talk(one, 9, 15)
    background.crank()
    view = talk(one, 16, 19)
    assert texts(view)[0] == "S2"
    assert [request.previous for request in asked.requests] == ["", "S1"]
    assert sum(entry.kind == "summary" for entry in view) == 1


# -------------------------------------------------------------------------------------------------------- when it fails


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([OSError("down")], "the summarizer raised OSError: down"),
        ([""], "the summarizer returned nothing"),
        (["word " * 9_000], "no progress: the summary is not shorter than what it stands for"),
    ],
)
def test_failed_prefetch_is_recorded_and_counted(answers: list[Any], why: str):
    """F25"""
    background = HandCranked()
    one, _ = story(background, answers=answers)
    talk(one, 1, 8)
    assert tasks(one) == []
    background.crank()
    assert begins(ask(one, 9)) == said(1, 9)
    assert tasks(one) == [("failed", 1, why)]


def run(one: Conversation, first: int, last: int) -> View:
    """Append calls of a tool and their results, 500 tokens each, without another user input."""
    for number in range(first, last + 1):
        one.prepare()
        one.record(call(f"c{number}", "read", n=number))
        one.append(answer(f"c{number}", text_of(480, number)))
    return one.prepare()


def test_failing_model_is_asked_a_bounded_number_of_times():
    """F16."""
    asked_at: list[int] = []
    background = HandCranked()
    policy = compact_on_overflow(ahead=0.5, keep_recent=0.25, framing="{summary}", digest=False)
    one, asked = story(background, policy, answers=[OSError("down")])
    one.append("Go.")
    for number in range(1, 60):
        view = run(one, number, number)
        if background.crank():
            asked_at.append(number)
        assert view.tokens <= 10_000
        assert refusals(one, view) == []
    assert len(asked_at) == 2
    assert len(asked.requests) == 3
    assert [(state, attempt) for state, attempt, _ in tasks(one) if state != "skipped"] == [
        ("failed", 1),
        ("failed", 2),
        ("pending", 3),
        ("failed", 3),
    ]


def test_digest_replaces_a_hanging_summary_after_the_patience():
    """F16."""
    background = HandCranked(hangs=True)
    one, asked = story(background)
    one.append("Go.")
    view = run(one, 1, 25)
    assert (view.tokens <= 10_000, background.waits, asked.requests) == (True, 1, [])
    assert [job.is_cancelled for job in background.jobs[:1]] == [True]
    (summary, *_), *_ = [receipt.edits for receipt in one.journal.receipts()]
    assert isinstance(summary, Summarize)
    assert (summary.by, summary.refused) == ("digest", ("summarizer: no answer came in time",))
    assert refusals(one, view) == []


def test_floor_makes_the_view_fit_where_no_digest_is_allowed():
    """F16."""
    background = HandCranked(hangs=True)
    one, asked = story(background, compact_on_overflow(ahead=0.5, keep_recent=0.25, digest=False))
    one.append("Go.")
    view = run(one, 1, 25)
    assert (view.tokens <= 10_000, background.waits, asked.requests) == (True, 1, [])
    assert [job.is_cancelled for job in background.jobs[:1]] == [True]
    assert tasks(one)[0] == ("failed", 1, "no answer came in time")
    assert refusals(one, view) == []


def test_hanging_summary_is_abandoned_after_some_calls():
    """F16."""
    background = HandCranked(hangs=True)
    one, _ = story(background, checkpoint(trigger_at=12, keep_recent=6, ahead=2), window=100_000)
    talk(one, 1, 40)
    assert background.waits == 0
    assert len(background.jobs) > 1
    assert all(job.is_cancelled for job in background.jobs[:-1])
    assert {reason for state, _, reason in tasks(one)} == {"no answer came in time"}


def test_strict_policy_raises_when_the_summary_is_due_not_before():
    background = HandCranked()
    strict = compact_on_overflow(ahead=0.5, framing="{summary}", strict=True)
    one, _ = story(background, strict, answers=[OSError("down")])
    one.append("Go.")
    run(one, 1, 11)
    background.crank()
    run(one, 12, 13)
    assert tasks(one) == [("failed", 1, "the summarizer raised OSError: down")]
    with pytest.raises(CompactionFailed):
        run(one, 14, 30)
    assert [message.role for message in (row.message for row in one.history())][-1] == "tool"
    assert one.journal.verify() == []


def test_strict_policy_raises_once_after_waiting_in_vain():
    strict = compact_on_overflow(ahead=0.5, framing="{summary}", strict=True)
    one, _ = story(HandCranked(), strict, answers=[OSError("down")])
    one.append("Go.")
    with pytest.raises(CompactionFailed, match="down"):
        run(one, 1, 30)
    assert tasks(one) == [("failed", 1, "the summarizer raised OSError: down")]
    with pytest.raises(CompactionFailed) as second:
        one.prepare()
    assert second.value.attempt == 2


# ----------------------------------------------------------------------------------------------------- when it is stale


def replaced(one: Conversation) -> None:
    one.edit(Replace(Target(one.history()[1].id), (Text("[taken out]"),)))


def hidden(one: Conversation) -> None:
    one.edit(Hide(Target(one.history()[1].id)))


def hidden_run(one: Conversation) -> None:
    one.edit(Hide(Span(one.history()[1].id, one.history()[4].id)))


def summed_up(one: Conversation) -> None:
    one.edit(Summarize(Span(one.history()[0].id, one.history()[3].id), "By hand."))


def pinned(one: Conversation) -> None:
    one.pin("m3")


def wanted(one: Conversation) -> None:
    one.edit(Restore((Target(one.history()[1].id),)))


@pytest.mark.parametrize("act", [replaced, hidden, hidden_run, summed_up, pinned, wanted])
def test_prefetched_summary_of_an_edited_span_is_dropped(act: Callable[[Conversation], None]):
    """F35."""
    background = HandCranked()
    one, _ = story(background)
    talk(one, 1, 8)
    act(one)
    background.crank()
    before = texts(one.view)
    number = one._agent.head.number
    assert texts(one.prepare()) == before
    ((state, attempt, why),) = tasks(one)
    assert (state, attempt) == ("skipped", 1)
    assert "was changed meanwhile" in why
    assert one._agent.head.number == number + 1


def test_prefetched_summary_of_an_expanded_span_is_dropped():
    def shortens(view: View) -> Iterator[Replace]:
        second = view.entries[1:2]
        yield from (Replace(Target(e.id), (Text("[short]"),), "s") for e in second if not (e.shrunk or e.renewed))

    background = HandCranked()
    one, _ = story(background, (shortens, COMPACT))
    talk(one, 1, 8)
    background.crank()
    one.expand("m2")
    assert begins(one.prepare()) == said(1, 8)
    assert tasks(one) == [("skipped", 1, "m2 was changed meanwhile")]


def test_prefetched_edit_is_dropped_if_a_policy_was_faster():
    acts: list[bool] = []

    def asks(view: View) -> Iterator[NeedsSummary]:
        entry = view.entries[1] if len(view) > 2 else None
        if entry and "asks" not in entry.shrunk_by:
            request = SummaryRequest("asks", (entry.message,), 50)
            yield NeedsSummary(request, lambda said: [Replace(Target(entry.id), (Text(said.text),), "asks")], "soon")

    def shortens(view: View) -> Iterator[Replace]:
        yield from (Replace(Target(e.id), (Text("[short]"),), "s") for e in view.entries[1:2] if acts and not e.shrunk)

    background = HandCranked()
    one, asked = story(background, (asks, shortens), answers=("Of the whole.", "Of what is left."))
    talk(one, 1, 3)
    acts.append(True)
    talk(one, 4, 4)
    background.crank()
    assert texts(talk(one, 5, 5))[1] == "Of what is left."
    assert [len(request.messages[0].text) > 100 for request in asked.requests] == [True, False]


def test_prefetched_summary_of_a_shortened_span_is_still_used():
    """A summary of more messages than are shown now is still true."""
    shrinks: list[str] = []

    def shortens(view: View) -> Iterator[Replace]:
        entries = [entry for entry in view if entry.id in shrinks and not entry.shrunk]
        yield from (Replace(Target(entry.id), (Text("[short]"),), "shortens") for entry in entries)

    background = HandCranked()
    one, asked = story(background, (shortens, COMPACT))
    talk(one, 1, 8)
    background.crank()
    shrinks.append(one.history()[1].id)
    talk(one, 9, 11)
    assert begins(talk(one, 12, 12))[0] == "In short."
    assert (background.waits, len(asked.requests), tasks(one)) == (0, 1, [("done", 1, "")])


def test_prefetched_summary_that_frees_too_little_is_dropped():
    shrinks: list[bool] = []

    def shortens(view: View) -> Iterator[Replace]:
        old = [entry for entry in view.entries[:8] if shrinks and not entry.shrunk and entry.source is not None]
        yield from (Replace(Target(entry.id), (Text("[short]"),), "shortens") for entry in old)

    background = HandCranked()
    one, _ = story(background, (shortens, COMPACT))
    talk(one, 1, 8)
    background.crank()
    shrinks.append(True)
    talk(one, 9, 10)
    assert tasks(one)[0] == ("skipped", 1, "it would free too little by now")


def test_each_late_summary_delays_the_next_request():
    background = HandCranked()
    one, _ = story(background, window=110_000)
    one.append([user("Go."), *(say(text_of(496, n)) for n in range(120))])
    begun = []
    for number in range(40):
        one.append("And?")
        one.prepare()
        if background.waiting:
            begun.append(number)
            background.crank()
            one.edit(Replace(Target(one.history()[3].id), (Text(f"[{number}]"),)))
        one.record(say("So."))
    assert begun == [0, 2, 5, 10, 19, 36]


@pytest.mark.parametrize("is_written", [True, False])
def test_prefetched_summary_of_a_departed_past_is_dropped(is_written: bool):
    background = HandCranked()
    one, _ = story(background)
    talk(one, 1, 8)
    if is_written:
        background.crank()
    kept = [row.message for row in one.history()]
    wire = one.format.render([*kept[:6], user("Otherwise."), *kept[6:]])
    view = one.prepare(messages=wire)
    assert begins(view)[:7] == [*said(1, 3), "a3", "Otherwise."]
    assert (view.preparing, background.waiting) == ((), [])
    assert tasks(one) == [("skipped", 1, "the conversation departed from the past that it was made of")]


def test_fork_does_not_inherit_a_prefetched_summary():
    background = HandCranked()
    one, _ = story(background)
    talk(one, 1, 8)
    fork = one.fork("other")
    assert (fork.view.preparing, one.view.preparing) == ((), ("compact",))
    background.crank()
    assert begins(ask(fork, 9)) == said(1, 9)
    assert fork.journal.records() == []


def test_second_of_two_prefetched_summaries_is_dropped(tmp_path):
    """F35."""
    backgrounds = HandCranked(), HandCranked()
    one, _ = story(backgrounds[0], store=SqliteStore(tmp_path / "c.db"), answers=("One.",))
    two, _ = story(backgrounds[1], store=SqliteStore(tmp_path / "c.db"), answers=("Two.",))
    talk(one, 1, 7)
    two.refresh()
    two.prepare()
    assert [len(background.jobs) for background in backgrounds] == [1, 1]
    for background in backgrounds:
        background.crank()
    talk(one, 8, 10)
    two.refresh()
    two.append(user(text_of(2_000)))
    one.refresh()
    assert texts(one.prepare())[0] == "One."
    view = two.prepare()
    assert texts(view)[0] == "One."
    two.refresh()
    assert texts(two.prepare())[0] == "One."
    assert [entry.kind for entry in two.view].count("summary") == 1
    assert [state for state, _, _ in tasks(two)] == ["done", "skipped"]
    assert two.journal.verify() == []


def test_stale_plan_is_made_again_and_keeps_prefetched_summaries(tmp_path):
    """F35."""

    class Interferes(SqliteStore):
        hook: Callable[[], None] | None = None

        def commit(self, *given: Any) -> Any:
            hook, self.hook = self.hook, None
            if hook:
                hook()
            return super().commit(*given)

    background, store = HandCranked(), Interferes(tmp_path / "c.db")
    one, asked = story(background, store=store)
    other = opened(policy="none", store=SqliteStore(tmp_path / "c.db"))
    talk(one, 1, 10)
    background.crank()
    other.refresh()
    store.hook = lambda: other.edit(Pin(Target(other.history()[-1].id))) and None
    one.append(user(text_of(1_200)))
    assert texts(one.prepare())[0] == "In short."
    assert (len(asked.requests), background.waits) == (1, 0)
    assert tasks(one) == [("done", 1, "")]


# ------------------------------------------------------------------------------------------------------- other policies


def test_prefetched_checkpoint_covers_the_same_span_as_a_due_one():
    background = HandCranked()
    one, _ = story(background, checkpoint(trigger_at=20, keep_recent=6, ahead=4), window=200_000)
    other, _ = story(False, checkpoint(trigger_at=20, keep_recent=6), window=200_000)
    for each in (one, other):
        talk(each, 1, 9)
    assert len(background.jobs) == 1
    background.crank()
    assert one.journal.records() == []
    assert texts(talk(one, 10, 11)) == texts(talk(other, 10, 11))
    assert (background.waits, tasks(one)) == (0, [("done", 1, "")])
    first = one.view.entries[0]
    assert (first.kind, first.position, first.last) == ("summary", 1, 14)


def test_prefetched_checkpoints_continue_each_other():
    background = HandCranked()
    one, asked = story(
        background, checkpoint(trigger_at=20, keep_recent=6, ahead=3, tool_results_keep=2), window=200_000, expand=True
    )
    for number in range(1, 40):
        one.append(f"q{number}")
        one.prepare()
        one.record(call(f"c{number}", "read", n=number))
        one.append(answer(f"c{number}", text_of(100, number)))
        one.prepare()
        one.record(say(f"a{number}"))
        background.crank()
        assert refusals(one) == []
    assert background.waits == 0
    assert len(one.view) < 26
    assert len(asked.requests) > 5
    assert {state for state, _, _ in tasks(one)} == {"done"}


def sums_up(view: View) -> Iterator[NeedsSummary]:
    """A policy that requests a summary of the first three messages at once."""
    entries = view.entries[:3]
    if len(view) < 4 or any(entry.span for entry in view):
        return
    span = Span(entries[0].id, entries[-1].id)
    request = SummaryRequest("sums", tuple(entry.message for entry in entries), 100)
    yield NeedsSummary(
        request, lambda said: [Summarize(span, said.text, "sums")] if said.text else [Hide(span, "sums", said.error)]
    )


def test_eager_background_takes_due_summaries():
    background = HandCranked(eager=True)
    one, _ = story(background, sums_up)
    view = talk(one, 1, 3)
    assert (begins(view), len(background.jobs)) == (said(1, 3), 1)
    background.crank()
    one.record(say("a3"))  # What is planned behind a reply takes it up too.
    assert texts(one.view)[0] == "In short."
    assert background.waits == 0


def test_record_never_waits_for_a_summary():
    background = HandCranked(eager=True)
    one, _ = story(background, sums_up)
    talk(one, 1, 3)
    one.record(say(text_of(9_500)))
    assert (bool(measure_excess(one.view)), len(background.waiting), background.waits) == (True, 1, 0)
    one.append("And?")
    assert texts(one.prepare())[0] == "In short."
    assert background.waits == 1


def test_obsolete_prefetch_is_dropped():
    def asks_once(view: View) -> Iterator[NeedsSummary]:
        entry = view.entries[0]
        if view.turn == 2:
            request = SummaryRequest("once", (entry.message,), 50)
            yield NeedsSummary(request, lambda said: [Pin(Target(entry.id), "once", said.text)], "soon")

    background = HandCranked()
    one, _ = story(background, asks_once)
    talk(one, 1, 2)
    assert len(one._session.prefetch._pending) == 1
    background.crank()
    assert talk(one, 3, 3).turn == 3
    assert (one._session.prefetch._pending, one.journal.receipts()) == ({}, [])


def test_leases_that_end_together_are_summarized_in_batches():
    background = HandCranked(eager=True)
    one, asked = story(background, expire_results(), window=100_000)
    one.append(user("Go."))
    for number in range(6):
        one.prepare()
        one.record(call(f"c{number}", "read", n=number))
        lease = Lease(
            expiration_turns=6 - number, expiration_mode="compact", compact_mode="summary", compact_length=100
        )
        one.append(answer(f"c{number}", text_of(400, number)), lease=lease)
    for _ in range(6):
        one.prepare()
        assert len(background.waiting) <= 4
        background.crank()
        one.record(say("Hm."))
        one.append("And?")
    one.prepare()
    assert len(asked.requests) == 6
    assert sum("In short." in text for text in texts(one.view)) == 6


def test_answer_may_cause_a_further_request_in_the_background():
    def twice(view: View) -> Iterator[NeedsSummary]:
        first = view.entries[0]
        if first.is_pinned():
            return

        def translate(answer: Answer) -> Iterator[NeedsSummary]:
            yield NeedsSummary(SummaryRequest("two", (), 50, answer.text, "translate"), pin)

        def pin(answer: Answer) -> list[Pin]:
            return [Pin(Target(first.id), "two", answer.text)]

        yield NeedsSummary(SummaryRequest("two", (first.message,), 50), translate, "soon")

    background = HandCranked()
    one, asked = story(background, twice, answers=("in short", "en bref"))
    one.append("Hi.")
    one.prepare()
    background.crank()
    one.prepare()
    background.crank()
    one.prepare()
    assert [request.prompt for request in asked.requests] == ["", "translate"]
    assert [edit.reason for receipt in one.journal.receipts() for edit in receipt.edits] == ["en bref"]
    assert background.waits == 0


# --------------------------------------------------------------------------------------------------------- all the rest


def test_prefetch_emits_events():
    heard: list[Any] = []
    background = HandCranked()
    one, _ = story(background, answers=[OSError("down"), "In short."], on_event=heard.append)
    talk(one, 1, 8)
    background.crank()
    talk(one, 9, 9)
    talk(one, 10, 10)
    background.crank()
    talk(one, 11, 12)
    assert [(event.kind, event.reason) for event in heard if event.kind.startswith("compaction")] == [
        ("compaction-failed", "the summarizer raised OSError: down"),
        ("compaction-done", ""),
    ]


def test_failing_background_works_like_none():
    def none_left(call: Callable[[], object]) -> Any:
        raise RuntimeError("can't start new thread")

    one, asked = story(none_left)
    assert begins(talk(one, 1, 10)) == said(1, 10)
    assert begins(talk(one, 11, 11))[0] == "In short."
    assert (len(asked.requests), tasks(one)) == (1, [("pending", 1, ""), ("done", 1, "")])


def test_closing_abandons_a_summary_in_progress():
    background = HandCranked()
    one, _ = story(background)
    talk(one, 1, 8)
    one.close()
    assert [job.is_cancelled for job in background.jobs] == [True]


def test_prefetched_summaries_do_not_outlive_the_process():
    background, store = HandCranked(), MemoryStore()
    one, _ = story(background, store=store)
    talk(one, 1, 8)
    background.crank()
    again, asked = story(False, store=store)
    assert (again.view.preparing, again.journal.records(), again.journal.verify()) == ((), [], [])
    assert texts(again.view) == texts(one.view)
    talk(again, 9, 11)
    assert (tasks(again), len(asked.requests)) == ([("pending", 1, ""), ("done", 1, "")], 1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: compact_on_overflow(ahead=1.0), "0 to below 1"),
        (lambda: compact_on_overflow(ahead=-0.1), "0 to below 1"),
        (lambda: checkpoint(ahead=10), "below keep_recent"),
        (lambda: checkpoint(ahead=-1), "below keep_recent"),
        (lambda: opened(background=7), "background="),
    ],
)
def test_invalid_prefetch_settings_are_refused(make: Callable[[], object], said: str):
    with pytest.raises(BadSetting, match=said):
        make()
