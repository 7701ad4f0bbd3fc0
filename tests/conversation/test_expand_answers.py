"""Calls of `expand` that cannot be answered, and the traces of answers in journals, forks, lists and stores."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import BadInput, Conversation, StoreError, Text, ToolCall, ToolResult, assistant, open_conversation
from foveate.conversation.plugins import AdditionalContent
from foveate.core.stamps import Expansion
from foveate.edits import Hide, Replace, Restore, Span, Summarize, Target
from foveate.errors import NotExpandable, UnknownHandle
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import answer, call, calls, say, user
from foveate.testing.faults import Countdown, failing_store

from .expand_requests import LOG, SHORT, TOOLS
from .shells import opened, shown, texts, wire


def story(**options: object) -> Conversation:
    """m3, a log, is shown short; m5 is shown whole; m7 and m8 are hidden; m9 is the newest."""
    chat = opened(policy=options.pop("policy", "none"), expand=True, **options)
    ids = chat.append(
        [
            user("go"),
            call("a", "look"),
            answer("a", LOG),
            call("b", "look"),
            answer("b", SHORT),
            say("Well."),
            user("The password is swordfish."),
            say("Noted: swordfish."),
            user("on"),
        ]
    )
    chat.edit(Replace(Target(ids[2]), (Text("[short]"),)), Summarize(Span(ids[6], ids[7]), "They spoke of a password."))
    chat.prepare()
    return chat


def refused(chat: Conversation, arguments: str) -> str:
    """Return the answer to a call with these arguments, which changes nothing else."""
    before, number = shown(chat.prepare()), chat._agent.head.number
    chat.record(assistant("", ToolCall("x", "expand", arguments)))
    assert shown(chat.view)[: len(before)] == before
    assert (chat._agent.head.number, len(chat.view)) == (number, len(before) + 2)
    row = chat.history()[-1]
    assert row.message.result.call_id == "x"
    assert (row.message.result.state, row.stamp.expanded, row.stamp.origin) == (
        "error",
        Expansion("refused"),
        "derived",
    )
    return row.message.text


# ------------------------------------------------------------------------------------------------------ refused calls


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"handle": "m99"}, "Nothing here is called 'm99'. This conversation has messages m1 to m10."),
        ({"handle": "the log"}, "Nothing here is called 'the log'. A handle looks like m12, m12.1 or m3-m17."),
        ({"handle": "0" * 40}, "No message of this conversation has this id."),
        ({"handle": "m3.7"}, "Nothing here is called 'm3.7'. That message has 1 part."),
        ({"handle": "m5"}, "m5 cannot be expanded: it is shown whole."),
        ({"handle": "m5", "lines": "1"}, "m5 cannot be expanded: it is shown whole."),
        ({"handle": "m3", "lines": "301-"}, "m3 has 300 lines; 301- are not among them."),
        ({"handle": "m3", "lines": "x"}, 'Lines are told as "40-80" (from 1, both ends included)'),
        ({"handle": "m3", "items": "400-500"}, "m3 has 300 items (lines); 400-500 are not among them."),
        ({"handle": "m3", "pattern": "("}, "The pattern is no regular expression: missing )"),
        ({"handle": "m3", "pattern": "unicorn"}, "Nothing in m3 matches 'unicorn'. It has 300 lines."),
        ({"handle": "m3", "pattern": 5}, '`pattern` is a text, such as {"pattern": "words"}.'),
        ({"handle": ["m3"]}, '`handle` is a text, such as {"handle": "m12"}.'),
        ({"handle": "m3", "lines": "1", "pattern": "a"}, "Give one of `lines`, `items` and `pattern`"),
        ({"handle": "m3", "search": "disk"}, "`search` looks through everything that is not shown"),
        ({"search": "unicorn"}, "Nothing that is not shown whole holds 'unicorn'. Try fewer or other words."),
        ({"search": "well."}, None),
        ({"search": "!?"}, "Nothing that is not shown whole holds '!?'."),
        ({"search": 7}, '`search` is a text, such as {"search": "words"}.'),
        ({"messageIndex": 99}, "Nothing here is called '99'. The last view has messages 0 to 7."),
        ({"messageIndex": -1}, "Nothing here is called '-1'. The last view has messages 0 to 7."),
        ({"messageIndex": "first"}, "`messageIndex` is a whole number from 0."),
        ({}, "The call names no content. Pass a `handle` such as"),
        ({"handle": "", "lines": None, "search": ""}, "The call names no content. Pass a `handle` such as"),
        ({"reason": "curious"}, "The call names no content. Pass a `handle` such as"),
        ([1], "The arguments are no JSON object. Ask like this:"),
        ("m3", "The arguments are no JSON object. Ask like this:"),
        (None, "The arguments are no JSON object. Ask like this:"),
    ],
)
def test_invalid_expand_call_gets_advice_and_changes_nothing(arguments, told):
    if told is None:  # Its words stand in a hidden message too.
        return
    assert told in refused(story(), json.dumps(arguments))


@pytest.mark.parametrize("arguments", ["", "{", '{"handle": "\\ud800"}', "[" * 10_000, "{" * 10_000, "\ufeff{}"])
def test_arguments_that_are_not_json_are_refused(arguments):
    assert refused(story(), arguments).startswith("The arguments are no JSON object.")


def test_quoted_provider_error_is_cut():
    assert len(refused(story(), json.dumps({"handle": "m" * 100_000}))) <= 800
    assert len(refused(story(), json.dumps({"search": "m" * 100_000}))) <= 800


KEYS = st.sampled_from(
    ["handle", "lines", "items", "pattern", "search", "messageIndex", "itemRange", "reason", "id", "message_id", "x"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["m3", "m5", "m7-m8", "m1-m9", "m3.1", "m2", "1-5", "-3", "5-", "[a-z]+", "swordfish", "("]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=1),
    max_leaves=3,
)


@given(arguments=st.one_of(st.dictionaries(KEYS, VALUES, max_size=3), VALUES), where=st.sampled_from(["view", "tail"]))
def test_no_expand_arguments_raise_or_change_the_view_on_error(arguments, where):
    chat = story(expand_where=where)
    before, number = shown(chat.view), chat._agent.head.number
    chat.record(assistant("", ToolCall("x", "expand", json.dumps(arguments))))
    row = chat.history()[-1]
    assert (row.message.result.call_id, chat.open_calls()) == ("x", ())
    assert "It failed:" not in row.message.text
    if row.message.result.state == "error":
        assert (shown(chat.view)[: len(before)], chat._agent.head.number) == (before, number)
    elif chat._agent.head.number > number:
        assert row.stamp.expanded.form == "view"
    else:
        assert shown(chat.view)[: len(before)] == before
    chat.prepare()


@given(arguments=st.text(max_size=30) | st.binary(max_size=30).map(lambda raw: raw.decode("latin-1")))
def test_no_argument_text_raises(arguments):
    refused(story(), arguments)


def test_original_that_does_not_fit_is_refused_with_advice():
    chat = opened(policy="none", expand=True, window=4_000)
    rows = json.dumps([{"id": n, "name": f"customer number {n}"} for n in range(600)], indent=1)
    ids = chat.append([user("go"), call("a", "look"), answer("a", "x"), call("b", "look"), answer("b", rows)], time=1)
    chat.edit(Replace(Target(ids[4]), (Text("[short]"),)))
    chat.prepare()
    chat.record(call("x", "expand", handle="m5"))
    told = chat.history()[-1].message.text
    assert re.fullmatch(
        r"m5 cannot be expanded: it has 7,\d{3} tokens, and there is room for 3,\d{3}\. Ask for a part of it: "
        r'lines, such as "1-7\d\d" of its 2,402; items, such as "1-19\d" of its 600 elements; or a pattern\.',
        told,
    )
    chat.record(call("y", "expand", handle="m5", items="1-191"))
    assert chat.history()[-1].message.result.state == "ok"
    chat.record(call("z", "expand", handle="m5", items="1-191"))
    assert chat.history()[-1].message.text.startswith("That part of m5 has ")
    assert "Ask for less of its 600 elements." in chat.history()[-1].message.text
    chat.prepare()


def test_programs_get_refusals_as_errors():
    chat = story()
    head = chat._agent.head
    for error, asked in (
        (UnknownHandle, lambda: chat.expand("m99", lines="1")),
        (UnknownHandle, lambda: chat.expand("nothing", pattern="a")),
        (NotExpandable, lambda: chat.expand("m5", lines="1")),
        (NotExpandable, lambda: chat.expand("m5", where="tail")),
        (BadInput, lambda: chat.expand("m3", lines="400-")),
        (BadInput, lambda: chat.expand("m3", items="x")),
        (BadInput, lambda: chat.expand("m3", pattern="(")),
        (BadInput, lambda: chat.expand("m3", pattern=7)),
        (BadInput, lambda: chat.expand("m3", where="tail", reason=7)),
        (BadInput, lambda: chat.search(7)),
        (BadInput, lambda: chat.search("a", limit=0)),
    ):
        with pytest.raises(error):
            asked()
    assert (chat._agent.head, chat.search("unicorn")) == (head, [])


# ------------------------------------------------------------------------------------- what is kept from the model


def test_withheld_message_stays_withheld_when_hidden():
    chat = opened(policy="none", expand=True)
    ids = chat.append([user("go"), call("a"), answer("a", LOG), say("ok"), user("on")])
    chat.edit(Replace(Target(ids[2]), (Text("[short]"),), expandable=False))
    chat.edit(Hide(Span(ids[1], ids[3])))
    chat.prepare()
    kept = "its original is kept from the model; `original` reads it"
    for asked in ({"handle": "m3"}, {"handle": "m2-m4"}, {"handle": "m3", "lines": "1"}):
        assert kept in refused(chat, json.dumps(asked))
    assert "holds 'ERROR disk'" in refused(chat, json.dumps({"search": "ERROR disk"}))
    assert chat.original("m3") == answer("a", LOG)
    chat.edit(Restore((Target(ids[2]),)))
    chat.edit(Hide(Target(ids[2])))
    assert chat.expand("m3", lines="1").text == "001 ok, all is well\n"


def test_undone_edit_keeps_nothing_from_retention():
    chat = opened(policy="none", expand=True)
    ids = chat.append([user("go"), call("a"), answer("a", LOG), user("on")])
    receipt = chat.edit(Replace(Target(ids[2]), (Text("[short]"),), expandable=False))
    with pytest.raises(NotExpandable):
        chat.expand("m3", lines="1")
    chat.undo(receipt)
    chat.edit(Hide(Target(ids[2])))
    assert chat.expand("m3", lines="1").first == 1


# ------------------------------------------------------------------------------------------------------------- naming


@pytest.mark.parametrize(
    "asked",
    [
        {"handle": ' expand("m3") '},
        {"handle": "[m3]"},
        {"handle": "'m3'"},
        {"message_id": "ID"},
        {"messageIndex": 2},
        {"messageIndex": "2"},
        {"message_index": 2.0, "reason": "the user asks"},
        {"handle": "m3", "lines": "", "items": None, "pattern": "", "search": ""},
    ],
)
@pytest.mark.parametrize("name", ["expand", "expand-message", "ExpandMessage"])
def test_a_message_is_named_by_handle_id_or_place_in_the_last_view(name, asked):
    chat = story(expand_where="tail")
    said = {key: chat.history()[2].id if value == "ID" else value for key, value in asked.items()}
    chat.record(assistant("", ToolCall("x", name, json.dumps(said))))
    assert chat.history()[-1].message == answer("x", LOG)


def test_reason_given_by_a_model_is_stored_in_the_journal():
    chat = story(expand_where="view")
    asked = {"messageIndex": 2, "reason": "The user asks about line 47. " * 20}
    chat.record(assistant("", ToolCall("x", "ExpandMessage", json.dumps(asked))))
    (edit,) = chat.journal.receipts()[-1].edits
    assert edit.reason == asked["reason"][:200]
    assert chat.journal.events()[-2].reason == edit.reason


def test_item_range_accepts_other_notations():
    chat = story()
    chat.record(assistant("", ToolCall("x", "ExpandMessage", '{"messageIndex": 2, "itemRange": [40, 41]}')))
    assert chat.history()[-1].message.text == "[m3: lines 40-41 of 300]\n040 ok, all is well\n041 ok, all is well"


# ------------------------------------------------------------------------------------------------------- what is left


def test_expansion_emits_an_event_and_is_counted():
    heard: list[tuple[str, str, int]] = []
    chat = story(expand_where="tail", on_event=lambda event: heard.append((event.kind, event.message, event.position)))
    original = chat.history()[2].id
    heard.clear()
    chat.record(call("x", "expand", handle="m3"))
    chat.record(call("y", "expand", handle="m99"))
    ids = [row.id for row in chat.history()]
    expected = [
        ("message-added", ids[9], 10),
        ("message-added", ids[10], 11),
        ("message-expanded", original, 0),
        ("message-added", ids[11], 12),
        ("message-added", ids[12], 13),
    ]
    assert heard == expected
    told = [event for event in chat.journal.events() if event.kind == "message-expanded"]
    tokens = chat.history()[10].stamp.tokens
    assert [(event.reason, event.policy, event.tokens_saved) for event in told] == [
        ("all of m3, in m11", "expand", -tokens)
    ]
    assert chat.totals().expansions == 1


def test_shrunk_copy_names_the_original_and_is_not_a_search_hit():
    chat = story(policy="keep-last-1", expand_where="tail")
    chat.record(call("x", "expand", handle="m3"))
    chat.prepare()
    chat.record(call("y", "expand", handle="m3", lines="97"))
    chat.prepare()
    chat.record(call("z", "look"))
    chat.append(answer("z", SHORT))
    results = [entry.message.text for entry in chat.prepare() if entry.is_result]
    assert [re.findall(r'expand\("(\w+)"\)', text) for text in results] == [[], ["m5"], ["m3"], ["m13"], []]
    assert [hit.handle for hit in chat.search("disk full")] == ["m3"]
    assert {hit.handle for hit in chat.search("swordfish")} == {"m7", "m8"}


@pytest.mark.parametrize("policy", ["keep-last-1", "expire", "prune", "balanced", "frugal"])
def test_expanded_message_is_whole_at_the_coming_call(policy):
    chat = story(policy=policy, expand_where="tail")
    asked = [call(f"x{n}", "expand", handle="m3", lines=f"{n + 1}-{n + 40}") for n in range(4)]
    chat.record(calls(*asked))
    told = [row.message.text for row in chat.history()[10:]]
    assert all(text.startswith("[m3: lines ") for text in told)
    assert texts(chat.prepare())[-4:] == told


def test_second_expansion_names_the_visible_copy():
    chat = story(expand_where="tail")
    chat.record(call("x", "expand", handle="m3"))
    chat.prepare()
    for asked in ({"handle": "m3"}, {"handle": "m3", "lines": "1"}):
        told = refused(chat, json.dumps(asked))
        assert told == "m3 cannot be expanded: all of it stands in m11, where it was asked for."
    assert chat.expand("m3", lines="97").text == "097 ERROR disk full\n"


@pytest.mark.parametrize("where", ["view", "tail"])
def test_expansion_survives_fork_undo_and_resume(where, tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    chat = story(expand_where=where, store=store)
    before = shown(chat.view)
    chat.record(call("x", "expand", handle="m3"))
    chat.record(call("y", "expand", handle="m7-m8", lines="1-2"))
    view = shown(chat.prepare())
    assert LOG in texts(chat.view)
    assert shown(chat.fork("other").prepare()) == view
    assert wire(chat, opened(store=store, policy="none", expand=True).prepare()) == wire(chat, chat.view)
    assert chat.journal.verify() == []
    if where == "view":
        chat.undo(chat.journal.receipts()[-1])
        assert shown(chat.view)[: len(before)] == before
        assert chat.view.entries[-3].message.text == "m3 is shown in full again above."
    other = chat.fork("earlier", at=9)
    assert shown(other.view) == before
    other.record(call("x", "expand", handle="m3", lines="1"))
    assert other.history()[-1].message.text == "[m3: lines 1 of 300]\n001 ok, all is well\n"
    store.close()


# -------------------------------------------------------------------------------------------------- lists and failures


@pytest.mark.parametrize("is_recorded", [True, False])
@pytest.mark.parametrize("is_reopened", [True, False])
@pytest.mark.parametrize("where", ["view", "tail"])
def test_host_list_needs_no_expand_results(where, is_recorded, is_reopened):
    store = MemoryStore()

    def open_it() -> Conversation:
        return opened("list", expand=True, expand_where=where, policy="keep-last-1", store=store)

    chat = open_it()
    mine: list[dict[str, object]] = [{"role": "user", "content": "go"}]

    def turn(reply: object, *results: tuple[str, str]) -> None:
        nonlocal chat
        chat = open_it() if is_reopened else chat
        prompt = chat.prompt(messages=mine, tools=TOOLS)
        assert prompt["messages"][-1]["content"]
        (wired,) = chat.format.render([reply])
        if is_recorded:
            chat.record(reply)
        mine.append(wired)
        mine.extend({"role": "tool", "tool_call_id": one, "content": text} for one, text in results)

    turn(call("a", "look"), ("a", LOG))
    turn(call("b", "look"), ("b", SHORT))
    turn(call("x", "expand", handle="m3", lines="97"))
    turn(calls(call("y", "expand", handle="m3"), call("c", "look")), ("c", SHORT))
    turn(say("done"))
    mine.append({"role": "user", "content": "thanks"})
    chat.prompt(messages=mine, tools=TOOLS)
    assert len(chat.history()) == len(mine) + 2
    assert store.names("") == ["list"]
    told = {row.message.result.call_id: row.message.text for row in chat.history() if row.message.result}
    assert told["x"] == "[m3: lines 97 of 300]\n097 ERROR disk full\n"
    assert told["y"] == (LOG if where == "tail" else "m3 is shown in full again above.")


def test_repeated_append_after_a_reply_skips_the_answers():
    chat = story()
    reply = chat.record(calls(call("x", "expand", handle="m3"), call("y", "expand", handle="m7"), call("z", "look")))
    first = chat.append(answer("z", SHORT), after=reply)
    assert chat.append(answer("z", SHORT), after=reply) == first
    assert len(chat) == 13


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("where", ["view", "tail"])
def test_any_failure_keeps_one_reply_and_answers_it_next(where, is_after):
    for n in range(1, 40):
        countdown = Countdown(after=is_after)
        chat = story(expand_where=where, store=failing_store(MemoryStore(), countdown))
        countdown.start(n)
        with suppress(StoreError):
            chat.record(call("x", "expand", handle="m3"))
        is_last = not countdown.is_used_up
        countdown.start(0)
        chat.refresh()
        if len(chat) > 9:  # Else not even the reply was taken.
            view = chat.prepare()
            assert LOG in texts(view)
            assert [row.message.role for row in chat.history()[9:]] == ["assistant", "tool"]
            assert chat.journal.verify() == []
        if is_last:
            return
    raise AssertionError("It took more operations than expected.")


def test_store_without_search_refuses_searches_only(tmp_path):
    chat = story(store=f"sqlite:///{tmp_path}/a.db?search=off")
    assert refused(chat, '{"search": "swordfish"}').startswith("Words cannot be searched for now:")
    with pytest.raises(StoreError):
        chat.search("swordfish")
    chat.record(call("y", "expand", handle="m3", lines="97"))
    assert chat.history()[-1].message.result.state == "ok"
    chat.close()


def test_plugins_are_asked_after_an_expansion():
    class Clock:
        name = "clock"

        def __call__(self, content: tuple[object, ...]) -> list[AdditionalContent]:
            return [AdditionalContent("It is noon.")] if isinstance(content[0], ToolResult) else []

    chat = story(plugins=[Clock()])
    chat.record(call("x", "expand", handle="m3", lines="1"))
    assert "It is noon." in texts(chat.prepare())[-1]
    chat.record(call("y", "expand", handle="m99"))
    assert "It is noon." not in texts(chat.prepare())[-1]


def test_appended_reply_is_answered_at_the_next_prompt():
    chat = story()
    chat.append(call("x", "expand", handle="m3", lines="97"))
    assert [one.call_id for one in chat.open_calls()] == ["x"]
    chat.prompt()
    assert chat.open_calls() == ()
    assert chat.history()[-1].message.text == "[m3: lines 97 of 300]\n097 ERROR disk full\n"


# ------------------------------------------------------------------------------------------------------------ searches


def test_search_finds_hidden_and_shrunk_messages_best_first():
    chat = story()
    hits = chat.search("swordfish password")
    assert [(hit.handle, hit.turn, hit.who, hit.line, hit.is_hidden) for hit in hits] == [
        ("m7", 3, "user", 1, True),
        ("m8", 4, "assistant", 1, True),
    ]
    assert hits[0].snippet == "The password is swordfish."
    (hit,) = chat.search("194 ERROR", limit=1)
    assert (hit.handle, hit.line, hit.is_hidden) == ("m3", 194, False)
    assert "194 ERROR disk full 195 ok" in hit.snippet
    assert chat.search("nothing to see here") == []
    assert chat.search("") == chat.search("?!") == []
    chat.expand("m7-m8")
    assert chat.search("swordfish") == []


def test_search_skips_the_call_that_searched():
    chat = story()
    chat.record(call("x", "expand", search="zebra"))
    chat.record(calls(call("y", "look", at="zebra"), call("z", "expand", search="zebra")))
    chat.append(answer("y", SHORT))
    ids = [row.id for row in chat.history()]
    chat.edit(Hide(Span(ids[9], ids[13])))
    assert [hit.handle for hit in chat.search("zebra")] == ["m12"]


def test_search_continues_behind_visible_messages():
    """Two hundred visible messages match the words as well as the hidden one, or better."""
    chat = opened(policy="none")
    ids = chat.append([user("an owl, far away, between many other words that are said"), *[user("owl")] * 200])
    chat.edit(Hide(Target(ids[0])))
    assert [hit.handle for hit in chat.search("owl")] == ["m1"]


def test_many_searches_read_the_journal_once(monkeypatch):
    chat = story()
    store = chat._agent.store
    asked: list[int] = []
    records = store.records
    monkeypatch.setattr(store, "records", lambda head, after=0: asked.append(after) or records(head, after))
    for _ in range(3):
        chat.search("swordfish")
    assert asked == [0, 2, 2]


def test_opening_by_hand_needs_no_setting(tmp_path):
    chat = open_conversation("plain", window=8_000)
    chat.append("hi")
    assert chat.open_calls() == ()


# ------------------------------------------------------------------------------------------------- what can never fit


def too_large(policy: str) -> Conversation:
    chat = open_conversation("large", window=4_000, policy=policy, expand=True)
    ids = chat.append(
        [user("go"), call("a", "look"), answer("a", "one line of many\n" * 2_000), say("I see."), user("On.")]
    )
    chat.edit(Replace(Target(ids[2]), (Text("short"),)))
    return chat


def test_oversized_original_is_not_expanded_by_a_program():
    """The floor would hide everything but the newest request, and finally the original itself."""
    chat = too_large("none")
    chat.prompt()
    before = chat._agent.head, texts(chat.view)
    with pytest.raises(NotExpandable, match=r"^m3 cannot be expanded: it has 8,\d+ tokens, and there is room for 3,"):
        chat.expand("m3", reason="to see it all")
    assert (chat._agent.head, texts(chat.view)) == before
    assert str(chat.expand("m3", lines="1-2")) == "[m3: lines 1-2 of 2,000]\none line of many\none line of many\n"


def test_without_automatic_policies_anything_is_expanded():
    chat = too_large("off")
    chat.expand("m3")
    assert chat.prepare().entries[2].message.text == "one line of many\n" * 2_000
