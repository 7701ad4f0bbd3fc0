"""What a replay holds: the recording, its history and the newest view, but no index of all their words."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable

import pytest

from foveate import Message, ToolCall, assistant, tool_result, user
from foveate.core.caches import clear_caches
from foveate.core.call_context import Prices
from foveate.replay import digests
from foveate.replay.references import References, things_in_calls
from foveate.replay.run import replay
from foveate.tune.frontier import clairvoyant_cost

SIZE = 50_000


def log(number: int) -> str:
    lines = (
        f"src/pkg{number}/mod_{line}.py: function_{number}_{line} took {line * 0.37:.3f} s" for line in range(1_300)
    )
    return "\n".join(lines)[:SIZE]


def reading(number: int) -> list[Message]:
    path = json.dumps({"path": f"src/pkg{number - 1}/mod_{number}.py", "note": f"see\tfunction_{number - 1}_7"})
    return [
        assistant(f"Looking at {number}.", ToolCall(f"c{number}", "read_file", path)),
        tool_result(f"c{number}", log(number)),
    ]


def recording(rounds: int) -> list[Message]:
    return [user("Read the logs."), *(message for number in range(1, rounds + 1) for message in reading(number))]


def replayed(messages: list[Message]) -> object:
    return replay(messages, policy="keep-last-1", window=100_000)


def priced(messages: list[Message]) -> object:
    return clairvoyant_cost(messages, Prices())


def peak(work: Callable[[list[Message]], object], messages: list[Message]) -> int:
    gc.collect()
    clear_caches()
    tracemalloc.start()
    try:
        work(messages)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("work", "copies"), [(replayed, 3), (priced, 1)])
def test_reading_a_recording_holds_no_index_of_all_its_words(
    work: Callable[[list[Message]], object], copies: int
) -> None:
    """Such an index takes ten times the memory of the texts. `copies` of them may be held, with the caches of names."""
    work(recording(3))  # Imports.
    few, many = peak(work, recording(5)), peak(work, recording(15))
    assert many - few < copies * 10 * SIZE, (many - few) / (10 * SIZE)


def test_references_to_wanted_things_are_the_same():
    messages = recording(5)
    everything, wanted = References(), References(things_in_calls(messages))
    used = [everything.read(message) for message in messages]
    assert [wanted.read(message) for message in messages] == used
    assert any(each.recall for each in used)


def test_measuring_digests_indexes_only_what_calls_use(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[References] = []

    class Observed(References):
        def __init__(self, *wanted: frozenset[str]) -> None:
            super().__init__(*wanted)
            held.append(self)

    monkeypatch.setattr(digests, "References", Observed)
    messages = recording(2)
    figures = digests.measure_digests(messages)
    assert sum(each.used for each in figures) == 1
    (references,) = held
    assert references._answered.keys() | references._answered_lines.keys() <= things_in_calls(messages)
