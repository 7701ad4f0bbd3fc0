"""Tests of the capability `KeepsRuns`."""

from __future__ import annotations

from threading import Thread

import pytest
from msgspec import structs

from ..core.messages import user
from ..core.runs import AgentRun, AgentRunStep
from ..core.stamps import Usage
from ..errors import BadSetting, NoSuchConversation, StoreError
from ..ports import Database, Head, append
from .base_contract import BaseContract
from .rows import chain

__all__ = ["RunContract", "run_of", "step_of"]

_TEXTS = ["", " ", "\0", "\u2028\ud7ff\U0001f600", "half \ud83d of a pair", "\\\"'`;--", "é" * 5000, "x" * 300_000]


def run_of(id: str, begun: int = 1) -> AgentRun:
    """Return a run with another value in every field."""
    usage = Usage(100, 20, 3, 40, 5)
    return AgentRun(
        *(id, "support", "one", "the task", "other/7", "stopped", "turns", "the result", 4, usage, 0.0125, begun, 99)
    )


def step_of(run: str, number: int) -> AgentRunStep:
    """Return a step with another value in every field."""
    return AgentRunStep(
        *(run, number, "action", "look", "call_1", '{"a": 1}', f"output {number}", "no such file", "failed"),
        *("ab" * 20, 3, 10, 20),
    )


class RunContract(BaseContract):
    """Tests of runs and steps."""

    def test_run_and_its_steps_are_read_back_as_they_were(self, store: Database) -> None:
        head = store.open("acme", "one")
        store.put_run(head, run_of("r1"))
        store.put_run(head, AgentRun("r2", "me", "one"))
        steps = [step_of("r1", 1), AgentRunStep("r1", 2, "model")]
        for step in steps:
            store.put_step(head, step)
        store = self._again(store)
        assert store.runs(head) == [run_of("r1"), AgentRun("r2", "me", "one")]
        assert store.steps(head, "r1") == steps
        assert (store.steps(head, "r2"), store.steps(head, "nobody")) == ([], [])

    def test_missing_text_differs_from_empty_text(self, store: Database) -> None:
        """An unknown number of cached tokens is not 0."""
        head = store.open("acme", "one")
        run = structs.replace(run_of("r1"), usage=Usage(0, None, 3, 0, None), cost=None)
        store.put_run(head, run)
        assert store.runs(head) == [run]
        store.put_run(head, structs.replace(run, cost=0.0))
        assert store.runs(head)[0].cost == 0.0

    def test_storing_a_run_again_replaces_it(self, store: Database) -> None:
        head = store.open("acme", "one")
        for id in ("b", "a", "c"):
            store.put_run(head, AgentRun(id, "me", "one", begun=5))
            store.put_step(head, AgentRunStep(id, 1, "action", begun=5))
        store.put_run(head, run_of("b"))
        store.put_step(head, step_of("b", 1))
        store = self._again(store)
        assert store.runs(head) == [
            run_of("b"),
            AgentRun("a", "me", "one", begun=5),
            AgentRun("c", "me", "one", begun=5),
        ]
        assert store.steps(head, "b") == [step_of("b", 1)]
        assert store.steps(head, "a") == [AgentRunStep("a", 1, "action", begun=5)]

    def test_runs_come_in_the_order_in_which_they_were_begun(self, store: Database) -> None:
        head = store.open("acme", "one")
        ids = [f"{n * 7 % 30:02}" for n in range(30)]
        for id in ids:
            store.put_run(head, AgentRun(id, "me", "one"))
        for id in sorted(ids):
            store.put_run(head, AgentRun(id, "me", "one", state="done"))
        assert [run.id for run in self._again(store).runs(head)] == ids

    def test_steps_come_in_order_and_after_a_number(self, store: Database) -> None:
        head = store.open("acme", "one")
        for number in (3, 1, 12, 2):
            store.put_step(head, step_of("r1", number))
        assert [step.number for step in store.steps(head, "r1")] == [1, 2, 3, 12]
        assert [step.number for step in store.steps(head, "r1", after=2)] == [3, 12]
        assert [step.number for step in store.steps(head, "r1", after=-1)] == [1, 2, 3, 12]
        assert store.steps(head, "r1", after=12) == []

    @pytest.mark.parametrize("text", _TEXTS, ids=lambda text: ascii(text[:8]))
    def test_any_output_survives(self, store: Database, text: str) -> None:
        """The output of a tool is stored as it is."""
        head = store.open("acme", "one")
        step = structs.replace(step_of("r1", 1), input=text, output=text, error=text)
        run = structs.replace(run_of("r1"), task=text, result=text, reason=text)
        store.put_step(head, step)
        store.put_run(head, run)
        store = self._again(store)
        assert store.steps(head, "r1") == [step]
        assert store.runs(head) == [run]

    def test_forks_share_the_runs_of_their_tree(self, store: Database) -> None:
        head = store.open("acme", "one")
        head = append(store, head, chain([user("hi"), user("ho")], head))
        store.put_run(head, run_of("r1"))
        fork = store.fork(head, "two", 1, 0)
        store.put_run(fork, run_of("r2"))
        store.put_step(fork, step_of("r1", 1))
        moved = store.repoint(head, 1, 0, "before")
        for branch in (fork, moved, store.open("acme", "before")):
            assert [run.id for run in store.runs(branch)] == ["r1", "r2"]
            assert store.steps(branch, "r1") == [step_of("r1", 1)]

    def test_other_conversations_and_other_tenants_have_runs_of_their_own(self, store: Database) -> None:
        heads = [store.open("acme", "one"), store.open("acme", "two"), store.open("zeta", "one")]
        for number, head in enumerate(heads):
            store.put_run(head, run_of("r1", begun=number))
            store.put_step(head, step_of("r1", number + 1))
        assert [[run.begun for run in store.runs(head)] for head in heads] == [[0], [1], [2]]
        assert [[step.number for step in store.steps(head, "r1")] for head in heads] == [[1], [2], [3]]

    def test_runs_change_nothing_of_the_conversation(self, store: Database) -> None:
        head = store.open("acme", "one")
        head = append(store, head, rows := chain([user("hi")], head))
        store.put_run(head, run_of("r1"))
        store.put_step(head, step_of("r1", 1))
        assert store.open("acme", "one") == head
        assert store.messages(head, 1, 9) == rows
        assert store.verify(head) == []
        head = append(store, head, chain([user("ho")], head))
        assert store.verify(head) == []

    def test_head_that_is_behind_may_keep_runs(self, store: Database) -> None:
        """A run continues while others write to its conversation."""
        head = store.open("acme", "one")
        append(store, head, chain([user("hi")], head))
        store.put_run(head, run_of("r1"))
        assert store.runs(head) == [run_of("r1")]

    def test_runs_of_a_conversation_that_there_is_not_are_refused(self, store: Database) -> None:
        stranger = Head("acme", "two", 77, 1)
        for use in (
            lambda: store.put_run(stranger, run_of("r1")),
            lambda: store.put_step(stranger, step_of("r1", 1)),
            lambda: store.acquire_lock(stranger, "a"),
            lambda: store.heartbeat(stranger, "a"),
            lambda: store.release_lock(stranger, "a"),
            lambda: store.runs(stranger),
            lambda: store.steps(stranger, "r1"),
        ):
            with pytest.raises(NoSuchConversation):
                use()

    @pytest.mark.parametrize("id", ["", "a\0b", "half \ud83d", "x" * 501])
    def test_id_that_no_database_accepts_is_refused(self, store: Database, id: str) -> None:
        head = store.open("acme", "one")
        with pytest.raises(BadSetting):
            store.put_run(head, run_of(id))
        with pytest.raises(BadSetting):
            store.put_step(head, step_of(id, 1))
        with pytest.raises(BadSetting):
            store.put_step(head, step_of("r1", 0))
        assert store.runs(head) == []

    def test_threads_that_keep_steps_of_one_run_lose_none(self, store: Database) -> None:
        head = store.open("acme", "one")

        def work(thread: int) -> None:
            store.put_run(head, run_of(f"r{thread}"))
            for number in range(1, 21):
                store.put_step(head, step_of("shared", 20 * thread + number))

        threads = [Thread(target=work, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.steps(head, "shared") == [step_of("shared", number) for number in range(1, 81)]
        assert sorted(run.id for run in store.runs(head)) == ["r0", "r1", "r2", "r3"]

    def test_closed_store_keeps_no_run(self, store: Database) -> None:
        head = store.open("acme", "one")
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.put_run(head, run_of("r1"))
        with pytest.raises(StoreError, match="closed"):
            store.steps(head, "r1")
