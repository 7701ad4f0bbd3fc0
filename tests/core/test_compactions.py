"""A compaction by the provider stands for everything before it, and can be undone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.core.checker import check
from foveate.core.edits import Hide, Pin, Restore, Span, Summarize, Target
from foveate.core.messages import Message, Opaque, Part, Text
from foveate.core.view import View
from foveate.formats import get_format
from foveate.testing import answer, call, say, system, user
from foveate.testing.bodies import check_body

from .story import ANTHROPIC, BINDING, OPENAI, PLENTY, Story, texts


def compacted(text: str | None = "so far", *parts: Part, **fields: str) -> Message:
    body = json.dumps({"type": "compaction", "content": text, **fields})
    return Message("assistant", (Opaque("anthropic", "compaction", body), *parts))


def adopt(story: Story) -> bool:
    """Record a compaction as the planner does."""
    edit = story.projection.compaction_edit()
    if edit is not None:
        story.edit(edit)
    return edit is not None


def wire(story: Story) -> list[str]:
    """Return the roles and kinds of blocks of the request."""
    entries = story.projection.entries()
    assert check(entries, story.profile) == []
    body = json.loads(get_format(story.profile.format).body(View(entries, 9, PLENTY), profile=story.profile))
    assert check_body(story.profile.format, body) == []
    messages = body["messages"]
    return [f"{m['role']}: {' '.join(block.get('text', block['type']) for block in m['content'])}" for m in messages]


def long_story(*more: Message, **options: object) -> Story:
    story = Story(system("rules"), user("go"), call("a"), answer("a"), user("and"), **{"profile": ANTHROPIC, **options})
    story.say(compacted("so far", Text("ok")), *more)
    return story


def test_nothing_before_a_compaction_is_sent():
    story = long_story(user("next"))
    assert wire(story) == ["assistant: compaction ok", "user: next"]
    assert [entry.position for entry in story.projection.entries()] == [1, 6, 7]


def test_recording_a_compaction_changes_nothing_that_is_sent():
    story = long_story(user("next"), profile=BINDING)
    before = story.projection.entries()
    assert adopt(story)
    assert [entry.message for entry in story.projection.entries()] == [entry.message for entry in before]
    assert not adopt(story)
    (edit,) = story.records[0].edits
    assert isinstance(edit, Summarize)
    assert (edit.policy, edit.text) == ("provider", "[Summary of m2-m5, written by the provider]\nso far")
    assert [entry.message for entry in story.folded().entries()] == [entry.message for entry in before]
    resumed = story.folded(story.projection.snapshot())
    assert [entry.message for entry in resumed.entries()] == [entry.message for entry in before]


def test_undoing_shows_the_originals_and_leaves_the_compaction_out():
    story = long_story(user("next"))
    adopt(story)
    story.edit(Restore(edits=(1,)))
    assert wire(story) == [
        "user: go",
        "assistant: tool_use",
        "user: tool_result and",
        "assistant: ok",
        "user: next",
    ]
    assert not adopt(story)
    story.say(say("later"), user("more"))
    assert not adopt(story)
    assert wire(story)[0] == "user: go"


def test_undoing_leaves_the_compaction_out_if_only_the_last_input_is_before_it():
    story = Story(user("go"), compacted("so far", Text("ok")), profile=ANTHROPIC)
    adopt(story)
    story.edit(Restore(edits=(1,)))
    assert wire(story) == ["user: go", "assistant: ok"]
    assert not adopt(story)


@pytest.mark.parametrize("edit", [lambda s: Pin(Target(s.id(2))), lambda s: Restore((Target(s.id(2)),))])
def test_a_pinned_or_expanded_original_comes_with_the_local_copy(edit):
    story = long_story(user("next"))
    if isinstance(edit(story), Pin):
        story.edit(edit(story))
    adopt(story)
    if not isinstance(edit(story), Pin):
        story.edit(edit(story))
    shown = wire(story)
    assert shown[0].startswith("user: [Summary of m2-m5")
    assert shown[1:] == ["user: go", "assistant: ok", "user: next"]


def test_hiding_the_message_of_a_compaction_shows_the_local_copy():
    story = long_story(user("next"))
    adopt(story)
    story.edit(Hide(Target(story.id(6))))
    assert wire(story)[0].startswith("user: [Summary of m2-m5")
    story.edit(Restore((Target(story.id(6)),)))
    assert wire(story) == ["assistant: compaction ok", "user: next"]


def test_another_provider_reads_the_local_copy():
    story = long_story(user("next"), profile=OPENAI)
    adopt(story)
    assert texts(story.projection) == [
        "rules",
        "[Summary of m2-m5, written by the provider]\nso far",
        "ok",
        "next",
    ]


def test_a_form_that_only_the_provider_reads_is_described_with_the_users_messages():
    item = Opaque("openai", "compaction", '{"type":"compaction","encrypted_content":"gAAA"}')
    story = Story(
        user("fix the\ntests"), call("a"), answer("a"), Message("assistant", (item, Text("ok"))), profile=OPENAI
    )
    adopt(story)
    (edit,) = story.records[0].edits
    assert edit.text == (
        "[m1-m3: the provider compacted these messages into a form that only it can read.]\n"
        "The user's messages in it began:\nm1: fix the tests"
    )
    elsewhere = Story(*(row.message for row in story.rows), profile=ANTHROPIC)
    assert not adopt(elsewhere)
    assert texts(elsewhere.projection)[0] == "fix the\ntests"


def test_a_later_compaction_replaces_an_earlier_one():
    story = long_story(user("next"))
    adopt(story)
    story.say(compacted("all of it", Text("yes")), user("last"))
    assert wire(story) == ["assistant: compaction yes", "user: last"]
    adopt(story)
    assert wire(story) == ["assistant: compaction yes", "user: last"]
    story.edit(Restore(edits=(2,)))
    assert wire(story) == ["assistant: compaction ok", "user: next", "assistant: yes", "user: last"]


def test_a_signed_compaction_comes_first_and_alone():
    story = Story(user("go"), say("hi"), compacted(signature="c2ln"), user("next"), profile=ANTHROPIC)
    assert wire(story) == ["assistant: compaction", "user: next"]
    assert Story(compacted(signature="c2ln"), user("next"), profile=ANTHROPIC).projection.entries()[0].position == 1


def test_a_failed_compaction_replaces_nothing():
    story = Story(user("go"), compacted(None, Text("ok")), user("next"), profile=ANTHROPIC)
    assert not adopt(story)
    assert wire(story) == ["user: go", "assistant: compaction ok", "user: next"]


MESSAGES = st.sampled_from(
    [user("u"), say("a"), call("a"), answer("a"), system("s"), compacted(), compacted("x", Text("t"))]
)

BLOCKS = [compacted().parts[0], compacted("x").parts[0]]


@given(st.lists(MESSAGES, min_size=1, max_size=12), st.data())
@settings(max_examples=settings.default.max_examples * 4)
def test_any_history_with_compactions_and_edits_is_legal(messages, data):
    """What was undone or edited is shown; everything else is in the compaction or after it."""
    story = Story(user("first"), profile=data.draw(st.sampled_from([ANTHROPIC, BINDING, OPENAI])))
    for message in messages:
        before = story.projection.entries()
        newest = max((row.position for row in story.rows if row.message.parts[0] in BLOCKS), default=0)
        is_active = any(entry.position == newest and entry.message.parts[0] in BLOCKS for entry in before)
        if data.draw(st.booleans()) and adopt(story) and is_active:
            shown = story.projection.entries()
            assert [entry.message for entry in shown] == [entry.message for entry in before]
        story.say(message)
        if data.draw(st.integers(0, 3)) == 0:
            first = data.draw(st.integers(1, len(story.rows)))
            last = data.draw(st.integers(first, len(story.rows)))
            span = Span(story.id(first), story.id(last))
            numbers = [record.first for record in story.records]
            undo = Restore(edits=(data.draw(st.sampled_from(numbers)),)) if numbers else Pin(Target(story.id(first)))
            edits = [Hide(span), Summarize(span, "sum"), Pin(Target(story.id(first))), Restore((span,)), undo]
            story.edit(data.draw(st.sampled_from(edits)))
        entries = story.projection.entries()
        assert check(entries, story.profile) == []
        if any(entry.message.role != "system" for entry in entries):
            body = get_format(story.profile.format).body(View(entries, 9, PLENTY), profile=story.profile)
            assert check_body(story.profile.format, body) == []
    shown = [entry.message for entry in story.projection.entries()]
    assert [entry.message for entry in story.folded().entries()] == shown
    assert [entry.message for entry in story.folded(story.projection.snapshot()).entries()] == shown
