"""A rule of the user stays readable at any window, in its message, in a summary or in the floor's note."""

from __future__ import annotations

import pytest
from conversation.shells import opened, texts
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.core.messages import Message
from foveate.testing import answer, call, say, text_of, user

FEW = settings(max_examples=settings.default.max_examples // 6)
RULES = [
    "Never write to the table ledger_2019.",
    "You must ask Marta Lindqvist before each deployment to prod-eu.",
    "The budget is at most 4,200 euros.",
    "Do not use Redis for the sessions.",
]


@st.composite
def histories_with_rules(draw: st.DrawFn) -> tuple[int, list[Message], list[str]]:
    """Return a window, messages of two to six windows, and rules among them: at most a thirtieth of the window."""
    window = draw(st.sampled_from([2_000, 3_000, 4_000, 8_000, 16_000]))
    count = draw(st.integers(1, 1 if window < 3_000 else 2 if window < 8_000 else 4))
    rules = draw(st.permutations(RULES))[:count]
    seed = draw(st.integers(0, 1_000))
    turns = draw(st.integers(20, 60))
    total = window * draw(st.integers(2, 6))
    with_tools = draw(st.booleans())
    places = [draw(st.integers(0, turns - 1)) for _ in rules]
    messages: list[Message] = []
    for turn in range(turns):
        size = max(10, total // turns // (3 if with_tools else 2))
        messages += [user(rule) for rule, place in zip(rules, places, strict=True) if place == turn]
        messages.append(user(text_of(size, seed + 3 * turn)))
        if with_tools:
            messages += [
                call(f"c{turn}", path=f"src/part_{turn}.py"),
                answer(f"c{turn}", text_of(size, seed + 3 * turn + 1)),
            ]
        messages.append(say(text_of(size, seed + 3 * turn + 2)))
    return window, messages, list(rules)


@pytest.mark.parametrize(
    "policy", ["balanced", *(pytest.param(name, marks=pytest.mark.slow) for name in ("prune-and-compact", "none"))]
)
@FEW
@given(case=histories_with_rules(), at_once=st.booleans())
def test_rules_of_the_user_stay_readable(policy: str, case: tuple[int, list[Message], list[str]], at_once: bool):
    window, messages, rules = case
    conversation = opened(policy=policy, window=window, reserve=window // 10)
    for message in messages:
        if message.role == "assistant" and not at_once:
            conversation.prepare()
        conversation.append(message)
    conversation.append("And now?")
    shown = "\n".join(texts(conversation.prepare()))
    # A line that joins several statements writes no full stop behind each.
    assert [rule for rule in rules if rule.removesuffix(".") not in shown] == []
