"""Summaries that another process writes: the jobs of a conversation, and edits made meanwhile."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from foveate import Conversation, View
from foveate.core.edits import Record, Summarize, Task
from foveate.errors import BadSetting, ConflictError, NoSummary
from foveate.open import grouped, open_async_conversation
from foveate.policies import compact_on_overflow
from foveate.ports import CompactionRequest
from foveate.stores.memory import MemoryStore
from foveate.summarizers import SummaryRequest
from foveate.testing import say, text_of

from .shells import opened, texts

COMPACT = compact_on_overflow(ahead=0.5, framing="{summary}")
SIZE: dict[str, Any] = {"window": 11_000, "reserve": 1_000}


class Desk:
    """A queue that notes its jobs."""

    def __init__(self, *, eager: bool = False, error: Exception | None = None) -> None:
        self.eager, self.error = eager, error
        self.notes: list[CompactionRequest] = []

    def request_compaction(self, wanted: CompactionRequest) -> None:
        self.notes.append(wanted)
        if self.error:
            raise self.error


def nobody(request: SummaryRequest) -> str:
    raise AssertionError("the conversation asks in its own process")


def ask(one: Conversation, number: int) -> View:
    if number > 1:
        one.record(say(f"a{number - 1} " + text_of(490, number)))
    one.append(f"q{number} " + text_of(490, number))
    return one.prepare()


def talk(one: Conversation, first: int, last: int) -> View:
    for number in range(first, last):
        ask(one, number)
    return ask(one, last)


def beside(one: Conversation, summarizer: Any = lambda request: "In short.", **options: Any) -> Conversation:
    """Open the same conversation as another process does."""
    options = {"policy": (COMPACT,), **SIZE, **options}
    return opened("c", store=one._agent.store, summarizer=summarizer, background=False, **options)


def relieve(one: Conversation, since: int | None = None, *, is_wanted: bool = False, focus: str = "") -> Record | None:
    return one._agent.compact_detached(since=since, is_wanted=is_wanted, focus=focus)


def summaries(one: Conversation) -> list[str]:
    one.refresh()
    return [edit.text for record in one.journal.records() for edit in record.edits if isinstance(edit, Summarize)]


# --------------------------------------------------------------------------------------------------- handing it on


def test_job_carries_the_name_and_no_text() -> None:
    desk = Desk()
    one = opened(policy=(COMPACT,), summarizer=nobody, background=desk, **SIZE)
    talk(one, 1, 7)
    assert desk.notes == [CompactionRequest("", "c", 0, ("compact",), 11_000, 1_000, "openai")]
    assert one.journal.records() == []


def test_next_view_includes_changes_of_another_process() -> None:
    one = opened(policy=(COMPACT,), summarizer=nobody, background=Desk(), **SIZE)
    talk(one, 1, 7)
    assert relieve(beside(one)) is not None
    assert texts(talk(one, 8, 8))[0] == "In short."
    assert (one.journal.verify(), summaries(one)) == ([], ["In short."])
    assert not one._session.prefetch.is_handed_on


def test_repeated_call_shows_the_summary_of_a_worker() -> None:
    """No message was appended meanwhile, so only the journal shows the news."""
    one = opened(policy=(COMPACT,), summarizer=nobody, background=Desk(), **SIZE)
    talk(one, 1, 7)
    relieve(beside(one))
    assert texts(one.prepare())[0] == "In short."


def test_unanswered_job_is_requested_again_later() -> None:
    desk = Desk()
    one = opened(policy=(COMPACT,), summarizer=nobody, background=desk, **SIZE)
    talk(one, 1, 9)
    assert len(desk.notes) == 2


def test_required_summary_is_written_at_once() -> None:
    desk = Desk(eager=True)
    one = opened(
        policy=(compact_on_overflow(framing="{summary}"),), summarizer=lambda r: "Here.", background=desk, **SIZE
    )
    assert texts(talk(one, 1, 11))[0] == "Here."
    assert one.view.tokens <= 10_000


def test_eager_queue_receives_due_summaries() -> None:
    desk = Desk(eager=True)
    policy = compact_on_overflow(threshold=0.5, framing="{summary}")
    one = opened(policy=(policy,), summarizer=nobody, background=desk, **SIZE)
    talk(one, 1, 7)
    assert [wanted.policies for wanted in desk.notes] == [("compact",)]


def test_failing_queue_is_logged_and_the_conversation_continues(caplog: Any) -> None:
    one = opened(policy=(COMPACT,), summarizer=nobody, background=Desk(error=OSError("no queue")), **SIZE)
    with caplog.at_level(logging.WARNING, "foveate"):
        assert talk(one, 1, 7).tokens > 5_000
    assert [record.getMessage() for record in caplog.records] == [
        "c: a summary could not be handed to another process: no queue"
    ]


def test_async_conversation_queues_jobs() -> None:
    desk = Desk()

    async def main() -> None:
        one = await open_async_conversation(
            "c", policy=(COMPACT,), summarizer=nobody, **grouped({"background": desk, **SIZE})
        )
        for number in range(1, 8):
            await one.append(f"q{number} " + text_of(490, number))
            await one.prepare()
            await one.record(say(f"a{number} " + text_of(490, number)))
        await one.close()

    asyncio.run(main())
    assert desk.notes == [CompactionRequest("", "c", 0, ("compact",), 11_000, 1_000, "openai")]


def test_invalid_background_is_refused() -> None:
    with pytest.raises(BadSetting, match="background="):
        opened(background=object())


# ---------------------------------------------------------------------------------------------- what is done beside


def filled(store: MemoryStore | None = None, last: int = 7) -> Conversation:
    one = opened(store=store or MemoryStore(), policy=(COMPACT,), summarizer=nobody, background=Desk(), **SIZE)
    talk(one, 1, last)
    return one


def test_job_done_twice_commits_once() -> None:
    other = beside(filled())
    assert (relieve(other) is None, relieve(other), relieve(other, 0, is_wanted=True)) == (False, None, None)
    assert summaries(other) == ["In short."]


def test_job_does_nothing_that_is_not_due() -> None:
    assert relieve(beside(filled(last=3))) is None


def test_job_compacts_although_a_reply_came_in_between() -> None:
    """A policy that acts before requests requests nothing after a reply, and the queue may run only then."""
    one = filled()
    one.record(say("a7 " + text_of(490, 7)))
    assert relieve(beside(one)) is None
    record = relieve(beside(one), 0, is_wanted=True)
    assert record is not None
    assert record.author == "compact"
    assert summaries(one) == ["In short."]


def test_compact_passes_the_focus_to_the_summarizer() -> None:
    asked: list[str] = []
    relieve(beside(filled(), lambda request: asked.append(request.focus) or "In short."), focus="the API")
    assert asked == ["the API"]


def test_failing_summarizer_leaves_no_trace() -> None:
    one = filled()
    with pytest.raises(OSError, match="no quota"):
        relieve(beside(one, failing))
    assert one.journal.records() == []


def test_unacceptable_summary_is_reported_and_leaves_no_trace() -> None:
    one = filled()
    one.record(say("a7"))

    def long(request: SummaryRequest) -> str:
        return f"{request.required} " + "And so on. " * 4_000

    with pytest.raises(NoSummary, match="shorter than what it stands for"):
        relieve(beside(one, long, policy=(compact_on_overflow(digest=False),)), 0, is_wanted=True)
    assert one.journal.records() == []


def test_summary_of_a_changed_span_is_replaced_by_another() -> None:
    one = filled()

    def meanwhile(request: SummaryRequest) -> str:
        if len(asked) == 0:
            one.pin("m3")
        asked.append(request)
        return f"Summary {len(asked)}."

    asked: list[SummaryRequest] = []
    relieve(beside(one, meanwhile))
    assert (summaries(one), one.journal.verify()) == (["Summary 2."], [])
    assert "q2 " in "".join(texts(one.prepare()))[:4_000]


def test_queued_job_of_a_first_conversation_is_not_overtaken() -> None:
    one = filled()
    first = beside(one, lambda request: "First.")

    def late(request: SummaryRequest) -> str:
        relieve(first)
        return "Late."

    assert relieve(beside(one, late), 0) is None
    assert summaries(one) == ["First."]


def test_job_yields_to_writers_that_are_always_first() -> None:
    one, asked = filled(), [0]

    def meddling(request: SummaryRequest) -> str:
        asked[0] += 1
        return "In short."

    other = beside(one, meddling)
    real = other._agent.store.commit

    def refused(*arguments: Any) -> Any:
        raise ConflictError("another was first")

    other._agent.store.commit = refused  # type: ignore[method-assign]
    with pytest.raises(ConflictError, match="kept changing"):
        relieve(other)
    other._agent.store.commit = real  # type: ignore[method-assign]
    assert (
        asked[0],
        [edit for record in one.journal.records() for edit in record.edits if isinstance(edit, Task)],
    ) == (1, [])


def failing(request: SummaryRequest) -> str:
    raise OSError("no quota")
