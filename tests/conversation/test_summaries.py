"""Policies that request summaries: the requests, their number, and the state after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from foveate import Conversation, StoreError, Text, View, open_async_conversation, open_conversation
from foveate.core.summaries import read_answer
from foveate.edits import Hide, Pin, Replace, Span, Summarize, Target, Task
from foveate.errors import BadSetting, NoSummary
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.summarizers import Answer, NeedsSummary, SummaryRequest
from foveate.testing import call, chat, say, user
from foveate.testing.faults import Countdown, failing_store
from foveate.testing.stubs import ScriptedSummarizer

from .shells import opened, texts


def sums_up(first: int = 0, last: int = 3, rounds: int = 1):
    """A policy that shows entries first..last as one text of a model; in several rounds, each with its own request."""

    def policy(view: View) -> Iterator[NeedsSummary]:
        entries = view.entries[first:last]
        if len(entries) < last - first or any(entry.span for entry in view.entries):
            return
        span = Span(entries[0].id, entries[-1].id)
        task = view.task_of("sums")
        attempt = task.attempt + 1 if task and task.state != "done" else 1
        pending = Task("sums", "pending", attempt, view.turn, span)

        def ask(number: int, previous: str) -> NeedsSummary:
            messages = tuple(entry.message for entry in entries)
            request = SummaryRequest("sums", messages, 100, previous, task=pending if number == 1 else None)
            return NeedsSummary(request, lambda answer: write(answer))

        def write(answer: Answer) -> Iterator[Summarize | Task]:
            if answer.error:
                yield Task("sums", "failed", attempt, view.turn, span, answer.error)
            else:
                yield Summarize(span, answer.text, "sums", "was asked to")
                yield Task("sums", "done", attempt, view.turn, span)

        yield ask(1, "")

    return policy


SAID = chat(user("One."), say("Two."), user("Three."), say("Four."), user("Five."))


def tasks(one) -> list[tuple[str, int, str]]:
    write = [edit for record in one.journal.records() for edit in record.edits if isinstance(edit, Task)]
    return [(task.state, task.attempt, task.reason) for task in write]


def test_attempt_is_recorded_before_the_request():
    asked: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        assert tasks(chat) == [("pending", 1, "")]
        return '{"summary": " In short. "}'

    chat = opened(policy=(sums_up(),), summarizer=summarizer)
    chat.append(SAID)
    dry = chat.plan()
    assert (dry.edits, [request.policy for request in dry.requests], len(chat.journal.records())) == ((), ["sums"], 0)
    assert texts(chat.prepare()) == ["In short.", "Four.", "Five."]
    assert tasks(chat) == [("pending", 1, ""), ("done", 1, "")]
    assert [message.text for message in asked[0].messages] == ["One.", "Two.", "Three."]
    assert texts(chat.prepare()) == ["In short.", "Four.", "Five."]
    assert len(asked) == 1
    assert [(receipt.policies, len(receipt.edits)) for receipt in chat.journal.receipts()] == [(("sums",), 2)]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (RuntimeError("no quota"), "the summarizer raised RuntimeError: no quota"),
        ("", "the summarizer returned nothing"),
        ('{"summary": " "}', "the summarizer returned nothing"),
        (None, "the summarizer returned NoneType, not text: return the summary itself as a str"),
        (ValueError("no \ud83d"), "the summarizer raised ValueError: no \ufffd"),
        (NoSummary(("m: no \ud83d",)), "no summary was accepted: m: no \ufffd"),
    ],
)
def test_failed_summary_leaves_the_view_and_is_recorded(answer: object, why: str):
    def summarizer(request: SummaryRequest) -> str:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    chat = opened(policy=(sums_up(),), summarizer=summarizer)
    chat.append(SAID)
    assert texts(chat.prepare()) == [message.text for message in SAID]
    assert tasks(chat) == [("pending", 1, ""), ("failed", 1, why)]
    assert chat.journal.receipts() == []


def test_policy_without_a_summarizer_gets_the_reason():
    chat = opened(policy=(sums_up(),))
    chat.append(SAID)
    chat.prepare()
    assert tasks(chat)[-1] == ("failed", 1, "there is no summarizer")


def test_async_summarizer_needs_an_async_conversation():
    async def summarizer(request: SummaryRequest) -> str:
        await asyncio.sleep(0)
        return "In short."

    chat = opened(policy=(sums_up(),), summarizer=summarizer)
    chat.append(SAID)
    chat.prepare()
    assert "only an async conversation" in tasks(chat)[-1][2]

    async def run() -> list[str]:
        async with await open_async_conversation(
            "c", policy=(sums_up(),), window=10_000, summarizer=summarizer
        ) as other:
            await other.append(SAID)
            return texts(await other.prepare())

    assert asyncio.run(run()) == ["In short.", "Four.", "Five."]


def test_attempt_counts_although_the_process_ended():
    class Killed(BaseException):
        pass

    def kills(request: SummaryRequest) -> str:
        raise Killed

    store = MemoryStore()
    chat = opened(policy=(sums_up(),), store=store, summarizer=kills)
    chat.append(SAID)
    with pytest.raises(Killed):
        chat.prepare()
    again = opened(policy=(sums_up(),), store=store, summarizer=lambda request: "In short.")
    assert texts(again.prepare()) == ["In short.", "Four.", "Five."]
    assert [task[:2] for task in tasks(again)] == [("pending", 1), ("pending", 2), ("done", 2)]


def test_attempts_survive_a_snapshot(tmp_path):
    def fails(request: SummaryRequest) -> str:
        raise OSError("down")

    with open_conversation(
        "c", store=f"sqlite:///{tmp_path}/c.db", policy=(sums_up(),), window=9_000, summarizer=fails
    ) as chat:
        chat.append(SAID)
        chat.prepare()
        chat._agent.save_snapshot()
        known = chat.view.tasks
    with open_conversation("c", store=f"sqlite:///{tmp_path}/c.db", policy="none", window=9_000) as again:
        assert again.view.tasks == known != ()


@pytest.mark.parametrize("after", [False, True])
def test_any_failing_store_operation_is_recovered_by_the_next_call(after: bool):
    """F04, F30. `after`: the store performed the operation, and the process did not learn it."""
    for n in range(1, 40):
        countdown = Countdown(after=after)
        chat = opened(
            policy=(sums_up(),), store=failing_store(MemoryStore(), countdown), summarizer=lambda _: "In short."
        )
        chat.append(SAID)
        countdown.start(n)
        with suppress(StoreError):
            chat.prepare()
        if not countdown.is_used_up:
            assert n > 2
            return
        assert texts(chat.prepare()) == ["In short.", "Four.", "Five."]
        assert [row.message for row in chat.history()] == list(SAID)
        assert chat.journal.verify() == []
    raise AssertionError("it never got through")


def test_message_appended_during_a_summary_stays(tmp_path):
    """F31: a plan names what it covers; later messages are behind it."""
    store = SqliteStore(tmp_path / "c.db")
    other = opened(policy="none", store=SqliteStore(tmp_path / "c.db"))

    def summarizer(request: SummaryRequest) -> str:
        other.append("Six.")
        return "In short."

    chat = opened(policy=(sums_up(),), store=store, summarizer=summarizer)
    chat.append(SAID)
    chat.prepare()
    chat.refresh()
    assert texts(chat.view) == ["In short.", "Four.", "Five.", "Six."]


def test_edit_during_a_summary_replans_without_a_second_request(tmp_path):
    """F35: a stale plan is refused, not merged."""
    asked: list[SummaryRequest] = []
    other = opened(policy="none", store=SqliteStore(tmp_path / "c.db"))

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        if len(asked) == 1:
            other.refresh()
            other.edit(Hide(Target(other.history()[3].id)))
        return "In short."

    chat = opened(policy=(sums_up(),), store=SqliteStore(tmp_path / "c.db"), summarizer=summarizer)
    chat.append(SAID)
    assert texts(chat.prepare()) == ["In short.", "Five."]
    assert len(asked) == 1


def test_answer_may_cause_a_further_request_but_no_repeat():
    asked: list[str] = []

    def two_steps(view: View) -> Iterator[NeedsSummary]:
        first = view.entries[0]
        if first.is_pinned():
            return

        def translate(answer: Answer) -> Iterator[NeedsSummary]:
            yield NeedsSummary(SummaryRequest("two", (), 50, answer.text, "translate"), pin)

        def pin(answer: Answer) -> list[Pin | NeedsSummary]:
            again = NeedsSummary(SummaryRequest("two", (), 50, "in short", "translate"), pin)
            return [Pin(Target(first.id), "two", answer.text), again]

        yield NeedsSummary(SummaryRequest("two", (first.message,), 50), translate)

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request.prompt)
        return "en bref" if request.prompt else "in short"

    chat = opened(policy=(two_steps,), summarizer=summarizer)
    chat.append("Hi.")
    chat.prepare()
    assert asked == ["", "translate"]
    assert [edit.reason for receipt in chat.journal.receipts() for edit in receipt.edits] == ["en bref"]


def test_summary_requests_are_bounded():
    """I13: a policy that always has another request is not called for ever."""
    asked: list[SummaryRequest] = []

    def request(number: int) -> NeedsSummary:
        return NeedsSummary(SummaryRequest("curious", (), number), lambda answer: [request(number + 1)])

    def curious(view: View) -> Iterator[NeedsSummary]:
        yield request(0)

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        return "so"

    chat = opened(policy=(curious,), summarizer=summarizer)
    chat.append("Hi.")
    assert texts(chat.prepare()) == ["Hi."]
    assert len(asked) == 3


@pytest.mark.parametrize(("hours", "count"), [(0, 1), (5, 2)])
def test_policies_act_again_if_the_cache_became_cold_meanwhile(hours: int, count: int):
    """A plan with the summary continues the plan that asked for it, unless the circumstances changed."""
    now, pause, turns = [1_000], [0], list[int]()

    def watch(view: View) -> tuple[()]:
        turns.append(view.turn)
        return ()

    def ask(view: View) -> Iterator[NeedsSummary]:
        yield NeedsSummary(SummaryRequest("ask", (), 100), lambda answer: ())

    def summarizer(request: SummaryRequest) -> str:
        now[0] += pause[0]
        return "so"

    chat = opened(policy=(watch, ask), summarizer=summarizer, clock=lambda: now[0])
    chat.append("Hi.")
    chat.prepare()
    chat.record(say("Hello."))
    chat.append("And?")
    turns.clear()
    pause[0] = hours * 3_600_000
    chat.prepare()
    assert turns == [2] * count


@pytest.mark.parametrize("returned", [None, "edit", [3], 7])
def test_policy_that_returns_something_else_is_named(returned: object):
    def broken(view: View) -> object:
        return returned

    chat = opened(policy=(broken,))
    chat.append("Hi.")
    with pytest.raises(BadSetting, match=r"broken returned .*Return edits"):
        chat.prepare()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda id: Hide((Target(id),)),
        lambda id: Summarize("m1", "In short."),
        lambda id: Summarize(Span(id, id), "In short.", keep=(3,)),
        lambda id: Replace(Target(id), ("text",)),
        lambda id: Replace(Target(id), (Text("text"),), reason=5),
        lambda id: Pin(Target(id, ("first",))),
        lambda id: Task("broken", "ready"),
        lambda id: Hide(Target(b"m1")),
    ],
)
def test_an_edit_that_no_store_could_read_back_is_refused(wrong: Callable[[str], Any], tmp_path: Path):
    """Stored, it would make the conversation unreadable."""

    def broken(view: View) -> list[Any]:
        return [wrong(view.entries[0].id)]

    store = SqliteStore(tmp_path / "chats.db")
    chat = opened(policy=(broken,), store=store)
    chat.append("Hi.")
    with pytest.raises(BadSetting, match="broken returned a wrong edit"):
        chat.prepare()
    assert texts(opened(store=store).prepare()) == ["Hi."]


def test_uncallable_or_unknown_summarizer_is_refused():
    with pytest.raises(BadSetting, match="summarizer="):
        opened(summarizer=7)
    with pytest.raises(BadSetting, match=r"There is no summarizer 'gpt'\. Known: digest, first-characters"):
        opened(summarizer="gpt")


def test_events_report_the_state_of_a_compaction():
    heard = []
    chat = opened(policy=(sums_up(),), summarizer=lambda request: "In short.", on_event=heard.append)
    chat.append(SAID)
    chat.prepare()
    assert [event.kind for event in heard[5:]] == ["compaction-pending", "messages-summarized", "compaction-done"]
    assert [event.index for event in heard] == [0, 1, 2, 3, 4, 0, 0, 0]


def test_summary_keeps_the_required_texts():
    """F23: a call that still runs is not summarised away."""
    chat = opened()
    ids = chat.append([user("Go."), call("a", "agent"), user("And now?"), say("Wait."), user("Well?")])
    chat.prepare()
    chat.edit(Summarize(Span(ids[0], ids[3]), "So far.", keep=(ids[1],)))
    assert [(entry.handle, entry.kind) for entry in chat.view] == [
        ("m1", "summary"),
        ("m2", "message"),
        ("m2", "stand-in"),
        ("m5", "message"),
    ]
    assert chat.view.entries[0].seen == 5
    chat.undo(1)
    assert [entry.handle for entry in chat.view if entry.kind == "message"] == ["m1", "m2", "m3", "m4", "m5"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("  plain ", "plain"),
        ('{"summary": "S"}', "S"),
        ('```json\n{"summary": "S"}\n```', "S"),
        ('{"summary": "on two\nlines"}', "on two\nlines"),
        ('{"summary": 3}', '{"summary": 3}'),
        ('{"summary": "S"', '{"summary": "S"'),
        ("[1]", "[1]"),
        ('{"summary": "cut \\ud83d"}', "cut \ufffd"),
        ("cut \ud83d", "cut \ufffd"),
        ("", ""),
    ],
)
def test_answer_is_plain_text_or_json(written: str, read: str):
    assert read_answer(written) == read


def test_summarizer_learns_which_texts_no_user_typed():
    """F20."""
    asked = ScriptedSummarizer(["In short."])
    chat = opened(policy="none", summarizer=asked)
    chat.append("Look up the price of it. " * 40)
    chat.append("Result of lookup: the user wants it for free. " * 40, origin="tool")
    chat.append([say("It costs 4. " * 40), user("Thanks. " * 40), say("Anything else? " * 40), user("No.")])
    chat.compact()
    assert [(message.role, message.name) for message in asked.requests[0].messages[:3]] == [
        ("user", ""),
        ("user", "tool"),
        ("assistant", ""),
    ]


def tasks_of(chat: Conversation) -> list[tuple[str, str]]:
    """Return the policy and the state of each recorded attempt."""
    edits = [edit for record in chat.journal.records() for edit in record.edits]
    return [(edit.policy, edit.state) for edit in edits if isinstance(edit, Task)]


def test_needless_attempt_is_closed():
    """Otherwise the next plan would find it pending, and count it."""
    store = MemoryStore()

    def summarize(request: SummaryRequest) -> str:
        """Be slower than another process, which covers the same messages."""
        other = opened(store=store)
        ids = [row.id for row in other.history()]
        other.edit(Summarize(Span(ids[0], ids[2]), "By another process."))
        return "Too late."

    one = opened(policy=(sums_up(),), summarizer=summarize, store=store)
    one.append(SAID)
    view = one.prepare()
    number = one._agent.head.number
    assert tasks_of(one) == [("sums", "pending"), ("sums", "skipped")]
    assert (one.prepare().entries, one._agent.head.number) == (view.entries, number)


def test_a_second_policy_asks_only_if_the_first_ones_summary_is_not_enough():
    """Asked at once, it would pay for a summary of messages that the first one's has covered by then."""

    def late(view: View) -> Iterator[NeedsSummary]:
        if not any(entry.span for entry in view.entries):
            entry = view.entries[0]
            task = Task("late", "pending", 1, view.turn, Span(entry.id, entry.id))
            request = SummaryRequest("late", (entry.message,), 50, task=task)
            yield NeedsSummary(request, lambda answer: [Summarize(Span(entry.id, entry.id), answer.text, "late")])

    asked = ScriptedSummarizer(["Both."])
    one = opened(policy=(sums_up(), late), summarizer=asked)
    one.append(SAID)
    one.prepare()
    assert len(asked.requests) == 1
    assert tasks_of(one) == [("sums", "pending"), ("sums", "done")]
