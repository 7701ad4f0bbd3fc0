"""Tests of erasures with `keep_shown` and `seen`, which retention uses."""

from __future__ import annotations

from typing import Literal

import pytest
from msgspec import structs

from ..core import wire
from ..core.edits import Hide, Restore, Span, Summarize, Target
from ..core.ids import ERASED
from ..core.messages import tool_result, user
from ..core.runs import AgentRun, AgentRunStep
from ..core.snapshots import VERSION, Cover, Facts, Snapshot
from ..core.stamps import Expansion, StampRow
from ..errors import BadSetting, ConflictError
from ..ports import Database, Erasure, Head, append
from .erase_contract import LONG, WORD, append_at, commit_edits, create_derived, everything
from .rows import chain, record_after

__all__ = ["AgeContract"]


def summed_up(store: Database) -> tuple[Head, list[str]]:
    """Create eight messages, a summary of 2-3 inside a summary of 1-4, and another summary after it."""
    head = store.open("acme", "one")
    ids: list[str] = []
    for number in range(8):
        head = append_at(store, head, user(LONG if number == 2 else f"number {number} of {WORD}"), turn=number)
        ids.append(head.tip)
    head = commit_edits(store, head, Summarize(Span(ids[1], ids[2]), f"Inner {WORD}."))
    head = commit_edits(store, head, Summarize(Span(ids[0], ids[3]), "Outer."))
    return commit_edits(store, head, Summarize(Span(ids[4], ids[5]), "Beside.")), ids


def summaries(store: Database, head: Head) -> list[tuple[str, bool]]:
    """Return the text of each summary in the journal, and whether it outlives its messages."""
    edits = (edit for _, record in store.records(head) for edit in record.edits)
    return [(edit.text, edit.outlives) for edit in edits if isinstance(edit, Summarize)]


def heads(store: Database, head: Head) -> list[Head]:
    """Return the heads of all branches of a tree."""
    return [branch.head for branch in store.branches(head)]


class AgeContract:
    """Tests of `stamps`, and of `erase` with several spans and `keep_shown`."""

    def test_stamps_are_returned_without_bodies(self, store: Database) -> None:
        head, fork, _ = create_derived(store)
        rows = store.messages(fork, 1, 9)
        found = store.stamps(fork, 1, 9)
        assert [one.size > 0 for one in found] == [True] * 5
        assert [structs.replace(one, size=1) for one in found] == [
            StampRow(row.position, row.id, row.stamp, 1) for row in rows
        ]
        assert found[2].size > 1000  # It is stored outside of its row.
        assert store.stamps(fork, 2, 3) == found[1:3]
        assert store.stamps(fork, 4, 2) == store.stamps(fork, 9, 12) == []
        store.erase(head, [(3, 3)])
        assert [one.size > 0 for one in store.stamps(fork, 1, 5)] == [True, True, False, True, True]

    def test_several_spans_are_erased_at_once(self, store: Database) -> None:
        head = store.open("acme", "one")
        head = append(store, head, chain([user(f"{n} {WORD}") for n in range(9)], head))
        store.search(head, WORD)
        done = store.erase(head, [(1, 2), (4, 4), (7, 9)], who="ann", reason="old", time=5)
        assert done == Erasure(1, 5, "ann", "old", "one", "m1-m2 m4 m7-m9", messages=6)
        assert [bool(row.body) for row in store.messages(head, 1, 9)] == [bool(n) for n in (0, 0, 1, 0, 1, 1, 0, 0, 0)]
        assert sorted(found.position for found in store.search(head, WORD)) == [3, 5, 6]
        assert (store.verify(store.open("acme", "one")), store.find_residue(head)) == ([], (6, []))
        assert store.erase(store.open("acme", "one"), [(1, 2), (8, 8)]) == Erasure(0)
        assert store.erasures(head) == [done]

    def test_one_missing_span_changes_nothing(self, store: Database) -> None:
        head, _, _ = create_derived(store)
        for wrong in ((0, 1), (3, 2), (1, 8)):
            with pytest.raises(BadSetting, match="messages 1 to 7"):
                store.erase(head, [(2, 3), wrong])
        assert store.erasures(head) == []
        assert store.erase(head, []) == Erasure(0)

    def test_body_that_is_said_twice_goes_with_the_second_one(self, store: Database) -> None:
        head = store.open("acme", "one")
        for _ in range(3):
            head = append_at(store, head, user(LONG))
        store.erase(head, [(1, 1), (3, 3)])
        assert [wire.decode_message(row.body).text for row in store.messages(head, 2, 2)] == [LONG]
        store.erase(store.open("acme", "one"), [(2, 2)])
        assert WORD not in everything(store, store.open("acme", "one"))

    def test_visible_summary_outlives_its_sources(self, store: Database) -> None:
        head, _ = summed_up(store)
        done = store.erase(head, [(2, 4)], keep_shown=True)
        assert (done.messages, done.edits) == (3, 1)
        now = store.open("acme", "one")
        assert summaries(store, now) == [(ERASED, False), ("Outer.", True), ("Beside.", False)]
        assert (store.verify(now), store.find_residue(now)) == ([], (3, []))
        assert store.erase(now, [(2, 4)], keep_shown=True) == Erasure(0)

    def test_summary_that_a_fork_shows_is_kept_too(self, store: Database) -> None:
        """The fork left before the wider summary was made."""
        head, _ = summed_up(store)
        fork = store.fork(head, "fork", 8, 1)
        store.erase(head, [(3, 3)], keep_shown=True)
        now = store.open("acme", "one")
        assert summaries(store, now) == [(f"Inner {WORD}.", True), ("Outer.", True), ("Beside.", False)]
        assert store.find_residue(now) == store.find_residue(store.open("acme", fork.name)) == (1, [])

    def test_outliving_summary_is_erased_once_hidden(self, store: Database) -> None:
        head, ids = summed_up(store)
        store.erase(head, [(2, 4)], keep_shown=True)
        now = commit_edits(store, store.open("acme", "one"), Summarize(Span(ids[0], ids[5]), "All in all."))
        store.erase(now, [(5, 5)], keep_shown=True)
        now = store.open("acme", "one")
        assert summaries(store, now) == [
            (ERASED, False),
            (ERASED, False),
            (ERASED, False),
            ("All in all.", True),
        ]
        assert (store.verify(now), store.find_residue(now)) == ([], (4, []))

    def test_marked_summary_is_erased_once_hidden(self, store: Database) -> None:
        """With any other erasure. It was made after other messages of its span were erased."""
        head, ids = summed_up(store)
        store.erase(head, [(7, 7)])
        late = Summarize(Span(ids[4], ids[6]), f"Late {WORD}.", outlives=True)
        now = commit_edits(store, store.open("acme", "one"), late)
        assert store.find_residue(now) == (1, [])
        now = commit_edits(store, now, Summarize(Span(ids[4], ids[7]), "At last.", outlives=True))
        store.erase(now, [(2, 2)], keep_shown=True)
        now = store.open("acme", "one")
        assert summaries(store, now)[3:] == [(ERASED, False), ("At last.", True)]
        assert store.find_residue(now) == (2, [])

    def test_hidden_or_undone_summary_is_not_shown(self, store: Database) -> None:
        head, ids = summed_up(store)
        head = commit_edits(store, head, Hide(Span(ids[0], ids[3])), Restore(edits=(3,)))
        store.erase(head, [(1, 6)], keep_shown=True)
        assert summaries(store, store.open("acme", "one")) == [(ERASED, False)] * 3

    def test_plain_erasure_erases_outliving_summaries(self, store: Database) -> None:
        head, _ = summed_up(store)
        store.erase(head, [(2, 2)], keep_shown=True)
        done = store.erase(store.open("acme", "one"), [(2, 2)])
        assert (done.messages, done.edits) == (0, 1)
        now = store.open("acme", "one")
        assert summaries(store, now) == [(ERASED, False), (ERASED, False), ("Beside.", False)]
        assert store.find_residue(now) == (1, [])

    def test_snapshot_stays_without_the_erased_messages(self, store: Database) -> None:
        head, ids = summed_up(store)
        inner, outer = Summarize(Span(ids[1], ids[2]), f"Inner {WORD}."), Summarize(Span(ids[0], ids[3]), "Outer.")
        covers = [Cover(1, 2, 3, inner, 1, 1), Cover(2, 1, 4, outer, 1, 1)]
        shot = Snapshot(VERSION, 8, 3, [(5, 8)], [], covers, Facts())
        store.save_snapshot(head, 8, 3, shot.encode())
        store.erase(head, [(2, 2)], keep_shown=True)
        now = store.open("acme", "one")
        saved = store.snapshot(now)
        assert saved is not None
        found = Snapshot.decode(saved[2])
        assert found is not None
        assert (saved[:2], found.visible) == ((8, 3), [(5, 8)])
        assert [
            (cover.edit.text, cover.edit.outlives) for cover in found.covers if isinstance(cover.edit, Summarize)
        ] == [
            (ERASED, False),
            ("Outer.", True),
        ]
        store.erase(now, [(2, 2)])
        assert store.snapshot(store.open("acme", "one")) is None

    def test_view_that_changed_meanwhile_is_looked_at_again_first(self, store: Database) -> None:
        head, _ = summed_up(store)
        commit_edits(store, head, Hide(Target(head.tip)))
        with pytest.raises(ConflictError, match="changed the view"):
            store.erase(head, [(1, 1)], keep_shown=True)
        assert store.erasures(head) == []
        head = store.open("acme", "one")
        append(store, head, chain([user("meanwhile")], head))
        assert store.erase(head, [(1, 1)], keep_shown=True).messages == 1
        with pytest.raises(ConflictError, match="erased"):
            store.erase(head, [(2, 2)], keep_shown=True)

    def test_expansion_meanwhile_causes_a_new_inspection(self, store: Database) -> None:
        head, ids = summed_up(store)
        copy = user(f"number 0 of {WORD}")
        now = append_at(store, head, copy, origin="derived", expanded=Expansion("whole", "m1", ids[0]))
        with pytest.raises(ConflictError, match="repeats others"):
            store.erase(head, [(1, 1)], keep_shown=True, seen=[head])
        assert store.erasures(now) == []
        assert store.erase(now, [(1, 1)], keep_shown=True).messages == 2

    @pytest.mark.parametrize("form", ["view", "refused"])
    def test_message_without_expansion_causes_no_new_inspection(
        self, store: Database, form: Literal["view", "refused"]
    ) -> None:
        head, ids = summed_up(store)
        word = tool_result("c", "m1 is shown in full again above.")
        append_at(store, head, word, origin="derived", expanded=Expansion(form, "m1", ids[0]))
        assert store.erase(head, [(1, 1)], keep_shown=True, seen=[head]).messages == 1

    def test_unseen_fork_is_inspected_first(self, store: Database) -> None:
        head, _ = summed_up(store)
        seen = heads(store, head)
        store.fork(head, "fork", 3, head.number)
        for keep_shown in (True, False):
            with pytest.raises(ConflictError, match="was forked"):
                store.erase(head, [(1, 1), (3, 3)], keep_shown=keep_shown, seen=seen)
        assert (store.erasures(head), store.find_residue(head)) == ([], (0, []))
        assert store.erase(head, [(4, 5)], keep_shown=True, seen=seen).messages == 2  # It shares neither.
        head = store.open("acme", "one")
        assert store.erase(head, [(1, 1)], keep_shown=True, seen=heads(store, head)).messages == 1

    def test_fork_that_changed_its_view_meanwhile_is_looked_at_again_first(self, store: Database) -> None:
        head, ids = summed_up(store)
        fork = store.fork(head, "fork", 4, 1)
        seen = heads(store, head)
        fork = commit_edits(store, fork, Restore(edits=(1,)))
        with pytest.raises(ConflictError, match="'fork'"):
            store.erase(head, [(2, 3)], keep_shown=True, seen=seen)
        seen = heads(store, head)
        fork = append(store, fork, chain([user("meanwhile")], fork))
        assert store.erase(head, [(2, 2)], keep_shown=True, seen=seen).messages == 1
        head = store.open("acme", "one")
        seen, fork = heads(store, head), store.open("acme", "fork")
        copy = user(f"number 0 of {WORD}")
        append_at(store, fork, copy, origin="derived", expanded=Expansion("whole", "m1", ids[0]))
        with pytest.raises(ConflictError, match="repeats others was added to 'fork'"):
            store.erase(head, [(1, 1)], keep_shown=True, seen=seen)
        assert len(store.erasures(head)) == 1

    def test_visible_messages_are_erased_only_without_new_messages(self, store: Database) -> None:
        head, _ = summed_up(store)
        fork = store.fork(head, "fork", 4, 1)
        apart = store.fork(head, "apart", 1, 0)
        seen = heads(store, head)
        for one in (head, fork):
            append(store, one, chain([user("I am back.")], one))
            with pytest.raises(ConflictError, match=f"added to '{one.name}'"):
                store.erase(head, [(2, 4)], seen=seen, is_still=True)
            seen = [now if now.branch == one.branch else old for now, old in zip(heads(store, head), seen, strict=True)]
        append(store, apart, chain([user("An unrelated message.")], apart))
        assert store.erase(head, [(2, 4)], seen=seen, is_still=True).messages == 3

    def test_texts_of_some_runs_go_without_a_message(self, store: Database) -> None:
        head, _, _ = create_derived(store)
        store.put_run(head, AgentRun("r3", "me", "one", "peel", result="peeled"))
        store.put_step(head, AgentRunStep("r3", 1, "action", "peel", output="peeled"))
        done = store.erase(head, [], runs=["r3", "r9"], reason="old", time=5)
        assert done == Erasure(1, 5, "", "old", "one", "", runs=1, steps=1)
        now = store.open("acme", "one")
        assert [run.task == ERASED for run in store.runs(now)] == [False, False, True]
        assert [(step.output, step.name) for step in store.steps(now, "r3")] == [(ERASED, "peel")]
        assert store.erase(now, [], runs=["r3"]) == Erasure(0)
        assert store.commit(now, *record_after(now)).erased == 1
