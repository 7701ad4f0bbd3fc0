"""The digest of a history: what was asked, done, found and answered, in the words used there, without a model.

Code copies or counts everything in it, so nothing is invented, and the same request gives the same text. A line weighs
more the later it was written, the more often its names were used, and if it holds a word of the focus.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from ..core.messages import Message, ToolResult
from ..core.summaries import SummaryRequest
from ..digest import digest, names_in
from ..ports import Summarizer
from .facts import error_lines, fitting, how_often_used, most_spoken_of, target_of
from .transcript import bounded, is_in_short, is_users

__all__ = ["Section", "account", "digest_history", "fitted", "read_sections"]

_HEAD = "## "


@dataclass
class Section:
    """Lines under a title. `share`: of the room, what it may take before the others had theirs."""

    title: str
    share: float
    lines: dict[str, float] = field(default_factory=dict)
    """Each line once, in the order in which it is shown, with its weight: the heavier goes in first."""

    def add(self, line: str, weight: float) -> None:
        """Add a line, or make one that is there weigh at least so much."""
        if line.strip():
            self.lines[line] = max(weight, self.lines.get(line, weight))


def fitted(sections: Sequence[Section], room: int) -> str:
    """The sections with as many of their lines as fit into `room` characters."""
    left = room - sum(len(_HEAD) + len(section.title) + 3 for section in sections if section.lines)
    chosen: dict[str, set[str]] = {section.title: set() for section in sections}
    for share in (True, False):  # Each its share, then what is left to whoever comes first.
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
    """The lines of a text by the titles above them; "" for those above the first title."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in _lines(text):
        if line.startswith("#"):
            title = line.lstrip("#").strip().rstrip(":")
        else:
            found.setdefault(title, []).append(line)
    return found


def _lines(text: str) -> Iterator[str]:
    return (line.rstrip() for line in text.splitlines() if line.strip())


GOAL, ASKED, DONE, ERRORS = "Goal", "Asked by the user", "Done", "Errors"
FOUND, BEFORE, LAST, NAMES = "Files and identifiers", "Before", "Last said", "Names"
_SHARES = {GOAL: 0.15, ASKED: 0.2, DONE: 0.25, ERRORS: 0.07, FOUND: 0.2, BEFORE: 0.15, LAST: 0.08}
_NAMES = 0.45
"""Share of the room for names alone: the densest there is. Of the names that later calls used, a recorded history of
150 messages keeps twice as many in it as in lines of the same size.
"""
_SAME = {
    "constraints": ASKED,
    "open": ASKED,
    "pending request": ASKED,
    "errors and fixes": ERRORS,
    "identifiers": FOUND,
    "files": FOUND,
}
"""Titles of other accounts, by what they come to here."""
_READ = 2_000_000
"""Characters that are read in all: about ten windows, in about a second."""
_REFERRED = "Still referred to: "
_STEP = 200
"""Characters of a line that tells of steps."""
_LINE = 120
"""Characters of a line that is quoted from a result."""
_TOLD = 100
"""Lines of other sections that are looked through for a line that need not be told twice."""
_FOCUS = 2.0
"""What a word of the focus adds to the weight of a line: more than age can."""
_CONSTRAINT = re.compile(
    r"\b(?:must|never|always|do not|don['’]t|only|without|required?|should|shall|avoid|make sure|important|nicht|immer|"
    r"niemals|toujours|jamais|siempre|nunca|sempre|mai)\b|必须|不要|禁止|нельзя|всегда|никогда",
    re.IGNORECASE,
)
"""Words of lines that bind. In other languages a text keeps its beginning and its end."""
_MARKUP = re.compile(r"<(\w+)[^>]*>.*</\1>", re.DOTALL)
"""What a program wraps so and says in the user's name is not the goal."""


def account(request: SummaryRequest) -> str:
    """What happened, in at most `request.target` characters."""
    room = request.target
    request = replace(request, messages=bounded(request.messages, _READ))
    required = fitting(request.required, room // 4 - len(_REFERRED))
    free = room - (len(_REFERRED) + 2 + sum(len(name) + 2 for name in required) if required else 0)
    reader = _Reader(request)
    text = fitted(reader.sections(), free - int(room * _NAMES))
    told = read_sections(request.previous).get(NAMES, ())
    known = [name for line in told for name in line.split(", ")]
    names = (name for name in most_spoken_of(request.messages, known) if name not in text)
    head = f"\n\n## {NAMES}\n"
    if kept := fitting(names, free - len(text) - len(head)):
        text += head + ", ".join(kept)
    if missing := [name for name in required if name not in text]:
        text += f"\n\n{_REFERRED}{', '.join(missing)}"
    return text.strip()[:room] or _least(request)


def _least(request: SummaryRequest) -> str:
    """Where no line fits as it is: the beginning of the first text there is."""
    texts = (" ".join(text.split()) for text in (request.previous, *(one.text for one in request.messages)))
    return next(filter(None, texts), f"{len(request.messages)} messages")[: request.target]


class _Reader:
    """Reads the messages of a request, oldest first, and puts what they say into sections."""

    def __init__(self, request: SummaryRequest) -> None:
        self._request, self._target = request, request.target
        self._sections = {title: Section(title, share) for title, share in _SHARES.items()}
        self._used = how_often_used(request.messages)
        self._focus = [word for word in re.findall(r"\w+", request.focus.casefold()) if len(word) > 3]
        self._calls = {call.call_id: call for message in request.messages for call in message.calls if call.call_id}
        self._done: dict[str, dict[str, tuple[float, int]]] = {}
        self._named: set[str] = set()

    def sections(self) -> list[Section]:
        """The sections, with all lines that could go into them."""
        self._carry_on()
        messages = self._request.messages
        for i, message in enumerate(messages):
            self._read(message, (i + 1) / len(messages))
        for name, targets in self._done.items():
            for line, weight in _grouped(name, targets):
                self._sections[DONE].add(line, weight)
        last = next((one.text for one in reversed(messages) if one.role == "assistant" and one.text.strip()), "")
        self._sections[LAST].add(_tail(last, int(self._target * 0.08)), 1.0)
        self._leave_out_what_is_told()
        for section in self._sections.values() if self._focus else ():
            for line in section.lines:
                section.lines[line] += _FOCUS * self._hits(line)
        return list(self._sections.values())

    def _carry_on(self) -> None:
        """The lines of the summary before: they are older than all else, and goals come from there."""
        for title, lines in read_sections(self._request.previous).items():
            ours = title if title in self._sections else _SAME.get(title.casefold(), BEFORE)
            for i, line in enumerate(lines):
                if title != NAMES and not line.startswith(_REFERRED):
                    weight = 1.0 if ours == GOAL else 0.3 + 0.1 * (i + 1) / len(lines)
                    self._sections[BEFORE if ours == LAST else ours].add(line, weight)

    def _read(self, message: Message, age: float) -> None:
        match message.role:
            case "user" if is_in_short(message):
                for line in message.text.splitlines()[1:]:  # The first says what it is.
                    self._sections[DONE].add(line.strip()[:_STEP], age)
            case "user" if is_users(message):
                self._hear(message.text, age)
            case "user":
                self._find(message.text, age)
            case "assistant":
                for call in message.calls:
                    targets, target = self._done.setdefault(call.name, {}), target_of(call)
                    weight, times = targets.get(target, (0.0, 0))
                    targets[target] = (weight + age, times + 1)
                self._find(message.text, age)
            case "tool" if (result := message.result) is not None:
                self._take(result, age)
            case _:
                pass

    def _hear(self, text: str, age: float) -> None:
        has_goal = bool(self._sections[GOAL].lines)
        is_goal = not has_goal and not _MARKUP.fullmatch(text.strip())
        said = _said(text, int(self._target * (0.15 if is_goal else 0.1)))
        if said and is_goal:
            self._sections[GOAL].add(said, 2.0)
        elif said:
            self._sections[ASKED].add(f"- {said}", 0.5 + age)

    def _take(self, result: ToolResult, age: float) -> None:
        call = self._calls.get(result.call_id)
        what = f"{call.name} {target_of(call)}"[:80] if call else result.name
        told = error_lines(result.text, 1)  # Many tools do not say that they failed, but print it.
        if result.state == "error":
            told, age = told or [" ".join(result.text.split())], age + 1.0
        for line in told:
            self._sections[ERRORS].add(f"- {what}: {line[:_LINE]}", age)
        self._find(result.text, age, is_result=True)

    def _find(self, text: str, age: float, *, is_result: bool = False) -> None:
        """The lines that name what was not named before; of a result those that name what somebody used."""
        for line in text.splitlines():
            new = [name for name in names_in(line) if name not in self._named]
            if not new:
                continue
            self._named.update(new)
            short = _around(" ".join(line.split()), new[0])
            value = sum(min(3, self._used[name]) for name in set(names_in(short))) / 3
            if value or not is_result or self._hits(short):
                self._sections[FOUND].add(short, age + value)

    def _leave_out_what_is_told(self) -> None:
        shown = [line for title in (GOAL, ASKED, ERRORS, LAST) for line in self._sections[title].lines]
        told = " ".join("\n".join(shown[-_TOLD:]).split())
        found = self._sections[FOUND]
        found.lines = {line: weight for line, weight in found.lines.items() if line not in told}

    def _hits(self, line: str) -> int:
        """How many words of the focus a line holds."""
        return sum(word in line.casefold() for word in self._focus)


# ------------------------------------------------------------------------------------------------------------- wording


def _grouped(name: str, targets: dict[str, tuple[float, int]]) -> Iterator[tuple[str, float]]:
    """Lines such as `- read: a.py ×2, b.py`, the weightiest first, each with the weight of its first."""
    line, weight = "", 0.0
    for target, (value, times) in sorted(targets.items(), key=lambda pair: -pair[1][0]):
        told = target if times == 1 else f"{target} ×{times}"
        if line and len(line) + len(told) > _STEP:
            yield f"- {name}: {line}", weight
            line = ""
        weight = weight if line else value
        line += f"{', ' if line else ''}{told}"
    if line:
        yield f"- {name}: {line}", weight


def _said(text: str, room: int) -> str:
    """What somebody said, whole if it fits; else its beginning, its lines that bind, and its end."""
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
    """So much of a long line as can be told, with the name in it."""
    start = max(0, line.find(name) - 20) if len(line) > _LINE else 0
    return line[start : start + _LINE]


def digest_history() -> Summarizer:
    """A summarizer that needs no model, has the sections of the prompt for a history, and is never longer than asked.

    Goal and requests are the users' own words, nearly whole; then what was done, by tool and by what it was done to;
    the errors; names that were found, each in its line; and how the last answer ended. The summary before is carried on
    section by section, whoever wrote it. A message on its own is told by `foveate.digest`.
    """
    return _Digest()


class _Digest(Struct, frozen=True):
    """See `digest_history`."""

    name: ClassVar[str] = "digest"
    needs_no_model: ClassVar[bool] = True
    """Read by chains: it answers at once, and invents nothing."""

    def __call__(self, request: SummaryRequest) -> str:
        if len(request.messages) == 1 and "originalLength" in request.facts:
            return digest(request.messages[0].text, max(1, request.target)).text[: request.target]
        return account(request)
