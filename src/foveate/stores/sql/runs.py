"""Runs of agents and their steps in the SQL store: rows to values and back, checked on the way out.

What may be long (what a step was given and what came of it) is packed as bodies are. Nothing hashes these rows: they
are records beside the history, not a part of its chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from ...core.runs import AgentRun, AgentRunStep, Claim
from ...core.stamps import Usage
from ...errors import Damaged, StoreError
from ...ports import Head
from ..checks import check_held, check_owner, check_run, check_step, taken_over
from ..codec import Codec, DamagedBody, pack, unpack
from . import statements as sql
from .driver import Driver, Row, Session
from .rows import are_bytes, key, read_branch

__all__ = ["SqlRuns", "asked_by", "read_runs", "read_steps"]

T = TypeVar("T")

_CLAIMS = 5
"""How often a claim is tried that was given up by another between two statements."""
_RUN_TEXTS, _STEP_TEXTS = ("task", "result", "reason"), ("input", "output", "error")
_USAGE = Usage.__struct_fields__
_RUN = (
    *("id", "agent", "conversation", "parent", "state", *_RUN_TEXTS, "turns"),
    *(*_USAGE, "cost", "begun", "ended"),
)
"""The columns of `sql.RUNS`."""
_STEP = ("run", "number", "kind", "name", "call", "state", *_STEP_TEXTS, "message", "turn", "begun", "ended")
"""The columns of `sql.STEPS`."""


class SqlRuns:
    """The part of the SQL store that keeps runs and steps, and who is at work."""

    _driver: Driver
    _codec: Codec

    def put_run(self, head: Head, run: AgentRun, *, owner: str = "") -> None:
        check_run(run)
        values = self._run_values(head, run)

        def put(session: Session) -> None:
            number = session.rows(sql.NEXT_RUN, (head.tenant, head.root))[0][0]
            session.rows(sql.PUT_RUN, (*values, number))

        self._put(head, put, owner)

    def put_step(self, head: Head, step: AgentRunStep, *, owner: str = "") -> None:
        check_step(step)
        values = self._step_values(head, step)
        self._put(head, lambda session: session.rows(sql.PUT_STEP, values), owner)

    def claim(self, head: Head, owner: str, instead_of: Claim | None = None) -> Claim:
        check_owner(owner)
        before = (instead_of.owner, instead_of.beats) if instead_of else (owner, 0)

        def work(session: Session) -> Claim:
            read_branch(session, head, self._driver.place)
            for _ in range(_CLAIMS):
                found = session.rows(sql.TAKE_CLAIM, (*key(head), owner, *before))
                if found := found or session.rows(sql.CLAIM, key(head)):
                    return Claim(*found[0])
            raise StoreError(f"Others kept claiming and releasing {head.name!r} in between. Try again.")

        return self._driver.write(work)

    def beat(self, head: Head, owner: str) -> bool:
        check_owner(owner)

        def work(session: Session) -> bool:
            if session.rows(sql.BEAT, (*key(head), owner)):
                return True
            read_branch(session, head, self._driver.place)
            return False

        return self._driver.write(work)

    def release(self, head: Head, owner: str) -> None:
        check_owner(owner)

        def work(session: Session) -> None:
            read_branch(session, head, self._driver.place)
            session.rows(sql.DROP_CLAIM, (*key(head), owner))

        self._driver.write(work)

    def runs(self, head: Head) -> list[AgentRun]:
        def work(session: Session) -> list[AgentRun]:
            read_branch(session, head, self._driver.place)
            return read_runs(session, head)

        return self._driver.read(work)

    def steps(self, head: Head, run: str, after: int = 0) -> list[AgentRunStep]:
        def work(session: Session) -> list[AgentRunStep]:
            read_branch(session, head, self._driver.place)
            return read_steps(session, head, run, after)

        return self._driver.read(work)

    def _put(self, head: Head, put: Callable[[Session], object], owner: str) -> None:
        def work(session: Session) -> None:
            if owner:
                asked_by(session, head, owner, self._driver.place)  # Where a claim is, there is a branch.
            else:
                read_branch(session, head, self._driver.place)
            put(session)

        self._driver.write(work)

    def _run_values(self, head: Head, run: AgentRun) -> Row:
        said = run.id, run.agent, run.conversation, run.parent, run.state
        texts = [self._packed(getattr(run, name)) for name in _RUN_TEXTS]
        usage = msgspec.structs.astuple(run.usage)
        return (head.tenant, head.root, *said, *texts, run.turns, *usage, run.cost, run.begun, run.ended)

    def _step_values(self, head: Head, step: AgentRunStep) -> Row:
        said = step.run, step.number, step.kind, step.name, step.call, step.state
        texts = [self._packed(getattr(step, name)) for name in _STEP_TEXTS]
        return (head.tenant, head.root, *said, *texts, step.message, step.turn, step.begun, step.ended)

    def _packed(self, text: str) -> bytes:
        # What a tool hands back may hold halves of surrogate pairs, such as the name of a file that is not UTF-8.
        return pack(text.encode("utf-8", "surrogatepass"), self._codec)


def asked_by(
    session: Session, head: Head, owner: str, place: str, *asked: tuple[str, Sequence[Any]]
) -> list[list[Row]]:
    """What these statements return, asked in one breath with a sign of life of `owner`, if anybody is named: nobody
    takes over until the transaction ends. Raises ConversationBusy where that one has no claim on the branch.
    """
    if not owner:
        return session.ask(*asked)
    beat, *found = session.ask((sql.BEAT, (*key(head), owner)), *asked)
    if not beat:
        check_held(head, read_branch(session, head, place)[0])
        claim = session.rows(sql.CLAIM, key(head))
        raise taken_over(head, Claim(*claim[0]) if claim else None)
    return found


def read_runs(session: Session, head: Head) -> list[AgentRun]:
    """All runs of a tree, in the order in which they were begun."""
    return [_run(head, row) for row in session.rows(sql.RUNS, (head.tenant, head.root))]


def read_steps(session: Session, head: Head, run: str, after: int) -> list[AgentRunStep]:
    """The steps of one of them behind a number."""
    return [_step(head, row) for row in session.rows(sql.STEPS, (head.tenant, head.root, run, after))]


def _run(head: Head, row: Row) -> AgentRun:
    said = dict(zip(_RUN, row, strict=True))
    usage = [said.pop(name) for name in _USAGE]
    return _value(AgentRun, {**said, "usage": usage}, _RUN_TEXTS, f"Run {said['id']!r} of {head.name!r}")


def _step(head: Head, row: Row) -> AgentRunStep:
    said = dict(zip(_STEP, row, strict=True))
    where = f"Step {said['number']!r} of run {said['run']!r} of {head.name!r}"
    return _value(AgentRunStep, said, _STEP_TEXTS, where)


def _value(kind: type[T], said: dict[str, Any], texts: tuple[str, ...], where: str) -> T:
    try:
        for name in texts:
            if not are_bytes(said[name]):
                raise DamagedBody(f"its {name} is gone")
            said[name] = unpack(said[name]).decode("utf-8", "surrogatepass")
        return msgspec.convert(said, kind)
    except (DamagedBody, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise Damaged(f"{where} is damaged: {error}.") from error
