"""The figures of a dry run: sizes, the cached beginning, money, and the places that change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import Conversation, open_conversation
from foveate.conversation.past import Past, Walk
from foveate.core.messages import Text
from foveate.core.planner import Plan, make_plan
from foveate.edits import Hide, Replace, Restore, Span, Summarize, Target
from foveate.inspector.changes.dry_run import DryRun, cached_tokens, measure_plan
from foveate.inspector.changes.planning import dry_run, read_settings
from foveate.inspector.sources import open_stored
from foveate.open import Options
from foveate.stores.memory import MemoryStore
from foveate.testing import agent_run, answer, call, say, text_of, user

MINUTE = 60_000
RATES = (3e-6, 3e-7, 3.75e-6, 15e-6)
"""US dollars for a token of input, read, written and output: ten to one, and a quarter more for writing."""


class Clock:
    def __init__(self) -> None:
        self.now = 1_760_000_000_000

    def __call__(self) -> int:
        return self.now


def conversation(policy: Any, clock: Clock | None = None) -> Conversation:
    """Return a conversation of which one request was answered, and then much came."""
    chat = open_conversation("a", window=60_000, policy="none", options=Options(clock=clock or Clock()))
    chat.append(user("Read it all."))
    for number in range(6):
        chat.append([call(f"c{number}"), answer(f"c{number}", text_of(500, number))])
    chat.append(user("Now?"))
    chat.prepare()
    chat.record(say("So it is."))
    chat.append(user("And then?"))
    return chat


def measured(chat: Conversation, *edits: Any, policy: Any = None, **options: Any) -> DryRun:
    """Return the effect of a policy, or of these edits as a policy's."""
    session = chat._session
    sent = chat.as_of(session.state.projection.facts.turn).entries
    plan = plan_of(chat, policy or (lambda view: edits))
    return measure_plan(plan, sent, first=session.head.number + 1, **options)


def plan_of(chat: Conversation, policy: Any) -> Plan:

    state = chat._session.state
    return make_plan(state.projection, state.frame, [policy])


def id_of(chat: Conversation, position: int) -> str:
    return chat.history(position, position)[0].id


def test_a_stand_in_between_messages_is_no_change():
    """It stood in the table as m0, and two of them counted as one."""
    chat = open_conversation("a", format="anthropic", window=60_000, policy="none")
    chat.append([user("Read it."), say("It is read."), user("Now?")])
    run = measured(chat, Hide(Target(id_of(chat, 1))))
    assert run.after.tokens > 0
    assert [change.handle for change in run.changes] == ["m1"]


def test_plan_without_edits_changes_nothing():
    run = measured(conversation("none"))
    assert not run
    assert run.before == run.after
    assert (run.changes, run.rewritten, run.pays_after) == ((), 0, 0)


def test_edit_at_the_end_keeps_the_cached_beginning():
    chat = conversation("none")
    run = measured(chat, Replace(Target(id_of(chat, 15)), (Text("short"),)))
    assert run.before.cached == run.after.cached
    assert run.rewritten == 0


def test_edit_at_the_beginning_rewrites_what_follows_it():
    chat = conversation("none")
    sizes = [entry.tokens for entry in chat.view]
    edit = Replace(Target(id_of(chat, 3), (0,)), (Text("short"),), policy="mine", reason="it is old")
    run = measured(chat, edit, rates=RATES)
    (change,) = run.changes
    assert run.before.cached == sum(sizes[:14])  # The first request, without the reply to it.
    assert run.after.cached == sum(sizes[:2])
    assert run.rewritten == sum(sizes[3:14]) + change.tokens_after
    assert (change.handle, change.was, change.becomes, change.tokens_before) == ("m3", "whole", "shrunk", sizes[2])
    assert (change.policies, change.reasons) == (("mine",), ("it is old",))
    saved = run.before.tokens - run.after.tokens
    assert run.saved_later == pytest.approx(0.1 * saved)
    assert run.dollars_later == pytest.approx(RATES[1] * saved)
    extra = run.after.cost - run.before.cost
    assert extra > 0
    assert run.pays_after == -(-extra // run.saved_later)
    assert run.after.dollars == pytest.approx(RATES[1] * run.after.cached + RATES[2] * run.after.written)


def test_cold_cache_rewrites_nothing():
    clock = Clock()
    chat = conversation("none", clock)
    clock.now += 6 * MINUTE
    run = measured(chat, Replace(Target(id_of(chat, 3), (0,)), (Text("short"),)))
    assert run.is_cold
    assert (run.before.cached, run.after.cached, run.rewritten, run.pays_after) == (0, 0, 0, 0)


def test_summary_counts_the_messages_that_it_replaces():
    chat = conversation("none")
    edit = Summarize(Span(id_of(chat, 2), id_of(chat, 13)), "They read six files.", policy="compact")
    (change,) = measured(chat, edit).changes
    assert (change.handle, change.was, change.becomes) == ("m2-m13", "12 messages", "summary")
    assert change.before is None
    assert change.after is not None
    assert "six files" in change.after.text


def test_hidden_messages_become_nothing():
    chat = conversation("none")
    edit = Hide(Span(id_of(chat, 2), id_of(chat, 3)), policy="mine", reason="not needed")
    changes = measured(chat, edit).changes
    assert [(one.handle, one.becomes, one.after, one.policies) for one in changes] == [
        ("m2", "nothing", None, ("mine",)),
        ("m3", "nothing", None, ("mine",)),
    ]


def test_expansion_is_a_change_that_costs():
    chat = conversation("none")
    chat.edit(Replace(Target(id_of(chat, 3), (0,)), (Text("short"),)))
    chat.prepare()
    chat.record(say("Yes."))
    run = measured(chat, Restore((Target(id_of(chat, 3)),)))
    (change,) = run.changes
    assert (change.was, change.becomes) == ("shrunk", "whole")
    assert change.tokens_after > change.tokens_before
    assert run.saved_later < 0
    assert run.pays_after is None


def test_first_request_has_no_cached_beginning():
    chat = open_conversation("a", window=60_000, policy="none")
    chat.append(user("Hi"))
    assert cached_tokens(chat.view, ()) == 0


@given(st.integers(0, 40), st.sampled_from(["keep-last-2", "prune", "balanced", "frugal"]), st.integers(3_000, 20_000))
def test_changes_account_for_all_tokens(seed: int, policy: str, window: int):
    chat = open_conversation("a", window=window, policy=policy)
    chat.append(agent_run(6, seed, result_chars=(500, 4_000))[:-1])
    plan = chat.plan()
    run = measure_plan(plan, (), first=1)
    assert sum(one.tokens_after - one.tokens_before for one in run.changes) == run.after.tokens - run.before.tokens
    assert [one.position for one in run.changes] == sorted(one.position for one in run.changes)
    assert bool(run.changes) == bool(plan.edits)


def test_second_dry_run_does_not_read_the_past_again(monkeypatch):
    """Each one read the whole history: 30 seconds for 100,000 messages."""
    store = MemoryStore()
    with open_conversation("run", store=store, window=60_000, policy="none") as chat:
        for number in range(450):
            chat.append(user(f"Question {number}"))
            chat.prepare()
            chat.record(say(f"Answer {number}"))
        chat.pin("m2")  # Without a later edit, the newest request is the beginning of the view.
    chat = open_stored(store, store.open("", "run", create=False))
    choice = read_settings(chat).chosen("none", "", "60000", "")
    read = []
    fold = Walk._fold
    monkeypatch.setattr(Walk, "_fold", lambda walk, rows, records: read.append(len(rows)) or fold(walk, rows, records))
    first, _ = dry_run(chat, choice)
    assert sum(read) >= 899
    read.clear()
    assert dry_run(chat, choice)[0] == first
    assert sum(read) < 500
    monkeypatch.setattr(Past, "is_near", lambda past, turn: False)
    monkeypatch.setattr(chat._session.past, "view_at", None)  # It would hold the lock of the pages for long.
    assert dry_run(chat, choice)[0] == first
