"""The n-th operation of the store fails, for every n: the conversation is as before or as after, and continues."""

from __future__ import annotations

import pytest
from sweeps import STEP, by_thirds

from foveate import Conversation, StoreError
from foveate.policies import prune_tool_outputs
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import agent_run, user
from foveate.testing.faults import Countdown, failing_store

from .shells import opened, refusals, shown

HISTORY = agent_run(8, seed=4, result_chars=(400, 900))
POLICY = (prune_tool_outputs(protect=300, minimum=150),)


def play(chat: Conversation, *, refreshes: bool = True) -> None:
    """Play the whole run. A failed operation is repeated, as a user's retry does."""
    tip = chat.tip
    for message in HISTORY:
        for attempt in range(3):
            try:
                if message.role == "assistant":
                    chat.prepare()
                tip = chat.append(message, after=tip)[-1]
                break
            except StoreError:
                assert attempt < 2
                if refreshes:
                    chat.refresh()
    chat.prepare()


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
@pytest.mark.parametrize("kind", ["memory", "memory, not refreshed", "sqlite"])
@by_thirds
def test_retry_after_any_failure_gives_the_same_conversation(kind, after, n, tmp_path):
    """F30."""
    reference = opened(policy=POLICY)
    play(reference)
    while True:
        countdown = Countdown(after=after)
        inner = MemoryStore() if kind != "sqlite" else SqliteStore(tmp_path / f"{n}.db", synchronous="normal")
        chat = opened(policy=POLICY, store=failing_store(inner, countdown))
        countdown.start(n)
        play(chat, refreshes=kind != "memory, not refreshed")
        done = not countdown.is_used_up
        countdown.start(0)
        assert [row.message for row in chat.history()] == HISTORY
        assert chat.tip == reference.tip
        assert refusals(chat) == []
        assert chat.journal.verify() == []
        again = opened(policy="off", store=inner)
        assert shown(again.view) == shown(chat.view)
        inner.close()
        if done:
            break
        n += STEP
    assert n > 20


def test_failing_listener_changes_nothing():
    def broken(event: object) -> None:
        raise RuntimeError("not my day")

    quiet, loud = opened(policy=POLICY), opened(policy=POLICY, on_event=broken)
    play(quiet)
    play(loud)
    assert shown(quiet.view) == shown(loud.view)
    assert quiet.journal.records()[0].edits == loud.journal.records()[0].edits


def test_events_are_in_order():
    heard = []
    chat = opened(policy="keep-last-1", on_event=heard.append)
    for message in agent_run(4, seed=1):
        chat.append(message)
        chat.prepare() if message.role != "assistant" else None
    chat.append(user("next"))
    chat.pin("m1")
    assert {(e.kind, e.message, e.edit) for e in heard} == {(e.kind, e.message, e.edit) for e in chat.journal.events()}
    assert [event.kind for event in heard[:2]] == ["message-added", "message-added"]
    assert heard[-1].kind == "message-pinned"
