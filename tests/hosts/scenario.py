"""An agent that reads 100 logs, the same run for every framework: a window of 16,000 tokens holds ten of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from foveate import Message
from foveate.counters import counter_named
from foveate.testing import ScriptedModel, call, say

CALLS = 100
"""Tool calls of a run."""
WINDOW = 16_000
"""Tokens."""
QUESTION = "Which of the logs has an error?"
ANSWER = "Log 57 has an error."


def log_text(number: int) -> str:
    """Return a log of 60 lines, about 1,300 tokens. Log 57 has an error.

    The lines are prose, for which the vocabulary o200k and a scripted model's four characters a token nearly agree.
    """
    usual = "the service answered every request in time and wrote nothing unusual"
    errors = {30: "ERROR, the disk of the service is full and it refuses every request"} if number == 57 else {}
    return "".join(f"Line {line} of log {number}: {errors.get(line, usual)}.\n" for line in range(60))


def reader(
    calls: int = CALLS, *, first: int = 0, tool: str = "read_log", expand: str = ""
) -> Callable[[Mapping[str, Any]], Message]:
    """Return a script that calls `read_log(number=n)` for each log from number `first` on, then answers.

    With `expand`, a handle such as "m3", it expands this handle after half of the calls, looking for ERROR.
    """
    replies = _replies(first, calls, tool, expand)
    return lambda request: next(replies)


def _replies(first: int, calls: int, tool: str, expand: str) -> Iterator[Message]:
    for number in range(first, first + calls):
        if expand and number == first + calls // 2:
            yield call("expand-1", "expand", handle=expand, pattern="ERROR")
        yield call(f"call-{number}", tool, number=number)
    while True:
        yield say(ANSWER)


def exact_tokens(body: Mapping[str, Any]) -> int:
    """Return the tokens of a request, counted with the vocabulary o200k over the texts and names in it."""
    pytest.importorskip("toktok", reason="toktok-rs is not installed (the extra `tokens`)")
    count = counter_named("o200k")
    return sum(count(text) for text in _texts(body))


def largest(model: ScriptedModel) -> int:
    """Return the exact tokens of the largest request that the model accepted."""
    return max(exact_tokens(request) for request in model.requests)


def marks(value: object) -> int:
    """Return the number of marks for Anthropic's cache in a request."""
    match value:
        case Mapping():
            return (value.get("cache_control") is not None) + sum(map(marks, value.values()))
        case list():
            return sum(map(marks, value))
        case _:
            return 0


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for key, inner in value.items():
                if key in ("parameters", "input_schema"):  # Providers count a schema as the text that it is.
                    yield json.dumps(inner)
                elif key not in ("id", "type", "role", "tool_call_id", "tool_use_id", "call_id", "model"):
                    yield from _texts(inner)
        case list() | tuple():
            for inner in value:
                yield from _texts(inner)
