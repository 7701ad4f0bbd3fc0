"""Rules: each one reports its violation and accepts the legal view; and cut points."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate.core import checker as checkers
from foveate.core import rules
from foveate.core.call_context import Budget
from foveate.core.checker import Checker, Violation, check
from foveate.core.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from foveate.core.rules import RULES
from foveate.core.stamps import Stamp
from foveate.core.units import cut_points
from foveate.core.view import Entry, View
from foveate.testing import answer, call, calls, say, system, thought, user
from foveate.testing.strategies import edits, histories, messages

from .story import ANTHROPIC, BINDING, OPENAI, Story

PIXEL = Media("image/png", "base64", "AAAA")
FOREIGN = Opaque("openai", "video_url", "{}")
OWN = Opaque("anthropic", "container_upload", "{}")
MANY = settings(max_examples=settings.default.max_examples * 2)


def entries(*items: Message, **changes: object) -> tuple[Entry, ...]:
    """Return one entry for each message, numbered from 1, without legalization."""
    return tuple(
        Entry(
            n, f"{n:040}", message, message, Stamp(n, n, 9, message.role), is_result=message.role == "tool", **changes
        )
        for n, message in enumerate(items, 1)
    )


def broken(view: tuple[Entry, ...], profile=ANTHROPIC) -> list[tuple[str, int]]:
    """Return rule and position of each violation."""
    return [(violation.rule, violation.position) for violation in check(view, profile)]


GO = user("go")


# ------------------------------------------------------------------------------------------------- CallsAreAnswered


@pytest.mark.parametrize("profile", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize(
    ("message", "results"),
    [
        ([GO, call("a"), user("on")], [("CallsAreAnswered", 3)]),
        ([GO, call("a")], [("CallsAreAnswered", 2)]),
        ([GO, calls("a", "b"), answer("b"), user("on")], [("CallsAreAnswered", 4)]),
        ([GO, calls("a", "b"), answer("b")], [("CallsAreAnswered", 3)]),
        ([GO, answer("a"), user("on")], [("CallsAreAnswered", 2)]),
        ([GO, call("a"), answer("a"), answer("a")], [("CallsAreAnswered", 4)]),
        ([GO, call("a"), answer("b")], [("CallsAreAnswered", 3), ("CallsAreAnswered", 3)]),
        ([GO, call("a"), user("hurry"), answer("a")], [("CallsAreAnswered", 3), ("CallsAreAnswered", 4)]),
        ([GO, call("a"), call("b"), answer("b")], [("CallsAreAnswered", 3)]),
        ([GO, call("a"), answer("a")], []),
        ([GO, calls("a", "b", "c"), answer("c"), answer("a"), answer("b"), call("d"), answer("d")], []),
    ],
)
def test_a_call_without_its_answer_directly_after_it_is_reported(message, results, profile):
    assert broken(entries(*message), profile) == results


def test_a_violation_prints_a_sentence():
    view = entries(GO, calls("b", "a"), user("on"), answer("b"))
    first, second = check(view, OPENAI)
    assert first == Violation("CallsAreAnswered", 3, "leaves calls unanswered before it: a, b")
    assert str(second) == "message 4: answers call 'b', which is not open here (CallsAreAnswered)"


# ---------------------------------------------------------------------------------------------------- CallIdsAreOwn


def test_a_repeated_or_empty_call_id_is_reported():
    twice = entries(GO, call("a"), answer("a"), call("a"), answer("a"), calls("b", "b"), answer("b"))
    assert broken(twice) == [("CallIdsAreOwn", 4), ("CallIdsAreOwn", 6)]
    assert broken(entries(GO, call(""), answer(""))) == [("CallIdsAreOwn", 2)]
    assert broken(entries(GO, call("a"), answer("a"), calls("b", "c"), answer("b"), answer("c"))) == []


# -------------------------------------------------------------------------------------------------- NothingIsEmpty


@pytest.mark.parametrize(
    ("message", "is_bad"),
    [
        (Message("user"), True),
        (Message("assistant", (Reasoning("hm", "c2ln", format="anthropic"),)), True),
        (Message("assistant", (Text(" \n"),)), True),
        (Message("user", (Text("words"), Text(""))), True),
        (Message("user", (PIXEL,)), False),
        (Message("user", (OWN,)), False),
        (Message("user", (Text("words"), PIXEL)), False),
    ],
)
def test_an_empty_message_or_blank_text_is_reported(message, is_bad):
    assert broken(entries(GO, message)) == ([("NothingIsEmpty", 2)] if is_bad else [])


def test_a_blank_result_text_or_empty_error_is_reported():
    for content, state, is_bad in (
        ((Text("  "),), "ok", True),
        ((PIXEL, Text("")), "ok", True),
        ((), "error", True),
        ((), "ok", False),
        ((), "interrupted", False),
        ((Text("no such file"),), "error", False),
    ):
        view = entries(GO, call("a"), Message("tool", (ToolResult("a", content, state),)))
        assert broken(view) == ([("NothingIsEmpty", 3)] if is_bad else [])
    assert broken(entries(GO, Message("tool"))) == [("NothingIsEmpty", 2)]


# ---------------------------------------------------------------------------------------------- ArgumentsAreObjects


@pytest.mark.parametrize("profile", [OPENAI, ANTHROPIC])
def test_arguments_that_are_no_json_object_are_reported(profile):
    for arguments in (
        "",
        "nonsense",
        '{"a": 1',
        "[1]",
        '"text"',
        "null",
        '{"half":"\\ud83d"}',
        "\ud800",
        "[" * 100_000,
    ):
        view = entries(GO, Message("assistant", (ToolCall("a", "t", arguments),)), answer("a"))
        assert broken(view, profile) == [("ArgumentsAreObjects", 2)]
    for arguments in ("{}", '{"a": [1, {"b": null}]}', ' {"é": 1.50e3}\n'):
        view = entries(GO, Message("assistant", (ToolCall("a", "t", arguments),)), answer("a"))
        assert broken(view, profile) == []


# -------------------------------------------------------------------------------------------------- UserSpeaksFirst


def test_a_view_without_a_first_user_is_reported_if_required():
    assert broken(entries(system("rules"), say("hello"), GO)) == [("UserSpeaksFirst", 2)]
    assert broken(entries(system("rules"), say("hello"), GO), OPENAI) == []
    assert broken(entries(system("rules"), GO, say("hello"))) == []
    assert broken(entries(system("rules"), system("more")), OPENAI) == [("UserSpeaksFirst", 2)]
    assert broken((), OPENAI) == [("UserSpeaksFirst", 0)]


# -------------------------------------------------------------------------------------------------- ReasoningIsWhole


def test_foreign_or_unsigned_reasoning_is_reported():
    for thoughts, is_bad in (
        (Reasoning("hm", "c2ln", format="openai"), True),
        (Reasoning("hm", "c2ln"), True),
        (Reasoning("hm", format="anthropic"), True),
        (Reasoning(encrypted="eHg=", format="anthropic"), False),
        (Reasoning("hm", "c2ln", format="anthropic"), False),
    ):
        view = entries(GO, Message("assistant", (thoughts, Text("so"))))
        assert broken(view) == ([("ReasoningIsWhole", 2)] if is_bad else [])
    unsigned = Message("assistant", (Reasoning("hm", format="openai"), Text("so")))
    assert broken(entries(GO, unsigned), OPENAI) == []


def test_missing_reasoning_of_calls_is_reported_unless_bound():
    whole = entries(GO, thought("hm", call("a")), answer("a"))
    assert broken(whole) == []
    bare = replace(whole[1], message=call("a"))
    assert broken((whole[0], bare, whole[2])) == [("ReasoningIsWhole", 2)]
    assert broken((whole[0], bare, whole[2]), BINDING) == []
    message = entries(GO, thought("hm", say("so")))
    assert broken((message[0], replace(message[1], message=say("so")))) == []


def test_reasoning_that_the_provider_refuses_is_not_missed():
    message = entries(GO, thought("hm", call("a"), signature=""), answer("a"))
    assert broken((message[0], replace(message[1], message=call("a")), message[2])) == []


# --------------------------------------------------------------------------------------------------- VoidBlocksStayAway


def test_void_blocks_before_a_fallback_are_reported():
    place = Opaque("anthropic", "fallback", '{"type":"fallback"}')
    void = Opaque("anthropic", "tool_use", '{"type":"tool_use"}')
    for part, is_bad in ((void, True), (Reasoning("hm", "c2ln", format="anthropic"), True), (Text("so"), False)):
        view = entries(GO, Message("assistant", (part, place, Text("so"))))
        assert broken(view) == ([("VoidBlocksStayAway", 2)] if is_bad else [])
        assert broken(entries(GO, Message("assistant", (Text("so"), place, part, Text("so"))))) == []


# ------------------------------------------------------------------------------------------------ ForeignBlocksStayAway


def test_foreign_blocks_are_reported_also_inside_results():
    assert broken(entries(Message("user", (Text("see"), FOREIGN)))) == [("ForeignBlocksStayAway", 1)]
    assert broken(entries(Message("user", (Text("see"), OWN)))) == []
    for nested, results in ((FOREIGN, [("ForeignBlocksStayAway", 3)]), (OWN, [])):
        view = entries(GO, call("a"), Message("tool", (ToolResult("a", (Text("see"), nested)),)))
        assert broken(view) == results


# -------------------------------------------------------------------------------------------------- PromptsAreIntact


def test_changed_prompts_and_last_inputs_are_reported():
    view = entries(system("rules"), user("old"), say("ok"), user("new"), say("ok"))
    assert broken(view) == []
    assert broken((replace(view[0], shrunk=((0,),), shrunk_by=("",)), *view[1:])) == [("PromptsAreIntact", 1)]
    assert broken((view[0], replace(view[1], shrunk=((0,),), shrunk_by=("",)), *view[2:])) == []
    (violation,) = check((*view[:3], replace(view[3], shrunk=((0,),), shrunk_by=("",)), view[4]), ANTHROPIC)
    assert violation == Violation("PromptsAreIntact", 5, "the last user input, m4, is not shown unchanged")


def test_an_erased_input_remains_the_last_one():
    view = entries(user("old"), say("ok"))
    shown = View((replace(view[0], shrunk=((0,),), shrunk_by=("",)), view[1]), 2, Budget(9, 0, 9, 9), newest_input=3)
    assert check(shown, ANTHROPIC) == []
    assert check(replace(shown, newest_input=1), ANTHROPIC) == check(shown.entries, ANTHROPIC) != []


def test_results_and_summaries_are_no_user_input():
    view = entries(user("go"), call("a"), answer("a"))
    note = replace(view[2], message=user("note"), kind="note", shrunk=((0,),), shrunk_by=("",))
    text = replace(
        view[2], position=4, message=user("told"), appended=None, kind="summary", stamp=Stamp(1, 1, 1, "summary")
    )
    assert broken((view[0], note, text)) == []


# --------------------------------------------------------------------------------------------------------- all of them


def test_every_rule_names_its_provider_and_damage():
    written = {value for value in vars(rules).values() if isinstance(value, type) and "breaks" in vars(value)}
    assert set(RULES) == written
    assert all(rule.__doc__ and rule.provider and rule.breaks for rule in written)


def test_a_view_and_its_entries_are_checked_alike():
    view = entries(GO, call("a"))
    assert check(View(view, 1, Budget(9, 0, 9, 9)), OPENAI) == check(view, OPENAI) != []


# ------------------------------------------------------------------------------------------------------------- Checker


@st.composite
def changes(draw: st.DrawFn, result: list[Message]) -> list[tuple[int, int, int]]:
    return draw(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 90), st.integers(0, len(result) - 1)), max_size=14)
    )


@settings(max_examples=settings.default.max_examples // 2)
@given(
    result=st.lists(messages(), min_size=1, max_size=8), profile=st.sampled_from([OPENAI, ANTHROPIC]), data=st.data()
)
def test_a_reused_checker_agrees_with_a_fresh_one(result, profile, data):
    """Views that grow, shrink and change anywhere, legal or not, across many marks of the checker."""
    checker = Checker(profile)
    pool = entries(*result, GO, call("a"), answer("a"), calls("b", "c"), answer("c"), say("ok"))
    view: list[Entry] = [pool[n % len(pool)] for n in range(data.draw(st.integers(0, 700)))]
    for kind, place, choice in data.draw(changes(result)):
        at = place * len(view) // 91
        match kind:
            case 0:
                view += [replace(pool[(choice + n) % len(pool)], position=len(view) + n) for n in range(place)]
            case 1 if view:
                view[at] = replace(view[at], message=pool[choice].message)
            case 2:
                view = view[:at]
            case _:
                view = [*view[:at], *view[at + choice :]]
        assert checker.check(view) == check(view, profile)


def test_an_edit_reads_at_most_twice_what_follows_it(monkeypatch: pytest.MonkeyPatch):
    """Marks of the rules lie along the whole view, and few of them."""
    read, read_alone = list[int](), list[int]()

    class Counting(rules._Inside):
        def read(self, entry: Entry, profile: object) -> list[str]:
            read.append(entry.position)
            return []

    class CountingAlone(rules.Alone):
        def read(self, entry: Entry, profile: object) -> list[str]:
            read_alone.append(entry.position)
            return []

    monkeypatch.setattr(checkers, "RULES", (*RULES, Counting, CountingAlone))
    checker, view = Checker(ANTHROPIC), list(entries(*[GO] * 2_000))
    checker.check(view)
    for at in (1_990, 1_900, 1_700, 1_400, 1_100):
        read.clear()
        read_alone.clear()
        view = [*view[:at], replace(view[at], pins=()), *view[at + 1 :]]
        checker.check(view)
        assert len(view) - at <= len(read) <= 2 * (len(view) - at) + 32
        assert read_alone == [view[at].position]
    assert len(checker._marks) <= 14


@MANY
@given(history=histories(), profile=st.sampled_from([OPENAI, ANTHROPIC, BINDING]), data=st.data())
def test_every_view_of_a_projection_is_legal(history, profile, data):
    story, checker = Story(profile=profile), Checker(profile)
    for message in history:
        story.say(message)
        if data.draw(st.integers(0, 3)) == 0:
            story.edit(*data.draw(edits([row.id for row in story.rows], max_size=2)))
        view = story.projection.entries()
        if any(entry.message.role != "system" for entry in view):
            assert checker.check(view) == check(view, profile) == []


# ----------------------------------------------------------------------------------------------------------- cut_points


def points(*items: Message) -> list[int]:
    return cut_points(Story(*items).projection.entries())


def test_a_view_is_cut_between_units_and_at_both_ends():
    assert points() == [0]
    assert points(user("a"), say("b"), user("c")) == [0, 1, 2, 3]
    assert cut_points(Story(user("a")).view()) == [0, 1]


def test_parallel_calls_and_their_answers_are_one_unit():
    assert points(GO, calls("a", "b"), answer("b"), answer("a"), say("ok")) == [0, 1, 4, 5]
    # The user's text in between follows the answers, and a cut there is allowed.
    assert points(GO, calls("a", "b"), answer("b"), user("hurry"), answer("a"), say("ok")) == [0, 1, 4, 5, 6]


def test_a_late_answer_is_a_separate_note():
    story = Story(GO, call("a"), call("b"), answer("b"), answer("a"))
    assert [entry.kind for entry in story.projection.entries()] == [
        "message",
        "message",
        "stand-in",
        "message",
        "message",
        "note",
    ]
    assert cut_points(story.projection.entries()) == [0, 1, 3, 5, 6]


def test_a_dead_call_at_the_end_keeps_its_stand_in():
    assert points(GO, calls("a", "b"), answer("a")) == [0, 1, 4]


def test_reused_and_empty_ids_stay_distinct():
    assert points(GO, call("a"), answer("a"), calls("a", "a"), answer("a"), answer("a"), call(""), answer("")) == [
        0,
        1,
        3,
        6,
        8,
    ]


def test_a_cut_never_separates_reasoning_from_its_calls():
    story = Story(GO, thought("hm", call("a")), answer("a"), thought("so", say("ok")), profile=ANTHROPIC)
    assert cut_points(story.projection.entries()) == [0, 1, 3, 4]


@MANY
@given(history=histories(), data=st.data())
def test_both_sides_of_a_cut_are_legal_by_themselves(history, data):
    view = Story(*history).projection.entries()
    where = cut_points(view)
    assert where == sorted(set(where))
    assert {0, len(view)} <= set(where)
    cut = data.draw(st.sampled_from(where))
    for side in (view[:cut], view[cut:]):
        results = {violation.rule for violation in check(side, OPENAI)}
        assert results <= {"UserSpeaksFirst"}
