"""The digest of a history: what was asked, done, found and answered, in the words used there, without a model.

Code copies or counts everything in it, so nothing is invented, and the same request gives the same text. A line weighs
more the later it was written, the more often its names were used, and if it holds a word of the focus.

Its facts are targets of calls, lines that report an error, and names with their uses.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.messages import Message, ToolCall, ToolResult
from ..names import names_in
from .speakers import is_from_user, is_summary, truncate_messages

__all__ = [
    "Section",
    "argument_text",
    "count_uses",
    "digest_messages",
    "error_lines",
    "fit_sections",
    "rank_names",
    "read_sections",
    "take_fitting",
    "target_of",
]

_HEAD = "## "


@dataclass
class Section:
    """Lines under a title. `share`: the part of the room that it may fill before the others get theirs."""

    title: str
    share: float
    lines: dict[str, float] = field(default_factory=dict)
    """Each line once, in display order, with its weight; heavier lines are chosen first."""

    def add(self, line: str, weight: float) -> None:
        """Add a line, or raise its weight to at least `weight`."""
        if line.strip():
            self.lines[line] = max(weight, self.lines.get(line, weight))


def fit_sections(sections: Sequence[Section], room: int) -> str:
    """Return the sections with as many lines as fit into `room` characters."""
    left = room - sum(len(_HEAD) + len(section.title) + 3 for section in sections if section.lines)
    chosen: dict[str, set[str]] = {section.title: set() for section in sections}
    for share in (True, False):  # First each its share, then the rest in order.
        for section in sections:
            most = min(left, int(room * section.share)) if share else left
            for line in sorted(section.lines, key=lambda line: -section.lines[line]):
                cost = len(line) + 1
                if line not in chosen[section.title] and cost <= most:
                    chosen[section.title].add(line)
                    most -= cost
                    left -= cost
    shown = []
    for section in sections:
        kept = [line for line in section.lines if line in chosen[section.title]]
        if kept:
            shown.append("\n".join([_HEAD + section.title, *kept]))
    return "\n\n".join(shown)


def read_sections(text: str) -> Mapping[str, list[str]]:
    """Return the lines of a text by the titles above them; "" for those above the first title."""
    sections: dict[str, list[str]] = {}
    title = ""
    for line in _lines(text):
        if line.startswith("#"):
            title = line.lstrip("#").strip().rstrip(":")
        else:
            sections.setdefault(title, []).append(line)
    return sections


def _lines(text: str) -> Iterator[str]:
    return (line.rstrip() for line in text.splitlines() if line.strip())


GOAL, ASKED, DONE, ERRORS = "Goal", "Asked by the user", "Done", "Errors"
FOUND, BEFORE, LAST, NAMES = "Files and identifiers", "Before", "Last said", "Names"
_SHARES = {GOAL: 0.15, ASKED: 0.2, DONE: 0.25, ERRORS: 0.07, FOUND: 0.2, BEFORE: 0.15, LAST: 0.08}
_NAMES = 0.45
"""Share of the room for names alone. In a recorded history of 150 messages, a list of names holds twice as many of the
names that later calls used as whole lines of the same size.
"""
_SAME = {
    "constraints": ASKED,
    "open": ASKED,
    "pending request": ASKED,
    "errors and fixes": ERRORS,
    "data sources": FOUND,
    "identifiers": FOUND,
    "files": FOUND,
}
"""Titles of other summaries and the sections here that take their lines."""
_READ = 2_000_000
"""Characters that are read in all: about ten windows, in about a second."""
_REFERRED = "Still referred to: "
_STEP = 200
"""Characters of a line about steps."""
_LINE = 120
"""Characters of a line from a result."""
_COMPARED = 100
"""Lines of other sections that are searched for repetitions."""
_FOCUS = 2.0
"""Weight that a word of the focus adds to a line: more than age can add."""
_CONSTRAINT = re.compile(
    r"\b(?:must|never|always|do not|don['’]t|only|without|required?|should|shall|avoid|make sure|important|nicht|immer|"
    r"niemals|toujours|jamais|siempre|nunca|sempre|mai)\b|必须|不要|禁止|нельзя|всегда|никогда",
    re.IGNORECASE,
)
"""Words of lines with constraints. In other languages a text keeps its beginning and its end."""
_MARKUP = re.compile(r"<(\w+)[^>]*>.*</\1>", re.DOTALL)
"""A text in markup comes from a program in the user's name: it is not the goal."""


def digest_messages(
    messages: Sequence[Message], room: int, *, previous: str = "", required: Sequence[str] = (), focus: str = ""
) -> str:
    """Return the digest of a history in at most `room` characters.

    `messages`: the messages, oldest first. `previous`: the summary of the messages before them, by this function or by
    a model, which the digest carries on. `required`: names that the digest must contain, as far as a quarter of the
    room holds them. `focus`: words whose lines weigh more.
    """
    messages = truncate_messages(messages, _READ)
    required = take_fitting(required, room // 4 - len(_REFERRED))
    free = room - (len(_REFERRED) + 2 + sum(len(name) + 2 for name in required) if required else 0)
    reader = _Reader(messages, room, previous, focus)
    text = fit_sections(reader.sections(), free - int(room * _NAMES))
    listed = read_sections(previous).get(NAMES, ())
    known = [name for line in listed for name in line.split(", ")]
    names = (name for name in rank_names(messages, known) if name not in text)
    head = f"\n\n## {NAMES}\n"
    if kept := take_fitting(names, free - len(text) - len(head)):
        text += head + ", ".join(kept)
    if missing := [name for name in required if name not in text]:
        text += f"\n\n{_REFERRED}{', '.join(missing)}"
    return text.strip()[:room] or _least(messages, previous, room)


def _least(messages: Sequence[Message], previous: str, room: int) -> str:
    """Return the beginning of the first text, if no whole line fits."""
    texts = (" ".join(text.split()) for text in (previous, *(message.text for message in messages)))
    return next(filter(None, texts), f"{len(messages)} messages")[:room]


class _Reader:
    """Reads messages, oldest first, into sections."""

    def __init__(self, messages: Sequence[Message], target: int, previous: str, focus: str) -> None:
        self._messages, self._target, self._previous = messages, target, previous
        self._sections = {title: Section(title, share) for title, share in _SHARES.items()}
        self._used = count_uses(messages)
        self._focus = [word for word in re.findall(r"\w+", focus.casefold()) if len(word) > 3]
        self._calls = {call.call_id: call for message in messages for call in message.calls if call.call_id}
        self._done: dict[str, dict[str, tuple[float, int]]] = {}
        self._named: set[str] = set()

    def sections(self) -> list[Section]:
        """Return the sections with all lines that may be chosen."""
        self._carry_on()
        messages = self._messages
        for i, message in enumerate(messages):
            self._read(message, (i + 1) / len(messages))
        for name, targets in self._done.items():
            for line, weight in _grouped(name, targets):
                self._sections[DONE].add(line, weight)
        last = next(
            (message.text for message in reversed(messages) if message.role == "assistant" and message.text.strip()), ""
        )
        self._sections[LAST].add(_tail(last, int(self._target * 0.08)), 1.0)
        self._drop_repetitions()
        for section in self._sections.values() if self._focus else ():
            for line in section.lines:
                section.lines[line] += _FOCUS * self._hits(line)
        return list(self._sections.values())

    def _carry_on(self) -> None:
        """Add the lines of the previous summary: they are the oldest, and goals come from there."""
        for title, lines in read_sections(self._previous).items():
            ours = title if title in self._sections else _SAME.get(title.casefold(), BEFORE)
            for i, line in enumerate(lines):
                if title != NAMES and not line.startswith(_REFERRED):
                    weight = 1.0 if ours == GOAL else 0.3 + 0.1 * (i + 1) / len(lines)
                    self._sections[BEFORE if ours == LAST else ours].add(line, weight)

    def _read(self, message: Message, age: float) -> None:
        match message.role:
            case "user" if is_summary(message):
                for line in message.text.splitlines()[1:]:  # The first line describes the kind of message.
                    self._sections[DONE].add(line.strip()[:_STEP], age)
            case "user" if is_from_user(message):
                self._read_input(message.text, age)
            case "user":
                self._find(message.text, age)
            case "assistant":
                for call in message.calls:
                    targets, target = self._done.setdefault(call.name, {}), target_of(call)
                    weight, times = targets.get(target, (0.0, 0))
                    targets[target] = (weight + age, times + 1)
                self._find(message.text, age)
            case "tool" if (result := message.result) is not None:
                self._read_result(result, age)
            case _:
                pass

    def _read_input(self, text: str, age: float) -> None:
        has_goal = bool(self._sections[GOAL].lines)
        is_goal = not has_goal and not _MARKUP.fullmatch(text.strip())
        text = _shorten(text, int(self._target * (0.15 if is_goal else 0.1)))
        if text and is_goal:
            self._sections[GOAL].add(text, 2.0)
        elif text:
            self._sections[ASKED].add(f"- {text}", 0.5 + age)

    def _read_result(self, result: ToolResult, age: float) -> None:
        call = self._calls.get(result.call_id)
        what = f"{call.name} {target_of(call)}"[:80] if call else result.name
        lines = error_lines(result.text, 1)  # Many tools print a failure without reporting one.
        if result.state == "error":
            lines, age = lines or [" ".join(result.text.split())], age + 1.0
        for line in lines:
            self._sections[ERRORS].add(f"- {what}: {line[:_LINE]}", age)
        self._find(result.text, age, is_result=True)

    def _find(self, text: str, age: float, *, is_result: bool = False) -> None:
        """Add lines with new names; of a result only lines with names that were used."""
        for line in text.splitlines():
            new = [name for name in names_in(line) if name not in self._named]
            if not new:
                continue
            self._named.update(new)
            short = _around(" ".join(line.split()), new[0])
            value = sum(min(3, self._used[name]) for name in set(names_in(short))) / 3
            if value or not is_result or self._hits(short):
                self._sections[FOUND].add(short, age + value)

    def _drop_repetitions(self) -> None:
        shown = [line for title in (GOAL, ASKED, ERRORS, LAST) for line in self._sections[title].lines]
        text = " ".join("\n".join(shown[-_COMPARED:]).split())
        section_of_names = self._sections[FOUND]
        section_of_names.lines = {line: weight for line, weight in section_of_names.lines.items() if line not in text}

    def _hits(self, line: str) -> int:
        """Count the words of the focus in a line."""
        return sum(word in line.casefold() for word in self._focus)


# ------------------------------------------------------------------------------------------------------------- wording


def _grouped(name: str, targets: dict[str, tuple[float, int]]) -> Iterator[tuple[str, float]]:
    """Yield lines such as `- read: a.py ×2, b.py`, the heaviest first, with the weight of the first target."""
    line, weight = "", 0.0
    for target, (value, times) in sorted(targets.items(), key=lambda pair: -pair[1][0]):
        shown = target if times == 1 else f"{target} ×{times}"
        if line and len(line) + len(shown) > _STEP:
            yield f"- {name}: {line}", weight
            line = ""
        weight = weight if line else value
        line += f"{', ' if line else ''}{shown}"
    if line:
        yield f"- {name}: {line}", weight


def _shorten(text: str, room: int) -> str:
    """Return a text whole if it fits; else its beginning, its lines with constraints, and its end."""
    plain = " ".join(text.split())
    if len(plain) <= room:
        return plain
    head = plain[: room // 2]
    binding = " ".join(" ".join(line.split()) for line in text.splitlines() if _CONSTRAINT.search(line))
    binding = binding[: room // 3] if binding not in head else ""
    left = room - len(head) - len(binding) - 8
    return " … ".join(part for part in (head, binding, plain[-left:] if left > 20 else "") if part)


def _tail(text: str, room: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= room else f"… {plain[-max(1, room - 2) :]}"


def _around(line: str, name: str) -> str:
    """Return the part of a long line around a name."""
    start = max(0, line.find(name) - 20) if len(line) > _LINE else 0
    return line[start : start + _LINE]


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
