"""Ages: how they are said, and which messages are over theirs. Nothing here erases."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.retention import Age, OverAgeCheck, Visible, over_age_runs, read_age, read_ages, read_rule
from foveate.core.runs import AgentRun
from foveate.core.stamps import Expansion, Origin, Stamp, StampRow
from foveate.errors import BadSetting

DAY = 86_400_000
NOW = 1_000 * DAY


def said(*origins: Origin, **facts: Any) -> list[StampRow]:
    """A message a turn and a day, the newest one today."""
    last = len(origins)
    return [
        StampRow(n, f"{n:040x}", Stamp(n, NOW - (last - n) * DAY, 10, origin, **facts), 100)
        for n, origin in enumerate(origins, 1)
    ]


def aged(
    rows: list[StampRow], *ages: Age, now: int = NOW, media: frozenset[int] = frozenset(), **shown: Any
) -> OverAgeCheck:
    """What is over its age, where the view shows this."""
    aging = OverAgeCheck(ages, now, Visible(rows[-1].stamp.turn, **{"touched": rows[-1].stamp.time, **shown}))
    for row in rows:
        aging.take(row)
    for position in list(aging.undecided):
        aging.set_has_media(position, has_media=position in media)
    aging.spare_copied()
    return aging


def going(*rows: Any, **facts: Any) -> list[int]:
    return sorted(aged(*rows, **facts).due)


def waiting(aging: OverAgeCheck) -> dict[int, str]:
    return {position: why for position, (_, why) in aging.waiting.items()}


# ------------------------------------------------------------------------------------------------------------ in words


@pytest.mark.parametrize(
    ("kind", "told", "age"),
    [
        ("tool results", "90 days", Age("tool_results", None, 90 * DAY)),
        ("tool-results:grep", "1 turn", Age("tool_results", 1, None, "grep")),
        ("All", "2 weeks and 200 turns", Age("all", 200, 14 * DAY)),
        ("user_messages", "0 turns and 12 Hours", Age("user_messages", 0, DAY // 2)),
        ("media", "1 month, even pinned", Age("media", None, 30 * DAY, "", ("pinned",))),
        ("runs", "1year", Age("runs", None, 365 * DAY)),
        ("all", "5 minutes,even shown , even input", Age("all", None, 300_000, "", ("shown", "input"))),
    ],
)
def test_a_rule_is_read_from_words(kind: str, told: str, age: Age) -> None:
    assert read_age(kind, told) == age
    assert read_rule(str(age)) == age


RULES = st.builds(
    Age,
    st.sampled_from(["all", "tool_results", "media", "user_messages"]),
    st.integers(0, 10**6),
    st.none() | st.integers(0, 10**14),
    even=st.lists(st.sampled_from(["short", "shown", "pinned", "system", "input"]), unique=True).map(tuple),
)


@given(RULES)
def test_a_rule_says_what_it_is_so_that_it_can_be_read_again(age: Age) -> None:
    assert read_rule(str(age)) == age


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"tool resuls": "9 days"}, "Unknown kind 'tool_resuls'"),
        ({"all": "90"}, "Write 90 days"),
        ({"all": "-1 days"}, "Write 90 days"),
        ({"all": "9 days and 8 days"}, "Write 90 days"),
        ({"all": ""}, "Write 90 days"),
        ({"all": "9 days, pinned"}, "Write `even pinned`"),
        ({"all": "9 days, even everything"}, "contains 'everything'"),
        ({"all": 9}, "Pass a text"),
        ({"all": []}, "Pass a text"),
        ({9: "9 days"}, "Pass a text"),
        ({"runs": "9 turns"}, "have no turns"),
        ({"conversations": "9 turns and 9 days"}, "have no turns"),
        ({"media:grep": "9 days"}, "cannot name a tool"),
        ({}, "at least one rule"),
        (["9 days"], "or values of Age"),
    ],
)
def test_what_is_no_rule_is_refused(told: Any, why: str) -> None:
    with pytest.raises(BadSetting, match=why):
        read_ages(told)


def test_several_rules_for_one_kind_are_a_list() -> None:
    assert read_ages({"all": ["9 turns", "9 days"]}) == (Age("all", 9), Age("all", None, 9 * DAY))
    with pytest.raises(BadSetting, match="The age of all has no limit"):
        Age("all")
    with pytest.raises(BadSetting, match="whole number"):
        Age("all", -1)


# ------------------------------------------------------------------------------------------------------------ over age


def test_what_has_reached_its_age_goes() -> None:
    rows = said("user", "assistant", "tool", "assistant", "tool", "user")
    assert going(rows, Age("all", 3)) == [1, 2, 3]
    assert going(rows, Age("all", None, 3 * DAY)) == [1, 2, 3]
    assert going(rows, Age("all", None, 3 * DAY + 1)) == [1, 2]
    assert going(rows, Age("tool_results", 1)) == [3, 5]
    assert going(rows, Age("all", 0)) == [1, 2, 3, 4, 5, 6]


def test_both_limits_of_a_rule_have_to_be_passed_and_of_two_rules_either() -> None:
    rows = said("user", "user", "user", "user", "user")
    assert going(rows, Age("all", 1, 3 * DAY)) == going(rows, Age("all", 3, DAY)) == [1, 2]
    assert going(rows, Age("all", 1), Age("all", None, 3 * DAY)) == [1, 2, 3, 4]


def test_the_narrowest_rules_decide() -> None:
    rows = said("tool", "tool", "user", "assistant", source="grep")
    rows[1] = StampRow(2, rows[1].id, Stamp(2, rows[1].stamp.time, 10, "tool", "read"), 100)
    longer = Age("tool_results", 100, tool="grep")
    assert going(rows, Age("all", 0), longer) == [2, 3, 4]
    assert going(rows, Age("all", 0), Age("tool_results", 100), Age("tool_results", 0, tool="grep")) == [1, 3, 4]
    assert going(rows, Age("tool_results", 0), longer) == [2]


def test_media_is_looked_for_only_where_it_counts() -> None:
    rows = said("user", "tool", "user", "tool")
    aging = OverAgeCheck([Age("media", 2), Age("tool_results", 1)], NOW, Visible(4))
    for row in rows:
        aging.take(row)
    assert aging.undecided == [1, 2]  # The second goes either way, and it is told by which rule; the last ones do not.
    assert going(rows, Age("media", 2), Age("tool_results", 1), media=frozenset([1])) == [1, 2]
    assert going(rows, Age("media", 100), Age("all", 0), media=frozenset([3])) == [1, 2, 4]


def test_other_origins_are_of_no_kind_but_all() -> None:
    rows = said("plugin", "summary", "derived", "system", "user")
    every = [Age("user_messages", 0), Age("assistant_messages", 0), Age("tool_results", 0)]
    assert going(rows, *every) == [3, 5]
    assert going(rows, Age("all", 0)) == [1, 2, 3, 5]
    assert going(rows, Age("all", 0, even=("system",))) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("shown", "even", "why"),
    [
        ({"whole": frozenset([1])}, "shown", "shown"),
        ({"short": frozenset([1])}, "short", "short"),
        ({"short": frozenset([1])}, "shown", "short"),
        ({"pinned": frozenset([1])}, "pinned", "pinned"),
        ({"last_input": 1}, "input", "input"),
    ],
)
def test_what_is_needed_waits_unless_a_rule_says_otherwise(shown: dict[str, Any], even: Any, why: str) -> None:
    rows = said("user", "user")
    aging = aged(rows, Age("all", 0), **shown)
    assert (sorted(aging.due), waiting(aging)) == ([2], {1: why})
    assert going(rows, Age("all", 0, even=(even,)), **shown) == [1, 2]


def test_what_is_erased_already_is_passed_over_but_for_a_summary_that_outlived_it() -> None:
    rows = [StampRow(row.position, row.id, row.stamp, 0) for row in said("user", "user", "user")]
    assert going(rows, Age("all", 0)) == []
    assert going(rows, Age("all", 0), outlived=((2, 3),)) == []
    aging = aged(rows, Age("all", 0, even=("shown",)), outlived=((2, 3),))
    assert (sorted(aging.due), waiting(aging)) == ([2, 3], {})


def copying(position: int, form: Any, handle: str = "", message: str = "") -> StampRow:
    return StampRow(
        position, f"{position:040x}", Stamp(position, NOW, 1, "derived", expanded=Expansion(form, handle, message)), 9
    )


def test_a_message_that_is_shown_again_by_one_that_stays_waits() -> None:
    rows = said("user", "user", "user", "user")
    one = rows[1].id
    for copy, waits in (
        (copying(5, "whole", "m2"), {2}),
        (copying(5, "lines", "m2-m3"), {2, 3}),
        (copying(5, "whole", message=one), {2}),
        (copying(5, "whole", "what?"), {1, 2, 3, 4}),
        (copying(5, "view", "m2"), set()),
        (copying(5, "refused", "m2"), set()),
    ):
        aging = aged([*rows, copy], Age("user_messages", 0))
        assert waiting(aging) == dict.fromkeys(sorted(waits), "copied")


def test_a_copy_that_goes_keeps_nothing_and_one_that_stays_keeps_what_it_was_copied_from() -> None:
    rows = [*said("user", "user"), copying(3, "whole", "m1"), copying(4, "whole", "m3")]
    assert going(rows, Age("all", 0)) == [1, 2, 3, 4]
    aging = aged(rows, Age("all", 0), whole=frozenset([4]))
    assert (sorted(aging.due), waiting(aging)) == ([2], {1: "copied", 3: "copied", 4: "shown"})


def test_what_a_search_quoted_waits_with_its_result() -> None:
    rows = [*said("user", "user"), copying(3, "search")]
    aging = OverAgeCheck([Age("user_messages", 0)], NOW, Visible(3))
    for row in rows:
        aging.take(row)
    assert aging.searches == [3]
    aging.set_quotes(3, [2, 7])
    aging.spare_copied()
    assert (sorted(aging.due), waiting(aging)) == ([1], {2: "copied"})


def test_what_a_fork_shares_waits_until_it_is_over_its_age_there_too() -> None:
    rows = said("user", "user", "user", "user")
    aging = aged(rows, Age("all", 2))
    assert sorted(aging.due) == [1, 2]
    aging.spare_shared(1, Visible(2))
    assert (sorted(aging.due), waiting(aging)) == ([2], {1: "forked"})
    aging = aged(rows, Age("all", 2))
    aging.spare_shared(2, Visible(9, whole=frozenset([2])))
    assert (sorted(aging.due), waiting(aging)) == ([1], {2: "forked"})


def test_a_conversation_that_was_not_touched_for_long_goes_whole() -> None:
    rows = said("system", "user", "assistant")
    rule = Age("conversations", None, 9 * DAY)
    assert going(rows, rule, now=NOW + 8 * DAY, last_input=2) == []
    aging = aged(rows, rule, now=NOW + 9 * DAY, last_input=2, whole=frozenset([1, 2, 3]), pinned=frozenset([3]))
    assert (sorted(aging.due), aging.is_untouched) == ([1, 2, 3], True)
    aging.spare_shared(2, Visible(9, touched=NOW + DAY))
    assert (sorted(aging.due), waiting(aging)) == ([3], {1: "forked", 2: "forked"})


def test_a_clock_that_went_back_ages_nothing_early() -> None:
    """The second message was said when the clock stood at 1970."""
    rows = said("user", "user", "user")
    rows[1] = StampRow(2, rows[1].id, Stamp(2, 5, 10, "user"), 100)
    assert going(rows, Age("all", None, 2 * DAY)) == [1, 2]  # As old as the one before it, and no older.
    assert going(rows, Age("all", None, 3 * DAY)) == []
    assert going(rows, Age("all", None, DAY), now=10) == []
    assert going(rows, Age("all", None, 0), now=rows[0].stamp.time) == [1, 2]


TIMES = st.lists(st.integers(0, 100), min_size=1, max_size=12)


@given(TIMES, st.integers(0, 120), st.integers(0, 100))
def test_whatever_the_clock_did_nothing_goes_before_its_age_and_the_order_is_kept(
    times: list[int], now: int, limit: int
) -> None:
    rows = [StampRow(n, str(n), Stamp(n, time, 1, "user"), 1) for n, time in enumerate(times, 1)]
    gone = going(rows, Age("all", None, limit), now=now)
    assert all(now - times[position - 1] >= limit for position in gone)
    assert gone == list(range(1, len(gone) + 1))
    later = going(rows, Age("all", None, limit), now=now + 1)
    assert set(gone) <= set(later)


def test_runs_age_from_their_end_and_one_that_never_ended_waits() -> None:
    runs = [AgentRun(id, "me", "one", begun=1, ended=ended) for id, ended in (("a", 5), ("b", 7), ("c", 0))]
    assert [run.id for run in over_age_runs(runs, [Age("runs", None, 3)], 9)] == ["a"]
    assert [run.id for run in over_age_runs(runs, [Age("all", None, 0)], 9)] == []
