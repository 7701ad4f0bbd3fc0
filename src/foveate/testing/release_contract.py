"""Tests of the capability `Releases`."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Barrier, Thread
from typing import Any

import pytest
from msgspec import structs

from ..core import ids, wire
from ..core.edits import Path, Record, Replace, Target
from ..core.messages import Message, Text, ToolCall, assistant, tool_result, user
from ..core.originals import RELEASED, released_form
from ..core.runs import AgentRun, AgentRunStep
from ..errors import BadInput, ConflictError
from ..ports import Database, Head, StoredMessage, append
from .base_contract import BaseContract
from .erase_contract import LONG, WORD, append_at
from .rows import chain, record_after

__all__ = ["ReleaseContract", "release_of", "released"]


def release_of(store: Database, head: Head, *positions: int, path: Path = ()) -> tuple[Record, str, dict[int, bytes]]:
    """Return a record that releases the content of these messages at a path, its id, and the outlines."""
    outlines: dict[int, bytes] = {}
    edits: list[Replace] = []
    for row in store.get_many(head, positions):
        outline = wire.encode_message(released_form(wire.decode_message(row.body), row.stamp, [path]))
        outlines[row.position] = outline
        shown = (Text("[short]"),)
        edits.append(Replace(Target(row.id, path), shown, keeps_original=False, released=ids.body_hash(outline)))
    return *record_after(head, *edits), outlines


def released(store: Database, head: Head, *positions: int, path: Path = ()) -> Head:
    """Release the content of these messages at a path; return the new head."""
    return store.release(head, *release_of(store, head, *positions, path=path))


class ReleaseContract(BaseContract):
    """Tests of `release`, and of what every other method does with released messages."""

    def _asked(self, store: Database, result: str = LONG, name: str = "one") -> Head:
        head = store.open("acme", name)
        call = assistant("I look.", ToolCall("c1", "look", '{"at":"kiwis"}'))
        return append(store, head, chain([user("hello"), call, tool_result("c1", result)], head))

    def _state(self, store: Database, head: Head) -> Mapping[str, Any]:
        return {"rows": store.messages(head, 1, 99), "records": store.records(head), "found": store.verify(head)}

    @pytest.mark.parametrize("result", [LONG, f"a {WORD}"])
    def test_released_message_is_an_outline_under_its_old_hash(self, store: Database, result: str) -> None:
        head = self._asked(store, result)
        before = store.messages(head, 1, 3)
        head = released(store, head, 3)
        self._is_outline(store, head, before)
        self._is_outline(self._again(store), head, before)

    def _is_outline(self, store: Database, head: Head, before: list[StoredMessage]) -> None:
        assert store.open("acme", "one") == head
        after = store.messages(head, 1, 3)
        bare = [structs.replace(row, body=b"", is_released=False) for row in after]
        assert bare == [structs.replace(row, body=b"") for row in before]
        assert [row.is_released for row in after] == [False, False, True]
        assert wire.decode_message(after[2].body) == tool_result("c1", RELEASED)
        assert (store.verify(head), store.find_residue(head)) == ([], (0, []))
        assert store.stamps(head, 3, 3)[0].size < 300

    def test_release_deletes_the_saved_view(self, store: Database) -> None:
        head = self._asked(store)
        store.save_snapshot(head, 3, 0, b"a snapshot", [LONG.encode()])
        head = released(store, head, 3)
        assert store.snapshot(head) == (3, 0, b"a snapshot")
        assert list(store.saved_view(head, 3, 0)) == []

    def test_conversation_goes_on_after_a_release(self, store: Database) -> None:
        head = released(store, self._asked(store), 3)
        head = append(store, head, chain([user("thanks")], head))
        head = store.commit(head, *record_after(head))
        assert (store.changes(head).head, store.verify(head)) == (head, [])

    def test_message_that_a_fork_shares_is_not_released(self, store: Database) -> None:
        head = self._asked(store)
        fork = store.fork(head, "fork", 3, 0)
        fork = append(store, fork, chain([user("mine")], fork))
        for one in (head, fork):
            state = self._state(store, one)
            with pytest.raises(ConflictError, match="shares message 3"):
                released(store, one, 3)
            assert self._state(store, one) == state
        fork = released(store, fork, 4)
        assert (store.verify(head), store.verify(fork)) == ([], [])

    def test_fork_from_before_a_release_has_the_outline_too(self, store: Database) -> None:
        head = released(store, self._asked(store), 3)
        fork = store.fork(head, "fork", 3, 0)
        assert (store.messages(fork, 3, 3)[0].is_released, store.verify(fork)) == (True, [])

    def test_fork_at_the_same_time_has_the_original_or_the_outline(self, store: Database) -> None:
        for n in range(12):
            head = self._asked(store, name=f"race {n}")
            release, start, refused = release_of(store, head, 3), Barrier(2), list[ConflictError]()

            def fork(name: str = f"fork {n}", head: Head = head, start: Barrier = start) -> None:
                start.wait()
                store.fork(head, name, 3, 0)

            thread = Thread(target=fork)
            thread.start()
            start.wait()
            try:
                store.release(head, *release)
            except ConflictError as error:
                refused.append(error)
            thread.join()
            both = [store.open("acme", name, create=False) for name in (f"race {n}", f"fork {n}")]
            assert [store.messages(one, 3, 3)[0].is_released for one in both] == [not refused] * 2
            assert [store.verify(one) for one in both] == [[], []]
            assert len(store.records(both[0])) == len(refused) ^ 1

    def test_outline_that_the_record_does_not_name_is_refused(self, store: Database) -> None:
        head = self._asked(store)
        state = self._state(store, head)
        record, id, outlines = release_of(store, head, 3)
        for wrong in (b"", outlines[3] + b" "):
            with pytest.raises(BadInput, match="names the outline of message 3"):
                store.release(head, record, id, {3: wrong})
        assert self._state(store, head) == state

    def test_release_on_an_old_journal_is_refused(self, store: Database) -> None:
        head = self._asked(store)
        release = release_of(store, head, 3)
        now = store.commit(head, *record_after(head))
        state = self._state(store, now)
        with pytest.raises(ConflictError):
            store.release(head, *release)
        assert self._state(store, now) == state

    def test_released_words_are_not_found(self, store: Database) -> None:
        head = self._asked(store)
        rows = chain([Message("user", (Text("a pear"),)), user(f"another {WORD}")], head)
        head = append(store, head, rows)
        assert [hit.position for hit in store.search(head, WORD)] == [5, 3]
        head = released(store, head, 3)
        assert [hit.position for hit in store.search(head, WORD)] == [5]
        assert [hit.position for hit in store.search(head, "kiwis")] == [2]
        head = append(store, head, chain([user("one more")], head))
        assert [hit.position for hit in store.search(head, "more")] == [6]
        again = self._again(store)
        assert [hit.position for hit in again.search(again.open("acme", "one"), WORD)] == [5]

    @pytest.mark.parametrize("path", [(), (0, 0)])
    def test_output_of_the_step_is_released_with_the_whole_message(self, store: Database, path: Path) -> None:
        head = store.open("acme", "one")
        head = append(store, head, chain([user("hello"), assistant("", ToolCall("c1", "look", "{}"))], head))
        head = append_at(store, head, tool_result("c1", LONG), step="r1/2")
        store.put_run(head, AgentRun("r1", "sage", "one"))
        steps = [AgentRunStep("r1", 1, "model"), AgentRunStep("r1", 2, "action", "look", "c1", '{"at":1}', LONG)]
        for step in steps:
            store.put_step(head, step)
        head = released(store, head, 3, path=path)
        output = LONG if path else RELEASED
        assert store.steps(head, "r1") == [steps[0], structs.replace(steps[1], output=output)]
        assert self._again(store).steps(head, "r1")[1].output == output

    def test_equal_message_keeps_its_original(self, store: Database) -> None:
        """A large body is stored once for all of its messages."""
        head = self._asked(store)
        head = append(store, head, chain([tool_result("c1", LONG)], head))
        head = released(store, head, 3)
        three, four = store.messages(head, 3, 4)
        assert (three.body_hash, three.is_released, four.is_released) == (four.body_hash, True, False)
        assert (wire.decode_message(four.body), store.verify(head)) == (tool_result("c1", LONG), [])
        head = released(store, head, 4)
        assert [row.is_released for row in store.messages(head, 3, 4)] == [True, True]
        assert store.verify(head) == []

    def test_released_message_is_erased_like_any_other(self, store: Database) -> None:
        head = released(store, self._asked(store), 3)
        store.search(head, "released")
        assert store.erase(head, [(3, 3)]).messages == 1
        now = store.open("acme", "one")
        (row,) = store.messages(now, 3, 3)
        assert (row.body, row.is_released, store.verify(now), store.find_residue(now)) == (b"", False, [], (1, []))
        assert store.search(now, "released") == []

    def test_outline_of_another_release_is_a_finding(self, store: Database) -> None:
        """An import brings an outline and the journal apart from each other."""
        head = released(store, self._asked(store), 3)
        rows = store.messages(head, 1, 3)
        forged = structs.replace(rows[2], body=wire.encode_message(tool_result("c1", "It never rained.")))
        other = append(store, store.open("acme", "two"), [*rows[:2], forged])
        assert [finding.where for finding in store.verify(other)] == ["message 3"]
        other = store.commit_all(other, store.records(head))
        assert [finding.where for finding in store.verify(other)] == ["message 3"]
        third = append(store, store.open("acme", "three"), rows)
        assert len(store.verify(third)) == 1  # No journal names the outline yet.
        assert store.verify(store.commit_all(third, store.records(head))) == []
