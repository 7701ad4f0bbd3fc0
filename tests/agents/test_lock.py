"""The lock on a conversation: waiting, dead owners, and heartbeats."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from foveate import ChatAgent, LoopAgent, Options, StoreError, open_conversation
from foveate.agents import lock
from foveate.agents.effects import Call, Sleep
from foveate.agents.lock import ConversationLock, Heartbeat, forget_owner, heartbeat_of, new_owner, owner_state
from foveate.agents.performers import perform, perform_async
from foveate.core.runs import LockHolder
from foveate.errors import BadSetting, ConversationBusy
from foveate.stores.memory import MemoryStore
from foveate.testing import ScriptedModel

ELSEWHERE = "0123456789abcdef:77:1:00"
"""An owner on another machine."""


class World:
    """A conversation with another lock owner, and a stopwatch that runs only while the lock waits."""

    def __init__(self, owner: str = ELSEWHERE) -> None:
        self.chat = open_conversation("one", window=10_000)
        self.chat._agent.acquire_lock(owner)
        self.now, self.heartbeat = 0.0, Heartbeat()

    def hold(self, lock_timeout: float = 30.0) -> ConversationLock:
        return ConversationLock(
            self.chat, lock_timeout=lock_timeout, stopwatch=lambda: self.now, heartbeat=self.heartbeat
        )

    def waited(
        self, hold: ConversationLock, beats: tuple[float, ...] = (), owner: str = ELSEWHERE, release: float = 1e9
    ) -> float:
        """Return the seconds until the lock is held. `beats`: heartbeats of the other owner; `release`: its end."""
        due = sorted(beats)

        def work() -> Any:
            return self.now
            yield

        act = hold.hold(work)
        step, given = act.send, cast(Any, None)
        try:
            while True:
                wished, step, given = step(given), act.send, None
                match wished:
                    case Call(what):
                        try:
                            given = what()
                        except Exception as error:
                            step, given = cast(Any, act.throw), error
                    case Sleep(seconds):
                        self.now += seconds
                while due and due[0] <= self.now:
                    due.pop(0)
                    self.chat._agent.acquire_lock(owner)
                if self.now >= release:
                    self.chat._agent.release_lock(owner)
        except StopIteration as done:
            return float(done.value)


def test_a_free_lock_is_acquired_at_once_and_released_after_use():
    world = World()
    world.chat._agent.release_lock(ELSEWHERE)
    assert world.waited(world.hold()) == 0
    assert world.chat._agent.acquire_lock("next").owner == "next"


def test_the_lock_waits_for_another_owner():
    world = World()
    assert 12 <= world.waited(world.hold(), beats=(5, 10), release=12) < 12.6


def test_an_owner_with_heartbeats_is_never_taken_for_dead():
    world = World()
    with pytest.raises(ConversationBusy, match="did not finish within 30 seconds") as told:
        world.waited(world.hold(), beats=tuple(range(5, 100, 5)))
    assert told.value.owner == ELSEWHERE
    assert 30 <= world.now < 31
    assert world.chat._agent.acquire_lock("me").owner == ELSEWHERE


@given(beats=st.lists(st.floats(0, 60), max_size=8))
def test_a_remote_owner_is_dead_after_twenty_seconds_of_silence(beats: list[float]):
    """Silence is measured by the stopwatch of the waiting agent, never by the wall clock."""
    moments = [0.0, *sorted(beats), 1e9]
    gaps = list(pairwise(moments))
    assume(not any(19 < later - earlier < 21 for earlier, later in gaps))  # A look is at most half a second late.
    last = next(earlier for earlier, later in gaps if later - earlier >= 20)
    world = World()
    assert 20 <= world.waited(world.hold(lock_timeout=1e6), beats=tuple(beats)) - last < 21.1


def test_a_dead_remote_owner_is_detected_even_without_a_timeout():
    world = World()
    assert 20 <= world.waited(world.hold(lock_timeout=0)) < 20.6
    world = World()
    with pytest.raises(ConversationBusy):
        world.waited(world.hold(lock_timeout=0), beats=(1,))
    assert world.now < 2


def test_a_clock_that_goes_back_releases_no_lock():
    """The conversation's clock is used for time stamps only."""
    world, times = World(), iter(range(10**9, 0, -(10**6)))
    world.chat = open_conversation("one", window=10_000, options=Options(clock=lambda: next(times)))
    world.chat._agent.acquire_lock(ELSEWHERE)
    with pytest.raises(ConversationBusy):
        world.waited(world.hold(lock_timeout=30), beats=(1, 15, 29))
    assert world.chat._agent.acquire_lock("me").owner == ELSEWHERE


def test_an_owner_with_a_live_process_has_a_minute():
    owner = new_owner()
    world = World(owner)
    assert 60 <= world.waited(world.hold(lock_timeout=100)) < 60.6
    world = World(owner)
    with pytest.raises(ConversationBusy, match="within 0 seconds"):
        world.waited(world.hold(lock_timeout=0))
    assert world.now == 0
    forget_owner(owner)
    assert world.waited(world.hold()) == 0


def test_a_heartbeat_in_the_last_moment_counts():
    """The heartbeat arrives between the look and the takeover, which fails then."""
    world = World()
    hold, is_late = world.hold(lock_timeout=25), False
    real = world.chat._agent.acquire_lock

    def acquire(owner: str, replaces: LockHolder | None = None) -> LockHolder:
        nonlocal is_late
        if replaces is not None and not is_late:
            is_late = True
            real(ELSEWHERE)
        return real(owner, replaces)

    world.chat._agent.acquire_lock = acquire  # type: ignore[method-assign]
    with pytest.raises(ConversationBusy):
        world.waited(hold)
    assert is_late
    assert not hold.took_over


def test_a_database_that_stands_still_kills_no_owner():
    """A slow database delays heartbeats as well as looks."""
    world, looks = World(), 0
    real = world.chat._agent.acquire_lock

    def acquire(owner: str, replaces: LockHolder | None = None) -> LockHolder:
        nonlocal looks
        looks += owner != ELSEWHERE
        if looks == 2:
            world.now += 1_000.0
        return real(owner, replaces)

    world.chat._agent.acquire_lock = acquire  # type: ignore[method-assign]
    hold = world.hold(lock_timeout=2_000)
    assert world.waited(hold, beats=(1_001.0, 1_006.0), release=1_007.0) == pytest.approx(1_007.0, abs=0.6)
    assert not hold.took_over


def test_the_lock_knows_whether_it_was_taken_over():
    world = World()
    hold = world.hold()
    world.waited(hold)
    assert hold.took_over
    world.waited(hold)
    assert not hold.took_over


def test_a_lock_that_cannot_be_released_counts_as_dead(caplog: pytest.LogCaptureFixture):
    world = World()
    world.chat._agent.release_lock(ELSEWHERE)
    hold, release = world.hold(), world.chat._agent.release_lock

    def failing(owner: str) -> None:
        raise StoreError("gone")

    world.chat._agent.release_lock = failing  # type: ignore[method-assign]
    world.waited(hold)
    assert "the lock could not be released: gone" in caplog.text
    world.chat._agent.release_lock = release  # type: ignore[method-assign]
    assert world.chat._agent.acquire_lock("next").owner == hold.owner
    assert owner_state(hold.owner) == "dead"
    assert world.waited(world.hold(lock_timeout=0)) == 0


# -------------------------------------------------------------------------------------------------------------- owners


def test_an_owner_of_this_process_is_alive_until_it_is_forgotten():
    owner = new_owner()
    assert owner_state(owner) == "alive"
    forget_owner(owner)
    assert owner_state(owner) == "dead"
    assert new_owner() != owner


def test_owners_are_known_without_proc_files(monkeypatch: pytest.MonkeyPatch):
    """As on macOS: no names of boots and containers, and no start times of processes."""

    def nothing(*_: object, **__: object) -> str:
        raise FileNotFoundError

    lock._machine.cache_clear()
    monkeypatch.setattr(lock.Path, "read_text", nothing)
    owner = new_owner()
    assert owner.split(":")[2] == ""
    assert owner_state(owner) == "alive"
    forget_owner(owner)
    assert owner_state(owner) == "dead"
    child = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL)
    theirs = f"{owner.split(':')[0]}:{child.pid}::00"
    assert owner_state(theirs) == "alive"  # It is a zombie until its parent waits for it.
    child.wait()
    assert owner_state(theirs) == "dead"
    lock._machine.cache_clear()


@pytest.mark.parametrize("owner", ["", "me", "a:b:c:d", ELSEWHERE, "::::", "é:1:1:1"])
def test_owners_of_other_machines_are_unknown(owner: str):
    assert owner_state(owner) == "unknown"


def test_a_local_process_is_alive_and_then_dead():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True)
    machine, _, _, name = new_owner().split(":")
    owner = f"{machine}:{child.pid}:{lock._process_start(child.pid)}:{name}"
    assert owner_state(owner) == "alive"
    child.kill()
    child.wait()
    assert child.stdin is not None
    child.stdin.close()
    assert owner_state(owner) == "dead"


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="Only Linux tells when a process began.")
def test_zombies_and_reused_process_numbers_are_dead():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    machine, _, _, name = new_owner().split(":")
    began = lock._process_start(child.pid)  # Read it while the process runs: the system forgets it afterwards.
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert owner_state(f"{machine}:{child.pid}:{began}:{name}") == "dead"
    child.communicate()
    parent = os.getppid()
    assert owner_state(f"{machine}:{parent}:{lock._process_start(parent)}:{name}") == "alive"
    assert owner_state(f"{machine}:{parent}:1:{name}") == "dead"


# ---------------------------------------------------------------------------------------------------------- heartbeats


def test_heartbeats_are_sent_for_every_owner_until_it_stops():
    told: list[str] = []
    heard = threading.Event()

    def beat(name: str, follows: bool = True) -> bool:
        told.append(name)
        if told.count("a") == 2:
            heard.set()
        return follows

    heartbeat = Heartbeat(interval=0.001)
    heartbeat.start("b", lambda: beat("b", follows=False))
    heartbeat.start("a", lambda: beat("a"))
    assert heard.wait(60)
    thread = heartbeat._thread
    heartbeat.stop("a")
    assert thread is not None
    thread.join(60)
    assert not thread.is_alive()
    assert told.count("b") == 1  # Another owner had taken over.
    heard.clear()
    told.clear()
    heartbeat.start("a", lambda: beat("a"))  # The thread starts again.
    assert heard.wait(60)
    heartbeat.stop("a")


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="This system cannot fork.")
def test_a_forked_child_sends_no_heartbeat_for_its_parent():
    said = """if True:
        import os, warnings
        from foveate.agents.lock import heartbeat_of
        from foveate.stores.memory import MemoryStore
        warnings.simplefilter("ignore")
        store = MemoryStore()
        heartbeat = heartbeat_of(store)
        heartbeat.start("parent", lambda: True)
        if child := os.fork():
            raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        was = dict(heartbeat._beats)
        heartbeat_of(store).start("child", lambda: True)
        os._exit(0 if was == {} and heartbeat._thread.is_alive() else 1)
    """
    assert subprocess.run([sys.executable, "-c", said], timeout=120).returncode == 0


def test_the_next_owner_starts_the_thread_if_the_first_could_not(monkeypatch: pytest.MonkeyPatch):
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    heartbeat, is_told = Heartbeat(interval=0.001), threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            heartbeat.start("a", lambda: True)
    heartbeat.stop("a")
    heartbeat.start("b", lambda: bool(is_told.set()))
    assert is_told.wait(60)


@pytest.mark.parametrize("at", ["__setitem__", "copy"])
def test_an_owner_collected_as_garbage_during_a_heartbeat_stops(at: str):
    """Garbage collection can run during `start` or `beat` and call `stop` there."""
    heartbeat = Heartbeat(interval=30)

    class Collecting(dict[str, Any]):
        pass

    def collect(beats: Any, *arguments: Any) -> Any:
        heartbeat.stop("left")
        return getattr(dict, at)(beats, *arguments)

    setattr(Collecting, at, collect)
    heartbeat._beats = Collecting(left=lambda: True)
    worker = threading.Thread(target=lambda: (heartbeat.start("b", lambda: True), heartbeat.beat()), daemon=True)
    worker.start()
    worker.join(60)
    assert (worker.is_alive(), set(heartbeat._beats)) == (False, {"b"})
    heartbeat.stop("b")


def test_a_store_that_hangs_does_not_delay_heartbeats_of_others():
    hung, other = MemoryStore(), MemoryStore()
    heartbeats = heartbeat_of(hung), heartbeat_of(other)
    for heartbeat in heartbeats:
        heartbeat._interval = 0.001
    follows, hangs, is_told = threading.Event(), threading.Event(), threading.Event()
    heartbeats[0].start("a", lambda: bool(hangs.set()) or follows.wait(120))
    assert hangs.wait(60)
    heartbeats[1].start("b", lambda: is_told.set() is None)
    assert is_told.wait(60)
    follows.set()
    for heartbeat, owner in zip(heartbeats, "ab", strict=True):
        heartbeat.stop(owner)
    assert (heartbeat_of(hung), heartbeat_of(other)) == heartbeats


def test_a_store_that_is_not_hashable_has_heartbeats():
    class Plain:
        __slots__ = ("__dict__",)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Plain)

    one, other = Plain(), Plain()
    heartbeat = heartbeat_of(one)
    assert heartbeat_of(one) is heartbeat
    assert heartbeat_of(other) is not heartbeat


def test_a_failed_heartbeat_is_sent_again():
    heartbeat, failing = Heartbeat(interval=1e6), [StoreError("away")]
    told: list[int] = []

    def beat() -> bool:
        if failing:
            raise failing.pop()
        told.append(1)
        return True

    heartbeat._beats["a"] = beat
    heartbeat.beat()
    heartbeat.beat()
    assert told == [1]


def test_an_agent_sends_heartbeats_while_its_model_works():
    seen: list[bool] = []
    chat = open_conversation("one", window=10_000, format="anthropic")
    heartbeat = Heartbeat(interval=1e6)

    def think(_: Any) -> str:
        before = chat._agent.acquire_lock("other")
        heartbeat.beat()
        seen.append(chat._agent.acquire_lock("other") == LockHolder(before.owner, before.heartbeats + 1))
        return "Hello."

    with ChatAgent(ScriptedModel(think), conversation=chat) as agent:
        agent._loop._lock._heartbeat = heartbeat
        agent.send("Hi.")
    assert seen == [True]
    assert heartbeat._beats == {}


# -------------------------------------------------------------------------------------------------------------- agents


@pytest.mark.parametrize("lock_timeout", [-1, "30", True, float("nan"), float("inf"), None])
@pytest.mark.parametrize("kind", [ChatAgent, LoopAgent])
def test_lock_timeout_must_be_a_number_of_seconds(kind: Any, lock_timeout: Any):
    with pytest.raises(BadSetting, match="lock_timeout= must be a number of seconds, 0 or more"):
        kind(ScriptedModel([]), window=10_000, lock_timeout=lock_timeout)


def test_sleep_works_with_and_without_asyncio():
    def act() -> Any:
        assert (yield Sleep(0.0)) is None

    assert list(perform(act())) == []

    async def later() -> list[Any]:
        return [event async for event in perform_async(act())]

    assert asyncio.run(later()) == []
