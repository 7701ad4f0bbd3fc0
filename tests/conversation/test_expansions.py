"""`expansion`: the result of a call of `expand` as a value, for hosts that run every tool themselves."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import Text, ToolCall, assistant
from foveate.edits import Replace, Target
from foveate.expand import expand_tool
from foveate.stores.memory import MemoryStore
from foveate.testing import answer, call, calls, say, user
from foveate.testing.faults import Countdown, failing_store

from .expand_requests import LOG, SHORT
from .shells import opened, shown, texts
from .test_expand_answers import KEYS, VALUES, story

REQUESTS = (
    {"handle": "m3"},
    {"handle": "m3", "lines": "97"},
    {"handle": "m3", "items": "1-3"},
    {"handle": "m3", "pattern": "ERROR"},
    {"handle": "m7-m8"},
    {"search": "swordfish"},
    {"handle": "m99"},
    {"handle": "m5"},
    {"handle": "m3", "pattern": "("},
    {"handle": "m3", "lines": "400-"},
    {},
    [1],
    None,
)


@pytest.mark.parametrize("arguments", REQUESTS)
def test_expansion_has_the_words_of_an_answer_and_changes_nothing(arguments):
    chat = story(expand_where="tail")
    before, head = shown(chat.view), chat._agent.head
    text = json.dumps(arguments)
    result = chat.expansion(text)
    assert (chat.expansion(arguments), chat._agent.head, shown(chat.view)) == (result, head, before)
    chat.record(assistant("", ToolCall("x", "expand", text)))
    answered = chat.history()[-1].message.result
    words = answered.text.replace("m1 to m10", "m1 to m9")  # The reply with the call is m10.
    assert (result.call_id, result.text, result.state) == ("", words, answered.state)


@pytest.mark.parametrize("where", ["view", "tail", "auto"])
@pytest.mark.parametrize("arguments", REQUESTS)
def test_expansion_of_an_answered_call_is_its_answer(arguments, where):
    chat = story(expand_where=where)
    chat.record(calls("a9", assistant("", ToolCall("x", "expand", json.dumps(arguments)))))
    answered = chat.history()[-1].message.result
    head = chat._agent.head
    result = chat.expansion(json.dumps(arguments, indent=1))
    assert (answered.call_id, result.content, result.state) == ("x", answered.content, answered.state)
    assert chat._agent.head == head


def test_expansion_shows_an_original_in_the_result_under_every_place():
    for where in ("view", "tail", "auto"):
        assert story(expand_where=where).expansion({"handle": "m3"}).content == (Text(LOG),)


@given(
    arguments=st.one_of(
        st.dictionaries(KEYS, VALUES, max_size=3).map(json.dumps),
        st.dictionaries(KEYS | st.integers(), VALUES | st.binary() | st.just(object()), max_size=3),
        VALUES,
        st.binary(),
        st.just(object()),
    )
)
def test_no_arguments_of_an_expansion_raise(arguments):
    chat = story()
    head = chat._agent.head
    result = chat.expansion(arguments)
    assert (chat._agent.head, bool(result.text)) == (head, True)
    assert "It failed:" not in result.text


def test_expansion_sees_what_others_appended():
    store = MemoryStore()
    chat, other = opened(store=store), opened(store=store)
    ids = chat.append([user("go"), call("a", "look"), answer("a", LOG), say("ok"), user("on")])
    chat.edit(Replace(Target(ids[2]), (Text("[short]"),)))
    assert other.expansion({"handle": "m3"}).content == (Text(LOG),)


def test_failing_store_gives_a_sentence_and_no_error():
    store, countdown = MemoryStore(), Countdown()
    chat = opened(store=failing_store(store, countdown))
    ids = chat.append([user("go"), call("a", "look"), answer("a", LOG), call("b", "look"), answer("b", SHORT)])
    chat.edit(Replace(Target(ids[2]), (Text("[short]"),)))
    failures = 0
    for n in range(1, 50):
        countdown.start(n)
        result = chat.expansion({"handle": "m3", "pattern": "ERROR"})
        if not countdown.is_used_up:
            break
        failures += 1
        assert (result.state, result.text) == ("error", "The original cannot be read for now. Try again later.")
    countdown.start(0)
    assert (failures > 0, chat.expansion({"handle": "m3", "lines": "97"}).state) == (True, "ok")


def test_hosts_that_answer_expand_get_legal_requests():
    chat = opened(provider="anthropic", expand=False)
    ids = chat.append([user("go"), call("a", "look"), answer("a", LOG), say("ok"), user("on")])
    chat.edit(Replace(Target(ids[2]), (Text("[short]"),)))
    chat.prepare()
    chat.record(call("x", "expand", handle="m3", lines="97"))
    (open_call,) = chat.open_calls()
    result = chat.expansion(open_call.arguments)
    chat.append(answer(open_call.call_id, result.text, state=result.state))
    assert "097 ERROR disk full" in chat.view.entries[-1].message.text
    chat.prompt()


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_result_of_a_host_is_known_as_a_copy(provider, is_restarted):
    """Erasing an original also erases copies that the host's own loop appended."""
    store = MemoryStore()
    chat = opened(provider=provider, store=store, expand=False)
    tools = [expand_tool(provider)]
    history = [user("go"), call("a", "look"), answer("a", LOG), say("ok"), user("on")]
    chat.prepare(messages=history, tools=tools)
    chat.edit(Replace(Target(chat.history()[2].id), (Text("[short]"),)))
    reply = call("x", "expand", handle="m3")
    chat.record(reply, call=chat.prepare(messages=history, tools=tools).turn)
    result = chat.expansion({"handle": "m3"})
    history += [reply, answer("x", result.text)]
    view = chat.prepare(messages=history, tools=tools)
    assert view.entries[-1].stamp.expanded.handle == "m3"
    assert "stands in m7" in chat.expansion({"handle": "m3", "reason": "again"}).text or is_restarted
    assert (chat.totals().expansions, store.names("")) == (1, ["c"])
    history += [say("Thanks."), user("more")]
    if is_restarted:
        chat = opened(provider=provider, store=store, expand=False)
    chat.prepare(messages=history, tools=tools)
    assert (texts(chat.view)[-3:], store.names("")) == ([LOG, "Thanks.", "more"], ["c"])
    assert all(place.items for place in chat.prepare(messages=history, tools=tools).list_places.values())
    assert chat.privacy.erase("m3").messages == 2
    assert not any("ERROR" in row.message.text for row in chat.history())
    assert (chat.journal.verify(), chat.privacy.residue()) == ([], (2, []))


def test_async_side_has_expansions():
    chat = story()
    assert asyncio.run(chat.aio.expansion({"handle": "m3", "lines": "1"})) == chat.expansion(
        '{"handle":"m3","lines":1}'
    )
