"""The filter for tool results: the scenarios of the document, then batches, handles and limits."""

from __future__ import annotations

import pytest
from conversation.shells import opened, texts
from core.story import ANTHROPIC, OPENAI, Story
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import Conversation
from foveate.core.call_context import Budget
from foveate.core.edits import Pin, Replace, Restore, Target
from foveate.core.messages import Media, Message, Opaque, Text, ToolResult
from foveate.core.planner import make_plan
from foveate.errors import BadSetting
from foveate.policies import filter_tool_results, load_policies
from foveate.testing import answer, call, calls, say, user
from foveate.testing.strategies import histories, runs

OMITTED = "[Omitted]"
PLENTY = Budget(10**9, 0, 10**12, 10**6)
PIXEL = Media("image/png", "base64", "AAAA")
MANY = settings(max_examples=settings.default.max_examples * 2)


def keep_newest(keep: int, **options: object):
    return filter_tool_results(keep=keep, placeholder=OMITTED, **options)


def rounds(count: int) -> list[Message]:
    """Return a question, then so many calls with their results."""
    return [
        user("q"),
        *(m for n in range(1, count + 1) for m in (call(f"tc_{n}"), answer(f"tc_{n}", f"the result {n}"))),
    ]


def filtered_texts(story: Story, policy: object) -> list[str]:
    """Apply the policy. Return the texts of all results."""
    plan = make_plan(story.projection, story.frame(PLENTY), [policy], ())
    if plan.edits:
        story.edit(*plan.edits)
    return [entry.message.text for entry in story.projection.entries() if entry.is_result]


# -------------------------------------------------------------------------------------------- scenarios of the document


def test_5_4_14_keeping_two_of_ten_removes_no_message():
    conversation = opened(policy=(keep_newest(2),))
    messages = rounds(10)
    conversation.append(messages)
    view = conversation.prepare()
    assert len(messages) == len(view) == 21
    results = [entry.message.result for entry in view if entry.is_result]
    assert results == [
        *(ToolResult(f"tc_{n}", (Text(OMITTED),)) for n in range(1, 9)),
        *(ToolResult(f"tc_{n}", (Text(f"the result {n}"),)) for n in (9, 10)),
    ]
    assert [e.message for e in view if e.message.role == "assistant"] == [m for m in messages if m.role == "assistant"]
    (receipt,) = conversation.journal.receipts()
    assert (receipt.policies, len(receipt.edits)) == (("keep-last-2",), 8)


@pytest.mark.parametrize(("count", "keep", "omitted"), [(3, 1, 2), (10, 4, 6), (10, 0, 0), (10, 10, 0), (10, 99, 0)])
def test_5_4_15_zero_keeps_all_results(count, keep, omitted):
    shown = filtered_texts(Story(*rounds(count)), keep_newest(keep))
    assert shown == [OMITTED] * omitted + [f"the result {n}" for n in range(omitted + 1, count + 1)]


def test_5_4_16_the_last_of_parallel_results_are_kept():
    story = Story(user("q"), calls("a", "b", "c"), *(answer(id, f"the result {id}") for id in "abc"))
    assert filtered_texts(story, keep_newest(2)) == [OMITTED, "the result b", "the result c"]


def test_5_4_17_duplicate_or_missing_ids_do_not_change_the_count():
    messages: list[Message] = [user("q")]
    for n, id in enumerate(["x", "x", "", "", "x"]):
        messages += [call(id), answer(id, f"the result {n}")]
    for profile in (OPENAI, ANTHROPIC):
        shown = filtered_texts(Story(*messages, profile=profile), keep_newest(2))
        assert shown == [OMITTED] * 3 + ["the result 3", "the result 4"]


def test_5_4_18_a_result_shorter_than_the_placeholder_stays():
    conversation = opened(policy=(keep_newest(1),))
    messages = [
        user("q"),
        call("a"),
        answer("a", "ok"),
        call("b"),
        answer("b", "x" * len(OMITTED)),
        *rounds(2)[1:],
    ]
    conversation.append(messages)
    assert texts(conversation.prepare())[2:] == ["ok", "", "x" * len(OMITTED), "", OMITTED, "", "the result 2"]
    assert [row.message for row in conversation.history()] == messages


def image_counts(chat: Conversation) -> list[tuple[str, int]]:
    """Return the text and the number of images of each message that has or had an image."""
    shown = {entry.position: entry for entry in chat.view}
    bearing = [row.position for row in chat.history() if any(row.message.media())]
    return [(shown[position].message.text, shown[position].images) for position in bearing]


def omitted(*handles: str) -> list[str]:
    return [f'[Image omitted: expand("{handle}")]' for handle in handles]


@pytest.mark.parametrize("literal", [True, False])
def test_5_4_20_only_the_last_message_keeps_its_images(literal):
    template = {"media_placeholder": "[Image omitted]"} if literal else {}
    chat = opened(policy=(filter_tool_results(keep=0, max_multimodal=1, **template),), expand=True)
    chat.append([Message("user", (PIXEL, PIXEL)), say("a dot"), user("and this?", PIXEL), say("a dot")])
    chat.append([user("and this?", PIXEL), say("a dot"), user("thanks")])
    chat.prepare()
    assert image_counts(chat) == (
        [("[Image omitted]", 0), ("and this?", 0), ("and this?", 1)]
        if literal
        else [
            ("\n".join(omitted("m1.1", "m1.2")), 0),
            ("\n".join(["and this?", *omitted("m3.2")]), 0),
            ("and this?", 1),
        ]
    )
    chat.prepare()
    assert len(chat.journal.records()) == 1
    chat.expand("m3")
    chat.prepare()
    assert [images for _, images in image_counts(chat)] == [0, 1, 1]


def test_images_of_pins_and_of_the_last_input_stay():
    chat = opened(policy=(filter_tool_results(keep=0, max_multimodal=0, media_placeholder="[Image omitted]"),))
    chat.append([user("look", PIXEL), say("ok"), user("go", PIXEL), call("a"), answer("a", "shot", PIXEL), call("b")])
    chat.append(Message("tool", (ToolResult("b", (PIXEL,)),)))
    chat.pin("m1")
    chat.prepare()
    assert image_counts(chat) == [("look", 1), ("go", 1), ("shot", 0), ("[Image omitted]", 0)]
    chat.unpin("m1")
    chat.pin("m1.1")
    chat.prepare()
    assert image_counts(chat)[0] == ("look", 0)


def test_a_replaced_result_loses_its_images():
    chat = opened(policy=(filter_tool_results(keep=1, max_multimodal=1, placeholder=OMITTED),))
    chat.append([user("look", PIXEL), say("ok"), user("go"), call("a"), answer("a", "shot", PIXEL)])
    chat.append([call("b"), answer("b", "no picture here")])
    chat.prepare()
    assert image_counts(chat) == [("look", 1), (OMITTED, 0)]


@MANY
@given(history=histories(), newest=st.integers(0, 3), literal=st.booleans())
def test_media_are_removed_once_from_older_messages(history, newest, literal):
    policy = filter_tool_results(
        keep=0, max_multimodal=newest, **({"media_placeholder": "[Image omitted]"} if literal else {})
    )
    story = Story(*history)
    before = story.view()
    filtered_texts(story, policy)
    after = story.view()
    assert [entry.handle for entry in after] == [entry.handle for entry in before]
    kept = [entry.position for entry in after if any(entry.message.media())]
    bearing = [entry.position for entry in before if any(entry.message.media())]
    assert set(bearing[max(0, len(bearing) - newest) :]) <= set(kept)
    assert len(kept) <= newest + 1
    assert all(entry.message == old.message for entry, old in zip(after, before, strict=True) if not entry.shrunk)
    count = len(story.records)
    filtered_texts(story, policy)
    assert len(story.records) == count


# -------------------------------------------------------------------------------------------------------------- batches


def test_a_batch_moves_the_boundary_rarely():
    story, whole = Story(*rounds(1)), []
    for n in range(2, 12):
        story.say(call(f"tc_{n}"), answer(f"tc_{n}", f"the result {n}"))
        shown = filtered_texts(story, keep_newest(2, batch=3))
        whole.append(sum(text != OMITTED for text in shown))
    assert whole == [2, 3, 4, 2, 3, 4, 2, 3, 4, 2]
    assert [len(record.edits) for record in story.records] == [3, 3, 3]


def test_results_that_stay_do_not_fill_a_batch():
    """Three short results that stay used to make every batch a batch of one."""
    story = Story(user("q"))
    for n in range(9):
        story.say(call(f"s{n}"), answer(f"s{n}", "ok"))
    for n in range(6):
        story.say(call(f"l{n}"), answer(f"l{n}", f"the result {n}"))
        filtered_texts(story, keep_newest(1, batch=3))
    assert [len(record.edits) for record in story.records] == [3]


def test_nothing_is_edited_again_without_a_new_result():
    story = Story(*rounds(5))
    filtered_texts(story, keep_newest(2))
    story.say(say("thinking aloud"), user("go on"))
    filtered_texts(story, keep_newest(2))
    assert len(story.records) == 1


# ---------------------------------------------------------------------------------------------------- untouched results


def test_a_short_result_with_an_image_is_replaced():
    block = Message("tool", (ToolResult("b", (Opaque("openai", "k", "{}" * 40),)),))
    small = Message("tool", (ToolResult("c", (Opaque("openai", "k", "{}"),)),))
    story = Story(user("q"), call("a"), answer("a", "", PIXEL), call("b"), block, call("c"), small, *rounds(1)[1:])
    assert filtered_texts(story, keep_newest(1)) == [OMITTED, OMITTED, "", "the result 1"]
    assert story.view().images == 0


def test_pins_and_expanded_results_stay():
    story = Story(*rounds(5))
    story.edit(Pin(Target(story.id(3))))
    filtered_texts(story, keep_newest(1))
    story.edit(Restore((Target(story.id(5)),)))
    assert filtered_texts(story, keep_newest(1)) == ["the result 1", "the result 2", OMITTED, OMITTED, "the result 5"]
    story.say(say("seen"), user("go on"))
    assert filtered_texts(story, keep_newest(1)) == ["the result 1", OMITTED, OMITTED, OMITTED, "the result 5"]


def test_a_replaced_result_still_counts():
    story = Story(*rounds(4))
    story.edit(Replace(Target(story.id(9)), (Text("replaced by hand"),)))
    assert filtered_texts(story, keep_newest(2)) == [OMITTED, OMITTED, "the result 3", "replaced by hand"]


def test_a_late_result_counts_and_a_stand_in_does_not():
    story = Story(user("q"), call("a"), call("b"), answer("b", "the result b"))
    story.say(answer("a", "the result a"))
    story.say(call("c"), answer("c", "the result c"))
    assert filtered_texts(story, keep_newest(2)) == [
        OMITTED,
        "[Result for call a of tool, which came late]\nthe result a",
        "the result c",
    ]


def test_the_default_placeholder_names_the_handle():
    conversation = opened(policy="keep-last-1", expand=True)
    conversation.append([user("q"), call("a"), answer("a", "a result " * 9), call("b"), answer("b", "ok")])
    assert texts(conversation.prepare())[2] == '[Omitted: expand("m3")]'
    assert conversation.expand("m3").text == "a result " * 9
    assert texts(conversation.prepare())[2] == "a result " * 9


# ------------------------------------------------------------------------------------------------- settings, invariants


def test_wrong_settings_are_refused():
    for options in ({"keep": -1}, {"keep": 1, "batch": 0}, {"keep": 1, "batch": -3}):
        with pytest.raises(BadSetting, match="Set keep to 0 or more, and batch to 1 or more"):
            filter_tool_results(**options)
    with pytest.raises(BadSetting, match="max_multimodal of filter_tool_results is"):
        filter_tool_results(keep=0, max_multimodal=-1)
    for name in ("keep-last-0", "keep-last-", "keep-last--1", "keep-last-01", "keep-last-2x", "Keep-last-2", ""):
        with pytest.raises(BadSetting, match="keep-last-N"):
            load_policies(name)


def test_load_policies_gives_policies_and_floor():
    story = Story(*rounds(4))
    (policy,), floor = load_policies("keep-last-3")
    assert floor
    assert [edit.policy for edit in policy(story.view())] == []  # the placeholder with its handle is longer
    assert load_policies("none") == ((), floor)
    assert load_policies("off") == ((), ())


@MANY
@given(history=runs(), keep=st.integers(1, 4))
def test_filtering_at_every_step_equals_filtering_once(history, keep):
    """I3: the time of planning does not decide which results are whole."""
    stepwise = Story()
    for message in history:
        stepwise.say(message)
        filtered_texts(stepwise, keep_newest(keep))
    at_once = Story(*history)
    filtered_texts(at_once, keep_newest(keep))
    assert [e.message for e in stepwise.projection.entries()] == [e.message for e in at_once.projection.entries()]


@MANY
@given(
    history=histories(), keep=st.integers(0, 4), batch=st.integers(1, 3), profile=st.sampled_from([OPENAI, ANTHROPIC])
)
def test_the_filter_is_stable_and_never_grows_a_view(history, keep, batch, profile):
    story = Story(*history, profile=profile)
    before = story.view()
    filtered_texts(story, keep_newest(keep, batch=batch))
    after = story.view()
    assert [entry.handle for entry in after] == [entry.handle for entry in before]
    assert after.tokens <= before.tokens
    newest = [entry for entry in after if entry.is_result][-keep:] if keep else [e for e in after if e.is_result]
    assert all(entry.edits == () for entry in newest)
    count = len(story.records)
    filtered_texts(story, keep_newest(keep, batch=batch))
    assert len(story.records) == count
