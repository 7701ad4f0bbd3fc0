"""Spending: the cost of a session by kind of content and by result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.call_context import Prices
from foveate.core.messages import Message, Text, ToolCall, ToolResult, system, user
from foveate.core.stamps import Stamp
from foveate.inspector.views.spending import Ledger, main_argument, spending_of_messages
from foveate.open import Options, open_conversation
from foveate.replay.measure import DEFAULT_PRICES, Meter, UnmanagedRequests
from foveate.replay.run import replay
from foveate.replay.summaries import ImmediateCall
from foveate.testing import agent_run

PRICES = Prices(read=0.1, write=1.25)


def call(id: str, tool: str, arguments: str) -> Message:
    return Message("assistant", (ToolCall(id, tool, arguments),))


def answer(id: str, text: str) -> Message:
    return Message("tool", (ToolResult(id, (Text(text),)),))


READ = '{"file_path": "src/app.py"}'
SESSION = [
    system("You help."),
    user("Fix the bug."),
    call("a", "read_file", READ),
    answer("a", "x" * 4_000),
    call("b", "bash", '{"command": "pytest -q"}'),
    answer("b", "y" * 400),
    call("c", "read_file", READ),
    answer("c", "x" * 4_000),
    Message("assistant", (Text("Done."),)),
]


def test_result_costs_one_write_and_a_read_in_each_later_call():
    spending = spending_of_messages(SESSION, prices=PRICES)
    first = spending.results[0]
    assert (first.position, first.tool, first.argument) == (4, "read_file", "src/app.py")
    assert (first.size, first.calls, first.whole, first.tokens) == (1_004, 3, 3, 3_012)
    assert first.cost == pytest.approx(1_004 * (1.25 + 2 * 0.1))


def test_result_that_was_read_again_is_superseded():
    """The copy counts as wasted from the first call that sees the newer one."""
    spending = spending_of_messages(SESSION, prices=PRICES)
    (old,) = spending.superseded
    assert (old.position, old.superseded_by, old.reason) == (4, 8, "read again")
    assert spending.superseded_results == 1
    assert spending.wasted == old.wasted == pytest.approx(1_004 * 0.1)


def test_call_after_a_pause_writes_again_what_the_call_before_sent():
    times = [1_000] * 5 + [601_000] * 4
    calm = spending_of_messages(SESSION, prices=PRICES, times=times[:5])
    spending = spending_of_messages(SESSION, prices=PRICES, times=times)
    assert (calm.pauses, calm.pause_cost) == (0, 0)
    assert spending.pauses == 1
    assert spending.pause_cost == pytest.approx(spending.cost - calm.cost)
    assert spending.pause_cost > 1_000


def test_tool_definitions_cost_their_size_in_each_call():
    tools = [{"name": "read_file", "description": "d" * 1_000}]
    bare, spending = spending_of_messages(SESSION), spending_of_messages(SESSION, tools=tools)
    outside = next(share for share in spending.shares if share.kind == "outside")
    assert outside.tokens == spending.calls * (outside.tokens // spending.calls) > 1_000
    assert spending.cost == pytest.approx(bare.cost + outside.cost)
    assert spending.share_of("outside") == pytest.approx(outside.cost / spending.cost)


def test_dollars_are_unknown_without_a_price_for_each_call():
    assert spending_of_messages(SESSION).dollars is None
    rates = (2e-6, 2e-7, 2.5e-6, 1e-5)
    priced = spending_of_messages(SESSION, rates=rates, prices=PRICES)
    assert priced.dollars == pytest.approx(priced.cost * 2e-6)
    assert priced.wasted_dollars == pytest.approx(priced.wasted * 2e-6)
    ledger = Ledger()
    ledger.call(0, (), rates=rates)
    ledger.call(0, ())
    assert ledger.spending().dollars is None


def test_recording_without_a_call_costs_nothing():
    spending = spending_of_messages([system("You help.")])
    assert (spending.calls, spending.cost, spending.results, spending.shares) == (0, 0, (), ())


@given(seed=st.integers(0, 10_000), turns=st.integers(1, 40))
def test_shares_add_up_to_the_cost_of_sending_everything(seed, turns):
    messages = list(agent_run(turns, seed=seed))
    unmanaged, is_askable = UnmanagedRequests(), False
    for message in messages:
        if message.role == "assistant" and is_askable:
            unmanaged.request()
        is_askable = is_askable or message.role != "system"
        unmanaged.add(message)
    spending = spending_of_messages(messages)
    assert spending.cost == pytest.approx(sum(unmanaged.costs(DEFAULT_PRICES)))
    assert spending.cost_unmanaged == pytest.approx(spending.cost)
    assert spending.tokens == sum(tokens for tokens, _ in unmanaged.requests)
    assert sum(result.cost for result in spending.results) <= spending.cost * (1 + 1e-9)


@pytest.mark.parametrize("policy", ["prune", "keep-last-3", "balanced"])
def test_ledger_adds_up_to_the_bills_of_a_managed_conversation(policy):
    """Each rewritten prefix is billed again, for the same sum as the replay's own meter."""
    messages = list(agent_run(80, seed=7))
    ledger, meter, cost = Ledger(), Meter(DEFAULT_PRICES), 0.0
    options = Options(counter="characters", background=ImmediateCall)
    with open_conversation(
        "s", store="memory:", format="openai", window=16_000, policy=policy, summarizer="first-characters",
        expand=True, options=options,
    ) as chat:  # fmt: skip
        for position, message in enumerate(messages, 1):
            if message.role == "assistant":
                request = chat.format.rendered(chat.prepare(), profile=chat._agent.profile)
                cost += meter.bill(request, position - 1).cost
                ledger.call(meter.kept, request[meter.kept :])
                chat.record(message)
            else:
                chat.append(message)
            ledger.message(position, message, Stamp(0, 0, 0, "tool" if message.role == "tool" else "user"))
    spending = ledger.spending()
    assert spending.cost == pytest.approx(cost)
    if policy != "balanced":  # Its summaries are billed in a replay too.
        replayed = replay(messages, policy=policy, window=16_000, provider="openai")
        assert spending.cost == pytest.approx(replayed.row.cost)
    # `balanced` folds results here, which no call shows any more, and `prune` clears few or none.
    assert any(result.whole < result.calls for result in spending.results) or policy != "keep-last-3"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (READ, "src/app.py"),
        ('{"command": ["bash", "-lc", "ls  -l\\n/tmp"]}', "bash -lc ls -l /tmp"),
        ('{"limit": 3}', '{"limit": 3}'),
        ("{}", ""),
        ("not json", "not json"),
        ('{"path": "' + "é" * 500 + '"}', "é" * 119 + "…"),
    ],
)
def test_main_argument_is_one_short_line(arguments, expected):
    assert main_argument(arguments) == expected
