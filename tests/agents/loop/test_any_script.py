"""Loop agents with any answers of the model: no errors, legal requests, and results that age by model calls only."""

from __future__ import annotations

import asyncio
import json
import warnings
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import AsyncLoopAgent, Limits, LoopAgent
from foveate.agents import Outcome, tool
from foveate.testing import ScriptedModel
from foveate.types import Lease

from .scripts import act, ask, done, expand, fail, hand, next_step, options, texts, think

LEASES = st.none() | st.builds(
    Lease,
    st.none() | st.integers(0, 3),
    st.sampled_from([None, "none", "remove", "compact"]),
    st.sampled_from([None, "first_chars"]),
    st.none() | st.integers(1, 300),
    preserve_original=st.none() | st.booleans(),
)
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["long", "short", "broken", "odd", "fly"]),
        st.dictionaries(st.sampled_from(["size", "x"]), st.integers(0, 3), max_size=1),
    ),
    max_size=4,
)
STEPS = st.one_of(
    ACTIONS.map(lambda actions: act(*actions)),
    st.integers(-2, 12).map(expand),
    st.integers(0, 14).map(lambda place: expand(f"m{place}")),
    st.sampled_from(
        [think(), think(""), "?", "", "{", '{"taskComplete": 1}', hand("helper", "Help."), hand("none", "x")]
    ),
    st.integers(0, 9).map(lambda place: next_step(type="expand-message", message=f"m{place}", lines="1-2")),
    st.sampled_from([done(), fail("no"), ask("What?")]),
)


def long(size: int = 1) -> str:
    """A long result."""
    return "long " * 100 * (size + 1)


def short() -> list[int]:
    """A short result."""
    return [1, 2]


def broken() -> None:
    """Fail."""
    raise ValueError("broken\ud800")


def odd() -> object:
    """Something unreadable."""
    return object()


def agent_of(kind: Any, model: ScriptedModel, leases: list[Lease | None], how: dict[str, Any]) -> Any:
    names = (long, short, broken, odd)
    actions = [tool(one, lease=lease) for one, lease in zip(names, leases, strict=True)]
    inner = kind(name="helper", actions=actions, result_lease=leases[0], limits=Limits(turns=3))
    return kind(model, actions=actions, sub_agents=[inner], limits=Limits(turns=12), **options(**how))


@settings(max_examples=settings.default.max_examples // 2)
@given(
    script=st.lists(STEPS, max_size=12),
    leases=st.lists(LEASES, min_size=4, max_size=4),
    how=st.fixed_dictionaries(
        {
            "merge_results": st.booleans(),
            "announce_expansions": st.booleans(),
            "message_expiration_override": LEASES,
            "policy": st.sampled_from(["expire", "balanced", "none"]),
            "window": st.sampled_from([4_000, 100_000]),
        }
    ),
    provider=st.sampled_from(["anthropic", "openai"]),
)
def test_no_script_breaks_an_agent(script: list[str], leases: list[Lease | None], how: dict[str, Any], provider: str):
    """The scripted model refuses illegal requests. Sync and async agents behave the same."""
    answers = [*script, *[done()] * 20]
    model = ScriptedModel(answers, provider, strict=True)
    with agent_of(LoopAgent, model, leases, how) as agent:
        outcome: Outcome = agent.run("Go.")
        chat = agent.conversation
        run = outcome.run
        rows, steps, view = chat.history(), chat.journal.steps(run.id), chat.view
    assert not any("IllegalRequest" in row.message.text or "AssertionError" in row.message.text for row in rows)
    assert run.state in ("done", "failed", "waiting", "stopped")
    assert all(step.state != "running" for step in steps)
    calls = sum(step.kind == "model" for step in steps)
    assert calls == run.turns
    assert view.turn == calls + 1
    turn = {f"{run.id}/{step.number}": step.turn for step in steps}
    for row in rows:
        if row.stamp.step in turn:  # All results of a model call have the age of that call.
            assert row.stamp.turn == turn[row.stamp.step]

    async def later() -> tuple[Outcome, ScriptedModel]:
        other = ScriptedModel(answers, provider, strict=True, asynchronous=True)
        async with agent_of(AsyncLoopAgent, other, leases, how) as twin:
            return await twin.run("Go."), other

    found, other = asyncio.run(later())
    assert (found.text, found.run.state, found.run.turns) == (outcome.text, run.state, run.turns)
    assert other.requests == model.requests


@settings(max_examples=settings.default.max_examples // 3)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.integers(0, 3))
def test_a_result_is_whole_for_its_turns_despite_other_actions(batches: list[int], turns: int):
    lease = Lease(turns, "compact", "first_chars", 100)
    first, filler = tool(long, name="first", lease=lease), tool(short)
    script = [act("first"), *(act(*["short"] * size) for size in batches), *[think()] * 5, done()]
    model = ScriptedModel(script)
    with warnings.catch_warnings(), LoopAgent(model, actions=[first, filler], **options()) as agent:
        warnings.simplefilter("ignore")
        agent.run(json.dumps(batches))
    whole = [len(texts(request)[2]) > 900 for request in model.requests[1:]]
    assert whole == [age <= turns for age in range(1, len(whole) + 1)]
