"""Retention: messages over their age are erased, and no byte of the view changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import ConflictError, Media, Options, StoreError, open_async_conversation, open_conversation
from foveate.conversation.retention import RetentionCount, RetentionReport
from foveate.core.checker import check
from foveate.core.edits import Hide, Replace, Span, Summarize, Target
from foveate.core.ids import ERASED
from foveate.core.messages import Message, Text, ToolCall, assistant, system, tool_result, user
from foveate.core.retention import Age
from foveate.core.runs import AgentRun
from foveate.core.stamps import Usage
from foveate.errors import NotExpandable
from foveate.open import grouped
from foveate.ops.retention import age_conversation, age_database, age_tenant
from foveate.ports import Head
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import agent_run
from foveate.testing.faults import Countdown, failing_store
from foveate.testing.strategies import edits, histories

from .shells import opened, refusals, texts

DAY = 86_400_000


class Busy(MemoryStore):
    """A store in which another writer acts before or after the first erasure."""

    def __init__(
        self, before: Callable[[], object] = lambda: None, behind: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__()
        self._before, self._behind, self._is_done = before, behind, False

    def erase(self, head: Head, spans: Any, **options: Any) -> Any:
        is_first, self._is_done = not self._is_done, True
        if is_first:
            self._before()
        report = super().erase(head, spans, **options)
        if is_first:
            self._behind()
        return report


def talked(turns: int = 8, **options: Any) -> Any:
    """Return a conversation with a system prompt, a question, and a call with its result in each turn."""
    chat = opened(**options)
    chat.append([system("You help."), user("Look around.")])
    for n in range(1, turns + 1):
        chat.record(assistant(f"Look {n}.", ToolCall(f"c{n}", "look" if n % 2 else "peek", "{}")))
        chat.append(tool_result(f"c{n}", f"seen {n}: " + f"{n} " * 20))
    chat.append(user("And?"))
    return chat


def summed_up(turns: int = 8, **options: Any) -> Any:
    """Return the same conversation with a summary over messages 3 to turns + 2."""
    chat = talked(turns, **options)
    rows = chat.history(3, turns + 2)
    chat.edit(Summarize(Span(rows[0].id, rows[-1].id), "Half of it was seen."))
    return chat


def erased_positions(chat: Any) -> list[int]:
    """Return the positions of messages without content."""
    return [row.position for row in chat.history() if not row.message.parts]


def test_visible_messages_wait_and_the_rest_is_erased() -> None:
    chat = summed_up()
    body = chat.body()
    preview = chat.privacy.apply_retention({"tool results": "2 turns"}, dry_run=True)
    assert [one.kind for one in preview.kinds] == ["tool_results"]
    assert (preview.messages, preview.waiting, preview.erased) == (4, (("shown", 2),), ())
    assert erased_positions(chat) == []
    report = chat.privacy.apply_retention({"tool results": "2 turns"}, who="ann")
    assert (report.kinds, report.waiting) == (preview.kinds, preview.waiting)
    assert [(one.handles, one.messages, one.edits, one.who, one.reason) for one in report.erased] == [
        ("m4 m6 m8 m10", 4, 0, "ann", "age")
    ]
    assert erased_positions(chat) == [4, 6, 8, 10]
    assert chat.body() == body
    assert (chat.journal.verify(), chat.privacy.residue()) == ([], (4, []))
    assert chat.privacy.erasures() == list(report.erased)


def test_repeated_retention_changes_nothing() -> None:
    chat = summed_up()
    chat.privacy.apply_retention({"all": "2 turns"})
    head = chat._agent.head
    assert chat.privacy.apply_retention({"all": "2 turns"}) == RetentionReport("c", (), (("shown", 5), ("system", 1)))
    assert chat._agent.head == head


def test_erased_message_is_gone_and_its_summary_stays() -> None:
    chat = summed_up()
    chat.privacy.apply_retention({"all": "2 turns"})
    with pytest.raises(NotExpandable, match="erased"):
        chat.expand("m4")
    assert "Half of it was seen." in texts(chat.prepare())
    chat.undo(1)
    assert "Look 1." not in texts(chat.prepare())
    assert refusals(chat) == []


def test_system_prompt_pins_and_last_input_wait() -> None:
    chat = talked(2)
    chat.pin("m3")
    chat.edit(Hide(Target(chat.history(5, 5)[0].id)))
    rule = "0 turns, even shown"
    report = chat.privacy.apply_retention({"all": rule})
    assert dict(report.waiting) == {"input": 1, "pinned": 1, "system": 1}
    assert erased_positions(chat) == [2, 4, 5, 6]
    assert dict(chat.privacy.apply_retention({"all": rule + ", even pinned"}).waiting) == {"input": 1, "system": 1}
    chat.privacy.apply_retention({"all": rule + ", even pinned, even system, even input"})
    assert erased_positions(chat) == [1, 2, 3, 4, 5, 6, 7]
    assert (chat.journal.verify(), chat.privacy.residue()) == ([], (7, []))


def test_shrunk_message_waits_unless_the_rule_says_even_shown() -> None:
    chat = talked(3)
    row = chat.history(4, 4)[0]
    chat.edit(Replace(Target(row.id, (0,)), (Text("[cleared, expand m4]"),)))
    assert chat.privacy.apply_retention({"tool results": "1 turn"}).waiting == (("short", 1), ("shown", 1))
    chat.privacy.apply_retention({"tool results": "1 turn, even short"})
    assert erased_positions(chat) == [4]
    assert texts(chat.prepare())[2:4] == ["Look 1.", "[erased]"]
    assert refusals(chat) == []
    assert chat.privacy.residue() == (1, [])


def test_shrunk_result_stays_when_its_hidden_call_is_erased() -> None:
    chat = talked(3)
    call, row = chat.history(3, 4)
    chat.edit(Replace(Target(row.id, (0,)), (Text("[cleared, expand m4]"),)), Hide(Target(call.id)))
    body = chat.body()
    chat.privacy.apply_retention({"all": "2 turns"})
    assert (erased_positions(chat), chat.body() == body, b"[cleared, expand m4]" in body) == ([3], True, True)
    assert chat.privacy.residue() == (1, [])


def test_message_with_a_visible_part_waits() -> None:
    chat = opened()
    chat.append([user("Look", Media("image/png", "base64", "aGk=")), assistant("Nice."), user("And?")])
    chat.edit(Replace(Target(chat.history(1, 1)[0].id, (1,)), (Text("[an image]"),)))
    assert chat.privacy.apply_retention({"all": "0 turns, even short"}).waiting == (("input", 1), ("shown", 2))


def test_rule_even_shown_erases_summaries_too() -> None:
    chat = summed_up()
    report = chat.privacy.apply_retention({"tool results": "6 turns, even shown"})
    assert ([one.handles for one in report.erased], erased_positions(chat)) == (["m4 m6"], [4, 6])
    assert "Half of it was seen." not in texts(chat.prepare())
    assert texts(chat.prepare())[2:5] == ["Look 1.", "[erased]", "Look 2."]
    assert (refusals(chat), chat.privacy.residue()) == ([], (2, []))


def test_stricter_rule_erases_a_summary_that_outlived_its_sources() -> None:
    chat = summed_up()
    chat.privacy.apply_retention({"tool results": "2 turns"})
    assert "Half of it was seen." in texts(chat.prepare())
    strict = {"tool results": ["2 turns", "5 turns, even shown"]}
    chat.privacy.apply_retention(strict)
    assert "Half of it was seen." not in texts(chat.prepare())
    assert [edit.text for record in chat.journal.records() for edit in record.edits if isinstance(edit, Summarize)] == [
        ERASED
    ]
    assert (chat.journal.verify(), chat.privacy.residue()[1]) == ([], [])


def test_later_summary_is_no_residue_and_is_erased_once_hidden() -> None:
    """The summary continues one that outlived its messages, or covers messages that were hidden."""
    chat = talked(12, window=2_000, summarizer="digest", policy="prune-and-compact")
    rows = chat.history(3, 10)
    chat.edit(Hide(Span(rows[0].id, rows[-1].id)))
    chat.privacy.apply_retention({"all": "2 turns"})
    assert erased_positions(chat)[:8] == [3, 4, 5, 6, 7, 8, 9, 10]
    for _ in range(2):
        for n in range(6):
            chat.record(assistant(f"More of {n}. " + "word " * 60))
            chat.append(user(f"And {n}?"))
        chat.compact()
        assert (chat.journal.verify(), chat.privacy.residue()[1]) == ([], [])
    chat.privacy.apply_retention({"all": "2 turns"})
    summaries_written = [
        edit for record in chat.journal.records() for edit in record.edits if isinstance(edit, Summarize)
    ]
    assert [(edit.text == ERASED, edit.outlives) for edit in summaries_written] == [(True, False), (False, True)]
    assert (chat.journal.verify(), chat.privacy.residue()[1]) == ([], [])


def test_rules_apply_to_one_tool_and_to_media() -> None:
    chat = summed_up()
    chat.privacy.apply_retention({"tool results:peek": "0 turns"})
    assert erased_positions(chat) == [6, 10]
    chat = opened()
    chat.append([user("Look", Media("image/png", "base64", "aGk=")), assistant("Nice."), user("And?")])
    chat.edit(Hide(Span(chat.history(1, 1)[0].id, chat.history(2, 2)[0].id)))
    report = chat.privacy.apply_retention({"media": "0 turns"})
    assert (report.kinds[0].kind, erased_positions(chat)) == ("media", [1])


def test_erased_input_still_protects_the_same_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a process that folds the history again would protect the input before it, and show that input next to
    the summary that covers it.
    """
    store = MemoryStore()
    chat = opened(store=store)
    image = user("second", Media("image/png", "base64", "aGk="))
    chat.append([system("You help."), user("first")])
    chat.record(assistant("one"))
    chat.append(image)
    chat.record(assistant("two"))
    rows = chat.history(2, 5)
    chat.edit(Summarize(Span(rows[0].id, rows[-1].id), "Two were asked."))
    chat.append(user("third"))
    chat.edit(Hide(Target(rows[2].id)))
    for n in range(7):
        chat.record(assistant(f"more {n}"))
        chat.append(user(f"and {n}?"))
    chat.privacy.apply_retention({"media": "6 turns"})
    assert erased_positions(chat) == [4]
    monkeypatch.setattr(store, "snapshot", lambda head: None)
    assert texts(opened(store=store).view) == texts(chat.view)
    assert "first" not in texts(chat.view)


def test_expanded_message_waits() -> None:
    chat = summed_up(expand=True)
    chat.expand("m4", where="tail")
    preview = chat.privacy.apply_retention({"tool results": "2 turns"})
    assert dict(preview.waiting)["copied"] == 1
    assert erased_positions(chat) == [6, 8, 10]
    assert chat.privacy.residue() == (3, [])


def test_visible_search_result_keeps_its_sources() -> None:
    chat = opened(expand=True)
    chat.append([system("You help."), user("The word is swordfish."), assistant("Fine."), user("Look it up.")])
    rows = chat.history()
    chat.edit(Hide(Span(rows[1].id, rows[2].id)))
    chat.record(assistant("", ToolCall("s1", "expand", '{"search":"swordfish"}')))
    chat.prepare()
    rows = chat.history()
    chat.edit(Summarize(Span(rows[4].id, rows[5].id), "It was looked up."))
    chat.expand("m6", where="tail")
    chat.record(assistant("Swordfish."))
    before = texts(chat.prepare())
    chat.privacy.apply_retention({"all": "1 turn"})
    assert (erased_positions(chat), texts(chat.prepare()) == before) == ([3, 5], True)


def test_runs_over_their_age_lose_their_texts() -> None:
    store = MemoryStore()
    chat = talked(1, store=store)
    chat._agent.keep_run(AgentRun("r1", "me", "c", "peel it", begun=1, ended=2))
    chat._agent.keep_run(AgentRun("r2", "me", "c", "peel it", begun=1))
    chat._agent.keep_run(AgentRun("r3", "me", "other", "peel it", begun=1, ended=2))
    assert chat.privacy.apply_retention({"runs": "1 millisecond"}, dry_run=True).runs == 1
    report = chat.privacy.apply_retention({"runs": "1 millisecond"})
    assert [(one.runs, one.handles) for one in report.erased] == [(1, "")]
    head = store.open("", "c")
    assert [run.task for run in store.runs(head)] == [ERASED, "peel it", "peel it"]
    assert chat.privacy.apply_retention({"runs": "1 millisecond"}) == RetentionReport("c")


# ---------------------------------------------------------------------------------------------------------------- forks


def test_message_visible_in_a_fork_waits() -> None:
    chat = talked()
    fork = chat.fork("fork")
    rows = chat.history(3, 10)
    chat.edit(Summarize(Span(rows[0].id, rows[-1].id), "Half of it was seen."))
    assert dict(chat.privacy.apply_retention({"tool results": "2 turns"}).waiting) == {"forked": 4, "shown": 2}
    fork.edit(Summarize(Span(rows[0].id, rows[3].id), "Some of it."))
    body = fork.body()
    chat.privacy.apply_retention({"tool results": "2 turns"})
    fork.refresh()
    assert (erased_positions(chat), erased_positions(fork), fork.body() == body) == ([4, 6], [4, 6], True)
    assert (fork.journal.verify(), fork.privacy.residue()) == ([], (2, []))


@pytest.mark.parametrize("ask", ['{"handle":"m4","lines":"1"}', '{"search":"seen 1"}'])
def test_message_expanded_in_a_fork_waits(ask: str) -> None:
    chat = summed_up(expand=True)
    fork = chat.fork("fork")
    fork.record(assistant("", ToolCall("e1", "expand", ask)))
    before = texts(fork.prepare())
    assert "seen 1: 1 1" in before[-1]
    assert dict(chat.privacy.apply_retention({"tool results": "2 turns"}).waiting)["forked"] >= 1
    fork.refresh()
    assert texts(fork.prepare()) == before
    assert 4 not in erased_positions(chat)


def test_fork_that_parted_earlier_keeps_nothing() -> None:
    chat = summed_up()
    fork = chat.fork("fork", at=2)
    chat.privacy.apply_retention({"all": "2 turns"})
    assert erased_positions(chat) == [3, 4, 5, 6, 7, 8, 9, 10]
    assert erased_positions(fork) == []


def test_retention_counts_turns_of_a_nested_fork_from_shared_ones() -> None:
    chat = summed_up()
    one = chat.fork("one", at=6)
    two = one.fork("two")
    assert dict(chat.privacy.apply_retention({"all": "2 turns"}).waiting)["forked"] == 4
    assert (erased_positions(chat), erased_positions(two)) == ([7, 8, 9, 10], [])


def test_idle_conversation_is_erased_but_for_shared_messages() -> None:
    store, now = MemoryStore(), [1]
    options: dict[str, Any] = {"store": store, "format": "openai", "policy": "off", "clock": lambda: now[0]}
    chat = open_conversation("old", **grouped(options))
    chat.append([system("You help."), user("Hello."), assistant("Yes?"), user("Nothing.")])
    chat._agent.keep_run(AgentRun("r1", "me", "old", "answer", begun=1, ended=2))
    fork = chat.fork("young", at=2)
    now[0] = 5 * DAY
    fork.append(assistant("What?"))
    now[0] = 8 * DAY
    rule = {"conversations": "7 days"}
    assert list(age_tenant(store, rule, clock=lambda: 6 * DAY)) == [RetentionReport("old"), RetentionReport("young")]
    report = dict(zip(("old", "young"), age_tenant(store, rule, clock=lambda: now[0]), strict=True))
    assert (report["old"].messages, report["old"].waiting, report["young"]) == (
        2,
        (("forked", 2),),
        RetentionReport("young"),
    )
    chat.refresh()
    assert (erased_positions(chat), [run.task for run in chat.journal.runs()]) == ([3, 4], [ERASED])
    now[0] = 20 * DAY
    list(age_tenant(store, rule, clock=lambda: now[0]))
    chat.refresh()
    assert (erased_positions(chat), erased_positions(fork)) == ([1, 2, 3, 4], [1, 2, 3])
    assert (chat.journal.verify(), chat.privacy.residue()) == ([], (4, []))


# -------------------------------------------------------------------------------------------------------- many, and one


def test_retention_covers_a_tenant_and_a_database() -> None:
    store = MemoryStore()
    for tenant, name in (("acme", "one"), ("acme", "two"), ("zeta", "one")):
        summed_up(name=name, store=store, tenant=tenant).close()
    store.open("acme", "empty")
    store.open("acme", "~importing one")
    rule = {"tool results": "2 turns"}
    dry = {one.conversation: one.messages for one in age_tenant(store, rule, "acme", dry_run=True)}
    assert dry == {"empty": 0, "one": 4, "two": 4}
    report = [(tenant, one.conversation, one.messages) for tenant, one in age_database(store, rule, who="ann")]
    assert report == [("acme", "empty", 0), ("acme", "one", 4), ("acme", "two", 4), ("zeta", "one", 4)]
    assert age_conversation(store, "one", rule, tenant="acme") == RetentionReport("one", (), (("shown", 2),))


def test_retention_does_not_open_conversations_that_are_too_young() -> None:
    class Asked(MemoryStore):
        looks = 0

        def runs(self, head: Head) -> Any:
            self.looks += 1
            return super().runs(head)

    store = Asked()
    summed_up(store=store).close()
    store.looks = 0
    assert age_conversation(store, "c", {"all": "20 turns", "runs": "1 day"}, clock=lambda: DAY) == RetentionReport("c")
    assert store.looks == 0
    age_conversation(store, "c", {"all": "20 turns", "runs": "1 day"}, clock=lambda: DAY + 1)
    assert store.looks > 0


def test_async_conversation_applies_the_same_retention() -> None:
    async def main() -> tuple[RetentionReport, list[int], bool]:
        ticks = iter(range(1, 10**9))
        store = MemoryStore()
        summed_up(store=store).close()
        chat = await open_async_conversation(
            "c", store=store, format="openai", policy="none", window=100_000, options=Options(clock=lambda: next(ticks))
        )
        body = await chat.body()
        report = await chat.privacy.apply_retention({"tool results": "2 turns"})
        rows = await chat.history()
        return report, [row.position for row in rows if not row.message.parts], await chat.body() == body

    report, positions, is_same = asyncio.run(main())
    assert (report.messages, positions, is_same) == (4, [4, 6, 8, 10], True)


def test_retention_works_in_pieces_between_other_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.conversation.retention._BATCH", 3)

    class Talking(MemoryStore):
        def erase(self, head: Head, spans: Any, **options: Any) -> Any:
            report = super().erase(head, spans, **options)
            other.append(user("meanwhile"))
            return report

    store = Talking()
    chat, other = summed_up(store=store), opened(store=store)
    report = chat.privacy.apply_retention({"all": "2 turns"})
    assert [one.handles for one in report.erased] == ["m3-m5", "m6-m8", "m9-m10"]
    assert [row.message.text for row in chat.history(20)] == ["meanwhile"] * 3


@pytest.mark.parametrize("where", ["view", "tail"])
def test_message_expanded_during_retention_is_kept(where: Any) -> None:
    store = Busy(lambda: other.expand("m4", where=where))
    chat, other = summed_up(store=store), opened(store=store)
    assert chat.privacy.apply_retention({"tool results": "2 turns"}).messages == 3
    assert erased_positions(chat) == [6, 8, 10]
    assert "seen 1" in "".join(texts(chat.prepare()))


@pytest.mark.parametrize("even", ["", ", even shown"])
def test_fork_made_during_retention_keeps_what_it_shows(even: str) -> None:
    """The fork starts so early that all its messages are new, and before the summary that covers them in the parent."""

    forks = list[Any]()
    store = Busy(lambda: forks.append(other.fork("fork", at=4)))
    chat, other = summed_up(store=store), opened(store=store)
    chat.privacy.apply_retention({"all": "2 turns" + even})
    assert (erased_positions(forks[0]), forks[0].privacy.residue()) == ([], (0, []))
    assert erased_positions(chat)[:2] == [5, 6]


@pytest.mark.parametrize("name", ["c", "fork"])
def test_message_expanded_meanwhile_is_kept_from_even_shown(name: str) -> None:
    store = Busy(lambda: opened(name, store=store).expand("m4", where="tail"))
    chat = summed_up(store=store)
    chat.fork("fork")
    chat.privacy.apply_retention({"tool results": "2 turns, even shown"})
    assert 4 not in erased_positions(chat)


def test_rule_for_visible_messages_works_in_a_busy_conversation() -> None:
    class Talking(MemoryStore):
        def erase(self, head: Head, spans: Any, **options: Any) -> Any:
            opened(store=self).append(user("And now?"))
            return super().erase(head, spans, **options)

    chat = summed_up(store=Talking())
    assert len(chat.privacy.apply_retention({"tool results": "2 turns, even shown"}).erased) == 1


def test_unchanged_fork_is_not_opened_again() -> None:
    class Counted(Busy):
        def open(self, tenant: str, name: str, *, create: bool = True) -> Head:
            asked.append(name)
            return super().open(tenant, name, create=create)

    asked = list[str]()
    store = Counted(lambda: opened("busy", store=store).pin("m4"))
    chat = summed_up(store=store)
    for name in ("quiet", "busy"):
        chat.fork(name)
    asked.clear()
    chat.privacy.apply_retention({"tool results": "2 turns"})
    assert erased_positions(chat)
    assert (asked.count("quiet"), asked.count("busy")) == (1, 3)


def test_busy_fork_does_not_block_retention_of_the_others() -> None:
    class Pinning(MemoryStore):
        def erase(self, head: Head, spans: Any, **options: Any) -> Any:
            if head.name == "a":
                chat = opened("a", store=self, tenant=head.tenant)
                chat.pin("m19") or chat.unpin("m19")
            return super().erase(head, spans, **options)

    store = Pinning()
    for tenant, name in (("acme", "a"), ("acme", "b"), ("zeta", "a2")):
        summed_up(name=name, store=store, tenant=tenant).close()
    report = []

    def let_go() -> None:
        for tenant, one in age_database(store, {"tool results": "2 turns"}):
            report.append((tenant, one.conversation, one.messages))

    with pytest.raises(ConflictError, match="'a'"):
        let_go()
    assert report == [("acme", "b", 4), ("zeta", "a2", 4)]


def test_old_runs_lose_their_texts_without_erased_messages() -> None:
    now = [1]
    chat = open_conversation(
        "c", store=MemoryStore(), format="openai", policy="off", options=Options(clock=lambda: now[0])
    )
    chat.append([system("You help."), user("Hello.")])
    chat._agent.keep_run(AgentRun("r1", "me", "c", "answer", begun=1, ended=2))
    fork = chat.fork("fork")
    now[0] = 3 * DAY
    fork.append(user("Still here."))
    report = chat.privacy.apply_retention({"conversations": "1 day", "runs": "1 day"})
    assert (report.messages, report.runs, erased_positions(chat)) == (0, 1, [])
    assert [run.task for run in chat.journal.runs()] == [ERASED]


def test_new_message_in_a_fork_saves_the_conversation() -> None:
    def come_back() -> None:
        open_conversation(
            "fork", store=store, format="openai", window=100_000, options=Options(clock=lambda: 3 * DAY)
        ).append(user("I am back."))

    store, now = Busy(come_back), [1]
    chat = open_conversation("c", store=store, format="openai", policy="off", options=Options(clock=lambda: now[0]))
    chat.append([system("You help."), user("Hello."), assistant("Yes?"), user("Nothing.")])
    fork = chat.fork("fork", at=2)
    now[0] = 3 * DAY
    chat.privacy.apply_retention({"conversations": "1 day"})
    assert (erased_positions(chat), erased_positions(fork)) == ([3, 4], [])


def test_message_expanded_between_two_pieces_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.conversation.retention._BATCH", 1)

    def show_again() -> None:
        other.refresh()
        other.expand("m10")

    store = Busy(behind=show_again)
    chat, other = summed_up(store=store), opened(store=store)
    report = chat.privacy.apply_retention({"tool results": "2 turns"})
    assert ([one.handles for one in report.erased], erased_positions(chat)) == (["m4", "m6", "m8"], [4, 6, 8])


def test_new_message_saves_a_conversation_from_whole_erasure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.conversation.retention._ROWS", 5)

    class Returning(MemoryStore):
        is_done = False

        def stamps(self, head: Head, first: int, last: int) -> Any:
            if not self.is_done and first == 6:
                self.is_done = True
                open_conversation(
                    "c", store=self, format="openai", window=100_000, options=Options(clock=lambda: DAY)
                ).append(user("I am back."))
            return super().stamps(head, first, last)

    store = Returning()
    talked(store=store)
    report = age_conversation(store, "c", {"conversations": "12 hours"}, clock=lambda: DAY)
    assert (report, store.is_done) == (RetentionReport("c"), True)


def test_endless_changes_by_others_raise_conflict_error() -> None:
    class Pinning(MemoryStore):
        def erase(self, head: Head, spans: Any, **options: Any) -> Any:
            other.pin("m19") or other.unpin("m19")
            return super().erase(head, spans, **options)

    store = Pinning()
    chat, other = summed_up(store=store), opened(store=store)
    with pytest.raises(ConflictError, match="Other writers kept changing 'c'"):
        chat.privacy.apply_retention({"tool results": "2 turns"})
    assert erased_positions(chat) == []


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
def test_retention_after_any_failure_ends_the_same(after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.conversation.retention._BATCH", 1)
    rules = {"tool results": "2 turns", "assistant messages": "3 turns, even shown", "runs": "1 millisecond"}
    for n in range(1, 200):
        countdown, inner = Countdown(after=after), MemoryStore()
        chat = summed_up(4, store=failing_store(inner, countdown))
        chat._agent.keep_run(AgentRun("r1", "me", "c", "peel it", begun=1, ended=2))
        countdown.start(n)
        for _ in range(2):
            try:
                chat.privacy.apply_retention(rules)
                break
            except StoreError:
                pass
        is_last = not countdown.is_used_up
        countdown.start(0)
        assert erased_positions(chat) == [3, 4, 6]
        assert (chat.journal.verify(), chat.privacy.residue(), refusals(chat)) == ([], (3, []), [])
        assert [run.task for run in inner.runs(inner.open("", "c"))] == [ERASED]
        if is_last:
            break
    assert n > 15


def test_resume_after_retention_uses_the_snapshot() -> None:
    class Counting(MemoryStore):
        read = 0

        def stamps(self, head: Head, first: int, last: int) -> Any:
            before, preview = self.read, super().stamps(head, first, last)
            self.read = before
            return preview

        def messages(self, head: Head, first: int, last: int) -> Any:
            preview = super().messages(head, first, last)
            self.read += len(preview)
            return preview

    store = Counting()
    chat = summed_up(300, store=store)
    store.read = 0
    report = chat.privacy.apply_retention({"tool results": "2 turns"})
    body = chat.body()
    assert (report.messages, store.read) == (150, 0)
    again = opened(store=store)
    assert (again.body() == body, store.read < 10) == (True, True)


ANY = st.integers(0, 40)


@settings(max_examples=settings.default.max_examples)
@given(histories(), st.data(), ANY, st.sampled_from(["", ", even short", ", even shown", ", even pinned, even system"]))
def test_view_is_legal_and_unchanged_after_any_retention(
    history: list[Message], data: st.DataObject, turns: int, even: str
) -> None:
    chat = opened()
    for message in history:
        try:
            chat.append(message)
        except Exception:
            continue
    for edit in data.draw(edits([row.id for row in chat.history()])):
        try:
            chat.edit(edit)
        except Exception:
            continue
    before = [entry.message for entry in chat.view]
    chat.privacy.apply_retention({"all": f"{turns % 4} turns{even}"})
    view = chat.view
    if "short" not in even and "shown" not in even:
        assert [entry.message for entry in view] == before
    if any(entry.message.role != "system" for entry in view):  # Else there is nothing to send.
        assert check(view, chat._agent.profile) == []
    assert (chat.journal.verify(), chat.privacy.residue()[1]) == ([], [])
    again = opened(store=chat._agent.store)
    assert [entry.message for entry in again.view] == [entry.message for entry in view]


@pytest.mark.parametrize("policy", ["balanced", "prune-and-compact", "expire"])
def test_retention_changes_no_view_under_any_preset(policy: str) -> None:
    def play(age: Callable[[Any], object]) -> list[bytes]:
        chat = opened(policy=policy, window=6_000, summarizer="digest")
        sent = []
        for n, message in enumerate(agent_run(40, seed=7, result_chars=(400, 2500))):
            if message.role == "assistant":
                sent.append(chat.body())
                chat.record(message, usage=Usage(input=100))
            else:
                chat.append(message)
            if n % 10 == 9:
                age(chat)
        assert (chat.journal.verify(), chat.privacy.residue()[1]) == ([], [])
        return sent

    assert play(lambda chat: chat.privacy.apply_retention({"all": "5 turns"})) == play(lambda chat: None)


def test_retention_reports_stored_bytes(tmp_path: Any) -> None:
    with SqliteStore(tmp_path / "chat.db") as store:
        chat = summed_up(store=store)
        head = store.open("", "c")
        sizes = [store.stamps(head, n, n)[0].size for n in (4, 6, 8, 10)]
        preview = chat.privacy.apply_retention([Age("tool_results", 2)], dry_run=True)
        assert preview.kinds == (RetentionCount("tool_results", 4, sum(sizes)),)
