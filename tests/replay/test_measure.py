"""The meter of costs, the bill of sending everything, and expansions."""

from __future__ import annotations

import pytest
from replay_values import entry, rendered

from foveate.core.call_context import Prices
from foveate.core.messages import ToolCall, assistant, system, tool_result, user
from foveate.replay.measure import Bill, CacheClock, FetchCosts, Meter, UnmanagedRequests, percentile, share


def entry_of(position: int, text: str, tokens: int = 100):
    return entry(position, user(text), tokens=tokens)


A, B, C, D = (rendered(entry_of(i, word)) for i, word in enumerate(["a", "b", "c", "d"], 1))


def test_the_unchanged_beginning_is_read_and_the_rest_written():
    meter = Meter(Prices())
    assert [meter.bill([A], 1), meter.bill([A, B, C], 3)] == [
        Bill(tokens=100, cached=0, cost=125.0, rewritten=False, unchanged=0),
        Bill(tokens=300, cached=100, cost=260.0, rewritten=False, unchanged=1),
    ]


def test_a_change_makes_everything_after_it_a_write():
    meter = Meter(Prices(read=0.5, write=2.0))
    meter.bill([A, B, C], 3)
    stub = rendered(entry_of(2, "stub", tokens=10))
    assert meter.bill([A, stub, C, D], 4) == Bill(tokens=310, cached=100, cost=470.0, rewritten=True, unchanged=1)


def test_a_cold_cache_makes_everything_a_write():
    """The cache forgot what was sent, so an edit of it costs nothing, and no longer what was fetched before it."""
    meter = Meter(Prices())
    meter.bill([A, B], 2)
    assert meter.bill([A, B, C], 3, is_cold=True) == Bill(
        tokens=300, cached=0, cost=375.0, rewritten=False, unchanged=0
    )
    assert meter.bill([A, B, C, D], 4).cached == 300


def test_a_cache_is_cold_at_first_and_after_its_lifetime():
    clock = CacheClock(Prices(cache_seconds=300))
    assert [clock.is_cold(time) for time in (1_000, 301_000, 601_000, 901_001, 902_000)] == [
        True, False, False, True, False,
    ]  # fmt: skip


def test_messages_are_compared_by_their_bytes_not_by_identity():
    meter = Meter(Prices())
    meter.bill([A, B], 2)
    assert meter.bill([rendered(entry_of(1, "a")), rendered(entry_of(2, "b"))], 2).cached == 200


def test_a_shorter_request_is_a_rewritten_prefix_that_writes_nothing():
    meter = Meter(Prices())
    meter.bill([A, B], 2)
    assert meter.bill([A], 2) == Bill(tokens=100, cached=100, cost=10.0, rewritten=True, unchanged=2)


def test_a_rendered_message_has_the_tokens_of_all_its_entries():
    packed = rendered(entry_of(1, "a", 30), entry_of(2, "b", 12))
    assert Meter(Prices()).bill([packed], 2).tokens == 42


def test_a_change_is_located_by_its_first_message():
    meter = Meter(Prices())
    meter.bill([A, B, C], 3)
    opener = rendered(entry(0, user("opener"), kind="stand-in"), entry_of(2, "b, otherwise"))
    assert meter.bill([A, opener, C], 3).unchanged == 1


def test_sending_everything_writes_each_message_once():
    everything = UnmanagedRequests()
    call = assistant("", ToolCall("c", "f", "{}"))
    for message in [system("1234"), user("12345678"), None, call, tool_result("c", "1"), None]:
        everything.add(message) if message else everything.request()
    assert everything.requests == [(11, 0), (21, 11)]
    assert everything.costs(Prices(read=0.5, write=2.0)) == [22.0, 25.5]


def test_sending_everything_to_a_cold_cache_writes_all_of_it():
    everything = UnmanagedRequests()
    everything.add(system("1234"))
    everything.request(is_cold=True)
    everything.add(user("12345678"))
    everything.request(is_cold=True)
    assert everything.requests == [(5, 0), (11, 0)]


def test_a_share_of_nothing_is_unknown():
    assert [share(1, 2), share(0, 2), share(0, 0)] == [0.5, 0.0, None]


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([], 50, 0.0), ([3.0], 99, 3.0), ([4.0, 1.0, 3.0, 2.0], 50, 2.0), ([float(i) for i in range(1, 101)], 99, 99.0)],
)
def test_percentiles_are_values_that_occurred(values, percent, expected):
    assert percentile(values, percent) == expected


def bill(*, unchanged: int, tokens: int = 1000) -> Bill:
    return Bill(tokens=tokens, cached=0, cost=0.0, rewritten=False, unchanged=unchanged)


def test_an_expansion_costs_a_request_and_its_originals():
    mending = FetchCosts(Prices())
    mending.fetch({2: 40, 3: 60}, view_tokens=1000, length=5, requests=1)
    assert (mending.cost, mending.expansions) == (pytest.approx(100 + 125), 1)


def test_an_expansion_without_a_handle_costs_two_requests():
    mending = FetchCosts(Prices())
    mending.fetch({2: 100}, view_tokens=1000, length=5, requests=2)
    assert mending.cost == pytest.approx(200 + 125)


def test_fetched_content_is_written_once_and_then_read_from_the_cache():
    mending = FetchCosts(Prices())
    mending.fetch({2: 100}, view_tokens=0, length=5, requests=1)
    costs = []
    for unchanged in (5, 9, 11, 4, 6):
        before = mending.cost
        mending.carry(bill(unchanged=unchanged))
        costs.append(pytest.approx(mending.cost - before))
    assert costs == [125, 10, 10, 125, 10]


def test_the_next_expansion_reads_the_earlier_ones_too():
    mending = FetchCosts(Prices())
    mending.fetch({2: 100}, view_tokens=1000, length=5, requests=1)
    before = mending.cost
    mending.fetch({3: 10}, view_tokens=1000, length=7, requests=1)
    assert mending.cost - before == pytest.approx(110 + 12.5)


def test_fetched_content_is_not_missing_again():
    mending = FetchCosts(Prices())
    mending.fetch({2: 100}, view_tokens=1000, length=5, requests=1)
    assert [mending.lacks((1, 3)), mending.lacks((1, 2))] == [True, False]
