"""`compact()`: the covered messages, the focus, and the result if there is nothing to summarize."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from foveate import BadInput, Conversation, StoreError, open_async_conversation
from foveate.edits import Summarize, Task
from foveate.errors import BadSetting, NoSummary
from foveate.policies import compact_on_overflow
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import say, text_of, user
from foveate.testing.faults import Countdown, failing_store
from foveate.testing.stubs import ScriptedSummarizer

from .shells import opened, refusals, texts

PLAIN = compact_on_overflow(framing="{summary}")


def talk(one: Any, count: int = 8, size: int = 200) -> Any:
    """Append questions and answers, each of about `size` tokens."""
    return one.append(
        [
            made
            for n in range(1, count + 1)
            for made in (user(f"Q{n} " + text_of(size, n)), say(f"A{n} " + text_of(size, n + 50)))
        ]
    )


def tasks(chat: Conversation) -> list[tuple[str, str]]:
    return [
        (edit.state, edit.reason)
        for record in chat.journal.records()
        for edit in record.edits
        if isinstance(edit, Task)
    ]


@pytest.mark.parametrize("policy", [(PLAIN,), "none", "balanced", "keep-last-5"])
def test_compact_works_in_a_window_that_is_far_from_full(policy: Any):
    asked = ScriptedSummarizer(["We spoke."])
    chat = opened(policy=policy, summarizer=asked)
    talk(chat)
    before = chat.view.tokens
    receipt = chat.compact(focus="API decisions")
    assert (receipt.author, receipt.policies, receipt.tokens_before) == ("compact", ("compact",), before)
    assert receipt.tokens_after == chat.view.tokens < before / 2
    (edit,) = [edit for edit in receipt.edits if isinstance(edit, Summarize)]
    assert edit.reason == "it was asked for: API decisions"
    (request,) = asked.requests
    assert request.focus == "API decisions"
    assert [message.text[:2] for message in request.messages] == [f"{w}{n}" for n in range(1, 7) for w in "QA"]
    assert "We spoke." in texts(chat.view)[0]
    assert [text[:2] for text in texts(chat.view)[1:]] == ["Q7", "A7", "Q8", "A8"]
    chat.append("Go on.")
    assert refusals(chat) == []
    chat.undo(receipt)
    assert len(chat.view) == 17


def test_compact_keeps_pins_last_input_and_recent_messages():
    asked = ScriptedSummarizer(["First.", "Second."])
    chat = opened(policy=(PLAIN,), summarizer=asked)
    talk(chat)
    chat.pin("m3")
    chat.compact()
    assert texts(chat.view)[0] == "First."
    assert texts(chat.view)[1][:2] == "Q2"
    talk(chat, 4)
    chat.compact()
    assert asked.requests[1].previous == "First."
    assert [text for text in texts(chat.view) if text in ("First.", "Second.")] == ["Second."]


def test_half_of_a_surrogate_pair_in_the_focus_is_replaced():
    """The key of a request is made of its text, which such a half once kept from being encoded."""
    chat = opened(summarizer=(asked := ScriptedSummarizer(["They chose an API."])))
    talk(chat)
    chat.compact(focus="names \ud83d")
    assert [request.focus for request in asked.requests] == ["names \ufffd"]


def test_compact_without_a_summarizer_or_content_is_refused():
    chat = opened()
    talk(chat)
    with pytest.raises(BadSetting, match=r"Compaction needs a summarizer\. Pass summarizer="):
        chat.compact()
    two = opened(summarizer="digest")
    with pytest.raises(BadInput, match="There is nothing to compact"):
        two.compact()
    two.append("Hi.")
    with pytest.raises(BadInput, match="There is nothing to compact"):
        two.compact()
    with pytest.raises(BadInput):
        two.compact(focus=7)  # type: ignore[arg-type]
    assert (chat.journal.records(), two.journal.records()) == ([], [])


@pytest.mark.parametrize("policy", [compact_on_overflow(strict=True), compact_on_overflow(digest=False)])
def test_compact_without_a_summary_raises_with_the_reason(policy: Any):
    chat = opened(policy=(policy,), summarizer=ScriptedSummarizer([OSError("down")]))
    talk(chat)
    shown = texts(chat.view)
    with pytest.raises(NoSummary, match="the summarizer raised OSError: down"):
        chat.compact()
    assert texts(chat.view) == shown
    assert tasks(chat) == [("pending", ""), ("failed", "the summarizer raised OSError: down")]


def test_digest_replaces_a_failing_summarizer_with_a_note():
    chat = opened(policy=(PLAIN,), summarizer=ScriptedSummarizer([OSError("down")]))
    talk(chat)
    receipt = chat.compact()
    assert (receipt.by, receipt.refused) == (("digest",), ("summarizer: raised OSError: down",))
    assert texts(chat.view)[0].startswith("## Goal\nQ1 ")


def test_next_overflow_compaction_requests_again_after_an_undo():
    asked = ScriptedSummarizer([OSError("down"), "All is well."])
    chat = opened(policy=(PLAIN,), summarizer=asked, window=11_000, reserve=1_000)
    talk(chat)
    chat.compact()
    for n in range(12):
        chat.append([user(f"R{n} " + text_of(500, n)), say(text_of(500, n + 90))])
    chat.append("So?")
    chat.prepare()
    assert texts(chat.view)[0] == "All is well."
    assert asked.requests[1].previous.startswith("## Goal\nQ1 ")


def test_compact_emits_events():
    heard: list[Any] = []
    chat = opened(policy=(PLAIN,), summarizer=ScriptedSummarizer(["In short."]), on_event=heard.append)
    talk(chat)
    chat.compact()
    assert [event.kind for event in heard[16:]] == ["compaction-pending", "messages-summarized", "compaction-done"]


def test_async_compact_works_the_same():
    async def run() -> tuple[list[str], tuple[str, ...]]:
        asked = ScriptedSummarizer(["In short."])
        async with await open_async_conversation("c", window=100_000, summarizer=asked.later) as chat:
            await talk(chat)
            receipt = await chat.compact(focus="names")
            return [edit.reason for edit in receipt.edits], tuple(request.focus for request in asked.requests)

    assert asyncio.run(run()) == (["it was asked for: names", ""], ("names",))


def test_any_failing_store_operation_loses_nothing():
    """F04, F30: `compact` may be repeated, and then succeeds."""
    for n in range(1, 30):
        countdown = Countdown(after=bool(n % 2))
        chat = opened(
            policy=(PLAIN,), store=failing_store(MemoryStore(), countdown), summarizer=ScriptedSummarizer(["S."])
        )
        talk(chat)
        countdown.start(n)
        try:
            chat.compact()
        except StoreError:
            chat.refresh()
        if not countdown.is_used_up:
            assert n > 2
            return
        if texts(chat.view)[0] != "S.":
            chat.compact()
        assert texts(chat.view)[0] == "S."
        assert (len(chat.history()), chat.journal.verify()) == (16, [])
    raise AssertionError("it never got through")


def test_another_writer_is_followed_without_a_second_request(tmp_path):
    """F35."""
    other = opened(store=SqliteStore(tmp_path / "c.db"))
    asked: list[Any] = []

    def writes(request: Any) -> str:
        asked.append(request)
        if len(asked) == 1:
            other.refresh()
            other.pin("m16")
        return "In short."

    chat = opened(policy=(PLAIN,), store=SqliteStore(tmp_path / "c.db"), summarizer=writes)
    talk(chat)
    chat.compact()
    assert texts(chat.view)[0] == "In short."
    assert chat.view.entries[-1].is_pinned()
    assert len(asked) == 1
