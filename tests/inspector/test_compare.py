"""Comparison of views: aligned by message, complete on both sides."""

from __future__ import annotations

from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import open_conversation
from foveate.errors import BadSetting
from foveate.inspector.views.comparison import compare
from foveate.inspector.views.trials import SUGGESTED, check_policy, policy_choices, recording_of, try_policy, window_of
from foveate.replay.recordings.recording import RecordedMessage, Recording
from foveate.testing import agent_run

POLICIES = ("none", "keep-last-3", "prune", "balanced", "checkpoint", "recap")


@lru_cache(None)
def trial(policy):
    messages = tuple(RecordedMessage(message, 0) for message in agent_run(80, seed=3))
    return try_policy(Recording("", "", messages, name="run"), policy, window=16_000, provider="openai")


@settings(max_examples=settings.default.max_examples // 3)
@given(policies=st.tuples(*[st.sampled_from(POLICIES)] * 2), calls=st.tuples(*[st.integers(1, 80)] * 2))
def test_comparison_holds_every_entry_of_both_views_in_order(policies, calls):
    left, right = (trial(policy).views.at(call) for policy, call in zip(policies, calls, strict=True))
    found = compare(left, right)
    assert [id(pair.left) for pair in found.pairs if pair.left] == [id(entry) for entry in left]
    assert sorted(id(pair.right) for pair in found.pairs if pair.right) == sorted(map(id, right))
    assert sum(group.left for group in found.sums) == found.left == sum(entry.tokens for entry in left)
    assert sum(group.right for group in found.sums) == found.right == sum(entry.tokens for entry in right)
    assert found.left - found.right == sum(pair.saved for pair in found.pairs)
    for pair in found.pairs:
        if pair.left and pair.right:
            assert pair.left.id == pair.right.id
            assert (pair.status == "same") == (pair.left.message == pair.right.message)


def test_view_compared_with_itself_is_the_same():
    view = trial("balanced").views.at(80)
    found = compare(view, view)
    assert [group.status for group in found.sums] == ["same"]
    assert found.shared == len(view)


def test_shrunk_result_stands_next_to_the_whole_one():
    found = compare(trial("none").views.at(40), trial("keep-last-3").views.at(40))
    changed = [pair for pair in found.pairs if pair.status == "changed"]
    assert changed
    assert all(pair.left.handle == pair.right.handle for pair in changed)
    assert any(pair.saved > 0 and pair.right.shrunk for pair in changed)


def test_message_under_a_summary_names_the_summary_that_covers_it():
    whole, covered = trial("prune").views.at(80), trial("checkpoint").views.at(80)
    hidden = [pair for pair in compare(whole, covered).pairs if pair.status == "left" and pair.covered_by]
    assert hidden
    assert all(pair.covered_by.position <= pair.left.position <= pair.covered_by.last for pair in hidden)


def test_fork_and_parent_part_where_their_histories_do():
    with open_conversation("a", store="memory:", window=50_000) as parent:
        for message in agent_run(10, seed=1):
            parent.append(message)
        with parent.fork("b", at=8) as fork:
            fork.append("Another way.")
            parent.append("The same way.")
            found = compare(parent.view.entries, fork.view.entries)
    assert [pair.status for pair in found.pairs[:8]] == ["same"] * 8
    assert {pair.status for pair in found.pairs[8:]} == {"left", "right"}


def test_stored_conversation_becomes_a_recording_with_the_same_figures():
    messages = agent_run(30, seed=2)
    with open_conversation("a", store="memory:", window=16_000, policy="keep-last-3") as chat:
        for message in messages:
            if message.role == "assistant":
                chat.prepare()
                chat.record(message)
            else:
                chat.append(message)
        recording = recording_of(chat)
        assert window_of(chat) == 16_000
    assert [row.message for row in recording.messages] == list(messages)
    found = try_policy(recording, "keep-last-3", window=16_000, provider="openai")
    assert found.result.row.calls == len(found.views) == 30


def test_only_known_policies_are_tried():
    assert set(SUGGESTED) <= set(policy_choices())
    assert [check_policy(name) for name in ("none", "keep-last-12", "prune")] == ["none", "keep-last-12", "prune"]
    for name in ("mine.toml", "/etc/passwd", "keep-last-", "keep-last-99999", "keep-last-٣", ""):
        with pytest.raises(BadSetting, match="There is no preset"):
            check_policy(name)
