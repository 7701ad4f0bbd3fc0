"""Tests of messages and records of one writer."""

from __future__ import annotations

import string
from random import Random

import pytest
from msgspec import structs

from ..core.edits import Replace, Target
from ..core.messages import Text, tool_result, user
from ..errors import BadInput
from ..ports import Database, Head, StoredMessage, append
from .base_contract import BaseContract, talk
from .rows import after, chain, erased, record_after

__all__ = ["AppendContract"]


class AppendContract(BaseContract):
    """Messages and records are read as they were written, once, and whole."""

    def test_appended_messages_are_read_back_unchanged(self, store: Database) -> None:
        head = store.open("acme", "one")
        rows = chain(talk(30), head)
        head = self._append(store, head, rows[:1], rows[1:20], rows[20:])
        store = self._again(store)
        assert store.open("acme", "one") == head == after(store.open("acme", "one"), rows)
        assert store.messages(head, 1, 30) == rows
        assert store.verify(head) == []

    @pytest.mark.parametrize(
        ("first", "last", "there"), [(4, 6, [4, 5, 6]), (-3, 2, [1, 2]), (9, 99, [9, 10]), (11, 20, []), (6, 4, [])]
    )
    def test_range_is_clipped_to_what_there_is(self, store: Database, first: int, last: int, there: list[int]) -> None:
        head, rows = self._talk(store, 10)
        assert store.messages(head, first, last) == [rows[position - 1] for position in there]

    def test_head_reads_no_further_than_it_reaches(self, store: Database) -> None:
        """So the result of a reader does not depend on other writers."""
        old, rows = self._talk(store, 4)
        new = store.commit(append(store, old, chain(talk(3), old)), *record_after(old))
        assert store.messages(old, 1, 99) == rows
        assert store.get_many(old, [4, 5]) == rows[3:]
        assert store.locate(old, [new.tip]) == {}
        assert store.records(old) == []

    def test_messages_are_picked_once_each_and_in_order(self, store: Database) -> None:
        head, rows = self._talk(store, 10)
        assert store.get_many(head, [7, 2, 3, 7, 0, 11, -1]) == [rows[1], rows[2], rows[6]]
        assert store.get_many(head, []) == []

    def test_messages_are_located_by_id(self, store: Database) -> None:
        head, rows = self._talk(store, 250)
        assert store.locate(head, [rows[6].id, "ab" * 20, rows[0].id]) == {rows[6].id: 7, rows[0].id: 1}
        assert store.locate(head, [row.id for row in rows]) == {row.id: row.position for row in rows}
        assert store.locate(head, []) == {}
        assert store.locate(head, ["", "m7", "no id at all", rows[6].id[:39], rows[6].id.upper(), "é"]) == {}

    def test_appending_nothing_changes_nothing(self, store: Database) -> None:
        head, _ = self._talk(store, 3)
        assert append(store, head, []) == head

    def test_message_said_twice_is_kept_twice(self, store: Database) -> None:
        head = store.open("acme", "one")
        long = user("again and again " * 3000)
        rows = chain([long, long, long], head)
        head = append(store, head, rows)
        assert store.messages(head, 1, 3) == rows
        assert len({row.id for row in rows}) == 3

    @pytest.mark.parametrize(
        "text", ["", "\0", "\u2028\ud7ff\U0001f600", "\\\"'`;--", " ", "é" * 5000], ids=lambda text: ascii(text[:8])
    )
    def test_any_text_survives(self, store: Database, text: str) -> None:
        head = store.open("acme", "one")
        rows = chain([user(text), tool_result("c", text)], head)
        head = append(store, head, rows)
        assert self._again(store).messages(head, 1, 2) == rows

    def test_bodies_of_every_size_survive(self, store: Database) -> None:
        head = store.open("acme", "one")
        noise = "".join(Random(7).choices(string.ascii_letters, k=2**16))
        rows = chain([user(noise[: 2**size]) for size in range(17)], head)
        head = append(store, head, rows)
        store = self._again(store)
        assert store.messages(head, 1, 99) == rows
        assert store.verify(head) == []

    def test_erased_body_is_read_and_verified_without_it(self, store: Database) -> None:
        head = store.open("acme", "one")
        rows = chain([*talk(5), user("secret " * 9000), *talk(2)], head)
        rows = [erased(row) if row.position in (2, 6) else row for row in rows]
        head = append(store, head, rows)
        store = self._again(store)
        assert store.messages(head, 1, 99) == rows
        assert store.verify(head) == []

    def test_row_that_breaks_the_chain_is_refused_whole(self, store: Database) -> None:
        head, _ = self._talk(store, 2)
        good = chain(talk(3), head)
        broken = [
            structs.replace(good[1], position=7),
            structs.replace(good[1], body=good[0].body),
            structs.replace(good[1], body_hash=good[0].body_hash, body=b""),
            structs.replace(good[1], body_hash="no hash", body=b""),
            structs.replace(good[1], id=good[0].id),
            structs.replace(good[1], seal=good[0].seal),
            structs.replace(good[1], stamp=structs.replace(good[1].stamp, turn=99)),
        ]
        for row in broken:
            with pytest.raises(BadInput, match="Message 4"):
                append(store, head, [good[0], row, good[2]])
        assert store.open("acme", "one") == head
        assert store.verify(head) == []

    def test_records_are_read_back_as_they_were(self, store: Database) -> None:
        head, rows = self._talk(store, 9)
        made = []
        for size in (1, 3, 1, 300):
            edits = [Replace(Target(rows[n % 9].id, (0,)), (Text(f"short {n}"),), "test", "why") for n in range(size)]
            record, id = record_after(head, *edits)
            made.append((id, record))
            head = store.commit(head, record, id)
            assert (head.number, head.record) == (record.last, id)
        store = self._again(store)
        assert store.open("acme", "one") == head
        assert store.records(head) == made
        assert store.records(head, after=1) == made[1:]
        assert store.records(head, after=2) == made[2:]
        assert store.records(head, after=5) == made[3:]
        assert store.records(head, after=6) == []
        assert store.records(head, after=9999) == []
        assert store.verify(head) == []

    def test_record_that_breaks_the_chain_is_refused(self, store: Database) -> None:
        head, _ = self._talk(store, 2)
        head = store.commit(head, *record_after(head))
        record, id = record_after(head)
        with pytest.raises(BadInput, match="next number is 2"):
            store.commit(head, structs.replace(record, first=3), id)
        with pytest.raises(BadInput, match="its id"):
            store.commit(head, record, "ab" * 20)
        with pytest.raises(BadInput, match="no edit"):
            store.commit(head, structs.replace(record, edits=()), id)
        assert store.open("acme", "one") == head

    def _append(self, store: Database, head: Head, *batches: list[StoredMessage]) -> Head:
        for rows in batches:
            expected = after(head, rows)
            head = append(store, head, rows)
            assert head == expected
        return head
