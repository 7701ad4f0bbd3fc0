"""Runs of agents and their steps in the SQL store, and the locks of their owners.

Long texts (the input and the result of a step) are packed like bodies. These rows are not hashed: they are no part of
the history's chain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ...core.runs import AgentRun, AgentRunStep, LockHolder
from ...errors import Damaged, StoreError
from ...ports import Head
from ..checks import check_owner, check_run, check_step
from ..codec import DamagedBody, pack, unpack
from . import statements as sql
from .driver import Driver, Row, Session
from .rows import are_bytes, ask_as_owner, key, read_branch

__all__ = ["Locks", "Runs", "pack_text", "read_runs", "read_steps"]

T = TypeVar("T")

_ATTEMPTS = 5
"""Attempts to take a lock that its holder releases between two statements."""
_RUN_TEXTS, _STEP_TEXTS = ("task", "result", "reason"), ("input", "output", "error")
_USAGE = ("input", "cache_read", "cache_write", "output", "reasoning")
_RUN = (
    *("id", "agent", "conversation", "parent", "state", *_RUN_TEXTS, "turns"),
    *(*_USAGE, "cost", "begun", "ended"),
)
"""The columns of `sql.RUNS`."""
_STEP = ("run", "number", "kind", "name", "call", "state", *_STEP_TEXTS, "message", "turn", "begun", "ended")
"""The columns of `sql.STEPS`."""


class Runs:
    """Stores and reads runs and steps."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._place = driver, driver.place

    def put_run(self, head: Head, run: AgentRun, owner: str) -> None:
        check_run(run)
        values = self._run_values(head, run)

        def put(session: Session) -> None:
            number = session.rows(sql.NEXT_RUN, (head.tenant, head.root))[0][0]
            session.rows(sql.PUT_RUN, (*values, number))

        self._put(head, put, owner)

    def put_step(self, head: Head, step: AgentRunStep, owner: str) -> None:
        check_step(step)
        values = self._step_values(head, step)
        self._put(head, lambda session: session.rows(sql.PUT_STEP, values), owner)

    def runs(self, head: Head) -> list[AgentRun]:
        def work(session: Session) -> list[AgentRun]:
            read_branch(session, head, self._place)
            return read_runs(session, head)

        return self._driver.read(work)

    def steps(self, head: Head, run: str, after: int) -> list[AgentRunStep]:
        def work(session: Session) -> list[AgentRunStep]:
            read_branch(session, head, self._place)
            return read_steps(session, head, run, after)

        return self._driver.read(work)

    def _put(self, head: Head, put: Callable[[Session], object], owner: str) -> None:
        def work(session: Session) -> None:
            if owner:
                ask_as_owner(session, head, owner, self._place)  # A branch that is locked exists.
            else:
                read_branch(session, head, self._place)
            put(session)

        self._driver.write(work)

    def _run_values(self, head: Head, run: AgentRun) -> Row:
        names = run.id, run.agent, run.conversation, run.parent, run.state
        texts = [pack_text(getattr(run, name)) for name in _RUN_TEXTS]
        usage = [getattr(run.usage, name) for name in _USAGE]
        return (head.tenant, head.root, *names, *texts, run.turns, *usage, run.cost, run.begun, run.ended)

    def _step_values(self, head: Head, step: AgentRunStep) -> Row:
        names = step.run, step.number, step.kind, step.name, step.call, step.state
        texts = [pack_text(getattr(step, name)) for name in _STEP_TEXTS]
        return (head.tenant, head.root, *names, *texts, step.message, step.turn, step.begun, step.ended)


class Locks:
    """Locks branches for owners."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._place = driver, driver.place

    def acquire(self, head: Head, owner: str, replaces: LockHolder | None) -> LockHolder:
        check_owner(owner)
        before = (replaces.owner, replaces.heartbeats) if replaces else (owner, 0)

        def work(session: Session) -> LockHolder:
            read_branch(session, head, self._place)
            for _ in range(_ATTEMPTS):
                rows = session.rows(sql.TAKE_LOCK, (*key(head), owner, *before))
                if rows := rows or session.rows(sql.LOCK_HOLDER, key(head)):
                    return LockHolder(*rows[0])
            raise StoreError(f"Others kept locking and releasing {head.label} in between. Try again.")

        return self._driver.write(work)

    def heartbeat(self, head: Head, owner: str) -> bool:
        check_owner(owner)

        def work(session: Session) -> bool:
            if session.rows(sql.HEARTBEAT, (*key(head), owner)):
                return True
            read_branch(session, head, self._place)
            return False

        return self._driver.write(work)

    def release(self, head: Head, owner: str) -> None:
        check_owner(owner)

        def work(session: Session) -> None:
            read_branch(session, head, self._place)
            session.rows(sql.DROP_LOCK, (*key(head), owner))

        self._driver.write(work)


def read_runs(session: Session, head: Head) -> list[AgentRun]:
    """Return all runs of a tree, oldest first."""
    return [_run(head, row) for row in session.rows(sql.RUNS, (head.tenant, head.root))]


def read_steps(session: Session, head: Head, run: str, after: int) -> list[AgentRunStep]:
    """Return the steps of a run with numbers above `after`."""
    return [_step(head, row) for row in session.rows(sql.STEPS, (head.tenant, head.root, run, after))]


def pack_text(text: str) -> bytes:
    """Pack a text of a run. It may contain unpaired surrogates, such as a file name that is not UTF-8."""
    return pack(text.encode("utf-8", "surrogatepass"))


def _run(head: Head, row: Row) -> AgentRun:
    fields = dict(zip(_RUN, row, strict=True))
    usage = [fields.pop(name) for name in _USAGE]
    return _value(AgentRun, {**fields, "usage": usage}, _RUN_TEXTS, f"Run {fields['id']!r} of {head.label}")


def _step(head: Head, row: Row) -> AgentRunStep:
    fields = dict(zip(_STEP, row, strict=True))
    where = f"Step {fields['number']!r} of run {fields['run']!r} of {head.label}"
    return _value(AgentRunStep, fields, _STEP_TEXTS, where)


def _value(kind: type[T], fields: dict[str, Any], texts: tuple[str, ...], where: str) -> T:
    try:
        for name in texts:
            if not are_bytes(fields[name]):
                raise DamagedBody(f"its {name} is gone")
            fields[name] = unpack(fields[name]).decode("utf-8", "surrogatepass")
        return msgspec.convert(fields, kind)
    except (DamagedBody, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise Damaged(f"{where} is damaged: {error}.") from error
