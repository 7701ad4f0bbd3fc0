"""The frontier has no beaten point, and no replay that shows everything costs less than the clairvoyant limit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.core.call_context import Prices
from foveate.core.sizes import tokens_of
from foveate.replay.run import replay
from foveate.testing import agent_run, answer, call, calls, say, system, user
from foveate.tune.frontier import clairvoyant_cost, non_dominated

PRICES = Prices(read=0.1, write=1.25)
FIGURES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)))


def beats(one, other):
    return one[0] <= other[0] and one[1] >= other[1] and one != other


@given(FIGURES)
def test_no_point_of_the_frontier_is_beaten(points):
    frontier = non_dominated(points, lambda point: point)
    assert not [point for point in frontier for other in points if beats(other, point)]


@given(FIGURES)
def test_every_other_point_is_beaten_or_repeated(points):
    frontier = non_dominated(points, lambda point: point)
    assert all(point in frontier or any(beats(one, point) for one in frontier) for point in points)
    assert frontier == sorted(set(frontier))


def test_the_limit_of_a_small_session_is_the_sum_of_its_parts():
    line = "return compute_the_answer(parser, tokens)"
    messages = [
        system("You write code."),
        user("Repair it."),
        call("c1", "read", path="a.py"),
        answer("c1", f"{line}\nother_name_1\n" + "plain words\n" * 100),
        call("c2", "read", path="b.py"),
        answer("c2", "nothing to see here\n" * 50),
        call("c3", "edit", old=line, new="pass"),
        answer("c3", "done"),
        call("c4", "find", name="other_name_1"),
        answer("c4", "found"),
        say("Repaired."),
    ]
    sizes = [tokens_of(message) for message in messages]
    written = sum(sizes[:10])
    people = 4 * (sizes[0] + sizes[1])  # read by the second to the fifth call
    quoted = 1 * len(line + "compute_the_answer") / 4  # the line and the name in it: read by the third call
    name = 2 * len("other_name_1") / 4  # read by the third and the fourth call
    assert clairvoyant_cost(messages, PRICES) == pytest.approx(
        PRICES.write * written + PRICES.read * (people + quoted + name)
    )


def test_a_conversation_without_a_call_costs_nothing():
    assert clairvoyant_cost([user("hello")], PRICES) == 0
    assert clairvoyant_cost([], PRICES) == 0


# The generated runs have three calls at once at most, so three results are the fewest that the model always sees whole.
@pytest.mark.parametrize("policy", ["none", "prune", "keep-last-3"])
@settings(max_examples=settings.default.max_examples // 5)
@given(seed=st.integers(0, 1_000))
def test_replays_that_miss_nothing_cost_more_than_the_limit(policy, seed):
    messages = agent_run(8, seed=seed)
    row = replay(messages, policy=policy, window=60_000, prices=PRICES).row
    assert row.cost_all_in * row.cost_unmanaged >= clairvoyant_cost(messages, PRICES)


def test_a_policy_that_shortens_unseen_results_may_cost_less():
    """Of three results at once, the model never sees the first one whole."""
    results = [answer(f"c{n}", "plain words\n" * 400) for n in range(3)]
    messages = [user("Read them."), calls("c0", "c1", "c2"), *results, say("Done.")]
    costs = []
    for policy in ("keep-last-2", "keep-last-3"):
        row = replay(messages, policy=policy, window=60_000, prices=PRICES).row
        costs.append(row.cost_all_in * row.cost_unmanaged)
    assert costs[0] < clairvoyant_cost(messages, PRICES) <= costs[1]
