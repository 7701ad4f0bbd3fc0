"""Routines in parallel: order, limits, errors, stops and streams, with and without asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from foveate.agents.effects import Call, ConsumerGone, NextCall, Routine, Sleep, StartCalls, Stream
from foveate.agents.events import TextDelta
from foveate.agents.parallel import RunAborted, in_parallel
from foveate.agents.performers import perform, perform_async
from foveate.ports import Delta, StreamEnd

from .agents import run_routine, run_routine_async

Runner = Callable[[Callable[[], Routine[Any]]], Any]
RUNNERS = [lambda make: run_routine(make())[0], run_routine_async]
each_runner = pytest.mark.parametrize("run", RUNNERS, ids=["sync", "async"])


def slow(function: Callable[[], object]) -> Call:
    return Call(function, is_slow=True)


@each_runner
def test_slow_calls_of_all_routines_run_at_once(run: Runner):
    """Each call waits for the other two, so they hang if they run one after another."""
    barrier = threading.Barrier(3, timeout=60)
    results: list[list[str]] = []

    def work(name: str) -> Routine[str]:
        yield slow(barrier.wait)
        return name

    def routine() -> Routine[None]:
        results.append((yield from in_parallel([work(name) for name in "abc"], 3)))

    run(routine)
    assert results == [["a", "b", "c"]]


@each_runner
def test_at_most_max_parallel_routines_have_begun_and_not_ended(run: Runner):
    working: list[int] = []
    most = 0

    def work(number: int) -> Routine[int]:
        nonlocal most
        working.append(number)
        most = max(most, len(working))
        yield Sleep(0.001)
        working.remove(number)
        return number

    def routine() -> Routine[None]:
        assert (yield from in_parallel([work(number) for number in range(7)], 2)) == list(range(7))

    run(routine)
    assert most == 2


@each_runner
def test_quick_calls_and_questions_are_made_one_at_a_time(run: Runner):
    """A call that asks the user blocks the other routines, so that two questions never meet."""
    asking: list[str] = []
    threads: set[int] = set()

    def ask(name: str) -> str:
        asking.append(name)
        threads.add(threading.get_ident())
        assert asking == [name]
        time.sleep(0.002)
        asking.remove(name)
        return name

    def work(name: str) -> Routine[str]:
        yield slow(lambda: None)
        quick = yield Call(lambda: ask(name))
        return quick + (yield Call(lambda: ask(name), is_slow=True, asks_user=True))

    def routine() -> Routine[None]:
        assert (yield from in_parallel([work(name) for name in "abcd"], 4)) == ["aa", "bb", "cc", "dd"]

    run(routine)
    if run is RUNNERS[0]:
        assert threads == {threading.get_ident()}


@each_runner
def test_batches_and_streams_of_several_routines_do_not_mix(run: Runner):
    def pieces(name: str) -> Iterator[Delta | StreamEnd]:
        for place in range(3):
            yield Delta("text", f"{name}{place}")
        yield StreamEnd(name)

    def work(name: str) -> Routine[list[Any]]:
        batch = yield StartCalls((lambda: f"{name}0", lambda: f"{name}1"))
        first, second = (yield NextCall(batch)), (yield NextCall(batch))
        whole = yield Stream(lambda: pieces(name), path=((name, "s"),))
        return [*sorted([first.value, second.value]), whole]

    results: list[Any] = []

    def routine() -> Routine[None]:
        results.extend((yield from in_parallel([work("a"), work("b")], 2)))

    events = run(routine)
    assert results == [["a0", "a1", "a"], ["b0", "b1", "b"]]
    for name in "ab":
        assert [event.event.text for event in events if event.agent == name] == [f"{name}{place}" for place in range(3)]


@each_runner
def test_routines_in_parallel_may_run_others_in_parallel(run: Runner):
    barrier = threading.Barrier(4, timeout=60)

    def leaf(name: str) -> Routine[str]:
        yield slow(barrier.wait)
        yield TextDelta(name)
        yield Sleep(0.001)
        return name

    def branch(names: str) -> Routine[str]:
        yield slow(lambda: None)
        return "".join((yield from in_parallel([leaf(name) for name in names], 2)))

    results: list[str] = []

    def routine() -> Routine[None]:
        results.extend((yield from in_parallel([branch("ab"), branch("cd")], 2)))

    events = run(routine)
    assert results == ["ab", "cd"]
    assert sorted(event.text for event in events) == list("abcd")


@each_runner
def test_an_error_stops_the_other_routines_and_is_raised(run: Runner):
    never = threading.Event()
    noted: list[str] = []

    def fails() -> Routine[None]:
        yield slow(lambda: None)
        raise KeyError("x")

    def waits(effect: Any) -> Routine[None]:
        try:
            yield effect
        except RunAborted as error:
            why = str(error)
            yield Call(lambda: noted.append(why))
            raise

    def pieces() -> Iterator[Delta | StreamEnd]:
        never.wait()
        yield StreamEnd("all")

    def within() -> Routine[None]:
        yield from in_parallel([waits(slow(never.wait)), waits(Stream(pieces))], 2)

    def routine() -> Routine[None]:
        yield from in_parallel([waits(slow(never.wait)), within(), fails(), waits(slow(never.wait))], 3)

    try:
        with pytest.raises(KeyError):
            run(routine)
    finally:
        never.set()
    assert noted == ["the agent around it failed: KeyError"] * 3  # The last routine had not begun.


@each_runner
def test_an_error_of_an_effect_is_raised_in_its_routine_only(run: Runner):
    def boom() -> None:
        raise KeyError("x")

    def work(effect: Any) -> Routine[str]:
        try:
            yield effect
        except KeyError:
            return "caught"
        return "fine"

    def routine() -> Routine[None]:
        effects = [slow(boom), slow(lambda: None), Call(boom), Call(lambda: None)]
        assert (yield from in_parallel([work(effect) for effect in effects], 4)) == ["caught", "fine", "caught", "fine"]

    run(routine)


def test_closing_the_events_stops_every_routine_where_it_waits():
    never = threading.Event()
    noted: list[str] = []

    def work(name: str, effect: Any) -> Routine[None]:
        try:
            yield effect
            yield TextDelta("b")
        except ConsumerGone:
            yield TextDelta("unheard")
            yield Call(lambda: noted.append(name))
            raise

    def routine() -> Routine[None]:
        waits = [work("waits", slow(never.wait)), work("sleeps", Sleep(30))]
        yield from in_parallel([*waits, work("speaks", TextDelta("a"))], 3)

    events = perform(routine())
    assert next(events) == TextDelta("a")
    start = time.monotonic()
    events.close()
    assert noted == ["waits", "sleeps", "speaks"]

    async def leave() -> None:
        async with aclosing(perform_async(routine())) as items:
            async for _ in items:
                break

    noted.clear()
    asyncio.run(leave())
    never.set()
    assert noted == ["waits", "sleeps", "speaks"]
    assert time.monotonic() - start < 20


def test_an_abandoned_stream_is_closed_and_reports_nothing():
    closed, asked, go = threading.Event(), threading.Event(), threading.Event()

    def pieces() -> Iterator[Delta | StreamEnd]:
        try:
            yield Delta("text", "a")
            asked.set()
            go.wait(30)
            yield Delta("text", "b")
            yield Delta("text", "c")
        finally:
            closed.set()

    def follow() -> Routine[None]:
        yield Stream(pieces)

    def fail() -> Routine[None]:
        yield slow(lambda: asked.wait(30))
        raise KeyError("x")

    def routine() -> Routine[None]:
        try:
            yield from in_parallel([follow(), fail()], 2)
        except KeyError:
            go.set()
            yield from in_parallel([follow_nothing(), follow_nothing()], 2)

    def follow_nothing() -> Routine[None]:
        yield slow(lambda: closed.wait(30))

    events, _ = run_routine(routine())
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a"]
    assert closed.is_set()


def test_cancelling_the_task_stops_every_routine():
    noted: list[str] = []

    def work(name: str) -> Routine[None]:
        try:
            yield slow(lambda: asyncio.sleep(30))
        except asyncio.CancelledError:
            yield Call(lambda: asyncio.sleep(0))
            noted.append(name)
            raise

    def routine() -> Routine[None]:
        yield from in_parallel([work("a"), work("b")], 2)

    async def listen() -> None:
        async for _ in perform_async(routine()):
            pass

    async def play() -> None:
        task = asyncio.ensure_future(listen())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    assert noted == ["a", "b"]


def test_a_single_routine_runs_in_the_thread_of_the_consumer():
    def work() -> Routine[int]:
        return (yield slow(threading.get_ident))

    def routine() -> Routine[None]:
        assert (yield from in_parallel([work()], 3)) == [threading.get_ident()]
        assert (yield from in_parallel([], 3)) == []

    run_routine(routine())
