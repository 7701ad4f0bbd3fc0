"""One result before and after a policy made it shorter."""

from __future__ import annotations

from foveate.inspector.saved.report import page
from foveate.replay.examples import example_of
from foveate.replay.run import replay
from foveate.testing import agent_run


def test_a_shortened_result_is_shown_before_and_after() -> None:
    run = replay(agent_run(60, seed=3), policy="keep-last-2", window=100_000, views=True)
    example = example_of([run])
    assert example is not None
    assert (example.policy, example.tokens_before > example.tokens_after) == ("keep-last-2", True)
    assert 1 < example.call <= len(run.calls)
    assert "" not in (example.before, example.after)
    assert example.before != example.after
    assert all(len(line) <= 160 for line in example.before.split("\n"))
    text = page([run], created="today")
    assert "One result, before and after" in text
    assert f"as call {example.call} saw it under <code>keep-last-2</code>" in text


def test_without_views_or_shortened_results_there_is_no_example() -> None:
    chat = agent_run(20, seed=3)
    assert example_of([replay(chat, policy="keep-last-2", window=100_000)]) is None
    run = replay(chat, policy="none", window=100_000, views=True)
    assert example_of([run]) is None
    assert "One result, before and after" not in page([run], created="today")
