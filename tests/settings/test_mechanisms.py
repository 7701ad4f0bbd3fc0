"""Settings of the shipped mechanisms: tables of single tools and plugins, combinations, and generated values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foveate
from foveate.errors import BadSetting
from foveate.policies.presets.mechanisms import MECHANISMS
from foveate.policies.presets.values import convert, is_plain, is_table, parse
from foveate.settings import load
from foveate.testing import answer, call

PLAIN = [
    (name, argument)
    for name, mechanism in MECHANISMS.items()
    for argument in mechanism.fields.values()
    if is_plain(argument.kind)
]


def test_a_table_sets_the_lease_of_one_tool(loaded):
    loaded.write(
        "mine.toml",
        """
        extends = "expire"
        [expire.tools.web_search]
        expiration_turns = 1
        [expire.tools."odd.name"]
        expiration_mode = "none"
        """,
    )
    settings = loaded('[expire.tools.web_search]\nexpiration_mode = "remove"\n', policy="mine.toml")
    found = {name: one.value for name, one in settings.values.items() if name.startswith("expire.tools")}
    assert found == {
        "expire.tools.web_search.expiration_turns": 1,
        "expire.tools.web_search.expiration_mode": "remove",
        "expire.tools.odd.name.expiration_mode": "none",
    }
    chat = foveate.open_conversation("c", window=100_000, policy=settings.policies)
    for name in ("web_search", "odd.name", "read_file"):
        chat.append([call(name, name), answer(name, "x" * 2_000, name=name)])
    for _ in range(4):
        chat.prepare()
        chat.record(foveate.assistant("I go on."))
    shown = [entry.message.result.text for entry in chat.prepare() if entry.message.result]
    assert [shown[1], shown[2][500:]] == ["x" * 2_000, "...\n\n[Compacted: the first 500 of 2000 characters; m6]"]
    assert (shown[0][:31], shown[0][-5:]) == ("[result expired after 1 turns: ", "; m2]")


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("[expire.tools.x]\nturns = 1", "line 2: expire.tools.x.turns: there is no setting of that name. Did you mean"),
        ("[expire.tools.x]\nexpiration_turns = '1'", "is '1'; allowed: a whole number or none."),
        ("[expire.tools.x]\nexpiration_turns = true", "is true; allowed: a whole number or none."),
        ("[expire.tools.x]\nexpiration_mode = 'Remove'", "is 'Remove'; allowed: one of none, remove, compact. The"),
        ("[expire.default]\nexpiration_turns = -1", "line 2: expire.default.expiration_turns is -1. This is refused:"),
        ("[expire]\ndefault = 5", "line 2: expire.default is 5; allowed: a table with expiration_turns,"),
        ("[retain.plugins.clock]\nsave = -1", "line 2: retain.plugins.clock.save is -1. This is refused:"),
        ("[retain.plugins.clock]\nsave = 'x'", "retain.plugins.clock.save is 'x'; allowed: true or false or a whole"),
        (
            "[retain.plugins.clock]\nsaev = 1",
            "retain.plugins.clock.saev: there is no setting of that name. Did you mean",
        ),
        (
            "[checkpoint]\nkeep_recent = 200",
            "foveate.toml, line 2: checkpoint.keep_recent is 200. This is refused:",
        ),
        (
            "[checkpoint]\ntrigger_at = 50\nkeep_recent = 60",
            "foveate.toml, line 2: checkpoint.trigger_at is 50; foveate.toml, line 3: checkpoint.keep_recent is 60. T",
        ),
        ("[filter]\nkeep = -1", "foveate.toml, line 2: filter.keep is -1. This is refused:"),
        ("[recap]\nbatch_size = 0", "foveate.toml, line 2: recap.batch_size is 0. This is refused:"),
        ("[recap]\ntemplate = 'x'", "foveate.toml, line 2: recap.template is 'x'. This is refused:"),
    ],
)
def test_a_refusal_of_a_mechanism_names_the_source(loaded, toml, expected):
    assert expected in loaded.refused(toml)


def test_a_refusal_names_only_the_wrong_value_of_a_table(loaded):
    """The preset sets the other values of this table, and they are right."""
    assert loaded.refused("policy = 'expire'\n[expire.default]\ncompact_length = 0") == (
        "foveate.toml, line 3: expire.default.compact_length is 0. This is refused: default: compact_length is 0; "
        "allowed: a whole number of 1 or more, below 2**64, or None. "
        'The keyword settings={"expire": {"default": {"compact_length": ...}}} takes precedence over it.'
    )


def test_a_refusal_offers_no_variable_for_a_table(loaded):
    text = loaded.refused("[expire]\ndefault = 5")
    assert text.endswith(' The keyword settings={"expire": {"default": ...}} takes precedence over it.')


@pytest.mark.filterwarnings("error")
def test_finding_the_wrong_value_emits_no_warning(loaded):
    """The mechanism is called repeatedly for this, with values that may cause a warning."""
    assert "refused" in loaded.refused("[checkpoint]\ntrigger_at = 50\nkeep_recent = 60\n")


def test_a_conflict_between_levels_names_both_values(loaded):
    text = loaded.refused("[checkpoint]\ntrigger_at = 50\n", {"FOVEATE_CHECKPOINT_KEEP_RECENT": "60"})
    assert text.startswith(
        "foveate.toml, line 2: checkpoint.trigger_at is 50; environment FOVEATE_CHECKPOINT_KEEP_RECENT is 60. This is"
    )


@pytest.mark.parametrize(("mechanism", "argument"), PLAIN, ids=lambda one: getattr(one, "name", one))
def test_every_default_is_an_allowed_value(mechanism, argument):
    if not argument.is_required:
        convert(argument.kind, argument.default)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.dates()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
)


@given(st.sampled_from(PLAIN), VALUES, st.booleans())
def test_any_value_is_accepted_or_refused(place, value, other):
    name, argument = place
    text: dict[str, Any] = {argument.name: value}
    if other:
        text["enabled"] = True
    assert answer_to(environ={}, settings={name: text}, policy="none").count(name)


@given(st.sampled_from(PLAIN), st.text(max_size=20) | st.integers().map(str) | st.floats().map(str))
def test_any_variable_is_accepted_or_refused(place, text):
    name, argument = place
    variable = f"FOVEATE_{name}_{argument.name}".upper()
    expected = answer_to(environ={variable: text, "FOVEATE_POLICY": "none"})
    assert name in expected if text.strip() or is_table(argument.kind) else expected == ""


def answer_to(**expected: Any) -> str:
    """Return the mechanisms that are on, or the error about settings that are not allowed."""
    try:
        return ", ".join(load(**expected).mechanisms)
    except BadSetting as error:
        return str(error).lower()


@given(st.sampled_from([int, float, bool, int | None, float | None]), st.text(max_size=30))
def test_a_text_becomes_a_value_of_its_kind_or_stays_a_text(kind, text):
    value = parse(kind, text)
    assert value is None or value == text.strip() or convert(kind, value) == value or math.isinf(value)


def test_defer_takes_the_place_of_the_mechanisms_it_wraps(loaded):
    loaded.write("mine.toml", "[defer]\npatience = 0.3\n[recap]\n[prune]\n[supersede]\n[filter]\nkeep = 9\n")
    settings = loaded(policy="mine.toml")
    assert settings.mechanisms == ("supersede", "prune", "filter", "defer", "recap")
    assert settings.steps == ("defer(supersede, prune, filter)", "recap")
    assert len(settings.policies) == 2
    values = loaded(policy="mine.toml", environ={"FOVEATE_DEFER_PATIENCE": "20_000"}).values
    assert values["defer.patience"].value == 20_000
    assert loaded(policy="none", settings={"defer": {}}).policies == ()
    text = loaded.refused(policy="prune", settings={"defer": {"threshold": 0}})
    assert text.startswith('Keyword settings["defer"]["threshold"] is 0. This is refused: threshold of when_it_pays is')


def test_a_mechanism_can_be_set_to_run_first(loaded):
    assert loaded(policy="prune-and-compact").steps == ("compact", "prune")
    later = loaded(policy="prune-and-compact", settings={"compact": {"order": "prune_first"}})
    assert later.steps == ("prune", "compact")
