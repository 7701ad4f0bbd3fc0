"""References of recorded tool calls to content of earlier messages.

A tool call repeats identifiers (paths, names, ids, hashes) and, when it edits, whole lines. Without their source, the
call would have been a guess. This module finds these references in messages alone, so they are the same under every
policy.

- An *identifier* is a sequence of letters, digits and `_./-#@`, 6 to 120 characters without `./-_#@` at its ends, that
  contains a digit, `_`, `/`, `.` or mixed case (more than a capital at the beginning). A longer sequence counts as
  pieces of 120.
- A *whole line* has at least 25 characters, without the spaces around it and without a file viewer's line number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from ..core.messages import Message, ToolCall

__all__ = [
    "References",
    "UsedReferences",
    "call_lines",
    "call_text",
    "identifiers",
    "pick",
    "things_in_calls",
    "whole_lines",
]

_RUN = re.compile(r"[A-Za-z0-9_./\-#@]{6,120}")
_SIGNIFICANT = re.compile(r"[0-9_/.]")
_EDGES = "./-_#@"
_LEAST_IDENTIFIER = 6
_LINE_NUMBER = re.compile(r"\s*\d+[→\t|:]\s?")
_LEAST_LINE = 25
_ESCAPES = "bfnrt"
"""Letters that follow a backslash for white space in JSON text."""

Positions = tuple[int, ...]
"""Positions of messages in the history, from 1, ascending."""


class UsedReferences(Struct, frozen=True):
    """References of one assistant message's calls, each with the positions of the earlier messages that hold it."""

    recall: Mapping[str, Positions]
    """Identifiers that came only from tool results."""
    said: Mapping[str, Positions]
    """Identifiers that came only from texts and calls of the system, the user or the assistant."""
    quoted: Mapping[str, Positions]
    """Whole lines in the arguments that came only from tool results."""
    escaped: frozenset[str] = frozenset()
    r"""Identifiers that begin with the letter of an escape: JSON writes a tab before `sourceRepo` as `\\tsourceRepo`.
    They count as used, because the request contains them, but the meant name begins after that letter.
    """


_NOTHING = UsedReferences({}, {}, {})


class References:
    """Finds the references of each message of a transcript to the messages before it.

    It reads every text once, so the effort grows with the length of the transcript.
    """

    def __init__(self, wanted: frozenset[str] | None = None) -> None:
        """`wanted`: the only identifiers and lines that calls use (see `things_in_calls`), if they are known."""
        self._position = 0
        self._wanted = wanted
        self._answered: dict[str, list[int]] = {}  # identifier -> positions of the results that hold it
        self._spoken: dict[str, list[int]] = {}  # identifier -> positions of the other messages that hold it
        self._answered_lines: dict[str, list[int]] = {}
        self._spoken_lines: set[str] = set()

    def read(self, message: Message) -> UsedReferences:
        """Return the references of a message's calls to earlier messages, and add the message."""
        self._position += 1
        spoken = pick(identifiers(message.text), self._wanted)
        if message.role == "tool":
            self._note(self._answered, spoken)
            self._note(self._answered_lines, pick(whole_lines(message.text), self._wanted))
            return _NOTHING
        calls = message.calls
        called = identifiers(call_text(calls)) if calls else frozenset()
        lines = call_lines(calls) if calls else frozenset()
        used = self._used(called, lines, call_text(calls)) if calls else _NOTHING
        self._note(self._spoken, spoken | called)
        # A line that the assistant wrote as plain text still needs its source, because prose quotes loosely.
        self._spoken_lines |= lines if message.role == "assistant" else pick(whole_lines(message.text), self._wanted)
        return used

    def _used(self, called: frozenset[str], lines: frozenset[str], text: str) -> UsedReferences:
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
        return UsedReferences(recall, said, quoted, escaped)

    def _note(self, index: dict[str, list[int]], things: Iterable[str]) -> None:
        for thing in things:
            index.setdefault(thing, []).append(self._position)


def things_in_calls(messages: Iterable[Message]) -> frozenset[str]:
    """Return all identifiers and whole lines that the calls of messages use: the only ones that a lookup needs."""
    things: set[str] = set()
    for calls in (message.calls for message in messages):
        names = identifiers(call_text(calls)) if calls else frozenset()
        escaped = [identifiers(name[1:]) for name in names if name[0] in _ESCAPES]
        things.update(names, call_lines(calls), *escaped)
    return frozenset(things)


def pick(things: frozenset[str], wanted: frozenset[str] | None) -> frozenset[str]:
    """Return those of the things that are wanted; all of them if `wanted` is None."""
    return things if wanted is None else things & wanted


def _is_escaped(name: str, text: str) -> bool:
    """Return whether a name occurs in a text only after a backslash."""
    return name[0] in _ESCAPES and text.count(f"\\{name}") == text.count(name)


def identifiers(text: str) -> frozenset[str]:
    """Return the distinct identifiers in a text."""
    names = {run.strip(_EDGES) for run in set(_RUN.findall(text))}
    return frozenset(
        [run for run in names if len(run) >= _LEAST_IDENTIFIER and (_SIGNIFICANT.search(run) or _mixed(run))]
    )


def whole_lines(text: str) -> frozenset[str]:
    """Return the distinct whole lines in a text: stripped, and without a viewer's line number."""
    stripped = {_without_number(line) for line in text.split("\n") if len(line) >= _LEAST_LINE}
    return frozenset([line for line in stripped if len(line) >= _LEAST_LINE])


def call_text(calls: Iterable[ToolCall]) -> str:
    """Return calls as text: name and arguments of each, on separate lines."""
    return "\n".join([f"{call.name} {call.arguments}" for call in calls])


def call_lines(calls: Iterable[ToolCall]) -> frozenset[str]:
    """Return the distinct whole lines in the texts within call arguments, at any depth of their JSON."""
    return frozenset().union(*(whole_lines(text) for call in calls for text in _texts(call.arguments)))


def _texts(arguments: str) -> list[str]:
    """Return every string value in a JSON text, or the text itself if it is not JSON."""
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
    """Return whether a name has letters of both cases, other than as capitalised words."""
    return not (run.islower() or run.isupper() or run.istitle())
