"""Two writers compact one conversation at the same moment, and others append meanwhile, on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foveate import Conversation, open_conversation, open_store
from foveate.core.edits import Pin, Summarize, Target
from foveate.open import grouped
from foveate.ops.worker.jobs import CompactionJob, OpenSettings, compact
from foveate.policies import compact_on_overflow
from foveate.summarizers import SummaryRequest
from foveate.testing import BodyChecker, say, text_of, user
from foveate.testing.background import HandCranked

POLICY = compact_on_overflow(ahead=0.5, keep_recent=0.25, framing="{summary}", digest=False)
SIZE: dict[str, Any] = {"window": 11_000, "reserve": 1_000}


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/c.db?wait=120"
    return str(request.getfixturevalue("postgres_url")) + "&wait=120"


def opened(url: str, **more: Any) -> Conversation:
    """Open the conversation as another process does, with its own store."""
    return open_conversation("c", store=url, **grouped({"policy": (POLICY,), "background": False} | SIZE | more))


def talk(chat: Conversation, count: int) -> None:
    """Append this many questions and answers of 500 tokens each."""
    for n in range(count):
        chat.append([user(f"q{n} " + text_of(490, 2 * n)), say(f"a{n} " + text_of(490, 2 * n + 1))])


def together(*works: Callable[[], Any]) -> list[Any]:
    """Run these calls at once; return their results or exceptions."""
    results: list[Any] = [None] * len(works)

    def run(n: int) -> None:
        try:
            results[n] = works[n]()
        except Exception as error:
            results[n] = error

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    return results


class Meeting:
    """A summarizer that waits until all compacting writers have called theirs."""

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count)
        self._met = threading.local()
        self.asked = 0

    def __call__(self, request: SummaryRequest) -> str:
        self.asked += 1
        if not getattr(self._met, "is_done", False):
            self._met.is_done = True
            self._barrier.wait(120)
        return "In short."


def check(url: str, texts: list[str], summaries: int = 1) -> list[str]:
    """Check that nothing is lost or doubled and that this many summaries were made. Return the legal view."""
    with opened(url, policy="none") as chat:
        assert chat.journal.verify() == []
        assert [row.message.text for row in chat.history()] == texts
        summaries_in = [
            edit for record in chat.journal.records() for edit in record.edits if isinstance(edit, Summarize)
        ]
        assert len(summaries_in) == summaries
        assert BodyChecker("openai").check(chat.prompt()) == []
        return [entry.message.text.split(" ", 1)[0] for entry in chat.view if entry.kind != "summary"]


def test_second_of_two_compactions_finds_it_done(url: str) -> None:
    """F35."""
    summarizer = Meeting(2)
    with opened(url, summarizer=summarizer) as chat:
        talk(chat, 11)
        chat.append(user("now"))
        with opened(url, summarizer=summarizer) as other:
            views = together(chat.prepare, other.prepare)
            assert [[entry.kind for entry in view].count("summary") for view in views] == [1, 1]
            assert summarizer.asked == 2
            texts = [row.message.text for row in chat.history()]
    assert check(url, texts)[-1] == "now"


def test_prefetched_summary_is_dropped_after_another_compaction(url: str) -> None:
    """F35."""
    background = HandCranked()
    with opened(url, summarizer=lambda request: "Mine.", background=background) as chat:
        talk(chat, 9)
        chat.append(user("q " + text_of(490, 99)))
        chat.prepare()
        assert background.crank() == 1  # It is written, and waits until it is due.
        with opened(url, summarizer=lambda request: "Theirs.") as other:
            other.compact()
        chat.append([say("a " + text_of(990, 98)), user("now")])
        view = chat.prepare()
        assert [entry.message.text for entry in view if entry.kind == "summary"] == ["Theirs."]
        texts = [row.message.text for row in chat.history()]
    assert check(url, texts)[-1] == "now"


def test_worker_and_conversation_do_not_both_compact(url: str) -> None:
    """F35: the second one plans again. A worker accepts the existing summary; a compaction by hand is
    applied to the view at that time.
    """
    summarizer = Meeting(2)
    with opened(url, summarizer=summarizer) as chat, open_store(url) as store:  # type: ignore[attr-defined]
        talk(chat, 10)
        wanted, opening = CompactionJob("c", number=0, is_wanted=True), OpenSettings(summarizer, (POLICY,), **SIZE)
        by_worker, by_hand = together(lambda: compact(store, wanted, opening, is_last=True), chat.compact)
        is_first = by_worker == "nothing to do"
        assert is_first or "compact" in by_worker
        assert [edit.span.first for edit in by_hand.edits if isinstance(edit, Summarize)] == [chat.history()[0].id]
        texts = [row.message.text for row in chat.history()]
    check(url, texts, summaries=1 if is_first else 2)


@pytest.mark.parametrize("how", ["at once", "in the background", "by a worker"])
def test_message_appended_during_a_summary_stays_whole(url: str, how: str) -> None:
    """F31."""
    with opened(url, policy="none") as other:
        talk(other, 10)

        def summarizer(request: SummaryRequest) -> str:
            other.append(user("meanwhile"))
            return "In short."

        with opened(
            url, summarizer=summarizer, background=(crank := HandCranked()) if how != "at once" else False
        ) as chat:
            match how:
                case "at once":
                    chat.compact()
                case "in the background":
                    chat.prepare()
                    crank.crank()
                    chat.compact() if not chat.journal.records() else chat.prepare()
                case _:
                    with open_store(url) as store:  # type: ignore[attr-defined]
                        opening = OpenSettings(summarizer, (POLICY,), **SIZE)
                        compact(store, CompactionJob("c", is_wanted=True), opening, is_last=True)
        other.refresh()
        texts = [row.message.text for row in other.history()]
    assert texts.count("meanwhile") == 1
    assert check(url, texts)[-1] == "meanwhile"


def test_edits_by_hand_that_many_make_at_once_are_all_made(url: str) -> None:
    """A refused plan is made again as often as needed, so no caller has to retry."""
    with opened(url, policy="none") as one:
        talk(one, 4)
        ids = [row.id for row in one.history()]
    chats = [opened(url, policy="none") for _ in range(6)]
    receipts = together(
        *(
            lambda n=n, chat=chat: [chat.edit(Pin(Target(ids[(n + k) % 8]), reason=f"{n}.{k}")) for k in range(4)]
            for n, chat in enumerate(chats)
        )
    )
    summaries_in = [receipt for each in receipts for receipt in each]
    assert sorted(receipt.first for receipt in summaries_in) == list(range(1, 25))
    for n, chat in enumerate(chats):
        chat.refresh()
        reasons = [record.edits[0].reason for record in chat.journal.records()]
        assert [reason for reason in reasons if reason.startswith(f"{n}.")] == [f"{n}.{k}" for k in range(4)]
        chat.close()
