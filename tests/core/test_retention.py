"""Retention rules: their text form, and the messages over their age."""

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


def rows_of(*origins: Origin, **facts: Any) -> list[StampRow]:
    """Return messages, one per turn and day, the newest today."""
    last = len(origins)
    return [
        StampRow(n, f"{n:040x}", Stamp(n, NOW - (last - n) * DAY, 10, origin, **facts), 100)
        for n, origin in enumerate(origins, 1)
    ]


def checked(
    rows: list[StampRow], *ages: Age, now: int = NOW, media: frozenset[int] = frozenset(), **shown: Any
) -> OverAgeCheck:
    """Return the check of these messages with this view."""
    check = OverAgeCheck(ages, now, Visible(rows[-1].stamp.turn, **{"touched": rows[-1].stamp.time, **shown}))
    for row in rows:
        check.take(row)
    for position in list(check.undecided):
        check.set_has_media(position, has_media=position in media)
    check.spare_copied()
    return check


def due(*rows: Any, **facts: Any) -> list[int]:
    return sorted(checked(*rows, **facts).due)


def waiting(check: OverAgeCheck) -> dict[int, str]:
    return {position: why for position, (_, why) in check.waiting.items()}


# ------------------------------------------------------------------------------------------------------------ in words


@pytest.mark.parametrize(
    ("kind", "text", "age"),
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
def test_a_rule_is_parsed_from_words(kind: str, text: str, age: Age) -> None:
    assert read_age(kind, text) == age
    assert read_rule(str(age)) == age


RULES = st.builds(
    Age,
    st.sampled_from(["all", "tool_results", "media", "user_messages"]),
    st.integers(0, 10**6),
    st.none() | st.integers(0, 10**14),
    even=st.lists(st.sampled_from(["short", "shown", "pinned", "system", "input"]), unique=True).map(tuple),
)


@given(RULES)
def test_str_of_a_rule_parses_to_the_same_rule(age: Age) -> None:
    assert read_rule(str(age)) == age


@pytest.mark.parametrize(
    ("text", "why"),
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
def test_an_invalid_rule_is_refused(text: Any, why: str) -> None:
    with pytest.raises(BadSetting, match=why):
        read_ages(text)


def test_one_kind_takes_a_list_of_rules() -> None:
    assert read_ages({"all": ["9 turns", "9 days"]}) == (Age("all", 9), Age("all", None, 9 * DAY))
    with pytest.raises(BadSetting, match="The age of all has no limit"):
        Age("all")
    with pytest.raises(BadSetting, match="whole number"):
        Age("all", -1)


# ------------------------------------------------------------------------------------------------------------ over age


def test_a_message_goes_when_it_reaches_its_age() -> None:
    rows = rows_of("user", "assistant", "tool", "assistant", "tool", "user")
    assert due(rows, Age("all", 3)) == [1, 2, 3]
    assert due(rows, Age("all", None, 3 * DAY)) == [1, 2, 3]
    assert due(rows, Age("all", None, 3 * DAY + 1)) == [1, 2]
    assert due(rows, Age("tool_results", 1)) == [3, 5]
    assert due(rows, Age("all", 0)) == [1, 2, 3, 4, 5, 6]


def test_a_rule_needs_both_limits_and_two_rules_need_either() -> None:
    rows = rows_of("user", "user", "user", "user", "user")
    assert due(rows, Age("all", 1, 3 * DAY)) == due(rows, Age("all", 3, DAY)) == [1, 2]
    assert due(rows, Age("all", 1), Age("all", None, 3 * DAY)) == [1, 2, 3, 4]


def test_the_narrowest_rules_decide() -> None:
    rows = rows_of("tool", "tool", "user", "assistant", source="grep")
    rows[1] = StampRow(2, rows[1].id, Stamp(2, rows[1].stamp.time, 10, "tool", "read"), 100)
    longer = Age("tool_results", 100, tool="grep")
    assert due(rows, Age("all", 0), longer) == [2, 3, 4]
    assert due(rows, Age("all", 0), Age("tool_results", 100), Age("tool_results", 0, tool="grep")) == [1, 3, 4]
    assert due(rows, Age("tool_results", 0), longer) == [2]


def test_media_are_checked_only_if_they_decide() -> None:
    rows = rows_of("user", "tool", "user", "tool")
    check = OverAgeCheck([Age("media", 2), Age("tool_results", 1)], NOW, Visible(4))
    for row in rows:
        check.take(row)
    # The second message goes in any case, but the rule differs. The last two need no check.
    assert check.undecided == [1, 2]
    assert due(rows, Age("media", 2), Age("tool_results", 1), media=frozenset([1])) == [1, 2]
    assert due(rows, Age("media", 100), Age("all", 0), media=frozenset([3])) == [1, 2, 4]


def test_other_origins_match_only_all() -> None:
    rows = rows_of("plugin", "summary", "derived", "system", "user")
    every = [Age("user_messages", 0), Age("assistant_messages", 0), Age("tool_results", 0)]
    assert due(rows, *every) == [3, 5]
    assert due(rows, Age("all", 0)) == [1, 2, 3, 5]
    assert due(rows, Age("all", 0, even=("system",))) == [1, 2, 3, 4, 5]


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
def test_protected_content_waits_unless_a_rule_includes_it(shown: dict[str, Any], even: Any, why: str) -> None:
    rows = rows_of("user", "user")
    check = checked(rows, Age("all", 0), **shown)
    assert (sorted(check.due), waiting(check)) == ([2], {1: why})
    assert due(rows, Age("all", 0, even=(even,)), **shown) == [1, 2]


def test_erased_messages_are_skipped_unless_a_summary_outlived_them() -> None:
    rows = [StampRow(row.position, row.id, row.stamp, 0) for row in rows_of("user", "user", "user")]
    assert due(rows, Age("all", 0)) == []
    assert due(rows, Age("all", 0), outlived=((2, 3),)) == []
    check = checked(rows, Age("all", 0, even=("shown",)), outlived=((2, 3),))
    assert (sorted(check.due), waiting(check)) == ([2, 3], {})


def copying(position: int, form: Any, handle: str = "", message: str = "") -> StampRow:
    return StampRow(
        position, f"{position:040x}", Stamp(position, NOW, 1, "derived", expanded=Expansion(form, handle, message)), 9
    )


def test_a_message_waits_while_a_kept_message_shows_it_again() -> None:
    rows = rows_of("user", "user", "user", "user")
    one = rows[1].id
    for copy, waits in (
        (copying(5, "whole", "m2"), {2}),
        (copying(5, "lines", "m2-m3"), {2, 3}),
        (copying(5, "whole", message=one), {2}),
        (copying(5, "whole", "what?"), {1, 2, 3, 4}),
        (copying(5, "view", "m2"), set()),
        (copying(5, "refused", "m2"), set()),
    ):
        check = checked([*rows, copy], Age("user_messages", 0))
        assert waiting(check) == dict.fromkeys(sorted(waits), "copied")


def test_only_a_copy_that_stays_protects_its_source() -> None:
    rows = [*rows_of("user", "user"), copying(3, "whole", "m1"), copying(4, "whole", "m3")]
    assert due(rows, Age("all", 0)) == [1, 2, 3, 4]
    check = checked(rows, Age("all", 0), whole=frozenset([4]))
    assert (sorted(check.due), waiting(check)) == ([2], {1: "copied", 3: "copied", 4: "shown"})


def test_messages_quoted_by_a_search_wait_with_its_result() -> None:
    rows = [*rows_of("user", "user"), copying(3, "search")]
    check = OverAgeCheck([Age("user_messages", 0)], NOW, Visible(3))
    for row in rows:
        check.take(row)
    assert check.searches == [3]
    check.set_quotes(3, [2, 7])
    check.spare_copied()
    assert (sorted(check.due), waiting(check)) == ([1], {2: "copied"})


def test_shared_messages_wait_until_they_are_over_age_in_the_fork() -> None:
    rows = rows_of("user", "user", "user", "user")
    check = checked(rows, Age("all", 2))
    assert sorted(check.due) == [1, 2]
    check.spare_shared(1, Visible(2))
    assert (sorted(check.due), waiting(check)) == ([2], {1: "forked"})
    check = checked(rows, Age("all", 2))
    check.spare_shared(2, Visible(9, whole=frozenset([2])))
    assert (sorted(check.due), waiting(check)) == ([1], {2: "forked"})


def test_an_untouched_conversation_goes_as_a_whole() -> None:
    rows = rows_of("system", "user", "assistant")
    rule = Age("conversations", None, 9 * DAY)
    assert due(rows, rule, now=NOW + 8 * DAY, last_input=2) == []
    check = checked(rows, rule, now=NOW + 9 * DAY, last_input=2, whole=frozenset([1, 2, 3]), pinned=frozenset([3]))
    assert (sorted(check.due), check.is_untouched) == ([1, 2, 3], True)
    check.spare_shared(2, Visible(9, touched=NOW + DAY))
    assert (sorted(check.due), waiting(check)) == ([3], {1: "forked", 2: "forked"})


def test_a_clock_that_went_back_ages_no_message_early() -> None:
    """The clock stood at 1970 for the second message."""
    rows = rows_of("user", "user", "user")
    rows[1] = StampRow(2, rows[1].id, Stamp(2, 5, 10, "user"), 100)
    assert due(rows, Age("all", None, 2 * DAY)) == [1, 2]  # As old as the message before it, and no older.
    assert due(rows, Age("all", None, 3 * DAY)) == []
    assert due(rows, Age("all", None, DAY), now=10) == []
    assert due(rows, Age("all", None, 0), now=rows[0].stamp.time) == [1, 2]


TIMES = st.lists(st.integers(0, 100), min_size=1, max_size=12)


@given(TIMES, st.integers(0, 120), st.integers(0, 100))
def test_no_message_goes_before_its_age_with_any_clock(times: list[int], now: int, limit: int) -> None:
    rows = [StampRow(n, str(n), Stamp(n, time, 1, "user"), 1) for n, time in enumerate(times, 1)]
    gone = due(rows, Age("all", None, limit), now=now)
    assert all(now - times[position - 1] >= limit for position in gone)
    assert gone == list(range(1, len(gone) + 1))
    later = due(rows, Age("all", None, limit), now=now + 1)
    assert set(gone) <= set(later)


def test_runs_age_from_their_end() -> None:
    runs = [AgentRun(id, "me", "one", begun=1, ended=ended) for id, ended in (("a", 5), ("b", 7), ("c", 0))]
    assert [run.id for run in over_age_runs(runs, [Age("runs", None, 3)], 9)] == ["a"]
    assert [run.id for run in over_age_runs(runs, [Age("all", None, 0)], 9)] == []
