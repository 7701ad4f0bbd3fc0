"""State machine: the SQLite store and the memory store are equal after any sequence of calls.

The calls use any head that was ever returned, stale ones too.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from foveate.core.edits import Replace, Span, Summarize, Target
from foveate.core.messages import Text, user
from foveate.core.runs import AgentRun, AgentRunStep, LockHolder
from foveate.errors import FoveateError
from foveate.ports import Changes, Database, Head, append
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, erased, record_after

NAMES = st.sampled_from(["a", "b", "c", "d"])
ANY = st.integers(0, 10**6)
"""An index into the available choices."""
LONG = "".join(chr(97 + n * n % 23 + n % 3) for n in range(60))


def _facts_of(tail: Changes) -> tuple[Any, ...]:
    return tail.head, tail.rows(), tail.records(), tail.newest()


class Machine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.memory = MemoryStore()
        self.sqlite = self.opened()
        self.heads: list[Head] = []
        self.open("", "a")

    def teardown(self) -> None:
        if hasattr(self, "sqlite"):
            self.sqlite.close()
            shutil.rmtree(self.folder)

    def opened(self) -> SqliteStore:
        return SqliteStore(self.folder / "chat.db", synchronous="normal")

    def both(self, call: Callable[[Database], Any]) -> Any:
        """The result or the error of both stores, which must be equal."""
        outcomes = []
        for store in (self.memory, self.sqlite):
            try:
                outcomes.append(call(store))
            except FoveateError as error:
                outcomes.append(type(error))
        assert outcomes[0] == outcomes[1]
        if isinstance(outcomes[0], Head):
            self.heads.append(outcomes[0])
        return outcomes[0]

    def head(self, choice: int) -> Head:
        # Counted from the newest, and one of the newest mostly, so that most calls are made with a current head.
        newest = choice % 5 if choice % 4 else choice
        return self.heads[-1 - newest % len(self.heads)]

    @rule(tenant=st.sampled_from(["", "t"]), name=NAMES)
    def open(self, tenant: str, name: str) -> None:
        self.both(lambda store: store.open(tenant, name))

    @rule(name=NAMES)
    def open_if_there(self, name: str) -> None:
        self.both(lambda store: store.open("", name, create=False))

    @rule(choice=ANY, words=st.lists(st.sampled_from(["x", "y", "z" * 40, LONG * 300]), max_size=4), gone=ANY)
    def append(self, choice: int, words: list[str], gone: int) -> None:
        head = self.head(choice)
        rows = [erased(row) if gone % 5 == 0 else row for row in chain([user(word) for word in words], head)]
        self.both(lambda store: append(store, head, rows))

    @rule(choice=ANY, words=st.lists(st.sampled_from(["x", "y", LONG * 300]), max_size=3))
    def extend(self, choice: int, words: list[str]) -> None:
        head = self.head(choice)
        result = self.both(lambda store: _facts_of(store.extend(head, lambda tail: chain(map(user, words), tail.head))))
        self.heads += [] if isinstance(result, type) else [result[0]]

    @rule(choice=ANY)
    def follow(self, choice: int) -> None:
        head = self.head(choice)
        self.both(lambda store: _facts_of(store.changes(head)))

    @rule(choice=ANY, count=st.integers(0, 3))
    def commit(self, choice: int, count: int) -> None:
        head = self.head(choice)
        record, id = record_after(head, *record_after(head)[0].edits * count)
        self.both(lambda store: store.commit(head, record, id))

    @rule(choice=ANY, of=ANY, text=st.sampled_from(["told", LONG]), is_span=st.booleans())
    def tell(self, choice: int, of: int, text: str, is_span: bool) -> None:
        head, other = self.head(choice), self.head(of)
        ids = [row.id for row in self.memory.messages(other, 1, other.position)] or ["ab" * 20]
        first, last = ids[of % len(ids)], ids[-1]
        edit = Summarize(Span(first, last), text) if is_span else Replace(Target(first), (Text(text),))
        self.both(lambda store: store.commit(head, *record_after(head, edit)))

    @rule(choice=ANY, first=st.integers(-1, 8), length=st.integers(0, 3), runs=st.booleans())
    def erase(self, choice: int, first: int, length: int, runs: bool) -> None:
        head = self.head(choice)
        self.both(lambda store: store.erase(head, [(first, first + length)], runs=runs, time=7))
        self.both(lambda store: store.find_residue(head))
        self.both(lambda store: store.erasures(head))

    @rule(choice=ANY, name=NAMES, position=ANY, number=ANY)
    def fork(self, choice: int, name: str, position: int, number: int) -> None:
        head = self.head(choice)
        at = position % (head.position + 1), number % (head.number + 1)
        self.both(lambda store: store.fork(head, name, *at))

    @rule(choice=ANY, keep=st.text("kept", min_size=1, max_size=3), position=ANY, number=ANY)
    def repoint(self, choice: int, keep: str, position: int, number: int) -> None:
        head = self.head(choice)
        at = position % (head.position + 1), number % (head.number + 1)
        self.both(lambda store: store.repoint(head, *at, keep))

    @rule(names=st.dictionaries(NAMES, st.text("abcd", min_size=1, max_size=2), min_size=1, max_size=2))
    def rename(self, names: dict[str, str]) -> None:
        self.both(lambda store: store.rename("", names))

    @rule(choice=ANY, position=ANY, number=ANY, body=st.binary(max_size=30))
    def save_snapshot(self, choice: int, position: int, number: int, body: bytes) -> None:
        head = self.head(choice)
        at = position % (head.position + 1), number % (head.number + 1)
        self.both(lambda store: store.save_snapshot(head, *at, body))

    @rule(choice=ANY, run=st.sampled_from(["r", "s", ""]), number=st.integers(0, 4), output=st.sampled_from(["", LONG]))
    def act(self, choice: int, run: str, number: int, output: str) -> None:
        head = self.head(choice)
        self.both(lambda store: store.put_run(head, AgentRun(run, "me", head.name, turns=number)))
        self.both(lambda store: store.put_step(head, AgentRunStep(run, number, "action", output=output)))

    @rule(choice=ANY, owner=st.sampled_from(["a", "b", ""]), of=st.sampled_from(["a", "b"]), beats=st.integers(0, 4))
    def claim(self, choice: int, owner: str, of: str, beats: int) -> None:
        head = self.head(choice)
        self.both(lambda store: store.acquire_lock(head, owner, LockHolder(of, beats) if beats else None))
        self.both(lambda store: store.heartbeat(head, of))
        self.both(lambda store: store.put_step(head, AgentRunStep("r", beats, "action", "look"), owner=of))
        self.both(lambda store: store.put_run(head, AgentRun("r", "me", head.name, turns=beats), owner=of))

    @rule(choice=ANY, owner=st.sampled_from(["a", "b", ""]))
    def release(self, choice: int, owner: str) -> None:
        head = self.head(choice)
        self.both(lambda store: store.release_lock(head, owner))

    @rule()
    def close_and_open(self) -> None:
        self.sqlite.close()
        self.sqlite = self.opened()

    @rule(choice=ANY, of=ANY, first=st.integers(-2, 20), length=st.integers(0, 20), spread=st.sets(st.integers(-2, 20)))
    def read(self, choice: int, of: int, first: int, length: int, spread: set[int]) -> None:
        head, other = self.head(choice), self.head(of)
        self.both(lambda store: store.messages(head, first, first + length))
        self.both(lambda store: store.get_many(head, list(spread)))
        self.both(lambda store: store.records(head, after=length))
        self.both(lambda store: store.branches(head))
        self.both(lambda store: store.runs(head))
        self.both(lambda store: store.steps(head, "r", after=length % 4))
        self.both(lambda store: store.search(head, "x y " + "z" * 40))
        ids = [row.id for row in self.memory.messages(other, 1, other.position)]
        self.both(lambda store: store.locate(head, ids))

    @invariant()
    def the_newest_head_reads_the_same(self) -> None:
        if not getattr(self, "heads", None):
            return
        for head in self.heads[-1:]:
            self.both(lambda store: store.messages(head, 1, head.position))  # noqa: B023
            self.both(lambda store: store.records(head))  # noqa: B023
            self.both(lambda store: store.snapshot(head))  # noqa: B023
            assert self.both(lambda store: store.verify(head)) == []  # noqa: B023
        self.both(lambda store: store.names(""))


def check(examples: int) -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


def test_sqlite_does_as_memory_does() -> None:
    check(15)


@pytest.mark.slow
def test_sqlite_does_as_memory_does_over_and_over() -> None:
    check(400)
