"""Every request body of a random conversation is legal for its provider, whatever policies and edits did."""

from __future__ import annotations

from itertools import pairwise

import pytest

from .cases import Case, Refused

BOUNDS = (0, 50, 200, 400, 600)
"""Seeds at which the cases of a test begin. Each case has about 16 bodies."""


@pytest.mark.parametrize(
    ("start", "end"),
    [pytest.param(start, end, marks=[pytest.mark.slow] * (start > 0)) for start, end in pairwise(BOUNDS)],
)
def test_every_body_of_random_cases_is_legal(start: int, end: int) -> None:
    outcomes = [Case(seed).run() for seed in range(start, end)]
    refused: list[Refused] = [one for outcome in outcomes for one in outcome.refused]
    assert refused == []
    assert sum(outcome.bodies for outcome in outcomes) > 10 * (end - start)


def test_checkers_refuse_a_case_whose_results_were_dropped() -> None:
    """The checkers of the cases find a fault that is put in."""
    case = Case(1, formats=("openai",), policies=("none",))
    render = case.chat.format.body

    def without_results(*args: object, **kwargs: object) -> bytes:
        return render(*args, **kwargs).replace(b'"role":"tool"', b'"role":"user"')  # type: ignore[arg-type]

    case.chat.format.body = without_results  # type: ignore[method-assign]
    case._open = lambda: case.chat  # type: ignore[method-assign]
    assert case.run().refused
