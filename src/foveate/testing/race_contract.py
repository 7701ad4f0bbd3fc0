"""Tests of writers that do not know of each other."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread

import pytest
from msgspec import structs

from ..core.edits import Hide, Target
from ..core.messages import user
from ..errors import ConflictError
from ..ports import Database, Head, append
from .base_contract import BaseContract
from .rows import after, chain, record_after

__all__ = ["RaceContract"]


class RaceContract(BaseContract):
    """Optimistic concurrency: the second writer gets an error, and nothing of it is written."""

    def test_second_writer_at_a_tip_is_refused_and_nothing_is_written(self, store: Database) -> None:
        head, rows = self._talk(store, 3)
        first = chain([user("mine")], head)
        now = append(store, head, first)
        for late in ([user("late")], [user("mine")]):
            with pytest.raises(ConflictError, match="4 messages"):
                append(store, head, chain(late, head))
        with pytest.raises(ConflictError):
            append(store, head, [])
        assert store.open("acme", "one") == now
        assert store.messages(now, 1, 99) == rows + first

    def test_second_plan_is_refused_and_nothing_is_written(self, store: Database) -> None:
        """F35: two processes plan at once; the later plan does not know what the earlier one hid."""
        head, _ = self._talk(store, 3)
        record, id = record_after(head)
        now = store.commit(head, record, id)
        other = Hide(Target("cd" * 20))
        with pytest.raises(ConflictError, match="journal has 1 edits"):
            store.commit(head, *record_after(head, other))
        assert store.open("acme", "one") == now
        assert store.records(now) == [(id, record)]

    def test_messages_appended_by_others_do_not_make_a_plan_stale(self, store: Database) -> None:
        """F31: messages appended during a compaction stay, and the compaction too."""
        head, rows = self._talk(store, 3)
        more = chain([user("meanwhile")], head)
        append(store, head, more)
        record, id = record_after(head)
        now = store.commit(head, record, id)
        assert now == structs.replace(after(head, more), number=1, record=id)
        assert store.messages(now, 1, 99) == rows + more

    def test_plan_committed_by_others_does_not_refuse_a_message(self, store: Database) -> None:
        head, _ = self._talk(store, 3)
        record, id = record_after(head)
        store.commit(head, record, id)
        more = chain([user("meanwhile")], head)
        assert append(store, head, more) == structs.replace(after(head, more), number=1, record=id)

    def test_one_of_many_threads_at_one_tip_wins(self, store: Database) -> None:
        head, rows = self._talk(store, 3)
        start = Barrier(6)
        outcomes: list[Head | ConflictError] = []

        def write(number: int) -> None:
            start.wait()
            try:
                outcomes.append(append(store, head, chain([user(f"writer {number}")], head)))
            except ConflictError as error:
                outcomes.append(error)

        self._run(write, 6)
        won = [outcome for outcome in outcomes if isinstance(outcome, Head)]
        assert (len(outcomes), len(won)) == (6, 1)
        assert store.open("acme", "one") == won[0]
        assert store.messages(won[0], 1, 3) == rows

    def test_threads_that_retry_lose_nothing(self, store: Database) -> None:
        store.open("acme", "one")

        def write(number: int) -> None:
            for turn in range(5):
                while True:
                    head = store.open("acme", "one")
                    try:
                        append(store, head, chain([user(f"{number}.{turn}")], head))
                        break
                    except ConflictError:
                        continue

        self._run(write, 4)
        head = store.open("acme", "one")
        said = [row.body.decode().split('"text":"')[1].split('"')[0] for row in store.messages(head, 1, 99)]
        assert sorted(said) == sorted(f"{number}.{turn}" for number in range(4) for turn in range(5))
        assert store.verify(head) == []

    def _run(self, work: Callable[[int], object], count: int) -> None:
        threads = [Thread(target=work, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
