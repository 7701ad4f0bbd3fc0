"""Finished steps of an agent in a few lines each: what it said, what it called, what came back that is new.

Made without a model, from what was appended, and the same for the same steps. A name (a path, an id, an identifier) is
told once, on the line on which it stood; what follows a step, or stays in the view, does not tell it again. Knows
nothing of when steps are folded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..core.caches import cached
from ..core.messages import Message, ToolCall, ToolResult
from ..core.view import Entry
from ..digest import describe, digest, room_for
from .in_short import in_short, names_of

__all__ = ["steps_in_short", "told_in"]

_WHITE = re.compile(r"\s+")
_ESCAPED = {"\n": "\\n", "\t": "\\t"}
_SAID = 240
"""Characters up to which what the model wrote is told whole."""
_SAID_SHARE = 0.3
_GIVEN = 100
"""Characters up to which an argument is told whole."""
_GIVEN_SHARE = 0.3
_SHORT = 120
"""Characters up to which a result is told whole."""
_LINE = 160
"""Characters of a line of a result."""


def steps_in_short(entries: Sequence[Entry], told: Iterable[str] = ()) -> str:
    """The messages of whole units, one paragraph for each of the model's. `told`: names that need not be told again."""
    short = _Short(set(told))
    answers: dict[str, Entry] = {}
    for entry in entries:
        if entry.result is not None:
            answers.setdefault(entry.result.call_id, entry)
    lines: list[str] = []
    for entry in entries:
        if entry.source is not None and entry.result is None:
            lines += short.step(entry, entry.source, answers)
    return "\n".join(lines)


@cached(4_096)
def told_in(text: str) -> frozenset[str]:
    """The names that a text tells."""
    return frozenset(names_of(text))


class _Short:
    """Writes steps, and remembers which names it has told."""

    def __init__(self, told: set[str]) -> None:
        self._told = told

    def step(self, entry: Entry, message: Message, answers: Mapping[str, Entry]) -> Iterator[str]:
        """The lines of one message of the model, and of the results of its calls."""
        said = list(self._said(message.text))
        calls = message.calls
        if said or not calls:
            yield " ".join([entry.handle, *said[:1]])
            yield from (f"    {line}" for line in said[1:])
        for number, call in enumerate(calls):
            begin = " " if said or number else entry.handle
            yield self._tell(f"{begin} {call.name}({self._given(call)})")
            answer = answers.get(call.call_id)
            if answer is not None and answer.result is not None:
                yield from self._answered(answer, answer.result)

    def _tell(self, line: str) -> str:
        self._told |= told_in(line)
        return line

    def _said(self, text: str) -> Iterator[str]:
        """What the model wrote: how it begins, and the lines further on that tell a new name."""
        flat = " ".join(text.split())
        if len(flat) <= _SAID:
            if flat:
                yield self._tell(flat)
            return
        yield self._tell(f"{flat[:_SAID].rsplit(' ', 1)[0]} …")
        yield from self._new_lines(digest(text, max(_SAID, int(len(text) * _SAID_SHARE))).text)

    def _given(self, call: ToolCall) -> str:
        try:
            given = msgspec.json.decode(call.arguments)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            given = None
        if not isinstance(given, dict):
            return self._value(call.arguments)
        return ", ".join(f"{key}={self._value(value)}" for key, value in given.items())

    def _value(self, value: Any) -> str:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        flat = _on_one_line(text)
        if len(flat) <= _GIVEN:
            return flat
        kept = self._new_lines(in_short(text, max(_GIVEN, int(len(text) * _GIVEN_SHARE)), ""), as_written=True)
        return " /".join([f"{flat[: _GIVEN // 2]}…", *kept])

    def _answered(self, entry: Entry, result: ToolResult) -> Iterator[str]:
        text = entry.source.text if entry.source else ""
        flat = " ".join(text.split())
        mark = " failed" if result.state == "error" else ""
        if len(flat) <= _SHORT:
            yield self._tell(f"  → {entry.handle}{mark} {flat}".rstrip())
            return
        about = describe(text)
        size = f"{about.items:,} {about.item}" if about.items else f"{about.lines:,} lines"
        yield self._tell(f"  → {entry.handle}{mark} {about.kind}, {size}: {about.gist}")
        yield from (f"    {line}" for line in self._new_lines(digest(text, room_for(len(text)), entry.handle).text))

    def _new_lines(self, short: str, *, as_written: bool = False) -> list[str]:
        """The lines of a digest that tell a name which was not told yet. `as_written`: with what stood before them."""
        kept: list[str] = []
        for line in _body(short):
            shown = _on_one_line(f"\n{line}") if as_written else line.strip()
            if told_in(shown) - self._told:
                kept.append(self._tell(shown[:_LINE]))
        return kept


def _on_one_line(text: str) -> str:
    """A text with each run of white space as one space, or as the escape that it ends with, as calls write it."""
    return _WHITE.sub(lambda run: _ESCAPED.get(run[0][-1], " "), text)


def _body(text: str) -> list[str]:
    """The lines of a digest without its header."""
    lines = text.split("\n")
    return lines[1:] if lines[0].startswith("[") and len(lines) > 1 else lines
