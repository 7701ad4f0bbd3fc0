"""A conversation forgets all but the newest hidden runs; every view stays the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from operator import attrgetter
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from foveate import BadInput, Conversation, DoesNotFit, open_conversation
from foveate.conversation import journal_search, loading, past, state
from foveate.core import snapshots
from foveate.core.edits import Record
from foveate.core.snapshots import Snapshot
from foveate.edits import Hide, Restore, Span, Summarize, Target
from foveate.errors import BadEdit, BadMessage
from foveate.ports import Head
from foveate.stores.memory import MemoryStore

from .shells import shown
from .test_state_machine import TwoStores


def forget(chat: Conversation, kept: int) -> None:
    """Forget all but this many hidden runs."""
    with patch.object(snapshots, "KEPT_MAX", kept), patch.object(snapshots, "_SLACK", 1):
        chat._session.state.projection.forget()


@contextmanager
def in_small_pieces() -> Iterator[None]:
    """Set every limit on a length to two or three."""
    sizes = (
        (journal_search, "_SHORT_JOURNAL", 2),
        (journal_search, "_WINDOW", 1),
        (loading, "_ROWS", 3),
        (past, "_ROWS", 3),
    )
    with ExitStack() as stack:
        for module, name, size in (*sizes, (state, "_LONG_GAP", 2)):
            stack.enter_context(patch.object(module, name, size))
        yield


def all_records(chat: Conversation) -> list[Record]:
    """Return the whole journal."""
    return [record for _, record in chat._agent.store.records(chat._agent.head)]


class OneForgets(TwoStores):
    """The conversation on SQLite forgets at random moments and reads in small pieces; the one in memory does not."""

    def opened(self, which: int, name: str) -> Conversation:
        with in_small_pieces() if which else nullcontext():
            chat = super().opened(which, name)
        if not which:
            chat._session.editor._records_about = lambda first, last: all_records(chat)  # type: ignore[method-assign]
        return chat

    def both(self, act: str, *given: object, **named: object) -> None:
        self.now += 1
        outcomes = []
        for how, chat in zip((nullcontext(), in_small_pieces()), self.chats, strict=True):
            try:
                with how:
                    done = attrgetter(act)(chat)(*given, **named)
                outcomes.append(done if act in ("totals", "search") else "done")
            except (BadInput, BadMessage, BadEdit, DoesNotFit) as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]

    @rule()
    def sum_up(self) -> None:
        self.both("totals")

    @rule()
    def search(self) -> None:
        self.both("search", "login")

    @precondition(lambda self: len(self.chats[0]) > 0)
    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        turn = data.draw(st.integers(1, 6))
        try:
            was = self.chats[0].as_of(turn)
        except BadInput as error:  # There is no such turn yet.
            with pytest.raises(BadInput, match=str(error)):
                self.chats[1].as_of(turn)
            return
        with in_small_pieces():
            assert shown(self.chats[1].as_of(turn)) == shown(was)

    @precondition(lambda self: self.chats[0]._agent.head.number > 0)
    @rule(kept=st.integers(0, 2))
    def forget(self, kept: int) -> None:
        forget(self.chats[1], kept)

    @precondition(lambda self: len(self.chats[0]) > 0)
    @rule(data=st.data())
    def hide(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(1, len(self.chats[0])))
        self.both("edit", Hide(Target(self.chats[0].history(position, position)[0].id)))

    @precondition(lambda self: self.chats[0]._agent.head.number > 0)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        numbers = data.draw(st.sets(st.integers(1, self.chats[0]._agent.head.number), min_size=1, max_size=3))
        self.both("edit", Restore(edits=tuple(sorted(numbers))))


TestOneForgets = pytest.mark.slow(OneForgets.TestCase)
TestOneForgets.settings = settings(max_examples=60, stateful_step_count=25)


class OneForgetsSoon(OneForgets):
    """The same machine with few steps."""


TestOneForgetsSoon = OneForgetsSoon.TestCase
TestOneForgetsSoon.settings = settings(max_examples=8, stateful_step_count=15)


def windowed(count: int, *, store: MemoryStore | None = None) -> Conversation:
    """Return a conversation whose window moved `count` times, two messages each time, each time under a summary."""
    chat = open_conversation("c", store=store or MemoryStore(), policy="off")
    chat.append("m1")
    for n in range(count):
        chat.append([f"m{2 * n + 2}", f"m{2 * n + 3}"])
        chat.edit(Summarize(Span(chat.history(1, 1)[0].id, chat.history(2 * n + 1, 2 * n + 1)[0].id), f"summary {n}"))
    return chat


def texts(chat: Conversation) -> list[str]:
    return [entry.message.text for entry in chat.view.entries]


def test_moved_window_keeps_newest_runs_and_positions_of_others():
    chat = windowed(600)
    chat._agent.save_snapshot()
    found = chat._agent.store.snapshot(chat._agent.head)
    assert found is not None
    shot = Snapshot.decode(found[2])
    assert shot is not None
    first = shot.covers[0].number
    lost = 1, 2 * first - 3, first - 1
    assert 281 <= first <= 600 - snapshots.KEPT_MAX
    assert [cover.number for cover in shot.covers] == list(range(first, 601))
    assert (shot.covers[0].lost, shot.gone, shot.forgotten) == (lost, [], first - 1)


def test_newest_summaries_are_undone_without_reading_the_past():
    store = MemoryStore()
    chat = windowed(20, store=store)
    forget(chat, 4)
    with patch.object(store, "messages", side_effect=AssertionError("the past was read")):
        chat.undo(20)
        chat.undo(19)
    assert texts(chat) == ["summary 17", *(f"m{n}" for n in range(36, 42))]


def test_forgotten_summary_can_still_be_shown_again():
    chat = windowed(20)
    forget(chat, 0)
    chat.edit(Restore(edits=tuple(range(2, 21))))
    assert texts(chat) == ["summary 0", *(f"m{n}" for n in range(2, 42))]


def test_messages_hidden_one_by_one_form_one_run():
    chat = open_conversation("c", store=MemoryStore(), policy="off")
    chat.append([f"m{n}" for n in range(1, 12)])
    for row in chat.history(2, 8):
        chat.edit(Hide(Target(row.id)))
    forget(chat, 0)
    assert chat._session.state.projection.snapshot().gone == [(2, 8, 7)]
    chat.expand("m4")
    assert texts(chat) == ["m1", "m4", "m9", "m10", "m11"]
    chat.edit(Restore(edits=(5,)))
    assert texts(chat) == ["m1", "m4", "m6", "m9", "m10", "m11"]


def test_conversation_with_few_kept_runs_resumes_unchanged():
    store = MemoryStore()
    chat = windowed(20, store=store)
    forget(chat, 0)
    chat._agent.save_snapshot()
    again = open_conversation("c", store=store, policy="off")
    chat.undo(20)
    again.refresh()
    assert shown(again.view) == shown(chat.view)


def test_undo_and_expansion_read_only_the_end_of_a_long_journal():
    store = MemoryStore()
    chat = windowed(700, store=store)
    read: list[int] = []
    records = store.records

    def counted(head: Head, after: int = 0) -> list[tuple[str, Record]]:
        found = records(head, after)
        read.append(len(found))
        return found

    with patch.object(store, "records", counted):
        chat.undo(700)
        chat.expand("m1390")
        fork = chat.fork("fork", at=41)
    assert (sum(read), len(read)) < (2_000, 30)
    assert (fork._agent.head.number, texts(fork)) == (20, ["summary 19", "m40", "m41"])


def test_free_name_for_a_departure_is_found_with_few_queries():
    store = MemoryStore()
    with patch.object(store, "names", side_effect=AssertionError("all names were asked for")):
        chat = open_conversation("c", store=store, policy="off")
        for n in range(6):
            chat.prepare(messages=[{"role": "user", "content": f"course {n}"}])
    assert store.names("") == ["c", "c~1", "c~2", "c~3", "c~4", "c~5"]


def test_long_read_saves_a_snapshot():
    store = MemoryStore()
    windowed(8, store=store).fork("fork", at=12)
    with patch.object(state, "_LONG_GAP", 10):
        first = open_conversation("fork", store=store, policy="off")
    with patch.object(store, "messages", wraps=store.messages) as messages:
        again = open_conversation("fork", store=store, policy="off")
    assert [call.args[1:] for call in messages.call_args_list] == [(13, 12)]
    assert shown(again.view) == shown(first.view)
