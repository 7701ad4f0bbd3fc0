"""The log of views returns the view of each call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.messages import Message
from foveate.core.stamps import Stamp
from foveate.core.view import Entry
from foveate.replay.run import replay
from foveate.replay.views import ViewLog
from foveate.testing import agent_run

ENTRIES = [Entry(position, "", Message("user"), None, Stamp(0, 0, 0, "user")) for position in range(1, 9)]


@given(views=st.lists(st.lists(st.sampled_from(ENTRIES), unique=True), max_size=200))
def test_log_returns_every_view(views):
    log = ViewLog()
    for view in views:
        log.add(view)
    assert len(log) == len(views)
    assert [log.at(call) for call in range(1, len(views) + 1)] == [tuple(view) for view in views]


def test_log_stores_only_changes():
    log = ViewLog()
    for length in range(1, 9):
        log.add(ENTRIES[:length])
    log.add([*ENTRIES[:3], *ENTRIES[4:]])
    assert [len(change.added) for change in log.changes] == [1] * 8 + [0]
    assert (log.changes[-1].start, log.changes[-1].removed) == (3, 1)


def test_log_refuses_other_calls():
    log = ViewLog()
    log.add(ENTRIES)
    for call in (0, 2):
        with pytest.raises(IndexError, match="calls 1 to 1"):
            log.at(call)


def test_replay_records_the_view_of_each_call():
    seen = []
    result = replay(
        agent_run(60, seed=1),
        policy="keep-last-3",
        window=32_000,
        views=True,
        progress=lambda taken, total: seen.append((taken, total)),
    )
    log = result.views
    assert log.records[0].first == 1
    assert [sum(entry.tokens for entry in log.at(call.turn)) for call in result.calls] == [
        call.tokens for call in result.calls
    ]
    assert [taken for taken, _ in seen] == list(range(result.row.messages))


def test_progress_that_raises_stops_the_replay():
    class Cancelled(Exception):
        pass

    def stop(taken: int, total: int) -> None:
        if taken == 10:
            raise Cancelled

    with pytest.raises(Cancelled):
        replay(agent_run(60, seed=1), policy="none", progress=stop)
