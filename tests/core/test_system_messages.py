"""System messages in the middle of a conversation have a legal place in every view, and keep their authority."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate.core.checker import check
from foveate.core.edits import Hide, Restore, Span, Summarize, Target
from foveate.core.growing import Marks
from foveate.core.messages import Extra, Message, Opaque, Text
from foveate.core.needs import needs_of
from foveate.core.profiles import Profile, profile_for
from foveate.core.system_messages import NO_REPLY, OPENING, SYSTEM_NOTE
from foveate.core.view import View
from foveate.formats import get_format
from foveate.testing import answer, call, say, system, user
from foveate.testing.bodies import check_body

from .story import ANTHROPIC, OPENAI, PLENTY, Story

OLDER = profile_for("anthropic", "claude-sonnet-4-5")
LOW = Message("system", (), "", Extra("anthropic", '{"output_config":{"effort":"low"}}'))
USE = '{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}'
FOUND = '{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}'
SEARCH = Message(
    "assistant", (Opaque("anthropic", "server_tool_use", USE), Opaque("anthropic", "web_search_tool_result", FOUND))
)


def shown(*messages: Message, profile: Profile = ANTHROPIC) -> list[str]:
    """Return role and text of each entry."""
    return lines(Story(*messages, profile=profile))


def lines(story: Story) -> list[str]:
    entries = story.projection.entries()
    assert check(entries, story.profile) == []
    body = get_format("anthropic").body(View(entries, 9, PLENTY), profile=story.profile)
    assert check_body("anthropic", body) == []
    return [f"{'note' if e.kind == 'note' else e.message.role} {e.message.text}".strip() for e in entries]


def test_instructions_behind_the_users_side_stay_where_they_are():
    story = Story(system("rules"), user("go"), system("one"), call("a"), answer("a"), system("two"), profile=ANTHROPIC)
    assert lines(story) == ["system rules", "user go", "system one", "assistant", "tool ok", "system two"]
    assert not any(entry.legalized for entry in story.projection.entries())


def test_an_instruction_moves_behind_the_users_messages_that_follow():
    assert shown(user("go"), system("one"), user("and"), say("ok")) == [
        "user go",
        "user and",
        "system one",
        "assistant ok",
    ]
    assert shown(user("go"), say("hi"), system("one"), user("and")) == [
        "user go",
        "assistant hi",
        "user and",
        "system one",
    ]


def test_an_instruction_between_a_call_and_its_answer_follows_the_answer():
    assert shown(user("go"), call("a"), system("one"), answer("a"))[1:] == ["assistant", "tool ok", "system one"]


def test_a_users_note_comes_before_an_instruction_that_follows_a_reply():
    assert shown(user("go"), say("hi"), system("one")) == ["user go", "assistant hi", f"user {OPENING}", "system one"]
    assert shown(user("go"), SEARCH, system("one"))[1:] == ["assistant", "system one"]


def test_a_stand_in_for_the_reply_keeps_what_an_earlier_call_was_sent():
    story = Story(user("go"), system("one"), profile=ANTHROPIC)
    before = story.projection.entries()
    story.say(system("two"), user("and"), turn=1)
    assert story.projection.entries()[:2] == before
    assert lines(story) == ["user go", "system one", f"assistant {NO_REPLY}", "user and", "system two"]


def test_a_hidden_reply_between_two_instructions_leaves_both_in_place():
    messages = [user("go"), system("one"), say("hi"), user("and"), system("two"), say("ok")]
    story = Story(*messages, profile=ANTHROPIC)
    before = story.projection.entries()
    story.edit(Hide(Target(story.id(3))))
    assert lines(story) == [
        "user go",
        "system one",
        f"assistant {NO_REPLY}",
        "user and",
        "system two",
        "assistant ok",
    ]
    assert story.projection.entries()[:2] == before[:2]
    story.edit(Restore(edits=(1,)))
    assert lines(story) == ["user go", "system one", "assistant hi", "user and", "system two", "assistant ok"]


def test_hidden_inputs_never_turn_an_instruction_into_the_system_prompt():
    story = Story(system("rules"), user("go"), system("one"), say("hi"), user("and"), profile=ANTHROPIC)
    story.edit(Hide(Target(story.id(2))))
    assert lines(story) == ["system rules", f"user {OPENING}", "system one", "assistant hi", "user and"]


def test_a_summary_comes_before_the_instructions_of_its_span():
    story = Story(user("go"), say("hi"), user("and"), system("one"), say("ok"), user("then"), profile=ANTHROPIC)
    story.edit(Summarize(Span(story.id(1), story.id(5)), "so far"))
    assert lines(story) == ["user so far", "system one", f"assistant {NO_REPLY}", "user then"]


def test_a_message_that_only_changes_settings_may_be_anywhere():
    story = Story(user("go"), say("hi"), LOW, user("and"), profile=ANTHROPIC)
    assert lines(story) == ["user go", "assistant hi", "system", "user and"]
    assert not any(entry.legalized for entry in story.projection.entries())
    for profile in (OPENAI, OLDER):
        assert [e.position for e in Story(user("go"), LOW, profile=profile).projection.entries()] == [1]


def test_a_note_follows_the_settings_that_an_earlier_call_was_sent():
    story = Story(user("go"), say("hi"), LOW, profile=ANTHROPIC)
    before = story.projection.entries()
    story.say(system("one"), turn=2)
    assert story.projection.entries()[: len(before)] == before
    assert lines(story) == ["user go", "assistant hi", "system", f"user {OPENING}", "system one"]


def test_a_model_without_such_messages_reads_them_as_notes():
    messages = [system("rules"), user("go"), system("one"), say("hi"), system("two")]
    story = Story(*messages, profile=OLDER)
    assert lines(story) == [
        "system rules",
        "user go",
        f"note {SYSTEM_NOTE}one",
        "assistant hi",
        f"note {SYSTEM_NOTE}two",
    ]
    notes = [entry for entry in story.projection.entries() if entry.kind == "note"]
    assert all(entry.message.role == "system" and entry.legalized for entry in notes)
    before = story.projection.entries()
    story.say(say("ok"))
    assert story.projection.entries()[: len(before)] == before


def test_another_provider_takes_system_messages_anywhere():
    messages = [user("go"), system("one"), user("and"), say("ok"), system("two")]
    assert [entry.message for entry in Story(*messages, profile=OPENAI).projection.entries()] == messages


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("", True),
        ("claude-opus-4-8", True),
        ("claude-opus-4-8-20260528", True),
        ("claude-opus-4-7", False),
        ("claude-opus-4-20250514", False),
        ("claude-opus-5-5", True),
        ("claude-sonnet-5", False),
        ("claude-sonnet-5-5", True),
        ("claude-sonnet-6", True),
        ("claude-haiku-4-5-20251001", False),
        ("claude-haiku-5-5", True),
        ("claude-fable-5", True),
        ("claude-3-5-sonnet-20241022", False),
        ("anthropic/claude-opus-4.8", True),
        ("claude-saga-6", True),
    ],
)
def test_models_differ_in_where_they_take_system_messages(model, takes):
    """Both checkers agree: a model that takes none gets a note instead."""
    profile = profile_for("anthropic", model)
    assert profile.system_places == ("after_user" if takes else "first")
    entries = Story(user("go"), system("one"), profile=profile).projection.entries()
    prompt = get_format("anthropic").prompt(View(entries, 9, PLENTY), profile=profile)
    bare = model.rpartition("/")[2].replace(".", "-")
    assert check_body("anthropic", {"model": bare, **prompt}) == []
    as_system = [*prompt["messages"][:1], {"role": "system", "content": "one"}]
    assert (check_body("anthropic", {"model": bare, "messages": as_system}) == []) is takes


def test_beta_features_that_a_request_uses_are_named():
    clear = Message("system", (Text("soon"),), "", Extra("anthropic", '{"clear_at":"next_user_message"}'))
    change = Message("system", (Opaque("anthropic", "tool_removal", '{"type":"tool_removal","tool":{}}'),))
    defined = '{"type":"tool_addition","tool":{"type":"tool_definition"}}'
    inline = Message("system", (Opaque("anthropic", "tool_addition", defined),))
    entries = Story(user("go"), clear, change, inline, LOW, profile=ANTHROPIC).projection.entries()
    assert needs_of(entries, ANTHROPIC, Marks()).betas == (
        "mid-conversation-system-clear-at-2026-08-21",
        "mid-conversation-tool-changes-2026-07-01",
        "inline-tools-2026-09-15",
        "mid-conversation-output-config-2026-07-01",
    )
    assert not needs_of(Story(user("go"), system("one"), profile=ANTHROPIC).projection.entries(), ANTHROPIC, Marks())


MESSAGES = st.sampled_from(
    [
        user("u"),
        system("s"),
        say("a"),
        LOW,
        SEARCH,
        call("a"),
        answer("a"),
        Message("system", (Text(" "),)),
        system("t"),
    ]
)


@given(st.lists(MESSAGES, min_size=1, max_size=12), st.data())
@settings(max_examples=settings.default.max_examples * 2)
def test_every_order_and_every_edit_gives_a_legal_body(messages, data):
    """No instruction is lost, and a view that only grew keeps everything before the newest reply."""
    profile = data.draw(st.sampled_from([ANTHROPIC, OLDER, replace(ANTHROPIC, binds_reasoning=True)]))
    story = Story(user("first"), profile=profile)
    instructions = 0
    for message in messages:
        if message is SEARCH:  # An id of a server tool is used once.
            parts = [replace(p, body=p.body.replace("srvtoolu_1", f"srvtoolu_{len(story.rows)}")) for p in SEARCH.parts]
            message = replace(SEARCH, parts=tuple(parts))
        before = story.projection.entries()
        instructions += message.role == "system" and bool(message.text.strip())
        turn = story.turn + (message.role == "assistant") + data.draw(st.integers(0, 1))
        story.say(message, turn=turn)
        if turn > story.rows[-2].stamp.turn:  # A call was begun with everything before.
            assert story.projection.entries()[: len(before)] == before
        if data.draw(st.integers(0, 3)) == 0:
            first = data.draw(st.integers(1, len(story.rows)))
            last = data.draw(st.integers(first, len(story.rows)))
            span = Span(story.id(first), story.id(last))
            edits = [Hide(span), Summarize(span, "sum"), Hide(Target(story.id(first))), Restore((span,))]
            story.edit(data.draw(st.sampled_from(edits)))
        entries = story.projection.entries()
        if any(entry.message.role != "system" for entry in entries):
            lines(story)
        texts = [entry.message.text for entry in entries if entry.message.role == "system" and entry.message.text]
        assert len(texts) == instructions
    assert [e.message for e in story.folded().entries()] == [e.message for e in story.projection.entries()]
    assert json.loads(get_format("anthropic").body(story.view(), profile=profile))
