"""What a recorded call used, and where it had come from.

An agent's tool call repeats things: identifiers (paths, names, ids, hashes) and, when it edits, whole lines. A policy
that took away where they had come from would have made that call impossible, or a guess. This file finds those
things; it knows messages and nothing of views, policies or costs, so what it finds is the same under every policy.

- An *identifier* is a run of letters, digits and `_./-#@`, 6 to 120 long without `./-_#@` at its ends, with a digit,
  `_`, `/`, `.` or mixed case inside (more than a capital at the beginning). A longer run counts as pieces of 120.
- A *whole line* has 25 characters and more, without the spaces around it and a file viewer's line number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from ..core.messages import Message, ToolCall

__all__ = ["References", "Used", "call_lines", "call_text", "identifiers", "whole_lines"]

_RUN = re.compile(r"[A-Za-z0-9_./\-#@]{6,120}")
_TELLING = re.compile(r"[0-9_/.]")
_EDGES = "./-_#@"
_LEAST_IDENTIFIER = 6
_LINE_NUMBER = re.compile(r"\s*\d+[→\t|:]\s?")
_LEAST_LINE = 25
_ESCAPES = "bfnrt"
"""Letters that stand behind a backslash for white space in a JSON text."""

Positions = tuple[int, ...]
"""Positions of messages in the history, from 1, ascending."""


class Used(Struct, frozen=True):
    """What one assistant's calls repeated, each with the positions of the earlier messages that held it."""

    recall: Mapping[str, Positions]
    """Identifiers that had come only from tool results."""
    said: Mapping[str, Positions]
    """Identifiers that had come only from what the system, the user or the assistant wrote or called."""
    quoted: Mapping[str, Positions]
    """Whole lines in the arguments that had come only from tool results."""
    escaped: frozenset[str] = frozenset()
    """Of the identifiers, those that begin with the letter of an escape: JSON writes a tab before `sourceRepo` as
    `\\tsourceRepo`. They count as used, as they stand in the request, but what was meant is behind the first letter.
    """


_NOTHING = Used({}, {}, {})


class References:
    """Reads a transcript message by message and tells of each what it used of those before it.

    Every text is looked at once, so a transcript costs as much as its length.
    """

    def __init__(self) -> None:
        self._position = 0
        self._answered: dict[str, list[int]] = {}  # identifier -> positions of the results that hold it
        self._spoken: dict[str, list[int]] = {}  # identifier -> positions of the other messages that hold it
        self._answered_lines: dict[str, list[int]] = {}
        self._spoken_lines: set[str] = set()

    def read(self, message: Message) -> Used:
        """What the calls of `message` used of the messages read before it; then it counts as read too."""
        self._position += 1
        spoken = identifiers(message.text)
        if message.role == "tool":
            self._note(self._answered, spoken)
            self._note(self._answered_lines, whole_lines(message.text))
            return _NOTHING
        calls = message.calls
        called = identifiers(call_text(calls)) if calls else frozenset()
        lines = call_lines(calls) if calls else frozenset()
        used = self._used(called, lines, call_text(calls)) if calls else _NOTHING
        self._note(self._spoken, spoken | called)
        # A line that the assistant only wrote as text still has to come from its source: prose quotes loosely.
        self._spoken_lines |= lines if message.role == "assistant" else whole_lines(message.text)
        return used

    def _used(self, called: frozenset[str], lines: frozenset[str], text: str) -> Used:
        recall: dict[str, Positions] = {}
        said: dict[str, Positions] = {}
        for identifier in sorted(called):
            answered, spoken = self._answered.get(identifier), self._spoken.get(identifier)
            if answered and not spoken:
                recall[identifier] = tuple(answered)
            elif spoken and not answered:
                said[identifier] = tuple(spoken)
        quoted = {
            line: tuple(self._answered_lines[line])
            for line in sorted(lines)
            if line in self._answered_lines and line not in self._spoken_lines
        }
        escaped = frozenset(name for name in (*recall, *said) if _is_escaped(name, text))
        return Used(recall, said, quoted, escaped)

    def _note(self, where: dict[str, list[int]], things: Iterable[str]) -> None:
        for thing in things:
            where.setdefault(thing, []).append(self._position)


def _is_escaped(name: str, text: str) -> bool:
    """Whether this stands in a text nowhere but behind a backslash."""
    return name[0] in _ESCAPES and text.count(f"\\{name}") == text.count(name)


def identifiers(text: str) -> frozenset[str]:
    """The distinct identifiers in a text."""
    found = {run.strip(_EDGES) for run in set(_RUN.findall(text))}
    return frozenset([run for run in found if len(run) >= _LEAST_IDENTIFIER and (_TELLING.search(run) or _mixed(run))])


def whole_lines(text: str) -> frozenset[str]:
    """The distinct whole lines in a text, as they are compared: stripped, and without a viewer's line number."""
    stripped = {_without_number(line) for line in text.split("\n") if len(line) >= _LEAST_LINE}
    return frozenset([line for line in stripped if len(line) >= _LEAST_LINE])


def call_text(calls: Iterable[ToolCall]) -> str:
    """Calls as text: name and arguments of each, on lines of their own."""
    return "\n".join([f"{call.name} {call.arguments}" for call in calls])


def call_lines(calls: Iterable[ToolCall]) -> frozenset[str]:
    """The distinct whole lines in the texts that calls pass as arguments, however deep in their JSON."""
    return frozenset().union(*(whole_lines(text) for call in calls for text in _texts(call.arguments)))


def _texts(arguments: str) -> list[str]:
    """Every string value in a JSON text; the text itself where it is no JSON."""
    try:
        waiting = [json.loads(arguments)]
    except (ValueError, RecursionError):
        return [arguments]
    texts = []
    while waiting:
        match waiting.pop():
            case str(text):
                texts.append(text)
            case dict(fields):
                waiting.extend(fields.values())
            case list(items):
                waiting.extend(items)
    return texts


def _without_number(line: str) -> str:
    number = _LINE_NUMBER.match(line)
    return line[number.end() :].strip() if number else line.strip()


def _mixed(run: str) -> bool:
    """Whether letters of both cases stand in it, other than as capitalised words."""
    return not (run.islower() or run.isupper() or run.istitle())
