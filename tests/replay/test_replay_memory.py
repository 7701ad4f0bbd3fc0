"""What a replay holds: the recording, its history and the newest view, but no index of all their words."""

from __future__ import annotations

import gc
import json
import tracemalloc

from foveate import Message, ToolCall, assistant, tool_result, user
from foveate.core.caches import clear_caches
from foveate.replay.references import References, things_in_calls
from foveate.replay.run import replay

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


def peak_of_replay(messages: list[Message]) -> int:
    gc.collect()
    clear_caches()
    tracemalloc.start()
    try:
        replay(messages, policy="keep-last-1", window=100_000)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_replay_holds_little_more_than_its_history():
    """An index of all identifiers and lines takes ten times the memory of the texts."""
    replay(recording(3), policy="keep-last-1", window=100_000)  # Imports.
    few, many = peak_of_replay(recording(10)), peak_of_replay(recording(40))
    assert many - few < 2 * 30 * SIZE, (many - few) / (30 * SIZE)


def test_references_to_wanted_things_are_the_same():
    messages = recording(5)
    everything, wanted = References(), References(things_in_calls(messages))
    used = [everything.read(message) for message in messages]
    assert [wanted.read(message) for message in messages] == used
    assert any(each.recall for each in used)
