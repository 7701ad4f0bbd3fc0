"""Looks at earlier calls: from restart points, from the stored snapshot, and from the beginning alike."""

from __future__ import annotations

import time

import pytest

from foveate import assistant, open_conversation, user
from foveate.conversation.past import Past
from foveate.conversation.sync import Conversation
from foveate.open import open_store
from foveate.replay.run import replay
from foveate.testing import agent_run

POLICIES = ["balanced", "prune-and-compact", "checkpoint", "off"]


def shown(view) -> list[tuple]:
    return [(e.position, e.last, e.kind, e.message, e.tokens, e.edits, e.shrunk, e.renewed, e.pins) for e in view]


def replayed(policy: str, count: int = 500, store=None) -> Conversation:
    store = store or open_store("memory:")
    replay(agent_run(count, seed=4, result_chars=(50, 4_000)), policy=policy, window=30_000, store=store, name="run")
    return open_conversation("run", store=store, format="openai", policy="off", window=30_000, expand=True)


def looks(chat: Conversation, turns) -> dict[int, list[tuple]]:
    """Return what each call saw, each folded from the beginning."""
    found = {}
    for turn in turns:
        past = Past(chat._session.state)
        past._saved_before = lambda turn: None  # type: ignore[method-assign]
        past._reply_without_edits = lambda turn: 0  # type: ignore[method-assign]
        found[turn] = shown(past.view_at(turn))
    return found


@pytest.mark.parametrize(
    "policy", [pytest.param(name, marks=[pytest.mark.slow] * (name != "balanced")) for name in POLICIES]
)
def test_looks_from_restart_points_equal_those_from_the_beginning(policy):
    chat = replayed(policy)
    newest = chat.view.turn
    turns = [1, 2, 7, newest // 3, newest // 2, newest // 2 + 1, newest - 30, newest - 1, newest]
    expected = looks(chat, turns)
    chat.totals()  # Leaves restart points.
    assert len(chat._session.past.points._points) >= 2
    assert {turn: shown(chat.as_of(turn)) for turn in reversed(turns)} == expected
    assert expected[newest] == shown(chat.view)


@pytest.mark.parametrize("policy", ["balanced", pytest.param("prune-and-compact", marks=pytest.mark.slow)])
def test_first_look_at_a_late_call_reads_the_stored_snapshot(policy, tmp_path):
    chat = replayed(policy, 250, store=open_store(f"sqlite:///{tmp_path}/chats.db"))
    newest = chat.view.turn
    chat._agent.save_snapshot()
    saved = chat.view.turn
    for number in range(5):
        chat.append(user(f"question {number}"))
        chat.prepare()
        chat.record(assistant(f"answer {number}"))
    turns = [saved, saved + 1, saved + 4]
    expected = looks(chat, turns)
    read = []
    messages = chat._agent.store.messages

    def counted(head, first, last):
        read.append(last - first + 1)
        return messages(head, first, last)

    chat._agent.store.messages = counted
    assert {turn: shown(chat.as_of(turn)) for turn in turns} == expected
    assert sum(read) < 100  # Without the snapshot: all messages, for each look.
    assert newest == saved


@pytest.mark.parametrize(
    "policy", [pytest.param(name, marks=[pytest.mark.slow] * (name != "off")) for name in POLICIES]
)
def test_look_at_the_newest_call_reads_nothing_without_later_edits(policy):
    chat = replayed(policy, 300)
    newest = chat.view.turn - 1
    chat.append(user("And now?"))
    past, slow = chat._session.past, Past(chat._session.state)
    slow._reply_without_edits = lambda turn: 0  # type: ignore[method-assign]
    expected, covers = slow.look_at(newest)
    past._walk_to = lambda turn: pytest.fail("The history is read.")  # type: ignore[method-assign]
    assert past.is_near(newest)
    view, found = past.look_at(newest)
    assert (shown(view), view.newest_input, found) == (shown(expected), expected.newest_input, covers)


def test_look_at_the_newest_call_shows_no_later_edit():
    chat = replayed("off", 60)
    newest = chat.view.turn - 1
    expected = looks(chat, [newest])[newest]
    chat.pin("m2")
    assert shown(chat.as_of(newest)) == expected
    assert chat.view.entries[1].pins


@pytest.mark.slow
def test_edit_after_the_newest_point_changes_no_earlier_view():
    chat = replayed("balanced")
    half, tip = chat.view.turn // 2, len(chat)
    chat.totals()
    old = shown(chat.as_of(half))
    chat.pin(f"m{tip}")
    assert shown(chat.as_of(half)) == old
    assert chat.as_of(chat.view.turn).entries[-1].pins


def test_erasing_forgets_the_restart_points():
    chat = replayed("off", 150)
    chat.totals()
    half, text = chat.view.turn // 2, chat.original("m5").text
    assert len(text) > 40
    assert any(text in entry.message.text for entry in chat.as_of(half))
    chat.privacy.erase("m5", reason="a wish")
    assert not any(text in entry.message.text for entry in chat.as_of(half))


@pytest.mark.slow
def test_looks_at_many_calls_cost_a_part_of_a_fold_each():
    chat = replayed("balanced", 1_200)

    def seconds(turns) -> float:
        began = time.process_time()
        for turn in turns:
            chat.as_of(turn)
        return time.process_time() - began

    half = chat.view.turn // 2
    first = seconds([half])
    later = seconds([half + 3, half + 2, half + 1, half]) / 4
    assert later < first / 2  # A tenth on a computer of its own.


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_erased_messages_still_count_as_sent(policy):
    """Otherwise erasing, or an age, looks like a saving of the policy. Sizes of erased summaries are estimates."""
    chat = replayed(policy, 200)
    before = chat.totals()
    chat.privacy.apply_retention({"all": "20 turns, even short"})
    chat.privacy.erase(f"m1-m{len(chat) - 10}")
    after = chat.totals()
    chat.close()
    assert after.tokens_sent == pytest.approx(before.tokens_sent, rel=0.05)
    assert (after.tokens_whole, after.expansions) == (before.tokens_whole, before.expansions)
    assert sum(model.tokens_saved for model in after.by_model.values()) == after.tokens_saved
