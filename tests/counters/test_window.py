"""Within the window by the exact count: every language and kind, with and without recorded usage."""

from __future__ import annotations

import json
from itertools import cycle
from typing import Any

import pytest
from kinds import KINDS, LANGUAGES, text_of

import foveate
from foveate import Usage
from foveate.core.sizes import MESSAGE_TOKENS
from foveate.counters import counter_named

WINDOWS = (8_000, 32_000, 200_000)
QUICK = [
    ("chinese", 8_000),
    ("hex", 8_000),
    ("english", 8_000),
    ("base64", 32_000),
    ("python", 32_000),
    ("korean", 8_000),
]
SLOW = [
    (kind, window, (number + place) % 2 == 0)
    for number, kind in enumerate((*LANGUAGES, *KINDS))
    for place, window in enumerate(WINDOWS)
]
"""Every kind in every window, with and without usage in turns."""
SYSTEM = "You are a careful assistant for a railway. Answer briefly."
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]


def exact_size(prompt: dict[str, Any], count: Any) -> int:
    """Count a request by its vocabulary: texts, calls, 4 tokens for each message, and the JSON of the tools."""
    total = count(json.dumps(prompt.get("tools", [])))
    for message in prompt["messages"]:
        total += MESSAGE_TOKENS + count(message.get("content") or "")
        for call in message.get("tool_calls", ()):
            total += count(f"{call['function']['name']} {call['function']['arguments']}")
    return total


def largest_request(
    kind: str, window: int, *, records_usage: bool, first: str = "", policy: str = "balanced", **options: Any
) -> tuple[int, int]:
    """Return the largest request by the exact count, and their number. `first`: the kind of the first half."""
    pytest.importorskip("toktok", reason="toktok-rs is not installed (the extra `tokens`)")
    count = counter_named("o200k")
    settings = foveate.Options(counter="estimate:o200k", **options)
    chat = foveate.open_conversation("c", window=window, policy=policy, options=settings)
    size = max(1_500, window // 6)
    largest = requests = sent = 0
    while sent < 14 * window // 6 or requests < 16:
        now = first if first and requests < 8 else kind
        text = text_of(now, size, requests)
        sent += count(text)
        chat.append({"role": "user", "content": text[:300]})
        calls = [{"id": f"c{requests}", "type": "function", "function": {"name": "read", "arguments": "{}"}}]
        chat.append({"role": "assistant", "content": None, "tool_calls": calls})
        chat.append({"role": "tool", "tool_call_id": f"c{requests}", "content": text})
        prompt = chat.prompt(system=SYSTEM, tools=TOOLS)
        billed = exact_size(prompt, count)
        largest, requests = max(largest, billed), requests + 1
        usage = Usage(input=billed, output=20) if records_usage else None
        chat.record({"role": "assistant", "content": "I have read it."}, usage=usage)
    return largest, requests


@pytest.mark.slow
@pytest.mark.parametrize("records_usage", [False, True])
@pytest.mark.parametrize(("kind", "window"), QUICK)
def test_no_request_exceeds_the_window(kind, window, records_usage):
    largest, requests = largest_request(kind, window, records_usage=records_usage)
    assert largest <= window
    assert requests >= 16


@pytest.mark.parametrize("kind", ["hex", "base64", "chinese"])
@pytest.mark.parametrize("reserve", [None, 0])
def test_calibration_by_prose_does_not_hide_dense_content(kind, reserve):
    """Usage of prose says nothing about hashes: one such result made requests of 1.3 to 2.6 windows."""
    largest, _ = largest_request(kind, 32_000, records_usage=True, first="spanish", reserve=reserve)
    assert largest <= 32_000


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "window", "records_usage"), SLOW)
def test_no_request_of_any_kind_exceeds_any_window(kind, window, records_usage):
    assert largest_request(kind, window, records_usage=records_usage)[0] <= window


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "kind"), [*zip(cycle(["english", "vietnamese", "hex"]), [*LANGUAGES, *KINDS], strict=False)]
)
def test_no_request_exceeds_the_window_after_a_change_of_kind(first, kind):
    assert largest_request(kind, 32_000, records_usage=True, first=first)[0] <= 32_000


def test_the_whole_window_is_used_once_usage_is_known():
    """Content that the estimate overrates fills the window as well, since usage corrects it."""
    largest, _ = largest_request("vietnamese", 32_000, records_usage=True, policy="none")
    assert largest >= 0.8 * 32_000


def test_a_first_request_may_not_spend_the_doubt_of_the_estimate():
    """Without a reserve, a tenth of the window is kept for the error of the estimate until usage is known."""
    for counter, usable in (("estimate:o200k", 9_000), ("characters", 10_000)):
        options = foveate.Options(counter=counter, reserve=0)
        chat = foveate.open_conversation("c", window=10_000, options=options)
        assert chat.budget.usable == usable
