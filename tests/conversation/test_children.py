"""Children: names of sub-agents' conversations, their parents, and totals over a family."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import Conversations, LoopAgent, Usage, child_name
from foveate.core.conversation_names import ancestors, children_of
from foveate.core.totals import Totals, sum_totals
from foveate.errors import BadSetting
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import ScriptedModel, say, user

from .shells import opened

KEYS = st.text(max_size=300).filter(bool)


def test_keys_of_frameworks_are_kept():
    for key in ("tools:6c7e0f3a-77b1-4a3c-9d1c-0123456789ab", "agent_a", "model:1|tools:2", "Ünïcode 試験", "a" * 100):
        assert child_name("t", key) == f"t/{key}"
    assert child_name(child_name("t", "run"), "3") == "t/run/3"


@given(key=KEYS, other=KEYS)
def test_every_key_gives_a_name_of_its_own_that_stores_take(key, other):
    name = child_name("t", key)
    assert (name == child_name("t", other)) == (key == other)
    assert ancestors(name) == ["t"]
    assert children_of("t", [name, f"{name}~1", "t~1", "tt/x"]) == [name]
    head = MemoryStore().open("", name)
    assert head.name == name


def test_other_keys_become_their_beginning_and_a_hash():
    assert child_name("t", "a/b") == "t/a-b-7ffafa88f239c35c"
    assert [len(child_name("t", key)) for key in ("x~1", "x" * 101, "\0", "a\nb")] == [2 + 3 + 17, 99, 2 + 18, 2 + 20]


@pytest.mark.parametrize(("parent", "key"), [("", "a"), ("a", ""), ("p" * 475, "abcdef"), ("a", 5), (b"a", "b")])
def test_names_that_no_store_takes_are_refused(parent, key):
    with pytest.raises(BadSetting):
        child_name(parent, key)


def family(store: object) -> None:
    for name in ("t", "t/a", "t/a/b", "t/c", "t/a~1", "tt", "other/x", "x/y/z"):
        chat = opened(name, store=store)
        chat.append(user(f"I am {name}"))
        chat.record(say("ok"), usage=Usage(10, 0, 0, 2))


def test_conversations_know_their_parents_and_children(tmp_path):
    with SqliteStore(tmp_path / "c.db") as store:
        family(store)
        chats = {name: opened(name, store=store) for name in ("t", "t/a", "t/a/b", "tt", "other/x")}
        assert {name: chat.parent() for name, chat in chats.items()} == {
            "t": None,
            "t/a": "t",
            "t/a/b": "t/a",
            "tt": None,
            "other/x": None,
        }
        assert chats["t"].children() == ["t/a", "t/a/b", "t/c"]
        assert (chats["t/a"].children(), chats["tt"].children()) == (["t/a/b"], [])
        assert opened("x/y/z", store=store).parent() is None
        opened("x", store=store)
        assert opened("x/y/z", store=store).parent() == "x"
        assert "other" not in store.names("")


def test_totals_include_the_children_on_request():
    store = MemoryStore()
    family(store)
    chat = opened("t", store=store)
    assert (chat.totals().calls, chat.totals().usage) == (1, Usage(10, 0, 0, 2))
    whole = chat.totals(children=True)
    assert (whole.calls, whole.calls_billed, whole.usage) == (4, 4, Usage(40, 0, 0, 8))
    assert whole.by_model[""].calls_billed == 4
    assert asyncio.run(chat.aio.totals(children=True)) == whole
    assert asyncio.run(chat.aio.children()) == chat.children()
    chat.append("one more")  # The conversation is usable still.


def test_sum_of_totals_adds_every_field():
    one = Totals(calls=1, tokens_whole=5, summaries={"digest": 1}, usage=Usage(1), by_model={})
    other = Totals(calls=2, tokens_whole=6, summaries={"digest": 2, "x": 1}, usage=Usage(2, 3), failed=1)
    both = sum_totals([one, other, Totals()])
    assert (both.calls, both.tokens_whole, both.failed) == (3, 11, 1)
    assert (dict(both.summaries), both.usage) == ({"digest": 3, "x": 1}, Usage(3, 3))
    assert sum_totals([one]) == one


def test_children_of_a_server_share_its_options():
    conversations = Conversations(window=10_000)
    parent = conversations.get("t")
    child = conversations.get(child_name("t", "tools:6c7e"))
    child.append("go")
    assert (child.parent(), parent.children()) == ("t", ["t/tools:6c7e"])


def test_sub_agents_of_loop_agents_are_children():
    script = [
        '{"nextStep": {"type": "sub-agent", "subAgent": {"name": "reader", "message": "Read."}}}',
        '{"taskComplete": true, "message": "Read."}',
        '{"taskComplete": true, "message": "Done."}',
    ]
    store = MemoryStore()
    model = ScriptedModel([say(text) for text in script])
    reader = LoopAgent(model, name="reader", description="Reads.", window=20_000)
    with LoopAgent(model, sub_agents=[reader], store=store, conversation="t", window=20_000) as agent:
        agent.run("Go.")
        (child,) = agent.conversation.children()
        assert child.startswith("t/")
        assert opened(child, store=store, provider="anthropic").parent() == "t"
        assert agent.conversation.totals(children=True).calls == agent.conversation.totals().calls + 1
