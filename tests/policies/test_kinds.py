"""Policies refuse settings of the wrong kind by name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from foveate import policies
from foveate.errors import BadSetting
from foveate.policies.presets.mechanisms import MECHANISMS


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (
            lambda: policies.filter_tool_results(keep="5"),
            "filter_tool_results(keep=...) must be a whole number, not '5'.",
        ),
        (
            lambda: policies.filter_tool_results(keep=True),
            "filter_tool_results(keep=...) must be a whole number, not True.",
        ),
        (
            lambda: policies.compact_on_overflow(summary_tokens=1.5),
            "compact_on_overflow(summary_tokens=...) must be a whole number or None, not 1.5.",
        ),
        (
            lambda: policies.compact_on_overflow(input_max="all"),
            "compact_on_overflow(input_max=...) must be a whole number or None, not 'all'.",
        ),
        (lambda: policies.checkpoint(template=None), "checkpoint(template=...) must be a text, not None."),
        (lambda: policies.fold(protect="half"), "fold(protect=...) must be a number, not 'half'."),
        (lambda: policies.fold(by_worth=1), "fold(by_worth=...) must be True or False, not 1."),
        (lambda: policies.pin_newest(["todo", 5]), "pin_newest(tools=...) must be a list of texts, not ['todo', 5]."),
        (lambda: policies.pin_newest(5), "pin_newest(tools=...) must be a list of texts, not 5."),
        (lambda: policies.when_it_pays(5), "when_it_pays(policy=...) must be a policy or a list of policies, not 5."),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named(make: Callable[[], Any], problem: str):
    with pytest.raises(BadSetting) as raised:
        make()
    assert str(raised.value) == problem


def test_a_warning_names_the_line_of_the_caller():
    with pytest.warns(UserWarning, match="keep_recent=1 is very low") as warned:
        policies.checkpoint(keep_recent=1, trigger_at=9)
    assert [warning.filename for warning in warned] == [__file__]


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_setting_of_a_mechanism_raises_an_error_of_python(name: str):
    mechanism = MECHANISMS[name]
    needed = {"filter": {"keep": 5}, "pins": {"tools": ("todo",)}, "defer": {"policy": ()}}.get(name, {})
    mechanism.function(**needed)
    for field in mechanism.fields:
        for value in (object(), b"x"):
            with suppress(BadSetting):
                mechanism.function(**{**needed, field: value})


def test_a_missing_argument_stays_a_type_error():
    make: Callable[..., Any] = policies.filter_tool_results
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'keep'"):
        make()
