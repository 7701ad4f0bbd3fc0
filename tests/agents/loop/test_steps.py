"""Reading steps from answers: spellings, text around them, and errors for the model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.agents.steps import (
    ActionCall,
    Actions,
    BadStep,
    Chat,
    ExpandMessage,
    Failed,
    NextStep,
    Retry,
    SubAgents,
    SubAgentTask,
    Success,
    read_step,
)


def next_step(**fields: Any) -> str:
    return json.dumps({"taskComplete": False, "reasoning": "because", "nextStep": fields})


def handed(*tasks: tuple[str, str]) -> SubAgents:
    return SubAgents(tuple(SubAgentTask(*task) for task in tasks))


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('{"taskComplete": true, "message": "Done."}', Success("Done.")),
        ('{"taskComplete": true, "message": null, "nextStep": null}', Success("")),
        ('{"taskComplete": true, "nextStep": {"type": "Failed", "reason": "no key"}}', Failed("no key")),
        (next_step(type="Success", message="Done."), Success("Done.")),
        (next_step(type="failed", message="no key"), Failed("no key")),
        (next_step(type="Retry", reason="look again"), Retry("look again")),
        (next_step(type="Retry"), Retry("because")),
        ('{"taskComplete": false, "nextStep": "Retry"}', Retry()),
        (next_step(type="Chat", message="Which one?"), Chat("Which one?")),
        ('{"taskComplete": false, "message": "Which one?", "nextStep": {"type": "chat"}}', Chat("Which one?")),
        (
            next_step(
                type="Actions", actions=[{"name": "a", "params": {"Type": 1, "next_step": {"A b": 2}}}, {"name": "b"}]
            ),
            Actions((ActionCall("a", {"Type": 1, "next_step": {"A b": 2}}), ActionCall("b"))),
        ),
        (next_step(type="action", name="a", parameters={"x": 1}), Actions((ActionCall("a", {"x": 1}),))),
        (next_step(type="Sub-Agent", subAgent={"name": "r", "message": "Read."}), handed(("r", "Read."))),
        (next_step(type="sub_agent", sub_agent="r", message="Read."), handed(("r", "Read."))),
        (next_step(type="SubAgent", name="r", task="Read."), handed(("r", "Read."))),
        (
            next_step(type="Sub-Agent", subAgents=[{"name": "r", "message": "Read."}, {"name": "w", "task": "Write."}]),
            handed(("r", "Read."), ("w", "Write.")),
        ),
        (next_step(type="sub-agents", sub_agents=["r", "r"], message="Read."), handed(("r", "Read."), ("r", "Read."))),
        (next_step(type="Sub-Agent", subAgent=[{"agent": "r", "task": "Read."}]), handed(("r", "Read."))),
        (next_step(type="Sub-Agent", subAgents=[], subAgent="r", message="Read."), handed(("r", "Read."))),
        (next_step(type="expand-message", messageIndex=5, reason="why"), ExpandMessage(5, "why")),
        (next_step(type="expand-message", messageIndex=0), ExpandMessage(0)),
        (next_step(type="expand-message", messageIndex=5.0), ExpandMessage(5)),
        (next_step(type="expand-message", messageIndex="-1"), ExpandMessage(-1)),
        (next_step(type="ExpandMessage", message="m5"), ExpandMessage("m5")),
        (next_step(type="expand_message", message_id="m5-m7"), ExpandMessage("m5-m7")),
        (next_step(step="expand-message", handle="m5.1"), ExpandMessage("m5.1")),
        ('{"step": "ExpandMessage", "messageIndex": 5, "reason": "item 47"}', ExpandMessage(5, "item 47")),
        ('{"step": "ExpandMessage", "messageIndex": 5, "itemRange": [40, 50]}', ExpandMessage(5, items="40-50")),
        (next_step(type="expand-message", message="m5", lines="1-40"), ExpandMessage("m5", lines="1-40")),
        (
            next_step(type="expand-message", message="m5", lines=7, pattern="a.b"),
            ExpandMessage("m5", "", "7", "", "a.b"),
        ),
        (next_step(type="expand-message", message='expand("m5")'), ExpandMessage("m5")),
        (next_step(type="expand-message", message="expand('m5', lines='1-40')"), ExpandMessage("m5")),
    ],
)
def test_a_step_is_read_in_any_spelling(said: str, meant: NextStep):
    assert read_step(said) == meant


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "Sure, here it is:\n```json\n{}\n```\nTell me if you need more.",
        'In {{braces}} and {"a": 1}: {}',
        '{"response": {}}',
        '{"type": "object"} is no step, but this is: {}',
        '{}\n{"taskComplete": false, "nextStep": {"type": "Retry"}}',
    ],
)
def test_text_and_fences_around_a_step_do_not_matter(around: str):
    assert read_step(around.replace("{}", '{"taskComplete": true, "message": "a\nb"}')) == Success("a\nb")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", "there is no JSON object in it with taskComplete and nextStep"),
        ("I am done.", "there is no JSON object in it with taskComplete and nextStep"),
        ('{"answer": 42}', "there is no JSON object in it with taskComplete and nextStep"),
        ('{"taskComplete": tru', "its JSON is not valid: Expecting value: line 1 column 18 (char 17)"),
        ('{"taskComplete": NaN}', "its JSON is not valid: JSON has no NaN"),
        (
            '{"taskComplete": true, "message": "\\ud800"}',
            "its JSON is not valid: a string holds half of a surrogate pair",
        ),
        ('{"nextStep":' * 100_000, "its JSON is not valid: it is nested too deeply"),
        ('{"taskComplete": "yes"}', "expected `bool | null`, got `str` at `taskComplete`"),
        (
            '{"taskComplete": false}',
            "taskComplete is not true, and nextStep says no type; allowed: Actions, Sub-Agent, Chat, expand-message, "
            "Retry, Success, Failed",
        ),
        (
            next_step(type="fly"),
            "the type of nextStep is 'fly'; allowed: Actions, Sub-Agent, Chat, expand-message, Retry, Success, Failed",
        ),
        (
            next_step(type="Actions", actions=[]),
            'a step of type Actions needs actions, a list of one or more {"name": ..., "params": {...}}',
        ),
        (
            next_step(type="Actions", actions=[{"name": "a"}, {"params": {}}]),
            "object missing required field `name` at `nextStep.actions[1]`",
        ),
        (
            next_step(type="Actions", actions=[{"name": "a", "params": [1]}]),
            "expected `object | null`, got `array` at `nextStep.actions[0].params`",
        ),
        (next_step(type="Sub-Agent"), 'a step of type Sub-Agent needs subAgent, such as {"name": ..., "message": ...}'),
        (
            next_step(type="Sub-Agent", subAgents=[{"name": "", "message": "Read."}]),
            'a step of type Sub-Agent needs subAgent, such as {"name": ..., "message": ...}',
        ),
        (
            next_step(type="Sub-Agent", subAgents=[{"name": "r", "message": "Read."}, {"name": "w"}]),
            "subAgent needs a message: the task, with all that the sub-agent has to know",
        ),
        (
            next_step(type="Sub-Agent", subAgent={"name": "r"}),
            "subAgent needs a message: the task, with all that the sub-agent has to know",
        ),
        (next_step(type="Chat"), "a step of type Chat needs a message, a text for the user"),
        (
            next_step(type="expand-message", messageIndex=None),
            'a step of type expand-message needs messageIndex, a whole number, or message, a handle such as "m5"',
        ),
        (
            next_step(type="expand-message", messageIndex=2.5),
            'a step of type expand-message needs messageIndex, a whole number, or message, a handle such as "m5"',
        ),
        (
            next_step(type="expand-message", messageIndex=True),
            "expected `int | float | str | null`, got `bool` at `nextStep.messageIndex`",
        ),
    ],
)
def test_an_answer_without_a_step_raises_with_the_reason(said: str, told: str):
    with pytest.raises(BadStep) as raised:
        read_step(said)
    assert str(raised.value) == told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        "taskComplete",
        "nextStep",
        "type",
        "step",
        "message",
        "messageIndex",
        "actions",
        "subAgent",
        "subAgents",
        "name",
        "params",
        "reason",
    ]
)


@given(st.dictionaries(FIELDS, JSON | st.dictionaries(FIELDS, JSON), max_size=5).map(json.dumps) | st.text())
def test_any_answer_is_a_step_or_raises(said: str):
    try:
        step = read_step(said)
    except BadStep:
        return
    assert isinstance(step, NextStep)
