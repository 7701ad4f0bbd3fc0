"""Facts of a history, found by code: targets of calls, lines that report an error, and names with their uses."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.messages import Message, ToolCall
from ..digest import names_in

__all__ = ["error_lines", "fitting", "how_often_used", "most_spoken_of", "prompt_texts", "target_of"]

_TELLING = (
    *("path", "file_path", "filepath", "file", "filename", "command", "cmd", "url", "query", "pattern", "name", "id"),
)
"""Arguments that say what a call is done to, the likeliest first."""
_LONGEST = 120


def prompt_texts(call: ToolCall) -> str:
    """The values of the arguments as they were meant: without the marks that JSON puts in."""
    given = _given(call)
    return call.arguments if given is None else "\n".join(map(str, given.values()))


def target_of(call: ToolCall) -> str:
    """What a call was done to, in one line of at most 120 characters."""
    given = _given(call)
    if given is None:
        return _line(call.arguments)
    texts = {key: value for key, value in given.items() if isinstance(value, str) and value.strip()}
    key = next((key for key in _TELLING if key in texts), next(iter(texts), ""))
    return _line(texts.get(key) or json.dumps(given, ensure_ascii=False))


def _given(call: ToolCall) -> dict[str, Any] | None:
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]


_CLAIM = re.compile(
    r"\s*(?:E {3,}|[\w.]*(?:Error|Exception|Failure)\b(?:\s*:|$)"
    r"|(?:error|fatal|failed|panic|Error|Fatal|Failed|ERROR|FATAL|FAILED)\b"
    r"|\S+:\d+(?::\d+)?: (?:error|fatal)\b|\S+: .{0,80}(?:No such file or|command not found|[Pp]ermission denied)"
    r"|.{0,30}exit (?:code|status)[: ]+[1-9])"
)
"""How a line begins that tells of an error, in what compilers, shells, tests and tracebacks print."""


def error_lines(text: str, most: int = 3) -> list[str]:
    """The first lines that tell of an error, without the space around them; at most so many."""
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if len(line) < 400 and _CLAIM.match(line)]
    return told[:most]


_LEAST = 1.0
"""Weight below which a name is not worth its place: it was mentioned once, long ago, by a tool."""


def how_often_used(messages: Sequence[Message]) -> Counter[str]:
    """In how many messages calls and speakers named what; what tools answered does not count."""
    used: Counter[str] = Counter()
    for message in messages:
        for call in message.calls:
            used.update(set(names_in(prompt_texts(call))))
        if message.role != "tool":
            used.update(set(names_in(message.text)))
    return used


def most_spoken_of(messages: Sequence[Message], known: Iterable[str]) -> list[str]:
    """The names that are worth telling, the most first. `known`: those that an earlier account told."""
    weights: defaultdict[str, float] = defaultdict(float)
    for i, message in enumerate(messages):
        age = 0.5 + (i + 1) / len(messages)
        for name in set(names_in(message.text)):
            weights[name] += age if message.role == "tool" else 2 * age
        for call in message.calls:
            for name in set(names_in(prompt_texts(call))):
                weights[name] += 2 * age
    for name in known:
        weights[name] += _LEAST
    ranked = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
    return [name for name, weight in ranked if weight >= _LEAST]


def fitting(names: Iterable[str], room: int) -> list[str]:
    """The first of these names that fit into `room` characters, with commas between them."""
    kept: list[str] = []
    for name in names:
        if len(name) + 2 <= room:
            kept.append(name)
            room -= len(name) + 2
    return kept
