"""Tests of the capability `Imports`."""

from __future__ import annotations

import pytest
from msgspec import structs

from ..core import ids, wire
from ..core.edits import Hide, Record, Target
from ..core.messages import user
from ..core.runs import AgentRun, AgentRunStep
from ..core.stamps import Stamp
from ..errors import BadInput, BadSetting, ConflictError, NoSuchConversation, StoreError
from ..ports import Database, Erasure, StoredMessage, append
from .rows import chain, record_after

__all__ = ["ImportContract"]


class ImportContract:
    """Tests of `rename`, `commit_all`, `discard`, and of chains without redacted forms."""

    def test_renamed_conversation_is_the_same(self, store: Database) -> None:
        head = store.open("acme", "one")
        head = append(store, head, chain([user("said")], head))
        fork = store.fork(head, "two", 1, 0)
        other = store.open("zeta", "one")
        store.rename("acme", {"one": "uno", "two": "due"})
        uno, due = structs.replace(head, name="uno"), structs.replace(fork, name="due")
        assert store.names("acme") == ["due", "uno"]
        assert [store.open("acme", name, create=False) for name in ("uno", "due")] == [uno, due]
        assert store.open("zeta", "one") == other
        assert store.verify(uno) == store.verify(due) == []
        assert append(store, uno, chain([user("more")], uno)).position == 2
        with pytest.raises(ConflictError, match="'uno'"):
            append(store, head, chain([user("late")], head))
        assert store.open("acme", "one").position == 0

    @pytest.mark.parametrize(
        ("names", "error"),
        [
            ({"one": "two"}, BadSetting),
            ({"one": "one"}, BadSetting),
            ({"one": "three", "two": "three"}, BadSetting),
            ({"one": "two", "two": "one"}, BadSetting),
            ({"one": ""}, BadSetting),
            ({"one": "three", "nobody": "four"}, NoSuchConversation),
            ({"one": "three", "two": "x" * 501}, BadSetting),
        ],
    )
    def test_names_that_cannot_be_given_leave_all_as_it_was(
        self, store: Database, names: dict[str, str], error: type[StoreError]
    ) -> None:
        heads = [store.open("acme", name) for name in ("one", "two")]
        with pytest.raises(error):
            store.rename("acme", names)
        assert store.names("acme") == ["one", "two"]
        assert [store.open("acme", name) for name in ("one", "two")] == heads

    def test_records_committed_together_equal_single_ones(self, store: Database) -> None:
        one, two = store.open("acme", "one"), store.open("acme", "two")
        one, two = (append(store, head, chain([user("said"), user("more")], head)) for head in (one, two))
        made, before = [], two
        for size in (1, 3, 2):
            record, id = record_after(one, *[Hide(Target(one.tip), reason=f"{size}")] * size)
            made.append((id, record))
            one = store.commit(one, record, id)
        assert store.commit_all(two, []) == two
        two = store.commit_all(two, made[:2])
        assert (two.position, two.tip, two.number, two.record) == (2, one.tip, 4, made[1][0])
        two = store.commit_all(two, made[2:])
        assert store.records(two) == store.records(one) == made
        assert store.open("acme", "two") == two
        with pytest.raises(ConflictError):
            store.commit_all(before, made)
        with pytest.raises(BadInput, match="its first edit is numbered 5, and the next number is 2"):
            store.commit_all(before, [made[0], made[2]])
        assert store.records(two) == made
        assert store.verify(two) == []

    def test_tree_of_unfinished_conversations_is_taken_away_with_all_in_it(self, store: Database) -> None:
        other = store.open("acme", "one")
        other = append(store, other, chain([user(f"{n} " * 4000) for n in range(3)], other))
        head = store.open("acme", "~half 1")
        head = append(store, head, chain([user(f"{n} " * 4000) for n in range(3)], head))
        head = store.commit(head, *record_after(head))
        store.save_snapshot(head, 3, 1, b"a view")
        fork = store.fork(head, "~half 2", 2, 0)
        store.put_run(head, AgentRun("r", "me", "~half 1"))
        store.put_step(head, AgentRunStep("r", 1, "action"))
        store.add_erasure(head, Erasure(1))
        assert [store.search(one, "2") != [] for one in (store.open("acme", "~half 1"), other)] == [True, True]
        before = list(store.census()), store.names("acme")
        for prefix in ("~half 1", "", "~importing"):
            with pytest.raises(BadSetting, match="Nothing was deleted"):
                store.discard(fork, prefix)
        assert (list(store.census()), store.names("acme")) == before
        store.discard(fork, "~half")
        assert (list(store.census()), store.names("acme")) == ([other], ["one"])
        assert store.search(other, "2") != []
        with pytest.raises(NoSuchConversation):
            store.discard(fork, "~half")
        assert store.open("acme", "~half 1").position == 0
        assert store.verify(store.open("acme", "~half 1")) == store.verify(other) == []

    def test_links_from_before_there_were_outlines_are_taken_and_verified(self, store: Database) -> None:
        """Imports bring such chains: other ids would be another history."""
        head = store.open("acme", "one")
        (row,) = chain([user("said")], head)
        stamp = Stamp(1, 2, 3, "user", metadata='{"ticket":7}')
        head = append(store, head, [_early(row, stamp)])
        record = Record(1, (Hide(Target(head.tip), reason="to have an edit"),), 1, 1, head.tip, 1)
        head = store.commit(head, record, ids.legacy_record_id("", wire.encode_record(record)))
        assert store.messages(head, 1, 1) == [_early(row, stamp)]
        assert store.records(head) == [(head.record, record)]
        assert store.verify(head) == []


def _early(row: StoredMessage, stamp: Stamp) -> StoredMessage:
    return structs.replace(row, stamp=stamp, seal=ids.seal("", row.id, wire.encode_stamp(stamp)))
