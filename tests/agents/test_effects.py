"""Routines with and without asyncio: results of effects, errors, and cleanup."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from foveate.agents import concurrency
from foveate.agents.effects import (
    Call,
    CallTimeout,
    ConsumerGone,
    NextCall,
    Routine,
    StartCalls,
    Stream,
)
from foveate.agents.events import ReasoningDelta, TextDelta
from foveate.agents.performers import perform, perform_async
from foveate.errors import BadSetting
from foveate.ports import Delta, StreamEnd

from .agents import run_routine, run_routine_async


def both(make: Callable[[list[Any]], Routine[Any]]) -> list[Any]:
    """Run a routine with and without asyncio, and return what it noted, which must be the same."""
    noted: list[Any] = []
    events, _ = run_routine(make(noted))
    again: list[Any] = []
    assert run_routine_async(lambda: make(again)) == events
    assert again == noted
    return [*noted, *events]


def raising(error: BaseException) -> Callable[[], object]:
    def call() -> object:
        raise error

    return call


def test_effects_are_carried_out_and_events_are_passed_on():
    def routine(noted: list[Any]) -> Routine[int]:
        noted.append((yield Call(lambda: 3)))
        yield TextDelta("a")
        noted.append((yield Call(lambda: 4, is_slow=True)))
        return 5

    assert both(routine) == [3, 4, TextDelta("a")]
    assert run_routine(routine([]))[1] == 5


def test_an_error_of_an_effect_is_raised_in_the_routine():
    def routine(noted: list[Any]) -> Routine[None]:
        for is_slow in (False, True):
            try:
                yield Call(raising(KeyError("x")), is_slow=is_slow)
            except KeyError as error:
                noted.append(repr(error))
        yield TextDelta("on")

    assert both(routine) == ["KeyError('x')", "KeyError('x')", TextDelta("on")]


def test_an_error_of_the_routine_is_raised_to_the_caller():
    def routine() -> Routine[None]:
        yield Call(raising(KeyError("x")))

    with pytest.raises(KeyError):
        run_routine(routine())
    with pytest.raises(KeyError):
        run_routine_async(routine)


def test_an_awaitable_is_awaited_or_refused():
    async def later() -> int:
        return 7

    def routine(noted: list[Any]) -> Routine[None]:
        noted.append((yield Call(later)))
        noted.append((yield Call(lambda: later(), is_slow=True)))
        batch = yield StartCalls((later,))
        noted.append((yield NextCall(batch)).value)

    noted: list[Any] = []
    run_routine_async(lambda: routine(noted))
    assert noted == [7, 7, 7]
    with pytest.raises(BadSetting, match="Build the async agent"):
        run_routine(routine([]))


PIECES = [
    Delta("reasoning", "hm"),
    Delta("text", "a"),
    Delta("text", ""),
    Delta("call", "{", name="t"),
    StreamEnd("all"),
]


def test_a_stream_yields_its_pieces_and_returns_the_response():
    def routine(noted: list[Any]) -> Routine[None]:
        noted.append((yield Stream(lambda: iter(PIECES))))

    assert both(routine) == ["all", ReasoningDelta("hm"), TextDelta("a")]


def test_an_async_stream_is_refused_without_asyncio():
    async def pieces() -> AsyncIterator[Delta | StreamEnd]:
        for piece in PIECES:
            yield piece

    noted: list[Any] = []

    def routine() -> Routine[None]:
        noted.append((yield Stream(pieces)))

    assert run_routine_async(routine) == [ReasoningDelta("hm"), TextDelta("a")]
    assert noted == ["all"]
    with pytest.raises(BadSetting, match="streams for asyncio"):
        run_routine(routine())


def test_a_stream_without_an_end_is_an_error():
    def routine(noted: list[Any]) -> Routine[None]:
        try:
            yield Stream(lambda: iter(PIECES[:2]))
        except ConnectionError as error:
            noted.append(str(error))

    assert both(routine)[0] == "The stream ended before the answer was complete."


def test_closing_the_events_closes_the_stream_and_lets_the_routine_finish():
    noted: list[str] = []

    def pieces() -> Iterator[Delta | StreamEnd]:
        try:
            yield from PIECES
        finally:
            noted.append("closed")

    def inner() -> Routine[None]:
        try:
            yield Stream(pieces)
        except ConsumerGone:
            yield Call(lambda: noted.append("inner"))
            raise

    def routine() -> Routine[None]:
        try:
            yield from inner()
        except ConsumerGone:
            yield TextDelta("unheard")
            yield Call(lambda: noted.append("outer"))
            raise

    performed = perform(routine())
    assert next(performed) == ReasoningDelta("hm")
    performed.close()
    assert noted == ["closed", "inner", "outer"]

    async def leave() -> None:
        async with aclosing(perform_async(routine())) as events:
            async for _ in events:
                break

    noted.clear()
    asyncio.run(leave())
    assert noted == ["closed", "inner", "outer"]


def test_closing_a_routine_that_has_not_begun_does_nothing():
    def routine() -> Routine[None]:
        yield TextDelta("never")

    perform(routine()).close()
    asyncio.run(perform_async(routine()).aclose())


def test_cancelling_a_task_raises_in_its_routine():
    noted: list[str] = []

    def routine() -> Routine[None]:
        try:
            yield Call(lambda: asyncio.get_running_loop().create_future())
        except asyncio.CancelledError:
            yield Call(lambda: asyncio.sleep(0))
            noted.append("written down")
            raise

    async def listen() -> None:
        async for _ in perform_async(routine()):
            pass

    async def play() -> None:
        task = asyncio.ensure_future(listen())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    assert noted == ["written down"]


def batch(calls: list[Callable[[], object]], **options: Any) -> Callable[[list[Any]], Routine[None]]:
    def routine(noted: list[Any]) -> Routine[None]:
        batch = yield StartCalls(tuple(calls), **options)
        ended = []
        for _ in calls:
            ended.append((yield NextCall(batch)))
        noted += [(item.index, item.value, repr(item.error)) for item in sorted(ended, key=lambda item: item.index)]

    return routine


def test_a_coroutine_of_a_cancelled_call_is_closed(monkeypatch: pytest.MonkeyPatch):
    """The task was cancelled when the call had ended, and had not continued: Python warned of the coroutine."""
    monkeypatch.setattr(concurrency, "start_thread", lambda call: call())

    async def answer() -> str:
        return "late"

    coroutines = [answer()]

    async def play() -> None:
        task = asyncio.ensure_future(concurrency.call_async(lambda: coroutines[0]))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    assert inspect.getcoroutinestate(coroutines[0]) == inspect.CORO_CLOSED


def test_no_call_of_a_batch_ends_the_program():
    calls = [lambda: 1, raising(KeyError("x")), raising(SystemExit(3)), raising(KeyboardInterrupt()), lambda: None]
    assert both(batch(calls, max_parallel=2)) == [
        (0, 1, "None"),
        (1, None, "KeyError('x')"),
        (2, None, "SystemExit(3)"),
        (3, None, "KeyboardInterrupt()"),
        (4, None, "None"),
    ]


def test_a_batch_runs_at_most_max_parallel_calls_at_once():
    lock, open_now, most = threading.Lock(), [0], [0]

    def call() -> int:
        with lock:
            open_now[0] += 1
            most[0] = max(most[0], open_now[0])
        met.wait(0.05)
        with lock:
            open_now[0] -= 1
        return 1

    met = threading.Event()
    both(batch([call] * 7, max_parallel=3))
    assert most[0] <= 3


def test_calls_of_a_batch_run_in_parallel():
    """Each call waits for the other two, so they hang if they run one after another."""
    for perform_it in (run_routine, lambda routine: run_routine_async(lambda: routine)):
        barrier = threading.Barrier(3, timeout=60)
        noted: list[Any] = []
        perform_it(batch([barrier.wait] * 3, timeout=60)(noted))
        assert {error for _, _, error in noted} == {"None"}


def test_a_call_that_exceeds_its_timeout_leaves_others_running():
    never = threading.Event()
    try:
        noted = both(batch([never.wait, lambda: 2, never.wait], timeouts=(0.02, None, 0.01)))
    finally:
        never.set()
    assert [(index, value) for index, value, _ in noted] == [(0, None), (1, 2), (2, None)]
    assert noted[0][2] == repr(CallTimeout(0.02))


def test_calls_that_hang_leave_room_for_others_and_for_the_store():
    """There are more calls than threads in the loop's own pool."""
    never = threading.Event()

    def routine(noted: list[Any]) -> Routine[None]:
        batch = yield StartCalls((never.wait,) * 40, max_parallel=40, timeout=0.01)
        for _ in range(40):
            noted.append(type((yield NextCall(batch)).error))
        noted.append((yield Call(lambda: asyncio.to_thread(lambda: "there"))))

    noted: list[Any] = []
    try:
        run_routine_async(lambda: routine(noted))
    finally:
        never.set()
    assert noted == [CallTimeout] * 40 + ["there"]


def test_a_coroutine_that_ignores_its_cancellation_times_out():
    async def stubborn() -> None:
        for _ in range(3):
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue

    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    noted: list[Any] = []
    run_routine_async(lambda: batch([stubborn, cancels_itself], timeout=0.01)(noted))
    assert noted == [(0, None, repr(CallTimeout(0.01))), (1, None, "RuntimeError('it was cancelled from within')")]


def test_calls_see_the_context_of_the_caller():
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user")
    user.set("ada")
    assert both(batch([user.get])) == [(0, "ada", "None")]


def test_an_abandoned_batch_starts_no_more_calls():
    begun: list[int] = []
    first, go = threading.Event(), threading.Event()

    def call(number: int) -> None:
        begun.append(number)
        first.set()
        go.wait(30)

    def routine() -> Routine[None]:
        batch = yield StartCalls(tuple((lambda n=n: call(n)) for n in range(3)), max_parallel=1)
        yield TextDelta("begun")
        yield NextCall(batch)

    performed = perform(routine())
    next(performed)
    first.wait(30)
    performed.close()
    go.set()
    assert begun == [0]


def test_a_thread_that_hangs_does_not_delay_the_exit():
    import subprocess

    code = (
        "import threading\n"
        "from foveate.agents.effects import NextCall, StartCalls\n"
        "from foveate.agents.performers import perform\n"
        "def routine():\n"
        "    batch = yield StartCalls((threading.Event().wait,), timeout=0.01)\n"
        "    print((yield NextCall(batch)).error)\n"
        "list(perform(routine()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "no answer within 0.01 seconds\n")
