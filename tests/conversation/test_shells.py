"""Sync and async conversations perform the same steps: alone, from several threads, and in asyncio."""

from __future__ import annotations

import asyncio
import threading

import pytest

from foveate import ConflictError, Options, Usage, open_async_conversation, open_conversation
from foveate.core.budget import occupied_tokens
from foveate.errors import BadMessage, BadSetting, UnknownHandle
from foveate.open import grouped
from foveate.stores.memory import MemoryStore
from foveate.testing import StubAnthropic, StubOpenAI, agent_run, answer, call, calls, chat, say, text_of, user

from .shells import opened, shown, texts


def test_async_and_sync_conversations_do_the_same(tmp_path):
    history = agent_run(15, seed=8)

    async def play() -> tuple[list, list, list]:
        ticks = iter(range(1, 10**9))
        async with await open_async_conversation(
            "c",
            store=f"sqlite:///{tmp_path}/a.db",
            window=20_000,
            policy="keep-last-2",
            options=Options(clock=lambda: next(ticks)),
        ) as one:
            for message in history:
                if message.role == "assistant":
                    await one.prepare()
                await one.append(message)
            await one.expand("m3")
            await one.undo((await one.journal.receipts())[0])
            fork = await one.fork("f", at=4)
            assert len(fork) == 4
            assert await one.journal.verify() == []
            return shown(one.view), await one.journal.records(), await one.history()

    one = opened(policy="keep-last-2", window=20_000)
    for message in history:
        if message.role == "assistant":
            one.prepare()
        one.append(message)
    one.expand("m3")
    one.undo(one.journal.receipts()[0])
    view, records, rows = asyncio.run(play())
    assert view == shown(one.view)
    assert [record.edits for record in records] == [record.edits for record in one.journal.records()]
    assert [row.message for row in rows] == [row.message for row in one.history()]


def test_threads_share_one_conversation_without_loss(tmp_path):
    with open_conversation("c", store=f"sqlite:///{tmp_path}/t.db", window=10_000, policy="none") as one:
        threads = [
            threading.Thread(target=lambda who=who: [one.append(user(f"{who}.{i}")) for i in range(25)])
            for who in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        said = [row.message.text for row in one.history()]
        assert sorted(said) == sorted(f"{who}.{i}" for who in range(4) for i in range(25))
        assert one.journal.verify() == []


def test_two_open_conversations_of_one_name_both_succeed():
    store = MemoryStore()
    one, other = opened(store=store), opened(store=store)
    one.append(user("a"))
    other.append(user("b"))
    one.append(user("c"))
    assert [row.message.text for row in one.history()] == ["a", "b", "c"]
    other.pin("m1")
    one.pin("m2")
    other.refresh()
    assert [entry.is_pinned() for entry in other.view] == [True, True, False]


def test_append_after_another_tip_raises_and_names_the_tip():
    one = opened()
    first, _ = one.append(chat(user("a"), say("b")))
    with pytest.raises(ConflictError, match="at position 2"):
        one.append(say("something else"), after=first)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_invalid_message_is_refused_and_nothing_is_added(provider):
    one = opened(provider=provider)
    for wrong in ({}, {"role": "wizard", "content": "x"}, 7, None, [user("ok"), 7], {"role": "user", "content": 3}):
        with pytest.raises(BadMessage):
            one.append(wrong)
    assert len(one) == 0


def test_unknown_handle_is_refused():
    one = opened()
    one.append(user("a"))
    for wrong in ("m2", "m0", "x", "m1.2", "m1.1.1", "m3-m1", "", "m1-m9", "m" + "9" * 40):
        with pytest.raises(UnknownHandle):
            one.original(wrong)
    assert one.journal.records() == []


def test_invalid_settings_are_named_with_allowed_values():
    for options, says in (
        ({"policy": "magic"}, "off, none, keep-last-N, prune"),
        ({"store": "mysql://x"}, "sqlite:///PATH"),
        ({"window": 0}, "1 or more"),
        ({"reserve": -1}, "0 or more"),
        ({"format": "smoke"}, "openai"),
    ):
        with pytest.raises(Exception, match=says):
            open_conversation("c", **grouped({"window": 1_000, **options}))
    with pytest.raises(BadSetting, match="window="):
        open_conversation("c")


def test_stale_commit_is_planned_again():
    store = MemoryStore()
    one, other = opened(policy="keep-last-1", store=store), opened(policy="keep-last-1", store=store)
    one.append(chat(user("go"), call("a"), answer("a", text_of(90)), call("b"), answer("b")))
    other.refresh()
    one.prepare()
    view = other.prepare()
    assert texts(view) == texts(one.view)
    assert len(one.journal.receipts()) == 1


def test_measured_usage_corrects_the_budget():
    one = opened(window=10_000, reserve=0)
    one.append(user(text_of(1_000)))
    one.prepare()
    one.record(say("ok"), usage=Usage(1_500, 508, 0, 3))
    assert one.budget.scale == pytest.approx(2.0)
    assert one.budget.usable == 5_000


@pytest.mark.parametrize("unknown", [Usage(0, 0, 0, 0), Usage(None, None, None, 3), None])
def test_usage_of_zero_tokens_measures_nothing(unknown: Usage | None):
    """Some servers report 0 because they do not count. After a restart, the ratio that was measured before was lost."""
    store = MemoryStore()
    one = opened(window=10_000, reserve=0, store=store)
    for usage in (Usage(1_500, 508, 0, 3), unknown):
        one.append(user(text_of(1_000)))
        one.prepare()
        one.record(say("ok"), usage=usage)
    again = opened(window=10_000, reserve=0, store=store)
    assert one.prepare().budget == again.prepare().budget
    assert again.view.budget.scale == pytest.approx(2.0)
    assert 1_000 < again.view.budget.unmeasured < 1_020
    assert occupied_tokens(again.view) == pytest.approx(4_037, abs=10)


def test_reply_of_either_sdk_is_recorded_with_its_usage():
    for provider, client in (("anthropic", StubAnthropic([say("hello")])), ("openai", StubOpenAI([say("hello")]))):
        one = opened(provider=provider)
        one.append({"role": "user", "content": "hi"})
        if provider == "anthropic":
            reply = client.messages.create(model="m", max_tokens=9, **one.prompt())
        else:
            reply = client.chat.completions.create(model="m", **one.prompt())
        one.record(reply)
        last = one.history()[-1]
        assert last.message.text == "hello"
        assert last.stamp.usage is not None
        assert last.stamp.usage.output


def test_explain_lists_the_edits_of_an_entry():
    one = opened(policy="keep-last-1", expand=True)
    one.append(chat(user("go"), calls("a", "b"), answer("a", text_of(90)), answer("b"), call("x")))
    one.prepare()
    assert one.explain("m3") == (
        "m3 is a message of role tool, 10 tokens, recorded in turn 1.\n"
        "Edit 1, turn 3: keep-last-1 replaced it (94 -> 10 tokens): older than the newest 1 results."
    )
    assert one.explain("m4").endswith("It is shown as it was appended.")
    assert "a call without an answer is refused" in one.explain("m5")
    assert [mend.handle for mend in one.fixes()] == ["m5"]
    assert len(one.journal.repair().body["messages"]) == 6
