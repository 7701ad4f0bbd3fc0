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


def unused_summarizer(request: SummaryRequest) -> str:
    raise AssertionError("the conversation asks in its own process")


def ask(chat: Conversation, number: int) -> View:
    if number > 1:
        chat.record(say(f"a{number - 1} " + text_of(490, number)))
    chat.append(f"q{number} " + text_of(490, number))
    return chat.prepare()


def talk(chat: Conversation, first: int, last: int) -> View:
    for number in range(first, last):
        ask(chat, number)
    return ask(chat, last)


def second_process(chat: Conversation, summarizer: Any = lambda request: "In short.", **options: Any) -> Conversation:
    """Open the same conversation as another process does."""
    options = {"policy": (COMPACT,), **SIZE, **options}
    return opened("c", store=chat._agent.store, summarizer=summarizer, background=False, **options)


def relieve(chat: Conversation, since: int | None = None, *, is_wanted: bool = False, focus: str = "") -> Record | None:
    return chat._agent.compact_detached(since=since, is_wanted=is_wanted, focus=focus)


def summaries(chat: Conversation) -> list[str]:
    chat.refresh()
    return [edit.text for record in chat.journal.records() for edit in record.edits if isinstance(edit, Summarize)]


# --------------------------------------------------------------------------------------------------- handing it on


def test_job_carries_the_name_and_no_text() -> None:
    desk = Desk()
    chat = opened(policy=(COMPACT,), summarizer=unused_summarizer, background=desk, **SIZE)
    talk(chat, 1, 7)
    assert desk.notes == [CompactionRequest("", "c", 0, ("compact",), 11_000, 1_000, "openai")]
    assert chat.journal.records() == []


def test_next_view_includes_changes_of_another_process() -> None:
    chat = opened(policy=(COMPACT,), summarizer=unused_summarizer, background=Desk(), **SIZE)
    talk(chat, 1, 7)
    assert relieve(second_process(chat)) is not None
    assert texts(talk(chat, 8, 8))[0] == "In short."
    assert (chat.journal.verify(), summaries(chat)) == ([], ["In short."])
    assert not chat._session.prefetch.is_handed_on


def test_repeated_call_shows_the_summary_of_a_worker() -> None:
    """No message was appended meanwhile, so only the journal shows the news."""
    chat = opened(policy=(COMPACT,), summarizer=unused_summarizer, background=Desk(), **SIZE)
    talk(chat, 1, 7)
    relieve(second_process(chat))
    assert texts(chat.prepare())[0] == "In short."


def test_unanswered_job_is_requested_again_later() -> None:
    desk = Desk()
    chat = opened(policy=(COMPACT,), summarizer=unused_summarizer, background=desk, **SIZE)
    talk(chat, 1, 9)
    assert len(desk.notes) == 2


def test_required_summary_is_written_at_once() -> None:
    desk = Desk(eager=True)
    chat = opened(
        policy=(compact_on_overflow(framing="{summary}"),), summarizer=lambda r: "Here.", background=desk, **SIZE
    )
    assert texts(talk(chat, 1, 11))[0] == "Here."
    assert chat.view.tokens <= 10_000


def test_eager_queue_receives_due_summaries() -> None:
    desk = Desk(eager=True)
    policy = compact_on_overflow(threshold=0.5, framing="{summary}")
    chat = opened(policy=(policy,), summarizer=unused_summarizer, background=desk, **SIZE)
    talk(chat, 1, 7)
    assert [wanted.policies for wanted in desk.notes] == [("compact",)]


def test_failing_queue_is_logged_and_the_conversation_continues(caplog: Any) -> None:
    chat = opened(policy=(COMPACT,), summarizer=unused_summarizer, background=Desk(error=OSError("no queue")), **SIZE)
    with caplog.at_level(logging.WARNING, "foveate"):
        assert talk(chat, 1, 7).tokens > 5_000
    assert [record.getMessage() for record in caplog.records] == [
        "c: a summary could not be handed to another process: no queue"
    ]


def test_async_conversation_queues_jobs() -> None:
    desk = Desk()

    async def main() -> None:
        chat = await open_async_conversation(
            "c", policy=(COMPACT,), summarizer=unused_summarizer, **grouped({"background": desk, **SIZE})
        )
        for number in range(1, 8):
            await chat.append(f"q{number} " + text_of(490, number))
            await chat.prepare()
            await chat.record(say(f"a{number} " + text_of(490, number)))
        await chat.close()

    asyncio.run(main())
    assert desk.notes == [CompactionRequest("", "c", 0, ("compact",), 11_000, 1_000, "openai")]


def test_invalid_background_is_refused() -> None:
    with pytest.raises(BadSetting, match="background="):
        opened(background=object())


# ---------------------------------------------------------------------------------------------- what is done beside


def filled(store: MemoryStore | None = None, last: int = 7) -> Conversation:
    chat = opened(
        store=store or MemoryStore(), policy=(COMPACT,), summarizer=unused_summarizer, background=Desk(), **SIZE
    )
    talk(chat, 1, last)
    return chat


def test_job_done_twice_commits_once() -> None:
    other = second_process(filled())
    assert (relieve(other) is None, relieve(other), relieve(other, 0, is_wanted=True)) == (False, None, None)
    assert summaries(other) == ["In short."]


def test_job_does_nothing_that_is_not_due() -> None:
    assert relieve(second_process(filled(last=3))) is None


def test_job_compacts_although_a_reply_came_in_between() -> None:
    """A policy that acts before requests requests nothing after a reply, and the queue may run only then."""
    chat = filled()
    chat.record(say("a7 " + text_of(490, 7)))
    assert relieve(second_process(chat)) is None
    record = relieve(second_process(chat), 0, is_wanted=True)
    assert record is not None
    assert record.author == "compact"
    assert summaries(chat) == ["In short."]


def test_compact_passes_the_focus_to_the_summarizer() -> None:
    asked: list[str] = []
    relieve(second_process(filled(), lambda request: asked.append(request.focus) or "In short."), focus="the API")
    assert asked == ["the API"]


def test_failing_summarizer_leaves_no_trace() -> None:
    chat = filled()
    with pytest.raises(OSError, match="no quota"):
        relieve(second_process(chat, failing))
    assert chat.journal.records() == []


def test_unacceptable_summary_is_reported_and_leaves_no_trace() -> None:
    chat = filled()
    chat.record(say("a7"))

    def long(request: SummaryRequest) -> str:
        return f"{request.required} " + "And so on. " * 4_000

    with pytest.raises(NoSummary, match="shorter than what it stands for"):
        relieve(second_process(chat, long, policy=(compact_on_overflow(digest=False),)), 0, is_wanted=True)
    assert chat.journal.records() == []


def test_summary_of_a_changed_span_is_replaced_by_another() -> None:
    chat = filled()

    def meanwhile(request: SummaryRequest) -> str:
        if len(asked) == 0:
            chat.pin("m3")
        asked.append(request)
        return f"Summary {len(asked)}."

    asked: list[SummaryRequest] = []
    relieve(second_process(chat, meanwhile))
    assert (summaries(chat), chat.journal.verify()) == (["Summary 2."], [])
    assert "q2 " in "".join(texts(chat.prepare()))[:4_000]


def test_queued_job_of_a_first_conversation_is_not_overtaken() -> None:
    chat = filled()
    first = second_process(chat, lambda request: "First.")

    def late(request: SummaryRequest) -> str:
        relieve(first)
        return "Late."

    assert relieve(second_process(chat, late), 0) is None
    assert summaries(chat) == ["First."]


def test_job_yields_to_writers_that_are_always_first() -> None:
    one, asked = filled(), [0]

    def meddling(request: SummaryRequest) -> str:
        asked[0] += 1
        return "In short."

    other = second_process(one, meddling)
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
