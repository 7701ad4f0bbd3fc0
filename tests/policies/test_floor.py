"""The stages of the hard floor, each alone and all together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import pytest
from conversation.shells import opened, texts
from core.story import ANTHROPIC, OPENAI, Story
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.core.budget import Excess, measure_excess
from foveate.core.call_context import Budget
from foveate.core.checker import check
from foveate.core.edits import Edit, Pin, Restore, Span, Summarize, Target
from foveate.core.handles import parse_handle
from foveate.core.messages import Media, Message, Text, ToolCall, assistant
from foveate.core.plain_handles import plain_text
from foveate.core.planner import make_plan
from foveate.core.view import View
from foveate.digest import digest, room_for
from foveate.errors import DoesNotFit
from foveate.policies import FLOOR
from foveate.policies.floor import (
    clear_newest,
    clear_older_results,
    cut_newest,
    cut_older_texts,
    digest_giants,
    digest_older_results,
    hide_oldest,
    omit_media,
)
from foveate.policies.frames import CHECKPOINT, COMPACTION, PLAIN_CHECKPOINT, frame_summary, unframe_summary
from foveate.policies.names import names_of
from foveate.policies.placeholders import CLEARED, cut_arguments, cut_text, placeholder, shrink_arguments
from foveate.testing import answer, call, calls, chat, say, system, text_of, thought, user
from foveate.testing.strategies import histories

MANY = settings(max_examples=settings.default.max_examples * 4)
PNG = Media("image/png", "base64", "A" * 4_000)
PDF = Media("application/pdf", "base64", "B" * 4_000)


def tokens(usable: int) -> Budget:
    return Budget(usable, 0, 10**9, 10**6)


def size(usable: int) -> Budget:
    return Budget(10**9, 0, usable, 10**6)


def images(usable: int) -> Budget:
    return Budget(10**9, 0, 10**9, usable)


def run_stage(story: Story, stage: Callable[[View], Iterable[Edit]], budget: Budget) -> list[str]:
    """Return the shown texts after the edits of this stage alone."""
    edits = list(stage(story.view(budget)))
    if edits:
        story.edit(*edits)
    return [entry.message.text for entry in story.projection.entries()]


def worker_run(count: int, each: int = 400) -> Story:
    """Return a request and so many calls with results of so many tokens."""
    story = Story(system("rules"), user("go"))
    for n in range(count):
        story.say(call(f"c{n}"), answer(f"c{n}", text_of(each, n)))
    return story


# -------------------------------------------------------------------------------------------------------- 1. omit media


def test_media_are_omitted_oldest_first_until_few_enough():
    story = Story(
        Message("user", (Text("look"), PNG, PDF)), say("ok"), user("go"), call("a"), answer("a", "x", PNG, PNG)
    )
    assert run_stage(story, omit_media, images(2)) == [
        'look\n[Media omitted: image png; expand("m1.2")]',
        "ok",
        "go",
        "",
        "x",
    ]
    assert run_stage(story, omit_media, images(1))[4] == 'x\n[Media omitted: image png; expand("m5.1.2")]'
    assert run_stage(story, omit_media, images(0))[4] == (
        'x\n[Media omitted: image png; expand("m5.1.2")]\n[Media omitted: image png; expand("m5.1.3")]'
    )
    assert (story.view().images, [*story.projection.entries()[0].message.media()]) == (0, [PDF])


def test_documents_are_omitted_if_there_are_too_many_bytes():
    story = Story(Message("user", (Text("look"), PDF, PNG)), say("ok"), user("go"))
    omitted = '[Media omitted: pdf document; expand("m1.2")]'
    assert run_stage(story, omit_media, size(5_000))[0] == f"look\n{omitted}"
    assert story.view().bytes < 5_000


def test_media_of_protected_messages_stay():
    story = Story(Message("system", (Text("rules"), PNG)), Message("user", (Text("a"), PNG)), say("ok"))
    story.say(Message("user", (Text("b"), PNG)))
    story.edit(Pin(Target(story.id(2))))
    assert list(omit_media(story.view(images(0)))) == []


def test_more_media_of_one_message_are_omitted_later():
    """A message with a shrunk part used to be skipped, and its other images could never be freed."""
    story = Story(Message("user", (Text("look"), PNG, PNG)), say("ok"), user("go"))
    for allowed in (1, 0):
        run_stage(story, omit_media, images(allowed))
        assert story.view().images == allowed
    story.edit(Restore((Target(story.id(1), (1,)),)))
    assert story.view().images == 1


def test_media_are_not_omitted_for_tokens():
    story = Story(Message("user", (Text("look"), PNG)), say("ok"), user("go"))
    assert list(omit_media(story.view(tokens(100)))) == []


# ----------------------------------------------------------------------------------------------------- 2. digest giants


def test_a_giant_becomes_a_digest_of_half_the_budget():
    story = worker_run(3)
    log = "".join(f"12:00:{n % 60:02} INFO step {n} is done\n" for n in range(2_000)) + "ERROR at step_77 in a/b.py\n"
    story.say(call("big"), answer("big", log))
    shown = run_stage(story, digest_giants, tokens(3_000))  # the target of a window of 4,000
    assert shown[-1] == digest(log, 2_000, "m10").text
    assert 'expand("m10")' in shown[-1]
    assert "step_77" in shown[-1]
    assert shown[:-1] == [row.message.text for row in story.rows[:-1]]


def test_a_giant_in_bytes_becomes_a_digest():
    story = Story(user("go"), call("a"), answer("a", "\x00" * 3_000))
    shown = run_stage(story, digest_giants, size(6_000))[2]
    assert shown == digest("\x00" * 3_000, 1_000, "m3").text
    assert len(shown) <= 1_000


def test_requests_and_calls_are_no_giants():
    story = Story(user("x" * 40_000), assistant("y" * 40_000, ToolCall("a", "t")), answer("a"))
    assert list(digest_giants(story.view(tokens(4_000)))) == []


# ---------------------------------------------------------------------------------------------- 3. digest older results


def test_older_results_become_digests_oldest_first():
    story = worker_run(6)
    over = story.view().tokens - 600
    shown = run_stage(story, digest_older_results, tokens(over))
    changed = {entry.position: entry for entry in story.projection.entries() if entry.shrunk}
    assert sorted(changed) == [4, 6]
    short = [digest(text_of(400, n), room_for(1_600), f"m{2 * n + 4}").text for n in (0, 1)]
    assert [shown[3], shown[5]] == short
    assert measure_excess(story.view(tokens(over))) == Excess()
    assert [entry.position for entry in story.view() if entry.shrunk] == [4, 6]


def test_a_digest_becomes_a_placeholder_next():
    story = worker_run(6)
    run_stage(story, digest_older_results, tokens(10))
    assert list(digest_older_results(story.view(tokens(10)))) == []
    run_stage(story, clear_older_results, tokens(10))
    cleared = [entry.message.text for entry in story.projection.entries() if entry.shrunk]
    assert cleared == [placeholder(CLEARED, entry) for entry in story.projection.entries() if entry.shrunk]


def test_short_pinned_and_expanded_results_are_not_digested():
    story = Story(user("go"), call("a"), answer("a", "x " * 400), call("b"), answer("b", text_of(2_000)))
    story.say(call("c"), answer("c", text_of(2_000)), call("d"), answer("d", "ok"))
    story.edit(Pin(Target(story.id(5))), Restore((Target(story.id(7)),)))
    assert list(digest_older_results(story.view(tokens(10)))) == []


# ----------------------------------------------------------------------------------------------- 4. clear older results


def test_older_results_are_cleared_oldest_first():
    story = worker_run(6)
    over = story.view().tokens - 650
    shown = run_stage(story, clear_older_results, tokens(over))
    cleared = [text for text in shown if text.startswith("[Old")]
    assert cleared == [placeholder(CLEARED, entry) for entry in story.projection.entries() if entry.position in (4, 6)]
    assert measure_excess(story.view(tokens(over))) == Excess()


def test_results_of_the_newest_unit_are_not_older_results():
    story = worker_run(2)
    story.say(calls("x", "y"), answer("y", text_of(400)), answer("x", text_of(400)))
    run_stage(story, clear_older_results, tokens(10))
    assert [bool(entry.shrunk) for entry in story.projection.entries() if entry.is_result] == [True, True, False, False]


def test_a_result_no_longer_than_its_placeholder_stays():
    story = worker_run(4, each=12)
    assert list(clear_older_results(story.view(tokens(10)))) == []


def test_expanded_results_are_cleared_last():
    story = worker_run(6)
    story.edit(Restore((Target(story.id(4)),)))
    run_stage(story, clear_older_results, tokens(story.view().tokens - 650))
    assert [entry.handle for entry in story.projection.entries() if entry.shrunk] == ["m6", "m8"]


def test_results_without_images_are_not_cleared_for_images():
    story = Story(call("a"), answer("a", text_of(400)), Message("user", (Text("look"), PNG, PNG)), say("ok"))
    assert list(clear_older_results(story.view(images(1)))) == []
    story = Story(call("a"), answer("a", text_of(400)), call("b"), answer("b", "x", PNG), user("go"))
    run_stage(story, clear_older_results, images(0))
    assert [entry.handle for entry in story.projection.entries() if entry.shrunk] == ["m4"]


# --------------------------------------------------------------------------------------------------- 5. cut older texts


def test_long_older_texts_and_arguments_are_cut():
    long = json.dumps({"path": "a.py", "content": "y" * 3_000, "mode": {"flags": [1, "z" * 500, None]}})
    story = Story(
        user("old " * 500),
        assistant("x" * 2_000, ToolCall("a", "write", long)),
        answer("a", "z" * 2_000),
        user("go"),
        say("short"),
        call("b"),
        answer("b"),
    )
    run_stage(story, cut_older_texts, tokens(10))
    old, wrote, result, *rest = story.projection.entries()
    assert old.message.text == ("old " * 500)[:400] + '\n[cut: 400 of 2,000 characters; expand("m1") shows all]'
    assert wrote.message.text == "x" * 400 + '\n[cut: 400 of 2,000 characters; expand("m2") shows all]'
    assert json.loads(wrote.message.calls[0].arguments) == {
        "path": "a.py",
        "content": "y" * 400 + ' [cut: 400 of 3,000 characters; expand("m2") shows all]',
        "mode": {"flags": [1, "z" * 400 + ' [cut: 400 of 500 characters; expand("m2") shows all]', None]},
    }
    assert result.message.text == digest("z" * 2_000, 400, "m3").text
    assert [entry.shrunk for entry in rest] == [()] * 4
    assert (wrote.shrunk, result.shrunk) == (((0,), (1,)), ((0,),))
    assert list(cut_older_texts(story.view(tokens(10)))) == []


def test_reasoning_stays_when_the_text_after_it_is_cut():
    story = Story(user("a"), thought("hm", say("x" * 2_000)), user("go"), profile=ANTHROPIC)
    run_stage(story, cut_older_texts, tokens(10))
    assert story.projection.entries()[1].message.parts[0] == story.rows[1].message.parts[0]


def test_arguments_of_legalized_calls_are_cut_too():
    """Calls under another id, or broken from the start, used to be skipped, at any size."""
    story = Story(user("go"), call("a"), answer("a"))
    story.say(assistant("", ToolCall("a", "t", '{"x":"' + "y" * 3_000 + '"}')), answer("a"))
    story.say(assistant("", ToolCall("b", "t", '{"x":"' + "y" * 3_000)), answer("b"))
    story.say(assistant("", ToolCall("c", "t", '{"x":' + "[" * 3_000)), answer("c"))
    story.say(
        assistant("", ToolCall("d", "t", '{"x":' + "[" * 450 + '"' + "y" * 900 + '"' + "]" * 450 + "}")), answer("d")
    )
    story.say(user("on"))
    run_stage(story, cut_older_texts, tokens(10))
    mended = [entry.message.calls[0].arguments for entry in story.projection.entries() if entry.message.calls]
    assert all(isinstance(json.loads(arguments), dict) for arguments in mended)
    assert [len(arguments) < 1_500 for arguments in mended] == [True] * 5
    assert json.loads(mended[2]) == {
        "cut_arguments": ('{"x":"' + "y" * 3_000)[:400] + ' [cut: 400 of 3,006 characters; expand("m6") shows all]'
    }


# ------------------------------------------------------------------------------------------------------- 6. hide oldest


def test_the_oldest_units_are_hidden_behind_one_note():
    story = worker_run(6)
    budget = tokens(story.view().tokens - 700)
    shown = run_stage(story, hide_oldest, budget)
    note = (
        "[Messages m2 to m8 are hidden to fit the window. A digest of them is below, as background: it "
        'is no request and no permission. expand("m2-m8") brings them back, expand("m8") one of them.]\n\n'
    )
    assert (shown[0], shown[1][: len(note)], shown[2]) == ("rules", note, "go")
    assert {name for name in names_of(shown[1]) if "/" in name} & names_of(text_of(400, 1))
    assert measure_excess(story.view(budget)) == Excess()
    assert [entry.position for entry in story.projection.entries()] == [1, 2, 2, *range(9, 15)]
    assert check(story.projection.entries(), OPENAI) == []


def test_a_note_without_room_for_a_digest_names_its_messages():
    story = Story(system("rules"), *(say(text_of(30, n)) for n in range(5)), user("go"))
    assert run_stage(story, hide_oldest, tokens(story.view().tokens - 20))[1] == (
        '[Messages m2 to m3 are hidden to fit the window. expand("m2-m3") brings them back, expand("m3") one of them.]'
    )


def test_a_note_for_one_message_speaks_of_one():
    story = Story(system("rules"), say(text_of(60, 1)), say(text_of(60, 2)), user("go"))
    assert run_stage(story, hide_oldest, tokens(story.view().tokens - 20))[1] == (
        '[Message m2 is hidden to fit the window. expand("m2") brings it back.]'
    )
    long = Story(system("rules"), say(text_of(900, 1)), say(text_of(60, 2)), user("go"))
    shown = run_stage(long, hide_oldest, tokens(long.view().tokens - 400))[1]
    assert shown.startswith("[Message m2 is hidden to fit the window. A digest of it is below, as background: ")
    assert unframe_summary(shown) == unframe_summary(plain_text(shown)) != shown


def test_a_result_that_fills_the_window_leaves_the_note_its_digest():
    """The result is cut next, so there is room. A coding agent lost the request that it worked on."""
    asked = "Review the changes of trail 10, and never merge them."
    story = Story(system("rules"), user(asked), *(say(text_of(60, n)) for n in range(5)), user("Go on."))
    story.say(calls("x", "y", "z"), *(answer(one, text_of(500, n)) for n, one in enumerate("xyz")))
    plan = make_plan(story.projection, story.frame(tokens(1_200)), [], FLOOR)
    assert plan.after.tokens <= 1_200
    notes = [entry.message.text for entry in plan.after if entry.kind == "summary"]
    assert len(notes) == 1
    assert asked in notes[0]


def test_reasoning_that_fills_the_window_makes_no_room_for_the_note():
    """No stage can cut it. A long note would push the newest result out of the view."""
    story = Story(system("rules"), *(say(text_of(200, n)) for n in range(5)), user("Go on."), profile=ANTHROPIC)
    story.say(thought("hm " * 1_000, call("c1")), answer("c1", "the newest result"))
    plan = make_plan(story.projection, story.frame(tokens(900)), [], FLOOR)
    assert plan.after.entries[-1].message.text == "the newest result"


@pytest.mark.parametrize("framing", [COMPACTION, CHECKPOINT, PLAIN_CHECKPOINT.replace("{turn}", "4")])
def test_the_note_carries_on_the_summary_that_it_covers(framing: str):
    rule = "Never deploy without the approval of Marta Lindqvist."
    story = Story(system("rules"), user("go"), *(say(text_of(300, n)) for n in range(8)), user("on"))
    text = frame_summary(framing, "m2-m4", f"## Goal\nShip it.\n\n## Asked by the user\n- {rule}")
    story.edit(Summarize(Span(story.id(2), story.id(4)), text))
    for _ in range(3):  # A fourth round would leave the note less room than the summary had.
        run_stage(story, hide_oldest, tokens(story.view().tokens - 200))
        notes = [entry for entry in story.projection.entries() if entry.kind == "summary"]
        assert [entry.stamp.source for entry in notes] == ["floor"]
        assert rule in notes[0].message.text
        assert notes[0].message.text.count("[Messages") == 1


def test_a_note_covers_earlier_notes():
    story = worker_run(6)
    for _ in range(3):
        run_stage(story, hide_oldest, tokens(story.view().tokens - 300))
    notes = [entry for entry in story.projection.entries() if entry.kind == "summary"]
    assert [(entry.position, entry.last) for entry in notes] == [(2, 12)]


def test_protected_messages_do_not_count_as_freed():
    """A long old rule used to count as freed, and the view stayed too large."""
    story = Story(user("old"), system(text_of(900)), *(say(text_of(100, n)) for n in range(9)), user("go"))
    story.edit(Pin(Target(story.id(3))))
    budget = tokens(story.view().tokens - 350)
    run_stage(story, hide_oldest, budget)
    assert measure_excess(story.view(budget)) == Excess()
    assert {entry.position for entry in story.projection.entries()} >= {2, 3, 12}


def test_a_moved_answer_is_hidden_with_its_call():
    story = Story(user("go"), calls("a", "b"), user("hurry"), answer("a", text_of(300)), answer("b", text_of(300)))
    story.say(user("and on"), call("c"), answer("c", "ok"))
    run_stage(story, hide_oldest, tokens(100))
    assert [(entry.kind, entry.position, entry.last) for entry in story.projection.entries()] == [
        ("summary", 1, 5),
        ("message", 6, 6),
        ("message", 7, 7),
        ("message", 8, 8),
    ]


def test_a_single_unit_is_not_hidden_early():
    story = Story(system("rules"), user("go"), call("a"), answer("a", text_of(900)))
    shown = run_stage(story, hide_oldest, tokens(100))
    assert shown[-2:] == ["", text_of(900)]


# ---------------------------------------------------------------------------------------------- 7. - 9. the newest unit


def test_the_largest_part_of_the_newest_unit_is_cut_first():
    story = worker_run(2)
    story.say(calls("x", "y", "z"), *(answer(id, text_of(n)) for id, n in (("x", 300), ("y", 900), ("z", 500))))
    run_stage(story, cut_newest, tokens(story.view().tokens - 1_000))
    assert [entry.handle for entry in story.projection.entries() if entry.shrunk] == ["m9", "m10"]


def test_the_newest_results_are_cleared_as_last_resort():
    story = worker_run(2)
    run_stage(story, clear_newest, tokens(10))
    results = [entry for entry in story.projection.entries() if entry.is_result]
    assert [entry.message.text for entry in results] == [placeholder(CLEARED, entry) for entry in results]


def test_arguments_of_many_small_values_are_cut_as_a_whole():
    arguments = json.dumps({"rows": [[n, "a", "b"] for n in range(2_000)]})
    story = Story(user("go"), assistant("So.", ToolCall("a", "insert", arguments)), answer("a", "ok"))
    assert list(cut_newest(story.view(tokens(100)))) == []
    run_stage(story, clear_newest, tokens(100))
    (edits,) = story.projection.entries()[1].message.calls
    assert json.loads(edits.arguments) == {
        "cut_arguments": arguments[:400] + f' [cut: 400 of {len(arguments):,} characters; expand("m2") shows all]'
    }


def test_the_newest_unit_is_hidden_as_last_resort():
    story = Story(user("go"), thought("hm " * 4_000, call("a")), answer("a", "ok"), profile=ANTHROPIC)
    plan = make_plan(story.projection, story.frame(tokens(900)), [], FLOOR)
    assert [entry.message.text for entry in plan.after] == [
        "[Messages m1 to m3 are hidden to fit the window. A digest of them is below, as background: it "
        'is no request and no permission. expand("m1-m3") brings them back, expand("m3") one of them.]'
        "\n\n## Done\n- tool: {}",
        "go",
    ]


def test_the_newest_unit_stays_when_the_view_fits():
    story = worker_run(4)
    story.say(calls("x", "y"), answer("x", text_of(1_000)), answer("y", text_of(1_000)))
    plan = make_plan(story.projection, story.frame(tokens(2_200)), [], FLOOR)
    assert 0.9 * 2_200 < plan.after.tokens <= 2_200
    assert [entry.message for entry in plan.after.entries[-3:]] == [row.message for row in story.rows[-3:]]
    assert [stage.is_last_resort for stage in FLOOR] == [False] * 6 + [True] * 3


# ----------------------------------------------------------------------------------------------------------- all stages


def test_pins_survive_the_whole_floor():
    story = worker_run(12)
    story.say(user("old"), say("x" * 2_000), user("now"))
    for position in (3, 4, 6, 28):
        story.edit(Pin(Target(story.id(position))))
    before = {entry.position: entry for entry in story.projection.entries()}
    plan = make_plan(story.projection, story.frame(tokens(1_600)), [], FLOOR)
    after = {entry.position: entry for entry in plan.after if entry.kind != "summary"}
    assert [after[n].message for n in (1, 3, 4, 28, 29)] == [before[n].message for n in (1, 3, 4, 28, 29)]
    assert (after[6].kind, after[6].message.parts[1:]) == ("note", (Text(text_of(400, 1)),))  # its call is hidden
    assert measure_excess(plan.after) == Excess()


def test_pins_that_do_not_fit_are_an_error():
    story = worker_run(3)
    story.edit(Pin(Target(story.id(4))))
    with pytest.raises(DoesNotFit):
        make_plan(story.projection, story.frame(tokens(300)), [], FLOOR)


def test_every_handle_of_the_floor_names_its_original():
    story = Story(user("go"))
    for n in range(40):
        arguments = json.dumps({"n": n, "text": "y" * 3_000})
        story.say(assistant("x" * 900, ToolCall(f"c{n}", "t", arguments)), answer(f"c{n}", text_of(300, n), PNG))
    story.say(user("on"))
    plan = make_plan(story.projection, story.frame(Budget(6_000, 0, 100_000, 4)), [], FLOOR)
    assert measure_excess(plan.after) == Excess()
    for entry in plan.after:
        shown = entry.message.text + "".join(
            conversation.arguments.replace('\\"', '"') for conversation in entry.message.calls
        )
        named = [parse_handle(piece.split('"')[0]) for piece in shown.split('expand("')[1:]]
        if entry.shrunk:
            assert named
        assert all(entry.position <= handle.first <= handle.last <= entry.last for handle in named)


@MANY
@given(
    history=histories(),
    profile=st.sampled_from([OPENAI, ANTHROPIC]),
    window=st.integers(250, 4_000),
    limit=st.integers(1_500, 60_000),
    pictures=st.integers(0, 3),
)
def test_the_floor_fits_any_view_or_raises_a_true_error(history, profile, window, limit, pictures):
    """If the untouchable messages, a note and its legal frame fit, so does the view."""
    story = Story(*history, profile=profile)
    view = story.view()
    kept = [e for e in view if e.position and (e.message.role == "system" or e.position == view.last_input)]
    needs = [sum(getattr(e, unit) for e in kept) for unit in ("tokens", "bytes", "images")]
    budget = Budget(window, 0, limit, pictures)
    try:
        plan = make_plan(story.projection, story.frame(budget), [], FLOOR)
    except DoesNotFit:
        can_fit = needs[0] + 60 <= window and needs[1] + 350 <= limit and needs[2] <= pictures
        assert not can_fit
    else:
        assert measure_excess(plan.after) == Excess()
        shown = {entry.position: entry.message for entry in plan.after if entry.kind == "message"}
        assert all(shown[entry.position] == entry.message for entry in kept)
        assert bool(plan.edits) == bool(measure_excess(plan.before))


# --------------------------------------------------------------------------------------------------------- placeholders


def test_cut_text_names_the_missing_part_and_the_handle():
    assert cut_text("abcdef", 2, "m3") == 'ab\n[cut: 2 of 6 characters; expand("m3") shows all]'


@pytest.mark.parametrize("arguments", ['{"a":', "[1,2]", "nonsense", '{"a":' + "[" * 5_000, ""])
def test_deeply_nested_arguments_are_cut_as_a_whole(arguments):
    assert shrink_arguments(arguments, 10, "m1") == cut_arguments(arguments, 10, "m1")
    assert list(json.loads(cut_arguments(arguments, 10, "m1"))) == ["cut_arguments"]


def test_arguments_without_a_long_string_stay_byte_for_byte():
    for arguments in ('{"a": [1, {"b": "ż"}],\n "c": 1.50}', "{}", '{"a":"\\u00e9"}', '{"a": "0123456789"}'):
        assert shrink_arguments(arguments, 10, "m1") == arguments


# ----------------------------------------------------------------------------------------------------- expanded content


@pytest.mark.parametrize("size", [600, 12_000])
def test_the_coming_call_sees_expanded_content_if_it_fits(size: int):
    """F21, I10: if it shrank again before a call sees it, the model would request it again, for ever."""
    conversation = opened(window=8_000)
    messages = [user("Go."), call("a"), answer("a", "a" * size)]
    messages += [message for n in range(120) for message in (call(f"c{n}"), answer(f"c{n}", f"{n} " * 150))]
    for message in messages:
        if message.role == "assistant":
            conversation.prepare()
        conversation.append(message)
    conversation.prepare()
    assert "a" * size not in texts(conversation.view)
    conversation.expand("m3")
    view = conversation.prepare()
    assert "a" * size in texts(view)
    assert view.tokens <= view.budget.usable
    conversation.append(chat(call("z"), answer("z", "z" * 9_000)))
    later = conversation.prepare()
    assert later.tokens <= later.budget.usable
