"""Lists that the caller keeps: what left, what changed, what is new, and where they part from the history."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from sweeps import STEP, by_thirds

import foveate
from foveate import (
    BadInput,
    Conversation,
    Message,
    Policy,
    StoreError,
    Text,
    ToolCall,
    assistant,
    open_store,
    plugin,
    tool_result,
    user,
)
from foveate.conversation import caller_list, list_items
from foveate.core import wire
from foveate.core.message_keys import message_key
from foveate.core.messages import Opaque, Reasoning
from foveate.core.view import View
from foveate.core.wire import decode_message
from foveate.edits import Span, Summarize
from foveate.errors import BadMessage, NotExpandable
from foveate.policies import checkpoint, expire_results, fold, prune_tool_outputs
from foveate.stores.memory import MemoryStore
from foveate.testing import answer, call, calls, say
from foveate.testing.faults import Countdown, failing_store
from foveate.types import Followed, Lease, ListItem

from .shells import opened, refusals, shown, texts

ANTHROPIC = pytest.mark.parametrize("provider", ["openai", "anthropic"])


def exchange(n: int, *, size: int = 3) -> list[Message]:
    """Return a call with its result, and an answer."""
    return [call(f"c{n}", "look", at=n), answer(f"c{n}", f"Line of {n}.\n" * size), say(f"Answer {n}.")]


def conversation_of(count: int) -> list[Message]:
    """Return a question and exchanges; each is a call, a result and an answer."""
    return [user("Go."), *(message for n in range(count) for message in exchange(n))]


def texts_of(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


def items_shown(chat: Conversation) -> list[int]:
    """Return the indices of the caller's items that the view shows unchanged."""
    return [index for items, _ in chat.view.by_item() for index in items]


# ------------------------------------------------------------------------------------------------------------ appending


def test_follow_appends_without_planning():
    chat = opened(policy="keep-last-1")
    mine = conversation_of(3)
    followed = chat.follow(mine)
    assert [row.message for row in chat.history()] == mine
    assert followed.added == tuple(row.id for row in chat.history())
    assert chat.journal.records() == []


def test_following_the_same_list_again_changes_nothing():
    store = MemoryStore()
    chat = opened(store=store)
    mine = conversation_of(2)
    chat.follow(mine)
    head = chat._agent.head
    assert chat.follow([*mine]) == Followed()
    assert opened(store=store).follow(mine) == Followed()
    assert chat._agent.head == head


def test_recorded_reply_is_the_one_in_the_list():
    chat = opened(provider="anthropic")
    mine: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    chat.prompt(messages=mine)
    looks = ToolCall("c1", "look", '{"a":1,"b":[2]}')
    chat.record(assistant("I look.", looks, reasoning=Reasoning("Hm.", "sig", format="anthropic")))
    mine.append(
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look.", "cache_control": {"type": "ephemeral"}},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"b": [2], "a": 1}, "caller": "x"},
            ],
        }
    )
    assert chat.follow(mine) == Followed()


@pytest.mark.parametrize("provider", ["openai", "anthropic", "openai_responses"])
@pytest.mark.parametrize("stores", [True, False], ids=["same process", "next process"])
def test_replies_that_the_list_joins_are_the_recorded_ones(provider: str, stores: bool):
    """Mastra joins a reply that only has calls to the one before it, and puts the results of all behind it."""
    store = MemoryStore()
    chat = opened(provider=provider, store=store)
    mine, called, results = [user("Go.")], list[ToolCall](), list[Message]()
    for n in range(5):
        if not stores:
            chat = opened(provider=provider, store=store)
        assert refusals(chat, chat.prepare(messages=mine)) == []
        reply = calls(call(f"c{n}", "look", at=n), call(f"d{n}", "look", at=-n), text="" if n else "I look.")
        chat.record(reply)
        called += reply.calls
        results += [answer(f"c{n}", f"Line of {n}.\n"), answer(f"d{n}", "Nothing.")]
        mine = [user("Go."), assistant("I look.", *called), *results]
    followed = chat.follow([*mine, user("And now?")])
    assert followed == Followed(added=followed.added)
    assert len(chat) == 1 + 5 * 3 + 1
    assert [entry.message.role for entry in chat.view][:7] == ["user", *["assistant", "tool", "tool"] * 2]


def test_results_behind_several_replies_stay_there_if_recorded_so():
    store = MemoryStore()
    chat = opened(store=store)
    mine = [user("Go."), call("c1", "look"), call("c2", "look"), answer("c1", "One."), answer("c2", "Two.")]
    chat.append(mine)
    assert chat.follow([*mine]) == Followed()
    assert opened(store=store).follow([*mine]) == Followed()


FOUND = '{"type":"found","content":[{"url":"u"}]}'


def block(body: str) -> Message:
    return Message("assistant", (Opaque("anthropic", "found", body),))


@pytest.mark.parametrize("waits", [False, True])
def test_reply_with_the_name_of_an_agent_is_the_recorded_one(waits: bool):
    """Frameworks add a name to each reply, at once or when the run has ended. Each reply was appended twice."""
    chat = foveate.open_conversation("named", window=16_000)
    mine: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for number in range(3):
        chat.prompt(messages=mine)
        reply = {"role": "assistant", "content": f"Answer {number}."}
        chat.record(reply)
        mine += [reply if waits else {**reply, "name": "helper"}, {"role": "user", "content": "And?"}]
    recorded = [row.id for row in chat.history()]
    named = [{**item, "name": "helper"} if item["role"] == "assistant" else item for item in mine]
    shown = chat.prompt(messages=named)["messages"]
    assert [row.id for row in chat.history()][: len(recorded)] == recorded
    assert len(chat) == len(named) == len(shown)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (user("a"), Message("user", (Text("a"), Text(""))), True),
        (Message("user", (Text("a"), Text("b"))), user("ab"), True),
        (assistant("", ToolCall("c", "f", '{"a": 1}')), assistant("", ToolCall("c", "f", '{"a":1}')), True),
        (assistant("", ToolCall("c", "f", '{"a":1,"b":null}')), assistant("", ToolCall("c", "f", '{"a":1}')), True),
        (block('{"type":"found","content":[{"url":"u","age":null}],"caller":null}'), block(FOUND), True),
        (block('{"type":"found","content":[{"url":"v"}]}'), block(FOUND), False),
        (assistant("", ToolCall("c", "f", '{"id": 1}')), assistant("", ToolCall("c", "f", '{"id": 2}')), False),
        (assistant("x", reasoning=Reasoning("y")), assistant("x"), True),
        (tool_result("c", "x", state="error"), tool_result("c", "x", name="f"), True),
        (tool_result("c", "x"), tool_result("d", "x"), False),
        (user("a"), assistant("a"), False),
        (user("a"), user("a "), False),
        (Message("assistant", (Text("a"),), "helper"), assistant("a"), True),
        (Message("user", (Text("a"),), "ann"), user("a"), False),
    ],
)
def test_messages_that_say_the_same_have_one_key(one: Message, other: Message, is_same: bool):
    assert (message_key(one) == message_key(other)) is is_same


def test_dumped_blocks_of_a_reply_are_those_that_were_recorded():
    """The SDK dumps its fields with nulls or without. Each reply with a web search was appended twice."""
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "kites"}}
    page = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "E", "page_age": None}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [page]}
    bare = {"content": [{key: page[key] for key in page if key != "page_age"}]}
    for dumped in ({"caller": None}, bare, {"caller": None, **bare}):
        chat = foveate.open_conversation("dumped", format="anthropic", window=16_000)
        ask = {"role": "user", "content": "Search."}
        chat.prompt(messages=[ask])
        chat.record({"role": "assistant", "content": [use, found], "stop_reason": "end_turn", "usage": {}})
        recorded = chat.tip
        reply = {"role": "assistant", "content": [use, {**found, **dumped}]}
        chat.prompt(messages=[ask, reply, {"role": "user", "content": "And?"}])
        assert len(chat) == 3
        assert chat.history()[1].id == recorded


def test_objects_of_another_class_are_read_once():
    class Item:
        def __init__(self, message: Message) -> None:
            self.message = message

    read: list[Item] = []

    def message_of(item: Item) -> Message:
        read.append(item)
        return item.message

    chat = opened()
    mine = [Item(message) for message in conversation_of(20)]
    chat.follow(mine, read=message_of)
    assert len(read) == len(mine)
    mine.append(Item(user("More.")))
    chat.follow(mine, read=message_of)
    assert len(read) == len(mine) + 1  # And the newest old one, which a program may still change.
    assert [mine[i].message for i in items_shown(chat)] == [row.message for row in chat.history()]


def test_list_item_gives_a_message_its_facts():
    chat = opened(policy="keep-last-1")
    observation = ListItem(user("Observation: " + "red " * 90), origin="tool", lease=Lease(expiration_turns=3))
    chat.follow([user("Go."), say("I look."), observation, ListItem(user("And?"), key="k4", metadata={"ticket": 7})])
    rows = chat.history()
    assert [row.stamp.origin for row in rows] == ["user", "assistant", "tool", "user"]
    assert rows[2].stamp.lease == Lease(expiration_turns=3)
    assert (rows[3].metadata, rows[3].stamp.key) == ({"ticket": 7}, "k4")


def test_known_key_with_other_content_is_an_edit():
    store = MemoryStore()
    chat = opened(store=store)
    chat.follow([ListItem(user(text), key=text[:1]) for text in ("a", "b", "c", "d")])
    chat.follow([ListItem(user(text), key=text[:1]) for text in ("a", "c, changed", "d")])
    assert texts(chat.view) == ["a", "c, changed", "d"]
    assert [entry.handle for entry in chat.view] == ["m1", "m3", "m4"]
    assert opened(store=store).follow([ListItem(user(text), key=text[:1]) for text in ("a", "c, changed", "d")]) == (
        Followed()
    )


# ------------------------------------------------------------------------------------------------------------- removing


def test_removed_exchange_is_hidden_and_the_rest_keeps_its_state():
    store = MemoryStore()
    chat = opened(policy="keep-last-1", store=store)
    mine = conversation_of(4)
    chat.prepare(messages=mine)
    chat.pin("m9")
    before = {entry.handle: entry.message for entry in chat.view}
    followed = chat.follow([*mine[:1], *mine[4:]])
    assert (followed.hidden, followed.former) == (3, "")
    after = {entry.handle: entry.message for entry in chat.view}
    assert after == {handle: message for handle, message in before.items() if handle not in ("m2", "m3", "m4")}
    assert [entry.handle for entry in chat.view if entry.pins] == ["m9"]
    assert store.names("") == ["c"]


def test_removed_message_is_explained_and_comes_back():
    chat = opened()
    mine = conversation_of(2)
    chat.follow(mine)
    chat.follow([*mine[:1], *mine[4:]])
    assert chat.explain("m3").splitlines()[0] == "m3 is not shown."
    assert "caller hid it" in chat.explain("m3")
    assert chat.follow(mine) == Followed(restored=3)
    assert texts(chat.view) == [message.text for message in mine]


def test_undo_shows_a_removed_message_until_the_list_changes():
    chat = opened()
    mine = conversation_of(2)
    chat.follow(mine)
    shorter = [*mine[:1], *mine[4:]]
    chat.follow(shorter)
    chat.undo()
    assert len(chat.view) == len(mine)
    assert chat.follow([*shorter, user("Next.")]).hidden == 0
    assert len(chat.view) == len(mine) + 1


def test_removed_message_is_kept_from_the_model():
    chat = opened(expand=True)
    mine = [user("Go."), say("The word is nightingale."), user("Thanks."), say("Fine.")]
    chat.follow(mine)
    chat.follow([mine[0], *mine[2:]])
    assert chat.search("nightingale") == []
    with pytest.raises(NotExpandable, match="kept from the model"):
        chat.expand("m2")
    assert chat.original("m2") == mine[1]


def test_removed_message_takes_its_expansion_along():
    chat = opened(policy="keep-last-1", expand=True, expand_where="tail")
    mine = [user("Go."), call("c0", "look"), answer("c0", "nightingale\n" * 99), call("c1", "look"), answer("c1", "x")]
    chat.prepare(messages=mine)
    chat.record(call("e1", "expand", handle="m3"))
    assert "nightingale" in texts(chat.prepare(messages=mine))[-1]
    view = chat.prepare(messages=[mine[0], *mine[3:], user("Go on.")])
    assert not [text for text in texts(view) if "nightingale" in text]
    assert refusals(chat, view) == []


def test_removed_question_takes_its_expansions_along():
    """The answer failed behind them, and the user asks something else."""
    chat = opened(policy="keep-last-1", expand=True, expand_where="tail")
    mine = [user("Go."), call("c0", "look"), answer("c0", "nightingale\n" * 99), call("c1", "look"), answer("c1", "x")]
    mine += [say("Seen."), user("Which bird?")]
    chat.prepare(messages=mine)
    chat.record(calls(call("e1", "expand", handle="m3"), text="I look for the bird."))
    assert texts(chat.prepare(messages=mine))[-3:-1] == ["Which bird?", "I look for the bird."]  # Asked again.
    view = chat.prepare(messages=[*mine[:-1], user("How late is it?")])
    assert texts(view)[-2:] == ["Seen.", "How late is it?"]
    assert refusals(chat, view) == []


def test_recorded_reply_takes_the_callers_id():
    chat = opened()
    chat.prepare(messages=[ListItem(user("Go."), key="a")])
    chat.record(say("One."))
    chat.follow([ListItem(user("Go."), key="a"), ListItem(say("One."), key="b"), ListItem(user("x"), key="c")])
    chat.follow([ListItem(say("Two."), key="b"), ListItem(user("x"), key="c")])
    assert [(entry.handle, entry.message.text) for entry in chat.view if entry.kind == "message"] == [
        ("m2", "Two."),
        ("m3", "x"),
    ]


def test_pinned_message_that_the_caller_removes_is_hidden():
    chat = opened()
    mine = conversation_of(2)
    chat.follow(mine)
    chat.pin("m3")
    chat.follow([*mine[:1], *mine[4:]])
    assert "m3" not in [entry.handle for entry in chat.view]
    chat.follow(mine)
    assert [entry.handle for entry in chat.view if entry.pins] == ["m3"]


@ANTHROPIC
def test_sliding_window_is_one_hidden_range(provider: str):
    store = MemoryStore()
    chat = opened(provider=provider, store=store)
    mine: list[Message] = [user("Question 0.")]
    for n in range(30):
        mine += [say(f"Answer {n}."), user(f"Question {n + 1}.")]
        chat.prompt(messages=chat.format.render(mine[-10:]))
    assert store.names("") == ["c"]
    assert [row.message for row in chat.history()] == mine
    assert texts(chat.view)[-10:] == [message.text for message in mine[-10:]]
    newest = chat.journal.records()[-1].edits
    assert [chat.original(edit.target.first) for edit in newest] == [mine[0]]
    assert refusals(chat) == []


def test_ignore_removals_keeps_what_the_list_lacks():
    chat = opened()
    mine = conversation_of(4)
    for end in range(1, len(mine) + 1):
        chat.follow(mine[max(0, end - 4) : end], ignore_removals=True)
    assert texts(chat.view) == [message.text for message in mine]
    assert chat.journal.records() == []


def test_popped_frames_leave_no_forks():
    store = MemoryStore()
    chat = opened(store=store)
    frames = [[user("Plan the trip."), say("First the train.")]]
    for n in range(30):
        frames.append([user(f"Find hotel {n}."), say(f"The mill {n}.")])
        chat.prepare(messages=[message for frame in frames for message in frame])
        frames.pop()
        frames[0].append(user(f"Found {n}."))
        view = chat.prepare(messages=frames[0])
        assert texts(view) == [message.text for message in frames[0]]
    assert store.names("") == ["c"]


# -------------------------------------------------------------------------------------------------------------- editing


@ANTHROPIC
def test_edited_result_is_replaced(provider: str):
    chat = opened(provider=provider)
    mine = conversation_of(2)
    chat.prompt(messages=chat.format.render(mine))
    mine[2] = answer("c0", "[cleared]")
    chat.prompt(messages=chat.format.render(mine))
    assert texts(chat.view) == [message.text for message in mine]
    assert items_shown(chat) == list(range(len(chat.format.render(mine))))
    assert refusals(chat) == []
    assert "caller replaced it" in chat.explain("m3")
    with pytest.raises(NotExpandable):
        chat.expand("m3")


def test_edit_of_a_call_replaces_its_arguments():
    chat = opened()
    mine = [user("Go."), assistant("I look.", ToolCall("c0", "look", '{"at":0}')), answer("c0", "x"), say("Done.")]
    chat.follow(mine)
    mine[1] = assistant("I looked.", ToolCall("c0", "look", '{"at":1}'))
    chat.follow(mine)
    assert chat.view.entries[1].message == mine[1]


def test_edit_of_the_last_input_in_a_tool_loop_keeps_the_loop():
    chat = opened()
    mine = [user("Go."), *exchange(0)[:2]]
    chat.prepare(messages=mine)
    mine[0] = user("Go. <reminder>It is noon.</reminder>")
    view = chat.prepare(messages=mine)
    assert (texts(view), refusals(chat, view)) == ([message.text for message in mine], [])
    assert chat._agent.store.names("") == ["c"]


def test_clock_in_the_system_prompt_makes_no_forks():
    store = MemoryStore()
    chat = opened(store=store)
    mine: list[Message] = [foveate.system("It is 0 o'clock."), user("Question 0.")]
    for n in range(20):
        mine[0] = foveate.system(f"It is {n} o'clock.")
        view = chat.prepare(messages=mine)
        assert texts(view) == [message.text for message in mine]
        mine += [say(f"Answer {n}."), user(f"Question {n + 1}.")]
    assert store.names("") == ["c"]
    assert len(view.entries[0].edits) == 1  # The former ones are cancelled.


def test_summary_of_the_caller_takes_the_place_of_the_messages():
    chat = opened()
    mine = conversation_of(4)
    chat.follow(mine)
    chat.pin("m12")
    shorter = [user("So far: three things were looked at."), *mine[10:]]
    followed = chat.follow(shorter)
    assert (followed.edited, followed.former) == (1, "")
    assert texts(chat.view) == [message.text for message in shorter]
    assert [entry.handle for entry in chat.view if entry.pins] == ["m12"]


# -------------------------------------------------------------------------------------------------------------- forking


def test_list_that_ends_earlier_forks_at_the_next_prompt():
    store, events = MemoryStore(), []
    chat = opened(store=store, on_event=events.append)
    mine = conversation_of(2)
    chat.follow(mine)
    assert chat.follow(mine[:4]) == Followed()
    assert store.names("") == ["c"]
    view = chat.prepare()
    assert texts(view) == [message.text for message in mine[:4]]
    assert store.names("") == ["c", "c~1"]
    (fork,) = [event for event in events if event.kind == "list-departed"]
    assert fork.reason == "The caller's list ends at m4; the former course is kept as c~1."
    assert fork.position == 4


def test_message_of_the_user_follows_a_list_that_ends_earlier():
    store = MemoryStore()
    chat = opened(store=store)
    mine = conversation_of(2)
    chat.follow(mine)
    chat.follow(mine[:4])
    chat.append("And now?")
    assert texts(chat.prepare()) == [*[message.text for message in mine[:4]], "And now?"]
    assert texts(opened("c~1", store=store).view) == [message.text for message in mine]


@pytest.mark.parametrize("wrong", [{"role": "user", "content": "half \ud800"}, Message("tool", (Text("x"),))])
def test_message_that_is_refused_leaves_a_list_that_ends_earlier(wrong: object):
    store = MemoryStore()
    chat = opened(store=store)
    mine = conversation_of(2)
    chat.follow(mine)
    chat.follow(mine[:4])
    with pytest.raises(BadMessage):
        chat.append([user("And now?"), wrong])
    assert (len(chat), store.names("")) == (len(mine), ["c"])
    chat.append("And now?")
    assert texts(chat.prepare()) == [*[message.text for message in mine[:4]], "And now?"]


def test_result_goes_on_behind_a_list_that_ends_earlier():
    """It answers a call that the list does not have yet."""
    store = MemoryStore()
    chat = opened(store=store)
    chat.follow([user("Go.")])
    chat.record(call("c1", "look"))
    chat.follow([user("Go.")])
    chat.append(answer("c1", "seen"))
    assert texts(chat.prepare()) == ["Go.", "", "seen"]
    assert store.names("") == ["c"]


@pytest.mark.parametrize("is_inserted", [True, False])
def test_other_order_forks_with_a_reason(is_inserted: bool):
    store = MemoryStore()
    chat = opened(store=store)
    mine = conversation_of(2)
    chat.follow(mine)
    other = [*mine[:4], user("Wait."), *mine[4:]] if is_inserted else [*mine[:1], *mine[4:7], *mine[1:4]]
    followed = chat.follow(other)
    assert texts(chat.view) == [message.text for message in other]
    if is_inserted:
        assert (followed.former, store.names("")) == ("c~1", ["c", "c~1"])
        assert followed.reason.startswith("The caller's list has new messages, or another order, after m4;")
    assert texts(opened("c~1", store=store).view if is_inserted else chat.view)[0] == "Go."


def test_another_list_under_one_name_keeps_the_former_course():
    store = MemoryStore()
    chat = opened(store=store)
    chat.follow([user("Make a title.")])
    followed = chat.follow([user("Fix the login."), say("Done.")])
    assert followed.former == "c~1"
    assert texts(opened("c~1", store=store).view) == ["Make a title."]


def test_former_courses_have_a_limit_and_further_ones_are_hidden(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(caller_list, "_FORMER_MAX", 3)
    store, events = MemoryStore(), []
    chat = opened(store=store, on_event=events.append)
    for n in range(6):
        mine = [user(f"Begin {n}."), say(f"Answer {n}.")]
        view = chat.prepare(messages=mine)
        assert texts(view) == [message.text for message in mine]
        assert texts(chat.prepare(messages=mine[:1])) == [f"Begin {n}."]
    assert store.names("") == ["c", "c~1", "c~2", "c~3"]
    reasons = [event.reason for event in events if event.kind == "list-departed"]
    assert len(reasons) == 11
    assert reasons[-1].endswith("the former course is hidden, since 3 are kept already.")


def test_an_edited_message_that_comes_back_is_still_edited():
    store = MemoryStore()
    chat = opened(store=store)
    mine = [user("Go."), user("My key is hunter2."), say("Thanks."), user("Next.")]
    chat.follow(mine)
    mine[1] = user("My key is [removed].")
    chat.follow(mine)
    chat.follow([mine[0], *mine[2:]])
    assert chat.follow(mine) == Followed(restored=1)
    for each in (chat, opened(store=store)):
        assert texts(each.view) == texts_of(mine)
        assert each.follow(mine) == Followed()


def summarized(chat: Conversation, first: int, last: int, text: str) -> None:
    ids = [row.id for row in chat.history(first, last)]
    chat.edit(Summarize(Span(ids[0], ids[-1]), text))


def test_summary_of_messages_that_the_list_went_back_before_is_cancelled():
    """Otherwise the model reads of steps that a rewind, or a question asked again, undid."""
    chat = opened()
    mine = conversation_of(4)
    chat.follow(mine)
    summarized(chat, 2, 4, "Looked once.")
    summarized(chat, 5, 10, "Looked twice more.")
    chat.follow([*mine[:7], user("Stop.")])
    assert texts(chat.prepare()) == ["Go.", "Looked once.", *texts_of(mine[4:7]), "Stop."]


def told(chat: Conversation, mine: list[Message]) -> Conversation:
    """Let the list grow by one message at a time, each reply after a prompt."""
    for count, message in enumerate(mine):
        if message.role == "assistant":
            chat.prompt(messages=mine[:count])
            chat.record(message)
    return chat


@pytest.mark.parametrize("policy", ["keep-last-1", "recap", "prune", "fold"])
def test_going_back_shows_what_later_messages_made_old(policy: str):
    """Otherwise the newest results stay cleared, and `recap` hides the questions that the model goes on from."""
    policies: dict[str, str | Policy] = {
        "prune": prune_tool_outputs(protect=300, minimum=100),
        "fold": fold(protect=300),
    }
    mine = [message for n in range(9) for message in (user(f"Step {n}."), *exchange(n, size=60))]
    mine = [say(f"recap - {m.text}\nAt length.") if m.text.startswith("Answer") else m for m in mine]
    chat = told(opened(policy=policies.get(policy, policy)), mine)
    assert texts(chat.prepare()) != texts_of(mine)
    back = [*mine[:8], user("Do another thing.")]
    fresh = opened(policy=policies.get(policy, policy))
    assert chat.prompt(messages=back) == told(fresh, mine[:8]).prompt(messages=back)


def test_going_back_a_little_leaves_what_stays_old():
    """The provider's cached prefix has it so, and showing it again costs more than it helps."""
    mine = [message for n in range(9) for message in (user(f"Step {n}."), *exchange(n, size=60))]
    chat = told(opened(policy="keep-last-4"), mine)
    before = texts(chat.prepare())
    view = texts(chat.prepare(messages=[*mine[:-4], user("Do another thing.")]))
    assert view == [*before[: len(mine) - 4], "Do another thing."]


def test_going_back_keeps_a_written_summary_of_listed_messages():
    """It cost a model call, and is still true."""
    policy = checkpoint(trigger_at=12, keep_recent=5, template="{summary}")
    chat = opened(policy=policy, summarizer=lambda request: "We looked at two of them.")
    mine = [user("Look."), *(message for n in range(4) for message in exchange(n, size=60))]
    told(chat, mine)
    chat.prompt(messages=[*mine[:10], user("Stop.")])
    assert texts(chat.prepare()) == ["Look.", "We looked at two of them.", *texts_of(mine[7:10]), "Stop."]


def test_going_back_does_not_renew_leases():
    """The calls that they count have been made."""
    chat = opened(policy=expire_results(default=Lease(2, "compact", "first_chars", 8)))
    mine = [user("Look."), *(message for n in range(3) for message in exchange(n, size=60))]
    before = texts(told(chat, mine).prepare())
    assert before[2].startswith("Line of ...")
    chat.prompt(messages=[*mine[:4], user("Stop.")])
    assert texts(chat.prepare()) == [*before[:4], "Stop."]


def test_summary_stays_if_the_list_lacks_older_messages_of_it():
    chat = opened()
    mine = conversation_of(4)
    chat.follow(mine)
    summarized(chat, 2, 7, "Looked twice.")
    chat.follow([mine[0], *mine[4:], user("Go on.")])
    assert texts(chat.prepare()) == ["Go.", "Looked twice.", *texts_of(mine[7:]), "Go on."]


def test_summary_of_messages_in_several_gaps_is_cancelled():
    chat = opened()
    mine = conversation_of(4)
    chat.follow(mine)
    summarized(chat, 2, 7, "Looked twice.")
    said = [message for message in mine if message.role == "user" or not (message.calls or message.result)]
    chat.follow([*said, user("Go on.")])
    assert texts(chat.prepare()) == [*texts_of(said), "Go on."]


@pytest.mark.parametrize("count", [1, 2])
def test_summary_of_several_edited_messages_is_cancelled(count: int):
    """A single edit may come with each list, and would write the summary again each time."""
    chat = opened()
    mine = [user("Go."), *(message for n in range(3) for message in (user(f"Step {n}."), say(f"Done {n}.")))]
    chat.follow(mine)
    summarized(chat, 2, 5, "Two steps.")
    for n in range(count):
        mine[1 + 2 * n] = user(f"Changed {n}.")
    chat.follow(mine)
    whole = ["Go.", "Two steps.", *texts_of(mine[5:])]
    assert texts(chat.view) == (whole if count == 1 else texts_of(mine))


def test_lists_that_take_turns_read_no_summary_of_each_other(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(caller_list, "_FORMER_MAX", 0)  # Former courses are hidden in place.
    chat = opened()
    ann, bob = [user("Hello.")], [user("Hello.")]
    for n in range(3):  # So the messages of both alternate in the history.
        for name, mine in (("Ann", ann), ("Bob", bob)):
            chat.follow(mine)
            mine += [say("Yes?"), user(f"{name} says {n}.")]
    chat.follow(ann)
    summarized(chat, 2, len(chat), "Ann came.")
    assert "Ann" not in str(texts(chat.prepare(messages=bob)))


# ---------------------------------------------------------------------------------------------------- results and items


def test_late_result_is_appended():
    chat = opened()
    reply = assistant("", ToolCall("c1", "look"), ToolCall("c2", "look"))
    mine = [user("Go."), reply, answer("c1", "one"), user("Well?"), say("Soon.")]
    chat.follow(mine)
    mine.insert(3, answer("c2", "two"))
    assert len(chat.follow(mine).added) == 1
    assert chat.follow([*mine, user("Go on.")]).added == (chat.tip,)
    assert chat._agent.store.names("") == ["c"]
    assert refusals(chat) == []


def test_results_of_one_reply_come_in_any_order():
    chat = opened()
    reply = assistant("", ToolCall("c1", "look"), ToolCall("c2", "look"))
    mine = [user("Go."), reply, answer("c1", "one"), answer("c2", "two")]
    chat.follow(mine)
    mine[2:] = reversed(mine[2:])
    assert chat.follow(mine) == Followed()
    assert len(chat.follow([*mine, say("Done.")]).added) == 1


def test_item_with_several_messages_is_whole_or_in_parts():
    ids = ("a", "b", "c")
    uses = [{"type": "tool_use", "id": id, "name": "look", "input": {}} for id in ids]
    results = [{"type": "tool_result", "tool_use_id": id, "content": f"Line {id}.\n" * 90} for id in ids]
    mine = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": uses},
        {"role": "user", "content": [*results, {"type": "text", "text": "Well?"}]},
    ]
    view = opened(provider="anthropic").prepare(messages=mine)
    assert [(list(items), len(entries)) for items, entries in view.by_item()] == [([0], 1), ([1], 1), ([2], 4)]
    view = opened(provider="anthropic", policy="keep-last-1").prepare(messages=mine)
    assert [list(items) for items, _ in view.by_item()] == [[0], [1], [], [], [], []]
    places = [view.given(entry) for entry in view]
    assert [(place.part, place.parts) if place else None for place in places[2:]] == [None, None, (2, 4), (3, 4)]


def test_item_with_plugin_content_is_not_the_callers():
    @foveate.plugin(save=True)
    def noon(content: object) -> str:
        return "It is noon."

    chat = opened(plugins=[noon])
    view = chat.prepare(messages=[user("Go.")])
    assert [list(items) for items, _ in view.by_item()] == [[]]


def test_host_that_never_sees_expand_forks_nothing():
    store = MemoryStore()
    chat = opened(store=store, expand=True)
    mine = [user("Go.")]
    chat.prepare(messages=mine)
    chat.record(call("e1", "expand", search="word"))
    chat.prepare(messages=mine)
    chat.record(assistant("", ToolCall("e2", "expand", '{"search":"x"}'), ToolCall("c1", "look")))
    mine += [assistant("", ToolCall("c1", "look")), answer("c1", "Fine.")]
    view = chat.prepare(messages=mine)
    assert store.names("") == ["c"]
    assert [entry.message.role for entry in view] == ["user", *["assistant", "tool"], *["assistant", "tool", "tool"]]
    assert [list(items) for items, _ in view.by_item()] == [[0], [], [], [], [], [2]]
    assert refusals(chat, view) == []


def test_departure_after_a_mixed_reply_keeps_the_result_of_expand():
    """Without it, the reply in the list is another message, and all calls before it leave the view."""
    store = MemoryStore()
    chat = opened(store=store, expand=True)
    mine = [user("Go.")]
    chat.prepare(messages=mine)
    chat.record(call("e1", "expand", search="word"))
    mine += [call("e1", "expand", search="word"), answer("e1", "There is no such tool.")]
    chat.prepare(messages=mine)
    chat.record(assistant("", ToolCall("e2", "expand", '{"search":"x"}'), ToolCall("c1", "look")))
    mine += [assistant("", ToolCall("c1", "look")), answer("c1", "Fine.")]
    chat.prepare(messages=mine)
    mine.insert(4, user("Wait."))
    followed = chat.follow(mine)
    assert (len(followed.added), followed.hidden, followed.former) == (2, 0, "c~1")
    calls = [[made.call_id for made in entry.message.calls] for entry in chat.prepare(messages=mine)]
    assert [ids for ids in calls if ids] == [["e1"], ["e2", "c1"]]
    assert opened(store=store, expand=True).follow(mine) == Followed()


def test_reply_in_the_list_is_not_hidden_with_the_next_one():
    """A reply with only calls of `expand` leaves the view with the next reply if the list has neither."""
    store = MemoryStore()
    chat = opened(store=store, expand=True)
    mine = [user("Go.")]
    chat.prepare(messages=mine)
    chat.record(call("e1", "expand", search="word"))
    mine += [call("e1", "expand", search="word"), answer("e1", "There is no such tool."), say("Nothing found.")]
    chat.prepare(messages=[*mine, user("Next.")])
    followed = opened(store=store, expand=True).follow([*mine[:3], user("Next.")])
    assert followed == Followed(hidden=1)
    view = opened(store=store, expand=True).view
    assert [entry.message.role for entry in view] == ["user", "assistant", "tool", "user"]


# ------------------------------------------------------------------------------------------------- failures and speed

STEPS = [
    conversation_of(3),
    [*conversation_of(3)[:1], *conversation_of(3)[4:]],
    [user("Changed."), *conversation_of(3)[4:], user("Next.")],
    [*conversation_of(3), user("Next.")],
    [*conversation_of(3)[:4], user("Inserted."), *conversation_of(3)[4:]],
    conversation_of(3)[:4],
]


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
@by_thirds
def test_retry_after_any_failure_shows_the_list(after: bool, n: int):
    while True:
        countdown, store = Countdown(after=after), MemoryStore()
        chat = opened(store=failing_store(store, countdown))
        countdown.start(n)
        for mine in STEPS:
            for _ in range(3):
                try:
                    view = chat.prepare(messages=mine)
                    break
                except StoreError:
                    chat.refresh()
            assert texts(view) == [message.text for message in mine]
            assert opened(store=store).follow(mine) == Followed()
        if not countdown.is_used_up:
            break
        n += STEP
    assert n > 20


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_processes_follow_one_list(kind: str, tmp_path: Path, request: pytest.FixtureRequest):
    url = f"sqlite:///{tmp_path}/list.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    chats = [opened(store=open_store(url)) for _ in range(2)]
    for number, mine in enumerate(STEPS * 2):
        chat = chats[number % 2]
        chat.refresh()
        assert texts(chat.prepare(messages=mine)) == [message.text for message in mine]
    assert chats[1].journal.verify() == []
    for chat in chats:
        chat._agent.store.close()


def test_a_turn_of_a_long_list_costs_little():
    """A turn reads its new items only: as much for 4,000 items as for 400, but for one comparison of values."""

    def cost(count: int) -> float:
        chat = opened(window=10_000_000)
        mine = [user("Go."), *(say(f"Answer {n}.") if n % 2 else user(f"Question {n}.") for n in range(count))]
        chat.follow(mine)
        times = []
        for n in range(12):
            mine += [say(f"{n}."), user(f"{n}?")]
            start = process_time()
            chat.follow(mine)
            times.append(process_time() - start)
        return min(times)

    assert cost(4_000) < 10 * cost(400)  # 3 on a computer of its own


def test_taking_over_a_cold_list_does_not_hang():
    chat = opened(provider="anthropic", window=200_000)
    mine: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for n in range(105):
        use = {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {"path": f"src/file{n}.py"}}
        text = "".join(f"{n:03}-{line:03} a line of the file\n" for line in range(130))
        mine.append({"role": "assistant", "content": [{"type": "text", "text": f"Step {n}."}, use]})
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": text}
        mine.append({"role": "user", "content": [result]})
    assert 380_000 < len(json.dumps(mine)) < 450_000
    times = []
    for number in range(3):
        chat = opened(f"c{number}", provider="anthropic", window=200_000)
        start = process_time()
        chat.follow(mine)
        times.append(process_time() - start)
    assert min(times) < 5  # 15 ms on a computer of its own


def test_taking_over_a_list_reads_each_message_once(monkeypatch: pytest.MonkeyPatch):
    """Each message gets one key, and none is decoded from the bytes that were just made of it."""
    keys: list[Message] = []
    decoded: list[bytes] = []
    monkeypatch.setattr(list_items, "message_key", lambda message: keys.append(message) or message_key(message))
    monkeypatch.setattr(wire, "decode_message", lambda body: decoded.append(body) or decode_message(body))
    mine = conversation_of(20)
    opened().follow(mine)
    assert keys == mine
    assert decoded == []


def test_no_cache_holds_a_list_that_is_taken_over():
    """Its first request has other tools than the caller's own ones, so edits need not wait."""
    waited: list[float | None] = []

    def policy(view: View) -> tuple[()]:
        waited.append(view.call.idle)
        return ()

    chat = opened(policy=(policy,))
    mine = conversation_of(3)
    chat.follow(mine[:5])
    chat.follow(mine)
    for question in ("And?", "Why?"):
        mine = [*mine, user(question)]
        chat.prepare(messages=mine)
        mine = [*mine, say("Because.")]
    assert waited[0] is None
    assert waited[-1] is not None


# ------------------------------------------------------------------------------------------------------ real clients

FORMATS = {
    "/v1/messages": "anthropic",
    "/v1/chat/completions": "openai",
    "/v1/responses": "openai_responses",
}
HEADERS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")


@pytest.mark.parametrize("client", ["claude", "agent", "codex", "oc", "sdk"])
def test_requests_of_real_clients_never_fork(client: str, wire_recordings: Path):
    chats: dict[tuple[str, ...], Conversation] = {}
    for line in (wire_recordings / f"{client}.jsonl").read_text().splitlines():
        request = json.loads(line)
        path, body = request["path"].split("?")[0], request["body"]
        body = json.loads(body) if isinstance(body, str) and body.startswith("{") else body
        mine = (body.get("messages") or body.get("input")) if isinstance(body, dict) else None
        if path not in FORMATS or not mine:
            continue
        headers = {name.lower(): value for name, value in request["headers"].items()}
        session = next((headers[name] for name in HEADERS if name in headers), path)
        purpose = "tools" if body.get("tools") else "title"
        key = session, headers.get("x-claude-code-agent-id", ""), purpose
        if key not in chats:
            chats[key] = opened(str(len(chats)), provider=FORMATS[path], window=200_000, store=MemoryStore())
        chat = chats[key]
        chat.follow(mine)
        assert chat._agent.store.names("") == [chat.name]
        assert items_shown(chat) == list(range(len(mine)))  # The client gets its own bytes back.
    assert chats


@pytest.mark.parametrize("kept", [0, 2, 6])
def test_list_with_a_text_that_cannot_be_stored_changes_nothing(kept: int):
    """The list also removes messages, or departs: no part of it counts if one of its messages is refused."""
    chat = opened()
    mine = conversation_of(2)
    chat.follow(mine)
    before = shown(chat.view), chat.tip, chat.journal.records()
    with pytest.raises(BadInput, match="half of a surrogate pair"):
        chat.follow([*mine[:kept], {"role": "user", "content": "Half of a pair: \ud800"}, *mine[kept + 1 :]])
    assert (shown(chat.view), chat.tip, chat.journal.records()) == before
    assert chat.follow(mine) == Followed()


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "is empty"),
        ((), "is empty"),
        ([[]], "is empty"),
        ([[[]], ListItem([]), b"[]"], "is empty"),
        ([{"role": "system", "content": "Be brief."}], "has only system messages"),
        ([{"role": "developer", "content": "Be brief."}], "has only system messages"),
        ([[{"role": "system", "content": "Be brief."}], []], "has only system messages"),
        ([ListItem({"role": "system", "content": "Be brief."})], "has only system messages"),
        ([b'{"role": "system", "content": "Be brief."}'], "has only system messages"),
    ],
)
def test_prompt_for_a_list_with_nothing_to_send_is_refused_and_hides_nothing(messages: Any, reason: str):
    chat = opened()
    chat.follow(conversation_of(2))
    before = shown(chat.view), chat.journal.records()
    with pytest.raises(BadInput, match=f"messages= {reason}"):
        chat.prompt(messages=messages)
    assert (shown(chat.view), chat.journal.records()) == before


@pytest.mark.parametrize("option", [{"read": 3}, {"read": "json"}, {"ignore_removals": "yes"}, {"ignore_removals": 1}])
def test_options_of_follow_are_checked(option: dict[str, Any]):
    chat = opened()
    with pytest.raises(BadInput, match=f"{next(iter(option))}= must be"):
        chat.follow([{"role": "user", "content": "Go."}], **option)
    assert len(chat) == 0


def test_messages_must_be_a_list():
    with pytest.raises(BadInput, match="takes the whole list"):
        opened().follow({"role": "user", "content": "Go."})  # type: ignore[arg-type]
    assert shown(opened().view) == []


@ANTHROPIC
def test_erased_message_stays_erased_although_the_list_has_it(provider: str):
    chat = opened(provider=provider)
    mine = chat.format.render(conversation_of(2))
    chat.prepare(messages=mine)
    chat.privacy.erase("m3")
    for _ in range(2):
        view = chat.prepare(messages=mine)
        assert not [text for text in texts(view) if "Line of 0" in text]
        assert [row.stamp.origin for row in chat.history()][2] == "tool"
    assert len(chat) == 7
    assert (
        opened(provider=provider, store=chat._agent.store).follow([*mine, {"role": "user", "content": "More."}]).added
    )
    assert not [text for text in texts(chat.view) if "Line of 0" in text]


@pytest.mark.parametrize("reopens", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_new_message_is_no_erased_one(count: int, reopens: bool):
    """After a restart, the next question was taken for the erased one: the model never saw it."""
    chat = opened(expand=False)
    said = [user("One."), say("Yes."), user("My password is 1234.")][-count:]
    chat.prompt(messages=said)
    chat.privacy.erase(f"m{count}")
    chat = opened(expand=False, store=chat._agent.store) if reopens else chat
    mine = [row.message for row in chat.listed()] + [user("How is the weather?"), user("In Oslo?")]
    for _ in range(2):
        sent = [message["content"] for message in chat.prompt(messages=mine)["messages"]]
        assert sent == [message.text for message in mine]
    chat.prompt(messages=[*said, *mine[count - 1 :]])
    assert texts(chat.view) == [message.text for message in mine]


def test_erased_message_with_additions_stays_erased_although_the_list_has_it():
    """The list has another form of it than the store, which added the content of a plugin."""
    chat = opened(plugins=[plugin(lambda content: "It is noon.")])
    mine = [user("One."), say("Yes."), user("My password is 1234.")]
    chat.prompt(messages=mine)
    chat.privacy.erase("m3")
    again = opened(store=chat._agent.store)
    again.prompt(messages=[*mine, say("Well."), user("More.")])
    assert not [text for text in texts(again.view) if "1234" in text]


@pytest.mark.parametrize(
    ("provider", "again"),
    [
        ("openai", {"content": [{"text": "My password is 1234.", "type": "text"}], "role": "user", "sent": 5}),
        ("anthropic", {"content": [{"text": "My password is 1234.", "type": "text", "sent": 5}], "role": "user"}),
        ("openai_responses", {"role": "user", "content": [{"type": "input_text", "text": "My password is 1234."}]}),
        ("openai_responses", {"type": "message", "role": "user", "content": "My password is 1234."}),
    ],
)
def test_erased_message_is_recognized_in_another_form(provider: str, again: dict[str, Any]):
    """It is the last one, so that the messages around it do not say which one it is."""
    chat = opened(provider=provider)
    mine: list[Any] = [user("One."), say("Yes.")]
    chat.follow([*mine, {"role": "user", "content": "My password is 1234."}])
    chat.privacy.erase("m3")
    other = opened(provider=provider, store=chat._agent.store)
    assert other.follow([*mine, again]).added == ()
    other.follow([*mine, again, say("Well."), user("More.")])
    assert "1234" not in str([row.message for row in other.history()])


def test_a_list_meets_what_another_process_appended(tmp_path: Path):
    """Both processes append the same question, and the answer to it is in no list: the model answers again."""
    store = open_store(f"sqlite:///{tmp_path}/list.db")
    first, second = (opened(policy="off", store=store) for _ in range(2))
    mine = conversation_of(2)
    first.prompt(messages=mine)
    mine += [user("And now?")]
    second.prompt(messages=mine)
    second.record(assistant("An answer that the program lost."))
    assert "lost" not in json.dumps(first.prompt(messages=mine))
    assert texts(first.view)[-1] == "And now?"
    first.record(assistant("Another answer."))
    mine += [assistant("Another answer."), user("Thanks.")]
    assert "lost" not in json.dumps(second.prompt(messages=mine))


def test_an_edited_list_meets_what_another_process_appended(tmp_path: Path):
    """The commit of the edits finds the other's message. It was left out, and later edits hid the wrong messages."""
    store = open_store(f"sqlite:///{tmp_path / 'c.db'}")
    chat, other = opened("c", store=store), opened("c", store=store)
    first, second, fourth = user("Go."), say("Yes."), say("No.")
    chat.follow([first, second, user("And?"), fourth])
    other.refresh()
    other.append(user("From outside."))
    chat.follow([first, second, fourth, user("Next.")])
    assert [row.message.text for row in chat.history()][4:] == ["From outside.", "Next."]
    for mine in [first, second, fourth, user("Other.")], [fourth, user("Other."), user("Last.")]:
        chat.follow(mine)
        assert [entry.message.text for entry in chat.view if entry.kind == "message"] == [each.text for each in mine]
        assert chat.follow(mine) == Followed()
    assert chat.journal.verify() == []


def test_two_processes_go_back_to_the_same_place(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path}/list.db")
    first, second = (opened(policy="off", store=store) for _ in range(2))
    mine = conversation_of(2)
    first.prompt(messages=mine)
    second.prompt(messages=mine)
    for chat in (first, second):  # Each program loses an answer and asks again.
        first.follow(mine[:-1])
        chat.prompt(messages=mine[:-1])
    assert texts(first.view) == texts(second.view) == [message.text for message in mine[:-1]]
    assert refusals(first) == refusals(second) == []


SUMMARY = "\n".join(f"- Step {n}: the line of {n} was read and is well." for n in range(8))


@ANTHROPIC
def test_a_list_that_begins_with_its_summary_keeps_the_past_in_reach(provider: str):
    chat = opened(policy="off", provider=provider)
    mine = conversation_of(4)
    chat.prompt(messages=[*mine, user("Summarize.")])
    chat.record(assistant(f"<summary>\n{SUMMARY}\n</summary>"))
    compacted = [user(f"The summary of the conversation so far:\n{SUMMARY}"), user("Go on.")]
    followed = chat.follow(compacted)
    assert (followed.former, followed.hidden) == ("", len(mine) + 2)
    assert texts(chat.prepare()) == [message.text for message in compacted]
    assert refusals(chat) == []
    assert chat.search("Line 3")
    assert chat.original("m3").result is not None
    chat.record(say("Going on."))
    assert chat.follow([*compacted, say("Going on."), user("And?")]).hidden == 0
