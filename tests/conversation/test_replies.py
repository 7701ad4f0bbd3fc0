"""Replies after they were stored: late usage, records of known replies, and withdrawn replies."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from foveate import BadInput, ConflictError, Conversation, StoreError, Text, ToolCall, Usage, assistant
from foveate.edits import Bill, Hide, Replace, Target
from foveate.ops.archive import export_archive, import_archive
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import answer, call, say, user
from foveate.testing.faults import Countdown, failing_store

from .expand_requests import LOG, TOOLS
from .shells import opened, refusals, shown, texts

USAGE = Usage(100, 20, 3, 40)


def billed(chat: Conversation) -> tuple[int, Usage]:
    """Return the number of billed calls, and the sum of their usage."""
    totals = chat.totals()
    return totals.calls_billed, totals.usage


def followed(chat: Conversation, *messages: Any) -> int:
    """Prepare a request with this list, and return the number of its call."""
    return chat.prepare(messages=list(messages)).turn


# ------------------------------------------------------------------------------------- usage that is reported late


def test_late_record_of_a_reply_that_the_list_brought_only_bills_it():
    chat = opened()
    first = followed(chat, user("hi"))
    second = followed(chat, user("hi"), say("ok"), user("next"))
    (_, reply, _) = chat.history()
    assert chat.record(say("ok"), usage=USAGE, call=first) == reply.id
    assert (len(chat), billed(chat)) == (3, (1, USAGE))
    assert chat.prepare().turn == second  # The second call still waits for its reply.
    chat.record(say("ok"), usage=USAGE, call=second)
    assert (len(chat), billed(chat)) == (4, (2, Usage(200, 40, 6, 80)))
    assert [row.stamp.turn for row in chat.history()] == [0, 1, 1, 2]


def test_late_record_compares_arguments_as_json():
    chat = opened()
    first = followed(chat, user("hi"))
    written = assistant("", ToolCall("c1", "look", '{"a": 1, "b": 2}'))
    followed(chat, user("hi"), written, answer("c1"))
    chat.record(assistant("", ToolCall("c1", "look", '{"b":2,"a":1}')), usage=USAGE, call=first)
    assert (len(chat), billed(chat)) == (3, (1, USAGE))


def test_record_of_another_reply_to_an_answered_call_is_a_conflict():
    chat = opened()
    first = followed(chat, user("hi"))
    followed(chat, user("hi"), say("ok"), user("next"))
    with pytest.raises(ConflictError):
        chat.record(say("no"), usage=USAGE, call=first)
    assert (len(chat), billed(chat)[0]) == (3, 0)


def test_usage_of_a_call_counts_once():
    chat = opened()
    first = followed(chat, user("hi"))
    followed(chat, user("hi"), say("ok"), user("next"))
    assert [chat.bill(first, USAGE), chat.bill(first, USAGE), chat.bill(first, Usage(1))] == [True, False, False]
    chat.record(say("ok"), usage=USAGE, call=first)
    assert billed(chat) == (1, USAGE)
    chat.record(say("two"), usage=USAGE)
    assert (chat.bill(2, USAGE), billed(chat)[0]) == (False, 2)


def test_usage_may_come_before_its_reply():
    chat = opened()
    first = followed(chat, user("hi"))
    assert chat.bill(first, USAGE)
    chat.record(say("ok"), usage=USAGE, call=first)
    assert (len(chat), billed(chat)) == (2, (1, USAGE))


def test_usage_of_an_interrupted_reply_replaces_its_estimate(tmp_path):
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with opened(store=url) as chat:
        chat.append(user("hi"))
        chat.prepare()
        chat.record(say("ok"), usage=USAGE)
        chat.append(user("on"))
        chat.prepare()
        reply = chat.record(say("It is"), interrupted=True)
        before = chat.totals()
        assert (before.calls_billed, before.calls_estimated) == (2, 1)
        assert before.usage.output > USAGE.output
        assert (chat.bill(reply, Usage(3, 1, output=2)), chat.bill(reply, USAGE)) == (True, False)
        sums = chat.totals()
        assert (sums.calls_billed, sums.calls_estimated, sums.usage) == (2, 0, Usage(103, 21, 3, 42))
        assert sums.by_model[""].usage == sums.usage
    with opened(store=url) as chat:
        assert (chat.totals().usage, chat.bill(reply, USAGE), chat.journal.verify()) == (sums.usage, False, [])


def test_call_without_a_reply_is_billed():
    chat = opened()
    first = followed(chat, user("hi"))
    assert (chat.bill(first, USAGE), chat.bill(first, USAGE)) == (True, False)  # The stream was cut.
    assert (len(chat), billed(chat)) == (1, (1, USAGE))
    assert chat.prepare().turn == first


def test_bill_takes_the_id_of_a_reply():
    chat = opened()
    chat.append(user("hi"))
    reply = chat.record(say("ok"))
    assert (chat.bill(reply, USAGE), chat.bill("m2", USAGE), billed(chat)) == (True, False, (1, USAGE))
    for wrong in ("m1", "m9", "m1-m2", "x", 7, 0, True, None, 1.5):
        with pytest.raises(BadInput):
            chat.bill(wrong, USAGE)
        with pytest.raises(BadInput):
            chat.discard(wrong)
    with pytest.raises(BadInput):
        chat.bill(1, {"input": 5})


def test_late_usage_survives_a_restart_and_undo_passes_over_it(tmp_path):
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with opened(store=url) as chat:
        ids = chat.append([user("go"), call("a", "look"), answer("a", LOG), user("on")])
        chat.prepare()
        chat.edit(Replace(Target(ids[2]), (Text("[short]"),)))
        reply = chat.record(say("ok"))
        assert chat.bill(reply, USAGE)
        assert isinstance(chat.journal.records()[-1].edits[0], Bill)
        assert [receipt.author for receipt in chat.journal.receipts()] == ["edit"]
    with opened(store=url) as chat:
        assert (billed(chat), chat.bill(reply, USAGE)) == ((1, USAGE), False)
        chat.undo()
        assert (texts(chat.view)[2], billed(chat), chat.journal.verify()) == (LOG, (1, USAGE), [])


def test_late_usage_calibrates_later_estimates():
    chat, twin = opened(model="gpt-5"), opened("t", model="gpt-5")
    for one in (chat, twin):
        first = followed(one, user("word " * 500))
        followed(one, user("word " * 500), say("ok"), user("next"))
        if one is chat:
            one.bill(first, Usage(2_000, 0, 0, 5))
    assert chat.budget.scale > 2 > twin.budget.scale
    assert chat.totals().by_model["gpt-5"].usage == Usage(2_000, 0, 0, 5)


def test_late_usage_calibrates_every_open_conversation():
    """The usage may be another writer's, and a program may commit it as an edit."""
    store = MemoryStore()
    chat, other = opened(store=store, model="gpt-5"), opened(store=store, model="gpt-5")
    first = followed(chat, user("word " * 500))
    chat.record(say("ok"))
    other.refresh()
    chat.bill(first, Usage(2_000, 0, 0, 5))
    other.refresh()
    assert opened(store=store, model="gpt-5").budget == chat.budget == other.budget
    other.edit(Bill(first, Usage(3_000, 0, 0, 5), model="gpt-5", estimate=500))
    chat.refresh()
    assert opened(store=store, model="gpt-5").budget == chat.budget == other.budget
    assert other.budget.scale == 4


def test_meter_shows_late_usage():
    chat = opened()
    chat.append(user("hi"))
    chat.record(say("ok"))
    assert chat.context().last is None
    chat.bill("m2", USAGE)
    assert chat.context().last == USAGE
    chat.record(say("two"))
    assert chat.context().last is None


def test_late_usage_survives_export_and_erasure(tmp_path):
    chat = opened(store=(store := MemoryStore()))
    chat.append(user("hi"))
    reply = chat.record(say("ok"))
    chat.bill(reply, USAGE)
    chat.record(say("no"), usage=USAGE)
    chat.discard("m3")
    chat.privacy.erase(reply)
    export_archive(store, str(tmp_path / "a.jsonl"))
    with SqliteStore(tmp_path / "b.db") as other:
        import_archive(other, str(tmp_path / "a.jsonl"))
        again = opened(store=other)
        assert (billed(again), texts(again.view)) == (billed(chat), texts(chat.view))
        assert (again.totals(), again.journal.verify(), again.bill(reply, USAGE)) == (chat.totals(), [], False)


def test_usage_of_an_older_call_does_not_replace_a_newer_measurement():
    chat = opened()
    chat.append(user("word " * 500))
    first = chat.prepare().turn
    chat.record(say("ok"))
    chat.append(user("word " * 500))
    chat.prepare()
    chat.record(say("ok"), usage=Usage(3_000, 0, 0, 1))
    scale = chat.budget.scale
    chat.bill(first, Usage(10, 0, 0, 1))
    assert chat.budget.scale == scale


# ------------------------------------------------------------------------------------- withdrawn replies


def test_discarded_reply_is_not_shown_and_still_costs():
    chat = opened(provider="anthropic")
    chat.append(user("hi"))
    before = shown(chat.prepare())
    reply = chat.record(assistant("bad", ToolCall("c1", "look")), usage=USAGE)
    receipt = chat.discard(reply)
    assert (receipt.author, shown(chat.prepare())) == ("discard", before)
    assert (chat.discard(reply), len(chat), billed(chat)) == (None, 2, (1, USAGE))
    chat.record(say("good"), usage=USAGE)
    assert (texts(chat.prepare()), billed(chat)[0], refusals(chat)) == (["hi", "good"], 2, [])
    assert chat.totals().calls == 2


def test_discard_hides_the_answers_of_expand_too():
    chat = opened(expand=True)
    ids = chat.append([user("go"), call("a", "look"), answer("a", LOG), say("ok"), user("on")])
    chat.edit(Replace(Target(ids[2]), (Text("[short]"),)))
    before = shown(chat.prepare(tools=TOOLS))
    turn = chat.view.turn
    chat.record(call("x", "expand", handle="m3", lines="97"), call=turn)
    assert len(chat) == 7
    chat.discard(turn)
    assert shown(chat.prepare(tools=TOOLS)) == before


def test_list_without_a_discarded_reply_forks_nothing():
    store = MemoryStore()
    chat = opened(store=store, expand=True)
    history = [user("hi")]
    for n in range(4):
        turn = followed(chat, *history)
        chat.record(say(f"bad {n}"), call=turn, usage=USAGE)
        chat.discard(turn)
        chat.record(say(f"good {n}"), usage=USAGE)
        history += [say(f"good {n}"), user(f"on {n}")]
    followed(chat, *history)
    assert (store.names(""), texts(chat.view)) == (["c"], [message.text for message in history])
    assert (billed(chat)[0], chat.journal.verify()) == (8, [])
    again = opened(store=store, expand=True)
    followed(again, *history, say("more"), user("x"))
    assert (store.names(""), texts(again.view)[-2:]) == (["c"], ["more", "x"])


def test_retry_with_the_number_of_a_discarded_call_is_added():
    chat = opened()
    chat.append(user("hi"))
    turn = chat.prepare().turn
    chat.record(say("same"), call=turn, usage=USAGE)
    chat.discard(turn)
    chat.record(say("same"), call=turn, usage=USAGE)
    assert (texts(chat.view), billed(chat)[0]) == (["hi", "same"], 2)


def test_discard_can_be_undone():
    chat = opened()
    chat.append(user("hi"))
    reply = chat.record(say("ok"))
    receipt = chat.discard(reply)
    assert isinstance(receipt.edits[0], Hide)
    assert "the reply to call 1 was withdrawn" in chat.journal.events()[-1].reason
    chat.undo(receipt)
    assert texts(chat.view) == ["hi", "ok"]


def test_pinned_reply_can_be_discarded():
    chat = opened()
    chat.append(user("hi"))
    reply = chat.record(say("ok"))
    chat.pin(reply)
    chat.discard(reply)
    assert texts(chat.view) == ["hi"]


def test_discard_of_an_unanswered_call_changes_nothing():
    chat = opened()
    turn = followed(chat, user("hi"))
    assert (chat.discard(turn), len(chat)) == (None, 1)


def test_late_usage_and_discards_are_all_or_nothing():
    for operation in ("bill", "discard"):
        for n in range(1, 40):
            countdown = Countdown()
            chat = opened(store=failing_store(MemoryStore(), countdown))
            chat.append(user("hi"))
            turn = chat.prepare().turn
            chat.record(say("ok"), call=turn)
            countdown.start(n)
            with suppress(StoreError):
                getattr(chat, operation)(turn, *((USAGE,) if operation == "bill" else ()))
            is_used_up = countdown.is_used_up
            countdown.start(0)
            if operation == "bill":
                chat.bill(turn, USAGE)
                assert billed(chat) == (1, USAGE)
            else:
                chat.discard(turn)
                assert texts(chat.prepare()) == ["hi"]
            assert chat.journal.verify() == []
            if not is_used_up:
                break
        else:
            pytest.fail("every operation failed")


def test_another_object_bills_records_and_discards():
    store = MemoryStore()
    other, chat = opened(store=store), opened(store=store)
    turn = followed(chat, user("hi"))
    followed(chat, user("hi"), say("ok"), user("next"))
    assert other.record(say("ok"), usage=USAGE, call=turn) == chat.history()[1].id
    second = chat.record(say("bad"))
    assert other.bill(second, USAGE)
    assert other.discard(2) is not None
    chat.refresh()
    assert (texts(chat.view), billed(chat)[0]) == (["hi", "ok", "next"], 2)


def test_two_processes_bill_a_call_once(tmp_path):
    path = tmp_path / "chats.db"
    with SqliteStore(path) as one, SqliteStore(path) as other:
        first, second = opened(store=one), opened(store=other)
        first.append(user("hi"))
        reply = first.record(say("ok"))
        second.refresh()
        first.append(user("on"))
        assert first.bill(reply, USAGE)
        assert (second.bill(reply, USAGE), billed(second)) == (False, (1, USAGE))


def test_async_side_bills_and_discards():
    async def run() -> list[str]:
        chat = opened().aio
        await chat.append(user("hi"))
        reply = await chat.record(say("ok"))
        assert await chat.bill(reply, USAGE)
        await chat.discard(reply)
        return texts(chat.view)

    assert asyncio.run(run()) == ["hi"]
