"""Any two mechanisms in one conversation: legal, deterministic, nothing twice, and explained."""

from __future__ import annotations

from itertools import permutations

import pytest

from foveate.edits import Replace
from foveate.testing.bodies import check_body

from .mechanisms import MECHANISMS, opened, story, told

PAIRS = list(permutations(MECHANISMS, 2))
"""In both orders: whoever puts a list of policies together is not bound to the order of the pipeline."""


@pytest.mark.parametrize("names", PAIRS, ids="+".join)
@pytest.mark.parametrize("provider", [pytest.param("openai", marks=pytest.mark.slow), "anthropic"])
def test_two_mechanisms_together_give_legal_repeatable_views(names: tuple[str, str], provider: str):
    bodies = []
    for _ in range(2):
        chat = told(opened(*names, provider=provider), story())
        view = chat.prepare()
        number = chat._agent.head.number
        chat.prepare()
        assert chat._agent.head.number == number
        bodies.append(chat.format.body(view, profile=chat._agent.profile))
        assert [row.message for row in chat.history()] == story()
        assert chat.journal.verify() == []
    assert check_body(provider, bodies[0]) == []
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_a_mechanism_leaves_alone_what_the_other_shrank(names: tuple[str, str]):
    """A summary may replace messages that were shrunk before; nothing is shrunk twice."""
    chat = told(opened(*names), story())
    chat.prepare()
    standing: dict[tuple[str, tuple[int, ...]], str] = {}
    for record in chat.journal.records():
        for edit in record.edits:
            if isinstance(edit, Replace):
                key = (edit.target.message, edit.target.path or (0,))
                assert standing.setdefault(key, edit.policy) == edit.policy, f"{edit} over {standing[key]}"


@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_explain_names_the_mechanism_that_acted(names: tuple[str, str]):
    chat = told(opened(*names), story())
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
