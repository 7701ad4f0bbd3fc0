"""Results of actions: how they are recognized, described and shown as tool results."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conversation.shells import opened
from hypothesis import given
from hypothesis import strategies as st

from foveate import Conversation
from foveate.core.messages import Media, Message, Text, ToolCall, ToolResult, assistant, user
from foveate.core.results import action_result, headline, merged_headline, native_steps, read_actions, with_headline
from foveate.core.units import cut_points
from foveate.core.view import Entry
from foveate.edits import Hide, Target
from foveate.policies import Policy, fold, recap_batches
from foveate.testing import answer, call, say
from foveate.types import Lease

PIXEL = Media("image/png", "base64", "AAAA")


def step(*actions: tuple[str, dict[str, object]], **more: object) -> Message:
    """Return a step of a loop agent."""
    chosen = [{"name": name, "params": params} for name, params in actions]
    return say(json.dumps({"taskComplete": False, "nextStep": {"type": "Actions", "actions": chosen}, **more}))


def marked(name: str) -> Lease:
    return Lease(message_type="action-result", action_id=name)


def conversation(*items: tuple[str, str] | Message, policy: Any = (), model: str = "") -> Conversation:
    """Return a conversation; a pair is the result of an action: its name and its text."""
    chat = opened(policy=policy, model=model)
    for item in items:
        if isinstance(item, tuple):
            chat.append(user(item[1]), lease=marked(item[0]))
        else:
            chat.append(item)
    return chat


def entries_of(*items: tuple[str, str] | Message) -> tuple[Entry, ...]:
    return conversation(*items).prepare().entries


# ------------------------------------------------------------------------------------------------------------- results


def test_a_marked_message_of_role_user_is_a_result():
    chat = conversation(user("Go."))
    chat.append(user("found"), lease=marked("search"))
    chat.append(user("found, too"), origin="tool")
    chat.append(user("said"), lease=Lease(message_type="user-input"))
    facts = [(entry.is_result, entry.tool, entry.is_input) for entry in chat.prepare()]
    assert facts == [(False, "", True), (True, "search", False), (True, "", False), (False, "", True)]


def test_a_native_result_keeps_its_tool_without_a_lease():
    entries = entries_of(user("Go."), call("c1", "grep"), answer("c1", "found"))
    assert (entries[2].is_result, entries[2].tool, entries[2].result) == (
        True,
        "grep",
        ToolResult("c1", (Text("found"),)),
    )


@pytest.mark.parametrize(
    ("head", "state"),
    [
        (headline("search"), "ok"),
        (headline("search", "error", place=2, of=3), "error"),
        (headline("reader", what="Result of the sub-agent"), "ok"),
        (merged_headline(0, 2), "ok"),
        (merged_headline(1, 2), "ok"),
        (merged_headline(2, 2), "error"),
    ],
)
def test_a_headline_gives_the_state_and_is_no_content(head: str, state: str):
    assert action_result(user(f"{head}\nfound"), "search") == ToolResult("", (Text("found"),), state, "search")  # type: ignore[arg-type]


def test_a_headline_alone_leaves_the_media_of_a_result():
    message = Message("user", (Text(headline("look")), PIXEL))
    assert action_result(message, "look").content == (PIXEL,)


def test_a_text_without_a_headline_is_the_content():
    assert action_result(user("Result of it all: good.\nYes."), "").text == "Result of it all: good.\nYes."


@pytest.mark.parametrize(
    ("name", "text", "head"),
    [
        ("search", "Result of search (1 of 2):\nfound", "Result of search (1 of 2):"),
        ("search", "found", "Result of search:"),
        ("", "found", "Result:"),
    ],
)
def test_a_short_form_begins_with_the_headline(name: str, text: str, head: str):
    (_, entry) = entries_of(user("Go."), (name, text)) if name else _unnamed(text)
    assert with_headline(entry, "[short]") == f"{head}\n[short]"


def _unnamed(text: str) -> tuple[Entry, ...]:
    chat = conversation(user("Go."))
    chat.append(user(text), origin="tool")
    return chat.prepare().entries


# --------------------------------------------------------------------------------------------------------------- calls


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('{"nextStep": {"type": "Actions", "actions": [{"name": "a", "params": {"x": 1}}]}}', [("a", '{"x": 1}')]),
        ('I look.\n```json\n{"actions": [{"name": "a"}, {"name": "b"}]}\n```', [("a", "{}"), ("b", "{}")]),
        ('{"action": "a", "action_input": {"x": 1}}', [("a", '{"x": 1}')]),
        ('{"action": "a", "action_input": "x"}', [("a", '{"action_input": "x"}')]),
        ('{"tool": "a", "args": {}}', [("a", "{}")]),
        ('[{"function": {"name": "a", "arguments": "{\\"x\\": 1}"}}]', [("a", '{"x": 1}')]),
        (
            '{"nextStep": {"type": "Sub-Agent", "subAgent": {"name": "r", "message": "Go"}}}',
            [("r", '{"message": "Go"}')],
        ),
        ('{"name": "me", "step": {"actions": [{"name": "a", "params": null}]}}', [("a", "{}")]),
    ],
)
def test_calls_are_read_from_the_json_of_a_step(text: str, calls: list[tuple[str, str]]):
    found = read_actions(text)
    assert found is not None
    assert [(one.name, one.arguments) for one in found.calls] == calls


@pytest.mark.parametrize("text", ["", "Hello.", "{", '{"x": 1}', '{"taskComplete": true, "message": "It is done."}'])
def test_a_text_without_calls_is_no_step(text: str):
    assert read_actions(text) is None


def test_the_words_of_a_step_are_those_outside_of_its_calls():
    actions = '[{"name": "a", "params": {"x": "a b"}}]'
    text = f'First: {{"taskComplete": false, "reasoning": "I look at it.", "actions": {actions}}}'
    found = read_actions(text)
    assert found is not None
    assert found.words == "First:\nI look at it."


@given(st.text(max_size=80) | st.text(alphabet='{}[]",:nametolprsx1', max_size=40))
def test_any_text_can_be_read(text: str):
    read_actions(text)


# --------------------------------------------------------------------------------------------------------- native form


def shown(entries: tuple[Entry, ...]) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for entry in native_steps(entries):
        message = entry.source or entry.message
        result = message.result
        found.append((entry.handle, (result.call_id, result.text) if result else message.calls or message.text))
    return found


def test_a_step_and_its_results_become_calls_and_tool_results():
    two = step(("search", {"q": "x"}), ("read", {"path": "a.py"}), reasoning="Both at once.")
    entries = entries_of(
        user("Go."), two, ("search", "Result of search (1 of 2):\nhit"), ("read", "Result of read (2 of 2):\nx = 1")
    )
    assert shown(entries) == [
        ("m1", "Go."),
        ("m2", (ToolCall("m2.1", "search", '{"q": "x"}'), ToolCall("m2.2", "read", '{"path": "a.py"}'))),
        ("m3", ("m2.1", "hit")),
        ("m4", ("m2.2", "x = 1")),
    ]
    assert native_steps(entries)[1].message.text == "Both at once."
    assert native_steps(entries)[2].id == entries[2].id


@pytest.mark.parametrize(
    "items",
    [
        [step(("search", {}), ("search", {})), ("search", "both in one")],
        [step(("search", {})), ("read", "another name")],
        [step(("search", {})), ("search", "one"), ("search", "two")],
        [say("I search."), ("search", "no call")],
        [user("Look."), ("search", "no step")],
    ],
)
def test_results_whose_calls_are_unknown_stay(items: list[tuple[str, str] | Message]):
    entries = entries_of(user("Go."), *items)
    assert native_steps(entries) == entries


def test_a_removed_result_leaves_its_call_out():
    chat = conversation(user("Go."), step(("a", {}), ("b", {})), ("a", "one"), ("b", "two"), step(("c", {})))
    chat.edit(Hide(Target(chat.prepare().entries[2].id)))
    assert shown(chat.prepare().entries)[1:3] == [("m2", (ToolCall("m2.2", "b", "{}"),)), ("m4", ("m2.2", "two"))]


def test_a_name_in_another_spelling_is_the_same_action():
    entries = entries_of(user("Go."), step(("Query Database", {})), ("query_database", "rows"))
    assert [entry.source.role for entry in native_steps(entries) if entry.source] == ["user", "assistant", "tool"]


def test_native_conversations_stay_as_they_are():
    entries = entries_of(user("Go."), call("c1"), answer("c1"), say("Done."))
    assert native_steps(entries) == entries


@pytest.mark.parametrize("model", ["mistral-small", "gemma3:27b"])
def test_stand_ins_between_results_change_nothing(model: str):
    """Models whose sides alternate get one between two results, and between a result and the next input."""
    items = [user("Go."), step(("a", {}), ("b", {})), ("a", "one"), ("b", "two"), user("And?"), say("So.")]
    chat = conversation(*items, model=model)
    view = chat.prepare()
    assert [entry.position for entry in view] == [1, 2, 3, 0, 4, 0, 5, 6]
    assert [each for each in shown(view.entries) if each[0] != "m0"] == shown(conversation(*items).prepare().entries)
    assert [native.position for native in native_steps(view.entries)] == [entry.position for entry in view]
    assert [view.entries[place].position for place in cut_points(view)[:-1]] == [1, 2, 5, 6]


@pytest.mark.parametrize(
    "policy",
    [recap_batches(min_preserved_assistant_messages=1, batch_size=2), fold(protect=200, stretch=100, min_share=0)],
    ids=["recap", "fold"],
)
def test_spans_cover_results_with_a_stand_in_between(policy: Policy):
    def covered(model: str) -> list[tuple[int, int]]:
        chat = conversation(policy=(policy,), model=model)
        for number in range(6):
            if number % 3 == 0:
                chat.append(user("Go."))
            chat.prepare()
            chat.record(step(("a", {}), ("b", {}), reasoning=f"recap - step {number}"))
            for name in ("a", "b"):
                chat.append(user(f"{name} {number} " * 50), lease=marked(name))
        return [(entry.position, entry.last) for entry in chat.prepare() if entry.span is not None]

    assert covered("mistral-small") == covered("")
    assert covered("")


def test_a_view_is_not_cut_between_a_step_and_its_results():
    view = conversation(
        user("Go."), step(("a", {}), ("b", {})), ("a", "one"), ("b", "two"), say("So."), user("And?"), ("a", "late")
    ).prepare()
    assert cut_points(view) == [0, 1, 4, 5, 6, 7]


def test_a_shrunk_step_keeps_its_calls():
    """The shown form of a step may be cut: the arguments come from the appended text."""
    chat = conversation(user("Go."), step(("write", {"text": "word " * 200})), ("write", "ok"), assistant("So."))
    chat.edit(_cut(chat))
    native = native_steps(chat.prepare().entries)[1]
    assert native.source is not None
    assert len(native.source.calls[0].arguments) > 900
    assert len(native.message.calls[0].arguments) < 200


def _cut(chat: Conversation):
    from foveate.edits import Replace
    from foveate.policies.placeholders import shrink_step

    entry = chat.prepare().entries[1]
    return Replace(Target(entry.id, (0,)), (Text(shrink_step(entry.message.text, 40, "m2")),))
