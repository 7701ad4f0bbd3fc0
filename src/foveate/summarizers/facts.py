"""Facts of a history, found by code: targets of calls, lines that report an error, and names with their uses."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.messages import Message, ToolCall
from ..digest import names_in

__all__ = ["argument_text", "count_uses", "error_lines", "rank_names", "take_fitting", "target_of"]

_TELLING = (
    *("path", "file_path", "filepath", "file", "filename", "command", "cmd", "url", "query", "pattern", "name", "id"),
)
"""Arguments that name the target of a call, the likeliest first."""
_LONGEST = 120


def argument_text(call: ToolCall) -> str:
    """Return the values of the arguments as text, without JSON syntax."""
    arguments = _arguments(call)
    return call.arguments if arguments is None else "\n".join(map(str, arguments.values()))


def target_of(call: ToolCall) -> str:
    """Return the target of a call in one line of at most 120 characters."""
    arguments = _arguments(call)
    if arguments is None:
        return _line(call.arguments)
    texts = {key: value for key, value in arguments.items() if isinstance(value, str) and value.strip()}
    key = next((key for key in _TELLING if key in texts), next(iter(texts), ""))
    return _line(texts.get(key) or json.dumps(arguments, ensure_ascii=False))


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]


_CLAIM = re.compile(
    r"\s*(?:E {3,}|[\w.]*(?:Error|Exception|Failure)\b(?:\s*:|$)"
    r"|(?:error|fatal|failed|panic|Error|Fatal|Failed|ERROR|FATAL|FAILED)\b"
    r"|\S+:\d+(?::\d+)?: (?:error|fatal)\b|\S+: .{0,80}(?:No such file or|command not found|[Pp]ermission denied)"
    r"|.{0,30}exit (?:code|status)[: ]+[1-9])"
)
"""The beginning of a line that reports an error, as compilers, shells, tests and tracebacks print it."""


def error_lines(text: str, most: int = 3) -> list[str]:
    """Return the first lines that report an error, stripped; at most `most`."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if len(line) < 400 and _CLAIM.match(line)][:most]


_LEAST = 1.0
"""Least weight of a listed name: below it, a tool mentioned the name once, long ago."""


def count_uses(messages: Sequence[Message]) -> Counter[str]:
    """Count the messages whose calls or text hold each name; results of tools do not count."""
    used: Counter[str] = Counter()
    for message in messages:
        for call in message.calls:
            used.update(set(names_in(argument_text(call))))
        if message.role != "tool":
            used.update(set(names_in(message.text)))
    return used


def rank_names(messages: Sequence[Message], known: Iterable[str]) -> list[str]:
    """Return the names that are worth listing, the best first. `known`: the names of an earlier digest."""
    weights: defaultdict[str, float] = defaultdict(float)
    for i, message in enumerate(messages):
        age = 0.5 + (i + 1) / len(messages)
        for name in set(names_in(message.text)):
            weights[name] += age if message.role == "tool" else 2 * age
        for call in message.calls:
            for name in set(names_in(argument_text(call))):
                weights[name] += 2 * age
    for name in known:
        weights[name] += _LEAST
    ranked = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
    return [name for name, weight in ranked if weight >= _LEAST]


def take_fitting(names: Iterable[str], room: int) -> list[str]:
    """Return the first of these names that fit into `room` characters, separated by commas."""
    kept: list[str] = []
    for name in names:
        if len(name) + 2 <= room:
            kept.append(name)
            room -= len(name) + 2
    return kept
