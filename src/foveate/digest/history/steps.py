"""Steps: what tools did, which failures they report, and which lines and names of theirs later work refers to."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from typing import Any

from ...core.messages import Message, ToolCall, ToolResult
from ..names import distinct_names, worth_of
from ..source import plain_line
from ..wrappings import output_of
from .notes import without_notes
from .statements import cut_at_clause

__all__ = ["TELLING", "Steps", "argument_text", "error_lines", "target_of"]

_STEP = 200
"""Characters of a line about steps."""
_LINE = 160
"""Characters of a line from a result: a longer one is left out, and its names are listed."""
_SHORT = 320
"""Characters of a short result."""
_TARGET = 120
_ERROR = 240
_LEAST = 1.0
"""Least weight of a listed name: below it, a tool mentioned the name once, long ago."""
_RANKED = 5_000
"""Names that are compared by their worth, the most used first."""
_PLACES = 60
"""Names of one result that are searched for their lines, the most used first."""
_PAIRS_TEXT, _PAIRS_LINE = 1_200, 80
"""Characters of a result, and of its lines, that may be values with their keys."""
_AMOUNT = re.compile(r"\d+\.\d+|\d{4}-\d\d-\d\d")
"""An amount or a date. It is no name: without the words around it, it tells nothing."""
_PAIR = re.compile(r"\w[\w .\-/\[\]%]{0,40}?(?:\s?=\s?|:\s)[^\s=:{(\[].{0,60}\Z")


class Steps:
    """The calls of a history and their results, read oldest first."""

    def __init__(self, messages: Sequence[Message], focus: Sequence[str], previous: str = "") -> None:
        self._focus = focus
        self._known = frozenset(distinct_names(previous))  # Names in the earlier summary.
        self._calls = {call.call_id: call for message in messages for call in message.calls if call.call_id}
        self._names = [
            distinct_names(output_of(message.text) if message.role == "tool" else message.text) for message in messages
        ]
        self._argument_names = [
            tuple([distinct_names(argument_text(call)) for call in message.calls]) for message in messages
        ]
        self._tool = [message.role == "tool" for message in messages]
        self._used = self._count_uses()
        self._done: dict[str, dict[str, tuple[float, int]]] = {}
        self._named: set[str] = set()
        self._newest: tuple[ToolCall, str] | None = None  # The newest call, with its target.
        self.errors: dict[str, float] = {}
        """Lines that report a failure, with their weights."""
        self.findings: dict[str, float] = {}
        """Lines of results with names that calls or texts use, with their weights."""

    def add_call(self, call: ToolCall, age: float) -> None:
        """Count a call."""
        targets, target = self._done.setdefault(call.name, {}), target_of(call)
        self._newest = call, target
        weight, times = targets.get(target, (0.0, 0))
        targets[target] = (weight + 0.2 + age, times + 1)

    def add_result(self, place: int, result: ToolResult, age: float) -> tuple[str, str]:
        """Read a result: a failure that it reports, and its lines with names.

        Returns what the call is about and the values with their keys that it reports; "" if it reports none.
        """
        call = self._calls.get(result.call_id)
        if call is None:
            about = cut_at_clause(result.name, 80)
        else:
            target = self._newest[1] if self._newest and self._newest[0] is call else target_of(call)
            about = cut_at_clause(f"{call.name} {target}", 80)
        text = output_of(result.text)
        plain = without_notes(text)
        weight = age
        lines = error_lines(plain, 1)  # Many tools print a failure without reporting one.
        if result.state == "error":
            lines, weight = lines or [" ".join((plain.strip() or text).split())], age + 1.0
        elif not lines and plain != text:
            lines = error_lines(text, 1)  # A note may name an exit code.
        for line in lines:
            self.errors[f"{about}: {cut_at_clause(line, _ERROR)}"] = weight
        self.add_text(place, text, age)
        return about, "" if lines else _pairs_of(text)

    def call_of(self, message: Message) -> tuple[str, str] | None:
        """Return the name and the arguments of the call that a message answers; None if it is not known."""
        call = self._calls.get(message.result.call_id) if message.result is not None else None
        return (call.name, call.arguments) if call is not None else None

    def short_lines(self, place: int, result: ToolResult) -> list[str]:
        """Return the lines of a short result that has a name in use: they may show that a statement is outdated."""
        if len(result.text) > _SHORT or not any(
            name in self._used or name in self._known for name in self._names[place]
        ):
            return []
        return [line for line in map(plain_line, output_of(result.text).splitlines()) if line]

    def add_pasted(self, place: int, text: str, age: float) -> None:
        """Read output that a user pasted: a failure that it reports, and its lines with names."""
        for line in error_lines(text, 1):
            self.errors[f"pasted: {cut_at_clause(line, _ERROR)}"] = age
        self.add_text(place, text, age)

    def add_text(self, place: int, text: str, age: float) -> None:
        """Keep lines of a tool's text that have new names in use, or words of the focus.

        `place`: the index of its message.
        """
        new = {name for name in self._names[place] if name in self._used and name not in self._named}
        self._named |= new
        used = sorted(new, key=lambda name: (-self._used[name], name))
        places = sorted(text.find(name) for name in used[:_PLACES])
        for line in dict.fromkeys(_line_around(text, begin) for begin in places):
            if " " in line and line not in self.findings:  # Else it is a name, or a tag.
                value = sum(min(3, self._used[other]) for other in distinct_names(line)) / 3
                self.findings[line] = age + value
        for word in self._focus:
            for match in _lines_with(word).finditer(text):
                if line := " ".join(match[0].split()):
                    self.findings.setdefault(line, age + 0.5)

    def _count_uses(self) -> Counter[str]:
        """Count the messages whose calls or text hold each name; results of tools do not count."""
        used: Counter[str] = Counter()
        for names, of_calls, is_tool in zip(self._names, self._argument_names, self._tool, strict=True):
            for more in of_calls:
                used.update(more)
            if not is_tool:
                used.update(names)
        return used

    def rank_names(self, known: Iterable[str]) -> list[str]:
        """Return the names that are worth listing, the best first. `known`: the names of an earlier digest."""
        weights: defaultdict[str, float] = defaultdict(float)
        for i, (names, of_calls) in enumerate(zip(self._names, self._argument_names, strict=True)):
            age = 0.5 + (i + 1) / len(self._names)
            weight = age if self._tool[i] else 2 * age
            for name in names:
                weights[name] += weight
            for more in of_calls:
                for name in more:
                    weights[name] += 2 * age
        for i, name in enumerate(known):
            weights[name] += _LEAST + 1e-6 / (i + 1)  # Names that are only known keep their order.
        listed = (pair for pair in weights.items() if pair[1] >= _LEAST and not _AMOUNT.fullmatch(pair[0]))
        pairs = nlargest(_RANKED, listed, key=lambda pair: (pair[1], pair[0]))
        pairs.sort(key=lambda pair: (-pair[1] * worth_of(pair[0]), pair[0]))
        return [name for name, _ in pairs]

    def done(self) -> Iterator[tuple[str, float]]:
        """Yield lines such as `read: a.py ×2, b.py` with their weights, tool by tool."""
        for name, targets in self._done.items():
            yield from _grouped(name, targets)


def _pairs_of(text: str) -> str:
    """Return the values with their keys that a short result consists of, in one line."""
    if len(text) > _PAIRS_TEXT:
        return ""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    pairs = [line for line in lines if _PAIR.match(line) and len(line) <= _PAIRS_LINE]
    is_table = len(pairs) * 2 >= len(lines) and (len(pairs) > 1 or len(lines) == 1)
    return ", ".join(pairs) if is_table and (len(pairs) > 1 or any(map(str.isdigit, text))) else ""


def _lines_with(word: str) -> re.Pattern[str]:
    return re.compile(rf"^.{{0,{_LINE // 2}}}{re.escape(word)}.{{0,{_LINE // 2}}}$", re.IGNORECASE | re.MULTILINE)


def _line_around(text: str, place: int) -> str:
    """Return the line at a place of a text; "" if it is long."""
    begin, end = text.rfind("\n", max(0, place - _LINE - 1), place) + 1, text.find("\n", place, place + _LINE + 1)
    if begin == 0 and place > _LINE:
        return ""
    if end < 0:
        end = len(text) if len(text) - place <= _LINE else -1
    line = plain_line(text[begin:end]) if end >= 0 else ""
    return line if len(line) <= _LINE else ""


def _grouped(name: str, targets: dict[str, tuple[float, int]]) -> Iterator[tuple[str, float]]:
    line, weight = "", 0.0
    for target, (value, times) in sorted(targets.items(), key=lambda pair: -pair[1][0]):
        shown = target if times == 1 else f"{target} ×{times}"
        if line and len(line) + len(shown) > _STEP:
            yield f"{name}: {line}", weight
            line = ""
        weight = weight if line else value
        line += f"{', ' if line else ''}{shown}"
    if line:
        yield f"{name}: {line}", weight


TELLING = (
    *("path", "file_path", "filepath", "file", "filename", "command", "cmd", "url", "query", "pattern", "name", "id"),
)
"""Arguments that name the target of a call, the likeliest first."""


def argument_text(call: ToolCall) -> str:
    """Return the values of the arguments as text, without JSON syntax."""
    arguments = _arguments(call)
    return call.arguments if arguments is None else "\n".join(map(str, arguments.values()))


def target_of(call: ToolCall) -> str:
    """Return the target of a call in one line of at most 120 characters."""
    arguments = _arguments(call)
    if arguments is None:
        return _target(call.arguments)
    texts = {key: value for key, value in arguments.items() if isinstance(value, str) and value.strip()}
    key = next((key for key in TELLING if key in texts), next(iter(texts), ""))
    return _target(texts.get(key) or json.dumps(arguments, ensure_ascii=False))


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _target(text: str) -> str:
    return " ".join(without_notes(text)[: 4 * _TARGET].split())[:_TARGET]


_CLAIM = re.compile(
    r"\s*(?:E {3,}|[\w.]*(?:Error|Exception|Failure)\b(?:\s*:|$)"
    r"|(?:error|fatal|failed|panic|Error|Fatal|Failed|ERROR|FATAL|FAILED)\b"
    r"|\S+:\d+(?::\d+)?: (?:error|fatal)\b|\S+: .{0,80}(?:No such file or|command not found|[Pp]ermission denied)"
    r"|.{0,30}exit (?:code|status)[: ]+[1-9])"
)
"""The beginning of a line that reports an error, as compilers, shells, tests and tracebacks print it."""
_CLAIM_WORDS = (
    *("rror", "ERROR", "Exception", "Failure", "fatal", "Fatal", "failed", "Failed", "FA", "panic", "E   "),
    *("No such", "not found", "denied", "exit "),
)
"""A line that reports an error has one of these. Looking for each of them is faster than a pattern."""


def error_lines(text: str, most: int = 3) -> list[str]:
    """Return the first lines that report an error, stripped; at most `most`."""
    found: list[str] = []
    places = {word: place for word in _CLAIM_WORDS if (place := text.find(word)) >= 0}
    while places and len(found) < most:
        place = min(places.values())
        begin, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
        end = len(text) if end < 0 else end
        line = text[begin:end].strip() if end - begin < 800 else ""
        if line and len(line) < 400 and _CLAIM.match(line):
            found.append(line)
        for word in [word for word, place in places.items() if place <= end]:
            places[word] = text.find(word, end + 1)
            if places[word] < 0:
                del places[word]
    return found
