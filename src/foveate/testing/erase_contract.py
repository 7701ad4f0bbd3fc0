"""Tests of the capability `Erases`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import structs

from ..core import ids, wire
from ..core.edits import Edit, Hide, Record, Replace, Span, Summarize, Target, Task
from ..core.ids import ERASED, is_erased, redacted_stamp
from ..core.messages import Message, Text, ToolCall, assistant, tool_result, user
from ..core.runs import AgentRun, AgentRunStep
from ..core.snapshots import VERSION, Facts, SlotState, Snapshot
from ..core.stamps import Expansion, Origin, Stamp
from ..errors import BadSetting, ConflictError, NoSuchConversation, StoreError
from ..ports import Database, Erasure, Finding, Head, StoredMessage, append
from .base_contract import BaseContract
from .rows import after, chain, record_after
from .turn_contract import contents_of, rows_with

__all__ = ["WORD", "EraseContract", "append_at", "create_derived", "everything"]

WORD = "kumquat"
"""The secret, which every kind of derived data contains."""
LONG = f"{WORD}: " + " ".join(f"{n * n % 7919:x}" for n in range(3000))
"""Long enough to be stored outside of its row."""


def append_at(store: Database, head: Head, message: Message, **facts: Any) -> Head:
    """Append a message with these facts in its stamp; return the new head."""
    body = wire.encode_message(message)
    hash = ids.body_hash(body)
    id = ids.message_id(head.tip, hash)
    origin: Origin = "tool" if message.result else message.role
    turn = facts.pop("turn", 1)
    stamp = structs.replace(Stamp(turn, 1000 + head.position, 10, origin), **facts)
    seal = ids.seal(head.seal, id, redacted_stamp(stamp))
    return append(store, head, [StoredMessage(head.position + 1, id, seal, stamp, body, hash)])


def commit_edits(store: Database, head: Head, *edits: Edit) -> Head:
    return store.commit(head, *record_after(head, *edits))


def create_derived(store: Database) -> tuple[Head, Head, Head]:
    """Create a conversation with data derived from its third message, a fork that shares it, and one that does not."""
    head = store.open("acme", "one")
    head = append_at(store, head, user("hello"))
    head = append_at(store, head, assistant("", ToolCall("c1", "look", "{}")), step="r1/1")
    asked = head.tip
    apart = store.fork(head, "apart", 2, 0)
    fruit = tool_result("c1", LONG)
    head = append_at(store, head, fruit, metadata=f'{{"note":"{WORD}"}}', source="look", step="r1/2")
    three = head.tip
    head = append_at(store, head, assistant("Fine, I see."), turn=2, step="r1/3")
    four = head.tip
    copy = user(f"[m3] {WORD}")
    head = append_at(store, head, copy, turn=2, origin="derived", expanded=Expansion("whole", "m3", three))
    found = user(f"[1 place]\nm3 (turn 1, look, line 1): {WORD}")
    head = append_at(store, head, found, turn=2, origin="derived", expanded=Expansion("search"))
    head = append_at(store, head, user("bye"), turn=2)
    seven = head.tip

    head = commit_edits(store, head, Replace(Target(three, (0,)), (Text(f"[{WORD} is cleared]"),), reason=WORD))
    head = commit_edits(store, head, Summarize(Span(asked, four), f"A {WORD} was seen.", refused=(f"x: {WORD}",)))
    fork = store.fork(head, "fork", 4, head.number)
    head = commit_edits(store, head, Task("test", "done"), Summarize(Span(asked, seven), f"Later a {WORD} was seen."))
    head = commit_edits(store, head, Replace(Target(seven, (0,)), (Text("[a farewell]"),)), Hide(Target(asked)))
    kept = SlotState(3, [(1, Replace(Target(three, (0,)), (Text(f"[{WORD} is cleared]"),)))])
    shot = Snapshot(VERSION, 4, 1, [(1, 4)], [kept], [], Facts())
    store.save_snapshot(head, 4, 1, shot.encode(), [WORD.encode()])

    store.put_run(head, AgentRun("r1", "me", "one", "hello", result=LONG[:60] + "…", begun=1))
    store.put_step(head, AgentRunStep("r1", 1, "model", message=asked, turn=1))
    store.put_step(head, AgentRunStep("r1", 2, "action", "look", "c1", "{}", LONG, WORD, "done", three, 1))
    store.put_step(head, AgentRunStep("r1", 3, "model", message=four, turn=2))
    store.put_run(head, AgentRun("r2", "sub", "one", f"find the {WORD}", "r1/2", result=f"one {WORD}", begun=2))
    store.put_step(head, AgentRunStep("r2", 1, "action", "peel", input=f'"{WORD}"', output=f"the {WORD} is peeled"))

    fork = append_at(store, fork, user("on the fork"), turn=2)
    fork = commit_edits(store, fork, Replace(Target(three, (0,)), (Text(f"[a {WORD}, by the fork]"),)))
    apart = append_at(store, apart, tool_result("c1", "an apple"), source="look")
    apart = commit_edits(store, apart, Summarize(Span(asked, apart.tip), "An apple was seen."))
    for one in (head, fork, apart):
        store.search(one, WORD)
    return head, fork, apart


def everything(store: Database, *heads: Head) -> str:
    """Return everything that a store returns about these conversations, as one text."""
    parts: list[object] = []
    for head in heads:
        for row in store.messages(head, 1, head.position):
            parts.append(wire.decode_message(row.body) if row.body else "")
            parts.append(row.stamp)
        parts += [record for _, record in store.records(head)]
        shot = store.snapshot(head)
        parts.append(shot[2].decode() if shot else "")
        for run in store.runs(head):
            parts += [run, store.steps(head, run.id)]
        parts += store.search(head, WORD)
    parts += store.erasures(heads[0])
    return msgspec.json.encode(parts).decode()


class EraseContract(BaseContract):
    """Tests of `erase`, `erasures`, `find_residue` and `vacuum`."""

    def test_erased_message_is_nowhere(self, store: Database) -> None:
        heads = create_derived(store)
        assert WORD in everything(store, *heads)
        done = store.erase(heads[0], [(3, 3)], who="ann", reason="asked for", time=77)
        assert done == Erasure(1, 77, "ann", "asked for", "one", "m3", messages=3, edits=4, runs=2, steps=2)
        self._nowhere(store, heads, done)
        self._nowhere(self._again(store), heads, done)

    def _nowhere(self, store: Database, heads: tuple[Head, Head, Head], done: Erasure) -> None:
        now = [store.open("acme", head.name) for head in heads]
        assert WORD not in everything(store, *now)
        assert [store.verify(head) for head in now] == [[], [], []]
        assert [store.find_residue(head) for head in now] == [(3, []), (1, []), (0, [])]
        assert store.erasures(now[2]) == [done]

    def test_erasing_deletes_the_saved_views_of_the_tree(self, store: Database) -> None:
        head, _, _ = create_derived(store)
        assert list(store.saved_view(head, 4, 1)) == [WORD.encode()]
        store.erase(head, [(1, 1)], keep_shown=True)
        assert list(store.saved_view(store.open("acme", "one"), 4, 1)) == []

    def test_erased_message_leaves_place_and_hash(self, store: Database) -> None:
        head, _, _ = create_derived(store)
        before = store.messages(head, 1, head.position)
        store.erase(head, [(3, 3)])
        after = store.messages(store.open("acme", "one"), 1, head.position)
        gone = {3, 5, 6}
        assert [structs.replace(row, stamp=before[0].stamp, body=b"") for row in before] == [
            structs.replace(row, stamp=before[0].stamp, body=b"") for row in after
        ]
        assert [row.position for row in after if not row.body] == sorted(gone)
        assert [row for row in after if row.position not in gone] == [row for row in before if row.position not in gone]

    def test_unrelated_derived_data_stays(self, store: Database) -> None:
        head, fork, apart = create_derived(store)
        before = [store.records(apart), store.messages(apart, 1, 9), store.messages(fork, 5, 5)]
        store.erase(head, [(3, 3)])
        assert [store.records(apart), store.messages(apart, 1, 9), store.messages(fork, 5, 5)] == before
        edits = [edit for _, record in store.records(head) for edit in record.edits]
        assert [is_erased(edit) for edit in edits] == [True, True, False, True, False, False]
        seven = store.messages(head, 7, 7)[0].id
        assert edits[4] == Replace(Target(seven, (0,)), (Text("[a farewell]"),))
        (run, _), steps = store.runs(head), store.steps(head, "r1")
        assert (run.task, run.result) == ("hello", ERASED)
        assert [(step.input, step.output, step.error) for step in steps] == [
            ("", "", ""),
            (ERASED, ERASED, ERASED),
            ("", "", ""),
        ]

    def test_erasing_a_shared_message_erases_it_on_every_fork(self, store: Database) -> None:
        heads = create_derived(store)
        store.erase(heads[1], [(3, 3)])
        assert WORD not in everything(store, *(store.open("acme", head.name) for head in heads))

    def test_same_words_elsewhere_stay(self, store: Database) -> None:
        """A large body is stored once for all of its messages."""
        head = store.open("acme", "one")
        head = append_at(store, head, user(LONG))
        head = append_at(store, head, user(LONG))
        store.erase(head, [(1, 1)])
        bodies = [bool(row.body) for row in store.messages(head, 1, 2)]
        assert (bodies, [one.position for one in store.search(head, WORD)]) == ([False, True], [2])
        assert store.verify(head) == []
        store.erase(store.open("acme", "one"), [(2, 2)])
        assert (store.search(head, WORD), store.find_residue(head)) == ([], (2, []))

    def test_erasing_again_changes_nothing(self, store: Database) -> None:
        head, _, _ = create_derived(store)
        store.erase(head, [(3, 3)])
        now = store.open("acme", "one")
        state = everything(store, now)
        assert store.erase(now, [(3, 3)]) == Erasure(0)
        assert (store.open("acme", "one"), everything(store, now)) == (now, state)

    def test_plan_from_before_is_stale_and_a_snapshot_is_not_kept(self, store: Database) -> None:
        head, fork, _ = create_derived(store)
        store.erase(head, [(3, 3)])
        with pytest.raises(ConflictError, match="erased"):
            store.commit(head, *record_after(head))
        with pytest.raises(ConflictError, match="erased"):
            store.commit(fork, *record_after(fork))
        store.save_snapshot(head, 4, 1, b"a view from before", [b"a view from before"])
        now = store.open("acme", "one")
        assert (store.snapshot(now), list(store.saved_view(now, 4, 1))) == (None, [])
        store.save_snapshot(now, 4, 1, b"a view")
        assert store.snapshot(now) == (4, 1, b"a view")
        assert store.commit(now, *record_after(now)).number == now.number + 1

    def test_writer_before_an_erasure_may_append_but_not_commit(self, store: Database) -> None:
        head, _, _ = create_derived(store)
        store.erase(head, [(3, 3)])
        head = append(store, head, chain([user("more")], head))
        with pytest.raises(ConflictError, match="erased"):
            store.commit(head, *record_after(head))
        now = store.open("acme", "one")
        assert now == structs.replace(head, erased=1)
        assert store.verify(now) == []

    def test_fork_after_it_shares_the_tombstone(self, store: Database) -> None:
        head, _, _ = create_derived(store)
        store.erase(head, [(3, 3)])
        fork = store.fork(store.open("acme", "one"), "later", 4, 0)
        assert [bool(row.body) for row in store.messages(fork, 1, 4)] == [True, True, False, True]
        assert store.commit(fork, *record_after(fork)).erased == 1

    def test_whole_conversation_with_its_runs(self, store: Database) -> None:
        head, _, _ = create_derived(store)
        other = store.open("acme", "other")
        other = append_at(store, other, user(WORD))
        store.erase(head, [(1, head.position)], runs=True, reason="all of it")
        now = store.open("acme", "one")
        assert not any(row.body for row in store.messages(now, 1, now.position))
        assert [(run.task, run.result) for run in store.runs(now)] == [(ERASED, ERASED)] * 2
        assert (store.verify(now), store.find_residue(now)) == ([], (7, []))
        assert [bool(row.body) for row in store.messages(other, 1, 1)] == [True]

    def test_missing_message_cannot_be_erased(self, store: Database) -> None:
        head, _, _ = create_derived(store)
        for first, last in ((0, 1), (3, 2), (1, 8), (8, 8), (-1, -1)):
            with pytest.raises(BadSetting, match="messages 1 to 7"):
                store.erase(head, [(first, last)])
        with pytest.raises(NoSuchConversation):
            store.erase(structs.replace(head, branch=99), [(1, 1)])
        assert store.erasures(head) == []

    def test_record_from_before_outlines_is_refused_and_nothing_is_erased(self, store: Database) -> None:
        head = store.open("acme", "one")
        head = append_at(store, head, user(WORD))
        early = Record(1, (Replace(Target(head.tip, (0,)), (Text(f"[{WORD}]"),)),), 1, 1, head.tip, 1)
        head = store.commit(head, early, ids.legacy_record_id("", wire.encode_record(early)))
        with pytest.raises(StoreError, match="Record 1 of the journal was written by an old foveate, whose chains"):
            store.erase(head, [(1, 1)])
        assert WORD in everything(store, head)
        assert (store.open("acme", "one"), store.erasures(head)) == (head, [])

    def test_facts_from_before_outlines_are_refused_and_nothing_is_erased(self, store: Database) -> None:
        head = store.open("acme", "one")
        body = wire.encode_message(user(WORD))
        hash = ids.body_hash(body)
        id, stamp = ids.message_id("", hash), Stamp(1, 1, 1, "user", metadata='{"a":1}')
        row = StoredMessage(1, id, ids.seal("", id, wire.encode_stamp(stamp)), stamp, body, hash)
        head = append(store, head, [row])
        with pytest.raises(StoreError, match="facts of message 1 were written by an old foveate, whose chains"):
            store.erase(head, [(1, 1)])
        assert store.messages(head, 1, 1) == [row]

    def test_residue_of_an_erased_message_is_found(self, store: Database) -> None:
        """A running agent writes its steps later, and a reader appends a copy."""
        head, fork, _ = create_derived(store)
        three = store.messages(head, 3, 3)[0].id
        store.erase(head, [(3, 3)])
        head, fork = store.open("acme", "one"), store.open("acme", "fork")
        head = append_at(store, head, user(WORD), origin="derived", expanded=Expansion("lines", "m3", three))
        head = commit_edits(store, head, Replace(Target(three, (0,)), (Text(WORD),)))
        fork = commit_edits(store, fork, Summarize(Span(three, fork.tip), WORD))
        store.put_step(head, AgentRunStep("r1", 2, "action", "look", output=WORD, message=three))
        store.put_run(head, AgentRun("r2", "sub", "one", WORD, "r1/2"))
        kept = SlotState(3, [(1, Replace(Target(three, (0,)), (Text(WORD),)))])
        store.save_snapshot(head, 4, 1, Snapshot(VERSION, 4, 1, [(1, 4)], [kept], [], Facts()).encode())
        assert store.find_residue(head) == (
            3,
            [
                Finding("message 8", "it shows again what was erased"),
                Finding("record 7", "it holds a text made of what was erased"),
                Finding("record 4", "it holds a text made of what was erased"),
                Finding(f"snapshot of branch {head.branch}", "it holds a text made of what was erased"),
                Finding("run r2", "it repeats what was erased"),
                Finding("step r1/2", "it contains data of an erased message"),
            ],
        )
        store.erase(head, [(3, 3)])
        assert WORD not in everything(store, store.open("acme", "one"), store.open("acme", "fork"))

    def test_erasures_of_an_archive_keep_their_order(self, store: Database) -> None:
        head = store.open("acme", "imported")
        made = [Erasure(n, 1_790_000_000_000 + n, "ann", "asked for", "theirs", "m1 m3-m4", n, 1, 0, 2) for n in (1, 2)]
        for one in (made[1], *made, *made):
            store.add_erasure(head, one)
        assert store.erasures(head) == made
        assert store.open("acme", "imported") == structs.replace(head, erased=2)
        with pytest.raises(ConflictError):
            store.commit(head, *record_after(head))
        for wrong in (structs.replace(made[0], who="x" * 501), structs.replace(made[0], handles="m1\0")):
            with pytest.raises(BadSetting):
                store.add_erasure(head, wrong)
        with pytest.raises(NoSuchConversation):
            store.add_erasure(structs.replace(head, root=7), structs.replace(made[0], number=3))

    def test_vacuum_loses_nothing(self, store: Database) -> None:
        heads = create_derived(store)
        store.erase(heads[0], [(3, 3)])
        now = [store.open("acme", head.name) for head in heads]
        before = everything(store, *now)
        store.vacuum()
        assert everything(store, *now) == before
        assert [store.verify(head) for head in now] == [[], [], []]
        head = append(store, now[0], chain([user("more")], now[0]))
        assert head.position == 8

    def test_tail_after_an_erasure_has_a_new_head_and_no_rows(self, store: Database) -> None:
        old = store.open("acme", "one")
        head = append(store, old, chain([user("a"), user("b")], old))
        store.erase(head, [(1, 1)])
        now = store.open("acme", "one")
        assert now.erased == 1
        for late in (old, head):
            assert contents_of(store.changes(late)) == (now, [], [])
        for late in (old, head, now):
            tail = store.extend(late, rows_with("c"))
            mine = chain([user("c")], now)
            now = after(now, mine)
            assert contents_of(tail) == (now, store.messages(now, late.position + 1, 9) if late.erased else [], [])
            assert store.messages(now, now.position, now.position) == mine
        unaware = structs.replace(now, erased=0)  # The head of a writer that appended without reading.
        assert contents_of(store.extend(unaware, rows_with("d")))[1:] == ([], [])
