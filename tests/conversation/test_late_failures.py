"""Failures after the messages or edits are stored are not reported as failures of the write.

The advice of a StoreError is "nothing was written, retry": a caller who follows it must find each message once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from sweeps import STEP, by_thirds

from foveate import Conversation, StoreError
from foveate.conversation.snapshots import SnapshotKeeper
from foveate.core.edits import Hide, Target
from foveate.errors import Damaged
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import agent_run, answer, call, say, text_of, user
from foveate.testing.faults import Countdown, failing_store

from .shells import opened, shown, texts, wire


class Faulty:
    """A store of which the operations in `failing` raise a StoreError, before they take effect."""

    def __init__(self, store: Any = None) -> None:
        self.store = store or MemoryStore()
        self.failing: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name in self.failing:
            raise StoreError(f"{name} was made to fail. Nothing was written. Retry.")
        return getattr(self.store, name)


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a snapshot due after every message and every edit."""
    monkeypatch.setattr(SnapshotKeeper, "is_due", lambda self, projection: True)


@pytest.mark.usefixtures("snapshots")
def test_append_succeeds_when_the_snapshot_fails():
    store = Faulty()
    chat = opened(store=store)
    store.failing = {"save_snapshot"}
    ids = chat.append([user("a"), say("b")])
    assert [row.id for row in chat.history()] == list(ids)
    store.failing = set()
    chat.append(user("c"))
    assert store.snapshot(chat._agent.head)[0] == 3


@pytest.mark.usefixtures("snapshots")
def test_edit_succeeds_when_the_snapshot_fails():
    store = Faulty()
    chat = opened(store=store)
    first, _ = chat.append([user("a"), say("b")])
    chat.append(user("c"))
    store.failing = {"save_snapshot"}
    receipt = chat.edit(Hide(Target(first)))
    assert (receipt.first, texts(chat.view), len(chat.journal.records())) == (1, ["b", "c"], 1)


@pytest.mark.parametrize("failing", ["commit", "records", "locate"])
def test_record_succeeds_when_the_plan_after_it_fails(failing):
    store = Faulty()
    heard: list[Any] = []
    chat = opened(store=store, policy="keep-last-1", on_event=heard.append)
    chat.append(user("go"))
    for name in "ab":
        chat.append([call(name), answer(name, text_of(90))])
    chat.prepare()
    store.failing = {failing}
    chat.record(say("done"))
    store.failing = set()
    assert [row.message.text for row in chat.history()].count("done") == 1
    assert chat.prepare().tokens < 150


def test_append_succeeds_when_reading_back_fails():
    store = MemoryStore()
    faulty = Faulty(store)
    heard: list[Any] = []
    one, other = opened(store=faulty, on_event=heard.append), opened(store=store)
    first, *_ = one.append([user("a"), say("b"), user("c")])
    other.refresh()
    other.edit(Hide(Target(first)))
    other.append(user("d"))
    faulty.failing = {"messages", "locate", "get_many", "records"}
    (last,) = one.append(user("e"))
    faulty.failing = set()
    assert [row.message.text for row in one.history()] == ["a", "b", "c", "d", "e"]
    assert one.history()[-1].id == last == heard[-1].message
    assert texts(one.prepare()) == ["b", "c", "d", "e"]


HISTORY = agent_run(6, seed=4, result_chars=(200, 500))


@by_thirds
def test_retry_after_any_failed_operation_stores_one_copy(n, monkeypatch, snapshots, tmp_path):
    """F30: an append or record without `after=` is repeated whenever it raises, whichever operation failed."""

    def retried(do: Callable[[], object]) -> None:
        for attempt in range(3):
            try:
                do()
                return
            except StoreError:
                assert attempt < 2

    def play(chat: Conversation) -> None:
        for message in HISTORY:
            if message.role == "assistant":
                retried(chat.prepare)
                retried(lambda message=message: chat.record(message))
            else:
                retried(lambda message=message: chat.append(message))
        retried(chat.prepare)

    while True:
        countdown = Countdown()
        inner = SqliteStore(tmp_path / f"{n}.db", synchronous="normal")
        chat = opened(policy="keep-last-2", store=failing_store(inner, countdown), on_event=lambda event: None)
        countdown.start(n)
        play(chat)
        is_done = not countdown.is_used_up
        countdown.start(0)
        assert [row.message for row in chat.history()] == HISTORY, f"operation {n}"
        assert chat.journal.verify() == []
        assert shown(opened(policy="off", store=inner).view) == shown(chat.view)
        inner.close()
        if is_done:
            break
        n += STEP
    assert n > 40


# ------------------------------------------------------------------------------------------------------------- late


def test_late_answer_stays_late_in_another_process():
    """An answer that comes after a prompt showed a stand-in for it leaves what was shown in its place."""
    store = MemoryStore()
    chat = opened(store=store)
    chat.append([user("go"), call("a", "read_file", path="x.py")])
    before = wire(chat, chat.prepare())
    again = opened(store=store)
    again.append(answer("a", "print(1)"))
    view = again.prepare()
    assert texts(view)[3:] == ["[Result for call a of read_file, which came late]\nprint(1)"]
    assert wire(again, view)[: len(before)] == before
    assert again.journal.verify() == []


def test_late_answer_of_a_process_that_missed_the_prompt_stays_late():
    """A process that did not read the record of the stand-in appends the answer with the turn of the call."""
    store = MemoryStore()
    chat = opened(store=store)
    chat.append([user("go"), call("a", "read_file", path="x.py")])
    unaware = opened(store=store)
    before = wire(chat, chat.prepare())
    unaware.append(answer("a", "print(1)"))
    chat.refresh()
    for one in (chat, unaware, opened(store=store)):
        view = one.prepare()
        assert texts(view)[3:] == ["[Result for call a of read_file, which came late]\nprint(1)"]
        assert wire(one, view)[: len(before)] == before
    one._session.state.save_snapshot()
    assert wire(one, opened(store=store).prepare()) == wire(one, view)
    chat.record(call("b", "read_file", path="y.py"))
    again = chat.prepare()
    assert wire(chat, again)[: len(wire(one, view))] == wire(one, view)
    assert chat.journal.verify() == []


@pytest.mark.parametrize("is_resumed", [False, True])
def test_late_answer_stays_late_after_it_was_hidden_and_restored(is_resumed):
    store = MemoryStore()
    chat = opened(store=store)
    chat.append([user("go"), call("a", "read_file", path="x.py")])
    unaware = opened(store=store)
    chat.prepare()
    (late,) = unaware.append(answer("a", "print(1)"))
    chat.refresh()
    chat.append(user("go on"))
    before = wire(chat, chat.prepare())
    chat.edit(Hide(Target(late)))
    chat.prepare()
    if is_resumed:
        chat._session.state.save_snapshot()
        chat = opened(store=store)
    chat.undo()
    assert wire(chat, chat.prepare()) == before
    assert wire(chat, opened(store=store).prepare()) == before


def test_call_and_answer_of_a_process_that_missed_the_prompt_stay_together():
    """The process counts fewer model calls, but its call came after the record of the stand-in."""
    store = MemoryStore()
    chat = opened(store=store)
    chat.append([user("go"), call("a", "read_file", path="x.py"), answer("a", "print(1)")])
    unaware = opened(store=store)
    for text in ("one", "two"):
        chat.prepare()
        chat.append(user(text))
    chat.append(call("b", "read_file", path="y.py"))
    unaware.refresh()
    chat.prepare()
    unaware.append([call("c", "read_file", path="z.py"), answer("c", "print(3)")])
    chat.refresh()
    assert texts(chat.prepare())[-1] == "print(3)"


def test_answer_before_any_prompt_follows_its_call():
    store = MemoryStore()
    opened(store=store).append([user("go"), call("a", "read_file", path="x.py")])
    again = opened(store=store)
    again.append(answer("a", "print(1)"))
    assert texts(again.prepare()) == ["go", "", "print(1)"]
    assert again.journal.records() == []


def test_shown_stand_in_is_recorded_once():
    chat = opened()
    chat.append([user("go"), call("a", "read_file", path="x.py")])
    for _ in range(3):
        chat.prepare()
    assert (len(chat.journal.records()), chat.journal.receipts(), chat.journal.events()[2:]) == (1, [], [])


def test_prepare_works_in_a_store_that_refuses_edits():
    store = Faulty()
    chat = opened(store=store)
    chat.append([user("go"), call("a", "read_file", path="x.py")])
    store.failing = {"commit"}
    assert len(chat.prepare()) == 3


# -------------------------------------------------------------------------------------------------------------- cut


@pytest.mark.parametrize("cut", ["messages", "records", "pick"])
@pytest.mark.parametrize("is_saved", [False, True])
def test_opening_a_conversation_with_a_cut_tail_is_refused(is_saved, cut):
    """The head names a message or an edit that the store does not return: in memory, or in a user's own store."""

    class Cut(MemoryStore):
        is_cut = False

        def messages(self, head: Any, first: int, last: int) -> Any:
            rows = super().messages(head, first, last)
            return rows[:-1] if self.is_cut and cut == "messages" else rows

        def get_many(self, head: Any, positions: Any) -> Any:
            rows = super().get_many(head, positions)
            return [row for row in rows if row.position != 5] if self.is_cut and cut == "pick" else rows

        def records(self, head: Any, after: int = 0) -> Any:
            return super().records(head, after)[:-1] if self.is_cut and cut == "records" else super().records(head)

    store = Cut()
    chat = opened(store=store)
    *_, hidden = chat.append([user("a"), say("b"), user("c"), user("d"), say("e")])
    chat.edit(Hide(Target(hidden)))
    if is_saved:
        chat._agent.save_snapshot()
    store.is_cut = True
    if is_saved == (cut == "pick"):
        with pytest.raises(Damaged, match="foveate db verify"):
            opened(store=store)
    else:
        assert len(opened(store=store)) == 5


def test_opening_a_database_with_a_cut_tail_is_refused(tmp_path):
    path = tmp_path / "c.db"
    with opened(store=f"sqlite:///{path}") as chat:
        *_, hidden = chat.append([user("a"), say("b"), user("c"), user("d"), say("e")])
        chat.edit(Hide(Target(hidden)))
        chat._agent.save_snapshot()
    with sqlite3.connect(path) as connection:
        assert connection.execute("DELETE FROM message WHERE position = 5").rowcount == 1
    connection.close()
    with pytest.raises(Damaged, match="it is missing"):
        opened(store=f"sqlite:///{path}")
