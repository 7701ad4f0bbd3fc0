"""Rows of the tables that compare a framework's own compaction with foveate, for an agent that reads 100 logs.

`tests/hosts/scenario.py` has the logs, the question and the window of 16,000 tokens. A price is in input tokens: one
that is read from the cache costs 0.1, and one that is written to it costs 1.25 at Anthropic.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "hosts"))

from scenario import ANSWER, CALLS, WINDOW, largest

from foveate import Message
from foveate.testing import ScriptedModel, call, say
from foveate.testing.server import StubServer

__all__ = ["HEAD", "reading", "row", "scripted", "summarizing"]

HEAD: Final = (
    "| shortened by | the run ends with | requests | refused | largest | tokens sent | price "
    "| logs shown in a request | logs readable at the end | logs kept |"
)
_LAST_LINE: Final = re.compile(r"Line 59 of log (\d+):")
_SUMMARY: Final = "The logs that were read show nothing unusual. Continue with the next one."


def scripted(provider: str, script: Callable[[Mapping[str, Any]], Message]) -> ScriptedModel:
    """Return a model with the window of the scenario."""
    return ScriptedModel(script, provider, window=WINDOW)


def reading(calls: int = CALLS, *, rest: int = 0) -> Callable[[Mapping[str, Any]], Message]:
    """Return a script that reads the logs in order, one a request. `rest`: answer after as many calls, again and again.

    A refused request does not advance it, because a scripted model asks its script only for requests that fit.
    """
    state = {"next": 0, "answered": 0}

    def reply(request: Mapping[str, Any]) -> Message:
        number = state["next"]
        if number == calls or (rest and number and number % rest == 0 and state["answered"] < number):
            state["answered"] = number
            return say(ANSWER)
        state["next"] += 1
        return call(f"call-{number}", "read_log", number=number)

    return reply


def summarizing(request: Mapping[str, Any]) -> Message:
    """Answer every request with the same summary."""
    return say(_SUMMARY)


def row(name: str, end: str, server: StubServer, kept: object, *, written: float = 1.25) -> str:
    """Return a row of the table. `kept`: the framework's messages. `written`: the price of a written token."""
    models = list(server.models.values())
    bills = [bill for model in models for bill in model.billed]
    price = sum(bill.plain + written * bill.written + 0.1 * bill.read for bill in bills)
    accepted = sum(len(model.requests) for model in models)
    shown = [_logs([request.get("messages"), request.get("input")]) for request in models[0].requests]
    whole = _logs(kept)
    can_expand = '"expand"' in json.dumps(models[0].requests[-1].get("tools"))
    readable = shown[-1] | whole if can_expand else shown[-1]
    numbers = [accepted, len(server.received) - accepted, max(map(largest, filter(_asked, models)))]
    numbers += [sum(bill.total for bill in bills), round(price)]
    numbers += [round(sum(map(len, shown)) / len(shown)), len(readable), len(whole)]
    return f"| {name} | {end} | {' | '.join(f'{number:,}' for number in numbers)} |"


def _asked(model: ScriptedModel) -> bool:
    return bool(model.requests)


def _logs(value: object) -> set[int]:
    """Return the numbers of the logs that stand in a value to their last line."""
    return {int(number) for text in _texts(value) for number in _LAST_LINE.findall(text)}


def _texts(value: object) -> Iterable[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for inner in value.values():
                yield from _texts(inner)
        case list() | tuple():
            for inner in value:
                yield from _texts(inner)
