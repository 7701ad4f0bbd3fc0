"""Replay of one recording: every figure of a small one by hand, and properties of any."""

from __future__ import annotations

import json
from itertools import accumulate

import pytest
from msgspec.structs import asdict, replace

from foveate.core.call_context import Prices
from foveate.core.messages import Message, system, user
from foveate.core.sizes import tokens_of
from foveate.edits import Span, Summarize
from foveate.errors import DoesNotFit
from foveate.policies import compact_on_overflow, filter_tool_results, prune_tool_outputs
from foveate.replay.recordings.recording import RecordedMessage, Recording
from foveate.replay.result import CallFigures, EditFigures
from foveate.replay.run import policy_name, replay
from foveate.stores.memory import MemoryStore
from foveate.summarizers import NeedsSummary, SummaryRequest
from foveate.testing.builders import agent_run, answer, call, chat, say, text_of

FIRST = "src/app.py " + "x" * 385  # 396 characters, 99 tokens
SMALL = chat(
    system("Be brief"),  # 2 + 4 = 6 tokens
    user("Go on!!!"),  # 6
    call("a", "read", n=1),  # `read {"n":1}`: 3 + 4 = 7
    answer("a", FIRST),  # 103
    call("b", "read", n=2),  # 7
    answer("b", "y" * 396),  # 103
    call("c", "open", p="src/app.py"),  # `open {"p":"src/app.py"}`: 6 + 4 = 10
    answer("c", "done"),  # 5
    say("Good"),  # 5
)
STUB = "[Omitted]"  # 3 + 4 = 7 tokens


def without_times(calls) -> list[CallFigures]:
    return [replace(one, milliseconds=0.0, tokens_unmanaged=0) for one in calls]


def test_a_small_replay_has_every_figure():
    replayed = replay(SMALL, policy="none", transcript="small", prices=Prices(read=0.5, write=2.0))
    figures = {"system": 6, "user": 6}
    assert without_times(replayed.calls) == [
        CallFigures(1, 3, tokens=12, cached=0, cost=24.0, cost_unmanaged=24.0, **figures),
        CallFigures(
            2, 5, tokens=122, cached=12, cost=226.0, cost_unmanaged=226.0, assistant=7, results_full=103, **figures
        ),
        CallFigures(
            3, 7, tokens=232, cached=122, cost=281.0, cost_unmanaged=281.0, assistant=14, results_full=206, **figures
        ),
        CallFigures(
            4, 9, tokens=247, cached=232, cost=146.0, cost_unmanaged=146.0, assistant=24, results_full=211, **figures
        ),
    ]
    assert [call.tokens_unmanaged for call in replayed.calls] == [12, 122, 232, 247]
    row = asdict(replayed.row)
    assert row.pop("ms_per_turn_p99") >= row.pop("ms_per_turn_p50") > 0
    assert row == {
        "transcript": "small",
        "policy": "none",
        "messages": 9,
        "calls": 4,
        "input_tokens": 613,
        "peak_tokens": 247,
        "cost": 677.0,
        "cost_unmanaged": 677.0,
        "cost_ratio": 1.0,
        "cost_all_in": 1.0,
        "expansions": 0,
        "edits": 0,
        "prefix_rewrites": 0,
        "references": 1,
        "recall_visible": 1.0,
        "said_references": 0,
        "said_visible": None,
        "quoted_lines": 0,
        "quoted_visible": None,
        "recall_reachable": 1.0,
        "illegal_views": 0,
        "lost_messages": 0,
        "model_calls": 0,
        "over_budget": 0,
        "window": 200_000,
        "provider": "openai",
        "model": "",
        "money": None,
        "money_unmanaged": None,
        "kept_apart": {},
        "compactions": 0,
        "cost_recorded": None,
        "money_recorded": None,
        "began": None,
        "ended": None,
    }


def test_hidden_content_is_missed_and_fetched_when_used():
    policy = filter_tool_results(keep=1, placeholder=STUB)
    replayed = replay(SMALL, policy=policy, prices=Prices(read=0.5, write=2.0))
    third, fourth = without_times(replayed.calls)[2:]
    assert [call.tokens_unmanaged for call in replayed.calls] == [12, 122, 232, 247]
    figures = {"system": 6, "user": 6}
    # The first result became a stub of 7 tokens, so the cache holds only the 19 before it.
    assert third == CallFigures(
        3,
        7,
        tokens=136,
        cached=19,
        cost=0.5 * 19 + 2 * 117,
        cost_unmanaged=281.0,
        assistant=14,
        results_full=103,
        placeholders=7,
        misses=1,
        **figures,
    )
    # Now the second result: the view begins with 33 tokens as before.
    assert fourth == CallFigures(
        4,
        9,
        tokens=55,
        cached=33,
        cost=0.5 * 33 + 2 * 22,
        cost_unmanaged=146.0,
        assistant=24,
        results_full=5,
        placeholders=14,
        **figures,
    )
    assert replayed.edits == (
        EditFigures(3, 1, tokens_before=232, tokens_after=136, first_position=4, policies="keep-last-1"),
        EditFigures(4, 1, tokens_before=151, tokens_after=55, first_position=6, policies="keep-last-1"),
    )
    row = replayed.row
    assert (row.edits, row.prefix_rewrites, row.expansions) == (2, 2, 1)
    assert (row.recall_visible, row.recall_reachable) == (0.0, 0.0)
    # No handle leads to it, so two requests read the view of 136 again. The original of 103 is written, and once more
    # with the next request, after a rewritten prefix.
    mending = 2 * 0.5 * 136 + 2 * 103 + 2 * 103
    assert row.cost_all_in == pytest.approx((row.cost + mending) / 677)


def test_a_handle_in_the_view_saves_a_request():
    replayed = replay(SMALL, policy="keep-last-1", prices=Prices(read=0.5, write=2.0))
    row, third = replayed.row, replayed.calls[2]
    assert (row.recall_visible, row.recall_reachable, row.expansions) == (0.0, 1.0, 1)
    assert row.cost_all_in == pytest.approx((row.cost + 0.5 * third.tokens + 2 * 103 + 2 * 103) / 677)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("policy", ["none", "keep-last-3", "prune"])
def test_no_decision_depends_on_later_messages(policy, provider):
    run = agent_run(30, seed=3)
    whole = without_times(replay(run, policy=policy, provider=provider, window=24_000).calls)
    for length in (len(run) // 3, len(run) // 2):
        part = without_times(replay(run[:length], policy=policy, provider=provider, window=24_000).calls)
        assert part == whole[: len(part)]
    assert len(whole) == 30


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_the_budget_is_kept_at_every_call_and_nothing_is_lost(provider):
    run = agent_run(60, seed=5)
    row = replay(run, policy="none", provider=provider, window=16_000).row
    assert row.peak_tokens <= 16_000 - 1_600
    assert (row.over_budget, row.lost_messages, row.messages) == (0, 0, len(run))
    assert row.edits > 0


def test_without_management_calls_over_the_budget_are_counted():
    row = replay(agent_run(60, seed=5), policy="off", window=16_000).row
    assert row.over_budget > 0
    assert row.cost_ratio == pytest.approx(1.0)


def test_tokens_by_kind_add_up():
    replayed = replay(agent_run(40, seed=7), policy="prune", window=16_000)
    parts = ("system", "user", "assistant", "results_full", "results_shrunk", "placeholders", "summaries")
    assert [sum(getattr(one, part) for part in parts) for one in replayed.calls] == [
        one.tokens for one in replayed.calls
    ]


def test_every_answer_to_a_message_has_a_call():
    assert replay([say("Hello."), user("Hi."), say("How are you?"), say("Well?")]).row.calls == 2
    assert replay([system("Be brief."), say("Hello."), user("Hi."), say("Yes?")]).row.calls == 1
    assert replay([user(" "), say("Hello."), user("Hi."), say("Yes?")]).row.calls == 1


def test_a_recording_without_an_answer_has_no_cost():
    row = replay([user("Hi.")]).row
    assert (row.calls, row.cost, row.cost_ratio, row.cost_all_in, row.peak_tokens) == (0, 0.0, 1.0, 1.0, 0)


def test_the_second_checker_sees_every_request():
    seen = []

    def check(provider, body):
        seen.append((provider, [message["role"] for message in json.loads(body)["messages"]]))
        return ["too short", "too dull"] if len(seen) % 2 else []

    replayed = replay(SMALL, policy="none", check=check)
    beginning = ["system", "user"]
    assert seen == [
        ("openai", beginning + pairs)
        for pairs in ([], ["assistant", "tool"], ["assistant", "tool"] * 2, ["assistant", "tool"] * 3)
    ]
    assert replayed.row.illegal_views == 2
    assert replayed.refusals == ("call 1: too short", "call 1: too dull", "call 3: too short", "call 3: too dull")


class Forgetful(MemoryStore):
    """Returns a wrong message when the whole history is read."""

    def messages(self, head, first, last):
        rows = super().messages(head, first, last)
        return [replace(row, body=rows[0].body) if row.position == 4 and len(rows) > 4 else row for row in rows]


def test_a_message_that_comes_back_changed_is_lost():
    assert replay(SMALL, policy="none", store=Forgetful()).row.lost_messages == 1


def test_the_clock_is_that_of_the_recording():
    idle = []

    def watch(view):
        idle.append((view.call.now, view.call.idle))
        return ()

    times = [1_000, 5_000, 65_000, 66_000, None]
    messages = [user("a"), say("b"), user("c"), say("d"), user("e")]
    recorded = tuple(RecordedMessage(message, 1, time) for message, time in zip(messages, times, strict=True))
    replay(Recording("talk.jsonl", "chat-completions", recorded), policy=watch)
    # The view is read before each call and after each answer; the call is at the time of the last message.
    assert idle[0] == (1_000, None)
    assert (65_000, 64.0) in idle


def with_pauses(messages: list[Message], every: int) -> Recording:
    """Return a recording of one message a second, with ten minutes before each `every`-th one."""
    times = accumulate(600_000 if place % every == 0 else 1_000 for place in range(1, len(messages) + 1))
    recorded = tuple(RecordedMessage(message, 1, time) for message, time in zip(messages, times, strict=True))
    return Recording("run.jsonl", "chat-completions", recorded)


@pytest.mark.parametrize("policy", ["off", "balanced"])
def test_after_a_pause_nothing_is_read_from_the_cache(policy):
    """Policies count on it: edits that wait are made when the cache is cold, since they cost nothing then."""
    replayed = replay(with_pauses(list(agent_run(60, seed=3)), every=10), policy=policy)
    cold = [call for call in replayed.calls if not call.cached]
    assert 5 < len(cold) < len(replayed.calls) / 2
    assert all(call.cost == call.tokens * 1.25 for call in cold)
    assert all(call.cost_unmanaged == call.tokens_unmanaged * 1.25 for call in cold)
    assert replayed.row.edits == 0 or replayed.row.cost_ratio < 1


def test_the_row_has_the_recordings_own_facts():
    recording = Recording(
        "logs/talk.jsonl", "codex", (RecordedMessage(user("a"), 1),), model="no-such-model", notes={"other lines": 3}
    )
    row = replay(recording).row
    assert (row.transcript, row.model, row.kept_apart, row.money) == ("talk", "no-such-model", {"other lines": 3}, None)


def test_a_second_replay_into_the_same_store_keeps_the_first():
    store = MemoryStore()
    for _ in range(2):
        replay(SMALL, policy="none", transcript="small", store=store)
    assert store.names("") == ["small / none", "small / none (2)"]


def test_a_request_that_cannot_fit_is_an_error():
    with pytest.raises(DoesNotFit):
        replay([system(text_of(3_000)), user("Hi."), say("Yes?")], window=2_000)


def test_custom_policies_are_named_by_their_functions():
    def mine(view):
        return ()

    assert [policy_name("prune"), policy_name(mine), policy_name([mine, prune_tool_outputs()])] == [
        "prune",
        "mine",
        "mine+prune",
    ]


def test_summaries_are_billed_as_if_a_model_had_written_them():
    """The policy requests one summary of the first messages. Its input is written, its output costs five times
    as much.
    """
    asked = []

    def sums(view):
        if len(view) < 6 or any(entry.span for entry in view):
            return
        gone = view.entries[1:4]
        request = SummaryRequest("sums", tuple(entry.message for entry in gone), 400, "so far")
        span = Span(gone[0].id, gone[-1].id)
        yield NeedsSummary(request, lambda answer: [Summarize(span, answer.text, "sums")])

    def summarizer(request):
        asked.append(request)
        return "s" * 40  # 10 tokens

    prices = Prices(read=0.5, write=2.0, output=5.0)
    with_summary = replay(SMALL, policy=(sums,), prices=prices, summarizer=summarizer)
    free = replay(SMALL, policy=(sums,), prices=replace(prices, output=0.0), summarizer=summarizer)
    (first, second) = asked
    assert first == second
    assert (with_summary.row.model_calls, with_summary.row.illegal_views) == (1, 0)
    read = sum(tokens_of(message) for message in first.messages) + 2
    assert with_summary.row.cost - free.row.cost == 5.0 * 10
    dearest = max(with_summary.calls, key=lambda one: one.cost)
    assert dearest.cost > 2.0 * read


def test_only_policies_that_require_summaries_get_a_summarizer():
    run = agent_run(40, seed=5)
    must, may = (compact_on_overflow(keep_recent=0.25, optional=optional) for optional in (False, True))
    rows = [replay(run, policy=(policy,), window=8_000).row for policy in (must, may)]
    assert rows[0].model_calls > 0
    assert rows[1].model_calls == 0
    assert [row.over_budget for row in rows] == [0, 0]
