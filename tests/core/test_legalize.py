"""Legal views: each required difference from the appended messages, case by case. No content is lost."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate.agents.tools import Tool
from foveate.core.checker import check
from foveate.core.edits import Hide, Replace, Span, Target
from foveate.core.legalize import NO_ANSWER
from foveate.core.messages import Extra, Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, assistant
from foveate.core.profiles import profile_for
from foveate.core.rendering import NO_ERROR_TEXT
from foveate.core.sizes import images_of, tokens_of
from foveate.core.system_messages import OPENING
from foveate.core.tool_names import tool_name
from foveate.core.view import Entry
from foveate.core.wire import encode_message
from foveate.testing import answer, call, calls, say, system, thought, user
from foveate.testing.strategies import histories

from .story import ANTHROPIC, BINDING, OPENAI, Story, texts

PROVIDERS = pytest.mark.parametrize("profile", [OPENAI, ANTHROPIC])
PIXEL = Media("image/png", "base64", "AAAA")
SIGNED = Reasoning("hm", "c2ln", format="anthropic")
GO = user("go")
MANY = settings(max_examples=settings.default.max_examples * 4)


def shown(*messages: Message, profile=ANTHROPIC) -> list[Entry]:
    """Return the entries after a first user's message."""
    story = Story(GO, *messages, profile=profile)
    assert check(story.projection.entries(), profile) == []
    return list(story.projection.entries()[1:])


def alone(message: Message, profile=ANTHROPIC) -> Entry:
    (entry, *rest) = shown(message, profile=profile)
    assert {one.kind for one in rest} <= {"stand-in"}
    return entry


# -------------------------------------------------------------------------------------------------- one message alone


@PROVIDERS
def test_a_legal_message_stays_the_same_object(profile):
    message = Message("assistant", (Text("well"), ToolCall("a", "t", '{"a": 1}')), "bot", Extra("other", "{}"))
    entry = alone(message, profile)
    assert entry.message is entry.source is message
    assert entry.legalized == ""


@PROVIDERS
def test_blank_text_is_removed(profile):
    entry = alone(Message("user", (Text(" \n"), Text("words"), Text(""), PIXEL)), profile)
    assert entry.message == Message("user", (Text("words"), PIXEL))
    assert entry.legalized == "blank text is refused"


@PROVIDERS
@pytest.mark.parametrize("parts", [(), (Text(""),), (Text(" "), Text("\n")), (SIGNED,), (Reasoning(),)])
def test_a_message_without_content_is_not_shown(parts, profile):
    assert shown(Message("assistant", parts), say("ok"), profile=profile)[0].message == say("ok")


def test_trailing_space_is_removed_only_if_refused():
    message = assistant("so: \n")
    assert alone(message).message == assistant("so:")
    assert alone(message).legalized == "white space at the end of the assistant's text is refused"
    assert alone(message, OPENAI).message is message
    assert alone(user("so: \n")).message == user("so: \n")
    unsigned = Message("assistant", (Text("so: \n"), Reasoning("hm", format="anthropic")))
    assert alone(unsigned).message == assistant("so:")
    unpaired = Opaque("anthropic", "web_search_tool_result", '{"tool_use_id":"s1","content":[]}')
    *_, reply = shown(user("go"), Message("assistant", (Text("so: \n"), unpaired)))
    assert reply.message == assistant("so:")


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        (Text("out", Extra("openai_responses", '{"stderr":"","outcome":{"type":"timeout"}}')), Text("out")),
        (Opaque("openai_responses", "content:tools", '{"tools":[]}'), Text('{"tools":[]}')),
        (Opaque("anthropic", "tool_reference", '{"type":"tool_reference"}'), Text('{"type":"tool_reference"}')),
        (Opaque("anthropic", "search_result", "{}"), Opaque("anthropic", "search_result", "{}")),
        (PIXEL, PIXEL),
    ],
)
def test_note_has_no_content_that_only_results_have(part, kept):
    """A note is a user's message, and shows the answer of a call that is not visible."""
    format = part.format if isinstance(part, Opaque) else "openai_responses"
    message = Message("tool", (ToolResult("zz", (part,)),))
    *_, note = shown(user("go"), message, profile=profile_for(format))
    assert note.message.parts[1:] == (kept,)


def test_space_that_does_not_end_a_request_stays():
    """Thinking is bound to what comes before it, letter by letter, and newer models end no request with their reply."""
    calling = Message("assistant", (Text("I look: \n"), SIGNED, ToolCall("a", "t")))
    assert alone(calling).message is calling
    bare = assistant("so: \n")
    assert alone(bare, profile_for("anthropic", "claude-opus-5-5")).message is bare


def test_content_after_a_call_moves_before_it_only_if_refused():
    one, two = ToolCall("a", "t"), ToolCall("b", "t")
    message = Message("assistant", (one, Text("and"), SIGNED, two, Text("then")))
    assert alone(message).message.parts == (Text("and"), SIGNED, Text("then"), one, two)
    assert alone(message).legalized == "content after a call, and reasoning at the end, are refused"
    assert alone(Message("assistant", (Text("x"), one, two))).legalized == ""
    assert alone(Message("assistant", (one, Text("and"), two)), OPENAI).legalized == ""


@pytest.mark.parametrize(
    ("thoughts", "why"),
    [
        (Reasoning("hm", "c2ln", format="openai"), "another provider's reasoning is refused"),
        (Reasoning("hm", "c2ln"), "another provider's reasoning is refused"),
        (Reasoning("hm", format="anthropic"), "unsigned reasoning is refused"),
        (Reasoning(format="anthropic"), "unsigned reasoning is refused"),
        (SIGNED, ""),
        (Reasoning(encrypted="eHg=", format="anthropic"), ""),
    ],
)
def test_reasoning_returns_only_to_its_provider_and_signed(thoughts, why):
    entry = alone(Message("assistant", (thoughts, Text("so"))))
    assert entry.message.parts == ((Text("so"),) if why else (thoughts, Text("so")))
    assert (entry.legalized, entry.source.parts[0]) == (why, thoughts)


def test_unsigned_reasoning_returns_to_a_provider_without_signatures():
    message = Message("assistant", (Reasoning("hm", format="openai"), Text("so")))
    assert alone(message, OPENAI).message is message


def test_stale_reasoning_is_left_out_with_a_reason():
    """F05."""
    story = Story(GO, thought("one", call("a")), answer("a"), thought("two", call("b")), answer("b"), profile=BINDING)
    story.edit(Replace(Target(story.id(3)), (Text("x"),)))
    first, *_, last = [entry for entry in story.projection.entries() if entry.message.calls]
    assert (first.message, first.legalized) == (story.rows[1].message, "")
    assert last.message == call("b")
    assert last.legalized == "reasoning bound to an earlier form of the conversation is refused"
    assert last.source == story.rows[3].message


@PROVIDERS
@pytest.mark.parametrize("arguments", ['{"path": "src/a', "[1, 2]", '"text"', "null", "7", "NaN", '{"half":"\\ud83d"}'])
def test_arguments_that_are_no_object_are_wrapped(arguments, profile):
    (shown_call,) = alone(Message("assistant", (ToolCall("a", "t", arguments),)), profile).message.calls
    assert json.loads(shown_call.arguments) == {"invalid_arguments": arguments}


def test_wrapped_arguments_stay_readable():
    (shown_call,) = alone(Message("assistant", (ToolCall("a", "t", '{"żółw": "🐢'),))).message.calls
    assert shown_call.arguments == '{"invalid_arguments": "{\\"żółw\\": \\"🐢"}'


@PROVIDERS
def test_blank_arguments_are_an_empty_object(profile):
    for arguments in ("", " \n"):
        entry = alone(Message("assistant", (ToolCall("a", "t", arguments),)), profile)
        assert entry.message.calls[0].arguments == "{}"
        assert entry.legalized == "its call had refused arguments or a refused name"


def test_tool_names_are_made_legal():
    for name, plain in (("functions.bash", "functions_bash"), ("read file", "read_file"), ("", "unnamed_tool")):
        assert alone(Message("assistant", (ToolCall("a", name),))).message.calls[0].name == plain
    long = Message("assistant", (ToolCall("a", "t" * 200),))
    for profile in (OPENAI, ANTHROPIC):
        assert alone(long, profile).message.calls[0].name == tool_name("t" * 200)
    fits = Message("assistant", (ToolCall("a", "t" * 128),))
    assert alone(fits, ANTHROPIC).message.calls[0].name == "t" * 128


def test_a_call_has_the_name_that_the_definition_of_its_tool_has():
    for name in ("Google Search", "検索", "files/read.text"):
        shown = alone(Message("assistant", (ToolCall("a", name),))).message.calls[0].name
        assert shown == Tool(name=name, call=print).wire("anthropic")["name"]


@PROVIDERS
def test_only_an_empty_error_gets_a_text(profile):
    for state, content in (("error", (Text(NO_ERROR_TEXT),)), ("ok", ()), ("interrupted", ())):
        for message in ((), (Text(" "),)):
            entry = shown(call("a"), Message("tool", (ToolResult("a", message, state),)), profile=profile)[1]
            assert entry.message.result == ToolResult("a", content, state)


def test_a_document_of_another_provider_is_shown_as_its_text():
    """After a switch of the provider, the user's documents would have been gone."""
    found = Opaque("gemini", "found", '{"title":"Kites","content":[{"type":"text","text":"They fly."}]}')
    shown = Text("title: Kites\nThey fly.")
    assert alone(Message("user", (Text("see"), found))).message.parts == (Text("see"), shown)
    assert alone(Message("user", (found,))).message.parts == (shown,)
    result = Message("tool", (ToolResult("a", (found,)),))
    entry = Story(user("go"), call("a"), result, profile=ANTHROPIC).projection.entries()[-1]
    assert entry.message.result is not None
    assert entry.message.result.content == (shown,)
    assert alone(Message("assistant", (Text("said"), found))).message.parts == (Text("said"),)


def test_blocks_of_other_providers_are_left_out():
    own, foreign = Opaque("anthropic", "own", "{}"), Opaque("openai", "foreign", "{}")
    assert alone(Message("user", (Text("see"), own, foreign))).message.parts == (Text("see"), own)
    result = Message("tool", (ToolResult("a", (foreign, Text("x"), own), name="t", extra=Extra("other", "{}")),))
    assert shown(call("a"), result)[1].message.result == ToolResult(
        "a", (Text("x"), own), name="t", extra=Extra("other", "{}")
    )


def test_names_and_unknown_fields_survive_legalization():
    message = Message("assistant", (Text("so ", Extra("anthropic", "{}")),), "bot", Extra("openai", '{"x":1}'))
    assert alone(message).message == replace(message, parts=(Text("so", Extra("anthropic", "{}")),))


# ------------------------------------------------------------------------------------------------------- calls and ids


@PROVIDERS
def test_long_and_empty_ids_are_replaced_in_call_and_answer(profile):
    (asked, first, second) = shown(
        calls("x" * 90, ""), answer("", "of empty"), answer("x" * 90, "of long"), profile=profile
    )
    ids = [one.call_id for one in asked.message.calls]
    assert ids == ["x" * (profile.max_call_id // 2) + "_2_0", "call_2_1"]
    assert all(len(id) <= profile.max_call_id for id in ids)
    assert [(e.message.result.call_id, e.message.result.text) for e in (first, second)] == [
        (ids[1], "of empty"),
        (ids[0], "of long"),
    ]
    assert asked.legalized == "a call id was empty, used before, too long or malformed"
    assert first.legalized == "its call is shown under another id"
    assert [one.call_id for one in asked.source.calls] == ["x" * 90, ""]


def test_odd_ids_are_made_plain_only_if_refused_and_stay_distinct():
    message = (calls("call 3", "call_3", "call#3"), *(answer(id, id) for id in ("call_3", "call#3", "call 3")))
    asked, *answers = shown(*message)
    ids = [one.call_id for one in asked.message.calls]
    assert ids == ["call_3", "call_3_2_1", "call_3_2_2"]
    assert {e.message.result.call_id: e.message.text for e in answers} == dict(
        zip(ids, ["call 3", "call_3", "call#3"], strict=True)
    )
    assert [entry.message for entry in shown(*message, profile=OPENAI)] == list(message)


@PROVIDERS
def test_a_reused_id_gets_its_place_as_suffix(profile):
    entries = shown(call("a"), answer("a", "1"), calls("a", "a"), answer("a", "2"), answer("a", "3"), profile=profile)
    assert [one.call_id for entry in entries for one in entry.message.calls] == ["a", "a_4_0", "a_4_1"]
    assert [(e.message.result.call_id, e.message.text) for e in entries if e.message.result] == [
        ("a", "1"),
        ("a_4_0", "2"),
        ("a_4_1", "3"),
    ]


@PROVIDERS
@pytest.mark.parametrize("before", [True, False])
def test_an_id_that_looks_generated_is_no_second_use(before, profile):
    """A regression: a server with call ids such as call_4_0, together with one empty id, made an illegal view."""
    own = [call("call_4_0"), answer("call_4_0")] if before else [call("z"), answer("z")]
    later = [] if before else [call("call_4_0"), answer("call_4_0")]
    entries = shown(*own, call(""), answer(""), *later, profile=profile)
    ids = [one.call_id for entry in entries for one in entry.message.calls]
    assert len(set(ids)) == len(ids)
    assert [e.message.result.call_id for e in entries if e.message.result] == ids


# ---------------------------------------------------------------------------------------------------- calls and answers


@PROVIDERS
def test_answers_directly_follow_their_calls(profile):
    entries = shown(calls("a", "b"), user("hurry"), answer("b", "2"), system("rule"), answer("a", "1"), profile=profile)
    assert [entry.message.text for entry in entries] == ["", "2", "1", "hurry", "rule"]
    assert [entry.position for entry in entries] == [2, 4, 6, 3, 5]
    assert {e.legalized for e in entries if e.message.result} == {"an answer must directly follow its call"}


@PROVIDERS
def test_a_call_without_an_answer_gets_a_stand_in_until_the_answer_comes(profile):
    story = Story(GO, calls("a", "b"), answer("b", "2"), profile=profile)
    stand_in = story.projection.entries()[-1]
    assert stand_in.message == Message("tool", (ToolResult("a", (Text(NO_ANSWER),), "interrupted"),))
    assert (stand_in.kind, stand_in.handle, stand_in.source, stand_in.is_result) == ("stand-in", "m2", None, False)
    story.say(answer("a", "1"))
    assert texts(story.projection) == ["go", "", "2", "1"]


@PROVIDERS
def test_an_answer_after_the_next_model_call_is_a_note(profile):
    story = Story(GO, call("a", "grep"), profile=profile)
    story.say(answer("a", "found"), turn=2)
    *_, stand_in, note = story.projection.entries()
    assert (stand_in.kind, note.kind, note.legalized) == (
        "stand-in",
        "note",
        "it came late, or its call was answered already",
    )
    assert note.message == Message("user", (Text("[Result for call a of grep, which came late]"), Text("found")))
    assert (note.is_result, note.result.call_id, note.position) == (True, "a", 3)


@PROVIDERS
def test_second_and_orphan_answers_are_notes_with_all_content(profile):
    entries = shown(
        call("a"),
        answer("a", "1"),
        answer("a", "2", PIXEL),
        answer("zz", "lost"),
        answer("", "of nothing"),
        profile=profile,
    )
    assert [entry.kind for entry in entries] == ["message", "message", "note", "note", "note"]
    assert [entry.message.parts for entry in entries[2:]] == [
        (Text("[Result for call a of tool, which came late]"), Text("2"), PIXEL),
        (Text("[Result for call zz, which is not shown]"), Text("lost")),
        (Text("[Result for a call, which is not shown]"), Text("of nothing")),
    ]
    assert [entry.legalized for entry in entries[3:]] == ["its call is not shown"] * 2
    assert entries[2].images == 1


@PROVIDERS
def test_hiding_half_of_a_pair_leaves_a_legal_view(profile):
    message = [GO, calls("a", "b"), answer("a", "1"), answer("b", "2"), call("c"), answer("c", "3"), user("on")]
    for first in range(2, 7):
        for last in range(first, 7):
            story = Story(*message, profile=profile)
            story.edit(Hide(Span(story.id(first), story.id(last))))
            assert check(story.projection.entries(), profile) == []


# -------------------------------------------------------------------------------------------------------- who is first


def test_a_note_precedes_an_assistant_at_the_start_if_required():
    story = Story(system("rules"), say("hello"), user("hi"), profile=ANTHROPIC)
    rules, opener, hello, _ = story.projection.entries()
    assert opener.message == user(OPENING)
    assert (opener.kind, opener.position, opener.id, opener.legalized) == (
        "stand-in",
        0,
        "",
        "the first message must be a user's",
    )
    assert (rules.position, hello.position) == (1, 2)
    story.say(say("well"))
    assert story.projection.entries()[1] is opener
    assert texts(Story(say("hello"), user("hi"), profile=OPENAI).projection) == ["hello", "hi"]


def test_no_note_precedes_a_user_or_an_empty_view():
    assert texts(Story(user("hi"), say("hello"), profile=ANTHROPIC).projection) == ["hi", "hello"]
    assert texts(Story(system("rules"), profile=ANTHROPIC).projection) == ["rules"]
    assert texts(Story(profile=ANTHROPIC).projection) == []


def test_a_view_with_a_hidden_first_input_begins_with_a_note():
    story = Story(user("old"), say("hello"), user("hi"), profile=ANTHROPIC)
    story.edit(Hide(Target(story.id(1))))
    assert texts(story.projection) == [OPENING, "hello", "hi"]


# ---------------------------------------------------------------------------------------------------------- everything


@MANY
@given(history=histories(), profile=st.sampled_from([OPENAI, ANTHROPIC]))
def test_no_visible_content_is_dropped_or_repeated(history, profile):
    story = Story(*history, profile=profile)
    entries = story.projection.entries()
    positions = [entry.position for entry in entries if entry.kind != "stand-in"]
    assert len(set(positions)) == len(positions)
    for row in story.rows:
        content = row.message.result.content if row.message.result else row.message.parts
        message = {part.text.strip() for part in content if isinstance(part, Text) and part.text.strip()}
        text = {
            part.text.strip()
            for entry in entries
            if entry.position == row.position
            for part in (entry.message.result.content if entry.message.result else entry.message.parts)
            if isinstance(part, Text)
        }
        assert message <= text
        names = [len(entry.message.calls) for entry in entries if entry.position == row.position]
        assert max(names, default=0) == len(row.message.calls)


@MANY
@given(history=histories(), profile=st.sampled_from([OPENAI, ANTHROPIC]))
def test_the_sizes_of_an_entry_match_its_message(history, profile):
    story = Story(*history, profile=profile)
    story.edit(*(Replace(Target(row.id), (Text("[cleared]"),)) for row in story.rows[::3]))
    for entry in story.projection.entries():
        sizes = (tokens_of(entry.message), len(encode_message(entry.message)), images_of(entry.message))
        assert (entry.tokens, entry.bytes, entry.images) == sizes
    view = story.view()
    assert (view.tokens, view.bytes, view.images) == tuple(
        sum(getattr(entry, size) for entry in view) for size in ("tokens", "bytes", "images")
    )


@MANY
@given(history=histories(), profile=st.sampled_from([OPENAI, ANTHROPIC]))
def test_visible_entries_never_move_when_messages_are_appended(history, profile):
    """Only a stand-in disappears when its answer comes, and an answer moves to its call within its turn."""
    story = Story(profile=profile)
    for message in history:
        before = [entry for entry in story.projection.entries() if entry.kind != "stand-in"]
        story.say(message)
        after = [entry for entry in story.projection.entries() if entry.kind != "stand-in"]
        added = [entry for entry in after if entry.position == len(story.rows)]
        assert [e.message for e in after if e not in added] == [e.message for e in before]


def test_reasoning_at_the_end_moves_to_the_front_for_anthropic():
    thought_last = Message("assistant", (Text("done"), Reasoning("because", "c2ln", format="anthropic")))
    assert [type(part) for part in alone(thought_last).message.parts] == [Reasoning, Text]
