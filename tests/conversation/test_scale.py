"""Long conversations: a step costs what it touches. Limits of CPU time are generous."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType

import pytest

from foveate import Conversation, Text, assistant, user
from foveate.conversation import instrumentation
from foveate.core.events import Event
from foveate.edits import Replace, Target
from foveate.errors import BadMessage
from foveate.formats import get_format
from foveate.testing import agent_run, answer, call

from .shells import opened


def seconds(step: Callable[[], object]) -> float:
    began = time.process_time()
    step()
    return time.process_time() - began


def test_a_thousand_edits_are_undone_at_once():
    chat = opened(window=10_000_000)
    chat.append(agent_run(1_800, seed=3, result_chars=(50, 100)))
    results = [row for row in chat.history() if row.message.role == "tool"][:1_000]
    receipt = chat.edit(*(Replace(Target(row.id), (Text("short"),)) for row in results))
    assert seconds(lambda: chat.undo(receipt)) < 20  # 0.03 on a computer of its own
    assert all(entry.shrunk == () for entry in chat.view)


@pytest.mark.parametrize("provider", [pytest.param("openai", marks=pytest.mark.slow), "anthropic"])
def test_list_of_two_thousand_messages_is_matched_quickly(provider):
    chat = opened(provider=provider, window=10_000_000)
    mine = get_format(provider).render(agent_run(1_400, seed=1, result_chars=(50, 400)))[:2_000]
    chat.prompt(messages=mine)

    def turn(n: int) -> None:
        mine.append({"role": "user", "content": f"and {n}?"})
        chat.prompt(messages=mine)
        chat.record(assistant(f"{n}."))
        mine.append({"role": "assistant", "content": f"{n}."})

    assert min(seconds(lambda n=n: turn(n)) for n in range(8)) < 5  # 10 ms on a computer of its own
    assert len(chat) == len([message for item in mine for message in chat.format.parse(item)])


def test_list_with_an_invalid_message_changes_nothing():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    chat = opened()
    mine: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    chat.prompt(messages=mine)
    with pytest.raises(BadMessage, match="nested deeper"):
        chat.prompt(messages=[*mine, {"role": "user", "content": "x", "more": deep}])
    assert len(chat) == 1
    assert chat.prompt(messages=mine)["messages"] == mine


def lines_run(path: str, step: Callable[[], object]) -> int:
    """Return how many lines of a file a step runs, each as often as it runs."""
    count = 0

    def local(frame: FrameType, event: str, arg: object) -> object:
        nonlocal count
        count += event == "line"
        return local

    sys.settrace(lambda frame, event, arg: local if frame.f_code.co_filename == path else None)
    try:
        step()
    finally:
        sys.settrace(None)
    return count


def test_a_listener_hears_of_a_turn_without_a_look_at_the_whole_view():
    counts = []
    for shown in (50, 500):
        heard: list[Event] = []
        chat = opened(window=10_000_000, policy="balanced", on_event=heard.append)
        chat.append(
            [
                user("Go on."),
                *(message for n in range(shown) for message in (call(f"c{n}", "read"), answer(f"c{n}", "ok"))),
            ]
        )
        chat.prepare()
        chat.append(call("new", "read"))

        def turn(chat: Conversation = chat) -> None:
            chat.append(answer("new", "ok"))
            chat.prepare()

        counts.append(lines_run(instrumentation.__file__, turn))
        assert (heard[-1].kind, heard[-1].index) == ("message-added", 2 * shown + 2)
    assert counts[0] == counts[1] > 5
