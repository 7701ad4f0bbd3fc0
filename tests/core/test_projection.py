"""The projection: the meaning of each edit, then properties of any history and journal."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Container

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate.core.edits import Edit, Hide, Pin, Record, Replace, Restore, Span, Summarize, Target, Unpin, paths_overlap
from foveate.core.effective_edits import EffectiveEdits, gaps, inverse_edits
from foveate.core.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, assistant
from foveate.core.projection import Projection
from foveate.core.snapshots import Cover, Facts, Row, Snapshot, topmost
from foveate.core.stamps import Stamp, Usage
from foveate.testing import answer, call, calls, say, system, thought, user
from foveate.testing.strategies import edits, histories

from .story import ANTHROPIC, BINDING, OPENAI, Story, texts, value_of, values

PIXEL = Media("image/png", "base64", "AAAA")
MANY = settings(max_examples=settings.default.max_examples * 2)


def talk(count: int, **options: object) -> Story:
    """Return a story of two speakers with this many messages. Each message is its own handle."""
    return Story(*((user if n % 2 else say)(f"m{n}") for n in range(1, count + 1)), **options)


def at(story: Story, position: int, *path: int) -> Target:
    return Target(story.id(position), path)


def run(story: Story, first: int, last: int) -> Span:
    return Span(story.id(first), story.id(last))


# ------------------------------------------------------------------------------------------------------------- replace


def test_a_replaced_message_of_one_part_keeps_call_and_state():
    story = Story(user("go"), call("a"), answer("a", "long", state="error", name="grep"), user("on"))
    story.edit(Replace(at(story, 3), (Text("[cleared]"),)))
    entry = story.projection.entries()[2]
    assert entry.message == Message("tool", (ToolResult("a", (Text("[cleared]"),), "error", "grep"),))
    assert (entry.shrunk, entry.edits, entry.source) == (((0,),), (1,), story.rows[2].message)


def test_replacing_a_message_replaces_all_its_parts():
    story = Story(Message("user", (Text("look"), PIXEL, Text("there"))), user("on"))
    story.edit(Replace(at(story, 1), (Text("a picture"), Text("and words"))))
    assert story.projection.entries()[0].message == Message("user", (Text("a picture"), Text("and words")))
    assert story.projection.entries()[0].shrunk == ((),)


def test_a_replaced_part_leaves_its_neighbours():
    story = Story(Message("user", (Text("look"), PIXEL)), user("on"))
    story.edit(Replace(at(story, 1, 1), (Text("[an image]"),)), Replace(at(story, 1, 0), (PIXEL, Text("see"))))
    assert story.projection.entries()[0].message == Message("user", (PIXEL, Text("see"), Text("[an image]")))
    assert story.projection.entries()[0].shrunk == ((1,), (0,))


def test_a_replaced_nested_part_leaves_the_rest_of_its_result():
    story = Story(user("go"), call("a"), answer("a", "seen", PIXEL, PIXEL), user("on"))
    story.edit(Replace(at(story, 3, 0, 1), (Text("[first image]"),)))
    assert story.projection.entries()[2].message.result == ToolResult("a", (Text("seen"), Text("[first image]"), PIXEL))
    assert story.projection.entries()[2].images == 1


def test_replaced_arguments_change_only_the_json_of_the_call():
    story = Story(user("go"), assistant("Well.", ToolCall("a", "write", '{"text":"long"}')), answer("a"), user("on"))
    story.edit(Replace(at(story, 2, 1), (Text('{"text":"l"}'),)))
    assert story.projection.entries()[1].message == assistant("Well.", ToolCall("a", "write", '{"text":"l"}'))


def test_a_later_edit_of_the_same_part_wins():
    story = Story(Message("user", (Text("a"), Text("b"))), user("on"))
    for text in ("first", "second"):
        story.edit(Replace(at(story, 1, 1), (Text(text),)))
    assert texts(story.projection)[0] == "a\nsecond"
    assert story.projection.entries()[0].edits == (1, 2)
    story.edit(Hide(at(story, 1, 1)))
    assert texts(story.projection)[0] == "a"
    story.edit(Replace(at(story, 1, 1), (Text("third"),)))
    assert texts(story.projection)[0] == "a\nthird"


def test_an_edit_of_a_part_does_not_reopen_a_replaced_message():
    story = Story(user("go"), call("a"), answer("a", "seen", PIXEL), user("on"))
    story.edit(Replace(at(story, 3), (Text("[cleared]"),)))
    story.edit(Replace(at(story, 3, 0, 1), (Text("[image]"),)))
    assert texts(story.projection)[2] == "[cleared]"


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: Replace(at(s, 2, 0), (Text("thoughts"),)),
        lambda s: Replace(at(s, 2, 1), (Text("not json"),)),
        lambda s: Replace(at(s, 2, 1), (Text("[1]"),)),
        lambda s: Replace(at(s, 2, 1), (Text("{}"), Text("{}"))),
        lambda s: Replace(at(s, 2, 1), (PIXEL,)),
        lambda s: Replace(at(s, 2), (Text("calls must stay"),)),
        lambda s: Replace(at(s, 2, 7), (Text("no such part"),)),
        lambda s: Replace(at(s, 3, 0, 7), (Text("no such nested part"),)),
        lambda s: Replace(at(s, 1, 0, 0), (Text("a text has no parts"),)),
        lambda s: Replace(Target("0" * 40), (Text("of nobody"),)),
        lambda s: Hide(at(s, 2, 0)),
        lambda s: Hide(at(s, 2, 1)),
        lambda s: Hide(at(s, 3, 0)),
        lambda s: Hide(at(s, 1, 7)),
        lambda s: Hide(Target("0" * 40)),
        lambda s: Hide(Span(s.id(1), "0" * 40)),
        lambda s: Hide(Span(s.id(3), s.id(1))),
        lambda s: Summarize(Span(s.id(3), s.id(1)), "backwards"),
        lambda s: Summarize(Span("0" * 40, s.id(2)), "from nowhere"),
        lambda s: Restore((Target("0" * 40), Span("0" * 40, "1" * 40)), (0, 99)),
        lambda s: Restore((Span(s.id(3), s.id(1)),)),
        lambda s: Pin(Target("0" * 40)),
        lambda s: Unpin(Target("0" * 40)),
        lambda s: Unpin(at(s, 2)),
    ],
)
def test_edits_that_cannot_apply_are_skipped(edit):
    story = Story(user("go"), thought("hm", call("a")), answer("a", "seen", PIXEL), user("on"), profile=ANTHROPIC)
    before = [entry.message for entry in story.projection.entries()]
    story.edit(edit(story))
    assert [entry.message for entry in story.projection.entries()] == before
    assert all(entry.edits == () and entry.shrunk == () for entry in story.projection.entries())
    assert story.projection.number == 1
    assert values(story.folded()) == values(story.projection)


# --------------------------------------------------------------------------------------------------- hide, summarize


def test_hide_removes_a_part_a_message_or_a_span():
    story = talk(6)
    story.say(Message("assistant", (Text("one"), Text("two"))), user("m8"))
    story.edit(Hide(at(story, 7, 0)), Hide(at(story, 2)), Hide(run(story, 4, 5)))
    assert texts(story.projection) == ["m1", "m3", "m6", "two", "m8"]


def test_hiding_half_of_a_pair_leaves_a_note_or_a_stand_in():
    story = Story(user("go"), call("a"), answer("a", "1"), call("b"), answer("b", "2"), user("on"))
    story.edit(Hide(at(story, 2)), Hide(at(story, 5)))
    assert [(entry.kind, entry.position) for entry in story.projection.entries()] == [
        ("message", 1),
        ("note", 3),
        ("message", 4),
        ("stand-in", 4),
        ("message", 6),
    ]


def test_a_summary_is_at_the_start_of_its_span():
    story = talk(6)
    story.edit(Summarize(run(story, 2, 4), "so far", "by hand"))
    entry = story.projection.entries()[1]
    assert texts(story.projection) == ["m1", "so far", "m5", "m6"]
    assert (entry.kind, entry.position, entry.last, entry.span) == ("summary", 2, 4, run(story, 2, 4))
    assert (entry.id, entry.source, entry.edits, entry.message.role) == (story.id(2), None, (1,), "user")
    assert (entry.stamp.origin, entry.stamp.source, entry.stamp.turn) == ("summary", "by hand", 4)


def test_a_wider_summary_covers_inner_ones_until_it_is_undone():
    story = talk(9)
    story.edit(Summarize(run(story, 2, 3), "a"))
    story.edit(Summarize(run(story, 5, 6), "b"))
    story.edit(Summarize(run(story, 2, 7), "all"))
    assert texts(story.projection) == ["m1", "all", "m8", "m9"]
    story.edit(Restore((), (3,)))
    assert texts(story.projection) == ["m1", "a", "m4", "b", "m7", "m8", "m9"]


def test_a_summary_of_the_same_span_replaces_the_older_one():
    story = talk(6)
    story.edit(Summarize(run(story, 2, 4), "long"))
    story.edit(Summarize(run(story, 2, 4), "short"))
    assert texts(story.projection) == ["m1", "short", "m5", "m6"]
    story.edit(Restore((), (2,)))
    assert texts(story.projection) == ["m1", "long", "m5", "m6"]


@pytest.mark.parametrize(("older", "newer"), [((2, 5), (4, 7)), ((4, 7), (2, 5))])
def test_overlapping_summaries_are_both_visible(older, newer):
    story = talk(9)
    story.edit(Summarize(run(story, *older), str(older)))
    story.edit(Summarize(run(story, *newer), str(newer)))
    assert texts(story.projection) == ["m1", "(2, 5)", "(4, 7)", "m8", "m9"]
    story.edit(Restore((), (2,)))
    left = {(2, 5): ["m1", "(2, 5)", "m6", "m7"], (4, 7): ["m1", "m2", "m3", "(4, 7)"]}
    assert texts(story.projection) == [*left[older], "m8", "m9"]


def test_a_narrower_summary_keeps_the_wider_one_visible():
    """A regression: content of the wider summary was neither visible nor summarized."""
    story = talk(8)
    story.edit(Summarize(run(story, 2, 6), "wide"))
    story.edit(Summarize(run(story, 2, 4), "narrow"))
    assert texts(story.projection) == ["m1", "wide", "narrow", "m7", "m8"]
    assert values(story.folded(story.projection.snapshot())) == values(story.projection)
    story.edit(Restore((), (2,)))
    assert texts(story.projection) == ["m1", "wide", "m7", "m8"]


def test_a_hidden_span_can_be_named_by_its_ends():
    story = talk(8)
    story.edit(Hide(run(story, 2, 4)))
    record = story.record_of(Summarize(run(story, 2, 6), "wider"))
    story.projection.apply(record)  # without the positions of the hidden ends
    assert texts(story.projection) == ["m1", "wider", "m7", "m8"]


def test_a_blank_summary_hides_its_span():
    story = talk(5)
    story.edit(Summarize(run(story, 2, 4), " "))
    assert texts(story.projection) == ["m1", "m5"]
    assert values(story.folded(story.projection.snapshot())) == values(story.projection)


def test_hiding_a_summarized_span_hides_the_summary():
    story = talk(7)
    story.edit(Summarize(run(story, 2, 4), "told"))
    story.edit(Hide(run(story, 2, 5)))
    assert texts(story.projection) == ["m1", "m6", "m7"]
    story.edit(Restore((), (2,)))
    assert texts(story.projection) == ["m1", "told", "m5", "m6", "m7"]


def test_hidden_messages_stay_hidden_when_a_summary_goes():
    story = talk(7)
    story.edit(Summarize(run(story, 2, 5), "told"))
    story.edit(Hide(at(story, 3)))
    story.edit(Restore((), (1,)))
    assert texts(story.projection) == ["m1", "m2", "m4", "m5", "m6", "m7"]


# --------------------------------------------------------------------------------------------- what is never covered


def test_protected_messages_stay_in_a_summarized_span():
    story = Story(system("rules"), user("m2"), say("m3"), system("more rules"), say("m5"), user("m6"), say("m7"))
    story.edit(Pin(at(story, 3)))
    story.edit(Summarize(run(story, 1, 7), "told"))
    assert texts(story.projection) == ["told", "rules", "m3", "more rules", "m6"]
    story.say(user("m8"))
    assert texts(story.projection)[-2:] == ["m6", "m8"]  # spared messages stay visible
    story.edit(Restore((), (2,)))
    assert texts(story.projection) == ["rules", "m2", "m3", "more rules", "m5", "m6", "m7", "m8"]


@pytest.mark.parametrize("edit", [lambda t: Replace(t, (Text("no"),)), Hide, lambda t: Hide(Target(t.message, (0,)))])
def test_no_edit_touches_a_system_prompt_or_the_last_user_input(edit):
    story = Story(user("old"), system("rules"), user("new"), say("ok"))
    story.edit(edit(at(story, 2)), edit(at(story, 3)))
    assert texts(story.projection) == ["old", "rules", "new", "ok"]
    story.edit(edit(at(story, 1)))
    assert texts(story.projection)[0] != "old"


def test_the_last_user_input_is_the_last_one_with_content():
    story = Story(user("real"), say("ok"), user("  "), Message("user", (Opaque("other", "x", "{}"),)))
    story.edit(Hide(at(story, 1)))
    assert texts(story.projection) == ["real", "ok"]


def test_an_older_plan_protects_the_input_it_knew():
    """Two processes: one appends while the other one plans. All folds must agree on the protected input."""
    story = talk(3)
    record = story.record_of(Hide(run(story, 1, 3)))
    story.say(say("m4"), user("m5"))
    story.fold_in(story.projection, record, [])
    story.records.append(record)
    assert texts(story.projection) == ["m3", "m4", "m5"]
    assert values(story.folded()) == values(story.projection)


def test_a_pin_holds_until_its_unpin():
    story = talk(5)
    story.edit(Pin(at(story, 2)))
    assert [entry.is_pinned() for entry in story.projection.entries()] == [False, True, False, False, False]
    story.edit(Hide(at(story, 2)), Unpin(at(story, 2)), Hide(at(story, 3)))
    assert texts(story.projection) == ["m1", "m2", "m4", "m5"]
    story.edit(Hide(at(story, 2)))
    assert texts(story.projection) == ["m1", "m4", "m5"]


# ------------------------------------------------------------------------------------------------------------- restore


def test_restore_shows_the_originals_of_its_targets_only():
    def shrunk() -> Story:
        story = Story(user("go"), call("a"), answer("a", "1", PIXEL), call("b"), answer("b", "2"), user("on"))
        story.edit(Replace(at(story, 3, 0, 0), (Text("x"),)), Replace(at(story, 3, 0, 1), (Text("[image]"),)))
        story.edit(Replace(at(story, 5), (Text("y"),)))
        assert texts(story.projection) == ["go", "", "x\n[image]", "", "y", "on"]
        return story

    for edit, shows in (
        (lambda s: Restore((at(s, 3),)), ["go", "", "1", "", "y", "on"]),
        (lambda s: Restore((at(s, 3, 0),)), ["go", "", "1", "", "y", "on"]),
        (lambda s: Restore((at(s, 3, 0, 1),)), ["go", "", "x", "", "y", "on"]),
        (lambda s: Restore((run(s, 3, 5),)), ["go", "", "1", "", "2", "on"]),
        (lambda s: Restore((), (2, 3)), ["go", "", "x", "", "2", "on"]),
        (lambda s: Restore((at(s, 5),), (1,)), ["go", "", "1\n[image]", "", "2", "on"]),
    ):
        story = shrunk()
        record = story.edit(edit(story))
        assert texts(story.projection) == shows
        assert all(
            entry.renewed == (record.turn if entry.message.result and "y" not in entry.message.text else 0)
            for entry in story.projection.entries()
            if entry.position in (3, 5) and entry.shrunk == ()
        )
        assert values(story.folded()) == values(story.projection)


def test_restoring_a_part_of_a_replaced_message_shows_all_of_it():
    """A handle such as m3.1 names the first part. Restoring it removes the placeholder of m3."""
    story = Story(user("go"), call("a"), answer("a", "long", PIXEL), user("on"))
    for path in ((0,), (0, 0), (0, 1)):
        story.edit(Replace(at(story, 3), (Text("[cleared]"),)))
        story.edit(Restore((at(story, 3, *path),)))
        assert texts(story.projection)[2] == "long"


@pytest.mark.parametrize("hiding", [Hide, lambda span: Summarize(span, "told")])
@pytest.mark.parametrize("named", [(3, 9), (1, 6), (3, 6), (1, 9), (4, 5), (2, 3), (6, 8)])
def test_restoring_a_span_shows_all_of_it(hiding, named):
    """A regression: a span with one visible end lost its hidden messages."""
    story = talk(10)
    story.edit(hiding(run(story, 3, 6)))
    story.edit(Restore((run(story, *named),)))
    shown = {entry.position for entry in story.projection.entries() if entry.kind == "message"}
    assert shown == {1, 2, 7, 8, 9, 10} | set(range(named[0], named[1] + 1))
    told = [entry.last for entry in story.projection.entries() if entry.kind == "summary"]
    covered = named[0] <= 3 and named[1] >= 6
    assert told == ([] if covered or hiding is Hide else [6])
    assert values(story.folded()) == values(story.projection)


def test_a_message_restored_from_a_summary_follows_it():
    story = talk(7)
    story.edit(Summarize(run(story, 2, 5), "told"))
    story.edit(Restore((at(story, 4),)))
    assert texts(story.projection) == ["m1", "told", "m4", "m6", "m7"]
    story.edit(Summarize(run(story, 2, 5), "told again"))
    assert texts(story.projection) == ["m1", "told again", "m6", "m7"]
    story.edit(Restore((), (3,)))
    assert texts(story.projection) == ["m1", "told", "m4", "m6", "m7"]


def test_a_restored_message_keeps_its_effective_edits():
    story = Story(user("go"), call("a"), answer("a", "1"), call("b"), answer("b", "2"), user("on"))
    story.edit(Replace(at(story, 3), (Text("x"),)), Replace(at(story, 5), (Text("y"),)), Pin(at(story, 5)))
    story.edit(Restore((run(story, 1, 3),)))
    story.edit(Unpin(at(story, 5)))
    story.edit(Hide(run(story, 2, 5)))
    story.edit(Restore((), (6,)))
    assert texts(story.projection) == ["go", "", "1", "", "y", "on"]
    assert [entry.is_pinned() for entry in story.projection.entries()] == [False] * 6
    assert values(story.folded()) == values(story.projection)


def test_an_edit_of_a_hidden_message_applies_when_it_is_shown():
    story = talk(6)
    story.edit(Hide(run(story, 2, 4)))
    story.edit(Replace(at(story, 3), (Text("changed"),)), Pin(at(story, 2)))
    assert texts(story.projection) == ["m1", "m5", "m6"]
    story.edit(Restore((), (1,)))
    assert texts(story.projection) == ["m1", "m2", "changed", "m4", "m5", "m6"]
    assert [entry.position for entry in story.projection.entries() if entry.is_pinned()] == [2]


# ----------------------------------------------------------------------------------------- reasoning bound to the past


def reasoners(profile=BINDING) -> Story:
    message = [user("go")]
    for n in range(4):
        message += [thought(f"t{n}", call(f"c{n}")), answer(f"c{n}", f"r{n}")]
    return Story(*message, user("on"), profile=profile)


def positions_with_reasoning(story: Story) -> list[int]:
    """Return the positions of messages with visible reasoning."""
    return [
        e.position for e in story.projection.entries() if e.message.role == "assistant" and len(e.message.parts) > 1
    ]


@pytest.mark.parametrize(
    ("edit", "left"),
    [
        (lambda s: Replace(at(s, 5), (Text("x"),)), [2, 4]),
        (lambda s: Replace(at(s, 5), (Text("r1"),)), [2, 4, 6, 8]),  # A mark: it shows the same content once more.
        (lambda s: Replace(at(s, 4, 1), (Text('{"a":1}'),)), [2, 4]),
        (lambda s: Hide(at(s, 3)), [2]),
        (lambda s: Hide(run(s, 2, 3)), []),
        (lambda s: Summarize(run(s, 4, 5), "told"), [2]),
        (lambda s: Pin(at(s, 3)), [2, 4, 6, 8]),
        (lambda s: Restore((at(s, 3),)), [2, 4, 6, 8]),
        (lambda s: Hide(Target("0" * 40)), [2, 4, 6, 8]),
    ],
)
def test_an_edit_voids_only_later_reasoning(edit, left):
    """F05."""
    story = reasoners()
    story.edit(edit(story))
    assert positions_with_reasoning(story) == left
    story.say(thought("new", say("done")))
    assert positions_with_reasoning(story)[-1] == len(story.rows)  # a reply to the edited view is bound to that view
    assert values(story.folded()) == values(story.projection)
    assert values(story.folded(story.projection.snapshot())) == values(story.projection)


def test_models_without_binding_keep_their_reasoning():
    """F05."""
    story = reasoners(ANTHROPIC)
    kept = story.projection.entries()[3:]
    story.edit(Replace(at(story, 3), (Text("x"),)))
    assert positions_with_reasoning(story) == [2, 4, 6, 8]
    assert [a is b for a, b in zip(story.projection.entries()[3:], kept, strict=True)] == [True] * len(kept)


def test_voided_reasoning_stays_away_after_an_undo():
    """F05: the provider compared it with a past that had changed in between. No reasoning is better than a refusal."""
    story = reasoners()
    story.edit(Hide(at(story, 3)))
    story.edit(Restore((), (1,)))
    assert positions_with_reasoning(story) == [2]
    assert values(story.folded()) == values(story.projection)


def test_a_reply_after_an_unseen_edit_is_bound_to_the_older_past():
    """F05."""
    story = reasoners()
    story.edit(Replace(at(story, 3), (Text("x"),)), turn=6)  # while call 5 is in progress
    story.say(thought("of the past", say("five")), turn=5)
    story.say(thought("of now", say("six")), turn=6)
    assert positions_with_reasoning(story) == [2, 12]
    assert values(story.folded()) == values(story.projection)
    assert values(story.folded(story.projection.snapshot())) == values(story.projection)


@MANY
@given(data=st.data())
def test_bound_reasoning_needs_exactly_its_original_past(data):
    """F05: the provider compares a signed block with everything before it, even if that was restored in between."""
    story = Story(user("go"), profile=BINDING)
    thought_behind: dict[int, list[Message]] = {}
    for n in range(data.draw(st.integers(1, 9))):
        moves = (thought(f"t{n}", say(f"s{n}")), thought(f"t{n}", call(f"c{n}")), answer(f"c{n - 1}"), user(f"u{n}"))
        story.say(data.draw(st.sampled_from(moves)))
        entries = story.projection.entries()
        thought_behind[len(story.rows)] = [entry.message for entry in entries if entry.position < len(story.rows)]
        if data.draw(st.booleans()):
            edit = drawn_edit(story, data)
            if not is_refused(story, edit):
                story.edit(edit)
        shown = story.projection.entries()
        for index, entry in enumerate(shown):
            if any(isinstance(part, Reasoning) for part in entry.message.parts):
                assert [one.message for one in shown[:index]] == thought_behind[entry.position]


# --------------------------------------------------------------------------------------------------------------- facts


def test_facts_come_from_the_newest_messages():
    messages = [
        (user("go"), Stamp(0, 10, 5, "user")),
        (say("one"), Stamp(1, 20, 5, "assistant", "", Usage(100, 20, None, 7), 60)),
        (user("on"), Stamp(1, 30, 5, "user")),
        (user("a hint"), Stamp(1, 31, 5, "plugin")),
        (user(" "), Stamp(1, 32, 5, "user")),
        (say("two"), Stamp(2, 40, 5, "assistant", "", Usage(500, 0, 0, 7))),  # no estimate of this prompt
        (say("three"), Stamp(3, 50, 5, "assistant", "", Usage(None, 90), 70)),  # an unknown size
        (answer("a"), Stamp(3, 60, 5, "tool")),
    ]
    facts = Facts()
    for position, (message, stamp) in enumerate(messages, 1):
        facts = facts.after(position, message, stamp)
    calibrations = (("", 120, 60),)
    assert facts == Facts(3, 3, replied=50, measured=120, estimated=60, calibrations=calibrations)


# ----------------------------------------------------------------------------------------------------------- identity


def test_an_edit_after_empty_messages_is_visible_at_once():
    story = Story(*[user(" ")] * 4, user("go"), say("a"), say("b"), say("c"), user("on"))
    assert texts(story.projection) == ["go", "a", "b", "c", "on"]
    story.edit(Replace(at(story, 7), (Text("x"),)))
    assert texts(story.projection) == ["go", "a", "x", "c", "on"]
    story.edit(Hide(at(story, 6)))
    assert texts(story.projection) == ["go", "x", "c", "on"]


def test_unchanged_entries_are_the_same_objects():
    story = talk(6)
    before = story.projection.entries()
    assert story.projection.entries() is before
    story.say(say("m7"))
    assert all(a is b for a, b in zip(before, story.projection.entries(), strict=False))
    story.edit(Hide(at(story, 3)))
    after = story.projection.entries()
    assert [entry in before for entry in after] == [True] * 5 + [False]  # m7 is new, all others are unchanged
    assert [entry.position for entry in after] == [1, 2, 4, 5, 6, 7]


def test_legalized_entries_are_made_only_once():
    story = Story(
        user("go"),
        calls("a", "a", "b"),
        answer("a", "1"),
        user("hurry"),
        answer("a", "2"),
        call("a"),
        answer("z", "of nobody"),
        answer("a", "3"),
        call("open"),
        profile=ANTHROPIC,
    )
    before = story.projection.entries()
    assert sorted({entry.kind for entry in before}) == ["message", "note", "stand-in"]
    story.say(user("on"))
    story.edit(Replace(at(story, 1), (Text("gone"),)))
    after = story.projection.entries()
    assert [a is b for a, b in zip(after, before, strict=False)] == [False] + [True] * (len(before) - 1)


def test_a_copy_is_independent():
    story = talk(6)
    story.edit(Summarize(run(story, 2, 3), "told"))
    before = values(story.projection)
    twin = story.projection.copy()
    twin.apply(story.record_of(Restore((at(story, 3),)), Hide(at(story, 4)), Pin(at(story, 5))))
    assert values(story.projection) == before
    assert values(twin) != before
    story.edit(Hide(at(story, 5)))
    assert [entry.position for entry in twin.entries()] == [1, 2, 5, 6]


class Watched(str):
    """A text that reports its deletion."""


def test_hidden_messages_are_released():
    projection = Projection(OPENAI, len)
    for n in range(1, 53):
        message = Message("assistant", (Text(Watched(f"m{n}")),))
        projection.append(Row(n, f"{n:040}", message, Stamp(n, n, 9, "assistant"), 9))
    watched = [weakref.ref(entry.message.parts[0].text) for entry in projection.entries()]
    projection.apply(Record(1, (Summarize(Span(f"{3:040}", f"{50:040}"), "told"),), 53, 0, f"{52:040}", 52))
    assert len(projection.entries()) == len(projection) == 5
    gc.collect()
    assert [ref() is None for ref in watched] == [False] * 2 + [True] * 48 + [False] * 2


# ----------------------------------------------------------------------------------------------------------- snapshots


def test_a_snapshot_has_visible_ranges_and_changed_messages():
    story = talk(12)
    story.edit(Hide(run(story, 3, 5)), Replace(at(story, 7), (Text("x"),)), Pin(at(story, 8)))
    snapshot = story.projection.snapshot()
    assert snapshot.visible == [(1, 2), (6, 12)]
    assert [kept.position for kept in snapshot.kept] == [7, 8]
    assert Snapshot.decode(snapshot.encode()) == snapshot
    assert snapshot.positions() == [1, 2, *range(6, 13)]


def test_a_snapshot_of_another_version_decodes_to_none():
    snapshot = talk(3).projection.snapshot()
    other = replace(snapshot, version=snapshot.version + 1)
    assert (Snapshot.decode(other.encode()), Snapshot.decode(b"[1,2,true]"), Snapshot.decode(b"{")) == (None,) * 3


def test_of_nested_spans_only_the_outermost_is_visible():
    story = talk(202)
    for last in range(3, 202, 2):
        story.edit(Summarize(run(story, 2, last), f"to m{last}"))
    snapshot = story.projection.snapshot()
    assert (len(snapshot.covers), snapshot.visible) == (100, [(1, 1), (201, 202)])
    assert texts(story.folded(snapshot)) == ["m1", "to m201", "m201", "m202"]


# --------------------------------------------------------------------------------------------- for anything whatsoever


def expected_texts(story: Story, without: Container[int] = ()) -> list[tuple[str, int, int, str]]:
    """Return the visible texts for messages of one text each: a simple model of edits with sets."""
    messages = {row.position: row.message for row in story.rows}
    parts: dict[int, dict[int, Edit]] = {position: {} for position in messages}
    covers: dict[int, tuple[int, int, Edit, set[int]]] = {}
    pinned: set[int] = set()

    def positions(named: Target | Span) -> range:
        ends = (named.first, named.last) if isinstance(named, Span) else (named.message, named.message)
        where = story.where(ends)
        return range(where[ends[0]], where[ends[1]] + 1) if len(where) == len(set(ends)) else range(0)

    def is_visible(position: int) -> bool:
        return all(not first <= position <= last or position in holes for first, last, _, holes in covers.values())

    for record in story.records:
        inputs = [p for p, m in messages.items() if m.role == "user" and m.has_content and p <= record.position]
        protected = {*inputs[-1:], *(p for p, m in messages.items() if m.role == "system")}
        for number, edit in record.numbered():
            if number in without:
                continue
            match edit:
                case Replace(target=target) | Hide(target=Target(path=(_, *_)) as target):
                    for position in positions(Target(target.message)):
                        if position not in protected:
                            parts[position][number] = edit
                case Hide(target=named) | Summarize(span=named):
                    if inside := positions(named):
                        holes = {p for p in inside if is_visible(p) and (p in pinned or p in protected)}
                        covers[number] = (inside[0], inside[-1], edit, holes)
                case Restore(targets=targets, edits=numbers):
                    for cancelled in numbers:
                        covers.pop(cancelled, None)
                        for edits_of in parts.values():
                            edits_of.pop(cancelled, None)
                    for named in targets:
                        inside = positions(named)
                        path = named.path if isinstance(named, Target) else ()
                        for position in inside:
                            for n in [n for n, e in parts[position].items() if paths_overlap(e.target.path, path)]:
                                del parts[position][n]
                        for n, (first, last, _, holes) in list(covers.items()):
                            if inside and inside[0] <= first and last <= inside[-1]:
                                del covers[n]
                            else:
                                holes.update(p for p in inside if first <= p <= last)
                case Pin(target=target):
                    pinned.update(positions(Target(target.message)))
                case Unpin(target=target):
                    pinned.difference_update(positions(Target(target.message)))

    shown = []
    for number, (first, last, edit, _) in covers.items():
        is_inside = any(n > number and f <= first and last <= e for n, (f, e, _, _) in covers.items())
        if isinstance(edit, Summarize) and edit.text.strip() and not is_inside:
            shown.append((first, -last, "summary", edit.text))
    for position, message in messages.items():
        text = message.text
        for edit in parts[position].values():
            text = edit.content[0].text if isinstance(edit, Replace) else ""
        if is_visible(position) and text.strip():
            shown.append((position, 1, "message", text))
    return [(kind, position, abs(last) if last < 0 else position, text) for position, last, kind, text in sorted(shown)]


def drawn_edit(story: Story, data: st.DataObject, *, pins: bool = True) -> Edit:
    count = len(story.rows)
    first = data.draw(st.integers(1, count))
    last = data.draw(st.integers(first, count))
    target, span = at(story, first, *data.draw(st.sampled_from([(), (), (0,)]))), run(story, first, last)
    newest = story.records[-1].last if story.records else 0
    match data.draw(st.integers(0, 7 if pins else 6)):
        case 0:
            return Replace(target, (Text(f"e{newest + 1}"),))
        case 1:
            return Hide(target)
        case 2:
            return Hide(span)
        case 3 | 4:
            return Summarize(span, data.draw(st.sampled_from([f"s{newest + 1}"] * 5 + [" "])))
        case 5:
            return Restore((), (data.draw(st.integers(0, newest)),))
        case 6:
            return Restore((data.draw(st.sampled_from([target, span])),))
        case _:
            return data.draw(st.sampled_from([Pin(Target(target.message)), Unpin(Target(target.message))]))


def is_refused(story: Story, edit: Edit) -> bool:
    """Return whether the journal refuses this edit, because its target is protected."""
    target = getattr(edit, "target", None)
    return (
        isinstance(edit, Replace | Hide)
        and isinstance(target, Target)
        and story.projection.is_protected(story.where([target.message])[target.message])
    )


def drawn_story(data: st.DataObject, *, pins: bool = True) -> Story:
    story = Story()
    for n in range(1, data.draw(st.integers(1, 9)) + 1):
        speaker = data.draw(st.sampled_from([user, say, say, system]))
        story.say(speaker(f"m{n}"))
        for _ in range(data.draw(st.integers(0, 2))):
            edit = drawn_edit(story, data, pins=pins)
            if not is_refused(story, edit):
                story.edit(edit)
    return story


def told(story: Story) -> list[tuple[str, int, int, str]]:
    return [(e.kind, e.position, max(e.last, e.position), e.message.text) for e in story.projection.entries()]


@MANY
@given(data=st.data())
def test_any_edits_match_the_reference_model(data):
    story = drawn_story(data)
    assert told(story) == expected_texts(story)


@MANY
@given(data=st.data())
def test_undone_edits_leave_the_view_without_them(data):
    story = drawn_story(data, pins=False)
    result = [pair for record in story.records for pair in record.numbered()]
    first = data.draw(st.integers(1, max(1, len(result))))
    undone = range(first, data.draw(st.integers(first, max(first, len(result)))) + 1)
    where = story.where(row.id for row in story.rows)
    now, then = EffectiveEdits(result, where), EffectiveEdits(result, where, without=undone)
    back = inverse_edits(now, then, gaps(now, then), {row.position: row.id for row in story.rows})
    if back:
        story.edit(*back)
    assert told(story) == expected_texts(story, undone)


@MANY
@given(history=histories(max_size=16), profile=st.sampled_from([OPENAI, ANTHROPIC, BINDING]), data=st.data())
def test_growing_resuming_and_folding_give_the_same_view(history, profile, data):
    story = Story(profile=profile)
    snapshots = []
    for message in history:
        story.say(message)
        if data.draw(st.integers(0, 2)) == 0:
            story.edit(*data.draw(edits([row.id for row in story.rows], max_size=3)))
        if data.draw(st.booleans()):
            story.projection.entries()
        if data.draw(st.integers(0, 4)) == 0:
            snapshots.append(story.projection.snapshot().encode())
    shown = values(story.projection)
    assert values(story.folded()) == shown
    for snapshot in snapshots:
        resumed = story.folded(Snapshot.decode(snapshot))
        assert values(resumed) == shown
        assert resumed.facts == story.projection.facts
        assert resumed.snapshot() == story.projection.snapshot()


@MANY
@given(history=histories(max_size=16), data=st.data())
def test_invisible_content_was_blank_or_hidden_by_an_edit(history, data):
    """I16: a fold never drops a message without an edit."""
    story = Story(*history)
    spans = st.tuples(*[st.integers(1, max(1, len(history)))] * 2)
    for first, last in data.draw(st.lists(spans, max_size=6)) if history else []:
        if first <= last:
            story.edit(Summarize(run(story, first, last), "told"))
        else:
            story.edit(Restore((run(story, last, first),)))
    reached = {p for e in story.projection.entries() for p in range(e.position, max(e.last, e.position) + 1)}
    blank = {p for p in range(1, len(history) + 1) if Story(history[p - 1]).projection.entries() == ()}
    assert reached | blank == set(range(1, len(history) + 1)) | {p for p in reached if p == 0}


@MANY
@given(history=histories(max_size=20), profile=st.sampled_from([OPENAI, ANTHROPIC]))
def test_an_append_makes_no_unchanged_entry_again(history, profile):
    story = Story(profile=profile)
    for message in history:
        before = story.projection.entries()
        story.say(message)
        after = {value_of(entry)[:5]: entry for entry in story.projection.entries()}
        for entry in before:
            now = after.get(value_of(entry)[:5])
            assert now is None or now is entry or value_of(now) != value_of(entry)


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 6)), max_size=12))
def test_topmost_returns_covers_that_no_newer_one_hides(runs: list[tuple[int, int]]) -> None:
    covers = [
        Cover(number, first, first + length, Hide(Span("a", "b")), 1, 1)
        for number, (first, length) in enumerate(runs, 1)
    ]
    expected = [
        cover.number
        for cover in covers
        if not any(c.number > cover.number and c.first <= cover.first and cover.last <= c.last for c in covers)
    ]
    assert [cover.number for cover in topmost(covers)] == expected
