"""After each turn under a policy, an open conversation equals a reopened one: sizes, times and marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from together.mechanisms import MECHANISMS, story, summarizer, told

from foveate import Conversation, Options, Usage, open_conversation
from foveate.core.edits import Hide, Replace, Span, Summarize, Target
from foveate.ports import Database
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import say, user

from .memory_state import Unsaved, differences, known, projected

POLICIES: dict[str, Any] = {
    **{name: name for name in ("balanced", "frugal", "prune-and-compact", "recap", "expire")},
    "all": tuple(MECHANISMS),
}


class World:
    """One store and the conversations opened on it. The clock ticks at each look."""

    def __init__(self, policy: str, store: Database | None = None) -> None:
        self.store, self.policy, self.now = store or MemoryStore(), POLICIES[policy], 0

    def clock(self) -> int:
        self.now += 1
        return self.now

    def opened(self, store: Any = None) -> Conversation:
        policy = self.policy if isinstance(self.policy, str) else tuple(MECHANISMS[name]() for name in self.policy)
        return open_conversation(
            "c",
            store=store or self.store,
            window=2_000,
            policy=policy,
            summarizer=summarizer,
            options=Options(background=False, clock=self.clock),
        )

    def apart(self, chat: Conversation) -> list[dict[str, Any]]:
        """Return the differences to a conversation opened from the newest snapshot, and to one folded from the
        beginning.

        Plans and facts of the moment are left out.
        """
        live = known(chat)
        fresh = [known(self.opened(store)) for store in (self.store, Unsaved(self.store))]
        return [differences(live, one, without=("plan", "view")) for one in fresh]


def written_edits(chat: Conversation) -> list[Any]:
    """Return the edits of a projection that have sizes."""
    found = projected(chat._session.state.projection)
    edits = [edit for slot in found["slots"] for _, edit in slot["edits"]] + [one.edit for one in found["covers"]]
    return [edit for edit in edits if isinstance(edit, Replace | Hide | Summarize)]


@pytest.mark.parametrize("policy", POLICIES)
def test_live_conversation_equals_a_reopened_one_after_each_turn(policy: str) -> None:
    """Edits were once kept without their sizes, and summaries with the time at which the plan tried them."""
    world = World(policy)
    chat = world.opened()
    for message in story(16):
        told(chat, [message])
        if message.role == "assistant":
            fresh = [
                projected(world.opened(store)._session.state.projection)
                for store in (world.store, Unsaved(world.store))
            ]
            assert [differences(projected(chat._session.state.projection), one) for one in fresh] == [{}, {}]
    assert world.apart(chat) == [{}, {}]
    assert all(edit.tokens_before for edit in written_edits(chat))
    assert written_edits(chat)


def test_live_equals_reopened_in_a_file(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "chat.db", synchronous="normal") as store:
        world = World("all", store)
        chat = told(world.opened(), story(8))
        chat._agent.save_snapshot()
        told(chat, [user("Go on."), say("Done.")])
        assert world.apart(chat) == [{}, {}]


def test_summaries_after_an_erasure_are_marked_live_as_in_the_journal() -> None:
    world = World("prune-and-compact")
    chat = told(world.opened(), story(4))
    chat.privacy.erase("m4")
    told(chat, story(16))
    summaries = [edit for edit in written_edits(chat) if isinstance(edit, Summarize)]
    assert summaries
    assert all(edit.outlives for edit in summaries)
    assert world.apart(chat) == [{}, {}]


def test_manual_summary_after_an_erasure_is_marked_live_as_in_the_journal() -> None:
    world = World("prune-and-compact")
    chat = told(world.opened(), story(4))
    chat.privacy.erase("m4")
    chat.edit(Summarize(Span(chat.history()[4].id, chat.history()[5].id), "In short."))
    assert all(edit.outlives for edit in written_edits(chat) if isinstance(edit, Summarize))
    assert world.apart(chat) == [{}, {}]


def test_manual_summary_belongs_to_the_call_that_first_shows_it() -> None:
    world = World("prune-and-compact")
    chat = told(world.opened(), story(6))
    chat.append(user("And now?"))
    chat.prepare()
    chat.compact()
    record = chat.journal.records()[-1]
    assert (record.author, record.turn) == ("compact", chat._session.state.calls._turn + 1)
    assert projected(chat._session.state.projection)["covers"][-1].turn == record.turn
    assert world.apart(chat) == [{}, {}]


def test_usage_recorded_by_one_writer_corrects_all_estimates() -> None:
    world = World("prune-and-compact")
    one, other = world.opened(), world.opened()
    one.append(user("How is the weather in Oslo, and in Bergen?"))
    one.prepare()
    one.record(say("Wet."), usage=Usage(40, 0, 0, 5))
    other.refresh()
    assert other.budget == one.budget == world.opened().budget
    assert other.budget.scale > 1


def test_totals_count_a_writer_that_is_one_call_behind() -> None:
    world = World("prune-and-compact")
    one, other = world.opened(), world.opened()
    one.append([user("How is the weather in Oslo? " * 9), say("Wet. " * 9), user("And in Bergen?")])
    other.refresh()
    one.prepare()
    one.record(say("Wetter."))
    one.totals()
    other.edit(Hide(Target(other.history(2, 2)[0].id)))
    one.refresh()
    assert one.totals() == other.totals() == world.opened().totals()
