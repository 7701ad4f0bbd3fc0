"""Clocks that go wrong: set back by an hour or to 1970, a century ahead and back, to and fro.

Positions define the order and turns define ages, so no view depends on the clock. Measured times (whether a provider's
cache is warm, the length of a run, its limits) are never negative.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foveate
from foveate.agents.limits import Limits
from foveate.cli.app import main
from foveate.core.call_context import Prices
from foveate.core.economy import is_cold
from foveate.core.runs import AgentRun, AgentRunStep
from foveate.ops.archive import export_archive, import_archive
from foveate.ops.retention import age_conversation
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import ScriptedModel, agent_run, call

NOW = 1_790_000_000_000
HOUR = 3_600_000
CENTURY = 100 * 365 * 24 * HOUR

CLOCKS: dict[str, Callable[[int], int]] = {
    "back an hour": lambda look: NOW + 1000 * look - (HOUR if look > 40 else 0),
    "back to 1970": lambda look: NOW + 1000 * look if look <= 40 else 1000 * (look - 41),
    "always 1970": lambda look: 0,
    "a century ahead and back": lambda look: NOW + 1000 * look + (CENTURY if 20 < look <= 60 else 0),
    "to and fro": lambda look: NOW + (7919 * look % 101 - 50) * HOUR,
    "backwards": lambda look: NOW - 1000 * look,
}
"""By how it goes wrong: the time, in milliseconds since 1970, when it is looked at for the n-th time."""

BY_TURNS = ["prune", "keep-last-5", "expire", "retain", "checkpoint", "recap", "none"]
"""Presets in which nothing is weighed by what a provider's cache holds."""


def ticking(time_of: Callable[[int], int]) -> Callable[[], int]:
    looks = count(1)
    return lambda: time_of(next(looks))


def steady(look: int) -> int:
    return NOW + 1000 * look


def talked(store: Any, policy: str, clock: Callable[[], int], turns: int = 8) -> list[Any]:
    """Return the view of each call of a conversation with many results."""
    shown = []
    opened = foveate.open_conversation(
        "one",
        store=store,
        window=8_000,
        policy=policy,
        summarizer=lambda request: "They went on.",
        options=foveate.Options(clock=clock),
    )
    with opened as chat:
        for message in agent_run(turns, 3, result_chars=(200, 3_000)):
            if message.role == "assistant":
                assert chat.view.call.idle is None or chat.view.call.idle >= 0
                shown.append(chat.prompt())
            chat.append(message)
        assert chat.journal.verify() == []
    return shown


@cache
def as_always(policy: str, turns: int = 8) -> list[Any]:
    return talked(MemoryStore(), policy, ticking(steady), turns)


@pytest.mark.parametrize("policy", BY_TURNS)
@pytest.mark.parametrize("wrong", CLOCKS)
def test_view_does_not_depend_on_the_clock(policy: str, wrong: str) -> None:
    assert talked(MemoryStore(), policy, ticking(CLOCKS[wrong])) == as_always(policy)


@pytest.mark.parametrize("policy", ["balanced", "frugal", "coding"])
@pytest.mark.parametrize("wrong", CLOCKS)
def test_view_stays_within_the_window_for_any_clock(policy: str, wrong: str) -> None:
    shown = talked(MemoryStore(), policy, ticking(CLOCKS[wrong]))
    assert len(shown) == 8
    assert all(len(json.dumps(prompt["messages"])) < 4 * 8_000 * 1.5 for prompt in shown)


@settings(max_examples=max(settings.default.max_examples // 4, 10))
@given(times=st.lists(st.integers(0, 2**53), min_size=1, max_size=30))
def test_any_clock_loses_nothing_and_keeps_the_view(times: list[int]) -> None:
    store = MemoryStore()
    texts_seen = talked(store, "prune", ticking(lambda look: times[look % len(times)]), turns=5)
    assert texts_seen == as_always("prune", 5)
    head = store.open("", "one")
    assert [row.position for row in store.messages(head, 1, head.position)] == [*range(1, head.position + 1)]


@pytest.mark.parametrize("wrong", CLOCKS)
def test_stamps_keep_the_time_through_export_and_import(tmp_path: Path, wrong: str) -> None:
    with SqliteStore(tmp_path / "chat.db", clock=ticking(CLOCKS[wrong])) as store:
        talked(store, "prune", ticking(CLOCKS[wrong]), turns=6)
        head = store.open("", "one")
        rows, records = store.messages(head, 1, head.position), store.records(head)
        export_archive(store, tmp_path / "one.jsonl")
    with SqliteStore(tmp_path / "chat.db", clock=ticking(CLOCKS[wrong])) as store:  # And opened at another time.
        assert store.open("", "one") == head
        assert store.verify(head) == []
        with foveate.open_conversation(
            "one", store=store, window=12_000, options=foveate.Options(clock=lambda: 5)
        ) as chat:
            chat.append({"role": "user", "content": "in 1970"})
            assert chat.history()[-1].stamp.time == 5
            assert chat.journal.verify() == []
    with SqliteStore(tmp_path / "other.db") as other:
        import_archive(other, tmp_path / "one.jsonl")
        head = other.open("", "one")
        assert (other.messages(head, 1, head.position), other.records(head)) == (rows, records)
        assert other.verify(head) == []


# ------------------------------------------------------------------------------------------- what is measured in time


def test_cache_stays_warm_when_the_clock_is_set_back() -> None:
    now = [NOW]
    prices = Prices(cache_seconds=300)
    with foveate.open_conversation(
        "one", window=12_000, options=foveate.Options(prices=prices, clock=lambda: now[0])
    ) as chat:
        chat.append({"role": "user", "content": "hi"})
        assert is_cold(chat.view, prices)  # Nothing was asked yet.
        chat.prompt()
        chat.append({"role": "assistant", "content": "hello"})
        texts_seen = []
        for then in (NOW + 1000, NOW - HOUR, 1, NOW + 299_000, NOW + 301_000):
            now[0] = then
            texts_seen.append((chat.view.call.idle, is_cold(chat.view, prices)))
    assert texts_seen == [(1.0, False), (0.0, False), (0.0, False), (299.0, False), (301.0, True)]


def slow_agent(times: list[int], **options: Any) -> foveate.ReActAgent:
    """Return an agent that calls its tool for ever. Each look at its clock returns the next of these times."""
    looks = iter(times)
    script = (call(f"c{n}", "look") for n in range(100))
    last = [0]

    def clock() -> int:
        last[0] = next(looks, last[0] + 1000)
        return last[0]

    def look() -> str:
        """Look."""
        return "nothing"

    model = ScriptedModel(script, "anthropic")
    return foveate.ReActAgent(model, name="me", tools=[look], window=50_000, clock=clock, policy="none", **options)


def test_clock_set_back_gives_a_run_no_more_time() -> None:
    """The clock advances a second a look, and goes back an hour in the middle; the run still ends at its limit."""
    times = [NOW + 1000 * look - (HOUR if look > 8 else 0) for look in range(60)]
    with slow_agent(times, limits=Limits(seconds=20, turns=40)) as agent:
        run = agent.run("Look on.").run
        assert (run.state, run.reason) == ("stopped", "time")
        assert run.turns < 12
        assert run.ended < run.begun  # As the clock said. Nothing is made up.


def test_run_with_end_before_start_has_no_duration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    with foveate.open_store(url) as store:
        head = store.open("", "one")
        store.put_run(head, AgentRun("r1", "me", "one", "Look.", state="done", begun=NOW, ended=NOW - HOUR))
        store.put_run(head, AgentRun("r2", "me", "one", "Look.", state="done", begun=2**60, ended=2**61))
        store.put_step(head, AgentRunStep("r1", 1, "action", "look", state="done", begun=NOW, ended=1))
    shown = []
    for command in (["list", "one"], ["show", "one", "r1"], ["show", "one", "r2"]):
        assert main(["db", "run", *command, "--store", url]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[1].splitlines()[1].startswith("done, started 2026-09-21 14:13:20 UTC, took 0.0 s, ")
    assert "1. action look  done, turn 0, took 0.0 s" in shown[1]
    assert shown[2].splitlines()[1].startswith(f"done, started {2**60} ms")


def test_clock_set_back_makes_nothing_too_old() -> None:
    store = MemoryStore()
    talked(store, "none", ticking(steady), turns=4)
    for wrong in (0, NOW - HOUR, NOW + 1000):
        aged = age_conversation(store, "one", {"all": "1 hour, even shown"}, clock=lambda now=wrong: now)
        assert (aged.kinds, aged.runs) == ((), 0)
