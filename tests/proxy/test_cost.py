"""What a client sends through the proxy costs what `foveate replay` says of its recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foveate import open_conversation
from foveate.core.messages import Message
from foveate.formats import get_format
from foveate.open import Options
from foveate.replay.measure import DEFAULT_PRICES, Meter
from foveate.replay.recordings import read_recording
from foveate.replay.run import replay
from foveate.replay.summaries import ImmediateCall
from foveate.requests import WireRequest, api_of

WINDOW = 200_000


def as_a_client_sends_it(path: Path) -> list[Message]:
    """Return the messages of a recording as chat completions carry them."""
    format = get_format("openai")
    return [
        read
        for recorded in read_recording(path).messages
        for item in format.render([recorded.message])
        for read in format.parse(item)
    ]


def driven(messages: list[Message]) -> tuple[int, float]:
    """Send the growing list before each reply. Return the requests, and what their views cost in tokens."""
    api = api_of("/v1/chat/completions")
    assert api is not None
    now = 0
    # Replays use this counter and these prices for every model.
    options = Options(clock=lambda: now, counter="characters", prices=DEFAULT_PRICES, background=ImmediateCall)
    chat = open_conversation("c", store="memory:", format="openai", window=WINDOW, expand=True, options=options)
    meter, listed, requests, cost = Meter(DEFAULT_PRICES), [], 0, 0.0
    for number, message in enumerate(messages):
        items = chat.format.render([message])
        if message.role == "assistant" and any(item["role"] != "system" for item in listed):
            body: dict[str, Any] = {"model": "some-model", "messages": listed}
            wire = WireRequest(chat, api, json.dumps(body).encode())
            bill = meter.bill(chat.format.rendered(wire.view, profile=chat._agent.profile), number)
            requests, cost = requests + 1, cost + bill.cost
            choice = {"index": 0, "message": items[0], "finish_reason": "stop"}
            wire.received(json.dumps({"id": "r", "object": "chat.completion", "choices": [choice]}).encode())
        listed += items
        now += 1_000
    return requests, cost


def compare(paths: list[Path]) -> None:
    whole = paid = 0.0
    for path in paths:
        messages = as_a_client_sends_it(path)
        row = replay(messages, window=WINDOW, provider="openai").row
        requests, cost = driven(messages)
        assert requests == row.calls
        assert cost == pytest.approx(row.cost, rel=0.02), path.name
        whole, paid = whole + row.cost, paid + cost
    assert paid == pytest.approx(whole, rel=0.01)


@pytest.mark.slow
def test_a_session_through_the_proxy_costs_what_a_replay_says(pytestconfig: pytest.Config):
    compare([pytestconfig.rootpath / "examples" / "data" / "demo.jsonl"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_recorded_sessions_through_the_proxy_cost_what_replays_say(transcripts: Path):
    compare(sorted((transcripts / "neutral").glob("*/*.jsonl"))[::5])  # All of them take five minutes.
