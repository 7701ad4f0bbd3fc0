"""Compaction at small windows, over imports and in many rounds: a summary stands for old messages, not the floor."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from conversation.shells import opened, texts
from core.story import Story

from foveate.core.call_context import Budget
from foveate.core.edits import Task
from foveate.core.messages import Message
from foveate.core.summaries import NeedsSummary
from foveate.core.view import Entry, View
from foveate.policies import compact_on_overflow
from foveate.policies.summary_input import summary_tokens_max
from foveate.summarizers import SummaryRequest, digest_history
from foveate.testing import answer, call, say, text_of, user
from foveate.testing.stubs import ScriptedSummarizer

WINDOWS = [2_000, pytest.param(4_000, marks=pytest.mark.slow), 8_000, pytest.param(32_000, marks=pytest.mark.slow)]
PRESETS = ["balanced", "prune-and-compact"]
text = cache(text_of)


def talk(count: int, tokens: int, first: int = 0) -> list[Message]:
    """Return turns of question, step and answer with so many tokens each."""
    messages: list[Message] = []
    for n in range(first, first + count):
        messages += [
            user(f"Question {n}: {text(tokens, 3 * n)}"),
            call(f"c{n}", path=f"src/part_{n}.py"),
            answer(f"c{n}", text(tokens, 3 * n + 1)),
            say(f"Answer {n}: {text(tokens, 3 * n + 2)}"),
        ]
    return messages


def policies_of(conversation: Any) -> set[str]:
    """Return the policies that changed the view."""
    records = conversation.journal.records()
    return {edit.policy for record in records for edit in record.edits if not isinstance(edit, Task)}


def summaries(view: View) -> list[Entry]:
    return [entry for entry in view if entry.kind == "summary" and entry.stamp.source in ("compact", "floor")]


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("last", [user("And now?"), say("That was all.")], ids=["request", "answer"])
def test_an_import_becomes_a_summary_at_once(preset: str, window: int, last: Message):
    """Also if the list ends with an answer: the floor used to hide its beginning behind a note."""
    conversation = opened(policy=preset, window=window, reserve=window // 10)
    conversation.append([*talk(40, window // 60), last])
    view = conversation.prepare()
    assert [entry.stamp.source for entry in summaries(view)] == ["compact"]
    assert "floor" not in policies_of(conversation)


@pytest.mark.parametrize("window", WINDOWS)
def test_a_smaller_window_gets_a_summary_at_once(window: int):
    conversation = opened(policy="balanced", window=4 * window, reserve=0)
    conversation.append([*talk(60, window // 60), user("And now?")])
    assert summaries(conversation.prepare()) == []
    conversation.prompt(window=window)
    assert [entry.stamp.source for entry in summaries(conversation.view)] == ["compact"]
    assert "floor" not in policies_of(conversation)


def test_a_view_above_the_stricter_limit_gets_a_summary():
    """The floor counts the doubt of the counter too, so it used to act before a compaction was due."""
    view = Story(*talk(18, 96), user("So?")).view(Budget(6_000, 0, 10**9, 10**6, doubt=0.1, unmeasured=10**9))
    assert view.budget.usable < view.tokens < view.budget.window
    assert [type(item) for item in compact_on_overflow()(view)] == [NeedsSummary]


def test_an_empty_view_in_a_window_without_room_is_left_alone():
    assert list(compact_on_overflow()(Story().view(Budget(100, 0, 10**9, 10**6, overhead=200)))) == []


def test_an_answered_view_that_fits_is_left_alone():
    conversation = opened(policy=(compact_on_overflow(threshold=0.5),), summarizer=ScriptedSummarizer(), window=8_000)
    conversation.append(talk(15, 100))
    view = conversation.prepare()
    assert 0.5 * view.budget.usable < view.tokens < view.budget.usable
    assert summaries(view) == []


@pytest.mark.slow
def test_a_summarizer_without_a_model_reads_all_messages():
    requests: list[SummaryRequest] = []

    def record(request: SummaryRequest) -> str:
        requests.append(request)
        return digest_history()(request)  # type: ignore[return-value]

    conversation = opened(policy=(compact_on_overflow(),), summarizer=record, window=4_000, reserve=0)
    conversation.append(
        [user("Never touch ledger_2019."), *talk(300, 100), say("The port is 8417."), *talk(9, 100, 300), user("So?")]
    )
    conversation.prepare()
    (request,) = requests
    assert len(request.messages) < len(request.everything)
    assert "Never touch ledger_2019." in request.messages[0].text
    assert "Never touch ledger_2019." in str(request.everything)
    assert "The port is 8417." in str(request.everything)
    assert sum(len(message.text) for message in request.everything) > 300_000
    assert "ledger_2019" in texts(conversation.view)[0]


def test_the_limit_of_a_summary_follows_the_window():
    assert [summary_tokens_max(usable) for usable in (28_800, 180_000, 10**6)] == [2_000, 4_500, 8_000]


@pytest.mark.parametrize(
    ("usable", "most"),
    [
        *[(1_800, 450), (3_600, 900), (7_200, 1_800), (28_800, 2_000)],
        *[pytest.param(usable, most, marks=pytest.mark.slow) for usable, most in ((180_000, 4_500), (10**6, 8_000))],
    ],
)
def test_the_length_of_a_summary_follows_the_window(usable: int, most: int):
    assert summary_tokens_max(usable) == most
    summarizer = ScriptedSummarizer(["S."])
    conversation = opened(policy=(compact_on_overflow(),), summarizer=summarizer, window=usable, reserve=0)
    conversation.append([*talk(40, usable // 100), user("So?")])
    conversation.prepare()
    assert [request.target for request in summarizer.requests] == [4 * most]


def test_a_summary_of_little_is_a_third_of_it_at_most():
    summarizer = ScriptedSummarizer(["S."])
    conversation = opened(policy=(compact_on_overflow(),), summarizer=summarizer, window=20_000, reserve=0)
    conversation.append([*talk(2, 800), *talk(12, 400, 2), user("So?")])
    conversation.compact()
    (request,) = summarizer.requests
    source = sum(len(message.text) for message in request.messages)
    assert request.target < source / 2


@pytest.mark.slow
def test_a_carried_summary_keeps_its_room():
    """A further summary of few messages used to leave the earlier one a third of its length."""
    targets: list[tuple[int, int]] = []

    def summarize(request: SummaryRequest) -> str:
        targets.append((len(request.previous), request.target))
        return text_of(request.target // 4 - 10)

    conversation = opened(policy=(compact_on_overflow(),), summarizer=summarize, window=6_000, reserve=0)
    for n in range(150):
        conversation.append(talk(1, 60, n)[:1])
        conversation.prepare()
        conversation.append(talk(1, 60, n)[1:])
    assert len(targets) >= 5
    assert all(target >= 0.95 * min(previous, 4 * summary_tokens_max(6_000)) for previous, target in targets)


def test_a_single_message_gets_a_digest_without_a_frame():
    summarizer = ScriptedSummarizer(["S."])
    conversation = opened(policy=(compact_on_overflow(),), summarizer=summarizer, window=6_000, reserve=0)
    conversation.append([user(text_of(5_000)), *talk(4, 100), user("So?")])
    view = conversation.prepare()
    assert (summarizer.requests, policies_of(conversation)) == ([], {"compact"})
    assert (view.entries[0].kind, view.entries[0].message.role, "m1" in texts(view)[0]) == ("message", "user", True)
    assert len(texts(view)[0]) < 7_000
    assert conversation.prepare().entries == view.entries


def test_after_a_digest_the_journal_gets_no_further_edit():
    """I2. The request, which stays, is alone larger than the policy allows."""
    policy = compact_on_overflow(threshold=0.1)
    conversation = opened(policy=(policy,), summarizer=ScriptedSummarizer(), window=6_000, reserve=0)
    conversation.append([say(text_of(5_000)), user(text_of(1_200))])
    view = conversation.prepare()
    assert [entry.shrunk_by for entry in view] == [("compact",), ()]
    number = conversation._agent.head.number
    conversation.prepare()
    assert conversation._agent.head.number == number


def test_a_note_that_would_not_shrink_gets_no_digest():
    """The model sees a result without a call as a note. Its first part stays, and used to count as freed."""
    policy = compact_on_overflow(threshold=0.01, min_progress=0.01)
    conversation = opened(policy=(policy,), summarizer=ScriptedSummarizer(), window=60_000, reserve=0)
    conversation.append([answer("gone", "It failed."), call("open"), user(text_of(650))])
    view = conversation.prepare()
    assert (view.entries[0].kind, view.entries[0].shrunk) == ("note", ())


@pytest.mark.parametrize("window", [2_000, 4_000, 8_000])
def test_a_tiny_view_that_fits_is_left_alone(window: int):
    conversation = opened(policy="balanced", window=window, reserve=0)
    messages = [user("Go."), *talk(2, 60), user("And now?")]
    for message in messages:
        if message.role == "assistant":
            conversation.prepare()
        conversation.append(message)
    assert 350 < conversation.prepare().tokens < 500
    assert policies_of(conversation) == set()


@pytest.mark.parametrize(
    "window", [2_000, *(pytest.param(size, marks=pytest.mark.slow) for size in (4_000, 8_000, 32_000))]
)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_rule_survives_ten_summaries(preset: str, window: int):
    """The questions hold no other rules: made-up sentences with `only` or `limit` would fill a small summary."""
    rule = "Never write to the table ledger_2019 without the approval of Marta Lindqvist."
    conversation = opened(policy=preset, window=window, reserve=window // 10)
    conversation.append([user(rule), say("Understood.")])
    rounds, handles = 0, set[str]()
    for n in range(2_000):
        conversation.append(f"Question {n}: what is in part {n}? " + "It is about apples. " * (window // 400))
        view = conversation.prepare()
        conversation.append(talk(1, window // 80, n)[1:])
        shown = {entry.span.last for entry in summaries(view) if entry.span}
        rounds += bool(shown - handles)
        handles |= shown
        if rounds >= 10:
            break
    assert rounds >= 10
    assert any("ledger_2019" in text and "Never" in text for text in texts(conversation.prepare()))
