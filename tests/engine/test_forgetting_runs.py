"""Of what is hidden a conversation forgets all but the newest; what it shows, then or later, is the same."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from foveate import Conversation, Hide, Restore, Span, Summarize, Target, open_conversation
from foveate.core import forgetting_runs
from foveate.core.snapshots import Snapshot
from foveate.stores.memory import MemoryStore

from .shells import shown
from .test_state_machine import TwoStores


def forget(chat: Conversation, kept: int) -> None:
    """Let go of all but so many hidden runs."""
    with patch.object(forgetting_runs, "KEPT_MAX", kept), patch.object(forgetting_runs, "_SLACK", 1):
        chat._engine.projection.forget()


class OneForgets(TwoStores):
    """The conversation on SQLite forgets whenever it likes; the one in memory never does."""

    @precondition(lambda self: self.chats[0].head.number > 0)
    @rule(kept=st.integers(0, 2))
    def forget(self, kept: int) -> None:
        forget(self.chats[1], kept)

    @precondition(lambda self: len(self.chats[0]) > 0)
    @rule(data=st.data())
    def hide(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(1, len(self.chats[0])))
        self.both("edit", Hide(Target(self.chats[0].history(position, position)[0].id)))

    @precondition(lambda self: self.chats[0].head.number > 0)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        numbers = data.draw(st.sets(st.integers(1, self.chats[0].head.number), min_size=1, max_size=3))
        self.both("edit", Restore(edits=tuple(sorted(numbers))))


TestOneForgets = pytest.mark.slow(OneForgets.TestCase)
TestOneForgets.settings = settings(max_examples=150, stateful_step_count=25)


class OneForgetsSoon(OneForgets):
    """The same, a few times."""


TestOneForgetsSoon = OneForgetsSoon.TestCase
TestOneForgetsSoon.settings = settings(max_examples=8, stateful_step_count=15)


def windowed(count: int, *, store: MemoryStore | None = None) -> Conversation:
    """A conversation whose window moved on `count` times, two messages at a time, under one summary each time."""
    chat = open_conversation("c", store=store or MemoryStore(), policy="off")
    chat.append("m1")
    for n in range(count):
        chat.append([f"m{2 * n + 2}", f"m{2 * n + 3}"])
        chat.edit(Summarize(Span(chat.history(1, 1)[0].id, chat.history(2 * n + 1, 2 * n + 1)[0].id), f"summary {n}"))
    return chat


def texts(chat: Conversation) -> list[str]:
    return [entry.message.text for entry in chat.view.entries]


def test_a_window_that_moved_on_hundreds_of_times_keeps_the_newest_runs_and_the_place_of_the_others():
    chat = windowed(600)
    chat._do(chat._engine.save_snapshot())
    found = chat._engine.store.snapshot(chat.head)
    assert found is not None
    shot = Snapshot.decode(found[2])
    assert shot is not None
    first = shot.covers[0].number
    lost = 1, 2 * first - 3, first - 1
    assert 281 <= first <= 600 - forgetting_runs.KEPT_MAX
    assert [cover.number for cover in shot.covers] == list(range(first, 601))
    assert (shot.covers[0].lost, shot.gone, shot.forgotten) == (lost, [], first - 1)


def test_the_newest_summaries_are_taken_back_without_reading_the_past():
    store = MemoryStore()
    chat = windowed(20, store=store)
    forget(chat, 4)
    with patch.object(store, "messages", side_effect=AssertionError("the past was read")):
        chat.undo(20)
        chat.undo(19)
    assert texts(chat) == ["summary 17", *(f"m{n}" for n in range(36, 42))]


def test_a_summary_that_was_forgotten_is_shown_again_all_the_same():
    chat = windowed(20)
    forget(chat, 0)
    chat.edit(Restore(edits=tuple(range(2, 21))))
    assert texts(chat) == ["summary 0", *(f"m{n}" for n in range(2, 42))]


def test_messages_that_were_hidden_one_by_one_are_one_run_of_what_is_gone():
    chat = open_conversation("c", store=MemoryStore(), policy="off")
    chat.append([f"m{n}" for n in range(1, 12)])
    for row in chat.history(2, 8):
        chat.edit(Hide(Target(row.id)))
    forget(chat, 0)
    assert chat._engine.projection.snapshot().gone == [(2, 8, 7)]
    chat.expand("m4")
    assert texts(chat) == ["m1", "m4", "m9", "m10", "m11"]
    chat.edit(Restore(edits=(5,)))
    assert texts(chat) == ["m1", "m4", "m6", "m9", "m10", "m11"]


def test_a_forgetful_conversation_is_resumed_as_it_was():
    store = MemoryStore()
    chat = windowed(20, store=store)
    forget(chat, 0)
    chat._do(chat._engine.save_snapshot())
    again = open_conversation("c", store=store, policy="off")
    chat.undo(20)
    again._do(again._engine.refresh())
    assert shown(again.view) == shown(chat.view)
