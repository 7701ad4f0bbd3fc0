"""Writing: the lines of the digest of a history, chosen by their worth, under the titles of its sections.

Code copies or counts everything in a digest, so nothing is invented, and the same messages give the same text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from ...core.messages import Message
from ..source import plain_line
from ..wrappings import output_of
from .holding import Holding, holding_among
from .notes import without_notes
from .reading import Reader
from .sections import BULLET, DONE, ERRORS, FOUND, LAST, NAMES, ORDER, REFERRED, RULES, TITLE_OF, VALUES
from .selection import Line, Selection, take_fitting
from .signs import Sign
from .speakers import is_from_user, is_summary
from .statements import cut_at_clause, split_statements
from .steps import Steps
from .weights import Statement

__all__ = ["find_holding", "write_digest"]

_NAMES = 0.45
"""Share of the room for names alone. In a recorded history of 150 messages, a list of names holds twice as many of the
names that later calls used as whole lines of the same size.
"""
_MAIN_GOAL = 0.4
"""Share of the room up to which the first sentence of the goal is always shown."""
_RULES = 0.4
"""Share of the room up to which rules come before everything else that is vital."""
_VITAL, _ASSISTANT = 0.8, 0.2
"""Shares of the room for what a user or a system message said that binds, and for what the model said."""
_SHARES = {VALUES: 0.07, ERRORS: 0.07, DONE: 0.22, FOUND: 0.15}
_LAST = 0.08
_FILLED = 20_000
"""Characters of a result whose lines may fill the room."""
_FOCUS = 40.0
"""Worth that a word of the focus adds to a line."""
_HOLDING = 8_000
"""The room that bounds the statements among which those that hold are searched."""
_REPEATED = 2
"""An older result of the same call is shown only if it has so many times the characters: the newest may be a remark."""
_ROW = 40
"""Characters that are worth filling."""


def write_digest(messages: Sequence[Message], room: int, previous: str, required: Sequence[str], focus: str) -> str:
    """Return the digest of a history, as `digest_messages` describes it."""
    required = take_fitting(required, room // 4 - len(REFERRED))
    free = room - (len(REFERRED) + 2 + sum(len(name) + 2 for name in required) if required else 0)
    words = [word for word in re.findall(r"\w+", focus.casefold()) if len(word) > 3]
    steps = Steps(messages, words, previous)
    reader = Reader(messages, room, previous, steps)
    lines = _Lines(reader, steps, room, words)
    selection = lines.select(free)
    text = selection.text(ORDER)
    stale = " ".join(reader.stale)
    names = (name for name in steps.rank_names(reader.names) if name not in text and name.casefold() not in stale)
    head = f"\n\n## {NAMES}\n"
    if kept := take_fitting(names, selection.left - len(head) + 2):
        text += head + ", ".join(kept)
        selection.left = free - len(text)
    if selection.left > _ROW:
        selection.add(lines.rest, selection.left)
        answered: dict[tuple[str, str], int] = {}  # Characters of the newest result of each call.
        for message in reversed(messages if selection.left > room // 50 else ()):
            call = steps.call_of(message)
            if call in answered and len(message.text) < _REPEATED * answered[call]:
                continue
            if call is not None:
                answered.setdefault(call, len(message.text))
            selection.add((line for line in _lines_of(message) if line.text not in reader.gone), selection.left)
            if selection.left <= room // 50:
                break
        selection.add(lines.cut(selection.left), selection.left)
        text = selection.text(ORDER) + (head + ", ".join(kept) if kept else "")
    if missing := [name for name in required if name not in text]:
        text += f"\n\n{REFERRED}{', '.join(missing)}"
    return text.strip()[:room] or _least(messages, previous, room)


def find_holding(messages: Sequence[Message], previous: str) -> Holding:
    """Return the rules and values that hold, as `holding_statements` describes them."""
    spoken = [
        message
        for before, message in pairwise((None, *messages))
        if message is not None
        and (message.role in ("system", "developer") or is_from_user(message, before) or is_summary(message))
    ]
    return holding_among(Reader(spoken, _HOLDING, previous, None).statements)


def _least(messages: Sequence[Message], previous: str, room: int) -> str:
    """Return the beginning of the first text, if no whole line fits."""
    texts = (" ".join(text.split()) for text in (previous, *(message.text for message in messages)))
    return cut_at_clause(next(filter(None, texts), f"{len(messages)} messages"), room)


class _Lines:
    """The lines that a digest of `room` characters may show. Those with a word of `focus` weigh more."""

    def __init__(self, reader: Reader, steps: Steps, room: int, focus: Sequence[str]) -> None:
        self._reader, self._steps, self._room, self._focus = reader, steps, room, focus
        self.rest: list[Line] = []
        """All lines, for the room that names leave."""

    def select(self, room: int) -> Selection:
        """Return the lines for a room of `room` characters, in which names have their share."""
        selection = Selection(room)
        statements = [
            statement
            for statement in self._reader.statements
            if statement.speaker != "tool" and not _is_exclamation(statement)
        ]
        lines = [self._line(statement) for statement in statements]
        vital = [line for line, statement in zip(lines, statements, strict=True) if _is_vital(statement)]
        goal = next((line for line, statement in zip(lines, statements, strict=True) if statement.kind == "goal"), None)
        if goal is not None and len(goal.text) <= room * _MAIN_GOAL:
            selection.add([goal], room)
        selection.add([line for line in vital if line.title == RULES], int(room * _RULES))
        selection.add(vital, int(room * _VITAL) - (room - selection.left))
        for_lines = int(room * (1 - _NAMES))
        steps = self._step_lines()
        for title, share in _SHARES.items():
            chosen = [line for line in steps if line.title == title]
            most = for_lines - (room - selection.left) if title in (DONE, FOUND) else room
            selection.add(chosen, min(int(room * share), most))
            if title == ERRORS:
                selection.add(self._last_lines(), min(int(room * _LAST), for_lines - (room - selection.left)))
                others = [line for line, statement in zip(lines, statements, strict=True) if not _is_vital(statement)]
                selection.add(others, min(int(room * _ASSISTANT), for_lines - (room - selection.left)))
        selection.add([*lines, *steps], for_lines - (room - selection.left))
        self.rest = [*lines, *steps]
        return selection

    def cut(self, room: int) -> list[Line]:
        """Return the beginning of the heaviest line that alone exceeds the room of the digest, if there is one."""
        lines = [self._line(statement) for statement in self._reader.long]
        lines += [line for line in self.rest if len(line.text) > self._room]
        if room < 2 * _ROW or not lines:
            return []
        heaviest = max(lines, key=lambda line: line.weight)
        return [replace(heaviest, text=cut_at_clause(heaviest.text, room - len(heaviest.title) - 7))]

    def _line(self, statement: Statement) -> Line:
        title = TITLE_OF[statement.kind]
        text = statement.shown if statement.kind == "goal" else f"{BULLET}{statement.shown}"
        weight = statement.weight + _FOCUS * self._hits(statement.shown)
        return Line(title, text, weight, statement.position, statement.is_authoritative)

    def _step_lines(self) -> list[Line]:
        lines = [
            *self._reader.copied,
            *(self._line(statement) for statement in self._reader.statements if statement.speaker == "tool"),
        ]
        found = [
            (ERRORS, self._steps.errors.items()),
            (DONE, self._steps.done()),
            (FOUND, self._steps.findings.items()),
        ]
        for title, pairs in found:
            mark = "" if title == FOUND else BULLET
            for text, weight in pairs:
                if text in self._reader.gone:
                    continue
                weight += _FOCUS * self._hits(text)
                lines.append(Line(title, f"{mark}{text}", weight, len(lines), title != FOUND))
        return lines

    def _last_lines(self) -> list[Line]:
        """Return the last statements of the last answer in one line, as many as have room."""
        statements = [text for text in split_statements(self._reader.answer) if text not in self._reader.gone]
        text, room = "", int(self._room * _LAST) - len(LAST) - 6
        while statements and len(statements[-1]) + len(text) < room:
            text = f"{statements.pop()} {text}".rstrip()
        return (
            [Line(LAST, text, 1.0, 0, False)]
            if text
            else [Line(LAST, line, 1.0, 0) for line in self._reader.last_before]
        )

    def _hits(self, line: str) -> int:
        """Count the words of the focus in a line."""
        return sum(word in line.casefold() for word in self._focus) if self._focus else 0


def _lines_of(message: Message) -> list[Line]:
    """Return the whole lines of a result, for the room that nothing else fills."""
    if message.role != "tool":
        return []
    lines = map(plain_line, output_of(without_notes(message.text))[:_FILLED].splitlines())
    return [
        Line(FOUND, line, 1.0, _FILLED + i, False)
        for i, line in enumerate(lines)
        if 20 <= len(line) <= 160 and " " in line
    ]


def _is_vital(statement: Statement) -> bool:
    return statement.is_authoritative and statement.weight >= 5.0


def _is_exclamation(statement: Statement) -> bool:
    """Return whether a statement is a word alone, such as `Done.`, without any name or number."""
    is_plain = not statement.signs & (Sign.SPECIFIC | Sign.BINDING | Sign.CHANGE | Sign.NEGATION)
    return is_plain and statement.text.isascii() and " " not in statement.text
