"""Several routines at once: one waits for a model while another one continues.

Only what may take long runs in the background: model calls, tools, pauses. Everything else happens in one thread, one
routine at a time. So routines need no locks, listeners are called one after another, and a stop reaches every routine
at the point where it waits.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

from .effects import Begin, Call, EndedEffect, NextCall, NextEnded, Operation, Routine, Sleep, Stream

__all__ = ["RunAborted", "in_parallel"]

T = TypeVar("T")
_log = logging.getLogger("foveate")


class RunAborted(BaseException):
    """Raised in a routine when another one, which runs in parallel with it, has failed.

    It is not an Exception, because no routine may handle it and go on.
    """


def in_parallel(routines: Sequence[Routine[T]], max_parallel: int) -> Routine[list[T]]:
    """Run routines at the same time, at most `max_parallel` of them, and return their results in their order.

    If one raises an error, the others are stopped, and the error is raised when they have cleaned up. A single routine
    runs as if it were called with `yield from`.
    """
    if len(routines) == 1:
        return [(yield from routines[0])]
    branches = [_Branch(routine) for routine in routines]
    waiting, running = deque(branches), list[_Branch[T]]()
    try:
        while waiting or running:
            if waiting and len(running) < max(1, max_parallel):
                running.append(waiting.popleft())
                yield from running[-1].advance()
            else:
                ended: EndedEffect = yield NextEnded()
                for branch in running:
                    if branch.take(ended):
                        yield from branch.advance()
            running = [branch for branch in running if not branch.is_done]
    except GeneratorExit:
        raise
    except BaseException as error:
        failure = RunAborted(f"the agent around it failed: {type(error).__name__}")
        for branch in branches:
            yield from branch.stop(failure if isinstance(error, Exception) else error)
        raise
    return [cast(T, branch.result) for branch in branches]


class _Branch(Generic[T]):
    """One of the routines."""

    def __init__(self, routine: Routine[T]) -> None:
        self.result: T | None = None
        self.is_done = False
        self._routine = routine
        self._resume: Callable[[], Any] = lambda: routine.send(None)
        self._waits_for: Operation | NextEnded | None = None
        self._operations: set[Operation] = set()
        """Effects in the background: its own, and those of routines that run within it."""
        self._ended: deque[EndedEffect] = deque()
        """Effects that have ended, and that the routine has not asked for."""

    def advance(self) -> Routine[None]:
        """Run the routine until it waits for an effect in the background, or ends."""
        while self._waits_for is None:
            try:
                effect = self._resume()
            except StopIteration as done:
                self.result, self.is_done = done.value, True
                return
            except BaseException:
                self.is_done = True
                raise
            match effect:
                case Begin():
                    operation = yield effect
                    self._operations.add(operation)
                    self._answer(operation)
                case NextEnded():
                    if self._ended:
                        self._answer(self._ended.popleft())
                    else:
                        self._waits_for = effect
                case Call(is_slow=True, asks_user=False) | Stream() | NextCall() | Sleep():
                    operation = yield Begin(effect)
                    self._operations.add(operation)
                    self._waits_for = operation
                case _:
                    try:
                        value = yield effect
                    except Exception as error:
                        self._fail(error)
                    else:
                        self._answer(value)

    def take(self, ended: EndedEffect) -> bool:
        """Take the end of an effect. Return False if it belongs to another routine."""
        if ended.operation not in self._operations:
            return False
        self._operations.remove(ended.operation)
        if self._waits_for is ended.operation:
            self._waits_for = None
            if ended.error is not None:
                self._fail(ended.error)
            else:
                self._answer(ended.value)
        elif isinstance(self._waits_for, NextEnded):
            self._waits_for = None
            self._answer(ended)
        else:
            self._ended.append(ended)
        return True

    def stop(self, error: BaseException) -> Routine[None]:
        """Raise an error in the routine, and let it clean up: carry out its calls, and drop its events."""
        for operation in self._operations:
            operation.abandon()
        if self.is_done:
            return
        self.is_done = True
        try:
            effect = self._routine.throw(error)
            while True:
                try:
                    value = (yield effect) if isinstance(effect, Call) else None
                except BaseException as other:
                    effect = self._routine.throw(other)
                else:
                    effect = self._routine.send(value)
        except BaseException as other:  # The first error matters more, and the other routines must be stopped too.
            if isinstance(other, Exception) and not isinstance(other, StopIteration):
                _log.warning("a run could not be stopped in order: %s", other)

    def _answer(self, value: object) -> None:
        self._resume = lambda: self._routine.send(value)

    def _fail(self, error: BaseException) -> None:
        self._resume = lambda: self._routine.throw(error)
