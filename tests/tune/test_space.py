"""The space: its parameters come from the mechanisms, and all of its values are accepted."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.policies.presets import SHIPPED
from foveate.policies.presets.sources import flatten
from foveate.settings import load
from foveate.tune.space import changes_between, space_of


def space(policy, **settings):
    return space_of(load(policy=policy, environ={}, settings=settings or None).layer)


space_of_preset = cache(space)


def names(policy, **settings):
    return {parameter.name: parameter for parameter in space(policy, **settings).parameters}


def test_parameters_are_the_numbers_and_switches_of_a_preset():
    assert list(names("keep-last-5")) == ["filter.keep", "filter.batch"]
    assert "prune.placeholder" not in names("prune")
    assert "prune.protected_tools" not in names("prune")


def test_values_are_around_the_value_of_the_preset():
    keep = names("keep-last-5")["filter.keep"]
    assert keep.values == (1, 2, 3, 5, 7, 10, 14, 20)
    assert (keep.values[keep.start], keep.is_set) == (5, True)
    batch = names("keep-last-5")["filter.batch"]
    assert (batch.values, batch.is_set) == ((1, 2, 4), False)


def test_shares_stay_shares_and_none_is_the_last_value(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[shrink]\nprotect_said = 0.4\nstay_if_used = 0\n")
    found = names(str(file))
    said = found["shrink.protect_said"].values
    assert said[-1] == "none"
    assert max(said[:-1]) < 1
    assert found["shrink.stay_if_used"].values == (0, 1, 2, 4, 8, 16, 32)


def test_numbers_inside_tables_are_parameters(tmp_path):
    """The leases of `expire` are tables, and its leases by tool are tables of tables."""
    file = tmp_path / "mine.toml"
    file.write_text(
        '[expire.default]\nexpiration_turns = 3\nexpiration_mode = "compact"\n'
        '[expire.tools."web search"]\ncompact_length = 300\n'
    )
    found = names(str(file))
    assert found["expire.default.expiration_turns"].values == (1, 2, 3, 4, 6, 8, 12, "none")
    assert 300 in found["expire.tools.web search.compact_length"].values
    assert "expire.default.expiration_mode" not in found
    assert list(names("expire", expire={"default": {"expiration_turns": 1}})) == [
        "expire.default.compact_length", "expire.stable_prefix", "expire.min_gain"
    ]  # fmt: skip


def test_settings_of_higher_levels_are_left_alone():
    assert list(names("keep-last-5", filter={"keep": 9})) == ["filter.batch"]


@pytest.mark.parametrize("policy", SHIPPED)
@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=settings.default.max_examples // 3)
@given(data=st.data())
def test_every_allowed_point_can_be_loaded_as_settings(policy, data):
    found = space_of_preset(policy)
    point = tuple(data.draw(st.integers(0, len(one.values) - 1)) for one in found.parameters)
    if found.is_allowed(point):
        settings = found.settings(point)
        load(policy=policy, environ={}, settings=settings)
        changed = {place for place, _ in flatten(settings)}
        assert {tuple(name.split(".")) for name, _, _ in changes_between(found, point)} == changed


def test_moves_end_at_the_ends_of_the_values():
    found = space("keep-last-5")
    assert found.moved(found.start, 0, -50)[0] == 0
    assert found.moved(found.start, 0, 50)[0] == 7
    assert found.settings(found.moved(found.start, 0, 1)) == {"filter": {"keep": 7}}
    assert found.settings(found.start) == {}
