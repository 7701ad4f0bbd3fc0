"""Totals: each figure in one small story with sums by hand."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import BadInput, DoesNotFit, Options, Text, open_conversation
from foveate.core.call_context import Prices
from foveate.core.edits import Hide, Pin, Record, Replace, Restore, Task
from foveate.core.messages import Message, ToolCall, assistant, tool_result, user
from foveate.core.stamps import Expansion, Stamp, Usage
from foveate.core.totals import Tally
from foveate.core.view import Entry
from foveate.edits import Span, Summarize, Target
from foveate.errors import BadEdit
from foveate.open import grouped
from foveate.stores.memory import MemoryStore
from foveate.testing import agent_run
from foveate.testing.strategies import edits, histories
from foveate.types import Totals


def message(
    tally: Tally,
    position: int,
    messages: Message,
    tokens: int = 10,
    *,
    turn: int = 1,
    expanded: Expansion | None = None,
) -> Entry:
    """Append a message and return its entry in a view that shows it whole."""
    stamp = Stamp(turn, 0, tokens, messages.role, expanded=expanded)  # type: ignore[arg-type]
    tally.add_message(position, f"id{position}", messages, stamp)
    return Entry(position, f"id{position}", messages, messages, stamp, last=position, tokens=tokens)


def shrunk(entry: Entry, tokens: int) -> Entry:
    return msgspec.structs.replace(entry, message=user("[shrunk]"), tokens=tokens, shrunk=((0,),), shrunk_by=("p",))


def commit(*edits: object, author: str = "plan", tokens: tuple[int, int] = (0, 0)) -> Record:
    return Record(1, edits, 1, 0, "", 0, *tokens, author=author)  # type: ignore[arg-type]


def reads(id: str, path: str = "a.py") -> Message:
    return assistant("", ToolCall(id, "read", f'{{"path":"{path}","from":1}}'))


def test_totals_without_events_are_zero():
    assert Tally().totals() == Totals()
    assert str(Totals()) == "\n".join(
        [
            "0 calls: 0 of 0 tokens sent, 0 saved",
            "0 tokens sent again after edits",
        ]
    )


def test_saved_sums_the_unsent_tokens_of_all_calls():
    tally = Tally()
    one, two = message(tally, 1, user("a"), 100), message(tally, 2, assistant("b"), 20)
    tally.add_call((one, two))
    three = message(tally, 3, user("c"), 5)
    tally.add_record(commit(Replace(Target("id1"), (Text("[shrunk]"),))))
    tally.add_call((shrunk(one, 8), two, three))
    tally.add_call((shrunk(one, 8), two, three))
    totals = tally.totals()
    assert (totals.calls, totals.tokens_whole, totals.tokens_sent) == (3, 120 + 125 + 125, 120 + 33 + 33)
    assert totals.tokens_saved == 184


def test_rebilled_counts_resent_tokens_after_the_first_change():
    tally = Tally()
    entries = [message(tally, n, user(str(n)), n) for n in (1, 2, 3, 4)]
    tally.add_call(tuple(entries))
    entries.append(message(tally, 5, user("5"), 500))
    entries[1] = shrunk(entries[1], 50)
    tally.add_record(commit(Replace(Target("id2"), (Text("[shrunk]"),))))
    tally.add_call(tuple(entries))
    assert tally.totals().tokens_rebilled == 50 + 3 + 4
    tally.add_call(tuple(entries))
    assert tally.totals().tokens_rebilled == 57


def test_changes_without_visible_edits_are_not_rebilled():
    tally = Tally()
    one, two = message(tally, 1, user("a")), message(tally, 2, user("b"))
    tally.add_call((one, two))
    tally.add_record(commit(Pin(Target("id1"))))
    pinned = msgspec.structs.replace(one, renewed=3)
    tally.add_call((pinned, two))
    tally.add_call((shrunk(pinned, 2), two))
    assert tally.totals().tokens_rebilled == 0


def test_messages_cut_from_the_end_are_not_rebilled():
    tally = Tally()
    one, two = message(tally, 1, user("a")), message(tally, 2, user("b"))
    tally.add_call((one, two))
    tally.add_record(commit(Hide(Target("id2"))))
    tally.add_call((one,))
    assert tally.totals().tokens_rebilled == 0


def test_expanded_counts_requests_in_place_and_at_the_end():
    tally = Tally()
    tally.add_record(commit(Restore((Target("id1"),)), author="expand", tokens=(5, 80)))
    tally.add_record(commit(Restore((Target("id1"),)), author="undo", tokens=(5, 90)))
    tally.add_record(commit(Restore((Target("id1"),), policy="retain"), tokens=(5, 90)))
    message(tally, 2, user("a"), 40, expanded=Expansion("lines", "m1", "id1"))
    message(tally, 3, user("b"), 7, expanded=Expansion("search"))
    message(tally, 4, user("c"), 7, expanded=Expansion("refused", "m9"))
    totals = tally.totals()
    assert (totals.expansions, totals.tokens_expanded) == (2, 75 + 40)


def test_expansions_do_not_count_as_history():
    tally = Tally()
    one = message(tally, 1, user("a"), 100)
    two = message(tally, 2, user("a"), 100, expanded=Expansion("whole", "m1", "id1"))
    tally.add_call((shrunk(one, 10), two))
    assert tally.totals().tokens_saved == -10


def summarised(*entries: Entry) -> tuple[Entry, ...]:
    """Return a summary in place of these entries, at the place of the first one."""
    first = entries[0]
    return (msgspec.structs.replace(first, kind="summary", appended=None, span=Span(first.id, entries[-1].id)),)


@pytest.mark.parametrize(
    ("view_of", "again"),
    [
        (lambda call, result: (call, result), 0),
        (lambda call, result: (call, shrunk(result, 2)), 33),
        (lambda call, result: (call, *summarised(result)), 33),
        (lambda call, result: (), 33),
    ],
    ids=["shown", "shrunk", "summarised", "hidden"],
)
def test_a_repeated_call_counts_if_its_result_was_not_visible(view_of, again):
    """F21."""
    tally = Tally()
    entries = message(tally, 1, reads("c1")), message(tally, 2, tool_result("c1", "text"))
    tally.add_call(view_of(*entries))
    message(tally, 3, assistant("", ToolCall("c2", "read", '{"from": 1, "path": "a.py"}')))
    message(tally, 4, tool_result("c2", "text"), 33)
    totals = tally.totals()
    assert (totals.refetches, totals.tokens_refetched) == (int(again > 0), again)


def test_other_calls_do_not_count_as_repeated():
    tally = Tally()
    message(tally, 1, reads("c1"))
    tally.add_call(())
    message(tally, 2, reads("c2"))
    message(tally, 3, tool_result("c2", "text"))
    tally.add_call(())
    message(tally, 4, reads("c3", "b.py"))
    message(tally, 5, tool_result("c3", "text"))
    message(tally, 6, tool_result("nobody's", "text"))
    message(tally, 7, assistant("", ToolCall("c4", "read", "no json"), ToolCall("c5", "write", '{"path":"a.py"}')))
    message(tally, 8, tool_result("c4", "text"))
    assert tally.totals().refetches == 0
    tally.add_call(())
    message(tally, 9, assistant("", ToolCall("c6", "read", "no json")))
    message(tally, 10, tool_result("c6", "text"), 4)
    assert (tally.totals().refetches, tally.totals().tokens_refetched) == (1, 4)


def test_a_repeated_call_id_is_not_a_repeated_call():
    tally = Tally()
    tally.add_call(())
    for position, (messages, tokens) in enumerate(
        [
            (reads("c1"), 5),
            (tool_result("c1", "text"), 10),
            (reads("c2"), 5),
            (tool_result("c2", "text"), 20),
            (reads("c2", "other.py"), 5),
            (tool_result("c2", "text"), 40),
        ],
        1,
    ):
        message(tally, position, messages, tokens)
    assert tally.totals().tokens_refetched == 20


def test_summaries_are_counted_by_author():
    tally, span = Tally(), Span("id1", "id2")
    tally.add_record(commit(Summarize(span, "x", by="digest", refused=("model: longer than what it stands for",))))
    tally.add_record(commit(Replace(Target("id1"), (Text("x"),), by="model"), Summarize(span, "y", by="model")))
    tally.add_record(commit(Task("compact", "pending"), Task("compact", "failed", reason="model: timeout")))
    tally.add_record(commit(Summarize(span, "by hand"), Summarize(span, "x", policy="compact")))
    tally.add_record(commit(Replace(Target("id1"), (Text("[cleared]"),), policy="prune")))
    totals = tally.totals()
    assert (totals.summaries, totals.refused, totals.failed) == ({"": 1, "digest": 1, "model": 2}, {"model": 1}, 1)
    assert totals.summary_answers == 4
    assert "summaries: 1, digest 1, model 2; refused: model 1; failed 1" in str(totals)


def test_usage_is_summed_and_unknown_values_stay_none():
    tally = Tally()
    for position, usage in enumerate([Usage(10, None, 5, 7), None, Usage(1, 100, None, 2), Usage(output=1)], 1):
        tally.add_message(position, f"id{position}", assistant("a"), Stamp(position, 0, 1, "assistant", usage=usage))
    totals = tally.totals()
    assert (totals.usage, totals.calls_billed) == (Usage(11, 100, 5, 10, None), 3)
    assert totals.cost(Prices(read=0.1, write=2, output=5)) == 11 + 10 + 10 + 50


def test_totals_are_plain_json():
    totals = Totals(calls=2, summaries={"digest": 1}, usage=Usage(1, 2))
    assert msgspec.json.decode(msgspec.json.encode(totals), type=Totals) == totals


# ------------------------------------------------------------------------------------------------ of a conversation


def worked(store: str, **options: object):
    """Return a conversation that read five files, kept only the newest result, and read the first file again."""
    chat = open_conversation("c", store=store, window=100_000, policy="keep-last-1", **grouped(options))  # type: ignore[arg-type]
    views = []
    chat.append("Look at the files.")
    for n in (1, 2, 3, 4, 1):
        views.append(chat.prepare())
        chat.record(reads(f"c{len(chat)}", f"{n}.py"), usage=Usage(100, 10, 0, 5))
        chat.append(tool_result(f"c{len(chat) - 1}", f"line of {n}\n" * 400))
    return chat, views


def test_a_conversation_returns_its_totals(tmp_path):
    chat, views = worked(f"sqlite:///{tmp_path}/chat.db")
    totals = chat.totals()
    sizes = [row.stamp.tokens for row in chat.history()]
    whole = [sum(sizes[:position]) for position in (1, 3, 5, 7, 9)]
    assert (totals.calls, totals.tokens_whole) == (5, sum(whole))
    assert totals.tokens_sent == sum(view.tokens for view in views) == sum(chat.as_of(n).tokens for n in range(1, 6))
    assert totals.tokens_saved > 0
    assert (totals.refetches, totals.tokens_refetched) == (1, sizes[-1])
    assert (totals.usage, totals.calls_billed) == (Usage(500, 50, 0, 25), 5)
    chat.expand("m3")
    assert chat.totals().expansions == 1
    assert chat.totals().tokens_expanded > 900
    before = chat.totals()
    chat.close()
    again = open_conversation("c", store=f"sqlite:///{tmp_path}/chat.db", window=100_000)
    assert again.totals() == before
    again.close()


def test_a_fork_counts_the_past_it_shares():
    chat, _ = worked("memory:")
    whole, part = chat.totals(), chat.fork("half", at=5).totals()
    assert (part.calls, whole.calls) == (2, 5)
    assert part.tokens_whole < whole.tokens_whole


def test_a_message_during_a_call_was_not_sent_with_it():
    chat = open_conversation("c", window=100_000, policy="none")
    chat.append("one")
    view = chat.prepare()
    chat.append("two, meanwhile")
    chat.record(assistant("answer"))
    assert chat.totals().tokens_sent == view.tokens
    assert chat.totals().tokens_saved == 0


def test_an_async_conversation_has_the_same_totals():
    import asyncio

    from foveate import open_async_conversation

    async def talk() -> Totals:
        async with await open_async_conversation("c", window=100_000, policy="none") as chat:
            await chat.append("hello")
            await chat.prepare()
            await chat.record(assistant("hi"))
            return await chat.totals()

    totals = asyncio.run(talk())
    assert (totals.calls, totals.tokens_saved) == (1, 0)


@pytest.mark.parametrize("policy", ["keep-last-5", "balanced", "prune-and-compact"])
def test_sent_and_rebilled_match_the_request_bodies(policy):
    """Compared with a second count that knows no edits: request bodies, each compared with the one before."""
    chat = open_conversation("c", policy=policy, window=12_000, summarizer=lambda request: "They went on.")
    sent = again = newest = edits = 0
    before: list[bytes] = []
    for number, messages in enumerate(agent_run(50, seed=3)):
        if messages.role != "assistant":
            chat.append(messages)
            continue
        if number % 17 == 0 and (shrunk := [entry.handle for entry in chat.view if entry.shrunk and entry.expandable]):
            chat.expand(shrunk[0])
        view = chat.prepare()
        request = chat.format.rendered(view, profile=chat._agent.profile)
        bodies = [one.body for one in request]
        same = next((i for i, (old, new) in enumerate(zip(before, bodies, strict=False)) if old != new), len(before))
        if same < len(before) and chat._agent.head.number > edits:
            entries = [entry for one in request[same:] for entry in one.entries]
            again += sum(entry.tokens for entry in entries if entry.position <= newest)
        sent += view.tokens
        before, newest, edits = bodies, len(chat), chat._agent.head.number
        chat.record(messages)
        if number % 23 == 0 and chat.journal.receipts():
            chat.undo(chat.journal.receipts()[-1])
    totals = chat.totals()
    assert (totals.tokens_sent, totals.tokens_rebilled) == (sent, again)
    assert 0 < again < sent < totals.tokens_whole


@given(data=st.data(), history=histories())
def test_incremental_totals_equal_totals_from_the_beginning(data: st.DataObject, history: list[Message]):
    """Read after any message and edit, also between a request and its reply, and after an erasure."""
    store = MemoryStore()
    ticks = iter(range(1, 10**9))
    chat = open_conversation("c", store=store, window=4_000, options=Options(clock=lambda: next(ticks)))
    for message in history:
        with suppress(BadInput):
            chat.append(message)
        if not len(chat):
            continue
        match data.draw(st.sampled_from(["", "", "prepare", "edit", "erase", "expand"])):
            case "prepare":
                with suppress(BadInput, DoesNotFit):
                    chat.prepare()
            case "edit":
                with suppress(BadInput, BadEdit):
                    chat.edit(*data.draw(edits([row.id for row in chat.history()], max_size=2)))
            case "erase":
                chat.privacy.erase(f"m{data.draw(st.integers(1, len(chat)))}")
            case "expand":
                with suppress(BadInput):
                    chat.expand(f"m{data.draw(st.integers(1, len(chat)))}")
        if data.draw(st.booleans()):
            assert chat.totals() == open_conversation("c", store=store, window=4_000).totals()


def test_a_second_call_reads_only_new_messages(tmp_path):
    chat, _ = worked(f"sqlite:///{tmp_path}/chat.db")
    chat.totals()
    asked: list[tuple[int, int]] = []
    store = chat._agent.store
    reads_of = store.messages
    store.messages = lambda head, first, last: asked.append((first, last)) or reads_of(head, first, last)  # type: ignore[method-assign]
    chat.totals()
    chat.close()
    assert asked == [(len(chat) - 1, len(chat))]
