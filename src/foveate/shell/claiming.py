"""What agents keep with a conversation: their runs and steps, and the claim of whoever is at work in it."""

from __future__ import annotations

from collections.abc import Callable

from .. import given
from ..core.runs import AgentRun, AgentRunStep, LockHolder
from ..engine import Step
from ..ports import Database
from .held import Held

__all__ = ["Claiming"]


class Claiming(Held):
    """Runs, steps and claims. Steps that both shells perform."""

    def _runs(self) -> Step[list[AgentRun]]:
        found: list[AgentRun] = yield lambda: self._engine.store.runs(self.head)
        return [run for run in found if run.conversation == self.name]

    def _steps(self, run: str, after: int) -> Step[list[AgentRunStep]]:
        given.text("The id of a run", run)
        given.whole("after= (the number of a step)", after)
        found: list[AgentRunStep] = yield lambda: self._engine.store.steps(self.head, run, after)
        return found

    def _keep_run(self, run: AgentRun, owner: str) -> Step[None]:
        given.instance("What keep_run() takes", run, AgentRun, "an AgentRun")
        given.text("owner=", owner)
        yield lambda: self._engine.store.put_run(self.head, run, owner=owner)

    def _keep_step(self, step: AgentRunStep, owner: str) -> Step[None]:
        given.instance("What keep_step() takes", step, AgentRunStep, "an AgentRunStep")
        given.text("owner=", owner)
        yield lambda: self._engine.store.put_step(self.head, step, owner=owner)

    def _claim(self, owner: str, instead_of: LockHolder | None) -> Step[LockHolder]:
        given.text("The owner of a claim", owner)
        found: LockHolder = yield lambda: self._engine.store.acquire_lock(self.head, owner, instead_of)
        return found

    def _release(self, owner: str) -> Step[None]:
        given.text("The owner of a claim", owner)
        yield lambda: self._engine.store.release_lock(self.head, owner)

    def pulse(self, owner: str) -> tuple[Database, Callable[[], bool]]:
        """The store, and a call, for another thread, that gives it a sign of life for a claim on this conversation,
        whatever is done here meanwhile, and returns whether `owner` still has it. It may raise StoreError.
        """
        store, head = self._engine.store, self.head
        return store, lambda: store.heartbeat(head, owner)
