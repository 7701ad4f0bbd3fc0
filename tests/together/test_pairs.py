"""Any two mechanisms in one conversation: legal, deterministic, nothing twice, and explained."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import pytest

from foveate import Conversation
from foveate.edits import Replace
from foveate.testing.bodies import check_body

from .mechanisms import MECHANISMS, opened, story, told

PAIRS = list(permutations(MECHANISMS, 2))
"""In both orders: whoever puts a list of policies together is not bound to the order of the pipeline."""
ORDERED = list(combinations(MECHANISMS, 2))
CASES = [
    pytest.param((names, provider), marks=[pytest.mark.slow] * ((names in ORDERED) == (provider == "anthropic")))
    for names in PAIRS
    for provider in ("openai", "anthropic")
]
"""A quick run has each order with one of the providers."""


def prepared(names: tuple[str, str], provider: str) -> Conversation:
    chat = told(opened(*names, provider=provider), story())
    chat.prepare()
    return chat


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{'+'.join(case[0])}-{case[1]}")
def pair(request: pytest.FixtureRequest) -> Any:
    """Return the names of two mechanisms, the provider, and a conversation that the tests of this pair share."""
    names, provider = request.param
    return names, provider, prepared(names, provider)


def test_two_mechanisms_together_give_legal_repeatable_views(pair: Any):
    names, provider, chat = pair
    bodies = []
    for one in (chat, prepared(names, provider)):
        number = one._agent.head.number
        bodies.append(one.format.body(one.prepare(), profile=one._agent.profile))
        assert one._agent.head.number == number
        assert [row.message for row in one.history()] == story()
        assert one.journal.verify() == []
    assert check_body(provider, bodies[0]) == []
    assert bodies[0] == bodies[1]


def test_a_mechanism_leaves_alone_what_the_other_shrank(pair: Any):
    """A summary may replace messages that were shrunk before; nothing is shrunk twice."""
    _, _, chat = pair
    standing: dict[tuple[str, tuple[int, ...]], str] = {}
    for record in chat.journal.records():
        for edit in record.edits:
            if isinstance(edit, Replace):
                key = (edit.target.message, edit.target.path or (0,))
                assert standing.setdefault(key, edit.policy) == edit.policy, f"{edit} over {standing[key]}"


def test_explain_names_the_mechanism_that_acted(pair: Any):
    _, _, chat = pair
    for entry in chat.prepare():
        lines = chat.explain(entry.handle).split("\n")
        for policy_name in entry.shrunk_by:
            assert [line for line in lines if line.startswith("Edit ") and f": {policy_name} " in line], lines
        others = [line for line in lines if "would act on it too (" in line or "has no reason to act on it" in line]
        assert not [line for line in others if line.split()[0] in entry.shrunk_by], lines
        assert entry.shrunk or entry.pins or not others


def test_explain_reports_prune_and_filter():
    chat = told(opened("prune", "filter"), story())
    first = next(entry for entry in chat.prepare() if entry.shrunk_by == ("prune",))
    told_of = chat.explain(first.handle)
    assert ": prune replaced it (" in told_of
    too = "keep-last-2 would act on it too (older than the newest 2 results)"
    assert told_of.endswith(f"{too}, but policies do not change shrunk content.")
