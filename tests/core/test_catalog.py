"""The catalog of an application: defaults, leases and prompts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from foveate.core.catalog import (
    SYSTEM_PROMPT,
    Action,
    Binding,
    Prompt,
    complete_binding,
    lease_of,
    prompt_key,
    prompt_texts,
    validated,
)
from foveate.core.stamps import Lease
from foveate.core.summaries import SummaryRequest
from foveate.errors import BadSetting
from foveate.policies.leases import effective_lease
from foveate.summarizers.templates import MESSAGE, Templates

BINDINGS = st.builds(
    Binding,
    st.just("support"),
    st.just("look"),
    st.none() | st.integers(0, 9),
    st.sampled_from(["none", "remove", "compact"]),
    st.sampled_from([None, "first_chars", "summary"]),
    st.none() | st.integers(1, 900),
    st.sampled_from(["", "short"]),
)


def binding(mode: str, *more: object) -> Binding:
    return Binding("support", "look", 3, mode, *more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "comes_to"),
    [
        (binding("compact"), binding("compact", "first_chars", 500)),
        (binding("compact", None, 80), binding("compact", "first_chars", 80)),
        (binding("compact", "first_chars"), binding("compact", "first_chars", 500)),
        (binding("compact", "summary"), binding("compact", "summary")),
        (binding("compact", "summary", 80, "short"), binding("compact", "summary", 80, "short")),
        (binding("remove", "summary", 80, "short"), binding("remove")),
        (binding("none", None, 80), binding("none")),
    ],
)
def test_an_incomplete_binding_gets_defaults(value: Binding, comes_to: Binding) -> None:
    assert complete_binding(value) == comes_to


@given(BINDINGS)
def test_a_completed_binding_is_valid_and_stays_the_same(value: Binding) -> None:
    """The lease of a result does not depend on whether the binding was completed before."""
    whole = validated(complete_binding(value))
    assert complete_binding(whole) == whole
    assert effective_lease(lease_of(whole)) == effective_lease(lease_of(value))


def test_a_lease_prefers_the_prompt_of_the_binding() -> None:
    action = Action("look", default_compact_prompt="of the action")
    own, none = binding("compact", "summary", 80, "its own"), binding("compact", "summary", 80)
    assert lease_of(own, action) == Lease(
        3, "compact", "summary", 80, "its own", False, None, "action-result", "look", "support/look"
    )
    assert lease_of(none, action).compact_prompt_id == "of the action"
    assert lease_of(none).compact_prompt_id is None
    assert lease_of(binding("compact", "first_chars", 80), action).compact_prompt_id is None


@pytest.mark.parametrize("value", [True, 1.0, "3", 2**63])
def test_turns_must_be_whole_numbers(value: object) -> None:
    with pytest.raises(BadSetting, match=r"result_expiration_turns of the binding 'support/look' is .*whole number"):
        validated(Binding("support", "look", value))  # type: ignore[arg-type]


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(BadSetting, match="an Action, a Binding or a Prompt, not 'look'"):
        validated("look")  # type: ignore[type-var]
    with pytest.raises(BadSetting, match="name of the action is 7; allowed: a str"):
        validated(Action(7))  # type: ignore[arg-type]


def test_a_summarizer_uses_the_prompts_of_a_catalog() -> None:
    """The prompt with the default name serves requests without a name."""
    prompts = [Prompt(SYSTEM_PROMPT, "Usual: {{ text }}"), Prompt("Ordre", "Own: {{ text }}")]
    templates = Templates(prompt_texts(prompts))
    usual = SummaryRequest("expire", (), 100, facts={"originalLength": 900})
    own = structs.replace(usual, prompt="Ordre")
    assert templates.fill(usual, "words").startswith("Usual: ")
    assert templates.fill(own, "words").startswith("Own: ")
    assert prompt_key(SYSTEM_PROMPT) == MESSAGE
