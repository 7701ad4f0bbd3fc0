"""Merging of leases from several levels, and refused values."""

from __future__ import annotations

import pytest

from foveate.core.stamps import Lease
from foveate.errors import BadSetting
from foveate.policies.leases import LENGTH, SYSTEM_PROMPT, effective_lease, most_aggressive

NEVER = Lease(expiration_mode="none")


def compact(turns: int, length: int = LENGTH, **more: object) -> Lease:
    """Return an effective lease that cuts to so many characters."""
    return Lease(turns, "compact", "first_chars", length, **{"preserve_original": True, **more})  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- several levels


def test_nothing_expires_without_turns_or_a_mode():
    assert [effective_lease(), effective_lease(None, None), effective_lease(Lease())] == [NEVER] * 3
    assert effective_lease(Lease(expiration_mode="remove")) == NEVER
    assert effective_lease(Lease(3)) == NEVER
    assert effective_lease(Lease(0, "none")) == NEVER


def test_unset_fields_are_inherited_or_defaults():
    assert effective_lease(Lease(2, "compact")) == compact(2)
    assert effective_lease(Lease(1), None, Lease(9, "compact", compact_length=40)) == compact(1, 40)
    assert effective_lease(Lease(2, "compact"), Lease(preserve_original=False)) == compact(2, preserve_original=False)
    assert effective_lease(Lease(2, "compact", action_id="a"), Lease(action_id="b", message_type="t")) == compact(
        2, action_id="a", message_type="t"
    )


def test_fields_without_effect_are_cleared():
    row = Lease(5, "compact", "summary", 300, "prompt-7")
    assert effective_lease(Lease(expiration_mode="remove"), row) == Lease(5, "remove", preserve_original=True)
    assert effective_lease(Lease(compact_mode="first_chars"), row) == compact(5, 300)
    assert effective_lease(Lease(expiration_mode="none"), row) == NEVER


def test_disable_expiration_on_any_level_wins():
    off, row = Lease(disable_expiration=True), Lease(0, "remove")
    never = Lease(expiration_mode="none", disable_expiration=True)
    assert [effective_lease(off, row), effective_lease(row, off)] == [never, never]


@pytest.mark.parametrize(
    ("levels", "prompts", "results"),
    [
        (("top", "binding", "action"), None, "top"),
        ((None, "binding", "action"), None, "binding"),
        ((None, None, "action"), None, "action"),
        ((None, None, None), None, SYSTEM_PROMPT),
        (("lost", "lost too", "action"), {"action", SYSTEM_PROMPT}, "action"),
        (("lost", None, None), {SYSTEM_PROMPT}, SYSTEM_PROMPT),
        (("lost", None, None), set(), None),
        (("", "binding", None), None, "binding"),
    ],
)
def test_the_prompt_of_the_highest_level_wins(levels, prompts, results):
    message = [Lease(compact_prompt_id=name) for name in levels]
    lease = effective_lease(*message, Lease(2, "compact", "summary"), prompts=prompts)
    assert lease == Lease(2, "compact", "summary", LENGTH, results, preserve_original=True)


# ---------------------------------------------------------------------------------------- one lease for several results


def test_1_4_18_a_batch_takes_the_fewest_turns_and_the_strictest_mode():
    a, b = Lease(2, "compact", "first_chars", 500), Lease(5, "remove")
    assert most_aggressive([a, b]) == Lease(2, "remove", preserve_original=True)
    assert most_aggressive([b, a]) == most_aggressive([a, b])


def test_the_smallest_length_decides_mode_and_prompt():
    long, short = Lease(1, "compact", "first_chars", 900), Lease(4, "compact", "summary", 200, "p")
    assert most_aggressive([long, short]) == Lease(1, "compact", "summary", 200, "p", preserve_original=True)
    assert most_aggressive([Lease(3, "compact", "summary"), Lease(3, "compact")]) == Lease(
        3, "compact", "summary", LENGTH, preserve_original=True
    )


def test_lasting_leases_do_not_count_next_to_others():
    lasting = [Lease(0, "none"), Lease(), Lease(1, "remove", disable_expiration=True)]
    assert most_aggressive([*lasting, Lease(7, "compact")]) == compact(7)
    assert [most_aggressive(lasting), most_aggressive([])] == [NEVER, NEVER]
    assert most_aggressive([Lease(message_type="a"), Lease()]) == Lease(expiration_mode="none", message_type="a")


def test_one_hidden_original_hides_all_of_the_message():
    batch = [Lease(2, "compact", compact_length=9), Lease(2, "compact", preserve_original=False)]
    assert most_aggressive(batch) == compact(2, 9, preserve_original=False)


def test_a_batch_has_the_identity_of_its_strictest_part():
    batch = [Lease(2, "compact", action_id="a"), Lease(2, "remove", action_id="b", message_type="action-result")]
    assert most_aggressive(batch) == Lease(
        2, "remove", preserve_original=True, action_id="b", message_type="action-result"
    )


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("expiration_turns", -1, "a whole number of 0 or more, below 2**64, or None"),
        ("expiration_turns", True, "a whole number of 0 or more, below 2**64, or None"),
        ("expiration_turns", 2.0, "a whole number of 0 or more, below 2**64, or None"),
        ("expiration_mode", "Compact", "one of none, remove, compact, or None"),
        ("compact_mode", "AISummary", "one of first_chars, summary, or None"),
        ("compact_mode", ["summary"], "one of first_chars, summary, or None"),
        ("compact_length", 0, "a whole number of 1 or more, below 2**64, or None"),
        ("compact_length", "500", "a whole number of 1 or more, below 2**64, or None"),
        ("compact_prompt_id", 7, "the name of a prompt, or None"),
        ("disable_expiration", None, "True or False"),
        ("preserve_original", 1, "True, False or None"),
        ("action_id", None, "a text"),
    ],
)
def test_a_wrong_value_is_named_with_its_level(field, value, allowed):
    with pytest.raises(BadSetting) as refused:
        effective_lease(Lease(), Lease(**{field: value}))
    assert str(refused.value) == f"level 2: {field} is {value!r}; allowed: {allowed}."


def test_a_value_that_is_no_lease_is_refused():
    with pytest.raises(BadSetting, match=r"^level 1 is \{'turns': 3\}; allowed: a Lease\.$"):
        effective_lease({"turns": 3})  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match=r"^lease 2 is 3; allowed: a Lease\.$"):
        most_aggressive([Lease(), 3])  # type: ignore[list-item]
